"""The Fenchel-Young laws, for penalties and losses alike: both are convex functions of one row with a conjugate.

A `Pair` is a function together with its conjugate, prox and clip on a fixed set of rows. Its verbs are

    residual(x, b) = f(x) + f*(b) - <x, b>,

which is >= 0 for all x and b, and 0 exactly where b is a subgradient of f at x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..terms import Array
from .report import Failures, distance, dots, frozen, judge, rowwise, shaped, size

CLOSED = 1e-8  # tolerance of methods in closed form
FAR = (1.0, 1e2, 1e4, 1e6)  # how far points are pushed along prices
FARTHEST = 1e14  # beside which all that is not linear in f is below rounding
LAST_PLACES = 1e-13  # what values and conjugates in closed form may round, relative to the largest part: some ulp
HALVINGS = 70  # of a way to the end of a domain
Call = tuple[str, Callable[..., Array], tuple[int, ...]]  # a name, the function of steps and points, its shape


@dataclass(frozen=True)
class Pair:
    """A convex function of each row with its conjugate: what the laws below need of a penalty or a loss."""

    value: Callable[[Array], Array]
    conjugate: Callable[[Array], Array]
    prox: Callable[[Array, Any], Array]
    clip: Callable[[Array], Array]

    def residual(self, x: Array, b: Array, conjugate: Array | None = None) -> tuple[Array, Array]:
        """f(x) + f*(b) - <x, b> and the size of its largest part; f*(b) may be known already."""
        f, xb = self.value(x), dots(x, b)
        g = self.conjugate(b) if conjugate is None else conjugate
        return f + g - xb, np.maximum(np.maximum(np.abs(f), np.abs(g)), np.maximum(np.abs(xb), 1e-300))

    def outside(self, b: Array) -> Array:
        """Which rows lie outside dom f*, a mask."""
        return ~np.isfinite(self.conjugate(frozen(b)))

    def settle(self, b: Array, slack: Array) -> tuple[Array, Array]:
        """b, moved inside dom f* where rounding may have put it outside, and by how much more than ``slack``."""
        outside = self.outside(b)
        if not outside.any():
            return b, np.zeros(len(b))
        inside = np.where(rowwise(outside, b), self.clip(b), b)
        return inside, size(inside - b) / np.maximum(slack, 1e-300)


def floor_of(tolerance: float) -> float:
    """What is added to sizes in relative differences: closed forms keep their digits near 0, what a solver finds is
    known against numbers near 1."""
    return 1e-300 if tolerance <= CLOSED else 1.0


def rows_are_independent(
    calls: Sequence[Call], rng: np.random.Generator, tolerance: float, **points: Array
) -> Failures:
    """Each call has the right shape and treats rows independently; the last, the prox, takes one step per row."""
    given, floor = list(points.values()), floor_of(tolerance)
    steps = frozen(10.0 ** rng.uniform(-1, 1, len(given[0])))
    order = rng.permutation(len(steps))[: len(steps) // 2]
    for name, call, shape in calls:
        whole, part = call(steps, *given), call(*(frozen(each[order]) for each in (steps, *given)))
        shaped(name, whole, shape)
        where = {key: each[order] for key, each in points.items()}
        yield from judge(f"{name} treats rows independently", distance(whole[order], part, floor), tolerance, **where)
    few, prox = order[:6], calls[-1][1]
    alone = np.concatenate([prox(float(steps[i]), *(each[i : i + 1] for each in given)) for i in few])
    by = size(alone - prox(steps, *given)[few]) / (floor + sum(size(each[few]) for each in given))
    where = {key: each[few] for key, each in points.items()}
    yield from judge("prox takes one step per row", by, tolerance, **where, step=steps[few])


def prox_is_optimal(pair: Pair, v: Array, step: Any, tolerance: float, **where: Any) -> Failures:
    """With p = prox(v, step) and b = (v - p) / step, b is a subgradient at p: residual(p, b) = 0."""
    p = pair.prox(v, step)
    shaped("prox", p, v.shape)
    t = np.broadcast_to(step, (len(v),))
    b = (v - p) / rowwise(t, v)
    where = {**where, "v": v, "step": t}
    b, moved = pair.settle(b, size(b) + size(v) / t)
    found = judge("(v - prox(v, step)) / step lies in dom of the conjugate", moved, tolerance, **where)
    found += judge("prox(v, step) has a finite value", ~np.isfinite(pair.value(p)), 0, **where)
    yield from found
    residual, scale = pair.residual(p, b)
    keep = np.isfinite(residual) if found else np.full(len(v), True)
    by = np.abs(residual) / (scale + dots(v, v) / t + 1e3 * tolerance)  # what is left of rows that should be 0
    sentence = "p = prox(v, step) satisfies f(p) + f*(b) = <p, b> with b = (v - p) / step"
    yield from judge(sentence, np.where(keep, by, 0.0), tolerance, **where)


def residual_is_positive(pair: Pair, b: Array, directions: list[Array], tolerance: float, **where: Any) -> Failures:
    """f(x) + f*(b) >= <x, b> with x pushed far along b, along ``directions``, and to the maximiser of <x, b> - f(x).

    That maximiser is approached by prox(s b, s), which minimises f(x) - <x, b> + ||x||^2 / (2s).
    """
    conjugate = pair.conjugate(b)
    unit = b / rowwise(np.maximum(size(b), 1e-300), b)
    for far in FAR:
        points = [far * direction for direction in (unit, *directions)]
        with_prox = pair.prox(frozen(far * b), far)
        if np.isfinite(with_prox).all():
            points.append(with_prox)
        for x in points:
            residual, scale = pair.residual(frozen(x), b, conjugate)
            # f near 0 may be a difference of numbers of the size of x
            scale = np.where(np.isfinite(scale), scale, 1.0) + 1e-6 * (size(x) + floor_of(tolerance))
            by = np.where(residual == np.inf, 0.0, -residual / scale)
            yield from judge("f(x) + f*(b) >= <x, b> everywhere", by, tolerance, **where, x=x, b=b)


def ends_where_it_must(
    pair: Pair, start: Array, end: Array, direction: Array, tolerance: float, floor: float, **where: Any
) -> Failures:
    """f(x) + f*(b) >= <x, b> at the last b with a finite conjugate on the way from start to end, with x pushed so far
    that a domain that is too wide by some units in the last place shows, where f* is not 0 inside, too; ``floor`` is
    added to the size of b."""
    low, high = np.zeros(len(start)), np.ones(len(start))
    keep = pair.outside(end) & ~pair.outside(start)
    for _ in range(HALVINGS if keep.any() else 0):
        middle = 0.5 * (low + high)
        inside = ~pair.outside(start + rowwise(middle, start) * (end - start))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    b = frozen(start + rowwise(np.where(keep, low, 0.0), start) * (end - start))
    x = frozen(FARTHEST * direction)
    residual, scale = pair.residual(x, b)
    tolerance = LAST_PLACES if tolerance <= CLOSED else tolerance
    by = np.where(keep & (residual < 0.0), -residual / (scale + floor * size(x)), 0.0)
    return judge("the conjugate is finite no further than the slopes of f", by, tolerance, **where, x=x, b=b)


def midpoints_lie_below(
    pair: Pair, x: Array, z: Array, tolerance: float, floor: Array | float = 0.0, **where: Any
) -> Failures:
    """f((x + z) / 2) <= (f(x) + f(z)) / 2; ``floor`` is added to the size of the values."""
    left, right, middle = pair.value(x), pair.value(z), pair.value((x + z) / 2)
    chord = np.where(np.isfinite(left) & np.isfinite(right), (left + right) / 2, np.inf)
    parts = np.maximum(np.abs(left) + np.abs(right) + floor, floor_of(tolerance))
    by = np.where(chord == np.inf, 0.0, (middle - chord) / parts)
    return judge("f((x + z) / 2) <= (f(x) + f(z)) / 2", by, tolerance, **where, x=x, z=z)


def clip_is_sound(pair: Pair, b: Array, tolerance: float, floor: float = 1e-300, **where: Any) -> Failures:
    """clip lands in dom f*, twice is once, and what is well inside stays; ``floor`` is added to the size of b."""
    clipped = pair.clip(b)
    shaped("clip", clipped, b.shape)
    yield from judge("clip(b) lies in dom of the conjugate", pair.outside(clipped), 0, **where, b=b)
    again = distance(pair.clip(frozen(clipped)), clipped, floor)
    yield from judge("clip(clip(b)) = clip(b)", again, tolerance, **where, b=b)
    near, beside = np.maximum(np.abs(b), 1e-6), pair.outside(b)
    for shift in (-1e-3, 1e-3):
        beside = beside | pair.outside(b + shift * near) | pair.outside(b * (1 + shift))
    moved = np.where(beside, 0.0, distance(clipped, b, floor))
    yield from judge("clip(b) = b where b lies inside dom of the conjugate", moved, tolerance, **where, b=b)


def reach_is_sound(
    pair: Pair, t: Array, start: Array, end: Array, margin: float | None = None, **where: Any
) -> Failures:
    """start + t (end - start) lies in dom f*, with t in [0, 1]; with a ``margin``, no t larger by more has that."""
    where = {**where, "start": start, "end": end, "t": t}
    shaped("reach", t, (len(start),))
    yield from judge("reach lies in [0, 1]", np.maximum(-t, t - 1.0), 0.0, **where)
    point = start + rowwise(t * (1 - 1e-9), start) * (end - start)
    sentence = "start + reach (end - start) lies in dom of the conjugate"
    yield from judge(sentence, pair.outside(point), 0, **where)
    if margin is None:
        return
    further = np.minimum(t * (1 + margin) + margin, 1.0)
    beyond = start + rowwise(further, start) * (end - start)
    short = (t < 1.0 - margin) & ~pair.outside(beyond)
    yield from judge("reach is the largest such t", short, 0, **where)
