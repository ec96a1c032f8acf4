"""The data of a problem as the library has stored them, compared with what was written down beside the model.

A certificate is a statement about the data as stored. Data, offsets, centres and parameters must be stored as they were
given, to the last bit; products and quotients (scales, weights) must be right to a few of the last bits, and are then
judged as the floats that they are. Of a Quadratic, and of a norm of fewer rows than columns, the root that the
library states is the datum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from graphreg.datasets.plain import CONSTRAINTS, Array, PlainEdge, PlainProblem, PlainSamples

LAST_BITS = 1e-14  # relative: of products and quotients
ROOT = 1e-8  # relative to the largest eigenvalue: of R'R against the Q that was given


class StoredOtherwiseError(Exception):
    """The library has stored other data than it was given."""


def as_stored(plain: PlainProblem, form: Any) -> PlainProblem:
    """The plain problem with the scales, weights and roots of a canonical form."""
    if set(plain.nodes) != set(form.labels):
        raise StoredOtherwiseError(f"the nodes are {form.labels}, not {plain.nodes}")
    blocks = [_by_node(block, form.labels) for block in form.samples]
    samples = tuple(_samples(part, form, blocks) for part in plain.samples)
    return replace(plain, samples=samples, edges=_edges(plain, form))


def _same(what: str, stored: Any, given: Any, room: float = 0.0) -> None:
    stored, given = np.asarray(stored, dtype=float), np.asarray(given, dtype=float)
    if stored.shape != given.shape or not ((stored == given) | (np.abs(stored - given) <= room * np.abs(given))).all():
        raise StoredOtherwiseError(f"{what}: {stored} is stored, and {given} was given")


def _by_node(block: Any, labels: tuple[Hashable, ...]) -> dict[Hashable, Array]:
    """The rows of each node in a block."""
    order = np.argsort(block.node, kind="stable")
    nodes, first = np.unique(block.node[order], return_index=True)
    return {labels[i]: rows for i, rows in zip(nodes, np.split(order, first[1:]), strict=True)}


def _samples(part: PlainSamples, form: Any, blocks: list[dict[Hashable, Array]]) -> PlainSamples:
    k = next(k for k, rows in enumerate(blocks) if part.node in rows)
    block, rows = form.samples[k], blocks[k][part.node]
    what = f"the node {part.node!r}"
    if part.X is not None:
        _same(f"the design of {what}", block.X[rows], part.X)
    y = np.eye(part.classes)[part.y.astype(int)] if part.family == "multinomial" else part.y
    _same(f"the targets of {what}", block.y[rows], y)
    if part.X is not None and part.family != "multinomial":
        _same(f"the offsets of {what}", block.offset[rows], part.offset)
    for name in ("delta", "tau"):
        if part.family == {"delta": "huber", "tau": "quantile"}[name]:
            _same(f"{name} of {what}", getattr(block.loss, name), getattr(part, name))
    scale = block.scale[rows]
    _same(f"the scales of {what}", scale, part.scale, LAST_BITS)
    return replace(part, scale=scale)


def _edges(plain: PlainProblem, form: Any) -> tuple[PlainEdge, ...]:
    """Each plain edge with the weight and root of one of the form; edges that differ in the weight alone are paired in
    the order of their weights."""
    stored: dict[Any, list[tuple[float, Any]]] = defaultdict(list)
    for block in form.edges:
        for key, weight in _keys(block, form):
            stored[key].append((weight, block.penalty))
    for several in stored.values():
        several.sort(key=lambda pair: pair[0], reverse=True)
    found: dict[int, PlainEdge] = {}
    for k in sorted(range(len(plain.edges)), key=lambda k: plain.edges[k].weight):
        edge = plain.edges[k]
        there = stored[_key(edge.kind, {edge.tail, edge.head}, edge.columns, edge.center, edge.parameter)]
        if not there:
            raise StoredOtherwiseError(f"no such edge is stored: {edge}")
        weight, penalty = there.pop()
        if edge.kind not in CONSTRAINTS:
            _same(f"the weight of the edge {edge.tail!r} - {edge.head!r}", weight, edge.weight, LAST_BITS)
            edge = replace(edge, weight=float(weight))
        root = ROOTED.get(edge.kind)
        found[k] = edge if root is None else replace(edge, parameter=root(edge, penalty))
    left = sum(map(len, stored.values()))
    if left:
        raise StoredOtherwiseError(f"{left} edges are stored that were not given")
    return tuple(found[k] for k in range(len(plain.edges)))


def _keys(block: Any, form: Any) -> list[tuple[Any, float]]:
    kind, p = type(block.penalty).__name__, block.penalty
    kind = {"MappedNorm": "AnalysisL1"}.get(kind, kind)
    columns = np.arange(form.d) if block.features is None else np.asarray(block.features)
    parameter = {"HuberNorm": "delta", "Ball": "radius"}.get(kind)
    value = (p.low, p.high) if kind == "Box" else None if parameter is None else getattr(p, parameter)
    labels, out = form.labels, []
    for e, (tail, head, weight) in enumerate(zip(block.tail, block.head, block.weight, strict=True)):
        pair = {labels[tail], None if head < 0 else labels[head]}
        center = np.zeros(len(columns)) if block.center is None else block.center[e]
        out.append((_key(kind, pair, columns, center, value), float(weight)))
    return out


def _key(kind: str, pair: set[Hashable], columns: Array, center: Array, parameter: Any) -> Any:
    value: Any = None
    if kind == "Box":
        value = tuple(np.broadcast_to(np.asarray(side, dtype=float), len(columns)).tobytes() for side in parameter)
    elif kind not in ROOTED and parameter is not None:
        value = float(parameter)
    return kind, frozenset(pair), tuple(int(j) for j in columns), (np.asarray(center, float) + 0.0).tobytes(), value


def _root(edge: PlainEdge, penalty: Any) -> list[tuple[float, Array]]:
    """``(weight, row)`` of the squares that the library's quadratic form is the sum of."""
    if hasattr(penalty, "root"):
        pairs = [(1.0, row) for row in penalty.root]
    else:
        pairs = list(zip(penalty._values.tolist(), penalty._vectors.T, strict=True))
    Q = sum(weight * np.outer(row, row) for weight, row in pairs)
    given = edge.parameter.T @ edge.parameter
    if np.abs(Q - given).max() > ROOT * np.abs(given).max():
        raise StoredOtherwiseError(f"the form {Q} is stored, and {given} was given")
    return [pair for pair in pairs if pair[0] != 0.0]


def _rows(edge: PlainEdge, penalty: Any) -> Array:
    """R of ``||Rz||_1`` as the library states it: its rows in any order, each with either sign."""
    R, _ = penalty.composed()
    _same(f"the root of {edge.kind}", _sorted(R), _sorted(edge.parameter), LAST_BITS)
    return R


def _sorted(R: Array) -> Array:
    first = R[np.arange(len(R)), (R != 0.0).argmax(axis=1)]
    R = R * np.where(first < 0.0, -1.0, 1.0)[:, None]
    return R[np.lexsort(R.T)]


ROOTED = {"Quadratic": _root, "AnalysisL1": _rows}
