"""Paths that begin with rounds at the smallest strengths, and leave the others to Newton steps."""

from __future__ import annotations

import numpy as np
import pytest
from factories import thinned
from path_cases import GRID, problem_of

import graphreg as gr
from graphreg.running import driver
from graphreg.tuning import warm as strengths
from graphreg.tuning.warm import Warm, halving


@pytest.fixture(autouse=True)
def _small_ones_climb(monkeypatch):
    monkeypatch.setattr(strengths, "LARGE", 1)
    monkeypatch.setattr(strengths, "SHARE", 0.3)


def methods_of(path):
    return [solution.method for solution in path]


def test_rounds_come_first_and_newton_steps_take_the_rest():
    path = gr.path(problem_of()[0], GRID, gap=1e-8)
    methods = methods_of(path)
    count = methods.index("InteriorPoint")
    assert 0 < count < len(GRID)
    assert methods == ["PrimalDual"] * count + ["InteriorPoint"] * (len(GRID) - count)
    assert path.method == "PrimalDual, then InteriorPoint"
    plain = gr.path(problem_of()[0], GRID, gap=1e-8, method=gr.InteriorPoint())
    for one, two in zip(path, plain, strict=True):
        assert one.certificate.holds(1e-8)
        assert one.objective == pytest.approx(two.objective, rel=2e-8)


def test_in_which_order(monkeypatch):
    solve, order, grid = Warm.solve, [], np.geomspace(1e-3, 1.0, 25)

    def watched(self, strength=None):
        order.append((strength, type(self.method)))
        return solve(self, strength)

    monkeypatch.setattr(Warm, "solve", watched)
    count = methods_of(gr.path(problem_of()[0], grid, gap=1e-8)).index("InteriorPoint")
    values = [value for value, _ in order]
    assert values[: count + 1] == grid[: count + 1].tolist()  # the last of them was handed over
    rest = [*grid[:count:-1], grid[count]]  # in falling order; the last of them is known
    assert 4 < len(rest) < len(grid) - 4
    assert values[count + 1 :] == [rest[k] for k in halving(len(rest)) if k < len(rest) - 1]
    assert [kind for _, kind in order] == [gr.PrimalDual] * (count + 1) + [gr.InteriorPoint] * (len(grid) - count - 1)


def test_rounds_go_all_the_way_where_they_are_quick(monkeypatch):
    monkeypatch.setattr(strengths, "SHARE", 1e3)
    path = gr.path(problem_of()[0], GRID)
    assert set(methods_of(path)) == {"PrimalDual"}
    assert path.method == "PrimalDual"


def test_what_is_asked_for_is_what_is_done():
    assert set(methods_of(gr.path(problem_of()[0], GRID, method=gr.InteriorPoint()))) == {"InteriorPoint"}
    assert gr.path(problem_of()[0], GRID[:2], rounds=3).method == "InteriorPoint"


@pytest.mark.parametrize("at", thinned(range(2, 9), every=3))
def test_a_path_that_was_broken_off_goes_on_with_the_same_bits(monkeypatch, tmp_path, at):
    """Before, while and after Newton steps take over."""
    whole = gr.path(problem_of()[0], GRID, gap=1e-8)
    drive, calls = driver.drive, []

    def broken(method, view, certifier, budget, *more):
        calls.append(method)
        if len(calls) == at:
            raise KeyboardInterrupt
        return drive(method, view, certifier, budget, *more)

    with monkeypatch.context() as patch:
        patch.setattr("graphreg.running.solving.drive", broken)
        part = gr.path(problem_of()[0], GRID, gap=1e-8, checkpoint=tmp_path / "path.npz")
    assert not part.complete
    resumed = gr.path(problem_of()[0], GRID, gap=1e-8, checkpoint=tmp_path / "path.npz")
    assert resumed.complete
    assert resumed.method == whole.method
    assert methods_of(resumed) == methods_of(whole)
    np.testing.assert_array_equal(resumed.coef, whole.coef)


def test_rounds_of_earlier_strengths_count_towards_compiling(monkeypatch):
    seen = []
    step = gr.PrimalDual.step

    def watched(self, state):
        seen.append((state.earlier, state.round))
        return step(self, state)

    monkeypatch.setattr(gr.PrimalDual, "step", watched)
    path = gr.path(problem_of()[0], GRID[:3], method=gr.PrimalDual())
    done = [solution.rounds for solution in path][::-1]  # from the largest down
    assert sorted({earlier for earlier, _ in seen}) == [0, done[0], done[0] + done[1]]
