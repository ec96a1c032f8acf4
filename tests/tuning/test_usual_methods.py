"""The method that is taken without being asked for, and what takes over where it falls short."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.oracles import filled_work
from graphreg.tuning.warm import Warm, standby, usual_method

STRENGTHS = [0.03, 0.1, 0.3]


def problem_of(graph, loss=gr.SquaredLoss, d=10, seed=0):
    rng = np.random.default_rng(seed)
    n = graph.number_of_nodes()
    X = rng.standard_normal((12 * n, d))
    y = X @ rng.standard_normal(d) + rng.standard_normal(len(X))
    data = gr.NodeData.from_arrays(X, y if loss is gr.SquaredLoss else np.sign(y), np.repeat(np.arange(n), 12))
    return gr.Problem(loss(data) + gr.Parameter(0.1, name="lam") * gr.TotalVariation(graph, gr.L2()))


def dense(**more):
    return problem_of(nx.complete_graph(24), **more)


def test_multiplications_of_factors_that_are_known():
    """A chain fills nothing in: two nodes a column but for the last. All pairs: n, n - 1, ..., 1."""
    assert filled_work(problem_of(nx.path_graph(9), d=3).form) == 27 * (8 * 4 + 1)
    assert filled_work(problem_of(nx.complete_graph(6), d=3).form) == 27 * sum(k * k for k in range(1, 7))


def test_newton_steps_come_first_where_factors_are_cheap():
    assert isinstance(usual_method(problem_of(nx.path_graph(24))), gr.InteriorPoint)
    assert isinstance(usual_method(dense()), gr.PrimalDual)
    assert isinstance(usual_method(dense(d=2)), gr.InteriorPoint)
    hinge = gr.Problem(
        gr.HingeLoss(gr.NodeData.from_arrays(np.eye(2), [1, -1], [0, 1])) + gr.TotalVariation(nx.path_graph(2), gr.L2())
    )
    assert isinstance(usual_method(hinge), gr.InteriorPoint)


def test_newton_steps_come_first_on_rows_of_one_number():
    """Trends are stiff: rounds are many where edges of one parameter per node need few."""
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(9.0) ** 2, range(9)))
    trend, edges = (gr.Problem(fit + gr.L1()(gr.w.along(range(9), order))) for order in (2, 1))
    assert isinstance(usual_method(trend), gr.InteriorPoint)
    assert isinstance(usual_method(edges), gr.PrimalDual)


def test_what_is_on_standby():
    form = dense().form
    others, most = standby(gr.PrimalDual(), form)
    assert [type(each) for each in others] == [gr.InteriorPoint, gr.PrimalDual]
    assert most == int(0.05 * filled_work(form) / (24 * 10))
    assert standby(gr.InteriorPoint(), form) == ((gr.PrimalDual(),), None)


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss])
def test_newton_steps_take_over_where_rounds_are_too_many(loss, monkeypatch):
    problem = dense(loss=loss)
    quick = gr.path(problem, STRENGTHS)
    assert quick.method == "PrimalDual"
    assert {solution.method for solution in quick} == {"PrimalDual"}
    monkeypatch.setattr("graphreg.tuning.warm.STEPS", 3e-4)  # three rounds
    slow = gr.path(problem, STRENGTHS)
    assert all(solution.certificate.holds(1e-6) for solution in slow)
    assert "InteriorPoint" in {solution.method for solution in slow}
    for one, two in zip(quick, slow, strict=True):
        assert one.objective == pytest.approx(two.objective, rel=2e-6)
    found = gr.cross_validate(problem, STRENGTHS, folds=2)
    assert found.certified.all()
    assert found.solution is not None
    assert found.solution.status == "certified"
    assert found.solution.method == "InteriorPoint"


def test_rounds_that_were_asked_for_are_all_that_is_spent(monkeypatch):
    monkeypatch.setattr("graphreg.tuning.warm.STEPS", 3e-4)
    path = gr.path(dense(), STRENGTHS, rounds=4, gap=1e-12)
    assert [solution.status for solution in path] == ["budget"] * 3
    assert [(solution.method, solution.rounds) for solution in path] == [("PrimalDual", 4)] * 3
    assert path.complete
    asked = gr.path(dense(), STRENGTHS, method=gr.PrimalDual())
    assert {solution.method for solution in asked} == {"PrimalDual"}


def test_where_newton_steps_fall_short_as_well_rounds_go_on(monkeypatch):
    monkeypatch.setattr("graphreg.tuning.warm.STEPS", 3e-4)
    monkeypatch.setattr(gr.InteriorPoint, "most_rounds", 1)
    warm = Warm(dense())
    solution = warm.solve(0.1)
    assert (solution.status, solution.method) == ("certified", "PrimalDual")
    assert solution.rounds > 3


def test_where_newton_steps_took_over_they_do_so_sooner(monkeypatch):
    """After every point that they had to solve there are a tenth of the rounds, also of a path that goes on."""
    monkeypatch.setattr("graphreg.tuning.warm.STEPS", 3e-3)
    monkeypatch.setattr(gr.PrimalDual, "step", lambda self, state: replace(state, round=state.round + 1))  # in vain
    warm = Warm(dense())
    assert warm.most == 61
    found = warm.solve(STRENGTHS[0])
    assert (found.status, found.method, warm.most) == ("certified", "InteriorPoint", 6)
    going_on = Warm(dense())
    for most in (6, 1, 1):
        going_on.learn(STRENGTHS[0], found)
        assert going_on.most == most


def test_a_method_at_its_own_limit_is_not_out_of_time(monkeypatch):
    """Where seconds are allowed, too: what takes over has them."""
    monkeypatch.setattr(gr.InteriorPoint, "most_rounds", 1)
    found = gr.path(problem_of(nx.path_graph(8)), [0.1, 0.3], seconds=100.0)
    assert found.complete
    assert {solution.status for solution in found} == {"certified"}
