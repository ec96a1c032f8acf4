"""Sums of penalties of disjoint blocks of coordinates."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...errors import TermError
from ..bounds import ULP
from ..records import Array, Notation, RecessionCone, defined
from ._rows import split
from .base import AbstractOneSided
from .domain import OwnDomain
from .penalty import AbstractPenalty


@dataclass(frozen=True, eq=False)
class AbstractBlocks(OwnDomain, AbstractPenalty):
    """``phi(z) = sum_g phi_g(z_g)`` over blocks of coordinates that are disjoint and hold all of them."""

    blocks: tuple[tuple[Array, AbstractPenalty], ...]

    def check(self, k: int) -> None:
        size = sum(len(columns) for columns, _ in self.blocks)
        if k != size:
            raise TermError(f"the blocks have {size} coordinates, and the term has {k}")

    def value(self, z: Array) -> Array:
        return sum(phi.value(z[:, columns]) for columns, phi in self.blocks)  # pyright: ignore[reportReturnType]

    def prox(self, v: Array, step: Any) -> Array:
        return self.each(v, lambda phi, rows: phi.prox(rows, step))

    def conjugate(self, u: Array) -> Array:
        return sum(phi.conjugate(u[:, columns]) for columns, phi in self.blocks)  # pyright: ignore[reportReturnType]

    def cvxpy(self, Z: Any) -> Any:
        domain: list[Any] = []
        values: list[Any] = []
        for columns, phi in self.blocks:
            more, value = split(phi.cvxpy(Z[:, columns]))
            domain += more
            values.append(value)
        return [*domain, sum(values[1:], values[0])]

    def gauge(self, u: Array) -> Array:
        return np.maximum.reduce([phi.domain.gauge(u[:, columns]) for columns, phi in self.blocks])

    def gauge_at_zero(self, u: Array) -> Array:
        return np.maximum.reduce([phi.gauge_at_zero(u[:, columns]) for columns, phi in self.blocks])

    def clip(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.domain.clip(rows))

    def reach(self, start: Array, end: Array) -> Array:
        return np.minimum.reduce([phi.domain.reach(start[:, columns], end[:, columns]) for columns, phi in self.blocks])

    def subgradient(self, z: Array) -> Array:
        return self.each(z, lambda phi, rows: phi.subgradient(rows))

    def room(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.domain.room(rows))

    def share(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.domain.share(rows))

    def span(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.domain.span(rows))

    def conductance(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.domain.conductance(rows))

    def conduct(self, conductance: Array, z: Array) -> Array:
        out = np.empty_like(z)
        for columns, phi in self.blocks:
            out[:, columns] = phi.domain.conduct(np.broadcast_to(conductance, z.shape)[:, columns], z[:, columns])
        return out

    @abstractmethod
    def interior(self, k: int) -> Array: ...

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        bounds = [phi.conjugate_bound(u[:, columns], spread[:, columns]) for columns, phi in self.blocks]
        return np.add.reduce(bounds) * (1.0 + len(bounds) * ULP)

    def value_bound(self, z: Array, spread: Array) -> Array:
        bounds = [phi.value_bound(z[:, columns], spread[:, columns]) for columns, phi in self.blocks]
        return np.add.reduce(bounds) * (1.0 + len(bounds) * ULP)

    def recession(self, k: int) -> RecessionCone | None:
        low, high = np.zeros(k), np.zeros(k)
        for columns, phi in self.blocks:
            cone = phi.domain.recession(len(columns))
            if cone is None or cone.equations is not None:
                return None
            low[columns], high[columns] = cone.lower, cone.upper
        return RecessionCone(low, high)

    def strong_convexity(self) -> float:
        return min(phi.strong_convexity() for _, phi in self.blocks)

    def each(self, rows: Array, function: Callable[[AbstractPenalty, Array], Array]) -> Array:
        out = np.empty_like(rows, dtype=float)
        for columns, phi in self.blocks:
            out[:, columns] = function(phi, rows[:, columns])
        return out

    @property
    def notation(self) -> Notation:
        each = [(phi.notation, ",".join(str(j) for j in columns)) for columns, phi in self.blocks]

        def joined(name: str, separator: str = " + ", latex: bool = False) -> str:
            parts: list[list[str]] = []
            for n, at in each:
                index = f"{{{at}}}" if latex else f"({at})" if "," in at else at
                written = getattr(n, name)
                parts += [defined(re.sub("%[zu]", rf"[\g<0>]_{index}", written))] if written else []
            more = ", ".join(dict.fromkeys(each for part in parts for each in part[1:]))
            where = (r" \text{ where } " if latex else " where ") + more if more else ""
            return separator.join(part[0] for part in parts) + where

        return Notation(
            joined("value"),
            joined("conjugate"),
            joined("domain", ", "),
            joined("latex_value", latex=True),
            joined("latex_conjugate", latex=True),
            joined("latex_domain", r",\ ", latex=True),
        )


@final
@dataclass(frozen=True, eq=False)
class Blocks(AbstractBlocks):
    """A sum of even functions of blocks of coordinates."""

    def interior(self, k: int) -> Array:
        return np.zeros(k)


@final
@dataclass(frozen=True, eq=False)
class OneSidedBlocks(AbstractBlocks, AbstractOneSided):
    """A sum of functions of blocks of coordinates that are not all even."""

    def interior(self, k: int) -> Array:
        return self.each(np.zeros((1, k)), lambda phi, rows: phi.domain.interior(rows.shape[1])[None])[0]


def blocks(parts: Sequence[tuple[Array, AbstractPenalty]]) -> AbstractPenalty:
    """The sum of functions of disjoint blocks of coordinates; the function itself where there is one block."""
    if len(parts) == 1:
        return parts[0][1]
    one_sided = any(isinstance(phi, AbstractOneSided) for _, phi in parts)
    return (OneSidedBlocks if one_sided else Blocks)(tuple(parts))
