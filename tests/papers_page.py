"""The page with what a run of the papers' claims found: papers/results.md, from a folder of results.

``python -m papers run`` computes the claims; ``python tests/papers_page.py [FOLDER]`` writes the page from the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import papers
from graphreg.cli.results import versions

PAGE = next(folder for folder in Path(__file__).resolve().parents if (folder / "docs").exists()) / "papers"
NAMED = ("graphreg", "python", "numpy", "scipy", "cvxpy", "clarabel")
LACKING = "data or a package (torch) that it needs were not there"
HEAD = """# The papers: what a run found

This page is written by `python tests/papers_page.py` from the results of `python -m papers run`{data}
at the scale "quick" on {day} ({versions}).
Verdicts follow from the numbers; nobody sets them. All numbers are in the report of a run of your own:
`python -m papers run`, some minutes, then `python -m papers report --html papers.html`. What the verdicts mean is in
[the papers, re-computed](../docs/papers.md).

{summary}.
"""


def page(claims: Sequence[papers.Claim], day: str, data: bool) -> str:
    """The page: a table for each paper."""
    known = versions()
    named = ", ".join(f"{name} {known[name]}" for name in NAMED if name in known)
    said = HEAD.format(
        day=day, versions=named, summary=papers.summary(claims), data=", with real data," if data else ""
    )
    parts = [said]
    for paper, title in papers.titles().items():
        rows = [each for each in claims if each.paper == paper]
        parts.append(f"## {paper}: {title}\n\n| claim | where | verdict | correction or reason |\n|---|---|---|---|")
        parts[-1] += "".join(map(_row, rows)) + "\n"
    return "\n".join(parts)


def _row(claim: papers.Claim) -> str:
    said = claim.correction or claim.part or claim.reason if claim.verdict else LACKING
    verdict = f"{claim.verdict or 'not run'}{f' ({claim.weight})' if claim.weight else ''}"
    cells = (claim.id, claim.source, verdict, said)
    return "\n| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    escaped = text.replace("<", "&lt;").replace("\n", " ")
    return "".join(f"\\{c}" if c in "|*_`[]" else c for c in escaped)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else papers.OUT)
    data = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    newest = max(path.stat().st_mtime for path in folder.rglob("result-*.json"))
    day = datetime.fromtimestamp(newest, UTC).date().isoformat()
    text = page(papers.known(folder, data), day, data is not None)
    (PAGE / "results.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
