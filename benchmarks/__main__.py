"""``python -m benchmarks``: graphreg against CVXPY, solvers given matrices, and packages for single problems.

Every run has a process of its own, one thread, a memory cap and a time limit; solvers take turns. CPU seconds, medians
of repeats, first calls apart. Accuracy is (P(w) - best certified lower bound) / |P(w)|, evaluated here for each answer.

``python -m benchmarks table`` measures what is asked of the library and prints it beside what was reached;
``python -m benchmarks sweep`` measures time, rounds and memory against the size of problems.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .compiling import compile_seconds, import_seconds
from .datasets import STANDARD, WORKLOADS, find, tiny
from .docs import write_docs
from .figure import draw
from .goals import GOALS, gaps, goals_table
from .objective import Objective
from .operations import HEADER as OPERATION
from .operations import OPERATIONS, kept, operations_rows
from .profiling import profile, shares
from .ratios import ratio_table, ratios, regressions, store, stored
from .report import load, merged, rows, save, table, write_csv
from .solvers import OURS, SOLVERS, AbstractSolver
from .sweep import SIZES, draw_sweep, exponents, sweep
from .taking_turns import take_turns
from .worker import Limits, Run

QUICK = ("W2", "W4", "W6", "W7")


def main() -> int:
    args = _arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.shares:
        print(shares(args.only or STANDARD))
    elif args.profile:
        print(profile(args.profile))
    else:
        return {"speed": _speed, "table": _table, "sweep": _sweep}[args.what](args)
    return 0


def _speed(args: argparse.Namespace) -> int:
    runs = _measured(args, args.only or (QUICK if args.quick else STANDARD), asked=False)
    if not runs:
        print(f"no runs are stored in {args.out}; leave --report out")
        return 1
    body = rows(runs)
    print(f"\n{table(body)}\n")
    write_csv(body, args.out / "speed.csv")
    draw(runs, args.out / "speed.png")
    extra = "" if args.only or args.report or args.quick else _compiling()
    print(f"{extra}written: {args.out / 'speed.csv'} and {args.out / 'speed.png'}")
    _show_ratios(runs, args.store)
    return 0


def _table(args: argparse.Namespace) -> int:
    """Goals of solves, then those of other operations; each is measured alone with ``--only``."""
    chosen = args.only or (*dict.fromkeys(goal.workload for goal in GOALS), *OPERATIONS)
    runs = _measured(args, [name for name in chosen if name in WORKLOADS], asked=True)
    if runs:
        print(f"\n{goals_table(runs)}\n")
    others = [name for name in chosen if name in OPERATIONS and not args.report]
    operations = kept(args.out / "operations.json", operations_rows(others, args.repeats, args.limits))
    print(table(operations, OPERATION))
    if args.docs:
        sweeps = load(args.out / "sweep.json")
        print(f"written: {write_docs(runs, rows(runs), Path('docs'), operations, sweeps)}")
    return 0


def _sweep(args: argparse.Namespace) -> int:
    sizes = [size for size in SIZES if size <= args.largest]
    if args.report:
        runs = load(args.out / "sweep.json")
    else:
        runs = sweep(args.solvers or (OURS,), sizes, args.repeats, args.limits, args.out)
    print(f"\n{exponents(runs)}\n")
    draw_sweep(runs, args.out / "sweep.png")
    print(f"written: {args.out / 'sweep.png'}")
    return 0


def _measured(args: argparse.Namespace, names: Sequence[str], *, asked: bool) -> list[Run]:
    """The runs that are stored, those of these workloads anew."""
    path = args.out / ("table.json" if asked else "runs.json")
    runs = load(path)
    for name in () if args.report else names:
        objective = find(name)
        print(f"{name}: {objective.describe()}", flush=True)
        repeats = 1 if args.quick else args.repeats
        chosen = _solvers(objective, args.solvers)
        new = take_turns(objective, chosen, repeats, args.limits, gaps=gaps(name) if asked else ())
        runs = merged(runs, new, list(WORKLOADS).index)
        save(runs, path)
    return runs


def _solvers(objective: Objective, names: Sequence[str] | None) -> list[AbstractSolver]:
    """The solvers that take part, which a tiny workload of the same kind tells as well."""
    small = tiny(objective.name)
    return [solver for solver in SOLVERS.values() if (names is None or solver.name in names) and solver.applies(small)]


def _show_ratios(runs: Sequence[Run], anew: bool) -> None:
    now, (before, words) = ratios(runs), stored()
    print(f"\nsolve() over the best rival within 1e-6; {words}\n\n{ratio_table(now, before)}\n")
    for name in regressions(now, before):
        print(f"regression: {name} is {now[name].ratio / before[name].ratio - 1:.0%} slower, beside {now[name].rival}")
    if anew:
        store(now)


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
    parser.add_argument("what", nargs="?", default="speed", choices=("speed", "table", "sweep"))
    parser.add_argument("--only", type=_names, metavar="W2,W6", help=f"these of the workloads {names}")
    parser.add_argument("--solvers", type=_names, metavar="A,B", help=f"these of the solvers {', '.join(SOLVERS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}, once")
    parser.add_argument("--report", action="store_true", help="measure nothing, report what is stored")
    parser.add_argument("--store", action="store_true", help="store the ratios, to which later ones are compared")
    parser.add_argument("--docs", action="store_true", help="of table: also write docs/benchmarks.md and its pictures")
    parser.add_argument("--shares", action="store_true", help="which share of a run goes into certificates")
    parser.add_argument("--profile", metavar="W4", choices=tuple(WORKLOADS), help="where the time of a run goes")
    parser.add_argument("--largest", type=float, default=SIZES[-1], help="edge components of a sweep, at most")
    parser.add_argument("--memory", type=float, help="GiB of memory per process; 6, or 16 of table and sweep")
    parser.add_argument("--seconds", type=float, help="CPU time per process; 300, or 600 of table and sweep")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    args = parser.parse_args()
    workloads = (*WORKLOADS, *(OPERATIONS if args.what == "table" else ()))
    for what, given, known in (("workload", args.only, workloads), ("solver", args.solvers, SOLVERS)):
        unknown = [name for name in given or () if name not in known]
        if unknown:
            parser.error(f"no {what} is called {unknown[0]!r}; there are {', '.join(known)}")
    if args.repeats < 1:
        parser.error("--repeats must be at least 1")
    usual = Limits() if args.what == "speed" else Limits(16.0, 600.0)
    args.limits = Limits(args.memory or usual.memory, args.seconds or usual.seconds)
    return args


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


if __name__ == "__main__":
    raise SystemExit(main())
