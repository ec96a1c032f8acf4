"""Functions of the rows of an array, of which penalties are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.lazy import cp
from ..bounds import SHORT, ULP
from ..padding import at_a_time
from ..records import Array
from ..roots import bisected

INSIDE = 1.0 - 1e-14  # clipped points lie inside their domain by this factor
LEAST_SLACK = 1e-2  # conductance of a saturated edge, relative to its capacity

CELLS = 1 << 20  # numbers that are looked at together
SHORTENED = 20  # times that a step which leads too far is shortened


def column(step: Any) -> Any:
    """A step (a number, or one per row) that broadcasts against rows."""
    step = np.asarray(step, dtype=float)
    return step[:, None] if step.ndim == 1 else step


def split(written: Any) -> tuple[Any, list[Any]]:
    """The output of a term for CVXPY: an expression with one value per row, or None where that is 0, and
    constraints."""
    parts = written if isinstance(written, (list, tuple)) else [written]
    values = [part for part in parts if not isinstance(part, cp.Constraint)]
    return (values[0] if values else None), [part for part in parts if isinstance(part, cp.Constraint)]


def row_norm(z: Array) -> Array:
    """Euclidean norm of each row."""
    return np.sqrt(np.einsum("ij,ij->i", z, z))


def nearby_subgradients(prox: Callable[[Array, Any], Array], z: Array, step: Array, most: Array) -> Array:
    """Subgradients at points near each row, (z - prox(z, step)) / step, with shorter steps where these lead further
    than ``most``, as they do where a function is steep."""
    way = z - prox(z, step)
    for _ in range(SHORTENED):
        length = row_norm(way)
        if not (far := length > 2.0 * most).any():
            break
        step = np.where(far, step * most / np.maximum(length, most), step)
        way = z - prox(z, step)
    return way / step[:, None]


def by_row(x: Array, M: Array) -> Array:
    """x M, with the bits that each row would have by itself: those of ``x @ M`` depend on how many rows there are."""
    return np.einsum("ij,jk->ik", x, M)


def onto_ball(u: Array, radius: Any) -> Array:
    """Euclidean projection of each row onto the ball of the radius (a number or one per row)."""
    return u * (radius / np.maximum(row_norm(u), radius))[:, None]


def pieces_of(function: Callable[[Array], Array], k: int) -> int | None:
    """The p of `AbstractPenalty.pieces` for any function of rows of k coordinates, tried at rows large and small."""
    z = np.random.default_rng(0).standard_normal((6, k)) * 10.0 ** np.array([[-6], [-2], [0], [0], [2], [6]])
    with np.errstate(all="ignore"):
        value = function(z)
    sums = ((p, row_norm(z.reshape(-1, p)).reshape(len(z), -1).sum(axis=1)) for p in range(1, k + 1) if k % p == 0)
    return next((p for p, norms in sums if np.allclose(value, norms, rtol=1e-12, atol=0.0)), None)


def slopes_of(function: Callable[[Array], Array], k: int) -> tuple[Array, Array] | None:
    """`slopes` of any function of rows of k coordinates, tried at rows large and small."""
    z = np.random.default_rng(0).standard_normal((7, k)) * 10.0 ** np.array([[-150], [-6], [-2], [0], [2], [6], [150]])
    z = np.vstack([z, -z])
    with np.errstate(all="ignore"):
        value = function(z)
        if np.shape(value) != (len(z),):  # which others refuse by name
            return None
        fall, rise = at_units(lambda unit: function(-unit), k), at_units(function, k)
        alike = np.allclose(value, np.where(z < 0.0, -fall * z, rise * z).sum(axis=1), rtol=1e-12, atol=0.0)
    return (fall, rise) if alike else None


def gauge_of(u: Array, inside: Callable[[Array], Array]) -> Array:
    """inf {t >= 0 : u / t is inside} for each row, rounded upwards; ``inside`` tells of a convex set that holds 0."""
    scale = np.maximum(row_norm(u), 1e-300)
    direction = u / scale[:, None]
    ok = inside(direction)
    low, high = np.where(ok, 1.0, 0.0), np.where(ok, np.inf, 1.0)  # multiples of the direction inside, and outside
    for _ in range(60):
        grow = np.isinf(high) & (low < 1e12)
        if not grow.any():
            break
        reach = low * 4.0
        ok = inside(direction * reach[:, None])
        high = np.where(grow & ~ok, reach, high)
        low = np.where(grow & ok, reach, low)
    always = np.isinf(high)
    low, _ = bisected(lambda t: inside(direction * t[:, None]), low, np.where(always, low, high))
    with np.errstate(divide="ignore"):
        gauge = np.where(always, 0.0, scale / low)
    return np.where(row_norm(u) > 0, gauge, 0.0)


def at_units(function: Callable[[Array], Array], k: int) -> Array:
    """A function of rows of k coordinates at each unit vector, (k,)."""
    some = at_a_time(CELLS // max(k, 1), k)
    return np.concatenate([np.zeros(0), *(function(np.eye(min(s.stop, k) - s.start, k, s.start)) for s in some)])


def both_ways(function: Callable[[Array], Array], k: int) -> Array:
    """The larger of the values at each unit vector and at its negative, (k,)."""
    return np.maximum(at_units(function, k), at_units(lambda unit: function(-unit), k))


def norm_bound(norm: Any, x: Array, spread: Array) -> Array:
    """||x + h|| <= ||x|| + sum_j |h_j| ||e_j||, the norm trusted to 4 + k ulp."""
    k = x.shape[1]
    unit, length = at_units(norm, k), norm(x)
    length = np.where(length < SHORT, np.abs(x) @ unit, length)
    return (length + spread @ unit) * (1.0 + (6 + k) * ULP)


def longest(z: Array, spread: Array) -> Array:
    """Not less than the Euclidean norm of any point of ``z +- spread``."""
    z = np.abs(z) + spread
    length = row_norm(z)
    return np.where(length < SHORT, z.sum(axis=1), length) * (1.0 + (4 + z.shape[1]) * ULP)
