"""Problems with known clusters, and both algorithms written out in plain numpy on (2.1), which has no latent nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from core_cases import view_of

import graphreg as gr
from graphreg.methods.known_clusters._clusters import Averages
from graphreg.network.streams import Streams

RIDGE = 0.1
SEED = 5


@dataclass(frozen=True)
class Case:
    """f_i = 1/2 ||X_i theta - y_i||^2 / m + RIDGE/2 ||theta||^2 with (2.1); clients cluster by cluster."""

    problem: gr.Problem
    X: np.ndarray  # (n, m, d)
    y: np.ndarray
    cluster: np.ndarray
    gamma: np.ndarray
    alpha: np.ndarray  # per cluster

    @property
    def n(self):
        return len(self.X)

    @property
    def nodes(self):
        """The number of each cluster's node in the whole graph."""
        return self.n + np.arange(len(self.alpha))

    def gradients(self, theta, rows=None):
        """grad f_i; of given samples (n, b)."""
        X, y = self.X, self.y
        if rows is not None:
            X, y = X[np.arange(self.n)[:, None], rows], y[np.arange(self.n)[:, None], rows]
        return np.einsum("imj,im->ij", X, np.einsum("imj,ij->im", X, theta) - y) / X.shape[1] + RIDGE * theta

    def averages(self, theta):
        """thetabar_j and thetabar at every client, by loops."""
        centers, top, total = [], np.zeros(theta.shape[1]), 0.0
        for j, alpha in enumerate(self.alpha):
            own = self.cluster == j
            centers.append((self.gamma[own, None] * theta[own]).sum(axis=0) / self.gamma[own].sum())
            top += alpha * (self.gamma[own, None] * theta[own]).sum(axis=0)
            total += alpha * self.gamma[own].sum()
        return np.array(centers)[self.cluster], np.broadcast_to(top / (total or 1.0), theta.shape)

    def pulls(self, theta):
        """The gradients of the two regularisers of (2.1) (Proposition 3.1): alpha gamma (theta - thetabar), and
        (1 - alpha) gamma (theta - thetabar_j)."""
        center, top = self.averages(theta)
        alpha = self.alpha[self.cluster][:, None]
        return alpha * self.gamma[:, None] * (theta - top), (1 - alpha) * self.gamma[:, None] * (theta - center)

    def gradient(self, theta):
        """grad F."""
        return self.gradients(theta) + sum(self.pulls(theta))

    def value(self, theta):
        r = np.einsum("imj,ij->im", self.X, theta) - self.y
        fit = (r**2).sum() / (2 * self.X.shape[1]) + RIDGE / 2 * (theta**2).sum()
        center, top = self.averages(theta)
        alpha = self.alpha[self.cluster]
        far = alpha * ((theta - top) ** 2).sum(axis=1) + (1 - alpha) * ((theta - center) ** 2).sum(axis=1)
        return fit + (self.gamma * far).sum() / 2

    def optimum(self):
        """argmin F, which is quadratic: one Newton step from zero, and two more against rounding."""
        size = self.n * self.X.shape[2]
        at_zero = self.gradient(np.zeros((self.n, self.X.shape[2]))).ravel()
        units = np.eye(size).reshape(size, self.n, -1)
        H = np.stack([self.gradient(e).ravel() - at_zero for e in units], axis=1)
        theta = np.zeros(size)
        for _ in range(3):
            theta = theta - np.linalg.solve(H, self.gradient(theta.reshape(self.n, -1)).ravel())
        return theta.reshape(self.n, -1)

    def constants(self):
        """L_i and Ltilde_i of every client, and C1, C2, mu."""
        H = np.einsum("imj,imk->ijk", self.X, self.X) / self.X.shape[1]
        values = np.linalg.eigvalsh(H)
        alpha = self.alpha[self.cluster]
        return {
            "L": values[:, -1] + RIDGE,
            "Ltilde": (self.X**2).sum(axis=2).max(axis=1) + RIDGE,
            "mu": values[:, 0].min() + RIDGE,
            "C1": (alpha * self.gamma).max(),
            "C2": ((1 - alpha) * self.gamma).max(),
        }


def case(  # noqa: PLR0917 - by name, but for the sizes
    sizes=(3, 4, 2), m=8, d=3, gamma=1.0, lam=1.0, alpha=None, seed=0, spread=None, size=1.0
):
    """gamma a number or one per client; lam one per cluster, or alpha; ``size`` scales the features,
    ``spread`` is about the condition number of a client's Gram matrix."""
    rng = np.random.default_rng(seed)
    n, cluster = sum(sizes), np.repeat(range(len(sizes)), sizes)
    X = rng.standard_normal((n, m, d)) * (np.ones(d) if spread is None else np.geomspace(spread**-0.5, 1.0, d)) * size
    y = rng.standard_normal((n, m)) + 2.0 * rng.standard_normal(len(sizes))[cluster, None]
    gamma = np.broadcast_to(np.asarray(gamma, dtype=float), (n,))
    total = np.bincount(cluster, gamma)
    lam = np.broadcast_to(np.asarray(lam, dtype=float), total.shape)
    names = [f"c{j}" for j in range(len(sizes))]
    clusters = {name: np.flatnonzero(cluster == j).tolist() for j, name in enumerate(names)}
    data = gr.NodeData.from_arrays(X.reshape(n * m, d), y.ravel(), np.repeat(range(n), m))
    per_client = dict(enumerate(gamma.tolist()))
    if alpha is None:
        tree = gr.Hierarchy(clusters, (per_client, dict(zip(names, lam.tolist(), strict=True))))
        alpha = lam / (lam + total)
    else:
        alpha = np.broadcast_to(np.asarray(alpha, dtype=float), total.shape)
        tree = gr.Hierarchy.from_alpha(clusters, alpha=dict(zip(names, alpha.tolist(), strict=True)), gamma=per_client)
    problem = gr.Problem(gr.SquaredLoss(data) + tree + RIDGE * gr.NodePenalty(gr.SquaredL2()))
    return Case(problem, X, y, cluster, gamma, alpha)


def uneven(n=9):
    return np.linspace(0.5, 3.0, n)


CASES = {
    "even": lambda: case((3, 3, 3)),  # gamma and alpha the same everywhere: nothing known is sent again
    "even within clusters": case,  # alpha_j differ
    "equal alpha, other gamma": lambda: case((3, 3, 3), gamma=[1.0] * 3 + [2.0] * 3 + [3.0] * 3, alpha=0.4),
    "uneven": lambda: case(gamma=uneven(), lam=[1.0, 5.0, 0.3]),
    "near the network": lambda: case(gamma=uneven(), lam=[60.0, 90.0, 200.0]),  # C1 > C2: p_j = 0
    "some apart, some tied": lambda: case(gamma=uneven(), alpha=[0.0, 1.0, 0.3]),
    "apart": lambda: case(gamma=uneven(), alpha=0.0),
    "one cluster": lambda: case(gamma=uneven(), alpha=1.0),
}


def coins(seed, p0, p, nodes, k, number=0):
    """xi_0 and the xi_j of round k."""
    network = Streams(seed, "network coin", [number]).uniform(k, 1)[0, 0] < p0
    return network, Streams(seed, "cluster coin", nodes).uniform(k, 1)[:, 0] < p


def by_hand_1(case, rounds, seed, eta, p0, p, tau, *, rows=None, network=None):
    """Algorithm 1 with p0 > 0, as printed; all averages computed anew in every round."""
    theta, out = np.zeros((case.n, case.X.shape[2])), []
    for k in range(rounds):
        xi, own = coins(seed, p0, p, case.nodes, k)
        xi = xi if network is None else network(k)
        top, center = case.pulls(theta)
        local = case.gradients(theta, None if rows is None else rows(k))
        G = np.zeros_like(theta)
        for i, j in enumerate(case.cluster):
            if xi:
                G[i] = (top[i] + tau[j] * center[i]) / p0
            elif own[j]:
                G[i] = (1 - tau[j]) * center[i] / ((1 - p0) * p[j])
            else:
                G[i] = local[i] / ((1 - p0) * (1 - p[j]))
        theta = theta - eta * G
        out.append(theta)
    return out


def by_hand_2(case, rounds, seed, p0, p, tau, m, *, rows=None, printed=False):
    """Algorithm 2, corrected; or with the estimator (4.1) as printed. ``m`` holds eta, a1, a2, b1, b2, rho."""
    eta, a1, a2, b1, b2 = (float(m[name]) for name in ("eta", "a1", "a2", "b1", "b2"))
    rho = float(m["rho"])
    x = y = z = np.zeros((case.n, case.X.shape[2]))
    out = []
    for k in range(rounds):
        theta = a1 * z + a2 * x + (1 - a1 - a2) * y
        xi, own = coins(seed, p0, p, case.nodes, k)
        (top, center), (top_x, center_x) = case.pulls(theta), case.pulls(x)
        at = None if rows is None else rows(k)
        change = case.gradients(theta, at) - case.gradients(x, at)
        g = case.gradients(x) + top_x + center_x
        for i, j in enumerate(case.cluster):
            if xi:
                g[i] += (top[i] - top_x[i]) / p0 + (0 if printed else tau[j] * (center[i] - center_x[i]) / p0)
            elif own[j]:
                g[i] += (1 - tau[j]) * (center[i] - center_x[i]) / ((1 - p0) * p[j])
            else:
                g[i] += change[i] / ((1 - p0) * (1 - p[j]))
        y = theta - eta * g
        z = b1 * z + (1 - b1) * theta + b2 / eta * (y - theta)
        if Streams(seed, "network coin", [1]).uniform(k, 1)[0, 0] < rho:
            x = y
        out.append(y)
        if not np.abs(y).max() < 1e100:
            break
    return out


# ---- runs, and what a state says of a case ---------------------------------------------------------------------------
def begin(method, c, seed=SEED):
    return method.init(replace(view_of(c.problem.form), seed=seed), None)


def run(method, c, rounds, seed=SEED):
    state, out = begin(method, c, seed), []
    for _ in range(rounds):
        state = method.step(state)
        out.append(state)
    return out


def settings(state):
    """p0, and p and tau per cluster."""
    j = state.view.tree.clusters
    return float(state.probabilities.p0[0]), state.probabilities.p[j], state.probabilities.tau[j]


def rows_of(c, seed, batch):
    samples = Streams(seed, "samples", range(c.n))
    return lambda k: (samples.uniform(k, batch) * c.X.shape[1]).astype(int)


def network(state, show):
    return np.full(state.view.form.n, bool(show))


def at_clusters(state, shows):
    """The coins of all clusters as a mask over nodes."""
    tree, out = state.view.tree, np.zeros(state.view.form.n, dtype=bool)
    out[tree.clusters] = shows
    return tree.from_cluster(out)


def exact_averages(c, state, theta):
    center, top = (np.zeros(state.view.form.shape) for _ in range(2))
    center[: c.n], top[: c.n] = c.averages(theta)
    return Averages(center, top)


def outcomes(c, p0, p):
    """Every outcome of all coins, with its probability."""
    for shows in product([False, True], repeat=len(c.alpha) + 1):
        chance = np.prod([q if show else 1 - q for q, show in zip([p0, *p], shows, strict=True)])
        yield shows[0], np.array(shows[1:]), chance


def random(c, seed):
    return np.random.default_rng(seed).standard_normal((c.n, c.X.shape[2]))


def padded(c, state, theta):
    out = np.zeros(state.view.form.shape)
    out[: c.n] = theta
    return out


def padded_start(c, theta):
    return np.concatenate([theta, np.zeros((len(c.problem.form.latent), theta.shape[1]))])
