"""The method that is taken where none is named: what it tries, in which order, and what it says of that."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from own_terms import OwnL1

import graphreg as gr
from graphreg.compiling import conic
from graphreg.datasets import random_problem
from graphreg.errors import CheckpointError, MethodError
from graphreg.methods.automatic import auto
from graphreg.methods.automatic.auto import Stage, _promised, plan
from graphreg.methods.interior_point._interior import InteriorBlocks
from graphreg.methods.interior_point.interior_point import PATIENCE
from graphreg.network import fast
from graphreg.oracles import filled_work, work
from graphreg.running import Budget, Outcome, Record, Task, Trace, predicting
from graphreg.running.predicting import Costs


def data(n=12, d=3, samples=5, seed=0):
    rng = np.random.default_rng(seed)
    X, node = rng.standard_normal((n * samples, d)), np.repeat(np.arange(n), samples)
    return gr.NodeData.from_arrays(X, X.sum(axis=1) + 0.3 * rng.standard_normal(n * samples), node)


def problem(loss=gr.SquaredLoss, penalty=gr.L2, graph=None, strength=0.3):
    return gr.Problem(loss(data()) + strength * gr.TotalVariation(graph or nx.cycle_graph(12), penalty()))


def stages(one: gr.Problem) -> list[str]:
    return [stage.method.name for stage in plan(Costs(one.form))]


def test_it_is_what_solve_takes():
    by_default, named = problem().solve(), problem().solve(gr.Auto())
    assert by_default.method == named.method
    assert by_default.method.startswith("Auto(")
    np.testing.assert_array_equal(by_default.coef, named.coef)


KINKED = [] if gr.InteriorPoint().lacks(problem(gr.QuantileLoss).form) else ["InteriorPoint"]  # by itself where it may


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (problem(), ["InteriorPoint", "Exact"]),
        (problem(graph=nx.complete_graph(80)), ["PrimalDual", "InteriorPoint", "Exact"]),
        (problem(gr.QuantileLoss), [*KINKED, "Exact"]),
        (problem(penalty=gr.SquaredL2), ["LinearSystem", "InteriorPoint", "Exact"]),
    ],
    ids=["smooth losses", "many edges", "losses with kinks", "squares"],
)
def test_what_is_tried(one, expected):
    assert stages(one) == expected
    assert one.solve().status == "certified"


def test_forests_need_no_rounds():
    chain = gr.Problem(
        gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(12.0)[:, None] % 5, np.arange(12)))
        + 0.3 * gr.TotalVariation(nx.path_graph(12), gr.L1())
    )
    assert chain.solve().method == "Auto(DynamicProgramming)"


@pytest.mark.parametrize("seed", thinned(range(12), every=2))
def test_random_problems_are_solved_as_by_the_exact_route(seed):
    one = random_problem(seed).problem
    if gr.Exact().missing(one.form):
        pytest.skip("no conic form")
    found, exact = one.solve(on_failure="return"), one.solve(gr.Exact(), on_failure="return")
    assert found.status == exact.status
    if exact.status == "certified":
        assert found.certificate.holds(1e-6)
        assert found.objective <= exact.objective + 1e-6 * max(abs(exact.objective), found.certificate.primal) + 1e-9


def test_what_falls_short_is_followed_by_the_next(monkeypatch):
    monkeypatch.setattr(auto, "MANY", 0)  # rounds come first

    def none(self, state):
        raise ArithmeticError("broken down on purpose")

    one = problem()
    with mock.patch.object(gr.PrimalDual, "step", none):
        found = one.solve()
    assert found.status == "certified"
    assert found.method == "Auto(InteriorPoint)"
    assert "then" in found.message
    with mock.patch.object(gr.PrimalDual, "step", none), mock.patch.object(gr.InteriorPoint, "step", none):
        found = one.solve()
    assert found.status == "certified"
    assert found.method == "Auto(Exact(clarabel))"
    assert "broken down on purpose" in found.message


def test_rounds_are_left_where_nothing_else_has_room():
    one = problem()
    assert stages(one) == ["InteriorPoint", "Exact"]
    full = MemoryError("no room on purpose")
    with (
        mock.patch.object(gr.InteriorPoint, "init", side_effect=full),
        mock.patch.object(gr.Exact, "run", side_effect=full),
    ):
        found = one.solve()
    assert found.status == "certified"
    assert found.method == "Auto(PrimalDual)"


def test_a_breakdown_outside_of_rounds_is_followed_too():
    with mock.patch.object(gr.LinearSystem, "run", side_effect=ArithmeticError("singular on purpose")):
        found = problem(penalty=gr.SquaredL2).solve()
    assert found.status == "certified"
    assert "singular on purpose" in found.message


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss])
def test_what_is_known_is_not_lost_where_the_last_method_finds_nothing(loss):
    def nothing(self, task):
        return Outcome(task.certifier.best(), task.certifier, "limit")

    with mock.patch.object(gr.Exact, "run", nothing):
        found = problem(loss).solve(gap=1e-30)
    assert found.method == "Auto(Exact)"
    assert np.isfinite(found.objective)
    assert found.objective <= 1.5 * problem(loss).solve().objective


def test_no_gap_at_all_is_left_to_the_exact_route():
    assert problem().solve(gap=0).method == "Exact(clarabel)"


def test_the_last_of_all_says_that_it_fell_short():
    one = problem(gr.QuantileLoss)
    found = one.solve(gap=1e-30)
    assert found.status == "no_certificate"
    assert found.certificate.holds(1e-6)  # the best of all that was tried


def test_problems_too_large_for_a_solver_end_in_rounds():
    costs = Costs(problem().form)
    costs.__dict__["multiplications"] = np.inf
    assert [(stage.method.name, stage.rounds) for stage in plan(costs)] == [("PrimalDual", None)]


def test_a_factor_with_a_large_band_is_counted_where_that_is_quick(monkeypatch):
    rng, n = np.random.default_rng(0), 300
    ring = nx.cycle_graph(n)
    ring.add_edges_from((0, int(k)) for k in rng.choice(n, 12))  # a band is wide where a factor fills in little
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(rng.normal(size=(n, 30)), rng.integers(0, 2, n), np.arange(n)))
    costs = Costs(gr.Problem(loss + gr.TotalVariation(ring, gr.L2())).form)
    monkeypatch.setattr(predicting, "BAND", 0.9 * work(costs.form))
    assert costs.multiplications == filled_work(costs.form) < predicting.BAND
    monkeypatch.setattr(predicting, "BAND", 0.9 * filled_work(costs.form))
    assert Costs(costs.form).multiplications == np.inf


def test_what_fills_in_much_is_not_counted(monkeypatch):
    rng, n = np.random.default_rng(0), 8000
    graph = gr.Graph.of(nx.random_regular_graph(4, 2 * n, seed=0))
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, rng.normal(size=(2 * n, 10)), np.arange(2 * n)))
    costs = Costs(gr.Problem(loss + gr.TotalVariation(graph, gr.L2())).form)
    monkeypatch.setattr(predicting, "filled_work", lambda form: pytest.fail("that takes half a minute"))
    assert costs.multiplications == np.inf


def test_own_terms_without_a_conic_form():
    one = gr.Problem(gr.SquaredLoss(data()) + 0.3 * gr.TotalVariation(nx.cycle_graph(12), OwnL1()))
    assert one.solve().certificate.holds(1e-6)


def test_a_budget_holds_for_all_of_it():
    one = problem(graph=nx.random_regular_graph(4, 12, seed=0))
    began = time.perf_counter()
    found = one.solve(gap=1e-30, seconds=0.5)
    assert time.perf_counter() - began < 5.0
    assert found.status in ("budget", "no_certificate")
    assert found.certificate.valid


def test_the_start_is_never_lost():
    one = problem()
    start = one.solve(gr.Exact(), gap=1e-9)
    found = one.solve(start=start)
    assert found.objective <= start.objective + 1e-12 * abs(start.objective)


def test_an_interruption_ends_all_of_it():
    def strike(record):
        raise KeyboardInterrupt

    found = problem(strength=1e-3).solve(callback=strike)
    assert found.status == "interrupted"


@pytest.mark.parametrize("argument", [{"rounds": 5}, {"observe": "w"}, {"engine": gr.Actors()}])
def test_what_several_methods_cannot_do_is_refused(argument):
    with pytest.raises(MethodError, match=r"Auto.*take another method such as gr.PrimalDual\(\)"):
        problem().solve(**argument)


def test_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="several methods"):
        problem().solve(checkpoint=tmp_path / "run")


# ---- predictions -----------------------------------------------------------------------------------------------------
def trace(gaps: dict[int, float]) -> Trace:
    return Trace([Record(k, 0.0, gap, False) for k, gap in gaps.items()])


def test_rounds_go_on_where_they_promise_to_reach_the_gap():
    falling = trace({10: 1e-1, 50: 1e-2, 100: 1e-4})  # by 100 in 50 rounds
    then = 150
    assert _promised(falling, 100, gap=1e-6, last=1000) == then + then // 10 - 100
    assert _promised(falling, 120, gap=1e-6, last=1000) == then + then // 10 - 120
    assert _promised(falling, 100, gap=1e-6, last=then - 1) == 0
    far, near = (_promised(falling, rounds, gap=1e-6, last=then) for rounds in (then // 2 - 1, then // 2 + 1))
    assert far == 0 < near  # no more than half of what is allowed is to come
    assert _promised(falling, 260, gap=1e-6, last=1000) == auto.LOOK  # nobody has looked whether it kept the promise
    assert _promised(trace({100: 1e-4, 150: 1e-4, 200: 1e-4}), 260, gap=1e-6, last=1000) == 0  # and it has not
    assert _promised(trace({50: 1e-2, 100: 1e-4}), 180, gap=1e-6, last=1000) > 0  # no two looks since round 90
    assert _promised(trace({50: 1e-2, 100: 1e-2}), 100, gap=1e-6, last=1000) == 0
    assert _promised(trace({100: 1e-2}), 100, gap=1e-6, last=1000) == 0
    assert _promised(trace({50: np.inf, 100: 1e-2}), 100, gap=1e-6, last=1000) == 0
    assert _promised(trace({50: 1e-4, 100: 1e-7}), 100, gap=1e-6, last=1000) == 0  # which no proof has confirmed
    both = Trace([Record(90, 0.0, 1e-3, False), Record(90, 0.0, 1e-4, True)])  # a screen and the proof after it
    assert _promised(both, 100, gap=1e-6, last=1000) == 0


def test_a_promise_is_looked_at_again():
    """Rounds go on as long as their gap lets one expect the target within what is allowed, and no further."""
    asked = []

    def further(trace, rounds):
        asked.append(rounds)
        return 7 if len(asked) < 3 else 0

    budget = Budget(1e-30, rounds=20, further=further)
    form = problem().form
    found = Task(form, gr.PrimalDual(), budget, conic.Compiler(form), None).iterate(gr.PrimalDual(), budget)
    assert asked == [20, 27, 34]
    assert (found.rounds, found.ended) == (34, "budget")


def test_a_try_is_as_long_as_what_follows_allows():
    (first, second, *_) = plan(costs := Costs(problem(graph=nx.complete_graph(80)).form))
    assert isinstance(first.method, gr.PrimalDual)
    many = costs.rounds_in(costs.interior)
    assert first.rounds == max(int(auto.TRIED * many), auto.FEWEST)
    assert first.rounds + first.most == many > first.rounds
    assert second == Stage(gr.InteriorPoint())


def test_newton_steps_begin_where_rounds_ended_near_the_optimum(monkeypatch):
    starts, init = [], gr.InteriorPoint.init

    def watched(self, view, start):
        starts.append(start)
        return init(self, view, start)

    monkeypatch.setattr(gr.InteriorPoint, "init", watched)
    one, form = problem(strength=0.03), problem(strength=0.03).form
    task = Task(form, gr.Auto(), Budget(1e-12, seed=0), conic.Compiler(form), None)
    for rounds in (3, 1000):
        before = one.solve(gr.PrimalDual(), gap=1e-14, rounds=rounds)
        found = task.iterate(gr.PrimalDual(), Budget(1e-14, rounds=rounds, seed=0))
        assert found.certificate.holds(auto.NEAR) == before.certificate.holds(auto.NEAR) == (rounds > 3)
        auto._carried_out(Stage(gr.InteriorPoint()), task, found)
    assert starts[0] is None
    np.testing.assert_allclose(starts[1][1][0], found.certificate.dual_point.flows[0])


@pytest.mark.parametrize(
    ("of_gap", "of_imbalance", "most"),
    [(0.6, 1.0, 100), (1.0, 0.6, 100), (1.05, 0.6, 100), (1.0, 1.0, PATIENCE + 2)],
)
def test_newton_steps_go_on_while_they_lead_anywhere(of_gap, of_imbalance, most, monkeypatch):
    """No further number of them ends a run, be it the complementarity that falls or the imbalance; a run that stands
    still is over, and not only at its hundredth."""
    form = problem().form

    def slow(self, state):
        slope = of_imbalance**state.round * np.ones_like(state.slope)
        return replace(state, round=state.round + 1, gap=of_gap**state.round, slope=slope)

    monkeypatch.setattr(gr.InteriorPoint, "early", lambda self, state: True)
    monkeypatch.setattr(InteriorBlocks, "step", slow)
    found = Task(form, gr.InteriorPoint(), Budget(1e-30), conic.Compiler(form), None)
    assert found.iterate(gr.InteriorPoint(), Budget(1e-30)).rounds == most


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.QuantileLoss])
def test_newton_steps_come_first_where_they_are_cheap_beside_rounds(loss, monkeypatch):
    costs = Costs(problem(loss).form)
    many = costs.rounds_in(costs.interior)
    monkeypatch.setattr(auto, "MANY", many + 1)
    assert next(iter(plan(costs))) == Stage(gr.InteriorPoint())
    monkeypatch.setattr(auto, "MANY", many)
    assert next(iter(plan(costs))).method == gr.PrimalDual()
    assert next(iter(plan(costs, newton_first=True))) == Stage(gr.InteriorPoint())


def test_rows_that_are_no_edges_take_no_rule_of_their_own(monkeypatch):
    graph = gr.Graph.from_edges(nx.cycle_graph(12).edges, nodes=range(12))
    one = gr.Problem(gr.SquaredLoss(data()) + 0.3 * gr.L1()(gr.w.across(graph, 2)))
    monkeypatch.setattr(auto, "MANY", 1)
    assert stages(one) == ["PrimalDual", "InteriorPoint", "Exact"]


def test_the_first_solve_imports_no_methods_that_it_does_not_take():
    code = "import sys, numpy, graphreg as gr; gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(numpy.eye(3), "
    code += "numpy.arange(3.0), range(3)))).solve(); print([m for m in sys.modules if 'methods.fed_admm' in m])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_process_that_names_no_method_takes_the_one_for_one_node():
    code = "import numpy, graphreg as gr; one = gr.NodeData.from_arrays(numpy.tri(3), numpy.arange(3.0), [0, 0, 0]); "
    code += "print(gr.Problem(gr.SquaredLoss(one) + 0.1 * gr.NodePenalty(gr.L1())).solve().method)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "Auto(OneNode)"


def with_code(costs: Costs, first: float) -> Costs:
    """The same costs where rounds are compiled after the first ones."""
    costs = Costs(costs.form, earlier=costs.earlier)
    costs.__dict__["_plain"] = first
    return costs


@pytest.mark.parametrize(("earlier", "numba"), [(0, True), (3, True), (50, True), (0, False)])
def test_rounds_get_faster_when_they_are_compiled(earlier, numba, monkeypatch):
    costs = Costs(problem().form, earlier=earlier)
    monkeypatch.setattr(fast, "WORTH", (fast.EXPECTED + 8) * costs.form.differences)  # from the ninth round on
    monkeypatch.setattr(predicting, "compiles", lambda: numba)
    first = max(8 - earlier, 0) if numba else np.inf
    plain, compiled = with_code(costs, np.inf), with_code(costs, 0)
    for rounds in (1, 5, 30, 300):
        slow = min(rounds, first)
        assert costs.run(rounds) == pytest.approx(plain.run(slow) + compiled.run(rounds) - compiled.run(slow))
        assert compiled.run(rounds) < plain.run(rounds)
        assert costs.rounds_in(costs.run(rounds)) == rounds
        assert costs.rounds_in(0.5 * (costs.run(rounds) + costs.run(rounds - 1))) == rounds - 1


def test_a_round_costs_what_it_does(monkeypatch):
    """Looks become rarer; losses that are no squares go through one stack of nodes after the other."""
    monkeypatch.setattr(predicting, "compiles", lambda: False)
    means = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(12.0), range(12)))
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
    image = Costs(gr.Problem(means + gr.TotalVariation(grid, gr.L1())).form)
    ten = image.run(1_000_010) - image.run(1_000_000)  # without a look
    assert image.run(20) - image.run(10) > image.run(310) - image.run(300) > ten
    alike, ragged = (
        Costs(gr.Problem(gr.LogisticLoss(_counted(counts)) + gr.TotalVariation(nx.cycle_graph(12), gr.L1())).form)
        for counts in ([11] * 12, [1, 2, 4, 8, 16, 35] * 2)
    )
    assert alike.samples == ragged.samples
    assert (image.stacks, alike.stacks, ragged.stacks) == (0, 0, 5)
    assert ragged.run(1000) > alike.run(1000)


def _counted(counts):
    node = np.repeat(range(12), counts)
    return gr.NodeData.from_arrays(np.ones((len(node), 1)), np.resize([-1.0, 1.0], len(node)), node)


def test_trees_fill_in_nothing_however_wide_their_band_is(monkeypatch):
    monkeypatch.setattr(predicting, "MULTIPLICATION", 1.0)  # so that a bound will not do
    monkeypatch.setattr(predicting, "BAND", 0.0)
    assert Costs(problem(graph=nx.star_graph(11)).form).multiplications == 4.0 * 3**3 * 12
    assert Costs(problem(graph=nx.cycle_graph(12)).form).multiplications == np.inf


def test_more_digits_are_more_newton_steps():
    form = problem().form
    assert Costs(form, 1e-10).interior > Costs(form, 1e-8).interior > Costs(form).interior
    assert Costs(form, 1e-3).interior == Costs(form, 0.0).interior == Costs(form).interior


def test_more_of_anything_costs_more():
    small, large = Costs(problem().form), Costs(problem(graph=nx.complete_graph(12)).form)
    assert large.multiplications > small.multiplications
    for what in ("interior", "exact"):
        assert getattr(large, what) > getattr(small, what)
    for first in (0, np.inf):
        assert with_code(large, first).run(100) > with_code(small, first).run(100)


def test_a_task_with_another_budget_knows_what_was_proved():
    form = problem().form
    task = Task(form, gr.PrimalDual(), Budget(1e-6), conic.Compiler(form), None)
    found = task.within(Budget(1e-3)).iterate(gr.PrimalDual(), Budget(1e-6))
    assert found.certificate.holds(1e-6)
    assert task.plain_certifier.best().holds(1e-6)  # by what a task made of it has proved
    assert task.within(Budget(1e-2)).plain_certifier is task.plain_certifier


def test_squares_take_rounds_first_where_a_factor_is_out_of_reach():
    costs = Costs(problem(penalty=gr.SquaredL2).form)
    assert next(iter(plan(costs))) == Stage(gr.LinearSystem())
    dear, beyond = Costs(costs.form), Costs(costs.form)
    dear.__dict__["multiplications"], beyond.__dict__["multiplications"] = predicting.BAND, np.inf
    assert [stage.method.name for stage in plan(dear)] == ["LinearSystem", "InteriorPoint", "Exact"]
    assert next(iter(plan(beyond))).method.name == "PrimalDual"


def test_newton_steps_without_cones_are_fewer():
    smooth, kinked = (Costs(problem(penalty=each).form).steps for each in (gr.SquaredL2, gr.L1))
    assert smooth == predicting.NEWTON < kinked == predicting.STEPS
    assert Costs(problem(gr.QuantileLoss, penalty=gr.SquaredL2).form).steps > kinked


def test_rounds_of_losses_whose_proxes_take_steps_are_dear_at_first():
    """What they take more in the first rounds, far from the last point, does not count in each of all that follow; and
    the proxes of squares are linear, however many stacks of nodes there are."""
    few, many = (Costs(problem(gr.QuantileLoss).form).run(rounds) for rounds in (20, 2000))
    assert many < 100 * few / 2
    counts = np.repeat(np.arange(12), 4 ** (np.arange(12) % 5))
    X = np.random.default_rng(0).standard_normal((len(counts), 3))
    uneven = gr.NodeData.from_arrays(X, np.where(X[:, 0] > 0, 1.0, -1.0), counts)
    stacks = [Costs(gr.Problem(loss(uneven)).form).stacks for loss in (gr.SquaredLoss, gr.LogisticLoss)]
    assert stacks[0] == 0 < stacks[1]
