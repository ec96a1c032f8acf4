"""Section 3.2: the local estimators, the edge statistic, and the selection of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import column, error_of_share, grid, rows
from ..figures import curve
from ._instances import Study

LEVEL = 0.05


def _pairs(rng: np.random.Generator, pairs: int, n: int, p: int, noise: float) -> tuple[Study, gr.Graph]:
    """Nodes with equal parameters, and edges that have no node in common: independent tests of a true hypothesis."""
    of = Study.drawn(rng, 2 * pairs, n, 0.0, p, K=1, noise=noise)
    k = np.arange(pairs)
    return of, of.joined(np.stack([k, pairs + k], axis=1))


def _tested(of: Study, graph: gr.Graph, covariance: str) -> Any:
    loss = gr.SquaredLoss(of.data, scale="mean")
    return gr.inference.edge_tests(loss, graph, covariance=covariance, correction=None, alpha=LEVEL)


@claim(
    "fused.lemmaS3.4",
    "Lemma S.3.4",
    stated="N(0, H^-1 Sigma H^-T)",
    perturbation=0.5,
    quick={"nodes": 1000},
    full={"nodes": 4000},
)
def normality(at: Trial, nodes: int) -> Evidence:
    """sqrt(n) (theta_u^ - theta_u*) is asymptotically normal with covariance H^-1 Sigma H^-T."""
    # Every node a replication: logistic regression, and linear regression with a noise that varies with x.
    rng, n, p = at.rng(), 400, 2
    X, node, theta = rng.standard_normal((nodes * n, p)), np.repeat(np.arange(nodes), n), np.array([0.7, -0.4])
    eta = X @ theta
    labels = (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    uneven = eta + (0.5 + np.abs(X[:, 0])) * rng.standard_normal(len(eta))
    checks, table = [], []
    for name, loss in (
        ("logistic", gr.LogisticLoss(gr.NodeData.from_arrays(X, labels, node), scale="mean")),
        ("linear, uneven noise", gr.SquaredLoss(gr.NodeData.from_arrays(X, uneven, node), scale="mean")),
    ):
        fits = gr.inference.local_fits(gr.Problem(loss).form)
        off = fits.coef - theta
        size = np.einsum("ui,uij,uj->u", off, np.linalg.inv(fits.covariance("HC0")), off)
        for level in (0.5, 0.95):
            share, error = float((size <= chi2.ppf(level, p)).mean()), error_of_share(level, nodes)
            checks.append(equal(f"{name}: share below the {level} quantile", share, at.given(level), 4.0, error=error))
            table.append({"loss": name, "level": level, "share of the nodes below": share})
    return Evidence.of(*checks, table=table)


@claim("fused.edge-statistic", "(13)", stated="chi^2_p", perturbation=0.3, quick={"pairs": 400}, full={"pairs": 10_000})
def statistic(at: Trial, pairs: int) -> Evidence:
    """W_e^2 = (theta_i - theta_j)' (Omega_i + Omega_j)^-1 (theta_i - theta_j), Omega_u = (n_u H_u)^-1, is chi^2_p under
    equality (with Condition 4)."""
    n, p = 200, 3
    of, graph = _pairs(at.rng(), pairs, n, p, 1.0)
    found = _tested(of, graph, "model")["statistic"].to_numpy()
    omega = np.linalg.inv(n * of.hessians())
    local = -np.einsum("uij,uj->ui", np.linalg.inv(of.hessians()), of.gradients(np.zeros_like(of.truth)))
    off = local[graph.tail] - local[graph.head]
    right = np.einsum("ei,eij,ej->e", off, np.linalg.inv(at.given(omega)[graph.tail] + omega[graph.head]), off)
    return Evidence.of(
        equal("W^2, and (13)", found, right, 1e-8),
        equal("mean of W^2, against p", found.mean(), p, 4.0, error=np.sqrt(2.0 * p / pairs)),
        equal(
            "share above the 0.95 quantile",
            (found > chi2.ppf(0.95, p)).mean(),
            LEVEL,
            4.0,
            error=error_of_share(LEVEL, pairs),
        ),
    )


@claim(
    "fused.edge-size",
    "(13) and (14) for Example 2",
    stated=LEVEL,
    perturbation=0.5,
    quick={"pairs": 300},
    full={"pairs": 5000},
)
def size(at: Trial, pairs: int) -> Evidence:
    """The test of equality that rejects where W_e^2 > chi^2_p(alpha) has level alpha for linear regression with the
    loss (y - theta'x)^2 / 2.

    Correction (substance): Only where the noise has variance 1 (Condition 4): at twice the deviation most true edges
    are rejected, at half of it none. With the covariance H^-1 S H^-1 / n and F quantiles the level is kept at every
    noise.
    """
    n, p, shares, table = 80, 5, dict[str, list[float]](), []
    for noise in (0.5, 1.0, 2.0):
        of, graph = _pairs(at.rng(int(10 * noise)), pairs, n, p, noise)
        row: dict[str, Any] = {"sd of the noise": noise}
        for name, covariance in (("as printed", "model"), ("Chow", "chow"), ("robust", "robust")):
            row[name] = float((_tested(of, graph, covariance)["p_value"] < LEVEL).mean())
            shares.setdefault(name, []).append(row[name])
        table.append(row)
    level, error = at.given(LEVEL), error_of_share(LEVEL, pairs)
    return Evidence.of(
        equal("rejections as printed, sd 0.5, 1 and 2", shares["as printed"], LEVEL, 4.0, error=error),
        corrected=[
            equal("rejections, one variance for both nodes", shares["Chow"], level, 3.0, error=error),
            at_most("rejections, sandwich", shares["robust"], LEVEL, 3.0, error=error),
            at_least("rejections, sandwich, not fewer than a fifth of that", shares["robust"], LEVEL / 5.0),
        ],
        table=table,
    )


# ---- Theorem 3.4 -----------------------------------------------------------------------------------------------------
def _selected(rng: np.random.Generator, n: int, times: float, covariance: str) -> dict[str, float]:
    """The share of draws in which exactly the true edges are kept, in two clusters that are ``times`` as far apart
    as (15) asks for."""
    of = Study.drawn(rng, 8, n, 0.0, p=3, K=2, noise=1.0)
    graph = of.joined(np.array([(i, j) for j in range(8) for i in range(j)]))
    # (15) with H = I and n_e = n: n ||theta_i - theta_j||^2 / 2 = 4 chi^2_p(alpha / |E|)
    apart = times * np.sqrt(8.0 * chi2.ppf(1.0 - LEVEL / graph.n_edges, 3) / n)
    centres = np.zeros((2, 3))
    centres[1, 0] = apart
    y = of.y - np.einsum("ukj,uj->uk", of.X, of.truth - centres[of.cluster])
    loss = gr.SquaredLoss(
        gr.NodeData.from_arrays(of.X.reshape(8 * n, 3), y.ravel(), np.repeat(np.arange(8), n)), scale="mean"
    )
    found = gr.inference.edge_tests(loss, graph, covariance=covariance, correction="bonferroni", alpha=LEVEL)
    true = of.cluster[graph.tail] == of.cluster[graph.head]
    kept = found["keep"].to_numpy(dtype=bool)
    return {"exact": float((kept == true).all()), "lost": float((true & ~kept).any())}


def _draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots()
    for name, samples in data["shares"].items():
        curve(axes, data["times"], samples, name)
    axes.axhline(1.0 - LEVEL, color="black", linewidth=0.8, linestyle=":", label="stated: at least 0.95, from 1 on")
    axes.set(xlabel="distance of the clusters, in units of (15)", ylabel="share of runs with exactly the true edges")
    axes.legend()


@claim(
    "fused.thm3.4",
    "Theorem 3.4",
    stated="1 - alpha",
    quick={"n": 400, "replications": 60},
    full={"n": 2000, "replications": 1000},
    experiment=True,
    figure=_draw,
)
def consistency(at: Trial, n: int, replications: int) -> Evidence:
    """Where n_e dist(theta_i*, theta_j*)^2 >= 4 chi^2_p(alpha / |E|) at every false edge, exactly the true edges are
    selected with probability at least 1 - alpha, as n grows."""
    times, kinds = (0.5, 1.0, 1.5), ("model", "auto")
    runs = at.replicate(_selected, grid(covariance=kinds, times=times, n=n), replications)
    exact = column(runs, "exact").reshape(2, len(times), -1)
    share, error, lost = exact.mean(axis=2), error_of_share(LEVEL, replications), column(runs, "lost").mean()
    return Evidence.of(
        at_least("share of runs, (15) met, the paper's covariance", share[0, 1:], 1.0 - LEVEL, 3.0, error=error),
        at_least("share of runs, (15) met, gr's own covariance", share[1, 1:], 1.0 - LEVEL, 3.0, error=error),
        at_most("share of runs that lose a true edge", lost, LEVEL, 0.02),
        at_most("share of runs at half the distance of (15)", share[:, 0], 0.9),
        table=rows({"distance / that of (15)": times, "the paper's covariance": share[0], "auto": share[1]}),
        data={"times": times, "shares": dict(zip(("the paper's covariance", "auto"), exact, strict=True))},
    )
