"""The interior-point method on rows of any kind: stiff rows, bounds, fixed nodes, largest numbers, wild data."""

from __future__ import annotations

import warnings
from fractions import Fraction
from types import SimpleNamespace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from core_cases import iterate
from sameness import broken, facts

import graphreg as gr
from graphreg.certificate.repairing import feasible
from graphreg.form import DualPoint, Held
from graphreg.methods.automatic.auto import plan
from graphreg.methods.interior_point.cones import Scaling
from graphreg.methods.interior_point.kinks import HeightPulls
from graphreg.oracles.newton import NewtonSystem, SystemRows, wide
from graphreg.running.predicting import Costs

w, METHOD = gr.w, gr.InteriorPoint()
RNG = np.random.default_rng(0)


def means(y, nodes=None):
    return gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(len(y)) if nodes is None else nodes))


def signal(T, rng=None):
    t = np.linspace(0.0, 1.0, T)
    return np.sin(6 * t) + 2 * np.abs(t - 0.4) + 0.2 * (rng or np.random.default_rng(1)).standard_normal(T)


def largest_strength(y, q):
    """That of `along(.., q)` from which on polynomials of degree q - 1 are optimal: u with D'u = y - p."""
    t = np.linspace(-1.0, 1.0, len(y))
    u = y - np.polynomial.legendre.Legendre.fit(t, y, q - 1)(t)
    for _ in range(q):
        u = np.cumsum(u)
    return float(np.abs(u).max())


def trend(T, q, share):
    y = signal(T)
    return gr.Problem(means(y) + share * largest_strength(y, q) * gr.L1()(w.along(range(T), q)))


def certified(model, gap=1e-7, **more):
    found = gr.Problem(model).solve(METHOD, gap=gap, progress=False, on_failure="return", **more)
    assert found.status == "certified"
    return found


# ---- stiff rows ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("T", "q", "share"), [(200, 2, 0.1), (200, 4, 1e-3), (1000, 3, 0.1), (5000, 2, 0.1)])
def test_trends_take_few_steps(T, q, share):
    found = trend(T, q, share).solve(METHOD, progress=False, on_failure="return")
    assert found.status == "certified"
    assert found.rounds <= 20


def test_steps_with_pivots_reach_what_others_do_not(monkeypatch):
    """Fourth differences of 5,000 numbers: factors without pivots lose the rows, and the method stands still."""
    problem = trend(5000, 4, 1e-3)
    found = problem.solve(METHOD, progress=False, on_failure="return", rounds=20)
    assert found.status == "certified"
    monkeypatch.setattr("graphreg.oracles.newton.BACKWARD", np.inf)
    without = trend(5000, 4, 1e-3).solve(METHOD, progress=False, on_failure="return", rounds=20)
    assert without.certificate.relative_gap > 10.0 * found.certificate.relative_gap


def test_flows_stand_beside_w_where_rows_are_not_too_many():
    y = signal(30)
    stiff = gr.Problem(means(y) + gr.L1()(w.along(range(30), 2)) + gr.TotalVariation(nx.path_graph(30), gr.L1()))
    assert wide(stiff.form) == (1,)
    many = gr.Rows(sp.csr_array(np.random.default_rng(0).standard_normal((31, 30))))
    assert wide(gr.Problem(means(y) + gr.L1()(many)).form) == ()


def test_systems_with_flows_are_those_that_are_condensed():
    """[H K'; K -D^-1] (x, u) = (b, 0) says (H + K'DK) x = b."""
    T, rng = 12, np.random.default_rng(2)
    form = gr.Problem(means(signal(T)) + gr.SquaredL2()(w.along(range(T), 3))).form
    system, c = NewtonSystem(form), rng.uniform(0.5, 2.0, T - 3)
    solve = system.factorised([np.ones((T, 1, 1)), 1.0 / c[:, None, None]])
    b, K = rng.standard_normal((T, 1)), np.diff(np.eye(T), 3, axis=0)
    x = solve(system.vector(b))
    np.testing.assert_allclose(system.matrix(x), np.linalg.solve(np.eye(T) + K.T @ (c[:, None] * K), b), rtol=1e-10)
    np.testing.assert_allclose(x[system.edges[0].places], c * (K @ system.matrix(x)[:, 0]), rtol=1e-10)


def test_a_graph_of_1000_nodes():
    graph = nx.convert_node_labels_to_integers(nx.random_geometric_graph(1000, 0.05, seed=1))
    certified(means(signal(1000)) + 0.3 * gr.L1()(w.across(graph, 2)), gap=1e-6)


# ---- cones without a body, fixed nodes, largest numbers --------------------------------------------------------------
def against(model, objective, constraints):
    """The answer, held to a hand-written CVXPY problem."""
    best = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings(action="ignore"):
        best.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    found = certified(model)
    assert found.objective == pytest.approx(best.value, rel=2e-7, abs=1e-9)
    assert found.certificate.dual <= best.value + 1e-8 * max(1.0, abs(best.value))
    return found


T = 30
Y, Y2 = signal(T), np.random.default_rng(4).standard_normal((T, 3)).cumsum(axis=0)
GRAPH = nx.random_regular_graph(4, T, seed=1)
ARROWS = nx.DiGraph((min(e), max(e)) for e in GRAPH.edges)
A = np.array(ARROWS.edges)
K2 = np.diff(np.eye(T), 2, axis=0)


def rows_of(k, m, seed=0):
    return np.random.default_rng(seed).standard_normal((m * k, 3 * T))


def fit(x, y=Y):
    return cp.sum_squares(x - y) / 2


def bounds():
    x = cp.Variable(T)
    model = means(Y) + gr.Box([-0.2], [0.1])(w.along(range(T))) + gr.NonNegative()(w) + gr.Box(-np.inf, 1.0)(w)
    return model, fit(x), [x >= 0, x <= 1.0, cp.diff(x) >= -0.2, cp.diff(x) <= 0.1]


def bounds_on_some_coordinates():
    x = cp.Variable((T, 3))
    model = means(Y2) + gr.Box([0.0, -np.inf, -0.1], [np.inf, 0.2, 0.1])(w.along(range(T), 2))
    z = K2 @ x
    return model, fit(x, Y2), [z[:, 0] >= 0, z[:, 1] <= 0.2, z[:, 2] >= -0.1, z[:, 2] <= 0.1]


def isotonic():
    x = cp.Variable(T)
    return means(Y) + gr.NonNegative()(w.across(ARROWS)), fit(x), [x[A[:, 1]] >= x[A[:, 0]]]


def fixed():
    """Two of them by three blocks, one node on one coordinate only, and some node twice."""
    x = cp.Variable((T, 3))
    data = gr.NodeData.from_arrays(None, Y2, range(T))
    model = gr.MeanLoss(data) + gr.L2()(w.along(range(T), 2))
    columns = gr.Zero()(w.at([3, 4, 3]) - 1.0)
    z = [x[3] == 1.0, x[4] == 1.0, x[10] == 2.0, x[3] == 1.0]
    return (
        model + columns + gr.Zero()(w.at([10, 3]) - [[2.0], [1.0]]),
        fit(x, Y2) + cp.sum(cp.norm(K2 @ x, 2, axis=1)),
        z,
    )


def largest():
    x, K = cp.Variable((T, 3)), rows_of(4, 5)
    size = cp.sum(cp.norm(K2 @ x, "inf", axis=1)) + cp.sum(cp.norm(x[A[:, 0]] - x[A[:, 1]], "inf", axis=1)) / 5
    size += 0.1 * cp.sum(cp.norm(cp.reshape(K @ cp.vec(x, "C"), (5, 4), "C"), "inf", axis=1))
    model = means(Y2) + gr.LInf()(w.along(range(T), 2)) + 0.2 * gr.TotalVariation(GRAPH, gr.LInf())
    return model + 0.1 * gr.LInf()(gr.Rows(K, 4)), fit(x, Y2) + size, []


def measured():
    """Most nodes without data of their own."""
    x, M = cp.Variable(T), np.random.default_rng(5).standard_normal((12, T))
    model = (
        means(Y[:2], [0, 1]) + 3.0 * gr.SquaredL2()(M @ w.at(range(T)) - M @ Y) + 0.3 * gr.L1()(w.along(range(T), 2))
    )
    return model, fit(x[:2], Y[:2]) + 1.5 * cp.sum_squares(M @ x - M @ Y) + 0.3 * cp.norm1(K2 @ x), []


def groups():
    x = cp.Variable((T, 3))
    each = [range(9), range(9, T - 2)]
    size = sum(cp.norm(cp.vec((K2 @ x)[list(rows)], "C")) for rows in each)
    by = [0] * 9 + [1] * (T - 11)
    return means(Y2) + gr.L2()(w.along(range(T), 2).grouped(by)), fit(x, Y2) + size, []


def smooth_norms():
    x = cp.Variable((T, 3))
    size = 0.4**2 * cp.sum(cp.huber(cp.norm(K2 @ x, 2, axis=1) / 0.4)) / 2
    return means(Y2) + 2.0 * gr.HuberNorm(0.4)(w.along(range(T), 2)), fit(x, Y2) + 2.0 * size, []


@pytest.mark.parametrize(
    "model",
    [bounds, bounds_on_some_coordinates, isotonic, fixed, largest, measured, groups, smooth_norms],
)
def test_they_are_what_hand_written_cvxpy_says(model):
    against(*model())


@pytest.mark.parametrize("loss", [gr.LogisticLoss, gr.PoissonLoss, gr.HuberLoss, gr.MultinomialLoss])
def test_losses_that_are_no_squares(loss):
    rng = np.random.default_rng(6)
    X, x = rng.standard_normal((4 * T, 2)), rng.standard_normal(4 * T)
    y = {gr.LogisticLoss: x > 0, gr.PoissonLoss: np.round(np.abs(x)), gr.MultinomialLoss: np.digitize(x, [-1, 1])}
    data = gr.NodeData.from_arrays(X, np.asarray(y.get(loss, x), float), np.arange(4 * T) % T)
    model = loss(data) + 0.2 * gr.L2()(w.along(range(T), 2)) + 0.1 * gr.NodePenalty(gr.SquaredL2())
    found = certified(model)
    exact = gr.Problem(model).solve(gr.Exact(), gap=1e-7, progress=False)
    assert found.objective == pytest.approx(exact.objective, rel=3e-7)


def test_fixed_nodes_are_at_their_values_and_their_flows_balance():
    model, _, _ = fixed()
    form = gr.Problem(model).form
    held = Held(form)
    assert held.mask.sum() == 9
    assert not held.torn
    found = gr.Problem(model).solve(METHOD, gap=1e-9)
    assert (found.coef[[3, 4]] == 1.0).all()
    assert (found.coef[10] == 2.0).all()
    flows = tuple(np.zeros((edge.count, form.width(edge))) for edge in form.edges)
    point = DualPoint(flows, form.gradient_prices(found.coef))
    left = form.conservation(point)
    balanced = form.conservation(DualPoint(held.flows(form, flows, left), point.prices))
    assert (balanced[held.mask] == 0.0).all()
    assert (balanced[~held.mask] == left[~held.mask]).all()


def test_a_node_of_two_values_is_refused():
    model = means(Y) + gr.Zero()(w.at([1, 1]) - [1.0, 2.0]) + gr.SquaredL2()(w.along(range(T), 2))
    for method in (METHOD, gr.LinearSystem()):
        assert "gives a node two values" in "; ".join(method.lacks(gr.Problem(model).form))


@pytest.mark.parametrize("beside", [True, False])
def test_heights_are_eliminated(beside):
    """D and its inverse, where a number is far nearer to the height than others, by fractions."""
    rng, k, m = np.random.default_rng(7), 3, 4
    rows = SystemRows.of(sp.eye_array(k * m, format="csr"), k, np.arange(k * m) if beside else None)
    s, y = 10.0 ** rng.uniform(-9, 0, (2, 1, k * m)), 10.0 ** rng.uniform(-9, 0, (2, 1, k * m))
    pulls = HeightPulls(SimpleNamespace(rows=rows), Scaling.of(s.reshape(1, -1), y.reshape(1, -1)), 0.0)
    b, a = (np.vectorize(Fraction)((y[j] / s[j]).reshape(m, k)) for j in (0, 1))
    for e in range(m):
        S, d = a[e] + b[e], a[e] - b[e]
        D = np.diag(S) - np.outer(d, d) / S.sum()
        got = np.vectorize(Fraction)(pulls.D[e])
        if beside:
            one = (D @ got).astype(float)
            np.testing.assert_allclose(one, np.eye(k), atol=1e-6)
        else:
            np.testing.assert_allclose(pulls.D[e], D.astype(float), rtol=1e-9)


@pytest.mark.parametrize("model", [bounds, fixed, largest, groups])
def test_flows_and_prices_balance_after_every_step(model):
    form = gr.Problem(model()[0]).form
    for state in iterate(METHOD, form, range(1, 6)):
        _, flows, prices = METHOD.point(state)
        assert np.abs(form.conservation(DualPoint(flows, prices))).max() < 1e-9


# ---- wild data -------------------------------------------------------------------------------------------------------
WILD = {
    "12 decades": lambda: means(Y) + gr.L1()(w.along(range(T), 3).weighted(10.0 ** RNG.uniform(-6, 6, T - 3))),
    "uneven times over 6 decades": lambda: (
        means(Y) + gr.L1()(w.along(range(T), 2, at=np.cumsum(10.0 ** RNG.uniform(-6, 0, T))))
    ),
    "rows twice": lambda: means(Y) + gr.L1()(w.along(range(T), 2)) + gr.L1()(w.along(range(T), 2)),
    "rows twice in K": lambda: means(Y) + gr.L1()(np.vstack([K2[:9], K2[:9]]) @ w),
    "dependent rows": lambda: means(Y) + gr.L1()(w.along(range(T), 2)) + gr.L1()(w.along(range(T), 3)),
    "more rows than coordinates": lambda: means(Y2) + gr.L2()(gr.Rows(rows_of(2, 100), 2)),
    "few rows": lambda: means(Y2) + gr.L2()(gr.Rows(rows_of(2, 2), 2)),
    "n = 1": lambda: means(Y[:1]) + gr.L1()(gr.Rows(np.ones((1, 1)))) + gr.NonNegative()(2.0 * w - 1.0),
    "n = 2": lambda: means(Y[:2]) + gr.L1()(w.at(0) + w.at(1)) + gr.Box(-0.1, 0.1)(w.at(0) + 2.0 * w.at(1)),
    "targets + 1e6": lambda: means(Y + 1e6) + gr.L1()(w.along(range(T), 2)) + gr.L2()(w.along(range(T), 3)),
    "turned targets + 1e6": lambda: sum(
        (gr.L2()(w.at(i) - w.at(i + 1) @ np.roll(np.eye(3), 1, axis=0)) for i in range(20)), start=means(Y2[:21] + 1e6)
    ),
    "rows of length 1e8 around a ring": lambda: (  # without a start well inside their cones there is no second step
        means(Y2[:12]) + 0.3 * gr.L2()(w.across(nx.DiGraph((i, (i + 1) % 12) for i in range(12))) - 1e8)
    ),
    "targets * 1e-9": lambda: means(1e-9 * Y) + 1e-9 * gr.L1()(w.along(range(T), 2)),
    "nodes without data": lambda: means(Y[::7], range(0, T, 7)) + gr.L1()(w.along(range(T), 2)),
    "huge strength": lambda: means(Y) + 1e6 * gr.L1()(w.along(range(T), 2)),
    "tiny strength": lambda: means(Y) + 1e-9 * gr.L1()(w.along(range(T), 2)),
}


@pytest.mark.parametrize("name", WILD)
def test_wild_data(name):
    model = WILD[name]()
    found = certified(model)
    exact = gr.Problem(model).solve(gr.Exact(), progress=False, on_failure="return")
    assert found.certificate.dual <= exact.certificate.primal
    assert found.certificate.primal >= exact.certificate.dual


# ---- runs ------------------------------------------------------------------------------------------------------------
def test_a_broken_run_has_the_bits_of_an_unbroken_one(tmp_path):
    def problem():
        return gr.Problem(largest()[0] + gr.NonNegative()(w.along(range(T), 3)))

    whole = facts(problem().solve(METHOD, gap=0, rounds=9))
    assert facts(broken(problem, METHOD, tmp_path / "run", [1, 2, 5], gap=0, rounds=9)) == whole


def test_paths_begin_between_neighbours():
    lam, grid = gr.Parameter(1.0, name="lam"), np.geomspace(3.0, 0.03, 7)
    model = means(Y2) + lam * gr.L1()(w.along(range(T), 2)) + lam * gr.LInf()(w.along(range(T), 3)) + gr.Box(-2, 2)(w)
    path = gr.path(gr.Problem(model), grid, lam, METHOD, progress=False)
    for value, each in path.solutions.items():
        lam.value = value
        alone = gr.Problem(model).solve(METHOD, gap=1e-7, progress=False)
        assert each.status == "certified"
        assert each.objective == pytest.approx(alone.objective, rel=3e-6)


def test_what_is_missing_names_the_rows():
    model = means(Y2) + gr.Ball(0.1)(w.along(range(T), 2))
    said = "; ".join(METHOD.lacks(gr.Problem(model).form))
    assert said.startswith("Ball((D^2 w)_t) has the penalty Ball, and the method takes")


def test_nodes_of_which_nothing_tells_where_they_are():
    """Rows of order 2 on a graph of trees, with few data: along some directions nothing bends, not even the rows."""
    rng, n = np.random.default_rng(4), 40
    graph = gr.Graph.from_edges(nx.gnm_random_graph(n, 36, seed=4).edges, nodes=range(n))
    node, X = np.sort(rng.integers(0, n, 70)), rng.standard_normal((70, 3))
    data = gr.NodeData.from_arrays(X, X.sum(axis=1) + rng.standard_normal(70), node)
    for loss in (gr.SquaredLoss, gr.HuberLoss, gr.QuantileLoss):
        assert certified(loss(data) + 0.05 * gr.L2()(w.across(graph, 2)), 1e-6).rounds <= 12


# ---- the plan of Auto ------------------------------------------------------------------------------------------------
def names(model, gap=1e-6):
    return [stage.method.name for stage in plan(Costs(gr.Problem(model).form, gap))]


def test_auto_begins_with_rounds_where_factors_of_rows_are_dense():
    path = w.along(range(T), 2)
    assert names(means(Y) + gr.SquaredL2()(path) + gr.Zero()(w.at(3) - 1.0))[0] == "LinearSystem"
    assert "InteriorPoint" in names(means(Y) + gr.L1()(path))
    dense = nx.gnm_random_graph(2000, 12000, seed=1)
    assert names(means(signal(2000)) + gr.L1()(w.across(dense, 2)))[0] == "PrimalDual"


def test_order_along_a_chain_is_repaired_near_the_end_and_by_a_factor(monkeypatch):
    """Early points are far from the order: looks at them found nothing, at hundreds of least squares each."""

    def never(*_, **__):
        raise AssertionError("LSQR was run along a chain")

    moved, repaired = [], feasible._moved_inside
    monkeypatch.setattr(feasible, "lsqr", never)
    monkeypatch.setattr(feasible, "_moved_inside", lambda *each: moved.append(1) or repaired(*each))
    n, rng = 1000, np.random.default_rng(0)
    y = np.linspace(0.0, 3.0, n) + rng.standard_normal(n)
    data = gr.NodeData.from_arrays(None, y[:, None], np.arange(n))
    arrows = nx.DiGraph((i, i + 1) for i in range(n - 1))
    found = gr.Problem(gr.MeanLoss(data) + gr.NonNegative()(gr.w.across(arrows))).solve()
    assert found.status == "certified"
    assert np.diff(found.coef[:, 0]).min() >= 0.0
    assert len(moved) <= 5
