"""strength_max beside a consensus on other coordinates: common slopes, and intercepts that vary along the edges."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.errors import MethodError
from graphreg.terms.penalties import is_equality
from graphreg.tuning.grid import ABOVE

N = 6
HALVES = nx.disjoint_union(nx.path_graph(3), nx.path_graph(3))
GRAPHS = {"path": nx.path_graph(N), "cycle": nx.cycle_graph(N), "two parts": HALVES}


def spatial(graph, loss=gr.SquaredLoss, common=None, norm=("level",), seed=0):
    """``common`` is a term that holds both slopes; a Consensus by default."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(N), 8)
    X = np.column_stack([np.ones(8 * N), rng.standard_normal((8 * N, 2))])
    link = X @ [0.0, 1.0, -1.0] + np.repeat(rng.standard_normal(N), 8) + 0.3 * rng.standard_normal(8 * N)
    y = link if loss is gr.SquaredLoss else (link > 0).astype(float)
    data = gr.NodeData.from_arrays(X, y, node, features=["level", "a", "b"])
    lam = gr.Parameter(1.0, name="lam")
    model = loss(data) + lam * gr.TotalVariation(graph, gr.L1(), features=list(norm))
    model += common or gr.Consensus(nx.path_graph(N), features=["a", "b"])
    return gr.Problem(model + 0.01 * gr.NodePenalty(gr.SquaredL2())), lam


def spread(problem, lam, strength):
    """The largest difference of intercepts within a component of their graph, at an exact optimum."""
    lam.value = strength
    w = problem.solve(gr.Exact(), gap=1e-9, on_failure="return").coef[:, 0]
    edges = next(e for e in problem.form.edges if not e.ground and not is_equality(e.penalty, problem.form.width(e)))
    return float(np.abs(w[edges.tail] - w[edges.head]).max())


@pytest.mark.parametrize(("loss", "graph"), thinned([gr.SquaredLoss, gr.LogisticLoss], GRAPHS, every=2))
def test_it_is_where_bisection_ends(graph, loss):
    problem, lam = spatial(GRAPHS[graph], loss=loss)
    found = gr.strength_max(problem)
    assert found.upper <= found.lower * (1 + 1e-6)
    low, high = 0.5 * found.value, 2.0 * found.value
    assert spread(problem, lam, high) < 1e-6 < spread(problem, lam, low)
    for _ in range(9):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if spread(problem, lam, middle) < 1e-6 else (middle, high)
    assert low * (1 - 1e-3) <= found.value <= high * (1 + 1e-3)
    assert high / low < 1.01


@pytest.mark.parametrize("graph", GRAPHS)
def test_both_bounds_are_proved(graph):
    problem, lam = spatial(GRAPHS[graph], common=gr.Consensus(nx.complete_graph(N), features=["a", "b"]))
    found = gr.strength_max(problem)
    assert found.certificate(1.0).holds(1e-9)
    better = found.better(0.99)
    assert better.decrease > 0
    lam.value = better.strength
    pooled = found.consensus.coef
    assert problem.value(better.coef) < problem.value(pooled)
    assert np.ptp(pooled[:, 1:], axis=0).max() == 0.0


def test_a_consensus_whose_parts_are_others_than_those_of_the_norm():
    """Slopes agree within two halves; intercepts along one path through both."""
    problem, _ = spatial(GRAPHS["path"], common=gr.TotalVariation(HALVES, gr.Zero(), features=["a", "b"]))
    found = gr.strength_max(problem)
    slopes = found.consensus.coef[:, 1:]
    assert np.ptp(slopes[:3], axis=0).max() == np.ptp(slopes[3:], axis=0).max() == 0.0
    assert np.abs(slopes[0] - slopes[5]).max() > 0
    assert found.certificate(1.0).holds(1e-9)


def test_there_is_a_grid_by_default():
    problem, _ = spatial(GRAPHS["cycle"])
    path = gr.path(problem, 4)
    most = gr.strength_max(problem)
    assert most.lower <= max(path.solutions) <= most.upper / (1.0 - ABOVE)
    assert all(each.status == "certified" for each in path)


def test_a_consensus_on_the_coordinates_of_the_norm_is_refused():
    problem, _ = spatial(GRAPHS["path"], norm=("level", "a"))
    with pytest.raises(MethodError, match="only be an equality on coordinates that the norm does not act on"):
        gr.strength_max(problem)
