"""How many entries the factors of a Newton system have, known before they are computed, and whether memory holds them.

Gilbert, Ng, Peyton, An efficient algorithm to compute row and column counts for sparse Cholesky factorization (1994),
as Davis, Direct methods for sparse linear systems (2006), section 4.5, writes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spilu

from ..clock import carry_out
from ..csgraph import reverse_cuthill_mckee
from ..form import Form
from ..memory import GIB, usable_memory
from ..terms import Array
from ..terms.penalties import AbstractSmoothPenalty

PER_ENTRY = 24.0  # bytes of both factors for each entry of one of them
PER_PRODUCT = 110.0  # bytes for each product of which the matrix is a sum, while its pattern is looked for


def fits(form: Form) -> bool:
    """Whether Newton systems of a form fit into memory, as far as `check_size` can tell."""
    try:
        check_size(form)
    except MemoryError:
        return False
    return True


def check_size(form: Form) -> None:
    """Raise where Newton systems of a form would not fit into memory, before anything large is computed.

    Enough are the entries of a band (see `band`), not enough less than `least_fill`; only between them the order of
    the factorisation is computed, and with it the entries are counted.

    Raises
    ------
    MemoryError
        It names the size and what to take.
    """
    limit, d = usable_memory(), form.d
    pattern = PER_PRODUCT * _products(form)
    if pattern > limit:
        raise _too_large(pattern, limit, "about")
    A = adjacency(form)
    if max(pattern, PER_ENTRY * d**2 * float(band(A).sum() + form.n)) <= limit:
        return
    if (least := PER_ENTRY * d**2 * least_fill(A)) > limit:
        raise _too_large(least, limit, "more than about")
    if (size := PER_ENTRY * d**2 * float(column_counts(A, sparse_order(A)).sum())) > limit:
        raise _too_large(size, limit, "about")


def _too_large(size: float, limit: float, about: str) -> MemoryError:
    return MemoryError(
        f"the factors of a Newton system would take {about} {size / GIB:.3g} GiB, and {limit / GIB:.3g} GiB may be used"
    )


def _products(form: Form) -> float:
    """How many products of two entries of B and one of D the matrices B'DB are sums of."""
    out = 0.0
    for block in form.samples:
        A: Any = block.A
        width = block.width if A.shape[0] > len(block.y) else 1
        entries = A.nnz / max(A.shape[0], 1)
        out += len(block.y) * width**2 * entries**2
    for edge in form.edges:
        k = edge.penalty.pieces(form.width(edge)) or form.width(edge)
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            k = form.width(edge)
        out += len(edge.tail) * form.width(edge) * k * (1.0 if edge.ground else 4.0)
    return out


def adjacency(form: Form) -> sp.csc_array:
    """A positive definite matrix with an entry for every edge between two nodes, (n, n)."""
    n = form.n
    pairs = [(edge.tail, edge.head) for edge in form.edges if not edge.ground]
    tail = np.concatenate([np.arange(n), *(t for t, _ in pairs), *(h for _, h in pairs)])
    head = np.concatenate([np.arange(n), *(h for _, h in pairs), *(t for t, _ in pairs)])
    value = np.concatenate([np.full(n, 2.0 * n * max(len(pairs), 1)), np.full(len(tail) - n, -1.0)])
    return sp.csc_array(sp.coo_array((value, (tail, head)), shape=(n, n)))


def band(A: sp.csc_array) -> Array:
    """How far the first neighbour of each node lies before it in the order of Cuthill and McKee: a band that no fill
    leaves, (n,)."""
    n = int(A.shape[0])  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
    place = np.empty(n)
    place[reverse_cuthill_mckee(sp.csr_matrix(A), symmetric_mode=True)] = np.arange(n)
    entries = sp.coo_array(A)
    far = np.zeros(n)
    np.maximum.at(far, entries.row, place[entries.row] - place[entries.col])
    return far


def least_fill(A: sp.csc_array) -> float:
    """About how many entries a factor has at least in any order: (sum of b_i)^2 / n^2 for the band of what is left
    without the trees that hang on the graph, which fill in nothing. On graphs that no few nodes part, such as random
    ones, most orders come near to it; on maps the factor has more."""
    A = _without_trees(A)
    return float(band(A).mean() ** 2) if A.nnz else 0.0


def _without_trees(A: sp.csc_array) -> sp.csc_array:
    while A.nnz:
        kept = np.flatnonzero(np.diff(A.indptr) > 2)  # itself and two neighbours
        if len(kept) == A.shape[0]:  # pyright: ignore[reportOptionalSubscript]
            break
        A = sp.csc_array(A[kept][:, kept])
    return A


def sparse_order(A: sp.csc_array) -> Array:
    """The nodes in an order in which factors stay sparse (minimum degree), (n,).

    It is that of a factorisation which drops all that it can: scipy has no other way to it.
    """
    options = {"SymmetricMode": True}
    more: dict[str, Any] = {"drop_tol": 1.0, "fill_factor": 1.0, "diag_pivot_thresh": 0.0, "options": options}
    return np.argsort(carry_out(lambda: spilu(A, permc_spec="MMD_AT_PLUS_A", **more)).perm_c)


def column_counts(A: sp.csc_array, order: Array) -> Array:
    """The entries in each column of the factor of A in an order, the diagonal included, (n,)."""
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    entries = sp.coo_array(A)
    i, j = place[entries.row], place[entries.col]
    lower = i > j
    rows: Any = sp.csr_array((np.ones(int(lower.sum())), (i[lower], j[lower])), shape=(n, n))
    parent = _elimination_tree(rows.indptr.tolist(), rows.indices.tolist())
    columns: Any = sp.csc_array(rows)
    return _counts(columns.indptr.tolist(), columns.indices.tolist(), parent)


def _elimination_tree(begin: list[int], column: list[int]) -> list[int]:
    """The parent of each node, -1 at a root; ``begin`` and ``column`` are the rows of the lower half."""
    parent, ancestor = [-1] * (len(begin) - 1), [-1] * (len(begin) - 1)
    for k in range(len(parent)):
        for at in range(begin[k], begin[k + 1]):
            i = column[at]
            while i != -1 and i < k:
                above = ancestor[i]
                ancestor[i] = k
                if above == -1:
                    parent[i] = k
                i = above
    return parent


def _postorder(parent: list[int]) -> list[int]:
    n = len(parent)
    child, sibling = [-1] * n, [-1] * n
    for j in range(n - 1, -1, -1):
        if parent[j] != -1:
            sibling[j], child[parent[j]] = child[parent[j]], j
    out: list[int] = []
    for root in (j for j in range(n) if parent[j] == -1):
        stack = [root]
        while stack:
            j = stack[-1]
            if child[j] == -1:
                out.append(stack.pop())
            else:
                stack.append(child[j])
                child[j] = sibling[child[j]]
    return out


def _counts(begin: list[int], row: list[int], parent: list[int]) -> Array:
    """A node j is a leaf of the subtree of row i where it is in column j and no descendant of j is; each leaf adds 1 to
    its column, and takes 1 where its way up meets that of the leaf before."""
    n, post = len(parent), _postorder(parent)
    first, most, last, ancestor = [-1] * n, [-1] * n, [-1] * n, list(range(n))
    delta = [0] * n
    for k, j in enumerate(post):
        delta[j], above = int(first[j] == -1), j
        while above != -1 and first[above] == -1:
            first[above], above = k, parent[above]
    for j in post:
        if parent[j] != -1:
            delta[parent[j]] -= 1
        for at in range(begin[j], begin[j + 1]):
            i = row[at]
            if first[j] <= most[i]:
                continue
            most[i], before, last[i] = first[j], last[i], j
            delta[j] += 1
            if before == -1:
                continue
            q = before
            while q != ancestor[q]:
                q = ancestor[q]
            while before != q:
                before, ancestor[before] = ancestor[before], q
            delta[q] -= 1
        if parent[j] != -1:
            ancestor[j] = parent[j]
    for j in post:
        if parent[j] != -1:
            delta[parent[j]] += delta[j]
    return np.array(delta, dtype=float)
