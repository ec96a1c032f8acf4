"""Instances of the model with known clusters, and (2.1), (2.3) and the oracles (3.2) and (4.1) to the letter."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import graphreg as gr

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Instance:
    """f_i = 1/2 ||X_i theta - y_i||^2, clients in clusters, gamma_i and lambda_j.

    Attributes
    ----------
    X : (n, m, d)
    y : (n, m)
    cluster : (n,)
        The number of each client's cluster.
    gamma : (n,)
    lam : (k,)
    """

    X: Array
    y: Array
    cluster: Array
    gamma: Array
    lam: Array

    @staticmethod
    def drawn(rng: np.random.Generator, sizes: tuple[int, ...] = (3, 4, 2), m: int = 6, d: int = 3) -> Instance:
        """Random data, gamma_i in [0.5, 2] and lambda_j in [0.5, 4]: no two of them equal."""
        n = sum(sizes)
        X, y = rng.standard_normal((n, m, d)), rng.standard_normal((n, m))
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        centre = 2.0 * rng.standard_normal(len(sizes))[cluster, None]
        return Instance(X, y + centre, cluster, rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 4.0, len(sizes)))

    @property
    def total(self) -> Array:
        """Gamma_j = sum of the gamma_i of the cluster, (k,)."""
        return np.bincount(self.cluster, self.gamma)

    @property
    def alpha(self) -> Array:
        """alpha_j = lambda_j / (lambda_j + Gamma_j), (k,)."""
        return self.lam / (self.lam + self.total)

    # ---- in the library ----------------------------------------------------------------------------------------------
    def problem(self, alpha: Array | None = None) -> gr.Problem:
        """(2.3); with ``alpha`` (2.1)."""
        n, m, d = self.X.shape
        data = gr.NodeData.from_arrays(self.X.reshape(n * m, d), self.y.ravel(), np.repeat(np.arange(n), m))
        clusters: dict[Any, str] = {i: f"c{j}" for i, j in enumerate(self.cluster.tolist())}
        gamma = dict(enumerate(self.gamma.tolist()))
        if alpha is None:
            tree: Any = gr.Hierarchy(clusters, (gamma, by_cluster(self.lam)))
        else:
            tree = gr.Hierarchy.from_alpha(clusters, alpha=by_cluster(alpha), gamma=gamma)
        return gr.Problem(gr.SquaredLoss(data, scale="sum") + tree)

    # ---- (2.1) to the letter -----------------------------------------------------------------------------------------
    def cluster_mean(self) -> Array:
        """The (n, n) matrix of theta -> thetabar_j at every client, (2.2)."""
        same = self.cluster[:, None] == self.cluster
        return same * self.gamma / self.total[self.cluster][:, None]

    def network_mean(self, alpha: Array) -> Array:
        """The (n, n) matrix of theta -> thetabar at every client: the second expression in (2.2)."""
        weights = alpha[self.cluster] * self.gamma
        return np.tile(weights / weights.sum(), (len(weights), 1))

    def psi(self) -> Array:
        """The Hessian (n, n) of sum_j psi_j, for each coordinate: psi_j is quadratic in theta."""
        off = np.eye(len(self.gamma)) - self.cluster_mean()
        return off.T @ (self.gamma[:, None] * off)

    def phi(self, alpha: Array, mean: Array | None = None) -> Array:
        """The Hessian (n, n) of phi, for each coordinate; ``mean``: another one than `network_mean`."""
        off = np.eye(len(self.gamma)) - (self.network_mean(alpha) if mean is None else mean)
        return off.T @ ((alpha[self.cluster] * self.gamma)[:, None] * off)

    def penalty(self, alpha: Array, mean: Array | None = None) -> Array:
        """The Hessian (n, n) of both regularisers of (2.1), for each coordinate."""
        off = np.eye(len(self.gamma)) - self.cluster_mean()
        weights = (1.0 - alpha[self.cluster]) * self.gamma
        return off.T @ (weights[:, None] * off) + self.phi(alpha, mean)

    def minimiser(self, penalty: Array) -> Array:
        """argmin of sum_i f_i(theta_i) + 1/2 tr(theta' P theta), (n, d): one linear system."""
        n, _, d = self.X.shape
        H = np.kron(penalty, np.eye(d)).reshape(n, d, n, d)
        H[np.arange(n), :, np.arange(n)] += np.einsum("imj,imk->ijk", self.X, self.X)
        right = np.einsum("imj,im->ij", self.X, self.y)
        return np.linalg.solve(H.reshape(n * d, n * d), right.ravel()).reshape(n, d)

    def gradients(self, theta: Array) -> Array:
        """grad f_i(theta_i), (n, d)."""
        return np.einsum("imj,im->ij", self.X, np.einsum("imj,ij->im", self.X, theta) - self.y)

    def of_sample(self, k: int) -> Instance:
        """f_i replaced by its part of sample k, with m times its weight: the f_{i,l} of Assumption 4.1."""
        root = np.sqrt(self.X.shape[1])
        return replace(self, X=root * self.X[:, [k]], y=root * self.y[:, [k]])


def by_cluster(values: Array) -> dict[Hashable, float]:
    """Values of the clusters by their labels."""
    return {f"c{j}": float(value) for j, value in enumerate(values)}


@dataclass(frozen=True)
class Coins:
    """The probabilities of Algorithms 1 and 2, and tau_j."""

    p0: float
    p: Array
    tau: Array

    @staticmethod
    def balanced(p0: float, p: Array) -> Coins:
        """With the tau_j of Proposition 3.3."""
        return Coins(p0, p, p0 / (p0 + 2.0 * (1.0 - p0) * p))

    @staticmethod
    def best(C1: float, C2: float, L: float) -> tuple[float, float]:
        """p_0 and p_j of Corollary 3.6."""
        if C2 <= C1:
            return 2.0 * C1 / (2.0 * C1 + L), 0.0
        return 2.0 * C1 / (C1 + C2 + L), (C2 - C1) / (C2 - C1 + L)

    def smoothness(self, of: Instance, steepest: float) -> float:
        """The L of (3.3) and of Lemma 4.2, ``steepest`` the smoothness of the f_i or of their parts."""
        j, alpha, p0, p = of.cluster, of.alpha, self.p0, self.p
        between = 2.0 / p0 * (alpha[j] * of.gamma).max()
        within = (2.0 * (1.0 - alpha[j]) * of.gamma / (p0 + 2.0 * (1.0 - p0) * p)[j]).max()
        return float(max(between, within, steepest / (1.0 - p0) * (1.0 / (1.0 - p)).max()))

    def weighed(self, of: Instance, z: Array, local: Array) -> float:
        """2/p_0 ||grad phi||^2 + sum_j 2 (1 - alpha_j)^2 / (p_0 + 2 (1 - p_0) p_j) ||grad psi_j||^2 + 1/(1 - p_0) sum_j
        1/(1 - p_j) ||grad F_j||^2, those of the regularisers at z, and ``local`` in the place of the grad f_i: the
        bound of Proposition 3.3, and sigma^2 of (3.4)."""
        p0, alpha = self.p0, of.alpha
        to_centre, down = (np.bincount(of.cluster, (each**2).sum(axis=1)) for each in (of.psi() @ z, local))
        weights = 2.0 * (1.0 - alpha) ** 2 / (p0 + 2.0 * (1.0 - p0) * self.p)
        to_top = 2.0 / p0 * ((of.phi(alpha) @ z) ** 2).sum()
        return float(to_top + weights @ to_centre + (down / (1.0 - self.p)).sum() / (1.0 - p0))

    def outcomes(self) -> Iterator[tuple[float, bool, Array]]:
        """All outcomes of the coins, (probability, xi_0, xi_j): where xi_0 = 1 no other coin is flipped."""
        yield self.p0, True, np.zeros(len(self.p), dtype=bool)
        for shows in product([False, True], repeat=len(self.p)):
            xi = np.array(shows)
            yield (1.0 - self.p0) * float(np.where(xi, self.p, 1.0 - self.p).prod()), False, xi


def oracle(at: Instance, coins: Coins, alpha: Array, theta: Array, local: Array, xi_0: bool, xi: Array) -> Array:
    """G (n, d) of (3.2) at theta, ``local`` in the place of the grad f_i(theta_i)."""
    j, p, tau = at.cluster, coins.p, coins.tau
    to_top = theta - at.network_mean(alpha) @ theta
    to_centre = theta - at.cluster_mean() @ theta
    if xi_0:
        within = at.gamma * (tau * (1.0 - alpha))[j] / coins.p0
        return (at.gamma * alpha[j] / coins.p0)[:, None] * to_top + within[:, None] * to_centre
    pull = at.gamma * ((1.0 - tau) * (1.0 - alpha))[j] / ((1.0 - coins.p0) * np.where(p > 0.0, p, 1.0)[j])
    down = 1.0 / ((1.0 - coins.p0) * (1.0 - p))[j]
    return np.where(xi[j, None], pull[:, None] * to_centre, down[:, None] * local)


def estimate(
    at: Instance,
    coins: Coins,
    theta: Array,
    x: Array,
    change: Array,
    xi_0: bool,
    xi: Array,
    *,
    as_printed: bool = False,
) -> Array:
    """g (n, d): (4.1) with the part within clusters where xi_0 = 1, or as printed; ``change`` in the place of the
    grad f_i(theta_i) - grad f_i(x_i)."""
    alpha = at.alpha
    g = at.gradients(x) + at.penalty(alpha) @ x + oracle(at, coins, alpha, theta - x, change, xi_0, xi)
    if not (xi_0 and as_printed):
        return g
    within = at.gamma * (coins.tau * (1.0 - alpha))[at.cluster] / coins.p0
    return g - within[:, None] * (theta - x - at.cluster_mean() @ (theta - x))
