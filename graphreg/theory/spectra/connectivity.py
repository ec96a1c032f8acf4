"""Algebraic connectivity: how well a graph hangs together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ... import checks
from ...errors import MethodError
from ...inputs import Graph, groups_of
from ...tables import StatedNumber, Table
from .spectrum import Eigenvalue, connectivity, laplacian


@dataclass(frozen=True, eq=False)
class AlgebraicConnectivity(StatedNumber):
    """The smallest positive eigenvalues of the Laplacian L = K' diag(A) K of a graph, one per component.

    Attributes
    ----------
    value : float
        The second smallest eigenvalue of L, 0 where the graph has several components (Fiedler); nan for one node.
    smallest_positive : float
        The smallest positive eigenvalue of L, that is the least of the components' (gamma_G^2 of graph-fused
        M-estimation, (8), where weights are 1); inf where there is no edge.
    components : Table
        One row per component, by the label of its first node: nodes, edges, connectivity (nan for one node), residual
        (an eigenvalue is at most so far away) and counted (it was verified that none is smaller).
    assumed : tuple of str
    """

    smallest_positive: float
    components: Table = field(repr=False)

    def _lines(self) -> list[str]:
        count = len(self.components)
        lines = [f"algebraic connectivity {self.value:.6g}; {count} component{'s' if count > 1 else ''}"]
        if count > 1:
            lines[0] += f", the smallest positive eigenvalue {self.smallest_positive:.6g}"
        return lines


def algebraic_connectivity(graph: Any, weighted: bool = True) -> AlgebraicConnectivity:
    """The algebraic connectivity of a graph and of each of its components.

    Small where a few weak edges hold large parts together: information travels slowly across them, and the noise
    against which an edge must be protected, (8), is large.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
    weighted : bool
        Whether the Laplacian takes the weights of the edges (else all are 1, as in the paper).
    """
    graph, weighted = Graph.of(graph), checks.switch(weighted, "weighted", MethodError)
    weight = graph.weight if weighted else np.ones(graph.n_edges)
    L, component = laplacian(graph.tail, graph.head, weight, graph.n_nodes), graph.components()
    groups = groups_of(component)
    edges = np.bincount(component[graph.tail], minlength=len(groups)).tolist()
    rows: list[dict[str, Any]] = []
    for nodes, count in zip(groups, edges, strict=True):
        found = Eigenvalue(np.nan, 0.0, True) if len(nodes) == 1 else connectivity(sp.csr_array(L[nodes][:, nodes]))
        row = {"nodes": len(nodes), "edges": count, "connectivity": found.value}
        rows.append(row | {"residual": found.residual, "counted": found.counted})
    index = [graph.labels[nodes[0]] for nodes in groups]
    frame = pd.DataFrame(rows, index=pd.Index(index, name="component of", tupleize_cols=False))
    assumed = _assumed(weighted, bool(frame["counted"].all()))
    each = frame["connectivity"].to_numpy(dtype=float)
    value = 0.0 if len(rows) > 1 else float(each[0])
    least = float(np.nanmin(each)) if graph.n_edges else np.inf
    return AlgebraicConnectivity(value, least, Table.of(frame, "algebraic connectivity", assumed), assumed=assumed)


def _assumed(weighted: bool, counted: bool) -> tuple[str, ...]:
    said = "weights as given" if weighted else "all weights 1"
    if counted:
        return said, "in floating point; that no positive eigenvalue is smaller was counted"
    return said, "in floating point; where not counted, a smaller positive eigenvalue may have been missed"
