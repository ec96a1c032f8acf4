"""The worth of flows at once, where every node is strictly convex: looks, and bounds that curvature proves."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from factories import chain, thinned
from kernel_cases import exactly, numbers, solved

import graphreg as gr
from graphreg.certificate import Certifier, Enclosure, feasible
from graphreg.certificate.kernel import arithmetic, squares, system
from graphreg.certificate.proposing import shifted_duals as tilted
from graphreg.certificate.proposing.flow_dual import FlowDual
from graphreg.certificate.proposing.shifted_duals import QuadraticNodes, shifted_duals
from graphreg.datasets import random_problem
from graphreg.form import DualPoint
from graphreg.running.checking import Checks
from graphreg.terms import Packed, maps


def squared(rng, n=4, d=2, samples=5, penalty=None, ridge=None, shift=0.0, scales=1.0):
    """Full-rank regressions on a ring with a chord."""
    X = rng.standard_normal((n * samples, d)) * scales
    y = X @ rng.standard_normal(d) + rng.standard_normal(n * samples) + shift
    graph = nx.cycle_graph(n)
    graph.add_edge(0, 2)
    data = gr.NodeData.from_arrays(X, y, np.repeat(np.arange(n), samples))
    model = gr.SquaredLoss(data) + 0.7 * gr.TotalVariation(graph, penalty or gr.L2())
    return gr.Problem(model if ridge is None else model + 0.3 * gr.NodePenalty(gr.SquaredL2(), center=ridge)).form


def means(rng, n=5, d=3):
    data = gr.NodeData.from_arrays(None, rng.standard_normal((2 * n, d)), np.arange(2 * n) % n)
    return gr.Problem(gr.MeanLoss(data) + 0.4 * gr.TotalVariation(nx.path_graph(n), gr.L1())).form


CASES = {
    "plain": squared,
    "l1": lambda rng: squared(rng, penalty=gr.L1()),
    "linf": lambda rng: squared(rng, penalty=gr.LInf()),
    "ridge": lambda rng: squared(rng, ridge=np.array([0.5, -3.0])),
    "squared edges": lambda rng: squared(rng, penalty=gr.SquaredL2()),
    "far targets": lambda rng: squared(rng, shift=1e6),
    "units": lambda rng: squared(rng, scales=np.array([1e-6, 1e5])),
    "means": means,
}


# ---- exact arithmetic ------------------------------------------------------------------------------------------------
def exact_conjugate(penalty, flow, c):
    """c phi*(u / c), of norms 0 inside their domain."""
    if isinstance(penalty, gr.SquaredL2):
        return sum(x * x for x in flow) / (2 * c)
    sizes = {gr.L2: lambda: sum(x * x for x in flow) / c, gr.L1: lambda: max(map(abs, flow))}
    assert sizes.get(type(penalty), lambda: sum(map(abs, flow)))() <= c
    return 0


def exact_dual(form, flows):
    """Q(u) in rationals: the minimum over all w of the losses, the ground edges and <u, Kw>, less the conjugates."""
    n, d = form.shape
    H = [[[exactly(0)] * d for _ in range(d)] for _ in range(n)]
    h = [[exactly(0)] * d for _ in range(n)]
    constant = exactly(0)
    for block in form.samples:
        for r, i in enumerate(block.node):
            s = exactly(block.scale[r])
            rows = np.eye(d) if block.X is None else block.X[r : r + 1]
            targets = [y - o for y, o in zip(numbers(block.y[r]), numbers(block.offset[r]), strict=True)]
            for row, target in zip(rows, targets, strict=True):
                x = numbers(row)
                constant += s * target * target / 2
                for j in range(d):
                    h[i][j] += s * target * x[j]
                    for k in range(d):
                        H[i][j][k] += s * x[j] * x[k]
    for edge, u in zip(form.edges, flows, strict=True):
        columns = list(edge.columns(d))
        for e, tail in enumerate(edge.tail):
            c, flow = exactly(edge.weight[e]), numbers(u[e])
            if edge.ground:  # c/2 ||w - center||^2
                for j, m in zip(columns, numbers(edge.center[e]), strict=True):
                    H[tail][j][j] += c
                    h[tail][j] += c * m
                    constant += c * m * m / 2
                continue
            for j, flow_j in zip(columns, flow, strict=True):
                h[tail][j] -= flow_j
                h[edge.head[e]][j] += flow_j
            constant -= exact_conjugate(edge.penalty, flow, c)
    for i in range(n):
        w = solved(H[i], h[i])
        constant -= sum(a * b for a, b in zip(w, h[i], strict=True)) / 2
    return constant


def some_flows(form, rng, size=1.0):
    return tuple(edge.clip(size * rng.standard_normal((len(edge.tail), form.width(edge)))) for edge in form.edges)


def bound(form, flows, move=None, prices=None, least=None):
    """The bounds that are proved of some flows, from parameters that are off the minimisers by ``move`` of their
    size; with the prices there, or at ``prices`` times those."""
    dual = FlowDual.of(form)
    look = dual.cheap_bound([np.zeros(form.shape)], flows)
    point, at = dual.point(look)
    if move is not None:
        at = at * (1.0 + move)
        point = point if prices is None else replace(point, prices=form.gradient_prices(prices * at))
    enclosure = Enclosure(form)
    if least is not None:
        dual.nodes.proved[:] = [squares.Curvature(enclosure.system, dual.nodes.inverse)]
        dual.nodes.proved[0].least[:] = least
    return enclosure.absorbed(dual.nodes, point, at)


@pytest.mark.parametrize(("case", "seed"), thinned(CASES, range(3), every=3))
def test_no_bound_lies_above_the_exact_dual_value(case, seed):
    rng = np.random.default_rng(seed)
    bounds_hold(CASES[case](rng), rng)


@pytest.mark.parametrize("case", CASES)
def test_nor_where_problems_are_large(case, monkeypatch):
    """With one triangle of each Hessian, and some samples and edges at a time."""
    monkeypatch.setattr(tilted, "LARGE", 0)
    monkeypatch.setattr(maps, "STREAM", 3)
    monkeypatch.setattr(system, "ROWS", 4)
    monkeypatch.setattr(squares, "CELLS", 4)
    monkeypatch.setattr(arithmetic, "PIECE", 2)
    rng = np.random.default_rng(7)
    form = CASES[case](rng)
    bounds_hold(form, rng)
    curvatures_hold(form)
    assert isinstance(shifted_duals(form).H, Packed) == (case not in ("ridge", "means"))


def bounds_hold(form, rng):
    for size in (1e-8, 0.3, 1.0, 1e3):
        flows = some_flows(form, rng, size)
        near = bound(form, flows)
        truth = exact_dual(form, near.dual_point.flows)
        assert exactly(near.value) <= truth
        assert float(truth - exactly(near.value)) <= 1e-11 * max(abs(float(truth)), form.primal(np.zeros(form.shape)))
        for far in (1e-12, 1e-6, 1e-2, 10.0):  # parameters that lie
            move = far * rng.standard_normal(form.shape)
            for prices in (None, 1.0, 0.9):
                found = bound(form, flows, move, prices)
                assert exactly(found.value) <= exact_dual(form, found.dual_point.flows)


def test_a_bound_without_its_rounding_would_lie():
    """The tests above would notice: without the square of what is left of the gradients, bounds of parameters that lie
    are too high."""
    rng = np.random.default_rng(0)
    form = squared(rng)
    found = bound(form, some_flows(form, rng), -1.0, 1.0, least=np.full(4, 1e300))
    assert exactly(found.value) > exact_dual(form, found.dual_point.flows)


@pytest.mark.parametrize("case", CASES)
def test_curvatures_are_lower_bounds(case):
    curvatures_hold(CASES[case](np.random.default_rng(5)))


def curvatures_hold(form):
    nodes = shifted_duals(form)
    H = nodes.H.dense() if isinstance(nodes.H, Packed) else nodes.H
    H = H if H.ndim == 3 else H[:, :, None] * np.eye(form.d)
    curvature = squares.Curvature(system.System(form), nodes.inverse)
    scale, proved = curvature.scale, curvature.least
    least = np.linalg.eigvalsh(H * scale[:, :, None] * scale[:, None, :])[:, 0]
    assert (proved > 0.0).all()
    assert (proved <= least).all()


def test_an_exactly_conserved_point_lies_in_the_box():
    """Its flows are those of the point, and its prices the gradients at the exact minimisers."""
    rng = np.random.default_rng(1)
    form = squared(rng, ridge=np.array([0.5, -3.0]))
    found = bound(form, some_flows(form, rng), 1e-3 * rng.standard_normal(form.shape))
    dual = FlowDual.of(form)
    w = dual.cheap_bound([np.zeros(form.shape)], found.dual_point.flows).at
    for edge, u, spread in zip(form.edges, found.dual_point.flows, found.spread, strict=True):
        exact_flow = edge.gradients(w) if edge.ground else u
        assert (np.abs(exact_flow - u) <= spread + 1e-13).all()
    (a,), (b,) = form.gradient_prices(w), found.dual_point.prices
    assert (np.abs(a - b) <= found.box.spread[: len(a)] + 1e-13).all()


# ---- looks -----------------------------------------------------------------------------------------------------------
def test_a_look_is_the_gap():
    rng = np.random.default_rng(2)
    for form in (make(rng) for make in CASES.values()):
        w, flows = rng.standard_normal(form.shape), some_flows(form, rng)
        certifier = Certifier(form)
        look = certifier.cheap_bound([w], flows)
        certifier.propose_dual(*FlowDual.of(form).point(look), gap=1e-8)
        assert look.primal == pytest.approx(form.primal(w), rel=1e-9)
        assert look.gap == pytest.approx(form.primal(w) - certifier.best_dual.bound, rel=1e-8)
        assert 0.0 <= look.nodes <= look.gap * (1 + 1e-12)


def test_the_best_of_some_parameters_is_taken():
    form = squared(np.random.default_rng(3))
    flows = some_flows(form, np.random.default_rng(4))
    points = [np.full(form.shape, 3.0), np.zeros(form.shape), np.full(form.shape, -5.0)]
    look = Certifier(form).cheap_bound(points, flows)
    assert look.w is min(points, key=form.primal)


def test_logistic_nodes_take_newton_steps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    data = gr.NodeData.from_arrays(X, np.where(rng.random(200) < 0.5, 1, -1), np.arange(200) % 5)
    form = gr.Problem(gr.LogisticLoss(data) + 0.05 * gr.TotalVariation(nx.path_graph(5), gr.L2())).form
    dual = FlowDual.of(form)
    assert dual.nodes.inverse is None
    look = dual.cheap_bound([np.zeros(form.shape)], some_flows(form, rng))
    point, at = dual.point(look)
    assert at is None
    assert np.abs(form.conservation(point)).max() <= 1e-13
    assert look.gap == pytest.approx(form.primal(look.w) - form.dual(point), rel=1e-6)
    pulling = tuple(1e3 * np.ones(u.shape) for u in point.flows)
    assert dual.nodes.minimisers(form.conservation(DualPoint(pulling, form.nothing().prices)), look.w) is None


@pytest.mark.parametrize(
    "form",
    [
        chain(d=5).form,  # fewer samples than coordinates
        chain(loss=gr.HingeLoss).form,
        gr.Problem(
            gr.MeanLoss(gr.NodeData.from_arrays(None, np.ones((2, 1)), ["a", "b"]))
            + gr.TotalVariation(nx.path_graph(["a", "b", "c"]), gr.L1())
        ).form,  # a node without data
    ],
)
def test_elsewhere_there_are_none(form):
    assert FlowDual.of(form) is None
    assert Certifier(form).cheap_bound([np.zeros(form.shape)], form.nothing().flows) is None


def test_squares_of_penalties_alone():
    """A model without samples has the dual function of the same model with its targets as data."""
    targets, tv = np.array([0.0, 1.0, 2.0, 5.0]), 0.3 * gr.TotalVariation(nx.path_graph(4), gr.L1())
    alone = gr.Problem(gr.SquaredL2()(gr.w.at(range(4)) - targets) + tv).solve(gr.PrimalDual(), progress=False)
    fit = gr.Problem(gr.MeanLoss(gr.NodeData.from_arrays(None, targets, range(4))) + tv).solve(progress=False)
    assert alone.status == "certified"
    assert alone.objective == pytest.approx(fit.objective, rel=1e-6)


def test_strengths_of_edges_change_no_node():
    lam = gr.Parameter(value=1.0)
    data = gr.NodeData.from_arrays(np.random.default_rng(0).standard_normal((12, 2)), np.ones(12), np.arange(12) % 3)
    problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(nx.path_graph(3), gr.L2()))
    first = shifted_duals(problem.form.frozen())
    lam.value = 5.0
    assert shifted_duals(problem.form.frozen()) is first


# ---- beside repairs --------------------------------------------------------------------------------------------------
STRICT = (1, 11, 20, 30, 32, 40, 41, 50, 61, 70, 71, 101, 110, 120, 130, 131, 150, 161, 171)


def test_where_nothing_is_repaired_bounds_are_as_good_as_those_of_repairs(monkeypatch):
    """Not below them by more than a tenth of the gap: that is why a look calls for no repair there."""
    seen, check = [], Checks.check

    def compared(self, state, k):
        (w, flows, prices), form = self.method.point(state), self.certifier.form
        look = self.certifier.cheap_bound([w], flows)
        if look is not None and not look.repairable and k <= 200:
            one, other = Certifier(form), Certifier(form)
            one.propose_primal(look.w, 1e-9)
            one.propose_dual(*FlowDual.of(form).point(look), gap=1e-9)
            other.propose_primal(feasible(form, w))
            point = other.repair(w, DualPoint(flows, prices or form.gradient_prices(w)), 1e-9)
            other.propose_dual(point)
            if other.best_dual is not None:
                gap = one.best().gap
                seen.append((other.best_dual.bound - one.best_dual.bound) / max(gap, 1e-11 * look.primal))
        return check(self, state, k)

    monkeypatch.setattr(Checks, "check", compared)
    for seed in STRICT:
        random_problem(seed).problem.solve(gr.PrimalDual(polish=False), gap=1e-8, rounds=200, on_failure="return")
    assert len(seen) >= 20
    assert max(seen) <= 0.12


class MergesAll(gr.PrimalDual):
    """Says of every edge that it is fused."""

    def inside_flows(self, state):
        return tuple(np.zeros(u.shape) for u in state.hat.u)


class MergesSome(gr.PrimalDual):
    """Says so of every other edge."""

    def inside_flows(self, state):
        return tuple(np.where(np.arange(len(u))[:, None] % 2 == 0, 0.0, u) for u in state.hat.u)


@pytest.mark.parametrize("penalty", [gr.L2(), gr.L1()])
@pytest.mark.parametrize("method", [MergesAll, MergesSome])
def test_planted_false_merges_are_caught(method, penalty):
    """A merge is one more point, and its gap says what it is worth."""
    problem = chain(n=30, strength=0.02, penalty=penalty)
    truth = problem.solve(gr.Exact(), gap=1e-9).certificate
    planted = problem.solve(method(), gap=1e-8).certificate
    assert planted.holds(1e-8)
    assert planted.dual <= truth.primal
    assert truth.dual <= planted.primal
    assert np.abs(planted.w - truth.w).max() <= 1e-2 * np.abs(truth.w).max()
    certifier = Certifier(problem.form)
    w = np.broadcast_to(truth.w.mean(axis=0), truth.w.shape)
    lie = certifier.cheap_bound([w], truth.dual_point.flows)
    assert lie.gap >= (problem.form.primal(w) - truth.primal) * (1.0 - 1e-9)


def test_a_proved_bound_is_recalled_to_the_bit():
    form = squared(np.random.default_rng(6))
    certifier, again = Certifier(form), Certifier(form)
    look = certifier.cheap_bound([np.zeros(form.shape)], some_flows(form, np.random.default_rng(7)))
    certifier.certify(look.w, look.flows, None, 10.0, look)
    assert certifier.best_dual.source.at is not None
    again.recall(certifier.remembered(10.0))
    assert again.best_dual.bound == certifier.best_dual.bound
    forged = replace(
        certifier.remembered(10.0), source=replace(certifier.best_dual.source, at=np.full(form.shape, 1e3))
    )
    again.recall(forged)
    assert again.best_dual.bound <= certifier.best_primal.bound
    with pytest.raises(ValueError, match="shapes"):
        again.recall(replace(forged, source=replace(forged.source, at=np.zeros(3))))


def test_kept_nodes_are_of_their_type():
    assert isinstance(shifted_duals(squared(np.random.default_rng(8))), QuadraticNodes)
