"""Personalised federated learning with known clusters as printed: (2.2), Proposition 3.2, the likelihood of section 5,
the gradients of appendix A.1, and the weights of appendix A.12."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import checks
from ...errors import MethodError
from ...network import ClusterTree, arcs_of, tree_of, without_tree
from ...terms import Array
from ...terms.losses import AbstractQuadraticLoss
from ..arguments import form_of


def network_mean(problem: Any, theta: Any) -> Array:
    """The first expression for thetabar in (2.2) of Personalised FL with known clusters, as printed:

        sum_j alpha_j thetabar_j / sum_j alpha_j.

    It is not its second one, sum_j alpha_j sum_i gamma_i theta_i / sum_j alpha_j sum_i gamma_i, unless all clusters
    have the same Gamma_j = sum_i gamma_i. The second is right: Propositions 2.2 and 3.1 hold for it alone, and
    ``solution.latent`` has it at the root.

    Parameters
    ----------
    problem : Problem
        With a Hierarchy of two levels and SquaredL2.
    theta : (n, d) array
        The parameters of the clients, in node order, as ``solution.coef``.

    Returns
    -------
    (r, d) array
        For each root; there is one unless the hierarchy is a forest.

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, and for an array of another shape.

    Examples
    --------
    >>> gr.theory.printed.network_mean(tree, tree.solve().coef).shape
    (1, 2)
    """
    tree, values = _read(problem, theta, "(2.2)")
    return tree.root_means(tree.cluster_means(values), tree.alpha)[tree.roots]


def cluster_gradients(problem: Any, w: Any) -> Array:
    """The gradients of (2.3) in the cluster centres w_j, as appendix A.1 of Personalised FL with known clusters
    prints them:

        sum_i in j (theta_i - w_j) + lambda_j (w_j - wbar).

    At the optimum they are not 0. Right is sum_i gamma_i (w_j - theta_i) + lambda_j (w_j - wbar), which is, and of
    which the paper's next display follows.

    Parameters
    ----------
    problem : Problem
        With a Hierarchy of two levels and SquaredL2.
    w : (n, d) array
        Of all nodes, the clients, then the clusters and the root: ``solution.certificate.w``.

    Returns
    -------
    (k, d) array
        For each cluster, in the order of the problem's nodes.

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, and for an array of another shape.

    Examples
    --------
    >>> gr.theory.printed.cluster_gradients(tree, tree.solve().certificate.w).shape
    (2, 2)
    """
    tree, values = _read(problem, w, "appendix A.1", latent=True)
    out, centers = np.zeros_like(values), values[tree.cluster[tree.clients]]
    np.add.at(out, tree.cluster[tree.clients], values[tree.clients] - centers)
    j = tree.rooted
    lam = np.where(np.isinf(tree.lam[j]), 0.0, tree.lam[j])  # tied to the root, where w_j = wbar
    out[j] += lam[:, None] * (values[j] - values[tree.root[j]])
    return out[tree.clusters]


def likelihood(problem: Any, theta: Any) -> float:
    """What section 5 of Personalised FL with known clusters prints (after (5.1), without a number) as the maximum
    likelihood problem in the parameters of the clients:

        sum_i  1/sigma_i^2 ||y_i - X_i theta_i||^2 + gamma_i alpha_j/2 ||theta_i - thetabar||^2
               + gamma_i (1 - alpha_j)/2 ||theta_i - thetabar_j||.

    Minus the log-likelihood has 1/(2 sigma_i^2), and the square of the last norm: (2.1) with f_i =
    1/(2 sigma_i^2) ||y_i - X_i theta_i||^2, whose minimiser is another one.

    Parameters
    ----------
    problem : Problem
        (2.1): `SquaredLoss` with ``scale = 1 / sigma_i^2`` and a Hierarchy of two levels and SquaredL2.
    theta : (n, d) array
        The parameters of the clients, in node order, as ``solution.coef``.

    Returns
    -------
    float

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, other losses, and an array of another shape.

    Examples
    --------
    >>> at = tree.solve()
    >>> gr.theory.printed.likelihood(tree, at.coef) > at.objective
    True
    """
    tree, values = _read(problem, theta, "the likelihood of section 5")
    blocks = form_of(problem, "the likelihood of section 5").frozen().samples
    if not all(isinstance(block.loss, AbstractQuadraticLoss) for block in blocks):
        raise MethodError(
            "the likelihood of section 5 is that of squared losses; write gr.SquaredLoss(data, scale=...)"
        )
    losses = sum(float(block.values(values).sum()) for block in blocks)
    center = tree.cluster_means(values)
    top = tree.root_means(center, tree.alpha * tree.total)
    i = tree.clients
    j, gamma = tree.cluster[i], tree.gamma[i]
    alpha = tree.alpha[j]
    to_top = np.where(alpha > 0.0, ((values[i] - top[tree.root[j]]) ** 2).sum(axis=1), 0.0)
    to_center = np.linalg.norm(values[i] - center[j], axis=1)
    return float(2.0 * losses + 0.5 * (gamma * (alpha * to_top + (1.0 - alpha) * to_center)).sum())


def _read(problem: Any, given: Any, what: str, *, latent: bool = False) -> tuple[ClusterTree, Array]:
    """The tree of a problem, and the parameters of all nodes; those of latent nodes are 0 where they are not given."""
    form = form_of(problem, what).frozen()
    if missing := without_tree(form):
        raise MethodError(f"{what} is of a Hierarchy of two levels: {'; '.join(missing)}", missing)
    shape = (form.n if latent else form.space.n_observed, form.d)
    found = checks.numbers(given, f"the parameters of {what}", f"an array of the shape {shape}", MethodError)
    if found.shape != shape or not np.isfinite(found).all():
        raise MethodError(f"the parameters of {what} must be finite numbers of the shape {shape}, got {found.shape}")
    values = np.zeros(form.shape)
    values[: len(found)] = found
    return tree_of(form, arcs_of(form)), values


def communication_rounds(p_global: float, p_cluster: float, rounds: float) -> tuple[float, float]:
    """Proposition 3.2 of Personalised FL with known clusters, as printed: the expected numbers of communication rounds
    of Algorithm 1 between clusters and within cluster j,

        p_0 (1 - p_0) T,      (1 - p_0) p_j (1 - p_j) T.

    The first holds where all alpha_j gamma_i are equal. A round within a cluster is needed where its coin shows 1
    after a local step, which has the probability (1 - p_0) p_j (1 - p_0) (1 - p_j): the second lacks a factor
    1 - p_0, and where the gamma_i of a cluster differ it is (1 - p_0) p_j T. The ledger of `AsyncL2GD` counts what was
    sent.

    Parameters
    ----------
    p_global, p_cluster : float
        p_0 and p_j, in [0, 1].
    rounds : float
        T.

    Returns
    -------
    tuple of float

    Raises
    ------
    MethodError
        For numbers out of range.

    Examples
    --------
    >>> gr.theory.printed.communication_rounds(0.5, 0.5, 800)
    (200.0, 100.0)
    """
    chance = checks.inside("[0, 1]", "a probability in [0, 1]")
    p0, p = (float(chance(p, name, MethodError)) for p, name in ((p_global, "p_global"), (p_cluster, "p_cluster")))
    T = float(checks.nonnegative(rounds, "rounds", MethodError))
    return p0 * (1.0 - p0) * T, (1.0 - p0) * p * (1.0 - p) * T


def james_stein_weights(n: int) -> tuple[float, float]:
    """The weights of y_1 and of the mean of the other y_i in the best linear unbiased estimator of theta_1, as appendix
    A.12 of Personalised FL with known clusters prints them: ((n - 1) / 2n, (n + 1) / 2n), for y_i ~ N(theta_i, I) and
    theta_i ~ N(thetabar, I). They are the wrong way round: (n + 1) / 2n is the weight of y_1
    (`graphreg.inference.james_stein` has them right), and only so does the James-Stein variant of Proposition 5.4
    dominate the estimator.

    Parameters
    ----------
    n : int
        The number of clients, at least 2.

    Returns
    -------
    tuple of float

    Raises
    ------
    MethodError
        For what is no such number.

    Examples
    --------
    >>> gr.theory.printed.james_stein_weights(4)
    (0.375, 0.625)
    """
    n = int(checks.whole(2)(n, "n", MethodError))
    return (n - 1) / (2 * n), (n + 1) / (2 * n)
