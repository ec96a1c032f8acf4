"""The mixing matrix of gossip on a graph and its spectral gap, and how large networks may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.lazy import stats
from ..base.tables import NumberWithAssumptions, ResultWithAssumptions, Table
from ..errors import GraphError, MethodError
from ..form import EdgeBlock, Form
from ..inputs import Graph
from ..network import METROPOLIS, InProcess, Ledger, LocalView, Mixing, MixingMatrix, arcs_of, mixing_of
from ..terms import IN_GRAPH, Differences, Space, Strength
from ..terms.penalties import Zero
from .spectrum import connectivity, laplacian, largest

ROUNDING = 1e-14


@dataclass(frozen=True)
class MixingRate(ResultWithAssumptions):
    """The rate at which repeated gossip w <- C w brings all nodes to their mean: ||C^t w - mean|| <= rho^t ||w -
    mean||.

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

    @staticmethod
    def of(graph: Any, mixing: Any, lazy: bool) -> MixingRate:
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

    Examples
    --------
    >>> round(gr.theory.mixing(graph).rho, 3)
    0.805
    """
    return MixingRate.of(graph, mixing, lazy)


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
    ends, name = Differences(graph.tail, graph.head, n=graph.n_nodes), "communication graph"
    edges = EdgeBlock(Zero(), Strength(), ends, np.ones(ends.count), None, IN_GRAPH, name)
    return Form(space, (), (), (edges,) if graph.n_edges else ())


def _assumed(given: MixingMatrix | str, lazy: bool) -> tuple[str, ...]:
    name = "a matrix as given" if isinstance(given, MixingMatrix) else "Metropolis-Hastings weights, unweighted degrees"
    return (f"{name}, C{' taken as (C + I) / 2' if lazy else ''}; every node takes part in every gossip",)


# ---- how large networks may be for inference: sparseness of families of graphs, and what the asymptotics allow -------
ESTIMATORS = ("average", "one-step")


@dataclass(frozen=True, eq=False)
class SparsenessExponent(NumberWithAssumptions):
    """q of 1 - rho ~ K^-q over a family of graphs (Assumption 10 of the slides on decentralised inference).

    Attributes
    ----------
    value : float
        Minus the slope of log(gap) against log(K), by least squares.
    std_error : float
        Of the slope; nan for two sizes. It measures how far the points are from a line, not what larger sizes would do.
    table : Table
        Per size: nodes, gap, and the slope from the size before.
    assumed : tuple of str
    """

    std_error: float
    table: Table = field(repr=False)

    def _lines(self) -> list[str]:
        q, error = f"{self.value:.3g}", f"{self.std_error:.2g}"
        return [f"sparseness exponent {q} (standard error {error}): 1 - rho ~ K^-{q}"]


def sparseness_exponent(
    family: Callable[[Any], Any], sizes: Sequence[Any], mixing: Any = METROPOLIS, lazy: bool = True
) -> SparsenessExponent:
    """The exponent by which the spectral gap of a family of graphs closes as the graphs grow.

    Parameters
    ----------
    family : callable
        Gives the graph of a size, for instance ``networkx.cycle_graph``. Of random graphs one is drawn per size.
    sizes : sequence
        At least two; K is the number of nodes of the graph that ``family`` returns, not the size.
    mixing, lazy
        As for `mixing`; lazy by default, as in Table 1 of the slides. A function of the size where it is not
        "metropolis".

    Raises
    ------
    GraphError
        For a graph that is not connected; it names the size.

    Examples
    --------
    >>> round(gr.theory.sparseness_exponent(nx.cycle_graph, [8, 16, 32]).value, 1)
    2.0
    """
    if not callable(family) or isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise MethodError("a sparseness exponent is of a function that gives a graph, and of a list of sizes")
    rows: list[dict[str, Any]] = []
    for size in sizes:
        found = MixingRate.of(family(size), mixing(size) if callable(mixing) else mixing, lazy)
        if found.components > 1 or found.nodes == 1:
            what = f"has {found.components} components" if found.components > 1 else "has one node"
            raise GraphError(f"the graph of size {size!r} {what}, so that it has no gap; leave it out or draw another")
        rows.append({"nodes": found.nodes, "gap": found.gap})
    frame = pd.DataFrame(rows)
    if len({row["nodes"] for row in rows}) < 2:
        raise MethodError("a sparseness exponent needs graphs of at least two different numbers of nodes")
    logs: Any = np.log(frame)
    frame["exponent"] = -logs["gap"].diff() / logs["nodes"].diff()
    line: Any = stats.linregress(logs["nodes"], logs["gap"])
    name = "Metropolis-Hastings weights" if isinstance(mixing, str) else "matrices as given"
    assumed = (
        f"{name}{', lazy: (C + I) / 2' if lazy else ''}",
        f"a power law from {frame['nodes'].min()} to {frame['nodes'].max()} nodes; logarithms look like small powers",
    )
    error = float(line.stderr) if len(frame) > 2 else np.nan
    table = Table.of(frame, "spectral gaps by size", assumed)
    return SparsenessExponent(-float(line.slope), error, table, assumed=assumed)


@dataclass(frozen=True)
class LargestNetwork(ResultWithAssumptions):
    """The order of the number K of nodes that a limit theorem allows: K = o(T^order).

    Attributes
    ----------
    order : float
    nodes : float
        T^order. No bound: o() has no constant, and K must be small against it.
    assumed : tuple of str
    """

    order: float
    nodes: float

    def _lines(self) -> list[str]:
        return [f"K = o(T^{self.order:.4g}): K must be small against {self.nodes:.4g}"]


def largest_network(
    T: int, exponent: float = 0.0, alpha: float | None = None, estimator: str = "one-step"
) -> LargestNetwork:
    """The number of nodes that may take part in decentralised inference with T samples each.

    ======================  =====================  =========================
    estimator               networks               K
    ======================  =====================  =========================
    average, 1/2 < alpha<1  gap bounded below      o(T^(2 alpha - 1)), Theorem 3
    one-step, alpha = 1     gap bounded below      o(T), Theorem 5
    one-step, alpha = 1     gap of order K^-q      o(T^(1 / (6 q + 1))), Theorem 6
    ======================  =====================  =========================

    Theorem 5 as printed. Where Hessians differ among nodes, the one-step estimator keeps a bias of the size of the mean
    step, log(T) / T, which asks for K = o(T / log(T)^2) (``python -m papers run --claim consensus.thm5-condition``).

    Parameters
    ----------
    T : int
        The number of samples, one a step, of the node that has fewest.
    exponent : float
        q, see `sparseness_exponent`: 0 for expanders, 1 for grids and stars (where the slides print 2), 2 for rings.
    alpha : float, optional
        Of the steps eta_t ~ t^-alpha. The one-step estimator's theorems are of alpha = 1.
    estimator : {"average", "one-step"}
        The average over nodes and rounds (Polyak and Ruppert), or that corrected by one Newton step.

    Raises
    ------
    MethodError
        Where no theorem says anything: an average on networks whose gap closes, other steps.

    Examples
    --------
    >>> gr.theory.largest_network(10_000)
    LargestNetwork(order=1.0, nodes=10000.0)
    """
    T = int(checks.count(T, "T", MethodError))
    q = float(checks.inside("[0, inf)", "a non-negative finite number")(exponent, "the exponent", MethodError))
    checks.one_of(*ESTIMATORS)(estimator, "the estimator", MethodError)
    said = "K is small against T^order: a limit theorem, whose constant is unknown"
    if estimator == "average":
        if alpha is None:
            raise MethodError("the order of the average depends on alpha, the exponent of the steps; give alpha")
        checks.inside("(1/2, 1)")(alpha, "alpha of the average", MethodError)
        if q > 0.0:
            raise MethodError(
                "there is no theorem on averages over networks whose spectral gap closes (exponent > 0); "
                "take estimator='one-step'"
            )
        order = 2.0 * alpha - 1.0
        return LargestNetwork(order, float(T) ** order, assumed=(said, "a spectral gap bounded below (Theorem 3)"))
    if alpha is not None and alpha != 1.0:
        raise MethodError(f"the theorems on the one-step estimator are of steps with alpha = 1, got {alpha!r}")
    order = 1.0 / (6.0 * q + 1.0)
    gap = "a spectral gap bounded below, alpha = 1 (Theorem 5)"
    if q > 0.0:
        gap = f"a spectral gap of order K^-{q:g}, alpha = 1, a gossip after every step, bounded parameters (Theorem 6)"
    return LargestNetwork(order, float(T) ** order, assumed=(said, gap))
