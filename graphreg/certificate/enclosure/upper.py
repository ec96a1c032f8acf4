"""An upper bound of P(w), valid whatever rounding did: predictors by exact sums, losses at their worst end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array, at_a_time
from .rows import Design
from .sums import CHUNK, DUST, EPS, MORE, Runs, dust, total, two_product, two_sum


def upper_bound(form: Form, w: Array, designs: Sequence[Design] | None = None) -> float:
    """Not less than P(w); +inf where w does not satisfy every constraint exactly. With the ``designs`` of the samples
    predictors are rounded at every step, and the bound pays for it."""
    plain = designs is not None
    values: list[float] = []
    for k, block in enumerate(form.samples):
        r, around = residuals(block, w) if designs is None else plain_residuals(block, w, designs[k])
        value = block.scale * block.loss.value_bound(r, around, block.y)
        values.append(_sum_up(value, plain))
    for edge in form.edges:
        z, around = differences(edge, w, plain)
        value = edge.weight * edge.penalty.value_bound(z, around)
        values.append(_sum_up(value, plain))
    if not all(np.isfinite(values)):
        return np.inf
    exact = math.fsum(values)
    return float(np.nextafter(exact, np.inf)) if any(values) else 0.0


def residuals(block: SampleBlock, w: Array) -> tuple[Array, Array]:
    """x_r'w_i + o_r - anchor_r, and how far that is off; shaped like the predictors."""
    t_high, t_low = two_sum(block.offset, -block.loss.anchor(block.y))
    if block.X is None:
        found = total([w[block.node], t_high, t_low], [])
        return _interval(found.high, found.low, found.error)
    out = [np.empty(block.offset.shape), np.empty(block.offset.shape)]
    k = block.width
    for some in at_a_time(CHUNK // (block.X.shape[1] * k), len(block.X)):
        mine = w[block.node[some]].reshape(-1, block.X.shape[1], k)
        for c in range(k):
            x, factor = block.X[some], np.ascontiguousarray(mine[:, :, c])
            p, e = two_product(x, factor)
            missed = dust(p, x, factor)
            place = (some,) if block.offset.ndim == 1 else (some, c)
            parts = [*p.T, t_high[place], *e.T, t_low[place]]
            found = total(parts, [] if missed is None else [missed.sum(axis=1)])
            out[0][place], out[1][place] = _interval(found.high, found.low, found.error)
    return out[0], out[1]


def plain_residuals(block: SampleBlock, w: Array, design: Design) -> tuple[Array, Array]:
    """The same, rounded at every step: a sum of p products and two more is off by p + 2 units of rounding times the sum
    of the magnitudes, which max|x_rj| |w_ij| bound at each node."""
    anchor = block.loss.anchor(block.y)
    predictor, t = block.apply(w), block.offset - anchor
    top = design.top
    p = top.shape[1]
    each = np.abs(w).reshape(len(w), p, -1) if block.X is not None else np.abs(w)[:, None, :]
    reached = (top[:, :, None] * each).sum(axis=1)[block.node].reshape(t.shape)
    live = np.asarray(w.any(axis=1))[block.node].reshape(-1, *[1] * (t.ndim - 1))
    size = reached + np.abs(t) + np.abs(block.offset) + np.abs(anchor)
    return predictor + t, (p + 3) * (0.5 * EPS * size * MORE + DUST * (live | (size > 0.0)))


def differences(edge: EdgeBlock, w: Array, plain: bool = False) -> tuple[Array, Array]:
    """w_tail - w_head (or w_i - center) on the coordinates of each edge, and how far that is off (0: it is exact)."""
    part = w[:, edge.coordinates]
    if plain and not edge.ground and edge.center is None:  # 0 only where it is exactly 0
        z = part[edge.tail] - part[edge.head]
        return z, EPS * np.abs(z)
    parts = [part[edge.tail]]
    if not edge.ground:
        parts.append(-part[edge.head])
    if edge.center is not None:
        parts.append(-edge.center)
    found = total(parts, [])
    return _interval(found.high, found.low, found.error)


def _interval(high: Array, low: Array, error: Array) -> tuple[Array, Array]:
    value, left = two_sum(high, low)
    return value, np.where((left == 0.0) & (error == 0.0), 0.0, (np.abs(left) + error) * MORE)


def _sum_up(values: Array, plain: bool = False) -> float:
    """The sum of values that are off by one rounding each, upwards."""
    if not np.isfinite(values).all():
        return np.inf
    if not values.any():
        return 0.0
    found = Runs(np.zeros(len(values), dtype=int), 1).sums(values, plain)
    size = float(np.abs(values).sum()) * MORE
    value = float(found.high[0] + found.low[0])
    return value + (float(found.error[0]) + 2 * EPS * size + len(values) * DUST)
