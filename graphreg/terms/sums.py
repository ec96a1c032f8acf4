"""The sums over edges and nodes in which penalties stand: TotalVariation, Consensus, NodePenalty."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.declaring import in_library
from ..base.messages import shown, unknown_labels, unmatched
from ..checks import numbers
from ..errors import GraphError, TermError
from ..inputs import Graph, Labels, in_place, is_series, places_of
from .blocks import EdgeBlock, Lowered
from .calculus import AbstractTerm, Strength, positive
from .maps import Differences, Selection
from .penalties.base import AbstractConstraint, AbstractOneSided, AbstractPenalty
from .penalties.squared_l2 import SquaredL2
from .penalties.tried import refuse_uneven
from .penalties.zero import Zero
from .records import IN_GRAPH, TO_GROUND, Array, Coordinate, Space
from .rows import w


def check_penalty_argument(penalty: Any, where: str) -> None:
    if isinstance(penalty, type):
        raise TermError(f"{where} takes a penalty, got the class {penalty.__name__}; write {penalty.__name__}(...)")
    if not isinstance(penalty, AbstractPenalty):
        raise TermError(f"{where} takes a penalty such as gr.L2(), got {penalty!r}")


def check_between_nodes(penalty: Any, where: str) -> None:
    check_penalty_argument(penalty, where)
    if isinstance(penalty, AbstractOneSided):
        raise TermError(
            f"{penalty.called()} may be one-sided (its kind does not promise that phi(-z) = phi(z)) and cannot stand "
            "on edges, which have no direction; use it in NodePenalty, or along the arrows of a DiGraph as "
            "penalty(gr.w.across(graph)); on these edges use an even penalty, as L1() or L2(), or a set that contains "
            "-z with every z: Ball, or a class of your own derived from AbstractConstraint"
        )


def between_nodes(penalty: AbstractPenalty, k: int) -> AbstractPenalty:
    """The penalty on k coordinates of undirected edges, where it is even there; what others wrote is tried."""
    phi = penalty.acting_on(k)
    if not in_library(type(phi)):
        refuse_uneven(phi.called(), phi.value, k)
    return phi


def check_strength(penalty: AbstractPenalty, strength: Strength, weighted: bool, where: str, remedy: str) -> None:
    """A constraint takes no strength and no weights."""
    if not isinstance(penalty, AbstractConstraint):
        return
    name = penalty.called()
    if strength != Strength():
        got = f"got {strength.text()} in all (before it, and before sums that it is in); leave it out"
        raise TermError(f"{where} is a constraint ({name}) and takes no strength, {got}")
    if weighted:
        raise TermError(f"{where} is a constraint ({name}) and takes no weights; {remedy}")


class AbstractPenaltyTerm(AbstractTerm):
    """A sum of a penalty over edges, nodes or rows."""

    penalty: AbstractPenalty

    def takes_strength(self) -> bool:
        return not isinstance(self.penalty, AbstractConstraint)


class AbstractGraphTerm(AbstractTerm):
    """A sum over the edges of a graph."""

    graph: Any

    def labels(self) -> Labels:
        return self.graph.labels

    @abstractmethod
    def on_graph(self, change: Callable[[Graph], Graph]) -> AbstractGraphTerm:
        """The term on the graph that ``change`` makes of its own."""

    def squared(self) -> AbstractGraphTerm:
        """The term with 1/2 ||.||^2 in place of a penalty that has kinks; itself where it has none."""
        return self


@dataclass(frozen=True, repr=False)
class TotalVariation(AbstractPenaltyTerm, AbstractGraphTerm):
    """Generalised total variation: ``sum over edges e = (i, j) of A_e phi(w_i - w_j)``.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        A_e is the edge attribute ``weight`` (1 where it is missing).
    penalty : Penalty
        An even penalty phi: L2 is the network lasso, SquaredL2 is MOCHA's (GTV minimisation, Section III).
    features : sequence of str, optional
        The coordinates that phi takes; all of them by default, the intercept included.

    Examples
    --------
    >>> term = 0.1 * gr.TotalVariation(graph, gr.L2())
    >>> gr.Problem(gr.SquaredLoss(data) + term).solve().clusters().labels
    {'a': 0, 'b': 0, 'c': 1, 'd': 1}
    """

    graph: Any
    penalty: AbstractPenalty
    features: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_between_nodes(self.penalty, "TotalVariation")
        object.__setattr__(self, "graph", Graph.of(self.graph))

    def lower(self, space: Space, strength: Strength) -> Lowered:
        name = f"TotalVariation({self.penalty.called()})"
        return graph_edges(self.graph, self.penalty, self.features, strength, space, name)

    def on_graph(self, change: Callable[[Graph], Graph]) -> TotalVariation:
        graph = change(self.graph)
        return replace(self, graph=graph if self.takes_strength() else unweighted(graph))

    def squared(self) -> TotalVariation:
        return replace(self, penalty=SquaredL2()) if self.takes_strength() else self


@dataclass(frozen=True, repr=False)
class Consensus(AbstractGraphTerm):
    """Consensus: the indicator of ``w_i = w_j`` on every edge of a connected graph.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        Without weights.
    features : sequence of str, optional
        The coordinates that are shared; the others vary by node. All of them by default.

    Examples
    --------
    >>> one_model = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(graph))
    >>> one_model.solve().table().round(3)
           rain   temp
    node
    a     0.115 -0.071
    b     0.115 -0.071
    c     0.115 -0.071
    d     0.115 -0.071
    """

    graph: Any
    features: Sequence[str] | None = None

    def __post_init__(self) -> None:
        graph = Graph.of(self.graph)
        object.__setattr__(self, "graph", graph)
        apart = np.flatnonzero(graph.components() != graph.components()[0])
        if len(apart):
            raise GraphError(
                f"the graph of Consensus is disconnected: no path leads from {graph.labels[0]!r} to "
                f"{graph.labels[apart[0]]!r}; add edges, give it a connected graph of its own over the same nodes (a "
                "star), use TotalVariation(graph, Zero()), one value per component, or pose a problem for each"
            )

    def lower(self, space: Space, strength: Strength) -> Lowered:
        return graph_edges(self.graph, Zero(), self.features, strength, space, "Consensus")

    def on_graph(self, change: Callable[[Graph], Graph]) -> Consensus:
        return replace(self, graph=unweighted(change(self.graph)))

    def takes_strength(self) -> bool:
        return False


@dataclass(frozen=True, repr=False)
class NodePenalty(AbstractPenaltyTerm):
    """A penalty on every node: ``sum over nodes i of weight_i phi(w_i - center)``; latent nodes have none.

    Parameters
    ----------
    penalty : Penalty
        phi; need not be even.
    weights : mapping, optional
        A positive weight per node label; 1 by default.
    center : array or mapping, optional
        What w_i is compared with, of the size of ``features``, or one such array per node label; 0 by default.
    features : sequence of str, optional
        The coordinates that phi takes; by default all but the intercept.
    nodes : label or list of labels, optional
        The nodes that are penalised, nodes of the problem, as in ``w.at(nodes)``; all by default.

    Examples
    --------
    >>> sparse = gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.NodePenalty(gr.L1()))
    >>> sparse.solve().table().round(2)
          rain  temp
    node
    a     0.60   0.0
    b     0.89   0.0
    c    -0.55   0.0
    d    -0.86   0.0
    """

    penalty: AbstractPenalty
    weights: Mapping[Hashable, float] | None = None
    center: Any = None
    features: Sequence[str] | None = None
    nodes: Any = None

    def __post_init__(self) -> None:
        check_penalty_argument(self.penalty, "NodePenalty")
        object.__setattr__(self, "nodes", w.at(self.nodes).at)
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise TermError(
                "the weights of NodePenalty must be a mapping from node labels to positive numbers, "
                f"got {type(self.weights).__name__}; for one number write number * NodePenalty(...), for a Series use "
                ".to_dict()"
            )

    def lower(self, space: Space, strength: Strength) -> Lowered:
        name = f"NodePenalty({self.penalty.called()})"
        check_strength(self.penalty, strength, self.weights is not None, name, "leave weights= out")
        features = space.select(self.features, name)
        if features is None and len(space.penalised) < len(space.coordinates):
            features = space.penalised
        k = len(space.coordinates) if features is None else len(features)
        if k == 0:
            raise TermError(f"{name} has no coordinates to act on: node penalties skip the intercept; name features=")
        phi, places = self.penalty.acting_on(k), self._places(space, name)
        weights, centers = self._weights(places, name), self._centers(places, space, features, name)
        nodes = Selection(np.array([*places.values()], dtype=np.intp), features)
        return Lowered(edges=(EdgeBlock(phi, strength, nodes, weights, centers, TO_GROUND, name),))

    def _places(self, space: Space, name: str) -> Mapping[Hashable, int]:
        """The places of the nodes in the space."""
        if self.nodes is None:
            return space.index
        for said in unknown_labels(f"the nodes of {name}", self.nodes, space.index):
            raise TermError(said)
        places = {label: space.index[label] for label in self.nodes}
        if not 0 < len(places) == len(self.nodes):
            raise TermError(f"the nodes of {name} must be distinct labels, at least one, got {shown(self.nodes)}")
        return places

    def _weights(self, nodes: Mapping[Hashable, int], name: str) -> Array:
        if self.weights is None:
            return np.ones(len(nodes))
        weights = by_label(self.weights, f"the weights of {name}", nodes)
        return np.array([positive(weight, f"the weight of the node {x!r}") for x, weight in weights])

    def _centers(self, nodes: Mapping[Hashable, int], space: Space, features: Array | None, name: str) -> Array | None:
        if self.center is None:
            return None
        names = [space.coordinates[j] for j in (range(len(space.coordinates)) if features is None else features)]
        if isinstance(self.center, Mapping):
            centers = by_label(self.center, f"the centers of {name}", nodes)
            return np.array([_center(each, names, f"the center of {name} at the node {x!r}") for x, each in centers])
        return np.tile(_center(self.center, names, f"the center of {name}"), (len(nodes), 1))


def by_label(
    given: Mapping[Hashable, Any], what: str, labels: Collection[Hashable], of: str = "node"
) -> list[tuple[Hashable, Any]]:
    """The entries of a mapping: every label must have one, and every entry a label."""
    for said in unmatched(what, given, dict.fromkeys(labels), of):
        raise TermError(said)
    return [(label, given[label]) for label in labels]


def _center(value: Any, names: list[Coordinate], what: str) -> Array:
    """The center: as many finite numbers as there are coordinates; those of a pandas Series by their names, where it
    has names."""
    k = len(names)
    if is_series(value) and list(value.index) != list(range(len(value))):
        value = [entry for _, entry in by_label(dict(value), what, names, "feature")]
    row = numbers(value, what, f"{k} finite numbers", TermError)
    if row.shape != (k,) or not np.isfinite(row).all():
        shown = f"the shape {row.shape}" if row.ndim > 1 else repr(value)
        raise TermError(f"{what} must be {k} finite numbers, got {shown}")
    return row


def unweighted(graph: Graph) -> Graph:
    """The graph with all weights 1, as constraints take it."""
    return replace(graph, weight=np.ones(graph.n_edges))


def graph_edges(
    graph: Graph, penalty: AbstractPenalty, features: Sequence[str] | None, strength: Strength, space: Space, name: str
) -> Lowered:
    """The edges of a graph, each from the node that comes first in the space to the other."""
    check_strength(penalty, strength, bool(np.any(graph.weight != 1.0)), name, "pass a graph without weights")
    columns = space.select(features, name)
    penalty = between_nodes(penalty, len(space.coordinates) if columns is None else len(columns))
    tail, head = graph.tail, graph.head
    if not in_place(graph.labels, space.index):
        place = places_of(graph.labels, space.index)
        tail, head = np.sort(np.stack([place[tail], place[head]]), axis=0)
    edges = EdgeBlock(penalty, strength, Differences(tail, head, columns), graph.weight, None, IN_GRAPH, name)
    return Lowered(edges=(edges,))
