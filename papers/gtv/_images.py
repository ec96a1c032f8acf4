"""Section VI-C: local datasets of images of digits, and the graph of their similarities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.spatial import KDTree

Array = np.ndarray[Any, np.dtype[Any]]
NEIGHBOURS = 4


@dataclass(frozen=True)
class Images:
    """Training and validation sets: node i is of the cluster i // nodes, which has the digits 2 c and 2 c + 1.

    Attributes
    ----------
    X, label : (n, m, pixels), (n, m)
    X_val, label_val : (n, m_val, pixels), (n, m_val)
    """

    X: Array
    label: Array
    X_val: Array
    label_val: Array

    @property
    def classes(self) -> int:
        """The number of digits in all clusters."""
        return int(self.label.max()) + 1

    @staticmethod
    def drawn(rng: np.random.Generator, file: Path | None, clusters: int, nodes: int, m: int, m_val: int) -> Images:
        """From MNIST, or from the digits of scikit-learn where ``file`` is None; no image twice at a node."""
        pixels, most, digit = _read(file)
        parts = list[tuple[Array, Array]]()
        for c in range(clusters):
            own = np.flatnonzero(digit // 2 == c)
            for _ in range(nodes):
                some = rng.choice(own, m + m_val, replace=False)
                parts.append((pixels[some] / most, digit[some]))
        X, label = np.stack([x for x, _ in parts]), np.stack([each for _, each in parts])
        return Images(X[:, :m], label[:, :m], X[:, m:], label[:, m:])


def _read(file: Path | None) -> tuple[Array, float, Array]:
    """Grey levels, the highest there may be, and digits."""
    if file is None:
        from sklearn.datasets import load_digits

        digits: Any = load_digits()
        return digits.data, 16.0, digits.target
    with np.load(file) as found:
        images, digit = (found[name] for name in found)
    return images.reshape(len(images), -1), 255.0, digit.astype(int)


def similar(images: Images, seed: int, each: int) -> nx.Graph:
    """The graph: t-SNE of ``each`` training images of every node to the plane, a Kullback-Leibler distance of any two
    nodes, edges to the four nearest nodes, of weight A = exp(-distance)."""
    from sklearn.manifold import TSNE

    n, pixels = len(images.X), images.X.shape[2]
    flat = images.X[:, :each].reshape(-1, pixels)
    z = TSNE(random_state=seed, init="pca").fit_transform(flat).reshape(n, each, 2)
    trees = [KDTree(points) for points in z]
    divergence = np.array([[_divergence(z[i], trees[i], trees[j]) for j in range(n)] for i in range(n)])
    distance = np.maximum(0.5 * (divergence + divergence.T), 0.0)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1)[:, :NEIGHBOURS]
    pairs = sorted({(min(i, j), max(i, j)) for i, row in enumerate(nearest.tolist()) for j in row})
    graph = nx.empty_graph(n)
    graph.add_weighted_edges_from((i, j, float(np.exp(-distance[i, j]))) for i, j in pairs)
    return graph


def _divergence(points: Array, own: KDTree, other: KDTree) -> float:
    """The estimate of D(p || q) from nearest neighbours (Perez-Cruz 2008): d times the mean of log(s/r), s and r the
    distances to the nearest point of q and to the nearest other one of p, plus log(m_q / (m_p - 1))."""
    r, s = own.query(points, k=2)[0][:, 1], other.query(points)[0]
    r, s = (np.maximum(x, 1e-12) for x in (r, s))  # an image may be at both nodes
    return float(points.shape[1] * np.log(s / r).mean() + np.log(len(points) / (len(points) - 1.0)))
