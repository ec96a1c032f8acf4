"""The table of laws on the page of own terms is what the laws say of themselves.

``python tests/testing/test_laws_page.py`` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import graphreg as gr
from graphreg.errors import TermError
from graphreg.testing import check_loss, check_penalty, losses, penalties

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-penalty.md"
START, END = "| law | of a penalty: phi, phi* its conjugate | of a loss: l, l* its conjugate |\n|---|---|---|\n", "\n\n"
SIZES = {"sizes": "At least one of the numbers of coordinates k= is accepted."}


def table() -> str:
    """The rows of the table, from the docstrings of the laws."""
    both = [{name: str(law.__doc__) for name, law in laws.items()} for laws in (penalties.LAWS, losses.LAWS)]
    both[0] = SIZES | both[0]
    names = dict.fromkeys([*both[0], *both[1]])
    return "\n".join(f"| {name} | {' | '.join(_cell(each.get(name, '')) for each in both)} |" for name in names)


def _cell(docstring: str) -> str:
    first = " ".join(docstring.split("\n\n", maxsplit=1)[0].split())
    return first.replace("``", "`").replace("||", "‖").replace("*", r"\*").replace("|", r"\|")


def split() -> tuple[str, str, str]:
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    rows, after = rest.split(END, 1)
    return before + START, rows, END + after


def test_the_page_has_the_laws_as_they_are():
    assert split()[1].splitlines() == table().splitlines()


def test_a_report_names_the_page():
    data = gr.NodeData.from_arrays([[1.0], [2.0]], [0.5, 1.0], [0, 1])
    for report in (check_penalty(gr.L1()), check_loss(gr.SquaredLoss(data))):
        assert str(report).endswith("what each law says: docs/adding-a-penalty.md#the-laws")
        assert all(f"| {law} |" in split()[1] for law in report.laws)


def test_a_class_for_an_object_is_refused_with_the_call():
    with pytest.raises(TermError, match=r"got <class .*; write SquaredLoss\(data\)$"):
        check_loss(gr.SquaredLoss)
    with pytest.raises(TermError, match=r"; write L1\(\)$"):
        check_penalty(gr.L1)


if __name__ == "__main__":
    before, _, after = split()
    PAGE.write_text(before + table() + after, encoding="utf-8")
