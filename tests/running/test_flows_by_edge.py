"""Flows are found by edge among arrays, as a loop over all edges of all terms would add them up."""

import networkx as nx
import numpy as np
import pytest
from factories import noise, thinned

import graphreg as gr
from graphreg.datasets.random_problems import random_problem


def added_up(solution):
    form, out = solution.form, {}
    for edge, u in zip(form.edges, solution.certificate.dual_point.flows, strict=True):
        for e, (tail, head) in enumerate(zip(edge.tail, edge.head, strict=True)):
            pair = form.labels[tail], None if edge.ground else form.labels[head]
            out.setdefault(pair, np.zeros(form.d))[edge.coordinates] += u[e]
    return out


def check(solution):
    wanted, flows = added_up(solution), solution.flows
    assert list(flows) == list(wanted)
    assert len(flows) == len(wanted)
    for (tail, head), flow in wanted.items():
        np.testing.assert_array_equal(flows[tail, head], flow)
        np.testing.assert_array_equal(flows[head, tail], -flow)
        assert (tail, head) in flows
    table = flows.table()
    ends = [
        pair for edge, u in zip(solution.form.edges, flows._blocks, strict=True) for pair in ends_of(solution, edge)
    ]
    assert list(zip(table["tail"], table["head"], strict=True)) == ends


def ends_of(solution, edge):
    labels = solution.form.labels
    return [(labels[t], None if edge.ground else labels[h]) for t, h in zip(edge.tail, edge.head, strict=True)]


@pytest.mark.parametrize("seed", thinned(range(25), every=3))
def test_flows_of_random_problems(seed):
    solution = random_problem(seed).problem.solve(gr.PrimalDual(), gap=0, rounds=4, on_failure="return")
    check(solution)


def test_flows_of_several_terms_on_the_same_edges():
    data, graph = noise(n=9, d=3), nx.random_regular_graph(4, 9, seed=1)
    clusters = {"left": [0, 1, 2, 3], "right": [4, 5, 6, 7, 8]}
    terms = (
        0.3 * gr.TotalVariation(graph, gr.L1(), features=["x2", "x0"])
        + 0.2 * gr.TotalVariation(graph.subgraph([*range(6)]), gr.L2())
        + 0.1 * gr.NodePenalty(gr.L1())
        + gr.Hierarchy(clusters, [0.5, 0.5])
    )
    solution = gr.Problem(gr.SquaredLoss(data) + terms).solve(gr.PrimalDual(), gap=0, rounds=20)
    check(solution)
    for wrong in ((0, 0), (0, 99), ("left", 7), (None, None), (0, 1, 2), 0, "01", (0, "1")):
        assert wrong not in solution.flows
        with pytest.raises(gr.errors.MissingError, match="is not an edge of the problem"):
            solution.flows[wrong]


def test_the_capacity_of_flows_of_which_nothing_is_used():
    """1e-130 of flows whose conjugate is finite everywhere; the square of their length is 0 in floats."""
    data = gr.NodeData.from_arrays(None, np.array([[0.0, 1e-130], [0.0, 3e-130]]), ["a", "b"])
    edges = 1e-70 * gr.TotalVariation(nx.Graph([("a", "b")]), gr.SquaredL2())
    table = gr.Problem(gr.MeanLoss(data) + edges).solve(gr.PrimalDual(), rounds=10, on_failure="return").flows.table()
    assert table["capacity"].tolist() == [np.inf]
