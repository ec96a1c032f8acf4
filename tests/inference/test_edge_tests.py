"""Edge tests: equal to statsmodels', and lawful."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

import graphreg as gr
from benchmarks.statistics.edge_tests import pairs, rejections
from graphreg.errors import MethodError, MethodWarning
from graphreg.inference import edge_tests, wald
from graphreg.inference.local import local_fits
from graphreg.inference.wald import EndsUnderTest, degrees, noise_of

SIZES = (40, 60, 30)
P = 3


def drawn(kind="squared", seed=0, weights=False):
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(len(SIZES)), SIZES)
    X = np.column_stack([np.ones(len(node)), rng.normal(size=(len(node), P - 1))])
    w = rng.normal(size=(len(SIZES), P)) * 0.4
    eta = np.einsum("ij,ij->i", X, w[node])
    if kind == "logistic":
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        y = eta + rng.normal(size=len(X)) * (1 + (X[:, 1] > 0))
    v = rng.uniform(0.5, 2.0, len(X)) if weights else np.ones(len(X))
    return X, y, node, v


def data_of(X, y, node, v=None):
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(node=node, y=y)
    frame["v"] = 1.0 if v is None else v
    return gr.NodeData.from_frame(
        frame, node="node", target="y", features=[f"x{j}" for j in range(X.shape[1])], weights="v"
    )


def stacked(X, node, i, j):
    """The rows of two nodes with the regressors X and 1[j] X: the last p coefficients are the difference."""
    rows = (node == i) | (node == j)
    return rows, np.hstack([X[rows], X[rows] * (node[rows] == j)[:, None]])


TRIANGLE = gr.Graph.from_edges([(0, 1), (1, 2), (0, 2)])


# ---- beside statsmodels ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", ["mean", "sum", {0: 1.0, 1: 5.0, 2: 0.1}])
@pytest.mark.parametrize("weighted", [False, True])
def test_chow_is_the_comparison_of_nested_models(scale, weighted):
    X, y, node, v = drawn(weights=weighted)
    tests = edge_tests(
        gr.SquaredLoss(data_of(X, y, node, v), scale=scale), TRIANGLE, covariance="chow", correction=None
    )
    # weights of a node are relative to its other samples: statsmodels is told so
    v = v / np.array([v[node == i].mean() for i in range(3)])[node]
    for (i, j), row in zip(TRIANGLE.edges(), tests.itertuples(), strict=True):
        rows, Z = stacked(X, node, i, j)
        whole, pooled = sm.WLS(y[rows], Z, v[rows]).fit(), sm.WLS(y[rows], X[rows], v[rows]).fit()
        F, p, _ = whole.compare_f_test(pooled)
        np.testing.assert_allclose([row.statistic, row.p_value], [P * F, p], rtol=1e-8)
        assert row.residual_df == rows.sum() - 2 * P


@pytest.mark.parametrize("kind", ["HC0", "HC2", "HC3"])
@pytest.mark.parametrize("features", [None, ["x1"], ["x2", "x0"]])
def test_sandwiches_are_the_wald_tests_of_interactions(kind, features):
    X, y, node, _ = drawn()
    columns = [0, 1, 2] if features is None else [int(name[1]) for name in features]
    tests = edge_tests(gr.SquaredLoss(data_of(X, y, node)), TRIANGLE, covariance=kind, features=features)
    for (i, j), row in zip(TRIANGLE.edges(), tests.itertuples(), strict=True):
        rows, Z = stacked(X, node, i, j)
        fit = sm.OLS(y[rows], Z).fit(cov_type=kind)
        expected = fit.wald_test(np.eye(2 * P)[[P + c for c in columns]], use_f=False, scalar=True)
        np.testing.assert_allclose([row.statistic, row.p_value], [expected.statistic, expected.pvalue], rtol=1e-7)
        assert row.df == len(columns)


def test_logistic_edges_have_the_sandwiches_of_statsmodels():
    X, y, node, _ = drawn("logistic")
    for kind, cov_type in (("HC0", "HC0"), ("model", "nonrobust")):
        tests = edge_tests(gr.LogisticLoss(data_of(X, y, node), scale="sum"), TRIANGLE, covariance=kind)
        fits = [sm.GLM(y[node == i], X[node == i], sm.families.Binomial()).fit(cov_type=cov_type) for i in range(3)]
        for (i, j), row in zip(TRIANGLE.edges(), tests.itertuples(), strict=True):
            d = fits[i].params - fits[j].params
            expected = d @ np.linalg.solve(fits[i].cov_params() + fits[j].cov_params(), d)
            np.testing.assert_allclose(row.statistic, expected, rtol=1e-5)


def test_robust_of_two_means_is_welchs_test():
    """W^2 = t^2 and Welch's degrees of freedom, but for m_i in the place of m_i - 1."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=14), 0.8 + 3 * rng.normal(size=30)
    data = gr.NodeData.from_dict({"a": (np.ones((14, 1)), a), "b": (np.ones((30, 1)), b)})
    (row,) = edge_tests(gr.SquaredLoss(data), covariance="robust").itertuples()
    t = stats.ttest_ind(a, b, equal_var=False).statistic
    va, vb = a.var(ddof=1) / 14, b.var(ddof=1) / 30
    np.testing.assert_allclose(row.statistic, t**2, rtol=1e-9)
    np.testing.assert_allclose(row.residual_df, (va + vb) ** 2 / (va**2 / 14 + vb**2 / 30), rtol=1e-9)
    np.testing.assert_allclose(row.p_value, 2 * stats.t.sf(abs(t), row.residual_df), rtol=1e-9)


def test_hotelling_is_what_normal_vectors_with_estimated_covariances_have():
    """Of means of normal vectors the covariances are Wishart: with the residual degrees of freedom as they are, the
    p-values at one covariance are those of Hotelling's two-sample T^2."""
    m, k = 12, 3
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, m, k))
    S = np.stack([np.cov(A.T) / m, np.cov(A.T) / m])
    ends = EndsUnderTest("ab", np.array([0]), np.array([1]), np.eye(k))
    d = (A.mean(0) - B.mean(0))[None]
    W2, nu = wald.wald(d, S, ends, np.full(2, m - 1.0))
    np.testing.assert_allclose(nu, 2 * m - 2)  # equal covariances: the degrees of freedom add up
    np.testing.assert_allclose(W2, d[0] @ np.linalg.inv(2 * S[0]) @ d[0])
    expected = stats.f.sf((nu - k + 1) / (nu * k) * W2, k, nu - k + 1)
    np.testing.assert_allclose(wald.Reference.hotelling(k, nu).p_values(W2), expected)


def test_degrees_of_freedom_are_those_of_the_matrix_that_varies_as_much():
    """By brute force: the spread of sum_r g_r g_r' over draws of normal scores."""
    X, y, node, _ = drawn()
    fits = local_fits(gr.Problem(gr.SquaredLoss(data_of(X, y, node))).form)
    ends = EndsUnderTest(fits.form.labels, np.array([0]), np.array([1]), np.eye(3)[[2, 1]])
    nu = degrees(fits, ends)
    for i in range(3):
        Xi = X[node == i]
        b = (Xi @ np.linalg.inv(Xi.T @ Xi))[:, [2, 1]]  # influences
        root = np.linalg.inv(np.linalg.cholesky(b.T @ b))
        u = b @ root.T
        e2 = np.random.default_rng(i).normal(size=(20000, len(u))) ** 2
        matrices = np.einsum("tr,rj,rk->tjk", e2, u, u)
        np.testing.assert_allclose(matrices.mean(0), np.eye(2), atol=0.02)
        np.testing.assert_allclose(2 * 3 / matrices.var(0).sum(), nu[i], rtol=0.05)


@pytest.mark.parametrize("ridge", [None, 0.3])
def test_leverages_on_some_coefficients_add_up_to_their_number(ridge):
    X, y, node, v = drawn("logistic", weights=True)
    model = gr.LogisticLoss(data_of(X, y, node, v))
    model = model if ridge is None else model + ridge * gr.NodePenalty(gr.SquaredL2())
    fits = local_fits(gr.Problem(model).form)
    for columns in ([0], [2, 0], [0, 1, 2]):
        h = fits.leverage(fits.form.samples[0], fits.metric(np.eye(3)[columns]))
        np.testing.assert_allclose(np.bincount(node, h), len(columns), rtol=1e-9)


def test_classes_are_compared_by_their_differences():
    """Beside statsmodels' multinomial regression, whose coefficients are differences from the first class."""
    X, _, node, _ = drawn()
    X, node = np.tile(X, (3, 1)), np.tile(node, 3)
    y = np.argmax(np.random.default_rng(2).gumbel(size=(len(X), 3)) + X, axis=1)
    data = data_of(X, y, node)
    ridge = gr.NodePenalty(gr.SquaredL2(), features=["x0", "x1", "x2"])  # so small that the shift alone sees it
    tests = edge_tests(gr.MultinomialLoss(data, scale="sum") + 1e-7 * ridge, TRIANGLE, covariance="model")
    fits = [sm.MNLogit(y[node == i], X[node == i]).fit(disp=0, tol=1e-12) for i in range(3)]
    for (i, j), row in zip(TRIANGLE.edges(), tests.itertuples(), strict=True):
        d = (np.asarray(fits[i].params) - np.asarray(fits[j].params)).T.ravel()
        expected = d @ np.linalg.solve(fits[i].cov_params() + fits[j].cov_params(), d)
        np.testing.assert_allclose(row.statistic, expected, rtol=1e-4)
        assert row.df == 6


# ---- laws ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["chow", "robust", "HC3"])
def test_neither_scales_nor_coordinates_nor_units_nor_directions_matter(kind):
    X, y, node, _ = drawn()
    first = edge_tests(gr.SquaredLoss(data_of(X, y, node)), TRIANGLE, covariance=kind)
    A = np.random.default_rng(3).normal(size=(P, P)) * [1.0, 1e4, 1e-4]
    turned = gr.SquaredLoss(data_of(X @ A, 1e3 * y, node), scale=7.0)
    backwards = gr.Graph.from_edges([(2, 0), (2, 1), (1, 0)])  # the nodes in the order 2, 0, 1
    second = edge_tests(turned, backwards, covariance=kind)
    for row in second.itertuples():
        (same,) = (other for other in first.itertuples() if {other.tail, other.head} == {row.tail, row.head})
        np.testing.assert_allclose(row.statistic, same.statistic, rtol=1e-6)
        np.testing.assert_allclose(row.p_value, same.p_value, rtol=1e-6)


@pytest.mark.parametrize(("correction", "method"), [("bonferroni", "bonferroni"), ("bh", "fdr_bh"), (None, None)])
def test_corrections(correction, method):
    loss, graph = pairs("normal, sd 1", 40, 4, 30, distance=0.5)
    tests = edge_tests(loss, graph, correction=correction, alpha=0.1)
    expected = tests["p_value"] if method is None else multipletests(tests["p_value"], 0.1, method)[1]
    np.testing.assert_allclose(tests["adjusted"], expected)
    assert tests["keep"].tolist() == (expected >= 0.1).tolist()
    assert 0 < tests["keep"].sum() < 30


def test_the_papers_rule():
    """(14): kept where W^2 is at most the upper alpha/|E| quantile of chi-square."""
    loss, graph = pairs("normal, sd 1", 40, 4, 30, distance=0.8)
    tests = edge_tests(loss, graph, covariance="model")
    assert tests["keep"].tolist() == (tests["statistic"] <= stats.chi2.isf(0.05 / 30, 4)).tolist()
    assert 0 < tests["keep"].sum() < 30


@pytest.mark.parametrize("kind", ["model", "robust", "chow"])
def test_differences_beyond_the_separation_satisfy_the_condition_of_consistency(kind):
    """(15), with the critical value of the edge's own reference: d'(Omega_i + Omega_j)^-1 d >= 4 c in any direction."""
    X, y, node, _ = drawn()
    loss = gr.SquaredLoss(data_of(X, y, node))
    tests = edge_tests(loss, TRIANGLE, covariance=kind)
    fits = local_fits(gr.Problem(loss).form)
    for (i, j), row in zip(TRIANGLE.edges(), tests.itertuples(), strict=True):
        if kind == "chow":
            residual = [y[node == a] - X[node == a] @ fits.coef[a] for a in (i, j)]
            variance = sum(r @ r for r in residual) / row.residual_df
            omega = variance * sum(np.linalg.inv(X[node == a].T @ X[node == a]) for a in (i, j))
            critical = P * stats.f.isf(0.05 / 3, P, row.residual_df)
        else:
            covariance = fits.covariance("HC4" if kind == "robust" else "model")
            omega, critical = covariance[i] + covariance[j], stats.chi2.isf(0.05 / 3, P)
        if kind == "robust":
            nu = row.residual_df + P - 1
            critical = nu * P / row.residual_df * stats.f.isf(0.05 / 3, P, row.residual_df)
        worst = row.separation**2 / np.linalg.eigvalsh(omega)[-1]
        assert 4 * critical * (1 - 1e-9) <= worst <= 8 * critical


def test_edges_worked_on_in_parts_are_the_same(monkeypatch):
    loss, _ = pairs("sd |x_1|", 40, 4, 8)
    whole = edge_tests(loss)
    monkeypatch.setattr(wald, "AT_ONCE", 7 * 16)
    np.testing.assert_array_equal(edge_tests(loss)["statistic"], whole["statistic"])
    assert len(whole) == 16 * 15 // 2


# ---- what "auto" looks at --------------------------------------------------------------------------------------------
def test_regressions_of_the_squared_residuals():
    X, y, node, v = drawn(weights=True)
    fits = local_fits(gr.Problem(gr.SquaredLoss(data_of(X, y, node, v))).form)
    noise = noise_of(fits, np.eye(3)[[1, 2]])
    for i in range(3):
        rows = node == i
        fit = sm.WLS(y[rows], X[rows], v[rows] / v[rows].mean()).fit()
        np.testing.assert_allclose(noise.variance[i], fit.scale, rtol=1e-8)
        Z = X[rows] * np.sqrt(v[rows])[:, None]
        B = Z @ np.linalg.inv(Z.T @ Z)
        level = fit.wresid**2 / (1 - (B * Z).sum(axis=1))
        influence = B[:, [1, 2]]
        share = (influence @ np.linalg.inv(influence.T @ influence) * influence).sum(axis=1)
        for q, Q in enumerate((share[:, None], influence**2)):
            R2 = sm.OLS(level, sm.add_constant(Q)).fit().rsquared
            np.testing.assert_allclose(noise.score[q, i], (rows.sum() - 1) * R2, rtol=1e-6)
            assert noise.rank[q, i] == Q.shape[1]


def test_auto_takes_chow_where_the_residuals_fit_one_variance():
    (even, graph), (uneven, _), (between, _) = (
        pairs(noise, 100, 3, 200) for noise in ("normal, sd 1", "sd |x_1|", "sd 1 and 3 at the ends")
    )
    assert 0.7 < rejections(even, graph, "auto")[1] < 0.9  # the level of the preliminary test is .2
    assert rejections(uneven, graph, "auto")[1] == 0.0
    hidden = pairs("sd exp(x_1 / 2)", 50, 5, 100)  # two nodes alone seldom show it, all of them together do
    alone = [rejections(*pairs("sd exp(x_1 / 2)", 50, 5, 1, seed=seed), "auto")[1] for seed in range(10)]
    assert sum(alone) >= 2
    assert rejections(*hidden, "auto")[1] == 0.0
    assert rejections(between, graph, "auto")[1] == 0.0
    tests, chow, robust = (edge_tests(even, graph, covariance=kind) for kind in ("auto", "chow", "robust"))
    expected = np.where(tests["covariance"] == "chow", chow["p_value"], robust["p_value"])
    np.testing.assert_allclose(tests["p_value"], expected)


def test_edges_between_families_and_other_losses_are_tested_robustly():
    X, y, node, _ = drawn()
    parts = data_of(X, y, node)
    binary = data_of(X, (y > 0).astype(float), node)
    loss = gr.SquaredLoss(parts.take(node < 2)) + gr.LogisticLoss(binary.take(node == 2))
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    assert edge_tests(loss, graph)["covariance"].iloc[1] == "robust"
    with pytest.raises(MethodError, match="node 2 has another loss"):
        edge_tests(loss, graph, covariance="chow")
    assert edge_tests(loss, gr.Graph.from_edges([(0, 1)], nodes=[0, 1, 2]), covariance="chow")["keep"].notna().all()


def test_losses_with_several_predictors():
    X, _, node, _ = drawn()
    y = np.argmax(np.random.default_rng(2).gumbel(size=(len(X), 3)) + X, axis=1)
    classes = gr.MultinomialLoss(data_of(X, y, node)) + 0.05 * gr.NodePenalty(gr.SquaredL2())
    with pytest.warns(MethodWarning, match="40 samples for 9 coefficients .and 1 more"):
        tests = edge_tests(classes + 0.05 * gr.NodePenalty(gr.SquaredL2(), features=["x0"]), TRIANGLE, features=["x1"])
    assert tests["df"].tolist() == [2] * 3  # the differences from the last class
    means = gr.MeanLoss(gr.NodeData.from_arrays(None, X[:, 1:], node))
    tests = edge_tests(means, TRIANGLE, covariance="robust")
    assert (tests["p_value"] > 0.001).all()
    a, b = X[node == 0, 1:], X[node == 1, 1:]
    d = a.mean(0) - b.mean(0)
    S = [np.cov(part.T, ddof=0) / len(part) * (len(part) / (len(part) - 1)) ** 2 for part in (a, b)]  # HC3
    np.testing.assert_allclose(tests["statistic"][0], d @ np.linalg.solve(S[0] + S[1], d), rtol=1e-8)
