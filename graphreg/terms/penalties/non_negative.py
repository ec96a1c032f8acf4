"""The non-negative cone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, Notation, Statement
from ._rows import LEAST_SLACK
from .box import AbstractBox, SupportedCone


@dataclass(frozen=True)
class NonNegative(AbstractBox):
    """The constraint ``z >= 0`` in every coordinate: phi is 0 there and +inf elsewhere. At nodes, along arrows and
    on other rows that have a sign.

    ``phi*(u) = 0`` where ``u <= 0`` and +inf elsewhere (the indicator of the polar cone).

    Examples
    --------
    >>> gr.NonNegative().prox(np.array([[3.0, -4.0]]), 1.0)
    array([[3., 0.]])
    """

    low, high = 0.0, np.inf

    def project(self, z: Array) -> Array:
        return np.maximum(z, 0.0)

    def conjugate(self, u: Array) -> Array:
        return np.where((u <= 0).all(axis=1), 0.0, np.inf)

    def cvxpy(self, Z: Any) -> Any:
        return [Z >= 0]

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return np.minimum(v, 0.0)

    @property
    def domain(self) -> SupportedCone:
        return SupportedCone(self, LEAST_SLACK)

    def restricted(self, columns: Array) -> NonNegative:
        return self

    def cvxpy_conjugate(self, U: Any) -> Any:
        return [U <= 0]

    def statement(self, k: int) -> Statement:
        return Statement("NonNegative")

    notation = Notation("[%z >= 0]", domain="%u <= 0", latex_value=r"\iota\{%z \ge 0\}", latex_domain=r"%u \le 0")
