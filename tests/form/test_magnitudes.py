"""Data whose squares or exponentials leave the range of floats are refused, with the column."""

from __future__ import annotations

import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import DataError, TermError

LOSSES = {"squared": gr.SquaredLoss, "huber": gr.HuberLoss, "logistic": gr.LogisticLoss, "poisson": gr.PoissonLoss}
X = np.array([[1.0, 2.0], [0.5, -1.0], [-1.0, 3.0], [2.0, 0.1]])
Y = np.array([1.0, 0.0, 1.0, 0.0])


def data(X=X, y=Y, **options):
    return gr.NodeData.from_arrays(X, y, ["a", "a", "b", "b"], **options)


def column(size, row=2):
    out = X.copy()
    out[row, 1] = size
    return out


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [2e150, -1e200, 1e308])
def test_a_feature_whose_square_overflows(loss, size):
    with pytest.raises(DataError, match=r"feature 'age' is .* at the node 'b', row 2: its square overflows"):
        gr.Problem(LOSSES[loss](data(column(size), features=["size", "age"])))


@pytest.mark.parametrize("size", [1e-151, -1e-300, 5e-324])
def test_a_feature_whose_squares_vanish(size):
    small = X.copy()
    small[:, 0] *= size
    with pytest.raises(DataError, match=r"feature 'x0' .* its square is 0"):
        gr.Problem(gr.SquaredLoss(data(small)))


def test_what_is_0_and_what_is_small_beside_others_may_stay():
    gr.Problem(gr.SquaredLoss(data(column(1e-200))))
    gr.Problem(gr.SquaredLoss(data(X * [1.0, 0.0], 0.0 * Y)))
    gr.Problem(gr.SquaredLoss(data(X * [1e-140, 1e140], 1e140 * Y)))
    for size in (1e-200, -1e-200):
        gr.Problem(gr.SquaredLoss(data(offset=np.full(4, size))))


@pytest.mark.parametrize("size", [-2e150, 1e308])
def test_a_target_whose_square_overflows(size):
    for loss in (gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss):
        with pytest.raises(DataError, match=r"target 'y' is .* at the node 'b', row 3"):
            gr.Problem(loss(data(y=np.array([1.0, 2.0, 0.0, size]))))
    with pytest.raises(DataError, match="target 'y1'"):
        gr.Problem(gr.MeanLoss(data(None, np.array([[1.0, 2.0], [1.0, 0.0], [0.0, size], [2.0, 1.0]]))))


def test_a_target_whose_squares_vanish():
    with pytest.raises(DataError, match=r"target 'y' .* its square is 0"):
        gr.Problem(gr.SquaredLoss(data(y=1e-160 * Y)))


@pytest.mark.parametrize("size", [701.0, 1e4, 1e200])
def test_an_offset_whose_exponential_overflows(size):
    offset = np.array([0.0, size, 1.0, 0.0])
    with pytest.raises(DataError, match=r"offset is .* at the node 'a', row 1.* (logarithm of an exposure|rescale)"):
        gr.Problem(gr.PoissonLoss(data(offset=offset)))
    gr.Problem(gr.PoissonLoss(data(offset=-np.minimum(offset, 1e4))))  # exposures near 0 are none of it
    if size < 1e100:
        gr.Problem(gr.SquaredLoss(data(offset=offset)))


def test_products_with_the_scale():
    with pytest.raises(DataError, match=r"feature 'x1' .* times its scale overflows"):
        gr.Problem(gr.SquaredLoss(data(column(1e149), weights=np.full(4, 1e10)), scale="sum"))
    with pytest.raises(DataError, match="scale"):
        gr.Problem(gr.SquaredLoss(data(weights=np.full(4, 1e160)), scale="sum"))


def test_a_center_whose_square_overflows():
    model = gr.SquaredLoss(data()) + 0.1 * gr.NodePenalty(gr.SquaredL2(), center=[0.0, 1e200])
    with pytest.raises(TermError, match=r"center .* 'x1'"):
        gr.Problem(model)


@pytest.mark.parametrize("size", [1e140, 1e-140])
def test_what_is_not_refused_ends_with_a_status(size):
    for model in (gr.SquaredLoss(data(size * X)), gr.SquaredLoss(data(y=size * Y)), gr.LogisticLoss(data(size * X))):
        solution = gr.Problem(model + 0.1 * gr.NodePenalty(gr.L2())).solve(on_failure="return", seconds=5)
        assert solution.status in ("certified", "no_certificate", "budget", "failed", "unattained")
