"""Bounds as printed: of GTV minimisation, of graph-fused M-estimation, of networks; what of them does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import checks
from ...base.tables import Stated
from ...errors import MethodError
from ...form import Form
from ...inputs import Graph
from ...oracles import NodeGradients
from ...terms import Array
from ...terms.losses import AbstractQuadraticLoss
from ..arguments import all_parameters, edge_positions, form_of
from ..bounds import error_bound as right_error_bound

# ---- the duality gap (34) of GTV minimisation, and the optimality condition (25) of its edges ------------------------
OFF = 1e-12  # of the numbers at a node: what lies further off the row space is no rounding
ROUNDING = 1e-12  # of the capacity of an edge


def gap(problem: Any, w: Any, flows: Any) -> float:
    """The gap (34) of GTV minimisation, as printed: P(w) less the dual value at the flows as they are,

        sum_i L_i(w_i) + sum_e g_e((Kw)_e)  -  ( - sum_i L_i*(-s_i) - sum_e g_e*(u_e) ),     s_i = (K'u)_i.

    It bounds P(w) - P* (weak duality). What does not hold is the sentence below (34), that it falls below any tolerance
    after finitely many iterations of Algorithm 1: where a node has fewer samples than parameters, or none, L_i* is
    +inf off the row space of X_i, and so is (34) after every round. The certificates of the library repair the flows
    first (docs/certificates.md).

    Parameters
    ----------
    problem : Problem
        Of squared or mean losses.
    w : (n, d) array, DataFrame by label and feature, or mapping from labels to vectors
        Of all nodes, latent ones too.
    flows : sequence of (m, k) arrays
        Of every penalty, in the order of the terms: what an observer sees as "flows".

    Returns
    -------
    float
        inf where s_i is off the row space by more than 1e-12 of its size (at the end of a run, where only rounding is
        left, it is finite), or a flow beyond its capacity by more than 1e-12 of it.

    Raises
    ------
    MethodError
        For other losses, and for arrays of other shapes.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual(balance=1.0, relaxation=1.0), rounds=5, gap=0, observe=("w", "flows"))
    >>> gr.theory.printed.gap(problem, run.observed["w"][5], [u[5] for u in run.observed["flows"]]) > 0
    True
    """
    form = form_of(problem, "the gap (34)").frozen()
    for block in form.samples:
        if not isinstance(block.loss, AbstractQuadraticLoss):
            raise MethodError(f"the gap (34) is computed for squared and mean losses; here is {block.loss.called()}")
    point, u = all_parameters(w, form, "the parameters"), _flows(flows, form)
    dual = 0.0
    for edge, each in zip(form.edges, u, strict=True):
        inside = edge.clip(each)
        near = np.abs(each - inside) <= ROUNDING * edge.weight[:, None]
        dual += float(edge.duals(np.where(near, inside, each)).sum())
    return float(form.primal(point) - (dual - _conjugates(form, u).sum()))


def _conjugates(form: Form, u: tuple[Array, ...]) -> Array:
    """L_i*(-s_i), (n,): with L_i(w) = c + <g, w> + w'Hw/2 it is v'H^+ v/2 - c at v = -s_i - g in the range of H."""
    losses, zero, v = NodeGradients(replace(form, edges=())), np.zeros(form.shape), np.zeros(form.shape)
    for edge, each in zip(form.edges, u, strict=True):
        edge.add_adjoint(-each, v)
    g = losses.full(zero)
    size = np.abs(v).max(axis=1) + np.abs(g).max(axis=1)
    values, vectors = np.linalg.eigh(losses.hessians(zero))
    along = np.einsum("ikj,ik->ij", vectors, v - g)
    flat = values <= 1e-12 * np.maximum(values[:, -1:], 1e-300)
    off = np.where(flat, np.abs(along), 0.0).max(axis=1) > OFF * size
    inner = np.where(flat, 0.0, along**2 / np.where(flat, 1.0, values)).sum(axis=1)
    return np.where(off, np.inf, 0.5 * inner - losses.value(zero))


def edge_residuals(problem: Any, w: Any, flows: Any) -> tuple[Array, ...]:
    """The residuals of the second line of (25) of GTV minimisation, as printed, at every edge:

        phi(z/c) + phi*(u/c) - <z, u>/c^2 >= 0,    c = lambda A_e, z = w_tail - w_head,

    which is 0 exactly where z lies in c times the subdifferential of phi* at u/c, as (25) prints it. The right
    condition has no factor c: ``phi(z) + phi*(u/c) - <z, u>/c`` is 0 (the residuals of a certificate, divided by c).
    For norms, of which phi* is an indicator, both say the same; for 1/2 ||.||^2 the print asks for u = z, where
    u = c z is right.

    Parameters
    ----------
    problem, w, flows
        As for `gap`, with any losses.

    Returns
    -------
    tuple of (m,) arrays
        Of every term with edges, node penalties included.

    Raises
    ------
    MethodError
        For arrays of other shapes.

    Examples
    --------
    >>> found = problem.solve(gap=1e-9)
    >>> flows = found.certificate.dual_point.flows
    >>> float(gr.theory.printed.edge_residuals(problem, found.certificate.w, flows)[0].max()) < 1e-4
    True
    """
    form = form_of(problem, "the condition (25)").frozen()
    point, out = all_parameters(w, form, "the parameters"), list[Array]()
    for edge, u in zip(form.edges, _flows(flows, form), strict=True):
        c = edge.weight[:, None]
        z = edge.difference(point) / c
        out.append(edge.penalty.value(z) + edge.penalty.conjugate(u / c) - np.einsum("ij,ij->i", z, u / c))
    return tuple(out)


def _flows(flows: Any, form: Form) -> tuple[Array, ...]:
    here = form.nothing().flows
    given = checks.sequence(flows, "the flows", "a sequence of arrays, one for each term on edges", MethodError)
    if len(given) != len(here):
        raise MethodError(f"the flows are of {len(here)} terms, got {len(given)} arrays")
    out: list[Array] = []
    for u, like, edge in zip(given, here, form.edges, strict=True):
        each = checks.numbers(u, f"the flows of {edge.name}", "an array", MethodError)
        if each.shape != like.shape or not np.isfinite(each).all():
            wanted = f"finite numbers of the shape {like.shape}"
            raise MethodError(f"the flows of {edge.name} must be {wanted}, got {each.shape}")
        out.append(each)
    return tuple(out)


# ---- the bound (6) of graph-fused M-estimation -----------------------------------------------------------------------
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
    right, form = right_error_bound(problem, truth), form_of(problem, "error_bound").frozen()
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


# ---- decentralised inference as printed: Table 1, how fast the spectral gaps of networks close -----------------------
EXPONENTS = {"expander": 0.0, "grid": 1.0, "star": 2.0, "cycle": 2.0, "Erdos-Renyi": 0.0}


def sparseness_exponent(family: str, dimension: int | None = None) -> float:
    """q of Table 1 of Statistical inference for decentralised federated learning, as printed: the spectral gap of the
    lazy Metropolis matrix closes as K^-q.

    For the star it prints 2, and so K = o(T^(1/13)); the gap is exactly 1/(2 K), so that q = 1 and K = o(T^(1/7)). The
    rest holds; `graphreg.theory.sparseness_exponent` computes it of any family.

    Parameters
    ----------
    family : {"expander", "grid", "star", "cycle", "Erdos-Renyi", "torus"}
        The grid is that of two dimensions.
    dimension : int, optional
        k of a torus, of which q = 2/k; for no other family.

    Returns
    -------
    float

    Raises
    ------
    MethodError
        For another family, and for a torus without its dimension.

    Examples
    --------
    >>> gr.theory.printed.sparseness_exponent("star"), gr.theory.printed.sparseness_exponent("torus", 2)
    (2.0, 1.0)
    """
    checks.one_of(*EXPONENTS, "torus")(family, "family", MethodError)
    if (family == "torus") != (dimension is not None):
        raise MethodError(f"a torus has a dimension, and no other family has, got {family!r} and {dimension!r}")
    return EXPONENTS[family] if dimension is None else 2.0 / int(checks.count(dimension, "dimension", MethodError))
