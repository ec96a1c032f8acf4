"""An actor: one node, with its part of the problem, the two verbs by messages, and its state."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration, Start, ToleratesLostMessages
from ...network import Arcs, Ledger, LocalView, arcs_of
from ...saving import JsonTree
from ...terms import Array
from ..parts import (
    Part,
    PartAnswer,
    SharedRows,
    answer_of,
    lines_of,
    message_of,
    part_of,
    shared_ends,
    shared_flows,
    take,
    with_owners,
)
from .faults import Tag
from .mailbox import BACK, DOWN, UP, Endpoint, Instruction, Tally

# ---- what an actor is given ------------------------------------------------------------------------------------------
COORDINATOR = -1  # where the sums of several components meet
TO_OWNERS, TO_ENDS = 1 << 20, (1 << 20) + 1  # which exchanges of a round they are, behind all that are counted


@dataclass(frozen=True)
class SpanningTree:
    """The place of a node in the spanning forest along which sums travel."""

    parent: int  # a node, or the node itself at a root
    children: tuple[int, ...]
    beyond: bool  # a root whose sum goes on to the coordinator: there are several components
    first: bool  # the first root: the coordinator is with it


@dataclass(frozen=True)
class NodePart(Part):
    """The part of one node."""

    node: int
    label: Hashable
    tree: SpanningTree


def split(form: Form, arcs: Arcs) -> tuple[NodePart, ...]:
    """The parts of all nodes, the latent ones included."""
    nodes = np.arange(form.n)
    return tuple(
        NodePart(**vars(part_of(form, arcs, nodes == i)), node=i, label=label, tree=_tree(arcs, i))
        for i, label in enumerate(form.labels)
    )


def _tree(arcs: Arcs, i: int) -> SpanningTree:
    parent = int(arcs.parent[i])
    children = tuple(np.flatnonzero(arcs.parent == i).tolist())
    first = i == int(np.flatnonzero(arcs.parent < 0)[0])
    return SpanningTree(i if parent < 0 else parent, children, parent < 0 and arcs.components > 1, first)


# ---- the verbs -------------------------------------------------------------------------------------------------------
Hand = Callable[[int, Tag, Array], None]  # a root's sum to the coordinator


class ActorEngine:
    """The engine of one actor; see `graphreg.network.engine.Engine`.

    ``exchange`` sends the own row to the neighbours and waits for theirs. ``reduce`` sends sums up the spanning tree,
    children added in the order of their numbers, and the total down again; with several components the roots' sums are
    added up by the coordinator, which is with the first root.

    Under faults a row that has not arrived is the last one that has, or the own one before there was any; for methods
    that tolerate loss (``stale`` False) it is NaN.
    """

    def __init__(self, part: NodePart, endpoint: Endpoint, hand: Hand, stale: bool) -> None:
        self.part, self.endpoint, self.hand, self.stale = part, endpoint, hand, stale
        self.ledger = Ledger()  # of no use here: the endpoint has the tally
        self.at, self.call = 0, 0  # the round, and the exchanges of it so far
        self.me = int(np.flatnonzero(part.whole.own)[0])
        self.links, self.coupled = _links(part, self.me), arcs_of(part.form).coupled
        every, edges = np.arange(part.form.n), part.form.edges
        self.shared = shared_flows(part, every)
        self.owned = shared_flows(with_owners(part), every)  # under faults, where no row has two owners
        self.seen = {j: [SharedRows(e.block, e.other, e.own) for e in each] for j, each in self.owned.items()}
        ends = {j: [(e.block, e.own) for e in shared_ends(part, every, j)] for j in self.links}
        self.ends = {j: [SharedRows(k, rows, rows) for k, rows in each] for j, each in ends.items()}
        self.edges = {j: [SharedRows(k, *[r % edges[k].count] * 2) for k, r in each] for j, each in ends.items()}

    def begin(self, at: int) -> None:
        """A round begins."""
        self.at, self.call = at, 0

    # ---- the verbs -------------------------------------------------------------------------------------------------
    def exchange(
        self, values: Array, along: Array | None = None, *, parameters: bool = True, purpose: str = "method"
    ) -> Array:
        tag = self._next()
        out = np.full(values.shape, np.nan)
        out[self.me] = values[self.me]
        every = np.full(values.shape[1], True)
        for j, (to, _) in self.links.items():
            columns = self.coupled[to] if parameters else every
            if (along is None or along[to]) and columns.any():
                self.endpoint.send(self._number(j), tag, values[self.me][columns], purpose)
        for j, (_, back) in self.links.items():
            columns = self.coupled[back] if parameters else every
            if (along is None or along[back]) and columns.any():
                out[j, columns] = self._received(j, tag, values[self.me][columns], purpose)
        return out

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        return self._swapped(values, self.ends, along)

    def swap(self, mine: tuple[Array, ...]) -> tuple[Array, ...]:
        """The values that the other ends of all edges between two nodes have, from those of this end: rows per edge of
        each block; NaN where nothing came in this round."""
        return self._swapped(mine, self.edges, None)

    def to_owners(self, mine: tuple[Array, ...]) -> tuple[Array, ...]:
        """See `graphreg.methods.tolerance.Messages`."""
        out, tag = tuple(each.copy() for each in mine), (self.at, TO_OWNERS)
        for j, theirs in self._passed(tag, mine, self.seen).items():
            for each in self.seen[j]:
                lines_of(out)[each.block][each.other] += lines_of(theirs)[each.block][each.other]
        return out

    def to_ends(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        """See `graphreg.methods.tolerance.Messages`."""
        out, tag = tuple(each.copy() for each in flows), (self.at, TO_ENDS)
        for j, theirs in self._passed(tag, flows, self.owned).items():
            for each in self.owned[j]:
                lines_of(out)[each.block][each.other] = lines_of(theirs)[each.block][each.other]
        return out

    def _passed(
        self, tag: Tag, mine: tuple[Array, ...], shared: dict[int, list[SharedRows]]
    ) -> dict[int, tuple[Array, ...]]:
        """What neighbours send at the lines that they share, with this tag: not all nodes have such rows."""
        lines, out = lines_of(mine), dict[int, tuple[Array, ...]]()
        for j, each in shared.items():
            if len(payload := message_of(lines, each)):
                self.endpoint.send(self._number(j), tag, payload, "method")
        for j, each in shared.items():
            if any(len(one.other) for one in each):
                out[j] = tuple(np.full(x.shape, np.nan) for x in mine)
                payload, fresh = self.endpoint.receive(self._number(j), tag, "method")
                if payload is not None and fresh:
                    take(payload, lines_of(out[j]), each)
        return out

    def _swapped(
        self, values: tuple[Array, ...], shared: dict[int, list[SharedRows]], along: Array | None
    ) -> tuple[Array, ...]:
        """The values of neighbours at the rows that they share; NaN where nothing came in this round."""
        tag = self._next()
        out = tuple(np.full(each.shape, np.nan) for each in values)
        for j, each in shared.items():
            if along is None or along[self.links[j][0]]:
                self.endpoint.send(self._number(j), tag, message_of(values, each), "method")
        for j, each in shared.items():
            if along is None or along[self.links[j][1]]:
                payload, fresh = self.endpoint.receive(self._number(j), tag, "method")
                if payload is not None and fresh:
                    take(payload, out, each)
        return out

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        tag = self.at, self.call  # of the exchange before: not all nodes have such rows
        lines = lines_of(flows)
        for j, each in self.shared.items():
            if len(payload := message_of(lines, each)):
                self.endpoint.send_reliably(BACK, self._number(j), tag, payload, "method")
        for j, each in self.shared.items():
            if any(len(shared.other) for shared in each):
                message = self.endpoint.receive_reliably(BACK, self._number(j), tag, "method")
                take(message.payload, lines, each)
        return flows

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        tree, endpoint, tag = self.part.tree, self.endpoint, self._next()
        if self.at and endpoint.fault_plan is not None and endpoint.fault_plan.faults.crashing:
            raise MethodError(
                "the method sums over all nodes in a round, and a sum is never complete while a node is away; take "
                "crashes away, or a method without such sums: PrimalDual(balance=...), ADMM(rho=...), restarts=False"
            )
        total = np.asarray(values[self.me])
        for child in tree.children:
            total = total + endpoint.receive_reliably(UP, child, tag, purpose).payload
        if tree.parent != self.part.node:
            endpoint.send_reliably(UP, tree.parent, tag, total, purpose)
            total = endpoint.receive_reliably(DOWN, tree.parent, tag, purpose).payload
        elif tree.beyond:
            total = self._beyond(total, tag, purpose)
        for child in tree.children:
            endpoint.send_reliably(DOWN, child, tag, total, purpose)
        return np.array(total)[()]

    def away(self, nodes: Array) -> None:
        self.endpoint.tally.away += int(nodes[self.me])

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _next(self) -> Tag:
        self.call += 1
        return self.at, self.call

    def _number(self, j: int) -> int:
        return int(self.part.whole.ids[j])

    def _received(self, j: int, tag: Tag, own: Array, purpose: str) -> Array:
        payload, fresh = self.endpoint.receive(self._number(j), tag, purpose)
        if fresh and payload is not None:
            return payload
        if not self.stale:
            return np.full(own.shape, np.nan)
        return own if payload is None or payload.shape != own.shape else payload

    def _beyond(self, total: Array, tag: Tag, purpose: str) -> Array:
        """The sum over all components; the first root is where the coordinator is, the others send and are sent to."""
        self.hand(self.part.node, tag, np.array(total))
        whole = self.endpoint.mailbox.take(DOWN, COORDINATOR, tag).payload
        if not self.part.tree.first:
            for _ in range(2):
                self.endpoint.tally.record(purpose, COORDINATOR, int(total.size))
        return whole


def _links(part: NodePart, me: int) -> dict[int, tuple[int, int]]:
    """For each neighbour the arc to it, and the arc back."""
    arcs = arcs_of(part.form)
    p, out = arcs.pairs, dict[int, tuple[int, int]]()
    for k in np.flatnonzero(arcs.source == me).tolist():
        out[int(arcs.target[k])] = (k, (k + p) % (2 * p))
    return dict(sorted(out.items()))


# ---- the actor -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ActorAnswer(PartAnswer):
    """The answer of a part, and what the actor has sent."""

    tally: Tally


@dataclass(frozen=True)
class SavedState:
    """The rest of an actor after a crash: its packed state, and its last answer."""

    state: JsonTree
    answer: ActorAnswer


class Actor:
    """Runs a method at one node. After a round the state before it is still known, to answer for either."""

    def __init__(self, part: NodePart, method: AbstractIteration, seed: int, endpoint: Endpoint, hand: Hand) -> None:
        self.part, self.method, self.seed, self.endpoint = part, method, seed, endpoint
        self.engine = ActorEngine(part, endpoint, hand, not isinstance(method, ToleratesLostMessages))
        self.states: dict[int, Any] = {}
        self.disk: SavedState | None = None  # while the node is away

    def carry_out(self, order: Instruction) -> Any:
        """Over- and underflow in a step are for the driver to judge."""
        with np.errstate(over="ignore", invalid="ignore"):
            return getattr(self, order.what)(order.argument)

    # ---- orders ------------------------------------------------------------------------------------------------------
    def init(self, start: Start | None) -> None:
        self.engine.begin(0)
        self.states = {0: self.method.init(self._view(), start)}

    def step(self, at: int) -> None:
        """Round ``at``, from the state after the round before."""
        fault_plan = self.endpoint.fault_plan
        if fault_plan is not None and fault_plan.away(self.part.node, at):
            self._crash(at)
            return
        self.endpoint.mailbox.forget_before((at, 0))
        if self.disk is not None:
            self.states = {at - 1: replace(self.disk.state.value(self._view()), round=at - 1)}
            self.disk = None
        self.engine.begin(at)
        before = self.states[at - 1]
        self.states = {at - 1: before, at: self._stepped(before)}

    def answer(self, at: int) -> ActorAnswer:
        if self.disk is not None:
            return replace(self.disk.answer, tally=self.endpoint.tally)
        return ActorAnswer(**vars(answer_of(self.method, self.states[at], self.part)), tally=self.endpoint.tally)

    # ---- how ---------------------------------------------------------------------------------------------------------
    def _view(self) -> LocalView:
        return LocalView(self.part.form, self.engine, self.seed, self.part.whole)

    def _stepped(self, state: Any) -> Any:
        if self.endpoint.lossy and isinstance(self.method, ToleratesLostMessages):
            return self.method.step_with_lost_messages(state, self.engine)
        return self.method.step(state)

    # ---- crashes -----------------------------------------------------------------------------------------------------
    def _crash(self, at: int) -> None:
        """Away in this round: view, caches, mailbox and what was heard are gone, the state is on disk."""
        self.endpoint.tally.away += 1
        if self.disk is not None:
            return
        self.disk = SavedState(JsonTree.of(self.states[at - 1], "the state"), self.answer(at - 1))
        self.states = {}
        self.endpoint.forget()
