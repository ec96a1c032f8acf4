"""One problem by one solver: what it says itself, what is proved, and whether that is right."""

from __future__ import annotations

import resource
import signal
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any

import graphreg as gr

from .cases import BOUNDS, NONE, Case

EPSILONS = {"SCS": ("eps_abs", "eps_rel"), "OSQP": ("eps_abs", "eps_rel")}
SOLVERS = {  # by what they are called in tables: the solver, and its tolerance where it is not the usual one
    "Clarabel": ("CLARABEL", None),
    "SCS 1e-2": ("SCS", 1e-2),
    "SCS 1e-4": ("SCS", 1e-4),
    "SCS 1e-6": ("SCS", 1e-6),
    "OSQP 1e-3": ("OSQP", 1e-3),
    "OSQP 1e-6": ("OSQP", 1e-6),
    "HiGHS": ("HIGHS", None),
}
ROUNDS = {"SCS": {"max_iters": 100_000}, "OSQP": {"max_iter": 100_000}}
NOT_TAKEN = "not taken"  # by this solver
WHOLE = "of your formula"  # what a statement may be about
RAISED = "RAISED"  # by us: an exception, or the time was up
SECONDS = 30  # of a processor
CLOSED_FORM = 1e-12  # relative: what closed forms in doubles may miss


@dataclass
class Row:
    """``own`` is what the solver says of the optimum, ``beyond`` by how much that is better than what is proved to be
    possible, relative to max(1, |own|); `settled` judges."""

    name: str
    solver: str
    right: str
    hard: str
    maximised: bool
    status: str = ""
    message: str = ""
    scope: str = ""
    own: float | None = None
    own_status: str = ""
    lower: float = -inf
    upper: float = inf
    gap: float = inf
    solving: float = 0.0
    certifying: float = 0.0
    wrong: str = ""

    @property
    def settled(self) -> bool:
        """True where what is right is proved; of problems without a finite proof, where nothing else is."""
        if self.wrong or self.status in ("", NOT_TAKEN) or self.message.startswith(RAISED):
            return False
        proved = self.status == ("certified" if self.right == BOUNDS else self.right)
        return proved or (bool(self.hard) and self.status in ("one side only", "refused"))


def options(solver: str, tolerance: float | None) -> dict[str, Any]:
    return {**dict.fromkeys(EPSILONS.get(solver, ()), tolerance), **ROUNDS.get(solver, {})}


def examine(case: Case, name: str) -> Row:
    """Solve as a user would, then certify."""
    solver, tolerance = SOLVERS[name]
    row = Row(case.name, name, case.right, case.hard, type(case.problem.objective).__name__ == "Maximize")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with at_most(SECONDS):
                began = spent()
                case.problem.solve(solver, **options(solver, tolerance))
                row.solving = spent() - began
                value: Any = case.problem.value
                row.own_status = case.problem.status
                row.own = None if value is None or not isfinite(value) else float(value)
        except Exception as error:  # noqa: BLE001  (solvers raise what they like)
            row.own_status = f"{type(error).__name__}: {error}"[:200]
        began = spent()
        try:
            with at_most(SECONDS):
                found = gr.certify(case.problem, solver=solver, **options(solver, tolerance))
        except gr.errors.SolverError as error:
            row.status, row.message = NOT_TAKEN, str(error)[:200]
        except Exception as error:  # noqa: BLE001  (it is to be listed, and not to end the study)
            row.status, row.message = "refused", f"{RAISED} {type(error).__name__}: {error}"[:300]
        else:
            row.status, row.message, row.gap, row.scope = found.status, found.message, found.relative_gap, found.scope
            row.lower, row.upper = found.lower, found.upper
            row.wrong = contradiction(case, found)
        row.certifying = spent() - began
    return row


def contradiction(case: Case, found: Any) -> str:
    """What is false of what is proved."""
    if case.right == BOUNDS and found.status in NONE:
        return f"{found.status} is said, and there is an optimum"
    if case.right != BOUNDS and found.status == "certified":
        return f"there are bounds, and {case.right} is right"
    room = CLOSED_FORM * (1.0 + abs(case.known or 0.0))
    if case.known is not None and not found.lower - room <= case.known <= found.upper + room:
        return f"the optimum is {case.known!r}"
    return ""


def disjoint(rows: list[dict[str, Any]]) -> list[str]:
    """Problems of which the bounds from two solvers contradict each other."""
    best = proved(rows)
    return [name for name, (lower, upper) in best.items() if lower > upper]


def proved(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The best bounds of each problem that has both."""
    best: dict[str, tuple[float, float]] = {}
    for row in rows:
        if row["status"] == "certified":
            low, high = best.get(row["name"], (-inf, inf))
            best[row["name"]] = (max(low, row["lower"]), min(high, row["upper"]))
    return best


def as_dict(row: Row) -> dict[str, Any]:
    return {**asdict(row), "settled": row.settled}


def spent() -> float:
    """Seconds of the processor so far; while a timer runs, `time.process_time` counts ticks of 4 ms on some systems."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def at_most(seconds: int) -> Generator[None]:
    """Raise TimeoutError when the block takes longer, by the processor's time."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
