"""A run of one of those that are compared: of a method of the library, or of an algorithm that was written by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..auditing import AbstractAlgorithm, Course, Follower
from ..certificate import Certificate, common, feasible, relative
from ..errors import GraphregError, MethodError, SolverError
from ..form import Form
from ..judging import Judgement, given_point
from ..methods import AbstractIteration, AbstractMethod
from ..problem import Problem
from ..running import Record, Solution, Trace

FIRST, GROWTH = 10, 1.2  # the first round whose objective is looked at, and the ratio of one such round to the next
ANY = 1e300  # a gap that every bound has
Sent = tuple[int, int] | None  # messages and bytes; None where nobody counts them


@dataclass(frozen=True)
class Allowed:
    """What each may take."""

    gap: float
    rounds: int | None
    seconds: float
    seed: int


@dataclass(frozen=True)
class NoRun:
    """Why there is no solution: ``status`` is refused (the method does not apply), failed or interrupted."""

    status: str
    message: str


def of_method(problem: Problem, method: AbstractMethod, allowed: Allowed) -> Solution | NoRun:
    """The solution of one method, or why there is none."""
    missing = method.missing(problem.form)
    if missing:
        return NoRun("refused", "; ".join(missing))
    rounds = None if "rounds" in method.refuses() else allowed.rounds
    budget: dict[str, Any] = {"gap": allowed.gap, "rounds": rounds, "seconds": allowed.seconds, "seed": allowed.seed}
    try:
        return problem.solve(method, progress=False, on_failure="return", **budget)
    except KeyboardInterrupt:
        return NoRun("interrupted", "The run was interrupted before there was an answer.")
    except (MethodError, SolverError) as error:
        return NoRun("refused", str(error))
    except GraphregError:  # the budget, not the method
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's method raises is what its row has to say
        return NoRun("failed", f"{type(error).__name__}: {error}")


def of_algorithm(
    problem: Problem, algorithm: AbstractAlgorithm, allowed: Allowed, known: Certificate | None
) -> tuple[Solution | NoRun, Sent]:
    """What an algorithm without a dual reached, certified by `Problem.certify`, and what it sent.

    It ends where its objective is within the gap of the bound of ``known``, if that is given: the optimum's.
    """
    form, trace = problem.form.frozen(), Trace()
    course = _followed(form, Follower(algorithm, problem, None, allowed.seed), allowed, known, trace)
    if not course.total:
        return NoRun("interrupted" if course.ended == "interrupted" else "failed", _sentence(course.why)), course.sent
    try:
        found = _certified(problem, course, allowed, known)
    except KeyboardInterrupt:
        course.ended = "interrupted"
        found = problem.certify(course.last, gap=ANY)  # its own gradients say what can be said at once
    status, message = _status(found, course, allowed)
    done: dict[str, Any] = {"rounds": course.total, "seconds": course.seconds, "trace": trace, "seed": allowed.seed}
    return Solution(form, found, status, message, algorithm.name, **done), course.sent


def _followed(form: Form, follower: Follower, allowed: Allowed, known: Certificate | None, trace: Trace) -> Course:
    """The course until it is near enough, or to the end of what is allowed; the objective now and then in the trace."""
    most = AbstractIteration.most_rounds if allowed.rounds is None else allowed.rounds
    deadline, k = time.monotonic() + allowed.seconds, 0
    while True:
        k = min(max(k + FIRST, round(GROWTH * k)), most)
        course = follower.until(k, deadline)
        if not course.total:
            return course
        began = time.perf_counter()
        w = feasible(form, given_point(course.last, "w", form).w)
        with np.errstate(over="ignore", invalid="ignore"):
            primal = form.primal(w)
        bound = float("nan") if known is None else known.dual
        away = relative(primal - bound, primal, bound, common(form).floor)
        messages, size = course.sent or (0, 0)
        trace.records.append(Record(course.total, course.seconds, away, False, primal, bytes=size, messages=messages))
        trace.check_seconds += time.perf_counter() - began
        if course.ended or k == most or away <= allowed.gap:
            return course


def _certified(problem: Problem, course: Course, allowed: Allowed, known: Certificate | None) -> Judgement:
    """The certificate of the last point. Where the optimum is known, its flows and prices bound it as well as any."""
    if known is None:
        return problem.certify(course.last, gap=allowed.gap, seconds=allowed.seconds)
    point = known.dual_point
    return problem.certify(course.last, point.flows, point.prices, gap=ANY)


def _status(found: Judgement, course: Course, allowed: Allowed) -> tuple[str, str]:
    """The status, decided by the certificate, and the sentence that goes with it."""
    moved = f" Its last point was moved by at most {found.moved:.2g} to where every constraint holds." * bool(
        found.moved
    )
    why = " " + _sentence(course.why) if course.why and course.ended != "time" else ""
    if found.contradiction or not found.valid:
        return "no_certificate", f"Its last point has no certificate: {found.contradiction or found.note}.{why}"
    reached = f"after {course.total} rounds its last point is certified to a relative gap of {found.relative_gap:.2g}"
    if course.ended in ("diverged", "raised"):
        return "failed", f"{why.strip()} Before that, {reached}.{moved}"
    if found.holds(allowed.gap):
        return "certified", f"The point is within the gap asked for: {reached}.{moved}"
    if course.ended == "interrupted":
        return "interrupted", f"Interrupted: {reached}.{moved}"
    ended = {"settled": "It moves no more", "ended": "It ended"}.get(course.ended, "The budget was used up")
    return "budget", f"{ended}: {reached}.{moved}{why}"


def _sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}." if words else "It gave no point."
