"""``python -m benchmarks.conic``: certify problems of CVXPY by several solvers, and count how right these are
themselves; optima that are known exactly, and garbage in place of answers. Exit code 1 where anything false is proved.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from . import cases, oracles
from .cases import NONE
from .study import NOT_TAKEN, SOLVERS, WHOLE, as_dict, disjoint, examine, proved


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conic", description=__doc__)
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 1), metavar=("FIRST", "BEYOND"))
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--only", default="", help="problems whose names have this in them")
    parser.add_argument("--optima", type=int, default=200, help="problems with optima that are known exactly")
    parser.add_argument("--garbage", type=int, default=300, help="answers that are none")
    parser.add_argument("--out", type=Path, default=Path("out/conic.jsonl"), help="file with all rows, as they come")
    parser.add_argument("--read", nargs="+", type=Path, help="tables of the rows in such files, nothing is solved")
    args = parser.parse_args()
    files = args.read or [_solved(args)]
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    by_seed = [[row for row in rows if row["seed"] == seed] for seed in range(*args.seeds)]
    false = [f"{row['name']} by {row['solver']}: {row['wrong']}" for row in rows if row["wrong"]]
    false += [f"{name}: bounds by two solvers contradict each other" for some in by_seed for name in disjoint(some)]
    if rows:
        print("\n\n".join([certified(rows, args.solvers), refusals(rows), right(by_seed, args.solvers)]))
    if not args.read:
        false += oracles.report(args.optima, args.garbage)
    print(f"\nFALSE: {len(false)}", *false, sep="\n  ")
    return int(bool(false))


def _solved(args: argparse.Namespace) -> Path:
    """The file with a row of each problem and solver."""
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", encoding="utf-8") as file:
        for seed in range(*args.seeds):
            for case in tqdm(cases(seed).values(), unit=" problems", disable=None):
                for solver in args.solvers if args.only in case.name else ():
                    file.write(json.dumps({"seed": seed, **as_dict(examine(case, solver))}) + "\n")
                    file.flush()
    return args.out


def certified(rows: list[dict[str, Any]], solvers: list[str]) -> str:
    """What is proved, by solver."""
    head = "| answer from | problems | both bounds | no optimum, proved | settled rightly | gap: median | 90 % | worst"
    lines = [f"{head} | of the formula | seconds over solve: median | 90 % |", "|---" * 11 + "|"]
    for solver in solvers:
        own = [row for row in rows if row["solver"] == solver and row["status"] != NOT_TAKEN]
        gaps = [row["gap"] for row in own if row["status"] == "certified"] or [np.nan]
        none = sum(row["status"] in NONE for row in own)
        ratios = [row["certifying"] / row["solving"] for row in own if row["solving"] > 0] or [np.nan]
        low, most, worst = np.quantile(gaps, [0.5, 0.9, 1.0])
        settled = sum(row["settled"] for row in own)
        share = f"{settled} ({100 * settled / max(len(own), 1):.1f} %)"
        both = sum(row["status"] == "certified" for row in own)
        formula = sum(row["scope"].partition(";")[0] == WHOLE and row["status"] not in ("", "refused") for row in own)
        cost = " | ".join(f"{x:.1f}" for x in np.quantile(ratios, [0.5, 0.9]))
        widths = f"{low:.1e} | {most:.1e} | {worst:.1e}"
        lines.append(f"| {solver} | {len(own)} | {both} | {none} | {share} | {widths} | {formula} | {cost} |")
    return "\n".join(lines)


def refusals(rows: list[dict[str, Any]]) -> str:
    """All that is not settled with both bounds or as it should be, by problem and reason."""
    by: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        if row["status"] in ("one side only", "refused"):
            why = row["hard"] or f"right: {row['right']}"
            by.setdefault((row["name"], why, row["status"], row["message"]), []).append(row["solver"])
    lines = [
        f"- {name} ({why}): {status}, {message}; by {', '.join(dict.fromkeys(by[name, why, status, message]))}"
        for name, why, status, message in by
    ]
    return "\n".join(["Not proved, and why:", *lines])


def right(by_seed: list[list[dict[str, Any]]], solvers: list[str]) -> str:
    """How often what a solver says of the optimum is better than the optimum can be, or further off than is asked."""
    head = "| solver | answers called optimal | better than possible | by, median | by, worst | off by more than 1e-6"
    lines = [f"{head} | worst |", "|---" * 7 + "|"]
    for solver in solvers:
        beyond, off, answers = list[float](), list[float](), 0
        for rows in by_seed:
            best = proved(rows)
            for row in rows:
                if row["solver"] == solver and row["own_status"] == "optimal" and row["name"] in best:
                    answers += 1
                    low, high = best[row["name"]]
                    size = max(1.0, abs(low))
                    below, above = (low - row["own"]) / size, (row["own"] - high) / size
                    better, worse = (above, below) if row["maximised"] else (below, above)
                    beyond += [better] if better > 0 else []
                    off += [max(better, worse)]
        worst = f"{max(beyond):.1e}" if beyond else "-"
        median = f"{np.median(beyond):.1e}" if beyond else "-"
        far = sum(x > 1e-6 for x in off)
        lines.append(
            f"| {solver} | {answers} | {len(beyond)} | {median} | {worst} | {far} | {max(off, default=0.0):.1e} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
