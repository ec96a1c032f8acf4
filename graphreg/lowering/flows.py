"""Flows for parameters that were found without any: those across edges whose ends agree balance the rest."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from ..form import DualPoint, Form
from ..terms.records import Array

RIDGE = 1e-12  # relative, where the edges leave components of their own


def balancing_flows(form: Form, w: Array) -> tuple[Array, ...]:
    """Subgradients of the penalties at w; across edges between nodes that agree, where any flow within the capacity is
    one, the shortest ones that balance what is left: u = -K x with K'K x = (K'u + X'a) of the others, clipped.

    Parameters that are equal throughout clusters (a consensus, the model of a cluster) have all their slack there.
    """
    flows = [edge.weight[:, None] * edge.penalty.subgradient(edge.difference(w)) for edge in form.edges]
    level = [_level(form, k, w) for k in range(len(form.edges))]
    for u, rows in zip(flows, level, strict=True):
        u[rows] = 0.0
    left = form.conservation(DualPoint(tuple(flows), form.gradient_prices(w)))
    groups: dict[tuple[int, ...], list[int]] = {}
    for j in range(form.d):
        touching = tuple(k for k in range(len(level)) if level[k].any() and _place(form, k, j) >= 0)
        groups.setdefault(touching, []).append(j)
    for touching, columns in groups.items():
        if touching:
            K = sp.vstack([form.edges[k].K[level[k]] for k in touching]).tocsr()
            matrix = sp.csc_array(K.T @ K)
            matrix = matrix + RIDGE * max(float(matrix.diagonal().max()), 1.0) * sp.eye_array(form.n)
            x = spsolve(sp.csc_array(matrix), left[:, columns]).reshape(form.n, len(columns))
            for k in touching:
                into = np.array([_place(form, k, j) for j in columns])
                flows[k][np.ix_(level[k], into)] = -(form.edges[k].K[level[k]] @ x)
    return tuple(edge.clip(u) for edge, u in zip(form.edges, flows, strict=True))


def _level(form: Form, k: int, w: Array) -> Array:
    """The edges of block k between two nodes that agree on all its coordinates, (m,) bool."""
    edge = form.edges[k]
    return (edge.difference(w) == 0.0).all(axis=1) & (not edge.ground)


def _place(form: Form, k: int, j: int) -> int:
    """Where coordinate j stands among those of block k; -1 where it is none of them."""
    features = form.edges[k].features
    if features is None:
        return j
    found = np.flatnonzero(features == j)
    return int(found[0]) if len(found) else -1
