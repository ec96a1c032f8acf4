"""Latent nodes at their minimisers given the others, where that is a linear system: of squared penalties.

There u_e = c_e z_e is conserved at the latent nodes by construction, and a method that carries no flows need not know
better than its clients what the centres of their clusters are.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..form import EdgeBlock, Form
from ..terms.penalties.squared_l2 import SquaredL2
from ..terms.penalties.zero import Zero
from ..terms.records import Array


def settles(form: Form) -> bool:
    """Whether only squared penalties on all coordinates tie the latent nodes, and Zero these to one another."""
    return bool(form.latent) and all(_fits(form, edge) for edge in _touching(form))


def settled(form: Form, w: Array) -> Array:
    """w with the latent nodes at the minimisers of the penalties given the others, where `settles`."""
    if not settles(form):
        return w
    n, count = form.space.n_observed, len(form.latent)
    squared, tied = ([edge for edge in _touching(form) if isinstance(edge.penalty, kind)] for kind in (SquaredL2, Zero))
    links = sp.coo_array((count, count))
    for edge in tied:
        links = links + sp.coo_array((np.ones(len(edge.tail)), (edge.tail - n, edge.head - n)), shape=links.shape)
    groups, member = connected_components(links, directed=False)  # latent nodes that are one
    onto = sp.csr_array((np.ones(count), (np.arange(count), member)), shape=(count, groups))
    H, pull = sp.csr_array((groups, groups)), np.zeros((groups, form.d))
    for edge in squared:
        K = sp.diags_array(np.sqrt(edge.weight)) @ edge.K
        latent = K[:, n:] @ onto
        H = H + latent.T @ latent
        pull -= latent.T @ (K[:, :n] @ w[:n])
    from scipy.sparse.linalg import splu

    out = w.copy()
    out[n:] = splu(sp.csc_matrix(H)).solve(pull)[member]
    return out


def _touching(form: Form) -> list[EdgeBlock]:
    n = form.space.n_observed
    return [edge for edge in form.edges if (edge.tail >= n).any() or (edge.head >= n).any()]


def _fits(form: Form, edge: EdgeBlock) -> bool:
    if isinstance(edge.penalty, Zero):
        return bool((edge.tail >= form.space.n_observed).all())
    return isinstance(edge.penalty, SquaredL2) and not edge.ground and edge.features is None
