"""The report: tables by paper with what is stated beside what was computed, and figures; as Markdown and HTML."""

from __future__ import annotations

import base64
import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from .declaring import WEIGHTS, declarations, titles
from .figures import draw
from .records import Check, Verdict
from .running import Claim

COLUMNS = ("claim", "where", "stated", "computed", "tolerance", "verdict", "seconds")
SIDES = {"<=": 1.0, ">=": -1.0}
NO_PICTURES = "the figures need matplotlib, which is not installed: pip install graphreg[plot]"


def visible(text: object) -> str:
    """The text without anything that a terminal or a page would obey: what is not printable is written as ``repr``
    writes it."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(text))


def summary(claims: Sequence[Claim]) -> str:
    """The number of claims with each verdict, and of those that deviate without an explanation."""
    counts = Counter("not run" if each.verdict is None else str(each.verdict) for each in claims)
    parts = [f"{counts[name]} {name}" for name in (*map(str, Verdict), "not run") if counts[name]]
    weights = Counter(each.weight for each in claims if each.weight)
    of = " (" + ", ".join(f"{weights[name]} {name}" for name in WEIGHTS if weights[name]) + ")"
    parts = [part + of * part.endswith(Verdict.CORRECTED) for part in parts]
    bad = sum(bool(each.unexplained) for each in claims)
    if not claims:
        return "there are no claims yet"
    return f"{len(claims)} claims: {', '.join(parts)}; unexplained deviations: {bad or 'none'}"


def line(claim: Claim) -> str:
    """A claim in one line, and what is the matter with it in more."""
    checks = claim.evidence.checks if claim.evidence else ()
    right = (claim.evidence.corrected or claim.evidence.printed) if claim.evidence else ()
    worst = max(right, key=lambda check: check.deviation / (check.tolerance or 1e-300), default=None)
    seconds = "" if claim.seconds is None else f"{claim.seconds:7.2f} s"
    shown = "" if worst is None else f"  {_distance(worst)}"
    out = [
        f"{claim.id:30s} {claim.verdict or 'not run':24s}{seconds}{shown}{f' (of {len(checks)})' * (len(checks) > 1)}"
    ]
    said = f"correction ({claim.weight}): {claim.correction}" if claim.correction else claim.part or claim.reason
    if claim.unexplained:
        out.append(f"    UNEXPLAINED: {claim.unexplained}")
    elif said:
        out.append(f"    {said}")
    if claim.note:
        out.append(f"    note: {claim.note}")
    return "\n".join(visible(each) for each in out)


def _distance(check: Check) -> str:
    """The distance of a comparison from failing: of a bound that holds the numbers themselves."""
    if check.relation == "=" or not check.holds:
        return f"off by {check.deviation:.2g} {check.unit}, tolerance {check.tolerance:g}"
    near = max(range(len(check.computed)), key=lambda k: (check.computed[k] - check.stated[k]) * SIDES[check.relation])
    return f"{check.computed[near]:.2g} {check.relation} {check.stated[near]:.2g}"


# ---- what a report consists of ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Block:
    """A part of the report: a heading, a paragraph, numbers to be entered again, a table (its head first), a figure."""

    kind: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def _blocks(claims: Sequence[Claim]) -> Iterator[Block]:
    yield Block("h1", "The papers, re-computed")
    yield Block("p", f"{summary(claims)}.")
    for paper, title in titles().items():
        own = [each for each in claims if each.paper == paper]
        if own:
            yield Block("h2", f"{paper}: {title}")
            yield Block("table", rows=(COLUMNS, *map(_row, own)))
            for each in own:
                yield from _details(each)


def _row(claim: Claim) -> tuple[str, ...]:
    checks = claim.evidence.checks if claim.evidence else ()
    computed = "; ".join(map(_compared, checks)) or claim.reason or "nothing yet"
    tolerance = "; ".join(dict.fromkeys(f"{c.tolerance:g} {c.unit}" for c in checks))
    verdict = f"{claim.verdict or 'not run'}{' - UNEXPLAINED' * bool(claim.unexplained)}"
    seconds = "" if claim.seconds is None else f"{claim.seconds:.2f}"
    return claim.id, claim.source, str(claim.stated), computed, tolerance, verdict, seconds


def _compared(check: Check) -> str:
    pairs = zip(check.computed, check.stated, strict=True)
    shown = ", ".join(f"{c:.5g} {check.relation} {s:.5g}" for c, s in pairs)
    return f"{check.what}: {shown} (off by {check.deviation:.2g}){'' if check.holds else ' - NO'}"


def _details(claim: Claim) -> Iterator[Block]:
    yield Block("h3", claim.id)
    yield Block("p", claim.statement)
    for label in ("unexplained", "correction", "part", "reason", "note"):
        if text := getattr(claim, label):
            yield Block("p", f"{label.capitalize()}: {text}")
    yield Block("p", "Settings: " + ", ".join(f"{name} = {value}" for name, value in claim.settings.items()))
    if claim.evidence is None:
        return
    if claim.evidence.counterexample:
        yield Block("p", "Counterexample:")
        yield Block("code", json.dumps(claim.evidence.counterexample).replace("<", "\\u003c"))  # no tag in any medium
    if table := claim.evidence.table:
        names = tuple(dict.fromkeys(name for row in table for name in row))
        yield Block("table", rows=(names, *(tuple(_number(row.get(name, "")) for name in names) for row in table)))
    yield Block("figure", claim.id)


def _number(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


# ---- Markdown, HTML --------------------------------------------------------------------------------------------------
HEADINGS = {"h1": "#", "h2": "##", "h3": "###"}
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>The papers, re-computed</title><style>
body {{ font: 15px/1.45 sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em; color: #222 }}
table {{ border-collapse: collapse; margin: 1em 0 }} img {{ max-width: 100% }}
td {{ border: 1px solid #bbb; padding: .3em .5em; vertical-align: top }} tr:first-child td {{ font-weight: bold }}
pre {{ background: #f3f3f3; padding: .5em; overflow: auto; max-height: 20em }}
</style></head><body>
{}
</body></html>
"""


def to_markdown(claims: Sequence[Claim], pictures: Mapping[str, str]) -> str:
    """The report as Markdown; ``pictures``: the address of the figure of a claim."""
    parts: list[str] = []
    for block in _blocks(claims):
        text = _markdown(block.text)
        if block.kind == "table":
            head, *rest = ([_markdown(cell) for cell in row] for row in block.rows)
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest)))
        elif block.kind == "code":
            parts.append(f"```json\n{block.text}\n```")
        elif block.kind != "figure":
            parts.append(f"{HEADINGS[block.kind]} {text}" if block.kind in HEADINGS else text)
        elif block.text in pictures:
            parts.append(f"![{text}]({pictures[block.text]})")
    return "\n\n".join(parts) + "\n"


def _markdown(text: str) -> str:
    """Text in which nothing begins a tag, a cell, a link or emphasis."""
    escaped = html.escape(visible(text), quote=False)
    return "".join(f"\\{c}" if c in "|*_`[]\\" else c for c in escaped)


def to_html(claims: Sequence[Claim], pictures: Mapping[str, bytes]) -> str:
    """The report as a page that needs no other file; ``pictures``: the figures, as PNG."""
    parts: list[str] = []
    for block in _blocks(claims):
        text = html.escape(visible(block.text))
        if block.kind == "table":
            rows = ("".join(f"<td>{html.escape(visible(cell))}</td>" for cell in row) for row in block.rows)
            parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        elif block.kind == "code":
            parts.append(f"<pre>{text}</pre>")
        elif block.kind != "figure":
            parts.append(f"<{block.kind}>{text}</{block.kind}>")
        elif block.text in pictures:
            content = base64.b64encode(pictures[block.text]).decode()
            parts.append(f'<img alt="{text}" src="data:image/png;base64,{content}">')
    return PAGE.format("\n".join(parts))


# ---- figures ---------------------------------------------------------------------------------------------------------
def drawn(claims: Sequence[Claim]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The figures of claims as PNG, from what is kept of them; and of those that could not be drawn the cause."""
    known, pictures, undrawn = declarations(), dict[str, bytes](), dict[str, str]()
    for claim in claims:
        figure = known[claim.id].figure
        if figure is None or claim.evidence is None:
            continue
        if find_spec("matplotlib") is None:
            undrawn[claim.id] = NO_PICTURES
            continue
        try:
            pictures[claim.id] = draw(figure, claim.evidence.data)
        except Exception as error:  # noqa: BLE001 - whatever matplotlib, its fonts or the figure's function raise
            undrawn[claim.id] = f"{type(error).__name__}: {error}"
    return pictures, undrawn
