"""Hierarchical estimators: Table 1 of the paper, James-Stein, statsmodels, coverage, time."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.inference import compare_estimators, hierarchical, james_stein

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
DRAWS = 25


# ---- Table 1 ---------------------------------------------------------------------------------------------------------
def _clients(rng: np.random.Generator, m: int) -> tuple[gr.NodeData, dict[int, int], dict[int, np.ndarray]]:
    """20 clusters of 20 clients with m samples each, d = 20 (Section 6.1): data, clusters, true coefficients."""
    k = d = 20
    centre = rng.normal(size=(k, d))
    theta = centre.repeat(20, axis=0) + rng.normal(size=(20 * k, d))
    X = rng.normal(size=(20 * k, m, d))
    y = np.einsum("imj,ij->im", X, theta) + rng.normal(size=X.shape[:2])
    data = gr.NodeData.from_arrays(X.reshape(-1, d), y.ravel(), np.repeat(np.arange(20 * k), m))
    return data, {i: i // 20 for i in range(20 * k)}, dict(enumerate(theta))


def study_table_1() -> pd.DataFrame:
    """Norms ||theta_hat_i - theta_i||, means over 400 clients and 25 draws; asked: exact minimisers with gamma = lambda
    = 1 measured before, printed: the paper's. The single cluster has lambda = 1/2 here, the variance about the root."""
    asked = {
        10: {"local": 4.49, "single model": 6.18, "single cluster": 4.45, "hierarchical": 3.40},
        100: {"local": 0.496, "single model": 6.17, "single cluster": 0.494, "hierarchical": 0.492},
    }
    printed = {10: (4.50, 6.11, 4.46, 3.46), 100: (0.494, 6.243, 0.494, 0.489)}
    rows = []
    for m in (1, 5, 10, 25, 50, 100, 200):
        found = []
        for draw in range(DRAWS):
            data, clusters, truth = _clients(np.random.default_rng([draw, m]), m)
            found.append(compare_estimators(data, clusters, (1.0, 1.0, 1.0), truth).errors.mean())
        mean = pd.concat(found, axis=1).mean(axis=1)
        for k, name in enumerate(mean.index):
            rows.append(
                {
                    "samples": m,
                    "estimator": name,
                    "asked": asked.get(m, {}).get(name, np.nan),
                    "found": mean[name],
                    "printed": printed[m][k] if m in printed and k < 4 else np.nan,
                }
            )
    return pd.DataFrame(rows)


def study_table_1_with_estimated_variances() -> pd.DataFrame:
    """Table 1 at m = 10 with variances by REML: what not knowing them costs; asked: with the true ones."""
    rows = []
    for draw in range(3):
        data, clusters, truth = _clients(np.random.default_rng([draw, 10]), 10)
        known = compare_estimators(data, clusters, (1.0, 1.0, 1.0), truth).errors["hierarchical"].mean()
        found = compare_estimators(data, clusters, None, truth)
        values = found.fits["hierarchical"].components
        error = found.errors["hierarchical"].mean()
        rows.append({"draw": draw, "asked": known, "found": error, "noise": values.noise, "levels": values.levels})
    return pd.DataFrame(rows)


# ---- Theorem 5.1 -----------------------------------------------------------------------------------------------------
def study_theorem_5_1() -> pd.DataFrame:
    """Largest relative differences over 20 draws of 6 nodes with d = 4: the minimiser of (5.2), the best linear
    unbiased prediction by dense matrices, the marginal estimator of Proposition 5.3 beside ours; asked: 0 but for
    rounding."""
    rows = []
    for kind, counts in (("more samples than d", (9, 7, 5, 8, 6, 5)), ("m < d at most nodes", (3, 1, 2, 8, 2, 3))):
        worst = np.zeros(3)
        for draw in range(20):
            rng, d, noise, tau = np.random.default_rng(draw), 4, 0.8, 1.7
            node = np.repeat(np.arange(6), counts)
            X, y = rng.normal(size=(len(node), d)), rng.normal(size=len(node))
            data = gr.NodeData.from_arrays(X, y, node)
            ours = hierarchical(data, components=(noise, tau)).coef
            Z = np.zeros((len(node), 6, d))
            Z[np.arange(len(node)), node] = X
            Z = Z.reshape(len(node), -1)
            W = np.linalg.inv(noise * np.eye(len(node)) + tau * Z @ Z.T)
            root = np.linalg.solve(X.T @ W @ X, X.T @ W @ y)
            dense = root + tau * (Z.T @ W @ (y - X @ root)).reshape(6, d)
            centred = np.kron(np.eye(6) - 1.0 / 6.0, np.eye(d))  # (5.2) with the root minimised out
            least = np.linalg.solve(Z.T @ Z / noise + centred / tau, Z.T @ y / noise).reshape(6, d)
            marginal = james_stein(data, (noise, tau)).marginal
            found = [np.abs(other - ours).max() / np.abs(ours).max() for other in (least, dense, marginal)]
            worst = np.maximum(worst, found)
        names = ("minimiser of (5.2)", "generalised least squares", "marginal (Proposition 5.3)")
        rows += [
            {"design": kind, "of": name, "asked": 0.0, "found": far} for name, far in zip(names, worst, strict=True)
        ]
    return pd.DataFrame(rows)


# ---- James-Stein -----------------------------------------------------------------------------------------------------
def study_james_stein() -> pd.DataFrame:
    """Mean squared errors of a node in the model of Proposition 5.4, 1000 draws; asked: below those of the best linear
    unbiased prediction, whose formula is ((n+1)/2n)^2 d + ((n-1)/2n)^2 (d + 2d/(n-1))."""
    rows = []
    for n, d, size in ((3, 5, 0.0), (3, 5, 1.0), (3, 3, 0.0), (5, 3, 0.5), (10, 20, 0.0), (10, 20, 1.0)):
        rng, errors = np.random.default_rng([n, d]), []
        for _ in range(1000):
            truth = size + rng.normal(size=(n, d))
            y = truth + rng.normal(size=(n, d))
            fit = james_stein(gr.NodeData.from_arrays(None, y, list(range(n))), (1.0, 1.0))
            errors.append([((w - truth) ** 2).sum(axis=1).mean() for w in (fit.coef, fit.marginal)])
        shrunken, unbiased = np.array(errors).T
        own, others = ((n + 1) / (2 * n)) ** 2, ((n - 1) / (2 * n)) ** 2
        rows.append(
            {
                "n": n,
                "d": d,
                "centre": size,
                "asked": own * d + others * (d + 2 * d / (n - 1)),
                "unbiased": unbiased.mean(),
                "found": shrunken.mean(),
                "difference / its standard error": (unbiased - shrunken).mean()
                / ((unbiased - shrunken).std() / np.sqrt(len(errors))),
            }
        )
    return pd.DataFrame(rows)


# ---- statsmodels -----------------------------------------------------------------------------------------------------
def study_statsmodels() -> pd.DataFrame:
    """Coefficients and variances by REML beside those of statsmodels MixedLM (asked), on schools and counties."""
    schools, counties = pd.read_csv(DATA / "hsb82.csv.gz"), pd.read_csv(DATA / "radon_mn.csv")
    thirds = pd.qcut(schools["meanses"], 3, labels=["low", "middle", "high"]).astype(str)
    schools["cluster"] = schools["sector"] + " " + thirds
    clusters = dict(zip(schools["school"], schools["cluster"], strict=True))
    slopes, nested = {"b": "1 + {}"}, {"cluster": "1", "school": "0 + C(school)"}
    frames = {"school": (schools, "mAch", "cses"), "county": (counties, "log_radon", "floor")}
    rows = []
    for node, random, groups, parts in (
        ("school", None, "school", slopes),
        ("school", ["intercept"], "school", None),
        ("school", ["intercept"], "cluster", nested),
        ("county", None, "county", slopes),
        ("county", ["intercept"], "county", None),
    ):
        frame, target, feature = frames[node]
        options = {} if parts is None else {"re_formula": "0"}
        if parts is not None:
            options["vc_formula"] = {name: formula.format(feature) for name, formula in parts.items()}
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import statsmodels.formula.api as smf

            model = smf.mixedlm(f"{target} ~ {feature}", frame, groups=groups, **options)
            asked = model.fit(method=["bfgs", "powell"])
        theirs = time.perf_counter() - began
        data = gr.NodeData.from_frame(frame, node=node, target=target, features=[feature], intercept=True)
        began = time.perf_counter()
        found = hierarchical(data, clusters if groups == "cluster" else None, random=random)
        ours = time.perf_counter() - began
        variances = asked.vcomp[::-1] if parts is not None else np.diag(asked.cov_re)
        name = f"{target} ~ {feature}, {', '.join(random or ['all'])} by {node}{' in clusters' * (groups != node)}"
        pairs = {
            **{f: (asked.fe_params.iloc[k], found.w[-1, k]) for k, f in enumerate(found.features)},
            "noise": (asked.scale, found.components.noise),
            **{f"level {k + 1}": pair for k, pair in enumerate(zip(variances, found.components.levels, strict=True))},
            "log-likelihood": (asked.llf, found.components.log_likelihood),
            f"seconds (statsmodels converged: {asked.converged})": (theirs, ours),
            "relative gap": (1e-12, found.certificate.relative_gap),
        }
        rows += [{"model": name, "quantity": q, "asked": a, "found": f} for q, (a, f) in pairs.items()]
    return pd.DataFrame(rows)


# ---- intervals, time -------------------------------------------------------------------------------------------------
def study_coverage() -> pd.DataFrame:
    """Coverage of 95% intervals of nodes' and root's coefficients, 200 draws of n nodes with 6 samples each; with the
    variances known (exact) and by REML (too short where nodes are few)."""
    rows = []
    for n in (5, 20, 80):
        hits: dict[tuple[str, str], list[float]] = {}
        for draw in range(200):
            rng = np.random.default_rng([n, draw])
            w = np.array([1.0, -1.0]) + np.sqrt(0.5) * rng.normal(size=(n, 2))
            data = _two_coefficients(rng, w)
            for kind, components in (("known", (1.0, 0.5)), ("REML", None)):
                fit = hierarchical(data, components=components)
                inside = np.abs(fit.w - np.vstack([w, [1.0, -1.0]])) <= 1.959964 * fit.std_errors
                hits.setdefault((kind, "nodes"), []).append(inside[:-1].mean())
                hits.setdefault((kind, "root"), []).append(inside[-1].mean())
        for (kind, what), values in hits.items():
            rows.append({"nodes": n, "variances": kind, "of": what, "asked": 0.95, "found": np.mean(values)})
    return pd.DataFrame(rows)


def study_coverage_of_clusters() -> pd.DataFrame:
    """Coverage of 95% intervals of the root's coefficients, 300 draws of k clusters of 6 nodes with 6 samples each, by
    REML; clusters, nodes and noise with the standard deviations 1, .7 and 1, of the intercept alone or of both."""
    rows = []
    for vary, random in (("the intercept", ["intercept"]), ("all", None)):
        for k in (4, 6, 20):
            hits = list[float]()
            for draw in range(300):
                rng = np.random.default_rng([k, draw])
                off = rng.normal(size=(k, 2)).repeat(6, axis=0) + 0.7 * rng.normal(size=(6 * k, 2))
                data = _two_coefficients(rng, np.array([1.0, -1.0]) + off * [1.0, random is None])
                table = hierarchical(data, {i: i // 6 for i in range(6 * k)}, random=random).fixed()
                low, high = (table[end].to_numpy() for end in ("low", "high"))
                hits.append(float(np.mean((low <= [1.0, -1.0]) & (high >= [1.0, -1.0]), where=[True, random is None])))
            rows.append({"vary": vary, "clusters": k, "of": "root", "asked": 0.95, "found": np.mean(hits)})
    return pd.DataFrame(rows)


def _two_coefficients(rng: np.random.Generator, w: np.ndarray) -> gr.NodeData:
    """Six samples at each of some nodes with these coefficients, (n, 2), with noise of variance 1."""
    node = np.repeat(np.arange(len(w)), 6)
    X = np.column_stack([np.ones(len(node)), rng.normal(size=len(node))])
    y = np.einsum("rj,rj->r", X, w[node]) + rng.normal(size=len(node))
    return gr.NodeData.from_arrays(X, y, node, features=["intercept", "x"])


def study_time() -> pd.DataFrame:
    """Seconds of REML with all predictions and their errors, n nodes in n/20 clusters, 5 samples each, d = 3; asked:
    linear, ten times the seconds for ten times the nodes."""
    rows, before = [], np.nan
    for n in (1_000, 10_000, 100_000):
        rng = np.random.default_rng(n)
        cluster = np.arange(n) // 20
        w = (rng.normal(size=(n // 20, 3)))[cluster] + rng.normal(size=(n, 3))
        node, X = np.repeat(np.arange(n), 5), rng.normal(size=(5 * n, 3))
        y = np.einsum("rj,rj->r", X, w[node]) + rng.normal(size=5 * n)
        data = gr.NodeData.from_arrays(X, y, node)
        began = time.perf_counter()
        fit = hierarchical(data, dict(enumerate(cluster.tolist())))
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        gap = fit.certificate.relative_gap
        certified = time.perf_counter() - began
        rows.append(
            {
                "nodes": n,
                "asked": 10 * before,
                "found": seconds,
                "noise": fit.components.noise,
                "level 1": fit.components.levels[0],
                "level 2": fit.components.levels[1],
                "relative gap": gap,
                "seconds of the certificate": certified,
            }
        )
        before = seconds
    return pd.DataFrame(rows)
