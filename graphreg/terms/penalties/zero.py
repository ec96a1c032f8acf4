"""The indicator of zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, Notation, Statement
from .base import AbstractConstraint, AbstractSupercoercive


@dataclass(frozen=True)
class Zero(AbstractSupercoercive, AbstractConstraint):
    """The constraint ``z = 0``: the two ends of the edge agree (a consensus), or the node is fixed at its centre.

    ``phi(z) = 0`` at z = 0 exactly and +inf elsewhere; ``phi*(u) = 0`` everywhere, so flows have no capacity.

    Examples
    --------
    >>> gr.Zero().value(np.array([[0.0, 0.0], [1.0, 0.0]]))
    array([ 0., inf])
    """

    def value(self, z: Array) -> Array:
        return np.where((z == 0).all(axis=1), 0.0, np.inf)

    def project(self, z: Array) -> Array:
        return np.zeros_like(z)

    def conjugate(self, u: Array) -> Array:
        return np.zeros(len(u))

    def cvxpy(self, Z: Any) -> Any:
        return [Z == 0]

    def gauge_at_zero(self, u: Array) -> Array:
        return np.zeros(len(u))

    def dual_prox(self, v: Array, step: Array, weight: Array) -> Array:
        return v

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return np.zeros(len(u))

    def cvxpy_conjugate(self, U: Any) -> Any:
        return []  # 0, without a constraint

    def statement(self, k: int) -> Statement:
        return Statement("Zero")

    def settle(self, z: list[Any], exact: Callable[[float], Any]) -> list[Any]:
        return [exact(0.0)] * len(z)

    notation = Notation("[%z = 0]", latex_value=r"\iota\{%z = 0\}")
