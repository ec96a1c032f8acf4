"""Where the variables lie at the points that count: feasible ones with an objective of at most an upper bound.

Trusted, as `verify`: every bound is rounded outwards. A variable's range follows from a row when the ranges of the
row's other variables are known; rounds repeat that.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..certificate import DUST, EPS, MORE, upwards
from ..terms import Array
from .programme import Programme, Sparse

ROUNDS = 12
ROOT = 1.42  # more than the square root of two


def ranges(p: Programme, upper: float, convex: bool) -> tuple[Array, Array]:
    """The least and greatest values of the variables, where ``convex`` says that x'Px >= 0 for all x."""
    n = len(p.q)
    tilt, level = _objective(p, upper)
    G = sp.csr_array(sp.vstack([p.A, -p.A, sp.csr_array(tilt[None])]))
    lower, higher = np.full(n, -np.inf), np.full(n, np.inf)
    for _ in range(ROUNDS):
        least, most = _slacks(p, _sums(p.A, lower, higher))
        right = np.concatenate([p.b - least, most - p.b, [level if convex else np.inf]])
        sizes = np.concatenate([np.abs(p.b) + np.abs(least), np.abs(p.b) + np.abs(most), [0.0]])
        new = _narrowed(G, np.where(np.isnan(right), np.inf, right + EPS * sizes), lower, higher)
        if np.array_equal(new[0], lower) and np.array_equal(new[1], higher):
            break
        lower, higher = new
    return lower, higher


def _objective(p: Programme, upper: float) -> tuple[Array, float]:
    """t, l such that t'x <= l where the objective is at most ``upper`` and x'Px >= 0; variables that stand in P by
    themselves are left out with their least values, -q^2 / (2 d)."""
    d = p.P.diagonal()
    alone = (d > 0.0) & (np.diff(p.P.indptr) == 1)
    most = p.q[alone] ** 2 / d[alone] / 2.0
    rest = float(upwards(most.sum(), len(most) + 4))
    return np.where(alone, 0.0, p.q), (upper + rest) + 2 * EPS * (abs(upper) + rest) + DUST


def _products(G: Sparse, lower: Array, higher: Array) -> Array:
    """Not more than G_ij x_j, entry by entry."""
    with np.errstate(invalid="ignore"):
        low = np.where(G.data > 0.0, G.data * lower[G.indices], G.data * higher[G.indices])
        return low - EPS * np.abs(low) - DUST


def _sums(A: Sparse, lower: Array, higher: Array) -> Array:
    """Not more than A x."""
    low, place = _products(A, lower, higher), np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    size = np.bincount(place, np.abs(low), A.shape[0])
    with np.errstate(invalid="ignore"):
        return np.bincount(place, low, A.shape[0]) - upwards((np.diff(A.indptr) + 3) * EPS * size, 3)


def _slacks(p: Programme, image: Array) -> tuple[Array, Array]:
    """Bounds of s = b - A x, ``image`` being at most A x: of what the cones say, what bounds one entry by others."""
    most = p.b - image
    most = most + EPS * (np.abs(p.b) + np.abs(image))
    least = np.full(len(most), -np.inf)
    for block in p.blocks:
        low, high = least[block.place], most[block.place]
        if block.kind in ("zero", "nonneg"):
            low[:] = 0.0
            high[:] = 0.0 if block.kind == "zero" else high
        elif block.kind == "soc":
            k = int(block.size)
            low[:] = -np.repeat(np.maximum(high[::k], 0.0), k)
            high[:] = np.minimum(high, -low)
            low[::k] = 0.0
        elif block.kind == "psd":
            j, i = np.tril_indices(int(block.size))
            top = np.maximum(high[i == j], 0.0)
            low[:] = np.where(i == j, 0.0, -ROOT * np.maximum(top[i], top[j]))
            high[:] = np.where(i == j, high, np.minimum(high, -low))
        else:
            first = 1 if block.kind == "exp" else 0  # y, z resp. x, y are at least 0
            low[first::3] = low[first + 1 :: 3] = 0.0
    return least, most


def _narrowed(G: Sparse, right: Array, lower: Array, higher: Array) -> tuple[Array, Array]:
    """The ranges that G x <= right leaves of these."""
    place, count = np.repeat(np.arange(G.shape[0]), np.diff(G.indptr)), np.diff(G.indptr)
    low = _products(G, lower, higher)
    unknown = ~np.isfinite(low)
    low = np.where(unknown, 0.0, low)
    total, size, missing = (np.bincount(place, x, len(right)) for x in (low, np.abs(low), unknown))
    known = ((missing[place] == 0) | ((missing[place] == 1) & unknown)) & np.isfinite(right[place])
    h = np.where(known, right[place], 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        rest = h - (total[place] - low) + ((count[place] + 8) * EPS * (np.abs(h) + 2 * size[place])) * MORE + DUST
        bound = rest / G.data
        bound = bound + (2 * EPS * np.abs(bound) + DUST) * np.sign(G.data)
    new = lower.copy(), higher.copy()
    for side, says, best in ((0, G.data < 0.0, np.maximum), (1, G.data > 0.0, np.minimum)):
        keep = says & known & np.isfinite(bound)
        best.at(new[side], G.indices[keep], bound[keep])
    return new
