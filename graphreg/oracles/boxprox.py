"""The exact prox of a node's piecewise linear losses (quantile, hinge), for all nodes at once.

One sample's loss is max over a in [low, high] of a (x_r'w + shift_r). The prox of a node's sum at v has prices with

    w = v - tau X'a,    a_r = high_r where x_r'w + shift_r > 0,  low_r where it is < 0,  anything between where it is 0:

a box quadratic programme in the prices. Once it is known which prices are free (inside their box) it is linear
algebra: w lies on the face X_F w + shift_F = 0. Every call first tries the faces of the last one, at two passes over
the samples, and checks the conditions. Nodes where they fail look for their face (semismooth.py), solve on it and
check again. What comes back is verified to rounding; where no face passes (near-collinear columns together with exact
ties) it is the point with the least error that was seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import MethodError
from ..terms import Array, times
from ..terms.penalties import row_norm
from .semismooth import TINY, Boxes, Target, gathered, smoothed, taken, widths

EXACT = 1e-13  # the error, relative to the terms of each condition, below which a point is accepted
SMOOTHING = (1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-12)  # relative to `widths`; rarely beyond the second
REPAIRS = (1, 1, 3, 3, 3, 3, 3, 3, 3)  # faces tried at each: where there are ties, clipped prices leave the face
ROUNDING = 2.0**-52
RANK = 1e-12  # of the largest singular value, below which rows count as dependent


class Face(NamedTuple):
    """Prices, and the least-squares algebra of the rows F whose prices are free."""

    price: Array  # (g, m)
    pull: Array  # X'a, (g, d)
    free: Array  # 1.0 in F, (g, m)
    N: Array  # the projection on the directions that X_F does not see, (g, d, d)
    G: Array  # pinv(X_F'X_F), (g, d, d)
    q: Array  # pinv(X_F) shift_F, (g, d)

    def put(self, nodes: Array, other: Face) -> Face:
        """A copy with the faces of ``other`` at the nodes."""
        out = Face(*(each.copy() for each in self))
        for mine, its in zip(out, other, strict=True):
            mine[nodes] = its
        return out


class PiecewiseProx:
    """f_i(w) = sum_r max over a in [low_r, high_r] of a (x_r'w + shift_r).

    Parameters
    ----------
    nodes : (g,)
    X : (g, m, d)
        The design, padded with zero rows.
    shift : (g, m)
        Offset minus kink.
    low, high : (g, m)
        The box of each price, the sample's scale included; [0, 0] at padding.
    """

    def __init__(self, nodes: Array, X: Array, shift: Array, low: Array, high: Array) -> None:
        if not (low <= high).all():
            g, r = np.argwhere(~(low <= high))[0]
            raise MethodError(f"sample {r} of node {nodes[g]} has no price: its box is [{low[g, r]}, {high[g, r]}]")
        self.nodes = nodes
        self.box = Boxes.of(X, shift, low, high)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Any) -> tuple[Array, Any]:
        """The minimisers; ``memory`` is a tuple of arrays, the prices first."""
        at = Target(v, tau[:, None])
        w, face, error = _settle(self.box, at, _cold(self.box, v) if memory is None else Face(*memory))
        bad = np.flatnonzero(error > EXACT)
        if len(bad):
            w[bad], found = _search(taken(self.box, bad), taken(at, bad), taken(face, bad), warm[bad])
            face = face.put(bad, found)
        return w, tuple(face)

    def prices(self, memory: Any) -> Array:
        """The prices (g, m) of the call that returned ``memory``, inside their boxes; w = v - tau X'a to rounding."""
        return memory[0]

    def curvature(self) -> Array:
        """What stands for the mean curvature, (g,): that of the losses smoothed over the typical residual.

        sum_r (high_r - low_r) |x_r|^2 / (d delta), with delta the mean distance of the node's shifts from their
        median (where that is 0, their mean size): a price crosses its box while the residual goes from one end of the
        node's data to the other.
        """
        box = self.box
        span = box.high - box.low
        real = span > 0.0
        count = np.maximum(real.sum(axis=1), 1)
        shift = np.sort(np.where(real, box.shift, np.inf), axis=1)
        ends = np.take_along_axis(shift, np.stack([(count - 1) // 2, count // 2], axis=1), axis=1)
        middle = np.where(real.any(axis=1), ends.mean(axis=1), 0.0)[:, None]
        spread, size = ((np.abs(x) * real).sum(axis=1) / count for x in (box.shift - middle, box.shift))
        delta = np.where(spread > 0.0, spread, np.where(size > 0.0, size, 1.0))
        return (span * box.norms**2).sum(axis=1) / (box.X.shape[2] * delta)


def _cold(box: Boxes, v: Array) -> Face:
    """No price is free: each is at the end of its box to which v points."""
    g, _, d = box.X.shape
    price = np.where(box.predict(v) > 0.0, box.high, box.low)
    N = np.tile(np.eye(d), (g, 1, 1))
    return Face(price, box.pull(price), np.zeros_like(price), N, np.zeros((g, d, d)), np.zeros((g, d)))


def _face(box: Boxes, price: Array) -> Face:
    """The face on which the prices inside their boxes are free."""
    free, (g, _, d) = box.inside(price), box.X.shape
    N, G, q = np.empty((g, d, d)), np.empty((g, d, d)), np.empty((g, d))
    for nodes, rows, mask in gathered(free):
        N[nodes], G[nodes], q[nodes] = _algebra(box.X[nodes[:, None], rows], box.shift[nodes[:, None], rows], mask)
    return Face(price, box.pull(price), free.astype(float), N, G, q)


def _algebra(X: Array, shift: Array, mask: Array) -> tuple[Array, Array, Array]:
    """N, G and q of the rows that are meant."""
    d = X.shape[2]
    U, sigma, V = np.linalg.svd(X * mask[:, :, None], False)
    seen = sigma > RANK * sigma[:, :1]
    V = V * seen[:, :, None]
    over = V / np.where(seen, sigma, 1.0)[:, :, None]
    N = np.eye(d) - np.matmul(V.transpose(0, 2, 1), V)
    N[seen.sum(axis=1) == d] = 0.0  # F determines w: a 0 comes out as 0
    q = times(over.transpose(0, 2, 1), times(U.transpose(0, 2, 1), shift * mask))
    return N, np.matmul(over.transpose(0, 2, 1), over), q


def _settle(box: Boxes, at: Target, face: Face) -> tuple[Array, Face, Array]:
    """The solution on each face, its prices the nearest to the old ones, and its error."""
    start = at.v - at.tau * face.pull
    w = times(face.N, times(face.N, start)) - face.q  # twice: then the rounding is that of w, not that of the start
    y = times(face.G, start - w) / at.tau
    both = np.matmul(box.X, np.stack([w, y], axis=2))
    price = np.clip(face.price + face.free * both[:, :, 1], box.low, box.high)
    face = face._replace(price=price, pull=box.pull(price))
    return w, face, _error(box, at, w, both[:, :, 0] + box.shift, face)


def _error(box: Boxes, at: Target, w: Array, x: Array, face: Face) -> Array:
    """By how much the conditions fail, each relative to the size of its terms, (g,).

    A w below the rounding of tau X'a is 0: where v is 0 and every sample is a tie, it is all that there is.
    """
    terms = at.tau[:, 0] * box.force
    size = row_norm(at.v) + row_norm(w) + ROUNDING * terms
    wrong = np.maximum(np.where(face.price < box.high, x, 0.0), np.where(face.price > box.low, -x, 0.0))
    off = np.abs(w - at.v + at.tau * face.pull).max(axis=1)
    sign = wrong / (box.norms * size[:, None] + np.abs(box.shift) + TINY)
    return np.maximum(sign.max(axis=1), off / (size + terms + TINY))


def _search(box: Boxes, at: Target, face: Face, w: Array) -> tuple[Array, Face]:
    """The solution at nodes whose face is not known, from the prices of another one."""
    out, found, least = w.copy(), face, np.full(len(w), np.inf)
    left = np.arange(len(w))
    width, price = widths(box, at, w), face.price
    for smoothing, repairs in zip(SMOOTHING, REPAIRS, strict=True):
        w, price = smoothed(box, at, price, smoothing * width, w)
        for point, its, error in _candidates(box, at, price, w, repairs):
            better = (error < least[left]) & (least[left] > EXACT)  # how far a node goes depends on no other
            nodes = left[better]
            least[nodes], out[nodes] = error[better], point[better]
            found = found.put(nodes, taken(its, better))
        bad = np.flatnonzero(least[left] > EXACT)
        if not len(bad):
            break
        left, w, price, width = left[bad], w[bad], price[bad], width[bad]
        box, at = taken(box, bad), taken(at, bad)
    return out, found


def _candidates(box: Boxes, at: Target, price: Array, w: Array, repairs: int) -> list[tuple[Array, Face, Array]]:
    """The smoothed point, then the solutions on its face, on the face of what clipping leaves of that, and so on."""
    face = _face(box, price)
    out = [(w, face, _error(box, at, w, box.predict(w), face))]
    for _ in range(repairs):
        point, settled, error = _settle(box, at, face)
        out.append((point, settled, error))
        if (error <= EXACT).all():
            break
        face = _face(box, settled.price)
    return out
