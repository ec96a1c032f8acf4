"""Penalties made of another one: thresholds before it, a square beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..bounds import ULP
from ..records import Array, Notation, RecessionCone, defined
from ._formulas import SOFT, times, typeset, weighted, weighted_l1
from ._rows import longest, split
from .base import AbstractSupercoercive
from .domain import OwnDomain
from .penalty import AbstractPenalty


@final
@dataclass(frozen=True, eq=False)
class Thresholded(OwnDomain, AbstractPenalty):
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
            moved = np.clip(u, -self.weights, self.weights) + (1.0 - 1e-12) * self.rest.domain.clip(
                _soft(u, self.weights)
            )
            u = super().clip(np.where(out[:, None], moved, u))
        return u

    def subgradient(self, z: Array) -> Array:
        return self.weights * np.sign(z) + self.rest.subgradient(z)

    def recession(self, k: int) -> RecessionCone | None:
        return RecessionCone(np.zeros(k), np.zeros(k)) if self.weights.all() else self.rest.domain.recession(k)

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
        s = self.rest.domain.clip(u - pulled)
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

    def strong_convexity(self) -> float:
        return self.ridge + self.rest.strong_convexity()

    @property
    def notation(self) -> Notation:
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


def _nearest(conjugate: str, domain: str, least: str, among: str, square: str) -> str:
    """The least of a square and a conjugate at s."""
    (inner, *rest), (inside, *more) = (defined(text.replace("%u", "s")) for text in (conjugate, domain))
    formula = least.format(among.format(inside) if inside else "") + (f"({square} + {inner})" if inner else square)
    return " where ".join([formula, ", ".join(dict.fromkeys([*rest, *more]))]) if rest or more else formula


def _soft(v: Array, threshold: Array) -> Array:
    return v - np.clip(v, -threshold, threshold)
