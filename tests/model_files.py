"""Model files for tests: a TOML writer, tables to go with them, and models that together use every key."""

from __future__ import annotations

import copy
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr

DATE = datetime.date(2020, 11, 3)  # a type that no key takes

OWN = '''
from dataclasses import dataclass
import numpy as np
import cvxpy as cp
import graphreg as gr


@dataclass(frozen=True)
class ElasticNet(gr.Penalty):
    ridge: float = 1.0

    def value(self, z):
        return np.abs(z).sum(axis=1) + self.ridge / 2 * (z**2).sum(axis=1)

    def prox(self, v, step):
        t = np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0) / (1 + t * self.ridge)

    def conjugate(self, u):
        return (np.maximum(np.abs(u) - 1, 0) ** 2).sum(axis=1) / (2 * self.ridge)

    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z), axis=1) + self.ridge / 2 * cp.sum(cp.square(Z), axis=1)


class Wrong(ElasticNet):
    """Its conjugate is too small: the kind of mistake that would fabricate certificates."""

    def conjugate(self, u):
        return 0.5 * super().conjugate(u)


derived = ElasticNet(2.0)
'''


def toml(content: dict[str, Any]) -> str:
    """A parsed model file written down again."""
    lines: list[str] = []
    for name, value in content.items():
        several = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
        if not several and not isinstance(value, dict):
            lines.insert(0, f"{name} = {_inline(value)}")
            continue
        for table in value if several else [value]:
            lines.append(f"[[{name}]]" if several else f"[{name}]")
            lines += [f"{_key(key)} = {_inline(each)}" for key, each in table.items()]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_inline(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)


def _key(key: str) -> str:
    return json.dumps(key)


def write(folder: Path, content: dict[str, Any], name: str = "model.toml") -> Path:
    path = folder / name
    path.write_text(toml(content), encoding="utf-8")
    return path


def visits(n: int = 6, each: int = 7) -> pd.DataFrame:
    """Samples at the sites 01 to 06, whose labels must keep their zeros."""
    rng = np.random.default_rng(1)
    site = np.repeat([f"{k:02d}" for k in range(1, n + 1)], each)
    frame = pd.DataFrame({"site": site, "region": np.where(site < "04", "north", "south")})
    frame["district"] = np.where(site < "03", "a", np.where(site < "04", "b", "c"))
    frame["dose"], frame["age"] = 5.0 + 2.0 * rng.normal(size=(2, n * each))
    frame["hours"] = rng.integers(1, 4, n * each)
    frame["base"] = 0.1 * rng.normal(size=n * each)
    frame["response"] = 0.5 * frame["dose"] - 0.2 * frame["age"] + rng.normal(size=n * each)
    frame["ill"] = (frame["response"] > frame["response"].median()).astype(int)
    return frame


def tables(folder: Path) -> pd.DataFrame:
    """The tables of the models below; 06 has no edge, 07 no data."""
    frame = visits()
    frame.to_csv(folder / "visits.csv", index=False)
    edges = [("01", "02", 1.0), ("02", "03", 2.0), ("03", "04", 1.0), ("04", "05", 0.5), ("05", "07", 1.0)]
    pd.DataFrame(edges, columns=["a", "b", "closeness"]).to_csv(folder / "roads.csv", index=False)
    names = ["01", "02", "03", "04", "05", "06"]
    matrix = pd.DataFrame(0.0, index=pd.Index(names, name="site"), columns=names)
    for a, b, weight in edges[:4]:
        matrix.loc[a, b] = matrix.loc[b, a] = weight
    matrix.to_csv(folder / "matrix.csv")
    dated = frame.assign(day=frame["site"].astype(int) ** 2, date=("2024-05-" + frame["site"]))
    dated.to_csv(folder / "dated.csv", index=False)
    arrows = pd.DataFrame([("01", "02", 0.5, "x"), ("03", "02", -0.2, "y"), ("04", "05", 0.0, "x")])
    arrows.set_axis(["from", "to", "lead", "kind"], axis=1).to_csv(folder / "arrows.csv", index=False)
    entries = [("p", "01", "dose", 1.0, 0, 0.5, 2.0), ("p", "02", "dose", -1.0, 1, 0.0, 2.0)]
    entries += [("q", "03", "age", 1.0, 0, -0.5, 1.0), ("q", "04", "dose", 2.0, 1, -0.5, 1.0)]
    columns = ["row", "node", "feature", "coefficient", "part", "sum", "trust"]
    pd.DataFrame(entries, columns=columns).to_csv(folder / "entries.csv", index=False)
    (folder / "penalties.py").write_text(OWN, encoding="utf-8")
    return frame


BASE: dict[str, Any] = {
    "data": {"file": "visits.csv", "node": "site", "target": "response", "features": ["dose", "age"]},
    "graph": {"edges": "roads.csv"},
    "loss": {"family": "SquaredLoss"},
    "total_variation": {"penalty": "L2", "strength": 0.2},
}

FULL: list[dict[str, Any]] = [  # together they have every key
    {
        "data": {
            "file": "visits.csv",
            "name": "visits",
            "node": "site",
            "target": "response",
            "features": "others",
            "exclude": ["region", "district", "ill"],
            "weights": "hours",
            "offset": "base",
            "intercept": True,
            "standardise": ["dose"],
            "keep": {"ill": [0, 1]},
            "derive": {"twice": "2 * dose + age"},
        },
        "graph": {
            "name": "roads",
            "edges": "roads.csv",
            "tail": "a",
            "head": "b",
            "edge_weight": "closeness",
            "nodes": "data",
        },
        "loss": {
            "family": "HuberLoss",
            "delta": 1.5,
            "scale": "sum",
            "strength": 2.0,
            "parameter": "c",
            "data": "visits",
            "keep": {"region": ["north", "south"]},
        },
        "total_variation": {
            "penalty": {"family": "HuberNorm", "delta": 0.5},
            "strength": 0.3,
            "parameter": "lam",
            "graph": "roads",
            "features": ["dose"],
        },
        "node_penalty": {
            "penalty": {"family": "penalties:ElasticNet", "ridge": 2.0},
            "strength": 0.01,
            "parameter": "ridge",
            "weights": dict.fromkeys(["01", "02", "03", "04", "05", "06"], 1.5),
            "center": [0.5],
            "features": ["dose"],
            "nodes": ["01", "02", "03", "04", "05", "06"],
        },
        "hierarchy": {
            "clusters": ["district", "region"],
            "weights": [0.1, 0.2, 0.3],
            "penalty": "L2",
            "strength": 0.5,
            "parameter": "mu",
            "data": "visits",
        },
        "solve": {
            "method": {"family": "PrimalDual", "balance": 1.0, "relaxation": 1.5, "polish": False},
            "gap": 1e-3,
            "rounds": 1000,
            "seconds": 60.0,
            "memory": 1e9,
            "seed": 1,
        },
    },
    {
        **BASE,
        "graph": {"adjacency": "matrix.csv", "nodes": "all"},
        "loss": {"family": "SquaredLoss", "scale": 2.0},
        "hierarchy": {"clusters": {"x": ["01", "02", "03"], "y": ["04", "05", "06"]}, "alpha": 0.3, "gamma": 0.4},
        "solve": {"method": {"family": "Exact", "solver": "clarabel", "form": "dual"}},
    },
    {
        **BASE,
        "graph": [
            {"name": "line", "family": "path"},
            {"name": "field", "family": "grid", "size": [2, 3], "labels": ["01", "02", "03", "04", "05", "06"]},
        ],
        "total_variation": [
            {"penalty": "L1", "graph": "line", "strength": 0.1},
            {"penalty": {"family": "Quadratic", "Q": [[2.0, 0.5], [0.5, 1.0]]}, "graph": "field"},
        ],
        "node_penalty": {"penalty": {"family": "Box", "low": -3.0, "high": [2.0, 3.0]}},
    },
    {**BASE, "consensus": {"graph": "roads", "features": ["age"]}, "graph": {"name": "roads", "family": "cycle"}},
    {
        **BASE,
        "data": {**BASE["data"], "file": "dated.csv", "name": "visits", "categories": ["district"]},
        "rows": [
            {"penalty": "L1", "along": "date", "order": 2, "at": "day", "features": ["dose"], "parameter": "bend"},
            {"penalty": "L2", "strength": 0.5, "across": "arrows.csv", "offset": "lead", "groups": "kind"},
            {"penalty": "L1", "at": ["01", "03"], "offset": {"01": 0.5, "03": 0.1}, "weights": "day", "data": "visits"},
            {
                "penalty": {"family": "HuberNorm", "delta": 0.1},
                "file": "entries.csv",
                "offset": "sum",
                "weights": "trust",
            },
            {"penalty": "SquaredL2", "across": "graph", "order": 2, "weights": [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0]},
        ],
    },
]


def keys(content: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    """Every key of a model file: the path of the table that holds it, the key, its value; inline tables included."""

    def walk(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield path, key, each
                yield from walk(each, (*path, key))
        elif isinstance(value, list):
            for k, each in enumerate(value):
                yield from walk(each, (*path, k))

    for name, table in content.items():
        yield from walk(table, (name,))


def changed(content: dict[str, Any], path: tuple[Any, ...], key: str, **how: Any) -> dict[str, Any]:
    """The model with one key dropped, renamed (``name=``) or given another value (``value=``)."""
    new = copy.deepcopy(content)
    table: Any = new
    for step in path:
        table = table[step]
    value = table.pop(key)
    if how:
        table[how.get("name", key)] = how.get("value", value)
    return new


def read(folder, content, **options):
    return gr.read_model(write(folder, content), **{"allow_code": True, **options})
