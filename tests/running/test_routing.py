"""Flows routed by a guess of what is fused: from those of the moment, by what room is left, by a factor on maps."""

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import Repair, edge_system, factored
from graphreg.running.polish import Groups, contracted, guess, routed


def means(graph, strength, seed=0):
    graph = nx.convert_node_labels_to_integers(graph)
    n, rng = len(graph), np.random.default_rng(seed)
    data = gr.NodeData.from_arrays(None, rng.standard_normal((n, 1)) + (np.arange(n) < n // 2)[:, None], np.arange(n))
    return gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1()))


@pytest.mark.parametrize("strength", [8.0, 12.0, 100.0])
def test_what_merges_as_a_whole_is_certified_after_few_rounds_without_a_repair(strength, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a repair was asked for")

    monkeypatch.setattr(Repair, "__call__", never)
    found = means(nx.grid_2d_graph(30, 30), strength).solve(gr.PrimalDual(), gap=1e-9)
    assert found.status == "certified"
    assert found.rounds <= 150  # rounds alone take 400 and more
    assert np.ptp(found.coef) == 0.0


def test_flows_at_their_capacities_give_way_within_a_group():
    form = means(nx.path_graph(3), 0.01).form
    found = guess(form, Groups(np.array([0, 0, 1]), 2, True))
    assert found.fused[0].ravel().tolist() == [True, False]
    w, _ = contracted(form, form.samples[0].y.copy(), found)
    point = routed(Repair(form), found, w, (np.array([[0.01], [0.0]]),))  # the first edge is full
    assert np.abs(form.conservation(point)).max() <= 1e-9


@pytest.mark.parametrize(
    ("graph", "few"), [(nx.grid_2d_graph(40, 40), True), (nx.random_regular_graph(6, 1600, 1), False)]
)
def test_a_factor_solves_at_once_where_few_nodes_part_the_graph(graph, few):
    form = means(graph, 1.0).form
    assert factored(form) == few
    rng = np.random.default_rng(1)
    r = rng.standard_normal(form.shape)
    r -= r.mean()
    C = (rng.uniform(1e-5, 1.0, (form.edges[0].count, 1)),)
    z, iterations = edge_system(form, C).solve(r, 1e-10)
    assert (iterations <= 3) == few
    edge = form.edges[0]
    assert np.linalg.norm(edge.transposed @ (C[0] * edge.apply(z)) - r) <= (1e-9 if few else 1.0) * np.linalg.norm(r)
