"""Counts, quantiles, several classes and hinges as users see them: fits, predictions, tables, the intercept."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import graphreg as gr

NODES = ["a", "b", "c"]
CHAIN = nx.path_graph(NODES)
KINDS = ("moss", "fern", "pine")
RIDGE = gr.NodePenalty(gr.SquaredL2())
LOSSES = {
    "count": gr.PoissonLoss,
    "level": lambda data: gr.QuantileLoss(data, tau=0.8),
    "kind": gr.MultinomialLoss,
    "flood": gr.HingeLoss,
    "dry": gr.SquaredHingeLoss,
}


@pytest.fixture
def frame():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.normal(size=(36, 2)), columns=["rain", "temp"]).assign(site=np.repeat(NODES, 12))
    noise = rng.normal(size=(36, 3))
    return frame.assign(
        gauge=0.2 * noise[:, 2],
        level=frame["rain"] + 0.5 * noise[:, 0],
        count=rng.poisson(np.exp(1.0 + 0.5 * frame["temp"])),
        kind=np.array(KINDS)[np.argmax(noise + np.stack([frame["rain"], frame["temp"], 0 * frame["temp"]], 1), axis=1)],
        flood=(frame["rain"] + noise[:, 1] > 0).astype(int),
        dry=np.where(frame["rain"] + noise[:, 2] > 0, -1, 1),
    )


def read(frame, target, **more):
    more = {"features": ["rain", "temp"], "intercept": True} | more
    return gr.NodeData.from_frame(frame, node="site", target=target, **more)


def solved(frame, target, **more):
    model = LOSSES[target](read(frame, target, **more)) + 0.05 * gr.TotalVariation(CHAIN, gr.L2()) + 0.1 * RIDGE
    return gr.Problem(model).solve(gap=1e-8)


def links(solution, frame, offset=None):
    """x_r'w_i by hand, a column per class."""
    w = solution.coef.reshape(len(NODES), 3, -1)[[NODES.index(site) for site in frame["site"]]]
    X = np.column_stack([np.ones(len(frame)), frame["rain"], frame["temp"]])
    link = np.einsum("rj,rjk->rk", X, w)
    return link if offset is None else link + frame[[offset]].to_numpy()


# ---- fits ------------------------------------------------------------------------------------------------------------
def objective(target, frame):
    """The mean loss at one node, by its textbook formula; a number per parameter."""
    X = np.column_stack([np.ones(len(frame)), frame["rain"], frame["temp"]])
    y = frame[target].to_numpy()

    def value(w):
        x = X @ w.reshape(3, -1)
        match target:
            case "count":
                losses = np.exp(x[:, 0]) - y * x[:, 0]
            case "kind":
                losses = -np.log(softmax(x, axis=1))[np.arange(len(y)), [sorted(KINDS).index(each) for each in y]]
            case _:
                sign = np.where(y > 0, 1.0, -1.0)
                losses = np.maximum(0.0, 1.0 - sign * x[:, 0]) ** 2 / 2
        return losses.mean() + 0.05 * (w.reshape(3, -1)[1:] ** 2).sum()

    return value


@pytest.mark.parametrize("target", ["count", "kind", "dry"])
@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_a_node_alone_is_fitted_as_by_hand(frame, target, method):
    solution = gr.Problem(LOSSES[target](read(frame, target)) + 0.1 * RIDGE).solve(method, gap=1e-9)
    total = 0.0
    for k, site in enumerate(NODES):
        value = objective(target, frame[frame["site"] == site])
        found = minimize(value, np.zeros(solution.coef.shape[1]), tol=1e-12)
        assert value(solution.coef[k]) == pytest.approx(found.fun, rel=1e-7)
        total += found.fun
    assert solution.objective == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=lambda method: method.name)
def test_a_constant_is_the_quantile(tau, method):
    y = np.random.default_rng(1).standard_normal(41)
    data = gr.NodeData.from_arrays(np.ones((41, 1)), y, ["a"] * 41)
    found = gr.Problem(gr.QuantileLoss(data, tau=tau)).solve(method, gap=1e-9)
    assert found.coef[0, 0] == pytest.approx(np.quantile(y, tau, method="inverted_cdf"), abs=1e-6)


def test_the_hinge_leaves_what_is_beyond_the_margin_alone(frame):
    """Samples beyond the margin have the price 0: without them the answer is the same."""
    loss = gr.HingeLoss(read(frame, "flood"), scale="sum")
    model = loss + 0.5 * gr.NodePenalty(gr.SquaredL2(), features=["intercept", "rain", "temp"])
    solution = gr.Problem(model).solve(gap=1e-9)
    margin = np.where(frame["flood"] == 1, 1, -1) * links(solution, frame)[:, 0]
    kept = frame[margin < 1.001]
    assert 5 < len(kept) < 33
    again = gr.Problem(gr.HingeLoss(read(kept, "flood"), scale="sum") + model.terms[1][1] * 0.5).solve(gap=1e-9)
    np.testing.assert_allclose(again.coef, solution.coef, atol=1e-3)


# ---- predictions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("offset", [None, "gauge"])
def test_counts_are_expected_at_the_exponential(frame, offset):
    solution = solved(frame, "count", offset=offset)
    link = links(solution, frame, offset)[:, 0]
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link, rtol=1e-10)
    np.testing.assert_allclose(solution.predict(frame), np.exp(link), rtol=1e-10)
    with pytest.raises(gr.errors.DataError, match="PoissonLoss is none"):
        solution.predict(frame, kind="class")
    assert np.isfinite(solution.predict(frame.assign(rain=1e9, temp=1e9, gauge=0.0))).all()


@pytest.mark.parametrize("offset", [None, "gauge"])
def test_quantiles_are_expected_at_the_predictor(frame, offset):
    solution = solved(frame, "level", offset=offset)
    link = links(solution, frame, offset)[:, 0]
    for kind in ("response", "link"):
        np.testing.assert_allclose(solution.predict(frame, kind=kind), link, rtol=1e-10)
    assert 0.6 < (frame["level"] < solution.predict(frame)).mean() < 1.0


@pytest.mark.parametrize("target", ["flood", "dry"])
def test_hinges_name_classes_as_they_were_coded(frame, target):
    solution = solved(frame, target)
    link = links(solution, frame)[:, 0]
    low, high = np.unique(frame[target])
    classes = solution.predict(frame, kind="class")
    assert classes.tolist() == np.where(link > 0, high, low).tolist()
    assert classes.dtype == frame[target].dtype
    assert (classes == frame[target]).mean() > 0.6
    np.testing.assert_allclose(solution.predict(frame), link, rtol=1e-10)  # a margin: hinges know no probabilities


def test_several_classes(frame):
    solution = solved(frame, "kind")
    link, order = links(solution, frame), sorted(KINDS)
    chances = solution.predict(frame)
    assert chances.columns.tolist() == order
    assert chances.index.equals(frame.index)
    np.testing.assert_allclose(chances, softmax(link, axis=1), rtol=1e-9)
    np.testing.assert_allclose(solution.predict(frame, kind="link"), link, rtol=1e-9)
    classes = solution.predict(frame, kind="class")
    assert classes.tolist() == [order[k] for k in link.argmax(axis=1)]
    assert (classes == frame["kind"]).mean() > 0.5


def test_classes_that_were_never_seen_have_small_probabilities(frame):
    order = ("pine", "oak", "moss", "fern")
    loss = gr.MultinomialLoss(read(frame, "kind"), classes=order)
    ridge = gr.NodePenalty(gr.SquaredL2(), features=["intercept", "rain", "temp"])
    solution = gr.Problem(loss + 0.01 * ridge).solve()
    chances = solution.predict(frame)
    assert chances.columns.tolist() == list(order)
    assert chances["oak"].max() < 0.05
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert "oak" not in set(solution.predict(frame, kind="class"))


@pytest.mark.parametrize("values", [(0, 1), (False, True), ("no", "yes"), (("a", 1), ("b", 2)), (1, "two")])
def test_classes_of_every_kind_come_back_as_they_were(frame, values):
    kinds = np.empty(2, dtype=object)
    kinds[:] = values
    frame["kind"] = pd.Series(kinds[frame["flood"].to_numpy()], index=frame.index)
    solution = solved(frame, "kind")
    assert list(solution.predict(frame).columns) == list(values)
    assert set(solution.predict(frame, kind="class")) == set(values)


def test_two_classes_are_those_of_logistic_regression(frame):
    """With w = (v, -v) the multinomial loss is the logistic one at 2 v, and the ridge of both is that of v."""
    ridge = gr.NodePenalty(gr.SquaredL2(), features=["intercept", "rain", "temp"])
    two = gr.Problem(gr.MultinomialLoss(read(frame, "flood")) + 0.2 * ridge).solve(gap=1e-10)
    one = gr.Problem(gr.LogisticLoss(read(frame, "flood")) + 0.1 * ridge).solve(gap=1e-10)
    assert two.objective == pytest.approx(one.objective, rel=1e-8)
    np.testing.assert_allclose(two.predict(frame)[1], one.predict(frame), atol=1e-4)


# ---- tables, features, the intercept ---------------------------------------------------------------------------------
def test_the_table_of_several_classes_has_a_column_for_each_feature_and_class(frame):
    table = solved(frame, "kind").table()
    assert table.columns.names == ["feature", "class"]
    assert table.columns.tolist() == [(j, k) for j in ("intercept", "rain", "temp") for k in sorted(KINDS)]
    assert table["rain"].columns.tolist() == sorted(KINDS)
    assert table.index.tolist() == NODES


def test_a_feature_by_name_means_all_its_classes(frame):
    loss = gr.MultinomialLoss(read(frame, "kind"))
    shared = gr.Consensus(CHAIN, features=["rain"])
    fixed = gr.NodePenalty(gr.Zero(), features=["temp"])
    table = gr.Problem(loss + shared + fixed + 0.1 * RIDGE).solve().table()
    assert np.ptp(table["rain"].to_numpy(), axis=0).max() == 0
    assert not table["temp"].to_numpy().any()
    assert np.ptp(table["intercept"].to_numpy(), axis=0).min() > 1e-3


@pytest.mark.parametrize("target", LOSSES)
def test_a_node_penalty_skips_the_intercept(frame, target):
    """Below a huge ridge the intercept alone is left: the mean, the quantile, the shares of the classes."""
    solution = gr.Problem(LOSSES[target](read(frame, target)) + 1e4 * RIDGE).solve(gap=1e-9)
    table = solution.table()
    assert np.abs(table[["rain", "temp"]].to_numpy()).max() < 1e-3
    for site, rows in frame.groupby("site"):
        intercept = np.ravel(
            table.loc[site, "intercept"].to_numpy() if target == "kind" else table.loc[site, "intercept"]
        )
        y = rows[target]
        if target == "count":
            assert np.exp(intercept[0]) == pytest.approx(y.mean(), rel=1e-2)
        elif target == "kind":
            shares = y.value_counts(normalize=True)[sorted(KINDS)]
            np.testing.assert_allclose(softmax(intercept), shares, atol=1e-2)
        elif target == "level":
            assert np.quantile(y, 0.7) <= intercept[0] <= np.quantile(y, 0.9)
        else:
            assert np.sign(intercept[0]) == np.sign((np.where(y > 0, 1, -1)).sum()) or y.mean() in (0, 0.5)


@pytest.mark.parametrize("target", LOSSES)
def test_what_is_written_down_is_read_back(frame, target):
    """The primal value is that of the formula at the coefficients, and the flows balance the prices."""
    solution = solved(frame, target)
    certificate = solution.certificate
    assert certificate.dual <= solution.objective <= certificate.primal
    form, point = solution.form, certificate.dual_point
    scale = sum(np.abs(a).sum() for a in point.prices)
    assert np.abs(form.conservation(point)).max() <= 1e-9 * scale
