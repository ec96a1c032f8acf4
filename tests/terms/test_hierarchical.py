"""Mixed models with nested clusters: their equations, likelihoods, the theorems of section 5, tables, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hierarchical_cases import NAMES, TREES, Dense, drawn, means, nested, simulated

import graphreg as gr
from graphreg.errors import DataError, MethodError, ModelError, TermError
from graphreg.inference import compare_estimators, hierarchical, james_stein


# ---- data and dense formulas -----------------------------------------------------------------------------------------
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


# ---- tables ----------------------------------------------------------------------------------------------------------
def test_tables():
    found, *_ = both("clusters", components=(1.5, 0.4, 2.0))
    table = found.intervals(0.9)
    assert len(table) == 3 * (6 + 3 + 1)
    row = table[(table["label"] == "c1_2") & (table["feature"] == "z")].iloc[0]
    v = found.labels.index("c1_2")
    assert row["level"] == 2  # of the clusters: level 1 are the nodes, as in variances() and effects()
    assert table.loc[table["level"] == 1, "label"].unique().tolist() == list(found.labels[:6])
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
    assert "certificate" in str(found)
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
    "a node in no cluster": (
        lambda: hierarchical(columns(), {label: cluster for label, cluster in PAIRS.items() if label != "n29"}),
        DataError,
        "'n29', which is not a node .*or clusters",
    ),
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


def test_a_large_offset_changes_no_variance():
    near, far = (hierarchical(columns(lambda f, by=by: f.assign(y=f["y"] + by))).components for by in (0.0, 1e9))
    assert far.noise == pytest.approx(near.noise, rel=1e-4)
