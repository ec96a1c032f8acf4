"""A path of strengths: the answers, what is carried from point to point, the strengths, refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from path_cases import GRID, problem_of

import graphreg as gr
from graphreg.methods.splitting.primal_dual import PrimalDual
from graphreg.running import Budget
from graphreg.theory import routes
from graphreg.tuning.grid import ABOVE, downwards, grid
from graphreg.tuning.warm import Warm, halving


# ---- the answers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loss", "penalty", "method"),
    thinned(
        [gr.SquaredLoss, gr.LogisticLoss], [gr.L1(), gr.L2(), gr.SquaredL2()], [None, gr.Exact(), gr.ADMM()], every=3
    ),
)
def test_every_point_is_that_of_a_cold_exact_solve(loss, penalty, method):
    """Every third case; all of them with ``make test ARGS=--whole``."""
    problem, lam = problem_of(penalty, loss, 0.1 * gr.NodePenalty(gr.SquaredL2()))
    path = gr.path(problem, GRID[::-1], method=method, gap=1e-7)
    assert lam.value == 0.3
    assert len(path) == 8
    for strength, solution in zip(GRID, path, strict=True):
        lam.value = strength
        exact = problem.solve(gap=1e-7)
        assert solution.status == "certified"
        assert solution.certificate.dual <= exact.objective + 1e-12
        assert exact.certificate.dual <= solution.objective + 1e-12
        np.testing.assert_allclose(
            solution.coef, exact.coef, atol=2 * (solution.certificate.distance + exact.certificate.distance)
        )


def test_a_point_keeps_its_own_strength():
    """Neither later points nor the user's changes reach what was certified."""
    problem, lam = problem_of()
    path = gr.path(problem, GRID)
    lam.value = 77.0
    for strength, solution in path.solutions.items():
        assert {float(edge.strength) for edge in solution.form.edges} == {strength}
        assert solution.certificate.form is solution.form
        assert solution.form.primal(solution.certificate.w) <= solution.objective


def test_the_parameter_of_a_ridge_of_a_loss_and_of_a_hierarchy():
    ridge = gr.Parameter(0.5, name="ridge")
    problem, lam = problem_of(extra=ridge * gr.NodePenalty(gr.SquaredL2()))
    path = gr.path(problem, [0.01, 1.0], parameter=ridge)
    assert path.solution_at(1.0).table().abs().sum().sum() < path.solution_at(0.01).table().abs().sum().sum()
    assert (lam.value, ridge.value) == (0.3, 0.5)
    data = gr.NodeData.from_dict({i: (np.ones((2, 1)), np.array([i, i + 1.0])) for i in range(4)})
    gamma = gr.Parameter(1.0, name="gamma")
    levels = gr.Problem(gr.SquaredLoss(data) + gr.Hierarchy({i: i // 2 for i in range(4)}, weights=(gamma, 1.0)))
    scaled = gr.Problem(gamma * gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L1()))
    for each in (levels, scaled):
        for strength, solution in gr.path(each, GRID, gap=1e-8).solutions.items():
            gamma.value = strength
            assert solution.status == "certified"
            assert abs(solution.objective - each.solve(gap=1e-8).objective) <= 2e-8 * solution.objective


def test_random_problems():
    """Whatever the generator draws, with the strength of its first norm or smooth term as a Parameter."""
    done = 0
    for seed in range(40):
        drawn = gr.datasets.random_problem(seed=seed)
        terms = list(drawn.problem.model.terms)
        place = next(
            (
                k
                for k, (_, t) in enumerate(terms)
                if isinstance(t, gr.TotalVariation) and t.labels() and not isinstance(t.penalty, gr.AbstractConstraint)
            ),
            None,
        )
        if place is None or PrimalDual().missing(drawn.problem.form):
            continue
        lam = gr.Parameter(1.0)
        strength, term = terms[place]
        terms[place] = (strength * lam, term)
        problem = gr.Problem(gr.Model(tuple(terms)))
        path = gr.path(problem, [0.5, 1.0, 1.3], on_failure="return", rounds=3000)
        at_one, exact = path.solution_at(1.0), drawn.problem.solve(on_failure="return")
        if at_one.certificate.valid and exact.certificate.valid:
            slack = 1e-9 * (1 + abs(exact.objective))
            assert at_one.certificate.dual <= exact.objective + slack
            assert exact.certificate.dual <= at_one.objective + slack
            done += 1
        if done == 4:
            break
    assert done == 4


# ---- warm ------------------------------------------------------------------------------------------------------------
def test_a_path_spends_fewer_rounds_than_cold_solves():
    problem, lam = problem_of(side=8)
    strengths = np.geomspace(1e-2, 1.0, 25)
    path = gr.path(problem, strengths, method=gr.PrimalDual())
    cold = 0
    for strength in strengths:
        lam.value = strength
        cold += problem.solve(gr.PrimalDual()).rounds
    assert sum(solution.rounds for solution in path) < 0.8 * cold


def test_newton_steps_begin_between_two_strengths():
    """About four of them, where a run from nothing takes twice as many."""
    problem, lam = problem_of(side=6)
    strengths = np.geomspace(1e-2, 1.0, 17)
    path = gr.path(problem, strengths, method=gr.InteriorPoint())
    cold = []
    for strength in strengths:
        lam.value = strength
        cold.append(problem.solve(gr.InteriorPoint()).rounds)
    assert all(solution.certificate.holds(1e-6) for solution in path)
    between = [solution.rounds for solution in path][1::2]  # the last to be solved, each between its neighbours
    assert np.mean(between) < 0.7 * np.mean(cold[1::2])


@pytest.mark.parametrize("delta", [0.05, 1.0])
def test_newton_steps_of_losses_with_kinks_begin_between_two_strengths(delta):
    """All pieces of a Huber loss have two ends."""
    problem, _ = problem_of(loss=lambda data: gr.HuberLoss(data, delta=delta))
    path = gr.path(problem, np.geomspace(0.05, 0.5, 17), method=gr.InteriorPoint())
    assert {one.status for one in path} == {"certified"}
    assert min(one.rounds for one in path) < 0.7 * problem.solve(gr.InteriorPoint()).rounds


def test_halving_takes_the_middles_of_what_is_known():
    assert halving(9) == [0, 8, 4, 2, 6, 1, 3, 5, 7]
    for count in range(1, 40):
        order = halving(count)
        assert sorted(order) == list(range(count))
        for place, k in enumerate(order[2:], start=2):
            below = max(each for each in order[:place] if each < k)
            above = min(each for each in order[:place] if each > k)
            assert abs((k - below) - (above - k)) <= 1


def test_what_is_carried_from_point_to_point(monkeypatch):
    """One factorisation of the losses, one layout of the graph, and the balance of the method's last state."""
    seen = []
    resume = PrimalDual.resume

    def watched(self, view, state, start):
        new = resume(self, view, state, start)
        seen.append((view.proxes is state.view.proxes, view.arcs is state.view.arcs, new.s == state.s))
        return new

    monkeypatch.setattr(PrimalDual, "resume", watched)
    gr.path(problem_of()[0], GRID, method=gr.PrimalDual())
    assert seen == [(True, True, True)] * 7
    seen.clear()
    data = gr.NodeData.from_dict({i: (np.ones((2, 1)), np.array([i, i + 1.0])) for i in range(3)})
    model = gr.Parameter(1.0) * gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L1())
    gr.path(gr.Problem(model), [0.5, 1.0], method=gr.PrimalDual())
    assert seen == [(False, True, True)]  # the losses have another strength


def test_a_method_without_a_state_worth_keeping_starts_at_the_last_point():
    problem, lam = problem_of(gr.SquaredL2())
    warm = Warm(problem, gr.SubgradientDescent(), Budget(1e-2, 400, progress=False, seed=0))
    first = warm.solve(0.3)
    lam.value = 0.3001
    again = warm.solve(0.3001)
    assert again.objective <= first.objective * 1.001


# ---- a number of strengths -------------------------------------------------------------------------------------------
def test_downwards_from_a_bound_of_strength_max():
    problem, lam = problem_of()
    path = gr.path(problem, 7)
    most, top = gr.strength_max(problem, lam), path.strengths[-1]
    assert most.lower <= top <= most.upper / (1.0 - ABOVE)
    np.testing.assert_allclose(path.strengths, np.geomspace(top / 1000, top, 7), rtol=1e-12)
    assert path.table()["clusters"].iloc[-1] == 1
    assert all(solution.status == "certified" for solution in path)


def test_the_top_of_a_tree_is_strength_max():
    data = gr.NodeData.from_dict({i: (None, np.array([[float(i)]])) for i in range(6)})
    lam = gr.Parameter(1.0, name="lam")
    problem = gr.Problem(gr.MeanLoss(data) + lam * gr.TotalVariation(nx.path_graph(6), gr.L1()))
    assert gr.path(problem, 3).strengths[-1] == float(gr.strength_max(problem))


def test_the_top_takes_no_conic_programme_where_electrical_flows_will_do(monkeypatch):
    problem, lam = problem_of()

    def refined(*_):
        raise AssertionError

    monkeypatch.setattr(routes, "_merged", refined)
    monkeypatch.setattr("graphreg.tuning.grid.ABOVE", 0.5)
    values, most = downwards(problem, lam, 4)
    assert values[-1] == most.upper <= most.lower / 0.5
    assert most.certificate().holds(1e-9)
    assert any("within 0.5" in each for each in most.assumed)
    with pytest.raises(AssertionError):
        gr.strength_max(problem, lam)


def test_a_squared_penalty_has_no_largest_strength():
    problem, lam = problem_of(gr.SquaredL2())
    with pytest.raises(gr.errors.ModelError, match="Give the strengths to try"):
        gr.path(problem)
    assert lam.value == 0.3


# ---- failures and bad input ------------------------------------------------------------------------------------------
def test_an_infimum_that_is_not_attained():
    data = gr.NodeData.from_dict({i: (np.ones((3, 1)), np.full(3, float(i > 1))) for i in range(4)})
    lam = gr.Parameter(0.1, name="lam")
    problem = gr.Problem(gr.LogisticLoss(data) + lam * gr.TotalVariation(nx.Graph([(0, 1), (2, 3)]), gr.L2()))
    with pytest.raises(gr.errors.UnattainedError, match="at lam = 1: The infimum"):
        gr.path(problem, [0.1, 1.0])
    assert lam.value == 0.1
    path = gr.path(problem, [0.1, 1.0], on_failure="return")
    assert [solution.status for solution in path] == ["unattained"] * 2


def test_points_whose_infimum_is_not_attained_are_those_of_the_file(tmp_path):
    data = gr.NodeData.from_dict({i: ([[1.0, i], [1.0, 2.0]], [0, i]) for i in range(3)})
    lam = gr.Parameter(0.1, name="lam")
    problem = gr.Problem(gr.PoissonLoss(data) + lam * gr.TotalVariation(nx.path_graph(3), gr.SquaredL2()))
    given = {"method": gr.PrimalDual(), "rounds": 25, "on_failure": "return", "checkpoint": tmp_path / "path.npz"}
    first, again = (gr.path(problem, [0.01, 0.1, 1.0], **given) for _ in range(2))
    assert {solution.status for solution in first} == {"unattained"}
    np.testing.assert_array_equal(again.coef, first.coef)


@pytest.mark.parametrize(
    ("strengths", "said"),
    [
        ([1.0, -1.0], "the strength at position 1 must be positive and finite, got -1.0"),
        ([0.0], "positive and finite"),
        ([1.0, np.nan], "at position 1 must be positive and finite, got nan"),
        ([np.inf], "got inf"),
        ([1.0, 2.0, 1.0], "the strength 1 is given twice"),
        (["a"], "must be a positive number, got 'a'"),
        ({"lam": [0.1]}, r"strengths are numbers, as \[0.1, 1.0\], got .*parameter= names the Parameter"),
        ("0.1", "must be a sequence"),
        ([True], "got True"),
        ([], "empty"),
        (None, "must be a sequence"),
        (1, "at least 2"),
        (2.5, "at least 2"),
    ],
)
def test_strengths_that_are_none(strengths, said):
    problem, lam = problem_of()
    with pytest.raises(gr.errors.ModelError, match=said):
        gr.path(problem, strengths)
    assert lam.value == 0.3


def test_unsorted_strengths_are_sorted():
    problem, lam = problem_of()
    np.testing.assert_array_equal(grid(problem, lam, (3, 1.0, np.float32(2)))[0], [1.0, 2.0, 3.0])


def test_the_wrong_parameter():
    problem, _ = problem_of(extra=gr.Parameter(1.0, "ridge") * gr.NodePenalty(gr.SquaredL2()))
    plain = gr.Problem(problem_of()[0].model.terms[0][1] + gr.NodePenalty(gr.SquaredL2()))
    for each, parameter, said in (
        (problem, None, "'lam', 'ridge'; say which"),
        (problem, gr.Parameter(1.0, "mu"), "'mu' scales no term of the model; the model has 'lam', 'ridge'"),
        (problem, "lamm", "'lamm' is no Parameter of the model.*did you mean 'lam'"),
        (problem, 0.3, "must be a gr.Parameter of the model or its name, got 0.3"),
        (plain, None, r"no Parameter.*write lam = gr\.Parameter"),
    ):
        with pytest.raises(gr.errors.ModelError, match=said):
            gr.path(each, GRID, parameter)


def test_other_wrong_arguments(tmp_path):
    problem, _ = problem_of()
    with pytest.raises(gr.errors.ModelError, match="takes a Problem"):
        gr.path(problem.model, GRID)
    with pytest.raises(gr.errors.MethodError, match=r"write PrimalDual\(\)"):
        gr.path(problem, GRID, method=gr.PrimalDual)
    with pytest.raises(gr.errors.ModelError, match="gap must be"):
        gr.path(problem, GRID, gap=-1)
    with pytest.raises(gr.errors.ModelError, match="seed must be"):
        gr.path(problem, GRID, seed=-1)
    with pytest.raises(gr.errors.CheckpointError, match="folder that does not exist; create it"):
        gr.path(problem, GRID, checkpoint=tmp_path / "nowhere" / "path.npz")
