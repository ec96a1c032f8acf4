"""The canonical form: samples and edges, tied together by the parameters at the nodes. Values and residuals.

P(w)    =   sum_r s_r l_r((Xw)_r + o_r)  +  sum_e c_e phi_e((Kw)_e - center_e)
Q(u, a) = - sum_r s_r l_r*(a_r / s_r) + <a, o>  -  sum_e c_e phi_e*(u_e / c_e) - <u, center>
subject to (K'u)_i + X_i'a_i = 0 at every node
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .batches import Batch, batches
from .terms.calculus import Strength
from .terms.losses._base import AbstractLoss
from .terms.penalties._base import AbstractPenalty, row_norm
from .terms.records import Array, Role, Space


@dataclass(frozen=True)
class SampleBlock:
    """Samples of one loss. The predictor (M,) or (M, k) is ``A vec(w) + offset``, A sparse."""

    loss: AbstractLoss
    strength: Strength
    node: Array  # (M,)
    X: Array | None  # (M, d); None where the predictor is w_i itself
    y: Array
    offset: Array
    base_scale: Array  # (M,), without the strength
    A: sp.csr_array

    @cached_property
    def _adjoint(self) -> Any:
        return self.A.T

    @cached_property
    def stacks(self) -> tuple[Batch, ...] | None:
        """The samples in stacks of nodes; None where the predictor is w_i itself."""
        return None if self.X is None else batches(self.node, self.X)

    @cached_property
    def lengths(self) -> Array:
        """||x_r|| of each row of A."""
        if self.X is None:
            return np.ones(self.offset.size)
        return np.repeat(row_norm(self.X), self.offset.size // len(self.X))

    @property
    def scale(self) -> Array:
        """s_r, (M,)."""
        return float(self.strength) * self.base_scale

    def scale_of(self, rows: Array) -> Array:
        """s_r of some samples, at no cost for the others."""
        return float(self.strength) * self.base_scale[rows]

    def part(self, rows: Array) -> SampleBlock:
        """Some samples of the block, by their numbers; the loss stays whole."""
        per = self.offset.size // len(self.node)  # predictors of a sample
        A = self.A[(rows[:, None] * per + np.arange(per)).ravel()]
        own = {name: getattr(self, name)[rows] for name in ("node", "y", "offset", "base_scale")}
        return replace(self, X=None if self.X is None else self.X[rows], A=A, **own)

    def column(self, scale: Array) -> Array:
        """s_r shaped to broadcast against predictors."""
        return scale[:, None] if self.offset.ndim == 2 else scale

    def scaled(self, values: Array) -> Array:
        """s_r times values per sample, of any shape: numbers, vectors, matrices."""
        return self.scale.reshape(-1, *[1] * (values.ndim - 1)) * values

    def apply(self, w: Array) -> Array:
        """X w, without the offset."""
        return (self.A @ w.ravel()).reshape(self.offset.shape)

    def predict(self, w: Array) -> Array:
        return self.apply(w) + self.offset

    def adjoint(self, a: Array, shape: tuple[int, int]) -> Array:
        """X'a, (n, d)."""
        return (self._adjoint @ a.ravel()).reshape(shape)

    def values(self, w: Array) -> Array:
        """s_r l_r at each sample."""
        return self.scale * self.loss.value(self.predict(w), self.y)

    def prices(self, w: Array) -> Array:
        """The (sub)gradients s_r l'(predictor), inside dom l*."""
        return self.column(self.scale) * self.loss.gradient(self.predict(w), self.y)

    def conjugates(self, a: Array) -> Array:
        """s_r l_r*(a_r / s_r)."""
        return self.scale * self.loss.conjugate(a / self.column(self.scale), self.y)


@dataclass(frozen=True)
class EdgeBlock:
    """Edges that share one penalty; ``z = (Kw)_e - center_e`` on the coordinates ``features``."""

    penalty: AbstractPenalty
    strength: Strength
    tail: Array
    head: Array  # GROUND (-1) for edges to the ground
    base_weight: Array  # (m,), without the strength
    features: Array | None
    center: Array | None
    role: Role
    name: str  # for printing
    K: sp.csr_array  # (m, n)

    @cached_property
    def transposed(self) -> sp.csr_array:
        return sp.csr_array(self.K.T)

    @property
    def weight(self) -> Array:
        """c_e, (m,); 1 for constraints, which have none."""
        return float(self.strength) * self.base_weight

    @property
    def ground(self) -> bool:
        return self.role.kind == "ground"

    def part(self, rows: Array) -> EdgeBlock:
        """Some edges of the block, by a mask or by their numbers."""
        center = None if self.center is None else self.center[rows]
        ends = {"tail": self.tail[rows], "head": self.head[rows]}
        return replace(self, **ends, base_weight=self.base_weight[rows], center=center, K=self.K[rows])

    def apply(self, w: Array) -> Array:
        """(Kw)_e on the features of the block, (m, k)."""
        part = w if self.features is None else w[:, self.features]
        return self.K @ np.ascontiguousarray(part)

    def difference(self, w: Array) -> Array:
        z = self.apply(w)
        return z if self.center is None else z - self.center

    def add_adjoint(self, u: Array, out: Array) -> None:
        """out += K'u."""
        if self.features is None:
            out += self.transposed @ u
        else:
            out[:, self.features] += self.transposed @ u

    def values(self, w: Array) -> Array:
        """c_e phi_e at each edge."""
        return self.weight * self.penalty.value(self.difference(w))

    def conjugates(self, u: Array) -> Array:
        """c_e phi_e*(u_e / c_e)."""
        c = self.weight
        return c * self.penalty.conjugate(u / c[:, None])

    def clip(self, u: Array) -> Array:
        c = self.weight[:, None]
        return c * self.penalty.clip(u / c)


@dataclass(frozen=True)
class DualPoint:
    """Flows per edge block and prices per sample block."""

    flows: tuple[Array, ...]
    prices: tuple[Array, ...]


@dataclass(frozen=True)
class Form:
    """A problem in canonical form over n nodes (first ``n_observed`` of the user's, then the latent ones)."""

    space: Space
    latent: tuple[Hashable, ...]
    samples: tuple[SampleBlock, ...]
    edges: tuple[EdgeBlock, ...]

    @property
    def n(self) -> int:
        return self.space.n_observed + len(self.latent)

    @property
    def d(self) -> int:
        return len(self.space.coordinates)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    def width(self, edge: EdgeBlock) -> int:
        """The number k of coordinates that the edges of a block act on."""
        return self.d if edge.features is None else len(edge.features)

    @cached_property
    def labels(self) -> tuple[Hashable, ...]:
        return (*self.space.index, *self.latent)

    @cached_property
    def component(self) -> Array:
        """The connected component (of all edges between nodes) of each node, (n,)."""
        tails = [b.tail for b in self.edges if not b.ground]
        heads = [b.head for b in self.edges if not b.ground]
        if not tails:
            return np.arange(self.n)
        i, j = np.concatenate(tails), np.concatenate(heads)
        return connected_components(sp.coo_array((np.ones(len(i)), (i, j)), shape=(self.n, self.n)), directed=False)[1]

    @cached_property
    def n_components(self) -> int:
        return int(self.component.max()) + 1

    @cached_property
    def free(self) -> Array:
        """Nodes whose component has no loss and no edge to the ground: any common value is optimal, 0 is given."""
        tied = np.zeros(self.n_components, dtype=bool)
        for block in self.samples:
            tied[self.component[block.node]] = True
        for edge in self.edges:
            if edge.ground:
                tied[self.component[edge.tail]] = True
        return ~tied[self.component]

    def frozen(self) -> Form:
        """The form at the strengths of this moment: later values of Parameters do not reach it."""
        if not any(block.strength.parameter for block in (*self.samples, *self.edges)):
            return self
        samples = tuple(_frozen(block, ("_adjoint", "stacks", "lengths")) for block in self.samples)
        edges = tuple(_frozen(edge, ("transposed",)) for edge in self.edges)
        form = replace(self, samples=samples, edges=edges)
        vars(form).update(
            {name: getattr(self, name) for name in ("labels", "component", "n_components", "free", "memory")}
        )
        return form

    @cached_property
    def memory(self) -> dict[str, Any]:
        """What others found out about the form, shared with its copies at other strengths."""
        return {}

    def nothing(self) -> DualPoint:
        """No flow anywhere, all prices 0."""
        return DualPoint(
            tuple(np.zeros((len(edge.tail), self.width(edge))) for edge in self.edges),
            tuple(np.zeros_like(block.offset) for block in self.samples),
        )

    def primal(self, w: Array) -> float:
        """P(w)."""
        return float(sum(b.values(w).sum() for b in self.samples) + sum(b.values(w).sum() for b in self.edges))

    def dual(self, point: DualPoint) -> float:
        """Q(u, a); -inf outside the domains. A lower bound of P only where the point is conserved."""
        return float(sum(part.sum() for part in self.dual_parts(point)))

    def dual_parts(self, point: DualPoint) -> list[Array]:
        """The summands of Q, one array per sample block and then per edge block."""
        parts: list[Array] = []
        for block, a in zip(self.samples, point.prices, strict=True):
            linear = a * block.offset
            parts.append((linear if linear.ndim == 1 else linear.sum(axis=1)) - block.conjugates(a))
        for edge, u in zip(self.edges, point.flows, strict=True):
            linear = 0.0 if edge.center is None else np.einsum("ij,ij->i", u, edge.center)
            parts.append(-linear - edge.conjugates(u))
        return parts

    def conservation(self, point: DualPoint) -> Array:
        """K'u + X'a, (n, d): zero where flow and prices are conserved."""
        out = np.zeros(self.shape)
        for block, a in zip(self.samples, point.prices, strict=True):
            out += block.adjoint(a, self.shape)
        for edge, u in zip(self.edges, point.flows, strict=True):
            edge.add_adjoint(u, out)
        return out

    def residuals(self, w: Array, point: DualPoint) -> tuple[list[Array], list[Array]]:
        """The Fenchel-Young residuals of every sample and of every edge, per block."""
        samples: list[Array] = []
        for block, a in zip(self.samples, point.prices, strict=True):
            inner = a * block.predict(w)
            inner = inner if inner.ndim == 1 else inner.sum(axis=1)
            samples.append(block.values(w) + block.conjugates(a) - inner)
        edges = [
            edge.values(w) + edge.conjugates(u) - np.einsum("ij,ij->i", u, edge.difference(w))
            for edge, u in zip(self.edges, point.flows, strict=True)
        ]
        return samples, edges

    def gradient_prices(self, w: Array) -> tuple[Array, ...]:
        """Prices at w: the (sub)gradients of the losses."""
        return tuple(block.prices(w) for block in self.samples)

    def degree(self) -> Array:
        """Edges at each node, those to the ground included, (n,)."""
        out = np.zeros(self.n)
        for edge in self.edges:
            out += abs(edge.K).sum(axis=0)
        return out

    @cached_property
    def step_length(self) -> float:
        """The length of a gradient step from w = 0, root mean square: a scale of the coefficients; 1 where it is 0."""
        gradient = self.conservation(DualPoint(self.nothing().flows, self.gradient_prices(np.zeros(self.shape))))
        curvature = np.zeros(self.n)
        for block in self.samples:
            squares = (block.lengths**2).reshape(len(block.node), -1).sum(axis=1)
            bound = block.loss.steepness(block.offset, block.y)
            curvature += np.bincount(block.node, bound * block.scale * squares, self.n) / self.d
        return float(np.sqrt(np.mean(gradient**2)) / max(np.sqrt(np.mean(curvature**2)), 1e-300)) or 1.0


def _frozen(block: Any, derived: tuple[str, ...]) -> Any:
    """The block at the strength of this moment, with what was derived from its other fields, once for all strengths."""
    out = replace(block, strength=Strength(float(block.strength)))
    vars(out).update({name: getattr(block, name) for name in derived})
    return out
