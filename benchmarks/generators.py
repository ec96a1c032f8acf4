"""Workloads of any size: chains, trees, grids, geometric graphs, maps, random graphs; with means or samples."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from .objective import Array, Objective

LEVELS = 50  # pieces of a chain
GROUPS = 4  # of regressions


# ---- graphs ----------------------------------------------------------------------------------------------------------
def chain_edges(n: int) -> Array:
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def grid_edges(side: int) -> Array:
    number = np.arange(side * side).reshape(side, side)
    across = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    return np.concatenate([across, np.column_stack([number[:-1].ravel(), number[1:].ravel()])])


def random_edges(n: int, m: int, rng: np.random.Generator) -> Array:
    """About m different edges between nodes drawn at random."""
    ends = np.sort(rng.integers(0, n, (m, 2)), axis=1)
    return np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)


def grouped_edges(n: int, m: int, groups: int, rng: np.random.Generator) -> Array:
    """At most m different edges, nine of ten within groups of consecutive nodes."""
    size = n // groups
    tail = rng.integers(0, n, m + m // 12)
    inside = np.minimum(tail // size * size + rng.integers(0, size, tail.size), n - 1)
    head = np.where(rng.random(tail.size) < 0.9, inside, rng.integers(0, n, tail.size))
    ends = np.sort(np.column_stack([tail, head]), axis=1)
    found = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    return found[np.sort(rng.permutation(len(found))[:m])]


def nearest_edges(points: Array, k: int) -> Array:
    """Every point and its k nearest neighbours, as a map of counties has them: about six borders at k = 5."""
    near = KDTree(points).query(points, k + 1)[1]
    pairs = np.column_stack([np.repeat(np.arange(len(points)), k), near[:, 1:].ravel()])
    return np.unique(np.sort(pairs, axis=1), axis=0)


# ---- total variation of means, d = 1 ---------------------------------------------------------------------------------
def _field(points: Array, rng: np.random.Generator) -> Array:
    """A noisy piecewise constant field over the unit square."""
    y = np.zeros(len(points))
    for _ in range(12):
        middle, radius, level = rng.random(2), 0.05 + 0.25 * rng.random(), rng.standard_normal()
        y[((points - middle) ** 2).sum(axis=1) < radius**2] = level
    return (y + 0.5 * rng.standard_normal(y.size))[:, None]


def _means(name: str, edges: Array, strength: float, y: Array) -> Objective:
    return Objective(name, edges, np.ones(len(edges)), strength, "l1", "mean", None, y, 1.0)


def chain(name: str, n: int) -> Objective:
    """A noisy signal with 50 levels."""
    rng = np.random.default_rng(0)
    y = np.repeat(rng.standard_normal(LEVELS), n // LEVELS) + 0.5 * rng.standard_normal(n)
    return Objective(name, chain_edges(n), np.ones(n - 1), 5.0, "l1", "mean", None, y[:, None], 1.0, grid=(n,))


def tree(name: str, n: int) -> Objective:
    """Every node hangs from one drawn among those before it; levels change at few of the edges."""
    rng = np.random.default_rng(0)
    above = (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    jump = np.where(rng.random(n - 1) < LEVELS / n, rng.standard_normal(n - 1), 0.0)
    y = np.zeros(n)
    for i, j, step in zip(range(1, n), above.tolist(), jump.tolist(), strict=True):
        y[i] = y[j] + step
    return _means(name, np.column_stack([above, np.arange(1, n)]), 1.0, (y + 0.5 * rng.standard_normal(n))[:, None])


def geometric(name: str, n: int, strength: float) -> Objective:
    """A random geometric graph: points of the unit square, joined where they are near; eight neighbours on average."""
    rng = np.random.default_rng(0)
    points = rng.random((n, 2))
    edges = KDTree(points).query_pairs(np.sqrt(8.0 / (np.pi * n)), output_type="ndarray")
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return _means(name, edges[order].astype(np.int64), strength, _field(points, rng))


def counties(name: str, n: int, strength: float) -> Objective:
    """Points of the unit square and their five nearest neighbours, like the borders of a map's counties."""
    rng = np.random.default_rng(0)
    points = rng.random((n, 2))
    return _means(name, nearest_edges(points, 5), strength, _field(points, rng))


# ---- samples at the nodes --------------------------------------------------------------------------------------------
def _sampled(name: str, edges: Array, group: Array, strength: float, like: tuple[int, int, str]) -> Objective:
    """``like``: samples per node, d, and the loss. Coefficients are those of a node's group. Nobody writes to X and y,
    and they say so: whoever keeps them need not copy them."""
    samples, d, loss = like
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((int(group.max()) + 1, d))[group]
    X = rng.standard_normal((len(group), samples, d))
    y = np.einsum("nsd,nd->ns", X, truth) + 0.5 * rng.standard_normal((len(group), samples))
    if loss == "logistic":
        y = np.where(rng.random(y.shape) < 1.0 / (1.0 + np.exp(-y)), 1.0, -1.0)
    X.flags.writeable = y.flags.writeable = False
    return Objective(name, edges, np.ones(len(edges)), strength, "l2", loss, X, y, 1.0 / samples)


def big(name: str, n: int, m: int, d: int = 10) -> Objective:
    """Regressions in groups of 500 nodes, 20 samples per node."""
    groups = max(n // 500, 2)
    edges = grouped_edges(n, m, groups, np.random.default_rng(0))
    group = np.minimum(np.arange(n) // (n // groups), groups - 1)
    return _sampled(name, edges, group, 0.1, (20, d, "squared"))


def small_world(name: str, n: int, loss: str) -> Objective:
    """A ring with two neighbours on each side, a tenth of the edges moved at random; 20 samples per node, d = 5."""
    rng = np.random.default_rng(0)
    ring = np.concatenate([np.column_stack([np.arange(n), (np.arange(n) + step) % n]) for step in (1, 2)])
    moved = rng.random(len(ring)) < 0.1
    ring[moved, 1] = rng.integers(0, n, int(moved.sum()))
    edges = np.unique(np.sort(ring[ring[:, 0] != ring[:, 1]], axis=1), axis=0)
    return _sampled(name, edges, np.arange(n) * GROUPS // n, 0.05, (20, 5, loss))


def swept(name: str, family: str, d: int, components: float) -> Objective:
    """Of about as many edge components m d as asked: a grid ("deep": far from end to end) or a random graph of degree
    10 ("shallow"); means with l1 for d = 1, else regressions with d + 10 samples per node and l2."""
    rng = np.random.default_rng(0)
    if family == "deep":
        side = max(int(np.sqrt(components / (2 * d))), 3)
        n, edges = side * side, grid_edges(side)
    else:
        n = max(int(components / (5 * d)), 8)
        edges = random_edges(n, 5 * n, rng)
    group = np.arange(n) * GROUPS // n
    if d == 1:
        y = rng.standard_normal(GROUPS)[group] + 0.5 * rng.standard_normal(n)
        return _means(name, edges, 1.0, y[:, None])
    return _sampled(name, edges, group, 0.3, (d + 10, d, "squared"))
