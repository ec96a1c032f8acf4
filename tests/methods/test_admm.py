"""ADMM: the iteration of the paper with all its copies, optima, steps, ledger, starts, refusals."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from core_cases import iterate, view_of
from factories import chain, noise

import graphreg as gr
from graphreg.certificate import common
from graphreg.datasets import random_problem
from graphreg.running.polish import applies

# every loss, penalty and structure, among the quick ones
SEEDS = (  # every loss twice, every penalty, every structure
    *(540, 431, 162, 383, 214, 355, 476, 97, 408, 129),
    *(310, 171, 502, 233, 364, 145, 516, 427, 388, 299),
)
N, D = 8, 3


# ---- the paper's iteration, with a copy per edge and end -------------------------------------------------------------
def clip(x, c):
    return np.minimum(np.maximum(x, -c), c)


PROX = {  # of c phi, one row; written apart from the library's
    "L1": lambda x, c: x - clip(x, c),
    "L2": lambda x, c: max(0.0, 1.0 - c / np.linalg.norm(x)) * x,
    "SquaredL2": lambda x, c: x / (1.0 + c),
    "Zero": lambda x, c: 0.0 * x,
    "NonNegative": lambda x, c: np.maximum(x, 0.0),
}


class ByHand:
    """Network-lasso ADMM on least squares 1/m ||Xw - y||^2 / 2: loops, a copy and a multiplier per edge and end.

    An edge is (tail, head or None, kind, c, columns, center). Coordinates that it does not couple have copies too.
    """

    def __init__(self, data, n, edges, rho, over):
        self.n, self.edges, self.rho, self.over = n, edges, rho, over
        X, y = data.X, np.asarray(data.y)
        self.d = X.shape[1]
        self.parts = [(X[data.node == i], y[data.node == i]) for i in range(n)]
        self.z = {(e, i): np.zeros(self.d) for e, edge in enumerate(edges) for i in edge[:2] if i is not None}
        self.y = {key: np.zeros(self.d) for key in self.z}
        self.w = np.zeros((n, self.d))

    def round(self):
        for i, (X, y) in enumerate(self.parts):
            own = [key for key in self.z if key[1] == i]
            H = self.rho * len(own) * np.eye(self.d)
            h = sum(self.rho * (self.z[key] - self.y[key]) for key in own)
            if len(y):
                H, h = H + X.T @ X / len(y), h + X.T @ y / len(y)
            self.w[i] = np.linalg.solve(H, h)
        for e, (tail, head, kind, c, columns, center) in enumerate(self.edges):
            ends = [i for i in (tail, head) if i is not None]
            at = {i: self.over * self.w[i] + (1 - self.over) * self.z[e, i] + self.y[e, i] for i in ends}
            new = {i: value.copy() for i, value in at.items()}
            if head is None:
                new[tail][columns] = center + PROX[kind](at[tail][columns] - center, c / self.rho)
            else:
                a, b = at[tail][columns], at[head][columns]
                d = PROX[kind](a - b, 2 * c / self.rho)
                new[tail][columns], new[head][columns] = (a + b + d) / 2, (a + b - d) / 2
            for i in ends:
                self.z[e, i], self.y[e, i] = new[i], at[i] - new[i]

    def flow(self, e):
        return self.rho * self.y[e, self.edges[e][0]][self.edges[e][4]]


@pytest.mark.parametrize("kind", ["L1", "L2", "SquaredL2", "Zero"])
@pytest.mark.parametrize(("rho", "over"), [(1.0, 1.0), (0.3, 1.8), (2.0, 0.7)])
def test_the_iteration_of_the_paper(kind, rho, over):
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (3, 4)])
    graph.add_weighted_edges_from([(4, 5, 2.5 if kind != "Zero" else 1.0)])
    data = noise(6)
    term = gr.Consensus(graph) if kind == "Zero" else 0.4 * gr.TotalVariation(graph, getattr(gr, kind)())
    form = gr.Problem(gr.SquaredLoss(data) + term).form
    block = form.edges[0]
    edges = [
        (int(i), int(j), kind, c, np.arange(D), None)
        for i, j, c in zip(block.tail, block.head, block.weight, strict=True)
    ]
    hand = ByHand(data, 6, edges, rho, over)
    method = gr.ADMM(rho=rho, relaxation=over)
    for state in iterate(method, form, range(1, 26)):
        hand.round()
        w, flows, _ = method.point(state)
        np.testing.assert_allclose(w, hand.w, atol=1e-12)
        np.testing.assert_allclose(flows[0], [hand.flow(e) for e in range(len(edges))], atol=1e-12)


def test_the_iteration_with_ground_edges_and_feature_subsets():
    """Also at a latent node, with two edges between the same nodes, and coordinates that no edge couples."""
    data, graph = noise(5, d=4), nx.path_graph(5)
    center = np.array([0.3, -0.2])
    model = gr.SquaredLoss(data) + 0.3 * gr.TotalVariation(graph, gr.L2(), features=["x0", "x2"])
    model = model + 0.1 * gr.NodePenalty(gr.L1(), center=center, features=["x1", "x2"])
    model = model + gr.NodePenalty(gr.NonNegative(), features=["x0"])
    model = model + gr.Hierarchy(dict.fromkeys(range(5), "all"), weights=(0.2, 0.7), penalty=gr.SquaredL2())
    form = gr.Problem(model).form
    edges, rows = [], []
    for k, block in enumerate(form.edges):
        columns = np.arange(4) if block.features is None else block.features
        for r, (i, j, c) in enumerate(zip(block.tail, block.head, block.weight, strict=True)):
            middle = np.zeros(len(columns)) if block.center is None else block.center[r]
            kind = type(block.penalty).__name__
            edges.append((int(i), None if block.ground else int(j), kind, c, columns, middle))
            rows.append((k, r))
    assert form.n > 5
    assert len({edge[2] for edge in edges}) == 4
    hand = ByHand(data, form.n, edges, 0.6, 1.5)
    method = gr.ADMM(rho=0.6, relaxation=1.5)
    for state in iterate(method, form, range(1, 31)):
        hand.round()
        w, flows, _ = method.point(state)
        np.testing.assert_allclose(w, hand.w, atol=1e-12)
        for e, (k, r) in enumerate(rows):
            np.testing.assert_allclose(flows[k][r], hand.flow(e), atol=1e-12)


@pytest.mark.parametrize("penalty", [gr.L1(), gr.L2(), gr.LInf(), gr.HuberNorm(0.5), gr.Ball(0.7), gr.Zero()])
def test_the_flows_are_subgradients_where_the_copies_are(penalty):
    """u_e in dom g_e*, with no Fenchel-Young residual at d_e = (K q)_e - (u - x)_e / sigma."""
    features = ["x0", "x2"]
    if isinstance(penalty, gr.AbstractConstraint):
        term = gr.TotalVariation(nx.path_graph(N), penalty, features=features)
    else:
        term = 0.2 * gr.TotalVariation(nx.path_graph(N), penalty, features=features)
    form = gr.Problem(gr.SquaredLoss(noise()) + term).form
    for state in iterate(gr.ADMM(), form, [1, 9, 10, 11, 25]):
        edge, u = form.edges[0], state.hat.u[0]
        d = edge.difference(state.x.w) - (u - state.x.u[0]) * (2 * state.s)
        c = edge.weight
        d = edge.penalty.project(d) if isinstance(edge.penalty, gr.AbstractConstraint) else d
        inside = edge.clip(u)  # outside by rounding at most
        np.testing.assert_allclose(inside, u, rtol=1e-13, atol=0)
        residual = c * edge.penalty.value(d) + edge.conjugates(inside) - np.einsum("ij,ij->i", u, d)
        assert np.isfinite(residual).all()
        assert np.abs(residual).max() <= 1e-12


# ---- optima ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [*SEEDS[:10], *(pytest.param(seed, marks=pytest.mark.whole) for seed in SEEDS[10:])])
def test_the_optimum_of_a_random_problem(seed):
    drawn = random_problem(seed)
    exact = drawn.problem.solve(gap=1e-8, on_failure="return")
    run = drawn.problem.solve(gr.ADMM(), gap=1e-6, rounds=20_000, on_failure="return")
    if exact.status == "unattained":
        assert run.status == "unattained"
        return
    assert run.status == "certified"
    assert run.certificate.holds(1e-6)
    yardstick = max(abs(exact.objective), common(drawn.problem.form).floor)
    assert run.certificate.dual <= exact.certificate.primal + 1e-8 * yardstick
    assert run.certificate.primal >= exact.certificate.dual - 1e-8 * yardstick
    assert run.objective == pytest.approx(exact.objective, abs=2e-6 * yardstick)


def test_the_seeds_have_every_kind():
    drawn = [random_problem(seed) for seed in SEEDS]
    assert len({p.loss for p in drawn}) == 10
    assert len({p.penalty for p in drawn}) == 10
    assert len({p.structure for p in drawn}) == 5


@pytest.mark.parametrize("loss", [gr.SquaredLoss, gr.HuberLoss, gr.LogisticLoss])
@pytest.mark.parametrize("options", [{"rho": 0.02}, {"rho": 2.0}, {"rho": 0.3, "relaxation": 1.0}, {"polish": False}])
def test_every_option_leads_there(loss, options):
    problem = chain(loss=loss)
    found = problem.solve(gr.ADMM(**options), gap=1e-6)
    assert found.status == "certified"
    assert found.objective == pytest.approx(problem.solve(gap=1e-8).objective, rel=2e-6)


def test_a_penalty_of_the_users_own():
    problem = chain(penalty=gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 2) + cp.norm(z, 1)))
    found = problem.solve(gr.ADMM(), gap=1e-5)
    assert found.status == "certified"
    assert found.objective == pytest.approx(problem.solve().objective, rel=2e-5)


def test_a_node_without_edges_has_its_own_fit():
    data, graph = noise(), nx.path_graph(N - 1)
    graph.add_node(N - 1)
    found = gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(graph, gr.L2())).solve(gr.ADMM(), gap=1e-10)
    X, y = data.X[-4:], np.asarray(data.y)[-4:]
    np.testing.assert_allclose(found.coef[-1], np.linalg.lstsq(X, y)[0], atol=1e-6)


def test_no_edges_at_all():
    graph = nx.empty_graph(N)
    graph.add_edge("a", "b")  # two nodes without data, free
    found = gr.Problem(gr.SquaredLoss(noise()) + gr.TotalVariation(graph, gr.L2())).solve(gr.ADMM())
    assert found.status == "certified"


def test_it_polishes_unless_rho_is_given():
    problem = chain(strength=0.5)
    assert applies(problem.form)
    assert gr.ADMM().polishes()
    assert not gr.ADMM(rho=1.0).polishes()
    assert not gr.ADMM(polish=False).polishes()
    with_it = problem.solve(gr.ADMM(), gap=1e-10)
    without = problem.solve(gr.ADMM(polish=False), gap=1e-10)
    assert with_it.certificate.holds(1e-10)
    assert with_it.objective == pytest.approx(without.objective, rel=2e-10)
    assert with_it.rounds <= without.rounds


# ---- a step ----------------------------------------------------------------------------------------------------------
def test_adaptation_keeps_copies_and_flows():
    method, form = gr.ADMM(), chain(loss=gr.HuberLoss, strength=0.01).form
    state = iterate(method, form, [9])[0]
    fixed, adapted = method.step(replace(state, due=None)), method.step(state)
    assert adapted.s != fixed.s == state.s
    np.testing.assert_array_equal(adapted.hat.u[0], fixed.hat.u[0])
    np.testing.assert_array_equal(adapted.x.w, fixed.x.w)
    apart = [(state.hat.u[0] - state.x.u[0]) * state.s for state in (adapted, fixed)]
    np.testing.assert_allclose(*apart, rtol=1e-9, atol=1e-15)


def test_the_same_run_twice():
    runs = [chain(loss=gr.LogisticLoss).solve(gr.ADMM(), gap=1e-6) for _ in range(2)]
    assert np.array_equal(runs[0].coef, runs[1].coef)
    assert runs[0].certificate.dual == runs[1].certificate.dual
    assert runs[0].ledger == runs[1].ledger


# ---- the ledger ------------------------------------------------------------------------------------------------------
def test_the_messages_of_a_run():
    """Two per edge and round, of d numbers each; adaptations are sums up and down a tree."""
    problem = chain()
    run = problem.solve(gr.ADMM(), gap=0, rounds=25)
    assert run.ledger.rounds == 25
    assert run.ledger.messages["method"] == 25 * 2 * (N - 1)
    assert run.ledger.bytes["method"] == 25 * 2 * (N - 1) * D * 8
    assert run.ledger.messages["adaptation"] == 3 * 2 * (N - 1)  # for the first rho, at rounds 10 and 20
    assert problem.solve(gr.ADMM(rho=1.0), gap=0, rounds=25).ledger.messages["adaptation"] == 0


def test_messages_carry_what_the_edges_couple():
    ledger = chain(features=["x1"]).solve(gr.ADMM(), gap=0, rounds=10).ledger
    assert ledger.bytes["method"] == 10 * 2 * (N - 1) * 8


def test_the_ledger_counts_what_is_exchanged():
    view = view_of(chain().form)
    calls, true = [], view.engine.exchange
    view.engine.exchange = lambda values: (calls.append(values.shape), true(values))[1]
    method = gr.ADMM(rho=1.0)
    state = method.init(view, None)
    for _ in range(7):
        state = method.step(state)
    assert calls == [(N, D)] * 7
    assert view.engine.ledger.messages["method"] == 7 * 2 * (N - 1)


# ---- starts and refusals ---------------------------------------------------------------------------------------------
def test_a_start_saves_rounds():
    problem = chain(loss=gr.HuberLoss)
    cold = problem.solve(gr.ADMM(), gap=1e-6)
    assert problem.solve(gr.ADMM(), gap=1e-6, start=cold).rounds <= cold.rounds / 2
    assert problem.solve(gr.ADMM(), gap=1e-6, start=problem.solve()).rounds <= cold.rounds / 2
    array = problem.solve(gr.ADMM(), gap=0, rounds=3, start=cold.coef)
    assert array.objective < problem.solve(gr.ADMM(), gap=0, rounds=3).objective


def test_the_optimum_stays():
    problem = chain()
    best = problem.solve(gr.ADMM(), gap=1e-13)
    state = iterate(gr.ADMM(rho=0.7), problem.form, [5], (best.certificate.w, best.certificate.dual_point.flows))[0]
    np.testing.assert_allclose(state.hat.w, best.certificate.w, atol=1e-6)
    np.testing.assert_allclose(state.hat.u[0], best.certificate.dual_point.flows[0], atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        *({"relaxation": value} for value in (0.0, 2.0, -1.0, np.nan, True, "1.5", None)),
        *({"rho": value} for value in (0.0, -1.0, np.inf, np.nan, True, "1")),
    ],
)
def test_wrong_options(options):
    name = next(iter(options))
    with pytest.raises(gr.errors.MethodError, match=rf"ADMM\({name}=...\) must be"):
        gr.ADMM(**options)


def test_it_is_among_the_methods():
    problem = chain()
    assert problem.methods().loc["ADMM", "applies"]
    with pytest.raises(gr.errors.MethodError, match=r"write ADMM\(\)"):
        problem.solve(gr.ADMM)
