"""``python -m benchmarks.soundness``: search for a certificate that lies; exit code 1 where one is found."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import compiled, edges, judged, perturbed, pool, row_bounds, tally, uneven, written_rows
from .examine import Row, examine
from .report import report, write

WHOLE = ("standard", "hard")
VOLUMES = {
    "perturbed": perturbed,
    "edges": edges,
    "rows": row_bounds,
    "models-of-rows": written_rows,
    "compiled": compiled,
}  # that are not answers of methods
FAMILIES = (*judged.FAMILIES, "uneven", *VOLUMES, "wild", "standard", "hard")
LIMIT = 120.0  # seconds for a seed whose answers are judged exactly


def main() -> int:
    """Run the sets that were asked for, print and write their reports."""
    args = _arguments()
    if args.family:
        good = [_exactly(name, args) for name in args.family]
        return 0 if all(good) else 1
    ok = args.set != "both" or _exactly("compiled", args)
    for name in WHOLE if args.set == "both" else (args.set,):
        ok = (_exactly(name, args) if args.exact or name == "wild" else _whole(name, args)) and ok
    return 0 if ok else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soundness", description=__doc__)
    parser.add_argument("--seeds", nargs="+", default=["0:1000"], metavar="N", help="FIRST:BEYOND, or FIRST BEYOND")
    parser.add_argument("--set", choices=(*WHOLE, "both", "wild"), default="both")
    parser.add_argument("--wild", dest="set", action="store_const", const="wild", help="the same as --set wild")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, help="judged exactly, and reported shortly")
    parser.add_argument("--exact", action="store_true", help="judge by exact arithmetic, without a conic reference")
    parser.add_argument(
        "--methods",
        nargs="+",
        help=f"some of {' '.join(judged.MAKE)}, or {judged.DRAWN}, one for each seed; for what is judged exactly",
    )
    parser.add_argument("--seconds", type=float, default=judged.SECONDS, help="per method; for what is judged exactly")
    parser.add_argument("--fresh", action="store_true", help="begin anew where a run that is judged exactly broke off")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", type=Path, default=Path("out/soundness"), help="stem of the files with all rows")
    args = parser.parse_args()
    bounds = ":".join(args.seeds).split(":")
    if len(bounds) != 2 or not all(bound.isdigit() for bound in bounds):
        parser.error(f"--seeds takes FIRST:BEYOND, got {' '.join(args.seeds)}")
    args.seeds = range(*map(int, bounds))
    args.methods = tuple(",".join(args.methods).split(",")) if args.methods else None
    if args.methods != (judged.DRAWN,) and (unknown := set(args.methods or ()) - set(judged.MAKE)):
        parser.error(f"--methods takes some of {' '.join(judged.MAKE)}, got {' '.join(sorted(unknown))}")
    return args


def _exactly(name: str, args: argparse.Namespace) -> bool:
    """A set whose answers are judged by exact arithmetic; goes on where it broke off."""
    usual = judged.METHODS if name == "wild" else ("auto",) if name in judged.FAMILIES else ("exact",)
    methods = args.methods or usual
    one = _examine(name, methods, args.seconds)
    kind = name if name in VOLUMES else f"{name}-exact-{'-'.join(methods)}"
    path = args.out.with_name(f"{args.out.name}-{kind}.jsonl")
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    bar = tqdm(total=len(args.seeds), unit=" seeds", disable=None)
    for row in pool.run(one, args.seeds, path, args.jobs, LIMIT, args.fresh):
        rows.append(row)
        bar.set_postfix_str(f"{sum(map(tally.false, rows))} wrong", refresh=False)
        bar.update()
    bar.close()
    _title(f"{name} set by exact arithmetic", args.seeds, began)
    rows.sort(key=lambda row: row["seed"])
    if name in VOLUMES:
        text = tally.volume(rows, VOLUMES[name].counted(rows))
    else:
        text = tally.short(rows) if args.family else tally.report(rows)
    print(f"{text}\n\nall rows: {path}\n")
    return tally.sound(rows)


def _examine(name: str, methods: tuple[str, ...], seconds: float) -> Any:
    """From a seed of a set or a family to its row."""
    if name == "uneven" or name in VOLUMES:
        return VOLUMES.get(name, uneven).examine
    if name in judged.FAMILIES:
        return partial(judged.of_family, name=name, methods=methods, seconds=seconds)
    if name == "wild":
        return partial(judged.wild, methods=methods, seconds=seconds)
    return partial(judged.standard, methods=methods, seconds=seconds, hard=name == "hard")


def _whole(name: str, args: argparse.Namespace) -> bool:
    """A set whose answers are compared with a conic reference."""
    began = time.perf_counter()
    rows = _run(args.seeds, name == "hard", args.jobs)
    text, sound = report(rows, strict=name == "standard")
    _title(f"{name} set", args.seeds, began)
    print(f"{text}\n")
    out = args.out.with_name(f"{args.out.name}-{name}")
    write(rows, out)
    print(f"all rows: {out.with_suffix('.json')} and {out.with_suffix('.csv')}\n")
    return sound


def _title(what: str, seeds: range, began: float) -> None:
    title = f"{what}, seeds {seeds.start} to {seeds.stop - 1}, {time.perf_counter() - began:.0f} s"
    print(f"{title}\n{'=' * len(title)}\n")


def _run(seeds: range, hard: bool, jobs: int) -> list[Row]:
    """One row per seed, in order."""
    bar = tqdm(total=len(seeds), unit=" seeds", disable=None)  # shown where stderr is a terminal
    rows: list[Row] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        for row in executor.map(examine, seeds, [hard] * len(seeds)):
            rows.append(row)
            bad = sum(not a.good for r in rows for a in r.answers)
            wrong = sum(bool(a.violations) for r in rows for a in r.answers)
            bar.set_postfix_str(f"{wrong} unsound, {bad} short of the gap", refresh=False)
            bar.update()
    bar.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
