"""Bounds that parts put together, beside those of whole problems: all losses and penalties, and nodes of which a part
knows too little."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from test_local_parts import together

import graphreg as gr
from benchmarks.wild import wild_problem
from graphreg.certificate import Repair
from graphreg.datasets import random_problem
from graphreg.distributed.parts import part_of
from graphreg.distributed.parts.border import Border
from graphreg.distributed.parts.engine import PartEngine
from graphreg.distributed.parts.joint import solve_part
from graphreg.distributed.parts.wire import Switchboard, ThreadWire
from graphreg.errors import MethodError
from graphreg.form import DualPoint
from graphreg.network import arcs_of
from graphreg.running import Budget


def by_parts(problem, owner, gap=1e-6, **budget):
    """The answers of all parts of a problem."""
    form, owner = problem.form.frozen(), np.asarray(owner)
    arcs = arcs_of(form)

    def work(k, wire):
        part = part_of(form, arcs, owner == k)
        given = Budget(gap=gap, seed=1, progress=False, **{"rounds": 3000, **budget})
        return solve_part(part, owner[part.whole.ids], gr.PrimalDual(), given, wire)

    return together(owner.tolist(), work)


def dealt(n, count, seed):
    owner = np.random.default_rng(seed).integers(0, count, n)
    owner[:count] = np.arange(count)
    return owner


def true_of(found, problem):
    """True where bounds by parts are true beside those of one machine, which are far closer."""
    exact = problem.solve(gr.PrimalDual(), gap=1e-9, seconds=0.5, progress=False, on_failure="return").certificate
    assert all((each.dual, each.primal) == (found[0].dual, found[0].primal) for each in found)
    assert found[0].dual <= exact.primal
    assert found[0].primal >= exact.dual
    return exact


@pytest.mark.parametrize("make", [random_problem, wild_problem])
def test_bounds_are_true_on_random_problems(make, whole):
    """With all losses and penalties, nodes without data, and parts of single nodes; more with ARGS=--whole."""
    certified, compared = 0, 0
    for seed in range(300) if whole else range(0, 33, 16):
        problem = make(seed).problem
        form = problem.form
        if gr.PrimalDual().missing(form) or form.latent:
            continue
        owner = dealt(form.n, min(3, form.n), seed)
        try:
            found = by_parts(problem, owner, rounds=600 if whole else 150)
        except MethodError:
            continue  # penalties that are refused
        true_of(found, problem)
        compared += 1
        certified += found[0].status == "certified"
    assert compared >= 2
    assert certified >= compared // 3


def regression(edges, samples, d=3, loss=gr.SquaredLoss, seed=0, penalty=None):
    """Nodes with so many samples each, and total variation along edges."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(len(samples)), samples)
    X = rng.standard_normal((len(node), d))
    y = X @ np.arange(1.0, d + 1) + rng.standard_normal(len(node))
    y = np.sign(y) if loss is gr.LogisticLoss else y
    graph = gr.Graph.from_edges(edges, nodes=range(len(samples)))
    data = gr.NodeData.from_arrays(X, y, node)
    return gr.Problem(loss(data) + 0.2 * gr.TotalVariation(graph, penalty or gr.L2()))


RING = [(i, (i + 1) % 8) for i in range(8)] + [(i, (i + 3) % 8) for i in range(8)]


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.LogisticLoss, gr.HuberLoss])
def test_nodes_without_data_whose_neighbours_are_elsewhere(loss):
    """Flows to other parts give way: what such a node takes it has to give."""
    samples = [0, 20, 25, 20, 22, 25, 20, 21]
    problem = regression(RING, samples, loss=loss)
    found = by_parts(problem, [0, 1, 1, 1, 1, 1, 1, 1], gap=1e-7)
    assert found[0].status == "certified", found[0].why
    exact = true_of(found, problem)
    assert found[0].primal - found[0].dual <= 1.1e-7 * exact.primal


def test_a_way_over_several_parts():
    """A chain of nodes without data, each in a part of its own: what the last one cannot balance goes along all."""
    problem = regression([(i, i + 1) for i in range(5)], [40, 0, 0, 0, 0, 40])
    found = by_parts(problem, [0, 1, 2, 3, 4, 0], gap=1e-7)
    assert found[0].status == "certified", [each.why for each in found]
    true_of(found, problem)


def test_parts_with_fewer_samples_than_features():
    problem = regression(RING, [30, 1, 2, 1, 30, 1, 2, 1], d=4)
    found = by_parts(problem, [0, 1, 2, 1, 0, 1, 2, 1], gap=1e-7)
    assert found[0].status == "certified", [each.why for each in found]
    true_of(found, problem)


def test_the_same_bounds_however_parts_are_dealt():
    problem = regression(RING, [20] * 8, loss=gr.LogisticLoss)
    bounds = [by_parts(problem, owner, gap=1e-8)[0] for owner in ([0] * 8, [0, 1] * 4, list(range(8)))]
    for each in bounds:
        assert each.status == "certified"
        np.testing.assert_allclose([each.dual, each.primal], [bounds[0].dual, bounds[0].primal], rtol=1e-8)


def test_why_there_is_no_bound():
    """No part alone, and no other, can answer for a component without data: its parts say so."""
    problem = regression([(0, 1), (1, 2), (2, 3)], [3, 2, 2, 3], d=12)
    found = by_parts(problem, [0, 1, 2, 3], rounds=200)
    assert found[0].dual == -np.inf
    assert any("column" in each.why for each in found)


def test_penalties_that_flows_between_parts_do_not_satisfy():
    few = regression(RING, [20] * 8, penalty=gr.Quadratic(np.ones((3, 3))))
    with pytest.raises(MethodError, match="fewer numbers than there are coordinates"):
        by_parts(few, [0, 1] * 4)
    (_, loss), (_, variation) = few.model.terms
    equal = gr.Problem(loss + gr.TotalVariation(variation.graph, gr.Zero()))
    with pytest.raises(MethodError, match="is a constraint"):
        by_parts(equal, [0, 1] * 4)
    assert by_parts(equal, [0] * 8)[0].status == "certified"  # nothing is between parts


def test_terms_of_the_user_are_tried():
    """A conjugate that breaks its law makes no bound by parts, either."""

    class Wrong(gr.L1):
        def conjugate_bound(self, u, spread):
            return np.full(len(u), -5.0)

        def conjugate(self, u):
            return np.full(len(u), -5.0)

    problem = regression(RING, [20] * 8, penalty=Wrong())
    found = by_parts(problem, [0, 1] * 4, rounds=200, gap=1e-3)
    assert found[0].status == "no_certificate"
    assert found[0].dual == -np.inf


def test_what_flows_take_is_known_exactly():
    """K'u at the own nodes of a part, in rational arithmetic: within the error that is stated, and their spread."""
    form, rng = regression(RING, [20] * 8).form, np.random.default_rng(0)
    owner, arcs = np.array([0, 0, 1, 1, 0, 1, 0, 0]), arcs_of(form)
    part = part_of(form, arcs, owner == 0)
    place, (edge,) = np.cumsum(part.whole.own) - 1, part.form.edges
    place[~part.whole.own] = -1
    inner = part.whole.own[edge.tail] & part.whole.own[edge.head]
    of = owner[part.whole.ids]
    border = Border.of(PartEngine(part, of, ThreadWire(Switchboard(2), 0)), of, place, [inner])
    flows = rng.standard_normal((len(edge.tail), 3)) * 10.0 ** rng.integers(-12, 12, (len(edge.tail), 3))
    spread = np.abs(flows) * 1e-9
    out = rng.random(int((~inner).sum())) < 0.3
    found = border.adjoint([flows], [spread], [out])
    rows = np.flatnonzero(~inner)[~out]
    for i, j in np.ndindex(found.high.shape):
        own = [
            (e, 1 if place[edge.tail[e]] == i else -1) for e in rows if i in (place[edge.tail[e]], place[edge.head[e]])
        ]
        exact = sum((Fraction(sign * flows[e, j]) for e, sign in own), Fraction(0))
        around = sum((Fraction(spread[e, j]) for e, _ in own), Fraction(0))
        off = abs(Fraction(found.high[i, j]) + Fraction(found.low[i, j]) - exact)
        assert off + around <= Fraction(found.error[i, j])
        assert found.error[i, j] <= float(around) * (1.0 + 1e-6) + 1e-25 * abs(found.high[i, j])


def test_a_repair_answers_for_what_is_outside():
    rng = np.random.default_rng(0)
    form = regression(RING, [20] * 8).form
    outside = np.zeros(form.shape)
    outside[:5] = rng.standard_normal((5, form.d))
    given = DualPoint(form.nothing().flows, form.gradient_prices(np.zeros(form.shape)))
    found = Repair(form, outside)(np.ones(form.shape), given)
    assert np.abs(form.conservation(found) + outside).max() <= 1e-9
