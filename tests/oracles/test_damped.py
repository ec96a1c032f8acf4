"""Newton's method, of all nodes at once and of one problem; rows taken at a time; what edges join."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.inputs import components_of
from graphreg.oracles.damped import minimiser, minimisers
from graphreg.oracles.gradients import NodeGradients
from graphreg.terms.padding import at_a_time, block_diagonal


def solve(H, g, left):
    return np.linalg.solve(H + 1e-12 * np.eye(H.shape[1]), g[:, :, None])[:, :, 0]


def losses_of(y, X):
    """Logistic losses on two nodes with the same samples, and a third node without any."""
    data = gr.NodeData.from_dict({0: (X, y), 1: (X, y)})
    ridge = 1e-3 * gr.NodePenalty(gr.SquaredL2(), weights=dict.fromkeys(range(3), 1.0))
    return NodeGradients(gr.Problem(gr.LogisticLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L2()) + ridge).form)


def test_every_node_comes_to_its_own_minimum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    gradients = losses_of((X[:, 0] + rng.standard_normal(30) > 0).astype(float), X)
    start = np.array([[0.0, 0.0], [40.0, -40.0], [5.0, 5.0]])  # from the second a full step would overshoot
    w, found = minimisers(gradients, start, solve, 1e-13)
    assert found.all()
    assert np.abs(gradients.full(w)).max() < 1e-9
    assert np.allclose(w[0], w[1], atol=1e-9)


def test_a_problem_is_minimised_or_said_not_to_be():
    def value(x):
        return float(np.sqrt(1.0 + x @ x))  # a full step from beyond 1 diverges

    def step(x):
        r = value(x)
        g, H = x / r, np.eye(len(x)) / r - np.outer(x, x) / r**3
        move = np.linalg.solve(H, g)
        return move, float(g @ move)

    x, reached, _ = minimiser(value, step, np.array([3.0, -4.0]), settled=1e-13, shortest=1e-10)
    assert reached
    assert np.abs(x).max() < 1e-6
    line = np.ones(2)
    assert minimiser(lambda x: float(x @ line), lambda x: (line, np.nan), line, settled=0.0, shortest=1e-3)[1] is False
    assert minimiser(lambda x: 1.0, lambda x: (line, 1.0), line, settled=0.0, shortest=1e-3)[1] is False


@pytest.mark.parametrize(("rows", "length"), [(3, 10), (0, 4), (10, 10), (7, 0)])
def test_rows_are_taken_once_each(rows, length):
    taken = [np.arange(length)[some] for some in at_a_time(rows, length)]
    assert np.array_equal(np.concatenate([np.zeros(0, int), *taken]), np.arange(length))
    assert all(len(each) <= max(rows, 1) for each in taken)


def test_blocks_on_a_diagonal():
    blocks = np.arange(18.0).reshape(2, 3, 3)
    whole = block_diagonal(blocks).toarray()
    assert np.array_equal(whole[:3, :3], blocks[0])
    assert np.array_equal(whole[3:, 3:], blocks[1])
    assert not whole[:3, 3:].any()


def test_components_of_edges():
    count, member = components_of(np.array([0, 3]), np.array([1, 4]), 6)
    assert count == 4
    assert member[0] == member[1]
    assert member[3] == member[4]
    assert len({member[k] for k in (0, 2, 3, 5)}) == 4
