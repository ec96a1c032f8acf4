"""Flows on edges between parts, as terms of the problem that each part has alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...terms import Array, SampleBlock, Strength
from ...terms.losses import AbstractSmoothLoss

EPS = 2.0**-52


@dataclass(frozen=True, repr=False)
class HeldFlows(AbstractSmoothLoss):
    """What given flows take from a node: ``l(x; y) = <y, x>`` with the flow y of an edge, or minus it at its head.

    The conjugate is 0 at b = y and +inf elsewhere: no price but y itself is conserved, and no bound moves it.
    """

    data: Any = None

    def __post_init__(self) -> None:
        """There are no data to look at."""

    def called(self) -> str:
        return "a flow between parts"

    def value(self, x: Array, y: Array) -> Array:
        return np.einsum("ij,ij->i", x, y)

    def gradient(self, x: Array, y: Array) -> Array:
        return y.copy()

    def curvature(self, x: Array, y: Array) -> Array:
        return np.zeros(x.shape)

    def conjugate(self, b: Array, y: Array) -> Array:
        return np.where((b == y).all(axis=1), 0.0, np.inf)

    def domain(self, y: Array) -> tuple[Array, Array]:
        return y, y

    def conductance(self, b: Array, y: Array) -> Array:
        return np.zeros(b.shape)

    def conjugate_bound(self, b: Array, spread: Array, y: Array) -> Array:
        rounded = (spread <= 2.0 * EPS * np.abs(b)).all(axis=1)  # what is allowed for a quotient, which by 1 is exact
        return np.where(rounded, self.conjugate(b, y), np.inf)

    def cvxpy(self, x: Any, y: Array) -> Any:
        raise NotImplementedError  # no part is compiled


def held_block(nodes: Array, flows: Array, n: int) -> SampleBlock:
    """Flows (C, d) that are taken from nodes (C,), of a form of n nodes."""
    return SampleBlock(HeldFlows(), Strength(1.0), nodes, None, flows, np.zeros(flows.shape), np.ones(len(nodes)), n)
