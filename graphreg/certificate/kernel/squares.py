"""Squares absorb what an imbalance costs, where every node has enough of them.

Let C be the squares s/2 (b'w - t)^2 among the summands, and H_i what their Hessians add up to at node i. The slack of
Fenchel-Young at a square is s/2 (b'w - t - v/s)^2, whatever v is. So for any v and w0, with q = Bv and
r = q + sum over C of b (s (b'w0 - t) - v),

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <q, w0> - sum_i r_i'H_i^-1 r_i / 2     for all w.

What balances exactly are the gradients at w0 - d, d_i = H_i^-1 r_i: of each square within sqrt(s d_i'H_i d_i).
"""

from __future__ import annotations

import numpy as np

from ...terms import Array, Packed, at_a_time
from .arithmetic import DUST, EPS, MORE, below, need
from .balance import Balanced
from .system import Design, Summand, System
from .value import LowerBound, lower_bound

CELLS = 1 << 15  # numbers at a time
LEAST_CURVED = 1e-280  # of a diagonal


class Curvature:
    """Of the Hessians H_i of a system's squares, at the strengths of this moment, and S_i = diag(scale_i): a lower
    bound of the least eigenvalue of S_i H_i S_i, (n,); 0 where none was proved. Their inverses are proposed, (n, d, d),
    or (n, d) where these are diagonal."""

    def __init__(self, system: System, inverse: Array | Packed) -> None:
        n, d = system.form.shape
        need(
            len(inverse) == n and (inverse.d if isinstance(inverse, Packed) else inverse.shape[-1]) == d, "no inverses"
        )
        self.inverse, self.kind, self.scales = inverse, system.kind, _scales(system)
        self.scale, self.least = np.zeros((n, d)), np.zeros(n)
        terms, diagonal = system.count.reshape(n, d).max(axis=1, initial=0.0), _of_numbers(system)
        for some in at_a_time(CELLS // (d * d), n):
            H, R = _hessians(system, diagonal, slice(some.start, min(some.stop, n))), _dense(inverse, some)
            self.scale[some], self.least[some] = least_eigenvalues(H, R, terms[some])

    def holds(self, system: System) -> bool:
        """True where a system has the same squares."""
        mine, theirs = self.scales, _scales(system)
        same = self.kind is system.kind and mine.keys() == theirs.keys()
        return same and all(map(np.array_equal, mine.values(), theirs.values()))


def least_eigenvalues(H: Array, R: Array, terms: Array) -> tuple[Array, Array]:
    """Diagonals S, and lower bounds of the least eigenvalues of S H S, for a stack of matrices (g, d, d) that were
    added up, as H, from so many terms each; R is near their inverses where they are not 0.

    ||(S H S)^-1|| <= ||R|| / (1 - ||I - R S H S||) for any R, in Frobenius's norm. Rounding is within so many units of
    rounding of the trace as there are terms, since |x_j x_k| add up to at most that; what underflows is far less, but
    where the diagonal is near it, which proves nothing.
    """
    d, diagonal = H.shape[1], np.einsum("ijj->ij", H)
    with np.errstate(all="ignore"):
        scale = 1.0 / np.sqrt(np.where(diagonal >= LEAST_CURVED, diagonal, 0.0))
        both = scale[:, :, None] * scale[:, None, :]
        A, R = H * both, R / both
        size = [np.sqrt(np.einsum("ijk,ijk->i", each, each)) for each in (A, R)]
        E = np.matmul(R, A) - np.eye(d)
        error = (terms + 8.0 * d + 16.0) * EPS * np.einsum("ijj->i", A)
        off = np.sqrt(np.einsum("ijk,ijk->i", E, E)) + size[1] * (error + (d + 4.0) * EPS * size[0])
        return scale, np.where(off <= 0.5, 0.49 / size[1], 0.0)


def _dense(A: Array | Packed, some: slice) -> Array:
    if isinstance(A, Packed):
        return A.dense(some)
    return A[some] if A.ndim == 3 else A[some, :, None] * np.eye(A.shape[1])


def _scales(system: System) -> dict[int, Array]:
    """s L of the summands s L / 2 ||B'w - t||^2, at one node each, by their numbers."""
    return {k: one.square * one.scale for k, one in enumerate(system.summands) if one.square > 0.0}


def _of_numbers(system: System) -> Array:
    """What squares of single numbers add to the Hessians, (n d,)."""
    out = np.zeros(system.shape[0])
    for k, s in _scales(system).items():
        one = system.summands[k]
        if not isinstance(one.products, Design):
            A = one.of(slice(0, one.shape[0]))
            need((np.diff(A.indptr) == 1).all(), f"a square of {one.name} is of several numbers")
            out += np.bincount(A.indices, np.repeat(s, one.shape[1]) * A.data * A.data, len(out))
    return out


def _hessians(system: System, diagonal: Array, some: slice) -> Array:
    """H_i of some nodes, (g, d, d)."""
    n, d = system.form.shape
    out = diagonal.reshape(n, d)[some, :, None] * np.eye(d)
    for one in system.prices:
        if one.square > 0.0 and isinstance(one.products, Design):
            for batch, grams in zip(one.block.stacks or (), one.block.grams, strict=True):
                low, high = np.searchsorted(batch.nodes, [some.start, some.stop])
                out[batch.nodes[low:high] - some.start] += float(one.block.strength) * grams.dense(slice(low, high))
    return out


def absorbed(system: System, curvature: Curvature, v: Array, w: Array) -> tuple[LowerBound, Balanced]:
    """The bound from prices and flows v that are nearly balanced, and nearly the gradients of the squares at w (n, d);
    and a box that holds an exactly balanced point. All nodes are to have the curvature."""
    need(curvature.holds(system), "a curvature of other squares")
    need((curvature.least > 0.0).all(), "a node is not strictly convex")
    need(below(v) and below(w), "prices, flows or parameters are too large")
    form, zero, off, slope = system.form, np.zeros(len(v)), np.zeros(len(v)), np.zeros(system.shape[0])
    squares = [(system.summands[k], s) for k, s in curvature.scales.items()]
    for one, s in squares:
        off[one.columns] = far = _from_gradients(one, s, one.taken(v), w).ravel()
        system.kind.pull(one, far, 0.0 * slope, slope)
    left = system.residual(v, zero, plain=True).size()
    rest = left + slope.reshape(form.shape)
    square = ((rest * curvature.scale) ** 2).sum(axis=1) / curvature.least * MORE  # d_i'H_i d_i
    reach = np.sqrt(square + DUST * rest.any(axis=1)) * MORE
    for one, s in squares:
        off[one.columns] += np.repeat(np.sqrt(s) * reach[one.node], one.shape[1])
    found = lower_bound(system, Balanced(v, zero, zero, np.zeros(form.n_components, dtype=bool)), plain=True)
    cost = ((left * np.abs(w)).sum(axis=1) + 0.5 * square) * MORE + DUST
    lost = np.bincount(form.component, cost, form.n_components) * MORE
    with np.errstate(invalid="ignore"):
        lower = found.lower - lost
        lower = np.where(np.isfinite(lower), lower - EPS * (np.abs(lower) + lost), -np.inf)
    box = Balanced(v, zero, off * MORE, ~np.isfinite(lower), found.why)
    return LowerBound(lower, found.outside, found.why, found.inner), box


def _from_gradients(one: Summand, scale: Array, v: Array, w: Array) -> Array:
    """Not less than |v - s (B'w - t)|, (M, k), for scales s."""
    out = np.zeros(one.shape)
    for some, z, around in one.predicted(w, plain=True):
        s = scale[some, None]
        far = np.abs(v[some] - s * z) + s * around + 4.0 * EPS * np.abs(s * z)
        out[some] = far * MORE + DUST * ((z != 0.0) | (around > 0.0))
    return out
