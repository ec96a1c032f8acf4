"""Graph-fused M-estimation as printed: the bound (6) of Theorem 3.1, and the bound of the compatibility factor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...inputs import Graph
from ...oracles import NodeGradients
from ...tables import Stated
from ..arguments import edge_positions, form_of
from ..estimation import bounds

RIGHT = "gr.theory.error_bound"


@dataclass(frozen=True)
class PrintedErrorBound(Stated):
    """Theorem 3.1 as printed, which does not hold.

    Attributes
    ----------
    strength : float
        lambda of the theorem, to be the coefficient of the penalty in (4).
    bound : float
        (6): what it says of ||w_hat - w||_F^2 / |V| at that strength.
    kappa, rho : float
        Of Condition 2 and of the theorem.
    assumed : tuple of str
    """

    strength: float
    bound: float
    kappa: float
    rho: float

    def _lines(self) -> list[str]:
        said = f"as printed: ||w_hat - w||^2 / n <= {self.bound:.6g} at the strength {self.strength:.6g}"
        return [f"{said}; it does not hold, {RIGHT} does"]


def error_bound(problem: Any, truth: Any) -> PrintedErrorBound:
    """Theorem 3.1 of graph-fused M-estimation with the strength and the bound (6) as printed:

        lambda = |V|^(-1/2) R*{(D^+)' Psi},      bound = 2 kappa^2 (rho^2 + 4 |S| lambda^2 / kappa_0),

    Psi_u the gradient of M_u = |V| f_u at the truth, rho = |V|^(-1/2) ||Pi Psi||_F, 1/kappa and kappa the least and the
    largest curvature of the M_u, S the edges across which the truth differs. Such a strength is |V|^(1/2) times too
    large as the coefficient of (4): right is R*{(D^+)' Psi} / |V| with |V| lambda^2 in place of lambda^2, and kappa_S^2
    in place of kappa_0, for which kappa_S is taken here; see `graphreg.theory.error_bound`.

    Parameters
    ----------
    problem : Problem
        As for `graphreg.theory.error_bound`: (4) with its factor 1/|V|, ``scale = 1 / (|V| n_u)``.
    truth : (n, d) array, DataFrame by label and feature, or mapping from labels to vectors

    Returns
    -------
    PrintedErrorBound

    Raises
    ------
    MethodError
        As `graphreg.theory.error_bound`.

    Examples
    --------
    >>> gr.theory.printed.error_bound(problem, np.zeros((4, 2))).kappa >= 1.0
    True
    """
    right, form = bounds.error_bound(problem, truth), form_of(problem, "error_bound").frozen()
    n = right.nodes
    largest = float(NodeGradients(form).smoothness.max())
    kappa = max(1.0, n * largest, 1.0 / (n * right.convexity) if right.convexity > 0.0 else np.inf)
    strength, rho = np.sqrt(n) * right.required, np.sqrt(n) * right.projection
    false = len(right.false_edges)
    bound = 2.0 * kappa**2 * (rho**2 + 4.0 * false * strength**2 / right.compatibility.value)
    assumed = (*right.assumed[1:], "kappa_0 is the best lower bound of kappa_S that is known")
    return PrintedErrorBound(float(strength), float(bound), float(kappa), float(rho), assumed=assumed)


def compatibility_bound(graph: Any, edges: Iterable[Any]) -> float:
    """1 / (2 min(sqrt d, sqrt |T|)), d the largest degree: below it kappa_T never lies, says graph-fused M-estimation
    after Condition 3. For the l1 norm of p >= 3 features it may: kappa_T is that of one feature divided by sqrt(p);
    `graphreg.theory.compatibility_factor` has what holds.

    Parameters
    ----------
    graph : networkx.Graph, Graph or sparse adjacency
    edges : iterable of pairs of labels
        T.

    Returns
    -------
    float
        1 where T is empty.

    Raises
    ------
    GraphError
        For edges that the graph lacks.

    Examples
    --------
    >>> gr.theory.printed.compatibility_bound(nx.path_graph(3), [(0, 1)])
    0.5
    """
    known = Graph.of(graph)
    chosen = edge_positions(known, edges, "the edges")
    if not len(chosen):
        return 1.0
    d = int(np.bincount(np.concatenate([known.tail, known.head])).max())
    return float(0.5 / np.sqrt(min(d, len(chosen))))
