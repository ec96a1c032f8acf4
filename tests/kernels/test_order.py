"""The order in which a round goes through the edges."""

from __future__ import annotations

import numpy as np
import pytest

from graphreg.kernels import order
from graphreg.kernels.buffers import Buffers


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
    for g, reach in enumerate(runs.reach):
        edges = slice(runs.first[0], runs.first[runs.group[g + 1]])
        assert max(found.tail[edges].max(), found.head[edges].max()) < reach
    assert runs.group[0] == 0
    assert runs.group[-1] == len(runs.tail)
    assert runs.reach[-1] == 2000
    rows = np.random.default_rng(1).standard_normal((len(tail), 1))
    np.testing.assert_array_equal(found.back(found.of(rows), 1), rows)


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
