"""Latent nodes at their minimisers given the others, where that is a linear system: of squared penalties.

There u_e = c_e z_e is conserved at the latent nodes by construction, and a method that carries no flows need not know
better than its clients what the centres of their clusters are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.csgraph import connected_components
from ..terms import Array
from ..terms.penalties import is_equality, squares
from .form import EdgeBlock, Form


def has_latent_minimisers(form: Form) -> bool:
    """True where only squared penalties on all coordinates tie the latent nodes, and equations these to one another."""
    n = form.space.n_observed
    touching = (edge for edge in form.edges if edge.map.edges and ((edge.tail >= n).any() or (edge.head >= n).any()))
    return bool(form.latent) and all(_fits(form, edge) for edge in touching)


def with_latent_minimisers(form: Form, w: Array) -> Array:
    """w with the latent nodes at the minimisers of the penalties given the others, where `has_latent_minimisers`."""
    return with_latent_means(form, w) if has_latent_minimisers(form) else w


def with_latent_means(form: Form, w: Array) -> Array:
    """w with the latent nodes where sum_e c_e/2 ||(Kw)_e||^2 is least given the others.

    Where penalties are SquaredL2 these are their minimisers, else weighted means of their neighbours. Latent nodes that
    equations tie together share one value.
    """
    n, latent = form.space.n_observed, len(form.latent)
    if not latent:
        return w
    L: Any = sp.csr_array((form.n, form.n))
    ties: Any = sp.csr_array((form.n, form.n))
    for edge in form.between:
        if is_equality(edge.penalty, form.width(edge)):
            ties = ties + sp.csr_array((np.ones(len(edge.tail)), (edge.tail, edge.head)), shape=ties.shape)
        else:
            L = L + edge.K.T @ sp.diags_array(edge.weight) @ edge.K
    from scipy.sparse.linalg import splu

    groups, member = connected_components(sp.csr_array(ties)[n:, n:], directed=False)  # latent nodes that are one
    onto = sp.csr_array((np.ones(latent), (np.arange(latent), member)), shape=(latent, groups))
    L, out = sp.csr_array(L), w.copy()
    H, pull = onto.T @ L[n:, n:] @ onto, -(onto.T @ (L[n:, :n] @ w[:n]))
    H = H + sp.diags_array((H.diagonal() == 0.0).astype(float))  # those that no edge touches stay at 0
    out[n:] = splu(sp.csc_matrix(H)).solve(pull)[member]
    return out


def _fits(form: Form, edge: EdgeBlock) -> bool:
    if is_equality(edge.penalty, form.width(edge)):
        return bool((edge.tail >= form.space.n_observed).all())
    return halves_squares(form, edge) and not edge.ground and edge.features is None


def halves_squares(form: Form, edge: EdgeBlock) -> bool:
    """True where the penalty is 1/2 ||z||^2."""
    Q = squares(edge.penalty, form.width(edge))
    return Q is not None and np.array_equal(Q, np.eye(len(Q)))
