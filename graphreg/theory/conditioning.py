"""The constants of a problem on which speed and step sizes depend, per node and of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from ..base.display import Html, Shown
from ..base.tables import Table, whole_html
from ..certificate import strong_convexity
from ..form import Form
from ..methods import AsyncL2GD, ExactDiffusion, FedADMM, GradientTracking
from ..network import InProcess, Ledger, LocalView, arcs_of
from ..oracles import NodeGradients
from ..terms import Array
from ..terms.losses import AbstractQuadraticLoss
from ..terms.penalties import AbstractSmoothPenalty
from .arguments import form_of
from .curvature import ROUNDING
from .spectrum import laplacian, largest


@dataclass(frozen=True, eq=False)
class Constants(Shown):
    """The constants of a problem.

    Attributes
    ----------
    nodes : Table
        One row per node (latent ones last): samples, smoothness (L_i: no eigenvalue of the Hessian of f_i and its
        smooth ground edges is larger), strong_convexity (mu_i: none is smaller), condition (L_i / mu_i),
        sample_smoothness (of the steepest sample, m_i s_r l_r: for steps with single samples), kind ("exact" or
        "bound") and degree (edges at the node, those to the ground included).
    whole : Table
        The same of the whole objective, and the steps up to which methods that apply are known to converge.
    """

    nodes: Table = field(repr=False)
    whole: Table = field(repr=False)

    @property
    def assumed(self) -> tuple[str, ...]:
        return self.whole.assumed

    def __str__(self) -> str:
        return f"{self.whole}\n\n{self.nodes}"

    def __repr__(self) -> str:
        return f"Constants of {len(self.nodes)} nodes"

    def _html(self) -> Iterable[Html]:
        yield from (whole_html(self.whole), whole_html(self.nodes))


def constants(problem: Any) -> Constants:
    """Smoothness, strong convexity, degrees and steps of a problem at its present strengths, per node and of the whole.

    Parameters
    ----------
    problem : Problem

    Examples
    --------
    >>> gr.theory.constants(problem).nodes[["smoothness", "strong_convexity"]].shape
    (4, 2)
    """
    form = form_of(problem, "constants").frozen()
    gradients = NodeGradients(form)
    L, mu = gradients.smoothness, gradients.convexity
    mu = np.where(mu > ROUNDING * L, mu, 0.0)  # of a singular Hessian rounding leaves a little
    columns = {
        "samples": gradients.counts,
        "smoothness": L,
        "strong_convexity": mu,
        "condition": _ratio(L, mu),
        "sample_smoothness": gradients.sample_smoothness,
        "kind": np.where(_exact(form), "exact", "bound"),
        "degree": form.degree().astype(int),
    }
    nodes = pd.DataFrame(columns, index=pd.Index(form.labels, name="node", tupleize_cols=False))
    rows = {**_whole(form, L, mu), **_steps(form)}
    whole = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "kind", "meaning"])
    assumed = (
        "of losses and smooth ground edges in the user's units, all scales and strengths included",
        "bounds hold everywhere; a loss without a bound of its curvature (Poisson) has smoothness inf",
    )
    title = f"constants of {form.n} nodes"
    return Constants(Table.of(nodes, title, assumed), Table.of(whole, "constants of the whole problem", assumed))


def _ratio(L: Array, mu: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mu > 0, L / mu, np.where(L > 0, np.inf, np.nan))


def _exact(form: Form) -> Array:
    """True of nodes whose L_i and mu_i are the extreme eigenvalues and no bounds: quadratic losses, and ridges on all
    coordinates."""
    out = np.ones(form.n, dtype=bool)
    for block in form.samples:
        if not isinstance(block.loss, AbstractQuadraticLoss):
            out[block.node] = False
    for edge in form.to_ground:
        whole = edge.features is None or len(edge.features) == form.d
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            out[edge.tail] &= whole and edge.penalty.smoothness() == edge.penalty.strong_convexity()
    return out


Row = tuple[float, str, str]


def _whole(form: Form, L: Array, mu: Array) -> dict[str, Row]:
    """Constants of the objective: the nodes' parts, which are separate, and the edges."""
    ties, rough = _of_edges(form)
    low, top = strong_convexity(form), float(L.max(initial=0.0))
    total = top + ties
    degree = form.degree()
    missing = f"; {', '.join(rough)}: no gradient" if rough else ""
    exact = "exact" if _exact(form).all() else "bound"
    return {
        "smoothness of the nodes": (top, exact, "the largest L_i"),
        "strong convexity of the nodes": (float(mu.min(initial=np.inf)), exact, "the least mu_i"),
        "smoothness of the edges": (ties, "bound" if ties else "exact", f"of smooth edges between nodes{missing}"),
        "smoothness": (total, "bound", "of the differentiable part, the sum of the two"),
        "strong convexity": (low, "bound", "of the whole: ||w - w*||^2 <= 2 gap / mu"),
        "condition": (float(_ratio(np.array(total), np.array(low))), "bound", "smoothness / strong convexity"),
        "largest degree": (float(degree.max(initial=0.0)), "exact", "edges at a node, with those to the ground"),
        "mean degree": (float(degree.mean()), "exact", "edges at a node, with those to the ground"),
    }


def _of_edges(form: Form) -> tuple[float, list[str]]:
    """A bound of the largest eigenvalue of the Hessian of the smooth edges between nodes; the names of the others."""
    total, rough = 0.0, list[str]()
    for edge in form.edges:
        if edge.map.noun == "node":
            continue
        if not isinstance(edge.penalty, AbstractSmoothPenalty):
            rough.append(edge.name)
            continue
        c = edge.penalty.smoothness() * edge.weight
        if edge.map.edges is None:
            K = edge.flat(form.d)
            L = sp.csr_array(K.T @ sp.diags_array(np.repeat(c, form.width(edge))) @ K)
        else:
            L = laplacian(edge.tail, edge.head, c, form.n)
        found = largest(L)
        total += found.value + found.residual
    return total, list(dict.fromkeys(rough))


def _steps(form: Form) -> dict[str, Row]:
    """Steps of the methods that apply, as these compute them."""
    view = LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)))
    L = view.gradients.smoothness
    steps: list[tuple[str, float, str]] = []
    names = [method.name for method in (ExactDiffusion(), GradientTracking()) if not method.lacks(form)]
    if names and L.max() > 0:
        steps.append((" and ".join(names), 2.0 / float(L.max()), "2 / max L_i; their default is half of it"))
    walk = AsyncL2GD()
    if not walk.lacks(form):
        step = float(walk.init(view, None).step_size.min())
        steps.append((walk.name, step, "1 / (2 L) with the expected smoothness L (Theorem 3.5)"))
    gossip = FedADMM()
    if not gossip.lacks(form) and np.isfinite(L).all():
        state = gossip.init(view, None)
        each = state.L + state.scale.rho * state.scale.degree
        least = float(1.0 / each.max()) if each.max(initial=0.0) > 0 else np.inf
        steps.append((gossip.name, least, f"the least 1 / (L_i + rho deg_i), at rho = {state.scale.rho:.4g}"))
    return {f"step of {name}": (step, "bound", meaning) for name, step, meaning in steps}
