"""Arcs are those that a loop over all edges finds, and the ledger counts what it would."""

import numpy as np
import pytest

from graphreg import Problem
from graphreg.datasets.random_problems import random_problem
from graphreg.network.arcs import arcs_of, ends_of
from graphreg.network.ledger import Ledger


@pytest.mark.parametrize("seed", range(40))
def test_arcs_of_random_problems(seed):
    form = Problem(random_problem(seed).model).form
    coupled, level = {}, {}
    for edge in form.edges:
        if not edge.ground:
            for pair in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
                level.setdefault(pair, edge.role.link)
                coupled.setdefault(pair, np.zeros(form.d, dtype=bool))[edge.coordinates] = True
    pairs, arcs = sorted(coupled), arcs_of(form)
    p = len(pairs)
    assert list(zip(arcs.source[:p].tolist(), arcs.target[:p].tolist(), strict=True)) == pairs
    assert list(zip(arcs.target[p:].tolist(), arcs.source[p:].tolist(), strict=True)) == pairs
    np.testing.assert_array_equal(arcs.coupled, np.array([coupled[pair] for pair in pairs]).reshape(p, form.d))
    assert arcs.level == tuple(level[pair] for pair in pairs)
    assert arcs.numbers.tolist() == 2 * [int(coupled[pair].sum()) for pair in pairs]
    for edge, ends in zip(form.edges, ends_of(form, arcs), strict=True):
        joined = [] if edge.ground else list(zip(edge.tail.tolist(), edge.head.tolist(), strict=True))
        assert ends.tolist() == [pairs.index(pair) for pair in joined] + [p + pairs.index(pair) for pair in joined]
    ledger = Ledger(arcs, form.labels)
    ledger.exchange("method", times=3)
    assert ledger.sent() == (6 * p, 8 * 3 * int(arcs.numbers.sum()))
    rows = ledger.by_edge()
    assert rows["messages"].sum() == 6 * p
    assert rows["level"].tolist() == [level[pair] for pair in pairs] * 2
