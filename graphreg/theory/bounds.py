"""The bound on the error of graph-fused M-estimation (Theorem 3.1, corrected), of a user's problem and true parameters.

With w the true parameters and w_hat the minimiser, g_i the gradient of f_i at w_i, mu a lower bound of all Hessians of
f_i, D = diag(A) K, S the edges across which w differs, and a strength lam >= R*{(D^+)'g}, the largest dual norm of its
rows,

    ||w_hat - w||_F  <=  (||Pi g||_F + 2 lam sqrt(|S|) / kappa_S) / mu,          Pi the projection on Ker D.

At the minimiser <g + H (w_hat - w), w_hat - w> <= lam (R(Dw) - R(D w_hat)), and R(D(w_hat - w)) + R(Dw) - R(D w_hat) is
at most twice the part of R(D(w_hat - w)) on S. In the paper's letters f_i = M_i / |V|, rho = |V|^(1/2) ||Pi g||_F and
mu = 1 / (kappa |V|). Its (6) follows by (a + b)^2 <= 2 a^2 + 2 b^2, with |V|^(1/2) lam where it prints lam, and
kappa_S^2 where it prints kappa_0.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import in_time
from ..base.tables import ResultWithAssumptions
from ..errors import MethodError
from ..form import EdgeBlock, Form
from ..inputs import Graph
from ..oracles import NodeGradients, without_gradient
from ..terms import Array
from .arguments import all_parameters, form_of, per_node
from .compatibility import CompatibilityFactor, factor, norm_of
from .curvature import Curvature
from .network import Network, square_roots

ROUNDING = 1e-12  # relative: a strength that misses what is required by no more is taken to meet it


@dataclass(frozen=True, eq=False)
class ErrorBound(ResultWithAssumptions):
    """A bound on ||w_hat - w||_F^2 / n and what it is made of.

    Attributes
    ----------
    bound : float
        (||Pi g||_F + 2 lam sqrt(|S|) / kappa_S)^2 / (mu^2 n); inf where the theorem does not hold.
    theorem : float
        (6), corrected: 2 (||Pi g||_F^2 + 4 lam^2 |S| / kappa_S^2) / (mu^2 n), the larger of the two.
    holds : bool
        Whether lam >= required, and the curvature was bounded below.
    strength, required : float
        lam of the problem, and R*{(D^+)'g}, the least that the theorem allows.
    at_required : float
        The bound at the strength ``required``, the least that the theorem has to give.
    projection : float
        ||Pi g||_F: the noise that no fusion takes away.
    compatibility : CompatibilityFactor
        kappa_S.
    convexity : float
        mu, of all f_i, on the balls of ``radius`` around the true parameters; 0 where there is none.
    radius : float
        Within which the estimate was proven to lie; inf for quadratic losses, where it does not matter.
    false_edges : tuple of pairs of labels
        S.
    nodes : int
    why : str
        Why the theorem does not hold; empty where it does.
    assumed : tuple of str
    """

    bound: float
    theorem: float
    holds: bool
    strength: float
    required: float
    at_required: float
    projection: float
    compatibility: CompatibilityFactor = field(repr=False)
    convexity: float
    radius: float
    false_edges: tuple[tuple[Hashable, Hashable], ...] = field(repr=False)
    nodes: int
    why: str

    def _lines(self) -> list[str]:
        head = f"||w_hat - w||^2 / n <= {self.bound:.6g} (Theorem 3.1, corrected: {self.theorem:.6g})"
        return [
            head if self.holds else f"no bound at this strength: {self.why}",
            f"  strength {self.strength:.6g}, required {self.required:.6g}; the bound there is {self.at_required:.6g}",
            f"  ||Pi g|| {self.projection:.6g}, {len(self.false_edges)} false edges, kappa_S >= "
            f"{self.compatibility.value:.4g}, mu {self.convexity:.6g}",
        ]


@in_time
def error_bound(
    problem: Any,
    truth: Any,
    *,
    covariance: Any = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    seconds: float | None = None,
) -> ErrorBound:
    """The bound of the error of a problem's minimiser that the theory guarantees.

    Parameters
    ----------
    problem : Problem
        Differentiable losses (and differentiable node penalties), and one TotalVariation with `L1` or `L2`.
    truth : (n, d) array, DataFrame by label and feature, or mapping from labels to vectors
        The true parameters: of a simulation, or those that are supposed.
    covariance : (n, d, d) array or mapping from labels to (d, d), optional
        The covariances of the gradients g_i of f_i (all scales included) at the truth. Without them g is that of the
        problem's own data, and the bound holds for certain; with them it is for data to come, and holds with
        probability 2 level - 1 or more.
    level, draws, seed : float, int, int
        Of the quantiles of ||Pi g|| and R*{(D^+)'g}, from so many normal g.
    seconds : float, optional
        A budget of time. Before its end there is nothing to give: Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    MethodError
        For losses without gradient, other edges than one TotalVariation with L1 or L2, and bad parameters.
    BudgetError
        Where the time is up.

    Examples
    --------
    >>> truth = {"a": [1.0, 0.0], "b": [1.0, 0.0], "c": [-1.0, 0.0], "d": [-1.0, 0.0]}
    >>> gr.theory.error_bound(problem, truth, seed=0).holds
    True
    """
    quantile = float(checks.inside("(1/2, 1)")(level, "the level", MethodError))
    checks.seed(seed, "seed", MethodError)
    form = form_of(problem, "error_bound").frozen()
    edge = _edges(form)
    w = all_parameters(truth, form, "the true parameters")
    network = Network((edge,), (edge.base_weight,), form.shape)
    noise, assumed = _noise(form, w, covariance, int(checks.count(draws, "draws", MethodError)), seed)
    quantile = 1.0 if covariance is None else quantile
    sizes = [(float(np.linalg.norm(network.means(g))), network.strain(g)) for g in noise]
    projection, required = np.quantile(sizes, quantile, axis=0, method="higher").tolist()
    return _record(form, w, edge, projection, required, assumed)


def _record(
    form: Form, w: Array, edge: EdgeBlock, projection: float, required: float, assumed: tuple[str, ...]
) -> ErrorBound:
    """The bounds at the problem's strength and at the required one."""
    false = np.flatnonzero((w[edge.tail] != w[edge.head]).any(axis=1))
    graph = Graph(form.labels, edge.tail, edge.head, edge.base_weight)
    kappa = factor(graph, false, norm_of(edge.penalty, form.d) or "", form.d)
    curvature, lam = Curvature.of(form, w), float(edge.strength)
    slope = 2.0 * float(np.sqrt(len(false))) / kappa.value
    mu, radius = curvature.around(projection + slope * lam)
    at = projection + slope * required
    least = curvature.around(at)[0]
    why = ""
    if lam < required * (1.0 - ROUNDING):
        why = f"the strength {lam:.4g} is below the required {required:.4g}"
    elif mu == 0.0:
        why = curvature.why()
    part = projection**2 + (slope * lam) ** 2
    said = "w_hat is the minimiser of the problem; what a method returns is as near to it as its certificate says" + (
        f"; w_hat was proven to lie within {radius:.3g} of w, where mu holds" if curvature.local else ""
    )
    return ErrorBound(
        bound=np.inf if why else (projection + slope * lam) ** 2 / (mu**2 * form.n),
        theorem=np.inf if why else 2.0 * part / (mu**2 * form.n),
        holds=not why,
        strength=lam,
        required=required,
        at_required=at**2 / (least**2 * form.n) if least > 0.0 else np.inf,
        projection=projection,
        compatibility=kappa,
        convexity=mu,
        radius=radius,
        false_edges=tuple(graph.edges()[e] for e in false),
        nodes=form.n,
        why=why,
        assumed=(said, *assumed, *kappa.assumed),
    )


def _edges(form: Form) -> EdgeBlock:
    """The edges between nodes, of one TotalVariation with l1 or l2 on all coordinates."""
    if missing := without_gradient(form):
        raise MethodError(f"error_bound needs differentiable losses: {'; '.join(missing)}", missing)
    between = form.between
    if len(between) != 1 or form.unlike_edges or form.latent:
        names = ", ".join(block.name for block in (*between, *form.unlike_edges)) or "none"
        raise MethodError(f"error_bound is of models with one TotalVariation and no other edges; here are {names}")
    (edge,) = between
    if norm_of(edge.penalty, form.width(edge)) is None:
        raise MethodError(f"error_bound is of the penalties L1 and L2, and {edge.name} has another")
    if edge.features is not None and len(edge.features) < form.d:
        raise MethodError(f"error_bound needs edges that act on all coordinates; {edge.name} acts on some only")
    return edge


def _noise(form: Form, w: Array, covariance: Any, draws: int, seed: int) -> tuple[list[Array], tuple[str, ...]]:
    """The gradients at the truth, (n, d): that of the data, or some that are drawn."""
    if covariance is None:
        return [NodeGradients(form).full(w)], ("for these data and these true parameters",)
    C = per_node("the covariances", covariance, form, (form.d, form.d))
    if not np.allclose(C, C.transpose(0, 2, 1)):
        raise MethodError("the covariances must be symmetric")
    values = np.linalg.eigvalsh(C)
    if (values < -1e-9 * np.abs(values).max(initial=1e-300)).any():
        guilty = form.labels[int(np.argmin(values[:, 0]))]
        raise MethodError(f"the covariance of the node {guilty!r} has the negative eigenvalue {values.min():.3g}")
    rng, roots = np.random.default_rng(seed), square_roots(C)
    out = [np.einsum("ijk,ik->ij", roots, rng.standard_normal(form.shape)) for _ in range(draws)]
    said = f"data to come, with normal gradients of the given covariances, independent between nodes ({draws} draws)"
    return out, (said, "curvature as of the problem's own data")
