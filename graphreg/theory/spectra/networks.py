"""How large networks may be for inference: sparseness of families of graphs, and what the asymptotics allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ... import checks
from ...errors import GraphError, MethodError
from ...lazy import stats
from ...network import METROPOLIS
from ...tables import Stated, StatedNumber, Table
from .gossip import mixing as mixing_rate

ESTIMATORS = ("average", "one-step")


@dataclass(frozen=True, eq=False)
class SparsenessExponent(StatedNumber):
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
    """
    if not callable(family) or isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise MethodError("a sparseness exponent is of a function that gives a graph, and of a list of sizes")
    rows: list[dict[str, Any]] = []
    for size in sizes:
        found = mixing_rate(family(size), mixing(size) if callable(mixing) else mixing, lazy)
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
class LargestNetwork(Stated):
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
    """How many nodes may take part in decentralised inference with T samples each.

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
