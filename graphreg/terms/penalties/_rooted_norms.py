"""Norms whose prox is the root of one number per row: p-norms and norms of ellipsoids; and multiples of a norm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from ...errors import TermError
from ...lazy import cp
from ..bounds import ULP
from ..records import Array, Notation
from ._formulas import FEW, typeset, vector
from ._rows import by_row, column, row_norm, split
from .base import AbstractNorm
from .penalty import AbstractPenalty

NEWTON_STEPS = 60


@final
@dataclass(frozen=True, eq=False)
class ScaledNorm(AbstractNorm):
    """``phi(z) = factor * norm(z)``."""

    norm: AbstractNorm
    factor: float

    def check(self, k: int) -> None:
        self.norm.check(k)

    def value(self, z: Array) -> Array:
        return self.factor * self.norm.value(z)

    def dual_norm(self, u: Array) -> Array:
        return self.norm.dual_norm(u) / self.factor

    def project_dual(self, u: Array, radius: Any) -> Array:
        return self.norm.project_dual(u, self.factor * np.asarray(radius, dtype=float))

    def prox(self, v: Array, step: Any) -> Array:
        return self.norm.prox(v, self.factor * np.asarray(step, dtype=float))

    def extent(self, k: int) -> float:
        return self.norm.extent(k) / self.factor

    def parts(self) -> Sequence[tuple[float, AbstractPenalty]]:
        return [(self.factor, self.norm)]

    def cvxpy(self, Z: Any) -> Any:
        domain, value = split(self.norm.cvxpy(Z))
        return [*domain, self.factor * value]

    @property
    def notation(self) -> Notation:
        n, c = self.norm.notation, f"{self.factor:g}"
        domain = n.domain.replace("%c", f"{c} %c")
        latex = n.latex_domain.replace("%c", f"{c} %c")
        return Notation(f"{c} {n.value}", "", domain, rf"{c} {n.latex_value}", "", latex)


@dataclass(frozen=True, eq=False)
class AbstractRootedNorm(AbstractNorm):
    """A norm whose prox with step 1 at v is s y, where s is such that norm(y) = 1."""

    @abstractmethod
    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        """At a size s (m,) of the prox: y (m, k), the flow v - s y, and norm(y), which falls as s grows."""

    @abstractmethod
    def fall(self, y: Array, s: Array) -> Array:
        """How fast norm(y) falls as s grows, (m,)."""

    @abstractmethod
    def longest_flow(self, k: int) -> float:
        """The largest norm(u) over the ball of the dual norm."""

    def solve(self, v: Array, radius: Any) -> tuple[Array, Array]:
        """The prox of ``radius * norm`` at v and the projection of v onto the dual ball of the radius."""
        r = np.broadcast_to(np.asarray(radius, dtype=float), (len(v),))
        p, flow = np.zeros_like(v), np.array(v, dtype=float)
        out = np.flatnonzero(self.dual_norm(v) > r)
        if len(out):
            each, r = v[out] / r[out, None], r[out, None]
            with np.errstate(all="ignore"):
                s, y, dual = self._root(each)
            p[out] = r * s[:, None] * y
            flow[out] = r * dual / np.maximum(self.dual_norm(dual), 1.0)[:, None]
        return p, flow

    def _root(self, v: Array) -> tuple[Array, Array, Array]:
        """s, y and the flow at the s where norm(y) = 1: Newton's steps on 1 / norm(y), which is close to linear in s
        (More and Sorensen, Computing a trust region step, 1983), from below."""
        s = np.maximum(self.value(v) - self.longest_flow(v.shape[1]), 0.0)
        for _ in range(NEWTON_STEPS):
            y, dual, n = self.direction(v, s)
            new = np.maximum(s + n * (n - 1.0) / self.fall(y, s), 0.0)
            new = np.where(np.isfinite(new), new, s)
            still = np.abs(new - s) <= 4.0 * ULP * (s + 1.0)  # of rows that are longer than 1
            s = new
            if still.all():
                break
        y, dual, _ = self.direction(v, s)
        return s, y, dual

    def prox(self, v: Array, step: Any) -> Array:
        return self.solve(v, step)[0]

    def project_dual(self, u: Array, radius: Any) -> Array:
        flow = self.solve(u, radius)[1]
        return flow * column(radius / np.maximum(self.dual_norm(flow), radius))  # the root carries rounding


@final
@dataclass(frozen=True, eq=False)
class PNorm(AbstractRootedNorm):
    """``phi(z) = (sum_j |z_j|^p)^(1/p)`` with 1 < p < inf.

    ``phi*(u) = 0`` where ``||u||_q <= 1`` with 1/p + 1/q = 1, and +inf elsewhere. Its prox p = s y with step 1 has
    ``s y_j + y_j^(p - 1) = |v_j|`` and ``||y||_p = 1``.
    """

    p: float

    @property
    def q(self) -> float:
        """The exponent of the dual norm."""
        return self.p / (self.p - 1.0)

    def value(self, z: Array) -> Array:
        return _p_norm(z, self.p)

    def dual_norm(self, u: Array) -> Array:
        return _p_norm(u, self.q)

    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        if self.p >= 2.0:
            y = power_root(s[:, None], 1.0, self.p - 1.0, np.abs(v))
            dual = y ** (self.p - 1.0)
        else:
            dual = power_root(1.0, s[:, None], self.q - 1.0, np.abs(v))
            y = dual ** (self.q - 1.0)
        return np.copysign(y, v), np.copysign(dual, v), _p_norm(y, self.p)

    def fall(self, y: Array, s: Array) -> Array:
        y = np.abs(y)
        each = np.where(y > 0.0, y / (s[:, None] + (self.p - 1.0) * y ** (self.p - 2.0)), 0.0)
        size = np.maximum(_p_norm(y, self.p), 1e-300)[:, None]
        return ((y / size) ** (self.p - 1.0) * each).sum(axis=1)

    def longest_flow(self, k: int) -> float:
        return max(1.0, float(k) ** (1.0 / self.p - 1.0 / self.q))

    def subgradient(self, z: Array) -> Array:
        y = np.abs(z) / np.maximum(self.value(z), 1e-300)[:, None]
        return np.copysign(y ** (self.p - 1.0), z) * (z != 0.0)

    def cvxpy(self, Z: Any) -> Any:
        """||z||_p <= t where ``|z_j| <= r_j^(1/p) t^(1 - 1/p)`` and sum_j r_j = t."""
        m, k = Z.shape
        t, r = cp.Variable(m), cp.Variable((m, k))
        wide = cp.reshape(t, (m, 1), order="C") @ np.ones((1, k))
        bound, size, signed = (cp.vec(each, order="C") for each in (r, wide, Z))
        power = cp.PowCone3D(bound, size, signed, np.full(m * k, 1.0 / self.p))
        return [power, cp.sum(r, axis=1) == t, t]

    @property
    def notation(self) -> Notation:
        p, q = f"{self.p:g}", f"{self.q:g}"
        return Notation(f"||%z||_{p}", "", f"||%u||_{q} <= %c", rf"\|%z\|_{{{p}}}", "", rf"\|%u\|_{{{q}}} \le %c")


@final
@dataclass(frozen=True, eq=False)
class EllipsoidNorm(AbstractRootedNorm):
    """``phi(z) = ||Rz||_2`` with a square R that has an inverse.

    ``phi*(u) = 0`` where ``||R^-T u||_2 <= 1`` and +inf elsewhere. With ``R'R = V diag(l) V'`` its prox p = s V y with
    step 1 has ``(s + l_j) y_j = (V'v)_j`` and ``sum_j l_j y_j^2 = 1``.
    """

    root: Array

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """The squares of the singular values of R, V, and ``V diag(1 / singular values)``."""
        _, sigma, V = np.linalg.svd(self.root)
        return sigma**2, V.T, V.T / sigma

    def check(self, k: int) -> None:
        if k != len(self.root):
            raise TermError(f"this norm is for {len(self.root)} coordinates, and the term has {k}")

    def value(self, z: Array) -> Array:
        return row_norm(by_row(z, self.root.T))

    def dual_norm(self, u: Array) -> Array:
        return row_norm(by_row(u, self._parts[2]))

    def direction(self, v: Array, s: Array) -> tuple[Array, Array, Array]:
        l, V, _ = self._parts
        y = by_row(v, V) / (s[:, None] + l)
        return by_row(y, V.T), by_row(l * y, V.T), row_norm(np.sqrt(l) * y)

    def fall(self, y: Array, s: Array) -> Array:
        l, V, _ = self._parts
        y = by_row(y, V)
        size = np.maximum(row_norm(np.sqrt(l) * y), 1e-300)
        return (l * y * y / (s[:, None] + l)).sum(axis=1) / size

    def longest_flow(self, k: int) -> float:
        return float(self._parts[0].max())

    def subgradient(self, z: Array) -> Array:
        R = self.root
        return by_row(by_row(z, R.T), R) / np.maximum(self.value(z), 1e-300)[:, None]

    def cvxpy(self, Z: Any) -> Any:
        return cp.norm(Z @ self.root.T, 2, axis=1)

    @property
    def notation(self) -> Notation:
        rows = "; ".join(vector(row) for row in self.root[:FEW]) + ("; ..." if len(self.root) > FEW else "")
        text, latex = f" where R = [{rows}]", rf" \text{{ where }} R = [{typeset(rows)}]"
        return Notation(
            "||R %z||_2" + text,
            "",
            "||R^-T %u||_2 <= %c" + text,
            r"\|R %z\|_2" + latex,
            "",
            r"\|R^{-\top} %u\|_2 \le %c" + latex,
        )


def _p_norm(z: Array, p: float) -> Array:
    """The p-norm of each row, far from overflow."""
    size = np.maximum(np.abs(z).max(axis=1, initial=0.0), 1e-300)
    return size * ((np.abs(z) / size[:, None]) ** p).sum(axis=1) ** (1.0 / p)


def power_root(a: Any, b: Any, e: float, v: Array) -> Array:
    """y >= 0 with ``a y + b y^e = v``, e >= 1, by Newton's method from above: the function is convex."""
    if e == 1.0:
        return v / (a + b)
    if e == 2.0:
        return np.where(v > 0.0, 2.0 * v / (a + np.sqrt(a * a + 4.0 * b * v)), 0.0)
    y = np.where(v > 0.0, np.fmin(v / a, (v / b) ** (1.0 / e)), 0.0)
    for _ in range(NEWTON_STEPS):
        power = b * y ** (e - 1.0)
        new = np.where(v > 0.0, (v + (e - 1.0) * power * y) / (a + e * power), 0.0)
        if not (new < y * (1.0 - 2.0**-52)).any():
            break
        y = np.fmin(new, y)
    return y
