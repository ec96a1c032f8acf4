"""The rule of one standard error says where it has nothing to say."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import MethodWarning

GRID = [0.01, 0.1, 1.0, 10.0]


def counts(rule="1se"):
    """One count per district."""
    rng = np.random.default_rng(0)
    n = 20
    data = gr.NodeData.from_arrays(np.ones((n, 1)), rng.poisson(np.exp(np.linspace(0.0, 1.5, n))), np.arange(n))
    model = gr.PoissonLoss(data) + gr.Parameter(1.0, name="lam") * gr.TotalVariation(nx.path_graph(n), gr.L1())
    model += 1e-3 * gr.NodePenalty(gr.SquaredL2())
    return gr.cross_validate(gr.Problem(model), GRID, folds=4, rule=rule, refit=False)


def clear():
    """Two halves that differ far beyond the noise: to be one would cost many standard errors."""
    rng = np.random.default_rng(1)
    node = np.repeat(np.arange(6), 20)
    y = np.where(node < 3, -3.0, 3.0) + 0.1 * rng.standard_normal(120)
    data = gr.NodeData.from_arrays(np.ones((120, 1)), y, node)
    model = gr.SquaredLoss(data) + gr.Parameter(1.0, name="lam") * gr.TotalVariation(nx.path_graph(6), gr.L1())
    return gr.cross_validate(gr.Problem(model), GRID, folds=4, rule="1se", refit=False)


def test_one_count_per_district():
    with pytest.warns(MethodWarning, match="'1se' takes the strongest regularisation of the grid") as said:
        found = counts()
    assert [each.filename for each in said] == [__file__]
    assert found.one_se == {"lam": 10.0}
    assert found.best["lam"] < 10.0
    assert found.indifferent in str(found).replace("\n         ", " ")


def test_the_other_rule_says_nothing_of_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "takes the strongest" not in " ".join(counts("min").assumed)


def test_where_the_rule_says_something():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clear()
    assert not found.indifferent
    assert found.one_se["lam"] < 10.0
