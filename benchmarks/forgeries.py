"""Files that are no proofs: proofs with another digit, and hostile ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np


def tampered(proof: Any, seed: int) -> Any:
    """The proof with another digit in a flow, a price or a feature."""
    rng = np.random.default_rng(seed)
    document = json.loads(json.dumps(proof))
    edges, samples = document["dual"]["flows"][0], document["dual"]["prices"][0]
    rows = (edges, samples, document["model"]["samples"][0]["x"])[seed % 3]
    row = rows[int(rng.integers(len(rows)))]
    j = int(rng.integers(len(row)))
    row[j] = _changed(row[j], rng) if row[j] != "0" else "1"
    return document


def _changed(number: str, rng: np.random.Generator) -> str:
    """The same number with another digit."""
    k = int(rng.choice([k for k, c in enumerate(number) if c in "123456789abcdef" and "p" not in number[:k]] or [0]))
    digit = rng.choice([c for c in "13579bdf" if c != number[k]])
    return number[:k] + str(digit) + number[k + 1 :]


# ---- hostile files, made from a proof with two columns and two edges -------------------------------------------------
def _prime_like(k: int, bits: int) -> str:
    return f"{(1 << bits) + 2 * k + 1:x}"


def _flood(proof: Any, values: list[str]) -> Any:
    """The proof with these as the flows of one large block of edges."""
    document = json.loads(json.dumps(proof))
    edges, m = document["model"]["edges"][0], len(values)
    edges |= {"tail": [0] * m, "head": [1] * m, "weight": ["1"] * m, "penalty": "Zero", "strength": "1"}
    document["dual"]["flows"][0] = [[v, v] for v in values]
    return document


def _rows(proof: Any, k: int, row: list[Any], times: int) -> str:
    """The proof with a row of k numbers many times, instead of the flows and edges of a block."""
    document = json.loads(json.dumps(proof))
    block = {"penalty": "Zero", "parameter": None, "strength": "1", "weight": ["1"] * times, "center": None}
    document["model"]["edges"][0] = block | {"k": k, "rows": [row] * times}
    document["dual"]["flows"][0] = [["1"] * min(k, 9)] * times
    return json.dumps(document)


HOSTILE: dict[str, Callable[[Any], str]] = {
    "empty": lambda p: "",
    "no JSON": lambda p: "{",
    "a list": lambda p: "[]",
    "deep lists": lambda p: "[" * 1_000_000,
    "deep objects": lambda p: '{"a":' * 300_000,
    "many lists": lambda p: "[" + "[]," * 5_000_000 + "[]]",
    "a key twice": lambda p: '{"format": 1, ' + json.dumps(p)[1:],
    "a float": lambda p: json.dumps(p | {"within": 1.5}),
    "not a number": lambda p: '{"within": NaN}',
    "a long integer": lambda p: '{"within": ' + "9" * 1_000_000 + "}",
    "a long number": lambda p: json.dumps(p | {"within": "f" * 10_000_000}),
    "a zero denominator": lambda p: json.dumps(p | {"within": "1/0"}),
    "huge exponents": lambda p: json.dumps(p | {"within": "1p99999999"}),
    "an unknown field": lambda p: json.dumps(p | {"trust": "me"}),
    "no claims": lambda p: json.dumps(p | {"claims": []}),
    "an unknown claim": lambda p: json.dumps(p | {"claims": [*p["claims"], {"says": "__init__"}]}),
    "many claims": lambda p: json.dumps(p | {"claims": [{"says": ["bounds"]}] * 100_000}),
    "one label twice": lambda p: json.dumps(p | {"model": p["model"] | {"labels": ["a", "a", "b"]}}),
    "labels that are none": lambda p: json.dumps(p | {"model": p["model"] | {"labels": [[], {}, None]}}),
    "many coprime denominators": lambda p: json.dumps(_flood(p, [f"1/{_prime_like(k, 8000)}" for k in range(3000)])),
    "more of them, smaller": lambda p: json.dumps(_flood(p, [f"1/{_prime_like(k, 300)}" for k in range(30_000)])),
    "exponents far apart": lambda p: json.dumps(_flood(p, [f"1p{9999 - k}" for k in range(9000)] * 3)),
    "rows of very many numbers": lambda p: _rows(p, (1 << 22) - 1, [[]] * 9, 1),
    "very many numbers of no row": lambda p: _rows(p, (1 << 22) - 1, [], 0),
    "more numbers than are allowed": lambda p: _rows(p, 10**9 - 1, [], 0),
    "many empty rows": lambda p: _rows(p, 1, [[]], 30_000),
    "many cells in a place": lambda p: _rows(p, 1, [[[0, 0, "1"]] * 200_000], 1),
    "many cells of far exponents": lambda p: _rows(p, 1, [[[0, 0, "1p971"], [1, 0, "1p-1074"]]], 20_000),
    "a price of huge size": lambda p: json.dumps(_flood(p, ["1p9999"] * 9) | {"w": [["1p9999", "1p-9999"]] * 3}),
}
