"""Squares alone: the minimiser and its flows, as fast as can be, for a certificate that adds them up in one pass.

It is given up where that takes too long, or where a node has no square; the recursions that lose no digits follow where
the certificate is not as good as was asked for.
"""

from __future__ import annotations

import numpy as np

from ...clock import look
from ...form import Form
from ...terms import Array
from ._forest import Forest
from ._groups import forests_of, groups_of_edges
from ._sweeps import flows_of_tree
from ._taut_string import flows_of_line, taut_string

NONE = (*(np.zeros(0) for _ in range(3)), np.zeros(0, np.intp))  # no knots


def squares(form: Form) -> tuple[Array, tuple[Array, ...]] | None:
    """The minimiser and flows near the best ones."""
    w, flows = np.empty(form.shape), list(form.nothing().flows)
    in_line = [(group, None) for group in groups_of_edges(form)]
    for group, forest in in_line if all(group.in_line for group, _ in in_line) else forests_of(form):
        for column in group.columns:
            look()
            s, y = _nodes(form, column)
            if not s.min() > 0.0:
                return None
            found = _on_a_line(y, s, group.weight) if forest is None else _on(forest, y, s, group.weight)
            if found is None:
                return None
            w[:, column] = found[0]
            group.put(found[1], column, flows)
    return w, tuple(flows)


def _nodes(form: Form, j: int) -> tuple[Array, Array]:
    """The second derivative of the losses at each node in one coordinate, and where their minimum is."""
    if len(form.samples) == 1 and form.samples[0].one_each:
        block = form.samples[0]
        return block.scale, np.ascontiguousarray(block.y.reshape(form.n, -1)[:, j])
    s, pull = np.zeros(form.n), np.zeros(form.n)
    for block in form.samples:
        x = np.ones(len(block.node)) if block.X is None else block.X[:, 0]
        y = block.y.reshape(len(block.node), -1)[:, j]
        s += np.bincount(block.node, block.scale * x * x, form.n)
        pull += np.bincount(block.node, block.scale * x * y, form.n)
    return s, pull / np.where(s > 0.0, s, 1.0)


def _on_a_line(y: Array, s: Array, capacity: Array) -> tuple[Array, Array] | None:
    """The minimiser and the flows from each node to the next; ``capacity`` may be 0."""
    w, u = np.empty(len(y)), np.empty(len(y) - 1)
    if not taut_string((y, s, np.append(capacity, 0.0)), (w,)):
        return None
    flows_of_line((y, s, capacity, w), (u,))
    return w, u


def _on(forest: Forest, y: Array, s: Array, capacity: Array) -> tuple[Array, Array] | None:
    """The minimiser and the flows from tails to heads."""
    up, flows = forest.upwards(capacity), np.zeros(len(capacity))
    inner = forest.up >= 0
    y, s = forest.ordered(y), forest.ordered(s)
    if forest.lines:
        found = _on_a_line(y, s, up[1:])
        if found is None:
            return None
        w, flow = found[0], np.append(0.0, -found[1])
    else:
        middle = y.mean()
        w, flow = middle + forest.minimiser(s, s * (middle - y), up, NONE), np.zeros(len(y))
        flows_of_tree((forest.parent, y, s, up, w), (flow,))
    flows[forest.up[inner]] = (forest.sign * flow)[inner]
    return forest.in_place(w), flows
