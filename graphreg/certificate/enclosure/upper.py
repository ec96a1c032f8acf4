"""An upper bound of P(w), valid whatever rounding did: predictors by exact sums, losses at their worst end."""

from __future__ import annotations

import math

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms.records import Array
from .sums import CHUNK, DUST, EPS, MORE, Runs, dust, total, two_product, two_sum


def upper_bound(form: Form, w: Array, plain: bool = False) -> float:
    """Not less than P(w); +inf where w does not satisfy every constraint exactly. ``plain`` predictors are rounded at
    every step, and the bound pays for it."""
    values: list[float] = []
    for block in form.samples:
        r, around = residuals(block, w, plain)
        value = block.scale * block.loss.value_bound(r, around, block.y)
        values.append(_sum_up(value, plain))
    for edge in form.edges:
        z, around = differences(edge, w)
        value = edge.weight * edge.penalty.value_bound(z, around)
        values.append(_sum_up(value, plain))
    if not all(np.isfinite(values)):
        return np.inf
    exact = math.fsum(values)
    return float(np.nextafter(exact, np.inf)) if any(values) else 0.0


def residuals(block: SampleBlock, w: Array, plain: bool = False) -> tuple[Array, Array]:
    """x_r'w_i + o_r - anchor_r, and how far that is off; shaped like the predictors."""
    if plain and block.X is not None and block.offset.ndim == 1:
        return _plain_residuals(block, block.X, w)
    t_high, t_low = two_sum(block.offset, -block.loss.anchor(block.y))
    if block.X is None:
        found = total([w[block.node], t_high, t_low], [])
        return _interval(found.high, found.low, found.error)
    out = [np.empty(block.offset.shape), np.empty(block.offset.shape)]
    k = 1 if block.offset.ndim == 1 else block.offset.shape[1]
    step = max(1, CHUNK // (block.X.shape[1] * k))
    for at in range(0, len(block.X), step):
        some = slice(at, at + step)
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


def _plain_residuals(block: SampleBlock, X: Array, w: Array) -> tuple[Array, Array]:
    anchor = block.loss.anchor(block.y)
    r, size = np.empty(len(X)), np.empty(len(X))
    step = max(1, CHUNK // X.shape[1])
    for at in range(0, len(X), step):
        some = slice(at, at + step)
        p = X[some] * w[block.node[some]]
        r[some], size[some] = p.sum(axis=1), np.abs(p).sum(axis=1)
    t = block.offset - anchor
    size += np.abs(t) + np.abs(block.offset) + np.abs(anchor)
    live: Array = np.asarray(w.any(axis=1))[block.node] | (size > 0.0)
    return r + t, (X.shape[1] + 3) * (EPS * size * MORE + DUST * live)


def differences(edge: EdgeBlock, w: Array) -> tuple[Array, Array]:
    """w_tail - w_head (or w_i - center) on the coordinates of each edge, and how far that is off (0: it is exact)."""
    part = w if edge.features is None else w[:, edge.features]
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
