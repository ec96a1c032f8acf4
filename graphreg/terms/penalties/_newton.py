"""Newton's method on many rows at once: smooth functions, and kinked ones by smooth functions that come near them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from ..records import Array
from ._smoothed import Smoothed

WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # of the kinks, relative to the numbers that meet there
SHARP, SHARP_STEPS = 1e-14, 4  # a width at which Newton's method ends at once, or only away from kinks
ROUGH = 1e-3  # what may be left to gain with kinks of a width, relative to the width
LEAST_GAIN = 1e-18  # relative to the energy; what is aimed at
NOTHING = 1e-6  # relative; of a gradient or a step that is as good as 0
STEPS, HALVINGS = 40, 30
LEAP = 16.0  # beyond, exponentials overflow
ENDS = 120  # lengths of rows are sought between 2^-120 and 2^120
FURTHEST = 2.0 ** (ENDS - 1)  # length from which on there is no minimiser
ROUNDING = 1e-13  # relative; what falls by less does not fall
EPS = 2.0**-52


@dataclass(frozen=True)
class Problems:
    """minimise over p: ``factor f(p) - <linear, p> + near/2 ||p||^2``, for each row."""

    f: Smoothed
    factor: Array  # (m,)
    linear: Array  # (m, k)
    near: float
    length: Array  # (m,): about that of p
    pull: Array  # (m,): how large gradients are
    widths: Array  # (m, kinks)

    def take(self, rows: Array) -> Problems:
        names = ("factor", "linear", "length", "pull", "widths")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def at(self, p: Array) -> Point:
        jet, c = self.f.jets(np.hstack([p, self.widths])), self.factor[:, None]
        value = self.factor * jet.value[:, 0] - (self.linear * p).sum(axis=1) + self.near * (p * p).sum(axis=1) / 2
        bend = c[:, :, None] * jet.bend[:, 0] + self.near * np.eye(p.shape[1])
        return Point(p, value, c * jet.slope[:, 0] + self.near * p - self.linear, bend)

    def energy(self, p: Array) -> Array:
        """What gains are measured by, (m,)."""
        return self.pull * self.length + np.abs(self.linear * p).sum(axis=1) + self.near * (p * p).sum(axis=1)


@dataclass
class Point:
    """Points p (m, k) of problems: value, gradient and Hessian."""

    p: Array
    value: Array
    gradient: Array
    bend: Array

    def take(self, rows: Array) -> Point:
        return Point(*(getattr(self, each.name)[rows] for each in fields(self)))

    def put(self, rows: Array, other: Point) -> None:
        for each in fields(self):
            getattr(self, each.name)[rows] = getattr(other, each.name)

    @property
    def defined(self) -> Array:
        """Where the function and its derivatives are finite, (m,)."""
        return np.isfinite(self.value) & np.isfinite(self.bend).all(axis=(1, 2))

    def gain(self, step: Array) -> Array:
        """By how much Newton's step lowers a quadratic function, (m,)."""
        return -0.5 * (self.gradient * step).sum(axis=1)

    def step(self) -> Array:
        """Newton's step, `LEAP` times as long as p at most; 0 where there is none."""
        k = self.p.shape[1]
        scale = np.trace(self.bend, axis1=1, axis2=2) / k
        fine = np.isfinite(self.bend).all(axis=(1, 2)) & np.isfinite(self.gradient).all(axis=1) & (scale > 0.0)
        scale = np.where(fine, scale, 1.0)[:, None]
        H = np.where(fine[:, None, None], self.bend / scale[:, :, None] + 4 * EPS * np.eye(k), np.eye(k))
        step = -np.linalg.solve(H, np.where(fine[:, None], self.gradient / scale, 0.0)[:, :, None])[:, :, 0]
        longest = LEAP * (1.0 + np.abs(self.p).max(axis=1))
        return step * (longest / np.maximum(np.abs(step).max(axis=1), longest))[:, None]


def starts(value: Callable[[Array], Array], factor: Array, linear: Array, near: float) -> tuple[Array, Array]:
    """Where `minimisers` begin: points (m, k) where ``factor phi(p) - <linear, p> + near/2 ||p||^2`` is finite, and
    about as long as the minimisers; and lengths (m,).

    The best points of the row of ``linear`` and of its coordinates, and their largest length: kinks may leave nothing
    to gain along most directions. Lengths are powers of 2.
    """
    m, k = linear.shape
    ways = np.vstack([linear, *(linear * axis for axis in np.eye(k))]) if k > 1 else linear
    slope = np.linalg.norm(ways, axis=1)
    e, factor = ways / np.maximum(slope, 1e-300)[:, None], np.tile(factor, len(ways) // m)

    def height(j: Array) -> Array:
        t = 2.0**j
        return factor * value(t[:, None] * e) - slope * t + near / 2.0 * t * t

    low, high = np.full(len(e), -float(ENDS)), np.full(len(e), float(ENDS))
    with np.errstate(all="ignore"):
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            falls = height(middle + 1.0) < height(middle) - ROUNDING * slope * 2.0**middle
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
        best = np.nan_to_num(height(high), nan=np.inf).reshape(-1, m).argmin(axis=0)
    points = (2.0 ** high[:, None] * e).reshape(-1, m, k)
    return points[best, np.arange(m)], 2.0 ** high.reshape(-1, m).max(axis=0)


def minimisers(problems: Problems, start: Array) -> tuple[Point, Array]:
    """The minimisers, along those with ever narrower kinks, and what may still be gained there, (m,); inf where they
    were not found."""
    with np.errstate(all="ignore"):
        sizes = _sizes(problems.f, start, problems.length)
        here = replace(problems, widths=sizes).at(start)
        for width in WIDTHS if len(problems.f.arguments) else WIDTHS[-1:]:
            problems = replace(problems, widths=width * sizes)
            enough = ROUGH * width if width > WIDTHS[-1] else LEAST_GAIN
            here = _descended(problems, _within(problems, here.p, start), enough)
        left = _left(problems, here)
        if len(problems.f.arguments):  # away from all kinks these may as well be sharp
            problems = replace(problems, widths=SHARP * sizes)
            sharp = _descended(problems, here.p, LEAST_GAIN, SHARP_STEPS)
            then = _left(problems, sharp)
            better = np.flatnonzero(then <= SHARP * problems.energy(here.p))
            here.put(better, sharp.take(better))
            left[better] = then[better]
    return here, left


def _left(problems: Problems, here: Point) -> Array:
    """What Newton's step would gain; inf where that says nothing."""
    step = here.step()
    return np.where(_arrived(problems, here, step), here.gain(step), np.inf)


def _arrived(problems: Problems, here: Point, step: Array) -> Array:
    """Whether there is a minimiser near by, and not only a function that is flat far out: the gradient is 0, or
    Newton's step is, and the function is curved."""
    length = np.maximum(np.abs(here.p).max(axis=1), problems.length)
    flat = np.abs(here.gradient).max(axis=1) * length <= NOTHING * problems.energy(here.p)
    still = (np.abs(step).max(axis=1) <= NOTHING * length) & (np.trace(here.bend, axis1=1, axis2=2) > 0.0)
    return here.defined & (flat | still) & (problems.length < FURTHEST)


def _sizes(f: Smoothed, p: Array, length: Array) -> Array:
    """How large the numbers are that meet at each kink around p, (m, kinks)."""
    m, k = p.shape
    axes = np.vstack([np.eye(k), -np.eye(k)])
    found = f.sizes(np.vstack([p, (length[:, None] * axes[:, None, :]).reshape(-1, k)]))
    return np.fmax.reduce(np.where(np.isfinite(found), found, np.nan).reshape(1 + 2 * k, m, -1))


def _within(problems: Problems, p: Array, start: Array) -> Array:
    """p, pulled back towards ``start`` to where the function is finite: with wider kinks its domain is wider."""
    for _ in range(HALVINGS):
        out = ~problems.at(p).defined
        if not out.any():
            break
        p = np.where(out[:, None], 0.5 * (p + start), p)
    return p


def _descended(problems: Problems, p: Array, enough: float, steps: int = STEPS) -> Point:
    """Newton's method from p, until what is still gained is a share of ``enough`` of the energy."""
    best = problems.at(p.copy())  # which is written to
    live = np.arange(len(p))
    for _ in range(steps):
        here = best.take(live)
        step = here.step()
        go = np.flatnonzero(~(here.gain(step) <= enough * problems.take(live).energy(here.p)))
        live = live[go]
        if not len(live):
            break
        moved, ok = _shorter(problems.take(live), here.take(go), step[go])
        best.put(live, moved)
        live = live[ok]
    return best


def _shorter(problems: Problems, here: Point, step: Array) -> tuple[Point, Array]:
    """A point along the step, the end of it if possible, where the function hardly rises, and whether there is one.

    As the function is convex its slope along the step tells, without the rounding of its values.
    """
    out, todo, t = here.take(np.arange(len(step))), np.arange(len(step)), np.ones(len(step))
    falls = -(here.gradient * step).sum(axis=1)
    for _ in range(HALVINGS):
        trial = problems.take(todo).at(here.p[todo] + t[todo, None] * step[todo])
        slope = (trial.gradient * step[todo]).sum(axis=1)
        ok = trial.defined & (slope <= 0.5 * falls[todo])
        out.put(todo[ok], trial.take(np.flatnonzero(ok)))
        share = np.where(trial.defined, falls[todo] / (falls[todo] + slope), 0.5)  # where a straight slope is 0
        t[todo] *= np.clip(share, 0.1, 0.5)
        todo = todo[~ok]
        if not len(todo):
            break
    moved = np.full(len(step), True)
    moved[todo] = False
    return out, moved
