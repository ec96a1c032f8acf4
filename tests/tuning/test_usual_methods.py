"""The method that is taken without being asked for: at each strength what `Auto` plans, from the answers beside it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from path_cases import GRID, problem_of

import graphreg as gr
from graphreg.methods.automatic import auto
from graphreg.running import Budget, WarmStart, driver
from graphreg.tuning.warm import Warm, halving, usual_method

WIDE = np.geomspace(1e-2, 3.0, 17)


def methods_of(path):
    return [solution.method for solution in path]


def test_which_it_is():
    problem = problem_of()[0]
    hinge = gr.Problem(
        gr.HingeLoss(gr.NodeData.from_arrays(np.eye(2), [1, -1], [0, 1])) + gr.TotalVariation(nx.path_graph(2), gr.L2())
    )
    assert isinstance(usual_method(problem), gr.Auto)
    for each in (problem, hinge):
        assert isinstance(usual_method(each, 3), gr.PrimalDual)  # whose rounds can be counted
    assert {solution.method for solution in gr.path(problem, GRID[:2], rounds=3, gap=1e-12)} == {"PrimalDual"}


@pytest.fixture
def _mixed(monkeypatch):
    """Rounds are given up where they are more than twelve: at the larger strengths."""
    monkeypatch.setattr(auto.Costs, "rounds_in", lambda self, seconds: 40)
    monkeypatch.setattr(auto, "MANY", 0)  # rounds come first
    promised = auto._promised
    monkeypatch.setattr(auto, "_promised", lambda *given, **more: 0 * promised(*given, **more))


@pytest.mark.usefixtures("_mixed")
def test_newton_steps_come_first_between_two_answers_that_they_gave(monkeypatch):
    tried, run = {}, driver.drive

    def watched(method, view, certifier, budget, *more):
        tried.setdefault(float(view.form.edges[0].strength), []).append(method.name)
        return run(method, view, certifier, budget, *more)

    monkeypatch.setattr("graphreg.running.solving.drive", watched)
    path = gr.path(problem_of()[0], WIDE, gap=1e-8)
    assert all(solution.certificate.holds(1e-8) for solution in path)
    by_newton, known = {}, {}
    found = dict(zip(WIDE, methods_of(path), strict=True))
    assert {"Auto(PrimalDual)", "Auto(InteriorPoint)"} <= set(found.values())
    for k in halving(len(WIDE)):
        strength = WIDE[::-1][k]
        below = max((each for each in known if each < strength), default=None)
        above = min((each for each in known if each > strength), default=None)
        first = tried[strength][0]
        if None not in (below, above) and known[below] == known[above] == "Auto(InteriorPoint)":
            assert first == "InteriorPoint"
            by_newton[strength] = first
        else:
            assert first == "PrimalDual"
        known[strength] = found[strength]
    assert by_newton


@pytest.mark.usefixtures("_mixed")
@pytest.mark.parametrize("at", [2, 3, 5, 8, 13])
def test_a_path_that_was_broken_off_goes_on_with_the_same_bits(monkeypatch, tmp_path, at):
    whole = gr.path(problem_of()[0], WIDE, gap=1e-8)
    drive, calls = driver.drive, []

    def broken(method, *more):
        calls.append(method)
        if len(calls) == at:
            raise KeyboardInterrupt
        return drive(method, *more)

    with monkeypatch.context() as patch:
        patch.setattr("graphreg.running.solving.drive", broken)
        part = gr.path(problem_of()[0], WIDE, gap=1e-8, checkpoint=tmp_path / "path.npz")
    assert not part.complete
    resumed = gr.path(problem_of()[0], WIDE, gap=1e-8, checkpoint=tmp_path / "path.npz")
    assert resumed.complete
    assert methods_of(resumed) == methods_of(whole)
    np.testing.assert_array_equal(resumed.coef, whole.coef)


def test_stages_that_are_given_up_are_not_out_of_time(monkeypatch):
    """Where seconds are allowed, too: what takes over has them."""
    monkeypatch.setattr(auto.Costs, "rounds_in", lambda self, seconds: 21)
    monkeypatch.setattr(auto, "MANY", 0)
    warm = Warm(problem_of()[0], budget=Budget(1e-10, progress=False, seed=0))
    found = warm.solve(0.3)
    assert found.status == "certified"
    assert found.method != "Auto(PrimalDual)"
    assert not warm.warm_start.cut
    assert warm.of("PrimalDual").state.round == auto.FEWEST


def test_rounds_of_earlier_strengths_count_towards_compiling(monkeypatch):
    seen, costs = [], []
    step, plan = gr.PrimalDual.step, auto.plan

    def watched(self, state):
        seen.append((state.earlier, state.round))
        return step(self, state)

    monkeypatch.setattr(gr.PrimalDual, "step", watched)
    monkeypatch.setattr(auto, "plan", lambda of, first: (costs.append(of.earlier), plan(of, first))[1])
    path = gr.path(problem_of()[0], GRID[:3], method=gr.PrimalDual())
    done = [solution.rounds for solution in path][::-1]  # from the largest down
    order = [done[k] for k in halving(3)]
    assert sorted({earlier for earlier, _ in seen}) == [0, order[0], order[0] + order[1]]
    monkeypatch.setattr(auto.Costs, "rounds_in", lambda self, seconds: 10_000)
    rounds = [solution.rounds for solution in gr.path(problem_of()[0], GRID[:3])][::-1]
    order = [rounds[k] for k in halving(3)]
    assert costs == [0, order[0], order[0] + order[1]]


def test_what_is_kept_of_a_run_is_a_copy():
    before = WarmStart()
    before.of("PrimalDual").state = 1
    kept = before.copy()
    before.of("PrimalDual").state = 2
    before.of("InteriorPoint")
    assert kept.of("PrimalDual").state == 1
    assert set(kept.stages) == {"PrimalDual"}


def test_where_newton_steps_fall_short_as_well_another_method_takes_over(monkeypatch):
    monkeypatch.setattr(auto.Costs, "rounds_in", lambda self, seconds: 21)
    monkeypatch.setattr(gr.InteriorPoint, "most_rounds", 1)
    path = gr.path(problem_of()[0], GRID[-3:], gap=1e-9)
    assert "Auto(Exact(clarabel))" in methods_of(path)
    assert {solution.status for solution in path} == {"certified"}
    validated = gr.cross_validate(problem_of()[0], GRID[-3:], folds=2)
    assert validated.certified.all()
    assert validated.solution.status == "certified"
