"""Sums of penalties: of disjoint blocks of coordinates, and of a weighted l1 norm with another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..terms import ULP, Array, RecessionCone
from ..terms.penalties import L1, AbstractOneSided, AbstractPenalty, FlowDomain, OwnDomain
from .source import AbstractReadPenalty

Blocked = Sequence[tuple[Array, AbstractPenalty]]  # penalties, each with the coordinates that it acts on


def _asked(name: str, joined: Callable[[Blocked, list[Array]], Array]) -> Any:
    """A method that asks each block by this name, with its columns of the rows, and joins the answers."""

    def method(self: OfBlocks, *rows: Array) -> Array:
        answers: list[Array] = []
        for columns, phi in self.blocks:
            asked = phi.domain if hasattr(FlowDomain, name) else phi
            answers.append(getattr(asked, name)(*(each[:, columns] for each in np.broadcast_arrays(*rows))))
        return joined(self.blocks, answers)

    return method


def _beside(blocks: Blocked, parts: list[Array]) -> Array:
    """The rows (m, k) of these parts."""
    out = np.empty((len(parts[0]), sum(len(columns) for columns, _ in blocks)))
    for (columns, _), part in zip(blocks, parts, strict=True):
        out[:, columns] = part
    return out


@dataclass(frozen=True, eq=False, repr=False)
class OfBlocks(OwnDomain):
    """Mixed into a penalty ``phi(z) = sum_g phi_g(z_g)`` over disjoint blocks of coordinates that hold all of them."""

    blocks: Blocked

    value, conjugate = (_asked(name, lambda _, parts: np.add.reduce(parts)) for name in ("value", "conjugate"))
    value_bound, conjugate_bound = (
        _asked(name, lambda blocks, tops: np.add.reduce(tops) * (1.0 + len(blocks) * ULP))
        for name in ("value_bound", "conjugate_bound")
    )
    gauge, gauge_at_zero = (
        _asked(name, lambda _, parts: np.maximum.reduce(parts)) for name in ("gauge", "gauge_at_zero")
    )
    step_to_boundary = _asked("step_to_boundary", lambda _, parts: np.minimum.reduce(parts))
    clip, slacks, span = (_asked(name, _beside) for name in ("clip", "slacks", "span"))
    conductance, conduct = (_asked(name, _beside) for name in ("conductance", "conduct"))

    def prox(self, v: Array, step: Any) -> Array:
        return _beside(self.blocks, [phi.prox(v[:, columns], step) for columns, phi in self.blocks])

    def recession(self, k: int) -> RecessionCone | None:
        cones = [phi.domain.recession(len(columns)) for columns, phi in self.blocks]
        ends = [np.vstack([cone.lower, cone.upper]) for cone in cones if cone is not None and cone.equations is None]
        return RecessionCone(*_beside(self.blocks, ends)) if len(ends) == len(cones) else None

    def interior(self, k: int) -> Array:
        return _beside(self.blocks, [phi.domain.interior(len(columns))[None] for columns, phi in self.blocks])[0]

    def accuracy(self) -> float:
        return max(phi.accuracy() for _, phi in self.blocks)

    def strong_convexity(self) -> float:
        return min(phi.strong_convexity() for _, phi in self.blocks)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Blocks(OfBlocks, AbstractReadPenalty):
    """A sum of even functions of blocks of coordinates."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class OneSidedBlocks(OfBlocks, AbstractReadPenalty, AbstractOneSided):
    """A sum of functions of blocks of coordinates that are not all even."""


def blocks(parts: Sequence[tuple[Array, AbstractPenalty]]) -> AbstractPenalty:
    """The sum of functions of disjoint blocks of coordinates; the function itself where there is one block."""
    if len(parts) == 1:
        return parts[0][1]
    one_sided = any(isinstance(phi, AbstractOneSided) for _, phi in parts)
    return (OneSidedBlocks if one_sided else Blocks)(tuple(parts))


@final
@dataclass(frozen=True, eq=False, repr=False)
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

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]] | None:
        rest = self.rest.parts() if isinstance(self.rest, AbstractReadPenalty) else [(1.0, self.rest)]
        alike = (self.weights == self.weights[0]).all()
        return [(float(self.weights[0]), L1()), *rest] if rest and alike else None


def _soft(v: Array, threshold: Array) -> Array:
    return v - np.clip(v, -threshold, threshold)
