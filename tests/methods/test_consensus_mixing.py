"""The mixing of a consensus: matrices from the graph and given ones, and which are refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from consensus_cases import network
from core_cases import view_of

import graphreg as gr
from graphreg.network.mixing import largest, mixing_of, spectral_gap

FIGURE_2 = np.array(
    [
        [11 / 20, 1 / 5, 0, 0, 1 / 4, 0],
        [1 / 5, 1 / 5, 1 / 5, 0, 1 / 5, 1 / 5],
        [0, 1 / 5, 3 / 10, 1 / 4, 0, 1 / 4],
        [0, 0, 1 / 4, 1 / 4, 1 / 4, 1 / 4],
        [1 / 4, 1 / 5, 0, 1 / 4, 3 / 10, 0],
        [0, 1 / 5, 1 / 4, 1 / 4, 0, 3 / 10],
    ]
)
SLIDES = nx.Graph([(1, 2), (1, 5), (2, 3), (2, 5), (2, 6), (3, 4), (3, 6), (4, 5), (4, 6)])


def slides():
    data = gr.NodeData.from_arrays(np.zeros((6, 1)), np.zeros(6), np.arange(1, 7))
    graph = nx.Graph()
    graph.add_nodes_from(range(1, 7))
    graph.add_edges_from(SLIDES.edges)
    return gr.Problem(gr.SquaredLoss(data) + gr.Consensus(graph))


def test_metropolis_and_hastings_is_the_matrix_of_figure_2():
    view = view_of(slides().form)
    mixing = mixing_of(view, "metropolis", lazy=False)
    np.testing.assert_allclose(mixing.matrix(view.form), FIGURE_2, atol=1e-15)
    assert view.engine.ledger.bytes["adaptation"] == 2 * 9 * 8  # one number each way
    lazy = mixing_of(view, "metropolis", lazy=True).matrix(view.form)
    np.testing.assert_allclose(lazy, (FIGURE_2 + np.eye(6)) / 2, atol=1e-15)
    values = np.sort(np.abs(np.linalg.eigvals(FIGURE_2)))
    assert spectral_gap(FIGURE_2) == pytest.approx(1 - values[-2])


def test_the_gap_of_a_star_is_one_over_twice_its_nodes():
    """The note on Table 1: with the lazy matrix, exactly."""
    for n in (5, 20):
        problem = network(n=n, graph=nx.star_graph(n - 1))
        mixing = mixing_of(view_of(problem.form), "metropolis", lazy=True)
        assert spectral_gap(mixing.matrix(problem.form)) == pytest.approx(1 / (2 * n))


def test_mixing_is_a_product_with_its_matrix():
    form = network().form
    rng = np.random.default_rng(0)
    w, answers = rng.standard_normal(form.shape), rng.random(form.n) < 0.6
    mixing = mixing_of(view_of(form), "metropolis", lazy=False)
    C = mixing.matrix(form)
    np.testing.assert_allclose(mixing.apply(form, w), C @ w, atol=1e-14)
    received = C * np.outer(answers, answers) * (1 - np.eye(form.n))
    received += np.diag(1 - received.sum(axis=1))
    blind = np.where(answers[:, None], w, np.nan)
    np.testing.assert_allclose(mixing.apply(form, w, answers), received @ w, atol=1e-14)
    assert np.isfinite(mixing.apply(form, blind, answers)[answers]).all()  # nothing is taken from who is silent


def test_several_edges_of_a_pair_share_its_weight():
    graph = nx.circulant_graph(8, [1, 2])
    problem = network(graph=graph)
    twice = gr.Problem(problem.model + gr.Consensus(nx.cycle_graph(8)))
    one, two = (mixing_of(view_of(p.form), "metropolis", False).matrix(p.form) for p in (problem, twice))
    np.testing.assert_allclose(one, two, atol=1e-15)


@pytest.mark.parametrize("given", ["array", "frame", "mapping"])
def test_a_given_matrix(given):
    problem = slides()
    order = [3, 1, 6, 2, 5, 4]
    frame = pd.DataFrame(FIGURE_2, index=range(1, 7), columns=range(1, 7)).loc[order, order[::-1]]
    rows = {i: {j: FIGURE_2[i - 1, j - 1] for j in range(1, 7) if FIGURE_2[i - 1, j - 1]} for i in order}
    method = gr.GradientTracking(mixing={"array": FIGURE_2, "frame": frame, "mapping": rows}[given], lazy=False)
    assert not method.missing(problem.form)
    mixing = mixing_of(view_of(problem.form), method.mixing, lazy=False)
    np.testing.assert_allclose(mixing.matrix(problem.form), FIGURE_2, atol=1e-15)


def changed(*entries):
    out = FIGURE_2.copy()
    for i, j, value in entries:
        out[i, j] = value
    return out


WRONG = {
    "size": (np.eye(5), "of 5 nodes, and the problem has 6"),
    "labels": (pd.DataFrame(FIGURE_2, list("abcdef"), list("abcdef")), "row for 'a', which is not a node"),
    "nan": (changed((1, 2, np.nan)), r"not finite at \(2, 3\)"),
    "negative": (changed((0, 1, -0.2), (1, 0, -0.2), (0, 0, 0.95), (1, 1, 0.6)), r"negative: -0.2 at \(1, 2\)"),
    "asymmetric": (changed((0, 1, 0.3), (0, 0, 0.45)), r"not symmetric: 0.3 at \(1, 2\), 0.2 at \(2, 1\)"),
    "sums": (changed((3, 3, 0.3)), "row of 4 in the mixing matrix sums to 1.05, not to 1"),
    "off the graph": (
        changed((0, 2, 0.1), (2, 0, 0.1), (0, 0, 0.45), (2, 2, 0.2)),
        r"0.1 at \(1, 3\), which have no edge",
    ),
    "edge without weight": (
        changed((0, 1, 0), (1, 0, 0), (0, 0, 0.75), (1, 1, 0.4)),
        r"0 at the edge \(1, 2\) of the communication graph; leave",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("method", [gr.LocalSGD, gr.GradientTracking, gr.ExactDiffusion])
def test_a_wrong_matrix_names_the_nodes(case, method):
    matrix, said = WRONG[case]
    with pytest.raises(gr.errors.MethodError, match=said) as caught:
        slides().solve(method(mixing=matrix))
    assert len(caught.value.missing) == 1


@pytest.mark.parametrize("mixing", ["metropolitan", np.ones(4), np.ones((2, 3)), None, [["a"]], {1: 2}, {1: {2: 0.5}}])
def test_what_is_no_matrix(mixing):
    with pytest.raises(gr.errors.MethodError, match="mixing of LocalSGD"):
        gr.LocalSGD(mixing=mixing)
    with pytest.raises(gr.errors.MethodError, match="same labels"):
        gr.LocalSGD(mixing=pd.DataFrame(np.eye(2), ["a", "b"], ["a", "c"]))


def test_a_matrix_that_swings_for_ever_is_refused():
    """Two nodes that swap their values: the eigenvalue -1."""
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    problem = network(n=2, graph=nx.path_graph(2))
    with pytest.raises(gr.errors.MethodError, match=r"eigenvalue -1.*lazy=True"):
        problem.solve(gr.LocalSGD(mixing=swap))
    for method in (gr.GradientTracking(mixing=swap), gr.ExactDiffusion(mixing=swap)):
        assert problem.solve(method, gap=1e-8).status == "certified"


def test_a_maximum_from_sums():
    view = view_of(network(n=40, graph=nx.cycle_graph(40)).form)
    rng = np.random.default_rng(0)
    for values in (np.ones(40), rng.random(40) * 1e200, np.exp(30 * rng.standard_normal(40)), np.eye(40)[3] * 1e-200):
        assert values.max() <= largest(view, values) * (1 + 1e-12) <= values.max() * 40 ** (1 / 512) * (1 + 1e-9)
    assert largest(view, np.zeros(40)) == 0.0
    assert largest(view, np.where(values > 0, np.inf, 1.0)) == np.inf
