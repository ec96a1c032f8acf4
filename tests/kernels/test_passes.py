"""Compiled passes of a look say what arrays say: with numba, and as the plain Python that is compiled."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import graphreg as gr
from graphreg import fast as kernels
from graphreg.certificate.proposing.flow_dual import FlowDual
from graphreg.fast import compiler, edge_passes, group_means
from graphreg.network import fast
from graphreg.running.polish import groups_of_flows

WITH_NUMBA = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


@pytest.fixture(params=["python", pytest.param("numba", marks=WITH_NUMBA)])
def forced(request, monkeypatch):
    monkeypatch.setattr(fast, "offered", lambda: kernels)
    if request.param == "python":
        monkeypatch.setattr(compiler, "compiles", lambda: False)
    compiler.compiled.cache_clear()
    compiler.specialised.cache_clear()
    yield request.param
    compiler.compiled.cache_clear()
    compiler.specialised.cache_clear()


def graph(n=30, m=70, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n) for j in range(i)])
    edges = pairs[rng.permutation(len(pairs))[:m]]
    return gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], 10.0 ** rng.uniform(-1, 1, m))


def tied(*penalties):
    return sum((0.3 * gr.TotalVariation(graph(seed=k), each) for k, each in enumerate(penalties)), start=0)


def regression(d, samples=8, n=30):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((n * samples, d))
    return gr.SquaredLoss(gr.NodeData.from_arrays(X, rng.standard_normal(len(X)), np.repeat(np.arange(n), samples)))


def means(d, n=30):
    return gr.MeanLoss(gr.NodeData.from_arrays(None, np.random.default_rng(d).standard_normal((n, d)), np.arange(n)))


CENTRE = gr.NodePenalty(gr.L1(), center=[0.5, -0.5, 0.25])
MODELS = {
    "means, l1": lambda: means(1) + tied(gr.L1()),
    "means, l2": lambda: means(1) + tied(gr.L2()),
    "regression, l1": lambda: regression(3) + tied(gr.L1()),
    "regression, l2": lambda: regression(3) + tied(gr.L2()),
    "wide": lambda: regression(40, 60) + tied(gr.L2()),
    "both": lambda: means(3) + tied(gr.L1(), gr.L2()) + 0.1 * CENTRE,
    "with a node penalty": lambda: regression(3) + tied(gr.L2()) + 0.2 * gr.NodePenalty(gr.L2()),
    "beside others": lambda: means(3) + tied(gr.L2(), gr.HuberNorm(0.3), gr.SquaredL2()),
}


def some_flows(form, seed=0):
    """Some inside their capacities, some at them, and some beyond."""
    rng, out = np.random.default_rng(seed), []
    for edge in form.edges:
        u = rng.standard_normal((len(edge.tail), form.width(edge))) * edge.weight[:, None]
        out.append(np.where(rng.random(len(u))[:, None] < 0.4, edge.clip(u), 1e-3 * u))
    return tuple(out)


@pytest.mark.parametrize("name", MODELS)
def test_passes_over_edges_are_those_of_arrays(name, forced):
    form = gr.Problem(MODELS[name]()).form
    w, seen = np.random.default_rng(1).standard_normal(form.shape), 0
    for edge, u in zip(form.edges, some_flows(form), strict=True):
        passes, norm = edge_passes(edge, form.d), isinstance(edge.penalty, (gr.L1, gr.L2))
        assert (passes is not None) == norm
        if passes is None:
            continue
        seen += 1
        clipped, z = edge.clip(3.0 * u), edge.difference(w)
        g, expected = np.ones(form.shape), np.ones(form.shape)
        passes.add_adjoint(3.0 * u, g)
        edge.add_adjoint(clipped, expected)
        np.testing.assert_allclose(g, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
        value, residual = passes.residual(w, 3.0 * u)
        assert value == pytest.approx(edge.values(w).sum(), rel=1e-13)
        assert residual == pytest.approx(edge.values(w).sum() - np.vdot(clipped, z), rel=1e-12)
    assert seen


@pytest.mark.parametrize("name", MODELS)
def test_looks_are_those_of_arrays(name, forced):
    form = gr.Problem(MODELS[name]()).form
    dual, flows, rng = FlowDual.of(form), some_flows(form), np.random.default_rng(2)
    points = [rng.standard_normal(form.shape), np.zeros(form.shape), 0.1 * rng.standard_normal(form.shape)]
    fast, plain = dual.cheap_bound(points, flows, True), dual.cheap_bound(points, flows)
    assert fast.w is plain.w
    np.testing.assert_allclose(fast.at, plain.at, rtol=0, atol=1e-12 * np.abs(plain.at).max())
    for each in ("gap", "nodes", "primal"):
        assert getattr(fast, each) == pytest.approx(getattr(plain, each), rel=1e-11)
    for a, b in zip(fast.flows, plain.flows, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fast.gap == pytest.approx(form.primal(fast.w) - form.dual(dual.point(fast)[0]), rel=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_groups_are_those_of_arrays(name, forced):
    form = gr.Problem(MODELS[name]()).form
    w = np.random.default_rng(3).standard_normal(form.shape)
    for seed in range(4):
        flows = some_flows(form, seed)
        fast, plain = groups_of_flows(form, flows, fast=True), groups_of_flows(form, flows)
        assert (fast.count, fast.whole) == (plain.count, plain.whole)
        np.testing.assert_array_equal(fast.number, plain.number)
        np.testing.assert_allclose(fast.merged(w), plain.merged(w), rtol=0, atol=1e-14)
        most = plain.numbers(form.d)
        assert groups_of_flows(form, flows, most, fast=True) is not None
        assert groups_of_flows(form, flows, most - 1, fast=True) is None
        assert groups_of_flows(form, flows, most - 1) is None


def test_what_is_tied_to_the_ground_is_zero(forced):
    number, values = np.array([0, -1, 1, 0], dtype=np.int32), np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(group_means(number, 2, values), [[3.0, 4.0], [0.0, 0.0], [4.0, 5.0], [3.0, 4.0]])
    form = gr.Problem(means(1) + tied(gr.L1()) + 100.0 * gr.NodePenalty(gr.L1())).form
    for each in (True, False):
        groups = groups_of_flows(form, form.nothing().flows, fast=each)
        assert groups.count == 0
        np.testing.assert_array_equal(groups.merged(np.ones(form.shape)), np.zeros(form.shape))


def test_rows_that_are_no_edges_have_no_passes():
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(9.0), range(9)))
    form = gr.Problem(loss + gr.L1()(gr.w.along(range(9), 2))).form
    assert edge_passes(form.edges[0], 1) is None
