"""Rounds of the primal-dual method on flat arrays: two passes over nodes and edges, and nothing allocated.

    w+ = prox of tau f at w - tau K'u,     u+ = prox of sigma g* at u + sigma (K(2 w+ - w) - center),     both relaxed,

with tau_i = s/deg_i and sigma = 1/(2 s), on edges to the ground 1/s. K'u is carried from round to round; u+ itself,
which only checks look at, is found when they do.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from ..base.gate import dealt
from ..form import Form
from ..network import AbstractFlatPoint, AbstractImage, AbstractRounds, Memories, Rest
from ..oracles import AbstractNodeProx
from ..terms import Array, at_a_time
from .blocks import AbstractRoundBlock, CompiledBlock, PlainBlock
from .edges import FlowBuffers
from .nodes import AbstractRoundLoss, MeanRound, Moved, Standing, round_losses
from .order import RoundOrders
from .sweeps import Nodes

AT_ONCE = 50_000_000  # entries of the flows times rounds between two looks at the clock: about .1 s

AT_A_TIME = 1 << 18  # numbers of two points whose difference stays in the cache

Round = tuple["FlatPoint", "Image", Memories]


def _holders(arrays: list[Array], k: int) -> int:
    return sys.getrefcount(arrays[k])


ALONE = _holders([np.empty(0)], 0)  # of an array that only its list holds; views of it hold it, too


class Buffers:
    """Flat arrays of floats that are used again as soon as nobody holds them, so that rounds allocate nothing.

    Whoever keeps an array of a state (an observer, a checkpoint, the state itself) keeps its numbers: what is handed
    out is known to nobody else.
    """

    def __init__(self) -> None:
        self._known: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """An array of this size that nobody holds, with any numbers in it."""
        known = self._known.setdefault(size, [])
        for k in range(len(known)):
            if _holders(known, k) == ALONE:
                return known[k]
        known.append(np.empty(size))
        return known[-1]

    def filled(self, size: int, numbers: Array | float) -> Array:
        """The same, with these numbers."""
        out = self.take(size)
        out[:] = numbers
        return out

    def trim(self) -> None:
        """Give back what nobody holds, for what needs memory between two rounds."""
        for known in self._known.values():
            known[:] = [known[k] for k in range(len(known)) if _holders(known, k) != ALONE]


@dataclass(frozen=True)
class FlatPoint(AbstractFlatPoint):
    """Parameters and flows in the order of the rounds, and K'u."""

    rounds: Rounds
    flat_w: Array
    flat_u: tuple[Array, ...]
    adjoint: Array

    @cached_property
    def w(self) -> Array:
        """(n, d)."""
        return self.rounds.left(self.flat_w)

    @cached_property
    def u(self) -> tuple[Array, ...]:
        """(m, k) per block, in the order of the form."""
        return tuple(block.rows_of_flat(u) for block, u in zip(self.rounds.blocks, self.flat_u, strict=True))


@dataclass(frozen=True)
class Image(AbstractImage):
    """T x = (w+, u+) at ``before`` = x: what of it the round has not left is found when somebody asks."""

    before: FlatPoint
    s: float
    left: Moved | None  # of the nodes

    @cached_property
    def swept(self) -> FlatPoint:
        """Nodes and edges at once, where a sweep takes both."""
        return self.before.rounds.swept(self.before, self.s, 0.0, 1)

    @cached_property
    def w(self) -> Array:
        """(n, d)."""
        return self.swept.w if self.left is None else self.before.rounds.left(self.left.hat)

    @cached_property
    def u(self) -> tuple[Array, ...]:
        """(m, k) per block, in the order of the form."""
        if self.left is None:
            return self.swept.u
        new, _ = self.before.rounds.edges(self.before, self.left.ahead, self.s, 0.0)
        return tuple(block.rows_of_flat(u) for block, u in zip(self.before.rounds.blocks, new, strict=True))


@dataclass(frozen=True, eq=False)
class Rounds(AbstractRounds):
    """The arrays and kernels that rounds need of a form."""

    form: Form
    blocks: tuple[AbstractRoundBlock, ...]
    losses: tuple[AbstractRoundLoss, ...]
    place: Array | None  # where each node stands; None: as in the form
    degree: Array  # (n,)
    stepped: Array  # the same, but positive at nodes without edges: deg_i of the steps
    rest: Rest | None = None  # of the graph, where the form is a part of it
    buffers: Buffers = field(default_factory=Buffers)

    @staticmethod
    def of(
        form: Form, proxes: tuple[AbstractNodeProx, ...], stepped: Array, orders: RoundOrders, rest: Rest | None = None
    ) -> Rounds:
        """The rounds with the proxes of the form's losses, and `orders_of` its nodes and edges. On a part of a graph
        nothing is done otherwise than on another one that has the same node or edge."""
        blocks: list[AbstractRoundBlock] = []
        for edge, order in zip(form.edges, orders.edges, strict=True):
            found = CompiledBlock.of(edge, order, form.d, strict=rest is not None)
            blocks.append(PlainBlock(edge, edge.weight, form.width(edge), form.shape) if found is None else found)
        place = orders.nodes
        degree, stepped = _placed(form.degree(), place), _placed(stepped, place)
        losses = round_losses(proxes, *form.shape, place, strict=rest is not None)
        return Rounds(form, tuple(blocks), losses, place, degree, stepped, rest)

    def iterate_of(self, w: Array, u: tuple[Array, ...]) -> FlatPoint:
        """A point (n, d) with flows (m, k), as rounds hold it."""
        shapes = [self.form.shape, *((len(edge.tail), self.form.width(edge)) for edge in self.form.edges)]
        if [w.shape, *(each.shape for each in u)] != shapes:  # kernels look at no bounds
            raise ValueError(f"parameters and flows must have the shapes {shapes}")
        flat, adjoint = list[Array](), self.buffers.filled(self.form.n * self.form.d, 0.0)
        for block, each in zip(self.blocks, u, strict=True):
            some = each.any()  # at the start of most runs there are none
            flat.append(block.flat_flows(each) if some else self.buffers.filled(block.size, 0.0))
            if some:
                block.add_adjoint(flat[-1], adjoint)
        flat_w = np.ascontiguousarray(_placed(w, self.place), dtype=float).reshape(-1)
        return FlatPoint(self, flat_w, tuple(flat), adjoint)

    def left(self, flat_w: Array) -> Array:
        """The way back of parameters, (n, d)."""
        w = flat_w.reshape(self.form.shape)
        return w if self.place is None else w[self.place]

    def rounds(self, x: FlatPoint, warm: Array | None, s: float, rho: float, memory: Memories, count: int) -> Round:
        """x after so many rounds, T x of the last of them, and what the proxes remember; ``warm`` (n, d) is where they
        begin. Nothing of x changes."""
        if self.parts_of_sweep is not None:
            x = self.swept(x, s, rho, count - 1) if count > 1 else x
            return self.swept(x, s, rho, 1), Image(x, s, None), memory
        before, left = x, None
        for k in range(count):  # flows move in place where nobody knows them
            before = x
            left, memory = self.nodes(x, warm, s, rho, memory)
            u, adjoint = self.edges(x, left.ahead, s, rho, stays=0 < k < count - 1)
            x, warm = FlatPoint(self, left.new, u, adjoint), left.hat.reshape(self.form.shape) if self.begins else None
        return x, Image(before, s, left), memory

    @cached_property
    def parts_of_sweep(self) -> tuple[CompiledBlock, MeanRound] | None:
        """The one block of edges that a sweep takes and the means of all nodes, where there is nothing else: one pass
        has both."""
        if len(self.blocks) != 1 or len(self.losses) != 1:
            return None
        edges, nodes = self.blocks[0], self.losses[0]
        if isinstance(edges, CompiledBlock) and isinstance(nodes, MeanRound) and edges.order.sweep is not None:
            return edges, nodes
        return None

    @property
    def at_once(self) -> int:
        """Rounds that may go by before anybody looks at the clock."""
        entries = self.form.differences if self.rest is None else self.rest.entries
        return max(AT_ONCE // max(entries, 1), 1)

    @property
    def begins(self) -> bool:
        """True where proxes ask where to begin."""
        return any(loss.begins for loss in self.losses)

    def swept(self, x: FlatPoint, s: float, rho: float, count: int) -> FlatPoint:
        """The point after so many sweeps of `parts_of_sweep`, relaxed by rho, or T x for rho = 0 and one."""
        edges, nodes = cast(tuple[CompiledBlock, MeanRound], self.parts_of_sweep)
        take, n = self.buffers.take, len(x.flat_w)
        w, u, adjoint = take(n), take(edges.size), take(n)
        of_nodes = Nodes(self.stepped, s, nodes.mass, nodes.h, w, x.flat_w, x.adjoint, x.flat_u[0])
        edges.sweep(s, rho, FlowBuffers(take(n), u, adjoint), of_nodes, count)
        return FlatPoint(self, w, (u,), adjoint)

    def nodes(self, x: FlatPoint, warm: Array | None, s: float, rho: float, memory: Memories) -> tuple[Moved, Memories]:
        """The nodes after their half of a round, and 2 w+ - w of their neighbours."""
        at = Standing(self.stepped, s, x.adjoint, x.flat_w)
        hat, ahead, new = (self.buffers.take(len(x.flat_w)) for _ in range(3))
        out = Moved(hat, ahead, new, rho)
        known = (*memory, *[None] * (len(self.losses) - len(memory)))
        kept = [loss.round(at, warm, each, out) for loss, each in zip(self.losses, known, strict=True)]
        if self.rest is not None:
            self.rest.fill(ahead.reshape(self.form.shape))
        return out, tuple(kept[: len(memory)])

    def edges(
        self, x: FlatPoint, ahead: Array, s: float, rho: float, stays: bool = False
    ) -> tuple[tuple[Array, ...], Array]:
        """The flows, relaxed by rho (as the prox leaves them for rho = 0), and K' of them; those of x where it
        ``stays`` in place, else others."""
        adjoint = self.buffers.filled(self.form.n * self.form.d, 0.0)
        flows = x.flat_u if stays else tuple(self.buffers.take(u.size) for u in x.flat_u)
        for block, u, before in zip(self.blocks, flows, x.flat_u, strict=True):
            block.round(s, rho, FlowBuffers(ahead, u, adjoint), before)
        return flows, adjoint

    def way(self, a: FlatPoint, b: FlatPoint) -> tuple[float, float]:
        """sum_i deg_i ||dw_i||^2, and sum_e (2, to the ground 1) ||du_e||^2."""
        d, moved = self.form.d, 0.0
        for edge, here, there in zip(self.form.edges, a.flat_u, b.flat_u, strict=True):

            def flows(some: slice, here: Array = here, there: Array = there) -> float:
                du = here[some] - there[some]
                return float(du @ du)

            moved += edge.lengths * sum(dealt(flows, at_a_time(AT_A_TIME, len(here))))

        def nodes(some: slice) -> float:
            dw = (a.flat_w[some] - b.flat_w[some]).reshape(-1, d)
            return float(self.degree[some.start // d : some.stop // d] @ np.einsum("ik,ik->i", dw, dw))

        return sum(dealt(nodes, at_a_time(AT_A_TIME // d * d, len(a.flat_w)))), float(moved)

    def trim(self) -> None:
        self.buffers.trim()


def _placed(rows: Array, place: Array | None) -> Array:
    if place is None:
        return rows
    out = np.empty_like(rows)
    out[place] = rows
    return out
