"""The shared parts of the tests of hierarchical terms and mixed models."""

from __future__ import annotations

import numpy as np
import pandas as pd

import graphreg as gr

NAMES = ("intercept", "x", "z")


def drawn(counts, parents, variances, seed=0, random=(0, 1, 2)):
    """Samples in a tree: ``counts`` per node, ``parents`` per level the parents' numbers; with weights."""
    rng, R = np.random.default_rng(seed), list(random)
    w = [np.array([[1.0, -2.0, 0.5]])]
    for parent, variance in zip([*parents[::-1]], variances[:0:-1], strict=True):
        below = w[0][parent].copy()
        below[:, R] += np.sqrt(variance) * rng.normal(size=(len(parent), len(R)))
        w.insert(0, below)
    node = np.repeat(np.arange(len(counts)), counts)
    X = np.column_stack([np.ones(len(node)), rng.normal(size=(len(node), 2))])
    p = rng.uniform(0.5, 2.0, len(node))
    y = np.einsum("rj,rj->r", X, w[0][node]) + np.sqrt(variances[0] / p) * rng.normal(size=len(node))
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, p=p, node=[f"n{i}" for i in node])
    return frame, node, X, y, p, w[0]


def nested(parents, counts):
    """The clusters as `hierarchical` takes them."""
    tree = {f"n{i}": None for i in range(len(counts))}
    if len(parents) == 1:
        return None
    groups = [list(tree)]
    for parent in parents[:-1]:
        level = [[] for _ in range(parent.max() + 1)]
        for child, j in zip(groups[-1], parent, strict=True):
            level[j].append(child)
        groups.append([{f"c{len(groups)}_{j}": members} for j, members in enumerate(level)])

    def merged(item):
        if isinstance(item, str):
            return item
        ((label, members),) = item.items()
        return {label: members if isinstance(members[0], str) else joined(members)}

    def joined(items):
        return {k: v for item in items for k, v in merged(item).items()}

    return joined(groups[-1])


class Dense:
    """The mixed model with all its matrices written out."""

    def __init__(self, node, X, y, p, parents, random=(0, 1, 2)):
        self.X, self.y, self.p, self.R = X, y, p, list(random)
        self.paths = [node]
        for parent in parents[:-1]:
            self.paths.append(parent[self.paths[-1]])
        self.sizes = [len(parent) for parent in parents]
        self.Z = []
        for place, size in zip(self.paths, self.sizes, strict=True):
            Z = np.zeros((len(y), size, len(self.R)))
            Z[np.arange(len(y)), place] = X[:, self.R]
            self.Z.append(Z.reshape(len(y), -1))

    def V(self, values):
        return values[0] * np.diag(1 / self.p) + sum(t * Z @ Z.T for t, Z in zip(values[1:], self.Z, strict=True))

    def minus_twice_log_likelihood(self, values, restricted=True):
        V, X = self.V(values), self.X
        W = np.linalg.inv(V)
        r = self.y - X @ self.gls(values)
        out = np.linalg.slogdet(V)[1] + r @ W @ r + len(r) * np.log(2 * np.pi)
        return out + (np.linalg.slogdet(X.T @ W @ X)[1] - X.shape[1] * np.log(2 * np.pi) if restricted else 0.0)

    def gls(self, values):
        W = np.linalg.inv(self.V(values))
        return np.linalg.solve(self.X.T @ W @ self.X, self.X.T @ W @ self.y)

    def henderson(self, values):
        """Fixed and random effects with the covariance of their errors, from the mixed model equations."""
        U = np.hstack([self.X, *self.Z])
        prior = [np.full(Z.shape[1], 1 / t) for Z, t in zip(self.Z, values[1:], strict=True)]
        H = U.T @ (self.p[:, None] * U) / values[0] + np.diag(np.concatenate([np.zeros(3), *prior]))
        C = np.linalg.inv(H)
        return C @ (U.T @ (self.p * self.y)) / values[0], C

    def vertex(self, level, i, parents):
        """The row matrix that picks the coefficients of vertex i of a level (the top is the root) from the effects."""
        L = np.zeros((3, 3 + sum(Z.shape[1] for Z in self.Z)))
        L[:, :3] = np.eye(3)
        starts = 3 + np.cumsum([0, *(Z.shape[1] for Z in self.Z)])
        for k in range(level, len(self.sizes)):
            L[self.R, starts[k] + len(self.R) * i + np.arange(len(self.R))] = 1.0
            i = parents[k][i]
        return L


TREES = {
    "nodes under a root": ((4, 9, 2, 1, 6), (np.zeros(5, int),), (0.7, 1.3)),
    "clusters": ((3, 5, 1, 2, 8, 4), (np.array([0, 0, 1, 1, 2, 2]), np.zeros(3, int)), (1.5, 0.4, 2.0)),
    "three levels": (
        (3, 2, 4, 5, 1, 6),
        (np.array([0, 0, 1, 2, 3, 3]), np.array([0, 0, 1, 1]), np.zeros(2, int)),
        (0.5, 1.0, 0.6, 0.3),
    ),
    "all random coefficients of more nodes than samples": ((2, 1, 2, 2, 1), (np.zeros(5, int),), (0.4, 2.0)),
}


def simulated(seed=0):
    """Six clusters of five nodes, as a frame with the columns node, cluster, x, y."""
    parents = (np.repeat(np.arange(6), 5), np.zeros(6, int))
    frame, node, *_ = drawn((8,) * 30, parents, (1.0, 0.5, 1.5), seed=seed)
    return frame.assign(cluster=[f"c{k}" for k in parents[0][node]])


def means(n=6, d=5, seed=0, centre=0.0):
    rng = np.random.default_rng(seed)
    truth = centre + rng.normal(size=(n, d))
    y = truth + rng.normal(size=(n, d))
    return y, truth, gr.NodeData.from_arrays(None, y, list(range(n)))
