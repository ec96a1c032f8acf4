"""The graph without the edges whose ends were told apart (graph-fused M-estimation (14))."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.clock import in_time
from ..base.tables import PrintedTable, ResultWithAssumptions, Table
from ..inputs import Graph, groups_of
from .edges import edge_tests
from .given import form_given, graph_given

if TYPE_CHECKING:
    import networkx as nx

POOLING = (
    "the components of the reduced graph are no clusters that were proven: one kept edge between unequal nodes merges "
    "two of them; estimate on the graph with TotalVariation, which can split such an edge, rather than pool components"
)


@dataclass(frozen=True, repr=False)
class EdgeSelection(ResultWithAssumptions):
    """The edges that tests of equality left.

    Attributes
    ----------
    graph : Graph or networkx.Graph
        All nodes, and the edges that were kept, with their weights; of the type of the graph that was given (`Graph`
        for adjacency matrices and of problems, and with weights 1 where all pairs were tested).
    tests : Table
        Those of `edge_tests`.
    assumed : tuple of str
    """

    graph: Graph | nx.Graph
    tests: Table

    @property
    def removed(self) -> list[tuple[Hashable, Hashable]]:
        """The (tail, head) labels of the edges that were removed."""
        gone = self.tests[~self.tests["keep"]]
        return list(zip(gone["tail"], gone["head"], strict=True))

    def components(self) -> list[list[Hashable]]:
        """The node labels of each connected component of the reduced graph, the largest first."""
        graph = Graph.of(self.graph)
        groups = [[graph.labels[i] for i in part] for part in groups_of(graph.components())]
        return sorted(groups, key=len, reverse=True)

    def _lines(self) -> list[str | PrintedTable]:
        sizes = [len(group) for group in self.components()]
        shown = ", ".join(map(str, sizes[:8])) + (", ..." if len(sizes) > 8 else "")
        n, m, gone = sum(sizes), len(self.tests), len(self.removed)
        return [
            f"Edge selection: {m - gone} of {m} edges kept, {gone} removed",
            self.tests.verdict,
            f"{n} nodes in {len(sizes)} component{'s' if len(sizes) > 1 else ''} of sizes {shown}",
            PrintedTable(self.tests),
        ]

    def __repr__(self) -> str:
        return f"<EdgeSelection: {len(self.tests) - len(self.removed)} of {len(self.tests)} edges kept>"


@in_time
def select_edges(
    loss: Any,
    graph: Any = None,
    covariance: str = "auto",
    correction: str | None = "bonferroni",
    alpha: float = 0.05,
    features: Sequence[str] | None = None,
    *,
    seconds: float | None = None,
) -> EdgeSelection:
    """The graph without the edges at which equality of the two nodes' parameters is rejected.

    Arguments and errors are those of `edge_tests`. With Bonferroni's correction, where at every edge between unequal
    nodes ``w_i - w_j`` is longer than the table's column ``separation``, exactly the edges between equal nodes are left
    with probability 1 - alpha as samples grow (graph-fused M-estimation, Theorem 3.4 under (15)).

    Examples
    --------
    >>> gr.inference.select_edges(gr.SquaredLoss(many), graph).components()
    [['a', 'b'], ['c', 'd']]
    """
    if graph is None:
        graph = graph_given(form_given(loss, "edge tests"))
    tests = edge_tests(loss, graph, covariance, correction, alpha, features)
    return EdgeSelection(_reduced(graph, tests), tests, assumed=(*tests.assumed, POOLING))


def _reduced(graph: Any, tests: Table) -> Graph | nx.Graph:
    keep = tests["keep"].to_numpy(dtype=bool)
    pairs = list(zip(tests["tail"], tests["head"], strict=True))
    if graph is None:
        kept = [pair for pair, k in zip(pairs, keep.tolist(), strict=True) if k]
        return Graph.from_edges(kept, nodes=dict.fromkeys(label for pair in pairs for label in pair))
    given = Graph.of(graph)
    if given is graph or not hasattr(graph, "remove_edges_from"):
        return Graph(given.labels, given.tail[keep], given.head[keep], given.weight[keep])
    reduced = graph.copy()  # with whatever attributes nodes and edges have
    reduced.remove_edges_from([pairs[e] for e in np.flatnonzero(~keep)])
    return reduced
