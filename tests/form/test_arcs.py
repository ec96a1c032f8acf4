"""Arcs are those that a loop over all edges finds, and the ledger counts what it would."""

import numpy as np
import pytest

from graphreg import PrimalDual, Problem
from graphreg.datasets.random_problems import random_problem
from graphreg.network.arcs import arcs_of, ends_of
from graphreg.network.ledger import Ledger
from graphreg.running.checking import Checks


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
    each = np.array([coupled[pair] for pair in pairs]).reshape(p, form.d)
    np.testing.assert_array_equal(arcs.coupled, np.vstack([each, each]))
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


def test_exchanges_count_as_often_as_they_are_made():
    """One call for several exchanges is as many calls for one, whatever is sent and along which arcs."""
    form = Problem(random_problem(1).model).form
    arcs = arcs_of(form)
    assert arcs.pairs > 1
    along = np.arange(2 * arcs.pairs) % 2 == 0
    for columns, some in ((None, None), (3, None), (None, along), (arcs.numbers + 1, along)):
        once, each = Ledger(arcs, form.labels), Ledger(arcs, form.labels)
        once.exchange("certificate", columns, some, times=5)
        for _ in range(5):
            each.exchange("certificate", columns, some)
        sent = 2 * arcs.pairs if some is None else along.sum()
        assert once.messages == each.messages == {"method": 0, "adaptation": 0, "certificate": 5 * sent, "inference": 0}
        assert once.bytes == each.bytes
        assert once.by_edge().equals(each.by_edge())


def test_certificates_cost_as_many_exchanges_as_their_repairs_take(monkeypatch):
    calls = []
    charge = Checks._charge
    monkeypatch.setattr(Checks, "_charge", lambda self, *counts: (calls.append(counts), charge(self, *counts))[1])
    solution = Problem(random_problem(1).model).solve(PrimalDual(), rounds=60, on_failure="return")
    exchanges = sum(each for each, _ in calls)
    assert exchanges > len(calls)  # some took more than one

    assert solution.ledger.accounts["certificate"].exchanges == exchanges
