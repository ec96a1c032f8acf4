"""The roots of increasing functions, the ends of intervals, and the slopes of functions far out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .records import Array

Function = Callable[[Array], Array]

GROWTH = 4.0  # of the steps that look for the other side of a root
WIDENINGS, HALVINGS = 70, 200
SHORT = 2.0**-52  # a step that moves nothing, relative
FAR_OUT = (1e300, 1e100, 1e12, 700.0)  # predictors where slopes are at their limits, in floats at one of them
HUGE, TINY = 1e90, 1e-90  # slopes that are infinite, or 0


def increasing_root(function: Function, slope: Function, start: Array) -> Array:
    """The root of each entry of an increasing function, by Newton's method within a bracket.

    A step that leaves the bracket, or that is longer than half the one before the last, is replaced by a halving.
    Entries are independent of each other. One without a root ends far out.
    """
    with np.errstate(all="ignore"):
        low, high = _bracket(function, start)
        p = np.clip(start, low, high)
        last = before = high - low
        still = np.zeros(p.shape, dtype=bool)
        for _ in range(HALVINGS):
            value = function(p)
            low, high = np.where(value <= 0.0, p, low), np.where(value >= 0.0, p, high)
            new = p - value / slope(p)
            fair = (new >= low) & (new <= high) & (2.0 * np.abs(new - p) <= before)
            new = np.where(still | (value == 0.0), p, np.where(fair, new, low + 0.5 * (high - low)))
            before, last = last, np.abs(new - p)
            still |= last <= SHORT * np.abs(p)
            p = new
            if still.all():
                break
    return p


def _bracket(function: Function, start: Array) -> tuple[Array, Array]:
    value = function(start)
    low, high = np.where(value <= 0.0, start, -np.inf), np.where(value >= 0.0, start, np.inf)
    step = 1.0
    for _ in range(WIDENINGS):
        below, above = np.isinf(low), np.isinf(high)
        if not (below | above).any():
            break
        at = np.where(below, high - step, np.where(above, low + step, start))
        value = function(at)
        low, high = (
            np.where(below & (value <= 0.0), at, np.where(above & (value <= 0.0), at, low)),
            np.where(above & (value >= 0.0), at, np.where(below & (value >= 0.0), at, high)),
        )
        step *= GROWTH
    return np.where(np.isinf(low), high - step, low), np.where(np.isinf(high), low + step, high)


def bisected(inside: Function, low: Array, high: Array, halvings: int = 100) -> tuple[Array, Array]:
    """The ends of intervals of which ``inside`` is true at ``low`` (or nowhere) and false at ``high`` (or nowhere),
    halved until nothing is between them."""
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        ok = inside(middle)
        low, high = np.where(ok, middle, low), np.where(ok, high, middle)
    return low, high


def slopes_far_out(gradient: Function, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The limits of an increasing gradient at -inf and +inf: between them lie the prices."""
    low, high = (_limit(gradient, shape, sign) for sign in (-1.0, 1.0))
    return np.where(low <= high, low, -np.inf), np.where(low <= high, high, np.inf)


def _limit(gradient: Function, shape: tuple[int, ...], sign: float) -> Array:
    """The farthest that is seen: slopes grow, so what overflows to less (x / sqrt(1 + x^2) to 0) is no limit."""
    found = np.full(shape, np.nan)
    with np.errstate(all="ignore"):
        for far in FAR_OUT:
            found = np.fmax(found, sign * gradient(np.full(shape, sign * far)))
    found = sign * np.where(np.isnan(found) | (np.abs(found) > HUGE), np.inf, found)
    return np.where(np.abs(found) < TINY, 0.0, found)
