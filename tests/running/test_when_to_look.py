"""The rounds at which a run looks at its point, and what follows from a look."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.running.checking import Checks
from graphreg.running.schedule import Schedule


def after(*looks, target=1e-6):
    schedule = Schedule(target, polishes=False)
    for k, gap in looks:
        assert schedule.screen_now(k) or schedule.next_screen > k
        schedule.note_bound(k, gap)
    return schedule


def test_looks_are_rare_while_the_target_is_far_away():
    assert after((100, 1.01e-2), (110, 1e-2)).next_round() == 220
    assert after((100, 1.01e-5), (120, 1e-5)).next_round() == 140
    assert after((100, 1e-2), (110, 1e-4)).next_round() == 121  # the decay says more: half way is less than k/10


def test_a_screen_is_followed_by_one_at_half_of_its_round():
    schedule = Schedule(1e-6, polishes=False)
    schedule.note_screen(100, 1.01)
    schedule.note_screen(120, 1.0)
    assert schedule.next_round() == 180


class MergesAll(gr.PrimalDual):
    """Says of every edge that it is fused."""

    def inside_flows(self, state):
        return tuple(np.zeros(u.shape) for u in state.hat.u)


@pytest.mark.parametrize("method", [gr.PrimalDual(), MergesAll()])
def test_what_is_no_better_merged_is_not_polished(method, monkeypatch):
    n, rng, seen = 40, np.random.default_rng(0), []
    y = np.where(np.arange(n) < 20, 0.0, 3.0)[:, None] + 0.1 * rng.standard_normal((n, 1))
    data = gr.NodeData.from_arrays(None, y, np.arange(n))
    problem = gr.Problem(gr.MeanLoss(data) + 0.5 * gr.TotalVariation(nx.path_graph(n), gr.L1()))
    polish = Checks.polish
    monkeypatch.setattr(Checks, "polish", lambda self, state, k, bound: seen.append(k) or polish(self, state, k, bound))
    assert problem.solve(method, gap=1e-10).certificate.holds(1e-10)
    assert bool(seen) == (type(method) is gr.PrimalDual)
