"""Baselines with a bias end where their bounds stand still; what still converges, however slowly, goes on."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.running.schedule import DRAWN, FEWEST, stalled
from graphreg.running.trace import Record

N = 6


def problem(scale=1.0, seed=0):
    """Nodes of different data; ``scale`` of the second feature makes it badly conditioned."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(N), 8)
    X = rng.standard_normal((8 * N, 2)) * [1.0, scale]
    y = X[:, 0] + X[:, 1] / scale + rng.standard_normal(N)[node]
    data = gr.NodeData.from_arrays(X, y, node)
    return gr.Problem(gr.SquaredLoss(data) + gr.Consensus(nx.path_graph(N)))


@pytest.mark.parametrize(
    ("method", "most"),
    [
        (gr.FedAvg(local_steps=5), 3 * FEWEST),
        (gr.PFedMe(lam=0.5, local_steps=4), 3 * FEWEST),
        (gr.FedAvg(availability=0.5), 6 * DRAWN),
    ],
)
def test_a_biased_baseline_ends_where_it_stands_still(method, most):
    found = problem().solve(method, on_failure="return")
    assert found.status == "no_certificate"
    assert "it no longer falls" in found.message
    assert found.trace.records[-1].round <= most


def test_rounds_that_are_asked_for_are_all_run():
    found = problem().solve(gr.FedAvg(local_steps=5), rounds=5 * FEWEST, on_failure="return")
    assert found.trace.records[-1].round == 5 * FEWEST


@pytest.mark.parametrize("local_steps", [1, 2])
def test_a_badly_conditioned_one_goes_on(local_steps):
    """It nears its limit by one part in 10^6 a round: no quarter of the rounds passes without some progress."""

    def enough(record):
        if record.round > 4 * FEWEST:
            raise KeyboardInterrupt

    found = problem(scale=1e-3).solve(gr.FedAvg(local_steps=local_steps), callback=enough, on_failure="return")
    assert found.status == "interrupted"
    assert found.trace.records[-1].round > 4 * FEWEST


def course(gap, rounds):
    return [Record(k, 0.0, gap(k), False, 1.0 + gap(k)) for k in rounds]


def test_what_standing_still_is():
    rounds = np.unique(np.geomspace(10, 2 * DRAWN, 60).astype(int))
    noise = np.random.default_rng(0).uniform(0.9, 1.1, 2 * DRAWN + 1)
    last = int(rounds[-1])
    assert stalled(course(lambda k: 0.3, rounds), last, drawn=False)
    assert not stalled(course(lambda k: 0.3, rounds[rounds < FEWEST]), FEWEST - 1, drawn=False)
    assert not stalled(course(lambda k: 0.3 * (1 - 1e-13) ** (1e3 * k), rounds), last, drawn=False)
    assert stalled(course(lambda k: 0.3 * noise[k] + np.exp(-k), rounds), last, drawn=True)
    assert not stalled(course(lambda k: noise[k] / k, rounds), last, drawn=True)
    assert not stalled(course(lambda k: noise[k] * np.exp(-1e-4 * k), rounds), last, drawn=True)
    assert not stalled(course(lambda k: np.inf, rounds), last, drawn=True)
