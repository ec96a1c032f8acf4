"""Local estimates and their covariances: equal to statsmodels', and every way in which a node's data fall short."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import graphreg as gr
from graphreg import oracles
from graphreg.errors import DataError, MethodError
from graphreg.inference import edge_tests, local, local_regions
from graphreg.inference.local import local_fits
from graphreg.terms.losses import at_rows

NODES, M, D = 3, 50, 3


def drawn(kind, seed=0):
    rng = np.random.default_rng(seed)
    X, node, w = rng.normal(size=(NODES * M, D)), np.repeat(np.arange(NODES), M), rng.normal(size=(NODES, D))
    eta = np.einsum("ij,ij->i", X, w[node])
    if kind == "squared":
        return X, eta + rng.normal(size=len(X)) * (1 + np.abs(X[:, 0])), node
    if kind == "logistic":
        return X, (rng.random(len(X)) < 1 / (1 + np.exp(-eta))).astype(int), node
    if kind == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta)), node
    return X, np.argmax(np.stack([eta, 0 * eta, -eta], 1) + rng.gumbel(size=(len(X), 3)), 1), node


LOSSES = {
    "squared": (gr.SquaredLoss, sm.families.Gaussian()),
    "logistic": (gr.LogisticLoss, sm.families.Binomial()),
    "poisson": (gr.PoissonLoss, sm.families.Poisson()),
}


def fits(loss, X, y, node, ridge=None, **options):
    model = loss(gr.NodeData.from_arrays(X, y, node), **options)
    return local_fits(gr.Problem(model if ridge is None else model + ridge * gr.NodePenalty(gr.SquaredL2())).form)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("scale", ["mean", "sum", 3.7])
def test_estimates_and_sandwiches_are_those_of_statsmodels(kind, scale):
    X, y, node = drawn(kind)
    loss, family = LOSSES[kind]
    found = fits(loss, X, y, node, scale=scale)
    for i in range(NODES):
        rows = node == i
        model = sm.OLS(y[rows], X[rows]) if kind == "squared" else sm.GLM(y[rows], X[rows], family=family)
        options = {} if kind == "squared" else {"tol": 1e-14}
        np.testing.assert_allclose(found.coef[i], model.fit(**options).params, rtol=1e-7, atol=1e-9)
        for hc in ("HC0", "HC1", "HC2", "HC3") if kind == "squared" else ("HC0",):
            expected = model.fit(cov_type=hc, **options).cov_params()
            np.testing.assert_allclose(found.covariance(hc)[i], expected, rtol=1e-6)
        if kind != "squared":  # the inverse information
            np.testing.assert_allclose(found.covariance("model")[i], model.fit(**options).cov_params(), rtol=1e-6)
        else:
            expected = np.linalg.inv(X[rows].T @ X[rows])
            np.testing.assert_allclose(found.covariance("model")[i], expected, rtol=1e-9)


@pytest.mark.parametrize("ridge", [None, 0.5])
def test_hc4_is_that_of_cribari_neto(ridge):
    """Squared residuals over (1 - h)^min(4, h / mean h): with ground edges the mean is that of what is left of h."""
    X, y, node = drawn("squared")
    X[::9] *= 4.0  # some leverages beyond four times the mean
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    model = loss if ridge is None else loss + ridge * gr.NodePenalty(gr.SquaredL2())
    found = local_fits(gr.Problem(model).form)
    beyond = 0
    for i in range(NODES):
        Z = X[node == i]
        B = np.linalg.inv(found.hessian[i]) @ Z.T
        h = np.einsum("jr,rj->r", B, Z)
        beyond += int((h > 4 * h.mean()).sum())
        e2 = (y[node == i] - Z @ found.coef[i]) ** 2 / (1 - h) ** np.minimum(4.0, h / h.mean())
        np.testing.assert_allclose(found.covariance("HC4")[i], B * e2 @ B.T, rtol=1e-7)
    assert beyond > 0


def test_corrections_for_leverage_are_those_of_leaving_a_sample_out():
    """HC3 of a squared loss: the jackknife, sum over r of the squared change of the estimate without sample r."""
    X, y, node = drawn("squared")
    found = fits(gr.SquaredLoss, X, y, node).covariance("HC3")
    for i in range(NODES):
        Xi, yi = X[node == i], y[node == i]
        whole = np.linalg.lstsq(Xi, yi)[0]
        changes = [np.linalg.lstsq(np.delete(Xi, r, 0), np.delete(yi, r))[0] - whole for r in range(M)]
        np.testing.assert_allclose(found[i], sum(np.outer(c, c) for c in changes), rtol=1e-8)


@pytest.mark.parametrize("kind", ["squared", "multinomial", "mean"])
def test_leverages_of_a_node_add_up_to_its_degrees_of_freedom(kind):
    X, y, node = drawn("squared" if kind == "mean" else kind)
    loss = {"squared": gr.SquaredLoss, "multinomial": gr.MultinomialLoss, "mean": gr.MeanLoss}[kind]
    ridge = 0.1 if kind == "multinomial" else None
    found = fits(loss, *((None, X, node) if kind == "mean" else (X, y, node)), ridge)
    (block,) = found.form.samples
    h = found.leverage(block)
    traces = np.bincount(block.node, h if h.ndim == 1 else np.einsum("rjj->r", h))
    H = found.hessian - (0.0 if ridge is None else ridge) * np.eye(found.form.d)
    np.testing.assert_allclose(traces, np.trace(found.inverse @ H, axis1=1, axis2=2), rtol=1e-9)


def test_multinomial_scores_without_a_sample():
    """Of HC3 with vector predictors: to first order the change of the estimate without a sample (a Newton step)."""
    X, y, node = drawn("multinomial")
    found = fits(gr.MultinomialLoss, X, y, node, 0.05)
    (block,) = found.form.samples
    inverse, scores = found.inverse, found.scores(block, "HC3")
    for r in (0, 60, 149):
        i = node[r]
        p = np.exp(block.predict(found.coef)[r])
        p /= p.sum()
        J = np.kron(X[r][:, None], np.eye(3))
        without = np.linalg.inv(found.hessian[i] - block.scale[r] * J @ (np.diag(p) - np.outer(p, p)) @ J.T)
        np.testing.assert_allclose(inverse[i] @ scores[r], without @ found.scores(block)[r], rtol=1e-8, atol=1e-12)


def test_huber_losses_whose_curvature_vanishes_on_the_way():
    X, _, node = drawn("squared")
    y = 10 * X[:, 0] + np.random.default_rng(1).standard_t(2, size=len(X))
    found = fits(gr.HuberLoss, X, y, node, delta=0.1)
    for i in range(NODES):
        residual = y[node == i] - X[node == i] @ found.coef[i]
        assert np.abs(X[node == i].T @ np.clip(residual, -0.1, 0.1)).max() < 1e-9


def test_nodes_without_data_have_no_estimate():
    X, y, node = drawn("squared")
    data = gr.NodeData.from_arrays(X, y, node)
    found = local_fits(gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(NODES + 1), gr.L2())).form)
    assert found.fitted.tolist() == [True] * NODES + [False]
    assert np.isnan(found.coef[-1]).all()
    assert np.isnan(found.covariance("HC3")[-1]).all()


def separable(X, y, node):
    y[node == 2] = X[node == 2] @ [1, 1, 0] > 0


def separable_in_large_units(X, y, node):
    """The direction along which the losses fall is small then."""
    separable(X, y, node)
    X *= 1e4


def nearly_separable(X, y, node):
    """All but ties at 0: quasi-complete separation."""
    X[:, 0] = np.where(np.arange(len(X)) % 2 == 0, 0.0, np.abs(X[:, 0]))
    y[(node == 1) & (X[:, 0] > 0)] = 1


BAD = {
    "separable": ("logistic", separable, r"node 2 runs to infinity"),
    "separable in large units": ("logistic", separable_in_large_units, r"node 2 runs to infinity"),
    "nearly separable": ("logistic", nearly_separable, r"node 1 runs to infinity"),
    "only zero counts": (
        "poisson",
        lambda X, y, node: (X.__setitem__((node == 0, 0), 1), y.__setitem__(node == 0, 0)),
        r"node 0 runs to infinity",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_node_whose_data_fall_short_is_named(case):
    kind, spoil, message = BAD[case]
    X, y, node = drawn(kind)
    kept = spoil(X, y, node)
    rows = kept if isinstance(kept, np.ndarray) else slice(None)
    with pytest.raises(DataError, match=message) as error:
        fits(LOSSES[kind][0], X[rows], y[rows], node[rows])
    assert "ridge" in str(error.value)
    fits(LOSSES[kind][0], X[rows], y[rows], node[rows], 1e-3)  # which helps


def test_a_node_without_features_has_no_variance_and_no_leverage():
    data = gr.NodeData.from_arrays([[0.0], [0.0], [1.0], [2.0], [0.5]], [0.0, 1.0, 1.0, 2.5, 0.1], list("aabbb"))
    found = local_fits(gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.NodePenalty(gr.SquaredL2())).form)
    with np.errstate(all="raise"):
        assert found.covariance("HC4")[0] == 0.0
        assert found.metric(np.eye(1))[0] == 0.0


def test_a_sample_that_alone_determines_several_numbers():
    rows = gr.NodeData.from_arrays(None, np.arange(10.0).reshape(5, 2), ["one", *["more"] * 4])
    found = local_fits(gr.Problem(gr.MeanLoss(rows)).form)
    with pytest.raises(DataError, match=r"node 'one' alone determines a coefficient"):
        found.covariance("HC3")


def test_a_sample_that_alone_determines_a_coefficient():
    X, y, node = drawn("squared")
    X[node == 1, 2] = 0.0
    X[60, 2] = 1.0
    found = fits(gr.SquaredLoss, X, y, node)
    found.covariance("HC0")
    with pytest.raises(DataError, match=r"node 1 alone determines a coefficient.* take covariance='model'"):
        found.covariance("HC3")
    found.covariance("model")  # which helps


def test_losses_that_are_not_smooth_and_unknown_covariances():
    X, y, node = drawn("squared")
    with pytest.raises(MethodError, match=r"\(HuberLoss, ExpectileLoss\): QuantileLoss is not smooth"):
        local_fits(gr.Problem(gr.QuantileLoss(gr.NodeData.from_arrays(X, y, node), tau=0.5)).form)
    with pytest.raises(MethodError, match="'HC0', 'HC1', 'HC2', 'HC3', 'HC4', 'model'"):
        fits(gr.SquaredLoss, X, y, node).covariance("HC9")


# ---- what the data leave open ----------------------------------------------------------------------------------------
SURPLUS = {  # columns of a node of which the data determine the last alone, and which of them carry the same
    "a column that is constant": lambda z: (np.ones_like(z), 3.0 * np.ones_like(z)),
    "a column twice": lambda z: (z, -2.0 * z),
    "a column of 0": lambda z: (np.ones_like(z), np.zeros_like(z)),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("case", SURPLUS)
def test_what_the_data_determine_has_its_estimate_beside_what_they_leave_open(case, kind):
    """As without the surplus column, by statsmodels, with a small ridge and without one."""
    X, y, node = drawn(kind)
    here = node == 1
    X[here, 0], X[here, 1] = SURPLUS[case](X[here, 0])
    loss, family = LOSSES[kind]
    model = loss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    found = local_fits(gr.Problem(model).form)
    assert found.ranks.tolist() == [3, 2, 3]
    ours, options = X[here][:, [0, 2]], {} if kind == "squared" else {"tol": 1e-14}
    plain = sm.OLS(y[here], ours) if kind == "squared" else sm.GLM(y[here], ours, family=family)
    expected = plain.fit(cov_type="HC0", **options)
    np.testing.assert_allclose(X[here] @ found.coef[1], ours @ expected.params, rtol=1e-6, atol=1e-8)
    size = np.linalg.norm(X[here], axis=0)  # of least length, in units of the columns
    share = (size * found.coef[1])[:2]
    assert share[1] == pytest.approx(
        0.0 if "0" in case else share[0] * np.sign(X[here][0, 0] * X[here][0, 1]), abs=1e-8
    )
    for given in (model, model + 1e-7 * gr.NodePenalty(gr.SquaredL2())):
        region = local_regions(given, "HC0")[1]
        assert region.names == (["x0", "x2"] if "0" in case else ["x2"])
        at = region.intervals().loc["x2"]
        np.testing.assert_allclose(at[["estimate", "std_error"]], [expected.params[1], expected.bse[1]], rtol=1e-5)
        tests = edge_tests(given, nx.path_graph(NODES), "HC0", features=["x2"])
        other = sm.OLS if kind == "squared" else lambda *of: sm.GLM(*of, family=family)
        beside = other(y[node == 0], X[node == 0]).fit(cov_type="HC0", **options)
        gap, variance = beside.params[2] - expected.params[1], beside.bse[2] ** 2 + expected.bse[1] ** 2
        assert tests["statistic"][0] == pytest.approx(gap**2 / variance, rel=1e-5)
        with pytest.raises(DataError, match=r"node 1 leave (x0, )?x1 open: columns are collinear there.*standardise"):
            edge_tests(given, nx.path_graph(NODES), "HC0")


def test_a_column_that_another_makes_up_but_for_rounding_is_to_be_left_out():
    """To exact numbers its rounding is a feature, of which the minimum makes use."""
    X, y, node = drawn("squared")
    X[node == 1, 1] = 1.8 * X[node == 1, 0]
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    assert "drop columns alike but for rounding" in local_regions(model).left_out[1]
    region = local_regions(model + 1e-7 * gr.NodePenalty(gr.SquaredL2()), "HC0")[1]
    expected = sm.OLS(y[node == 1], X[node == 1][:, [0, 2]]).fit(cov_type="HC0")
    np.testing.assert_allclose(region.intervals().loc["x2", "std_error"], expected.bse[1], rtol=1e-6)


def test_degrees_of_freedom_are_those_of_the_rank():
    """HC1 and Chow's F of a node with a surplus column are those without it."""
    X, y, node = drawn("squared")
    X[:, 1] = 2.0 * X[:, 0]
    both, one = (
        gr.SquaredLoss(gr.NodeData.from_arrays(Z, y, node, features=names))
        for Z, names in ((X, ["a", "b", "c"]), (X[:, [0, 2]], ["a", "c"]))
    )
    for covariance in ("chow", "HC1", "robust"):
        first, second = (edge_tests(loss, covariance=covariance, features=["c"]) for loss in (both, one))
        np.testing.assert_allclose(first[["statistic", "residual_df"]], second[["statistic", "residual_df"]], rtol=1e-7)


def test_classes_without_a_ridge_are_those_of_statsmodels():
    """Of all shifts of the classes that one whose coefficients add up to 0 over the classes."""
    X, y, node = drawn("multinomial")
    loss = gr.MultinomialLoss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    regions = local_regions(loss, "HC0")
    for i in range(NODES):
        expected = sm.MNLogit(y[node == i], X[node == i]).fit(disp=0, tol=1e-14, cov_type="HC0")
        coef = regions[i].estimate.to_numpy().reshape(D, 3)
        np.testing.assert_allclose(coef.sum(axis=1), 0.0, atol=1e-9)
        np.testing.assert_allclose(coef[:, 1:] - coef[:, :1], expected.params, rtol=1e-6, atol=1e-8)
        R = np.kron(np.eye(D), [[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
        V = R @ regions[i].covariance.to_numpy() @ R.T
        np.testing.assert_allclose(np.sqrt(np.diag(V)).reshape(D, 2), expected.bse, rtol=1e-6)


# ---- columns far from 0 ----------------------------------------------------------------------------------------------
def timed(kind, samples=60):
    rng = np.random.default_rng(0)
    z = rng.uniform(0.0, 86400.0, (2, samples)).round()
    slope, node = np.array([[0.4], [0.9]]), np.repeat([0, 1], samples)
    eta = (0.5 + slope * (z / 43200.0 - 1.0)).ravel()
    y = eta + rng.normal(size=eta.shape) if kind == "squared" else rng.poisson(np.exp(eta))
    if kind == "logistic":
        y = (rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    return z.ravel(), y, node


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("far", [1e5, 1.7e9])
def test_a_column_far_from_0_is_fitted_as_when_it_is_centred(kind, far):
    z, y, node = timed(kind)
    loss, family = LOSSES[kind]
    X = np.column_stack([np.ones_like(z), far + z])
    model = loss(gr.NodeData.from_arrays(X, y, node), scale="sum")
    regions, tests = local_regions(model, "HC0"), edge_tests(model, covariance="HC0", features=["x1"])
    slopes = []
    for i in (0, 1):
        here = node == i
        own = np.column_stack([np.ones(here.sum()), (z[here] - z[here].mean()) / z[here].std()])
        plain = sm.OLS(y[here], own) if kind == "squared" else sm.GLM(y[here], own, family=family)
        fitted = plain.fit(cov_type="HC0", **({} if kind == "squared" else {"tol": 1e-14}))
        slopes.append((fitted.params[1] / z[here].std(), fitted.bse[1] / z[here].std()))
        found = regions[i].intervals().loc["x1", ["estimate", "std_error"]]
        np.testing.assert_allclose(found, slopes[-1], rtol=1e-5)
    (a, s), (b, t) = slopes
    assert tests["statistic"][0] == pytest.approx((a - b) ** 2 / (s**2 + t**2), rel=1e-5)


def test_where_numbers_cannot_tell_a_column_from_the_intercept_the_remedy_is_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"s": np.repeat(["a", "b"], 30), "north": 5.4e6 + rng.uniform(-10, 10, 60)})
    frame["y"] = 0.1 * (frame["north"] - 5.4e6) + rng.normal(size=60)
    raw, scaled = (
        gr.SquaredLoss(
            gr.NodeData.from_frame(frame, node="s", target="y", features=["north"], intercept=True, standardise=each)
        )
        for each in (False, True)
    )
    for ask in (local_regions, edge_tests):
        with pytest.raises(DataError, match=r"the node 'a' leave intercept, north open: .*standardise=True"):
            ask(raw)
    here = frame[frame["s"] == "a"]
    expected = sm.OLS(here["y"], sm.add_constant(here["north"] - 5.4e6)).fit(cov_type="HC3")
    found = local_regions(scaled)["a"].intervals().loc["north", ["estimate", "std_error"]]
    np.testing.assert_allclose(found, [expected.params.iloc[1], expected.bse.iloc[1]], rtol=1e-6)


# ---- estimates that are not proved -----------------------------------------------------------------------------------
@pytest.mark.parametrize("ridge", [None, 0.1])
@pytest.mark.parametrize("kind", LOSSES)
def test_an_estimate_far_from_its_minimum_is_not_proved(kind, ridge):
    """By a tenth of its standard errors, or by a thousandth, at one of the nodes."""
    found = fits(LOSSES[kind][0], *drawn(kind), ridge)
    assert not found.unproved().any()
    step = np.zeros_like(found.coef)
    step[1] = np.sqrt(np.diag(found.covariance("HC0")[1]))
    assert replace(found, coef=found.coef + 0.1 * step).unproved().tolist() == [False, True, False]
    assert not replace(found, coef=found.coef + 1e-3 * step).unproved().any()


def test_where_an_estimate_is_not_proved_there_is_no_interval_and_no_test(monkeypatch):
    X, y, node = drawn("squared")
    model = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node))

    def inexact(*given):
        w, converged = oracles.minimisers(*given)
        return w + 0.1 * (np.arange(NODES) == 1)[:, None], converged

    monkeypatch.setattr(local, "minimisers", inexact)
    regions = local_regions(model)
    assert list(regions) == [0, 2]
    why = regions.left_out[1]
    assert why.startswith("the estimate of node 1 has no small gap; drop columns alike but for rounding")
    assert edge_tests(model, nx.complete_graph(NODES))["untested"].tolist() == [why, "", why]


def test_rows_of_data_and_losses():
    X, y, node = drawn("logistic")
    data = gr.NodeData.from_arrays(X, y, node)
    part = data.take(np.array([60, 5, 61]))
    assert part.labels == (0, 1)
    assert part.node.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(part.X, X[[60, 5, 61]])
    loss = at_rows(gr.LogisticLoss(data, scale={0: 1.0, 1: 2.0, 2: 3.0}), node == 2)
    assert loss.data.labels == (2,)
    np.testing.assert_array_equal(loss.scales(), np.full(M, 3.0))
    with pytest.raises(DataError, match="no row"):
        data.take(np.zeros(len(X), dtype=bool))
    with pytest.raises(DataError, match="mask has 5 entries"):
        data.take(np.ones(5, dtype=bool))


@pytest.mark.parametrize("kind", LOSSES)
def test_estimates_carry_their_certificate(kind):
    found = fits(LOSSES[kind][0], *drawn(kind))
    assert found.certificate.holds(1e-9)
    assert "certified to a relative gap" in found.worth
    spoilt = replace(found, coef=found.coef + 0.1)
    assert not spoilt.certificate.holds(1e-4)
    assert spoilt.certificate.dual <= found.certificate.primal


@pytest.mark.parametrize("scale", ["mean", "sum"])
def test_the_covariance_of_a_model_takes_sample_weights_for_precisions(scale):
    """Rates weighted by exposures are counts with an offset, and squared losses have noise of variance 1 / weight. The
    weights were squared: errors of rates were 19 times too large."""
    rng = np.random.default_rng(0)
    node, exposure = rng.permutation(np.repeat(np.arange(3), 40)), rng.uniform(0.5, 200.0, 120)
    X = np.column_stack([np.ones(120), rng.normal(size=120)])
    counts = rng.poisson(exposure * np.exp(X @ [-1.0, 0.3]))
    rates = gr.PoissonLoss(gr.NodeData.from_arrays(X, counts / exposure, node, weights=exposure), scale=scale)
    of_counts = gr.PoissonLoss(gr.NodeData.from_arrays(X, counts, node, offset=np.log(exposure)), scale=scale)
    ours, theirs = (local_fits(gr.Problem(loss).form) for loss in (rates, of_counts))
    np.testing.assert_allclose(ours.covariance("model"), theirs.covariance("model"), rtol=1e-6)
    squares = gr.SquaredLoss(gr.NodeData.from_arrays(X, rng.normal(size=120), node, weights=exposure), scale=scale)
    known = local_fits(gr.Problem(squares).form)
    for i, label in enumerate(known.form.labels):
        mine = node == label
        glm = sm.GLM(counts[mine], X[mine], sm.families.Poisson(), offset=np.log(exposure[mine])).fit()
        np.testing.assert_allclose(ours.covariance("model")[i], glm.cov_params(), rtol=1e-6)
        exact = np.linalg.inv((X[mine].T * exposure[mine]) @ X[mine])
        np.testing.assert_allclose(known.covariance("model")[i], exact, rtol=1e-9)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("kind", ["HC2", "HC3", "HC4"])
def test_a_ridge_does_not_hide_that_one_sample_determines_a_coefficient(kind, ridge):
    """Its leverage beside the ridge is below 1, and the error would be as large as the estimate, whatever that is."""
    rng = np.random.default_rng(0)
    X, node = np.column_stack([np.ones(60), rng.normal(size=60), np.zeros(60)]), np.repeat(["a", "b"], 30)
    X[0, 2] = X[30:40, 2] = 1.0
    data = gr.NodeData.from_arrays(X * [1.0, 1e6, 1e-6], X @ [0.0, 1.0, 5.0] + rng.normal(size=60), node)
    for extra in ([], [ridge * gr.NodePenalty(gr.SquaredL2())]):
        regions = local_regions(gr.Problem(sum(extra, gr.SquaredLoss(data, scale="sum"))), covariance=kind)
        assert "alone determines a coefficient (its leverage is 1)" in repr(regions)
        assert regions["b"].estimate.notna().all()
