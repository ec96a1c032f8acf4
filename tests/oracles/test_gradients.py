"""Gradients of nodes, full and sampled, their constants, random streams, and arcs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import SMOOTH, view_of
from factories import thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.network.streams import KINDS, Streams
from graphreg.oracles.gradients import without_gradient, without_steps


def test_the_seeds_are_those_of_smooth_losses():
    forms = [random_problem(seed).problem.form for seed in range(40)]
    assert [seed for seed, form in enumerate(forms) if not without_gradient(form)] == SMOOTH
    assert [seed for seed, form in enumerate(forms) if not without_steps(form)] == SMOOTH


@pytest.fixture(params=thinned(SMOOTH[:25], every=3))
def view(request):
    return view_of(random_problem(request.param).problem.form)


def point(view, seed=0):
    return 0.3 * np.random.default_rng(seed).standard_normal(view.form.shape)


def test_the_gradient_is_that_of_the_value(view):
    w, v, h = point(view), point(view, 1), 1e-6
    slope = (view.gradients.value(w + h * v) - view.gradients.value(w - h * v)) / (2 * h)
    np.testing.assert_allclose((view.gradients.full(w) * v).sum(axis=1), slope, rtol=1e-5, atol=1e-6)


def test_a_share_is_the_scale_of_the_samples_and_without_any_the_weight_of_the_penalties():
    """Of the nodes "a" and "b" with two samples each, and "c", which has a penalty alone."""
    one, two = (
        gr.SquaredLoss(gr.NodeData.from_arrays(np.ones((2, 1)), np.arange(2.0), [node] * 2), scale=scale)
        for node, scale in (("a", 0.5), ("b", "mean"))
    )
    graph = nx.path_graph(list("abc"))
    model = one + 2.0 * two + gr.TotalVariation(graph, gr.SquaredL2()) + 0.25 * gr.NodePenalty(gr.SquaredL2())
    assert view_of(gr.Problem(model).form).gradients.shares.tolist() == [2 * 0.5, 2.0, 0.25]


def test_the_mean_over_all_samples_is_the_gradient(view):
    """Every node's estimate, averaged over each of its samples once."""
    w, gradients = point(view), view.gradients
    most, total = int(gradients.counts.max()), np.zeros(view.form.shape)
    for k in range(most):
        has = k < gradients.counts
        each = gradients.at_samples(w, np.where(has, k, 0)[:, None])
        total += np.where(has[:, None], each, 0.0)
    bare = gradients.counts == 0
    mean = np.where(bare[:, None], gradients.full(w), total / np.maximum(gradients.counts, 1)[:, None])
    np.testing.assert_allclose(mean, gradients.full(w), rtol=1e-9, atol=1e-10)


def test_a_batch_is_the_mean_of_its_samples(view):
    w, gradients = point(view), view.gradients
    place = np.stack([np.zeros(view.form.n), np.maximum(gradients.counts - 1, 0)], axis=1).astype(int)
    both = 0.5 * (gradients.at_samples(w, place[:, :1]) + gradients.at_samples(w, place[:, 1:]))
    np.testing.assert_allclose(gradients.at_samples(w, place), both, rtol=1e-9, atol=1e-11)


def test_smoothness_and_convexity_bound_the_change_of_the_gradient(view):
    gradients = view.gradients
    for seed in range(5):
        w, v = point(view, seed), point(view, seed + 10)
        change, step = gradients.full(v) - gradients.full(w), v - w
        inner, length = (change * step).sum(axis=1), (step**2).sum(axis=1)
        assert (inner <= gradients.smoothness * length * (1 + 1e-9) + 1e-12).all()
        assert (inner >= gradients.convexity * length * (1 - 1e-9) - 1e-12).all()
    assert (gradients.smoothness <= gradients.sample_smoothness * (1 + 1e-9)).all()


def test_a_sample_without_features_has_no_curvature_where_the_loss_has_no_bound():
    data = gr.NodeData.from_arrays([[0.0], [0.0], [2.0], [0.0]], np.ones(4), list("aabb"))
    gradients = view_of(gr.Problem(gr.GammaLoss(data)).form).gradients
    assert gradients.sample_smoothness.tolist() == [0.0, np.inf]


def test_draws_follow_from_seed_kind_index_and_round_alone():
    few, all_ = Streams(3, "samples", [4, 2]), Streams(3, "samples", range(6))
    later = [all_.uniform(k, 2).copy() for k in range(300)]
    for k in (299, 0, 150):
        np.testing.assert_array_equal(few.uniform(k, 2), later[k][[4, 2]])
    drawn = np.concatenate(later)
    assert len(np.unique(drawn)) == drawn.size
    assert abs(drawn.mean() - 0.5) < 4 * np.sqrt(1 / 12 / drawn.size)
    assert not np.array_equal(Streams(4, "samples", [2]).uniform(0, 2), later[0][[2]])
    kinds = *KINDS, "noise", "other"
    drawn = np.concatenate([Streams(3, kind, [2]).uniform(t, 50)[0] for kind in kinds for t in (0, 7)])
    assert len(np.unique(drawn)) == len(drawn) == 100 * len(kinds)  # no two kinds of draws share a number


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf(), gr.SquaredL2(), gr.HuberNorm(0.7)])
def test_a_subgradient_closes_fenchel_young(penalty):
    z = np.random.default_rng(0).standard_normal((50, 3)) * np.logspace(-6, 6, 50)[:, None]
    u = penalty.subgradient(z) * (1 - 1e-14)
    fenchel_young = penalty.value(z) + penalty.conjugate(u) - (u * z).sum(axis=1)
    assert (np.abs(fenchel_young) <= 1e-8 * (1 + penalty.value(z))).all()
    assert (penalty.subgradient(np.zeros((1, 3))) == 0).all()


def test_the_ledger_splits_what_was_sent_by_edge_and_by_level():
    graph = nx.path_graph(4)
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), np.arange(4))
    model = (
        gr.SquaredLoss(data) + gr.TotalVariation(graph, gr.L2()) + gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 1.0))
    )
    ledger = gr.Problem(model).solve(gr.PrimalDual(), gap=0, rounds=7).ledger
    edges = ledger.by_edge()
    assert edges["messages"].sum() == ledger.total_messages
    assert edges["bytes"].sum() == ledger.total_bytes
    method = edges[edges["purpose"] == "method"].set_index(["sender", "receiver"])
    assert method.loc[(1, 2)].to_dict() == {"level": "graph", "purpose": "method", "messages": 7, "bytes": 7 * 4 * 8}
    assert method.loc[(0, "a"), "level"] == "within clusters"
    assert method.loc[("root", "b"), "level"] == "between clusters"
    levels = ledger.by_level()["messages"].xs("method", level="purpose").to_dict()
    assert levels == {"graph": 7 * 6, "within clusters": 7 * 8, "between clusters": 7 * 4}
    nodes = ledger.by_node()
    assert nodes["sent"].sum() == nodes["received"].sum() == ledger.total_messages
    assert (nodes["away"] == 0).all()


def test_several_sums_and_exchanges_are_recorded_at_once():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), np.arange(4))
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(4), gr.L2())).form
    once, often = (view_of(form).engine.ledger for _ in range(2))
    for _ in range(3):
        once.sum("certificate", 5)
        once.exchange("certificate")
        once.exchange("method", columns=2)
    often.sum("certificate", 5, times=3)
    often.exchange("certificate", times=3)
    often.exchange("method", columns=2, times=3)
    assert once == often
    assert often.messages == {"method": 18, "adaptation": 0, "certificate": 18 + 18, "inference": 0}
    assert often.bytes == {
        "method": 18 * 2 * 8,
        "adaptation": 0,
        "certificate": 18 * 4 * 8 + 18 * 5 * 8,
        "inference": 0,
    }
