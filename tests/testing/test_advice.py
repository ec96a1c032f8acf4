"""Every law that a penalty or a loss can break says what that usually means."""

from __future__ import annotations

from typing import ClassVar

import cvxpy as cp
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import TermError
from graphreg.testing import check_loss, check_penalty, losses, penalties
from graphreg.testing.report import advice


def test_every_law_has_advice_and_all_advice_a_law():
    assert set(advice()) == {"sizes", *penalties.LAWS, *losses.LAWS}


def test_a_failing_law_says_what_it_usually_means():
    class Forgetful(gr.L1):
        def conjugate(self, u):
            return np.zeros(len(u))

    said = str(check_penalty(Forgetful()))
    assert said.count("usually: conjugate is too small") == 1
    assert "usually" not in str(check_penalty(gr.L1()))


def test_a_penalty_says_how_accurate_it_is():
    class Rough(gr.L1):
        def value(self, z):
            return super().value(z) * (1.0 + 1e-7)

        def accuracy(self):
            return 1e-6

    assert "prox fenchel young" not in {failure.law for failure in check_penalty(Rough()).failures}
    assert "prox fenchel young" in {failure.law for failure in check_penalty(Rough(), tolerance=1e-8).failures}


class Hinge(gr.AbstractOneSided):
    """sum_j max(z_j, 0), by the four methods alone: 0 is on the boundary of the domain of its conjugate."""

    def value(self, z):
        return np.maximum(z, 0.0).sum(axis=1)

    def prox(self, v, step):
        t = np.asarray(step, dtype=float).reshape(-1, 1)
        return np.where(v > 0.0, np.maximum(v - t, 0.0), v)

    def conjugate(self, u):
        return np.where(((u <= 1.0) & (u >= 0.0)).all(axis=1), 0.0, np.inf)

    def cvxpy(self, Z):
        import cvxpy as cp

        return cp.sum(cp.pos(Z), axis=1)


@pytest.mark.parametrize("k", [1, 3])
def test_one_sided_penalties_find_an_inner_point(k):
    check_penalty(Hinge(), k=k).raise_if_failed()


def test_a_gradient_that_jumps_is_told_its_kind():
    class Absolute(gr.Loss):
        def value(self, x, y):
            return np.abs(x - y)

        def gradient(self, x, y):
            return np.sign(x - y)

        def curvature(self, x, y):
            return np.zeros(np.shape(x))

        def smoothness(self):
            return 1.0

        def conjugate(self, b, y):
            return np.where(np.abs(b) <= 1.0, b * y, np.inf)

        def cvxpy(self, x, y):
            return cp.abs(x - y)

    loss = Absolute(gr.NodeData.from_arrays(np.ones((4, 1)), np.arange(4.0), [0, 0, 1, 1]))
    failing = str(check_loss(loss))
    assert "a loss whose gradient jumps derives from gr.AbstractPiecewiseLinearLoss" in failing


def test_a_gradient_that_is_not_lipschitz_is_told_its_class():
    class Cosh(gr.SquaredL2):
        def smoothness(self):
            return np.inf

    said = str(check_penalty(Cosh(), k=1))
    assert "the smoothness inf is not a finite positive number" in said
    assert "where that is infinite derive from gr.Penalty" in said


class Own(gr.Penalty):
    """A penalty of which all but what a test spoils is that of ``right``."""

    right: ClassVar = gr.L1()

    def value(self, z):
        return self.right.value(z)

    def prox(self, v, step):
        return self.right.prox(v, step)

    def conjugate(self, u):
        return self.right.conjugate(u)

    def cvxpy(self, Z):
        return self.right.cvxpy(Z)


class Unscaled(Own):
    """||z|| as z'z / ||z||."""

    right: ClassVar = gr.L2()

    def value(self, z):
        with np.errstate(all="ignore"):
            return np.square(z).sum(axis=1) / np.linalg.norm(z, axis=1)


def test_what_is_nan_is_said_first_and_no_rows_are_blamed():
    said = str(check_penalty(Unscaled(), k=2)).split("non negative")[0]
    assert "value is not nan, missed in 1 of" in said
    assert "at x = [0.0, 0.0]" in said
    assert "0/0" in said
    assert "independently" not in said


class Small(Own):
    """l1, with a conjugate that is finite on half of its domain alone."""

    def conjugate(self, u):
        return np.where((np.abs(u) <= 0.5).all(axis=1), 0.0, np.inf)


def test_no_slope_that_was_moved_is_shown_as_that_of_the_prox():
    found = [each for each in check_penalty(Small(), k=1).failures if each.law == "prox fenchel young"]
    assert found
    assert all("lies in dom of the conjugate" in str(each) for each in found)


class Summed(Own):
    def cvxpy(self, Z):
        return cp.sum(cp.abs(Z))


class Entries(Own):
    def cvxpy(self, Z):
        return cp.abs(Z)


@pytest.mark.parametrize("kind", [Summed, Entries])
def test_an_exact_solve_names_what_returns_another_shape(kind):
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(6.0).reshape(3, 2), range(3)))
    problem = gr.Problem(loss + 0.3 * gr.TotalVariation(gr.Graph.chain(3), kind()))
    with pytest.raises(TermError, match=f"cvxpy of {kind.__name__} must return an expression with one value per row"):
        problem.solve(gr.Exact())
