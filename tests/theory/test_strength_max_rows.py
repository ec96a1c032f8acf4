"""strength_max of rows: lasso, groups, trends and measurements, against closed forms and solves around the value."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.base import gate
from graphreg.errors import FailedError, MethodError, TermError
from graphreg.theory import agreement, on_rows

w = gr.w


def design(m=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, X[:, 0] - 2.0 * X[:, 1] + rng.normal(size=m)


def at_one_node(X, y):
    return gr.NodeData.from_arrays(X, y, np.zeros(len(y), dtype=int))


@pytest.mark.parametrize("penalty", [lambda: gr.L1()(w), lambda: gr.NodePenalty(gr.L1())])
def test_it_is_alpha_max_of_the_lasso(penalty):
    X, y = design()
    found = gr.strength_max(gr.Problem(gr.SquaredLoss(at_one_node(X, y)) + penalty()))
    assert found.upper == pytest.approx(np.abs(X.T @ y).max() / len(y), rel=1e-12)
    assert found.lower == pytest.approx(found.upper, rel=1e-8)
    assert "at which all its rows are 0 at an optimum" in str(found)
    labels = (y > 0).astype(float)
    logistic = gr.strength_max(gr.Problem(gr.LogisticLoss(at_one_node(X, labels)) + penalty()))
    assert float(logistic) == pytest.approx(np.abs(X.T @ (labels - 0.5)).max() / len(y), rel=1e-9)


def test_groups_are_as_long_as_their_gradients():
    X, y = design()
    found = gr.strength_max(gr.Problem(gr.SquaredLoss(at_one_node(X, y)) + gr.L2()(w)))
    assert float(found) == pytest.approx(np.linalg.norm(X.T @ y) / len(y), rel=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_trends_have_one_flow(order):
    """D has independent rows, so that D'u = y - c has one solution, (DD')^-1 D y."""
    y = np.random.default_rng(order).normal(size=30).cumsum()
    data = gr.NodeData.from_arrays(None, y, range(30))
    rows = w.along(range(30), order)
    found = gr.strength_max(gr.Problem(gr.MeanLoss(data) + gr.L1()(rows)))
    D = np.diff(np.eye(30), order, axis=0)
    assert float(found) == pytest.approx(np.abs(np.linalg.solve(D @ D.T, D @ y)).max(), rel=1e-9)
    assert found.lower == pytest.approx(found.upper, rel=1e-7)
    assert found.certificate(1.0).holds(1e-9)
    assert found.better(0.99).decrease > 0.0
    for factor, moved in ((0.99, True), (1.01, False)):
        problem = gr.Problem(gr.MeanLoss(data) + factor * float(found) * gr.L1()(rows))
        assert (np.abs(D @ problem.solve(gr.Exact(), gap=1e-9).coef).max() > 1e-4) == moved


@pytest.mark.parametrize("order", [2, 3])
def test_rows_that_depend_on_others_and_measurements(order):
    """The value separates answers in which rows are 0 from those in which one is not, by hand-taken solves."""
    graph = nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=0)
    rng = np.random.default_rng(0)
    loss = gr.SquaredLoss(rng.normal(size=(20, 12)) @ w.at(list(range(12))), rng.normal(size=20))
    rows = w.across(graph, order)
    found = gr.strength_max(gr.Problem(loss + gr.L1()(rows)))
    assert found.lower == pytest.approx(found.upper, rel=1e-6)
    sizes = []
    for factor in (0.98, 1.02):
        solution = gr.Problem(loss + factor * float(found) * gr.L1()(rows)).solve(gr.Exact(), gap=1e-10)
        sizes.append(np.abs(solution.form.edges[0].difference(solution.certificate.w)).max())
    assert sizes[1] < 1e-3 * sizes[0]


def test_offsets_are_met_and_paths_come_down_from_there():
    data = gr.NodeData.from_arrays(None, np.array([1.0, 4.0]), ["a", "b"])
    lam = gr.Parameter(1.0, name="lam")
    problem = gr.Problem(gr.MeanLoss(data) + lam * gr.L1()(w - 3.0))
    assert float(gr.strength_max(problem)) == pytest.approx(2.0)
    assert gr.path(problem, 3, progress=False).strengths[-1] == pytest.approx(2.0, rel=0.06)
    lasso = gr.Problem(gr.SquaredLoss(at_one_node(*design())) + lam * gr.L1()(w))
    chosen = gr.cross_validate(lasso, 4, folds=2, progress=False)
    assert max(chosen.table().index) == pytest.approx(float(gr.strength_max(lasso)), rel=0.06)


def test_what_cannot_be_0_together_is_refused():
    data = gr.NodeData.from_arrays(None, np.zeros(1), ["a"])
    rows = w.at(["a", "a"]) - np.array([[0.0], [1.0]])
    with pytest.raises(MethodError, match=r"cannot all be 0 together: \{w : K w = b\} is empty"):
        gr.strength_max(gr.Problem(gr.MeanLoss(data) + gr.L1()(rows)))
    days = list(range(5))
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(5.0), days))
    with pytest.raises(TermError, match="varies one strength, and there are 2 norms between nodes"):
        gr.strength_max(gr.Problem(fit + gr.L1()(w.along(days, 2)) + gr.L1()(w.along(days, 3))))


def counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = rng.poisson(np.exp(0.3 + 0.2 * X[:, 0]))
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(6), 10), intercept=True)
    return gr.Problem(gr.PoissonLoss(data) + gr.L2()(w.along(range(6), 2)))


def test_what_a_solver_leaves_is_refined():
    """The bounds are those of the gradients at the optimum in which all rows are 0: they are as good as it is."""
    found = gr.strength_max(counts())
    assert found.consensus.status == "certified"
    assert found.consensus.certificate.relative_gap < 1e-11


def test_no_bounds_are_told_of_a_point_that_is_no_optimum(monkeypatch):
    solved = agreement.pooled_on_rows

    def beside(*given):
        c, u = solved(*given)
        return c + 0.1, u

    monkeypatch.setattr(agreement, "pooled_on_rows", beside)
    with pytest.raises(FailedError, match=r"in which all rows are 0 was not solved to 1e-08: .*optimum"):
        gr.strength_max(counts())


def sums(n=60):
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(np.ones((n, 1)), rng.standard_normal(n), np.arange(n))
    return gr.Problem(gr.SquaredLoss(data) + gr.Parameter(1.0) * gr.L1()(rng.standard_normal((3, n)) @ gr.w))


def test_pairs_of_parameters_that_do_not_fit_are_refused_before_they_are_formed():
    with gate.allowing(8.0 * 60**2), pytest.raises(MemoryError, match="the pairs of parameters that rows tie"):
        gr.strength_max(sums())


def test_the_products_of_long_rows_are_counted(monkeypatch):
    seen = list[float]()

    def noted(multiplications, work):
        seen.append(multiplications)
        return work()

    monkeypatch.setattr(on_rows, "heavy", noted)
    gr.strength_max(sums())
    assert seen == [on_rows.FOR_PRODUCT * 3 * 60**2]
