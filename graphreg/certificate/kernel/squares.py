"""Squares absorb what an imbalance costs, where every node has enough of them.

Let C be the squares s/2 (b'w - t)^2 among the summands, and H_i what their Hessians add up to at node i. The slack of
Fenchel-Young at a square is s/2 (b'w - t - v/s)^2, whatever v is. So for any v and w0, with q = Bv and
r = q + sum over C of b (s (b'w0 - t) - v),

    P(w) >= - sum_g f_g*(v_g) - <v, t> + <q, w0> - sum_i r_i'H_i^-1 r_i / 2     for all w.

What balances exactly are the gradients at w0 - d, d_i = H_i^-1 r_i: of each square within sqrt(s d_i'H_i d_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...terms import Array, Packed, at_a_time
from ...terms.losses import AbstractQuadraticLoss
from ...terms.penalties import AbstractSmoothPenalty
from .arithmetic import DUST, EPS, MORE, Runs, below, need
from .balance import Balanced
from .system import Flows, Prices, Summand, System
from .upper import plain_residuals, sizes
from .value import LowerBound, lower_bound

CELLS = 1 << 15  # numbers at a time


@dataclass(frozen=True)
class Curvature:
    """Of S_i H_i S_i, S_i = diag(scale_i), a lower bound of the least eigenvalue, (n,); 0 where none was proved."""

    scale: Array  # (n, d)
    least: Array

    @staticmethod
    def of(H: Array | Packed, inverse: Array | Packed, terms: Array) -> Curvature:
        """Of Gram matrices (n, d, d) that were computed as H from so many terms at each node; ``inverse`` is proposed.

        With any R near its inverse, ||(S H S)^-1|| <= ||R|| / (1 - ||I - R S H S||), in Frobenius's norm. Rounding is
        within so many units of rounding of the trace as there are terms, since |x_j x_k| add up to at most that.
        """
        scale = 1.0 / np.sqrt(H.diagonal if isinstance(H, Packed) else np.einsum("ijj->ij", H))
        n, d = scale.shape
        least = np.zeros(n)
        for some in at_a_time(CELLS // (d * d), n):
            both = scale[some, :, None] * scale[some, None, :]
            A, R = _dense(H, some) * both, _dense(inverse, some) / both
            size = [np.sqrt(np.einsum("ijk,ijk->i", each, each)) for each in (A, R)]
            E = np.matmul(R, A)
            E[:, np.arange(d), np.arange(d)] -= 1.0
            error = (terms[some] + 8.0 * d + 16.0) * EPS * np.einsum("ijj->i", A)
            off = np.sqrt(np.einsum("ijk,ijk->i", E, E)) + size[1] * (error + (d + 4.0) * EPS * size[0])
            least[some] = np.where(off <= 0.5, 0.49 / size[1], 0.0)
        return Curvature(scale, least)


def _dense(A: Array | Packed, some: slice) -> Array:
    return A.dense(some) if isinstance(A, Packed) else A[some]


def is_square(one: Summand) -> bool:
    """True of summands s L / 2 ||B'w - t||^2, at one node each."""
    if isinstance(one, Prices):
        return isinstance(one.block.loss, AbstractQuadraticLoss)
    if not isinstance(one, Flows) or one.mix is not None:
        return False
    return one.edge.ground and one.penalty.strong_convexity() == bend(one)


def bend(one: Flows) -> float:
    """L of a penalty whose gradient is Lipschitz."""
    return one.penalty.smoothness() if isinstance(one.penalty, AbstractSmoothPenalty) else np.inf


def absorbed(system: System, curvature: Curvature, v: Array, w: Array) -> tuple[LowerBound, Balanced]:
    """The bound from prices and flows v that are nearly balanced, and nearly the gradients of the squares at w (n, d);
    and a box that holds an exactly balanced point. All nodes are to have the curvature."""
    need((curvature.least > 0.0).all(), "a node is not strictly convex")
    need(below(v) and below(w), "prices, flows or parameters are too large")
    squares = [one for one in (*system.prices, *system.flows) if is_square(one)]
    bent = [one for one in system.flows if one.edge.ground and np.isfinite(bend(one))]
    need(all(one in squares for one in (*system.prices, *bent)), "a Hessian is of something that is no square")
    form, zero = system.form, np.zeros(len(v))
    off, slope = np.zeros(len(v)), np.zeros(form.shape)
    for one in squares:
        far = _from_gradients(one, one.taken(v), w)
        off[one.columns] = far.ravel()
        slope += one.reach(far)
    left = system.residual(v, zero, plain=True).size()
    rest = left + slope
    square = ((rest * curvature.scale) ** 2).sum(axis=1) / curvature.least * MORE  # d_i'H_i d_i
    reach = np.sqrt(square + DUST * rest.any(axis=1)) * MORE
    for one in squares:
        each = np.sqrt(one.scale * (1.0 if isinstance(one, Prices) else bend(one))) * reach[one.node]
        off[one.columns] += np.repeat(each, one.shape[1])
    found = lower_bound(system, Balanced(v, zero, zero, np.zeros(form.n_components, dtype=bool)), plain=True)
    cost = ((left * np.abs(w)).sum(axis=1) + 0.5 * square) * MORE + DUST
    lost = Runs(form.component, form.n_components).most(cost)
    with np.errstate(invalid="ignore"):
        lower = found.lower - lost
        lower = np.where(np.isfinite(lower), lower - EPS * (np.abs(lower) + lost), -np.inf)
    box = Balanced(v, zero, off * MORE, ~np.isfinite(lower), found.why)
    return LowerBound(lower, found.outside, found.why, found.inner), box


def _from_gradients(one: Prices | Flows, v: Array, w: Array) -> Array:
    """Not less than |v - s L (B'w - t)|, (M, k)."""
    if isinstance(one, Flows):
        z, s = one.edge.difference(w), one.scale[:, None] * bend(one)
        return (np.abs(v - s * z) + 4.0 * EPS * s * np.abs(z) + DUST * (z != 0.0)) * MORE
    block, out = one.block, np.empty(one.block.offset.shape)
    size, a = sizes(block, w, one.design), v.reshape(out.shape)
    for some in block.some():
        s = block.column(block.scale_of(some))
        r, around = plain_residuals(block, w, size, some)
        out[some] = (s * (around + EPS * np.abs(r)) + np.abs(a[some] - s * r)) * MORE + DUST * (around > 0.0)
    return out.reshape(v.shape)
