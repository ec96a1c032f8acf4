"""``python -m benchmarks table``: what is asked of the library, beside what it does and what its best rival does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .report import Rung, headline, rungs, table
from .solvers import OURS, PREFIX, SOLVERS
from .worker import Run

HEADER = (
    *("workload", "gap", "solve() s", "first s", "GB", "it took", "best own s", "which"),
    *("best rival s", "which", "its accuracy", "solve()/rival", "asked", "met"),
)
WITHIN = 1.3  # of the best of all methods, the default is to be


@dataclass(frozen=True)
class Goal:
    """A workload and a relative gap; what is asked is a time in seconds, memory in GB, a ratio to one rival's time (the
    default method's over the rival's), or a ratio to the best of all methods."""

    workload: str
    gap: float = 1e-6
    seconds: float | None = None
    gigabytes: float | None = None
    rival: str = ""
    ratio: float | None = None
    best: float | None = None

    def asked(self) -> str:
        words = [
            f"{self.seconds:g} s" if self.seconds is not None else "",
            f"{self.gigabytes:g} GB" if self.gigabytes is not None else "",
            f"{self.ratio:.2g} x {self.rival}" if self.ratio is not None else "",
            f"{self.best:g} x the best method" if self.best is not None else "",
        ]
        return ", ".join(word for word in words if word)


CUTS = "pycut-pursuit"
GOALS = (
    Goal("W1-l2", seconds=0.22),
    Goal("W1-l1", seconds=0.35),
    Goal("W2", rival="CVXPY + Clarabel", ratio=1 / 50),
    *(Goal("W3-300", gap, rival=CUTS, ratio=1 / 2) for gap in (1e-6, 1e-8)),
    *(Goal("W3-1000", gap, rival=CUTS, ratio=1 / 1.5) for gap in (1e-6, 1e-8)),
    *(
        Goal(f"{kind}-{s}", rival=CUTS, ratio=1 / 1.5)
        for kind in ("geometric", "counties")
        for s in ("0.03", "0.3", "3")
    ),
    Goal("chain-1e5", rival="prox_tv", ratio=3.0),
    Goal("chain-1e6", rival="prox_tv", ratio=3.0),
    Goal("tree-1e6", seconds=1.0),
    Goal("W4", 1e-6, seconds=0.08),
    Goal("W4", 1e-8, seconds=0.2),
    Goal("W4", 1e-10, seconds=0.5),
    Goal("W5", seconds=0.5),
    Goal("W6", best=WITHIN),
    Goal("big-4e5", 1e-4, seconds=18.0, gigabytes=3.5),
    Goal("big-1e6", 1e-4, seconds=45.0, gigabytes=8.0),
    Goal("squared-1000", best=WITHIN),
    Goal("logistic-1000", best=WITHIN),
)


def gaps(workload: str) -> tuple[float, ...]:
    """The gaps at which something is asked of a workload; 1e-6 where nothing is."""
    return tuple(goal.gap for goal in GOALS if goal.workload == workload) or (1e-6,)


def goals_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """One row per goal whose workload is among the runs."""
    here = {run.workload for run in runs}
    return [_row(goal, runs) for goal in GOALS if goal.workload in here]


def goals_table(runs: Sequence[Run]) -> str:
    """The same as a table."""
    return table(goals_rows(runs), HEADER)


def fastest(runs: Sequence[Run], names: Sequence[str], target: float) -> Rung | None:
    """Of some solvers' settings that reach the target, the fastest."""
    found = [rung for name in names for rung in rungs(runs, name) if rung.attained <= target]
    return min(found, key=lambda rung: rung.solve, default=None)


def _row(goal: Goal, runs: Sequence[Run]) -> tuple[str, ...]:
    runs = [run for run in runs if run.workload == goal.workload]
    names = [name for name in SOLVERS if name != OURS]
    ours = fastest(runs, [OURS], goal.gap)
    own = fastest(runs, [name for name in names if name.startswith(PREFIX)], goal.gap)
    best = fastest(runs, [name for name in names if not name.startswith(PREFIX)], goal.gap)
    rival = _rival(goal, runs)
    ratio = "" if ours is None or best is None else _number(ours.solve / best.solve)
    return (
        goal.workload,
        f"{goal.gap:g}",
        *(_short(runs) if ours is None else (_number(ours.solve), _number(max(run.first for run in ours.runs)))),
        "" if ours is None else _number(_gigabytes(ours)),
        "" if ours is None else ours.runs[-1].status.partition("; ")[2],
        *(("", "") if own is None else (_number(own.solve), own.runs[0].solver.removeprefix(PREFIX))),
        *(("", "", "") if best is None else (_number(best.solve), best.runs[0].solver, f"{best.accuracy:.0e}")),
        ratio,
        goal.asked(),
        _met(goal, ours, own, rival),
    )


def _short(runs: Sequence[Run]) -> tuple[str, str]:
    """The sentence where the default method has not reached the gap."""
    found = rungs(runs, OURS)
    failed = [run.status for run in runs if run.solver == OURS and not run.answered]
    if found:
        return f"{headline(found, 0.0).attained:.0e} after {_number(found[-1].solve)}", ""
    return (failed[-1] if failed else "not run"), ""


def _rival(goal: Goal, runs: Sequence[Run]) -> Rung | None:
    """The rival by which a goal is judged: its fastest answer within the gap."""
    return fastest(runs, [goal.rival], goal.gap) if goal.rival else None


def _met(goal: Goal, ours: Rung | None, own: Rung | None, rival: Rung | None) -> str:
    """yes or no; with how much of what was asked is needed, where that can be told."""
    if ours is None:
        return "no"
    shares = [
        ours.solve / goal.seconds if goal.seconds is not None else None,
        _gigabytes(ours) / goal.gigabytes if goal.gigabytes is not None else None,
        ours.solve / (goal.ratio * rival.solve) if goal.ratio is not None and rival is not None else None,
        ours.solve / (goal.best * own.solve) if goal.best is not None and own is not None else None,
    ]
    known = [share for share in shares if share is not None]
    if not known:
        return f"{goal.rival} gave no answer" if goal.rival else "nothing to compare with"
    worst = max(known)
    return f"{'yes' if worst <= 1.0 else 'no'} ({worst:.2g} of it)"


def _gigabytes(rung: Rung) -> float:
    return max(run.megabytes for run in rung.runs) / 1024


def _number(value: float) -> str:
    return f"{value:.3g}"
