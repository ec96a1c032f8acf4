"""Strong convexity: moduli that are proved, of the whole objective, of nodes and of groups of nodes.

P - 1/2 sum_i mu_i ||w_i||^2 is convex where X'MX + K'CK - diag(mu) is positive semidefinite, with M and C the least
curvatures of the samples and of the edges. All bounds are verified (see `definite`): they hold for the data as stored.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..form import EdgeBlock, Form
from ..terms import Array, at_a_time, gram
from ..terms.penalties import AbstractSmoothPenalty
from .definite import U, least_of_sparse, least_of_stack

DENSE = 600  # up to this many parameters the whole Hessian is factorised densely
SPARSE = 5000  # and up to this many as a sparse matrix
CHUNK = 4_000_000  # entries of the Hessians of nodes that are held at a time


def strong_convexity(form: Form) -> float:
    """A mu with P - mu/2 ||w||^2 convex: a proved lower bound of the least eigenvalue of the least Hessian.

    For large problems that of the nodes alone (their samples and ground edges), where it is positive. 0 where nothing
    is proved; the matrix of more than `SPARSE` parameters is not looked at. Computed once for the strengths of what
    is curved, as `node_convexity` is.
    """
    curved = [edge for edge in form.edges if edge_modulus(edge, form.width(edge)) > 0]
    return form.once("strong convexity", _strengths(form, curved), lambda: _strong_convexity(form))


def _strong_convexity(form: Form) -> float:
    size = form.n * form.d
    if size > DENSE:
        local = float(node_convexity(form).min(initial=np.inf))
        if local > 0 or size > SPARSE:
            return local
    H, share = _least_hessian(form)
    if size <= DENSE:
        return float(least_of_stack(H.toarray()[None], share)[0])
    return least_of_sparse(H, share)


def node_convexity(form: Form) -> Array:
    """mu_i (n,) with P - 1/2 sum_i mu_i ||w_i||^2 convex, from the samples and ground edges of each node alone.

    No strength of a penalty between nodes changes them: along these they are found once.
    """
    key = _strengths(form, [edge for edge in form.edges if edge.ground])
    return form.once("node convexity", key, lambda: group_convexity(form, np.arange(form.n), form.n))


def _strengths(form: Form, edges: list[EdgeBlock]) -> tuple[float, ...]:
    """The strengths of the samples and of some edges."""
    return tuple(float(block.strength) for block in (*form.samples, *edges))


def group_convexity(form: Form, member: Array, count: int) -> Array:
    """mu_c (count,): the same for groups of nodes that have one parameter vector; a node with member -1 is in none.

    Restricted to equal parameters within groups, P - 1/2 sum_c mu_c ||theta_c||^2 is convex.
    """
    some = at_a_time(CHUNK // form.d**2, count)
    return np.concatenate([np.zeros(0), *(_of_groups(form, member, s.start, min(s.stop, count)) for s in some)])


def _of_groups(form: Form, member: Array, low: int, high: int) -> Array:
    """Of the groups low ... high - 1."""
    d = form.d
    H, terms = np.zeros((high - low, d, d)), np.zeros(high - low)

    def add(nodes: Array, Hessians: Array, count: int) -> None:
        group = member[nodes]
        here = (group >= low) & (group < high)
        np.add.at(H, group[here] - low, Hessians[here])
        np.add.at(terms, group[here] - low, count + 2.0)

    for edge in form.edges:
        mu = edge_modulus(edge, form.width(edge))
        if edge.ground and mu > 0:
            diagonal = np.zeros((d, d))
            columns = edge.columns(d)
            diagonal[columns, columns] = mu
            add(edge.tail, edge.weight[:, None, None] * diagonal, 1)
    for block in form.samples:
        m = block.loss.least_curvature()
        if m == 0:
            continue
        if block.stacks is None:
            add(block.node, (m * block.scale)[:, None, None] * np.eye(d), 1)
            continue
        for batch in block.stacks:
            add(batch.nodes, gram(batch.X, m * batch.pad(block.scale) * batch.mask), batch.X.shape[1])
    share = 1.1 * d * (float(terms.max(initial=0.0)) + 8.0) * U
    return least_of_stack(0.5 * (H + H.transpose(0, 2, 1)), share)


def edge_modulus(edge: EdgeBlock, k: int) -> float:
    """The modulus of a penalty, less the rounding of the eigenvalue that it may be."""
    mu = edge.penalty.strong_convexity()
    if isinstance(edge.penalty, AbstractSmoothPenalty) and mu != edge.penalty.smoothness():
        return max(0.0, mu - 16.0 * k * U * edge.penalty.smoothness())
    return mu


def _least_hessian(form: Form) -> tuple[sp.csr_array, float]:
    """X'MX + K'CK, and what share of its diagonal its rounding may be."""
    size, terms = form.n * form.d, np.zeros(form.n)
    H = sp.csr_array((size, size))
    for block in form.samples:
        m = np.repeat(block.scale * block.loss.least_curvature(), block.width)
        if m.any():
            H = H + block.A.T @ sp.diags_array(m) @ block.A
            terms += np.bincount(block.node, minlength=form.n) + 3.0
    for edge in form.edges:
        mu = edge_modulus(edge, form.width(edge))
        if mu > 0:
            columns = edge.columns(form.d)
            chosen = np.zeros(form.d)
            chosen[columns] = 1.0
            L = edge.K.T @ sp.diags_array(mu * edge.weight) @ edge.K
            H = H + sp.kron(L, sp.diags_array(chosen), format="csr")
            terms += abs(edge.transposed).sum(axis=1) + 3.0
    # |dH| <= g |X|'M|X| + g |K|'C|K|, and |K|'C|K| has rows that couple d coordinates of a node and its neighbours
    width = form.d + float(np.diff(sp.csr_array(H).indptr).max(initial=0))
    H = sp.csr_array(0.5 * (H + H.T))
    return H, 1.1 * width * (float(terms.max(initial=0.0)) + 8.0) * U
