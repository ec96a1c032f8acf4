"""The region of all optimal prices and flows, seen from one point w with P(w) - P* <= G.

At any optimal dual point (u*, a*) the Fenchel-Young residuals with w add up to P(w) - P*:

    sum_r [s l(x_r) + s l*(a*_r / s) - a*_r x_r]  +  sum_e [c phi(z_e) + c phi*(u*_e / c) - <u*_e, z_e>]  <=  G.

So a*_r is a G-subgradient of s l at x_r, and u*_e one of c phi at z_e (Hiriart-Urruty and Lemarechal, Convex Analysis
and Minimization Algorithms II, chapter XI). Where f is L-smooth, sum ||a* - grad f||^2 / (2 L) <= G, over all of them
together; for any f at all, f(x + s e_j) >= f(x) + s v_j - G for every s bounds each coordinate of a G-subgradient v, by
values of f alone. No strong convexity is needed, and nothing of the optimum known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, cast

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractConstraint, AbstractSmoothPenalty

U = 2.0**-53
STEPS = 25  # each a quarter of the last


def flat(parts: Iterable[Array]) -> Array:
    """The numbers of some arrays, one behind the other."""
    return np.concatenate([np.zeros(0), *(np.ravel(each) for each in parts)])


class AbstractNumbers:
    """Arrays of one shape: of each number of some rows several things."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of some blocks, one behind the other."""
        return cls(*(flat(getattr(each, one.name) for each in parts) for one in fields(cast(Any, cls))))

    def part(self, some: Array) -> Self:
        return type(self)(*(getattr(self, one.name)[some] for one in fields(cast(Any, self))))


@dataclass(frozen=True)
class Region(AbstractNumbers):
    """``center`` of prices or flows; each is within ``width`` of its own, but for a part in which the sum of the
    squares, over ``weight``, of all samples and edges together is at most 2 G."""

    center: Array
    width: Array
    weight: Array


def subgradients(
    f: Callable[[Array], Array], x: Array, eps: Array, off: Array, scale: float, extra: Array | float = 0.0
) -> tuple[Array, Array]:
    """Bounds (m, k) from below and above of every eps-subgradient of f at a point within ``off`` (in l1) of each row
    of x, from values of f, of which ``extra`` is the size of the parts that cancel."""
    m, k = x.shape
    size = 4.0 * np.maximum(np.abs(x).max(axis=1, initial=0.0), scale)
    low, high, unit = np.full((m, k), -np.inf), np.full((m, k), np.inf), np.eye(k)
    with np.errstate(invalid="ignore", over="ignore"):
        here = f(x)
        for q in range(STEPS):
            s = size * 4.0**-q
            far = np.stack([f(x + sign * 2.5 * s[:, None] * e) for e in unit for sign in (1.0, -1.0)]).max(axis=0)
            rise = far - here + 32 * (k + 2) * U * (np.abs(here) + np.abs(far) + extra)
            steep = np.where(2.0 * off <= s, 2.0 * rise / s, np.inf)  # as f is at most, up to s and off away
            moved = np.where(off > 0, off * steep, 0.0)
            for j, sign in ((j, sign) for j in range(k) for sign in (1.0, -1.0)):
                point = x + sign * s[:, None] * unit[j]
                step, there = np.abs(point[:, j] - x[:, j]), f(point)  # as it came out
                noise = 32 * (k + 2) * U * (np.abs(here) + np.abs(there) + extra) + 2.0 * moved
                slope = (there - here + eps + noise) / np.where(step > 0, step, np.nan)
                slope += 8 * U * np.abs(slope)
                if sign > 0:
                    high[:, j] = np.fmin(high[:, j], slope)
                else:
                    low[:, j] = np.fmax(low[:, j], -slope)
    return low, high


def rounding(edge: EdgeBlock, form: Form, w: Array) -> Array:
    """How far z as it is computed may lie from (K w)_e - center_e, (m, k)."""
    K = edge.flat(form.d)
    off = max(2, int(np.diff(K.indptr).max(initial=0))) * U * (abs(K) @ np.abs(w).ravel())
    off = off.reshape(edge.count, form.width(edge))
    return off if edge.center is None else off + 2 * U * np.abs(edge.center)


def of_edges(edge: EdgeBlock, form: Form, w: Array, gap: float) -> Region:
    """The region of the flows of a block, (m, k)."""
    z, c, off = edge.difference(w), edge.weight[:, None], rounding(edge, form, w)
    if isinstance(edge.penalty, AbstractSmoothPenalty):
        L = c * edge.penalty.smoothness() * (1.0 + 1e-12)
        u = c * edge.penalty.gradient(z)
        width = L * off.sum(axis=1, keepdims=True) + 64 * U * (np.abs(u) + L * np.abs(z))
        return Region(u, width, np.broadcast_to(L, z.shape))
    if z.shape[1] == 1 and isinstance(edge.penalty, AbstractConstraint):
        ends = edge.penalty.conjugate(np.array([[1.0], [-1.0]]))  # z <= ends[0], -z <= ends[1]
        left = ends - 4 * U * np.where(np.isinf(ends), 0.0, np.abs(ends)) - np.hstack([z, -z]) - off
        most = np.full(left.shape, np.inf)  # <u, z> >= phi*(u) - gap
        np.divide(gap * (1.0 + 8 * U), left, out=most, where=left > 0.0)
        return _box(-most[:, 1:], most[:, :1])
    scale = float(np.abs(w).max(initial=0.0)) or 1.0
    low, high = subgradients(edge.penalty.value, z, gap / edge.weight, off.sum(axis=1), scale)
    return _box(c * low, c * high)


def of_samples(block: SampleBlock, w: Array, gap: float) -> Region | None:
    """The region of the prices of a block, shaped like its predictors; None where that is not known."""
    x, s, loss = block.predict(w), block.column(block.scale), block.loss
    terms = float(np.diff(block.A.indptr).max(initial=0)) + 4.0
    off = 2 * terms * U * ((abs(block.A) @ np.abs(w).ravel()).reshape(x.shape) + np.abs(block.offset))
    if isinstance(loss, AbstractSmoothLoss) and np.isfinite(loss.smoothness()):
        L = s * loss.smoothness() * np.ones(x.shape) * (1.0 + 1e-12)
        a = block.prices(w)
        total = off if off.ndim == 1 else off.sum(axis=1, keepdims=True)
        return Region(a, L * total + 64 * U * (np.abs(a) + L * (np.abs(x) + 1.0)), L)
    if x.ndim > 1:
        return None
    scale = float(np.abs(x).max(initial=0.0)) or 1.0
    extra = np.abs(x * block.y) + np.abs(block.y)
    found = subgradients(lambda rows: loss.value(rows[:, 0], block.y), x[:, None], gap / block.scale, off, scale, extra)
    low, high = (s * each[:, 0] for each in found)
    return _box(low, high)


def _box(low: Array, high: Array) -> Region:
    with np.errstate(invalid="ignore"):
        known = np.isfinite(low) & np.isfinite(high)
        center = np.where(known, 0.5 * (low + high), 0.0)
        width = np.where(known, 0.5 * (high - low) + 8 * U * (np.abs(low) + np.abs(high)), np.inf)
    return Region(center, width, np.zeros(center.shape))
