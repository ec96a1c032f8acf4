"""The limit of a run: the optimum, another point, none, or not yet any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.clock import alarm
from ..certificate import Certificate, common, feasible, relative
from ..errors import GraphregError
from ..judging import Judgement
from ..methods import Exact
from ..problem import Problem
from ..terms import Array
from .course import Course, unit_of
from .instances import with_latent

# ---- distances from a certified optimum, and how far that may itself be off ------------------------------------------
GAP = 1e-11  # asked of the optimum that distances are measured from
ENOUGH = 1e-6  # and what it must have for distances to mean anything
ROUGH = 1e-4  # a distance of gaps, sqrt of 1e-8, to which inexact proxes come
ANY = 1e300  # a gap that every bound has
EMPTY = 1e-6  # of the objective at 0, below which an infimum is 0
NOTHING = 1e-9  # units below which the optimum is 0, and says nothing of sizes
DIGITS = 1e-13  # of w*, that rounding leaves


@dataclass(frozen=True)
class Optimum:
    """The optimum w* of a problem with its certificate.

    Distances are ||w - w*|| / min(||w*||, sqrt(n d)), parameters in the units of `unit_of`, where the objective is
    strongly convex, so that w* is unique and known to within `radius`; elsewhere sqrt of the relative gap of the
    feasible point next to w, plus how far that is away.
    """

    problem: Problem
    w: Array
    certificate: Certificate

    @staticmethod
    def of(problem: Problem, seconds: float | None = None) -> Optimum:
        """The optimum by the exact route."""
        solution = problem.solve(Exact(), gap=GAP, seconds=seconds, progress=False, on_failure="return")
        if solution.status == "interrupted":
            raise KeyboardInterrupt
        found = Optimum(problem, solution.coef, solution.certificate)
        with alarm():
            _ = found.unique  # eigenvalues, maybe of large matrices
        return found

    @cached_property
    def unit(self) -> Array:
        """The unit of each parameter, (d,)."""
        return unit_of(self.problem.form)

    @cached_property
    def size(self) -> float:
        """The length that others are compared with: the optimum's own, and no more than a unit in every parameter."""
        length, whole = self.length(self.w), float(np.sqrt(self.w.size))
        return min(length, whole) if length > NOTHING * whole else whole

    def length(self, w: Array) -> float:
        """The norm of parameters in units."""
        return float(np.linalg.norm(w / self.unit))

    @cached_property
    def unique(self) -> bool:
        return self.radius < 1e-2

    @property
    def known(self) -> bool:
        """True where a distance rests on a certificate."""
        return self.certificate.valid and self.certificate.relative_gap <= ENOUGH

    def disagreement(self, w: Array) -> float:
        """The distance of nodes from their mean."""
        return self.length(w - w.mean(axis=0)) / self.size

    @cached_property
    def radius(self) -> float:
        """The distance that w* itself may have from the optimum, in the unit of the distances."""
        return self.certificate.distance / float(self.unit.min()) / self.size

    @property
    def floor(self) -> float:
        """The distance below which points cannot be told from the optimum."""
        gap = self.certificate.relative_gap
        if self.unique:
            return self.radius + DIGITS * self.length(self.w) / self.size
        return max(ROUGH, float(np.sqrt(gap))) if np.isfinite(gap) else ROUGH

    @cached_property
    def start(self) -> float:
        """The objective where all parameters are 0, or as near to it as constraints let them be; 0 where it is none."""
        form = self.certificate.form
        value = form.primal(feasible(form, np.zeros(form.shape)))
        return value if np.isfinite(value) else 0.0

    def distance(self, w: Array) -> float:
        """The distance of a point (n_observed, d)."""
        if self.unique:
            return self.length(w - self.w) / self.size
        form = self.certificate.form
        whole = with_latent(form, w)
        near = feasible(form, whole)
        with np.errstate(all="ignore"):
            value = form.primal(near)
        floor = common(form).floor
        if self.certificate.primal <= EMPTY * self.start:  # an infimum of 0, beside which every gap is 1
            floor = max(floor, self.start)
        above = relative(max(value - self.certificate.dual, 0.0), value, self.certificate.dual, floor)
        moved = self.length(near - whole) / self.size
        return float(np.sqrt(above)) + moved if np.isfinite(above) else float("inf")

    def judged(self, w: Array) -> Judgement | None:
        """The certificate of a point, against the lower bound that is known; None where there is none."""
        point = self.certificate.dual_point
        try:
            return self.problem.certify(w, point.flows, point.prices, gap=ANY)
        except GraphregError:
            return None

    @property
    def rests_on(self) -> str:
        """The yardstick of a distance, in words."""
        if not self.known:
            return "distances rest on no certificate: the optimum was not certified, so they are indications"
        by = f"optimum certified to a relative gap of {self.certificate.relative_gap:.1e}"
        if self.unique:
            size = "||w*||" if self.size < np.sqrt(self.w.size) else "the root of how many there are"
            return (
                f"distances are ||w - w*|| / {size}, parameters in units in which the losses feel them, w* known to "
                f"within {self.radius:.1e} ({by})"
            )
        return f"distances are sqrt of the relative gap to the {by}, plus the way to where all constraints hold"


# ---- limits of runs --------------------------------------------------------------------------------------------------
RIGHT = 1e-5  # the distance of a run that has arrived
NEAR, FALLS = 1e-3, 0.3  # the distance and the power of one that is about to
FLAT = 0.15  # the power below which a distance does not fall
MOVES, ROAMS = 0.2, 0.4  # of its distance a run must still move, or it has stalled; and where that does not fall
SWINGS = 1e-4  # of the size of the optimum a run must move in every round to be said to swing
DECAYS = 0.7  # of its moves a quarter into the run, above which they do not decay
FEWEST = 200  # rounds from which a limit can be told, where it is not reached
AWAY = 1.0 + 1e-6  # by so much a distance has grown where a run leads away from the optimum
PACE, TURNED = 0.8, 0.3  # of the quarter before, and of its own length: a move that goes on
LEAP = 10.0  # times as far as those before it a last point has left them
ERRORS = 4.0  # standard errors beyond which a mean is not the optimum


@dataclass(frozen=True)
class Limit:
    """The limit of a run, as far as it was seen."""

    kind: str  # right, right in the limit, wrong, never settles, undecided, or none where there are no points
    distance: float  # from the optimum, at the end
    power: float  # p where the distance falls as k^-p between half of the run and its end
    point: Array  # the mean of the last points, (n, d)
    why: str  # in words


def _falling(power: float) -> str:
    """The fall of a distance, in words."""
    return f"falling as k^-{power:.2g}" if power > 0.0 else "not falling"


def limit_of(course: Course, optimum: Optimum, others: tuple[Course, ...] = ()) -> Limit:
    """The limit of a run; ``others`` are runs with other seeds, where these differ."""
    if not course.finite:
        last = course.last if course.total else np.zeros(course.shape)
        kind = "never settles" if course.ended == "diverged" and course.total else "none"
        return Limit(kind, np.inf, 0.0, last, course.why)
    runs = (course, *(each for each in others if each.finite))
    shares = (0.25, 0.5, 1.0)
    d1, d2, d3 = (float(np.mean([np.mean(_around(each, optimum, share)) for each in runs])) for share in shares)
    power = float(np.log2(max(d2, 1e-300) / max(d3, 1e-300))) if d3 > 0 else np.inf
    swing = _swing(course, optimum.size)
    point = np.mean([each.at(1.0) for each in runs], axis=0)

    def found(kind: str, why: str) -> Limit:
        short = f"; {course.why}: more seconds=, or rounds that take less time" if course.ended == "time" else ""
        return Limit(kind, d3, power, point, why + (short if kind == "undecided" else ""))

    if not optimum.known:
        gap = optimum.certificate.relative_gap if optimum.certificate.valid else np.inf
        why = f"the optimum is known to a relative gap of {gap:.1e} only, so nothing can be said of where the run leads"
        return found("undecided", why)
    last = optimum.distance(course.last)
    before = float(np.median(_around(course, optimum, 1.0)))
    if last > RIGHT + optimum.floor and last > LEAP * before:
        return found("never settles", f"its last point is {last:.1e} from the optimum, those before it {before:.1e}")
    if d3 < RIGHT + optimum.floor:
        return found("right", f"{d3:.1e} from the optimum")
    if swing > 0.0 and not others and not _drifts(course, d1, d3):
        return found("never settles", f"it moves by {swing:.1e} of the optimum's size in every round, {d3:.1e} away")
    of_noise = _of_noise(runs, optimum, power, d3) if others else None
    return found(*(of_noise or _of_decay(course, optimum, (d1, d2, d3), power)))


def _around(course: Course, optimum: Optimum, share: float) -> list[float]:
    """The distances of the points before a share of the rounds."""
    near = course.near(share)
    return [optimum.distance(w) for w in near[:: max(len(near) // 20, 1)]]


def _swing(course: Course, size: float) -> float:
    """The last move where moves do not decay, relative to the size of the optimum; 0 where they do."""
    if len(course.moves) < 40:
        return 0.0
    moves = np.array(course.moves)
    window = max(len(moves) // 20, 4)
    last, early = moves[-window:].mean(), moves[len(moves) // 4 : len(moves) // 4 + window].mean()
    return float(last / size) if last > SWINGS * size and last > DECAYS * early else 0.0


def _of_decay(course: Course, optimum: Optimum, distances: tuple[float, float, float], power: float) -> tuple[str, str]:
    """A run without noise that has not arrived: whether it will, by extrapolation from three octaves (Aitken)."""
    d1, d2, d3 = distances
    settled = course.ended == "settled" or course.still()
    if course.total < FEWEST and not settled:
        return "undecided", f"{d3:.1e} from the optimum after {course.total} rounds, {_falling(power)}"
    still = settled or course.move_since_half() < 1e-9 * optimum.size
    if not still and d3 < NEAR and power > FALLS:
        return "right in the limit", f"{d3:.1e} from the optimum and {_falling(power)}"
    if not still and power > FALLS and (far := optimum.distance(_extrapolated(course))) < 0.15 * d3:
        return "right in the limit", f"{d3:.1e} from the optimum, {_falling(power)}; extrapolated {far:.1e}"
    drop = (d1 - d2) - (d2 - d3)
    floor = d3 - (d2 - d3) ** 2 / drop if drop > 0 and d2 > d3 else d3
    if not still and power > FLAT and floor < 0.5 * d3:
        return "undecided", f"{d3:.1e} from the optimum, {_falling(power)}"
    slow = not still and _drifts(course, d1, d3)
    stalled = course.move_since_half() < (ROAMS if power < FLAT else MOVES) * d3 * optimum.size
    if not slow and (still or stalled):
        return "wrong", f"it stays {d3:.1e} from the optimum"
    goes_on = ", and it goes on the same way as fast as before: slow, or wrong"
    return "undecided", f"{d3:.1e} from the optimum, {_falling(power)}{goes_on if slow else ''}"


def _drifts(course: Course, early: float, late: float) -> bool:
    """True where the last quarter of a run goes on where the one before went, and as far: a small step on a long way;
    but not away from the optimum, as the distances say."""
    if late > AWAY * early:
        return False
    w2, w3, w4 = (course.at(share) for share in (0.5, 0.75, 1.0))
    before, after = course.length(w3 - w2), course.length(w4 - w3)
    turned = course.length((w4 - w3) - (w3 - w2) * (after / max(before, 1e-300)))
    return after > PACE * before and turned < TURNED * after


def _extrapolated(course: Course) -> Array:
    """The limit of points that go as a + b r^j over the octaves j of the rounds."""
    q4, q2, q1 = (course.at(share) for share in (0.25, 0.5, 1.0))
    r = course.length(q1 - q2) / max(course.length(q2 - q4), 1e-300)
    return q1 + (q1 - q2) * r / (1.0 - r) if r < 0.97 else q1


def _of_noise(runs: tuple[Course, ...], optimum: Optimum, power: float, d3: float) -> tuple[str, str]:
    """Runs with several seeds: wrong where the mean of their last tenths is beyond their standard error, and the way of
    their mean leads elsewhere, too."""
    middle = [np.mean(w, axis=0) for w in zip(*(r.points for r in runs if r.total == runs[0].total), strict=True)]
    mean = replace(runs[0], points=middle, last=middle[-1], moves=[])  # whose moves are not noise
    ends = np.array([each.tail().mean(axis=0) for each in runs])
    error = optimum.length(ends.std(axis=0, ddof=1)) / np.sqrt(len(ends))
    t = optimum.length(ends.mean(axis=0) - optimum.w) / max(error, optimum.floor * optimum.size)
    if t > ERRORS and limit_of(mean, optimum).kind == "wrong":
        return "wrong", f"the mean over {len(runs)} seeds is {t:.1f} standard errors from the optimum, {d3:.1e} away"
    if t > ERRORS:
        share = max(1.0 - optimum.distance(ends.mean(axis=0)) / d3, 0.0)
        said = f"of which noise explains {share:.0%}: their mean is {t:.1f} standard errors away"
        return "undecided", f"{d3:.1e} from the optimum over {len(runs)} seeds, {said}, {_falling(power)}"
    kind = "right in the limit" if d3 < NEAR and power > FALLS else "undecided"
    return kind, f"{d3:.1e} from the optimum by noise ({t:.1f} standard errors), {_falling(power)}"
