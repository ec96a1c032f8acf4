"""Devices that differ: batches and numbers of steps of each node's own, in federated averaging and in gossip."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from baseline_cases import N, chain, data_of
from consensus_cases import network
from core_cases import view_of

import graphreg as gr
from graphreg.errors import MethodError
from graphreg.network import Streams

BATCH = {i: 1 + i % 4 for i in range(N)}
STEPS = {i: 1 + i % 3 for i in range(N)}
PLAIN = {"batch": 3, "local_steps": 2}


def batch_gradient(i, w, t, size):
    """Of the mean loss of node i, by the samples that the node's own stream draws."""
    data = data_of()
    X, y = data.X[data.node == i], np.asarray(data.y)[data.node == i]
    uniform = Streams(0, "samples", range(N)).uniform(t, max(BATCH.values()))[i, :size]
    rows = (uniform * len(y)).astype(int)
    return X[rows].T @ (X[rows] @ w - y[rows]) / size


def states(method, rounds):
    form = method.target(chain().form)
    out = [method.iteration.init(view_of(form), None)]
    for _ in range(rounds):
        out.append(method.iteration.step(out[-1]))
    return out


def test_every_client_takes_its_own_batch_and_its_own_number_of_steps():
    run = states(gr.FedAvg(batch=BATCH, local_steps=STEPS), 4)
    eta, x = run[0].step_size[0], np.zeros(3)
    for t in range(4):
        own = []
        for i in range(N):
            w = x
            for k in range(STEPS[i]):
                w = w - eta * batch_gradient(i, w, 3 * t + k, BATCH[i])
            own.append(w)
        x = np.mean(own, axis=0)
        np.testing.assert_allclose(run[t + 1].w, np.tile(x, (N + 1, 1)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "make", [gr.FedAvg, gr.SCAFFOLD, lambda **o: gr.FedProx(1.0, **o), lambda **o: gr.Ditto(1.0, **o)]
)
def test_equal_devices_are_those_of_one_number(make):
    one = make(**PLAIN)
    each = make(**{name: dict.fromkeys(range(N), value) for name, value in PLAIN.items()})
    a, b = (chain().solve(method, gap=0, rounds=5, seed=1) for method in (one, each))
    np.testing.assert_array_equal(a.coef, b.coef)


def test_unequal_steps_lead_federated_averaging_astray_and_scaffold_not():
    problem = chain()
    fast = {i: 6 if i % 2 else 1 for i in range(N)}  # of one of two clusters
    pooled = problem.solve(gr.Pooled(), gap=1e-12).coef[0]
    far = {
        method.name: np.abs(problem.solve(method, gap=1e-9, rounds=400).coef[0] - pooled).max()
        for method in (gr.FedAvg(local_steps=fast), gr.SCAFFOLD(local_steps=fast))
    }
    even = np.abs(problem.solve(gr.FedAvg(local_steps=6), gap=0, rounds=400).coef[0] - pooled).max()
    assert far["SCAFFOLD"] < 1e-4 < even < far["FedAvg"]


@pytest.mark.parametrize("replacement", [True, False])
def test_gossip_takes_batches_of_each_nodes_own(replacement):
    problem = network(n=6, m=9)
    batch = {i: 1 + i % 3 for i in range(6)}
    options = {"step_size": 0.001, "replacement": replacement, "shuffle": False}
    method = gr.LocalSGD(batch=batch, **options)
    view = view_of(problem.form)
    state = method.init(view, None)
    block, theta = problem.form.samples[0], np.zeros((6, 2))
    for t in range(3):
        G = np.zeros((6, 2))
        for i in range(6):
            X, y = block.X[block.node == i], block.y[block.node == i]
            rows = [(t * batch[i] + j) % 9 for j in range(batch[i])]
            if replacement:
                rows = (Streams(0, "samples", range(6)).uniform(t, 3)[i, : batch[i]] * 9).astype(int)
            G[i] = X[rows].T @ (X[rows] @ theta[i] - y[rows]) / batch[i]
        state = method.step(state)
        theta = state.mixing.apply(problem.form, theta - 0.001 * 6 * G)
        np.testing.assert_allclose(state.theta, theta, rtol=1e-12, atol=1e-15)
    found = method.gathered(state)
    np.testing.assert_array_equal(found["batch"], list(batch.values()))
    np.testing.assert_allclose(found["passes"], 3 * found["batch"] / 9)
    if not replacement:  # the node that takes three at a time has seen all of its nine
        X = block.X[block.node == 2]
        np.testing.assert_allclose(found["hessian"][2], X.T @ X / 9, rtol=1e-12)
    two = method.gathered(method.step(method.init(view, None)))["hessian"][1]  # from two samples
    assert np.linalg.matrix_rank(two) == 2


def test_slow_nodes_wait_for_the_gossip():
    problem = network(n=6, m=8)
    tau = {i: 1 + i % 3 for i in range(6)}
    method = gr.LocalSGD(0.002, batch=None, tau=tau)
    state = method.init(view_of(problem.form), None)
    for t in range(7):
        before, state = state, method.step(state)
        moved = state.theta if (t + 1) % 3 else None
        if moved is not None:
            still = np.array([t % 3 >= tau[i] for i in range(6)])
            np.testing.assert_array_equal(moved[still], before.theta[still])
            assert (moved[~still] != before.theta[~still]).any(axis=1).all()
    run = problem.solve(method, gap=0, rounds=9)
    assert run.ledger.messages["method"] == 3 * 2 * problem.form.edges[0].count
    assert set(run.gathered) == {"steps", "burn_in", "mean"}
    with pytest.raises(MethodError, match="has no moments of gradients"):
        gr.inference.confidence_region(run)


def test_regions_are_made_of_unequal_batches():
    problem = network(n=6, m=60)
    method = gr.ExactDiffusion(gr.DecreasingStep(), batch={i: 1 + i % 2 for i in range(6)})
    found = gr.inference.estimate(problem, method=method, rounds=300, seed=0)
    best = problem.solve(gap=1e-9).coef[0]
    assert np.abs(found.estimate - best).max() < 0.5
    assert np.isfinite(found.covariance).all().all()
    assert "nodes with 1 to 2 samples each" in str(found.assumed)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (gr.FedAvg(batch={0: 1}), "batch has no entry for the node 1"),
        (gr.FedAvg(local_steps={**STEPS, "x": 1}), "local_steps name 'x'"),
    ],
)
def test_labels_must_match(method, said):
    with pytest.raises(MethodError, match=said):
        chain().solve(method)
    shared = gr.Problem(gr.SquaredLoss(data_of()) + gr.Consensus(nx.cycle_graph(N)))
    for wrong in ({"batch": {0: 1}}, {"tau": {0: 1}}):
        with pytest.raises(MethodError, match="has no entry for the node 1"):
            shared.solve(gr.LocalSGD(**wrong))
    with pytest.raises(MethodError, match=r"FedAvg\(batch=...\) of the node 1"):
        gr.FedAvg(batch={0: 1, 1: 0})


def test_actors_go_the_same_way():
    for problem, method in (
        (chain(), gr.FedAvg(batch=BATCH, local_steps=STEPS)),
        (network(n=12, m=8, graph=nx.cycle_graph(12)), gr.LocalSGD(batch=BATCH, tau=STEPS)),
    ):
        arrays, actors = (problem.solve(method, gap=0, rounds=6, seed=2, engine=e) for e in (None, gr.Actors()))
        np.testing.assert_allclose(actors.coef, arrays.coef, atol=1e-12 * np.abs(arrays.coef).max())
