"""Newton's method on many rows at once, for smooth CVXPY functions of a few coordinates, whose trees are differentiated
forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..terms import Array
from .atoms import affine_map, dense, smooth

LEAST_GAIN = 1e-18  # relative to the energy; what is aimed at
NOTHING = 1e-6  # relative; of a gradient or a step that is as good as 0
STEPS, HALVINGS = 40, 30
LEAP = 16.0  # beyond, exponentials overflow
ENDS = 120  # lengths of rows are sought between 2^-120 and 2^120
FURTHEST = 2.0 ** (ENDS - 1)  # length from which on there is no minimiser
ROUNDING = 1e-13  # relative; what falls by less does not fall
EPS = 2.0**-52


@dataclass(frozen=True)
class Jet:
    """s numbers at each of m rows, with their derivatives in the k coordinates: (m, s), (m, s, k) and (m, s, k, k)."""

    value: Array
    slope: Array
    bend: Array

    def mapped(self, M: Array) -> Jet:
        """M (r, s) times the numbers."""
        return Jet(
            self.value @ M.T,
            np.einsum("rs,msk->mrk", M, self.slope),
            np.einsum("rs,mskl->mrkl", M, self.bend),
        )

    def through(self, f: Array, df: Array, ddf: Array) -> Jet:
        """f of each number, from f, f' and f'' there."""
        square = self.slope[:, :, :, None] * self.slope[:, :, None, :]
        return Jet(
            f,
            df[:, :, None] * self.slope,
            ddf[:, :, None, None] * square + df[:, :, None, None] * self.bend,
        )


Jets = Callable[[Array], Jet]


def jets(expression: Any, z: Any) -> Jets:
    """The numbers of an expression of the variable z, with their derivatives.

    Raises
    ------
    KinkedError
        Where it holds an atom that is not known to be smooth.
    """
    from cvxpy.atoms.affine.affine_atom import AffAtom

    k = z.size
    if expression is z:
        return lambda rows: Jet(rows, np.broadcast_to(np.eye(k), (len(rows), k, k)), np.zeros((len(rows), k, k, k)))
    if expression.is_constant():
        flat = dense(expression.value).ravel(order="F")
        return lambda rows: _constant(np.broadcast_to(flat, (len(rows), len(flat))), k)
    args = [jets(arg, z) for arg in expression.args]
    if isinstance(expression, AffAtom):
        base, matrices = affine_map(expression)
        pairs = [(arg, M) for arg, M in zip(args, matrices, strict=True) if M is not None]
        return lambda rows: _added(base, [arg(rows).mapped(M) for arg, M in pairs])
    name = type(expression).__name__.removesuffix("Approx")
    if name in _OF_VECTORS and expression.size == 1:
        return lambda rows: _OF_VECTORS[name](*(arg(rows) for arg in args))
    f = smooth(expression)
    return lambda rows: (x := args[0](rows)).through(f.value(x.value), f.slope(x.value), f.bend(x.value))


def _log_sum_exp(x: Jet) -> Jet:
    top = x.value.max(axis=1, keepdims=True)
    weight = np.exp(x.value - top)
    total = weight.sum(axis=1, keepdims=True)
    share = weight / total
    slope = np.einsum("ms,msk->mk", share, x.slope)
    bend = np.einsum("ms,msk,msl->mkl", share, x.slope, x.slope) + np.einsum("ms,mskl->mkl", share, x.bend)
    bend = bend - slope[:, :, None] * slope[:, None, :]
    return Jet(top + np.log(total), slope[:, None], bend[:, None])


def _quad_over_lin(x: Jet, y: Jet) -> Jet:
    over = np.where(y.value > 0.0, y.value, np.nan)
    ratio = x.value / over
    square = (ratio * ratio).sum(axis=1)
    slope = 2.0 * np.einsum("ms,msk->mk", ratio, x.slope) - square[:, None] * y.slope[:, 0]
    apart = x.slope - ratio[:, :, None] * y.slope
    bend = (2.0 / over)[:, :, None] * np.einsum("msk,msl->mkl", apart, apart)
    bend = bend + 2.0 * np.einsum("ms,mskl->mkl", ratio, x.bend) - square[:, None, None] * y.bend[:, 0]
    return Jet((square * over[:, 0])[:, None], slope[:, None], bend[:, None])


_OF_VECTORS: dict[str, Callable[..., Jet]] = {"log_sum_exp": _log_sum_exp, "quad_over_lin": _quad_over_lin}


def _constant(value: Array, k: int) -> Jet:
    m, s = value.shape
    return Jet(value, np.zeros((m, s, k)), np.zeros((m, s, k, k)))


def _added(base: Array, parts: list[Jet]) -> Jet:
    value, slope, bend = (np.add.reduce([getattr(part, name) for part in parts]) for name in ("value", "slope", "bend"))
    return Jet(base + value, slope, bend)


# ---- Newton's method -------------------------------------------------------------------------------------------------
Point = tuple[Array, Array, Array]  # values (m,), gradients (m, k) and Hessians (m, k, k)


@dataclass(frozen=True)
class Problems:
    """minimise over p: ``factor f(p) - <linear, p> + near/2 ||p||^2``, for each row."""

    f: Jets
    factor: Array  # (m,)
    linear: Array  # (m, k)
    near: float
    length: Array  # (m,): about that of p
    pull: Array  # (m,): how large gradients are

    def at(self, rows: Array, p: Array) -> Point:
        """What some of the problems are like at points."""
        jet, factor, linear = self.f(p), self.factor[rows], self.linear[rows]
        value = factor * jet.value[:, 0] - (linear * p).sum(axis=1) + self.near * (p * p).sum(axis=1) / 2
        bend = factor[:, None, None] * jet.bend[:, 0] + self.near * np.eye(p.shape[1])
        return value, factor[:, None] * jet.slope[:, 0] + self.near * p - linear, bend

    def energy(self, p: Array) -> Array:
        """What gains are measured by, (m,)."""
        return self.pull * self.length + np.abs(self.linear * p).sum(axis=1) + self.near * (p * p).sum(axis=1)

    def minimisers(self, start: Array) -> tuple[Array, Array, Array]:
        """The minimisers, the values there, and what Newton's step may still gain; inf where they were not found.

        Steps are shortened until the function hardly rises at their end. As it is convex its slope along the step
        tells, without the rounding of its values.
        """
        p, live = start.copy(), np.arange(len(start))
        with np.errstate(all="ignore"):
            value, gradient, bend = self.at(live, p)
            for _ in range(STEPS):
                step = newton_step(p[live], gradient[live], bend[live])
                go = ~(_gain(gradient[live], step) <= LEAST_GAIN * self.energy(p)[live])
                live, step = live[go], step[go]
                if not len(live):
                    break
                falls, t, todo = -(gradient[live] * step).sum(axis=1), np.ones(len(live)), np.arange(len(live))
                for _ in range(HALVINGS):
                    rows, move = live[todo], step[todo]
                    end = p[rows] + t[todo, None] * move
                    there = self.at(rows, end)
                    slope, fine = (there[1] * move).sum(axis=1), _defined(there)
                    ok = fine & (slope <= 0.5 * falls[todo])
                    p[rows[ok]] = end[ok]
                    for each, new in zip((value, gradient, bend), there, strict=True):
                        each[rows[ok]] = new[ok]
                    share = np.where(fine, falls[todo] / (falls[todo] + slope), 0.5)  # where a straight slope is 0
                    t[todo] *= np.clip(share, 0.1, 0.5)
                    todo = todo[~ok]
                    if not len(todo):
                        break
                live = np.delete(live, todo)
            step = newton_step(p, gradient, bend)
            arrived = self._arrived(p, (value, gradient, bend), step)
            return p, value, np.where(arrived, _gain(gradient, step), np.inf)

    def _arrived(self, p: Array, here: Point, step: Array) -> Array:
        """Whether there is a minimiser near by, and not only a function that is flat far out: the gradient is 0, or
        Newton's step is, and the function is curved."""
        length = np.maximum(np.abs(p).max(axis=1), self.length)
        flat = np.abs(here[1]).max(axis=1) * length <= NOTHING * self.energy(p)
        still = (np.abs(step).max(axis=1) <= NOTHING * length) & (np.trace(here[2], axis1=1, axis2=2) > 0.0)
        return _defined(here) & (flat | still) & (self.length < FURTHEST)


def _defined(point: Point) -> Array:
    """Where the function and its derivatives are finite, (m,)."""
    return np.isfinite(point[0]) & np.isfinite(point[2]).all(axis=(1, 2))


def _gain(gradient: Array, step: Array) -> Array:
    """By how much Newton's step lowers a quadratic function, (m,)."""
    return -0.5 * (gradient * step).sum(axis=1)


def newton_step(p: Array, gradient: Array, bend: Array) -> Array:
    """Newton's step, `LEAP` times as long as p at most; 0 where there is none."""
    k = p.shape[1]
    scale = np.trace(bend, axis1=1, axis2=2) / k
    fine = np.isfinite(bend).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1) & (scale > 0.0)
    scale = np.where(fine, scale, 1.0)[:, None]
    H = np.where(fine[:, None, None], bend / scale[:, :, None] + 4 * EPS * np.eye(k), np.eye(k))
    step = -np.linalg.solve(H, np.where(fine[:, None], gradient / scale, 0.0)[:, :, None])[:, :, 0]
    longest = LEAP * (1.0 + np.abs(p).max(axis=1))
    return step * (longest / np.maximum(np.abs(step).max(axis=1), longest))[:, None]


def starts(value: Callable[[Array], Array], factor: Array, linear: Array, near: float) -> tuple[Array, Array]:
    """Where minimisers are sought from: points (m, k) where ``factor phi(p) - <linear, p> + near/2 ||p||^2`` is finite,
    and about as long as the minimisers; and lengths (m,).

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
