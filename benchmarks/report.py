"""The table of the speed measurements: one row per workload and solver."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from .solvers import CLARABEL, OURS, PREFIX, SOLVERS
from .worker import Run

TARGET = 1e-6  # the relative accuracy at which solvers are compared
# how many times faster than CVXPY + Clarabel graphreg's default method is asked to be
ASKED = {"W1-l2": 100, "W1-l1": 100, "W2": 25, "W3-300": 10, "W4": 50, "W6": 5}
HEADER = (
    *("workload", "solver", "solve s", "first s", "build s", "ratio", "asked", "accuracy"),
    *("certified", "setting", "rounds", "checks", "MB", "runs", "status"),
)
Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Rung:
    """The runs of one solver at one setting: medians of the times, and the worst accuracy."""

    setting: float
    runs: tuple[Run, ...]
    accuracy: float  # (P(w) - best lower bound) / |P(w)|, which no answer's true accuracy exceeds
    solve: float
    build: float

    @property
    def attained(self) -> float:
        """The accuracy of the worst answer; of graphreg's, what they certify themselves."""
        certifies = self.runs[0].solver.startswith(PREFIX)
        return max(run.gap for run in self.runs) if certifies else self.accuracy

    @property
    def reached(self) -> bool:
        return self.attained <= TARGET


def lower_bound(runs: Iterable[Run]) -> float:
    """The best that is certified of the optimum of a workload."""
    return max((run.lower for run in runs), default=-np.inf)


def accuracy(value: float, lower: float) -> float:
    """The relative distance from the optimum, at most."""
    return max(value - lower, 0.0) / abs(value)


def rungs(runs: Sequence[Run], solver: str) -> list[Rung]:
    """The settings at which a solver answered, of the runs of one workload, in order of time."""
    lower = lower_bound(runs)
    own = [run for run in runs if run.solver == solver and run.answered]
    found: list[Rung] = []
    for setting in dict.fromkeys(run.setting for run in own):
        group = tuple(run for run in own if run.setting == setting)
        worst = max(accuracy(run.value, lower) for run in group)
        found.append(Rung(setting, group, worst, _median(group, "solve"), _median(group, "build")))
    return sorted(found, key=lambda rung: rung.solve)


def headline(found: Sequence[Rung], target: float = TARGET) -> Rung:
    """The fastest setting that reaches the target; where none does, the most accurate."""
    enough = [rung for rung in found if rung.attained <= target]
    return enough[0] if enough else min(found, key=lambda rung: rung.accuracy)


def rows(runs: Sequence[Run]) -> Rows:
    """One row per workload and solver: medians at its headline setting, and the ratio to graphreg's `solve()`."""
    out: Rows = []
    for workload in dict.fromkeys(run.workload for run in runs):
        here = [run for run in runs if run.workload == workload]
        own = rungs(here, OURS)
        ours = headline(own) if own else None
        for solver in dict.fromkeys(run.solver for run in here):
            if solver != "reference":
                out.append(_row(workload, solver, here, ours))
    return out


def _row(workload: str, solver: str, here: Sequence[Run], ours: Rung | None) -> tuple[str, ...]:
    found = rungs(here, solver)
    failed = [run for run in here if run.solver == solver and not run.answered]
    if not found:
        return (workload, solver, *("",) * (len(HEADER) - 4), str(len(failed)), failed[-1].status)
    best, last = headline(found), headline(found).runs[-1]
    ratio = best.solve / ours.solve if ours is not None and ours.solve > 0 else np.nan
    beyond = "" if best.reached else "> "  # it has not got there yet
    status = last.status if best.reached else f"{last.status}; {_short(solver, here)} {TARGET:g}".lstrip("; ")
    if failed:
        status += f"; at {failed[-1].setting:g}: {failed[-1].status}"
    return (
        workload,
        solver,
        _number(best.solve),
        _number(max(run.first for run in best.runs)),
        _number(best.build),
        "" if solver == OURS else beyond + _number(ratio),
        f">= {ASKED[workload]}" if solver == CLARABEL and workload in ASKED else "",
        _number(best.accuracy),
        _number(max(run.gap for run in best.runs)),
        f"{best.setting:g}",
        str(last.rounds or ""),
        f"{_median(best.runs, 'checks'):.0%}" if np.isfinite(last.checks) else "",
        f"{_median(best.runs, 'megabytes'):.0f}",
        str(len(best.runs)),
        status,
    )


def _short(solver: str, here: Sequence[Run]) -> str:
    """The reason for which a solver did not get to the target: it was too slow to be asked for more, or it does not
    get there."""
    tried = {run.setting for run in here if run.solver == solver}
    return "too slow to be asked for" if tried < set(SOLVERS[solver].ladder) else "does not reach"


def table(body: Rows, header: Sequence[str] = HEADER) -> str:
    widths = [max(len(row[k]) for row in (header, *body)) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *body)]
    return "\n".join([lines[0].rstrip(), "  ".join("-" * width for width in widths), *(x.rstrip() for x in lines[1:])])


def write_csv(body: Rows, path: Path) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *body])


# ---- runs on disk: a later call measures some of them anew and keeps the rest ---------------------------------------
def save(runs: Sequence[Run], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(asdict(run)) for run in runs) + "\n]\n")


def load(path: Path) -> list[Run]:
    if not path.exists():
        return []
    values = json.loads(path.read_text())
    return [Run(**{**each, "trace": tuple(tuple(point) for point in each["trace"])}) for each in values]


def merged(before: Sequence[Run], new: Sequence[Run], order: Callable[[str], int]) -> list[Run]:
    """The new runs, and those before of solvers and workloads that were not measured anew."""
    again = {(run.workload, run.solver) for run in new}
    kept = [run for run in before if (run.workload, run.solver) not in again]
    return sorted([*kept, *new], key=lambda run: (order(run.workload), _place(run.solver)))


def _place(solver: str) -> int:
    names = list(SOLVERS)
    return names.index(solver) if solver in names else -1


def _median(runs: Sequence[Run], what: str) -> float:
    return float(np.median([getattr(run, what) for run in runs]))


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ""
