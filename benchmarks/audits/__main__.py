"""``python -m benchmarks.audits``: what audits find of planted bugs, and say of algorithms that are right.

Every algorithm is audited on three problems of its kind. A planted bug is found where the audit is not ok, and named
where its name is the bug's; an algorithm that is right and not ok is a false alarm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import graphreg as gr

from .algorithms import RIGHT, Algorithm
from .bugs import BUGS, Bug
from .instances import instance
from .others import installed
from .slips import SLIPS
from .unusual import UNUSUAL

SEEDS = range(3)
WIDTHS = (28, 12, 28, 8)


@dataclass(frozen=True)
class Row:
    """One audit."""

    group: str
    name: str
    problem: str
    verdict: str
    passed: bool
    found: str
    seconds: float

    def __str__(self) -> str:
        cells = (self.name, self.problem, self.verdict, "ok" if self.passed else "MISSED")
        text = " ".join(f"{cell:{width}s}" for cell, width in zip(cells, WIDTHS, strict=True))
        return f"{text} {self.seconds:5.1f} s  {self.found}"


def of_bug(bug: Bug, seed: int) -> Row:
    """A planted bug, audited."""
    problem = instance(bug.kind, seed)
    report, seconds = _audited(problem, bug.run)
    named = not report.ok and bug.named(report.name, problem)
    found = report.name if named or not report.name else f"WRONG NAME: {report.name}"
    return Row("bugs", bug.name, f"{bug.kind} {seed}", report.verdict, not report.ok, _tagged(named, found), seconds)


def of_right(algorithm: Algorithm, kind: str, seed: int, group: str) -> Row:
    """An algorithm that is right, audited."""
    report, seconds = _audited(instance(kind, seed), algorithm)
    wrong = next((each.sentence for each in report.findings if each.outcome in ("fails", "name")), "")
    accused = report.verdict not in ("right", "right in the limit", "undecided") or bool(wrong)
    name = algorithm.__name__.replace("_", " ")
    return Row(group, name, f"{kind} {seed}", report.verdict, not accused, wrong, seconds)


def _tagged(named: bool, found: str) -> str:
    return ("named: " if named else "unnamed: ") + found


def _audited(problem: gr.Problem, algorithm: Algorithm) -> tuple[gr.Audit, float]:
    began = time.perf_counter()
    return gr.audit(problem, algorithm), time.perf_counter() - began


def all_rows(only: str, seeds: list[int]) -> Iterator[Row]:
    """Bugs first, then what is right, then what others wrote."""
    for bug in (*BUGS, *SLIPS):
        if only in bug.name:
            yield from (of_bug(bug, seed) for seed in seeds)
    for group, algorithms in (("right", RIGHT | UNUSUAL), ("others", installed())):
        for algorithm, kind in algorithms.items():
            if only in algorithm.__name__.replace("_", " "):
                yield from (of_right(algorithm, kind, seed, group) for seed in seeds)


def summary(rows: list[Row]) -> str:
    """The counts."""
    bugs = [row for row in rows if row.group == "bugs"]
    lines = []
    if bugs:
        named = [row for row in bugs if row.found.startswith("named")]
        every = {row.name for row in bugs} - {row.name for row in bugs if row not in named}
        lines.append(
            f"planted bugs: {sum(row.passed for row in bugs)} of {len(bugs)} found, {len(named)} named; "
            f"{len(every)} of {len({row.name for row in bugs})} named on every problem"
        )
    for group, words in (("right", "algorithms that are right"), ("others", "of other packages")):
        some = [row for row in rows if row.group == group]
        if some:
            alarms = sum(not row.passed for row in some)
            clear = sum(row.verdict != "undecided" for row in some)
            lines.append(f"{words}: {alarms} false alarms in {len(some)} audits, {clear} of them decided")
    times = sorted(row.seconds for row in rows)
    lines.append(f"seconds: median {times[len(times) // 2]:.1f}, most {times[-1]:.1f}, {sum(times):.0f} in all")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the algorithms whose names contain this")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS), help="which of the three problems")
    args = parser.parse_args()
    rows: list[Row] = []
    for row in all_rows(args.only, args.seeds):
        print(row, flush=True)
        rows.append(row)
    print("\n" + summary(rows) if rows else f"no algorithm has {args.only!r} in its name")


if __name__ == "__main__":
    main()
