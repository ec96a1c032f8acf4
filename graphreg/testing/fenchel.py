"""The Fenchel-Young laws, for penalties and losses alike: both are convex functions of one row with a conjugate.

The residual f(x) + f*(b) - <x, b> is >= 0 for all x and b, and 0 exactly where b is a subgradient of f at x. Its laws
are those of `graphreg.certificate.laws`, which solves try, too, at their own points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..certificate import TermRows, laws
from ..terms import Array, bisected, times
from .report import Failures, distance, dots, frozen, judge, judged, rowwise, shaped, size

CLOSED = 1e-8  # tolerance of methods in closed form
FAR = (1.0, 1e2, 1e4, 1e6)  # how far points are pushed along prices
BEYOND = (1e-4, 3e-3)  # how far beyond a prox, along its price, relative to its size
FARTHEST = 1e14  # beside which all that is not linear in f is below rounding
LAST_PLACES = 1e-13  # what values and conjugates in closed form may round, relative to the largest part: some ulp
HALVINGS = 70  # of a way to the end of a domain
STEP = 1e-5  # of differences


def outside(rows: TermRows, b: Array) -> Array:
    """A mask of the rows that lie outside dom f*."""
    return ~np.isfinite(rows.conjugate(frozen(b)))


def moved_inside(rows: TermRows, b: Array, slack: Array, tolerance: float) -> tuple[Array, Array]:
    """b, moved inside dom f* where rounding, or a solver, may have put it outside, and by how much, beside
    ``slack``."""
    away = outside(rows, b)
    if not away.any():
        return b, np.zeros(len(b))
    clipped = rows.clip(b) * (1.0 - (0.1 * tolerance if tolerance > CLOSED else 0.0))
    inside = np.where(rowwise(away, b), clipped, b)
    return inside, size(inside - b) / np.maximum(slack, 1e-300)


def floor_of(tolerance: float) -> float:
    """The number that is added to sizes in relative differences: closed forms keep their digits near 0, what a solver
    finds is known against numbers near 1."""
    return 1e-300 if tolerance <= CLOSED else 1.0


def rows_are_independent(rows: TermRows, x: Array, rng: np.random.Generator, tolerance: float) -> Failures:
    """Each method has the right shape and treats rows independently; the prox takes one step per row."""
    near = tolerance if tolerance <= CLOSED else tolerance**0.5  # of minimisers, where minima are known so well
    floor, steps = floor_of(tolerance), frozen(10.0 ** rng.uniform(-1, 1, len(x)))
    order = rng.permutation(len(x))[: len(x) // 2]
    part, where = rows.take(order), {"x": x[order], **({"y": rows.targets[0][order]} if rows.targets else {})}
    names = {"value": (len(x),), **({"gradient": x.shape} if rows.targets else {}), "conjugate": (len(x),)}
    for name, shape in {**names, "prox": x.shape}.items():
        more = (steps,) if name == "prox" else ()
        whole = getattr(rows, name)(x, *more)
        some = getattr(part, name)(*(frozen(each[order]) for each in (x, *more)))
        shaped(name, whole, shape)
        nan = np.isnan(whole).reshape(len(x), -1).any(axis=1)[order]
        yield from judge(f"{name} is not nan", nan, 0, **where)
        by, most = np.where(nan, 0.0, distance(whole[order], some, floor)), near if name == "prox" else tolerance
        yield from judge(f"{name} treats rows independently", by, most, **where)
    few = order[:6]
    alone = np.concatenate([rows.take(slice(i, i + 1)).prox(x[i : i + 1], float(steps[i])) for i in few])
    by = size(alone - rows.prox(x, steps)[few]) / (floor + sum(size(each[few]) for each in (x, *rows.targets)))
    where = {name: each[:6] for name, each in where.items()}
    yield from judge("prox takes one step per row", by, near, **where, step=steps[few])


def gradient_is_right(
    value: Callable[[Array], Array], gradient: Array, x: Array, tolerance: float, **where: Any
) -> Failures:
    """Each coordinate of a gradient at x lies between the differences of the value to the left and to the right."""
    at = value(x)
    for unit in units(x):
        h = STEP * np.maximum(1.0, size(x))
        right = (value(frozen(x + rowwise(h, x) * unit)) - at) / h
        left = (at - value(frozen(x - rowwise(h, x) * unit))) / h
        g = dots(gradient, unit)
        rounding = 1e-14 * (1.0 + np.abs(at)) / h
        by = np.where(np.isfinite(at), np.maximum(g - right, left - g) - rounding, 0.0) / (1.0 + np.abs(g))
        yield from judge("gradient lies between the one-sided differences of value", by, tolerance, x=x, **where)


def curvature_is_right(gradient: Callable[[Array], Array], curvature: Array, x: Array, **where: Any) -> Failures:
    """A curvature at x is the derivative of the gradient, away from kinks."""
    at = gradient(x)
    for unit in units(x):
        h = STEP * np.maximum(1.0, size(x))
        right = (gradient(frozen(x + rowwise(h, x) * unit)) - at) / rowwise(h, x)
        left = (at - gradient(frozen(x - rowwise(h, x) * unit))) / rowwise(h, x)
        change = size(right - left) / np.maximum(size(right) + size(left), 1e-300)
        smooth = change <= 1e-2  # no kink in between, nor the end of a domain, which makes it no number
        by = size(times(curvature, unit) - (left + right) / 2) / (1.0 + size(left + right) + size(at)) - change**2
        yield from judge("curvature is the derivative of gradient", np.where(smooth, by, 0.0), 1e-6, x=x, **where)


def units(x: Array) -> list[Array]:
    """The coordinate directions of arguments, shaped like x."""
    return [np.ones_like(x)] if x.ndim == 1 else [np.ones_like(x) * each for each in np.eye(x.shape[1])]


def prox_is_optimal(
    rows: TermRows, v: Array, step: Any, tolerance: float, scale: float = 0.0, **where: Any
) -> Failures:
    """With p = prox(v, step), (v - p) / step is a subgradient at p; ``scale`` is added to the size of subgradients."""
    p = rows.prox(v, step)
    shaped("prox", p, v.shape)
    t = np.broadcast_to(step, (len(v),))
    b = (v - p) / rowwise(t, v)
    where = {**where, "v": v, "step": t}
    b, moved = moved_inside(rows, b, size(b) + size(v) / t + scale, tolerance)
    found = judge("(v - prox(v, step)) / step lies in dom of the conjugate", moved, tolerance, **where)
    found += judge("prox(v, step) has a finite value", ~np.isfinite(rows.value(p)), 0, **where)
    yield from found
    trial = laws.equality(rows, p, b, laws.TOGETHER)
    if found:  # what was moved is no longer that of the sentence
        kept = np.isfinite(trial.excess) & (moved <= tolerance)
        trial = replace(trial, excess=np.where(kept, trial.excess, 0.0))
    rest = dots(v, v) / t + 1e3 * tolerance  # what is left of rows that should be 0
    yield from judged(trial, tolerance, rest, **where)
    unit, conjugate = b / rowwise(np.maximum(size(b), 1e-300), b), rows.conjugate(b)
    for part in BEYOND:  # where a constraint that is too wide by a little is still 0
        x = frozen(p + rowwise(part * size(p), p) * unit)
        yield from judged(laws.fenchel_young(rows, x, b, conjugate), tolerance, rest, **where)


def residual_is_positive(rows: TermRows, b: Array, directions: list[Array], tolerance: float, **where: Any) -> Failures:
    """f(x) + f*(b) >= <x, b> with x pushed far along b, along ``directions``, and to the maximiser of <x, b> - f(x).

    That maximiser is approached by prox(s b, s), which minimises f(x) - <x, b> + ||x||^2 / (2s).
    """
    conjugate = rows.conjugate(b)
    unit = b / rowwise(np.maximum(size(b), 1e-300), b)
    for far in FAR:
        points = [far * direction for direction in (unit, *directions)]
        with_prox = rows.prox(frozen(far * b), far)
        if np.isfinite(with_prox).all():
            points.append(with_prox)
        for x in points:
            # f near 0 may be a difference of numbers of the size of x
            rounding = 1e-6 * (size(x) + floor_of(tolerance))
            yield from judged(laws.fenchel_young(rows, frozen(x), b, conjugate), tolerance, rounding, **where)


def ends_where_it_must(
    rows: TermRows, start: Array, end: Array, direction: Array, tolerance: float, floor: float, **where: Any
) -> Failures:
    """f(x) + f*(b) >= <x, b> at the last b with a finite conjugate on the way from start to end, with x pushed so far
    that a domain that is too wide by some units in the last place shows, where f* is not 0 inside, too; ``floor`` is
    added to the size of b."""
    keep = outside(rows, end) & ~outside(rows, start)

    def inside(t: Array) -> Array:
        return ~outside(rows, start + rowwise(t, start) * (end - start))

    low, _ = bisected(inside, np.zeros(len(start)), np.ones(len(start)), HALVINGS if keep.any() else 0)
    b = frozen(start + rowwise(np.where(keep, low, 0.0), start) * (end - start))
    trial = laws.fenchel_young(rows, frozen(FARTHEST * direction), b)
    excess = np.where(keep, trial.excess, 0.0)
    trial = replace(trial, law="the conjugate is finite no further than the slopes of f", excess=excess)
    tolerance = LAST_PLACES if tolerance <= CLOSED else tolerance
    return judged(trial, tolerance, floor * FARTHEST * size(direction), **where)


def clip_is_sound(rows: TermRows, b: Array, tolerance: float, floor: float = 1e-300, **where: Any) -> Failures:
    """clip lands in dom f*, twice is once, and what is well inside stays; ``floor`` is added to the size of b."""
    clipped = rows.clip(b)
    shaped("clip", clipped, b.shape)
    yield from judge("clip(b) lies in dom of the conjugate", outside(rows, clipped), 0, **where, b=b)
    again = distance(rows.clip(frozen(clipped)), clipped, floor)
    yield from judge("clip(clip(b)) = clip(b)", again, tolerance, **where, b=b)
    near, beside = np.maximum(np.abs(b), 1e-6), outside(rows, b)
    for shift in (-1e-3, 1e-3):
        beside = beside | outside(rows, b + shift * near) | outside(rows, b * (1 + shift))
    moved = np.where(beside, 0.0, distance(clipped, b, floor))
    yield from judge("clip(b) = b where b lies inside dom of the conjugate", moved, tolerance, **where, b=b)


def step_is_sound(
    rows: TermRows, t: Array, start: Array, end: Array, margin: float | None = None, **where: Any
) -> Failures:
    """start + t (end - start) lies in dom f*, with t in [0, 1]; with a ``margin``, no t larger by more has that."""
    where = {**where, "start": start, "end": end, "t": t}
    shaped("step_to_boundary", t, (len(start),))
    yield from judge("step_to_boundary lies in [0, 1]", np.maximum(-t, t - 1.0), 0.0, **where)
    point = rows.span(start + rowwise(t * (1 - 1e-9), start) * (end - start))
    sentence = "start + step_to_boundary (end - start) lies in dom of the conjugate"
    yield from judge(sentence, outside(rows, point), 0, **where)
    if margin is None:
        return
    further = np.minimum(t * (1 + margin) + margin, 1.0)
    beyond = start + rowwise(further, start) * (end - start)
    short = (t < 1.0 - margin) & ~outside(rows, beyond)
    yield from judge("step_to_boundary is the largest such t", short, 0, **where)
