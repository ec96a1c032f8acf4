"""A step off a point, and what the objective loses by it, computed without the difference of two large numbers.

    P(c + t w) - P(c)  =  B(t) + t <r, w> + t strength sum_e A_e phi((Kw)_e),    r = grad F(c),

for a consensus c, where B(t) = F(c + t w) - F(c) - t <r, w> = integral over s in [0, t] of (t - s) w'F''(c + s w) w ds
is a sum of terms that are never negative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...form import EdgeBlock, SampleBlock
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractSmoothPenalty
from .pooled import SmoothObjective

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
PLACES, WEIGHTS = (NODES + 1.0) / 2.0, WEIGHTS / 2.0  # on [0, 1]
EPS = 1e-15  # of each product in <r, w>
TRIED = 2.0 ** np.arange(-12, 5)  # of the step that is best where F is quadratic


def bregman(smooth: SmoothObjective, c: Array, step: Array) -> float:
    """F(c + step) - F(c) - <grad F(c), step>: exact for quadratic terms, by 32 Gauss points for others."""
    total = sum(_of_samples(block, c, step) for block in smooth.form.samples)
    return total + sum(_of_edges(edge, c, step) for edge in smooth.form.edges)


def _of_samples(block: SampleBlock, c: Array, step: Array) -> float:
    assert isinstance(block.loss, AbstractSmoothLoss)
    x, v, total = block.predict(c), block.apply(step), 0.0
    for s, weight in zip(PLACES, WEIGHTS, strict=True):
        h = block.loss.curvature(x + s * v, block.y)
        bend = np.einsum("rk,rkl,rl->r", v, h, v) if h.ndim == 3 else (h * v * v).reshape(len(x), -1).sum(axis=1)
        total += weight * (1.0 - s) * float(block.scale @ bend)
    return total


def _of_edges(edge: EdgeBlock, c: Array, step: Array) -> float:
    assert isinstance(edge.penalty, AbstractSmoothPenalty)
    z, v = edge.difference(c), edge.apply(step)
    if edge.penalty.quadratic(z.shape[1]) is not None:
        return float(edge.weight @ edge.penalty.value(v))
    g, total = edge.penalty.gradient(z), 0.0
    for s, weight in zip(PLACES, WEIGHTS, strict=True):
        rise = np.einsum("ij,ij->i", edge.penalty.gradient(z + s * v) - g, v)
        total += weight * float(edge.weight @ np.maximum(rise, 0.0))
    return total


def rounding(smooth: SmoothObjective, c: Array, w: Array) -> float:
    """How far off <grad F(c), w> may be, as it was computed."""
    point, total = smooth.dual_point_at(c), 0.0
    for block, a in zip(smooth.form.samples, point.prices, strict=True):
        total += float(np.abs(a).ravel() @ np.abs(block.apply(w)).ravel())
    for edge, u in zip(smooth.form.edges, point.flows, strict=True):
        total += float(np.abs(u).ravel() @ np.abs(edge.apply(w)).ravel())
    return EPS * total


def best_step(
    smooth: SmoothObjective, c: Array, w: Array, slope: float, more: Callable[[float], float] = lambda t: 0.0
) -> tuple[float, float]:
    """The t with the largest slope t - B(t) - more(t) among those that are tried, and that value; ``more`` is 0 at 0,
    and so is its slope."""
    near = 1e-3 * (1.0 + float(np.abs(c).max(initial=0.0))) / float(np.abs(w).max())
    bend = 2.0 * (bregman(smooth, c, near * w) + more(near)) / near**2
    first = slope / bend if bend > 0 else near
    found = [(slope * t - bregman(smooth, c, t * w) - more(float(t)), float(t)) for t in first * TRIED]
    gain, t = max(found)
    return t, gain
