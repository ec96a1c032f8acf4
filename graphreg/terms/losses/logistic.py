"""Logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import ULP, ends, shown
from ..records import Array, Notation, Statement
from .base import AbstractPeakedLoss
from .loss import INSIDE
from .samples import AbstractTwoClasses


@dataclass(frozen=True, repr=False)
class LogisticLoss(AbstractTwoClasses, AbstractPeakedLoss):
    """Logistic regression: ``l(x; y) = log(1 + exp(-y x))`` with the label y in ``{-1, 1}``.

    With ``q = -y b``, ``l*(b; y) = q log q + (1 - q) log(1 - q)`` for q in [0, 1] and +inf elsewhere.

    Parameters
    ----------
    data : NodeData
        With features and one binary target, coded {0, 1}, {-1, 1} or as booleans.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.

    Examples
    --------
    >>> votes = gr.NodeData.from_dict({"a": ([[1.0]] * 4, [0, 1, 1, 1])})
    >>> answer = gr.Problem(gr.LogisticLoss(votes)).solve(gap=1e-12)
    >>> round(answer.coef.item(), 3)  # the logarithm of the odds, 3 to 1
    1.099
    """

    def value(self, x: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * x)

    def gradient(self, x: Array, y: Array) -> Array:
        return -y * _sigmoid(-y * x)

    def curvature(self, x: Array, y: Array) -> Array:
        return _sigmoid(x) * _sigmoid(-x)

    def conjugate(self, b: Array, y: Array) -> Array:
        q = -y * b
        inside = (q >= 0.0) & (q <= 1.0)
        q = np.where(inside, q, 0.5)
        entropy = q * np.log(np.where(q > 0, q, 1.0)) + (1 - q) * np.log1p(-np.where(q < 1, q, 0.0))
        return np.where(inside, entropy, np.inf)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def clip(self, b: Array, y: Array) -> Array:
        # The entropy is finite up to 0, where small prices are exact; only the end q = 1 needs a margin.
        return -y * np.clip(-y * b, 1e-300, INSIDE)

    def conductance(self, b: Array, y: Array) -> Array:
        q = np.clip(-y * b, 0.0, 1.0)
        return q * (1.0 - q)

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        return shown(np.logaddexp(0.0, -y * r + spread * (1.0 + ULP) + ULP * np.abs(r)) * (1.0 + 16 * ULP), live=True)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        q = -y * b
        low, high = ends(q, spread)
        top = np.maximum(_entropy_bound(np.maximum(low, 0.0)), _entropy_bound(np.minimum(high, 1.0)))
        return np.where((low >= 0.0) & (high <= 1.0), top, np.inf)

    def smoothness(self) -> float:
        return 0.25

    def response(self, x: Array) -> Array:
        """The probability of the second class."""
        return _sigmoid(x)

    def cvxpy(self, x: Any, y: Array) -> Any:
        return cp.logistic(cp.multiply(-y, x))

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        q = cp.multiply(-y, b)
        return -cp.entr(q) - cp.entr(1 - q)

    def statement(self) -> Statement:
        return Statement("logistic")

    notation = Notation(
        "log(1 + exp(-%y %z))",
        "%c h(-%y %u / %c) where h(q) = q log q + (1 - q) log(1 - q)",
        "0 <= -%y %u <= %c",
        r"\log(1 + e^{-%y %z})",
        r"%c \, h(-%y %u / %c) \text{ where } h(q) = q \log q + (1 - q) \log(1 - q)",
        r"0 \le -%y %u \le %c",
    )


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))  # never overflows; both branches are exact for large |x|
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def _entropy_bound(q: Array) -> Array:
    """Not less than q log q + (1 - q) log(1 - q) for q in [0, 1]; 0 log 0 = 0. Logarithms are trusted to 4 ulp."""
    q = np.clip(q, 0.0, 1.0)
    own = q * np.log(np.where(q > 0.0, q, 1.0))
    other = (1.0 - q) * np.log1p(-np.where(q < 1.0, q, 0.0))
    return shown((own + other) * (1.0 - 16 * ULP), (q > 0.0) & (q < 1.0))
