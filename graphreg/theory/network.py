"""The edges along which something must flow: groups of coordinates that share a graph, flows that carry given demands.

    K'u = -r,    r (n, d) with the sum 0 over every component

Along a spanning forest there is one such flow; the electrical one, u = -A^2 K z with (K'A^2K) z = r, has the least
sum_e ||u_e||^2 / A_e^2 among all of them (u_e / A_e is then a row of -(A K)^+' r).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..base.csgraph import minimum_spanning_tree
from ..base.display import Brief
from ..certificate import factor
from ..form import EdgeBlock, held_together
from ..inputs import components_of
from ..terms import Array, adjoint_of
from ..terms.penalties import AbstractPenalty

Flows = tuple[Array, ...]  # (m, k) per edge block


def square_roots(C: Array) -> Array:
    """R with R R' = C for covariances, (n, d, d): R z has the covariance C for z with that of the identity."""
    values, vectors = np.linalg.eigh(C)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


@dataclass(frozen=True, eq=False)
class CoordinateGroup:
    """Coordinates that the same edge blocks act on, and the graph of all their edges.

    Attributes
    ----------
    columns : (c,)
        The coordinates.
    parts : tuple of (block, places)
        Which edge blocks, in the order of the rows of K, and where the coordinates stand among theirs.
    K : (m, n)
    A : (m,)
        The weights A_e.
    """

    columns: Array
    parts: tuple[tuple[int, Array], ...]
    K: sp.csr_array
    tail: Array
    head: Array
    A: Array

    @cached_property
    def component(self) -> Array:
        """The component of each node in this graph, (n,)."""
        return components_of(self.tail, self.head, self.K.shape[1])[1]  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)

    @cached_property
    def inner(self) -> Array:
        """All nodes but the first of each component: their rows of K'u = -r imply the others."""
        return np.delete(np.arange(len(self.component)), np.unique(self.component, return_index=True)[1])

    @cached_property
    def forest(self) -> Array:
        """The edges of a spanning forest."""
        n, m = len(self.component), len(self.tail)
        # heaviest edges first; of parallel edges one, so that each entry is the number of its edge plus 1
        order = np.argsort(-self.A, kind="stable")
        pair = np.minimum(self.tail, self.head) * n + np.maximum(self.tail, self.head)
        _, first = np.unique(pair[order], return_index=True)
        kept = order[np.sort(first)]
        rank = sp.csr_array((np.arange(1.0, len(kept) + 1), (self.tail[kept], self.head[kept])), shape=(n, n))
        return kept[minimum_spanning_tree(rank).data.astype(np.intp) - 1] if m else np.zeros(0, dtype=np.intp)

    def along_forest(self, r: Array) -> Array:
        """The flow (m, c) on the forest alone that carries the demands r (n, c): on each of its edges the sum of r over
        the subtree that it cuts off, by elimination from the leaves."""
        u = np.zeros((len(self.tail), r.shape[1]))
        if len(self.inner):
            u[self.forest] = -self._tree.solve(r[self.inner], trans="T")
        return u

    def potentials_along_forest(self, z: Array) -> Array:
        """w (n, c) whose differences along the forest are those of z (m, c); 0 at one node of each component."""
        w = np.zeros((len(self.component), z.shape[1]))
        if len(self.inner):
            w[self.inner] = self._tree.solve(z[self.forest])
        return w

    @cached_property
    def _tree(self) -> Any:
        return splu(sp.csc_array(self.K[self.forest][:, self.inner]))

    def electrical(self, r: Array) -> tuple[Array, Array]:
        """The potentials z (n, c) with K'A^2K z = r, and the flow -A^2 K z (m, c)."""
        z = np.zeros(r.shape)
        if len(self.inner):
            z[self.inner] = self._laplacian.solve(r[self.inner])
        return z, -(self.A**2)[:, None] * (self.K @ z)

    @cached_property
    def _laplacian(self) -> Any:
        part = self.K[:, self.inner]
        L = sp.csc_array(part.T @ sp.diags_array(self.A**2) @ part)
        try:
            return factor(L)
        except RuntimeError:  # weights so different that rounding makes it singular
            return factor(L + 1e-13 * sp.diags_array(L.diagonal()))


@dataclass(frozen=True, eq=False, repr=False)
class Network(Brief):
    """Edge blocks with their weights A_e, on n nodes and d coordinates."""

    blocks: tuple[EdgeBlock, ...]
    weights: tuple[Array, ...]
    shape: tuple[int, int]

    @cached_property
    def columns(self) -> tuple[Array, ...]:
        """The coordinates of each block."""
        return tuple(b.columns(self.shape[1]) for b in self.blocks)

    @cached_property
    def groups(self) -> tuple[CoordinateGroup, ...]:
        """The groups of coordinates; those that no block acts on are in none."""
        return tuple(self._group(*group) for group in held_together(self.columns, self.shape[1]))

    def _group(self, touching: Sequence[int], columns: Array) -> CoordinateGroup:
        blocks = [self.blocks[k] for k in touching]
        parts = tuple((k, np.array([np.flatnonzero(self.columns[k] == j)[0] for j in columns])) for k in touching)
        K = sp.csr_array(sp.vstack([b.K for b in blocks], format="csr"))
        ends = [np.concatenate([getattr(b, end) for b in blocks]) for end in ("tail", "head")]
        return CoordinateGroup(columns, parts, K, ends[0], ends[1], np.concatenate([self.weights[k] for k in touching]))

    @cached_property
    def component(self) -> Array:
        """The component of each node among all these edges, (n,)."""
        tail, head = np.concatenate([b.tail for b in self.blocks]), np.concatenate([b.head for b in self.blocks])
        return components_of(tail, head, self.shape[0])[1]

    @cached_property
    def merging(self) -> sp.csr_array:
        """(n, components): 1 where a node is in a component."""
        n = self.shape[0]
        return sp.csr_array((np.ones(n), (np.arange(n), self.component)), shape=(n, self.n_components))

    @cached_property
    def n_edges(self) -> Array:
        """The number of edges of each component, (components,)."""
        return np.bincount(np.concatenate(self.where), minlength=self.n_components)

    @cached_property
    def where(self) -> tuple[Array, ...]:
        """The component of each edge, per block."""
        return tuple(self.component[b.map.owner] for b in self.blocks)

    @property
    def n_components(self) -> int:
        return int(self.component.max()) + 1

    @cached_property
    def acyclic(self) -> Array:
        """True of a component that is a tree on every coordinate, so that demands have one flow only, (components,)."""
        out = np.ones(self.n_components, dtype=bool)
        for group in self.groups:
            others = np.setdiff1d(np.arange(len(group.tail)), group.forest)
            out[self.component[group.tail[others]]] = False
        return out

    def subset(self, masks: Sequence[Array]) -> Network:
        """Some edges of each block only."""
        each = list(zip(self.blocks, self.weights, masks, strict=True))
        blocks = tuple(replace(b.part(e), center=None) for b, _, e in each)
        return Network(blocks, tuple(A[e] for _, A, e in each), self.shape)

    # ---- ties ----------------------------------------------------------------------------------------------------
    @cached_property
    def ties(self) -> sp.csr_array:
        """S (n d, q): w = S theta has equal ends along every edge; entries that no edge ties are their own."""
        n, d = self.shape
        number = np.arange(n * d).reshape(n, d)
        for group in self.groups:  # what is tied has the number of the first node of its component
            first = np.unique(group.component, return_index=True)[1]
            number[:, group.columns] = number[first[group.component]][:, group.columns]
        distinct, place = np.unique(number.ravel(), return_inverse=True)
        return sp.csr_array((np.ones(n * d), (np.arange(n * d), place)), shape=(n * d, len(distinct)))

    def means(self, r: Array) -> Array:
        """The mean of r over what is tied, at each entry."""
        S = self.ties
        return (S @ ((S.T @ r.ravel()) / S.sum(axis=0))).reshape(self.shape)

    def balanced(self, r: Array) -> Array:
        """r less its means over what is tied: demands that the edges can carry."""
        return r - self.means(r)

    # ---- flows ---------------------------------------------------------------------------------------------------
    def nothing(self) -> Flows:
        return tuple(np.zeros((b.count, b.map.width(self.shape[1]))) for b in self.blocks)

    def adjoint(self, flows: Flows) -> Array:
        """K'u, (n, d)."""
        return adjoint_of(self.blocks, flows, self.shape)

    def along_forest(self, r: Array) -> Flows:
        """The flow along spanning forests with K'u = -r."""
        return self._spread([group.along_forest(r[:, group.columns]) for group in self.groups])

    def electrical(self, r: Array) -> tuple[Array, Flows]:
        """The flow with K'u = -r of least sum ||u_e||^2 / A_e^2, and its potentials (n, d)."""
        z, flows = np.zeros(self.shape), list[Array]()
        for group in self.groups:
            potentials, u = group.electrical(r[:, group.columns])
            z[:, group.columns] = potentials
            flows.append(u)
        return z, self._spread(flows)

    def potentials_along_forest(self, z: Flows) -> Array:
        """w (n, d) whose differences along spanning forests are those of z, one array per block."""
        w = np.zeros(self.shape)
        for group in self.groups:
            parts = [z[k][:, places] for k, places in group.parts]
            w[:, group.columns] = group.potentials_along_forest(np.concatenate(parts))
        return w

    def conserved(self, flows: Flows, r: Array) -> Flows:
        """The flows with what they leave of K'u = -r carried electrically, and the rounding of that along forests."""
        for _ in range(2):
            _, more = self.electrical(self.balanced(r + self.adjoint(flows)))
            flows = tuple(u + v for u, v in zip(flows, more, strict=True))
        more = self.along_forest(self.balanced(r + self.adjoint(flows)))
        return tuple(u + v for u, v in zip(flows, more, strict=True))

    def _spread(self, flows: Sequence[Array]) -> Flows:
        """Flows per group as flows per block."""
        out = self.nothing()
        for group, u in zip(self.groups, flows, strict=True):
            start = 0
            for k, places in group.parts:
                stop = start + len(self.blocks[k].tail)
                out[k][:, places] = u[start:stop]
                start = stop
        return out

    # ---- sizes ---------------------------------------------------------------------------------------------------
    def loads(self, flows: Flows) -> list[Array]:
        """The pull at 0 of u_e / A_e, of each edge, per block: ||u_e||_* / A_e for norms."""
        each = zip(self.blocks, self.weights, flows, strict=True)
        return [block.penalty.gauge_at_zero(u) / A for block, A, u in each]

    def largest(self, flows: Flows) -> Array:
        """The largest ||u_e||_* / A_e of each component, (components,); 0 where it has no edges."""
        out = np.zeros(self.n_components)
        for where, load in zip(self.where, self.loads(flows), strict=True):
            np.maximum.at(out, where, load)
        return out

    def strain(self, g: Array) -> float:
        """The largest load of the electrical flows that balance what of g may flow."""
        _, flows = self.electrical(self.balanced(g))
        return float(self.largest(flows).max())

    def excess(self, w: Array) -> float:
        """sum_e A_e (phi((Kw)_e) - phi'(0; (Kw)_e)): how much more the penalties grow than at 0; 0 for norms."""
        total = 0.0
        for block, A in zip(self.blocks, self.weights, strict=True):
            z = block.apply(w)
            total += float(A @ np.maximum(block.penalty.value(z) - slope_at_zero(block.penalty, z), 0.0))
        return total

    def variation(self, w: Array) -> Array:
        """sum_e A_e phi'(0; (Kw)_e) of each component, (components,)."""
        out = np.zeros(self.n_components)
        for block, A, where in zip(self.blocks, self.weights, self.where, strict=True):
            out += np.bincount(where, A * slope_at_zero(block.penalty, block.apply(w)), len(out))
        return out


def slope_at_zero(phi: AbstractPenalty, z: Array) -> Array:
    """The growth of phi from 0 along each row, ``phi'(0; z) = lim phi(s z) / s`` as s falls to 0, to about eight digits
    and from above; phi itself where it is homogeneous. It is the support function of what ``gauge_at_zero`` is the
    gauge of."""
    largest = np.abs(z).max(axis=1, initial=0.0)
    s = 2.0 ** (-26.0 - np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))  # exact: a power of 2
    return phi.value(z * s[:, None]) / s
