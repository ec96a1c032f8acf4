"""A node of a consensus needs its neighbours' messages and nothing else; states can be kept."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from consensus_cases import CORRECTED, EVERY, network
from core_cases import iterate
from factories import named
from sameness import assert_identical, broken, carried, facts

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.distributed import InProcess
from graphreg.form.form import Form
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.mixing import MixingMatrix
from graphreg.network.view import LocalView, WholeGraph


def part(form, i):
    """The form of the node i as an actor: its samples, its edges, its neighbours; and their numbers in the whole."""
    touching = [np.flatnonzero((e.tail == i) | (e.head == i)) for e in form.edges]
    ends = [np.concatenate([e.tail[r], e.head[r]]) for e, r in zip(form.edges, touching, strict=True)]
    ids = np.unique(np.concatenate([[i], *ends]))
    ids = ids[ids >= 0]
    place = np.full(form.n + 1, -1)
    place[ids] = np.arange(len(ids))
    samples, edges = [], []
    for b in form.samples:
        r = np.flatnonzero(b.node == i)
        samples.append(b.part(r).moved(place, len(ids)))
    for e, r in zip(form.edges, touching, strict=True):
        edges.append(e.part(r).moved(place, len(ids)))
    labels = {form.labels[k]: n for n, k in enumerate(ids.tolist())}
    small = Form(replace(form.space, index=labels), (), tuple(samples), tuple(edges))
    return small, WholeGraph(form.n, form.n, ids, ids == i)


class Recorder(InProcess):
    """Keeps what goes through it."""

    def __init__(self, ledger):
        super().__init__(ledger)
        self.sent = []

    def exchange(self, values, along=None, *, parameters=True, purpose="method"):
        n = len(values)
        received = np.full((n, n), True)
        if along is not None:
            received = np.eye(n, dtype=bool)
            received[self.ledger.arcs.target[along], self.ledger.arcs.source[along]] = True
        self.sent.append((values.copy(), received))
        return super().exchange(values, along, parameters=parameters, purpose=purpose)

    def reduce(self, values, purpose="adaptation"):
        total = super().reduce(values, purpose)
        self.sent.append((values.copy(), total))
        return total


class Replayer:
    """Plays to one node what its neighbours sent in the run of the whole; silence is NaN. What the node itself gives
    must be what it gave there."""

    def __init__(self, whole, sent):
        self.whole, self.sent = whole, iter(sent)
        self.i = int(whole.ids[whole.own][0])

    def exchange(self, values, along=None, *, parameters=True, purpose="method"):
        present, received = next(self.sent)
        own = self.whole.own
        np.testing.assert_allclose(values[own], present[self.whole.ids[own]], rtol=1e-9, atol=1e-11)
        out = np.where(received[self.i, self.whole.ids][:, None], present[self.whole.ids], np.nan)
        out[own] = values[own]
        return out

    def reduce(self, values, purpose="adaptation"):
        present, total = next(self.sent)
        own = self.whole.own
        np.testing.assert_allclose(values[own], present[self.whole.ids[own]], rtol=1e-9, atol=1e-11)
        assert not values[~own].any()  # of neighbours nothing is known
        return total

    def away(self, nodes):
        assert nodes.shape == self.whole.own.shape


ON_PARTS = [
    gr.GradientTracking(),
    gr.GradientTracking(lazy=False, batch=2),
    gr.ExactDiffusion(),
    gr.ExactDiffusion(batch=2),
    gr.ExactDiffusion(gr.DecreasingStep(), batch=2, replacement=False),
    gr.GradientTracking(gr.DecreasingStep(alpha=1.0), batch=2, replacement=False, shuffle=False),
    gr.LocalSGD(tau=2, availability=0.6),
    gr.LocalSGD(gr.DecreasingStep(), batch=2, availability={i: 0.3 + 0.1 * i for i in range(8)}, replacement=False),
    gr.LocalSGD(batch=None, lazy=True),
]


@pytest.mark.parametrize("method", ON_PARTS, ids=lambda m: f"{m.name}-{m.batch}")
def test_a_node_needs_its_neighbours_messages_and_nothing_else(method):
    problem = network(m=24, loss=gr.LogisticLoss, ridge=0.1)
    engine = Recorder(Ledger(arcs_of(problem.form), problem.form.labels))
    state = method.init(LocalView(problem.form, engine, 4), None)
    for _ in range(10):
        state = method.step(state)
    for i in (0, 2, 5):
        form, whole = part(problem.form, i)
        own = method.init(LocalView(form, Replayer(whole, engine.sent), 4, whole), None)
        for _ in range(10):
            own = method.step(own)
        np.testing.assert_allclose(own.theta[whole.own][0], state.theta[i], rtol=1e-8, atol=1e-10)
        for name, value in method.gathered(state).items():
            mine = method.gathered(own)[name]
            if isinstance(value, np.ndarray):
                np.testing.assert_allclose(mine[whole.own][0], value[i], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", [*ON_PARTS, gr.LocalSGD(mixing=np.full((8, 8), 1 / 8))], ids=named)
def test_a_step_is_repeatable_and_its_state_can_be_kept(method, tmp_path):
    problem = network(m=24, graph=nx.complete_graph(8) if isinstance(method.mixing, MixingMatrix) else None)
    state = iterate(method, problem.form, [9])[0]
    before = replace(carried(state, tmp_path), view=state.view)
    once, again = method.step(state), method.step(state)
    assert_identical(once, again)
    assert_identical(state, before)
    assert_identical(method.step(before), once)


@pytest.mark.parametrize("method", EVERY, ids=named)
def test_a_broken_run_has_the_bits_of_an_unbroken_one(method, tmp_path):
    def problem():
        return random_problem(571).problem

    whole = problem().solve(method, gap=0, rounds=130, seed=7)
    again = broken(problem, method, tmp_path / "run", [13, 60], gap=0, rounds=130, seed=7)
    assert facts(again) == facts(whole)
    for name, value in whole.gathered.items():
        np.testing.assert_array_equal(again.gathered[name], value)


@pytest.mark.parametrize("method", EVERY, ids=named)
def test_one_node(method):
    """Nothing to mix: gradient descent."""
    graph = nx.Graph()
    graph.add_node(0)
    problem = network(n=1, graph=graph)
    found = problem.solve(method, gap=1e-8, rounds=800, seed=0)
    exact = problem.solve()
    if method in CORRECTED:
        assert found.status == "certified"
    np.testing.assert_allclose(found.coef, exact.coef, atol=0.3)
    assert found.ledger.messages["method"] == 0
