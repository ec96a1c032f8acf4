"""Every loss and every penalty of the library obeys the laws of its kind."""

from __future__ import annotations

import numpy as np
import pytest
from factories import thinned
from law_cases import LOSSES, PENALTIES, RECOGNISED, SOLVED_PENALTIES, SOLVER_TOLERANCE, concrete_subclasses
from own_terms import Elastic

import graphreg as gr
from graphreg.reading_cvxpy.cone_penalty import ConePenalty
from graphreg.reading_cvxpy.loss import CvxpyLoss
from graphreg.terms.losses.base import AbstractLoss, smooth_rise
from graphreg.terms.penalties.base import AbstractPenalty
from graphreg.terms.penalties.l1 import L1
from graphreg.terms.penalties.quadratic import Quadratic
from graphreg.testing import check_loss, check_penalty

OF_CONES = [penalty for penalty in RECOGNISED if isinstance(penalty, ConePenalty)]
SLOW = (OF_CONES[0], OF_CONES[4], OF_CONES[6])  # twice as long as all others together; cones of the others


@pytest.mark.parametrize(
    "penalty",
    [
        pytest.param(each, marks=pytest.mark.whole if any(each is one for one in SLOW) else ())
        for each in PENALTIES + RECOGNISED
    ],
    ids=lambda penalty: type(penalty).__name__,
)
def test_penalty(penalty):
    check_penalty(penalty, k=(1, 2, 3, 5), seed=1).raise_if_failed()


@pytest.mark.parametrize("penalty", thinned(SOLVED_PENALTIES, every=2), ids=repr)
def test_penalty_that_runs_a_solver(penalty, whole):
    """Every second one on two coordinates; all, and on one and on three, with ``make test ARGS=--whole``."""
    check_penalty(penalty, k=(1, 2, 3) if whole else 2, tolerance=SOLVER_TOLERANCE).raise_if_failed()


BY_CVXPY = [loss for loss in LOSSES if isinstance(loss, CvxpyLoss)]
LATER = (BY_CVXPY[0], BY_CVXPY[2])  # docs/adding-a-loss.md tries the one, and counts stand for the other


@pytest.mark.parametrize(
    "loss",
    [pytest.param(loss, marks=pytest.mark.whole if any(loss is each for each in LATER) else ()) for loss in LOSSES],
    ids=lambda loss: type(loss).__name__,
)
def test_loss(loss, whole):
    check_loss(loss).raise_if_failed()
    if whole or not loss.is_users():
        check_loss(loss, seed=1).raise_if_failed()


def test_every_penalty_has_a_case():
    cases = {type(penalty) for penalty in (*PENALTIES, *RECOGNISED, *SOLVED_PENALTIES)}
    missing = set(concrete_subclasses(AbstractPenalty)) - cases
    assert not missing, f"penalties without a case in law_cases.py: {missing}"


def test_every_loss_has_a_case():
    cases = {type(loss) for loss in LOSSES}
    missing = set(concrete_subclasses(AbstractLoss)) - cases
    assert not missing, f"losses without a case in law_cases.py: {missing}"


def test_same_seed_same_report():
    class Wrong(L1):
        def prox(self, v, step):
            return L1.prox(self, v, 2 * np.asarray(step))

    first, second = check_penalty(Wrong(), seed=7), check_penalty(Wrong(), seed=7)
    assert first == second
    assert not first


def test_report_says_which_law_failed_where_and_by_how_much():
    class Wrong(L1):
        def value(self, z):
            return L1.value(self, z) + 1.0

    report = check_penalty(Wrong())
    printed = str(report)
    assert "FAIL  non negative" in printed
    assert "phi(0) = 0, missed in 1 of 1 rows (by 1; at z = [0.0])" in printed
    assert "pass  step to boundary" in printed
    with pytest.raises(AssertionError, match="FAIL  non negative"):
        report.raise_if_failed()


def test_exception_is_a_failure_of_its_law():
    class Raises(L1):
        def gauge_at_zero(self, u):
            raise RuntimeError("no gauge today")

    failures = [failure for failure in check_penalty(Raises()).failures if failure.law == "gauge at zero"]
    assert failures[0].sentence == "RuntimeError: no gauge today"


def test_sizes_that_a_penalty_refuses_are_left_out():
    assert check_penalty(Quadratic(np.eye(2)), k=(1, 2)).ok
    refused = check_penalty(Quadratic(np.eye(2)), k=(1, 3))
    assert [failure.law for failure in refused.failures] == ["sizes"]


def test_user_penalty_of_four_methods_passes():
    check_penalty(Elastic()).raise_if_failed()


def test_user_constraint_with_a_curved_domain_passes():
    class Cap(AbstractPenalty):
        """sqrt(1 + ||z||^2) - 1, whose conjugate 1 - sqrt(1 - ||u||^2) is finite on the unit ball."""

        def value(self, z):
            r2 = (z**2).sum(axis=1)
            return r2 / (1 + np.sqrt(1 + r2))

        def prox(self, v, step):
            r, t = np.linalg.norm(v, axis=1), np.broadcast_to(step, (len(v),))
            s = np.zeros(len(v))
            for _ in range(200):  # s + t s / sqrt(1 + s^2) = r, from 0, where the left side is steepest
                s = s - (s + t * s / np.sqrt(1 + s * s) - r) / (1 + t * (1 + s * s) ** -1.5)
                s = np.clip(s, 0, r)
            return v * (s / np.where(r > 0, r, 1.0))[:, None]

        def conjugate(self, u):
            r2 = (u**2).sum(axis=1)
            return np.where(r2 <= 1, r2 / (1 + np.sqrt(np.maximum(1 - r2, 0))), np.inf)

        def cvxpy(self, Z):
            import cvxpy as cp

            return cp.hstack([cp.norm(cp.hstack([1.0, Z[i]]), 2) for i in range(Z.shape[0])]) - 1

    report = check_penalty(Cap())
    assert report.ok, str(report)


def test_a_smooth_rise_has_its_slope_and_its_curvature():
    """In the place of max(0, t), where losses with kinks are smoothed."""
    t, h = np.linspace(-3.0, 3.0, 25), 1e-5
    rise, slope, bend = smooth_rise(t)
    above, below = smooth_rise(t + h), smooth_rise(t - h)
    np.testing.assert_allclose(slope, (above[0] - below[0]) / (2.0 * h), atol=1e-9)
    np.testing.assert_allclose(bend, (above[1] - below[1]) / (2.0 * h), atol=1e-9)
    assert (rise > np.maximum(0.0, t)).all()
    assert (rise - np.maximum(0.0, t)).max() == 0.5
    _, far, _ = smooth_rise(np.array([-1e6, 1e6]))
    np.testing.assert_allclose([far[0], 1.0 - far[1]], 0.25e-12, rtol=1e-3)


def test_a_miss_is_told_in_units_of_the_objective_too():
    class Low(gr.L1):
        def conjugate(self, u):
            return super().conjugate(u) - 0.1

    report = gr.testing.check_penalty(Low())
    missed = [str(each) for each in report.failures if each.law == "fenchel young everywhere"]
    assert all("absolute miss = 0.1" in each for each in missed)
    assert missed
    assert "below 1e-8 value or conjugate cancels" in str(report)
