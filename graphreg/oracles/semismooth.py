"""Box quadratic programmes of many nodes at once: proximal steps in the prices, each by a semismooth Newton method.

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

from ..clock import look
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

    def pull(self, price: Array) -> Array:
        """X'a, (g, d)."""
        return times(self.XT, price)

    def inside(self, price: Array) -> Array:
        return (price > self.low) & (price < self.high)


class Target(NamedTuple):
    """Where the prox of each node is taken."""

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


def taken(record: T, nodes: Array) -> T:
    """What a record, a tuple of arrays and of such records, holds of some nodes."""
    parts: Any = record
    return parts._make(taken(each, nodes) if isinstance(each, tuple) else each[nodes] for each in parts)


def gathered(chosen: Array) -> Iterator[tuple[Array, Array, Array]]:
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
    """How far a residual must be from 0, per sample, for its price to be at an end of its box beyond doubt, (g, m).

    At most the typical residual, and at most what the prices can move this one: tau |x_r| sum_s |x_s| |a_s|.
    """
    real = box.high > box.low
    square = np.maximum(box.predict(at.v) ** 2, box.predict(w) ** 2)
    typical = np.sqrt(np.where(real, square, 0.0).sum(axis=1) / np.maximum(real.sum(axis=1), 1))[:, None]
    reach = at.tau * box.force[:, None] * box.norms
    return np.minimum(np.where(typical > 0.0, typical, np.inf), np.where(reach > 0.0, reach, 1.0))


def smoothed(box: Boxes, at: Target, base: Array, width: Array, w: Array) -> tuple[Array, Array]:
    """The minimiser of phi, from w, and its prices; ``width`` is eps (high - low) per sample, ``base`` is b."""
    phi = every = _smooth(box, at, base, width)
    out, nodes = w.copy(), np.arange(len(w))
    x = box.predict(w)
    left = np.ones(len(w), dtype=bool)  # nodes that are not there yet; each decides for itself
    calm = np.zeros(len(w))  # their steps within one piece of phi
    for _ in range(MOST_STEPS):
        look()
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
            phi, nodes, w, x, calm, left = taken(phi, keep), nodes[keep], w[keep], x[keep], calm[keep], left[keep]
        if not len(nodes):
            break
    out[nodes] = w
    return out, every.price(box.predict(out))


def _smooth(box: Boxes, at: Target, base: Array, width: Array) -> SmoothedProblem:
    span = box.high - box.low
    eps = width / np.where(span > 0.0, span, 1.0)
    return SmoothedProblem(box, at, base, eps, eps * (box.low - base), eps * (box.high - base))


def _newton(phi: SmoothedProblem, w: Array, x: Array) -> tuple[Array, Array, Array]:
    """The Newton step from w, tau times the gradient of phi there, and where the step is less than exact.

    H = I + X' diag(tau / eps) X over the free samples.
    """
    box, at = phi.box, phi.at
    slope = at.tau * box.pull(phi.price(x)) + w - at.v
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
    for nodes, rows, _ in gathered(free[some]):
        each = some[nodes][:, None]
        part = X[each, rows]
        out[some[nodes]] = np.matmul((part * weight[each, rows][:, :, None]).transpose(0, 2, 1), part)
    return out


def _noise(phi: SmoothedProblem, w: Array, x: Array) -> Array:
    """What rounding leaves of tau times the gradient, (g,)."""
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
