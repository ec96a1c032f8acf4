"""Single passes over the edges and nodes of a form, in its own order: what a look at some flows takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..terms import Array, EdgeBlock
from .compiled import compiled, specialised, width_of
from .edges import BALL, SQUARE, kind_of
from .groups import numbered, spread_means, unite
from .looks import clipped_pull, minimised, norm_residuals, squares


@dataclass(frozen=True)
class EdgePasses:
    """A block of edges with a norm."""

    edge: EdgeBlock
    kind: int
    d: int

    @staticmethod
    def of(edge: EdgeBlock, d: int) -> EdgePasses | None:
        """None where its penalty has no kernel, or is no norm."""
        kind = kind_of(edge, d)
        return None if kind in (None, SQUARE) else EdgePasses(edge, kind, d)

    def pull(self, u: Array, g: Array) -> None:
        """K'u of the clipped flows is added to g (n, d)."""
        kernel = specialised(clipped_pull, width_of(self.d), self.kind, int(self.edge.ground))
        kernel(*self._edges, _flat(u), g.reshape(-1), self.d)

    def residual(self, w: Array, u: Array) -> tuple[float, float]:
        """sum c ||z||, and sum of c ||z|| - <u, z> of the clipped flows, z = Kw - center."""
        center = np.zeros(0) if self.edge.center is None else _flat(self.edge.center)
        kernel = specialised(
            norm_residuals, width_of(self.d), self.kind, int(self.edge.ground), int(self.edge.center is not None)
        )
        return kernel(*self._edges, center, _flat(u), _flat(w), self.d)

    def unite(self, share: float, u: Array, parent: Array, whole: bool) -> None:
        """Nodes, unless ``whole`` entries, that are tied by flows shorter than ``share`` c come into one group."""
        kernel = specialised(unite, int(self.kind == BALL), int(not whole))
        tail, head, base, strength = self._edges
        kernel(tail, head, base, strength, share, int(self.edge.ground), _flat(u), parent, self.d)

    @property
    def _edges(self) -> tuple[Array, Array, Array, float]:
        return self.edge.tail, self.edge.head, self.edge.base_weight, float(self.edge.strength)


def group_numbers(parent: Array) -> tuple[Array, int]:
    """The number of each entry's group, -1 with the ground, and how many there are; see `EdgePasses.unite`."""
    number = np.empty(len(parent) - 1, dtype=np.int32)
    return number, compiled(numbered)(parent, number)


def group_means(number: Array, count: int, values: Array) -> Array:
    """The rows of values (n, k), each the mean of its group; 0 at the ground."""
    k, out = values.shape[1], np.empty(values.shape)
    compiled(spread_means)(number, _flat(values), np.zeros(count), np.zeros(count * k), out.reshape(-1), k)
    return out


def quadratic_minimisers(inverse: Array, center: Array, g: Array) -> Array:
    """center - H^-1 g, (n, d), for inverses (n, d, d) or their diagonals (n, d)."""
    at, d = np.empty(g.shape), g.shape[1]
    kernel = specialised(minimised, width_of(d), int(inverse.ndim == 3))
    kernel(_flat(inverse), _flat(center), _flat(g), at.reshape(-1), d)
    return at


def quadratic_total(H: Array, a: Array, b: Array) -> float:
    """sum_i (a_i - b_i)'H_i (a_i - b_i), of matrices (n, d, d) or diagonals (n, d)."""
    d = a.shape[1]
    return specialised(squares, width_of(d), int(H.ndim == 3))(_flat(H), _flat(a), _flat(b), d)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=float).reshape(-1)
