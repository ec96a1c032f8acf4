"""Other problems of the same terms differ in what they should, and in nothing else."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from audit_cases import network

import graphreg as gr
from graphreg.auditing.instances import (
    frozen_problem,
    irregular,
    is_irregular,
    nearly_flat,
    reordered,
    scaled,
    with_equal_data,
    with_targets,
)

RNG = np.random.default_rng(0)


def targets_by_node(problem):
    (block,) = problem.form.samples
    labels = problem.form.labels
    return {labels[i]: block.y[block.node == i].tolist() for i in range(problem.form.n)}


@pytest.mark.parametrize("problem", [network("l2"), network("consensus")], ids=["edges", "consensus"])
def test_targets_of_one_node_change_and_of_no_other(problem):
    before, after = targets_by_node(problem), targets_by_node(with_targets(problem, 2, 1.0))
    assert [label for label in before if before[label] != after[label]] == [2]


def test_targets_that_are_classes_are_exchanged():
    data = gr.NodeData.from_dict({i: (RNG.normal(size=(6, 2)), np.arange(6) % 2) for i in range(3)})
    problem = gr.Problem(gr.LogisticLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    before, after = targets_by_node(problem), targets_by_node(with_targets(problem, 1, 1.0))
    assert after[1] == [-y for y in before[1]]
    assert after[0] == before[0]


def test_another_order_is_the_same_problem():
    problem = network("l2", isolated=True)
    other = reordered(problem, np.random.default_rng(1))
    assert other.form.labels != problem.form.labels
    assert set(other.form.labels) == set(problem.form.labels)
    assert other.solve().objective == pytest.approx(problem.solve().objective, rel=1e-6)
    assert targets_by_node(other) == targets_by_node(problem)


def test_a_regular_problem_becomes_irregular_and_stays_on_its_nodes():
    data = gr.NodeData.from_dict({i: (RNG.normal(size=(8, 2)), RNG.normal(size=8)) for i in range(9)})
    for model in (gr.TotalVariation(nx.cycle_graph(9), gr.L2()), gr.Consensus(nx.cycle_graph(9))):
        problem = gr.Problem(gr.SquaredLoss(data) + model)
        assert not is_irregular(problem)
        other = irregular(problem, np.random.default_rng(0))
        assert is_irregular(other)
        assert other.form.labels == problem.form.labels


def test_strengths_and_losses_are_scaled_where_they_may_be():
    problem = scaled(network("l2"), 1e-3, 1e3)
    (block,), (edge,) = problem.form.samples, problem.form.edges
    (first,), (second,) = network("l2").form.samples, network("l2").form.edges
    np.testing.assert_allclose(block.scale, 1e-3 * first.scale)
    np.testing.assert_allclose(edge.weight, 1e3 * second.weight)
    assert scaled(network("consensus"), 1.0, 1e3).form.edges[0].weight[0] == 1.0


def test_losses_are_flat_at_all_nodes_but_one():
    (block,), (before,) = nearly_flat(network("l2"), 4, 1e-9).form.samples, network("l2").form.samples
    share = block.scale / before.scale
    np.testing.assert_allclose(share, np.where(before.node == 4, 1.0, 1e-9))


def test_all_nodes_get_the_same_data():
    problem = with_equal_data(network("consensus"))
    by_node = list(targets_by_node(problem).values())
    assert all(each == by_node[0] for each in by_node)
    o = problem.oracles()
    assert np.ptp(o.smoothness) < 1e-12


def test_a_problem_of_its_own_has_the_strengths_of_the_moment():
    strength = gr.Parameter(0.5, name="lam")
    data = gr.NodeData.from_dict({i: (np.eye(2), np.ones(2)) for i in range(3)})
    problem = gr.Problem(gr.SquaredLoss(data) + strength * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    mine = frozen_problem(problem)
    strength.value = 3.0
    assert mine.form.edges[0].weight[0] == 0.5
