"""Newton's method on many rows at once, for smooth functions of a few coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from ..terms import Array
from .jets import Jets

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

    f: Jets
    factor: Array  # (m,)
    linear: Array  # (m, k)
    near: float
    length: Array  # (m,): about that of p
    pull: Array  # (m,): how large gradients are

    def take(self, rows: Array) -> Problems:
        names = ("factor", "linear", "length", "pull")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def at(self, p: Array) -> Point:
        jet, c = self.f(p), self.factor[:, None]
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

    The best points of the row of ``linear`` and of its coordinates, and their largest length. Lengths are powers of 2.
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
    """The minimisers, and what may still be gained there, (m,); inf where they were not found."""
    with np.errstate(all="ignore"):
        here = _descended(problems, start)
        return here, _left(problems, here)


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


def _descended(problems: Problems, p: Array) -> Point:
    """Newton's method from p, until hardly anything is gained."""
    best = problems.at(p.copy())  # which is written to
    live = np.arange(len(p))
    for _ in range(STEPS):
        here = best.take(live)
        step = here.step()
        go = np.flatnonzero(~(here.gain(step) <= LEAST_GAIN * problems.take(live).energy(here.p)))
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
