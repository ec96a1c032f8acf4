"""One seed: the problem, its reference, graphreg's answers, and what is wrong with them."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import RandomProblem, random_problem

from .objective import objective, recedes, rounding, violation
from .reference import Reference, solve

METHODS: dict[str, tuple[Callable[[], Any], float, dict[str, Any]]] = {
    "auto": (gr.Auto, 1e-7, {}),
    "exact": (gr.Exact, 1e-7, {}),
    "primal-dual": (gr.PrimalDual, 1e-6, {"rounds": 20_000, "seconds": 100.0}),
    "admm": (gr.ADMM, 1e-6, {"rounds": 20_000, "seconds": 100.0}),
}
SOUND = 1e-8  # relative: by so much a bound may pass the reference
SAME = 1e-10  # relative: so well two evaluations of one point agree
FEASIBLE = 1e-9
RECEDING = 1_000  # rounds, where there is no minimiser
SECONDS = 340  # per seed
NAMED = ("budget", "no_certificate", "unattained")  # the statuses that may stand where no gap was certified


@dataclass
class Answer:
    """The answer of one method for one seed."""

    method: str
    status: str
    message: str = ""
    primal: float = np.nan
    dual: float = np.nan
    relative_gap: float = np.inf
    scope: str = ""
    rounds: int = 0
    seconds: float = 0.0
    good: bool = False  # certified to the gap asked for, or correctly called unattained
    named: bool = False  # good, or a status that names the reason
    violations: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class Row:
    """One seed."""

    seed: int
    hard: bool
    loss: str
    penalty: str
    structure: str
    traits: tuple[str, ...]
    condition: float
    nodes: int
    edges: int
    d: int
    recedes: bool
    reference: str
    reference_gap: float
    answers: list[Answer]
    seconds: float
    error: str = ""


def examine(seed: int, hard: bool = False) -> Row:
    """Solve, compare and judge; exceptions and too slow seeds are recorded, not raised."""
    began = time.perf_counter()
    drawn = random_problem(seed, hard)
    plain = drawn.plain
    row = Row(
        seed,
        hard,
        drawn.loss,
        drawn.penalty,
        drawn.structure,
        drawn.traits,
        drawn.condition,
        len(plain.nodes),
        len(plain.edges),
        plain.d,
        False,
        "none",
        np.inf,
        [],
        0.0,
    )
    try:
        with _at_most(SECONDS):
            _examine(drawn, row)
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.perf_counter() - began
    return row


def _examine(drawn: RandomProblem, row: Row) -> None:
    row.recedes = recedes(drawn.plain)
    reference = solve(drawn.plain, common(drawn.problem.form).floor)
    row.reference, row.reference_gap = reference.status, reference.gap
    found = [(_answer(drawn, name, row, reference.floor), name) for name in METHODS]
    upper = min([reference.upper, *(value for (_, value), _ in found)])
    for (answer, value), _ in found:
        _judge_bounds(answer, value, upper, reference)
        row.answers.append(answer)


def _answer(drawn: RandomProblem, name: str, row: Row, floor: float) -> tuple[Answer, float]:
    """The answer of a method, and P at its point by plain numpy (inf where it is not feasible)."""
    make, gap, options = METHODS[name]
    if row.recedes and "rounds" in options:  # the right status is all that is asked for
        options = options | {"rounds": RECEDING}
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            solution = drawn.problem.solve(make(), gap=gap, progress=False, on_failure="return", **options)
        except TimeoutError as late:
            return Answer(name, "timeout", str(late)), np.inf
        except Exception:  # noqa: BLE001
            answer = Answer(name, "exception", traceback.format_exc(limit=-4))
            answer.violations.append("raised an exception")
            return answer, np.inf
    c = solution.certificate
    answer = Answer(name, solution.status, solution.message, c.primal, c.dual, c.relative_gap, c.scope, solution.rounds)
    answer.seconds = time.perf_counter() - began
    answer.warnings = [str(w.message) for w in caught]
    certified = c.holds(gap) and c.scope == "global"
    answer.good = solution.status == "unattained" if row.recedes else solution.status == "certified" and certified
    answer.named = answer.good or (not row.recedes and solution.status in NAMED[:2] and bool(solution.message))
    _judge_status(answer, certified, row.recedes)
    return answer, _judge_point(drawn, solution, answer, floor)


def _judge_status(answer: Answer, certified: bool, recedes: bool) -> None:
    if answer.status == "certified" and not certified:
        answer.violations.append(f"called certified at a gap of {answer.relative_gap:.3g}, scope {answer.scope}")
    if answer.status == "unattained" and not recedes:
        answer.violations.append("called unattained, and it is attained")
    if answer.status == "certified" and recedes:
        answer.violations.append("not called unattained, and no minimiser exists")


def _judge_point(drawn: RandomProblem, solution: gr.Solution, answer: Answer, floor: float) -> float:
    """Compare the reported primal value with P at the reported point."""
    if not np.isfinite(answer.primal):
        return np.inf
    at = dict(zip(solution.labels, solution.coef, strict=True)) | solution.latent
    w = np.array([at[label] for label in drawn.plain.nodes])
    value, outside = objective(drawn.plain, w), violation(drawn.plain, w)
    room = SAME * max(abs(value), abs(answer.primal), floor)
    bits = rounding(drawn.plain, w)
    room += bits + solution.certificate.rounding
    if abs(value - answer.primal) > room:
        answer.violations.append(f"primal {answer.primal!r} is reported and P there is {value!r}")
    if outside > FEASIBLE:
        answer.violations.append(f"a constraint is violated by {outside:.2g}")
        return np.inf
    return value + bits


def _judge_bounds(answer: Answer, value: float, upper: float, reference: Reference) -> None:
    """dual <= P at every feasible point that is known, by numpy; and so at the reference's, and at the answer's own.

    That primal >= optimum needs no reference: it is P at a feasible point, which `_judge_point` has checked.
    """
    if answer.scope != "none" and np.isfinite(answer.dual) and answer.dual > upper + SOUND * reference.yardstick:
        above = (answer.dual - upper) / reference.yardstick
        answer.violations.append(f"the dual value lies above P at a feasible point by {above:.3g}")
    yardstick = max(abs(value), abs(answer.dual), reference.floor)
    gap = (value - answer.dual) / yardstick if yardstick > 0 else 0.0
    if answer.status == "certified" and not gap <= METHODS[answer.method][1] * (1 + 1e-6) + SAME:
        answer.violations.append(f"called certified, and P at the point is {gap:.3g} above the dual value")


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when the block takes longer (where the platform has such alarms)."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
