"""The exact prox of a node's piecewise linear losses (quantile, hinge), for all nodes at once.

One sample's loss is max over a in [low, high] of a (x_r'w + shift_r). The prox of a node's sum at v has prices with

    w = v - tau X'a,    a_r = high_r where x_r'w + shift_r > 0,  low_r where it is < 0,  anything between where it is 0:

a box quadratic programme in the prices. Once it is known which prices are free (inside their box) it is linear
algebra: w lies on the face X_F w + shift_F = 0. Every call first tries the faces of the last one, at two passes over
the samples, and checks the conditions. Nodes where they fail look for their face by a semismooth Newton method, solve
on it and check again. What comes back is verified to rounding; where no face passes (near-collinear columns together
with exact ties) it is the point with the least error that was seen.

The search is for box quadratic programmes: proximal steps in the prices, each by a semismooth Newton method.

    maximise over low <= a <= high:   a'(X v + shift) - tau/2 ||X'a||^2  -  sum_r eps_r/2 (a_r - b_r)^2

is strongly concave whatever X is, and its dual is a smooth, piecewise quadratic function of the d unknowns w,

    phi(w) = sum_r max over a_r of [a_r x_r - eps_r/2 (a_r - b_r)^2] + 1/(2 tau) ||w - v||^2,    x = X w + shift,

with prices a = clip(b + x / eps). Newton steps with an exact line search end after finitely many (Sun 1997). With the
last prices as b and a smaller eps each time, a few such problems lead to the prices without eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..base.clock import check_deadline
from ..errors import MethodError
from ..terms import Array, times
from ..terms.penalties import row_norm

MOST_STEPS = 1000  # some hundred where tau is so long that the problem is all but a linear programme
NOISE = 4e-16  # what rounding leaves of a sum, relative to its terms
RIDGE, HARMLESS = 4e-16, 1e-8  # added to a Hessian relative to its trace; against its least eigenvalue, which is 1
ROUGH_STEPS = 3  # Newton steps on one piece of phi where the ridge makes them less than exact
FEW = 0.25  # of the samples: so many free ones are gathered before they are multiplied
TINY = float(np.finfo(float).tiny)
T = TypeVar("T")


class Boxes(NamedTuple):
    """The samples of g nodes: predictors x = X w + shift, prices in [low, high]; padding is zero rows with [0, 0]."""

    X: Array  # (g, m, d)
    XT: Array  # (g, d, m), contiguous
    shift: Array  # (g, m)
    low: Array
    high: Array
    norms: Array  # of the rows of X, (g, m)
    force: Array  # a bound of ||X'a||: the sum over the samples of the largest |a_r| |x_r|, (g,)

    @classmethod
    def of(cls, X: Array, shift: Array, low: Array, high: Array) -> Boxes:
        XT = np.ascontiguousarray(X.transpose(0, 2, 1))
        norms = np.sqrt((X**2).sum(axis=2))
        return cls(X, XT, shift, low, high, norms, (norms * np.maximum(np.abs(low), np.abs(high))).sum(axis=1))

    def predict(self, w: Array) -> Array:
        return times(self.X, w) + self.shift

    def adjoint(self, price: Array) -> Array:
        """X'a, (g, d)."""
        return times(self.XT, price)

    def inside(self, price: Array) -> Array:
        return (price > self.low) & (price < self.high)


class Target(NamedTuple):
    """The points at which the proxes of the nodes are taken."""

    v: Array  # (g, d)
    tau: Array  # (g, 1)


class SmoothedProblem(NamedTuple):
    """phi of each node."""

    box: Boxes
    at: Target
    base: Array  # b, (g, m)
    eps: Array
    to_low: Array  # the residuals at which a price meets its box
    to_high: Array

    def price(self, x: Array) -> Array:
        return np.clip(self.base + x / self.eps, self.box.low, self.box.high)


def rows_of(record: T, nodes: Array) -> T:
    """The part of a record, a tuple of arrays and of such records, that belongs to some nodes."""
    parts: Any = record
    return parts._make(rows_of(each, nodes) if isinstance(each, tuple) else each[nodes] for each in parts)


def by_count(chosen: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Nodes (k,) that have about as many True entries in their rows of ``chosen`` (g, m), the places of these (k, j),
    and which of those places are meant (k, j). j is a power of two, or m: how a node is treated depends on no other."""
    count = chosen.sum(axis=1)
    size = np.minimum(1 << np.ceil(np.log2(np.maximum(count, 1))).astype(int), chosen.shape[1])
    order = np.argsort(~chosen, axis=1, kind="stable")
    for k in np.unique(size).tolist():
        nodes = np.flatnonzero(size == k)
        rows = order[nodes, :k]
        yield nodes, rows, chosen[nodes[:, None], rows]


def widths(box: Boxes, at: Target, w: Array) -> Array:
    """The distance of a residual from 0, per sample, beyond which its price is at an end of its box beyond doubt, (g,
    m).

    At most the typical residual, and at most what the prices can move this one: tau |x_r| sum_s |x_s| |a_s|.
    """
    real = box.high > box.low
    square = np.maximum(box.predict(at.v) ** 2, box.predict(w) ** 2)
    typical = np.sqrt(np.where(real, square, 0.0).sum(axis=1) / np.maximum(real.sum(axis=1), 1))[:, None]
    reach = at.tau * box.force[:, None] * box.norms
    return np.minimum(np.where(typical > 0.0, typical, np.inf), np.where(reach > 0.0, reach, 1.0))


def smoothed(box: Boxes, at: Target, base: Array, width: Array, w: Array) -> tuple[Array, Array]:
    """The minimiser of phi, from w, and its prices; ``width`` is eps (high - low) per sample, ``base`` is b."""
    span = box.high - box.low
    eps = width / np.where(span > 0.0, span, 1.0)
    phi = every = SmoothedProblem(box, at, base, eps, eps * (box.low - base), eps * (box.high - base))
    out, nodes = w.copy(), np.arange(len(w))
    x = box.predict(w)
    left = np.ones(len(w), dtype=bool)  # nodes that are not there yet; each decides for itself
    calm = np.zeros(len(w))  # their steps within one piece of phi
    for _ in range(MOST_STEPS):
        check_deadline()
        step, slope, rough = _newton(phi, w, x)
        turn = times(phi.box.X, step)
        new = x + turn
        straight = (((x > phi.to_low) == (new > phi.to_low)) & ((x < phi.to_high) == (new < phi.to_high))).all(axis=1)
        t = left.astype(float)  # those that are done stay
        bent = np.flatnonzero(left & ~straight)
        if len(bent):
            t[bent] = _root(phi, bent, x[bent], turn[bent], _along(phi, step, slope)[:, bent])
        calm += straight
        left &= (calm < np.where(rough, ROUGH_STEPS, 1)) & (row_norm(slope) > _noise(phi, w, x))
        w = w + t[:, None] * step
        x = phi.box.predict(w)
        if 2 * left.sum() <= len(left):  # go on without those that are done
            out[nodes] = w
            keep = np.flatnonzero(left)
            phi, nodes, w, x, calm, left = rows_of(phi, keep), nodes[keep], w[keep], x[keep], calm[keep], left[keep]
        if not len(nodes):
            break
    out[nodes] = w
    return out, every.price(box.predict(out))


def _newton(phi: SmoothedProblem, w: Array, x: Array) -> tuple[Array, Array, Array]:
    """The Newton step from w, tau times the gradient of phi there, and where the step is less than exact.

    H = I + X' diag(tau / eps) X over the free samples.
    """
    box, at = phi.box, phi.at
    slope = at.tau * box.adjoint(phi.price(x)) + w - at.v
    weight = np.where((x > phi.to_low) & (x < phi.to_high), at.tau / phi.eps, 0.0)
    H = _gram(box.XT, box.X, weight)
    diagonal = np.arange(w.shape[1])
    ridge = RIDGE * H[:, diagonal, diagonal].sum(axis=1)  # without it H can be singular to working accuracy
    H[:, diagonal, diagonal] += 1.0 + ridge[:, None]
    return -np.linalg.solve(H, slope[:, :, None])[:, :, 0], slope, ridge > HARMLESS


def _gram(XT: Array, X: Array, weight: Array) -> Array:
    """X' diag(weight) X, from the samples with a weight alone where they are few."""
    free = weight > 0.0
    few = free.sum(axis=1) <= FEW * weight.shape[1]
    if not few.any():
        return np.matmul(XT * weight[:, None, :], X)
    out, many = np.empty((len(X), X.shape[2], X.shape[2])), np.flatnonzero(~few)
    out[many] = np.matmul(XT[many] * weight[many, None, :], X[many])
    some = np.flatnonzero(few)
    for nodes, rows, _ in by_count(free[some]):
        each = some[nodes][:, None]
        part = X[each, rows]
        out[some[nodes]] = np.matmul((part * weight[each, rows][:, :, None]).transpose(0, 2, 1), part)
    return out


def _noise(phi: SmoothedProblem, w: Array, x: Array) -> Array:
    """The part of tau times the gradient that may be rounding, (g,)."""
    box, at = phi.box, phi.at
    free = (x > phi.to_low) & (x < phi.to_high)
    terms = np.abs(box.shift) + box.norms * row_norm(w)[:, None]
    each = box.norms * (np.abs(phi.price(x)) + np.where(free, terms / phi.eps, 0.0))
    return NOISE * (row_norm(w) + row_norm(at.v) + at.tau[:, 0] * each.sum(axis=1))


def _along(phi: SmoothedProblem, step: Array, slope: Array) -> Array:
    """The derivative of phi along the step, and the curvature of its quadratic term, (2, g)."""
    return np.stack([(step * slope).sum(axis=1), (step * step).sum(axis=1)]) / phi.at.tau[:, 0]


def _root(phi: SmoothedProblem, nodes: Array, x: Array, turn: Array, along: Array) -> Array:
    """The t > 0 at which phi is least along w + t step: the root of its derivative, piecewise linear in t.

    While x_r + t turn_r is between to_low and to_high, sample r adds turn_r^2 / eps_r to the increase.
    """
    slope, bend = along
    moves = turn != 0.0
    speed = np.where(moves, turn, 1.0)
    ends = (phi.to_low[nodes], phi.to_high[nodes])
    one, two = (np.where(moves, np.maximum((end - x) / speed, 0.0), 0.0) for end in ends)
    rise = turn**2 / phi.eps[nodes]
    at = np.concatenate([np.minimum(one, two), np.maximum(one, two)], axis=1)
    order = np.argsort(at, axis=1)
    at = np.take_along_axis(at, order, axis=1)
    rise = np.take_along_axis(np.concatenate([rise, -rise], axis=1), order, axis=1)
    rate = np.zeros((len(x), at.shape[1] + 1))  # of the derivative, before each breakpoint and after the last
    np.cumsum(rise, axis=1, out=rate[:, 1:])
    rate = np.maximum(rate, 0.0) + bend[:, None]
    value = np.zeros_like(rate)  # the derivative where each of these pieces begins
    np.cumsum(rate[:, :-1] * np.diff(at, axis=1, prepend=0.0), axis=1, out=value[:, 1:])
    value += slope[:, None]
    piece = np.maximum((value < 0.0).sum(axis=1) - 1, 0)
    lane = np.arange(len(x))
    begin = np.where(piece > 0, at[lane, piece - 1], 0.0)
    return begin - np.minimum(value[lane, piece], 0.0) / np.maximum(rate[lane, piece], TINY)


# ---- the solution on a face, and the face that holds it --------------------------------------------------------------
EXACT = 1e-13  # the error, relative to the terms of each condition, below which a point is accepted
SMOOTHING = (1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-12)  # relative to `widths`; rarely beyond the second
REPAIRS = (1, 1, 3, 3, 3, 3, 3, 3, 3)  # faces tried at each: where there are ties, clipped prices leave the face
ROUNDING = 2.0**-52
RANK = 1e-12  # of the largest singular value, below which rows count as dependent


class Face(NamedTuple):
    """Prices, and the least-squares algebra of the rows F whose prices are free."""

    price: Array  # (g, m)
    adjoint: Array  # X'a, (g, d)
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
            w[bad], found = _search(rows_of(self.box, bad), rows_of(at, bad), rows_of(face, bad), warm[bad])
            face = face.put(bad, found)
        return w, tuple(face)

    def prices(self, memory: Any) -> Array:
        """The prices (g, m) of the call that returned ``memory``, inside their boxes; w = v - tau X'a to rounding."""
        return memory[0]

    def curvature(self) -> Array:
        """A stand-in for the mean curvature, (g,): that of the losses smoothed over the typical residual.

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
    return Face(price, box.adjoint(price), np.zeros_like(price), N, np.zeros((g, d, d)), np.zeros((g, d)))


def _face(box: Boxes, price: Array) -> Face:
    """The face on which the prices inside their boxes are free."""
    free, (g, _, d) = box.inside(price), box.X.shape
    N, G, q = np.empty((g, d, d)), np.empty((g, d, d)), np.empty((g, d))
    for nodes, rows, mask in by_count(free):
        N[nodes], G[nodes], q[nodes] = _algebra(box.X[nodes[:, None], rows], box.shift[nodes[:, None], rows], mask)
    return Face(price, box.adjoint(price), free.astype(float), N, G, q)


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
    start = at.v - at.tau * face.adjoint
    w = times(face.N, times(face.N, start)) - face.q  # twice: then the rounding is that of w, not that of the start
    y = times(face.G, start - w) / at.tau
    both = np.matmul(box.X, np.stack([w, y], axis=2))
    price = np.clip(face.price + face.free * both[:, :, 1], box.low, box.high)
    face = face._replace(price=price, adjoint=box.adjoint(price))
    return w, face, _error(box, at, w, both[:, :, 0] + box.shift, face)


def _error(box: Boxes, at: Target, w: Array, x: Array, face: Face) -> Array:
    """The amount by which the conditions fail, each relative to the size of its terms, (g,).

    A w below the rounding of tau X'a is 0: where v is 0 and every sample is a tie, it is all that there is.
    """
    terms = at.tau[:, 0] * box.force
    size = row_norm(at.v) + row_norm(w) + ROUNDING * terms
    wrong = np.maximum(np.where(face.price < box.high, x, 0.0), np.where(face.price > box.low, -x, 0.0))
    off = np.abs(w - at.v + at.tau * face.adjoint).max(axis=1)
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
            found = found.put(nodes, rows_of(its, better))
        bad = np.flatnonzero(least[left] > EXACT)
        if not len(bad):
            break
        left, w, price, width = left[bad], w[bad], price[bad], width[bad]
        box, at = rows_of(box, bad), rows_of(at, bad)
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
