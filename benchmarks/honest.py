"""Proofs written by hand, in exact numbers: small problems whose optimum is known, and points at the ends of domains.

What is made here is a proof; `benchmarks.forgeries` makes files from it that are none.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from math import isqrt
from typing import Any

from graphreg.certificate.proof.statement import text, texts

F = Fraction
Document = dict[str, Any]
LOOSE = 1 << 30  # bounds that every small problem here keeps: nothing but its domain can refuse a point


def samples(loss: str, y: list[Any], node: list[int], k: int = 1, **other: Any) -> Document:
    """A block of samples, all of feature 1 (or w_i itself), of scale 1 unless another is given."""
    M = len(node)
    return {
        "loss": loss,
        "parameter": None,
        "strength": "1",
        "rule": "sum",
        "node": node,
        "weight": ["1"] * M,
        "x": None if loss == "mean" else [["1"]] * M,
        "y": y,
        "offset": [["0"] * k] * M,
    } | other


def edges(penalty: str, ends: list[tuple[int, int]], features: list[int], **other: Any) -> Document:
    """A block of edges of weight 1, unless another is given."""
    tail, head = map(list, zip(*ends, strict=True))
    return {
        "penalty": penalty,
        "parameter": None,
        "strength": "1",
        "tail": tail,
        "head": head,
        "weight": ["1"] * len(ends),
        "features": features,
        "center": None,
    } | other


def rows(penalty: str, k: int, cells: list[Any], **other: Any) -> Document:
    """A block of rows of weight 1, unless another is given; the cells have rationals for coefficients."""
    written = [[[[i, j, text(x)] for i, j, x in number] for number in row] for row in cells]
    none = {"parameter": None, "strength": "1", "weight": ["1"] * len(cells), "center": None}
    return {"penalty": penalty, "k": k, "rows": written} | none | other


def as_rows(made: Document) -> Document:
    """The same, with every edge, and every sample whose scale is of no mean, written as a row."""
    made = copy.deepcopy(made)
    for block in made["model"]["edges"]:
        if "rows" in block:
            continue
        tail, head, features = block.pop("tail"), block.pop("head"), block.pop("features")
        ends = [[(i, "1"), (j, "-1")] if j >= 0 else [(i, "1")] for i, j in zip(tail, head, strict=True)]
        block["k"], block["rows"] = len(features), [[[[i, f, x] for i, x in each] for f in features] for each in ends]
    for block in made["model"]["samples"]:
        if "rows" not in block and block["rule"] != "mean":
            node, x, k = block.pop("node"), block.pop("x"), len(block["offset"][0])
            own = [[[i, c, "1"]] for i in node for c in range(k)]
            cells = (
                own if x is None else [_cells(i, row, c, k) for i, row in zip(node, x, strict=True) for c in range(k)]
            )
            block["k"], block["rows"] = k, [cells[r : r + k] for r in range(0, len(cells), k)]
    return made


def _cells(i: int, row: list[str], c: int, k: int) -> list[list[Any]]:
    """Of the predictor of class c, of k."""
    return [[i, f * k + c, x] for f, x in enumerate(row) if x != "0"]


def document(
    n: int, d: int, blocks: tuple[list[Document], list[Document]], w: Any, flows: Any, prices: Any
) -> Document:
    """A proof of loose bounds."""
    model = {
        "labels": [f"n{i}" for i in range(n)],
        "columns": [f"x{j}" for j in range(d)],
        "samples": blocks[0],
        "edges": blocks[1],
    }
    return {
        "format": "graphreg-proof-1",
        "model": model,
        "w": texts(w),
        "dual": {"flows": texts(flows), "prices": texts(prices)},
        "within": None,
        "claims": [bounds(F(-LOOSE), F(LOOSE))],
    }


def bounds(low: Fraction, high: Fraction) -> Document:
    return {"says": "bounds", "lower": text(low), "upper": text(high)}


def of_edge(says: str, edge: int, **other: Any) -> Document:
    return {"says": says, "block": 0, "edge": edge} | other


def changed(tree: Document, *way: Any) -> Document:
    """A copy of a document with another value, the last given, at a place."""
    tree = copy.deepcopy(tree)
    *path, last, value = way
    place: Any = tree
    for key in path:
        place = place[key]
    place[last] = value
    return tree


# ---- a chain of means with a known optimum ---------------------------------------------------------------------------
NORMS = {  # weight, the flow of an edge with the difference (-3, -4), and a flow well inside the capacity
    "L1": (F(1), [F(-1), F(-1)], [F(1, 4), F(-1, 4)]),
    "L2": (F(5), [F(-3), F(-4)], [F(2), F(-1)]),
    "LInf": (F(2), [F(0), F(-2)], [F(1, 2), F(-1)]),
}
SPLIT, LEFT, RIGHT = 1, 0, 2  # edges: of the split one the flow is at its capacity, of the others it has slack


def norm(kind: str, z: list[Fraction]) -> Fraction:
    """A norm of z; of L2 where it is rational."""
    if kind == "L1":
        return sum(map(abs, z), F(0))
    if kind == "LInf":
        return max(map(abs, z))
    square = sum((x * x for x in z), F(0))
    found = F(isqrt(square.numerator), isqrt(square.denominator))
    assert found * found == square
    return found


def exact(kind: str, w: list[list[Fraction]], flows: list[list[Fraction]], c: Fraction) -> Document:
    """Means on a chain of which w is the optimum and the flows belong to it: y_i = w_i + (K'u)_i. Its bounds are equal,
    and claimed."""
    n, d = len(w), len(w[0])
    prices = prices_of(flows, d)
    y = [[p - a for p, a in zip(*rows, strict=True)] for rows in zip(w, prices, strict=True)]
    block = edges(kind, [(i, i + 1) for i in range(n - 1)], list(range(d)), weight=[text(c)] * (n - 1))
    losses = samples("mean", texts(y), list(range(n)), d)
    least = sum((a * a / 2 for row in prices for a in row), F(0))
    least += sum(c * norm(kind, [p - q for p, q in zip(w[e], w[e + 1], strict=True)]) for e in range(n - 1))
    made = document(n, d, ([losses], [block]), w, [flows], [prices])
    return made | {"claims": [bounds(least, least)]}


def prices_of(flows: list[list[Fraction]], d: int) -> list[list[Fraction]]:
    """The prices that balance the flows of a chain, of samples with x = 1."""
    none = [F(0)] * d
    around = zip([none, *flows], [*flows, none], strict=True)
    return [[before - after for before, after in zip(*pair, strict=True)] for pair in around]


def chain(kind: str) -> Document:
    """Four nodes, of which the outer edges are tied with slack, and the inner one is split; all of it claimed."""
    c, at_end, inner = NORMS[kind]
    w = [[F(1), F(2)]] * 2 + [[F(4), F(6)]] * 2
    flows = [inner, at_end, [-x for x in inner]]
    made = exact(kind, w, flows, c)
    beyond = [inner, [F(5, 4) * x for x in at_end], flows[2]]
    dual = {"flows": [texts(beyond)], "prices": [texts(prices_of(beyond, 2))]}
    tied = [claim for e in (LEFT, RIGHT) for claim in (of_edge("fused", e), of_edge("near", e, distance="1p-900"))]
    made["claims"] += [*tied, of_edge("split", SPLIT, dual=dual)]
    return made


# ---- single points, of any loss or penalty ---------------------------------------------------------------------------
SCALE = F(3, 4)  # of the sample, or the weight of the edge, in what follows
LOSSES: dict[str, tuple[Any, Any, list[list[Fraction]]]] = {  # parameter, target, prices (over the scale) at ends
    "logistic": (None, "-1", [[F(0)], [F(1)]]),
    "poisson": (None, "3", [[F(-3)]]),
    "huber": ("5p-2", "7", [[F(-5, 4)], [F(5, 4)]]),
    "quantile": ("3p-2", "7", [[F(-3, 4)], [F(1, 4)]]),
    "multinomial": (3, 1, [[F(0), F(-1, 2), F(1, 2)], [F(1, 3), F(-1), F(2, 3)]]),
    "hinge": (None, "-1", [[F(0)], [F(1)]]),
    "squared_hinge": (None, "1", [[F(0)]]),
    "expectile": ("3p-2", "7", []),
    "squared_epsilon": ("5p-2", "7", []),
    "gamma": (None, "3", [[F(1)]]),
}
PENALTIES: dict[str, tuple[Any, list[list[Fraction]]]] = {  # parameter, flows (over the weight) at ends
    "L1": (None, [[F(1), F(0)], [F(-1), F(1)]]),
    "L2": (None, [[F(3, 5), F(-4, 5)], [F(0), F(1)]]),
    "LInf": (None, [[F(1, 3), F(-2, 3)], [F(1), F(0)]]),
    "HuberNorm": ("5p-1", [[F(3, 2), F(-2)], [F(5, 2), F(0)]]),
}
SIDES: dict[str, tuple[Any, list[list[Fraction]]]] = {  # constraints: parameter, points z at their ends
    "Zero": (None, [[F(0), F(0)]]),
    "Ball": ("5", [[F(3), F(-4)], [F(0), F(5)]]),
    "NonNegative": (None, [[F(0), F(7)], [F(1), F(0)]]),
    "Box": ([["-1", "1"], [None, "3"]], [[F(-1), F(-99)], [F(1), F(3)]]),
}


def of_loss(loss: str, b: list[Fraction], /, **other: Any) -> Document:
    """One sample with the prices s b, balanced by a squared penalty on its node."""
    parameter, y, _ = LOSSES[loss]
    k = len(b)
    a = [SCALE * x for x in b]
    block = samples(loss, [y], [0], k, parameter=parameter, strength="3p-1", weight=["1p-1"])
    ridge = edges("SquaredL2", [(0, -1)], list(range(k)))
    return document(1, k, ([block | other], [ridge]), [[F(0)] * k], [[[-x for x in a]]], [[a]])


def of_penalty(penalty: str, u: list[Fraction], /, **other: Any) -> Document:
    """One edge to the ground with the flow c u, balanced by a mean."""
    flow = [SCALE * x for x in u]
    block = edges(penalty, [(0, -1)], [0, 1], parameter=PENALTIES[penalty][0], strength="3p-1", weight=["1p-1"])
    mean = samples("mean", [["1", "1p1"]], [0], 2)
    return document(1, 2, ([mean], [block | other]), [[F(0)] * 2], [[flow]], [[[-x for x in flow]]])


def of_constraint(penalty: str, z: list[Fraction]) -> Document:
    """One node at a point z of its constraint, with no flow."""
    block = edges(penalty, [(0, -1)], [0, 1], parameter=SIDES[penalty][0])
    none = [F(0)] * 2
    return document(1, 2, ([samples("mean", [["1", "1p1"]], [0], 2)], [block]), [z], [[none]], [[none]])


def separable() -> Document:
    """Two nodes, classes that a direction separates, with a penalty on their difference: no minimum is attained."""
    block = samples("logistic", ["1", "-1"], [0, 1], x=[["1"], ["-3"]])
    made = document(2, 1, ([block], [edges("L2", [(0, 1)], [0])]), [[0], [0]], [[[F(0)]]], [[[F(0)], [F(0)]]])
    made["claims"].append({"says": "unattained", "direction": [["1"], ["1"]]})
    return made


def rooted() -> Document:
    """A Quadratic of rank 1 between two nodes."""
    block = edges("Quadratic", [(0, 1)], [0, 1], parameter=[["1", "1p1"]], strength="1p1")
    t, u = [F(1, 2)], [F(1), F(2)]
    mean = samples("mean", [["1", "0"], ["0", "1"]], [0, 1], 2)
    return document(2, 2, ([mean], [block]), [[F(0)] * 2] * 2, [[t]], [[[-x for x in u], u]])
