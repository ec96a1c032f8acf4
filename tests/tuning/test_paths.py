"""Regularisation paths: every point against cold solves, the record, events, resuming, interruptions, bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from factories import interrupt, thinned

import graphreg as gr
from graphreg.methods.interior_point.interior_point import InteriorPoint
from graphreg.methods.splitting.primal_dual import PrimalDual
from graphreg.running import driver
from graphreg.running.checkpoints import archive
from graphreg.tuning.events import events
from graphreg.tuning.grid import grid
from graphreg.tuning.warm import Warm, halving, usual_method

GRID = np.geomspace(1e-3, 1.0, 8)


def problem_of(penalty=None, loss=gr.SquaredLoss, extra=None, side=4, seed=0):
    """A grid graph whose halves differ, a few samples a node."""
    rng = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    half = side * side // 2
    data = {}
    for i in graph:
        X = rng.standard_normal((8, 2))
        link = X @ ([1.0, -1.0] if i < half else [-1.0, 1.0]) + 0.3 * rng.standard_normal(8)
        data[i] = (X, link if loss is gr.SquaredLoss else (link > 0).astype(float))
    lam = gr.Parameter(0.3, name="lam")
    model = loss(gr.NodeData.from_dict(data)) + lam * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model if extra is None else model + extra), lam


# ---- the answers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("loss", "penalty", "method"),
    thinned(
        [gr.SquaredLoss, gr.LogisticLoss], [gr.L1(), gr.L2(), gr.SquaredL2()], [None, gr.Exact(), gr.ADMM()], every=2
    ),
)
def test_every_point_is_that_of_a_cold_exact_solve(loss, penalty, method):
    """Every other case; all of them with ``make test ARGS=--whole``."""
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
                if isinstance(t, gr.TotalVariation) and t.nodes() and not isinstance(t.penalty, gr.AbstractConstraint)
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
    problem, lam = problem_of(side=8)
    strengths = np.geomspace(1e-2, 1.0, 33)
    path = gr.path(problem, strengths)
    cold = []
    for strength in strengths:
        lam.value = strength
        cold.append(problem.solve(gr.InteriorPoint()).rounds)
    assert path.method == "InteriorPoint"
    assert all(solution.certificate.holds(1e-6) for solution in path)
    between = [solution.rounds for solution in path][1::2]  # the last to be solved, each between its neighbours
    assert np.mean(between) < 0.7 * np.mean(cold[1::2])


def test_large_random_graphs_are_left_to_decentralised_rounds(monkeypatch):
    problem = problem_of()[0]
    assert isinstance(usual_method(problem), InteriorPoint)
    monkeypatch.setattr("graphreg.tuning.warm.MOST", 1.0)
    assert isinstance(usual_method(problem), PrimalDual)


def test_halving_takes_the_middles_of_what_is_known():
    assert halving(9) == [0, 8, 4, 2, 6, 1, 3, 5, 7]
    for count in range(1, 40):
        order = halving(count)
        assert sorted(order) == list(range(count))
        for place, k in enumerate(order[2:], start=2):
            below = max(each for each in order[:place] if each < k)
            above = min(each for each in order[:place] if each > k)
            assert abs((k - below) - (above - k)) <= 1


def test_where_newton_steps_fall_short_another_method_takes_over(monkeypatch):
    monkeypatch.setattr(InteriorPoint, "most_rounds", 2)
    path = gr.path(problem_of()[0], GRID[:3])
    assert all(solution.status == "certified" and solution.method == "PrimalDual" for solution in path)
    asked = gr.path(problem_of()[0], GRID[:3], method=gr.InteriorPoint(), on_failure="return")
    assert all(solution.method == "InteriorPoint" for solution in asked)
    validated = gr.cross_validate(problem_of()[0], GRID[:3], folds=2, refit=False)
    assert validated.certified.all()
    asked = gr.cross_validate(problem_of()[0], GRID[:3], folds=2, refit=False, method=gr.InteriorPoint())
    assert not asked.certified.any()


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
    warm = Warm(problem, gr.SubgradientDescent(), gap=1e-2, rounds=400)
    first = warm.solve(0.3)
    lam.value = 0.3001
    again = warm.solve(0.3001)
    assert again.objective <= first.objective * 1.001


# ---- the record ------------------------------------------------------------------------------------------------------
def test_the_table_and_what_it_rests_on():
    problem, _ = problem_of()
    path = gr.path(problem, GRID)
    table = path.table()
    np.testing.assert_array_equal(table["strength"], GRID)
    np.testing.assert_allclose(table["loss"] + table["penalty"], table["objective"], rtol=1e-9)
    assert (np.diff(table["loss"]) >= -1e-5).all()  # the loss grows with the strength of the penalty
    assert (table[["fused", "near", "split", "undecided"]].sum(axis=1) == 24).all()
    assert table["clusters"].iloc[0] > table["clusters"].iloc[-1]
    assert (table["relative_gap"] <= 1e-6).all()
    assert "assumed:" in str(path)
    assert "8 of 8 strengths certified" in str(path)
    assert repr(path) == "<Path of 'lam': 8 strengths>"
    assert path.coef.shape == (8, 16, 2)
    np.testing.assert_array_equal(path.coef[3], path.solution_at(GRID[3]).coef)
    with pytest.raises(gr.errors.ModelError, match=r"no strength 0\.5; the nearest is"):
        path.solution_at(0.5)


def test_uncertified_points_are_told():
    path = gr.path(problem_of()[0], GRID, gap=1e-12, rounds=3)
    table = path.table()
    assert "budget" in set(table["status"])
    assert "8 of 8" not in str(path)


def test_events_are_the_changes_of_decided_states():
    path = gr.path(problem_of()[0], np.geomspace(1e-2, 1.0, 12))
    found = path.events()
    assert len(found)
    state = {}
    for strength, solution in path.solutions.items():
        for row in solution.clusters().edges.itertuples():
            if row.state != "undecided":
                said = "split" if row.state == "split" else "together"
                state.setdefault((row.tail, row.head), []).append((strength, said, row.certain))
    expected = {
        (a[0], b[0], *edge, b[1], bool(a[2] and b[2]))
        for edge, course in state.items()
        for a, b in pairwise(course)
        if a[1] != b[1]
    }
    rows = found[["strength_from", "strength_to", "tail", "head", "event", "certain"]].itertuples(index=False)
    assert {tuple(row) for row in rows} == expected
    assert list(found["strength_to"]) == sorted(found["strength_to"])


def test_an_undecided_edge_is_no_event():
    import pandas as pd

    class Found:
        def __init__(self, state, certain):
            self.edges = pd.DataFrame(
                {"term": ["t"], "tail": ["a"], "head": ["b"], "state": [state], "certain": [certain]}
            )

    course = [
        ("undecided", False),
        ("split", True),
        ("undecided", False),
        ("split", False),
        ("fused", True),
        ("split", True),
    ]
    found = events(np.arange(1.0, 7.0), [Found(*each) for each in course])
    assert found.drop(columns=["term", "tail", "head"]).values.tolist() == [
        [4.0, 5.0, "together", False],
        [5.0, 6.0, "split", True],
    ]


def test_without_edges():
    data = gr.NodeData.from_dict({i: (np.ones((2, 1)), np.array([i, i + 1.0])) for i in range(3)})
    problem = gr.Problem(gr.SquaredLoss(data) + gr.Parameter(1.0) * gr.NodePenalty(gr.SquaredL2()))
    path = gr.path(problem, GRID)
    assert (path.table()["fused"] == 0).all()
    assert len(path.events()) == 0
    with pytest.raises(gr.errors.ModelError, match="Give the strengths to try"):
        gr.path(problem)


# ---- a number of strengths -------------------------------------------------------------------------------------------
def test_downwards_from_strength_max():
    pytest.importorskip("graphreg.theory.agreement.strength")
    problem, lam = problem_of()
    path = gr.path(problem, 7)
    top = float(gr.theory.strength_max(problem, lam))
    np.testing.assert_allclose(path.strengths, np.geomspace(top / 1000, top, 7), rtol=1e-12)
    assert path.table()["clusters"].iloc[-1] == 1
    assert all(solution.status == "certified" for solution in path)


def test_a_squared_penalty_has_no_largest_strength():
    problem, lam = problem_of(gr.SquaredL2())
    with pytest.raises(gr.errors.ModelError, match="Give the strengths to try"):
        gr.path(problem)
    assert lam.value == 0.3


# ---- interruptions and checkpoints -----------------------------------------------------------------------------------
def breaks_at(monkeypatch, count, error):
    """The solve of that number is broken off in its midst."""
    drive, calls = driver.drive, []

    def broken(method, view, certifier, budget, keeper=None):
        calls.append(budget)
        if len(calls) == count:
            raise error
        return drive(method, view, certifier, budget, keeper)

    monkeypatch.setattr("graphreg.running.iterating.drive", broken)


@pytest.mark.parametrize(
    ("method", "done"),
    [(gr.PrimalDual(), [5, 6, 7]), (gr.InteriorPoint(), [0, 4, 7])],
    ids=["PrimalDual", "InteriorPoint"],
)
def test_an_interruption_returns_what_is_done(monkeypatch, tmp_path, method, done):
    problem, lam = problem_of()
    whole = gr.path(problem, GRID, method=method)
    with monkeypatch.context() as patch:
        breaks_at(patch, 4, KeyboardInterrupt())
        part = gr.path(problem, GRID, method=method, checkpoint=tmp_path / "path.npz")
    assert lam.value == 0.3
    assert not part.complete
    assert part.left == tuple(np.delete(GRID, done).tolist())
    assert "INCOMPLETE" in str(part)
    assert "incomplete" in repr(part)
    np.testing.assert_array_equal(part.coef, whole.coef[done])
    resumed = gr.path(problem, GRID, method=method, checkpoint=tmp_path / "path.npz")
    assert resumed.complete
    np.testing.assert_array_equal(resumed.coef, whole.coef)
    for a, b in zip(whole, resumed, strict=True):
        assert (a.status, a.rounds, a.objective, a.certificate.dual) == (
            b.status,
            b.rounds,
            b.objective,
            b.certificate.dual,
        )
        assert all(
            (u == v).all() for u, v in zip(a.certificate.dual_point.flows, b.certificate.dual_point.flows, strict=True)
        )


def test_an_interruption_within_a_run_drops_the_half_done_point():
    problem, _ = problem_of()
    warm = Warm(problem)
    warm.solve(0.3)
    known, state, schedule = warm.known, warm.warm_start.state, warm.warm_start.schedule

    warm.budget = replace(warm.budget, gap=1e-14, callback=interrupt)
    assert warm.solve(0.2).status == "interrupted"
    assert warm.known is known
    assert warm.warm_start.state is state
    assert warm.warm_start.schedule is schedule


def test_an_interruption_of_a_point_that_is_certified_all_the_same(monkeypatch):
    """Ctrl-C falls into a solve that has its gap already: the path ends there, and does not go on."""
    problem, _ = problem_of()
    last, ends = driver._Run.last, []

    def interrupted(self, state, k, ended):
        certificate = last(self, state, k, ended)
        ends.append(certificate.holds(1e-6))
        if len(ends) == 3:
            raise KeyboardInterrupt
        return certificate

    monkeypatch.setattr(driver._Run, "last", interrupted)
    path = gr.path(problem, GRID)
    assert ends == [True] * 3
    np.testing.assert_array_equal(path.strengths, GRID[[0, -1]])
    assert path.left == tuple(GRID[1:-1].tolist())


def test_a_half_done_point_is_no_point_of_the_path(monkeypatch):
    problem, _ = problem_of()
    solve, solved = Warm.solve, []

    def interrupted(self, strength=None):
        solved.append(strength)
        solution = solve(self, strength)
        return replace(solution, status="interrupted") if len(solved) == 3 else solution

    monkeypatch.setattr(Warm, "solve", interrupted)
    path = gr.path(problem, GRID)
    np.testing.assert_array_equal(path.strengths, GRID[[0, -1]])
    assert path.left == tuple(GRID[1:-1].tolist())
    assert len(solved) == 3


@pytest.mark.parametrize(
    "method", [gr.InteriorPoint(), gr.PrimalDual(), gr.ADMM(), gr.PrimalDual(restarts=True), gr.Exact()]
)
def test_a_path_that_was_killed_goes_on_with_the_same_bits(monkeypatch, tmp_path, method):
    problem, lam = problem_of(gr.L1())
    grid = GRID if method != gr.InteriorPoint() else np.geomspace(0.2, 1.0, 8)  # so near that each begins between two
    file = gr.Checkpoint(tmp_path / "path.npz", rounds=1)
    whole = gr.path(problem, grid, method=method)
    with monkeypatch.context() as patch:
        solves = []
        solve = Warm.solve

        def dies(self, strength=None):
            solves.append(strength)
            if len(solves) == 4:
                raise RuntimeError("killed")
            return solve(self, strength)

        patch.setattr(Warm, "solve", dies)
        with pytest.raises(RuntimeError, match="killed"):
            gr.path(problem, grid, method=method, checkpoint=file)
    assert lam.value == 0.3
    lam.value = 5.0  # the value of the moment is no part of the path
    resumed = gr.path(problem, grid, method=method, checkpoint=file)
    if isinstance(method, gr.Exact):  # its solver keeps a memory of its own
        np.testing.assert_allclose(resumed.coef, whole.coef, atol=1e-4)
        np.testing.assert_array_equal(resumed.coef[5:], gr.path(problem, grid, method=method, checkpoint=file).coef[5:])
    else:
        np.testing.assert_array_equal(resumed.coef, whole.coef)


def test_a_checkpoint_of_another_path_is_refused(tmp_path):
    file = tmp_path / "path.npz"
    problem, _ = problem_of()
    gr.path(problem, GRID, checkpoint=file)
    for other, choices, said in (
        (problem_of(seed=1)[0], {}, "another problem.*targets"),
        (problem, {"gap": 1e-7}, "another path.*the gap"),
        (problem, {"strengths": GRID[1:]}, "another path.*the strengths"),
        (problem, {"method": gr.ADMM()}, "another method"),
    ):
        with pytest.raises(gr.errors.CheckpointError, match=said):
            gr.path(other, **{"strengths": GRID, "checkpoint": file, **choices})
    run = tmp_path / "run.npz"
    problem.solve(gr.PrimalDual(), checkpoint=run)
    with pytest.raises(gr.errors.CheckpointError, match="no checkpoint of a path but of a run"):
        gr.path(problem, GRID, checkpoint=run)
    header, arrays = archive.read(file)
    for wrong in ([{"tree": 17, "generators": [], "arrays": 0}] * 2, header["values"][:1] * 2, None):
        archive.write(run, {**header, "values": wrong}, arrays)
        with pytest.raises(gr.errors.CheckpointError, match="cannot be read"):
            gr.path(problem, GRID, checkpoint=run)
    run.write_bytes(b"nonsense")
    with pytest.raises(gr.errors.CheckpointError, match="damaged"):
        gr.path(problem, GRID, checkpoint=run)


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


@pytest.mark.parametrize(
    ("strengths", "said"),
    [
        ([1.0, -1.0], "the strength at position 1 must be positive and finite, got -1.0"),
        ([0.0], "positive and finite"),
        ([1.0, np.nan], "at position 1 must be positive and finite, got nan"),
        ([np.inf], "got inf"),
        ([1.0, 2.0, 1.0], "the strength 1 is given twice"),
        (["a"], "must be a positive number, got 'a'"),
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


# ---- plots and progress ----------------------------------------------------------------------------------------------
def test_the_plot():
    pytest.importorskip("matplotlib").use("Agg")
    path = gr.path(problem_of()[0], GRID)
    one = path.plot(node=3)
    np.testing.assert_array_equal(one.lines[1].get_ydata(), path.coef[:, 3, 1])
    np.testing.assert_array_equal(one.lines[1].get_xdata(), GRID)
    assert one.get_xscale() == "log"
    many = path.plot(feature=path.solution_at(GRID[0]).table().columns[1])
    segments = many.collections[0].get_segments()
    np.testing.assert_array_equal(segments[5][:, 1], path.coef[:, 5, 1])
    counts = many.figure.axes[1].lines[0].get_ydata()
    np.testing.assert_array_equal(counts, path.table()["clusters"])
    with pytest.raises(gr.errors.ModelError, match="99 is not a node"):
        path.plot(node=99)
    with pytest.raises(gr.errors.ModelError, match="'z' is not a coefficient"):
        path.plot(feature="z")


def test_the_progress_bar(capsys):
    gr.path(problem_of()[0], GRID[:2], progress=True)
    assert "strengths" in capsys.readouterr().err
    gr.path(problem_of()[0], GRID[:2], progress=False)
    assert capsys.readouterr().err == ""
