"""Bounds of the distance of an optimum from w on clusters that are proved: their nodes' curvatures add up.

With H_i least Hessians of the samples and ground edges of node i, P(w) - P* >= 1/2 sum_i ||w_i - w*_i||^2_{H_i} at
every optimum w*. Where w*_i = theta for all nodes of a cluster, w_i = wbar + e_i there, and mu is the least eigenvalue
of the sum of its H_i:

    ||wbar - theta|| <= (sqrt(2 G) + E) / sqrt(mu),        E^2 = sum_i ||e_i||^2 tr H_i.
"""

from __future__ import annotations

import numpy as np

from ...form import EdgeBlock, Form
from ...inputs import means_of
from ...terms import Array
from ...terms.penalties import row_norm
from ..convexity import edge_modulus, group_convexity
from ..record import Certificate
from .near import upper_gap

UP = 1.0 + 1e-9  # for the rounding of the sums


def cluster_radius(certificate: Certificate, member: Array, edges: list[EdgeBlock]) -> list[Array]:
    """An upper bound of ||z - z*|| on the edges of each block between nodes, given nodes ``member`` (n,) that are
    proved to be equal at every optimum."""
    form, w, gap = certificate.form, certificate.w, upper_gap(certificate)
    if not np.isfinite(gap):
        return [np.full(len(edge.tail), np.inf) for edge in edges]
    count = int(member.max(initial=-1)) + 1
    mu = group_convexity(form, member, count)
    away = row_norm(w - means_of(member, w)) + 1e-15 * row_norm(w)
    E = np.sqrt(np.bincount(member, away**2 * _traces(form), count))
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(mu > 0, 1.0 / mu, np.inf)
        own = np.where(mu > 0, E * np.sqrt(inverse), np.inf)
        found = list[Array]()
        for edge in edges:
            a, b = member[edge.tail], member[edge.head]
            both = np.sqrt(2.0 * gap * (inverse[a] + inverse[b]))
            far = both + own[a] + own[b] + away[edge.tail] + away[edge.head]
            found.append(np.where(np.isfinite(inverse[a] + inverse[b]), far * UP, np.inf))
    return found


def _traces(form: Form) -> Array:
    """tr H_i, (n,)."""
    out = np.zeros(form.n)
    for block in form.at_nodes:
        squares = (block.norms**2).reshape(len(block.node), -1).max(axis=1)
        each = block.loss.least_curvature() * block.scale * squares * (form.d if block.X is None else 1.0)
        out += np.bincount(block.node, each, form.n)
    for edge in form.to_ground:
        k = form.width(edge)
        out += np.bincount(edge.tail, k * edge_modulus(edge, k) * edge.weight, form.n)
    return out * UP
