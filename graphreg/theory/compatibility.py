"""The compatibility factor kappa_T of a graph: how much of a signal's size differences across some edges may show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .. import checks
from ..base.tables import NumberWithAssumptions, Table
from ..compiling import conic_bound
from ..errors import MethodError
from ..inputs import Graph, components_of, difference_matrix, groups_of
from ..terms import Array, at_a_time
from ..terms.penalties import AbstractPenalty
from .arguments import edge_positions

ENUMERATED = 20  # edges of a component up to which all signs are tried
CONIC = 80  # edges of a component up to which the conic bound is computed
TIGHT = 1e-6  # relative: bounds nearer than this are called equal
STARTS, SWEEPS = 8, 200  # of the ascent that looks for vectors near the bound


@dataclass(frozen=True, eq=False)
class CompatibilityFactor(NumberWithAssumptions):
    """kappa_T = inf sqrt(|T|) ||Theta||_F / sum over e in T of A_e phi((D Theta)_e), 1 where T is empty (graph-fused
    M-estimation, Definition 2).

    Attributes
    ----------
    value : float
        A lower bound of kappa_T, as theorems need it.
    upper : float
        An upper bound: that of a signal that was found.
    exact : bool
        Whether the two agree to a millionth.
    bounds : Table
        What each of the bounds gives: value, kind ("lower bound", "exact", "no bound") and formula.
    parts : tuple of str
        How each component of T was treated.
    assumed : tuple of str
    """

    upper: float
    exact: bool
    bounds: Table = field(repr=False)
    parts: tuple[str, ...] = field(repr=False)

    def _lines(self) -> list[str]:
        said = f"= {self.value:.6g} (exact)" if self.exact else f"between {self.value:.6g} and {self.upper:.6g}"
        return [f"compatibility factor {said}"]


def compatibility_factor(graph: Any, edges: Iterable[Any], penalty: Any = "l1", features: int = 1) -> Any:
    """The compatibility factor of some edges T of a graph.

    With one feature 1/kappa_T^2 = M^2 / |T|, M^2 = max over signs s of ||D_T's||^2, which is a sum over the components
    of T: sum_v d_T(v)^2 where one is bipartite, by trying all signs up to 20 edges, else between a conic bound and
    signs that were found. For l1 with p features kappa_T is that of one feature divided by sqrt(p); for l2 signs become
    unit vectors of R^p, and the conic bound is exact where its vectors have so few dimensions.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        Its weights A_e belong to the norm.
    edges : iterable of pairs of labels
        T; in theorems the edges between nodes with different parameters.
    penalty : "l1", "l2", gr.L1(), gr.L2(), or a penalty of your own that is one of these norms
    features : int
        p, the number of coordinates that the edges act on.
    """
    graph, p = Graph.of(graph), int(checks.count(features, "features", MethodError))
    norm, chosen = _norm(penalty, p), edge_positions(graph, edges, "the edges")
    return factor(graph, chosen, norm, p)


def factor(graph: Graph, chosen: Array, norm: str, p: int) -> CompatibilityFactor:
    """The compatibility factor of the edges at some positions."""
    tail, head, A = graph.tail[chosen], graph.head[chosen], graph.weight[chosen]
    spread = float(p) if norm == "l1" else 1.0  # by which M^2 grows with the features
    rank = 1 if norm == "l1" else p
    groups = groups_of(components_of(tail, head, graph.n_nodes)[1][tail])  # the edges of each component of T
    parts = [_part(tail[group], head[group], A[group], rank) for group in groups if len(group)]
    if not parts:
        empty = _table(graph, chosen, norm, p, 1.0, True)
        return CompatibilityFactor(1.0, 1.0, True, empty, (), assumed=("kappa of no edges is 1 by definition",))
    high, low = sum(part.high for part in parts) * spread, sum(part.low for part in parts) * spread
    value, upper = float(np.sqrt(len(chosen) / high)), float(np.sqrt(len(chosen) / low))
    exact = upper <= value * (1.0 + TIGHT)
    phi = f"the {norm} norm of {p} features" if p > 1 else "the absolute value of one feature"
    said = f"phi is {phi}, times the weight of the edge"
    assumed = (said, "signals of all nodes are allowed, also those that differ across other edges of the graph")
    how = tuple(f"{part.edges} edge{'s' if part.edges > 1 else ''}: {part.how}" for part in parts)
    bounds = _table(graph, chosen, norm, p, value, exact)
    return CompatibilityFactor(value, upper, exact, bounds, how, assumed=assumed)


@dataclass(frozen=True)
class FactorBounds:
    """Bounds of M^2 of one component of T, and how they were found."""

    edges: int
    low: float
    high: float
    how: str


def _part(tail: Array, head: Array, A: Array, rank: int) -> FactorBounds:
    """M^2 = max over unit vectors u_e in R^rank of ||sum_e A_e (D_e)' u_e'||_F^2."""
    nodes, ends = np.unique(np.concatenate([tail, head]), return_inverse=True)
    m, n = len(tail), len(nodes)
    tail, head = ends[:m], ends[m:]
    degrees = np.bincount(tail, A, n) + np.bincount(head, A, n)
    most = float((degrees**2).sum())
    double_cover = np.concatenate([tail, tail + n]), np.concatenate([head + n, head])
    if components_of(*double_cover, 2 * n)[0] == 2:
        return FactorBounds(m, most, most, "bipartite, exact")
    B = sp.csr_array(sp.diags_array(A) @ difference_matrix(tail, head, n))
    G = sp.csr_array(B @ B.T).toarray()
    if rank == 1 and m <= ENUMERATED:
        found = _best_signs(G)
        return FactorBounds(m, found, found, "all signs, exact")
    bound, vectors = conic_bound(G) if m <= CONIC else (np.inf, np.eye(m))
    low, high = _ascent(G, vectors, min(rank, m)), min(bound, most)
    how = "degrees" if high == most else "conic bound"
    return FactorBounds(m, low, high, how + (", exact" if high <= low * (1.0 + TIGHT) else ""))


def _best_signs(G: Array) -> float:
    """max s'Gs over signs, with s_0 = 1."""
    m, best = len(G), 0.0
    for some in at_a_time(2**14, 2 ** (m - 1)):
        codes = np.arange(some.start, min(some.stop, 2 ** (m - 1)))
        s = 1.0 - 2.0 * ((codes[:, None] << 1 >> np.arange(m)) & 1)
        best = max(best, float(np.einsum("ij,ij->i", s @ G, s).max()))
    return best


def _ascent(G: Array, vectors: Array, rank: int) -> float:
    """The largest <G, U U'> that block coordinate ascent finds: u_e along sum over f != e of G_ef u_f, from the leading
    dimensions of the conic bound's vectors and from random starts."""
    rng, best, m = np.random.default_rng(0), 0.0, len(G)
    starts = [vectors[:, :rank], *(vectors @ rng.standard_normal((m, rank)) for _ in range(STARTS))]
    diagonal = np.diag(G)
    for start in starts:
        lengths = np.linalg.norm(start, axis=1, keepdims=True)
        U = np.where(lengths > 1e-9, start / np.maximum(lengths, 1e-9), np.eye(1, rank))
        value = float(np.einsum("ij,ij->", G @ U, U))
        for _ in range(SWEEPS):
            for e in range(m):
                g = G[e] @ U - diagonal[e] * U[e]
                size = float(np.linalg.norm(g))
                U[e] = g / size if size > 0 else U[e]
            before, value = value, float(np.einsum("ij,ij->", G @ U, U))
            if value <= before * (1.0 + 1e-10):
                break
        best = max(best, value)
    return best


def _table(graph: Graph, chosen: Array, norm: str, p: int, value: float, exact: bool) -> Table:
    """Every bound beside the others."""
    tail, head, A, m = graph.tail[chosen], graph.head[chosen], graph.weight[chosen], len(chosen)
    d, roots = int(np.bincount(np.concatenate([graph.tail, graph.head])).max(initial=0)), 1.0
    rows: dict[str, tuple[float, str, str]] = {}
    if m:
        roots = float(np.sqrt(p)) if norm == "l1" else 1.0
        plain = 1.0 / (2.0 * np.sqrt(min(d, m)) * A.max())
        degrees = np.bincount(tail, A, graph.n_nodes) + np.bincount(head, A, graph.n_nodes)
        valid = "lower bound" if roots <= 2.0**0.5 else "no bound"
        rows["as printed"] = (plain, valid, "1 / (2 min(sqrt d, sqrt |T|)), for weights 1")
        rows["corrected"] = (plain / roots, "lower bound", "the same divided by sqrt p for l1")
        by_degrees = float(np.sqrt(m / (degrees**2).sum())) / roots
        rows["degrees"] = (by_degrees, "lower bound", "sqrt(|T| / sum_v d_T(v)^2), divided by sqrt p for l1")
    rows["best"] = (value, "exact" if exact else "lower bound", "by components: bipartite, all signs, conic bound")
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "kind", "formula"])
    return Table.of(frame, f"bounds of the compatibility factor of {m} edges", (f"{norm}, p = {p}",))


def norm_of(penalty: AbstractPenalty, p: int) -> str | None:
    """The name of the norm that a penalty is on p features; None where it is neither the l1 nor the l2 norm."""
    return {p: "l2", 1: "l1"}.get(penalty.pieces(p) or 0)


def _norm(penalty: Any, p: int) -> str:
    name = norm_of(penalty, p) if isinstance(penalty, AbstractPenalty) else penalty
    if isinstance(name, str) and name in ("l1", "l2"):
        return name
    hint = f"; write {penalty.__name__}()" if isinstance(penalty, type) and issubclass(penalty, AbstractPenalty) else ""
    raise MethodError(f"the compatibility factor is known of the norms 'l1' and 'l2', got {penalty!r}{hint}")
