"""The sum of a norm and a multiple of the Euclidean norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...lazy import cp
from ..bounds import ULP
from ..records import Array, Notation, defined
from ._formulas import times, typeset
from ._rows import column, row_norm, split
from .base import AbstractNorm
from .l2 import L2
from .penalty import AbstractPenalty

STEPS = 100  # at most; the steps of Newton's method double the digits


@final
@dataclass(frozen=True, eq=False)
class NormBesideL2(AbstractNorm):
    """``phi(z) = norm(z) + factor ||z||_2`` with factor > 0.

    ``prox(v, t) = L2().prox(norm.prox(v, t), t factor)`` (Yu, On decomposing the proximal map, 2013, theorem 4). The
    dual ball is the sum of the dual ball B of the norm and of the ball of radius factor, so that the dual norm of u is
    the t at which u is at the distance ``factor t`` from t B.
    """

    norm: AbstractNorm
    factor: float

    def check(self, k: int) -> None:
        self.norm.check(k)

    def value(self, z: Array) -> Array:
        return self.norm.value(z) + self.factor * row_norm(z)

    def dual_norm(self, u: Array) -> Array:
        """From above, whatever rounding does: from any s and p with u = s + p (see `_most`).

        The distance of u to t B is convex in t, and a step of Newton's method leads from t to ``<u, p> / phi(p)`` with
        p = u - s and s the point of t B nearest to u: that is no more than the dual norm.
        """
        with np.errstate(all="ignore"):
            t, best = (u * u).sum(axis=1) / self.value(u), np.full(len(u), np.inf)
            for _ in range(STEPS):
                s = self.norm.project_dual(u, np.where(t > 0.0, t, 1.0))
                p = u - s
                best = np.fmin(best, self._most(s, p))
                new = np.fmax((u * p).sum(axis=1) / self.value(p), t)
                if not (new > t * (1.0 + 2.0 * ULP)).any():
                    break
                t = new
        return np.where(u.any(axis=1), best, 0.0)

    def _most(self, s: Array, p: Array) -> Array:
        """Not less than the dual norm of s + p: the larger of ``a = dual_norm(s)`` and ``b = ||p||_2 / factor``, less
        what is won by moving a share of the larger part to the other."""
        a, b = self.norm.dual_norm(s), row_norm(p) / self.factor
        to_a, to_b = self.norm.dual_norm(p), row_norm(s) / self.factor
        return np.where(a < b, b * ((a + to_a) / (b + to_a)), a * ((b + to_b) / (a + to_b)))

    def extent(self, k: int) -> float:
        return 1.0 / (1.0 / self.norm.extent(k) + self.factor)

    def project_dual(self, u: Array, radius: Any) -> Array:
        s = self.norm.project_dual(u, radius)
        rest = L2().project_dual(u - s, self.factor * np.asarray(radius, dtype=float))
        top = np.maximum(self.norm.dual_norm(s), row_norm(rest) / self.factor)
        return (s + rest) * column(radius / np.maximum(top, radius))  # both carry rounding

    def prox(self, v: Array, step: Any) -> Array:
        p, t = self.norm.prox(v, step), self.factor * np.asarray(step, dtype=float)
        return p * column(np.maximum(1.0 - t / np.maximum(row_norm(p), 1e-300), 0.0))

    def subgradient(self, z: Array) -> Array:
        return self.norm.subgradient(z) + self.factor * z / np.maximum(row_norm(z), 1e-300)[:, None]

    def cvxpy(self, Z: Any) -> Any:
        domain, value = split(self.norm.cvxpy(Z))
        return [*domain, value + self.factor * cp.norm(Z, 2, axis=1)]

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]]:
        return [(1.0, self.norm), (self.factor, L2())]

    @property
    def notation(self) -> Notation:
        n, c = self.norm.notation, times(self.factor)

        def near(domain: str, least: str, inside: str) -> str:
            formula, *rest = defined(domain.replace("%u", "v"))
            where = [rf" \text{{ where }} {rest[0]}" if "\\" in least else f" where {rest[0]}"] if rest else []
            return "".join([least.format(formula), inside, *where])

        return Notation(
            f"{c}||%z||_2 + {n.value}",
            "",
            near(n.domain, "min over v with {}, of ", f"||%u - v||_2 <= {c}%c"),
            f"{typeset(c)}\\|%z\\|_2 + {n.latex_value}",
            "",
            near(n.latex_domain, r"\min_{{v: {}}} ", rf"\|%u - v\|_2 \le {c}%c"),
        )
