"""Well-connected clusters (GTV minimisation, Definition 1), decided by maximum flows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import in_time
from ..base.messages import did_you_mean, few, unknown_labels
from ..base.tables import ResultWithAssumptions
from ..errors import GraphError
from ..inputs import Graph, groups_of, plain_label
from ..terms import Array
from .arguments import in_order
from .routing import CutGraph, Multiple, largest_multiple

SHOWN = 6  # nodes that are named in a printed set


@dataclass(frozen=True, repr=False)
class WellConnected(ResultWithAssumptions):
    """The answer to whether the demands of a cluster can be routed to one of its nodes, with the proof of it.

    Attributes
    ----------
    holds : bool
        Whether for some i0, ``demand(A) < cut(A)`` for every nonempty set A of nodes without i0 (Definition 1, (35)).
        Equality does not hold.
    margin : float
        t*, the largest t for which t times the demands can be routed from every node to some i0; ``holds`` is t* > 1.
        inf for a single node and where there is nothing to route; 0 where the graph is not connected.
    source : hashable
        i0, the node for which t* is reached.
    tightest : tuple
        The set A without i0 that allows no more than t*: ``cut(A) = t* demand(A)``.
    capacity, demand : float
        The two sides of (35) for it: cut(A), the sum of the weights of the edges that leave it, and demand(A).
    flow : dict
        The certificate: a flow per edge, (tail, head) -> number, positive from tail to head and at most the weight of
        the edge. At every node but i0 at least ``routed`` times its demand flows out, net.
    routed : float
        t* itself, less 1e-9 of it at most (1 where that is nearer); 0 where t* is inf or 0.
    parts : tuple of tuples
        The connected components.
    assumed : tuple of str
    """

    holds: bool
    margin: float
    source: Hashable
    tightest: tuple[Hashable, ...]
    capacity: float
    demand: float
    flow: dict[tuple[Hashable, Hashable], float] = field(repr=False)
    routed: float
    parts: tuple[tuple[Hashable, ...], ...] = field(repr=False)
    _obstacles: tuple[Array, ...] = field(repr=False)
    _labels: tuple[Hashable, ...] = field(repr=False)

    @property
    def violating(self) -> tuple[Hashable, ...]:
        """The set A that breaks (35) for the best i0; empty where it holds."""
        return () if self.holds else self.tightest

    def against(self, node: Hashable) -> tuple[Hashable, ...]:
        """A set without the node that allows no more than t*: where (35) does not hold, it breaks (35) for i0 = node,
        and so rules the node out as i0. (Empty for the node itself where it is alone.)"""
        if node not in self._labels:
            raise GraphError(f"{node!r} is not a node{did_you_mean(node, self._labels)}")
        i = self._labels.index(node)
        found = (inside for inside in self._obstacles if not inside[i])
        inside = next(found, np.arange(len(self._labels)) != i)
        return tuple(self._labels[j] for j in np.flatnonzero(inside))

    def sentence(self) -> str:
        """The answer in words."""
        if len(self.parts) > 1:
            shown = "; ".join(few(map(repr, part), SHOWN) for part in self.parts[:3]) + "; ..." * (len(self.parts) > 3)
            return f"not connected: it falls into {len(self.parts)} parts ({shown})"
        sides = f"capacity {self.capacity:.4g} against demand {self.demand:.4g}"
        if not self.holds:
            tie = " (equal, or equal up to rounding)" if self.capacity >= self.demand else ""
            return f"{self._set()} {'is' if len(self.tightest) == 1 else 'are'} too loosely connected: {sides}{tie}"
        if math.isinf(self.margin):
            return "well-connected, with nothing to route" if self.flow else "well-connected, a single node"
        return f"well-connected: tightest at {self._set()}, {sides}"

    def _set(self) -> str:
        inside = set(self.tightest)
        rest = tuple(x for x in self._labels if x not in inside)
        if len(rest) < len(inside) > 1:
            return f"all nodes but {few(map(repr, rest), SHOWN)}"
        return f"node{'s' * (len(inside) > 1)} {few(map(repr, self.tightest), SHOWN)}"

    def __repr__(self) -> str:
        word = "well-connected" if self.holds else "not well-connected"
        return f"<WellConnected: {word}, margin {self.margin:.4g}, source {self.source!r}>"

    def _lines(self) -> list[str]:
        word = "well-connected" if self.holds else "not well-connected"
        times = "any multiple of" if math.isinf(self.margin) else f"{self.margin:.6g} times"
        head = f"{word}: {times} the demands can be routed to {self.source!r}"
        return [head, self.sentence()]


@in_time
def well_connected(graph: Any, demand: Any, *, seconds: float | None = None) -> WellConnected:
    """The well-connectedness of a cluster (GTV minimisation, Definition 1), by maximum flows.

    With demands d_i (there: the boundary weight at i + beta_i |dC|/alpha + delta_i/lambda) that is: for some node i0,
    ``sum over i in A of d_i  <  sum of the weights of the edges between A and the rest`` for every nonempty set A of
    nodes without i0. (Definition 1 speaks of every A; for the empty one it would be 0 < 0.) By max-flow min-cut this is
    a connected graph and a largest t > 1 for which t d can be routed to i0. The largest t is exact, by Newton's method
    on minimum cuts; a set that stops one i0 rules out all i0 outside it, so that few need be tried.

    Which side of 1 it lies on is decided exactly where weights and demands are whole numbers, or all multiples of one
    power of two. For other numbers what lies within about 1e-12 of equality, as a share of the sum of all weights,
    counts as equal, and equality does not hold: where ``holds``, (35) does.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        The cluster alone, with the edge weights A_e as capacities.
    demand : number, mapping, array or Series
        d_i >= 0, in the units of the weights: one for all nodes, one per label, or in node order. 0 is legal; inf too,
        for a node that can be i0 alone.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Returns
    -------
    WellConnected
        With the flow, or the sets that break (35).

    Raises
    ------
    GraphError
        For a demand that is negative or not a number (the node is named), or is missing.
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> gr.theory.well_connected(graph, {"a": 0.5, "b": 0.0, "c": 0.0, "d": 0.0}).holds
    True
    """
    graph = Graph.of(graph)
    return examine(graph, read_demand(graph, demand))


def examine(graph: Graph, demand: Array) -> WellConnected:
    """`well_connected` of checked arguments."""
    parts = tuple(tuple(graph.labels[i] for i in part) for part in groups_of(graph.components()))
    routing = CutGraph(graph.n_nodes, graph.tail, graph.head, graph.weight)
    found = _multiple(routing, demand) if len(parts) == 1 else _apart(graph, demand)
    finite = np.where(np.arange(graph.n_nodes) == found.sink, 0.0, demand)
    holds = found.t > 1.0 and (math.isinf(found.t) or routing.route(found.sink, finite, strictly=True)[0])
    routed, flow = _certificate(routing, found, finite, holds)
    labels, inside = tuple(graph.labels), found.tight
    return WellConnected(
        holds,
        found.t,
        labels[found.sink],
        _labels(graph, inside),
        routing.cut(inside),
        float(demand[inside].sum()),
        dict(zip(graph.edges(), flow.tolist(), strict=True)),
        routed,
        parts,
        found.obstacles,
        labels,
        assumed=_assumed(routing, demand),
    )


def _certificate(routing: CutGraph, found: Multiple, demand: Array, holds: bool) -> tuple[float, Array]:
    """A flow that routes (almost) t times the demands, and that multiple."""
    if math.isinf(found.t) or found.t == 0.0:
        return 0.0, np.zeros(len(routing.tail))
    for short in (0.0, 1e-12, 1e-9, 1e-6):
        t = found.t * (1.0 - short)
        if holds and t <= 1.0:
            return 1.0, routing.route(found.sink, demand, strictly=True)[2]
        routed, _, flow = routing.route(found.sink, t * demand)
        if routed:
            return t, flow
    return 0.0, np.zeros(len(routing.tail))


def _multiple(routing: CutGraph, demand: Array) -> Multiple:
    found = largest_multiple(routing, np.where(np.isinf(demand), np.inf, 0.0), np.where(np.isinf(demand), 0.0, demand))
    lost = math.isinf(found.t) and found.t < 0  # two infinite demands, or weights lost beside much larger ones
    return replace(found, t=0.0) if lost else found


def _apart(graph: Graph, demand: Array) -> Multiple:
    """The multiple of a graph that falls apart: nothing is routed from the parts beside the largest."""
    component = graph.components()
    largest = int(np.argmax(np.bincount(component)))
    away = component == int(largest == 0)  # the first of the others
    return Multiple(0.0, int(np.argmax(np.where(component == largest, demand, -1.0))), away, (away, ~away))


def _assumed(routing: CutGraph, demand: Array) -> tuple[str, ...]:
    finite = np.append(routing.capacity, demand[np.isfinite(demand)]) * routing.units
    whole = bool((finite == np.floor(finite)).all())
    how = "exactly (all numbers are multiples of one power of two)" if whole else "up to rounding to whole units"
    unit = "" if whole else f" of {1.0 / routing.units:.1e}; what is nearer to equality counts as equal"
    return (
        "the weights and demands as given: a statement about this graph, with nothing random in it",
        f"t* > 1 is decided {how}{unit}; equality in (35) does not hold",
    )


def _labels(graph: Graph, inside: Array) -> tuple[Hashable, ...]:
    return tuple(graph.labels[i] for i in np.flatnonzero(inside))


def read_demand(graph: Graph, demand: Any) -> Array:
    """The demands in node order, (n,)."""
    if hasattr(demand, "to_dict"):  # a Series, by label
        demand = demand.to_dict()
    if isinstance(demand, Mapping):
        given = {plain_label(label): value for label, value in demand.items()}
        for said in unknown_labels("demand", given, graph.index):
            raise GraphError(said)
        demand = in_order("demand", given, graph.labels, GraphError, "; 0 is legal")
    values = checks.numbers(demand, "demand", "numbers: one, one per label, or in node order", GraphError)
    if values.ndim == 0:
        values = np.full(graph.n_nodes, float(values))
    if values.shape != (graph.n_nodes,):
        raise GraphError(f"demand has the shape {values.shape} for {graph.n_nodes} nodes; give one number per node")
    bad = np.flatnonzero(~(values >= 0))
    if bad.size:
        raise GraphError(
            f"the demand of the node {graph.labels[bad[0]]!r} is {values[bad[0]]:g}; demands are numbers, at least 0"
        )
    return values
