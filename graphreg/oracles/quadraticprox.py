"""What a prox of nodes' losses is, and those of quadratic losses: factorised once, for every step size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..terms import Array, Packed

Memory = Any  # what a prox keeps from round to round: None, arrays, tuples of them


@dataclass(frozen=True)
class Factors:
    """f_i = 1/2 w'V diag(values) V'w - <V pull, w> at each node, V with orthonormal columns; None: I, values all the
    same."""

    V: Array | None  # (g, d, k)
    values: Array  # (g, k); (g, 1) where V is I
    pull: Array  # (g, k)


@dataclass(frozen=True)
class Quadratics:
    """f_i = 1/2 w'H_i w - <h_i, w> at each node."""

    H: Packed
    h: Array  # (g, d)


class AbstractNodeProx(ABC):
    """The prox of the losses of some nodes, ``nodes`` (g,)."""

    nodes: Array

    @abstractmethod
    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        """The minimisers (g, d) for v (g, d) and tau (g,), started from ``warm`` (g, d) where that matters.

        ``memory`` is what the last call returned beside them (None at first): nothing is kept in the object, so that
        a step can be repeated.
        """

    def write_prices(self, memory: Memory, out: tuple[Array, ...]) -> None:
        """Write the prices of the last call, where they are not the gradients at its point, into those of all samples
        (one array per block)."""

    @abstractmethod
    def curvature(self) -> Array:
        """The mean curvature of each node's loss, trace(Hessian) / d, (g,)."""

    def factors(self) -> Factors | None:
        """The losses, where they are quadratic: what a compiled round needs of them."""
        return None

    def quadratics(self) -> Quadratics | None:
        """The same by their Hessians, where these are kept, of more than one coordinate."""
        return None


@dataclass(frozen=True)
class MeanProx(AbstractNodeProx):
    """f_i = 1/2 mass_i ||w||^2 - <pull_i, w>."""

    nodes: Array
    mass: Array
    pull: Array

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        weight = 1.0 / tau
        return (weight[:, None] * v + self.pull) / (weight + self.mass)[:, None], None

    def curvature(self) -> Array:
        return self.mass

    def factors(self) -> Factors:
        return Factors(None, self.mass[:, None], self.pull)


@dataclass(frozen=True)
class QuadraticProx(AbstractNodeProx):
    """f_i = 1/2 w'H_i w - <h_i, w> with H_i = V diag(values) V' thin and h_i = V pull.

    w - v = V (pull - values V'v) / (values + 1/tau): free of cancellation, one factorisation for every tau.
    """

    nodes: Array
    V: Array  # (g, d, k)
    values: Array  # (g, k)
    pull: Array  # (g, k)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        turned = np.matmul(v[:, None, :], self.V)[:, 0, :]
        r = (self.pull - self.values * turned) / (self.values + 1.0 / tau[:, None])
        return v + np.matmul(self.V, r[:, :, None])[:, :, 0], None

    def curvature(self) -> Array:
        return self.values.sum(axis=1) / self.V.shape[1]

    def factors(self) -> Factors:
        return Factors(self.V, self.values, self.pull)


@dataclass(frozen=True)
class GramProx(AbstractNodeProx):
    """f_i = 1/2 w'H_i w - <h_i, w>, factorised when it is first asked for."""

    nodes: Array
    each: Quadratics

    @cached_property
    def factorised(self) -> QuadraticProx:
        """The same by eigenvectors."""
        values, V = np.linalg.eigh(self.each.H.dense())
        values = np.where(values > 1e-15 * values[:, -1:], values, 0.0)
        pull = np.where(values > 0, np.matmul(self.each.h[:, None, :], V)[:, 0, :], 0.0)
        return QuadraticProx(self.nodes, np.ascontiguousarray(V), values, pull)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        return self.factorised(v, tau, warm, memory)

    def curvature(self) -> Array:
        return self.each.H.diagonal.mean(axis=1)

    def factors(self) -> Factors:
        if self.each.H.d == 1:
            return Factors(None, self.each.H.rows, self.each.h)
        return self.factorised.factors()

    def quadratics(self) -> Quadratics | None:
        return None if self.each.H.d == 1 else self.each
