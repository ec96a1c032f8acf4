"""Formulas of reports: the LaTeX that the library writes, all of it, as MathML."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from hostile import EVERY
from law_cases import LOSSES, PENALTIES, RECOGNISED
from report_cases import chain

import graphreg as gr
from graphreg.base.escaping import visible
from graphreg.errors import ModelError
from graphreg.reporting.sentences import formulas, with_parameter

GRAPH = nx.path_graph(3)
DATA = gr.NodeData.from_arrays(np.eye(3)[np.arange(12) % 3], np.arange(12.0), np.arange(12) % 3)


def check(form):
    page = formulas(form)
    named = re.compile(r"&(?!lt;|gt;|amp;|quot;)\w+;")  # of HTML, which XML does not know
    xml = named.sub(lambda found: html.unescape(found[0]), page.replace("<details open>", "<details>"))
    ElementTree.fromstring(f"<x>{xml}</x>")
    shown = "".join(re.findall(r">([^<]*)<", page))
    assert "\\" not in html.unescape(shown).replace("\\ ", ""), shown


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.called())
def test_every_loss_is_typeset(loss):
    check(gr.Problem(loss + gr.Parameter(0.2, name="lam_1") * gr.TotalVariation(GRAPH, gr.L2())).form)


@pytest.mark.parametrize("penalty", [*PENALTIES, *RECOGNISED], ids=lambda penalty: penalty.called()[:40])
def test_every_penalty_is_typeset(penalty):
    tried = 0
    for strength in (1.0, 0.3):
        for term in (lambda: gr.TotalVariation(GRAPH, penalty), lambda: gr.NodePenalty(penalty)):
            try:
                problem = gr.Problem(gr.SquaredLoss(DATA) + strength * term())
            except ModelError:  # a constraint takes no strength, a one-sided penalty no edge between nodes
                continue
            check(problem.form)
            tried += 1
    assert tried or penalty.called().startswith("Quadratic")  # of another size


def test_a_term_with_latex_of_its_own_is_shown_and_not_obeyed():
    class Odd(gr.L2):
        @property
        def notation(self):
            from dataclasses import replace

            return replace(super().notation, latex_value=r"\odd<b>(%z)")

    page = formulas(chain(penalty=Odd()).form)
    assert "odd" in page
    assert "<b>" not in page


@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
def test_hostile_names_of_strengths_are_shown(name):
    if not name:
        return
    model = chain().model.terms
    lam = gr.Parameter(0.1, name=name)
    form = gr.Problem(gr.Model((model[0], (lam * gr.TotalVariation(nx.path_graph(6), gr.L2())).terms[0]))).form
    page = formulas(form)
    assert not re.findall(r"<(?!/?(?:div|p|table|tr|td|details|summary|code|math|m[a-z]+)\b)", page)
    text = html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\xa0", " ")
    kept = re.sub(r"[\s_\\^~]", "", visible(name))
    assert kept in re.sub(r"[\s_\\^~∼]", "", text) or len(kept) < 12  # noqa: RUF001


def test_the_parameter_of_a_path_stands_in_its_formulas():
    lam = gr.Parameter(0.3, name="lam")
    terms = chain().model.terms
    graph = nx.path_graph(6)
    problem = gr.Problem(gr.SquaredLoss(terms[0][1].data) + 2 * lam * gr.TotalVariation(graph, gr.L2()) + terms[2][1])
    forms = []
    for value in (0.1, 0.7):
        lam.value = value
        forms.append(problem.form.frozen())
    found = with_parameter(lam, (0.1, 0.7), (forms[0], forms[1]))
    assert [block.strength.text() for block in (*found.samples, *found.edges)] == ["1", "2 lam", "1"]
    assert with_parameter(lam, (0.1, 0.1), (forms[0], forms[0])) is forms[0]
