"""What a step that is run node by node may know: its own data, its neighbours' names, and their messages."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..engines.actors import NodePart
from ..errors import MethodError
from ..messages import did_you_mean
from ..oracles import Oracles
from ..terms import Array


class Node:
    """The data of one node: its losses, its edges and nothing of any other node.

    Attributes
    ----------
    label : hashable
    neighbours : tuple of hashables
    d : int
        The number of coordinates.
    weight : dict
        c_e, strength x edge weight, by neighbour; 1 for constraints.
    start : array (d,) or None
        Where to begin, if anything is said.
    rng : numpy.random.Generator
        A stream of random numbers of its own.
    """

    def __init__(self, part: NodePart, start: Array | None, seed: int) -> None:
        self._oracles = Oracles(part.form)
        self._me = int(np.flatnonzero(part.whole.own)[0])
        self.label, self.d, self.start = part.label, part.form.d, start
        self.rng = np.random.default_rng([seed, part.node])
        o = self._oracles
        self._edge: dict[Hashable, int] = {}
        for e, (i, j) in enumerate(zip(o.tail.tolist(), o.head.tolist(), strict=True)):
            self._edge.setdefault(o.labels[j if i == self._me else i], e)
        self.neighbours = tuple(self._edge)
        self.weight = {label: float(o.weight[e]) for label, e in self._edge.items()}

    @property
    def smoothness(self) -> float:
        """L, the Lipschitz constant of `gradient`; inf where there is none."""
        return float(self._oracles.smoothness[self._me])

    def gradient(self, w: Array) -> Array:
        """The gradient of the node's losses, and of its penalty where that is smooth, (d,)."""
        return self._oracles.gradient(self._rows(w))[self._me]

    def prox(self, v: Array, step: float) -> Array:
        """argmin over w of the node's losses at w plus ||w - v||^2 / (2 step), (d,)."""
        return self._oracles.prox(self._rows(v), step)[self._me]

    def node_prox(self, v: Array, step: float) -> Array:
        """The prox of step times the node's own penalty, (d,)."""
        return self._oracles.node_prox(self._rows(v), step)[self._me]

    def edge_prox(self, neighbour: Hashable, z: Array, step: float) -> Array:
        """The prox of step c_e phi at z, (d,), e the edge to a neighbour."""
        return self._at_edge(neighbour, z, step, self._oracles.edge_prox)

    def dual_prox(self, neighbour: Hashable, u: Array, step: float) -> Array:
        """The prox of step (c_e phi)* at the flow u, (d,), e the edge to a neighbour."""
        return self._at_edge(neighbour, u, step, self._oracles.dual_prox)

    def _at_edge(self, neighbour: Hashable, row: Array, step: float, prox: Any) -> Array:
        if neighbour not in self._edge:
            hint = did_you_mean(neighbour, self._edge)
            raise MethodError(f"the node {self.label!r} asks for its edge to {neighbour!r}, no neighbour{hint}")
        rows = np.zeros((len(self._oracles.tail), self.d))
        rows[self._edge[neighbour]] = row
        return prox(rows, step)[self._edge[neighbour]]

    def _rows(self, w: Array) -> Array:
        out = np.zeros((self._oracles.n, self.d))
        out[self._me] = w
        return out

    def __repr__(self) -> str:
        return f"Node({self.label!r}, neighbours {list(self.neighbours)!r})"
