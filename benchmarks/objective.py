"""The objective in plain arrays: the one measure by which every solver is judged.

    minimise over w in R^(n x d):   sum_i f_i(w_i) + strength sum_e weight_e phi(w_tail - w_head)

with squared losses ``scale/2 sum_r (x_r'w_i - y_r)^2``, logistic losses ``scale sum_r log(1 + exp(-y_r x_r'w_i))`` or
means ``scale/2 ||w_i - y_i||^2`` (X is None).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Objective:
    """One problem. ``edges`` (m, 2) has the tail before the head; X (n, s, d) or None, y (n, s) or (n, d).

    ``grid`` is the shape of the grid whose neighbours the edges join, all with weight 1, in C order; None elsewhere.
    """

    name: str
    edges: Array
    weight: Array
    strength: float
    penalty: str  # "l1" or "l2"
    loss: str  # "squared", "logistic" or "mean"
    X: Array | None
    y: Array
    scale: float
    grid: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """n, d."""
        return (self.y.shape[0], self.y.shape[1]) if self.X is None else (self.X.shape[0], self.X.shape[2])

    @property
    def components(self) -> int:
        """m d, the numbers in all differences."""
        return len(self.edges) * self.shape[1]

    def describe(self) -> str:
        (n, d), m = self.shape, len(self.edges)
        samples = "" if self.X is None else f", {self.X.shape[1]} samples per node"
        return f"{n:,} nodes, {m:,} edges, d = {d}{samples}, {self.loss} + {self.penalty}"

    def difference(self) -> sp.csr_array:
        """K, (m, n), sparse."""
        m, n = len(self.edges), self.shape[0]
        signs = np.tile([1.0, -1.0], m)
        return sp.csr_array((signs, self.edges.ravel(), np.arange(0, 2 * m + 1, 2)), shape=(m, n))

    def value(self, w: Array) -> float:
        """P(w), written out independently of graphreg and of every rival."""
        z = w[self.edges[:, 0]] - w[self.edges[:, 1]]
        size = np.abs(z).sum(axis=1) if self.penalty == "l1" else np.sqrt((z * z).sum(axis=1))
        return self._losses(w) + float(self.strength * (self.weight @ size))

    def _losses(self, w: Array) -> float:
        if self.X is None:
            return float(self.scale / 2 * ((w - self.y) ** 2).sum())
        x = np.einsum("nsd,nd->ns", self.X, w)
        if self.loss == "logistic":
            return float(self.scale * np.logaddexp(0.0, -self.y * x).sum())
        return float(self.scale / 2 * ((x - self.y) ** 2).sum())
