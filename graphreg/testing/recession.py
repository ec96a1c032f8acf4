"""The laws of what a loss says of far away (`descent`, `remains`), and of the smooth loss that stands in for it."""

from __future__ import annotations

import numpy as np

from ..certificate import TermRows, laws
from ..terms import Array
from ..terms.losses import AbstractLoss
from . import fenchel, prices, written
from .probe import LossProbe
from .report import Failures, demand, distance, frozen, judge, judged, rowwise, shaped, size

LONG = 1e6  # a step along a direction, after which a loss that grows has grown
FAR = 1e3  # a step after which nothing is left of what falls to zero exponentially
CLEAR = 0.1  # by so much a direction must leave the cone before the loss has to grow


def descent(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """Along the directions of descent l does not grow, along all others it does; it falls for ever, or to a minimum."""
    y, x = samples.y, _near(samples)
    cone = loss.prices.descent(y)
    q = len(cone.sample)
    shapes = f"{cone.falls.shape}, {cone.sample.shape}, {cone.for_ever.shape}"
    fitting = cone.falls.shape == (q, y.size) and len(cone.for_ever) == q
    demand(fitting, f"falls, sample and for_ever have the shapes {shapes} for {y.size} predictors")
    start, zero = loss.value(x, y), frozen(np.zeros_like(x))
    for v in _directions(samples):
        fall = cone.falls @ v.ravel()
        lowest, moves = _of_samples(loss, y, fall, v)
        inside, outside = (lowest >= 0) & (moves == 0), (lowest < -CLEAR) | (moves > CLEAR)
        after, later = (loss.value(frozen(x + k * LONG * max(1.0, np.abs(y).max()) * v), y) for k in (1, 2))
        growth = np.where(inside, after - start, -np.inf)
        yield from judge("l does not grow along a direction of descent", growth, 1e-6 * (1 + np.abs(start)), v=v, y=y)
        yield from judge(
            "l grows along every other direction", outside & ~((later > after + 1.0) | np.isinf(after)), 0, v=v, y=y
        )
        at = [loss.value(frozen(zero + t * v), y) for t in (0.0, 2.0, 4.0, 8.0)]
        ever, once = (_any(cone.sample, (fall > CLEAR) & kind, len(y)) for kind in (cone.for_ever, ~cone.for_ever))
        falling = (at[1] > at[2]) & (at[2] > at[3])
        yield from judge("l falls for ever where it is said to", inside & ever & ~falling, 0, v=v, y=y)
        reach = np.abs(y).max()  # the kinks of a loss lie near its targets
        back, far, further = (loss.value(frozen(zero + t * v), y) for t in (-30.0 - reach, 30.0 + reach, 60.0 + reach))
        ends = (back > far) & (far == further)  # where an exponential is not yet 0
        yield from judge("l falls to a minimum where it is said to", inside & once & ~ever & ~ends, 0, v=v, y=y)


def remains(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The rest of a sample far out along a direction of descent is its limit there, and a loss of its own."""
    y, x = samples.y, _near(samples)
    cone, zero = loss.prices.descent(y), frozen(np.zeros(y.shape))
    if not len(cone.sample):
        return
    for v in _directions(samples):
        fall = cone.falls @ v.ravel()
        lowest, moves = _of_samples(loss, y, fall, v)
        plain = ~_any(cone.sample, (fall != 0) & (np.abs(fall) < 0.5), len(y)) & (lowest >= 0) & (moves == 0)
        fallen = (fall > 0.5) & plain[cone.sample]
        if not fallen.any():
            continue
        kept, left = loss.prices.remains(y, fallen)
        fitting = kept.shape == (len(y),) and len(left) == kept.sum()
        demand(fitting, f"remains keeps {len(left)} targets of {kept.shape} samples")
        limit = np.where(plain, loss.value(frozen(x + FAR * v), y), loss.value(x, y))
        cost = -loss.conjugate(zero, y)  # of a sample that is gone
        cost[kept] = loss.value(frozen(x[kept]), left)
        yield from judge("what remains is the limit of l", distance(cost, limit, 1.0), samples.tolerance, x=x, v=v, y=y)
        yield from _is_a_loss(loss, samples, frozen(x[kept]), frozen(left), frozen(samples.prices[kept]))


def _is_a_loss(loss: AbstractLoss, samples: LossProbe, x: Array, y: Array, b: Array) -> Failures:
    if not len(y):
        return
    rows = TermRows(loss, (y,))
    trial = laws.equality(rows, x, loss.gradient(x, y), f"of what remains {laws.GRADIENT}")
    yield from judged(trial, samples.tolerance, 1.0, y=y)
    yield from fenchel.clip_is_sound(rows, b, 1e-10, floor=1.0, y=y)
    yield from judged(laws.fenchel_young(rows, x, rows.clip(b)), samples.tolerance, 1.0, y=y)
    yield from written.has_the_value(rows.take(slice(8)), x[:8], 1e-8)


def smoothed(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """smoothed is a smooth convex function with its gradient and curvature, whose gradients lie in dom l*."""
    y, x, tolerance = samples.y, _near(samples), samples.tolerance
    value, gradient, curvature = loss.smoothed(x, y)
    shaped("the value of smoothed", value, (len(x),))
    shaped("its gradient", gradient, x.shape)
    shaped("its curvature", curvature, *prices.shapes(x))
    yield from judge("its gradient lies in dom l*", samples.outside(gradient), 0, x=x, y=y)
    least, most = prices.extremes(curvature)
    negative = -least / (1e-300 + np.abs(most))
    yield from judge("its curvature is finite and not negative", negative, tolerance, x=x, y=y)
    yield from fenchel.gradient_is_right(lambda x: loss.smoothed(x, y)[0], gradient, x, tolerance, y=y)
    yield from fenchel.curvature_is_right(lambda x: loss.smoothed(x, y)[1], curvature, x, y=y)


def _near(samples: LossProbe) -> Array:
    """Predictors of moderate size, at which the loss is moderate, too."""
    x = samples.x
    near = (size(x) < 10.0) & (np.abs(samples.loss.value(x, samples.y)) < LONG / 10)
    return frozen(np.where(rowwise(near, x), x, 0.1 * np.sign(x)))


def _directions(samples: LossProbe) -> list[Array]:
    """Both ways along each coordinate; for vectors also steps of -1, 0 and 1, which leave ties, and random ones."""
    y, rng = samples.y, samples.rng
    out = samples.directions()
    if y.ndim == 2:
        out += [np.ones_like(y), *(rng.integers(-1, 2, y.shape).astype(float) for _ in range(4))]
        out += [np.where(y > 0, 0.0, rng.integers(-1, 1, y.shape)) for _ in range(4)]
        out += [rng.standard_normal(y.shape)]
    return [frozen(v) for v in out]


def _of_samples(loss: AbstractLoss, y: Array, fall: Array, v: Array) -> tuple[Array, Array]:
    """For each sample the least of its rows of ``falls v``, and how far the entries move that must be still."""
    cone = loss.prices.descent(y)
    lowest = np.full(len(y), np.inf)
    np.minimum.at(lowest, cone.sample, fall)
    still = np.zeros(y.size)
    still[cone.still] = np.abs(v).ravel()[cone.still]
    return lowest, still.reshape(len(y), -1).max(axis=1)


def _any(sample: Array, rows: Array, count: int) -> Array:
    """A mask (M,) of the samples of which any row is marked."""
    return np.bincount(sample[rows], minlength=count) > 0
