"""The order in which a round goes through the edges."""

from __future__ import annotations

import numpy as np
import pytest

import graphreg as gr
from graphreg.fast import order
from graphreg.fast.rounds import Buffers


def grid(rows, columns):
    number = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    return np.concatenate([across, np.stack([number[:-1].ravel(), number[1:].ravel()])], axis=1)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("block", [64, 2**13])
def test_a_grid_is_made_of_runs(shuffled, block, monkeypatch):
    monkeypatch.setattr(order, "BLOCK", block)
    tail, head = grid(40, 50)
    if shuffled:
        tail, head = (end[np.random.default_rng(0).permutation(len(tail))] for end in (tail, head))
    found = order.edge_order(tail, head, 2000, True)
    runs = found.runs
    assert runs is not None
    places = np.arange(len(tail)) if found.places is None else found.places
    np.testing.assert_array_equal(np.sort(places), np.arange(len(tail)))
    np.testing.assert_array_equal(found.tail, tail[places])
    np.testing.assert_array_equal(found.head, head[places])
    length = np.diff(runs.first)
    step = np.arange(len(tail)) - np.repeat(runs.first[:-1], length)
    np.testing.assert_array_equal(np.repeat(runs.tail, length) + step, found.tail)
    np.testing.assert_array_equal(np.repeat(runs.head, length) + step, found.head)
    first = runs.first[found.sweep.group]
    assert found.sweep.group[-1] == len(runs.tail)
    a_sweep_is_in_order(found, first, 2000)
    rows = np.random.default_rng(1).standard_normal((len(tail), 1))
    np.testing.assert_array_equal(found.back(found.of(rows), 1), rows)


def a_sweep_is_in_order(found, first, n):
    """Nodes are reached before their edges; and what is reached in one group, no group touches that comes more than a
    lag later."""
    sweep = found.sweep
    assert first[0] == 0
    assert first[-1] == len(found.tail)
    assert sweep.group_end[-1] == n
    ends = np.stack([found.tail, found.head])
    for g, reach in enumerate(sweep.group_end):
        assert ends[:, : first[g + 1]].max() < reach
        later = first[min(g + sweep.lag + 1, len(first) - 1)]
        assert ends[:, later:].min(initial=n) >= reach


@pytest.mark.parametrize("reach", [5, 60, 1000])
def test_lists_are_swept(reach, monkeypatch):
    """Edges are short or long, and point both ways."""
    monkeypatch.setattr(order, "BLOCK", 64)
    rng = np.random.default_rng(reach)
    tail = rng.integers(0, 1000, 3000)
    head = np.clip(tail + rng.integers(-reach, reach + 1, 3000), 0, 999)
    found = order.edge_order(tail, head, 1000, True)
    assert found.runs is None
    assert (found.sweep.lag < len(found.sweep.group_end)) or reach == 1000
    a_sweep_is_in_order(found, found.sweep.group, 1000)


def test_neighbours_are_brought_near_each_other(monkeypatch):
    monkeypatch.setattr(order, "FAR", 100)
    number = np.random.default_rng(0).permutation(2000)
    across, along = number[grid(40, 50)]

    def form(penalty=None, d=1):
        data = gr.NodeData.from_arrays(None, np.ones((2000, d)), np.arange(2000))
        graph = gr.Graph(tuple(range(2000)), across, along, np.ones(len(across)))
        return gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(graph, penalty or gr.L1())).form

    (edge,), as_it_is = form().edges, order.orders_of(form())
    found = order.near_orders(form(), as_it_is)
    np.testing.assert_array_equal(np.sort(found.nodes), np.arange(2000))
    (edges,) = found.edges
    assert np.abs(edges.tail - edges.head).mean() < 60
    np.testing.assert_array_equal(edges.tail, found.nodes[edge.tail][edges.places])
    np.testing.assert_array_equal(edges.head, found.nodes[edge.head][edges.places])
    for other in (form(gr.HuberNorm(0.1)), form(d=2)):  # which need the order of the form, or gain nothing
        as_it_is = order.orders_of(other)
        assert order.near_orders(other, as_it_is) is as_it_is


def test_short_runs_are_lists_by_tails():
    rng = np.random.default_rng(0)
    tail, head = rng.integers(0, 1000, (2, 3000))
    found = order.edge_order(tail, head, 1000, True)
    assert found.runs is None
    assert (np.diff(found.tail) >= 0).all()
    np.testing.assert_array_equal(found.head, head[found.places])


def test_arrays_are_used_again_when_nobody_holds_them():
    buffers = Buffers()
    first, second = buffers.take(7), buffers.take(7)
    assert first is not second
    seen, place = second[2:5], id(first)
    del first, second
    assert id(buffers.take(7)) == place
    held = [buffers.take(7), buffers.take(7)]
    assert not any(np.shares_memory(each, seen) for each in held)
