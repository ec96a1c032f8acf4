"""Whatever users are given back has a short repr, a page of print, and of a notebook, however many nodes there are."""

from __future__ import annotations

import re
import warnings

import pandas as pd
import pytest
from hostile import unprintable
from result_cases import results
from result_classes import given_back

import graphreg as gr
from graphreg.base.display import Shown
from graphreg.base.tables import ResultWithAssumptions
from graphreg.errors import MethodWarning
from graphreg.form.notation import Written
from graphreg.running.summary import Summary

A_FEW_LINES = (3, 500)
A_SCREEN = (45, 4600)
A_METHOD = (5, 400)  # of the list of all methods, those that other tests declare included
PAGE = 30_000  # characters of HTML; of a problem with its dual and its conditions
TEXTS = (pd.DataFrame, Written, Summary, gr.inference.EstimatorComparison)  # which ``repr`` shows as ``print`` does
WITHOUT_A_PAGE = {  # what a line says in full
    *("Better", "Compiled", "Components", "DualPoint", "Failure", "Finding", "Fold", "FoldRun", "Folds", "Grid"),
    *("LocalFits", "LocalRegions", "ModelFile", "NoRun", "Observed", "Oracles", "RandomProblem", "Record", "BoundStep"),
    *("UsedRows", "ProvedProblem"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Of 300 nodes, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        return results(300, tmp_path_factory.mktemp("results"))


def of_class(found, name):
    """The results of a class and not of one that is made from it."""
    return [each for each in found.values() if type(each) is given_back()[name]]


def size(text):
    return len(text.splitlines()), len(text)


def fits(text, bound):
    return all(have <= most for have, most in zip(size(text), bound, strict=True))


@pytest.mark.parametrize("name", sorted(given_back()))
def test_it_is_bounded(name, found):
    some = of_class(found, name)
    assert some, f"tests/result_cases.py has no {name}; add one, so that its repr is seen to be short"
    for each in some:
        screen = tuple(len(each) * most for most in A_METHOD) if name == "Overview" else A_SCREEN
        assert fits(repr(each), screen if isinstance(each, TEXTS) else A_FEW_LINES), size(repr(each))
        assert fits(str(each), screen), size(str(each))
        assert " object at 0x" not in repr(each)


@pytest.mark.parametrize("name", sorted(given_back()))
def test_it_has_a_page(name, found):
    for each in of_class(found, name):
        assert (name in WITHOUT_A_PAGE) != hasattr(each, "_repr_html_")
        if name not in WITHOUT_A_PAGE:
            page = each._repr_html_()
            assert len(page) <= PAGE, len(page)
            assert not unprintable(page)
            assert page.startswith('<div class="mathjax_ignore tex2jax_ignore"')
            assert not re.search(r"(?<![-\w])(?:color|background(?:-color)?):\s*(?!none|inherit|color-mix)", page), (
                "a colour of its own cannot be read on every page"
            )


def test_what_has_no_page_is_there():
    assert set(given_back()) >= WITHOUT_A_PAGE


def test_what_it_rests_on_is_on_the_page(found):
    seen = 0
    for name, each in found.items():
        assumed = getattr(each, "assumed", ())
        if assumed and hasattr(each, "_repr_html_"):
            page = each._repr_html_()
            seen += 1
            assert page.count("<li>") >= len(assumed), name
    assert seen > 15
    assert {type(each) for each in found.values() if isinstance(each, ResultWithAssumptions)} <= set(
        given_back().values()
    )


def test_jupyter_is_given_text_and_html(found):
    for name, each in found.items():
        if isinstance(each, Shown):
            bundle = each._repr_mimebundle_(include=None, exclude=None)
            assert bundle["text/plain"] == str(each), name
            assert bundle["text/html"] == each._repr_html_(), name
    latex = found["the dual"]._repr_mimebundle_()["text/latex"]
    assert latex == found["the dual"]._repr_latex_()
    assert found["problem"]._repr_mimebundle_()["text/latex"].count(found["problem"].latex()) == 1


def test_what_is_left_out_is_counted(found):
    assert "and 290 more" in found["coefficients"]._repr_html_()
    assert "and 389 more" in found["graph"]._repr_html_()
    assert "[699 rows x 7 columns]" in str(found["flows"])
    assert "699 edges" in repr(found["flows"])
