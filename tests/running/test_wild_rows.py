"""Models of rows at their edges: wild weights, targets, sizes, losses, constraints. No crash, no lie, clear words."""

import re
from dataclasses import replace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphreg as gr
from benchmarks.soundness.reals import approximately
from benchmarks.soundness.written_rows import Judge, examine, written

w, T = gr.w, 20
RNG = np.random.default_rng(0)
DAYS = list(range(T))
Y = np.abs(np.arange(T) - 9.0) / 4 + 0.2 * RNG.standard_normal(T)
X, NODE = RNG.standard_normal((60, 2)), np.arange(60) % T
Z = RNG.standard_normal(60)
SECOND = w.along(DAYS, 2)
PATH = nx.path_graph(T)


def means(y=Y, nodes=None):
    return gr.MeanLoss(gr.NodeData.from_arrays(None, y, DAYS[: len(y)] if nodes is None else nodes))


def of(loss, y=Z, **options):
    return loss(gr.NodeData.from_arrays(X, y, NODE), **options)


def answered(model, method, gap=1e-6, **options):
    return gr.Problem(model).solve(method, gap=gap, progress=False, on_failure="return", seconds=20, **options)


STORED = sp.vstack([sp.csr_array((1, T)), sp.csr_array(np.diff(np.eye(T), 2, axis=0))])
TREND = 0.72415259
SPREAD = gr.Penalty.from_cvxpy(lambda z: cp.max(z) - cp.min(z))
CERTIFIED = {
    "12 decades": (lambda: means() + gr.L1()(SECOND.weighted(10.0 ** RNG.uniform(-6, 6, T - 2))), None),
    "12 decades of squares": (
        lambda: means() + gr.SquaredL2()(SECOND.weighted(10.0 ** RNG.uniform(-6, 6, T - 2))),
        None,
    ),
    "targets + 1e6": (lambda: means(Y + 1e6) + gr.L1()(SECOND), TREND),
    "targets * 1e-9": (lambda: means(1e-9 * Y) + 1e-9 * gr.L1()(SECOND), 1e-18 * TREND),
    "a box, targets + 1e5": (lambda: means(Y + 1e5) + gr.Box(-0.01, 0.01)(SECOND), None),
    "lone nodes": (lambda: means() + gr.L1()(SECOND) + gr.L1()(w.across(nx.empty_graph(T + 2))), TREND),
    "nodes without data": (lambda: means(Y[::3], DAYS[::3]) + gr.L1()(SECOND), None),
    "halves": (lambda: means() + 0.5 * gr.L1()(SECOND) + 0.5 * gr.L1()(SECOND), TREND),
    "twice in K": (lambda: means() + 0.5 * gr.L1()(sp.vstack([STORED, STORED]) @ w), TREND),
    "a row without ends": (lambda: means() + gr.L1()(STORED @ w), TREND),
    "rows that cancel": (lambda: means() + gr.L1()(w.at([0, 1]) - w.at([0, 1])), 0.0),
    "no rows, n = 1": (lambda: means(Y[:1]) + gr.L1()(w.along([0], 2)) + gr.L1()(w.across(nx.path_graph(1))), 0.0),
    "no rows, n = 2": (lambda: means(Y[:2]) + gr.L1()(w.along([0, 1], 2)), 0.0),
    "rows of no numbers": (lambda: means() + gr.L1()(SECOND) + gr.L1()(w @ np.zeros((1, 0))), TREND),
    "a spread of one's own": (lambda: means() + SPREAD(w.grouped(lambda day: day // 5)), None),
    "offsets that agree": (lambda: means(Y[:1]) + gr.L1()(w.along(DAYS) - np.diff(Y)), 0.0),
    "offsets that agree, of 1e-9": (lambda: means(1e-9 * Y[:1]) + gr.L1()(w.along(DAYS) - 1e-9 * np.diff(Y)), 0.0),
    "weights of 0": (lambda: means() + gr.L1()(SECOND.weighted(0.0)), 0.0),
    "two features": (lambda: of(gr.SquaredLoss) + 0.5 * gr.L2()(SECOND), None),
    "logistic": (lambda: of(gr.LogisticLoss, np.sign(Z)) + 0.5 * gr.L2()(SECOND), None),
    "Huber": (lambda: of(gr.HuberLoss, delta=0.3) + 0.5 * gr.L2()(SECOND), None),
    "quantile": (lambda: of(gr.QuantileLoss, tau=0.3) + 0.5 * gr.L2()(SECOND), None),
    "Poisson": (lambda: of(gr.PoissonLoss, np.round(abs(Z))) + 0.5 * gr.L2()(SECOND), None),
    "a Parameter": (lambda: means() + gr.Parameter(1.0, name="t") * gr.L1()(SECOND), TREND),
    "with a hierarchy": (
        lambda: (
            of(gr.SquaredLoss)
            + 0.3 * gr.TotalVariation(PATH, gr.L1())
            + gr.Hierarchy({i: i % 3 for i in DAYS}, weights=(0.2, 0.1))
            + 0.4 * gr.L1()(np.diff(np.eye(T), 2, axis=0) @ w)
        ),
        None,
    ),
    "a box at its sides": (lambda: means() + gr.Box(-0.1, 0.1)(SECOND), None),
    "a box without 0": (lambda: means() + gr.Box(0.1, 0.2)(SECOND), None),
    "convex": (lambda: means(-Y) + gr.NonNegative()(SECOND), None),
    "a ball": (lambda: of(gr.SquaredLoss, scale="sum") + gr.Ball(0.1)(SECOND), None),
    "a ball elsewhere": (lambda: of(gr.SquaredLoss, scale="sum") + gr.Ball(0.1)(SECOND - 1.0), None),
    "with a consensus": (lambda: means() + gr.Consensus(PATH) + gr.Box(-1, 1)(SECOND), None),
    "values given": (
        lambda: means(Y[:3]) + gr.Zero()(w.at([1, 2]) - [1.0, 2.0]) + gr.L1()(w.along([0, 1, 2], 2)),
        None,
    ),
}


@pytest.mark.parametrize("name", CERTIFIED)
def test_certified(name):
    make, best = CERTIFIED[name]
    solution = answered(make(), None)
    assert solution.status == "certified"
    assert best is None or solution.certificate.dual <= best * (1 + 1e-7) + 1e-300
    assert best is None or best * (1 - 1e-7) <= solution.certificate.primal <= best * (1 + 2e-6) + 1e-9


INFEASIBLE = {
    "one side and the other": lambda: means() + gr.NonNegative()(SECOND - 1.0) + gr.NonNegative()(-SECOND),
    "bent, and level": lambda: means() + gr.Consensus(PATH) + gr.Box(0.1, 0.2)(SECOND),
    "values given twice": lambda: means(Y[:3]) + gr.Zero()(w.at([1, 1]) - [1.0, 2.0]),
    "around a circle": lambda: means(Y[:3]) + gr.Box(0.9, 1.1)(w.across(nx.DiGraph([(0, 1), (1, 2), (2, 0)]))),
}


@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible_rows_are_proved_to_be(name):
    solution = answered(INFEASIBLE[name](), gr.Exact())
    assert solution.message.startswith("No point satisfies all constraints")
    assert solution.objective == np.inf
    rounds = answered(INFEASIBLE[name](), gr.PrimalDual(), rounds=5).message
    assert "no point was found that satisfies all constraints" in rounds or "exclude each other" in rounds


@pytest.mark.parametrize("method", [None, gr.Exact(), gr.PrimalDual()], ids=repr)
def test_infima_that_are_not_attained_are_called_so(method):
    """Classes that one line separates at every node; counts that are all 0, along which convex sequences fall."""
    classes = np.where(X[:, 0] > 0, 1.0, -1.0)
    assert answered(of(gr.LogisticLoss, classes) + 0.5 * gr.L2()(SECOND), method).status == "unattained"
    counts = gr.PoissonLoss(gr.NodeData.from_arrays(np.ones((3, 1)), np.zeros(3), [0, 1, 2]))
    assert answered(counts + gr.NonNegative()(w.along([0, 1, 2], 2)), method).status == "unattained"


def test_rows_may_hold_what_losses_would_let_go():
    """Separable at each node, and rows that tie nodes of both kinds: attained."""
    y = np.where(NODE % 2, 1.0, -1.0)
    data = gr.NodeData.from_arrays(np.ones((60, 1)), y, NODE)
    solution = answered(gr.LogisticLoss(data) + gr.L1()(w.along(DAYS)), gr.Exact())
    assert solution.status == "certified"
    one_sided = gr.NonNegative()(w.at(DAYS[::2]) - w.at(DAYS[1::2]))  # +1 wants above -1: the other way round
    assert answered(gr.LogisticLoss(data) + one_sided, gr.Exact()).status == "certified"
    one_sided = gr.NonNegative()(w.at(DAYS[1::2]) - w.at(DAYS[::2]))
    assert answered(gr.LogisticLoss(data) + one_sided, gr.Exact()).status == "unattained"


def test_levels_that_rows_leave_open_are_no_reason_to_fail():
    """A multinomial loss does not see what is added to all classes, and second differences see no straight line."""
    model = of(gr.MultinomialLoss, NODE % 3) + 0.5 * gr.L2()(SECOND)
    solution = answered(model, gr.PrimalDual(), rounds=20)
    assert solution.certificate.dual <= solution.certificate.primal


# ---- bounds, judged exactly ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 2, 5, 25, 26, 32, 41, 53])
def test_no_bound_of_a_model_of_rows_is_false(seed):
    row = examine(seed)
    assert not row.error
    assert not row.raised
    assert not row.false
    assert len(row.answers) in (3, 4)  # InteriorPoint takes most of them


def test_the_judge_and_the_form_mean_the_same_problem():
    for seed in range(30):
        drawn = written(seed)
        at = Judge(drawn).at(drawn.inner)
        assert at.feasible
        assert approximately(at.upper) == pytest.approx(drawn.problem.form.primal(drawn.inner), rel=1e-9)


def test_lies_are_caught(monkeypatch):
    """A lower bound that is too high by a millionth, and an upper one that is too low."""
    solve = gr.Problem.solve

    def lying(problem, *args, **options):
        solution = solve(problem, *args, **options)
        c = solution.certificate
        forged = replace(c, primal=c.primal * (1 - 1e-6), dual=c.dual * (1 + 1e-5))
        return replace(solution, certificate=forged)

    monkeypatch.setattr(gr.Problem, "solve", lying)
    assert len([said for said in examine(5).false if "is false at its point" in said]) == 4
    assert len([said for said in examine(5).false if "exceeds P at" in said]) >= 3


class Lying(gr.Penalty):
    """|z|, whose conjugate says 1 too little."""

    def value(self, z):
        return np.abs(z).sum(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - np.reshape(step, (-1, 1)), 0.0)

    def conjugate(self, u):
        return np.where(np.abs(u).max(axis=1) <= 1.0, -1.0, np.inf)

    def cvxpy(self, Z):
        return cp.norm1(Z, axis=1)


class LyingLoss(gr.SquaredLoss):
    """A squared loss, whose conjugate says 1 too little."""

    def conjugate(self, a, y):
        return super().conjugate(a, y) - 1.0


@pytest.mark.parametrize(
    ("model", "where"),
    [
        (lambda: means() + 5.0 * Lying()(SECOND), r"at the row \("),
        (lambda: means() + 5.0 * Lying()(w.at([3, 5])), "at the node 3"),
        (lambda: means() + 5.0 * Lying()(w.across(PATH)), r"on the edge \("),
        (lambda: LyingLoss(w.along(DAYS), np.diff(Y)) + gr.L1()(w), "at the row .* with the coded target"),
    ],
)
def test_terms_of_ones_own_that_lie_on_rows_are_found_and_the_row_is_named(model, where):
    solution = answered(model(), gr.PrimalDual())
    assert solution.status == "failed"
    assert re.search(where, solution.message)
