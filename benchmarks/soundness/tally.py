"""The tally of the answers to many problems: how many are certified, refused or wrong, by kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from .judged import REFUSALS

Row = dict[str, Any]
TAKEN = "taken"  # a model that was to be taken
REFUSED_AT = 1e-6  # a gap that is to be met

COLUMNS = ("certified", *REFUSALS, "failed", "exception", "misjudged", "wrong")


def outcome(answer: dict[str, Any]) -> str:
    """In a word: wrong, misjudged, or the status; whatever else a status may be is counted as failed."""
    if answer.get("wrong"):
        return "wrong"
    if answer.get("misjudged"):
        return "misjudged"
    return answer["status"] if answer["status"] in (*COLUMNS, TAKEN) else "failed"


def sound(rows: Iterable[Row]) -> bool:
    """True where exact arithmetic contradicts no bound and no status, nothing was raised, and no examination broke
    off."""
    bad = ("wrong", "misjudged", "exception")
    return not any(
        row["error"]
        or row.get("false")
        or row.get("raised")
        or any(outcome(answer) in bad for answer in row.get("answers", ()))
        for row in rows
    )


def false(row: Row) -> int:
    """How much of what a row says is contradicted."""
    return sum(bool(answer.get("wrong")) for answer in row.get("answers", ())) + len(row.get("false", ()))


def report(rows: Sequence[Row]) -> str:
    """Tables by method, trait, loss, penalty and structure; then every wrong answer in a line."""
    keys: dict[str, Callable[[Row], Iterable[str]]] = {
        "trait": lambda row: row.get("traits", []),
        "loss": lambda row: [row.get("loss", "?")],
        "penalty": lambda row: [row.get("penalty", "?")],
        "structure": lambda row: [row.get("structure", "?")],
        "rounds": lambda row: [str(row.get("rounds") or "as many as it takes")],
    }
    parts = [_by_method(rows), *(_table(rows, name, key) for name, key in keys.items()), _attained(rows)]
    return "\n\n".join([*parts, _sharpness(rows), *_lists(rows)])


def short(rows: Sequence[Row]) -> str:
    """Counts of answers by method, and the seeds of all that failed: what is false, what was raised, what broke off.

    ``refusals`` are answers without a certificate though a gap of 1e-6 or more was asked for.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seeds: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for answer in row["answers"]:
            kind = outcome(answer)
            what = {"wrong": "false", "misjudged": "misjudged", "exception": "exceptions"}.get(kind)
            if what is None and row["gap"] >= REFUSED_AT and kind not in ("certified", "unattained", TAKEN):
                what = "refusals"
            counts[answer["method"]].update(["answers", kind] if what is None else ["answers", what])
            if what is not None:
                seeds[f"{answer['method']} {what}"].append(str(row["seed"]))
        if row["error"]:
            seeds["broken off"].append(str(row["seed"]))
    lines = [
        f"{method:16s}" + ", ".join(f"{n} {name}" for name, n in count.most_common())
        for method, count in counts.items()
    ]
    failed = [f"{name}: seeds {' '.join(seeds[name])}" for name in sorted(seeds)]
    return "\n".join([*lines, *failed, _pace(rows)])


def volume(rows: Sequence[Row], counted: Sequence[str]) -> str:
    """What was counted, then all that is false, that was raised or that broke off, by seed."""
    lines = list(counted)
    for name in ("false", "raised"):
        found = [(row["seed"], what) for row in rows for what in row.get(name, ())]
        lines += [f"{name}: {len(found)}", *(f"  seed {seed}: {what}" for seed, what in found)]
    broken = [row for row in rows if row["error"]]
    lines += [
        f"broken off: {len(broken)}",
        *(f"  seed {row['seed']}: {row['error'].splitlines()[-1]}" for row in broken),
    ]
    return "\n".join([*lines, _pace(rows)])


def _pace(rows: Sequence[Row]) -> str:
    seconds = sum(row.get("seconds", 0.0) for row in rows)
    return f"{100 * seconds / max(len(rows), 1):.0f} s of a core for 100 problems"


def _by_method(rows: Sequence[Row]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for answer in row["answers"]:
            counts[answer["method"]][outcome(answer)] += 1
            seconds[answer["method"]].append(answer["seconds"])
    return _lines("method", counts, seconds)


def _table(rows: Sequence[Row], name: str, key: Callable[[Row], Iterable[str]]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seconds: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for group in key(row):
            for answer in row["answers"]:
                counts[group][outcome(answer)] += 1
                seconds[group].append(answer["seconds"])
    return _lines(name, counts, seconds)


def _lines(name: str, counts: dict[str, Counter[str]], seconds: dict[str, list[float]]) -> str:
    lines = [f"{name:26s}{'answers':>8s}" + "".join(f"{column:>15s}" for column in COLUMNS) + f"{'median s':>10s}"]
    for group, count in sorted(counts.items()):
        cells = "".join(f"{count[column] or '.':>15}" for column in COLUMNS)
        middle = sorted(seconds[group])[len(seconds[group]) // 2]
        lines.append(f"{group:26s}{sum(count.values()):8d}{cells}{middle:10.2f}")
    return "\n".join(lines)


def _attained(rows: Sequence[Row]) -> str:
    counts = Counter(row.get("attained") for row in rows)
    said = {True: "attained", False: "not attained", None: "not decided by exact arithmetic"}
    return "minima: " + ", ".join(f"{counts[key]} {what}" for key, what in said.items())


def _sharpness(rows: Sequence[Row]) -> str:
    """The amount by which a lower bound could be too high and pass: the best point that is known against the best
    bound."""
    left: list[float] = []
    for row in rows:
        bounds = [a["dual"] for a in row["answers"] if not a["wrong"] and isfinite(a["dual"])]
        if bounds and isfinite(row["best"]):
            unit = max(abs(row["best"]), abs(max(bounds))) or 1.0
            left.append((row["best"] - max(bounds)) / unit)
    shares = ", ".join(f"{sum(gap <= room for gap in left)} to {room:g}" for room in (1e-9, 1e-6, 1e-3))
    return f"best point and best bound, of {len(left)} problems that have both, agree (relative): {shares}"


def _lists(rows: Sequence[Row]) -> list[str]:
    out: list[str] = []
    for kind in ("wrong", "misjudged"):
        lines = [f"  {_name(row)}, {a['method']}: {what}" for row in rows for a in row["answers"] for what in a[kind]]
        kinds = Counter(what.split(":")[0] for row in rows for a in row["answers"] for what in a[kind])
        said = ", ".join(f"{count} {what}" for what, count in kinds.most_common()) or "none"
        out.append("\n".join([f"{kind}: {said}", *lines]))
    raised = [
        f"  {_name(row)}, {a['method']}: {a['message'].strip().splitlines()[-1]}"
        for row in rows
        for a in row["answers"]
        if a["status"] == "exception"
    ]
    out.append("\n".join([f"exceptions: {len(raised)}", *raised]))
    broken = [f"  {_name(row)}: {row['error'].strip().splitlines()[-1]}" for row in rows if row["error"]]
    out.append("\n".join([f"examinations that broke off: {len(broken)}", *broken]))
    return out


def _name(row: Row) -> str:
    if "loss" not in row:
        return f"seed {row['seed']}"
    return f"seed {row['seed']} ({row['loss']} x {row['penalty']} x {row['structure']}; {', '.join(row['traits'][:3])})"
