"""Sums of penalties: of disjoint blocks of coordinates, and of a weighted l1 norm with another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone
from ..terms.penalties import AbstractOneSided, AbstractPenalty, OwnDomain
from .source import AbstractReadPenalty


@dataclass(frozen=True, eq=False)
class OfBlocks(OwnDomain):
    """Mixed into a penalty ``phi(z) = sum_g phi_g(z_g)`` over disjoint blocks of coordinates that hold all of them."""

    blocks: tuple[tuple[Array, AbstractPenalty], ...]

    def on(self, what: Callable[..., Any], *rows: Array) -> list[Any]:
        """The values of ``what`` for each block, from the block and its columns of some rows."""
        return [what(phi, *(each[:, columns] for each in rows)) for columns, phi in self.blocks]

    def each(self, what: Callable[..., Array], *rows: Array) -> Array:
        """The values of each coordinate, (m, k)."""
        out = np.empty(np.broadcast_shapes(*(each.shape for each in rows)))
        for (columns, _), found in zip(self.blocks, self.on(what, *rows), strict=True):
            out[:, columns] = found
        return out

    def value(self, z: Array) -> Array:
        return np.add.reduce(self.on(lambda phi, z: phi.value(z), z))

    def prox(self, v: Array, step: Any) -> Array:
        return self.each(lambda phi, v: phi.prox(v, step), v)

    def conjugate(self, u: Array) -> Array:
        return np.add.reduce(self.on(lambda phi, u: phi.conjugate(u), u))

    def gauge(self, u: Array) -> Array:
        return np.maximum.reduce(self.on(lambda phi, u: phi.domain.gauge(u), u))

    def gauge_at_zero(self, u: Array) -> Array:
        return np.maximum.reduce(self.on(lambda phi, u: phi.gauge_at_zero(u), u))

    def clip(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.clip(u), u)

    def step_to_boundary(self, start: Array, end: Array) -> Array:
        return np.minimum.reduce(self.on(lambda phi, *ends: phi.domain.step_to_boundary(*ends), start, end))

    def slacks(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.slacks(u), u)

    def span(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.span(u), u)

    def conductance(self, u: Array) -> Array:
        return self.each(lambda phi, u: phi.domain.conductance(u), u)

    def conduct(self, conductance: Array, z: Array) -> Array:
        return self.each(lambda phi, c, z: phi.domain.conduct(c, z), np.broadcast_to(conductance, z.shape), z)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        return self._bound(lambda phi, u, spread: phi.conjugate_bound(u, spread), u, spread)

    def value_bound(self, z: Array, spread: Array) -> Array:
        return self._bound(lambda phi, z, spread: phi.value_bound(z, spread), z, spread)

    def _bound(self, what: Callable[..., Array], *rows: Array) -> Array:
        return np.add.reduce(self.on(what, *rows)) * (1.0 + len(self.blocks) * ULP)

    def recession(self, k: int) -> RecessionCone | None:
        low, high = np.zeros(k), np.zeros(k)
        for columns, phi in self.blocks:
            cone = phi.domain.recession(len(columns))
            if cone is None or cone.equations is not None:
                return None
            low[columns], high[columns] = cone.lower, cone.upper
        return RecessionCone(low, high)

    def interior(self, k: int) -> Array:
        return self.each(lambda phi, rows: phi.domain.interior(rows.shape[1]), np.zeros((1, k)))[0]

    def accuracy(self) -> float:
        return max(phi.accuracy() for _, phi in self.blocks)

    def strong_convexity(self) -> float:
        return min(phi.strong_convexity() for _, phi in self.blocks)


@final
@dataclass(frozen=True, eq=False)
class Blocks(OfBlocks, AbstractReadPenalty):
    """A sum of even functions of blocks of coordinates."""


@final
@dataclass(frozen=True, eq=False)
class OneSidedBlocks(OfBlocks, AbstractReadPenalty, AbstractOneSided):
    """A sum of functions of blocks of coordinates that are not all even."""


def blocks(parts: Sequence[tuple[Array, AbstractPenalty]]) -> AbstractPenalty:
    """The sum of functions of disjoint blocks of coordinates; the function itself where there is one block."""
    if len(parts) == 1:
        return parts[0][1]
    one_sided = any(isinstance(phi, AbstractOneSided) for _, phi in parts)
    return (OneSidedBlocks if one_sided else Blocks)(tuple(parts))


@final
@dataclass(frozen=True, eq=False)
class Thresholded(OwnDomain, AbstractReadPenalty):
    """``phi(z) = sum_j w_j |z_j| + rest(z)``, w >= 0, where rest does not change with the signs of coordinates.

    With S the soft threshold, ``prox(v, t) = rest.prox(S(v, t w), t)`` (Yu, On decomposing the proximal map, 2013,
    theorem 1: rest keeps signs) and ``phi*(u) = rest*(S(u, w))``, as rest* grows with every |u_j|.
    """

    weights: Array
    rest: AbstractPenalty

    def value(self, z: Array) -> Array:
        return np.abs(z) @ self.weights + self.rest.value(z)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.rest.prox(_soft(v, t[:, None] * self.weights), t)

    def conjugate(self, u: Array) -> Array:
        return self.rest.conjugate(_soft(u, self.weights))

    def recession(self, k: int) -> RecessionCone | None:
        return RecessionCone(np.zeros(k), np.zeros(k)) if self.weights.all() else self.rest.domain.recession(k)

    def strong_convexity(self) -> float:
        return self.rest.strong_convexity()


def _soft(v: Array, threshold: Array) -> Array:
    return v - np.clip(v, -threshold, threshold)
