"""Poisson regression of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import ULP, ends, shown
from ..records import Array, Notation, Statement
from .base import AbstractPeakedLoss
from .loss import INSIDE
from .samples import AbstractCounts


@dataclass(frozen=True, repr=False)
class PoissonLoss(AbstractCounts, AbstractPeakedLoss):
    """Poisson regression with the logarithmic link: ``l(x; y) = exp(x) - y x``, without the constant log y!.

    With ``q = b + y``, ``l*(b; y) = q log q - q`` for q >= 0 and +inf elsewhere. Exposures enter as offsets,
    ``x = log(exposure) + x_r'w_i``.

    Parameters
    ----------
    data : NodeData
        With features and one target of numbers >= 0 (counts, or rates with their exposures as weights).
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.PoissonLoss(five)).solve().coef.item(), 3)  # the logarithm of the mean, 4
    1.386
    """

    def value(self, x: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(x) - y * x

    def gradient(self, x: Array, y: Array) -> Array:
        return self.curvature(x, y) - y

    def curvature(self, x: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(x)

    def curvature_within(self, low: Array, high: Array, y: Array) -> tuple[Array, Array]:
        least, _ = super().curvature_within(low, high, y)
        return least, np.where(np.isfinite(high), self.curvature(high, y), np.inf)  # it increases

    def conjugate(self, b: Array, y: Array) -> Array:
        q = b + y
        return np.where(q >= 0.0, q * np.log(np.where(q > 0.0, q, 1.0)) - q, np.inf)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        from scipy.special import wrightomega  # omega + log omega = z

        c = v + step * y  # p + step exp(p) = c: with q = step exp(p), q + log q = c + log step
        q = wrightomega(c + np.log(step))
        return np.where(q > 1.0, np.log(np.maximum(q, 1.0) / step), c - q)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return -y, np.full(y.shape, np.inf)

    def clip(self, b: Array, y: Array) -> Array:
        return np.maximum(b, -INSIDE * y)

    def conductance(self, b: Array, y: Array) -> Array:
        return np.maximum(b + y, 0.0)

    def largest_offset(self) -> float:
        return 700.0  # exp(709.8) is the largest float

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            top = shown(np.exp(r + spread * (1.0 + ULP) + ULP * np.abs(r)) * (1.0 + 8 * ULP), live=True)
        linear, around = y * r, y * spread * (1.0 + ULP)
        return top - linear + (around + 4 * ULP * (np.abs(linear) + around + top))

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        q = b + y
        low, high = ends(q, spread + ULP * np.abs(q))
        top = np.maximum(_entropy_bound(np.maximum(low, 0.0)), _entropy_bound(np.maximum(high, 0.0)))
        return np.where(low >= 0.0, top, np.inf)

    def typical_curvature(self, x: Array, y: Array) -> Array:
        return np.maximum(np.exp(np.minimum(x, 100.0)), y)  # at x, and at the best of all predictors

    def response(self, x: Array) -> Array:
        return np.exp(np.minimum(x, 700.0))

    def cvxpy(self, x: Any, y: Array) -> Any:
        return cp.exp(x) - cp.multiply(y, x)

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        return -cp.entr(b + y) - (b + y)

    def statement(self) -> Statement:
        return Statement("poisson")

    notation = Notation(
        "exp(%z) - %y %z",
        "%c h(%y + %u / %c) where h(q) = q log q - q",
        "%u >= -%c %y",
        r"e^{%z} - %y \, %z",
        r"%c \, h(%y + %u / %c) \text{ where } h(q) = q \log q - q",
        r"%u \ge -%c %y",
    )


def _entropy_bound(q: Array) -> Array:
    """Not less than q log q - q for q >= 0; the logarithm is trusted to 4 ulp."""
    own = q * np.log(np.where(q > 0.0, q, 1.0))
    return shown(own - q + 8 * ULP * (np.abs(own) + q), q > 0.0)
