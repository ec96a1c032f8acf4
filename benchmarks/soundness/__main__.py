"""``python -m benchmarks.soundness``: search for a certificate that lies; exit code 1 where one is found."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from .examine import Row, examine
from .report import report, write


def main() -> int:
    """Run the sets that were asked for, print and write their reports."""
    args = _arguments()
    ok = True
    for name in ("standard", "hard") if args.set == "both" else (args.set,):
        seeds = range(*args.seeds)
        began = time.perf_counter()
        rows = _run(seeds, name == "hard", args.jobs)
        text, sound = report(rows, strict=name == "standard")
        ok = ok and sound
        title = f"{name} set, seeds {seeds.start} to {seeds.stop - 1}, {time.perf_counter() - began:.0f} s"
        print(f"{title}\n{'=' * len(title)}\n\n{text}\n")
        out = args.out.with_name(f"{args.out.name}-{name}")
        write(rows, out)
        print(f"all rows: {out.with_suffix('.json')} and {out.with_suffix('.csv')}\n")
    return 0 if ok else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soundness", description=__doc__)
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 1000), metavar=("FIRST", "BEYOND"))
    parser.add_argument("--set", choices=("standard", "hard", "both"), default="both")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", type=Path, default=Path("out/soundness"), help="stem of the files with all rows")
    return parser.parse_args()


def _run(seeds: range, hard: bool, jobs: int) -> list[Row]:
    """One row per seed, in order."""
    bar = tqdm(total=len(seeds), unit=" seeds", disable=None)  # shown where stderr is a terminal
    rows: list[Row] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(examine, seeds, [hard] * len(seeds)):
            rows.append(row)
            bad = sum(not a.good for r in rows for a in r.answers)
            wrong = sum(bool(a.violations) for r in rows for a in r.answers)
            bar.set_postfix_str(f"{wrong} unsound, {bad} short of the gap", refresh=False)
            bar.update()
    bar.close()
    return rows


if __name__ == "__main__":
    sys.exit(main())
