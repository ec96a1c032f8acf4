"""Attributes that are not there: the name that was probably meant, and nothing in the way of copies and notebooks."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from result_classes import given_back

import graphreg as gr
from graphreg.base.display import Suggesting


@pytest.fixture(scope="module")
def problem():
    data = gr.NodeData.from_dict({k: ([[1.0], [2.0]], [1.0, 2.0 + k]) for k in range(4)})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(4), gr.L2()))


@pytest.fixture(scope="module")
def solution(problem):
    return problem.solve()


def test_every_result_suggests_names():
    silent = [kind for kind in given_back().values() if not issubclass(kind, (Suggesting, pd.DataFrame))]
    assert not silent


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("coeff", "coef"), ("coef_", "coef"), ("certificat", "certificate"), ("iterations", "rounds")),
        *(("gap", "certificate.gap"), ("lower_bound", "certificate.dual"), ("converged", "status")),
        ("prices", "certificate.dual_point.prices"),
    ],
)
def test_the_name_that_was_meant(solution, name, meant):
    with pytest.raises(AttributeError, match=f"'Solution' object has no attribute '{name}'; did you mean '{meant}'"):
        getattr(solution, name)


def test_the_lower_bound_has_one_name(problem, solution):
    """``dual``, of certificates, records of a trace, comparisons, and in JSON (tests/cli)."""
    compared, run = gr.compare(problem, [gr.PrimalDual()]), problem.solve(gr.PrimalDual())
    assert compared.dual <= solution.objective
    for one in (compared, solution.certificate, run.trace.records[-1]):
        assert np.isfinite(one.dual)
        with pytest.raises(AttributeError, match="has no attribute 'bound'; did you mean 'dual'"):
            one.bound  # noqa: B018


def test_names_like_nothing_have_no_suggestion(solution):
    with pytest.raises(AttributeError, match=r"^'Solution' object has no attribute 'xyz'$"):
        solution.xyz  # noqa: B018


def test_copies_pickles_and_questions_go_on(solution):
    for one in (solution, solution.certificate, solution.form):
        for other in (copy.copy(one), pickle.loads(pickle.dumps(one))):
            assert type(other) is type(one)
    assert not hasattr(solution, "_ipython_display_")
    assert not hasattr(solution, "gap")
    assert getattr(solution.certificate, "lower", None) is None
    assert np.asarray(solution, dtype=object).shape == ()
    half_made = object.__new__(type(solution))  # as copies and pickles begin
    with pytest.raises(AttributeError, match="has no attribute 'certificate'"):
        half_made.certificate  # noqa: B018


def test_a_property_that_fails_says_why_by_itself():
    @dataclass
    class Broken(Suggesting):
        value: int = 1

        @property
        def twice(self):
            return self.value.nothing

    with pytest.raises(AttributeError, match="'int' object has no attribute 'nothing'"):
        Broken().twice  # noqa: B018
