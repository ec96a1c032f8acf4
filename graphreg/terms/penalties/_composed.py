"""Penalties made of others: functions of the Euclidean norm, thresholds before one, a square beside one, blocks."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..bounds import ULP, shown
from ..records import Array, Notation, RecessionCone, defined
from ._curves import Curve, Sides
from ._formulas import SOFT, conjugated, outwards, times, typeset, weighted, weighted_l1, with_hubers
from ._rows import INSIDE, longest, onto_ball, row_norm, split
from ._separable import written
from .base import AbstractOneSided, AbstractSmoothPenalty, AbstractSupercoercive
from .penalty import AbstractPenalty


@dataclass(frozen=True, eq=False)
class AbstractRadial(AbstractPenalty):
    """``phi(z) = h(||z||_2)`` with h >= 0 piecewise quadratic on r >= 0, given by its derivative.

    ``phi*(u) = h*(||u||_2)`` (Parikh and Boyd, Proximal algorithms, 6.5.1 and 6.7).
    """

    curve: Curve

    @cached_property
    def h(self) -> Sides:
        return Sides.of([self.curve])

    @property
    def last(self) -> float:
        """The slope of h at infinity."""
        return float(self.h.last[0])

    def value(self, z: Array) -> Array:
        return self.h.value(row_norm(z)[:, None])[:, 0]

    def prox(self, v: Array, step: Any) -> Array:
        r = row_norm(v)[:, None]
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return v * (self.h.prox(r, t) / np.maximum(r, 1e-300))

    def conjugate(self, u: Array) -> Array:
        return self.h.conjugate(row_norm(u)[:, None])[:, 0]

    @abstractmethod
    def subgradient(self, z: Array) -> Array: ...

    def along(self, z: Array) -> Array:
        """h'(||z||) z / ||z||, with the smaller slope where it jumps, and 0 at 0."""
        r = np.maximum(row_norm(z), 1e-300)[:, None]
        return z * (self.h.slope(r) / r)

    def cvxpy(self, Z: Any) -> Any:
        r = cp.reshape(cp.norm(Z, 2, axis=1), (Z.shape[0], 1), order="C")
        return cp.sum(written(self.h, r, r), axis=1)

    def gauge(self, u: Array) -> Array:
        return row_norm(u) / self.last

    def gauge_at_zero(self, u: Array) -> Array:
        return _ratio(row_norm(u), float(self.h.first[0]))

    def clip(self, u: Array) -> Array:
        return onto_ball(u, INSIDE * self.last) if np.isfinite(self.last) else u

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        r = longest(u, spread)
        top = self.h.conjugate(r[:, None])[:, 0]
        return shown(top * (1.0 + 16.0 * ULP), (top > 0.0) & (r > 0.0))

    def value_bound(self, z: Array, spread: Array) -> Array:
        r = longest(z, spread)
        top = self.h.value(r[:, None])[:, 0]
        return shown(top * (1.0 + 16.0 * ULP), top > 0.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    def strong_convexity(self) -> float:
        return float(self.h.bend.min()) if not self.h.jump[:, 1:].any() or self.h.bend.all() else 0.0

    @property
    def notation(self) -> Notation:
        domain = (f"||%u||_2 <= {times(self.last)}%c", rf"\|%u\|_2 \le {times(self.last)}%c")
        domain = domain if np.isfinite(self.last) else ("", "")
        value = with_hubers(outwards(self.h, 0, "||%z||_2", "||%z||_2"))
        conjugate = with_hubers(conjugated("||%u||_2", "x >= 0", outwards(self.h, 0, "x", "x")))
        return Notation(value, conjugate, domain[0], typeset(value), typeset(conjugate), domain[1])


@final
@dataclass(frozen=True, eq=False)
class Radial(AbstractRadial):
    """A function of the Euclidean norm with a kink."""

    def subgradient(self, z: Array) -> Array:
        return self.along(z)


@final
@dataclass(frozen=True, eq=False)
class SmoothRadial(AbstractRadial, AbstractSmoothPenalty):
    """A function of the Euclidean norm without kinks."""

    def gradient(self, z: Array) -> Array:
        return self.along(z)

    def subgradient(self, z: Array) -> Array:
        return self.along(z)

    def curvature(self, z: Array) -> Array:
        r = np.maximum(row_norm(z), 1e-300)[:, None]
        along, across = self.h.curvature(r)[:, :, None], (self.h.slope(r) / r)[:, :, None]
        unit = z / r
        return across * np.eye(z.shape[1]) + (along - across) * unit[:, :, None] * unit[:, None, :]

    def smoothness(self) -> float:
        return float(self.h.bend.max())


@final
@dataclass(frozen=True, eq=False)
class Thresholded(AbstractPenalty):
    """``phi(z) = sum_j w_j |z_j| + rest(z)``, w >= 0, where rest does not change with the signs of coordinates.

    With S the soft threshold, ``prox(v, t) = rest.prox(S(v, t w), t)`` (Yu, On decomposing the proximal map, 2013,
    theorem 1: rest keeps signs) and ``phi*(u) = rest*(S(u, w))``, as rest* grows with every |u_j|.
    """

    weights: Array
    rest: AbstractPenalty

    def check(self, k: int) -> None:
        if k != len(self.weights):
            raise TermError(f"this sum has {len(self.weights)} coordinates, and the term has {k}")

    def value(self, z: Array) -> Array:
        return np.abs(z) @ self.weights + self.rest.value(z)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.rest.prox(_soft(v, t[:, None] * self.weights), t)

    def conjugate(self, u: Array) -> Array:
        return self.rest.conjugate(_soft(u, self.weights))

    def cvxpy(self, Z: Any) -> Any:
        domain, rest = split(self.rest.cvxpy(Z))
        return [*domain, cp.abs(Z) @ self.weights + rest]

    def clip(self, u: Array) -> Array:
        out = ~np.isfinite(self.conjugate(u))
        if out.any():
            moved = np.clip(u, -self.weights, self.weights) + (1.0 - 1e-12) * self.rest.clip(_soft(u, self.weights))
            u = super().clip(np.where(out[:, None], moved, u))
        return u

    def subgradient(self, z: Array) -> Array:
        return self.weights * np.sign(z) + self.rest.subgradient(z)

    def recession(self, k: int) -> RecessionCone | None:
        return RecessionCone(np.zeros(k), np.zeros(k)) if self.weights.all() else self.rest.recession(k)

    def strong_convexity(self) -> float:
        return self.rest.strong_convexity()

    @property
    def notation(self) -> Notation:
        n = self.rest.notation
        value, t = weighted_l1(self.weights), weighted(self.weights)

        def at(text: str, latex: bool = False) -> str:
            formula, *rest = defined(text)
            put = formula.replace("%u", f"S(%u, {t})")
            where = [typeset(f" where {SOFT}") if latex else f" where {SOFT}", *(f", {each}" for each in rest)]
            return put + "".join(where) if formula else ""

        return Notation(
            f"{value} + {n.value}",
            at(n.conjugate),
            at(n.domain),
            f"{typeset(value)} + {n.latex_value}",
            at(n.latex_conjugate, latex=True),
            at(n.latex_domain, latex=True),
        )


@final
@dataclass(frozen=True, eq=False)
class Ridged(AbstractSupercoercive):
    """``phi(z) = rest(z) + ridge/2 ||z||_2^2`` with ridge > 0.

    ``prox(v, t) = rest.prox(v / (1 + t ridge), t / (1 + t ridge))``, and ``phi*(u)`` is the least of
    ``rest*(s) + ||u - s||^2 / (2 ridge)``, which s = u - ridge rest.prox(u / ridge, 1 / ridge) attains (Parikh and
    Boyd, Proximal algorithms, 2.2 and 3.1): any s in dom rest* bounds it from above.
    """

    rest: AbstractPenalty
    ridge: float

    def check(self, k: int) -> None:
        self.rest.check(k)

    def value(self, z: Array) -> Array:
        return self.rest.value(z) + 0.5 * self.ridge * (z * z).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return self.rest.prox(v / (1.0 + self.ridge * t)[:, None], t / (1.0 + self.ridge * t))

    def conjugate(self, u: Array) -> Array:
        pulled = self.ridge * self.rest.prox(u / self.ridge, 1.0 / self.ridge)
        s = self.rest.clip(u - pulled)
        return self.rest.conjugate(s) + 0.5 / self.ridge * (pulled * pulled).sum(axis=1)

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        top = super().conjugate_bound(u, spread)
        size = longest(u, spread)  # the part beyond the threshold is a difference of numbers of this size
        return top + 64.0 * ULP * size * np.sqrt(2.0 * np.maximum(top, 0.0) / self.ridge)

    def cvxpy(self, Z: Any) -> Any:
        domain, rest = split(self.rest.cvxpy(Z))
        return [*domain, rest + 0.5 * self.ridge * cp.sum(cp.square(Z), axis=1)]

    def subgradient(self, z: Array) -> Array:
        return self.rest.subgradient(z) + self.ridge * z

    def gauge_at_zero(self, u: Array) -> Array:
        return self.rest.gauge_at_zero(u)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    def strong_convexity(self) -> float:
        return self.ridge + self.rest.strong_convexity()

    @property
    def notation(self) -> Notation:
        n, c = self.rest.notation, f"{self.ridge:g}"
        n, c = self.rest.notation, f"{2.0 * self.ridge:g}"
        near = rf"\frac{{1}}{{{c} %c}} \|%u - s\|_2^2"
        square = f"{times(self.ridge / 2.0)}||%z||_2^2"
        return Notation(
            f"{square} + {n.value}",
            _nearest(n.conjugate, n.domain, "min over s{} of ", " with {},", f"||%u - s||_2^2 / ({c} %c)"),
            "",
            f"{typeset(square)} + {n.latex_value}",
            _nearest(n.latex_conjugate, n.latex_domain, r"\min_{{s{}}} ", ": {}", near),
        )


@dataclass(frozen=True, eq=False)
class AbstractBlocks(AbstractPenalty):
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
        return np.maximum.reduce([phi.gauge(u[:, columns]) for columns, phi in self.blocks])

    def gauge_at_zero(self, u: Array) -> Array:
        return np.maximum.reduce([phi.gauge_at_zero(u[:, columns]) for columns, phi in self.blocks])

    def clip(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.clip(rows))

    def reach(self, start: Array, end: Array) -> Array:
        return np.minimum.reduce([phi.reach(start[:, columns], end[:, columns]) for columns, phi in self.blocks])

    def subgradient(self, z: Array) -> Array:
        return self.each(z, lambda phi, rows: phi.subgradient(rows))

    def room(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.room(rows))

    def exact_room(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.exact_room(rows))

    def span(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.span(rows))

    def conductance(self, u: Array) -> Array:
        return self.each(u, lambda phi, rows: phi.conductance(rows))

    def conduct(self, conductance: Array, z: Array) -> Array:
        out = np.empty_like(z)
        for columns, phi in self.blocks:
            out[:, columns] = phi.conduct(np.broadcast_to(conductance, z.shape)[:, columns], z[:, columns])
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
            cone = phi.recession(len(columns))
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
        return self.each(np.zeros((1, k)), lambda phi, rows: phi.interior(rows.shape[1])[None])[0]


def blocks(parts: Sequence[tuple[Array, AbstractPenalty]]) -> AbstractPenalty:
    """The sum of functions of disjoint blocks of coordinates; the function itself where there is one block."""
    if len(parts) == 1:
        return parts[0][1]
    one_sided = any(isinstance(phi, AbstractOneSided) for _, phi in parts)
    return (OneSidedBlocks if one_sided else Blocks)(tuple(parts))


def radial(curve: Curve) -> AbstractRadial:
    """h(||z||_2) for the h with this derivative."""
    return (SmoothRadial if Sides.of([curve]).is_smooth else Radial)(curve)


def _nearest(conjugate: str, domain: str, least: str, among: str, square: str) -> str:
    """The least of a square and a conjugate at s."""
    (inner, *rest), (inside, *more) = (defined(text.replace("%u", "s")) for text in (conjugate, domain))
    formula = least.format(among.format(inside) if inside else "") + (f"({square} + {inner})" if inner else square)
    return " where ".join([formula, ", ".join(dict.fromkeys([*rest, *more]))]) if rest or more else formula


def _soft(v: Array, threshold: Array) -> Array:
    return v - np.clip(v, -threshold, threshold)


def _ratio(size: Array, most: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size == 0.0, 0.0, size / most)
