"""The laws of what a loss says about its prices: the domain of its conjugate, and how to stay inside it."""

from __future__ import annotations

import numpy as np

from ..terms import Array, times
from ..terms.losses import AbstractLoss
from . import fenchel
from .probe import LossProbe
from .report import Failures, distance, frozen, judge, shaped, size


def domain(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The conjugate is finite just inside [low, high] (where predictors are numbers) and infinite just outside."""
    y, middle, outside = samples.y, samples.inside, samples.outside
    low, high = loss.domain(y)
    for name, end, inward in (("low", low, 1.0), ("high", high, -1.0)):
        eps = 1e-7 * (1.0 + np.abs(np.where(np.isfinite(end), end, 0.0)))
        inner = ~outside(np.where(np.isfinite(end), end - inward * eps, middle))
        bounded = np.isfinite(end) if y.ndim == 1 else np.isfinite(end).any(axis=1)
        yield from judge(f"the conjugate is infinite beyond {name}", bounded & inner, 0, y=y, end=end)
        if y.ndim == 1:
            b = np.where(np.isfinite(end), end + inward * eps, -inward * 1e6)
            yield from judge(f"the conjugate is finite up to {name}", outside(b), 0, y=y, b=b)


def clip(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """clip lands in dom l*, twice is once, what lies inside stays; numbers go to the nearest end."""
    y, tolerance = samples.y, max(1e-12, samples.tolerance * 1e-2)
    for prices in (samples.prices, 1e3 * samples.prices, samples.inside):
        b = frozen(prices)
        yield from fenchel.clip_is_sound(samples.rows, b, tolerance, floor=1.0, y=y)
        if b.ndim == 1:
            low, high = loss.domain(y)
            by = np.abs(loss.clip(b, y) - np.clip(b, low, high)) / (1.0 + np.abs(b))
            yield from judge("clip goes to the nearest price of the domain", by, tolerance, b=b, y=y)


def step_to_boundary(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """step_to_boundary is the largest t in [0, 1] with start + t (end - start) in dom l*."""
    start = loss.clip(frozen(0.3 * samples.inside), samples.y)
    margin = 1e-6 if samples.y.ndim == 1 else None
    for end in (samples.prices, 1e2 * samples.prices):
        t = loss.prices.step_to_boundary(start, frozen(end), samples.y)
        yield from fenchel.step_is_sound(samples.rows, t, start, end, margin, y=samples.y)


def interior(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """interior says whether the price 0 may be moved a little in every direction of dom l*."""
    y, outside = samples.y, samples.outside
    claimed = loss.prices.interior(y)
    shaped("interior", claimed, (len(y),))
    away = -1e-6 * loss.clip(samples.prices, y)  # opposite to points of the domain: outside, where 0 is on its boundary
    yield from judge("0 is inside where interior says so", claimed & outside(away), 0, y=y, b=away)
    if y.ndim == 2:
        return
    both = ~outside(np.full_like(y, 1e-6)) & ~outside(np.full_like(y, -1e-6))
    yield from judge("interior says so where 0 is inside", both & ~claimed, 0, y=y)


def conductance(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """conductance is finite and non-negative, shaped like the prices or a matrix that keeps prices in their span."""
    b, y = samples.inside, samples.y
    c = loss.conductance(b, y)
    shaped("conductance", c, *shapes(b))
    least, most = extremes(c)
    yield from judge("conductance is finite and non-negative", ~(np.isfinite(most) & (least >= -1e-12)), 0, b=b, y=y)
    current = times(c, samples.rng.standard_normal(b.shape))
    off = size(loss.prices.span(b + current) - (b + current)) / (1.0 + size(current))
    yield from judge("currents stay in the span of the domain", off, 1e-12, b=b, y=y)


def span(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """span leaves the prices of the domain as they are, and span of a span is that span."""
    b, y = samples.inside, samples.y
    yield from judge("span(b) = b inside dom l*", distance(loss.prices.span(b), b, 1.0), 1e-12, b=b, y=y)
    flat = frozen(loss.prices.span(samples.prices))
    yield from judge("span(span(b)) = span(b)", distance(loss.prices.span(flat), flat, 1.0), 1e-12, b=flat, y=y)


def shapes(x: Array) -> list[tuple[int, ...]]:
    """The shapes that curvatures and conductances may have at predictors or prices x."""
    return [x.shape] if x.ndim == 1 else [x.shape, (*x.shape, x.shape[1])]


def extremes(c: Array) -> tuple[Array, Array]:
    """The least and the largest curvature of each sample in any direction; nan where it is not finite."""
    if c.ndim == 1:
        return c, c
    if c.ndim == 2:
        return c.min(axis=1), c.max(axis=1)
    finite = np.isfinite(c).all(axis=(1, 2))
    asymmetric = np.abs(c - c.transpose(0, 2, 1)).max(axis=(1, 2)) > 1e-12
    bad = np.asarray(~finite | asymmetric)
    values = np.linalg.eigvalsh(np.where(bad[:, None, None], 0.0, c))
    return np.where(bad, np.nan, values[:, 0]), np.where(bad, np.nan, values[:, -1])
