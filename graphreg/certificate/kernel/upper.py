"""An upper bound of P(w), valid whatever rounding did: predictors by exact sums, losses at their worst end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array
from .arithmetic import DUST, EPS, MORE, Runs, dust, total, two_product, two_sum
from .system import Design


def upper_bound(form: Form, w: Array, designs: Sequence[Design] | None = None) -> float:
    """Not less than P(w); +inf where w does not satisfy every constraint exactly. With the ``designs`` of the samples
    predictors are rounded at every step, and the bound pays for it."""
    plain = designs is not None
    values: list[float] = []
    for k, block in enumerate(form.samples):
        size = None if designs is None else sizes(block, w, designs[k])
        for some in block.some():
            r, around = residuals(block, w, some) if size is None else plain_residuals(block, w, size, some)
            values.append(_sum_up(block.scale_of(some), block.loss.value_bound(r, around, block.y[some]), plain))
    for edge in form.edges:
        for some in edge.some(form.width(edge)):
            z, around = differences(edge, w, some, plain)
            values.append(_sum_up(edge.weight_of(some), edge.penalty.value_bound(z, around), plain))
    if not all(np.isfinite(values)):
        return np.inf
    exact = math.fsum(values)
    return float(np.nextafter(exact, np.inf)) if any(values) else 0.0


def residuals(block: SampleBlock, w: Array, some: slice) -> tuple[Array, Array]:
    """x_r'w_i + o_r - anchor_r of some samples, and how far that is off; shaped like the predictors."""
    offset, k = block.offset[some], block.width
    t_high, t_low = two_sum(offset, -block.loss.anchor(block.y[some]))
    if block.X is None:
        found = total([w[block.node[some]], t_high, t_low], [])
        return _interval(found.high, found.low, found.error)
    x, mine = block.X[some], w[block.node[some]].reshape(-1, block.X.shape[1], k)
    out = [np.empty(offset.shape), np.empty(offset.shape)]
    for c in range(k):
        factor = np.ascontiguousarray(mine[:, :, c])
        p, e = two_product(x, factor)
        missed = dust(p, x, factor)
        place = (slice(None),) if offset.ndim == 1 else (slice(None), c)
        parts = [*p.T, t_high[place], *e.T, t_low[place]]
        found = total(parts, [] if missed is None else [missed.sum(axis=1)])
        out[0][place], out[1][place] = _interval(found.high, found.low, found.error)
    return out[0], out[1]


def sizes(block: SampleBlock, w: Array, design: Design) -> Array:
    """A bound of sum_j |x_rj w_ij| for the samples of each node, (n,) or (n, k) as predictors are; above 0 where some
    product is not 0."""
    top, each = design.top[:, :, None], np.abs(w)
    each = each[:, None, :] if block.X is None else each.reshape(len(w), top.shape[1], -1)
    live = ((top > 0.0) & (each > 0.0)).any(axis=1)
    out = np.einsum("ijk,ijk->ik", np.broadcast_to(top, each.shape), each) * MORE + DUST * live
    return out if block.offset.ndim == 2 else out[:, 0]


def plain_residuals(block: SampleBlock, w: Array, size: Array, some: slice) -> tuple[Array, Array]:
    """The same, rounded at every step: a sum of p products and two more is off by p + 2 units of rounding times the sum
    of the magnitudes, of which ``size`` are those of the products (see `sizes`)."""
    anchor, offset = block.loss.anchor(block.y[some]), block.offset[some]
    predictor, t = block.apply_some(w, some), offset - anchor
    p = 1 if block.X is None else block.X.shape[1]
    reached = size[block.node[some]] + np.abs(t) + np.abs(offset) + np.abs(anchor)
    return predictor + t, (p + 3) * (0.5 * EPS * MORE * reached + DUST * (reached > 0.0))


def differences(edge: EdgeBlock, w: Array, some: slice, plain: bool = False) -> tuple[Array, Array]:
    """w_tail - w_head (or w_i - center) on the coordinates of some edges, and how far that is off (0: it is exact)."""
    tail = w[edge.tail[some]][:, edge.coordinates]
    head = None if edge.ground else w[edge.head[some]][:, edge.coordinates]
    if plain and head is not None and edge.center is None:  # 0 only where it is exactly 0
        z = tail - head
        return z, EPS * np.abs(z)
    parts = [tail]
    if head is not None:
        parts.append(-head)
    if edge.center is not None:
        parts.append(-edge.center[some])
    found = total(parts, [])
    return _interval(found.high, found.low, found.error)


def _interval(high: Array, low: Array, error: Array) -> tuple[Array, Array]:
    value, left = two_sum(high, low)
    return value, np.where((left == 0.0) & (error == 0.0), 0.0, (np.abs(left) + error) * MORE)


def _sum_up(scales: Array, each: Array, plain: bool = False) -> float:
    """The sum of multiples, upwards; 0 where all are 0, and not where they underflow."""
    values = scales * each
    if not np.isfinite(values).all():
        return np.inf
    if not each.any():
        return 0.0
    every = Runs(np.zeros(len(values), dtype=int), 1)
    found = every.plain(values) if plain else every.sums(values)
    size = float(np.abs(values).sum()) * MORE
    value = float(found.high[0] + found.low[0])
    return value + (float(found.error[0]) + 2 * EPS * size + len(values) * DUST)
