"""Section 2: the objectives (2.1) and (2.3), and the likelihoods that they are."""

from __future__ import annotations

import numpy as np

from .. import Evidence, Trial, Verdict, claim, equal
from ._instances import Instance


@claim(
    "clusters.prop2.2",
    "Proposition 2.2",
    "(2.1) with alpha_j = lambda_j / (lambda_j + Gamma_j), Gamma_j the sum of the gamma_i of the cluster, and (2.3) "
    "have the same minimisers theta_i.",
    stated="equal",
    expected=Verdict.HOLDS,
)
def minimisers(at: Trial) -> Evidence:
    of = Instance.drawn(at.rng())
    found = of.problem().solve(gap=1e-12, on_failure="return")
    total = at.given(of.total)
    return Evidence.of(equal("theta", found.coef, of.minimiser(of.penalty(of.lam / (of.lam + total))), 1e-6))


@claim(
    "clusters.eq2.2",
    "(2.2)",
    "The two expressions for thetabar are equal: sum_j alpha_j thetabar_j / sum_j alpha_j, and "
    "sum_j alpha_j sum_i gamma_i theta_i / sum_j alpha_j sum_i gamma_i.",
    stated="equal",
    expected=Verdict.CORRECTED,
    correction="The two agree only where all Gamma_j are equal; with the second Proposition 2.2 holds.",
)
def network_means(at: Trial) -> Evidence:
    of = Instance.drawn(at.rng())
    first = np.tile((of.alpha / of.alpha.sum())[of.cluster] * of.gamma / of.total[of.cluster], (len(of.gamma), 1))
    second, alpha = of.network_mean(of.alpha), at.given(of.alpha)
    theta = of.problem().solve(gap=1e-12, on_failure="return").coef
    other = of.minimiser(of.penalty(of.alpha, first))
    right = of.minimiser(of.penalty(alpha, second))
    return Evidence.of(
        equal("thetabar, first and second expression", first[0] @ theta, second[0] @ theta),
        equal("theta of (2.1) with the first expression, and of (2.3)", other, theta, 1e-6),
        corrected=[equal("theta of (2.1) with the second expression", right, theta, 1e-6)],
    )


@claim(
    "clusters.tree",
    "(2.3)",
    "(2.3) is a penalty 1/2 ||.||^2 on the edges of the tree clients - clusters - root, with weights gamma_i and "
    "lambda_j and no loss at clusters and root.",
    stated="equal",
    expected=Verdict.HOLDS,
)
def on_a_tree(at: Trial) -> Evidence:
    of, rng = Instance.drawn(at.rng(0)), at.rng(1)
    n, _, d = of.X.shape
    w = rng.standard_normal((n + len(of.lam) + 1, d))  # clients, clusters, root
    theta, centre, root = w[:n], w[n:-1], w[-1]
    losses = 0.5 * ((np.einsum("imj,ij->im", of.X, theta) - of.y) ** 2).sum()
    within = 0.5 * (at.given(of.gamma) * ((theta - centre[of.cluster]) ** 2).sum(axis=1)).sum()
    between = 0.5 * (of.lam * ((centre - root) ** 2).sum(axis=1)).sum()
    return Evidence.of(equal("the objective", of.problem().value(w), losses + within + between, 1e-12))
