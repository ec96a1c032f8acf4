"""The page with what a run found has every claim, and no verdict that is not the expected one."""

from __future__ import annotations

from papers_page import PAGE, page

import papers


def test_the_page_has_the_expected_verdict_of_every_claim():
    text = (PAGE / "results.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    found = {row[0].removeprefix("| ").replace("\\", ""): row[2] for row in rows if row[0] != "| claim"}
    assert list(found) == [each.id for paper in papers.titles() for each in papers.chosen(paper).values()]
    for id, verdict in found.items():
        declared = papers.declarations()[id]
        wanted = f"{declared.expected} ({declared.weight})" if declared.weight else str(declared.expected)
        assert verdict in {wanted, "cannot be checked", "not run"}, id
    assert list(found.values()).count("not run") <= 3
    assert "unexplained deviations: none" in text


def test_what_is_not_run_is_said(tmp_path):
    text = page(papers.known(tmp_path, None, "clusters.eq2.2"), "2026-01-31", data=False)
    assert "| clusters.eq2.2 | (2.2) | not run |" in text
    assert "on 2026-01-31 (graphreg" in text
