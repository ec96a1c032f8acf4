"""Fits of real data, without any penalty and fully pooled, equal to those of statsmodels and scikit-learn."""

from __future__ import annotations

import json
from functools import cache

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from places import DATA
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, QuantileRegressor

import graphreg as gr

LIP_CANCER = DATA / "scotland_lip_cancer.json"
METHODS = [gr.Exact(), gr.PrimalDual(), gr.ADMM()]  # those that take every loss
GAP = 1e-9


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def solve(request):
    """Solves a model by one of the methods that are made for every problem."""
    return lambda model, gap=GAP: gr.Problem(model).solve(request.param, gap=gap)


def star(labels):
    """A connected graph on the labels."""
    first, *others = labels
    graph = nx.star_graph(len(others))
    return nx.relabel_nodes(graph, dict(enumerate([first, *others])))


# ---- Poisson: lip cancer in the districts of Scotland ----------------------------------------------------------------
@pytest.fixture(scope="module")
def districts():
    if not LIP_CANCER.is_file():
        pytest.skip(f"{LIP_CANCER.name} is not in ../shared/data")
    raw = json.loads(LIP_CANCER.read_text())
    frame = pd.DataFrame({"district": np.arange(1, raw["I"] + 1), "cases": raw["y"], "outdoors": raw["x"]})
    return frame.assign(log_expected=np.log(raw["E"])), nx.Graph(zip(*raw["edges"], strict=True))


def read(frame, features, intercept=True):
    return gr.NodeData.from_frame(
        frame, "district", target="cases", features=features, offset="log_expected", intercept=intercept
    )


def test_poisson_fully_pooled_is_the_generalised_linear_model(districts, solve):
    frame, graph = districts
    graph = nx.Graph([*graph.edges, *nx.path_graph(frame["district"]).edges])  # three islands have no neighbours
    pooled = solve(gr.PoissonLoss(read(frame, ["outdoors"]), scale="sum") + gr.Consensus(graph))
    glm = sm.GLM(
        frame["cases"], sm.add_constant(frame[["outdoors"]]), family=sm.families.Poisson(), offset=frame["log_expected"]
    ).fit(tol=1e-12)
    np.testing.assert_allclose(pooled.coef, np.tile(glm.params, (56, 1)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pooled.predict(frame), glm.fittedvalues, rtol=1e-4)
    eta = glm.fittedvalues / np.exp(frame["log_expected"])
    eta = np.log(eta) + frame["log_expected"]
    assert pooled.objective == pytest.approx(float((np.exp(eta) - frame["cases"] * eta).sum()), rel=1e-8)


def test_poisson_without_penalty_is_the_standardised_mortality_ratio(districts, solve):
    frame, _ = districts
    some = frame[frame["cases"] > 0]
    alone = solve(gr.PoissonLoss(read(some, None), scale="sum"))
    np.testing.assert_allclose(alone.coef[:, 0], np.log(some["cases"]) - some["log_expected"], atol=1e-4)


def test_districts_without_a_case_have_no_rate_of_their_own(districts):
    frame, _ = districts
    solution = gr.Problem(gr.PoissonLoss(read(frame, None), scale="sum")).solve(on_failure="return")
    assert (frame["cases"] == 0).sum() == 2
    assert solution.status == "unattained"
    assert "The infimum is certified, but not attained" in solution.message
    assert solution.certificate.holds(1e-6)
    some = frame[frame["cases"] > 0]
    eta = np.log(some["cases"])
    assert solution.objective == pytest.approx(float((np.exp(eta) - some["cases"] * eta).sum()), rel=1e-6)


def test_poisson_between_the_two_keeps_the_total(districts, solve):
    """A total variation alone moves cases between districts: fitted and observed totals agree."""
    frame, graph = districts
    frame = frame[frame["district"].isin(list(graph))]
    model = gr.PoissonLoss(read(frame, None), scale="sum") + 2.0 * gr.TotalVariation(graph, gr.L1())
    solution = solve(model, 1e-7)
    assert solution.predict(frame).sum() == pytest.approx(frame["cases"].sum(), rel=1e-3)
    assert 1 < len(set(solution.clusters().labels.values())) < len(frame)


# ---- quantiles: the progression of diabetes --------------------------------------------------------------------------
@cache
def patients():
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    scaled = (frame - frame.mean()) / frame.std()
    ages = pd.qcut(frame["age"], 4, labels=["youngest", "young", "old", "oldest"]).astype(str)
    return scaled[["bmi", "bp", "s5"]].assign(target=frame["target"], group=ages)


def quantile_data():
    return gr.NodeData.from_frame(patients(), "group", target="target", features=["bmi", "bp", "s5"], intercept=True)


def pinball(frame, beta, tau):
    r = frame["target"] - beta[0] - frame[["bmi", "bp", "s5"]] @ beta[1:]
    return float(np.maximum(tau * r, (tau - 1) * r).mean())


def regressed(frame, tau):
    """The value and coefficients of scikit-learn's linear programme."""
    fit = QuantileRegressor(quantile=tau, alpha=0.0, solver="highs").fit(frame[["bmi", "bp", "s5"]], frame["target"])
    beta = np.r_[fit.intercept_, fit.coef_]
    return pinball(frame, beta, tau), beta


@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
def test_quantiles_without_penalty_are_those_of_each_group(tau, solve):
    solution = solve(gr.QuantileLoss(quantile_data(), tau=tau), 1e-7)
    groups = dict(tuple(patients().groupby("group")))
    values = {label: regressed(frame, tau)[0] for label, frame in groups.items()}
    assert solution.objective == pytest.approx(sum(values.values()), rel=2e-7)
    for label, row in solution.table().iterrows():
        assert pinball(groups[label], row.to_numpy(), tau) == pytest.approx(values[label], rel=1e-6)


@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
def test_quantiles_fully_pooled_are_those_of_all(tau, solve):
    data = quantile_data()
    counts = dict(zip(data.labels, (data.counts() / data.n_samples).tolist(), strict=True))
    weighted = {label: share / data.counts()[k] for k, (label, share) in enumerate(counts.items())}
    solution = solve(gr.QuantileLoss(data, tau=tau, scale=weighted) + gr.Consensus(star(data.labels)), 1e-7)
    value, beta = regressed(patients(), tau)
    assert solution.objective == pytest.approx(value, rel=2e-7)
    median = sm.QuantReg(patients()["target"], sm.add_constant(patients()[["bmi", "bp", "s5"]])).fit(q=tau)
    assert pinball(patients(), median.params.to_numpy(), tau) >= solution.certificate.dual
    np.testing.assert_allclose(solution.coef, np.tile(beta, (4, 1)), atol=0.05)  # unique to a gap of 1e-7 only so far
    np.testing.assert_allclose(solution.coef[0], median.params, atol=0.5)  # iterations that stop at 1e-6 of their own


# ---- classes: wines --------------------------------------------------------------------------------------------------
@cache
def wines():
    frame = datasets.load_wine(as_frame=True).frame
    names = {0: "barolo", 1: "grignolino", 2: "barbera"}
    columns = ["ash", "magnesium"]  # with more of them the three classes are separated
    scaled = (frame[columns] - frame[columns].mean()) / frame[columns].std()
    return scaled.assign(wine=frame["target"].map(names), cask=np.arange(len(frame)) % 3)


def wine_data():
    return gr.NodeData.from_frame(wines(), "cask", target="wine", features=["ash", "magnesium"], intercept=True)


def classified(frame):
    """The coefficients (features x classes) and the classes of statsmodels' multinomial model, the first at 0."""
    codes = frame["wine"].astype("category")
    fit = sm.MNLogit(codes.cat.codes, sm.add_constant(frame[["ash", "magnesium"]])).fit(
        method="newton", disp=0, maxiter=200, tol=1e-14
    )
    return np.c_[np.zeros(3), fit.params.to_numpy()], -fit.llf


def centred(coef):
    """The coefficients of one node, of which only differences between classes mean anything."""
    W = np.asarray(coef).reshape(3, 3)
    return W - W.mean(axis=1, keepdims=True)


def test_classes_without_penalty_are_those_of_each_node(solve):
    solution = solve(gr.MultinomialLoss(wine_data(), scale="sum"))
    parts = dict(tuple(wines().groupby("cask")))
    for label, W in zip(solution.labels, solution.coef, strict=True):
        expected, _ = classified(parts[label])
        np.testing.assert_allclose(centred(W), centred(expected), atol=2e-3)
    assert solution.objective == pytest.approx(sum(classified(part)[1] for part in parts.values()), rel=1e-8)


def test_classes_fully_pooled_are_those_of_all(solve):
    solution = solve(gr.MultinomialLoss(wine_data(), scale="sum") + gr.Consensus(nx.complete_graph(3)))
    expected, value = classified(wines())
    assert solution.objective == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(centred(solution.coef[0]), centred(expected), atol=1e-3)
    columns = solution.table().columns
    assert columns.names == ["feature", "class"]
    assert columns.tolist()[:3] == [("intercept", "barbera"), ("intercept", "barolo"), ("intercept", "grignolino")]


def test_classes_with_a_ridge_are_those_of_scikit_learn(solve):
    data = wine_data()
    model = gr.MultinomialLoss(data, scale="sum") + gr.NodePenalty(gr.SquaredL2(), weights={0: 1.0, 1: 1e-9, 2: 1e-9})
    solution = solve(model + gr.Consensus(nx.complete_graph(3)))
    X, y = wines()[["ash", "magnesium"]], wines()["wine"]
    fit = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(centred(solution.coef[0])[1:], fit.coef_.T, atol=1e-4)
    np.testing.assert_allclose(solution.predict(wines()), fit.predict_proba(X), atol=1e-4)
    assert (solution.predict(wines(), kind="class") == fit.predict(X)).all()


def test_a_class_that_can_be_separated_has_an_infimum_that_is_not_attained():
    """Setosa is separated from the other irises by its sepals, which do not tell these from each other."""
    iris = datasets.load_iris(as_frame=True).frame
    frame = iris.rename(columns=lambda name: name.removesuffix(" (cm)")).assign(node=0)
    names = ["sepal length", "sepal width"]
    data = gr.NodeData.from_frame(frame, "node", target="target", features=names, intercept=True)
    solution = gr.Problem(gr.MultinomialLoss(data, scale="sum")).solve(on_failure="return")
    assert solution.status == "unattained"
    assert solution.certificate.holds(1e-6), solution
    rest = frame[frame["target"] > 0]
    fit = sm.Logit(rest["target"] - 1, sm.add_constant(rest[names])).fit(disp=0, method="newton", tol=1e-12)
    assert solution.objective == pytest.approx(-fit.llf, rel=1e-6)
