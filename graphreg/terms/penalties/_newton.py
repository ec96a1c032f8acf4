"""Newton's method on many rows at once, for smooth functions of a few coordinates."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..derivatives import Jets
from ..records import Array

STEPS, HALVINGS = 80, 45
SMALL = 1e-11  # of a gradient that counts as 0, relative to what it is made of
LEAP = 16.0  # beyond, exponentials overflow
EPS = 2.0**-52


@dataclass(frozen=True)
class Problems:
    """minimise over p: ``factor f(p) - <linear, p> + near/2 ||p||^2``, for each row."""

    f: Jets
    factor: Array  # (m,)
    linear: Array  # (m, k)
    near: Array  # (m,)

    def take(self, rows: Array) -> Problems:
        return Problems(self.f, self.factor[rows], self.linear[rows], self.near[rows])

    def at(self, p: Array) -> Point:
        jet, c = self.f(p), self.factor[:, None]
        slope, pulled = c * jet.slope[:, 0], self.near[:, None] * p
        value = self.factor * jet.value[:, 0] - (self.linear * p).sum(axis=1) + self.near * (p * p).sum(axis=1) / 2
        bend = c[:, :, None] * jet.bend[:, 0] + self.near[:, None, None] * np.eye(p.shape[1])
        size = (np.abs(pulled) + np.abs(self.linear)).max(axis=1)
        return Point(p, value, slope + pulled - self.linear, self.factor * jet.size[:, 0] + size, bend)


@dataclass
class Point:
    """Points p (m, k) of problems: value, gradient, the size of what the gradient is made of, and Hessian."""

    p: Array
    value: Array
    gradient: Array
    size: Array
    bend: Array

    def take(self, rows: Array) -> Point:
        return Point(*(getattr(self, each.name)[rows] for each in fields(self)))

    def put(self, rows: Array, other: Point) -> None:
        for each in fields(self):
            getattr(self, each.name)[rows] = getattr(other, each.name)

    @property
    def error(self) -> Array:
        """How large the gradient is, relative to what it is made of."""
        return np.abs(self.gradient).max(axis=1) / np.maximum(self.size, 1e-300)

    def step(self) -> Array:
        """Newton's step, `LEAP` times as long as p at most; 0 where there is none."""
        k = self.p.shape[1]
        scale = np.trace(self.bend, axis1=1, axis2=2) / k
        fine = np.isfinite(self.bend).all(axis=(1, 2)) & np.isfinite(self.gradient).all(axis=1) & (scale > 0.0)
        H = np.where(fine[:, None, None], self.bend + (4 * EPS * scale)[:, None, None] * np.eye(k), np.eye(k))
        step = -np.linalg.solve(H, np.where(fine[:, None], self.gradient, 0.0)[:, :, None])[:, :, 0]
        longest = LEAP * (1.0 + np.abs(self.p).max(axis=1))
        return step * np.minimum(1.0, longest / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]


def minimisers(problems: Problems) -> tuple[Array, Array]:
    """The minimiser of each row, by Newton's method with halved steps from p = 0, where f is finite; and whether it was
    found, (m,)."""
    with np.errstate(all="ignore"):
        best = problems.at(np.zeros(problems.linear.shape))
        live = np.arange(len(best.p))
        for _ in range(STEPS):
            here = best.take(live)
            moved, still = _along(problems.take(live), here, here.step())
            best.put(live, moved)
            live = live[~still & (moved.error > EPS)]
            if not len(live):
                break
        return best.p, best.error <= SMALL


def _along(problems: Problems, here: Point, step: Array) -> tuple[Point, Array]:
    """The first of the points p + step, p + step / 2, ... that is better; and where there is none."""
    fall, out, todo, t = (here.gradient * step).sum(axis=1), here.take(np.arange(len(step))), np.arange(len(step)), 1.0
    todo = todo[np.abs(step).max(axis=1) > EPS * np.abs(here.p).max(axis=1)]
    for _ in range(HALVINGS):
        if not len(todo):
            break
        trial = problems.take(todo).at(here.p[todo] + t * step[todo])
        rounding = 4.0 * EPS * (np.abs(here.value[todo]) + here.size[todo] * np.abs(here.p[todo]).max(axis=1))
        ok = trial.value <= here.value[todo] + 1e-4 * t * fall[todo] + rounding
        ok &= np.isfinite(trial.bend).all(axis=(1, 2))
        # within rounding of the least value it is the gradient that tells
        ok &= (trial.value < here.value[todo] - rounding) | (trial.error < here.error[todo])
        out.put(todo[ok], trial.take(np.flatnonzero(ok)))
        todo, t = todo[~ok & (here.error[todo] > SMALL)], 0.5 * t  # below it, shorter steps only move the rounding
    return out, (out.p == here.p).all(axis=1)
