"""Flows routed by a guess of what is fused: from those of the moment, by what room is left, by a factor on maps."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial import Delaunay

import graphreg as gr
from graphreg.certificate import Repair, edge_system, factored
from graphreg.running import checking
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


@pytest.mark.parametrize(("strength", "agree"), [(20.0, True), (10.0, False)])
def test_that_all_agree_is_tried_far_from_the_optimum_unless_the_point_shows_that_they_do_not(
    strength, agree, monkeypatch
):
    rng, tried = np.random.default_rng(1), []
    places = rng.random((5000, 2))
    triangles = Delaunay(places).simplices
    graph = nx.Graph([(int(a), int(b)) for each in triangles for a, b in zip(each, np.roll(each, 1), strict=True)])
    y = np.where(places[:, 0] < 0.4, 1.0, -1.0) + rng.standard_normal(5000)
    near = checking.Checks._near

    def noted(self, bound, groups, w):
        tried.append((self._relative(bound) > checking.NEAR, near(self, bound, groups, w)))
        return tried[-1][1]

    monkeypatch.setattr(checking.Checks, "_near", noted)
    data = gr.NodeData.from_arrays(None, y[:, None], np.arange(5000))
    found = gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1())).solve(gr.PrimalDual())
    assert found.status == "certified"
    assert (True, agree) in tried
    assert (True, not agree) not in tried
    assert (np.ptp(found.coef) == 0.0 and found.rounds <= 40) == agree


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
