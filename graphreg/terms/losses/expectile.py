"""Expectile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import checked, inside
from ..bounds import ULP, half_square, shown
from ..records import Array, Bends, Notation, Statement
from .base import AbstractDifferenceLoss, AbstractPeakedLoss
from .loss import AbstractLoss


@dataclass(frozen=True, repr=False)
class ExpectileLoss(AbstractDifferenceLoss, AbstractPeakedLoss):
    """Expectile regression (asymmetric least squares): with r = x - y, ``tau r^2/2`` where r < 0, else
    ``(1 - tau) r^2/2``.

    Its conjugate is ``l*(b; y) = b^2/(2 tau) + b y`` for b < 0, else ``b^2/(2 (1 - tau)) + b y``. Half of `SquaredLoss`
    at tau = 1/2; what `QuantileLoss` is to absolute values this is to squares (Newey and Powell, 1987).

    Parameters
    ----------
    data : NodeData
        With features and one numeric target.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.
    tau : float
        The expectile, in (0, 1); at 1/2 it is the mean.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.ExpectileLoss(five, tau=0.9)).solve().coef.item(), 3)  # above the mean, 4
    7.692
    """

    tau: float = checked(inside("(0, 1)"), 0.5)

    def _factor(self, sign: Array) -> Array:
        """The curvature at residuals, or prices, of this sign."""
        return np.where(sign < 0.0, float(self.tau), 1.0 - float(self.tau))

    def value(self, x: Array, y: Array) -> Array:
        r = x - y
        return self._factor(r) * (r * r / 2)

    def gradient(self, x: Array, y: Array) -> Array:
        return self._factor(x - y) * (x - y)

    def curvature(self, x: Array, y: Array) -> Array:
        return self._factor(x - y)

    def conjugate(self, b: Array, y: Array) -> Array:
        return b * (b / (2 * self._factor(b)) + y)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        r = v - y
        return y + r / (1.0 + step * self._factor(r))

    domain = AbstractLoss.domain  # slopes have no limits

    def conductance(self, b: Array, y: Array) -> Array:
        return self._factor(b)

    def bends(self, y: Array) -> Bends:
        one, tau = np.ones(y.shape), float(self.tau)
        return Bends(tau * one, 0.0 * one, ((0.0 * one, (1.0 - 2.0 * tau) * one, 0.0 * one),))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        return self._largest(r, spread, lambda square, factor: square * factor)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        return self._largest(b, spread, lambda square, factor: square / factor)

    def _largest(self, r: Array, spread: Array, bent: Any) -> Array:
        """A bound of 1/2 r^2 times or over the factor on either side, over ``r +- spread``."""
        below, above = (half_square(np.maximum(sign * r + spread, 0.0) * (1.0 + ULP)) for sign in (-1.0, 1.0))
        with np.errstate(over="ignore"):
            largest = np.maximum(bent(below, self.tau), bent(above, 1.0 - self.tau)) * (1.0 + 2 * ULP)
        return shown(largest, (r != 0.0) | (spread != 0.0))

    def smoothness(self) -> float:
        return max(float(self.tau), 1.0 - float(self.tau))

    def least_curvature(self) -> float:
        return min(float(self.tau), 1.0 - float(self.tau))

    def cvxpy(self, x: Any, y: Array) -> Any:
        return (self.tau * cp.square(cp.neg(x - y)) + (1 - self.tau) * cp.square(cp.pos(x - y))) / 2

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        squares = cp.square(cp.neg(b)) / self.tau + cp.square(cp.pos(b)) / (1 - self.tau)
        return squares / 2 + cp.multiply(b, y)

    def statement(self) -> Statement:
        return Statement("expectile", float(self.tau))

    @property
    def notation(self) -> Notation:
        low, high = f"{self.tau:g}", f"{1.0 - self.tau:g}"
        return Notation(
            f"h(%z - %y) where h(r) = ({low} max(0, -r)^2 + {high} max(0, r)^2) / 2",
            f"%c h*(%u / %c) + %u %y where h*(b) = (max(0, -b)^2 / {low} + max(0, b)^2 / {high}) / 2",
            "",
            rf"h(%z - %y) \text{{ where }} h(r) = \tfrac12 ({low} \max(0, -r)^2 + {high} \max(0, r)^2)",
            rf"%c \, h^*(%u / %c) + %u \, %y \text{{ where }} "
            rf"h^*(b) = \tfrac12 (\max(0, -b)^2 / {low} + \max(0, b)^2 / {high})",
        )
