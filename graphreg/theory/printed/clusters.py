"""Personalised federated learning with known clusters as printed: (2.2), Proposition 3.2, and the weights of A.12."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import checks
from ...errors import MethodError
from ...network import arcs_of, tree_of, without_tree
from ...terms import Array
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
    form = form_of(problem, "(2.2)").frozen()
    if missing := without_tree(form):
        raise MethodError(f"(2.2) is of a Hierarchy of two levels: {'; '.join(missing)}", missing)
    shape = (form.space.n_observed, form.d)
    given = checks.numbers(theta, "theta", f"an array of the shape {shape}", MethodError)
    if given.shape != shape or not np.isfinite(given).all():
        raise MethodError(f"theta must be finite numbers of the shape {shape}, got {given.shape}")
    tree, values = tree_of(form, arcs_of(form)), np.zeros(form.shape)
    values[: len(given)] = given
    return tree.root_means(tree.cluster_means(values), tree.alpha)[tree.roots]


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
    """The weights of y_1 and of the mean of the other y_i in the best linear unbiased estimator of theta_1, as A.12 of
    Personalised FL with known clusters prints them: ((n - 1) / 2n, (n + 1) / 2n), for y_i ~ N(theta_i, I) and theta_i ~
    N(thetabar, I). They are the wrong way round: (n + 1) / 2n is the weight of y_1
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
