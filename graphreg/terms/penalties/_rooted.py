"""Sums over coordinates of functions that are built of smooth atoms, and functions of a norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...lazy import cp
from ..bounds import ULP, shown
from ..records import Array, Notation, RecessionCone
from ._curves import Curve
from ._formulas import conjugated, outwards, plus, summed, times, typeset, with_hubers
from ._functions import Function
from ._rooted_sides import RootedSides
from ._rows import INSIDE, norm_bound, row_norm, split
from ._separable import AbstractSeparable, written
from ._sides import Sides
from .base import AbstractNorm, AbstractOneSided
from .domain import OwnDomain
from .l1 import L1
from .l2 import L2
from .linf import LInf
from .penalty import AbstractPenalty

STEPS = 100


@dataclass(frozen=True, eq=False)
class AbstractRootedSeparable(AbstractSeparable):
    """Each h_j is built of smooth atoms."""

    functions: tuple[Function, ...]

    def sides(self, sign: float) -> RootedSides:
        return RootedSides.of([h.at(sign) if sign < 0.0 else h for h in self.functions])

    def cvxpy(self, Z: Any) -> Any:
        each = [cp.sum(h.written(Z[:, on]), axis=1) for on, h in self.sides(1.0).groups]
        return sum(each[1:], each[0])

    @property
    def notation(self) -> Notation:
        each = [lambda x, h=h: plus(*h.text(x)) for h in self.functions]
        duals = [lambda s, h=h: conjugated(s, "x", plus(*h.text("x"))) for h in self.functions]
        value, conjugate = with_hubers(summed(each, "[%z]_j")), with_hubers(summed(duals, "[%u]_j"))
        return Notation(value, conjugate, "", typeset(value), typeset(conjugate))


@final
@dataclass(frozen=True, eq=False)
class RootedSeparable(AbstractRootedSeparable):
    """Even functions of the coordinates."""

    def value(self, z: Array) -> Array:
        return self.right.value(np.abs(z)).sum(axis=1)

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        return np.copysign(self.right.prox(np.abs(v), t), v)

    def conjugate(self, u: Array) -> Array:
        return self.right.conjugate(np.abs(u)).sum(axis=1)

    def sides(self, sign: float) -> RootedSides:
        return super().sides(1.0)  # the same to the last bit on both sides

    def interior(self, k: int) -> Array:
        return np.zeros(k)


@final
@dataclass(frozen=True, eq=False)
class OneSidedRootedSeparable(AbstractRootedSeparable, AbstractOneSided):
    """Functions of the coordinates that are not all even."""

    def interior(self, k: int) -> Array:
        return self.middle()


def rooted_separable(functions: Sequence[Function]) -> AbstractRootedSeparable:
    """The sum over coordinates of these functions."""
    phi = OneSidedRootedSeparable(tuple(functions))
    x = np.geomspace(1e-3, 1e3, 25)[:, None] * np.ones(len(functions))
    same = np.isclose(phi.right.value(x), phi.left.value(x), rtol=1e-9, atol=0.0)
    same &= np.isclose(phi.right.last, phi.left.last, rtol=1e-12)
    return RootedSeparable(tuple(functions)) if same.all() else phi


@final
@dataclass(frozen=True, eq=False)
class OfNorm(OwnDomain, AbstractPenalty):
    """``phi(z) = h(norm(z))`` with h >= 0, h(0) = 0, convex and increasing on x >= 0.

    ``phi*(u) = h*(dual norm of u)`` (Rockafellar, Convex Analysis, theorem 15.3). Its prox p at v is that of
    ``s norm``, where s lies in ``step h'(norm(p))``.
    """

    norm: AbstractNorm
    function: Curve | Function

    @cached_property
    def h(self) -> Sides | RootedSides:
        return Sides.of([self.function]) if isinstance(self.function, Curve) else RootedSides.of([self.function])

    @property
    def first(self) -> float:
        """The slope of h at 0."""
        return float(self.h.first[0])

    @property
    def last(self) -> float:
        """The slope of h at infinity."""
        return float(self.h.last[0])

    def check(self, k: int) -> None:
        self.norm.check(k)

    def value(self, z: Array) -> Array:
        return _of(self.h.value, self.norm.value(z))

    def conjugate(self, u: Array) -> Array:
        return _of(self.h.conjugate, self.norm.dual_norm(u))

    def prox(self, v: Array, step: Any) -> Array:
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(v),))
        if isinstance(self.norm, L2):
            r = row_norm(v)[:, None]
            return v * (self.h.prox(r, t) / np.maximum(r, 1e-300))
        if isinstance(self.norm, L1):
            level = self._level(v, t)
            return v - np.clip(v, -level, level)
        if isinstance(self.norm, LInf):
            level = self._level(v, t)
            return np.clip(v, -level, level)
        out, live = np.zeros_like(v), np.flatnonzero(self.norm.dual_norm(v) > t * self.first)
        out[live] = self.norm.prox(v[live], self._steps(v[live], t[live]))
        return out

    def _level(self, v: Array, t: Array) -> Array:
        """The threshold s that the l1 norm leaves behind, or the level at which the maximum norm cuts, (m, 1).

        Where j entries, with the sum S, are above it, the norm of the prox is r = S - j s with s = t h'(r), so that r
        is the prox of j t h at S; and of the maximum norm ``S - j r = t h'(r)``, so that r is that of h t / j at S / j.
        """
        size = -np.sort(-np.abs(v), axis=1)
        total, j = size.cumsum(axis=1), np.arange(1.0, v.shape[1] + 1.0)
        sums = isinstance(self.norm, L1)
        at, pace = (total, j) if sums else (total / j, 1.0 / j)
        r = self.h.prox(at.reshape(-1, 1), (t[:, None] * pace).ravel()).reshape(v.shape)
        level = (total - r) / j if sums else r
        above = (size > level).sum(axis=1, keepdims=True)
        return np.where(above > 0, np.take_along_axis(level, np.maximum(above - 1, 0), axis=1), size[:, :1])

    def _steps(self, v: Array, t: Array) -> Array:
        """The s with ``s = t h'(norm(p))`` where p is the prox of s norm at v: p shrinks as s grows."""

        def excess(s: Array, on: Array) -> Array:
            p = np.where(s[:, None] > 0.0, self.norm.prox(v[on], np.where(s > 0.0, s, 1.0)), v[on])
            return s - t[on] * _of(self.h.slope, self.norm.value(p))

        return _crossing(excess, t * self.first, self.norm.dual_norm(v))

    def subgradient(self, z: Array) -> Array:
        return _of(self.h.slope, self.norm.value(z))[:, None] * self.norm.subgradient(z)

    def cvxpy(self, Z: Any) -> Any:
        domain, r = split(self.norm.cvxpy(Z))
        if isinstance(self.function, Function):
            return [*domain, self.function.written(r)]
        column = cp.reshape(r, (Z.shape[0], 1), order="C")
        return [*domain, cp.sum(written(Sides.of([self.function]), column, column), axis=1)]

    def gauge(self, u: Array) -> Array:
        return self.norm.dual_norm(u) / self.last

    def gauge_at_zero(self, u: Array) -> Array:
        size = self.norm.dual_norm(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size == 0.0, 0.0, size / self.first)

    def clip(self, u: Array) -> Array:
        return self.norm.project_dual(u, INSIDE * self.last) if np.isfinite(self.last) else u

    def conjugate_bound(self, u: Array, spread: Array) -> Array:
        top = _of(self.h.conjugate_bound, norm_bound(self.norm.dual_norm, u, spread))
        return shown(top * (1.0 + 16.0 * ULP), top > 0.0)

    def value_bound(self, z: Array, spread: Array) -> Array:
        r = norm_bound(self.norm.value, z, spread)
        top = _of(self.h.value, r)
        return shown(top * (1.0 + 16.0 * ULP) + _of(self.h.error, r), top > 0.0)

    def recession(self, k: int) -> RecessionCone:
        return RecessionCone(np.zeros(k), np.zeros(k))

    @property
    def notation(self) -> Notation:
        n = self.norm.notation
        value, conjugate = with_hubers(self._text(n.value)), with_hubers(self._text("x"))
        dual, _, _ = n.domain.partition(" <= ")
        typed, _, _ = n.latex_domain.partition(r" \le ")
        bound = f"{dual} <= {times(self.last)}%c" if np.isfinite(self.last) else ""
        latex = rf"{typed} \le {times(self.last)}%c" if np.isfinite(self.last) else ""
        return Notation(
            value,
            conjugated(dual, "x >= 0", conjugate),
            bound,
            typeset(self._text(n.latex_value)),
            typeset(conjugated(typed, "x >= 0", conjugate)),
            latex,
        )

    def _text(self, x: str) -> str:
        if isinstance(self.function, Function):
            return plus(*self.function.text(x))
        return outwards(Sides.of([self.function]), 0, x, x)


def _of(function: Callable[[Array], Array], x: Array) -> Array:
    """A function of one coordinate, of numbers (m,)."""
    return function(x[:, None])[:, 0]


def _crossing(function: Callable[[Array, Array], Array], low: Array, high: Array) -> Array:
    """Where increasing functions, which may jump, cross 0: by the chord, whose end that stays counts for half (Dowell
    and Jarratt, A modified regula falsi method, 1971), and by the middle where that is slow."""
    low, high, live = np.array(low), np.array(high), np.arange(len(low))
    below, above = function(low, live), function(high, live)
    with np.errstate(all="ignore"):
        for i in range(STEPS):
            live = live[(high[live] - low[live] > ULP * high[live]) & (below[live] < 0.0) & (above[live] > 0.0)]
            if not len(live):
                break
            a, b, fa, fb = low[live], high[live], below[live], above[live]
            x = (a * fb - b * fa) / (fb - fa)
            x = np.where((x > a) & (x < b) & (i % 4 != 3), x, 0.5 * (a + b))
            value = function(x, live)
            left = value <= 0.0
            low[live], below[live] = np.where(left, x, a), np.where(left, value, 0.5 * fa)
            high[live], above[live] = np.where(left, b, x), np.where(left, 0.5 * fb, value)
    return np.where(above <= 0.0, high, np.where(below >= 0.0, low, 0.5 * (low + high)))
