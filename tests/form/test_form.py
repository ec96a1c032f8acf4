"""The canonical form: values, residuals and conservation against loops over samples and edges, and its invariances."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from core_cases import random_dual, random_w, view_of, written_balance, written_dual, written_primal
from factories import thinned

import graphreg as gr
from graphreg.certificate import attained
from graphreg.certificate.repairing.feasible import feasible
from graphreg.certificate.repairing.repair import Repair
from graphreg.datasets import random_problem
from graphreg.datasets.random_problems import LOSSES
from graphreg.form.form import DualPoint, held_together

SEEDS = tuple(range(0, 500, 21))  # every loss, penalty and structure
ROUNDING = 1e-12


@pytest.fixture(params=thinned(SEEDS, every=3), ids=lambda seed: f"seed {seed}")
def drawn(request):
    return random_problem(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def size_of(form, w, point):
    """The sum of the magnitudes that a gap is the difference of."""
    total = sum(np.abs(part).sum() for part in form.dual_parts(point))
    total += sum(np.abs(block.values(w)).sum() for block in (*form.samples, *form.edges))
    total += sum(np.abs(a * block.predict(w)).sum() for a, block in zip(point.prices, form.samples, strict=True))
    return total + sum(np.abs(u * edge.difference(w)).sum() for u, edge in zip(point.flows, form.edges, strict=True))


# ---- values ----------------------------------------------------------------------------------------------------------
def test_the_cases_cover_every_kind():
    drawn = [random_problem(seed) for seed in SEEDS]
    kinds = {edge.kind for d in drawn for edge in d.plain.edges}
    assert {d.loss for d in drawn} == set(LOSSES)
    assert len(kinds) == 10
    assert len({d.structure for d in drawn}) == 5
    assert {"center", "offsets", "intercept", "nodes without data"} <= {trait for d in drawn for trait in d.traits}


def test_primal_value(drawn, rng):
    form = drawn.problem.form
    w = random_w(drawn, rng)
    assert form.primal(w) == pytest.approx(written_primal(drawn, w), rel=ROUNDING)  # inf where a constraint is broken
    inside = feasible(form, w)
    assert np.isfinite(form.primal(inside))
    assert form.primal(inside) == pytest.approx(written_primal(drawn, inside), rel=ROUNDING)


def test_dual_value(drawn, rng):
    form = drawn.problem.form
    point = random_dual(form, rng)
    scale = sum(np.abs(part).sum() for part in form.dual_parts(point))
    assert np.isfinite(form.dual(point))
    assert form.dual(point) == pytest.approx(written_dual(drawn, point), abs=ROUNDING * scale)


def test_dual_value_is_minus_infinity_outside_a_domain(drawn, rng):
    form = drawn.problem.form
    point = random_dual(form, rng)
    for k, block in enumerate(form.samples):
        low, high = block.loss.domain(block.y)
        if np.isfinite(high).all():
            beyond = block.column(block.scale) * (high + 1e-9 * (high - low))
            prices = (*point.prices[:k], beyond, *point.prices[k + 1 :])
            assert form.dual(DualPoint(point.flows, prices)) == -np.inf
    for k, edge in enumerate(form.edges):
        gauge = edge.penalty.domain.gauge(point.flows[k] / edge.weight[:, None])
        if (np.isfinite(gauge) & (gauge > 0)).any():
            beyond = point.flows[k] / np.where(gauge > 0, gauge, 1.0)[:, None] * (1 + 1e-9)
            flows = (*point.flows[:k], beyond, *point.flows[k + 1 :])
            assert form.dual(DualPoint(flows, point.prices)) == -np.inf


def test_conservation(drawn, rng):
    form = drawn.problem.form
    point = random_dual(form, rng)
    balance = written_balance(drawn, point)
    np.testing.assert_allclose(form.conservation(point), balance, atol=ROUNDING * np.abs(balance).max())


def test_the_adjoint_of_the_difference(drawn, rng):
    form = drawn.problem.form
    w, u = rng.standard_normal(form.shape), tuple(rng.standard_normal(u.shape) for u in form.nothing().flows)
    back = np.zeros(form.shape)
    forth = 0.0
    for edge, flow in zip(form.edges, u, strict=True):
        forth += np.vdot(edge.apply(w), flow)
        edge.add_adjoint(flow, back)
    assert forth == pytest.approx(np.vdot(w, back), abs=ROUNDING * np.abs(w).sum())
    ones = np.ones(form.shape)
    assert not any(edge.apply(ones).any() for edge in form.edges if not edge.ground)
    assert all((edge.apply(ones) == 1).all() for edge in form.edges if edge.ground)
    for block in form.samples:
        a = rng.standard_normal(block.offset.shape)
        forth, back = np.vdot(block.apply(w), a), np.vdot(w, block.adjoint(a, form.shape))
        assert forth == pytest.approx(back, abs=ROUNDING * np.abs(block.apply(w)).sum())


# ---- the identity of the gap -----------------------------------------------------------------------------------------
def test_the_gap_is_the_residuals_and_the_imbalance(drawn, rng):
    form = drawn.problem.form
    w, point = feasible(form, random_w(drawn, rng)), random_dual(form, rng)
    samples, edges = form.residuals(w, point)
    imbalance = float(np.vdot(w, form.conservation(point)))
    total = sum(part.sum() for part in (*samples, *edges)) + imbalance
    size = size_of(form, w, point)
    assert form.primal(w) - form.dual(point) == pytest.approx(total, abs=ROUNDING * size)
    assert abs(imbalance) > 1e-9 * size  # or the identity would not have been tried
    assert min(part.min() for part in (*samples, *edges)) >= -ROUNDING * size


def test_at_conserved_points_the_gap_is_the_residuals(drawn, rng):
    form = drawn.problem.form
    if not attained(form):
        pytest.skip("no conserved point inside the domains")
    w = feasible(form, random_w(drawn, rng))
    point = Repair(form)(w, random_dual(form, rng))
    scale = sum(np.linalg.norm(a) for a in (*point.prices, *point.flows))
    X = max(float(np.sqrt(block.A.multiply(block.A).sum(axis=1).max())) for block in form.samples)
    assert np.abs(written_balance(drawn, point)).max() <= 1e-11 * scale * max(X, 1.0)
    total = sum(part.sum() for parts in form.residuals(w, point) for part in parts)
    assert form.primal(w) - form.dual(point) == pytest.approx(total, abs=1e-11 * size_of(form, w, point))
    assert form.primal(w) >= form.dual(point)


# ---- what must not matter --------------------------------------------------------------------------------------------
NODES, WIDTH = 12, 3
FEATURES = ["x0", "x1", "x2"]


def parts():
    """Samples per node (the first five classes, the last without data), weighted edges, and a center per node."""
    rng = np.random.default_rng(5)
    samples = {}
    for i in range(NODES - 1):
        X = rng.standard_normal((4 + i % 3, WIDTH))
        y = X @ rng.standard_normal(WIDTH)
        samples[i] = X, np.where(y > 0, 1.0, -1.0) if i < 5 else y, rng.uniform(0.5, 2, len(y))
    ring = nx.circulant_graph(NODES, [1, 4])
    edges = [(i, j, rng.uniform(0.5, 2)) for i, j in ring.edges]
    more = [(i, j, rng.uniform(0.5, 2)) for i, j in nx.random_labeled_tree(NODES, seed=3).edges]
    return samples, edges, more, {i: rng.standard_normal(2) for i in range(NODES)}


def build(name, order, edge_order, flip, sample_order):
    """The same model with other labels, and other orders of nodes, edges, ends and samples."""
    samples, edges, more, center = parts()

    def data(nodes, kind):
        rows = [(i, r) for i in nodes for r in range(len(samples[i][1]))]
        rows = [rows[k] for k in sample_order(len(rows))]
        X, y, weights = (np.array([samples[i][c][r] for i, r in rows]) for c in range(3))
        labels = [name(i) for i, _ in rows]
        return kind(gr.NodeData.from_arrays(X, y, labels, weights=weights, features=FEATURES))

    def graph(list_of_edges):
        out = nx.Graph()
        out.add_nodes_from(name(i) for i in order)
        for k in edge_order(len(list_of_edges)):
            i, j, weight = list_of_edges[k]
            out.add_edge(*((name(j), name(i)) if flip else (name(i), name(j))), weight=weight)
        return out

    clusters = {name(i): "odd" if i % 2 else "even" for i in order}
    centers = {name(i): center[i] for i in order}
    return gr.Problem(
        data([i for i in order if i < 5], gr.LogisticLoss)
        + data([i for i in order if 5 <= i < NODES - 1], gr.SquaredLoss)
        + 0.05 * gr.TotalVariation(graph(edges), gr.L2())
        + 0.03 * gr.TotalVariation(graph(more), gr.L1(), features=["x2", "x0"])
        + 0.02 * gr.NodePenalty(gr.HuberNorm(0.5), center=centers, features=["x1", "x2"])
        + 0.01 * gr.Hierarchy(clusters, (0.5, 1.0))
    )


def plain_order(n):
    return range(n)


def shuffled(n):
    return np.random.default_rng(n).permutation(n)


ORIGINAL = (lambda i: i, range(NODES), plain_order, False, plain_order)
CHANGES = {
    "nodes relabelled and in another order": (
        lambda i: f"n{7 * i % 12}",
        shuffled(NODES),
        plain_order,
        False,
        plain_order,
    ),
    "edges in another order": (lambda i: i, range(NODES), shuffled, False, plain_order),
    "edges reversed": (lambda i: i, range(NODES)[::-1], plain_order, True, plain_order),
    "samples shuffled": (lambda i: i, range(NODES), plain_order, False, shuffled),
}


@pytest.mark.parametrize(("change", "rounds"), thinned(CHANGES, [12, 60], every=2))
def test_no_order_and_no_name_matters(change, rounds):
    name = CHANGES[change][0]
    problem, other = build(*ORIGINAL), build(*CHANGES[change])
    one, two = (p.solve(gr.PrimalDual(), gap=0, rounds=rounds) for p in (problem, other))
    place = [two.labels.index(name(i)) for i in range(NODES)]
    np.testing.assert_allclose(two.coef[place], one.coef, atol=1e-9)
    np.testing.assert_allclose(two.latent["odd"], one.latent["odd"], atol=1e-9)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-10)
    assert two.certificate.dual == pytest.approx(one.certificate.dual, rel=1e-6)
    assert two.certificate.relative_gap == pytest.approx(one.certificate.relative_gap, rel=1e-3)
    for i, j in [(0, 1), (4, 0), (11, 3)]:
        np.testing.assert_allclose(two.flows[name(i), name(j)], one.flows[i, j], atol=1e-5)


@pytest.mark.parametrize("change", CHANGES)
def test_the_optimum_is_the_same(change):
    one, two = build(*ORIGINAL).solve(gap=1e-9), build(*CHANGES[change]).solve(gap=1e-9)
    assert one.status == two.status == "certified"
    assert two.objective == pytest.approx(one.objective, rel=2e-9)


# ---- latent nodes ----------------------------------------------------------------------------------------------------
def two_trees():
    points = gr.NodeData.from_arrays(None, np.arange(8.0).reshape(4, 2) ** 2, range(4))
    east = gr.Hierarchy({"a": [0, 1], "b": [2, 3]}, (1.0, 2.0))
    west = gr.Hierarchy({"c": [0, 2], "d": [1, 3]}, (3.0, 4.0), gr.L2())
    return gr.Problem(gr.MeanLoss(points, scale="sum") + 0.5 * east + 0.1 * west)


def test_two_hierarchies_have_their_own_latent_nodes(rng):
    form = two_trees().form
    assert form.shape == (10, 2)
    w = rng.standard_normal(form.shape)
    (a, b, root), (c, d, other) = w[4:7], w[7:10]
    value = sum(((w[i] - np.arange(2 * i, 2 * i + 2.0) ** 2) ** 2).sum() / 2 for i in range(4))
    for i, j, x, y in [(0, 1, a, root), (2, 3, b, root)]:
        value += 0.25 * (((w[i] - x) ** 2).sum() + ((w[j] - x) ** 2).sum() + 2 * ((x - y) ** 2).sum())
    for i, j, x, y in [(0, 2, c, other), (1, 3, d, other)]:
        value += 0.1 * (3 * np.linalg.norm(w[i] - x) + 3 * np.linalg.norm(w[j] - x) + 4 * np.linalg.norm(x - y))
    assert form.primal(w) == pytest.approx(value, rel=ROUNDING)


def test_no_latent_node_of_two_hierarchies_is_lost():
    solution = two_trees().solve()
    assert len(solution.latent) == 6
    assert len(solution.flows) == 12


# ---- parameters ------------------------------------------------------------------------------------------------------
def with_strength(strength, ridge):
    samples, edges, _, _ = parts()
    X, y, node = [], [], []
    for i in range(5, NODES - 1):
        X, y, node = [*X, *samples[i][0]], [*y, *samples[i][1]], [*node, *[i] * len(samples[i][1])]
    graph = nx.Graph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from(edges)
    loss = gr.HuberLoss(gr.NodeData.from_arrays(np.array(X), np.array(y), node), delta=0.7)
    return gr.Problem(
        loss + strength * gr.TotalVariation(graph, gr.L2()) + 0.5 * (ridge * gr.NodePenalty(gr.SquaredL2()))
    )


@pytest.mark.parametrize("method", [gr.Exact(), gr.Exact(form="dual"), gr.PrimalDual()], ids=["primal", "dual", "pd"])
def test_a_parameter_that_changes_gives_the_new_optimum(method):
    lam, ridge = gr.Parameter(0.01, name="lam"), gr.Parameter(0.1, name="ridge")
    problem = with_strength(lam, ridge)
    objectives = []
    for first, second in [(0.01, 0.1), (0.3, 0.1), (0.3, 0.002), (0.01, 0.1)]:
        lam.value, ridge.value = first, second
        found = problem.solve(method, gap=1e-7)
        fresh = with_strength(first, second).solve(gap=1e-7)
        assert found.status == fresh.status == "certified"
        assert found.objective == pytest.approx(fresh.objective, rel=2e-7)
        objectives.append(found.objective)
    assert objectives[0] == pytest.approx(objectives[3], rel=2e-7)
    assert len({round(value, 4) for value in objectives}) == 3


def test_an_answer_keeps_the_strengths_of_its_moment():
    lam = gr.Parameter(0.05, name="lam")
    problem = with_strength(lam, 0.1)
    solution = problem.solve(gap=1e-7)
    lam.value = 50.0
    certificate = solution.certificate
    total = sum(float(part.sum()) for parts in certificate.residuals for part in parts)
    assert total == pytest.approx(certificate.gap - certificate.charge, abs=1e-10)
    fused = with_strength(0.05, 0.1).solve(gap=1e-7).clusters()
    assert solution.clusters().count == fused.count


# ---- one design, and what copies share -------------------------------------------------------------------------------
def design_of(order, samples=5, nodes=6, seed=4):
    """Regressions on a chain, some features 0; the nodes' samples stand together."""
    rng = np.random.default_rng(seed)
    X = np.array(rng.standard_normal((nodes * samples, 3)), order=order)
    X[rng.random(X.shape) < 0.2] = 0.0
    y, node = X[:, 0] + rng.standard_normal(len(X)), np.repeat(np.arange(nodes), samples)
    return gr.NodeData.from_arrays(X, y, node)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_design_is_held_once(order):
    data, strength = design_of(order), gr.Parameter(0.3, name="lambda")
    model = gr.SquaredLoss(data) + strength * gr.TotalVariation(nx.path_graph(6), gr.L2())
    form = gr.Problem(model).form
    for block in (*form.samples, *form.frozen().samples):
        (batch,) = block.stacks
        assert all(np.shares_memory(data.X, held) for held in (block.X, block.A.data, batch.X))


def test_padded_or_scattered_samples_are_stacked_by_copying():
    data = design_of("C").take([0, 1, 5, 6, 7, 2, 10, 11, 15, 20, 25])
    (block,) = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(6), gr.L2())).form.samples
    for batch in block.stacks:
        for node, rows, mask, X in zip(batch.nodes, batch.rows, batch.mask, batch.X, strict=True):
            own = np.flatnonzero(block.node == node)
            assert np.array_equal(rows[mask > 0], own)
            assert np.array_equal(X[mask > 0], block.X[own])
            assert not X[mask == 0].any()


@pytest.mark.parametrize(
    "method", [None, gr.Exact(form="dual"), gr.PrimalDual(), gr.ADMM(), gr.InteriorPoint(), gr.LocalOnly()], ids=str
)
def test_no_method_writes_to_the_data(method):
    data = design_of("C")
    before = data.X.copy()
    model = gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(nx.path_graph(6), gr.L2())
    solution = gr.Problem(model).solve(method)
    solution.clusters()
    assert np.array_equal(data.X, before)


def test_copies_at_other_strengths_share_what_was_found_out():
    strength = gr.Parameter(0.3, name="lambda")
    model = gr.SquaredLoss(design_of("C")) + strength * gr.TotalVariation(nx.path_graph(6), gr.L2())
    form = gr.Problem(model).form
    one = form.frozen()
    K, component = one.edges[0].K, one.component
    strength.value = 0.7
    two = form.frozen()
    assert two.edges[0].K is K  # found by one, known to the other
    assert two.component is component
    assert float(one.edges[0].strength) == 0.3
    assert float(two.edges[0].strength) == 0.7


def test_changed_ends_share_nothing():
    form = gr.Problem(gr.SquaredLoss(design_of("C")) + gr.TotalVariation(nx.path_graph(6), gr.L2())).form
    edge = form.edges[0]
    assert edge.K.shape == (5, 6)
    part = edge.part(np.array([1, 3]))
    assert np.array_equal(part.K.toarray(), edge.K.toarray()[[1, 3]])
    assert np.array_equal(form.samples[0].part(np.array([4, 7])).A.toarray(), form.samples[0].A.toarray()[[4, 7]])


def test_what_depends_on_the_strengths_of_losses_is_found_anew_with_these():
    scale, strength = gr.Parameter(1.0, name="scale"), gr.Parameter(0.3, name="lambda")
    model = scale * gr.SquaredLoss(design_of("C")) + strength * gr.TotalVariation(nx.path_graph(6), gr.L2())
    problem = gr.Problem(model)
    first = view_of(problem.form.frozen())
    found, arcs = first.curvature, first.arcs
    strength.value = 0.7
    second = first.at_strengths(problem.form.frozen(), first.engine)
    assert second.curvature is found
    scale.value = 2.0
    third = second.at_strengths(problem.form.frozen(), first.engine)
    assert third.curvature == pytest.approx(2.0 * found)
    assert third.arcs is arcs


def test_coordinates_are_grouped_by_the_sets_that_hold_them():
    found = held_together([np.array([0, 2]), np.array([2, 3, 0])], 5)
    assert [(sets, columns.tolist()) for sets, columns in found] == [((0, 1), [0, 2]), ((1,), [3])]
