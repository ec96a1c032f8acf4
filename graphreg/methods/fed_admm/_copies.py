"""The edges' half of Fed-ADMM: a flow per edge, and a copy of the parameters per edge and end.

Smooth edges to the ground have neither: they are a part of the gradients of their nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import EdgeBlock, Form
from ...network import LocalView
from ...terms import Array
from ...terms.penalties import AbstractSmoothPenalty

Flows = tuple[Array, ...]
SIGNS = 1.0, -1.0  # of an edge's ends


@dataclass(frozen=True)
class Copies:
    """Flows and copies, one array each per block of edges that has them."""

    u: Flows  # -alpha at the tails, alpha at the heads: outputs of the edges' prox
    beta: tuple[Array, ...]  # those at the tails above those at the heads, (2m, k); (m, k) on edges to the ground

    @staticmethod
    def of(view: LocalView, w: Array, flows: Flows) -> Copies:
        """Copies that agree with the parameters, and the flows of all edges that have copies."""
        each = copied(view.form)
        return Copies(tuple(flows[k] for k, _ in each), tuple(_at_ends(edge, w) for _, edge in each))

    def coupling_gradient(self, view: LocalView, w: Array, rho: float) -> Array:
        """K'u + rho sum over the edges of each node of (theta_i - beta_ij), (n, d)."""
        out = np.zeros(view.form.shape)
        for (k, edge), u, beta in zip(copied(view.form), self.u, self.beta, strict=True):
            edge.add_adjoint(u, out)
            out[:, edge.coordinates] += rho * (view.ends[k] @ (_at_ends(edge, w) - beta))
        return out

    def step(self, view: LocalView, w: Array, rho: float, present: Array) -> Copies:
        """(18) and (19) at the edges both of whose ends are there; the others stay."""
        flows: list[Array] = []
        copies: list[Array] = []
        for (_, edge), u, beta in zip(copied(view.form), self.u, self.beta, strict=True):
            meet = np.flatnonzero(np.all([present[end] for end in edge.ends], axis=0))
            sigma = rho / len(edge.ends)
            v = u[meet] + sigma * edge.difference(w)[meet]
            new = u.copy()
            new[meet] = edge.penalty.dual_prox(v, np.full(len(meet), sigma), edge.weight[meet])
            move = (new - u)[meet] / rho
            copy = beta.copy()
            for sign, end, own in zip(SIGNS, edge.ends, np.split(copy, len(edge.ends)), strict=False):
                own[meet] = w[:, edge.coordinates][end[meet]] - sign * move
            flows.append(new)
            copies.append(copy)
        return Copies(tuple(flows), tuple(copies))

    def flows(self, form: Form, w: Array) -> Flows:
        """The flows of all edges, at the parameters w."""
        return flows_of(form, w, self.u)


def flows_of(form: Form, w: Array, u: Flows) -> Flows:
    """The flows of all edges, from those of the edges that have copies, at the parameters w."""
    own = iter(u)
    return tuple(edge.gradients(w) if smooth_ground(edge) else next(own) for edge in form.edges)


def copies_at(view: LocalView) -> Array:
    """deg_i, the number of copies of each node, (n,)."""
    return sum((np.asarray(view.ends[k].sum(axis=1)) for k, _ in copied(view.form)), np.zeros(view.form.n))


def copied(form: Form) -> list[tuple[int, EdgeBlock]]:
    """The edge blocks that have copies, with their numbers in the form."""
    return [(k, edge) for k, edge in enumerate(form.edges) if not smooth_ground(edge)]


def smooth_ground(edge: EdgeBlock) -> bool:
    return edge.ground and isinstance(edge.penalty, AbstractSmoothPenalty)


def _at_ends(edge: EdgeBlock, w: Array) -> Array:
    """The parameters at the tails, and below them those at the heads, on the coordinates of the edges."""
    return w[:, edge.coordinates][np.concatenate(edge.ends)]
