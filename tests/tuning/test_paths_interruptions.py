"""Paths of strengths that are interrupted or killed return what is done, and go on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from factories import interrupt
from path_cases import GRID, problem_of

import graphreg as gr
from graphreg.running import driver
from graphreg.saving import archive
from graphreg.tuning.warm import Warm


def breaks_at(monkeypatch, count, error):
    """The solve of that number is broken off in its midst."""
    drive, calls = driver.drive, []

    def broken(method, view, certifier, budget, *more):
        calls.append(budget)
        if len(calls) == count:
            raise error
        return drive(method, view, certifier, budget, *more)

    monkeypatch.setattr("graphreg.running.solving.drive", broken)


@pytest.mark.parametrize(
    ("method", "done"),
    [(gr.PrimalDual(), [0, 4, 7]), (gr.InteriorPoint(), [0, 4, 7])],
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

    def interrupted(self):
        certificate = last(self)
        ends.append(certificate.holds(1e-6))
        if len(ends) == 3:
            raise KeyboardInterrupt
        return certificate

    monkeypatch.setattr(driver._Run, "last", interrupted)
    path = gr.path(problem, GRID, method=gr.PrimalDual())
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
    with pytest.raises(gr.errors.CheckpointError, match="no file of a path but of a run"):
        gr.path(problem, GRID, checkpoint=run)
    header, arrays = archive.read(file)
    for wrong in ([{"tree": 17, "generators": [], "arrays": 0}] * 2, header["values"][:1] * 2, None):
        archive.write(run, {**header, "values": wrong}, arrays)
        with pytest.raises(gr.errors.CheckpointError, match="cannot be read"):
            gr.path(problem, GRID, checkpoint=run)
    run.write_bytes(b"nonsense")
    with pytest.raises(gr.errors.CheckpointError, match="damaged"):
        gr.path(problem, GRID, checkpoint=run)
