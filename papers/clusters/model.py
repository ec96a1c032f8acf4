"""Section 2: the objectives (2.1) and (2.3), and the likelihoods that they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import norm

import graphreg as gr

from .. import Evidence, Trial, claim, equal
from ..computing import optimum
from ._instances import Array, Instance


@claim("clusters.prop2.2", "Proposition 2.2")
def minimisers(at: Trial) -> Evidence:
    """(2.1) with alpha_j = lambda_j / (lambda_j + Gamma_j), Gamma_j the sum of the gamma_i of the cluster, and (2.3)
    have the same minimisers theta_i."""
    of = Instance.drawn(at.rng())
    alpha = of.lam / (of.lam + at.given(of.total))
    stated = of.minimiser(of.penalty(alpha))
    both = [optimum(of.problem(each)).coef for each in (None, of.alpha)]
    return Evidence.of(
        equal("theta of (2.3), by gr.Hierarchy", both[0], stated, 1e-6),
        equal("theta of (2.1), by gr.Hierarchy.from_alpha", both[1], stated, 1e-6),
    )


@claim("clusters.eq2.2", "(2.2)")
def network_means(at: Trial) -> Evidence:
    """The two expressions for thetabar are equal: sum_j alpha_j thetabar_j / sum_j alpha_j, and sum_j alpha_j sum_i
    gamma_i theta_i / sum_j alpha_j sum_i gamma_i.

    Correction (substance): The two agree only where all Gamma_j are equal; with the second Proposition 2.2 holds.
    """
    of = Instance.drawn(at.rng())
    first = np.tile((of.alpha / of.alpha.sum())[of.cluster] * of.gamma / of.total[of.cluster], (len(of.gamma), 1))
    second, alpha = of.network_mean(of.alpha), at.given(of.alpha)
    theta = optimum(of.problem()).coef
    other = of.minimiser(of.penalty(of.alpha, first))
    right = of.minimiser(of.penalty(alpha, second))
    return Evidence.of(
        equal("thetabar, first and second expression", first[0] @ theta, second[0] @ theta),
        equal("theta of (2.1) with the first expression, and of (2.3)", other, theta, 1e-6),
        corrected=[equal("theta of (2.1) with the second expression", right, theta, 1e-6)],
    )


@claim("clusters.tree", "(2.3)")
def on_a_tree(at: Trial) -> Evidence:
    """(2.3) is a penalty 1/2 ||.||^2 on the edges of the tree clients - clusters - root, with weights gamma_i and
    lambda_j and no loss at clusters and root."""
    of, rng = Instance.drawn(at.rng(0)), at.rng(1)
    n, _, d = of.X.shape
    w = rng.standard_normal((n + len(of.lam) + 1, d))  # clients, clusters, root
    theta, centre, root = w[:n], w[n:-1], w[-1]
    losses = 0.5 * ((np.einsum("imj,ij->im", of.X, theta) - of.y) ** 2).sum()
    within = 0.5 * (at.given(of.gamma) * ((theta - centre[of.cluster]) ** 2).sum(axis=1)).sum()
    between = 0.5 * (of.lam * ((centre - root) ** 2).sum(axis=1)).sum()
    return Evidence.of(equal("the objective", of.problem().value(w), losses + within + between, 1e-12))


@claim("clusters.alpha-regimes", "section 2, after (2.2)")
def regimes(at: Trial) -> Evidence:
    """With all alpha_j = 0 (2.1) is a problem for each cluster, independently of the others; with all alpha_j = 1 it is
    the problem with a single cluster, sum_i f_i(theta_i) + gamma_i/2 ||theta_i - thetabar||^2."""
    of = Instance.drawn(at.rng())
    k, n = len(of.lam), len(of.gamma)
    apart, tied = (optimum(of.problem(np.full(k, each))).coef for each in (0.0, 1.0))
    alone = []
    for j in range(k):
        own = of.cluster == j
        part = replace(of, X=of.X[own], y=of.y[own], cluster=np.zeros(own.sum(), dtype=int), gamma=of.gamma[own])
        alone.append(part.minimiser(replace(part, gamma=at.given(part.gamma)).psi()))
    single = replace(of, cluster=np.zeros(n, dtype=int), gamma=at.given(of.gamma))
    return Evidence.of(
        equal("theta at alpha_j = 0, and of each cluster alone", apart, np.concatenate(alone), 1e-6),
        equal("theta at alpha_j = 1, and of a single cluster", tied, of.minimiser(single.psi()), 1e-6),
    )


# ---- likelihoods -----------------------------------------------------------------------------------------------------
@claim("clusters.hglm", "section 2, after Proposition 2.2", stated="the same, up to a constant")
def likelihood_of_the_hierarchy(at: Trial) -> Evidence:
    """The negative log-likelihood of the hierarchical model is sum_j sum_i (log p(y_i) + 1/(2 sigma_j^2) ||theta_i -
    thetabar_j||^2) + 1/(2 sigma_center^2) ||thetabar_j - thetabar||^2, an instance of (2.3).

    Correction (misprint): Its first term is minus log p(y_i); so it is (2.3) with gamma_i = 1/sigma_j^2, lambda_j =
    1/sigma_center^2 and f_i = -log p(y_i).
    """
    of = Instance.drawn(at.rng(0))
    gamma = (1.0 / np.array([0.5, 1.0, 2.0]))[of.cluster]
    of = replace(of, gamma=gamma, lam=np.full(3, 0.7))
    problem, rng = replace(of, gamma=at.given(gamma)).problem(), at.rng(1)
    w, zero = rng.standard_normal((len(gamma) + 4, 3)), np.zeros((len(gamma) + 4, 3))

    def densities(w: Array) -> tuple[float, float]:
        """log p of the responses given the parameters, and of the parameters given the root's."""
        theta, centre, root = w[: len(gamma)], w[len(gamma) : -1], w[-1]
        responses = norm.logpdf(of.y, np.einsum("imj,ij->im", of.X, theta)).sum()
        within = norm.logpdf(theta, centre[of.cluster], 1.0 / np.sqrt(gamma)[:, None]).sum()
        return responses, within + norm.logpdf(centre, root, 1.0 / np.sqrt(0.7)).sum()

    (a, b), (a_0, b_0) = densities(w), densities(zero)
    objective = problem.value(w) - problem.value(zero)
    return Evidence.of(
        equal("as printed, from 0 to w", (a - a_0) - (b - b_0), objective),
        corrected=[equal("minus the log-likelihood, from 0 to w", (a_0 - a) + (b_0 - b), objective)],
    )


@claim("clusters.likelihood", "section 5, after (5.1)")
def likelihood_of_the_linear_model(at: Trial) -> Evidence:
    """The maximum likelihood problem sum_i 1/sigma_i^2 ||y_i - X_i theta_i||^2 + gamma_i alpha_j/2 ||theta_i -
    thetabar||^2 + gamma_i (1 - alpha_j)/2 ||theta_i - thetabar_j|| is an instance of (2.1), and equivalent to (5.2).

    Correction (misprint): The first term has 1/(2 sigma_i^2), and the last norm its square.
    """
    of = Instance.drawn(at.rng(0))
    theta, other = at.rng(1).standard_normal((2, *of.X.shape[::2]))
    problem, alpha = of.problem(of.alpha), at.given(of.alpha)
    difference = problem.value(theta) - problem.value(other)
    likelihood = gr.theory.printed.likelihood

    def letter(theta: Array) -> float:
        j, fit = of.cluster, ((np.einsum("imj,ij->im", of.X, theta) - of.y) ** 2).sum()
        top = ((theta - of.network_mean(of.alpha) @ theta) ** 2).sum(axis=1)
        centre = np.linalg.norm(theta - of.cluster_mean() @ theta, axis=1)
        return float(fit + 0.5 * (of.gamma * (of.alpha[j] * top + (1.0 - of.alpha[j]) * centre)).sum())

    def right(theta: Array) -> float:
        fit = 0.5 * ((np.einsum("imj,ij->im", of.X, theta) - of.y) ** 2).sum()
        return fit + 0.5 * np.einsum("ij,il,lj->", theta, of.penalty(alpha), theta)

    return Evidence.of(
        equal("between two points, as printed", likelihood(problem, theta) - likelihood(problem, other), difference),
        corrected=[
            equal("between two points, with both corrections", right(theta) - right(other), difference),
            equal(
                "as printed, gr.theory.printed.likelihood and to the letter", likelihood(problem, theta), letter(theta)
            ),
        ],
    )
