"""The pages as the hooks of the site make them."""

from __future__ import annotations

import importlib.util

import pytest
from places import DOCS, ROOT

import graphreg as gr

pytest.importorskip("mkdocs")
pytest.importorskip("latex2mathml")


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks_of_the_site", ROOT / "website" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bars_in_cells_lose_the_backslash_that_keeps_them_from_ending_the_cell(hooks):
    html = r"<p>a \| b</p><table><tr><td><code>1/2 \|\|w\|\|^2</code></td></tr></table>"
    made = hooks.on_page_content(html, None, None, None)
    assert made == r"<p>a \| b</p><table><tr><td><code>1/2 ||w||^2</code></td></tr></table>"


def test_inner_products_are_shown_and_not_taken_for_elements(hooks):
    html = "<p>f(x) - <x, u> - <gradient(z), x - z></p><table><td><code>&lt;w, r&gt;</code></td></table>"
    made = hooks.on_page_content(html, None, None, None)
    assert made == html.replace("<x, u>", "&lt;x, u&gt;").replace("<gradient(z), x - z>", "&lt;gradient(z), x - z&gt;")


def test_bars_of_norms_are_as_high_as_letters_where_they_bear_an_index(hooks):
    made = hooks.on_page_content(
        r'<span class="arithmatex">\(\lVert w \rVert_2 + \lvert x \rvert\)</span>', None, None, None
    )
    assert made.count('<mo stretchy="false">&#x02016;</mo>') == made.count('<mo stretchy="false">&#x0007C;</mo>') == 2


def test_no_cell_ends_in_braces_that_would_be_taken_for_attributes():
    pages = sorted(DOCS.rglob("*.md"))
    bad = [(page.name, row) for page in pages for row in page.read_text(encoding="utf-8").splitlines() if "} |" in row]
    assert not [each for each in bad if each[1].startswith("|")]


def test_pages_take_the_script_of_their_search_from_the_site(hooks):
    class Page:
        url = "tutorials/duality.html"

    made = hooks.on_post_page(f'<script src="{hooks.ELSEWHERE}"></script>', Page, None)
    assert made == '<script src="../assets/iframe-worker.js"></script>'
    assert "Permission is hereby granted" in (ROOT / "website" / "iframe-worker.js").read_text(encoding="utf-8")


def test_the_reference_has_every_exported_name_as_users_know_it(hooks):
    listed = {name for _, names in hooks.REFERENCE.values() for name in names} | set(gr.catalogue.__all__)
    assert set(gr.__all__) - listed == {"errors"}  # a page of its own
    assert hooks.described("Problem") == "::: graphreg.problem.Problem"
    for name in ("Loss", "Penalty", "w"):
        assert f"heading: {name}\n" in hooks.described(name)
