"""Rates, failures and thresholds of a set of rows, as text, JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphreg.datasets.random_problems import LOSSES_WITH_KINKS

from .examine import METHODS, Answer, Row

THRESHOLDS = {"auto": 0.99, "exact": 0.99, "primal-dual": 0.98, "admm": 0.98}
KINKED = 0.95  # of losses with kinks, of the methods that take rounds
CONDITION = 1e4  # up to here the rate of these methods must be met


def answers(rows: Iterable[Row], method: str) -> list[tuple[Row, Answer]]:
    """The answers of a method that count; a row whose examination broke off has none and counts as missed."""
    missing = Answer(method, "error", "the examination broke off")
    return [(row, next((a for a in row.answers if a.method == method), missing)) for row in rows]


def counted(rows: Sequence[Row], method: str) -> list[tuple[str, float, list[Row]]]:
    """The sets of rows on which a method is judged, each with its threshold: losses with kinks are judged apart where
    it takes rounds, as are data of a large condition number, of which nothing is asked."""
    if method in ("auto", "exact"):
        return [("", THRESHOLDS[method], list(rows))]
    fair = [row for row in rows if row.condition <= CONDITION]
    kinks = [row for row in fair if LOSSES_WITH_KINKS in row.traits]
    smooth = [row for row in fair if LOSSES_WITH_KINKS not in row.traits]
    bound = f" (condition at most {CONDITION:g})"
    return [(f"{bound}, smooth losses", THRESHOLDS[method], smooth), (f"{bound}, losses with kinks", KINKED, kinks)]


def rate(rows: Sequence[Row], method: str) -> tuple[int, int]:
    """The number of rows that were answered well, and the number of all."""
    return sum(answer.good for _, answer in answers(rows, method)), len(rows)


def violations(rows: Iterable[Row]) -> list[str]:
    """Every unsound answer, in a line each."""
    return [
        f"{_name(row)}, {answer.method}: {what}" for row in rows for answer in row.answers for what in answer.violations
    ]


def table(rows: Sequence[Row], name: str, key: Callable[[Row], str]) -> str:
    """Rates of every method by a property of the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    lines = [f"{name:34s}{'seeds':>7s}" + "".join(f"{method:>14s}" for method in METHODS) + "   median s"]
    for group, members in sorted(groups.items()):
        cells = "".join(f"{_percent(*rate(members, method)):>14s}" for method in METHODS)
        middle = sorted(row.seconds for row in members)[len(members) // 2]
        lines.append(f"{group:34s}{len(members):7d}{cells}   {middle:8.2f}")
    return "\n".join(lines)


def failures(rows: Iterable[Row]) -> str:
    """The rows that were not answered well, with everything that may explain it."""
    lines: list[str] = []
    for row in rows:
        if row.error:
            lines.append(f"seed {row.seed}: the examination broke off: {row.error.splitlines()[-1]}")
        for method in METHODS:
            for _, answer in answers([row], method):
                if not answer.good and not row.error:
                    lines.append(_failure(row, answer))
    return "\n".join(lines) or "none"


def summary(rows: Sequence[Row], strict: bool) -> tuple[str, bool]:
    """The totals against the thresholds, and whether all are met; where not ``strict`` soundness alone is judged."""
    wrong = violations(rows)
    broken = [row for row in rows if row.error]
    loose = [row for row in rows if row.reference_gap > 1e-8]
    ok = not wrong and not broken
    lines = [f"soundness violated: {len(wrong)} times", *(f"  {line}" for line in wrong)]
    lines += [f"examinations that broke off: {len(broken)}"] if broken else []
    lines.append(f"references with a gap above 1e-8 of their own: {len(loose)} of {len(rows)}")
    for method in THRESHOLDS:
        for what, threshold, judged in counted(rows, method):
            good, total = rate(judged, method)
            unnamed = [row.seed for row, answer in answers(judged, method) if not answer.named]
            met = good >= threshold * total and not unnamed
            ok = ok and (met or not strict)
            verdict = "" if not strict else f"; asked for {threshold:.0%}: {'met' if met else 'MISSED'}"
            share = f"{good} of {total} = {good / max(total, 1):.2%}{_rounds(judged, method)}"
            lines.append(f"{method}{what}: {share}{verdict}")
            lines += [f"  without a status that names the reason: seeds {unnamed}"] if unnamed else []
    return "\n".join(lines), ok


def _rounds(rows: Sequence[Row], method: str) -> str:
    """The middle number of rounds to a certificate; nothing where the method has no rounds."""
    taken = sorted(answer.rounds for _, answer in answers(rows, method) if answer.status == "certified")
    return f", median rounds {taken[len(taken) // 2]}" if taken and taken[-1] > 0 else ""


def report(rows: Sequence[Row], strict: bool) -> tuple[str, bool]:
    """The whole report, and whether every threshold is met."""
    totals, ok = summary(rows, strict)
    parts = [
        table(rows, "loss", lambda row: row.loss),
        table(rows, "loss x penalty", lambda row: f"{row.loss} x {row.penalty}"),
        table(rows, "structure", lambda row: row.structure),
        _traits(rows),
        "failures\n" + failures(rows),
        totals,
    ]
    return "\n\n".join(parts), ok


def write(rows: Sequence[Row], out: Path) -> None:
    """All rows as JSON, and as CSV with one line per seed and method."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    lines = [_flat(row, answer) for row in rows for method in METHODS for _, answer in answers([row], method)]
    with out.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def _flat(row: Row, answer: Answer) -> dict[str, Any]:
    flat = asdict(row) | {f"answer_{k}" if k == "seconds" else k: v for k, v in asdict(answer).items()}
    del flat["answers"]
    return {k: "; ".join(v) if isinstance(v, (list, tuple)) else v for k, v in flat.items()}


def _traits(rows: Sequence[Row]) -> str:
    names = sorted({trait for row in rows for trait in row.traits})
    lines = [f"{'trait':34s}{'seeds':>7s}" + "".join(f"{method:>14s}" for method in METHODS)]
    for name in names:
        members = [row for row in rows if name in row.traits]
        cells = "".join(f"{_percent(*rate(members, method)):>14s}" for method in METHODS)
        lines.append(f"{name:34s}{len(members):7d}{cells}")
    return "\n".join(lines)


def _failure(row: Row, answer: Answer) -> str:
    reached = f"gap {answer.relative_gap:.1e}, {answer.rounds} rounds, {answer.seconds:.1f} s"
    size = f"n {row.nodes}, m {row.edges}, d {row.d}, condition {row.condition:.1e}"
    traits = ", ".join(sorted(set(row.traits)))
    return f"{_name(row)} ({size}; {traits})\n    {answer.method}: {answer.status}, {reached}: {_last_line(answer)}"


def _last_line(answer: Answer) -> str:
    return answer.message.strip().splitlines()[-1] if answer.message.strip() else "no message"


def _name(row: Row) -> str:
    return f"seed {row.seed}{' hard' if row.hard else ''}: {row.loss} x {row.penalty} x {row.structure}"


def _percent(good: int, total: int) -> str:
    return f"{good}/{total}" + ("" if good == total else " !")
