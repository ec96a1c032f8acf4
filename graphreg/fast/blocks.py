"""The edge blocks of a form as a round takes them: each by a compiled kernel, or as the block itself says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np

from ..base.gate import dealt
from ..terms import Array, EdgeBlock
from .compiler import compiled, specialised, width_of
from .edges import EdgeArrays, FlowBuffers, edge_adjoint, edge_round, kind_of
from .order import EdgeOrder, Sweep
from .sweeps import Nodes, Way, run_adjoint, swept_round

NOTHING = np.zeros(0)
NO_NODES, NO_RUNS = Nodes(NOTHING, 1.0, *(NOTHING,) * 6), np.zeros(0, dtype=np.int32)


class AbstractRoundBlock(ABC):
    """A block of edges between two rounds; its flows are one flat array, in an order of its own."""

    size: int  # of the flat array

    @abstractmethod
    def flat_flows(self, rows: Array) -> Array:
        """Flows (m, k) in the order of the block as a flat array."""

    @abstractmethod
    def rows_of_flat(self, flat: Array) -> Array:
        """The way back, (m, k)."""

    @abstractmethod
    def round(self, s: float, rho: float, flows: FlowBuffers, before: Array) -> None:
        """The prox of sigma g* at ``before`` + sigma (K ahead - center), sigma = 1/(2 s), relaxed by rho (not for
        rho = 0), comes into u, which ``before`` may be, and K' of it is added to ``adjoint``."""

    @abstractmethod
    def add_adjoint(self, u: Array, adjoint: Array) -> None:
        """K'u is added to ``adjoint``, with the bits that `round` leaves."""


@dataclass(frozen=True)
class CompiledBlock(AbstractRoundBlock):
    """Edges on all coordinates, with a penalty that has a kernel."""

    edge: EdgeBlock
    order: EdgeOrder
    kind: int
    c: Array
    center: Array
    d: int
    strict: bool

    @staticmethod
    def of(edge: EdgeBlock, order: EdgeOrder, d: int, strict: bool = False) -> CompiledBlock | None:
        """None where the block needs its own prox; a penalty of the user's always does."""
        kind = kind_of(edge, d)
        if kind is None:
            return None
        center = NOTHING if edge.center is None else order.of(edge.center)
        c = order.of(edge.weight)
        even = order.sweep is not None and len(c) > 0 and bool((c == c[0]).all())
        return CompiledBlock(edge, order, kind, c[:1].copy() if even else c, center, d, strict)

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.order.tail) * self.d

    def flat_flows(self, rows: Array) -> Array:
        return self.order.of(rows)

    def rows_of_flat(self, flat: Array) -> Array:
        return self.order.back(flat, self.d)

    def round(self, s: float, rho: float, flows: FlowBuffers, before: Array) -> None:
        if self.order.sweep is not None:
            if before is not flows.u:
                flows.u[:] = before
            self.sweep(s, rho, flows, NO_NODES)
            return
        o, d, sigma = self.order, self.d, 1.0 / self.edge.lengths / s
        flags = int(self.edge.ground), int(self.center.size > 0)
        kernel = specialised(edge_round, width_of(d), self.kind, *flags, strict=self.strict)

        def part(some: slice) -> None:
            numbers = slice(some.start * d, some.stop * d)
            u = flows.u[numbers]
            if before is not flows.u:
                u[:] = before[numbers]
            edges = EdgeArrays(o.tail[some], o.head[some], self.c[some], self.center[numbers])
            kernel(edges, sigma, float(rho), FlowBuffers(flows.ahead, u, flows.adjoint), np.empty(d), d)

        for stage in o.stages:
            dealt(part, stage)

    def sweep(self, s: float, rho: float, flows: FlowBuffers, nodes: Nodes, rounds: int = 1) -> None:
        """Rounds of edges that a sweep takes, and of the nodes where there are any."""
        order, runs, done = cast(Sweep, self.order.sweep), self.order.runs, np.zeros(rounds, dtype=np.int64)
        first, tail, head = (NO_RUNS, self.order.tail, self.order.head) if runs is None else vars(runs).values()
        even = int(len(self.c) < len(self.order.tail))
        flags = int(self.center.size > 0), int(nodes.degree.size > 0), even
        kernel = specialised(swept_round, int(runs is not None), self.kind, flags)
        way = Way(order.group, order.group_end, order.lag, first)
        kernel(way, EdgeArrays(tail, head, self.c, self.center), (0.5 / s, float(rho)), flows, nodes, done)

    def add_adjoint(self, u: Array, adjoint: Array) -> None:
        o = self.order
        if o.runs is not None:
            compiled(run_adjoint)(o.runs.first, o.runs.tail, o.runs.head, u, adjoint)
        else:
            kernel, d, ground = compiled(edge_adjoint, True), self.d, int(self.edge.ground)

            def part(some: slice) -> None:
                kernel(o.tail[some], o.head[some], u[some.start * d : some.stop * d], adjoint, d, ground)

            for stage in o.stages:
                dealt(part, stage)


@dataclass(frozen=True)
class PlainBlock(AbstractRoundBlock):
    """Edges whose penalty takes whole arrays, in the order of the block."""

    edge: EdgeBlock
    c: Array
    width: int
    shape: tuple[int, int]  # of the parameters

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.c) * self.width

    def flat_flows(self, rows: Array) -> Array:
        return np.ascontiguousarray(rows, dtype=float).reshape(-1)

    def rows_of_flat(self, flat: Array) -> Array:
        return flat.reshape(-1, self.width)

    def round(self, s: float, rho: float, flows: FlowBuffers, before: Array) -> None:
        sigma, u = 1.0 / self.edge.lengths / s, self.rows_of_flat(before)
        v = self.edge.difference(flows.ahead.reshape(self.shape))
        v *= sigma
        v += u
        out = self.edge.penalty.dual_prox(v, np.full(len(self.c), sigma), self.c)
        if rho != 0.0:
            out = u + rho * (out - u)
        self.rows_of_flat(flows.u)[...] = out
        self.add_adjoint(flows.u, flows.adjoint)

    def add_adjoint(self, u: Array, adjoint: Array) -> None:
        self.edge.add_adjoint(self.rows_of_flat(u), adjoint.reshape(self.shape))
