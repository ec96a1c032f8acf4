"""Hierarchical estimation: equal to dense formulas of mixed models, to statsmodels, and to the convex problem (5.2)."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from places import DATA
from scipy.optimize import minimize

import graphreg as gr
from graphreg.errors import DataError, MethodError, ModelError, TermError
from graphreg.inference import compare_estimators, hierarchical, james_stein

NAMES = ("intercept", "x", "z")


# ---- data and dense formulas -----------------------------------------------------------------------------------------
def drawn(counts, parents, variances, seed=0, random=(0, 1, 2)):
    """Samples in a tree: ``counts`` per node, ``parents`` per level the parents' numbers; with weights."""
    rng, R = np.random.default_rng(seed), list(random)
    w = [np.array([[1.0, -2.0, 0.5]])]
    for parent, variance in zip([*parents[::-1]], variances[:0:-1], strict=True):
        below = w[0][parent].copy()
        below[:, R] += np.sqrt(variance) * rng.normal(size=(len(parent), len(R)))
        w.insert(0, below)
    node = np.repeat(np.arange(len(counts)), counts)
    X = np.column_stack([np.ones(len(node)), rng.normal(size=(len(node), 2))])
    p = rng.uniform(0.5, 2.0, len(node))
    y = np.einsum("rj,rj->r", X, w[0][node]) + np.sqrt(variances[0] / p) * rng.normal(size=len(node))
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, p=p, node=[f"n{i}" for i in node])
    return frame, node, X, y, p, w[0]


def nested(parents, counts):
    """The clusters as `hierarchical` takes them."""
    tree = {f"n{i}": None for i in range(len(counts))}
    if len(parents) == 1:
        return None
    groups = [list(tree)]
    for parent in parents[:-1]:
        level = [[] for _ in range(parent.max() + 1)]
        for child, j in zip(groups[-1], parent, strict=True):
            level[j].append(child)
        groups.append([{f"c{len(groups)}_{j}": members} for j, members in enumerate(level)])

    def merged(item):
        if isinstance(item, str):
            return item
        ((label, members),) = item.items()
        return {label: members if isinstance(members[0], str) else joined(members)}

    def joined(items):
        return {k: v for item in items for k, v in merged(item).items()}

    return joined(groups[-1])


class Dense:
    """The mixed model with all its matrices written out."""

    def __init__(self, node, X, y, p, parents, random=(0, 1, 2)):
        self.X, self.y, self.p, self.R = X, y, p, list(random)
        self.paths = [node]
        for parent in parents[:-1]:
            self.paths.append(parent[self.paths[-1]])
        self.sizes = [len(parent) for parent in parents]
        self.Z = []
        for place, size in zip(self.paths, self.sizes, strict=True):
            Z = np.zeros((len(y), size, len(self.R)))
            Z[np.arange(len(y)), place] = X[:, self.R]
            self.Z.append(Z.reshape(len(y), -1))

    def V(self, values):
        return values[0] * np.diag(1 / self.p) + sum(t * Z @ Z.T for t, Z in zip(values[1:], self.Z, strict=True))

    def minus_twice_log_likelihood(self, values, restricted=True):
        V, X = self.V(values), self.X
        W = np.linalg.inv(V)
        r = self.y - X @ self.gls(values)
        out = np.linalg.slogdet(V)[1] + r @ W @ r + len(r) * np.log(2 * np.pi)
        return out + (np.linalg.slogdet(X.T @ W @ X)[1] - X.shape[1] * np.log(2 * np.pi) if restricted else 0.0)

    def gls(self, values):
        W = np.linalg.inv(self.V(values))
        return np.linalg.solve(self.X.T @ W @ self.X, self.X.T @ W @ self.y)

    def henderson(self, values):
        """Fixed and random effects with the covariance of their errors, from the mixed model equations."""
        U = np.hstack([self.X, *self.Z])
        prior = [np.full(Z.shape[1], 1 / t) for Z, t in zip(self.Z, values[1:], strict=True)]
        H = U.T @ (self.p[:, None] * U) / values[0] + np.diag(np.concatenate([np.zeros(3), *prior]))
        C = np.linalg.inv(H)
        return C @ (U.T @ (self.p * self.y)) / values[0], C

    def vertex(self, level, i, parents):
        """The row matrix that picks the coefficients of vertex i of a level (the top is the root) from the effects."""
        L = np.zeros((3, 3 + sum(Z.shape[1] for Z in self.Z)))
        L[:, :3] = np.eye(3)
        starts = 3 + np.cumsum([0, *(Z.shape[1] for Z in self.Z)])
        for k in range(level, len(self.sizes)):
            L[self.R, starts[k] + len(self.R) * i + np.arange(len(self.R))] = 1.0
            i = parents[k][i]
        return L


TREES = {
    "nodes under a root": ((4, 9, 2, 1, 6), (np.zeros(5, int),), (0.7, 1.3)),
    "clusters": ((3, 5, 1, 2, 8, 4), (np.array([0, 0, 1, 1, 2, 2]), np.zeros(3, int)), (1.5, 0.4, 2.0)),
    "three levels": (
        (3, 2, 4, 5, 1, 6),
        (np.array([0, 0, 1, 2, 3, 3]), np.array([0, 0, 1, 1]), np.zeros(2, int)),
        (0.5, 1.0, 0.6, 0.3),
    ),
    "all random coefficients of more nodes than samples": ((2, 1, 2, 2, 1), (np.zeros(5, int),), (0.4, 2.0)),
}


def both(name, random=(0, 1, 2), **options):
    counts, parents, values = TREES[name]
    frame, node, X, y, p, _ = drawn(counts, parents, values, random=random)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    chosen = None if len(random) == 3 else [NAMES[j] for j in random]
    found = hierarchical(data, nested(parents, counts), random=chosen, **options)
    return found, Dense(node, X, y, p, parents, random), parents, np.array(values)


# ---- predictions at given variances ----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("random", [(0, 1, 2), (0,), (0, 2)])
def test_predictions_and_their_errors_are_those_of_the_mixed_model_equations(name, random):
    values = TREES[name][2]
    found, dense, parents, values = both(name, random, components=values)
    effects, C = dense.henderson(values)
    np.testing.assert_allclose(found.w[-1], dense.gls(values), rtol=1e-9)
    place = 0
    for level, size in enumerate((*dense.sizes, 1)):
        for i in range(size):
            v = place + i
            L = dense.vertex(level, i, parents)
            np.testing.assert_allclose(found.w[v], L @ effects, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(found.covariance[v], L @ C @ L.T, rtol=1e-8, atol=1e-11)
        place += size
    assert place == len(found.w)
    expected = -dense.minus_twice_log_likelihood(values) / 2
    assert found.components.log_likelihood == pytest.approx(expected, rel=1e-10)


def test_the_full_likelihood():
    found, dense, _, values = both("clusters", components=(1.5, 0.4, 2.0), method="ml")
    expected = -dense.minus_twice_log_likelihood(values, restricted=False) / 2
    assert found.components.log_likelihood == pytest.approx(expected, rel=1e-10)


CASES = {
    "all vary": ("clusters", (0, 1, 2), (1.5, 0.4, 2.0)),
    "an intercept varies": ("clusters", (0,), (1.5, 0.4, 2.0)),
    "clusters like the root": ("clusters", (0, 1, 2), (1.5, 0.4, 0.0)),
    "nodes like their clusters": ("clusters", (0, 2), (1.5, 0.0, 2.0)),
    "three levels": ("three levels", (0, 1, 2), (0.5, 1.0, 0.6, 0.3)),
    "no clusters": ("nodes under a root", (0, 1, 2), (0.7, 1.3)),
    "no clusters, all the same": ("nodes under a root", (0, 1, 2), (0.7, 0.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_coefficients_solve_the_convex_problem(case):
    """(5.2): certified here, and found by the exact route and a decentralised method."""
    name, random, values = CASES[case]
    found, *_ = both(name, random, components=values)
    assert found.certificate.valid
    assert found.certificate.relative_gap < 1e-12
    problem = gr.Problem(found.model)
    assert problem.form.labels == found.labels
    exact = problem.solve(gap=1e-9)
    size = np.abs(found.w).max()
    np.testing.assert_allclose(exact.coef[: found.n_nodes], found.coef, atol=1e-4 * size)
    run = problem.solve(gr.PrimalDual(), gap=1e-9)
    assert run.status == "certified"
    np.testing.assert_allclose(run.coef[: found.n_nodes], found.coef, atol=1e-3 * size)


def test_a_hierarchy_runs_the_methods_of_known_clusters():
    found, *_ = both("clusters", components=(1.5, 0.4, 2.0))
    run = gr.Problem(found.model).solve(gr.AsyncL2GD(), rounds=5, seed=0)
    assert run.rounds == 5


def test_offsets_and_scales():
    frame, *_ = drawn(*TREES["clusters"])
    clusters = nested(TREES["clusters"][1], TREES["clusters"][0])
    columns = {"node": "node", "features": list(NAMES), "weights": "p"}
    plain = hierarchical(gr.NodeData.from_frame(frame, target="y", **columns), clusters, (1.5, 0.4, 2.0))
    moved = frame.assign(o=frame["x"] * 3 + 1, y=frame["y"] + frame["x"] * 3 + 1)
    shifted = hierarchical(gr.NodeData.from_frame(moved, target="y", offset="o", **columns), clusters, (1.5, 0.4, 2.0))
    np.testing.assert_allclose(shifted.w, plain.w, rtol=1e-9)
    data = gr.NodeData.from_frame(frame, target="y", **columns)
    mean = hierarchical(gr.SquaredLoss(data), clusters, (1.5, 0.4, 2.0))
    np.testing.assert_allclose(mean.w, plain.w, rtol=1e-12)
    assert any("scale='mean'" in sentence for sentence in mean.assumed)
    precisions = {f"n{i}": 1.0 + i for i in range(6)}
    scaled = hierarchical(gr.SquaredLoss(data, scale=precisions), clusters, (1.5, 0.4, 2.0))
    frame["q"] = frame["p"] * frame["node"].map(precisions)
    weighted = gr.NodeData.from_frame(frame, target="y", **{**columns, "weights": "q"})
    np.testing.assert_allclose(scaled.w, hierarchical(weighted, clusters, (1.5, 0.4, 2.0)).w, rtol=1e-12)


def test_a_large_common_level_of_the_targets_changes_nothing():
    frame, *_ = drawn(*TREES["nodes under a root"])
    columns = {"node": "node", "target": "y", "features": list(NAMES)}
    plain = hierarchical(gr.NodeData.from_frame(frame, **columns), components=(0.7, 1.3))
    far = gr.NodeData.from_frame(frame.assign(y=frame["y"] + 1e7), **columns)
    moved = hierarchical(far, components=(0.7, 1.3))
    assert moved.components.log_likelihood == pytest.approx(plain.components.log_likelihood, rel=1e-6)
    np.testing.assert_allclose(moved.w - [1e7, 0, 0], plain.w, atol=1e-7)


def test_nodes_without_data_are_predicted_from_their_cluster():
    counts, parents, values = TREES["clusters"]
    frame, *_ = drawn(counts, parents, values)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    clusters = nested(parents, counts)
    clusters["c1_1"] = [*clusters["c1_1"], "new"]
    clusters["c9"] = ["newer"]
    found = hierarchical(data, clusters, values)
    place = found.labels.index
    cluster = place("c1_1")
    np.testing.assert_allclose(found.w[place("new")], found.w[cluster], rtol=1e-12)
    np.testing.assert_allclose(found.covariance[place("new")], found.covariance[cluster] + 0.4 * np.eye(3), rtol=1e-10)
    np.testing.assert_allclose(found.w[place("newer")], found.w[-1], rtol=1e-12)
    np.testing.assert_allclose(found.covariance[place("newer")], found.covariance[-1] + 2.4 * np.eye(3), rtol=1e-10)
    assert found.certificate.relative_gap < 1e-12
    hierarchical(data, clusters)  # and their variances can be estimated


# ---- the theorems of section 5 ---------------------------------------------------------------------------------------
def test_theorem_5_1_and_the_marginal_estimator_of_proposition_5_3():
    """By the generalised least squares that the proofs write down: on (X_1, y_1) and the others' own fits, for
    orthogonal designs; on all raw samples for any design, also with fewer samples than coefficients."""
    rng, n, d, noise, tau = np.random.default_rng(4), 4, 3, 0.8, 1.7
    for counts, orthogonal in (((5, 4, 6, 5), True), ((2, 1, 4, 7), False)):
        designs = [rng.normal(size=(m, d)) for m in counts]
        if orthogonal:
            designs = [np.linalg.qr(X)[0] * rng.uniform(1, 2) for X in designs]
        y = [X @ rng.normal(size=d) + rng.normal(size=len(X)) for X in designs]
        data = gr.NodeData.from_dict({i: (designs[i], y[i]) for i in range(n)})
        found, variant = hierarchical(data, components=(noise, tau)), james_stein(data, components=(noise, tau))
        for i in range(n):
            rows = [designs[i], *(X for j, X in enumerate(designs) if j != i)]
            target = [y[i], *(t for j, t in enumerate(y) if j != i)]
            # y_j = X_j theta_i + X_j (xi_j - xi_i) + e_j for the others
            whole = np.vstack(rows)
            spread = [np.zeros((len(rows[0]), d)), *rows[1:]]
            shared = np.vstack(spread)
            V = noise * np.eye(len(whole)) + tau * shared @ shared.T
            at = len(rows[0])
            for X in rows[1:]:
                V[at : at + len(X), at : at + len(X)] += tau * X @ X.T
                at += len(X)
            W = np.linalg.inv(V)
            gls = np.linalg.solve(whole.T @ W @ whole, whole.T @ W @ np.concatenate(target))
            np.testing.assert_allclose(found.coef[i], gls, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(variant.marginal[i], gls, rtol=1e-9, atol=1e-11)
            if orthogonal:
                own = [np.linalg.lstsq(X, t)[0] for X, t in zip(rows[1:], target[1:], strict=True)]
                gram = [np.linalg.inv(X.T @ X) for X in rows[1:]]
                stacked = np.vstack([rows[0], *[np.eye(d)] * (n - 1)])
                V = np.zeros((len(stacked), len(stacked)))
                m = len(rows[0])
                V[:m, :m] = noise * np.eye(m)
                V[m:, m:] = np.kron(np.ones((n - 1, n - 1)) + np.eye(n - 1), tau * np.eye(d))
                for k, G in enumerate(gram):
                    V[m + d * k : m + d * (k + 1), m + d * k : m + d * (k + 1)] += noise * G
                W = np.linalg.inv(V)
                best = np.linalg.solve(stacked.T @ W @ stacked, stacked.T @ W @ np.concatenate([target[0], *own]))
                np.testing.assert_allclose(found.coef[i], best, rtol=1e-9, atol=1e-11)


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


def simulated(seed=0):
    """Six clusters of five nodes, as a frame with the columns node, cluster, x, y."""
    parents = (np.repeat(np.arange(6), 5), np.zeros(6, int))
    frame, node, *_ = drawn((8,) * 30, parents, (1.0, 0.5, 1.5), seed=seed)
    return frame.assign(cluster=[f"c{k}" for k in parents[0][node]])


def test_slopes_that_vary_are_those_of_statsmodels():
    frame = simulated()
    fit = mixedlm("y ~ x", frame, groups="node", re_formula="0", vc_formula={"b": "1 + x"})
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True)
    found = hierarchical(data)
    assert_same(found, fit)
    expected = np.array([fit.random_effects[label] for label in found.labels[:-1]])
    np.testing.assert_allclose(found.effects().to_numpy(), expected, atol=2e-3)


def test_intercepts_that_vary_are_those_of_statsmodels():
    frame = simulated(1)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=["x", "z"], intercept=True)
    for method in ("reml", "ml"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = smf.mixedlm("y ~ x + z", frame, groups="node").fit(reml=method == "reml")
        found = hierarchical(data, random=["intercept"], method=method)
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


# ---- means, James-Stein, side by side --------------------------------------------------------------------------------
def means(n=6, d=5, seed=0, centre=0.0):
    rng = np.random.default_rng(seed)
    truth = centre + rng.normal(size=(n, d))
    y = truth + rng.normal(size=(n, d))
    return y, truth, gr.NodeData.from_arrays(None, y, list(range(n)))


def test_the_weights_of_a_12():
    """Own (n + 1) / 2n, the others (n - 1) / 2n, whose mean has the variance 2 / (n - 1)."""
    n, d = 6, 5
    y, _, data = means(n, d, centre=0.5)
    found, fit = james_stein(data, (1.0, 1.0)), hierarchical(data, components=(1.0, 1.0))
    others = (y.sum(axis=0) - y) / (n - 1)
    np.testing.assert_allclose(found.marginal, (n + 1) / (2 * n) * y + (n - 1) / (2 * n) * others, rtol=1e-12)
    np.testing.assert_allclose(fit.coef, found.marginal, rtol=1e-12)
    C = np.maximum(0, 1 - (d - 2) * 2 / (n - 1) / (others**2).sum(axis=1))
    np.testing.assert_allclose(found.shrinkage, C, rtol=1e-12)
    assert 0 < C.min() < C.max() < 1
    expected = (n + 1) / (2 * n) * y + (n - 1) / (2 * n) * C[:, None] * others
    np.testing.assert_allclose(found.coef, expected, rtol=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.7])
def test_the_james_stein_variant_has_the_smaller_error(centre):
    """Of 300 draws with n = 3, d = 5, by more than four standard errors of the difference."""
    gains = []
    for seed in range(300):
        _, truth, data = means(3, 5, seed, centre)
        found = james_stein(data, (1.0, 1.0))
        gains.append((((found.marginal - truth) ** 2).sum(axis=1) - ((found.coef - truth) ** 2).sum(axis=1)).mean())
    assert np.mean(gains) > 4 * np.std(gains) / np.sqrt(len(gains))


def test_shrinkage_of_regressions_by_the_formula():
    frame, node, X, y, p, _ = drawn(*TREES["nodes under a root"])
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    found, i = james_stein(data, (0.7, 0.05)), 1
    dense = [X[node == j].T @ (p[node == j, None] * X[node == j]) / 0.7 for j in range(5)]
    moment = [X[node == j].T @ (p * y)[node == j] / 0.7 for j in range(5)]
    through = [np.linalg.inv(np.eye(3) + 0.05 * A) for A in dense]
    others = sum(A @ T for j, (A, T) in enumerate(zip(dense, through, strict=True)) if j != i)
    theta = np.linalg.solve(
        others, sum(T.T @ b for j, (b, T) in enumerate(zip(moment, through, strict=True)) if j != i)
    )
    S = np.linalg.inv(others)
    P = np.linalg.inv(0.05 * np.eye(3) + S)
    T = np.linalg.solve(dense[i] + P, P)
    Q = T @ S @ T.T
    q = np.trace(Q) / np.linalg.eigvalsh(Q)[-1]
    C = 1 - max(q - 2, 0) / (theta @ others @ theta)
    assert found.shrinkage[i] == pytest.approx(C, rel=1e-8)
    np.testing.assert_allclose(found.coef[i], np.linalg.solve(dense[i] + P, moment[i] + C * P @ theta), rtol=1e-8)


def test_estimators_side_by_side():
    counts, parents, values = TREES["clusters"]
    frame, node, X, y, p, truth = drawn(counts, parents, values)
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES), weights="p")
    labels = [f"n{i}" for i in range(6)]
    clusters = {label: nodes[::-1] for label, nodes in reversed(nested(parents, counts).items())}  # another order
    found = compare_estimators(data, clusters, values, pd.DataFrame(truth, index=labels))
    assert list(found.coef) == ["local", "single model", "single cluster", "hierarchical", "James-Stein"]
    root = np.sqrt(p)
    for i, label in enumerate(labels):
        own = node == i
        least = np.linalg.pinv(root[own, None] * X[own]) @ (root * y)[own]  # of least norm where m < d
        np.testing.assert_allclose(found.coef["local"].loc[label], least, rtol=1e-7)
    pooled = np.linalg.lstsq(root[:, None] * X, root * y)[0]
    np.testing.assert_allclose(found.coef["single model"], np.tile(pooled, (6, 1)), rtol=1e-9)
    fit = hierarchical(data, nested(parents, counts), values)
    np.testing.assert_allclose(found.coef["hierarchical"], fit.coef, rtol=1e-9)
    flat = hierarchical(data, components=(1.5, 2.4))
    np.testing.assert_allclose(found.coef["single cluster"], flat.coef, rtol=1e-9)
    np.testing.assert_allclose(found.errors["hierarchical"], np.linalg.norm(fit.coef - truth, axis=1), rtol=1e-9)
    table = found.table()
    assert table.loc["local", "mean error"] == pytest.approx(found.errors["local"].mean())
    assert "under one root" in str(found)
    plain = compare_estimators(data)
    assert plain.errors is None
    assert plain.table().loc["single cluster", "mean distance from single cluster"] == 0.0


# ---- tables ----------------------------------------------------------------------------------------------------------
def test_tables():
    found, *_ = both("clusters", components=(1.5, 0.4, 2.0))
    table = found.intervals(0.9)
    assert len(table) == 3 * (6 + 3 + 1)
    row = table[(table["label"] == "c1_2") & (table["feature"] == "z")].iloc[0]
    v = found.labels.index("c1_2")
    assert row["level"] == 1
    assert row["estimate"] == found.w[v, 2]
    assert row["high"] - row["estimate"] == pytest.approx(1.6448536 * np.sqrt(found.covariance[v, 2, 2]))
    assert found.table().loc["n3"].tolist() == found.coef[3].tolist()
    assert found.latent["root"].tolist() == found.fixed()["estimate"].tolist()
    effects = found.effects(2)
    assert effects.loc["c1_0"].tolist() == (found.latent["c1_0"] - found.latent["root"]).tolist()
    assert found.variances()["variance"].tolist() == [1.5, 0.4, 2.0]
    for shown in (found, table, found.fixed(), found.variances()):
        assert "assumed: independent Gaussian noise" in str(shown)
        assert "exact for them" in str(shown)
    assert "certificate (global)" in str(found)
    assert len(repr(found)) < 120
    assert len(repr(james_stein(means()[2], (1, 1)))) < 120


# ---- bad input -------------------------------------------------------------------------------------------------------
def columns(change=None, **more):
    frame = simulated()
    if change is not None:
        frame = change(frame)
    options = {"node": "node", "target": "y", "features": ["x", "z"], "intercept": True, **more}
    return gr.NodeData.from_frame(frame, **options)


PAIRS = {f"n{i}": f"c{i // 5}" for i in range(30)}
BAD = {
    "another loss": (lambda: hierarchical(gr.HuberLoss(columns(), delta=1.0)), MethodError, "HuberLoss.*Hierarchy"),
    "a class": (lambda: hierarchical(gr.SquaredLoss), MethodError, "got the class SquaredLoss"),
    "a frame": (lambda: hierarchical(simulated()), MethodError, "got DataFrame; of a DataFrame make NodeData.from_fra"),
    "a sum": (
        lambda: hierarchical(gr.SquaredLoss(columns()) + gr.NodePenalty(gr.L1())),
        MethodError,
        "got Model.*leave penalties out",
    ),
    "method": (lambda: hierarchical(columns(), method="bayes"), ModelError, "'reml' or 'ml', got 'bayes'"),
    "unknown feature": (lambda: hierarchical(columns(), random=["xx"]), TermError, "unknown feature 'xx'"),
    "too few samples": (
        lambda: hierarchical(columns(lambda f: f.iloc[[0, 9, 20]])),
        DataError,
        "3 samples in all for 3",
    ),
    "collinear": (lambda: hierarchical(columns(lambda f: f.assign(z=2 * f["x"]))), DataError, "'x', 'z' are collinear"),
    "a constant 0": (lambda: hierarchical(columns(lambda f: f.assign(z=0.0))), DataError, "'z' is 0 in all samples"),
    "singletons": (
        lambda: hierarchical(columns(), {f"n{i}": f"c{i}" for i in range(30)}),
        DataError,
        "every cluster of level 2 holds a single child.*levels 1 and 2",
    ),
    "one cluster": (
        lambda: hierarchical(columns(), {f"n{i}": "c" for i in range(30)}),
        DataError,
        "single node or cluster .*clusters=None",
    ),
    "one node": (lambda: hierarchical(columns(lambda f: f.iloc[:8])), DataError, "a single node with data"),
    "one sample per node": (
        lambda: hierarchical(columns(lambda f: f.groupby("node").head(1), features=None)),
        DataError,
        "cannot tell the variances of the noise and level 1 apart",
    ),
    "no noise": (
        lambda: hierarchical(columns(lambda f: f.assign(y=1.0 + f["x"]))),
        DataError,
        "reproduces every sample",
    ),
    "no noise at the nodes": (
        lambda: hierarchical(columns(lambda f: f.assign(y=f["x"] * f["node"].str[1:].astype(int)))),
        DataError,
        "noise goes to 0",
    ),
    "few components": (
        lambda: hierarchical(columns(), PAIRS, (1.0, 1.0)),
        TermError,
        "3 variances, of the noise, level 1",
    ),
    "no sequence": (lambda: hierarchical(columns(), components=1.0), TermError, "2 variances"),
    "negative": (lambda: hierarchical(columns(), components=(1.0, -1.0)), TermError, "level 1 must be .* non-negative"),
    "no noise given": (lambda: hierarchical(columns(), components=(0.0, 1.0)), TermError, "noise must be .* positive"),
    "words": (lambda: hierarchical(columns(), components=("a", "b")), TermError, "components must be numbers"),
    "off the tree": (
        lambda: hierarchical(columns(), {k: v for k, v in PAIRS.items() if k != "n7"}),
        DataError,
        "samples at 'n7', which is not a node",
    ),
    "two coefficients": (lambda: james_stein(columns(features=["x"])), MethodError, "there are 2 coefficients"),
    "truth lacks a node": (
        lambda: compare_estimators(columns(), truth={"n0": np.zeros(3)}),
        DataError,
        "no row for the node 'n1'",
    ),
    "truth of another size": (
        lambda: compare_estimators(columns(), truth=pd.DataFrame(np.zeros((30, 2)), index=list(PAIRS))),
        DataError,
        "2 coefficients at the node 'n0' and the model 3",
    ),
    "truth": (lambda: compare_estimators(columns(), truth=3.0), DataError, "truth must be a DataFrame or a mapping"),
    "confidence": (lambda: both("clusters", components=(1, 1, 1))[0].fixed(95), ModelError, "between 0 and 1, got 95"),
    "level": (lambda: both("clusters", components=(1, 1, 1))[0].effects(0), ModelError, "one of 1 to 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_with_a_reason(case):
    attempt, error, message = BAD[case]
    with pytest.raises(error, match=message):
        attempt()


def test_without_one_node_the_root_is_not_determined():
    frame, *_ = drawn((6, 2), (np.zeros(2, int),), (1.0, 1.0))
    data = gr.NodeData.from_frame(frame, node="node", target="y", features=list(NAMES))
    with pytest.raises(DataError, match="without the node 'n0'"):
        james_stein(data, (1.0, 1.0))
