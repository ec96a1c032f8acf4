"""Formulas as the papers print them, where the print does not hold; `differences` lists all such places."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.tables import ResultWithAssumptions, Table
from ..errors import MethodError
from ..form import Form
from ..inputs import Graph
from ..network import ClusterTree, arcs_of, tree_of, without_tree
from ..oracles import NodeGradients
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss
from .arguments import all_parameters, edge_positions, form_of
from .bounds import error_bound as right_error_bound

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
class PrintedErrorBound(ResultWithAssumptions):
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


def network_mean(problem: Any, theta: Any) -> Array:
    """The first expression for thetabar in (2.2) of Personalised FL with known clusters, as printed:

        sum_j alpha_j thetabar_j / sum_j alpha_j.

    It is not its second one, sum_j alpha_j sum_i gamma_i theta_i / sum_j alpha_j sum_i gamma_i, unless all clusters
    have the same Gamma_j = sum_i gamma_i. The second is right: Propositions 2.2 and 3.1 hold for it alone, and
    ``solution.latent`` has it at the root.

    Parameters
    ----------
    problem : Problem
        With a Hierarchy of two levels and SquaredL2.
    theta : (n, d) array
        The parameters of the clients, in node order, as ``solution.coef``.

    Returns
    -------
    (r, d) array
        For each root; there is one unless the hierarchy is a forest.

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, and for an array of another shape.

    Examples
    --------
    >>> gr.theory.printed.network_mean(tree, tree.solve().coef).shape
    (1, 2)
    """
    tree, values = _read(problem, theta, "(2.2)")
    return tree.root_means(tree.cluster_means(values), tree.alpha)[tree.roots]


def cluster_gradients(problem: Any, w: Any) -> Array:
    """The gradients of (2.3) in the cluster centres w_j, as appendix A.1 of Personalised FL with known clusters
    prints them:

        sum_i in j (theta_i - w_j) + lambda_j (w_j - wbar).

    At the optimum they are not 0. Right is sum_i gamma_i (w_j - theta_i) + lambda_j (w_j - wbar), which is, and of
    which the paper's next display follows.

    Parameters
    ----------
    problem : Problem
        With a Hierarchy of two levels and SquaredL2.
    w : (n, d) array
        Of all nodes, the clients, then the clusters and the root: ``solution.certificate.w``.

    Returns
    -------
    (k, d) array
        For each cluster, in the order of the problem's nodes.

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, and for an array of another shape.

    Examples
    --------
    >>> gr.theory.printed.cluster_gradients(tree, tree.solve().certificate.w).shape
    (2, 2)
    """
    tree, values = _read(problem, w, "appendix A.1", latent=True)
    out, centers = np.zeros_like(values), values[tree.cluster[tree.clients]]
    np.add.at(out, tree.cluster[tree.clients], values[tree.clients] - centers)
    j = tree.clusters_with_root
    lam = np.where(np.isinf(tree.lam[j]), 0.0, tree.lam[j])  # tied to the root, where w_j = wbar
    out[j] += lam[:, None] * (values[j] - values[tree.root[j]])
    return out[tree.clusters]


def likelihood(problem: Any, theta: Any) -> float:
    """The number that section 5 of Personalised FL with known clusters prints (after (5.1), without a number) as the
    maximum likelihood problem in the parameters of the clients:

        sum_i  1/sigma_i^2 ||y_i - X_i theta_i||^2 + gamma_i alpha_j/2 ||theta_i - thetabar||^2
               + gamma_i (1 - alpha_j)/2 ||theta_i - thetabar_j||.

    Minus the log-likelihood has 1/(2 sigma_i^2), and the square of the last norm: (2.1) with f_i =
    1/(2 sigma_i^2) ||y_i - X_i theta_i||^2, whose minimiser is another one.

    Parameters
    ----------
    problem : Problem
        (2.1): `SquaredLoss` with ``scale = 1 / sigma_i^2`` and a Hierarchy of two levels and SquaredL2.
    theta : (n, d) array
        The parameters of the clients, in node order, as ``solution.coef``.

    Returns
    -------
    float

    Raises
    ------
    MethodError
        For a problem without such a hierarchy, other losses, and an array of another shape.

    Examples
    --------
    >>> at = tree.solve()
    >>> gr.theory.printed.likelihood(tree, at.coef) > at.objective
    True
    """
    tree, values = _read(problem, theta, "the likelihood of section 5")
    blocks = form_of(problem, "the likelihood of section 5").frozen().samples
    if not all(isinstance(block.loss, AbstractQuadraticLoss) for block in blocks):
        raise MethodError(
            "the likelihood of section 5 is that of squared losses; write gr.SquaredLoss(data, scale=...)"
        )
    losses = sum(float(block.values(values).sum()) for block in blocks)
    center = tree.cluster_means(values)
    top = tree.root_means(center, tree.alpha * tree.total)
    i = tree.clients
    j, gamma = tree.cluster[i], tree.gamma[i]
    alpha = tree.alpha[j]
    to_top = np.where(alpha > 0.0, ((values[i] - top[tree.root[j]]) ** 2).sum(axis=1), 0.0)
    to_center = np.linalg.norm(values[i] - center[j], axis=1)
    return float(2.0 * losses + 0.5 * (gamma * (alpha * to_top + (1.0 - alpha) * to_center)).sum())


def _read(problem: Any, given: Any, what: str, *, latent: bool = False) -> tuple[ClusterTree, Array]:
    """The tree of a problem, and the parameters of all nodes; those of latent nodes are 0 where they are not given."""
    form = form_of(problem, what).frozen()
    if missing := without_tree(form):
        raise MethodError(f"{what} is of a Hierarchy of two levels: {'; '.join(missing)}", missing)
    shape = (form.n if latent else form.space.n_observed, form.d)
    found = checks.numbers(given, f"the parameters of {what}", f"an array of the shape {shape}", MethodError)
    if found.shape != shape or not np.isfinite(found).all():
        raise MethodError(f"the parameters of {what} must be finite numbers of the shape {shape}, got {found.shape}")
    values = np.zeros(form.shape)
    values[: len(found)] = found
    return tree_of(form, arcs_of(form)), values


def communication_rounds(p_global: float, p_cluster: float, rounds: float) -> tuple[float, float]:
    """Proposition 3.2 of Personalised FL with known clusters, as printed: the expected numbers of communication rounds
    of Algorithm 1 between clusters and within cluster j,

        p_0 (1 - p_0) T,      (1 - p_0) p_j (1 - p_j) T.

    The first holds where all alpha_j gamma_i are equal. A round within a cluster is needed where its coin shows 1
    after a local step, which has the probability (1 - p_0) p_j (1 - p_0) (1 - p_j): the second lacks a factor
    1 - p_0, and where the gamma_i of a cluster differ it is (1 - p_0) p_j T. The ledger of `AsyncL2GD` counts what was
    sent.

    Parameters
    ----------
    p_global, p_cluster : float
        p_0 and p_j, in [0, 1].
    rounds : float
        T.

    Returns
    -------
    tuple of float

    Raises
    ------
    MethodError
        For numbers out of range.

    Examples
    --------
    >>> gr.theory.printed.communication_rounds(0.5, 0.5, 800)
    (200.0, 100.0)
    """
    chance = checks.inside("[0, 1]", "a probability in [0, 1]")
    p0, p = (float(chance(p, name, MethodError)) for p, name in ((p_global, "p_global"), (p_cluster, "p_cluster")))
    T = float(checks.nonnegative(rounds, "rounds", MethodError))
    return p0 * (1.0 - p0) * T, (1.0 - p0) * p * (1.0 - p) * T


def james_stein_weights(n: int) -> tuple[float, float]:
    """The weights of y_1 and of the mean of the other y_i in the best linear unbiased estimator of theta_1, as appendix
    A.12 of Personalised FL with known clusters prints them: ((n - 1) / 2n, (n + 1) / 2n), for y_i ~ N(theta_i, I) and
    theta_i ~ N(thetabar, I). They are the wrong way round: (n + 1) / 2n is the weight of y_1
    (`graphreg.inference.james_stein` has them right), and only so does the James-Stein variant of Proposition 5.4
    dominate the estimator.

    Parameters
    ----------
    n : int
        The number of clients, at least 2.

    Returns
    -------
    tuple of float

    Raises
    ------
    MethodError
        For what is no such number.

    Examples
    --------
    >>> gr.theory.printed.james_stein_weights(4)
    (0.375, 0.625)
    """
    n = int(checks.whole(2)(n, "n", MethodError))
    return (n - 1) / (2 * n), (n + 1) / (2 * n)


COLUMNS = ("paper", "place", "print", "holds", "as_printed", "right", "unnamed")


def differences() -> Table:
    """Every place of the four papers that prints something else than what holds, as far as it is known.

    Returns
    -------
    Table
        One row per place: paper, place (an equation, a theorem), print, holds; as_printed and right, what to write for
        what is printed and for what holds, empty where nothing of the library computes it; and unnamed, why nothing
        computes what is printed.

    Examples
    --------
    >>> table = gr.theory.printed.differences()
    >>> table.loc[table["place"] == "(4.1)", "as_printed"].item()
    "gr.AsyncAL2SGD(as_printed='(4.1)')"
    """
    known = tomllib.loads((files("graphreg.theory") / "printed.toml").read_text(encoding="utf-8"))
    rows = [{"paper": paper, **place} for paper, places in known.items() for place in places]
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS)).fillna("")
    title = "where the papers print something else than what holds"
    return Table.of(frame, title, ("what was found so far, by computing it",))
