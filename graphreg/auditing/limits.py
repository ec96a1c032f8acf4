"""Where a run leads: to the optimum, elsewhere, nowhere, or not yet anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..terms import Array
from .course import Course
from .optimum import Optimum

RIGHT = 1e-5  # the distance of a run that has arrived
NEAR, FALLS = 1e-3, 0.3  # the distance and the power of one that is about to
FLAT = 0.15  # the power below which a distance does not fall
MOVES = 0.2  # of its distance a run must still move, or it has stalled
SWINGS = 1e-4  # of the size of the optimum a run must move in every round to be said to swing
DECAYS = 0.7  # of its moves a quarter into the run, above which they do not decay
FEWEST = 200  # rounds from which a limit can be told, where it is not reached
AWAY = 1.0 + 1e-6  # by so much a distance has grown where a run leads away from the optimum
PACE, TURNED = 0.8, 0.3  # of the quarter before, and of its own length: a move that goes on
ERRORS = 4.0  # standard errors beyond which a mean is not the optimum


@dataclass(frozen=True)
class Limit:
    """What was seen of the limit of a run.

    Attributes
    ----------
    kind : str
        right, right in the limit, wrong, never settles, undecided, or none where there are no points.
    distance : float
        From the optimum, at the end.
    power : float
        p where the distance falls as k^-p between half of the run and its end.
    point : (n, d) array
        The mean of the last points.
    swing : float
        The last move in units of the size of the optimum, 0 where moves decay.
    why : str
        In words.
    """

    kind: str
    distance: float
    power: float
    point: Array
    swing: float
    why: str


def _falling(power: float) -> str:
    """How a distance falls, in words."""
    return f"falling as k^-{power:.2g}" if power > 0.0 else "not falling"


def limit_of(course: Course, optimum: Optimum, others: tuple[Course, ...] = ()) -> Limit:
    """The limit of a run; ``others`` are runs with other seeds, where these differ."""
    if not course.finite:
        last = course.last if course.total else np.zeros(course.shape)
        kind = "never settles" if course.ended == "diverged" and course.total else "none"
        return Limit(kind, np.inf, 0.0, last, np.inf, course.why)
    runs = (course, *(each for each in others if each.finite))
    d1, d2, d3 = (float(np.mean([_around(each, optimum, share) for each in runs])) for share in (0.25, 0.5, 1.0))
    power = float(np.log2(max(d2, 1e-300) / max(d3, 1e-300))) if d3 > 0 else np.inf
    swing = _swing(course, optimum.size)
    point = np.mean([each.at(1.0) for each in runs], axis=0)

    def found(kind: str, why: str) -> Limit:
        short = f"; {course.why}: more seconds=, or rounds that take less time" if course.ended == "time" else ""
        return Limit(kind, d3, power, point, swing, why + (short if kind == "undecided" else ""))

    if not optimum.known:
        gap = optimum.certificate.relative_gap if optimum.certificate.valid else np.inf
        why = f"the optimum is known to a relative gap of {gap:.1e} only, so nothing can be said of where the run leads"
        return found("undecided", why)
    if d3 < RIGHT + optimum.floor:
        return found("right", f"{d3:.1e} from the optimum")
    if others:
        return found(*_of_noise(runs, optimum, power, d3))
    if swing > 0.0 and not _drifts(course, d1, d3):
        return found("never settles", f"it moves by {swing:.1e} of the optimum's size in every round, {d3:.1e} away")
    return found(*_of_decay(course, optimum, (d1, d2, d3), power))


def _around(course: Course, optimum: Optimum, share: float) -> float:
    """The mean distance of the points before a share of the rounds."""
    end = share * course.total
    near = [w for k, w in zip(course.rounds, course.points, strict=True) if 0.98 * end <= k <= end]
    near = near[:: max(len(near) // 20, 1)] or [course.at(share)]
    return float(np.mean([optimum.distance(w) for w in near]))


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
    if course.total < FEWEST and course.ended != "settled":
        return "undecided", f"{d3:.1e} from the optimum after {course.total} rounds, {_falling(power)}"
    still = course.ended == "settled" or course.move_since_half() < 1e-9 * optimum.size
    if not still and d3 < NEAR and power > FALLS:
        return "right in the limit", f"{d3:.1e} from the optimum and {_falling(power)}"
    if not still and power > FALLS and (far := optimum.distance(_extrapolated(course))) < 0.15 * d3:
        return "right in the limit", f"{d3:.1e} from the optimum, {_falling(power)}; extrapolated {far:.1e}"
    drop = (d1 - d2) - (d2 - d3)
    floor = d3 - (d2 - d3) ** 2 / drop if drop > 0 and d2 > d3 else d3
    if not still and power > FLAT and floor < 0.5 * d3:
        return "undecided", f"{d3:.1e} from the optimum, {_falling(power)}"
    slow = not still and _drifts(course, d1, d3)
    stalled = course.move_since_half() < MOVES * d3 * optimum.size
    if not slow and (still or stalled or power < FLAT):
        return "wrong", f"it stays {d3:.1e} from the optimum"
    goes_on = ", and it goes on the same way as fast as before: slow, or wrong"
    return "undecided", f"{d3:.1e} from the optimum, {_falling(power)}{goes_on if slow else ''}"


def _drifts(course: Course, early: float, late: float) -> bool:
    """Whether the last quarter of a run goes on where the one before went, and as far: a small step on a long way; but
    not away from the optimum, as the distances say."""
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
    """Runs with several seeds: wrong where the mean of their last tenths is beyond their standard error, and the
    distance does not fall any more."""
    t = bias(runs, optimum)
    if t > ERRORS and power < FALLS:
        return "wrong", f"the mean over {len(runs)} seeds is {t:.1f} standard errors from the optimum, {d3:.1e} away"
    return "undecided", f"{d3:.1e} from the optimum by noise ({t:.1f} standard errors), {_falling(power)}"


def bias(runs: tuple[Course, ...], optimum: Optimum) -> float:
    """How many standard errors the mean over some runs of their last tenths is from the optimum."""
    ends = np.array([each.tail().mean(axis=0) for each in runs])
    error = optimum.length(ends.std(axis=0, ddof=1)) / np.sqrt(len(ends))
    return optimum.length(ends.mean(axis=0) - optimum.w) / max(error, optimum.floor * optimum.size)
