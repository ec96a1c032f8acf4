"""The laws of losses, `LAWS`: each is a function of a loss and a `LossProbe`, here or in the modules named there."""

from __future__ import annotations

import numpy as np

from ..base.clock import stages
from ..certificate import TermRows, laws
from ..certificate.proof import checked_values
from ..checks import instance
from ..errors import DataError, TermError
from ..terms.losses import AbstractLoss, AbstractSmoothLoss, PriceDomain
from ..verify import LOSSES
from . import bounds, fenchel, predictions, prices, recession, written
from .probe import LossProbe
from .report import (
    Failures,
    LawError,
    Report,
    check_numbers,
    demand,
    demand_on_its_domain,
    distance,
    dots,
    frozen,
    judge,
    judged,
    laws_of,
    not_tried,
    rowwise,
    shaped,
    size,
    try_laws,
)

SMALL = 1e-4  # of the largest target: below, and above its inverse, a report speaks of rounding
LARGEST = 1e4  # loss at a minimiser that is looked for with a solver


def shapes_and_rows(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The right shapes, rows independent of each other, inputs left as they are (they are read-only)."""
    return fenchel.rows_are_independent(samples.rows, samples.x, samples.rng, samples.tolerance)


def convex(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """l is convex along segments."""
    z = samples.x.reshape(-1, 16, *samples.x.shape[1:])[:, samples.rng.permutation(16)].reshape(samples.x.shape)
    return judged(laws.midpoints(samples.rows, samples.x, frozen(z)), samples.tolerance, 1e-300, y=samples.y)


def gradient_differences(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """Each coordinate of the gradient lies between the differences of l to the left and to the right."""
    x, y = samples.x, samples.y
    return fenchel.gradient_is_right(samples.rows.value, loss.gradient(x, y), x, samples.tolerance, y=y)


def gradient_fenchel_young(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The gradient lies in dom l*, where Fenchel-Young holds with equality."""
    x, y = samples.x, samples.y
    trial = laws.equality(samples.rows, x, loss.gradient(x, y), laws.GRADIENT)
    return judged(trial, samples.tolerance, 1.0, y=y)


def prox_fenchel_young(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The prox is optimal for several steps, and for one per sample."""
    steps = frozen(10.0 ** samples.rng.uniform(-2, 2, len(samples.y)))
    x, inside = samples.x, samples.inside
    for step in (1.0, 0.3, 2.5, steps):
        for v in (x, frozen(x + rowwise(step, x) * inside)):
            yield from fenchel.prox_is_optimal(samples.rows, v, step, samples.tolerance, y=samples.y)


def fenchel_young_everywhere(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """l(x) + l*(b) >= x b also at infeasible b, with x far away: no conjugate forgets its domain."""
    for b in (samples.prices, frozen(10.0 * samples.prices), samples.inside):
        yield from fenchel.residual_is_positive(samples.rows, b, samples.directions(), samples.tolerance, y=samples.y)


def ends_of_the_domain(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """l* is +inf just beyond the slopes of l far away."""
    y = samples.y[::4]
    rows, start = TermRows(loss, (y,)), loss.clip(frozen(0.3 * samples.inside[::4]), y)
    for away in (each[::4] for each in samples.directions()):
        end = frozen(1e3 * (1.0 + size(start)).max() * away)
        yield from fenchel.ends_where_it_must(rows, start, end, away, samples.tolerance, 1.0, y=y)


def methods_of_the_domain(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The property ``prices``, where it is asked for, says what is known of dom l*, and not the loss itself."""
    demand_on_its_domain(loss, AbstractLoss, loss.prices, PriceDomain, "prices")
    return []


def slopes(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The gradient grows at least as fast as least_curvature says, and at most as fast as smoothness."""
    x, y, m = samples.x, samples.y, loss.least_curvature()
    z = frozen(x + samples.rng.standard_normal(x.shape) * rowwise(10.0 ** samples.rng.uniform(-3, 1, len(x)), x))
    x, y, z = (frozen(each[loss.value(z, y) < np.inf]) for each in (x, y, z))
    step, change = z - x, loss.gradient(z, y) - loss.gradient(x, y)
    rounding = 1e-13 * (1.0 + size(loss.gradient(x, y))) / size(step)
    rate = dots(step, change) / dots(step, step)
    scale = 1.0 + np.abs(rate)
    by = (m - rate - rounding) / scale
    yield from judge(f"the gradient grows at least at the rate {m:g}", by, samples.tolerance, x=x, z=z, y=y)
    demand(m >= 0, f"least_curvature is {m}, which is negative")
    if isinstance(loss, AbstractSmoothLoss):
        L = loss.smoothness()
        by = (size(change) / size(step) - L - rounding) / scale
        yield from judge(f"the gradient grows at most at the rate {L:g}", by, samples.tolerance, x=x, z=z, y=y)


def curvature(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """curvature is the derivative of the gradient away from kinks, between least_curvature and smoothness."""
    if not isinstance(loss, AbstractSmoothLoss):
        return
    x, y, tolerance = samples.x, samples.y, samples.tolerance
    c = loss.curvature(x, y)
    shaped("curvature", c, *prices.shapes(x))
    low, high = loss.least_curvature(), loss.smoothness()
    least, most = prices.extremes(c)
    out = np.maximum(low - least, most - high)
    yield from judge("least_curvature <= curvature <= smoothness", out, tolerance * (1.0 + high), x=x, y=y)
    yield from fenchel.curvature_is_right(samples.rows.gradient, c, x, y=y)


def curvature_within(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """curvature_within(low, high) bounds the curvature at both ends and everywhere between, also far away."""
    x, y = samples.x, samples.y
    if not isinstance(loss, AbstractSmoothLoss) or x.ndim == 2:
        return
    width = 10.0 ** samples.rng.uniform(-3, 1, len(x))
    for low, high in ((x - width, x + width), (x - width, np.full_like(x, np.inf)), (np.full_like(x, -np.inf), x)):
        bounds_ = loss.curvature_within(frozen(low), frozen(high), y)
        if bounds_ is None:
            return
        least, most = bounds_
        first, last = np.maximum(low, x - width), np.minimum(high, x + width)
        for t in np.linspace(0.0, 1.0, 17):
            z = frozen((1.0 - t) * first + t * last)
            c = loss.curvature(z, y)
            by = np.nan_to_num(np.maximum(least - c, c - most) / (1.0 + c))  # nan of two infinite ones
            where = {"x": z, "low": low, "high": high, "y": y}
            yield from judge("curvature_within bounds the curvature", by, samples.tolerance, **where)


def cvxpy_value(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The CVXPY form has the value of l."""
    x = np.where(np.abs(samples.x) < 50.0, samples.x, 0.0)
    return written.has_the_value(samples.rows, x, max(1e-9, samples.tolerance))


def cvxpy_argmin(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The CVXPY form has the prox as the minimiser of the prox problem."""
    rows = np.flatnonzero(size(samples.x) < 20.0)[::2]
    steps = 10.0 ** samples.rng.uniform(-0.7, 0.7, len(rows))
    p = loss.prox(samples.x[rows], steps, samples.y[rows])
    fair = np.abs(loss.value(p, samples.y[rows])) < LARGEST  # of others a solver knows the minimiser less well
    rows, steps = (rows[fair], steps[fair]) if fair.any() else (rows, steps)
    return written.has_the_minimiser(samples.rows.take(rows), samples.x[rows], steps)


def cvxpy_conjugate_value(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """The CVXPY form of the conjugate, where there is one, has its value and its domain."""
    if type(loss).cvxpy_conjugate is AbstractLoss.cvxpy_conjugate:
        return
    for b in (samples.inside, samples.prices):
        yield from written.conjugate_has_the_value(samples.rows, b, max(1e-8, samples.tolerance))


def encode(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """A loss that codes {0, 1} as {-1, 1} takes every binary coding alike, and refuses everything else."""
    given = frozen(np.array([0.0, 1.0, 1.0]))
    try:
        coded = loss.encode(given)
    except DataError:
        return []
    if coded.shape != (3,) or not np.isin(coded, (-1.0, 1.0)).all():
        return []  # numbers, or one column per class
    right = np.array_equal(coded, [-1.0, 1.0, 1.0])
    demand(right, f"{given} is coded as {coded}: 0 is the class -1, and 1 the class 1")
    others = (np.array([-1.0, 1.0, 1.0]), np.array([False, True, True]), np.array([0, 1, 1]))
    for other in others:
        same = np.array_equal(loss.encode(other), coded)
        demand(same, f"{other} is coded as {loss.encode(other)}, and {given} as {coded}")
    for wrong in (np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.0, 1.0]), np.array([0.2, 0.7]), np.array(["yes", "no"])):
        try:
            raise LawError(f"targets {wrong} are taken, as {loss.encode(wrong)}")
        except DataError:
            continue
    return []


def scales(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """One positive scale per sample; with scale="mean" those of a node sum to 1, with "sum" they are the weights."""
    s, data = loss.scales(), loss.data
    shaped("scales", s, (len(loss.targets()),))
    yield from judge("scales are positive and finite", ~((s > 0) & np.isfinite(s)), 0, scale=s)
    if isinstance(loss.scale, str):
        expected, got = (data.weights, s) if loss.scale == "sum" else (1.0, np.bincount(data.node, s))
        sentence = f"the scales are those of scale={loss.scale!r}"
        yield from judge(sentence, np.abs(got - expected), samples.tolerance, got=got)


def statement(loss: AbstractLoss, samples: LossProbe) -> Failures:
    """What statement() names in a proof is l, as the checker of proofs computes it."""
    if (stated := loss.statement()) is None:
        return []
    x, y = samples.x, samples.y
    gap = distance(loss.value(x, y), checked_values(stated, LOSSES, x, loss.stated_targets(y)), 1e-4)
    return judge("l is the loss that a proof states", gap, samples.tolerance, x=x, y=y)


LAWS = laws_of(AbstractLoss, globals(), vars(prices), vars(bounds), vars(recession), vars(predictions))


def check_loss(loss: AbstractLoss, seed: int = 0, tolerance: float | None = None) -> Report:
    """The report on a loss: whether it obeys every law of losses, at targets taken from its own data.

    Parameters
    ----------
    loss : AbstractLoss
        A loss on some data; the more different their targets, the more is tried. Points are drawn near 1 and near the
        targets: where these are of quite another size, a law may fail by rounding alone, and the report says so.
    seed : int
        Of the random points.
    tolerance : float, optional
        The relative accuracy that is asked of ``value``, ``gradient``, ``prox`` and ``conjugate``. By default what the
        loss says of itself (``loss.accuracy()``): 1e-8, which suits closed forms.

    Returns
    -------
    Report
        True where every law holds; printed, one line per law, and for each failure where it happened. Predictions of
        a loss of your own are not tried where you wrote no ``response`` and no ``classify`` (``untried``).

    Examples
    --------
    >>> gr.testing.check_loss(gr.HuberLoss(data)).ok
    True
    """
    instance(AbstractLoss, "a loss such as gr.SquaredLoss(data)")(loss, "the loss of check_loss", TermError)
    tolerance = loss.accuracy() if tolerance is None else tolerance
    check_numbers(seed, tolerance)
    untried = predictions.ungiven(loss)
    tried = {name: law for name, law in LAWS.items() if name not in untried}
    with stages("check_loss") as at:
        probe = LossProbe(loss, seed, tolerance)
        failures = try_laws(tried, loss, probe, at)
    largest = float(np.abs(probe.y).max())
    said = f"The targets are at most {largest:.1e}: rounding alone may break laws there. Try data in units near 1."
    note = "" if SMALL <= largest <= 1 / SMALL else said
    untried |= not_tried(failures, LAWS)
    return Report(type(loss).__name__, tuple(LAWS), tuple(failures), untried, note=note)
