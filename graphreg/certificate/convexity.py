"""Strong convexity: moduli that are proved, of the whole objective, of nodes and of groups of nodes.

P - 1/2 sum_i mu_i ||w_i||^2 is convex where X'MX + K'CK - diag(mu) is positive semidefinite, with M and C the least
curvatures of the samples and of the edges. All bounds are verified, by lower bounds of smallest eigenvalues that hold
whatever rounding did.

Let A be known as floats up to an error that is at most ``share`` times its diagonal in the order of symmetric matrices
(the rounding of a Gram matrix is: |dA_ij| <= g sqrt(a_ii a_jj), and so |x'dA x| <= d g sum a_ii x_i^2). If Cholesky's
method in floating point runs to its end on B = A - mu I - tau diag(A), then B >= -d g' diag(A) with
g' = (d + 2) u (S. M. Rump, Verification of positive definiteness, BIT 46, 2006; N. J. Higham, Accuracy and Stability of
Numerical Algorithms, theorem 10.3), and so mu is a lower bound where tau >= share + d g'. As all is relative to the
diagonal, columns of very different units do no harm. Of sparse matrices the distance to some GG' is bounded entry by
entry, which is positive semidefinite exactly, whatever G is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ..base.gate import Factor, heavy, too_much
from ..form import EdgeBlock, Form
from ..oracles import least_fill
from ..terms import Array, at_a_time, gram, strengths
from ..terms.penalties import AbstractSmoothPenalty
from .kernel.joint import far_from_square

# ---- smallest eigenvalues, from below --------------------------------------------------------------------------------
U = 2.0**-53  # the unit roundoff
BELOW = (1.0 - 1e-9, 1.0 - 1e-6, 0.99, 0.7, 0.3, 0.03)  # of the eigenvalue as it is estimated: tried in this order
PER_ENTRY = 3.0  # numbers of 8 bytes
SQUARES = 6.0  # matrices that are held at once
RESTARTS = 30  # of ARPACK; where these are too few, eigenvalues are too close for a bound that would help
WIDE = 64  # from this size on the matrices of a stack are factorised one by one
RANGE = 1e140  # diagonals outside 1 / RANGE ... RANGE are not looked at


def least_of_stack(A: Array, share: float) -> Array:
    """A lower bound of the smallest eigenvalue of each of a stack (g, d, d); 0 where none is proved."""
    g, d, _ = A.shape
    diagonal = np.einsum("ijj->ij", A)
    usable = np.isfinite(A).all(axis=(1, 2)) & (diagonal > 1.0 / RANGE).all(axis=1) & (diagonal < RANGE).all(axis=1)
    found = np.zeros(g)
    if not usable.any():
        return found
    A, diagonal = A[usable], diagonal[usable]
    tau = 1.01 * share + 1.1 * (d + 3) ** 2 * U
    estimate, best = heavy(20.0 * A.size * d, _estimates, A, diagonal), np.zeros(len(A))
    for factor in BELOW:
        todo = np.flatnonzero((best == 0.0) & (estimate > 0.0))
        if not len(todo):
            break
        mu = factor * estimate[todo]
        B = A[todo].copy()
        B[:, np.arange(d), np.arange(d)] -= mu[:, None] + tau * diagonal[todo]
        best[todo] = np.where(_completes(B), mu, 0.0)
    found[usable] = best
    return found


def _estimates(A: Array, diagonal: Array) -> Array:
    """The smallest eigenvalues, from the inverses, whose largest eigenvalues keep their relative accuracy; 0 where the
    matrix with a diagonal of 1 is singular."""
    root = np.sqrt(diagonal)
    values, V = np.linalg.eigh(A / (root[:, :, None] * root[:, None, :]))
    regular = values[:, 0] > len(root[0]) * 4 * U
    inverse = np.matmul(V / np.where(values > 0, values, 1.0)[:, None, :], V.transpose(0, 2, 1))
    inverse /= root[:, :, None] * root[:, None, :]
    scale = np.abs(inverse).max(axis=(1, 2), keepdims=True)
    top = np.linalg.eigvalsh(inverse / scale)[:, -1] * scale[:, 0, 0]
    return np.where(regular & (top > 0), 1.0 / np.where(top > 0, top, 1.0), 0.0)


def _completes(B: Array) -> Array:
    """True where Cholesky's method runs to its end, for each of a stack."""
    g, d, _ = B.shape
    if d >= WIDE or g == 1:
        return np.array([_completes_one(each) for each in B], dtype=bool)
    L, ok = np.zeros_like(B), np.ones(g, dtype=bool)
    for j in range(d):
        pivot = B[:, j, j] - np.einsum("gk,gk->g", L[:, j, :j], L[:, j, :j])
        ok &= pivot > 0.0
        L[:, j, j] = np.sqrt(np.where(ok, pivot, 1.0))
        below = B[:, j + 1 :, j] - np.einsum("gik,gk->gi", L[:, j + 1 :, :j], L[:, j, :j])
        L[:, j + 1 :, j] = below / L[:, j, j, None]
        L[~ok] = 0.0
        L[~ok, j, j] = 1.0
    return ok


def _completes_one(B: Array) -> bool:
    try:
        return bool(np.isfinite(cholesky(B, lower=True, check_finite=True)).all())
    except (LinAlgError, ValueError):
        return False


# ---- sparse ----------------------------------------------------------------------------------------------------------
def least_of_sparse(A: Any, share: float) -> float:
    """A lower bound of the smallest eigenvalue of a sparse symmetric matrix; 0 where none is proved."""
    found = equilibrated(A)
    if found is None:
        return 0.0
    q, S, solve = found
    estimate = estimated(solve, q)
    for factor in BELOW:
        if estimate > 0.0 and _is_definite(S, factor * estimate * q * q, share):
            return factor * estimate
    return 0.0


def equilibrated(A: Any) -> tuple[Array, sp.csc_array, Callable[[Array], Array]] | None:
    """q and S = diag(q) A diag(q) with a diagonal near 1, and what solves S x = b; None where A is singular, or memory
    does not hold its factors."""
    A = sp.csc_array(A)
    diagonal = A.diagonal()
    fits = not too_much(PER_ENTRY * (A.nnz + least_fill(A)), "it")
    if not (fits and np.isfinite(A.data).all() and (diagonal > 1.0 / RANGE).all() and (diagonal < RANGE).all()):
        return None
    q = 2.0 ** np.round(-0.5 * np.log2(diagonal))  # powers of 2: scaling by them is exact
    Q = sp.diags_array(q)
    S = sp.csc_array(Q @ A @ Q)
    try:
        return q, S, factor(S).solve
    except RuntimeError:  # singular
        return None


def factor(S: Any) -> Factor:
    options = {"SymmetricMode": True}
    return Factor(sp.csc_array(S), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)


def estimated(solve: Callable[[Array], Array], q: Array) -> float:
    """1 over the largest eigenvalue of A^-1 = Q S^-1 Q."""
    operator: Any = LinearOperator  # scipy has no types
    inverse = operator((len(q), len(q)), matvec=lambda x: q * solve(q * x.ravel()), dtype=float)
    try:
        start = np.random.default_rng(0).standard_normal(len(q))
        if len(q) > 1:
            how: dict[str, Any] = {"which": "LA", "v0": start, "maxiter": RESTARTS}
            top = float(eigsh(inverse, k=1, return_eigenvectors=False, **how)[0])
        else:  # of which ARPACK knows nothing
            top = float(inverse.matvec(np.ones(1))[0])
    except (ArpackError, RuntimeError):
        return 0.0
    return 1.0 / top if np.isfinite(top) and top > 0 else 0.0


def _is_definite(S: Any, mu: Array, share: float) -> bool:
    """True where S - diag(mu) is proved positive semidefinite, S being known up to ``share`` of its diagonal (near
    1)."""
    diagonal = S.diagonal()
    tau = 1.01 * share + 1e-13
    for _ in range(3):
        B = sp.csc_array(S - sp.diags_array(mu + tau * diagonal))
        G = root_of(B)
        if G is None:
            return False
        needed = 1.01 * (share + far_from_square(B, G) / float(diagonal.min()) + 8 * U)
        if needed <= tau:
            return True
        tau = 2.0 * needed
    return False


def root_of(B: Any) -> sp.csr_array | None:
    """G with B near GG', by L D L'; None where B is not positive definite in floats."""
    try:
        lu = factor(B)
    except RuntimeError:
        return None
    pivots = lu.U.diagonal()
    if not (np.array_equal(lu.perm_r, lu.perm_c) and (pivots > 0.0).all() and np.isfinite(lu.L.data).all()):
        return None
    return sp.csr_array(sp.csr_array(lu.L @ sp.diags_array(np.sqrt(pivots)))[lu.perm_r])


# ---- moduli of the objective -----------------------------------------------------------------------------------------
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
    return form.once("strong convexity", strengths((*form.samples, *curved)), lambda: _strong_convexity(form))


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
    key = strengths((*form.samples, *form.to_ground))
    return form.once("node convexity", key, lambda: group_convexity(form, np.arange(form.n), form.n))


def group_convexity(form: Form, member: Array, count: int) -> Array:
    """mu_c (count,): the same for groups of nodes that have one parameter vector; a node with member -1 is in none.

    Restricted to equal parameters within groups, P - 1/2 sum_c mu_c ||theta_c||^2 is convex. 0, which is no less true,
    where a matrix of all coordinates would take too much memory.
    """
    if too_much(SQUARES * form.d**2, "it"):
        return np.zeros(count)
    some = at_a_time(CHUNK // form.d**2, count)
    return np.concatenate([np.zeros(0), *(_of_groups(form, member, s.start, min(s.stop, count)) for s in some)])


def _of_groups(form: Form, member: Array, low: int, high: int) -> Array:
    """The bounds of the groups low ... high - 1."""
    d = form.d
    H, terms = np.zeros((high - low, d, d)), np.zeros(high - low)

    def add(nodes: Array, Hessians: Array, count: int) -> None:
        group = member[nodes]
        here = (group >= low) & (group < high)
        np.add.at(H, group[here] - low, Hessians[here])
        np.add.at(terms, group[here] - low, count + 2.0)

    for edge in form.to_ground:
        mu = edge_modulus(edge, form.width(edge))
        if mu > 0:
            diagonal = np.zeros((d, d))
            columns = edge.columns(d)
            diagonal[columns, columns] = mu
            add(edge.tail, edge.weight[:, None, None] * diagonal, 1)
    for block in form.at_nodes:
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
    """X'MX + K'CK, and what share of its diagonal its rounding may be. Rows that are no edges only add to it, and are
    left out."""
    size, terms = form.n * form.d, np.zeros(form.n)
    H = sp.csr_array((size, size))
    for block in form.at_nodes:
        m = np.repeat(block.scale * block.loss.least_curvature(), block.width)
        if m.any():
            H = H + block.A.T @ sp.diags_array(m) @ block.A
            terms += np.bincount(block.node, minlength=form.n) + 3.0
    for edge in form.edges:
        mu = 0.0 if edge.map.edges is None else edge_modulus(edge, form.width(edge))
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
