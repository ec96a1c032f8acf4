"""The simulation of section 6.1: draws of it, and the four estimators that it compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import graphreg as gr

from ._instances import Array, Instance

CLUSTERS, CLIENTS, D = 20, 20, 20
GRID = np.linspace(0.01, 2.0, 20)  # of lambda^sc
ESTIMATORS = ("local", "single model", "single cluster", "hierarchical")


@dataclass(frozen=True)
class Draw:
    """Data of all clients, and their parameters."""

    of: Instance
    truth: Array

    @staticmethod
    def drawn(rng: np.random.Generator, m: int, clusters: int = CLUSTERS) -> Draw:
        """thetabar_j ~ N(0, I), theta_i ~ N(thetabar_j, I), X_i of N(0, 1), y_i ~ N(X_i theta_i, I); gamma_i = lambda_j
        = 1."""
        cluster = np.repeat(np.arange(clusters), CLIENTS)
        n = len(cluster)
        truth = rng.standard_normal((clusters, D))[cluster] + rng.standard_normal((n, D))
        X = rng.standard_normal((n, m, D))
        y = np.einsum("imj,ij->im", X, truth) + rng.standard_normal((n, m))
        return Draw(Instance(X, y, cluster, np.ones(n), np.ones(clusters)), truth)

    def estimates(self, rng: np.random.Generator) -> dict[str, Array]:
        """theta (n, d) by each of the four estimators."""
        (n, m, d), clusters = self.of.X.shape, {i: f"c{j}" for i, j in enumerate(self.of.cluster.tolist())}
        data = gr.NodeData.from_arrays(self.of.X.reshape(n * m, d), self.of.y.ravel(), np.repeat(np.arange(n), m))
        found = gr.inference.compare_estimators(data, clusters, (1.0, 1.0, 1.0)).coef
        coef = {name: found[name].loc[list(range(n))].to_numpy() for name in ESTIMATORS}
        coef["single cluster"] = self.single_cluster(self.validated(rng))
        return coef

    def single_cluster(self, lam: float) -> Array:
        """The closed form of section 6.1."""
        return _Gram.of(self.of.X, self.of.y).single_cluster(lam)

    def validated(self, rng: np.random.Generator) -> float:
        """lambda^sc by cross-validation."""
        return float(GRID[self.scores(rng).argmin()])

    def scores(self, rng: np.random.Generator, folds: int = 5) -> Array:
        """Squared errors of held-out samples at each lambda of the grid; every client's samples are dealt out to the
        folds."""
        n, m, _ = self.of.X.shape
        fold = (rng.permuted(np.tile(np.arange(m), (n, 1)), axis=1) + np.arange(n)[:, None]) % folds
        off = np.zeros(len(GRID))
        for k in range(folds):
            kept, out = fold != k, fold == k
            gram = _Gram.of(self.of.X * kept[:, :, None], self.of.y * kept)
            for place, lam in enumerate(GRID):
                predicted = np.einsum("imj,ij->im", self.of.X, gram.single_cluster(lam))
                off[place] += (((predicted - self.of.y) * out) ** 2).sum()
        return off


@dataclass(frozen=True)
class _Gram:
    """X_i'X_i by its eigenvalues (n, d) and eigenvectors (n, d, d), and X_i'y_i in their coordinates."""

    values: Array
    vectors: Array
    b: Array

    @staticmethod
    def of(X: Array, y: Array) -> _Gram:
        values, vectors = np.linalg.eigh(np.matmul(X.transpose(0, 2, 1), X))
        return _Gram(values, vectors, np.einsum("ijk,imj,im->ik", vectors, X, y, optimize=True))

    def single_cluster(self, lam: float) -> Array:
        """theta_i = (X_i'X_i + lam I)^-1 (X_i'y_i + lam thetabar), with thetabar = (I - lam/n sum_i (X_i'X_i + lam
        I)^-1)^-1 1/n sum_i (X_i'X_i + lam I)^-1 X_i'y_i."""
        inverse = 1.0 / (np.maximum(self.values, 0.0) + lam)
        own = np.einsum("ijk,ik->ij", self.vectors, inverse * self.b)
        shrink = lam * np.einsum("ijk,ik,ilk->ijl", self.vectors, inverse, self.vectors, optimize=True)
        top = np.linalg.solve(np.eye(own.shape[1]) - shrink.mean(axis=0), own.mean(axis=0))
        return own + shrink @ top


def distances(rng: np.random.Generator, *, m: int) -> dict[str, Any]:
    """Of one draw: mean, standard deviation and maximum over the clients of ||theta_hat_i - theta_i||, and the mean of
    its square, by estimator."""
    draw = Draw.drawn(rng, m)
    out: dict[str, Any] = {}
    for name, theta in draw.estimates(rng).items():
        far = np.linalg.norm(theta - draw.truth, axis=1)
        out |= {f"{name}: average": far.mean(), f"{name}: SD": far.std(ddof=1)}
        out |= {f"{name}: largest": far.max(), f"{name}: squares": (far**2).mean()}
    return out
