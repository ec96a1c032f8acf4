"""A site: the part of a problem on which a method iterates, and the two verbs by which it reaches beyond it.

A step goes beyond its own nodes only through ``exchange`` (the values of neighbours across the edges) and ``reduce``
(sums over all nodes). In one process the site is the whole graph and ``exchange`` is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..form import Form
from ..terms.losses._base import AbstractSmoothLoss
from ..terms.records import Array
from .nodeprox import AbstractNodeProx, Memory, node_proxes


class Engine(Protocol):
    """Where a method runs; see graphreg/engines."""

    def exchange(self, values: Array) -> Array:
        """The values (n, d) of the site's nodes and of their neighbours."""
        ...

    def reduce(self, values: Array) -> Array:
        """Sums over all nodes of the graph of values (n, ...) per node, in a fixed order."""
        ...


Memories = tuple[Memory, ...]  # one per prox


@dataclass(frozen=True)
class Site:
    """The nodes, their incident edges, and the prox of their losses."""

    form: Form
    engine: Engine

    @cached_property
    def proxes(self) -> tuple[AbstractNodeProx, ...]:
        return node_proxes(self.form)

    @cached_property
    def degree(self) -> Array:
        """Edges at each node, those to the ground included, (n,)."""
        return self.form.degree()

    @cached_property
    def weights(self) -> tuple[Array, ...]:
        """c_e per edge block."""
        return tuple(edge.weight for edge in self.form.edges)

    @cached_property
    def whole(self) -> bool:
        """Whether one prox takes all nodes, in their order."""
        return len(self.proxes) == 1 and np.array_equal(self.proxes[0].nodes, np.arange(self.form.n))

    @cached_property
    def curvature(self) -> Array:
        """The mean curvature of each node's loss, 0 where it has none, (n,)."""
        out = np.zeros(self.form.n)
        for prox in self.proxes:
            out[prox.nodes] = prox.curvature()
        return out

    def memory(self) -> Memories:
        return (None,) * len(self.proxes)

    def prox(self, v: Array, tau: Array, warm: Array, memory: Memories) -> tuple[Array, Memories]:
        """argmin f_i(w) + 1/(2 tau_i) ||w - v_i||^2 at every node; v_i where a node has no data."""
        if self.whole:
            w, new = self.proxes[0](v, tau, warm, memory[0])
            return w, (new,)
        w = v.copy()
        kept: list[Memory] = []
        for prox, each in zip(self.proxes, memory, strict=True):
            i = prox.nodes
            w[i], new = prox(v[i], tau[i], warm[i], each)
            kept.append(new)
        return w, tuple(kept)

    def prices(self, w: Array, memory: Memories) -> tuple[Array, ...] | None:
        """The prices of all samples at the proxes' last points w: gradients of smooth losses, else what a prox kept.

        None where all are gradients at w: the certifier computes its own, where it needs them.
        """
        if all(isinstance(block.loss, AbstractSmoothLoss) for block in self.form.samples):
            return None
        out = tuple(block.prices(w) for block in self.form.samples)
        for prox, each in zip(self.proxes, memory, strict=True):
            prox.write_prices(each, out)
        return out
