"""Single passes over the edges and nodes of a form, in its own order: what a look at some flows takes.

In kernels all arrays are flat: coordinate k of row i stands at i d + k. A flow outside of its capacity
c = strength base counts as the nearest one inside. What flows strictly inside holds together: groups of entries of w,
which are numbered as in the flat w, nodes where these are tied as a whole; the last number is the ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..base.gate import dealt
from ..terms import Array, EdgeBlock, at_a_time
from .compiler import Kernel, compiled, specialised
from .edges import BALL, SQUARE, TINY, kind_of
from .nodes import flattened

EDGES = 1 << 18  # of a part, of which threads take several at a time


@dataclass(frozen=True)
class EdgePasses:
    """A block of edges with a norm."""

    edge: EdgeBlock
    kind: int
    d: int

    def add_adjoint(self, u: Array, g: Array) -> None:
        """K'u of the clipped flows is added to g (n, d)."""
        specialised(clipped_adjoint, int(self.d == 1))(self._edges, flattened(u), g.reshape(-1), self._kind)

    def residual(self, w: Array, u: Array) -> tuple[float, float]:
        """sum c ||z||, and sum of c ||z|| - <u, z> of the clipped flows, z = Kw - center."""
        center = np.zeros(0) if self.edge.center is None else flattened(self.edge.center)
        kernel, (tail, head, base, strength) = specialised(norm_residuals, int(self.d == 1)), self._edges
        u, w, k = flattened(u), flattened(w), self.d

        def part(some: slice) -> tuple[float, float]:
            mine = slice(some.start * k, some.stop * k)
            return kernel((tail[some], head[some], base[some], strength), center[mine], u[mine], w, self._kind)

        values, residuals = zip(*dealt(part, at_a_time(EDGES, len(tail))), strict=True)
        return sum(values), sum(residuals)

    def unite(self, share: float, u: Array, parent: Array, whole: bool) -> None:
        """Nodes, unless ``whole`` entries, that are tied by flows shorter than ``share`` c come into one group."""
        compiled(unite)(self._edges, share, flattened(u), parent, self._kind, int(not whole))

    @property
    def _edges(self) -> Edges:
        return self.edge.tail, self.edge.head, self.edge.base_weight, float(self.edge.strength)

    @property
    def _kind(self) -> Kind:
        return self.d, int(self.kind == BALL), int(self.edge.ground)


def edge_passes(edge: EdgeBlock, d: int) -> EdgePasses | None:
    """None where the penalty has no kernel, or is no norm."""
    kind = kind_of(edge, d)
    return None if kind in (None, SQUARE) else EdgePasses(edge, kind, d)


def group_numbers(parent: Array) -> tuple[Array, int]:
    """The number of each entry's group, -1 with the ground, and how many there are; see `EdgePasses.unite`."""
    number = np.empty(len(parent) - 1, dtype=np.int32)
    return number, compiled(numbered)(parent, number)


def group_means(number: Array, count: int, values: Array) -> Array:
    """The rows of values (n, k), each the mean of its group; 0 at the ground."""
    k, out = values.shape[1], np.empty(values.shape)
    compiled(spread_means)(number, flattened(values), np.zeros(count), np.zeros(count * k), out.reshape(-1), k)
    return out


# ---- kernels ---------------------------------------------------------------------------------------------------------
Edges = tuple[Array, Array, Array, float]  # tails, heads, and capacities but for the last number, their factor
Kind = tuple[int, int, int]  # coordinates, whether the norm is one of all of them (a ball), and whether to the ground


def clipped_adjoint(single: int) -> Kernel:
    """K'u is added to ``adjoint``, for edges of any number of coordinates, or of a ``single`` one."""

    def kernel(edges: Edges, u: Array, adjoint: Array, of: Kind) -> None:
        tail, head, base, strength = edges
        d, ball, ground = 1 if single else of[0], of[1], of[2]
        for e in range(tail.size):
            c, i, at = strength * base[e], tail[e] * d, e * d
            j = 0 if ground else head[e] * d
            factor, most = 1.0, c
            if ball:
                size = 0.0
                for k in range(d):
                    size += u[at + k] ** 2
                factor, most = c / math.sqrt(max(size, c * c, TINY)), math.inf
            for k in range(d):
                v = min(max(factor * u[at + k], -most), most)
                adjoint[i + k] += v
                if not ground:
                    adjoint[j + k] -= v

    return kernel


def norm_residuals(single: int) -> Kernel:
    """sum c ||z_e||, and the sum of c ||z_e|| - <u_e, z_e>, z = Kw - center, for edges of any number of coordinates, or
    of a ``single`` one."""

    def kernel(edges: Edges, center: Array, u: Array, w: Array, of: Kind) -> tuple[float, float]:
        tail, head, base, strength = edges
        d, ball, ground = 1 if single else of[0], of[1], of[2]
        value, residual = 0.0, 0.0
        for e in range(tail.size):
            c, i, at = strength * base[e], tail[e] * d, e * d
            j = 0 if ground else head[e] * d
            length, size, along = 0.0, 0.0, 0.0
            for k in range(d):
                z = w[i + k] if ground else w[i + k] - w[j + k]
                if center.size:
                    z -= center[at + k]
                if ball:
                    length += z * z
                    size += u[at + k] ** 2
                    along += u[at + k] * z
                else:
                    length += abs(z)
                    along += min(max(u[at + k], -c), c) * z
            if ball:
                length = math.sqrt(length)
                along *= c / math.sqrt(max(size, c * c, TINY))
            value += c * length
            residual += c * length - along
        return value, residual

    return kernel


def unite(edges: Edges, share: float, u: Array, parent: Array, of: Kind, each: int) -> None:
    """Edges of capacity c = strength base whose flow is shorter than ``share`` c join the groups of their ends, of
    which ``parent`` is a forest that grows: as a whole (a ball), or coordinate by coordinate; they tie ``each``
    coordinate, or the nodes."""
    tail, head, base, strength = edges
    d, ball, ground = of
    ways = d if each else 1
    for e in range(tail.size):
        most, size = share * (strength * base[e]), 0.0
        if ball:
            for k in range(d):
                size += u[e * d + k] ** 2
            size = math.sqrt(size)
            if size >= most:
                continue
        for k in range(ways):
            if not ball and abs(u[e * d + k]) >= most:
                continue
            i = tail[e] * ways + k
            j = parent.size - 1 if ground else head[e] * ways + k
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            while parent[j] != j:
                parent[j] = parent[parent[j]]
                j = parent[j]
            if i < j:
                parent[j] = i
            else:
                parent[i] = j


def numbered(parent: Array, number: Array) -> int:
    """The groups in the order of their first entries, written to ``number``, -1 for that of the ground; how many."""
    count, last = 0, parent.size - 1
    while parent[last] != last:
        last = parent[last]
    for i in range(number.size):
        root = parent[i]
        while parent[root] != root:
            root = parent[root]
        parent[i] = root
        if root == last:
            number[i] = -1
        elif root == i:
            number[i] = count
            count += 1
        else:
            number[i] = number[root]
    return count


def spread_means(number: Array, values: Array, size: Array, total: Array, out: Array, d: int) -> None:
    """The mean of each group at all of its members, 0 at those of the ground; ``size`` (count,) and ``total``
    (count d,) are zeros to begin with."""
    for i in range(number.size):
        g = number[i]
        if g >= 0:
            size[g] += 1.0
            for k in range(d):
                total[g * d + k] += values[i * d + k]
    for g in range(size.size):
        for k in range(d):
            total[g * d + k] /= size[g]
    for i in range(number.size):
        g = number[i]
        for k in range(d):
            out[i * d + k] = total[g * d + k] if g >= 0 else 0.0
