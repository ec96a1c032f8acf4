"""The documents on terms and methods of one's own do what they say: their Python runs."""

from __future__ import annotations

import importlib
import json
import re
from itertools import pairwise

import pytest
import tutorials
from documents import FENCE, module_of
from places import DOCS
from test_layers import imports_of

import graphreg as gr
from graphreg.base.declaring import is_private
from graphreg.methods import METHODS
from graphreg.testing import check_method

RUN_BY_OTHERS = ("command-line", "model-files")  # tests/house/test_command_line_docs.py
NEEDS = {"networks": "torch"}  # modules that are not installed everywhere
# Pages that take seconds; the functions that they show have tests of their own, and `make tutorials` runs them too.
SLOW = (
    *(
        "adding-a-loss",
        "auditing",
        "from-scikit-learn",
        "own-terms",
        "pictures",
        "printed-variants",
        "reports",
        "teach",
    ),
    *("counties", "federated", "verify-an-algorithm"),  # tutorials
)
PAGES = sorted(page.stem for page in DOCS.glob("*.md") if "```python" in page.read_text(encoding="utf-8"))


def slowly(pages):
    return [pytest.param(page, marks=pytest.mark.whole if page in SLOW else ()) for page in pages]


@pytest.mark.parametrize("document", slowly(page for page in PAGES if page not in RUN_BY_OTHERS))
def test_the_python_runs_and_prints_what_is_shown(document, capsys, tmp_path, monkeypatch, pyplot):
    pytest.importorskip(NEEDS.get(document, "numpy"))
    monkeypatch.chdir(tmp_path)
    page = DOCS / f"{document}.md"
    if page in tutorials.shown():
        assert not list(tutorials.differences(page))
    else:
        module_of(document)


@pytest.mark.parametrize("page", sorted(tutorials.PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_links_of_tutorials_lead_somewhere(page):
    for picture in tutorials.pictures(page):
        assert (tutorials.PAGES / picture).exists(), f"{picture} is not there (make tutorials)"
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (tutorials.PAGES / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize("name", slowly(sorted(page.stem for page in tutorials.PAGES.glob("*.md"))))
def test_tutorials_do_what_they_say(name, tmp_path, monkeypatch):
    """Their Python runs and prints what they show, and makes their pictures."""
    page = tutorials.PAGES / f"{name}.md"
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    assert not list(tutorials.differences(page))
    for picture in tutorials.pictures(page):
        assert (tmp_path / picture).exists(), f"no block saves {picture}"


@pytest.mark.parametrize("name", tutorials.NOTEBOOKS)
def test_notebooks_are_written_from_their_pages(name):
    source = (tutorials.PAGES / f"{name}.md").read_text(encoding="utf-8")
    written = (tutorials.PAGES / f"{name}.ipynb").read_text(encoding="utf-8")
    assert written == tutorials.notebook(source), f"{name}.ipynb is stale; run make tutorials"
    cells = json.loads(written)["cells"]
    for before, cell in pairwise(cells):
        if cell["cell_type"] == "markdown" and before["metadata"].get("jupyter", {}).get("source_hidden"):
            text = "".join(cell["source"])
            assert text.startswith("<details") or "savefig" in "".join(before["source"]), (
                f"an answer stands open: {text[:80]}"
            )


@pytest.mark.parametrize("name", tutorials.NOTEBOOKS)
def test_a_notebook_alone_has_no_link_that_leads_nowhere(name):
    book = json.loads((tutorials.PAGES / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown"]
    assert "part of graphreg's documentation: in a clone" in cells[0]
    links = [link for cell in cells for link in re.findall(r"\]\(([^)\s]+)\)", cell)]
    assert not [link for link in links if not link.startswith(("http://", "https://", "#"))]
    named = [page for cell in cells for page in re.findall(r"\(`(docs/[^`]+)`\)", cell)]
    assert len(named) > 3
    assert all((DOCS.parent / page).exists() for page in named)


@pytest.mark.parametrize(
    ("said", "printed", "agree"),
    [
        ("gap 1.5e-09 of 3.2\n", "gap 7.1e-10 of 3.2001\n", True),
        ("gap 1.5e-09\n", "gap 2e-4\n", False),
        ("3.2 rounds\n", "3.3 rounds\n", False),
        ("certified\n", "budget\n", False),
        ("a  1\n...\nz 2\n", "a 1\nb 7\nc\nz 2\n", True),
        ("a 1\n...\nz 2\n", "a 1\nb 7\n", False),
        ("a 1\n", "a 1\nb 2\n", False),
        ("km4 1\n", "km5 1\n", False),
    ],
)
def test_what_a_page_shows_is_compared(said, printed, agree):
    assert tutorials.agrees(said, printed) is agree


def test_every_law_of_methods_is_listed():
    text = (DOCS / "adding-a-method.md").read_text(encoding="utf-8")
    report = check_method(module_of("adding-a-method").GradientDescent(), rounds=1, accuracy=None)
    assert report.ok, report
    table = text.split("| law | statement |")[1]
    assert re.findall(r"^\| (\w[\w ]+) \| .* \|$", table, re.M)[: len(report.laws)] == list(report.laws)


def test_guides_import_public_names_only():
    """What a guide imports of graphreg is the package, a public module, or a name that such a module says is public."""
    found = 0
    for guide in DOCS.glob("adding-*.md"):
        for block in FENCE.finditer(guide.read_text(encoding="utf-8")):
            for each in imports_of(block["body"], "docs"):
                package, *rest = each.name.split(".")
                if package != "graphreg" or not rest:
                    continue
                module, *name = rest
                found += 1
                assert not is_private(each.name), f"{guide.name} imports {each.name}"
                assert module in (*gr.__all__, *gr._SUBMODULES, "checks", "methods"), f"{guide.name}: {each.name}"
                holder = importlib.import_module(f"graphreg.{module}")
                public = getattr(holder, "__all__", [each for each in vars(holder) if not each.startswith("_")])
                assert set(name) <= set(public), f"{guide.name}: {each.name} is no public name"
    assert found > 5


def test_every_method_says_what_it_needs_and_sends():
    text = (DOCS / "methods.md").read_text(encoding="utf-8")
    for method in METHODS:
        assert method.needs, f"{method.name} does not say what it needs"
        assert method.sends, f"{method.name} does not say what it sends"
        assert f"## {method.name}\n" in text, f"docs/methods.md has no section on {method.name}; run make listings"


def test_every_document_is_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert not [path.name for path in DOCS.glob("*.md") if path.name != "index.md" and f"({path.name})" not in index]
