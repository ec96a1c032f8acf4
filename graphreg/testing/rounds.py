"""The problems and views that the laws of methods run on: small problems, one of each kind that some method asks
for; views whose engine notes what it was asked; states compared bit for bit, and where two states differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, cast

import networkx as nx
import numpy as np

from ..compiling import Compiler
from ..form import Form, build
from ..inputs import NodeData
from ..methods import AbstractIteration, Exact
from ..network import NUMBER, PURPOSES, InProcess, Ledger, LocalView, arcs_of
from ..running import Budget, Solution, solve
from ..saving import JsonTree
from ..terms import Array, Consensus, Hierarchy, Matrix, Model, NodePenalty, TotalVariation
from ..terms.losses import HuberLoss, LogisticLoss, QuantileLoss, SquaredLoss
from ..terms.penalties import L1, L2, SquaredL2

EXACT = 1e-8  # the relative gap of the optima
NODES, EACH = 7, 6  # no graph below has as many edges as nodes


@dataclass(frozen=True)
class Case:
    """A problem by name."""

    name: str
    form: Form

    @cached_property
    def optimum(self) -> Solution:
        """The solution that answers are held to."""
        return solve(self.form, Exact(), Budget(EXACT), Compiler(self.form))

    def elsewhere(self, node: int) -> Form:
        """The form with other data at one node: its offsets are shifted."""
        moved = [
            replace(b, offset=b.offset + 0.5 * (b.node == node).reshape(-1, *[1] * (b.offset.ndim - 1)))
            for b in self.form.samples
        ]
        return replace(self.form, samples=tuple(moved))


@lru_cache(maxsize=1)
def small_problems(seed: int) -> tuple[Case, ...]:
    """Losses that are smooth, strongly convex, and have kinks; penalties on graphs, trees and constraints; a node
    without data, two components, an edge on one coordinate. The last ones are kept, with their optima."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((NODES * EACH, 2))
    node = np.repeat(np.arange(NODES), EACH)
    truth = np.where((node < 4)[:, None], [1.0, -0.5], [-0.5, 1.0])
    y = (X * truth).sum(axis=1) + 0.3 * rng.standard_normal(len(X))
    path, chord = nx.path_graph(NODES), nx.cycle_graph(NODES)
    chord.add_edge(0, 3)
    parts = nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6)])
    numbers, classes = NodeData.from_arrays(X, y, node), NodeData.from_arrays(X, (y > 0).astype(int), node)
    fewer = NodeData.from_arrays(X[node != 2], y[node != 2], node[node != 2])
    ridge = 0.1 * NodePenalty(SquaredL2())
    first = numbers.features[:1]
    models: dict[str, Any] = {
        "least squares, l2 on a path": SquaredLoss(numbers) + 0.2 * TotalVariation(path, L2()) + ridge,
        "logistic, squared on a ring": LogisticLoss(classes) + 0.3 * TotalVariation(chord, SquaredL2()) + ridge,
        "least squares, known clusters": SquaredLoss(numbers)
        + Hierarchy({"a": [0, 1, 2, 3], "b": [4, 5, 6]}, weights=(0.5, 0.5)),
        "least squares, consensus": SquaredLoss(numbers) + Consensus(chord),
        "logistic, consensus": LogisticLoss(classes) + Consensus(path) + ridge,
        "quantiles, l1 on a path": QuantileLoss(numbers, tau=0.4) + 0.1 * TotalVariation(path, L1()) + ridge,
        "Huber, two parts, a node without data": HuberLoss(fewer)
        + 0.2 * TotalVariation(parts, L2(), features=first)
        + 0.05 * TotalVariation(parts, SquaredL2())
        + ridge,
    }
    return tuple(Case(name, build(Model.of(model))) for name, model in models.items())


# ---- views -----------------------------------------------------------------------------------------------------------
ROUNDING = 1e-9  # of what may differ where nothing should
SIZE = 1e-2  # of a disturbance


@dataclass
class CountingEngine:
    """One process; counts on its own what is sent. ``sent`` are the arcs of each exchange since it was last emptied."""

    ledger: Ledger
    messages: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PURPOSES, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PURPOSES, 0))
    sent: list[Array] = field(default_factory=list)
    reductions: int = 0

    def exchange(self, values: Array, along: Array | None = None, *, parameters: bool = True, **more: Any) -> Array:
        arcs = self.ledger.arcs
        assert arcs is not None
        every = arcs.numbers > 0 if parameters else np.full(len(arcs.source), True)
        mask = every if along is None else np.asarray(along, dtype=bool)
        numbers = arcs.numbers if parameters else np.full(len(mask), values.shape[1])
        self._count(more.get("purpose", "method"), int(mask.sum()), int(numbers[mask].sum()))
        self.sent.append(mask)
        return InProcess(self.ledger).exchange(values, along, parameters=parameters, **more)

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        rows = zip(values, toward, strict=True)
        numbers = sum(each.shape[1] * np.bincount(to, minlength=len(along)) for each, to in rows)
        self._count("method", int(along.sum()), int((numbers * along).sum()))
        self.sent.append(along)
        return InProcess(self.ledger).swap_ends(values, toward, along)

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        arcs = self.ledger.arcs
        if arcs is not None and arcs.returned is not None:
            self._count("method", *arcs.sizes[1])
            self.sent.append(arcs.returned > 0)
        return InProcess(self.ledger).send_back(flows)

    def reduce(self, values: Array, purpose: str = "adaptation") -> Array:
        arcs = self.ledger.arcs
        assert arcs is not None
        hops = 2 * (arcs.n - arcs.components) + 2 * (arcs.components - 1)  # up and down, and between the roots
        self._count(purpose, hops, hops * prod(values.shape[1:]))
        self.reductions += 1
        return InProcess(self.ledger).reduce(values, purpose)

    def away(self, nodes: Array) -> None:
        self.ledger.away(nodes)

    def _count(self, purpose: str, messages: int, numbers: int) -> None:
        self.messages[purpose] += messages
        self.bytes[purpose] += NUMBER * numbers


def view_of(form: Form, seed: int = 0) -> tuple[LocalView, CountingEngine]:
    """A fresh view of the whole graph."""
    engine = CountingEngine(Ledger(arcs_of(form), form.labels))
    return LocalView(form, engine, seed), engine


def after(method: AbstractIteration, view: LocalView, rounds: int) -> Any:
    """The state after some rounds."""
    state = method.init(view, None)
    for _ in range(rounds):
        state = method.step(state)
    return state


# ---- states ----------------------------------------------------------------------------------------------------------
def bits(value: Any) -> Any:
    """All that a value consists of, so that two are equal where they have the same bits."""
    packed = JsonTree.of(value, "state")
    return packed.tree, [(a.dtype.str, a.shape, a.tobytes()) for a in packed.arrays], packed.generators


def moved(state: Any, view: LocalView, change: Callable[[Array], Array] = np.ndarray.copy) -> Any:
    """The state as it comes out of a checkpoint, on another view, with its arrays changed."""
    packed = JsonTree.of(state, "state")
    return replace(packed, arrays=[change(a) for a in packed.arrays]).value(view)


def disturbed(array: Array, n: int, node: int, rng: np.random.Generator) -> Array:
    """An array of a state with other numbers in the row of one node, where it has n rows of numbers."""
    out = array.copy()
    if array.ndim and len(array) == n and array.dtype.kind == "f":
        out[node] += SIZE * (1.0 + np.abs(out[node])) * rng.standard_normal(out[node].shape)
    return out


def leaves(value: Any, where: str = "state") -> Iterator[tuple[str, Any]]:
    """Every array and number of a state, with its place."""
    if isinstance(value, LocalView):
        return
    if is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from leaves(getattr(value, f.name), f"{where}.{f.name}")
    elif isinstance(value, (tuple, list)):
        for k, each in enumerate(value):
            yield from leaves(each, f"{where}[{k}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{where}[{key!r}]")
    elif isinstance(value, (np.ndarray, int, float, np.generic)):
        yield where, value


def reached(engine: CountingEngine, node: int) -> set[int]:
    """The nodes that may know of one: those to which messages went, exchange after exchange."""
    arcs, known = engine.ledger.arcs, {node}
    assert arcs is not None
    for mask in engine.sent:
        known |= {int(j) for i, j in zip(arcs.source[mask], arcs.target[mask], strict=True) if int(i) in known}
    return known


def rows_of(form: Form, size: int) -> list[list[set[int]]]:
    """The owners of the rows of an array of so many rows, under each reading: nodes, those with data, samples, edges of
    a block and these once per end, arcs, pairs."""
    owners: list[Array] = [np.arange(form.n)[:, None]]
    for block in form.samples:
        owners += [block.node[:, None], np.unique(block.node)[:, None]]
        owners += [batch.nodes[:, None] for batch in block.stacks or ()]
    edges = [np.stack([e.tail, e.head], axis=1) for e in form.edges if e.map.edges is not None]
    owners += [*edges, *(np.tile(each, (2, 1)) for each in edges)]
    arcs = arcs_of(form)
    ends = np.stack([arcs.source, arcs.target], axis=1)
    owners += [ends, ends[: arcs.pairs]]
    out = [[set(row) for row in each.tolist()] for each in owners if len(each) == size]
    return out + [_ends(cast(Matrix, block.map)) for block in form.unlike_edges if block.count == size]


def _ends(rows: Matrix) -> list[set[int]]:
    """The nodes that each row touches."""
    out = [set[int]() for _ in range(rows.count)]
    node, _, _, line = rows.ways
    for r, i in zip((line // rows.k).tolist(), node.tolist(), strict=True):
        out[r].add(i)
    return out


def strays(form: Form, one: Any, two: Any, known: set[int]) -> list[str]:
    """The differences of two states that no node in ``known`` can account for. Arrays whose rows have no such
    reading say nothing."""
    out: list[str] = []
    for (where, a), (_, b) in zip(leaves(one), leaves(two), strict=True):
        differs = ~np.isclose(a, b, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
        if np.ndim(a) == 0:
            out += [f"{where}, a number"] if differs else []
            continue
        rows = set(np.flatnonzero(differs.any(axis=tuple(range(1, differs.ndim)))).tolist())
        readings = rows_of(form, len(differs))
        foreign = [k for k in sorted(rows) if readings and not any(each[k] & known for each in readings)]
        out += [f"{where}, rows {foreign}"] if foreign else []
    return out
