"""``python -m benchmarks``: graphreg against CVXPY with Clarabel and SCS, one process per run, one thread each.

CPU seconds, medians of runs taken back to back. graphreg's time is that of ``problem.solve`` to a certified relative
gap of 1e-6; the others' is that of compiling and solving.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .compiling import compile_seconds, import_seconds
from .report import rows, table, write
from .solvers import CLARABEL, SOLVERS
from .worker import REFERENCE, Run, measure
from .workloads import WORKLOADS

SLOW = 20.0  # CPU seconds beyond which a solver is not run again
TOO_LARGE = {("W5", CLARABEL), ("W5", "CVXPY + SCS")}  # more memory, or more than ten minutes
QUICK = ("W2", "W4", "W6")


def main() -> int:
    args = _arguments()
    chosen = args.only or (QUICK if args.quick else tuple(WORKLOADS))
    solvers = [s for s in SOLVERS if not (args.quick and s == "CVXPY + SCS")]
    runs: list[Run] = []
    for name in chosen:
        print(f"{name}: {WORKLOADS[name]().describe()}", flush=True)
        runs += _measure(name, solvers, args)
    workloads = {name: WORKLOADS[name]() for name in chosen}
    objective = {id(run): workloads[run.workload].objective(run.w) for run in runs if run.w is not None}
    body = rows(runs, objective)
    print(f"\n{table(body)}\n")
    write(body, args.out)
    if not args.only:
        _compiling()
    print(f"written: {args.out / 'speed.csv'} and {args.out / 'speed.png'}")
    return 0


def _measure(name: str, solvers: list[str], args: argparse.Namespace) -> list[Run]:
    """All solvers in turn, so that what else the machine does falls on all of them alike."""
    runs = [] if args.quick else [measure(name, REFERENCE, args.memory, args.seconds)]
    slow = {solver for solver in solvers if (name, solver) in TOO_LARGE}
    for _ in range(args.repeats):
        for solver in solvers:
            if solver in slow:
                continue
            run = measure(name, solver, args.memory, args.seconds)
            print(f"  {solver}: {run.solve:.3g} s, {run.status}", flush=True)
            runs.append(run)
            if run.w is None or run.solve > SLOW:
                slow.add(solver)
    return runs


def _compiling() -> None:
    stacked, each = compile_seconds()
    print(f"compiling W4: {stacked:.3g} s stacked, {each:.3g} s per edge; ratio {each / stacked:.0f} (asked: >= 100)")
    scipy = import_seconds("scipy.sparse")
    print(f"import graphreg: {import_seconds():.2f} s, of which import scipy.sparse takes {scipy:.2f} s\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=lambda text: tuple(text.split(",")), metavar="W2,W6", help="these workloads")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} without SCS")
    parser.add_argument("--memory", type=float, default=6.0, help="GiB of address space per process")
    parser.add_argument("--seconds", type=float, default=600.0, help="wall time per process")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    args = parser.parse_args()
    unknown = [name for name in args.only or () if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload is called {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    return args


if __name__ == "__main__":
    raise SystemExit(main())
