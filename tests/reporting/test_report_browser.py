"""Reports in a browser: Chromium without a screen, where it and playwright are installed."""

from __future__ import annotations

import shutil

import networkx as nx
import numpy as np
import pytest
from hostile import EVERY
from report_cases import chain

import graphreg as gr

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FIRST_PAINT = 3000.0  # milliseconds

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of playwright, when it ends
]


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--disable-component-update"])
        yield program
        program.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a report; at the end there was no request, and no message of an error."""
    messages, requests, pages = [], [], []

    def opener(reported, width=1240, **options):
        file = tmp_path / f"{len(pages)}.html"
        reported.report(file, **options)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield opener
    for page in pages:
        page.close()
    assert messages == []
    assert requests == [f"{(tmp_path / f'{k}.html').as_uri()}" for k in range(len(pages))]


@pytest.fixture(scope="module")
def path():
    lam = gr.Parameter(0.1, name="lam")
    data = chain().model.terms[0][1].data
    return gr.path(gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(nx.path_graph(6), gr.L2())), 9, gap=1e-9)


def classes(page, what):
    return page.eval_on_selector_all(what, "all => all.map((each) => each.getAttribute('class'))")


def slide(page, name, to):
    page.eval_on_selector(f"#{name}", f"each => {{ each.value = {to}; each.dispatchEvent(new Event('input')); }}")


def test_the_slider_of_a_path_moves_the_picture(opened, path):
    page = opened(path)
    seen = []
    for k in (0, 4, 8):
        slide(page, "slider", k)
        seen.append((classes(page, "#graph .n"), classes(page, "#graph .e"), page.inner_text("#moment")))
        assert f"{list(path)[k].certificate.dual:.10g}" in seen[-1][2]
    assert len({str(each[0]) for each in seen}) == 3
    assert len({str(each[1]) for each in seen}) >= 2
    full = [sum("full" in each for each in edges) for _, edges, _ in seen]
    assert full[0] == 5
    assert full[-1] < 5
    assert len(set(seen[-1][0])) == 1  # one cluster


def test_a_start_that_is_certified_has_a_page(opened):
    answer = chain().solve(gr.PrimalDual(), gap=1e-9)
    warm = chain().solve(gr.PrimalDual(), gap=1e-6, start=answer)  # no round, with bytes sent
    assert warm.rounds == 0 < warm.trace.records[-1].bytes
    assert "needed no round" in opened(warm).inner_text("#bounds-words")


def test_the_keyboard_is_enough(opened, path):
    page = opened(path)
    page.focus("#slider")
    before = page.inner_text("#moment")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#moment") != before
    page.focus("#graph")
    names = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        names.append(page.inner_text("#detail h3"))
    assert names == ["0", "1", "2"]
    page.select_option("#node", "3")
    page.select_option("#edge", index=1)
    assert page.inner_text("#detail h3") == "2 — 3"
    assert "φ(z) + φ*(u) − zu" in page.inner_text("#edge-words")  # noqa: RUF001
    assert page.eval_on_selector_all(".picked", "all => all.map((each) => each.dataset.e)") == ["2"]
    page.focus("#tables summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#table-box td")
    assert page.eval_on_selector_all("#table-box tbody tr", "all => all.length") == 6 + 5


def test_rounds_move_the_picture_and_the_mark(opened):
    answer = chain().solve(gr.PrimalDual(), gap=1e-9, observe=("w", "flows"))
    page = opened(answer, comparison=gr.compare(chain(), [gr.ADMM()], progress=False))
    seen = set()
    for k in (0, 1, 8, 30):
        slide(page, "slider", k)
        seen.add((page.get_attribute("#by-round .now", "d"), page.inner_text("#round-moment")))
    assert len({line for line, _ in seen}) == len(seen) == 4  # round 0 has a place of its own
    ticks = page.eval_on_selector_all("#by-round .tick", "all => all.map((each) => each.textContent)")
    assert {"0", "1", "2", "5", "10", "20", "50"} <= set(ticks)
    assert {"0.01", "0.001"} & set(ticks)


def test_checks_have_a_slider_where_no_round_was_observed(opened):
    page = opened(chain().solve(gr.PrimalDual(), gap=1e-9))
    assert page.is_hidden("#slider-box")
    slide(page, "rounds", 0)
    first = page.get_attribute("#by-round .now", "d")
    assert "nothing is certified yet" in page.inner_text("#round-moment")
    slide(page, "rounds", 3)
    assert page.get_attribute("#by-round .now", "d") != first


@pytest.mark.parametrize(
    "penalty", [gr.L1(), gr.LInf(), gr.SquaredL2(), gr.HuberNorm(0.3), gr.Quadratic([[2.0, 0.3], [0.3, 1.0]])], ids=str
)
def test_every_edge_of_every_penalty_has_its_equality(opened, penalty):
    page = opened(chain(penalty=penalty).solve(gap=1e-10))
    for e in range(5):
        page.eval_on_selector(
            f"#edges path:nth-child({e + 1})", "each => each.dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        )
        words = page.inner_text("#edge-words")
        residual = float(words.split(" = ")[4].split(",")[0].replace("−", "-").replace(" · 10", "e").translate(SUPER))  # noqa: RUF001
        assert abs(residual) < 1e-4, words
        assert page.is_visible("#primal .curve")
        assert page.is_visible("#dual .point")


SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def test_hostile_names_are_text(opened):
    names = [name for name in EVERY.values() if name]
    page = opened(chain(names=names).solve(gap=1e-2))
    assert page.evaluate("document.scripts.length") == 2
    page.eval_on_selector("#tables", "each => { each.open = true; }")
    page.wait_for_selector("#table-box td")
    assert EVERY["a tag"] in page.inner_text("#table-box")
    assert page.eval_on_selector_all("#table-box script, #graph script, aside script", "all => all.length") == 0


def test_a_problem_without_edges(opened):
    page = opened(gr.Problem(chain().model.terms[0][1]).solve())
    assert page.is_hidden("#edge-section")
    assert "no edge has a capacity" in page.inner_text("#moment")


def test_a_phone_has_no_line_to_push(opened, path):
    page = opened(path, width=380)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_five_thousand_nodes(opened, tmp_path):
    rng = np.random.default_rng(0)
    graph = nx.random_geometric_graph(5000, 0.0196, seed=1)
    data = gr.NodeData.from_arrays(None, rng.standard_normal((5000, 2)), np.arange(5000))
    model = gr.MeanLoss(data) + 0.5 * gr.TotalVariation(graph, gr.L2())
    answer = gr.Problem(model).solve(gr.PrimalDual(), gap=1e-3, observe=gr.Observer(("w", "flows"), rounds=20))
    page = opened(answer, positions=nx.get_node_attributes(graph, "pos"))
    page.wait_for_timeout(500)
    paints = page.evaluate("performance.getEntriesByType('paint').map((each) => each.startTime)")
    assert max(paints) < FIRST_PAINT
    assert (tmp_path / "0.html").stat().st_size < 6e6
    assert page.eval_on_selector_all("#edges path", "all => all.length") > 14_000
    took = page.evaluate("""() => { const s = document.getElementById('slider'), begun = performance.now();
        s.value = 0; s.dispatchEvent(new Event('input')); return performance.now() - begun; }""")
    assert took < 1000.0


def test_names_stand_beside_edges_and_not_on_them(opened):
    """A chain from the top to the bottom: names above, beside and below."""
    data = gr.NodeData.from_arrays(None, [0.0, 1.0, 2.0], ["top", "amid", "low"])
    graph = gr.Graph.from_edges([("top", "amid"), ("amid", "low")])
    solution = gr.Problem(gr.MeanLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())).solve()
    page = opened(solution, positions={"top": (0, 2), "amid": (0, 1), "low": (0, 0)})
    page.wait_for_selector("#graph text.name")
    boxes = {
        each.text_content(): (each.get_attribute("class"), each.bounding_box())
        for each in page.locator("#graph text.name").all()
    }
    middle = page.locator("#edges path").first.bounding_box()
    line = middle["x"] + middle["width"] / 2
    assert "right" in boxes["amid"][0] or "left" in boxes["amid"][0]
    box = boxes["amid"][1]
    assert box["x"] > line or box["x"] + box["width"] < line
    assert boxes["top"][1]["y"] < boxes["amid"][1]["y"] < boxes["low"][1]["y"]
