"""Sections 2 and 3: the losses of the examples, what (4) becomes at both ends of lambda, and with an l1 penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import optimum
from ._instances import Array, Study

BENT = 1.0 / (6.0 * np.sqrt(3.0))  # the largest |zeta'''|


@claim("fused.examples", "Examples 1, 2 and 3", stated="the gradients and Hessians of M_u; Conditions 1 and 2 hold")
def examples(at: Trial) -> Evidence:
    """psi = (theta - z) / sigma^2 for means, -(y - theta'x) x for linear and (zeta'(theta'x) - y) x for logistic
    regression, with Hessians I / sigma^2, x x' and zeta''(theta'x) x x', which are Lipschitz and bounded."""
    rng, (V, n, p), sigma = at.rng(), (4, 30, 3), 1.7
    X, z, node = rng.standard_normal((V * n, p)), rng.standard_normal((V * n, p)), np.repeat(np.arange(V), n)
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # on the unit sphere, as Example 3 has it
    y, theta, step = rng.standard_normal(V * n), rng.standard_normal((V, p)), rng.standard_normal((V, p))
    near = theta[node]
    eta, label = np.einsum("rj,rj->r", X, near), (y > 0).astype(float)
    slope = expit(eta) * expit(-eta)
    classes = gr.NodeData.from_arrays(X, label, node)
    losses: dict[str, tuple[Any, Array, Array]] = {
        "means": (
            gr.MeanLoss(gr.NodeData.from_arrays(None, z, node), scale=1.0 / (n * sigma**2)),
            (near - z) / at.given(sigma) ** 2,
            np.tile(np.eye(p) / sigma**2, (V * n, 1, 1)),
        ),
        "linear": (
            gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node), scale="mean"),
            -(at.given(y) - eta)[:, None] * X,
            X[:, :, None] * X[:, None, :],
        ),
        "logistic": (
            gr.LogisticLoss(classes, scale="mean"),
            (expit(at.given(eta)) - label)[:, None] * X,
            (slope[:, None] * X)[:, :, None] * X[:, None, :],
        ),
    }
    checks = []
    for name, (loss, psi, hessian) in losses.items():
        gradient = gr.Problem(loss).oracles().gradient
        bend = (gradient(theta + 1e-5 * step) - gradient(theta - 1e-5 * step)) / 2e-5
        H = hessian.reshape(V, n, p, p).mean(axis=1)
        checks += [
            equal(f"{name}: gradient", gradient(theta), psi.reshape(V, n, p).mean(axis=1), 1e-10),
            equal(f"{name}: Hessian times a direction", bend, np.einsum("ujl,ul->uj", H, step), 1e-6),
        ]
    other = theta + 0.3 * step
    far = _hessians(X, other[node], V) - _hessians(X, near, V)
    size = np.linalg.norm(far, 2, axis=(1, 2)) / np.linalg.norm(0.3 * step, axis=1)
    return Evidence.of(*checks, at_most("logistic: the Lipschitz constant of the Hessian", size, BENT))


def _hessians(X: Array, theta: Array, V: int) -> Array:
    """Of the logistic M_u, theta given for each sample."""
    eta = np.einsum("rj,rj->r", X, theta)
    each = (expit(eta) * expit(-eta))[:, None, None] * X[:, :, None] * X[:, None, :]
    return each.reshape(V, -1, *each.shape[1:]).mean(axis=1)


@claim(
    "fused.condition4",
    "Condition 4 and Example 2",
    stated="met where the density of the data is uniformly integrable",
    perturbation=0.3,
)
def bartlett(at: Trial) -> Evidence:
    """Sigma_u(theta*) = H_u(theta*), the second Bartlett identity, is met by the examples: Sigma_u = sigma^2 times the
    second moment of x for linear regression with the loss (y - theta'x)^2 / 2.

    Correction (substance): It is met by losses that are minus a log-likelihood; (y - theta'x)^2 / 2 is that for noise
    of variance 1 alone, and at another sigma Sigma_u = sigma^2 H_u.
    """
    V, n, p, sigma = 400, 40, 3, 2.0
    of = Study.drawn(at.rng(), V, n, 0.0, p, noise=sigma)
    fits = gr.inference.local_fits(gr.Problem(gr.SquaredLoss(of.data, scale="mean")).form)
    scores = n * np.einsum("ijj->i", fits.score_covariance("HC2") @ fits.inverse) / p  # tr(Sigma_u H_u^-1) / p
    mean, error = scores.mean(), scores.std(ddof=1) / np.sqrt(V)
    return Evidence.of(
        equal("mean of tr(Sigma H^-1) / p, against Sigma = H", mean, 1.0, 5.0, error=error),
        corrected=[equal("against Sigma = sigma^2 H", mean, at.given(sigma) ** 2, 4.0, error=error)],
    )


@claim("fused.local-limit", "section 3, after Example 3")
def without_edges(at: Trial) -> Evidence:
    """With lambda = 0 (4) is the local estimator (3) at every node."""
    of = Study.drawn(at.rng(), 8, 30, p=3, K=2)
    found = optimum(gr.Problem(of.loss())).coef
    right = np.linalg.solve(of.hessians(), -of.gradients(np.zeros_like(of.truth))[:, :, None])[:, :, 0]
    return Evidence.of(equal("theta", found, at.given(right), 1e-6))


@claim("fused.global-limit", "section 3, after Example 3, and section 5")
def all_together(at: Trial) -> Evidence:
    """As lambda -> infinity (4) becomes the global estimator, argmin of sum_u sum_k m_u(z_k; theta) over all samples.

    Correction (substance): At a finite lambda it is the argmin of the sum of the nodes' means M_u, which is the global
    estimator where all n_u are equal.
    """
    of, sizes = Study.drawn(at.rng(), 6, 60, p=3, K=2), np.array([60, 40, 20, 10, 8, 6])
    rows = np.concatenate([[u] * n for u, n in enumerate(sizes)])
    X, y = (np.concatenate([x[u, :n] for u, n in enumerate(sizes)]) for x in (of.X, of.y))
    data, graph = gr.NodeData.from_arrays(X, y, rows), of.joined(np.array([(u, u + 1) for u in range(5)]))
    loss = gr.SquaredLoss(data, scale={u: 1.0 / (6 * n) for u, n in enumerate(sizes.tolist())})
    strength = gr.theory.strength_max(
        gr.Problem(loss + gr.Parameter(1.0, name="lam") * gr.TotalVariation(graph, gr.L1()))
    )
    twice = gr.Problem(loss + 2.0 * strength.value * gr.TotalVariation(graph, gr.L1()))
    found = optimum(twice).coef

    def fitted(weights: Array) -> Array:
        return np.tile(np.linalg.solve((X.T * weights) @ X, (X.T * weights) @ y), (6, 1))

    means = fitted(at.given(1.0 / sizes[rows]))
    return Evidence.of(
        equal("theta of (4), and of all samples pooled", found, fitted(np.ones(len(y))), 1e-5),
        corrected=[equal("theta of (4), and of the sum of the M_u", found, means, 1e-5)],
        table=[{"the largest lambda that matters": strength.value}],
    )


# ---- the discussion --------------------------------------------------------------------------------------------------
@claim("fused.l1-extension", "section 7", stated="can extend")
def sparse(at: Trial) -> Evidence:
    """(1/V) sum_i (M_i(theta_i) + lambda_i ||theta_i||_1) + lambda R(D Theta) extends the method to high dimensions."""
    V, n, p = 8, 15, 30
    of = Study.drawn(at.rng(0), V, n, 0.0, p, K=2, noise=0.5)
    truth = np.where(np.arange(p) < 3, 4.0 * of.truth, 0.0)
    of = replace(of, truth=truth, y=np.einsum("ukj,uj->uk", of.X, truth) + 0.5 * at.rng(1).standard_normal((V, n)))
    weights, fused = 0.1 + 0.1 * at.rng(2).random(V), 0.02
    node = gr.NodePenalty(gr.L1(), weights=dict(enumerate((weights / V).tolist())))
    tied = of.loss() + fused * gr.TotalVariation(of.graph, gr.L1())
    found = gr.Problem(tied + node).solve(gr.Exact(), gap=1e-10)
    run = gr.Problem(tied + node).solve(gr.FedADMM(), gap=1e-6)
    alone = gr.Problem(of.loss() + node).solve(gr.Exact(), gap=1e-8).coef

    def written(theta: Array) -> float:
        fit = 0.5 * ((np.einsum("ukj,uj->uk", of.X, theta) - of.y) ** 2).mean(axis=1)
        i, j = of.edges.T
        local = (fit + at.given(weights) * np.abs(theta).sum(axis=1)).mean()
        return float(local + fused * np.abs(theta[i] - theta[j]).sum())

    return Evidence.of(
        equal("the objective at the minimiser", gr.Problem(tied + node).value(found.coef), written(found.coef), 1e-10),
        equal("the objective at the truth", gr.Problem(tied + node).value(of.truth), written(of.truth), 1e-10),
        at_most("relative gap of the minimiser", found.certificate.relative_gap, 1e-10),
        at_most("relative gap of gr.FedADMM", run.certificate.relative_gap, 1e-6),
        at_most("error, beside that without edges", of.error(found.coef), 0.5 * of.error(alone)),
        at_least(
            "share of the false coefficients that are zero", float((np.abs(found.coef[:, 3:]) < 1e-6).mean()), 0.8
        ),
    )
