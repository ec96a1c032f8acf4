"""MathML: what is written of a formula, and that every formula of the library is written whole and well-formed."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import networkx as nx
import pytest
from hostile import EVERY, HOSTILE, unprintable

import graphreg as gr
from graphreg.base.escaping import visible
from graphreg.datasets import random_problem
from graphreg.mathml import to_mathml, to_sentence

WITH = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}  # so many parts
ELEMENTS = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", *WITH}
BARS = '<mo stretchy="false">&Vert;</mo>'


def parsed(markup):
    """The element; entities of HTML are no entities of XML."""
    return ElementTree.fromstring(re.sub(r"&(?!lt;|gt;|amp;|quot;|#)\w+;", lambda name: html.unescape(name[0]), markup))


def seen(markup):
    """The elements that a page shows; rows that group one of them are no more."""
    markup = re.sub('<mtext mathsize="0px">[^<]*</mtext>', "", markup)
    single = re.compile(r"<mrow>(<(\w+)(?: [^>]*)?>[^<]*</\2>)</mrow>")
    while single.search(markup):
        markup = single.sub(r"\1", markup)
    return markup


def left(markup):
    """The text that is left where the elements are taken out."""
    text = html.unescape(re.sub("<[^>]*>", "", markup)).translate({0x2212: "-", 0x22A4: "T", 0x2032: "'"})
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("latex", "markup"),
    [
        ("x", "<mi>x</mi>"),
        ("12.5", "<mn>12.5</mn>"),
        ("x_r", "<msub><mi>x</mi><mi>r</mi></msub>"),
        ("x_r^2", "<msubsup><mi>x</mi><mi>r</mi><mn>2</mn></msubsup>"),
        ("x^2_r", "<msubsup><mi>x</mi><mi>r</mi><mn>2</mn></msubsup>"),
        ("l'", "<msup><mi>l</mi><mo>&prime;</mo></msup>"),
        (r"\|z\|_2", f"{BARS}<mi>z</mi><msub>{BARS}<mn>2</mn></msub>"),
        ("|z|", '<mo stretchy="false">|</mo><mi>z</mi><mo stretchy="false">|</mo>'),
        (r"\tfrac12", '<mstyle displaystyle="false"><mfrac><mn>1</mn><mn>2</mn></mfrac></mstyle>'),
        (r"\frac{1}{m_i}", "<mfrac><mn>1</mn><mrow><msub><mi>m</mi><mi>i</mi></msub></mrow></mfrac>"),
        (r"\sum_i a", "<munder><mo>&sum;</mo><mi>i</mi></munder><mi>a</mi>"),
        (r"\mathrm{out}_i", "<msub><mi>out</mi><mi>i</mi></msub>"),
        (r"\mathbb{R}", "<mi>&Ropf;</mi>"),
        (r"\lambda - 1", "<mi>&lambda;</mi><mo>&minus;</mo><mn>1</mn>"),
        (r"\text{a }b", "<mtext>a&nbsp;</mtext><mi>b</mi>"),
        (r"a {<} b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (r"\left(a\right)", '<mrow><mo stretchy="false">(</mo><mi>a</mi><mo stretchy="false">)</mo></mrow>'),
        (r"\unknown{x", r"<mtext>\unknown</mtext><mi>x</mi>"),
        (r"x_", "<msub><mi>x</mi><mrow></mrow></msub>"),
        ("", ""),
    ],
)
def test_a_formula(latex, markup):
    assert seen(to_mathml(latex, own_line=False)) == f"<math>{markup}</math>"
    assert parsed(to_mathml(latex)).get("displaystyle") == "true"


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        ("x_r^2", "x_r^2"),
        ("u^{(1)}_e", "u_e^(1)"),
        (r"\tfrac12 (x_r^\top w_i - y_r)^2", "1/2 (x_r^T w_i - y_r)^2"),
        (r"\sum_{r \text{ at } i} a_r \, x_r", "∑_(r at i) a_r x_r"),
        (r"\frac{a + 1}{2 s}", "(a + 1)/(2 s)"),
        (r"\lambda \, \|w_i - w_j\|_2", "λ ‖w_i - w_j‖_2"),
        ("l'(t)", "l'(t)"),
    ],
)
def test_what_is_left_without_the_elements_can_be_read(latex, text):
    """Jupyter takes MathML out of notebooks that are not trusted."""
    assert left(to_mathml(latex)) == text


def test_words_of_a_sentence_are_no_formula():
    written = to_sentence(r"\text{n = 3: <b>}i\text{ (8)}")
    assert written == "n = 3: &lt;b&gt;<math><mi>i</mi></math> (8)"
    assert to_sentence(r"\text{of }w_i") == f"of {to_mathml('w_i', own_line=False)}"


def written_of(model):
    problem = gr.Problem(model)
    for page in (problem.dual(), problem.kkt()):
        for section in page.sections:
            yield section.heading.latex
            yield from (each.latex for row in section.rows for each in (row.math, row.note))
        yield from (each.latex for row in page.legend for each in (row.math, row.note))


def check(latex):
    for markup in (to_mathml(latex), f"<p>{to_sentence(latex)}</p>"):
        root = parsed(markup)
        assert {each.tag for each in root.iter()} <= ELEMENTS | {"p"}
        assert not any(re.fullmatch(r"\\[a-zA-Z]+", each.text or "") for each in root.iter("mtext")), latex
        for each in root.iter():
            assert len(each) == WITH.get(each.tag, len(each)), latex


@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_every_formula_is_read(seed):
    for latex in written_of(random_problem(seed).model):
        check(latex)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_and_not_obeyed(name):
    data = gr.NodeData.from_dict({f"{EVERY[name]}{k}": (None, [float(k)]) for k in range(2)})
    graph = nx.path_graph(list(data.labels))
    model = gr.MeanLoss(data) + gr.Parameter(1.0, name=EVERY[name]) * gr.TotalVariation(graph, gr.L2())
    for latex in written_of(model):
        for markup in (to_mathml(latex), to_sentence(latex)):
            assert not unprintable(markup)
            assert set(re.findall(r"<(\w+)", markup)) <= ELEMENTS
    page = gr.Problem(model)._repr_html_()
    assert not unprintable(page)
    assert "<script" not in page
    if name in ("a dollar", "two dollars", "specials", "TeX that reads"):
        text = html.unescape(re.sub("<[^>]*>", "", page))
        assert re.sub(r"\s", "", visible(EVERY[name])) in re.sub(r"\s", "", text)
