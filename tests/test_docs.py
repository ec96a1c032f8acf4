"""The documents on terms and methods of one's own do what they say: their Python runs."""

from __future__ import annotations

import re

import pytest
from documents import module_of
from places import DOCS

from graphreg.methods import METHODS
from graphreg.testing import check_method

RUN_BY_OTHERS = ("command-line",)  # tests/test_command_line_docs.py
PAGES = sorted(page.stem for page in DOCS.glob("*.md") if "```python" in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", [page for page in PAGES if page not in RUN_BY_OTHERS])
def test_the_python_runs(document, capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    module_of(document)


def test_every_law_of_methods_is_listed():
    text = (DOCS / "adding-a-method.md").read_text(encoding="utf-8")
    report = check_method(module_of("adding-a-method").GradientDescent(), rounds=1, accuracy=None)
    assert report.ok, report
    table = text.split("| law | statement |")[1]
    assert re.findall(r"^\| (\w[\w ]+) \| .* \|$", table, re.M)[: len(report.laws)] == list(report.laws)


def test_every_method_is_documented():
    """With its class-level lines, as the overview prints them."""
    text = " ".join((DOCS / "methods.md").read_text(encoding="utf-8").split())
    for method in METHODS:
        assert method.needs, f"{method.name} does not say what it needs"
        assert method.sends, f"{method.name} does not say what it sends"
        assert f"## {method.name}" in text, f"docs/methods.md has no section on {method.name}"
        row = f"| [{method.name}](#{method.name.lower()}) | {method.needs} | {method.sends} |"
        assert row in text, f"docs/methods.md lacks the line\n{row}"


def test_every_document_is_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert not [path.name for path in DOCS.glob("*.md") if path.name != "index.md" and f"({path.name})" not in index]
