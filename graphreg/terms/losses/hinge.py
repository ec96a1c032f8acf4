"""Support vector machines: the hinge, and its square."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import ULP, half_square
from ..records import Array, Bends, Descent, Notation, Statement, stated
from .base import AbstractPeakedLoss, AbstractPiecewiseLinearLoss, smooth_rise
from .loss import AbstractLoss
from .prices import PriceDomain
from .samples import AbstractTwoClasses


class _Falling(PriceDomain):
    def descent(self, y: Array) -> Descent:
        descent = super().descent(y)
        return replace(descent, for_ever=np.zeros_like(descent.for_ever))


@dataclass(frozen=True)
class AbstractHinge(AbstractTwoClasses, AbstractLoss):
    """A loss that falls to 0 where the margin y x grows, and no further: it reaches its infimum."""

    prices = stated(_Falling)


@dataclass(frozen=True, repr=False)
class HingeLoss(AbstractHinge, AbstractPiecewiseLinearLoss):
    """The hinge of support vector machines: ``l(x; y) = max(0, 1 - y x)`` with the label y in ``{-1, 1}``.

    Its conjugate is ``l*(b; y) = b y`` for -1 <= b y <= 0 and +inf elsewhere.

    Parameters
    ----------
    data : NodeData
        With features and one binary target, coded {0, 1}, {-1, 1} or as booleans.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> votes = gr.NodeData.from_dict({"a": ([[1.0]] * 4, [0, 1, 1, 1])})
    >>> round(gr.Problem(gr.HingeLoss(votes)).solve().coef.item(), 3)  # the side of the majority, at the margin
    1.0
    """

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def statement(self) -> Statement:
        return Statement("hinge")

    notation = Notation(
        "max(0, 1 - %y %z)", "%u %y", "-%c <= %y %u <= 0", r"\max(0, 1 - %y %z)", "%u %y", r"-%c \le %y %u \le 0"
    )


@dataclass(frozen=True, repr=False)
class SquaredHingeLoss(AbstractHinge, AbstractPeakedLoss):
    """The squared hinge: ``l(x; y) = 1/2 max(0, 1 - y x)^2`` with the label y in ``{-1, 1}``.

    Its conjugate is ``l*(b; y) = b^2/2 + b y`` for b y <= 0 and +inf elsewhere.

    Parameters
    ----------
    data : NodeData
        With features and one binary target, coded {0, 1}, {-1, 1} or as booleans.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> votes = gr.NodeData.from_dict({"a": ([[1.0]] * 4, [0, 1, 1, 1])})
    >>> round(gr.Problem(gr.SquaredHingeLoss(votes)).solve().coef.item(), 3)  # the one vote against pulls still
    0.5
    """

    def value(self, x: Array, y: Array) -> Array:
        return np.maximum(1.0 - y * x, 0.0) ** 2 / 2

    def gradient(self, x: Array, y: Array) -> Array:
        return -y * np.maximum(1.0 - y * x, 0.0)

    def curvature(self, x: Array, y: Array) -> Array:
        return (y * x <= 1.0).astype(float)

    def conjugate(self, b: Array, y: Array) -> Array:
        return np.where(b * y <= 0.0, b * b / 2 + b * y, np.inf)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        return v + y * step * np.maximum(1.0 - y * v, 0.0) / (1.0 + step)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)

    def conductance(self, b: Array, y: Array) -> Array:
        # 1 where the price is well inside; a price near 0 may only grow
        return np.clip(-y * b, 1e-3, 1.0)

    def anchor(self, y: Array) -> Array:
        return y

    def bends(self, y: Array) -> Bends:
        zero = np.zeros(y.shape)
        return Bends(np.maximum(y, 0.0), zero, ((zero, -y, zero),))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        return half_square(np.maximum(-y * r + spread, 0.0) * (1.0 + ULP))  # 1 - y x = -y (x - y)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        return np.where((b * y + spread <= 0.0), half_square(np.abs(b) + spread), np.inf)

    def smoothness(self) -> float:
        return 1.0

    def smoothed(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        rise, slope, bend = smooth_rise(1.0 - y * x)  # no price is 0, the end of the domain
        return rise, -y * slope, bend

    def cvxpy(self, x: Any, y: Array) -> Any:
        return cp.square(cp.pos(1 - cp.multiply(y, x))) / 2

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        return [cp.multiply(b, y) <= 0, cp.square(b) / 2 + cp.multiply(b, y)]

    def statement(self) -> Statement:
        return Statement("squared_hinge")

    notation = Notation(
        "max(0, 1 - %y %z)^2 / 2",
        "%u^2 / (2 %c) + %u %y",
        "%y %u <= 0",
        r"\tfrac12 \max(0, 1 - %y %z)^2",
        r"\frac{%u^2}{2 %c} + %u %y",
        r"%y %u \le 0",
    )
