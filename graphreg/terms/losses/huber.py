"""Huber's robust regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.lazy import cp
from ...checks import checked, positive
from ..bounds import ULP, half_square, shown
from ..records import Array, Bends, Notation, Statement
from .base import AbstractDifferenceLoss, AbstractPeakedLoss


@dataclass(frozen=True, repr=False)
class HuberLoss(AbstractDifferenceLoss, AbstractPeakedLoss):
    """Huber's loss: with r = x - y, ``1/2 r^2`` up to |r| = delta, then ``delta |r| - delta^2/2``.

    Its conjugate is ``l*(b; y) = b^2/2 + b y`` for |b| <= delta and +inf elsewhere.

    Parameters
    ----------
    data : NodeData
        With features and one numeric target.
    scale : {"mean", "sum"}, float or mapping
        See `AbstractLoss`.
    delta : float
        Where the loss turns from quadratic to linear, in units of the target; positive.

    Examples
    --------
    >>> five = gr.NodeData.from_dict({"a": ([[1.0]] * 5, [1.0, 2.0, 3.0, 4.0, 10.0])})
    >>> round(gr.Problem(gr.HuberLoss(five, delta=1.0)).solve().coef.item(), 3)  # 10 pulls no more than 4 does
    3.0
    """

    delta: float = checked(positive, 1.0)

    def value(self, x: Array, y: Array) -> Array:
        r = np.abs(x - y)
        return np.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2))

    def gradient(self, x: Array, y: Array) -> Array:
        return np.clip(x - y, -self.delta, self.delta)

    def curvature(self, x: Array, y: Array) -> Array:
        return (np.abs(x - y) <= self.delta).astype(float)

    def conjugate(self, b: Array, y: Array) -> Array:
        return np.where(np.abs(b) <= self.delta, b * b / 2 + b * y, np.inf)

    def prox(self, v: Array, step: Any, y: Array) -> Array:
        return v - np.clip(step * (v - y) / (1.0 + step), -step * self.delta, step * self.delta)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return np.full(y.shape, -self.delta), np.full(y.shape, self.delta)

    def conductance(self, b: Array, y: Array) -> Array:
        return np.maximum(1.0 - np.abs(b) / self.delta, 1e-3)

    def bends(self, y: Array) -> Bends:
        one, delta = np.ones(y.shape), np.full(y.shape, float(self.delta))
        return Bends(0.0 * one, -delta, ((-delta, one, 0.0 * one), (delta, -one, 0.0 * one)))

    def value_bound(self, r: Array, spread: Array, y: Array) -> Array:
        r = np.abs(r) + spread
        far = shown(self.delta * (r - self.delta / 2) * (1.0 + 4 * ULP), live=True)
        return np.where(r <= self.delta, half_square(r), far)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        b = np.abs(b) + spread
        return np.where(b * (1.0 + ULP) <= self.delta, half_square(b), np.inf)

    def smoothness(self) -> float:
        return 1.0

    def cvxpy(self, x: Any, y: Array) -> Any:
        return cp.huber(x - y, self.delta) / 2  # pyright: ignore[reportArgumentType]

    def cvxpy_conjugate(self, b: Any, y: Array) -> Any:
        # the domain as part of the value: |b| <= delta is added through an indicator of its own
        return [cp.abs(b) <= self.delta, cp.square(b) / 2 + cp.multiply(b, y)]

    def statement(self) -> Statement:
        return Statement("huber", float(self.delta))

    @property
    def notation(self) -> Notation:
        d, rest = f"{self.delta:g}", f"{self.delta**2 / 2:g}"
        times, dot = ("", "") if d == "1" else (f"{d} ", rf"{d} \, ")
        return Notation(
            f"huber_{d}(%z - %y) where huber_{d}(t) = t^2 / 2 up to |t| = {d}, then {times}|t| - {rest}",
            "%u^2 / (2 %c) + %u %y",
            f"|%u| <= {times}%c",
            rf"h_{{{d}}}(%z - %y) \text{{ where }} h_{{{d}}}(t) = t^2 / 2 \text{{ up to }} |t| = {d}, "
            rf"\text{{ then }} {dot}|t| - {rest}",
            r"\frac{%u^2}{2 %c} + %u %y",
            rf"|%u| \le {dot}%c",
        )
