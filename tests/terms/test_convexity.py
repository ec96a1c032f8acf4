"""Moduli of strong convexity are lower bounds of the exact Hessian's smallest eigenvalue: judged in rationals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import convexity
from graphreg.certificate.convexity import group_convexity, node_convexity, strong_convexity

flint = pytest.importorskip("flint")


def rational(x):
    numerator, denominator = Fraction(float(x)).as_integer_ratio()
    return flint.fmpq(numerator, denominator)


def hessian(form, nodes=None):
    """X'MX + K'CK of squared losses and squared penalties, as rationals; of some nodes alone, summed, if given."""
    d, n = form.d, form.n
    size = d if nodes is not None else n * d
    H = [[flint.fmpq(0)] * size for _ in range(size)]
    for block in form.samples:
        X = np.ones((len(block.node), 1)) if block.X is None else block.X
        for i, x, s in zip(block.node, X, block.scale, strict=True):
            if nodes is not None and i not in nodes:
                continue
            at = 0 if nodes is not None else i * d
            for j in range(d):
                for k in range(d):
                    H[at + j][at + k] += rational(s) * rational(x[j]) * rational(x[k])
    for edge in form.edges:
        if not isinstance(edge.penalty, gr.SquaredL2):
            continue
        columns = range(d) if edge.features is None else edge.features
        for t, h, c in zip(edge.tail, edge.head, edge.weight, strict=True):
            if nodes is not None and not (edge.ground and t in nodes):
                continue
            for j in columns:
                a, b, c_ = (j, None, rational(c)) if nodes is not None else (t * d + j, h * d + j, rational(c))
                H[a][a] += c_
                if not edge.ground:
                    H[b][b] += c_
                    H[a][b] -= c_
                    H[b][a] -= c_
    return H


def definite(H, mu):
    """True where H - mu I is positive definite: Gauss in rationals, on rows that stay short."""
    H, size, mu = [{j: x for j, x in enumerate(row) if x} for row in H], len(H), rational(mu)
    for i in range(size):
        pivot = H[i].get(i, flint.fmpq(0)) - mu
        if not pivot > 0:
            return False
        row = {j: x for j, x in H[i].items() if j > i}
        for k, x in row.items():
            factor = x / pivot
            for j, y in row.items():
                H[k][j] = H[k].get(j, flint.fmpq(0)) - factor * y
    return True


def judged(form, mu, tight, nodes=None):
    H = hessian(form, nodes)
    assert mu == 0 or definite(H, mu)
    if tight:
        assert mu > 0
        assert not definite(H, 1.001 * mu)


def drawn(rng, n, d, m, decades, ridge, tv=True):
    X = rng.standard_normal((n * m, d)) * 10.0 ** rng.uniform(-decades, decades, d)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, rng.standard_normal(n * m), np.repeat(np.arange(n), m)))
    graph = nx.path_graph(n)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = 10.0 ** rng.uniform(-1, 1)
    model = loss + 0.3 * gr.TotalVariation(graph, gr.SquaredL2() if tv else gr.L2())
    return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) if ridge else model).form


@pytest.mark.parametrize("seed", range(12))
def test_of_wild_columns(seed):
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    form = drawn(rng, n, d, m, decades=(0.0, 3.0, 6.0)[seed % 3], ridge=(0.0, 1e-3)[seed % 2])
    judged(form, strong_convexity(form), tight=n * m >= 2 * d + 2 and seed % 3 < 2)
    for i, mu in enumerate(node_convexity(form)):
        judged(form, float(mu), tight=m > d + 1 and seed % 3 < 2, nodes={i})
    member = np.where(np.arange(n) < 2, 0, -1)
    judged(form, float(group_convexity(form, member, 1)[0]), tight=2 * m > d + 1 and seed % 3 < 2, nodes={0, 1})


@pytest.mark.parametrize("seed", range(6))
def test_near_collinear_columns_claim_nothing_false(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(12)
    X = np.stack([x, x * (1 + 10.0 ** -(6 + seed) * rng.standard_normal(12))], axis=1)
    data = gr.NodeData.from_arrays(X, x, np.repeat([0, 1], 6))
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(2), gr.L2())).form
    judged(form, strong_convexity(form), tight=False)
    assert seed > 0 or strong_convexity(form) > 0  # beyond, rounding decides


@pytest.mark.parametrize("seed", range(4))
def test_the_sparse_and_the_dense_way_agree(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    form = drawn(rng, 30, 2, 1, decades=1.0, ridge=0.0)  # no node is strongly convex alone
    dense = strong_convexity(form)
    monkeypatch.setattr(convexity, "DENSE", 0)
    sparse = strong_convexity(replace(form))  # a copy that remembers nothing
    assert sparse == pytest.approx(dense, rel=1e-3)
    judged(form, sparse, tight=True)


def test_moduli_are_found_once_along_a_path(monkeypatch):
    """No strength of a penalty between nodes changes those of the nodes; one of losses or node penalties does."""
    calls, least = [], convexity.least_of_stack
    monkeypatch.setattr(convexity, "least_of_stack", lambda A, share: calls.append(len(A)) or least(A, share))
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((12, 2)), rng.standard_normal(12), np.repeat([0, 1, 2], 4))
    factor, lam, ridge = (gr.Parameter(1.0, name=name) for name in ("factor", "lam", "ridge"))
    tied = lam * gr.TotalVariation(nx.path_graph(3), gr.SquaredL2())
    problem = gr.Problem(factor * gr.SquaredLoss(data) + tied + ridge * gr.NodePenalty(gr.SquaredL2()))

    def moduli():
        form = problem.form.frozen()
        found = node_convexity(form), strong_convexity(form)
        anew = replace(form)
        assert np.array_equal(found[0], group_convexity(anew, np.arange(3), 3))
        assert found[1] == strong_convexity(anew)
        return len(calls) - 2, calls.clear()

    assert moduli()[0] == 2
    assert moduli()[0] == 0
    lam.value = 5.0
    assert moduli()[0] == 1  # of the whole, as the penalty is curved
    factor.value = 3.0
    assert moduli()[0] == 2
    ridge.value = 0.1
    assert moduli()[0] == 2


def test_a_long_chain_with_data_at_its_ends():
    """n d > 600 without a ridge: the smallest eigenvalue is that of one mode along the chain."""
    n = 700
    data = gr.NodeData.from_arrays(None, [0.0, 1.0], [0, n - 1])
    form = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(n), gr.SquaredL2())).form
    mu = strong_convexity(form)
    assert mu > 0
    H = hessian(form)
    assert definite(H, mu)
    assert not definite(H, 1.001 * mu)


def test_singular_ones_have_none():
    rng = np.random.default_rng(0)
    for n in (3, 700):
        data = gr.NodeData.from_arrays(rng.standard_normal((n, 2)), np.zeros(n), np.arange(n))
        form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(n), gr.L2())).form
        assert strong_convexity(form) == 0.0


def test_latent_nodes_and_ground_edges_count():
    data = gr.NodeData.from_arrays(None, np.arange(4.0), np.arange(4))
    model = gr.MeanLoss(data) + gr.Hierarchy({0: "a", 1: "a", 2: "b", 3: "b"}, weights=(1.0, 0.5))
    form = gr.Problem(model).form
    judged(form, strong_convexity(form), tight=True)
    bare = gr.Problem(
        gr.LogisticLoss(gr.NodeData.from_arrays(np.ones((2, 1)), [0, 1], [0, 1]))
        + 0.25 * gr.NodePenalty(gr.SquaredL2())
    ).form
    assert 0.2499 < strong_convexity(bare) <= 0.25
