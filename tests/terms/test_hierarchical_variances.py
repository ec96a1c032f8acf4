"""Variance components of mixed models: largest likelihood, boundaries, and what statsmodels says."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hierarchical_cases import NAMES, Dense, drawn, nested, simulated
from places import DATA
from scipy.optimize import minimize

import graphreg as gr
from graphreg.inference import hierarchical


# ---- variance components ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("random", [(0, 1, 2), (0,)])
def test_variances_are_those_of_largest_likelihood(method, random):
    counts, parents = (5, 7, 6, 8, 4, 6, 7, 5), (np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.zeros(3, int))
    frame, node, X, y, p, _ = drawn(counts, parents, (1.0, 0.8, 3.0), seed=3, random=random)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    chosen = [NAMES[j] for j in random]
    found = hierarchical(data, nested(parents, counts), method=method, random=chosen).components
    dense = Dense(node, X, y, p, parents, random)

    def f(v):
        return dense.minus_twice_log_likelihood(np.exp(v), method == "reml")

    best = min((minimize(f, start, method="BFGS") for start in np.log([[1, 1, 1], [2, 0.1, 0.5]])), key=lambda r: r.fun)
    assert found.converged
    assert -2 * found.log_likelihood <= best.fun + 1e-7
    values = np.array([found.noise, *found.levels])
    np.testing.assert_allclose(values, np.exp(best.x), rtol=1e-3)
    h, logs = 1e-3, np.log(values)
    H = np.zeros((3, 3))
    for i, a in enumerate(h * np.eye(3)):
        for j, b in enumerate(h * np.eye(3)):
            H[i, j] = (f(logs + a + b) - f(logs + a - b) - f(logs - a + b) + f(logs - a - b)) / (4 * h * h)
    np.testing.assert_allclose(found.std_errors, values * np.sqrt(np.diag(2 * np.linalg.inv(H))), rtol=1e-3)


def test_a_variance_at_its_boundary_is_0_and_said_to_be():
    rng = np.random.default_rng(1)
    node = np.repeat(np.arange(12), 6)
    X = np.column_stack([np.ones(72), rng.normal(size=72)])
    y = rng.normal(size=72)
    y -= np.bincount(node, y)[node] / 6  # no spread between the nodes at all
    data = gr.NodeData.from_arrays(X, y + 1.0, node, features=["intercept", "x"])
    found = hierarchical(data, random=["intercept"])
    assert found.components.levels == (0.0,)
    assert found.components.boundary == (1,)
    assert found.components.converged
    assert np.isnan(found.components.std_errors[1])
    assert any("level 1 is 0" in sentence for sentence in found.assumed)
    np.testing.assert_allclose(found.coef, np.tile(np.linalg.lstsq(X, y + 1.0)[0], (12, 1)), rtol=1e-9)
    assert "level 1 is 0" in str(found)


def test_one_level_at_its_boundary_and_another_inside():
    rng = np.random.default_rng(5)
    node = np.repeat(np.arange(20), 5)
    cluster = np.arange(20) % 4
    y = rng.normal(size=100) + rng.normal(size=20)[node] * 2
    y -= (np.bincount(cluster[node], y) / 25)[cluster[node]]  # clusters alike, nodes not
    data = gr.NodeData.from_arrays(None, y, node, intercept=True)
    found = hierarchical(data, {i: f"c{c}" for i, c in enumerate(cluster)})
    assert found.components.boundary == (2,)
    assert found.components.converged
    alone = hierarchical(data)
    np.testing.assert_allclose(found.components.levels[0], alone.components.levels[0], rtol=1e-6)
    same = found.table().loc[list(alone.labels[:-1])]
    np.testing.assert_allclose(same, alone.coef, rtol=1e-6, atol=1e-8)


# ---- statsmodels -----------------------------------------------------------------------------------------------------
def mixedlm(formula, frame, method="bfgs", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = smf.mixedlm(formula, frame, **options).fit(method=[method])
    assert fit.converged
    return fit


def assert_same(found, fit):
    np.testing.assert_allclose(found.w[-1], fit.fe_params, rtol=1e-3)
    np.testing.assert_allclose(found.components.noise, fit.scale, rtol=1e-3)
    # its standard errors are of the Hessian in all parameters together, which is not block diagonal in a sample
    np.testing.assert_allclose(found.std_errors[-1], fit.bse_fe, rtol=1e-2)
    variances = fit.vcomp if len(fit.vcomp) else np.diag(fit.cov_re)
    np.testing.assert_allclose(found.components.levels, variances, rtol=2e-3)
    assert found.components.log_likelihood >= fit.llf - 1e-6
    assert found.components.log_likelihood == pytest.approx(fit.llf, abs=1e-3)


def test_slopes_that_vary_are_those_of_statsmodels():
    frame = simulated()
    fit = mixedlm("y ~ x", frame, groups="node", re_formula="0", vc_formula={"b": "1 + x"})
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True)
    found = hierarchical(data)
    assert_same(found, fit)
    expected = np.array([fit.random_effects[label] for label in found.labels[:-1]])
    np.testing.assert_allclose(found.effects().to_numpy(), expected, atol=2e-3)


@pytest.mark.parametrize("standardise", [False, True])
def test_intercepts_that_vary_are_those_of_statsmodels(standardise):
    """The likelihood in the units of the columns, too: a restricted one depends on them."""
    frame = simulated(1).assign(x=lambda table: 20.0 + 7.0 * table["x"])
    data = gr.NodeData.from_frame(
        frame, node="node", target="y", features=["x", "z"], intercept=True, standardise=standardise
    )
    for method in ("reml", "ml"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = smf.mixedlm("y ~ x + z", frame, groups="node").fit(reml=method == "reml")
        found = hierarchical(data, random=["intercept"], method=method)
        if standardise:
            assert found.components.log_likelihood == pytest.approx(fit.llf, abs=1e-3)
            continue
        assert_same(found, fit)
        effects = found.effects()["intercept"]
        expected = [fit.random_effects[label].iloc[0] for label in effects.index]
        np.testing.assert_allclose(effects, expected, atol=2e-3)


def test_nodes_in_clusters_are_those_of_statsmodels():
    frame = simulated(2)
    levels = {"a": "1", "b": "0 + C(node)"}
    fit = mixedlm("y ~ x", frame, groups="cluster", re_formula="0", vc_formula=levels, method="powell")
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True)
    clusters = dict(zip(frame["node"], frame["cluster"], strict=True))
    found = hierarchical(data, clusters, random=["intercept"])
    np.testing.assert_allclose(found.w[-1], fit.fe_params, rtol=1e-3)
    np.testing.assert_allclose(
        (found.components.noise, *found.components.levels), (fit.scale, fit.vcomp[1], fit.vcomp[0]), rtol=5e-3
    )
    assert found.components.log_likelihood == pytest.approx(fit.llf, abs=1e-3)


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs hsb82 and radon in ../shared/data")


@needs_data
def test_schools_are_those_of_statsmodels():
    frame = pd.read_csv(DATA / "hsb82.csv.gz")
    fit = mixedlm("mAch ~ cses", frame, groups="school", re_formula="0", vc_formula={"b": "1 + cses"})
    found = hierarchical(gr.NodeData.from_frame(frame, node="school", target="mAch", features=["cses"], intercept=True))
    assert_same(found, fit)
    expected = np.array([fit.random_effects[label] for label in found.labels[:-1]])
    np.testing.assert_allclose(found.effects().to_numpy(), expected, atol=2e-3)
    assert found.certificate.relative_gap < 1e-12


@needs_data
def test_counties_are_those_of_statsmodels():
    frame = pd.read_csv(DATA / "radon_mn.csv")
    data = gr.NodeData.from_frame(frame, node="county", target="log_radon", features=["floor"], intercept=True)
    fit = mixedlm("log_radon ~ floor", frame, groups="county", re_formula="0", vc_formula={"b": "1 + floor"})
    assert_same(hierarchical(data), fit)
    assert_same(hierarchical(data, random=["intercept"]), mixedlm("log_radon ~ floor", frame, groups="county"))
