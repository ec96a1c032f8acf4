"""Gamma regression of positive amounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import ULP, ends, shown
from ..records import Array, Notation, Statement
from .base import AbstractPeakedLoss
from .loss import INSIDE
from .samples import amounts


@dataclass(frozen=True, repr=False)
class GammaLoss(AbstractPeakedLoss):
    """Gamma regression with the logarithmic link: ``l(x; y) = x + y exp(-x)``, which is y/mu + log mu at mu = exp(x).

    With ``q = 1 - b``, ``l*(b; y) = q log(q / y) - q`` for q >= 0 and +inf elsewhere. Up to a constant it is half the
    deviance of a gamma distribution with the mean mu, whose standard deviation is proportional to mu.

    Parameters
    ----------
    data : NodeData
        With features and one target of numbers > 0: costs, waiting times, amounts of rain.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.GammaLoss(five)).solve().coef.item(), 3)  # the logarithm of the mean, 4
    1.386
    """

    def encode(self, target: Array) -> Array:
        return amounts(target, "GammaLoss", "> 0", "PoissonLoss")

    def value(self, x: Array, y: Array) -> Array:
        return x + self.curvature(x, y)

    def gradient(self, x: Array, y: Array) -> Array:
        return 1.0 - self.curvature(x, y)

    def curvature(self, x: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return y * np.exp(-x)

    def curvature_within(self, low: Array, high: Array, y: Array) -> tuple[Array, Array]:
        least, _ = super().curvature_within(low, high, y)
        return least, np.where(np.isfinite(low), self.curvature(low, y), np.inf)  # it decreases

    def conjugate(self, b: Array, y: Array) -> Array:
        q = 1.0 - b
        return np.where(q >= 0.0, q * np.log(np.where(q > 0.0, q / y, 1.0)) - q, np.inf)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        from scipy.special import wrightomega  # omega + log omega = z

        c, top = v - step, np.log(step * y)  # p - step y exp(-p) = c: with q = step y exp(-p), q + log q = top - c
        q = wrightomega(top - c)
        return np.where(q > 1.0, top - np.log(np.maximum(q, 1.0)), c + q)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(y.shape, -np.inf), np.ones(y.shape)

    def clip(self, b: Array, y: Array) -> Array:
        return np.minimum(b, INSIDE)

    def conductance(self, b: Array, y: Array) -> Array:
        return np.maximum(1.0 - b, 0.0)

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            top = shown(y * np.exp(spread * (1.0 + ULP) + ULP * np.abs(r) - r) * (1.0 + 16 * ULP), live=True)
        return r + top + (spread * (1.0 + ULP) + 4 * ULP * (np.abs(r) + spread + top))

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        low, high = ends(1.0 - b, spread + ULP * np.abs(1.0 - b))
        top = np.maximum(_entropy_bound(np.maximum(low, 0.0), y), _entropy_bound(np.maximum(high, 0.0), y))
        return np.where(low >= 0.0, top, np.inf)

    def typical_curvature(self, x: Array, y: Array) -> Array:
        return np.maximum(y * np.exp(-np.maximum(x, -100.0)), 1.0)  # at x, and at the best of all predictors

    def response(self, x: Array) -> Array:
        return np.exp(np.minimum(x, 700.0))

    def cvxpy(self, x: Any, y: Array) -> Any:
        return x + cp.exp(np.log(y) - x)

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        return -cp.entr(1 - b) - cp.multiply(1 - b, np.log(y) + 1.0)

    def statement(self) -> Statement:
        return Statement("gamma")

    notation = Notation(
        "%z + %y exp(-%z)",
        "%c h(1 - %u / %c) where h(q) = q log(q / %y) - q",
        "%u <= %c",
        r"%z + %y \, e^{-%z}",
        r"%c \, h(1 - %u / %c) \text{ where } h(q) = q \log(q / %y) - q",
        r"%u \le %c",
    )


def _entropy_bound(q: Array, y: Array) -> Array:
    """Not less than q log(q / y) - q for q >= 0; logarithms are trusted to 4 ulp."""
    own, other = q * np.log(np.where(q > 0.0, q, 1.0)), q * np.log(y)
    return shown(own - other - q + 8 * ULP * (np.abs(own) + np.abs(other) + q), q > 0.0)
