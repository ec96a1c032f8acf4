"""Attainment of infima: data that separate, and what is left at infinity."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import thinned

import graphreg as gr
from benchmarks.soundness.objective import recedes
from graphreg.base.clock import OutOfTimeError
from graphreg.certificate import at_infinity, attained
from graphreg.certificate.attainment import attainment, directions
from graphreg.datasets import random_problem
from graphreg.datasets.random_problems import LOSSES


def logistic(**nodes):
    """Each node's samples as rows (label, coordinates ...); names are the nodes."""
    rows = [(name, *row) for name, samples in nodes.items() for row in samples]
    X = np.array([row[2:] for row in rows], dtype=float)
    return gr.LogisticLoss(gr.NodeData.from_arrays(X, [row[1] for row in rows], [row[0] for row in rows]))


def test_no_programme_looks_farther_where_nothing_falls_near(monkeypatch):
    real, reach = attainment._solved, []

    def counted(c, upper, right, equal, bounds, tolerance):
        reach.append(bounds[0][1])
        return real(c, upper, right, equal, bounds, tolerance)

    monkeypatch.setattr(attainment, "_solved", counted)
    for falls, looks in (([[1.0], [-1.0]], 2), ([[1.0], [1.0]], 3)):
        none = sp.csr_array((0, 1))
        assert len(list(attainment.answers(sp.csr_array(np.array(falls)), none, none))) == looks
        assert (1e6 in reach) == (looks == 3)


def pair(*, lonely=False):
    graph = nx.Graph([("a", "b")])
    if lonely:
        graph.add_edge("b", "c")
    return graph


RIGHT, LEFT = [(1, 1.0), (-1, -2.0)], [(-1, 1.0), (1, -2.0)]  # separable, in opposite directions
MIXED = [(1, 1.0), (-1, 1.5), (1, -0.5)]  # not separable
TWO = [(1, 1.0, 0.0), (-1, -1.0, 0.0), (1, 0.0, 1.0), (-1, 0.0, 1.0)]  # the first coordinate separates, the second not
MIXED_TWO = [(1, 1.0, 0.0), (-1, 1.0, 0.0), (1, 0.0, 1.0), (-1, 0.0, 1.0)]
squared = gr.SquaredLoss(gr.NodeData.from_arrays(np.array([[1.0], [2.0]]), [0.3, 0.7], ["b", "b"]))


def single_class(ridge):
    """All labels are 1: the intercept may run away."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(
        rng.standard_normal((8, 1)), np.ones(8, int), [0] * 8, features=["x"], intercept=True
    )
    return gr.LogisticLoss(data) + gr.NodePenalty(gr.SquaredL2(), features=ridge)


fused = gr.TotalVariation(pair(), gr.L2())
UNATTAINED = {
    "separable": logistic(a=RIGHT),
    "one node of two": logistic(a=RIGHT, b=MIXED),
    "along the graph": logistic(a=RIGHT, b=RIGHT) + fused,
    "a neighbour without data": logistic(a=RIGHT, b=RIGHT) + gr.TotalVariation(pair(lonely=True), gr.L2()),
    "tied to a node without data": logistic(a=RIGHT) + fused,
    "a shared coordinate": logistic(a=TWO, b=TWO) + gr.Consensus(pair(), features=["x0"]),
    "the other coordinate is tied": logistic(a=TWO, b=[(-y, *x) for y, *x in TWO])
    + gr.Consensus(pair(), features=["x1"]),
    "a ridge on another coordinate": logistic(a=TWO) + gr.NodePenalty(gr.SquaredL2(), features=["x1"]),
    "a ridge that skips the intercept": single_class(None),
    "a flat direction of a quadratic": logistic(a=TWO) + gr.NodePenalty(gr.Quadratic(np.diag([0.0, 1.0]))),
    "quadratic edges along the direction": logistic(a=TWO, b=TWO) + gr.TotalVariation(pair(), gr.Quadratic(np.eye(2))),
    "a box open that way": logistic(a=RIGHT) + gr.NodePenalty(gr.Box(-1.0, np.inf)),
    "a cone that way": logistic(a=RIGHT) + gr.NodePenalty(gr.NonNegative()),
    "a ball on another coordinate": logistic(a=TWO) + gr.NodePenalty(gr.Ball(1.0), features=["x1"]),
    "a squared loss elsewhere": logistic(a=RIGHT) + squared,
    "a hierarchy": logistic(a=RIGHT, b=RIGHT) + gr.Hierarchy({"c": ["a", "b"]}, (1.0, 1.0)),
    "HuberNorm on the edges": logistic(a=RIGHT, b=RIGHT) + gr.TotalVariation(pair(), gr.HuberNorm(0.1)),
}
ATTAINED = {
    "not separable": logistic(a=MIXED),
    "opposite neighbours": logistic(a=RIGHT, b=LEFT) + fused,
    "opposite along SquaredL2": logistic(a=RIGHT, b=LEFT) + gr.TotalVariation(pair(), gr.SquaredL2()),
    "opposite along HuberNorm": logistic(a=RIGHT, b=LEFT) + gr.TotalVariation(pair(), gr.HuberNorm(0.1)),
    "opposite through a node without data": logistic(a=RIGHT, c=LEFT) + gr.TotalVariation(pair(lonely=True), gr.L1()),
    "opposite in one cluster": logistic(a=RIGHT, b=LEFT) + gr.Hierarchy({"c": ["a", "b"]}, (1.0, 1.0)),
    "opposite in the shared coordinate": (
        logistic(a=TWO, b=[(y, -x0, x1) for y, x0, x1 in TWO]) + gr.Consensus(pair(), features=["x0"])
    ),
    "a neighbour that holds on": logistic(a=RIGHT, b=MIXED) + fused,
    "a squared neighbour": logistic(a=RIGHT) + squared + fused,
    "a ridge": logistic(a=RIGHT) + 1e-3 * gr.NodePenalty(gr.SquaredL2()),
    "a ridge on the intercept too": single_class(["intercept", "x"]),
    "a norm on the node": logistic(a=RIGHT) + 0.01 * gr.NodePenalty(gr.L1()),
    "HuberNorm on the node": logistic(a=RIGHT) + 0.01 * gr.NodePenalty(gr.HuberNorm(0.1)),
    "a quadratic that way": logistic(a=TWO) + gr.NodePenalty(gr.Quadratic(np.diag([0.1, 0.0]))),
    "a ball": logistic(a=RIGHT) + gr.NodePenalty(gr.Ball(3.0)),
    "a ball on the neighbour": logistic(a=TWO, b=TWO) + gr.NodePenalty(gr.Ball(2.0), features=["x0"]) + fused,
    "a box": logistic(a=RIGHT) + gr.NodePenalty(gr.Box(-1.0, 2.0)),
    "a box closed that way": logistic(a=RIGHT) + gr.NodePenalty(gr.Box(-np.inf, 2.0)),
    "a cone the other way": logistic(a=LEFT) + gr.NodePenalty(gr.NonNegative()),
    "two coordinates, one cone": logistic(a=[(1, 1.0, 1.0), (-1, 1.0, 0.9)])
    + gr.NodePenalty(gr.Zero(), features=["x0"])
    + gr.NodePenalty(gr.NonNegative(), features=["x1"])
    + 0.1 * gr.NodePenalty(gr.L2(), features=["x1"]),
}
METHODS = {"exact": gr.Exact(), "primal-dual": gr.PrimalDual()}


@pytest.mark.parametrize(("name", "method"), thinned(UNATTAINED, METHODS, every=2))
def test_an_infimum_that_is_not_attained(name, method):
    problem = gr.Problem(UNATTAINED[name])
    assert attained(problem.form) is False
    with pytest.raises(gr.errors.UnattainedError, match="not attained") as caught:
        problem.solve(METHODS[method], gap=1e-5, rounds=None if method == "exact" else 3000)
    solution = caught.value.solution
    assert solution.status == "unattained"
    assert solution.certificate.holds(1e-5), solution
    assert "The infimum is certified, but not attained" in solution.message


@pytest.mark.parametrize(("name", "method"), thinned(ATTAINED, METHODS, every=2))
def test_a_minimum_that_is_attained(name, method):
    problem = gr.Problem(ATTAINED[name])
    assert attained(problem.form) is True
    assert at_infinity(problem.form) is None
    solution = problem.solve(METHODS[method], gap=1e-6, rounds=None if method == "exact" else 20_000)
    assert solution.status == "certified", solution


def test_partially_separable_data():
    """The infimum is what the samples that stay behind cost: here 2 log 2 of 4 samples, halved by the mean."""
    problem = gr.Problem(logistic(a=TWO))
    for method in METHODS.values():
        certificate = problem.solve(method, gap=1e-6, on_failure="return").certificate
        assert certificate.dual <= np.log(2) / 2 <= certificate.primal
        assert certificate.relative_gap <= 1e-6


def test_what_is_left_at_infinity():
    infinity = at_infinity(gr.Problem(logistic(a=TWO, b=MIXED_TWO) + gr.Consensus(pair(), features=["x1"])).form)
    kept = {len(block.node) for block in infinity.rest.samples}
    assert kept == {2 + len(MIXED_TWO)}  # those that the first coordinate does not move
    falls = [block.apply(infinity.direction) * block.y for block in infinity.form.samples]
    assert np.min(np.concatenate(falls)) >= 0
    assert not any(edge.apply(infinity.direction).any() for edge in infinity.form.edges)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial", "hinge", "squared hinge", "mixed"])
def test_attainment_agrees_with_the_plain_programme(loss, whole):
    decided = []
    for seed in range(LOSSES.index(loss) + (0 if whole else 500), 1000, len(LOSSES)):
        drawn = random_problem(seed)
        if drawn.plain.d * len(drawn.plain.nodes) <= 60:
            decided.append(attained(drawn.problem.form))
            assert decided[-1] == (not recedes(drawn.plain)), drawn.description
    assert len(decided) >= 10
    assert not all(decided) or "hinge" in loss


def test_dense_work_on_directions_is_counted(monkeypatch):
    asked = []

    def counted(multiplications, work, *given):
        asked.append(multiplications)
        return work(*given)

    monkeypatch.setattr(directions, "heavy", counted)
    rows = sp.csr_array(np.random.default_rng(0).normal(size=(30, 4)))
    chosen = directions._independent(rows, np.arange(30), np.ones(30))
    assert directions._correction_bound(rows, chosen, np.zeros(30)) is not None
    assert asked == [2.0 * 30 * 4 * 4, 4.0 * 4**3]


def test_no_further_look_follows_one_whose_time_was_up(monkeypatch):
    asked = []

    def late(*given):
        asked.append(given[-1])
        raise OutOfTimeError

    monkeypatch.setattr(attainment, "_solved", late)
    empty = sp.csr_array((0, 2))
    assert list(attainment.answers(sp.csr_array(np.eye(2)), empty, empty)) == []
    assert len(asked) == 1
    assert len(attainment.LOOKS) > 1


@pytest.mark.parametrize("separable", [True, False])
def test_what_is_known_at_one_strength_holds_at_others(separable, monkeypatch):
    asked, decided = [], attainment._decided
    monkeypatch.setattr(attainment, "_decided", lambda *given: asked.append(1) or decided(*given))
    rng, strength = np.random.default_rng(0), gr.Parameter(0.1)
    X = rng.standard_normal((40, 2))
    y = (X[:, 0] > 0.0 if separable else rng.uniform(size=40) > 0.5).astype(int)
    data = gr.NodeData.from_arrays(X, y, np.arange(40) % 4)
    form = gr.Problem(gr.LogisticLoss(data) + strength * gr.TotalVariation(gr.Graph.chain(4), gr.L2())).form
    for value in (0.1, 1e3, 1e-6):
        strength.value = value
        assert attained(form.frozen()) is not separable
    assert len(asked) == 1
