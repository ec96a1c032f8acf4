"""The workloads: seeded problems that graphreg and its rivals are given in the same arrays.

Each is a function of its sizes, so that there is a `tiny` one of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.spatial import KDTree

from .generators import big, chain, counties, geometric, grid_edges, small_world, swept, tree
from .objective import Array, Objective


# ---- graphs ----------------------------------------------------------------------------------------------------------
def _blocks(sizes: list[int], p_in: float, p_out: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """A stochastic block model: its edges and the block of each node."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    if label.size <= 3000:
        i, j = np.triu_indices(label.size, 1)
        chosen = rng.random(i.size) < np.where(label[i] == label[j], p_in, p_out)
        return np.column_stack([i[chosen], j[chosen]]), label
    inner: list[Array] = []
    start = 0
    for size in sizes:
        i, j = np.triu_indices(size, 1)
        chosen = rng.random(i.size) < p_in
        inner.append(np.column_stack([i[chosen], j[chosen]]) + start)
        start += size
    pairs = (label.size * (label.size - 1) - sum(size * (size - 1) for size in sizes)) // 2
    outer = _cross_edges(label, int(rng.binomial(pairs, p_out)), rng)
    return np.concatenate([*inner, outer]), label


def _cross_edges(label: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` distinct edges between blocks, by rejection."""
    n, found = label.size, set[tuple[int, int]]()
    while len(found) < count:
        ends = rng.integers(0, n, 2 * count), rng.integers(0, n, 2 * count)
        for a, b in zip(*(e.tolist() for e in ends), strict=True):
            if label[a] != label[b]:
                found.add((min(a, b), max(a, b)))
                if len(found) >= count:
                    break
    return np.array(sorted(found)).reshape(-1, 2)


def _neighbours(points: Array, k: int) -> tuple[Array, Array]:
    """k nearest neighbours with Gaussian weights."""
    distance, near = KDTree(points).query(points, k + 1)
    pairs = np.column_stack([np.repeat(np.arange(len(points)), k), near[:, 1:].ravel()])
    edges, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    square = distance[:, 1:].ravel()[first] ** 2
    return edges, np.exp(-square / np.median(square))


# ---- the workloads ---------------------------------------------------------------------------------------------------
def w1(penalty: str, size: int = 100, d: int = 100) -> Objective:
    """Two clusters of 100 nodes, d = 100 with 10 samples per node (rank-deficient)."""
    rng = np.random.default_rng(0)
    edges, label = _blocks([size, size], 0.5, 0.01, rng)
    truth = (0.5 * rng.integers(0, 2, (2, d)))[label]
    X = rng.standard_normal((2 * size, 10, d))
    y = np.einsum("nsd,nd->ns", X, truth) + 1e-3 * rng.standard_normal((2 * size, 10))
    return Objective(f"W1-{penalty}", edges, np.ones(len(edges)), 1e-2, penalty, "squared", X, y, 2.0 / 10)


def w2(size: int = 12) -> Objective:
    """60 nodes in 5 complete clusters, a tenth of all pairs flipped; averaged losses."""
    rng = np.random.default_rng(0)
    n = 5 * size
    label = np.repeat(np.arange(5), size)
    i, j = np.triu_indices(n, 1)
    on = (label[i] == label[j]) ^ (rng.random(i.size) < 0.1)
    edges = np.column_stack([i[on], j[on]])
    centers = rng.standard_normal((5, 20))
    X = rng.standard_normal((n, 100, 20))
    y = np.einsum("nsd,nd->ns", X, centers[label]) + 0.5 * rng.standard_normal((n, 100))
    return Objective("W2", edges, np.full(len(edges), 1.0 / len(edges)), 0.03, "l1", "squared", X, y, 1.0 / 100 / n)


def w3(side: int = 300) -> Objective:
    """A noisy piecewise constant image, its total variation along the four-neighbour grid."""
    rng = np.random.default_rng(0)
    image = np.zeros((side, side))
    v, h = np.mgrid[:side, :side] / side
    for _ in range(12):
        x, y, r, level = rng.random(), rng.random(), 0.05 + 0.25 * rng.random(), rng.random()
        if rng.random() < 0.5:
            image[(h - x) ** 2 + (v - y) ** 2 < r * r] = level
        else:
            image[(abs(h - x) < r) & (abs(v - y) < r)] = level
    noisy = image + 0.3 * rng.standard_normal(image.shape)
    edges = grid_edges(side)
    y = noisy.reshape(-1, 1)
    return Objective(f"W3-{side}", edges, np.ones(len(edges)), 0.3, "l1", "mean", None, y, 1.0, grid=(side, side))


def w4(n: int = 1000) -> Objective:
    """Convex clustering of 1000 points (three arcs in 10 dimensions) on a nearest-neighbour graph."""
    rng = np.random.default_rng(0)
    angle = rng.random(n) * np.pi
    arc = np.arange(n) % 3
    points = np.zeros((n, 10))
    points[:, 0] = np.cos(angle) * np.where(arc == 1, -1, 1) + arc
    points[:, 1] = np.sin(angle) * np.where(arc == 1, -1, 1) + 0.4 * (arc == 1)
    points += 0.1 * rng.standard_normal((n, 10))
    edges, weight = _neighbours(points, 10)
    return Objective("W4", edges, weight, 0.3, "l2", "mean", None, points, 1.0)


def w5(size: int = 500) -> Objective:
    """10,000 nodes in 20 clusters, about 100,000 edges, linear regression."""
    rng = np.random.default_rng(0)
    n = 20 * size
    edges, label = _blocks([size] * 20, min(18.0 / (size - 1), 1.0), 2.0 / (n - size), rng)
    centers = rng.standard_normal((20, 10))
    X = rng.standard_normal((n, 20, 10))
    y = np.einsum("nsd,nd->ns", X, centers[label]) + 0.5 * rng.standard_normal((n, 20))
    return Objective("W5", edges, np.ones(len(edges)), 0.1, "l2", "squared", X, y, 2.0 / 20)


def w6(n: int = 200) -> Objective:
    """Logistic regression at 200 nodes of a ring (three neighbours on each side), four clusters."""
    rng = np.random.default_rng(0)
    ring = np.array([(i, (i + step) % n) for i in range(n) for step in (1, 2, 3)])
    edges = np.unique(np.sort(ring, axis=1), axis=0)
    centers = rng.standard_normal((4, 10))
    X = rng.standard_normal((n, 50, 10))
    p = 1.0 / (1.0 + np.exp(-np.einsum("nsd,nd->ns", X, centers[np.arange(n) * 4 // n])))
    y = np.where(rng.random((n, 50)) < p, 1.0, -1.0)
    return Objective("W6", edges, np.ones(len(edges)), 2e-2, "l2", "logistic", X, y, 1.0 / 50)


def w7(n: int = 10_000) -> Objective:
    """A chain: a noisy signal with 50 levels, its total variation along the line (the one-dimensional fused lasso)."""
    rng = np.random.default_rng(0)
    y = np.repeat(rng.standard_normal(50), n // 50) + 0.5 * rng.standard_normal(n)
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return Objective("W7", edges, np.ones(n - 1), 5.0, "l1", "mean", None, y[:, None], 1.0, grid=(n,))


STRENGTHS = (0.03, 0.3, 3.0)  # over two decades
WORKLOADS: dict[str, Callable[[], Objective]] = {
    "W1-l2": lambda: w1("l2"),
    "W1-l1": lambda: w1("l1"),
    "W2": w2,
    "W3-300": w3,
    "W4": w4,
    "W5": w5,
    "W6": w6,
    "W7": w7,
    "W3-1000": lambda: w3(1000),
    "chain-1e3": partial(chain, "chain-1e3", 1_000),
    "chain-1e5": partial(chain, "chain-1e5", 100_000),
    "chain-1e6": partial(chain, "chain-1e6", 1_000_000),
    "tree-1e6": partial(tree, "tree-1e6", 1_000_000),
    **{f"geometric-{s:g}": partial(geometric, f"geometric-{s:g}", 100_000, s) for s in STRENGTHS},
    **{f"counties-{s:g}": partial(counties, f"counties-{s:g}", 100_000, s) for s in STRENGTHS},
    "big-4e5": partial(big, "big-4e5", 400_000, 2_000_000),
    "big-1e6": partial(big, "big-1e6", 1_000_000, 5_000_000),
    "squared-1000": partial(small_world, "squared-1000", 1000, "squared"),
    "logistic-1000": partial(small_world, "logistic-1000", 1000, "logistic"),
}
STANDARD = tuple(WORKLOADS)[
    :8
]  # what `make bench` measures; the others are larger, or told apart by the table of goals
TITLES = {
    "W1-l2": "regression, d = 100, l2",
    "W1-l1": "regression, d = 100, l1",
    "W2": "regression, d = 20, l1",
    "W3-300": "image, 300 x 300, l1",
    "W4": "convex clustering, d = 10, l2",
    "W5": "regression, 10,000 nodes, l2",
    "W6": "logistic regression, l2",
    "W7": "chain of 10,000, l1",
    "W3-1000": "image, 1000 x 1000, l1",
    "chain-1e3": "chain of 1,000, l1",
    "chain-1e5": "chain of 100,000, l1",
    "chain-1e6": "chain of 1,000,000, l1",
    "tree-1e6": "tree of 1,000,000, l1",
    **{f"geometric-{s:g}": "points in the plane, l1" for s in STRENGTHS},
    **{f"counties-{s:g}": "map, l1" for s in STRENGTHS},
    "big-4e5": "regression, 400,000 nodes, l2",
    "big-1e6": "regression, 1,000,000 nodes, l2",
    "squared-1000": "regression, small world, l2",
    "logistic-1000": "two classes, small world, l2",
}
# of the same kinds: what tests run, and what a solver runs once before it is timed
_TINY: dict[str, Callable[[], Objective]] = {
    "W1-l2": lambda: w1("l2", 8, 12),
    "W1-l1": lambda: w1("l1", 8, 12),
    "W2": lambda: w2(3),
    "W3-300": lambda: w3(8),
    "W4": lambda: w4(60),
    "W5": lambda: w5(4),
    "W6": lambda: w6(12),
    "W7": lambda: w7(100),
    "W3-1000": lambda: w3(8),
    "chain-1e3": partial(chain, "", 100),
    "chain-1e5": partial(chain, "", 100),
    "chain-1e6": partial(chain, "", 100),
    "tree-1e6": partial(tree, "", 100),
    **{f"geometric-{s:g}": partial(geometric, "", 100, s) for s in STRENGTHS},
    **{f"counties-{s:g}": partial(counties, "", 100, s) for s in STRENGTHS},
    "big-4e5": partial(big, "", 40, 120, 3),
    "big-1e6": partial(big, "", 40, 120, 3),
    "squared-1000": partial(small_world, "", 40, "squared"),
    "logistic-1000": partial(small_world, "", 40, "logistic"),
}


def find(name: str) -> Objective:
    """The workload of a name; ``deep-10-1e5`` is one of a sweep, with d = 10 and 10^5 edge components."""
    if name in WORKLOADS:
        return WORKLOADS[name]()
    family, d, components = name.split("-")
    return swept(name, family, int(d), float(components))


def tiny(name: str) -> Objective:
    """A tiny workload of the same kind, under the same name."""
    if name in _TINY:
        return replace(_TINY[name](), name=name)
    family, d, _ = name.split("-")
    return swept(name, family, int(d), 60.0 * int(d))
