"""Support vector regression with squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import checked, positive
from ..bounds import ULP, half_square
from ..records import Array, Bends, Notation, Statement
from .base import AbstractDifferenceLoss, AbstractSmoothLoss
from .loss import AbstractLoss


@dataclass(frozen=True, repr=False)
class SquaredEpsilonInsensitiveLoss(AbstractDifferenceLoss, AbstractSmoothLoss):
    """The squared epsilon-insensitive loss of support vector regression: ``1/2 max(0, |x - y| - epsilon)^2``.

    Its conjugate is ``l*(b; y) = b^2/2 + epsilon |b| + b y``.

    Parameters
    ----------
    data : NodeData
        With features and one numeric target.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.
    epsilon : float
        How far a predictor may be from its target at no cost, in units of the target; positive.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> loss = gr.SquaredEpsilonInsensitiveLoss(five, epsilon=2.0)  # what is within 2 does not pull
    >>> round(gr.Problem(loss).solve().coef.item(), 3)
    5.0
    """

    epsilon: float = checked(positive, 0.1)

    def _beyond(self, r: Array) -> Array:
        """What of residuals lies beyond epsilon, with their sign."""
        return r - np.clip(r, -self.epsilon, self.epsilon)

    def value(self, x: Array, y: Array) -> Array:
        return self._beyond(x - y) ** 2 / 2

    def gradient(self, x: Array, y: Array) -> Array:
        return self._beyond(x - y)

    def curvature(self, x: Array, y: Array) -> Array:
        return (np.abs(x - y) >= self.epsilon).astype(float)

    def conjugate(self, b: Array, y: Array) -> Array:
        return b * b / 2 + self.epsilon * np.abs(b) + b * y

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        return v - step * self._beyond(v - y) / (1.0 + step)

    domain = AbstractLoss.domain  # slopes have no limits

    def conductance(self, b: Array, y: Array) -> Array:
        return np.clip(np.abs(b) / self.epsilon, 1e-3, 1.0)  # l* bends sharply at 0

    def bends(self, y: Array) -> Bends:
        one, epsilon = np.ones(y.shape), np.full(y.shape, float(self.epsilon))
        return Bends(one, epsilon, ((-epsilon, -one, 0.0 * one), (epsilon, one, 0.0 * one)))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        return half_square(np.maximum((np.abs(r) + spread) * (1.0 + ULP) - self.epsilon, 0.0) * (1.0 + ULP))

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        b = np.abs(b) + spread
        return (half_square(b) + self.epsilon * b) * (1.0 + 4 * ULP)

    def smoothness(self) -> float:
        return 1.0

    def cvxpy(self, x: Any, y: Array) -> Any:
        return cp.square(cp.pos(cp.abs(x - y) - self.epsilon)) / 2

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        return cp.square(b) / 2 + self.epsilon * cp.abs(b) + cp.multiply(b, y)

    def statement(self) -> Statement:
        return Statement("squared_epsilon", float(self.epsilon))

    @property
    def notation(self) -> Notation:
        epsilon = f"{self.epsilon:g}"
        return Notation(
            f"h(%z - %y) where h(r) = max(0, |r| - {epsilon})^2 / 2",
            f"%u^2 / (2 %c) + {epsilon} |%u| + %u %y",
            "",
            rf"h(%z - %y) \text{{ where }} h(r) = \tfrac12 \max(0, |r| - {epsilon})^2",
            rf"\frac{{%u^2}}{{2 %c}} + {epsilon} \, |%u| + %u \, %y",
        )
