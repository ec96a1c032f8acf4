"""The laws of penalties, `LAWS`: each is a function of a penalty and a `Probe`, here or in the modules named there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..base.clock import stages
from ..certificate import TermRows, laws
from ..certificate.proof import checked_values
from ..checks import count, instance, sequence
from ..errors import TermError
from ..terms.penalties import AbstractOneSided, AbstractPenalty, AbstractSmoothPenalty, FlowDomain
from ..terms.penalties import is_equality as allows_zero_only
from ..verify import PENALTIES
from . import bounds, derived, fenchel, written
from .probe import Probe
from .report import (
    Failure,
    Failures,
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
    named,
    not_tried,
    shaped,
    size,
    try_laws,
)


# ---- the four methods --------------------------------------------------------------------------------------------
def shapes_and_rows(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """One value per row, rows independent of each other, inputs left as they are (they are read-only)."""
    return fenchel.rows_are_independent(probe.rows, probe.points, probe.rng, probe.tolerance)


def non_negative(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi >= 0, and phi(0) = 0 (or +inf, for a set that does not contain 0)."""
    z, zero = probe.points, np.zeros((1, probe.k))
    yield from judge("phi(z) >= 0", -penalty.value(z), 0.0, z=z)
    at_zero = penalty.value(zero)
    if isinstance(penalty, AbstractOneSided) and np.isinf(at_zero).all():
        return
    yield from judge("phi(0) = 0", np.abs(at_zero), probe.tolerance, z=zero)


def convex(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi is convex along segments."""
    x = np.vstack([probe.points, penalty.prox(probe.points, 1.0)])
    order = probe.rng.permutation(len(x))
    apart = 1e-6 * probe.sum_over_coordinates(x)  # phi near 0 may be a difference of numbers of that size
    more = apart + apart[order] + fenchel.floor_of(probe.tolerance)
    return judged(laws.midpoints(probe.rows, frozen(x), frozen(x[order])), probe.tolerance, more)


def prox_fenchel_young(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The prox is optimal: at zero, kinks, ties, big and tiny rows, for several steps and for one per row."""
    p = penalty.prox(probe.points, 1.0)
    for step in (1.0, 0.3, 2.5):
        kinks = step * probe.inside[: len(probe.points)]
        v = frozen(np.vstack([probe.points, probe.extremes, kinks, p, p + kinks]))
        yield from fenchel.prox_is_optimal(probe.rows, v, step, probe.tolerance, probe.floor)
    v = probe.points
    steps = frozen(10.0 ** probe.rng.uniform(-2, 2, len(v)))
    yield from fenchel.prox_is_optimal(probe.rows, v, steps, probe.tolerance, probe.floor)


def fenchel_young_everywhere(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi(x) + phi*(u) >= <x, u> also at infeasible u, with x far away: no conjugate forgets its domain."""
    u = frozen(np.vstack([probe.points, probe.extremes[:2] / 1e3, 3.0 * probe.inside]))
    largest = np.zeros_like(u)
    largest[np.arange(len(u)), np.abs(u).argmax(axis=1)] = np.sign(u[np.arange(len(u)), np.abs(u).argmax(axis=1)])
    random = probe.rng.standard_normal(u.shape)
    directions = [np.sign(u), largest, random, -random]
    return fenchel.residual_is_positive(probe.rows, u, directions, probe.tolerance)


def ends_of_the_domain(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi* is +inf just beyond the slopes of phi far away, along coordinates and ties."""
    axes = np.vstack([np.eye(probe.k), np.ones((1, probe.k))])
    unit = np.vstack([axes, -axes])
    start = np.broadcast_to(probe.middle, unit.shape)
    return fenchel.ends_where_it_must(probe.rows, start, frozen(1e6 * unit), unit, probe.tolerance, probe.floor)


def even(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi(-z) = phi(z), so that the orientation of edges does not matter; one-sided penalties say so by their type."""
    if isinstance(penalty, AbstractOneSided):
        return []
    trial = laws.evenness(probe.rows, probe.points)
    return judged(trial, probe.tolerance, fenchel.floor_of(probe.tolerance))


def methods_of_the_domain(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The property ``domain``, where it is asked for, says what is known of dom phi*, and not the penalty itself."""
    demand_on_its_domain(penalty, AbstractPenalty, penalty.domain, FlowDomain, "domain")
    return []


# ---- what it says that it is -------------------------------------------------------------------------------------
def is_equality(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """A phi that counts as an equality is +inf at every z but 0."""
    if not allows_zero_only(penalty, probe.k):
        return []
    z = np.vstack([np.zeros((1, probe.k)), probe.points, 1e-9 * probe.points])
    wrong = penalty.value(frozen(z)) != np.where(z.any(axis=1), np.inf, 0.0)
    return judge("phi is 0 at 0 and +inf elsewhere", wrong, 0, z=z)


def pieces(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi is the sum of the Euclidean norms of the pieces of p coordinates where pieces(k) = p."""
    p = penalty.pieces(probe.k)
    if p is None:
        return []
    demand(p > 0 and probe.k % p == 0, f"pieces({probe.k}) = {p} does not divide {probe.k}")
    z = probe.points
    by = distance(penalty.value(z), size(z.reshape(-1, p)).reshape(len(z), -1).sum(axis=1))
    return judge("phi is the sum of the norms of its pieces", by, probe.tolerance, z=z)


def quadratic(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi(z) = 1/2 z'Qz where quadratic(k) = Q."""
    Q = penalty.quadratic(probe.k)
    if Q is None:
        return []
    shaped("quadratic", np.asarray(Q), (probe.k, probe.k))
    wanted = "and methods then ask for gradients, and take only that of a gr.AbstractSmoothPenalty"
    demand(isinstance(penalty, AbstractSmoothPenalty), f"quadratic({probe.k}) is given, {wanted}")
    z = probe.points
    by = np.abs(penalty.value(z) - dots(z @ Q, z) / 2) / np.maximum(dots(z, z) * np.abs(Q).max(), 1e-300)
    return judge("phi(z) = 1/2 z'Qz", by, probe.tolerance, z=z)


# ---- CVXPY -------------------------------------------------------------------------------------------------------
def cvxpy_value(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The CVXPY form has the value of phi, and its constraints hold exactly where phi is finite."""
    z = np.vstack([probe.points, 0.9 * penalty.prox(probe.points, 1.0)])
    return written.has_the_value(probe.rows, z, max(1e-9, probe.tolerance))


def cvxpy_argmin(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The CVXPY form has the prox as the minimiser of the prox problem."""
    # Generic points: where the multiplier of a constraint is 0, a solver's minimiser is good to the root of its gap.
    v = probe.rng.standard_normal((16, probe.k)) * np.linspace(0.1, 8.0, 16)[:, None]
    steps = 10.0 ** probe.rng.uniform(-0.7, 0.7, len(v))
    return written.has_the_minimiser(probe.rows, v, steps)


def cvxpy_conjugate_value(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The CVXPY form of the conjugate, where there is one, has its value and its domain."""
    if type(penalty).cvxpy_conjugate is AbstractPenalty.cvxpy_conjugate:
        return []
    u = np.vstack([probe.points, probe.inside * (1 - 1e-6), 3.0 * probe.inside])
    return written.conjugate_has_the_value(probe.rows, u, max(1e-8, probe.tolerance))


def as_written(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """A penalty that stands for this one on k coordinates has the value of what this one writes in CVXPY."""
    phi = penalty.acting_on(probe.k)
    if phi is penalty:
        return []
    z = np.vstack([probe.points, 0.9 * phi.prox(probe.points, 1.0)])
    z = z[np.isfinite(phi.value(z))]  # elsewhere CVXPY's formulas may give any number
    return written.has_the_value(TermRows(penalty), z, max(1e-9, probe.tolerance), phi.value)


def statement(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """What statement(k) names in a proof is phi, as the checker of proofs computes it."""
    if (stated := penalty.statement(probe.k)) is None:
        return []
    nearest = penalty.prox(probe.points, 1.0)  # of a constraint: at its boundary
    z = frozen(np.vstack([probe.points, 0.999 * nearest, 1.001 * nearest]))
    gap = distance(penalty.value(z), checked_values(stated, PENALTIES, z), 1e-4)
    return judge("phi is the penalty that a proof states", gap, probe.tolerance, z=z)


LAWS = laws_of(AbstractPenalty, globals(), vars(derived), vars(bounds))
OF_FORM = named(cvxpy_value, cvxpy_argmin, as_written)  # of what `cvxpy` writes


def check_penalty(
    penalty: AbstractPenalty, k: int | Iterable[int] = (1, 3), seed: int = 0, tolerance: float | None = None
) -> Report:
    """The report on a penalty: whether it obeys every law of penalties.

    Parameters
    ----------
    penalty : AbstractPenalty
        The penalty; nothing is asked of its type beyond the methods of the interface.
    k : int or iterable of int
        The numbers of coordinates on which it is tried. Numbers that ``penalty.check`` refuses are left out; where
        it refuses all of them, that is reported.
    seed : int
        Of the random points.
    tolerance : float, optional
        The relative accuracy that is asked of ``value``, ``prox`` and ``conjugate``. By default what the penalty says
        of itself (``penalty.accuracy()``): 1e-8, which suits closed forms, and 1e-6 where a conic solver finds them, as
        for a function of CVXPY that is not recognised. The largest and smallest points that are tried follow it.

    Returns
    -------
    Report
        True where every law holds; printed, one line per law, and for each failure where it happened. Laws of the form
        in CVXPY are not tried where a penalty has none (``untried``).

    Examples
    --------
    >>> gr.testing.check_penalty(gr.L1()).ok
    True
    """
    instance(AbstractPenalty, "a penalty such as gr.L2()")(penalty, "the penalty of check_penalty", TermError)
    check_numbers(seed, 1.0 if tolerance is None else tolerance)
    sizes = [count(each, "k") for each in ([k] if not isinstance(k, Iterable) else sequence(k, "k"))]
    failures: list[Failure] = []
    refused: list[str] = []
    untried: dict[str, str] = {}
    with stages("check_penalty") as at:
        for each in sizes:
            try:
                phi = penalty.acting_on(each)
            except TermError as error:
                refused.append(str(error))
                continue
            probe = Probe(phi, each, seed, phi.accuracy() if tolerance is None else tolerance)
            if said := phi.unwritten():
                untried |= dict.fromkeys(OF_FORM, said)
            tried = {name: law for name, law in LAWS.items() if name not in untried}
            failures += try_laws({name: law for name, law in tried.items() if law is not as_written}, phi, probe, at)
            if not_tried(failures, LAWS):
                break
            failures += try_laws({name: law for name, law in tried.items() if law is as_written}, penalty, probe, at)
    if len(refused) == len(sizes):
        failures.append(Failure("sizes", f"none of the sizes {sizes} is accepted: {refused[-1]}", "", np.inf))
        untried = dict.fromkeys(LAWS, "no size is accepted: give one with k=")
    untried |= not_tried(failures, LAWS)
    return Report(penalty.called(), ("sizes", *LAWS), tuple(failures), untried, penalty.blamed())
