"""The smallest positive and the largest eigenvalue of Laplacians L = K' diag(c) K, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from .. import checks
from ..base.tables import NumberWithAssumptions, Table
from ..certificate import factor
from ..errors import MethodError
from ..inputs import Graph, difference_matrix, groups_of
from ..terms import Array

DENSE = 100  # up to this many nodes eigenvalues are computed densely
START = 7  # of the random vectors by which Lanczos's iteration begins: results are to be repeatable


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue with its error: some eigenvalue lies within ``residual`` = ||L v - value v|| of ``value``.

    ``counted`` says whether that one is known to be the one meant: that there is no eigenvalue between 0 and
    value - 2 residual was counted (Sylvester's law of inertia), or all eigenvalues were computed.
    """

    value: float
    residual: float
    counted: bool


def laplacian(tail: Array, head: Array, weight: Array, n: int) -> sp.csr_array:
    """K' diag(c) K, (n, n)."""
    K = difference_matrix(tail, head, n)
    return sp.csr_array(K.T @ sp.diags_array(np.asarray(weight, dtype=float)) @ K)


def connectivity(L: sp.csr_array) -> Eigenvalue:
    """The second smallest eigenvalue of the Laplacian of a connected graph with two nodes or more."""
    if L.shape[0] <= DENSE:  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        return _dense(L, 1)
    v = _slowest(L)
    found = _with_residual(L, float(v @ (L @ v)), v, False)
    margin = 2.0 * found.residual + 1e-9 * found.value
    return Eigenvalue(found.value, found.residual, _count_below(L, found.value - margin) == 1)


def largest(L: sp.csr_array) -> Eigenvalue:
    """The largest eigenvalue of a Laplacian."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    if n <= DENSE:
        return _dense(L, n - 1)
    start, options = np.random.default_rng(START).standard_normal(n), dict[str, Any](k=1, tol=1e-10)
    try:
        v = eigsh(L, which="LA", v0=start, **options)[1][:, 0]
    except ArpackNoConvergence:  # many eigenvalues near the largest: invert beyond all of them (Gershgorin)
        v = eigsh(L, sigma=2.0 * float(L.diagonal().max()) * (1.0 + 1e-9), which="LM", v0=start, **options)[1][:, 0]
    return _with_residual(L, float(v @ (L @ v)), v, False)


def _dense(L: sp.csr_array, k: int) -> Eigenvalue:
    """The eigenvalue number k from below."""
    values, vectors = eigh(L.toarray(), subset_by_index=(k, k))
    return _with_residual(L, float(values[0]), vectors[:, 0], True)


def _with_residual(L: sp.csr_array, value: float, v: Array, counted: bool) -> Eigenvalue:
    return Eigenvalue(value, float(np.linalg.norm(L @ v - value * v)), counted)


def _slowest(L: sp.csr_array) -> Array:
    """An eigenvector of the second smallest eigenvalue: of the largest of the pseudo-inverse, which is a solve with the
    first node tied to 0, between two projections off the constant."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    tied = factor(L[1:, 1:])

    def inverse(b: Array) -> Array:
        x = np.concatenate([[0.0], tied.solve((b - b.mean())[1:])])
        return x - x.mean()

    start = np.random.default_rng(START).standard_normal(n)
    v = eigsh(LinearOperator((n, n), matvec=inverse, dtype=float), k=1, which="LA", v0=start)[1][:, 0]  # pyright: ignore[reportCallIssue]
    v = inverse(v - v.mean())  # one more step of the power iteration, which is the most accurate
    return v / np.linalg.norm(v)


def _count_below(L: sp.csr_array, shift: float) -> int | None:
    """The number of eigenvalues below the shift: the negative pivots of L - shift I; None where the factorisation
    had to pivot off the diagonal, or met a pivot of 0 (rings: a path of n/2 - 1 nodes with fixed ends has the
    eigenvalue of the ring)."""
    n = L.shape[0]  # pyright: ignore[reportOptionalSubscript]
    try:
        lu = factor(L - shift * sp.eye_array(n))
    except RuntimeError:
        return None
    return int((lu.U.diagonal() < 0).sum()) if np.array_equal(lu.perm_r, lu.perm_c) else None


# ---- algebraic connectivity: how well a graph hangs together ---------------------------------------------------------
@dataclass(frozen=True, eq=False)
class AlgebraicConnectivity(NumberWithAssumptions):
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

    Examples
    --------
    >>> round(float(gr.theory.algebraic_connectivity(nx.complete_graph(4))), 6)
    4.0
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
    missed = "where not counted, a smaller positive eigenvalue may have been missed"
    sure = "that no positive eigenvalue is smaller was counted" if bool(frame["counted"].all()) else missed
    assumed = ("weights as given" if weighted else "all weights 1", f"in floating point; {sure}")
    each = frame["connectivity"].to_numpy(dtype=float)
    value = 0.0 if len(rows) > 1 else float(each[0])
    least = float(np.nanmin(each)) if graph.n_edges else np.inf
    return AlgebraicConnectivity(value, least, Table.of(frame, "algebraic connectivity", assumed), assumed=assumed)
