"""The boxes that an enclosed bound claims: prices, flows and how far an exactly conserved point may be from them."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.certificate import Enclosure
from graphreg.certificate.enclosure.attempt import Attempts
from graphreg.form.form import DualPoint

LINE = nx.path_graph(4)


def number(x):
    return Fraction(float(x))


def enclosed(form, point, monkeypatch, outside=None):
    """What the first attempt encloses: prices, flows and spreads, and the groups."""
    seen = []
    true = Attempts._judged

    def judged(self, prices, flows, spread, failed, tree, *more):
        seen.append(([each.copy() for each in prices], flows, spread, failed, tree))
        return true(self, prices, flows, spread, failed, tree, *more)

    monkeypatch.setattr(Attempts, "_judged", judged)
    Enclosure(form, outside=outside)(point)
    return seen[0]


def pulls(form, prices):
    """X'a and |X|'spread at every coordinate, exactly."""
    n, d = form.shape
    total, reach = np.full((n, d), Fraction(0)), np.full((n, d), Fraction(0))
    for block, each in zip(form.samples, prices, strict=False):
        shape = (len(block.node), -1)
        high, low, spread = (x.reshape(shape) for x in (each.high, each.low, each.spread))
        A = block.A.toarray().reshape(*high.shape, n * d)
        for r, c, at in zip(*np.nonzero(A), strict=True):
            x = number(A[r, c, at])
            total.flat[at] += x * (number(high[r, c]) + number(low[r, c]))
            reach.flat[at] += abs(x) * number(spread[r, c])
    return total, reach


def carried(form, flows, total):
    """total += K'u, exactly."""
    for edge, u in zip(form.edges, flows, strict=True):
        columns = range(form.d) if edge.features is None else edge.features
        for e, (t, h) in enumerate(zip(edge.tail.tolist(), edge.head.tolist(), strict=True)):
            for k, j in enumerate(columns):
                total[t, j] += number(u[e, k])
                if h >= 0:
                    total[h, j] -= number(u[e, k])


def widened(form, reach, spread):
    """What prices reach and the spread of the flows at every coordinate, exactly."""
    room = reach.copy()
    for edge, around in zip(form.edges, spread, strict=True):
        columns = range(form.d) if edge.features is None else edge.features
        for ends in (edge.tail.tolist(), edge.head.tolist()):
            for e, i in enumerate(ends):
                for k, j in enumerate(columns):
                    if i >= 0:
                        room[i, j] += number(around[e, k])
    return room


def box_holds(form, point, monkeypatch, outside=None):
    """In exact arithmetic what the centre of the box leaves of the conservation is within the reach of its sides, at
    every coordinate; and for a group without a way to the ground within the reach of the prices alone. What is taken
    ``outside`` may be as far off as it says."""
    prices, flows, spread, failed, tree = enclosed(form, point, monkeypatch, outside)
    total, reach = pulls(form, prices)
    carried(form, flows, total)
    if outside is not None:
        for at in np.ndindex(form.shape):
            total[at] += number(outside.high[at]) + number(outside.low[at])
            total[at] += number(outside.error[at]) * (-1) ** sum(at)  # one of those that it may be
    room = widened(form, reach, spread)
    assert all(abs(t) <= r for t, r in zip(total.flat, room.flat, strict=True))
    for group in set(tree.group[:-1].tolist()) - {tree.grounded, *failed}:
        inside = np.flatnonzero(tree.group[:-1] == group)
        assert abs(sum(total.flat[inside])) <= sum(reach.flat[inside])


def classes(nodes=1):
    rng = np.random.default_rng(3)
    X, y, node = rng.standard_normal((36, 2)), rng.integers(3, size=36), np.arange(36) % nodes
    return gr.MultinomialLoss(gr.NodeData.from_arrays(X, y, node))


def numbers(nodes=4):
    rng = np.random.default_rng(4)
    return gr.NodeData.from_arrays(rng.standard_normal((24, 3)), rng.standard_normal(24), np.arange(24) % nodes)


BOXES = {
    "classes alone": classes,
    "classes along a path": lambda: classes(4) + 0.05 * gr.TotalVariation(LINE, gr.L2()),
    "squares along a path": lambda: gr.SquaredLoss(numbers()) + 0.1 * gr.TotalVariation(LINE, gr.L1()),
    "shared and private columns": lambda: (
        gr.HuberLoss(numbers()) + 0.1 * gr.TotalVariation(LINE, gr.L2(), features=["x0"])
    ),
    "half lines": lambda: gr.SquaredLoss(numbers()) + gr.NodePenalty(gr.NonNegative()),
    "a strong fusion": lambda: gr.SquaredLoss(numbers()) + 10.0 * gr.TotalVariation(LINE, gr.L1()),
    "a consensus": lambda: gr.QuantileLoss(numbers()) + gr.Consensus(LINE),
}


def moved(name, noise):
    """A problem, and its prices moved by a little noise: out of balance by as much."""
    problem = gr.Problem(BOXES[name]())
    point = problem.solve(gr.Exact(), gap=1e-6).certificate.dual_point
    rng = np.random.default_rng(5)
    prices = tuple(a * (1.0 + noise * rng.standard_normal(a.shape)) for a in point.prices)
    return problem.form, DualPoint(point.flows, prices)


# ---- what breaks a bound ---------------------------------------------------------------------------------------------
def each_for_itself(self, values):
    return values


def prices_stay(self, prices, T):
    return 0.0
