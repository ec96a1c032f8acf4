"""How fast gossip mixes: the mixing matrix of a graph, and its spectral gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ... import checks
from ...errors import GraphError, MethodError
from ...form import EdgeBlock, Form
from ...inputs import Graph
from ...network import METROPOLIS, InProcess, Ledger, LocalView, Mixing, MixingMatrix, arcs_of, mixing_of
from ...tables import Stated
from ...terms import IN_GRAPH, Space, Strength
from ...terms.penalties import Zero
from .spectrum import connectivity, laplacian, largest

ROUNDING = 1e-14


@dataclass(frozen=True)
class MixingRate(Stated):
    """How fast repeated gossip w <- C w brings all nodes to their mean: ||C^t w - mean|| <= rho^t ||w - mean||.

    Attributes
    ----------
    rho : float
        The largest modulus of the eigenvalues of C beside the 1 of the consensus (Assumption 1 of the slides on
        decentralised inference): max(second, -least).
    gap : float
        1 - rho, the spectral gap; 0 where the graph has several components, 1 for one node.
    second, least : float
        The second largest and the smallest eigenvalue of C; nan for one node.
    nodes, components : int
    assumed : tuple of str
    """

    rho: float
    gap: float
    second: float
    least: float
    nodes: int
    components: int

    @property
    def exponent(self) -> float:
        """q with gap = nodes^-q: what Assumption 10 calls sparseness, as one graph shows it, with the constant 1; for
        families see `sparseness_exponent`. nan for one node."""
        return float(np.log(1.0 / self.gap) / np.log(self.nodes)) if self.nodes > 1 and self.gap > 0 else np.nan

    def time(self, accuracy: float = 0.01) -> float:
        """The number of gossips after which the disagreement is at most ``accuracy`` times what it was; inf where it
        never is."""
        checks.fraction(accuracy, "the accuracy", MethodError)
        if self.rho >= 1.0:
            return np.inf
        return 1.0 if self.rho <= accuracy else float(np.ceil(np.log(accuracy) / np.log(self.rho) - 1e-9))

    def _lines(self) -> list[str]:
        lines = [f"spectral gap {self.gap:.6g} (rho = {self.rho:.6g}) of {self.nodes} nodes"]
        if self.components > 1:
            lines.append(f"  the graph has {self.components} components, which never agree")
        elif self.nodes > 1:
            lines.append(
                f"  disagreement falls to a hundredth in {self.time():g} gossips; the gap is nodes^-{self.exponent:.3g}"
            )
        return lines


def mixing(graph: Any, mixing: Any = METROPOLIS, lazy: bool = False) -> MixingRate:
    """The spectral gap of gossip on a graph.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        Its weights are of no concern.
    mixing : "metropolis", array, DataFrame or {i: {j: c_ij}}
        The matrix C: by default c_ij = 1 / (max(d_i, d_j) + 1), d_i the number of neighbours, as `LocalSGD` and its kin
        have it; or one of the user's, symmetric, non-negative, with rows of sum 1, zero off the edges.
    lazy : bool
        Whether to take (C + I) / 2.

    Raises
    ------
    GraphError
        For a matrix of the user's that is none for the graph; it names the entry.
    """
    graph, form, given, lazy = _gossip(graph, mixing, lazy)
    components = int(graph.components().max()) + 1
    assumed = _assumed(given, lazy)
    if graph.n_nodes == 1:
        return MixingRate(0.0, 1.0, np.nan, np.nan, 1, 1, assumed=assumed)
    if graph.n_edges == 0:
        return MixingRate(1.0, 0.0, 1.0, 1.0, graph.n_nodes, components, assumed=assumed)
    (c,) = _on_edges(form, given, lazy).weights
    L = laplacian(graph.tail, graph.head, c, graph.n_nodes)  # C = I - L
    least = 1.0 - largest(L).value
    slow = connectivity(L).value if components == 1 else 0.0
    gap = min(slow, 1.0 + least)
    gap = gap if gap > ROUNDING else 0.0
    return MixingRate(1.0 - gap, gap, 1.0 - slow, least, graph.n_nodes, components, assumed=assumed)


def mixing_matrix(graph: Any, mixing: Any = METROPOLIS, lazy: bool = False) -> pd.DataFrame:
    """The matrix C by which nodes mix in a gossip, theta <- C theta: as `LocalSGD`, `GradientTracking` and
    `ExactDiffusion` have it on this graph.

    By default, as Metropolis and Hastings have it,

        c_ij = 1 / (max(d_i, d_j) + 1)  on edges,    c_ii = 1 - sum over j of c_ij,    0 elsewhere,

    d_i the number of neighbours (Boyd, Ghosh, Prabhakar and Shah 2006; Figure 2 of the slides on decentralised
    inference). Its rows sum to 1, and it is symmetric: the mean over the nodes stays.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
        Its weights are of no concern.
    mixing : "metropolis", array, DataFrame or {i: {j: c_ij}}
        As for `mixing`; a matrix of the user's is checked.
    lazy : bool
        Whether to take (C + I) / 2, as `ExactDiffusion` always does, and `GradientTracking` by default.

    Returns
    -------
    pandas.DataFrame
        (n, n), rows and columns by node label, in node order; what the methods take as ``mixing=``.

    Raises
    ------
    GraphError
        For a matrix of the user's that is none for the graph; it names the entry.

    Examples
    --------
    >>> print(gr.theory.mixing_matrix(nx.path_graph(["a", "b", "c"])).round(3))
           a      b      c
    a  0.667  0.333  0.000
    b  0.333  0.333  0.333
    c  0.000  0.333  0.667
    """
    graph, form, given, lazy = _gossip(graph, mixing, lazy)
    labels = pd.Index(list(graph.labels), dtype=object, tupleize_cols=False)
    return pd.DataFrame(_on_edges(form, given, lazy).matrix(form), labels, labels)


def _gossip(graph: Any, mixing: Any, lazy: Any) -> tuple[Graph, Form, MixingMatrix | str, bool]:
    """The arguments of both, read and checked."""
    graph, given = Graph.of(graph), MixingMatrix.of(mixing, "gossip")
    form, lazy = _form(graph), bool(checks.switch(lazy, "lazy", MethodError))
    wrong = given.wrong(form, True) if isinstance(given, MixingMatrix) else ()
    if wrong:
        raise GraphError("; ".join(wrong))
    return graph, form, given, lazy


def _on_edges(form: Form, given: MixingMatrix | str, lazy: bool) -> Mixing:
    return mixing_of(LocalView(form, InProcess(Ledger(arcs_of(form), form.labels))), given, lazy)


def _form(graph: Graph) -> Form:
    """The communication graph as a form without losses."""
    space = Space(graph.index, ("w",), np.arange(1))
    ends, ones = (graph.tail, graph.head), np.ones(graph.n_edges)
    edges = EdgeBlock(Zero(), Strength(), *ends, ones, None, None, IN_GRAPH, "communication graph", graph.n_nodes)
    return Form(space, (), (), (edges,) if graph.n_edges else ())


def _assumed(given: MixingMatrix | str, lazy: bool) -> tuple[str, ...]:
    name = "a matrix as given" if isinstance(given, MixingMatrix) else "Metropolis-Hastings weights, unweighted degrees"
    return (f"{name}, C{' taken as (C + I) / 2' if lazy else ''}; every node takes part in every gossip",)
