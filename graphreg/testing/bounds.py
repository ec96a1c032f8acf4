"""The laws that certificates rest on: bounds of a term over small boxes, and how its prices and flows may move.

A bound must hold with no tolerance. What it is compared with are the term's own values at sampled points of the box,
which are trusted to a few units in the last place, as they are where the bounds are derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from ..terms import Array
from ..terms.losses import AbstractLoss
from ..terms.penalties import AbstractPenalty
from .fenchel import CLOSED, floor_of
from .probe import LossProbe, Probe
from .report import Failures, demand, distance, dots, frozen, judge, rowwise, shaped

ULP = 2.0**-52
SPREADS = (0.0, 1e-17, 1e-12, 1e-6, 1e-3, 1.0)
TRUSTED = 8  # units in the last place of a value
TIGHT = 200  # units in the last place by which a bound may exceed the value where the spread is 0
LARGEST = 1e12  # value of a loss that grows exponentially, up to which its bound is asked to be tight
CORNERS = 8  # coordinates up to which all corners of a box are tried

Function = Callable[[Array], Array]
Bound = Callable[[Array, Array], Array]


def boxes(x: Array, rng: np.random.Generator, largest: float = 1.0) -> Iterator[tuple[Array, list[Array]]]:
    """Spreads shaped like x, and points of the boxes around x: corners, and others inside."""
    k = 1 if x.ndim == 1 else x.shape[1]
    signs = product((-1.0, 1.0), repeat=k) if 2**k <= CORNERS else rng.choice([-1.0, 1.0], (CORNERS, k))
    corners = [np.array(sign) for sign in signs]
    for size in (s for s in SPREADS if s <= largest):
        spread = size * rng.uniform(0.3, 1.0, x.shape)
        inside = [corner if x.ndim == 2 else corner[0] for corner in corners]
        inside += [rng.uniform(-1.0, 1.0, x.shape) for _ in range(2)]
        yield frozen(spread), [_towards(x, each * spread, spread) for each in inside]


def _towards(x: Array, by: Array, spread: Array) -> Array:
    """x + by as a float that certainly lies in the box: one unit nearer to x where rounding took it out."""
    moved = x + by
    out = np.abs(moved - x) > spread  # exact: the two are near one another
    return frozen(np.where(out, np.nextafter(moved, x), moved))


def holds(name: str, bound: Bound, function: Function, x: Array, probe: Probe | LossProbe, **where: Any) -> Failures:
    """The bound is not less than the function at any point of the box; +inf where one is outside the domain.

    Values are trusted to the last places; where methods run a solver, as far as the tolerance that they are granted.
    """
    trusted = TRUSTED * ULP if probe.tolerance <= CLOSED else probe.tolerance
    for spread, points in boxes(x, probe.rng):
        top = bound(x, spread)
        shaped(name, top, (len(x),))
        together = isinstance(probe, Probe)  # which takes any number of rows: a solver is asked once
        found = function(frozen(np.vstack(points))).reshape(-1, len(x)) if together else map(function, points)
        for point, value in zip(points, found, strict=True):
            floor = 1.0 if trusted > TRUSTED * ULP else 0.0  # of what a solver returns
            allowed = trusted * np.where(np.isfinite(value), np.maximum(np.abs(value), floor), 0.0)
            short = np.where(value == top, 0.0, value - allowed - top)
            sentence = f"{name} is an upper bound over every box"
            yield from judge(sentence, short, 0.0, x=x, spread=spread, at=point, **where)


def tight(
    name: str, bound: Bound, function: Function, x: Array, size: Array, probe: Probe | LossProbe, **where: Any
) -> Failures:
    """The bound exceeds the value by rounding at most where the spread is 0; ``size`` is that of what is added up. Of a
    term that is known less well, a thousandth of its accuracy is granted."""
    value, top = function(x), bound(x, frozen(np.zeros(x.shape)))
    finite = np.isfinite(value)
    by = np.where(finite, (top - np.where(finite, value, 0.0)) / (1e-290 + np.abs(value) + size), 0.0)
    most = TIGHT * ULP if probe.tolerance <= CLOSED else 1e-3 * probe.tolerance
    return judge(f"{name} is the value but for rounding where the spread is 0", by, most, x=x, **where)


# ---- losses ----------------------------------------------------------------------------------------------------------
def value_bound_of_losses(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """value_bound(r, spread) bounds l around r + anchor, and is l there where nothing is spread."""
    y, t = samples.y, loss.anchor(samples.y)
    shaped("anchor", t, y.shape)
    r = frozen(samples.x - t + t - t)

    def value(r: Array) -> Array:
        """l at r + anchor."""
        return loss.value(frozen(r + t), y)

    def bound(r: Array, spread: Array) -> Array:
        return loss.value_bound(r, spread, y)

    def off(r: Array) -> Array:
        """The change that rounding r + anchor may bring."""
        rounding = ULP * (np.abs(r) + 2 * np.abs(t))
        steep = dots(np.abs(loss.gradient(frozen(r + t), y)), rounding)
        several = 4 * ULP if y.ndim == 2 else 0.0  # sums of terms of order 1, where predictors are vectors
        return np.nan_to_num(steep, nan=0.0, posinf=0.0) + dots(rounding, rounding) + several

    yield from holds("value_bound", bound, lambda r: value(r) - off(r), r, samples, y=y)
    near = np.isfinite(value(r)) & (value(r) < LARGEST)
    r = frozen(np.where(rowwise(near, r), r, 0.0))
    added = loss.is_users() * dots(np.abs(r), np.ones(r.shape))  # by formulas such as f(2 (x - y)) - (x - y)
    yield from tight("value_bound", bound, value, r, off(r) / ULP + 1.0 + added, samples, y=y)


def conjugate_bound_of_losses(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """conjugate_bound(b, spread) bounds l*(b) - <b, anchor> around b, is +inf where the domain is left, and that
    difference itself where nothing is spread and b lies inside."""
    y = samples.y
    t, own = loss.anchor(y), loss.prices.dependent(y)

    def less(b: Array) -> Array:
        b = samples.rows.closed(b)
        value, linear = loss.conjugate(b, y), dots(b, t)
        off = TRUSTED * ULP * (np.abs(value) + dots(np.abs(b), np.abs(t)) + dots(np.abs(b), np.abs(b)))
        return np.where(np.isfinite(value), value - linear - off, value)

    def bound(b: Array, spread: Array) -> Array:
        return loss.conjugate_bound(samples.rows.closed(b), _summed(spread, own), y)

    low, high = loss.domain(y)
    for b in (samples.inside, samples.prices, _ends(low, samples.inside), _ends(high, samples.inside)):
        yield from holds("conjugate_bound", bound, less, b, samples, y=y)
    inside = frozen(0.9 * samples.inside)
    terms = np.abs(loss.conjugate(inside, y)) + dots(np.abs(inside), np.abs(t)) + dots(np.abs(inside), np.abs(inside))
    there = np.abs(loss.value(np.zeros(y.shape), y))
    terms += np.where(np.isfinite(there), there, 0.0)  # what is taken off where l* is derived from l
    terms += _growth(lambda b: loss.conjugate(b, y), inside)
    size = terms + ((np.abs(y) if y.ndim == 1 else np.abs(y).sum(axis=1)) + 1.0)

    def value(b: Array) -> Array:
        return loss.conjugate(b, y) - dots(b, t)

    yield from tight("conjugate_bound", bound, value, inside, size, samples, y=y)
    if own is None:
        yield from _leaves(bound, low, high, samples.inside, y)


def _summed(spread: Array, own: Array | None) -> Array:
    """Spreads of which the dependent one is that of the sum of the others."""
    if own is None:
        return spread
    out, r = spread.copy(), np.arange(len(spread))
    out[r, own] = 0.0
    out[r, own] = out.sum(axis=1) * (1.0 + 1e-9) + ULP * (out.any(axis=1))
    return frozen(out)


def _leaves(bound: Bound, low: Array, high: Array, inside: Array, y: Array) -> Failures:
    """Beyond an end of the domain by however little, the bound is +inf."""
    for end in (low, high):
        bounded = np.isfinite(end) if end.ndim == 1 else np.isfinite(end).all(axis=1)
        b = frozen(np.where(np.isfinite(end), end, inside))
        for spread in SPREADS[1:]:
            lost = bounded & np.isfinite(bound(b, frozen(np.full(b.shape, spread))))
            yield from judge("conjugate_bound is infinite where a box leaves the domain", lost, 0, b=b, y=y)


def dependent(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The prices of a loss that names a dependent coordinate sum to 0; of one that names none each may move by
    itself."""
    y, outside = samples.y, samples.outside
    own = loss.prices.dependent(y)
    if own is None:
        if y.ndim == 1:
            return
        middle = frozen(0.5 * samples.inside)
        moved = middle.copy()
        moved[:, 0] += 1e-6 * np.where(middle[:, 0] > 0, -1.0, 1.0)
        stuck = ~outside(middle) & outside(moved) & outside(2 * middle - moved)
        yield from judge("without a dependent coordinate each price moves by itself", stuck, 0, b=middle, y=y)
        return
    named = own.shape == (len(y),) and own.min() >= 0 and own.max() < y.shape[-1]
    demand(named, f"dependent must name one coordinate per sample, got {own}")
    b = samples.inside
    off = np.abs(b.sum(axis=1)) / (1.0 + np.abs(b).max(axis=1))
    yield from judge("prices of the domain sum to 0", off, 1e-12, b=b, y=y)
    middle = frozen(0.5 * (samples.inside + loss.gradient(frozen(np.zeros(y.shape)), y)))
    for j in range(y.shape[1]):
        moved = middle.copy()
        moved[:, j] += 1e-9
        moved[np.arange(len(y)), own] -= 1e-9
        lost = ~outside(middle) & outside(moved) & (own != j)
        yield from judge("a price moves against the dependent one", lost, 0, b=middle, y=y)


def _ends(end: Array, otherwise: Array) -> Array:
    return frozen(np.where(np.isfinite(end), end, otherwise))


# ---- penalties -------------------------------------------------------------------------------------------------------
def value_bound_of_penalties(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """value_bound(z, spread) bounds phi around z, +inf where the domain is left, and is phi where nothing is spread."""
    inner = 0.9 * penalty.prox(probe.points, 1.0)
    z = frozen(np.vstack([probe.points, penalty.prox(probe.points, 1.0), inner]))
    yield from holds("value_bound", penalty.value_bound, penalty.value, z, probe)
    size = np.abs(penalty.value(frozen(inner))) + probe.sum_over_coordinates(inner) + floor_of(probe.tolerance)
    yield from tight("value_bound", penalty.value_bound, penalty.value, frozen(inner), size, probe)


def conjugate_bound_of_penalties(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """conjugate_bound(u, spread) bounds phi* around u, +inf where the domain is left, and is phi* where nothing is
    spread and u lies inside. (Of flows that are stated by `composed` it is not asked.)"""
    if penalty.composed() is not None:
        return
    u = frozen(np.vstack([probe.points, probe.inside]))
    bound, conjugate = penalty.conjugate_bound, penalty.conjugate
    yield from holds("conjugate_bound", bound, conjugate, u, probe)
    inside = frozen(probe.middle + 0.9 * (probe.inside - probe.middle))
    size = np.where(probe.outside(inside), 0.0, (inside**2).sum(axis=1)) + floor_of(probe.tolerance)
    size = size + _growth(penalty.conjugate, inside)
    yield from tight("conjugate_bound", penalty.conjugate_bound, penalty.conjugate, inside, size, probe)


def slacks(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """A coordinate may move by its slack either way without leaving dom phi*, and some may move at all."""
    if penalty.composed() is not None:
        return
    u = frozen(probe.middle + 0.7 * (probe.inside - probe.middle))
    room = np.broadcast_to(penalty.domain.slacks(u), u.shape)
    yield from judge("slacks is a number >= 0 per coordinate", ~(room >= 0.0).all(axis=1), 0, u=u)
    inside = ~probe.outside(u)
    for j in range(probe.k):
        by = np.minimum(0.999 * room[:, j], 1e6)
        for sign in (-1.0, 1.0):
            moved = u.copy()
            moved[:, j] += sign * by
            lost = inside & probe.outside(moved)
            yield from judge("a flow that moves within its slack stays inside", lost, 0, u=u, room=room)


def composed(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """A phi that is stated as h(Rz) is that, with fewer rows than coordinates, and phi*(R'q) = h*(q)."""
    found = penalty.composed()
    if found is None:
        return
    R, h = found
    fitting = R.ndim == 2 and R.shape[1] == probe.k and len(R) < probe.k
    demand(fitting, f"the R of composed must be (r, {probe.k}) with r < {probe.k}, got {R.shape}")
    z = probe.points
    value, want = penalty.value(z), h.value(frozen(z @ R.T))
    by = distance(value, want, 1e-300 + probe.sum_over_coordinates(z))
    yield from judge("phi(z) = h(Rz)", by, 1e-12, z=z)
    q = frozen(h.domain.clip(frozen(probe.rng.standard_normal((8, len(R))))) * (1.0 - 1e-9))
    by = np.abs(penalty.conjugate(frozen(q @ R)) - h.conjugate(q)) / (1.0 + h.conjugate(q))
    yield from judge("phi*(R'q) = h*(q)", by, 1e-9, q=q)


def parts(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """A phi that is stated as a sum is that sum: phi(z) = sum of positive numbers times the values of its parts."""
    if found := penalty.parts():
        z = frozen(np.vstack([probe.points, 0.9 * penalty.prox(probe.points, 1.0)]))
        demand(all(by > 0.0 for by, _ in found), f"the numbers of parts must be positive: {[by for by, _ in found]}")
        total = np.sum([by * part.value(z) for by, part in found], axis=0)
        yield from judge("phi(z) = the sum of its parts", distance(penalty.value(z), total), probe.tolerance, z=z)


def _growth(conjugate: Function, u: Array) -> Array:
    """How fast f* grows along u: f*(u) = <u, x> - f(x) is a difference of numbers of the size of <u, x>."""
    growth = (conjugate(frozen(1.001 * u)) - conjugate(u)) / 0.001
    return np.where(np.isfinite(growth), np.abs(growth), 0.0)
