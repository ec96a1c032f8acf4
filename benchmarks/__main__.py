"""``python -m benchmarks``: graphreg against CVXPY and the packages for single problems; accuracy against time.

Every run has a process of its own, one thread, a memory cap and a time limit; solvers take turns. CPU seconds, medians
of repeats. Accuracy is (P(w) - best certified lower bound) / |P(w)|, evaluated here for every answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .compiling import compile_seconds, import_seconds
from .datasets import WORKLOADS
from .docs import write_docs
from .figure import draw
from .objective import Objective
from .profiling import profile, shares
from .report import load, merged, rows, save, table, write_csv
from .solvers import REFERENCE, SOLVERS, AbstractSolver
from .worker import Limits, Run, measure

SLOW = 20.0  # CPU seconds beyond which a solver is not run again on a workload
QUICK = ("W2", "W4", "W6", "W7")


def main() -> int:
    args = _arguments()
    if args.shares:
        print(shares(args.only or tuple(WORKLOADS)))
        return 0
    if args.profile:
        print(profile(args.profile))
        return 0
    store = args.out / "runs.json"
    runs = load(store)
    for name in () if args.report else args.only or (QUICK if args.quick else tuple(WORKLOADS)):
        objective = WORKLOADS[name]()
        print(f"{name}: {objective.describe()}", flush=True)
        new = take_turns(objective, _solvers(objective, args.solvers), 1 if args.quick else args.repeats, args.limits)
        runs = merged(runs, new, list(WORKLOADS).index)
        save(runs, store)
    if not runs:
        print(f"no runs are stored in {store}; leave --report out")
        return 1
    body = rows(runs)
    print(f"\n{table(body)}\n")
    write_csv(body, args.out / "speed.csv")
    draw(runs, args.out / "speed.png")
    extra = "" if args.only or args.report or args.quick else _compiling()
    print(f"{extra}written: {args.out / 'speed.csv'} and {args.out / 'speed.png'}")
    if args.docs:
        print(f"written: {write_docs(runs, body, Path('docs'))}")
    return 0


def take_turns(
    objective: Objective, solvers: Sequence[AbstractSolver], repeats: int, limits: Limits, small: bool = False
) -> list[Run]:
    """All solvers in turn, so that what else the machine does falls on all of them alike."""
    runs = [measure(objective, REFERENCE.name, REFERENCE.ladder[0], limits, small)]
    given_up: set[str] = set()
    for _ in range(repeats):
        for solver in solvers:
            for setting in solver.ladder:
                if solver.name in given_up:
                    break
                run = measure(objective, solver.name, setting, limits, small)
                print(f"  {solver.name} at {setting:g}: {run.solve:.3g} s {run.status}", flush=True)
                runs.append(run)
                if not run.answered or run.solve > SLOW:
                    given_up.add(solver.name)
    return runs


def _solvers(objective: Objective, names: Sequence[str] | None) -> list[AbstractSolver]:
    chosen = [solver for solver in SOLVERS.values() if names is None or solver.name in names]
    return [solver for solver in chosen if solver.applies(objective)]


def _compiling() -> str:
    stacked, each = compile_seconds()
    scipy = import_seconds("scipy.sparse")
    return (
        f"compiling W4: {stacked:.3g} s stacked, {each:.3g} s per edge; ratio {each / stacked:.0f} (asked: >= 100)\n"
        f"import graphreg: {import_seconds():.2f} s, of which import scipy.sparse takes {scipy:.2f} s\n"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = ", ".join(WORKLOADS)
    parser.add_argument("--only", type=_names, metavar="W2,W6", help=f"these of the workloads {names}")
    parser.add_argument("--solvers", type=_names, metavar="A,B", help=f"these of the solvers {', '.join(SOLVERS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}, once")
    parser.add_argument("--report", action="store_true", help="measure nothing, report what is stored")
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md and docs/benchmarks.png")
    parser.add_argument("--shares", action="store_true", help="which share of a run goes into certificates")
    parser.add_argument("--profile", metavar="W4", choices=tuple(WORKLOADS), help="where the time of a run goes")
    parser.add_argument("--memory", type=float, default=Limits.memory, help="GiB of address space per process")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="CPU time per process")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    args = parser.parse_args()
    for what, given, known in (("workload", args.only, WORKLOADS), ("solver", args.solvers, SOLVERS)):
        unknown = [name for name in given or () if name not in known]
        if unknown:
            parser.error(f"no {what} is called {unknown[0]!r}; there are {', '.join(known)}")
    if args.repeats < 1:
        parser.error("--repeats must be at least 1")
    args.limits = Limits(args.memory, args.seconds)
    return args


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


if __name__ == "__main__":
    raise SystemExit(main())
