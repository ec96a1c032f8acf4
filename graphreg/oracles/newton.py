"""Newton systems of a whole problem: sums of B'DB over its samples and edges, factorised in a sparse order.

B holds the rows of a block (the predictors of its samples, the differences across its edges), D a small symmetric
matrix per sample or edge. Which entries of the sum can differ from 0, in which order they fill in least, and which
entries of D they are made of depends on graph and features alone, and is found once.

Rows K that are no edges, such as second differences, may be too stiff for K'DK, which squares what they do to digits:
their flows are unknowns beside w, and the matrix is [H K'; K -D^-1], H of all other blocks (Vanderbei, Symmetric
quasidefinite matrices, 1995).

The fill: Gilbert, Ng, Peyton, An efficient algorithm to compute row and column counts for sparse Cholesky
factorization (1994), as Davis, Direct methods for sparse linear systems (2006), section 4.5, writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spilu, splu

from ..base.csgraph import depth_first_order, reverse_cuthill_mckee
from ..base.gate import Factor, aside, heavy, refuse, usable_memory
from ..form import Form, Held
from ..terms import AbstractMatrix, Array, EdgeBlock, SampleBlock, product
from ..terms.losses import AbstractSmoothLoss
from ..terms.penalties import AbstractConstraint, AbstractSmoothPenalty, slopes

# The mean height of a column, weighted by its entries, up to which QDLDL is at least 1.5 times as fast as SuperLU,
# which works on several columns at once: 30 times on chains, 4 at 30, 2 at 90, the same at 180, a third at 900.
LOW = 120.0
QUICK = 5e8  # multiplications of a factor that takes less than a second
FOR_ENTRY = 1e3  # multiplications that QDLDL takes, about, for each entry of the matrix

Solve = Callable[[Array], Array]


def is_low(entries: float, squares: float) -> bool:
    """True where a factor is one for QDLDL: so many entries, and so large a sum of the squared heights of its
    columns."""
    return squares <= LOW * entries and squares <= QUICK


def _kind(d: float, heights: Array) -> tuple[bool, bool]:
    """Whether a factor is low, and quick, whose columns have so many blocks of d entries."""
    squares = d**3 * float((heights**2).sum())
    return is_low(d**2 * float(heights.sum()), squares), squares <= QUICK


@contextmanager
def _singular() -> Generator[None]:
    try:
        yield
    except (RuntimeError, np.linalg.LinAlgError) as error:
        raise ArithmeticError(f"a Newton system is singular ({error})") from error


class Factors:
    """Factorisations of matrices with one pattern, given as a CSC matrix in an order in which they fill in little; its
    upper half alone where ``low``.

    Only those of SuperLU that are not ``quick`` are made, and kept, by a thread of their own (`base.gate.Factor`).
    """

    def __init__(self, indices: Array, indptr: Array, low: bool, quick: bool = True) -> None:
        self.indices, self.indptr, self.low, self.quick = indices, indptr, low, quick
        self._solver: Any = None  # of QDLDL, with its symbolic factorisation

    def __call__(self, data: Array) -> Solve:
        """A function that solves with the matrix of these entries, until the next call.

        Raises
        ------
        ArithmeticError
            Where the matrix is singular.
        """
        size = len(self.indptr) - 1
        with _singular():
            if self.low:
                solver, self._solver = self._solver, None  # nobody may use again what is broken off
                self._solver = heavy(FOR_ENTRY * len(data), self._lower, data, solver)
                return self._solver.solve
            H = sp.csc_array((data, self.indices, self.indptr), shape=(size, size))
            # positive definite: no pivots are needed, and the order is there
            more: dict[str, Any] = {"diag_pivot_thresh": 0.0, "relax": 1, "panel_size": 8, "permc_spec": "NATURAL"}
            more["options"] = {"SymmetricMode": True, "Equil": False}
            return (splu if self.quick else Factor)(H, **more).solve

    def matrix(self, data: Array) -> sp.csc_array:
        """The matrix of these entries, both halves of it."""
        size = len(self.indptr) - 1
        A = sp.csc_array((data, self.indices, self.indptr), shape=(size, size))
        return sp.csc_array(A + sp.triu(A, 1).T) if self.low else A

    def _lower(self, data: Array, solver: Any) -> Any:
        upper = sp.csc_matrix((data, self.indices, self.indptr), shape=2 * (len(self.indptr) - 1,))
        if solver is None:
            from qdldl import Solver

            return Solver(upper, upper=True)
        solver.update(upper, upper=True)
        pivots = solver.factors()[1]  # an update says nothing of a pivot of 0, at which it breaks off
        if not (np.isfinite(pivots) & (pivots != 0.0)).all():
            raise ArithmeticError("a Newton system is singular")
        return solver


# ---- how many entries the factors have, known before they are computed, and whether memory holds them ----------------
PER_ENTRY = 24.0  # bytes of both factors for each entry of one of them
FACTORS = "the factors of a Newton system"
HUB = 10.0  # times the root of the number of nodes: neighbours that make a minimum degree order slow to find
SLOW, SLOW_WITH_HUBS = 3e6, 2e5  # entries from which on that takes about half a second
SLOW_FILL = 5e6  # and entries of the factor: an order is found by going through what fills in
FOR_PRODUCT = 40.0  # multiplications that each product of which the matrix is a sum takes as long as
PER_PRODUCT = 110.0  # bytes for each of these, while the pattern is looked for


def wide(form: Form) -> tuple[int, ...]:
    """The numbers of the blocks whose flows or prices are unknowns of a Newton system: of rows that are no edges, and
    no samples of one node each, if these are not more than the parameters, as otherwise some of them follow from
    others."""
    unlike = (b for b in form.unlike_edges if isinstance(b, EdgeBlock) or len(b.map.links[0]))
    many, rows = max(form.n * form.d, 1), {id(block) for block in unlike}
    return tuple(k for k, b in enumerate(form.blocks) if id(b) in rows and b.count * b.map.width(form.d) <= many)


def check_size(form: Form, condensed: bool = False) -> None:
    """Raise where Newton systems of a form would not fit into memory, before anything large is computed.

    Enough are the entries of all pairs of parameters, or of a band (see `band`), not enough less than `least_fill`;
    only between these the order of the factorisation is computed, and with it the entries are counted.

    Raises
    ------
    MemoryError
        It names the size and what to take.
    """
    limit, beside = usable_memory(), () if condensed else wide(form)
    pattern = PER_PRODUCT * _products(form, beside)
    refuse(pattern / 8.0, FACTORS, "about ")
    if not beside and PER_ENTRY * (form.n * form.d) ** 2 <= limit:  # of most problems, of which nothing need be ordered
        return
    A, sizes = units(form, beside)
    d, n = mean_size(sizes), len(sizes)
    if max(pattern, PER_ENTRY * d**2 * float(band(A).sum() + n)) <= limit:
        return
    refuse(PER_ENTRY / 8.0 * d**2 * least_fill(A), FACTORS, "more than about ")
    refuse(PER_ENTRY / 8.0 * d**2 * float(column_counts(A, sparse_order(A)).sum()), FACTORS, "about ")


def _products(form: Form, beside: tuple[int, ...] = ()) -> float:
    """The number of products of two entries of B and one of D that the matrices B'DB are sums of, with the entries of
    the blocks that stand beside them."""
    out = 0.0
    for number, block in enumerate(form.blocks):
        rows, k = block.map, block.map.width(form.d)
        lines = rows.count * k
        if isinstance(block, EdgeBlock) and not isinstance(block.penalty, AbstractSmoothPenalty):
            k = block.penalty.pieces(k) or k
        if not isinstance(rows, AbstractMatrix):
            out += k * lines * float(rows.lengths) ** 2
        elif number in beside:
            out += 2.0 * rows.K.nnz + k * lines
        elif isinstance(block, SampleBlock) and has_grams(block):
            out += form.n * form.d**2.0
        else:
            out += k * float((np.diff(rows.K.indptr) ** 2.0).sum())
    return out


def units(form: Form, beside: tuple[int, ...] | None = None) -> tuple[sp.csc_array, Array]:
    """A positive definite matrix with an entry for every edge between two nodes, and between the rows of the blocks
    ``beside`` (see `wide`) and the nodes that they touch; and how many unknowns each node and each such row has."""
    d, n, beside = form.d, form.n, wide(form) if beside is None else beside
    sizes = [np.full(n, d)]
    pairs = [b.map.pairs for k, b in enumerate(form.blocks) if k not in beside and b.map.noun != "sample"]
    for rows in (form.blocks[k].map for k in beside):
        k, (row, column) = rows.width(d), rows.flat(d).tocoo().coords
        pairs.append((row // k + sum(map(len, sizes)), column // d))
        sizes.append(np.full(rows.count, k))
    n = sum(map(len, sizes))
    tail = np.concatenate([np.arange(n), *(t for t, _ in pairs), *(h for _, h in pairs)])
    head = np.concatenate([np.arange(n), *(h for _, h in pairs), *(t for t, _ in pairs)])
    value = np.concatenate([np.full(n, len(tail)), np.full(len(tail) - n, -1.0)])
    return sp.csc_array(sp.coo_array((value, (tail, head)), shape=(n, n))), np.concatenate(sizes)


def mean_size(sizes: Array) -> float:
    return float(sizes.mean()) if len(sizes) else 1.0


def band(A: sp.csc_array) -> Array:
    """The distance of each node from its first neighbour in the order of Cuthill and McKee: a band that no fill
    leaves, (n,)."""
    return banded(A)[1]


def banded(A: sp.csc_array) -> tuple[Array, Array]:
    """That order, and the band."""
    order, entries = reverse_cuthill_mckee(sp.csr_matrix(A), symmetric_mode=True), sp.coo_array(A)
    place, far = np.argsort(order), np.zeros(len(order))
    np.maximum.at(far, entries.row, place[entries.row] - place[entries.col])
    return order, far


def least_fill(A: sp.csc_array) -> float:
    """About how many entries a factor has at least in any order: (sum of b_i)^2 / n^2 for the band of what is left
    without the trees that hang on the graph, which fill in nothing. On graphs that no few nodes part, such as random
    ones, most orders come near to it; on maps the factor has more."""
    A = _without_trees(A)
    return float(band(A).mean() ** 2) if A.nnz else 0.0


def _without_trees(A: sp.csc_array) -> sp.csc_array:
    begin, row = A.indptr.tolist(), A.indices.tolist()
    degree = (np.diff(A.indptr) - 1).tolist()  # without itself
    ends = [j for j, many in enumerate(degree) if many < 2]
    left = np.full(len(degree), True)
    while ends:
        j = ends.pop()
        left[j] = False
        for i in row[begin[j] : begin[j + 1]]:  # pyright: ignore[reportIndexIssue]  (scipy has no types)
            degree[i] -= i != j
            if degree[i] == 1 and i != j and left[i]:
                ends.append(i)
    return A if left.all() else sp.csc_array(A[left][:, left])


def sparse_order(A: sp.csc_array) -> Array:
    """The nodes in an order in which factors stay sparse (minimum degree), (n,).

    It is that of a factorisation which drops all that it can: scipy has no other way to it, and holds Python's lock
    meanwhile. So where that is long, as with nodes of very many neighbours and on random graphs, it is done by another
    process.
    """
    hub = np.diff(A.indptr).max(initial=0) > HUB * np.sqrt(len(A.indptr))
    slow = A.nnz > (SLOW_WITH_HUBS if hub else SLOW) or least_fill(A) > SLOW_FILL
    return np.argsort(aside(_minimum_degree, A) if slow else _minimum_degree(A))


def _minimum_degree(A: sp.csc_array) -> Array:
    options = {"SymmetricMode": True}
    more: dict[str, Any] = {"drop_tol": 1.0, "fill_factor": 1.0, "diag_pivot_thresh": 0.0, "options": options}
    return spilu(A, permc_spec="MMD_AT_PLUS_A", **more).perm_c


def column_counts(A: sp.csc_array, order: Array) -> Array:
    """The entries in each column of the factor of A in an order, the diagonal included, (n,)."""
    n, place, entries = len(order), np.argsort(order), sp.coo_array(A)
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
    """An order in which all below a node stand together before it: one from above, turned round."""
    n = len(parent)
    above = np.where(np.array(parent) == -1, n, parent)
    tree: Any = sp.csr_array((np.ones(n), (above, np.arange(n))), shape=(n + 1, n + 1))
    return depth_first_order(tree, n, return_predecessors=False)[:0:-1].tolist()


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


# ---- the systems -----------------------------------------------------------------------------------------------------
TIE = 1e-8  # of the curvature of losses: what pivots of w are lifted to where they are smaller, beside flows
TINIEST = 1e-14  # the same where pivots are chosen
REFINEMENTS = 5
BACKWARD = 1e-13  # relative: what a solution may leave of rows of a kind
ROUNDED = 1e-14  # relative: what is left of them without refining further
PIVOT = 0.1  # of the largest entry of a column: what pivots are at least, where they are chosen
HIDDEN = 1e-12  # of a diagonal: so little of it is lost in factors, or much of its digits
RIDGE = 1e-15  # relative to each diagonal, of the size of its rounding; a larger one hides losses beside huge edges


def has_grams(block: SampleBlock) -> bool:
    """True where all samples of a node add to the same d x d entries, by their sum."""
    return block.map.noun == "sample" and block.X is not None


@dataclass(frozen=True)
class SystemRows:
    """The rows of m samples or edges, k each, on the unknowns in the order of the system."""

    B: sp.csr_array  # (m k, n d)
    BT: sp.csr_array
    k: int
    places: Array | None = None  # of their flows or prices, where these are unknowns
    grams: tuple[SampleBlock, Array] | None = None  # a block that has some, and the places of w, (n, d)

    @classmethod
    def of(cls, B: sp.csr_array, k: int, places: Array | None = None, grams: Any = None) -> SystemRows:
        return cls(sp.csr_array(B), sp.csr_array(B.T), k, places, grams)

    @property
    def m(self) -> int:
        return self.B.shape[0] // self.k  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)

    def apply(self, x: Array) -> Array:
        """B x, (k, m)."""
        return self.columns(product(self.B, x))

    def columns(self, z: Array) -> Array:
        """Numbers of the rows, one after the other, as (k, m)."""
        return np.ascontiguousarray(z.reshape(self.m, self.k).T)

    def adjoint(self, u: Array) -> Array:
        """B'u of u (k, m)."""
        return product(self.BT, u.T.ravel())

    def bends(self, D: Array) -> Array:
        """The diagonal of B'DB, by the diagonals of D."""
        diagonal = np.einsum("mii->mi", D).ravel()
        return self.B.power(2).T @ (diagonal if self.places is None else 1.0 / diagonal)

    @property
    def size(self) -> int:
        return self.m * self.k**2 if self.grams is None else self.grams[1].size * self.grams[1].shape[1]

    def parts(self, D: Array) -> Array:
        """The numbers that B'DB is a sum of, (size,): the entries of D, or those of Gram matrices."""
        if self.grams is not None:
            k = self.grams[0].width
            D = self.grams[0].sums(D if D.shape[1] > 1 else D.reshape(-1, k) if k > 1 else D.ravel())
        return np.ascontiguousarray(D).ravel()

    def entries(self) -> tuple[Array, Array, Array, Array]:
        """Rows, columns and factors of what each of the parts (numbered last) adds to B'DB."""
        B, m, k = self.B, self.m, self.k
        if self.grams is not None:
            i, j = np.broadcast_arrays(self.grams[1][:, :, None], self.grams[1][:, None])
            return i.ravel(), j.ravel(), np.ones(i.size), np.arange(i.size)
        count = np.diff(B.indptr)
        p = int(count.max(initial=0))
        place = np.arange(len(B.indices)) - np.repeat(B.indptr[:-1], count)
        column, factor = np.zeros((m * k, p), dtype=np.int64), np.zeros((m * k, p))
        row = np.repeat(np.arange(m * k), count)
        column[row, place], factor[row, place] = B.indices, B.data
        column, factor = column.reshape(m, k, p), factor.reshape(m, k, p)
        product = factor[:, :, None, :, None] * factor[:, None, :, None, :]
        kept = np.flatnonzero(product)
        i = np.broadcast_to(column[:, :, None, :, None], product.shape).ravel()[kept]
        j = np.broadcast_to(column[:, None, :, None, :], product.shape).ravel()[kept]
        return i, j, product.ravel()[kept], kept // (p * p)

    def beside(self, places: Array, one: int) -> tuple[Array, Array, Array, Array]:
        """The same of [0 B'; B -D], where the rows are unknowns at these places; ``one`` is the number of a 1."""
        row, column = self.B.tocoo().coords
        m, k = self.m, self.k
        square = np.broadcast_to(places.reshape(m, k)[:, :, None], (m, k, k))
        i = np.concatenate([places[row], column, square.ravel()])
        j = np.concatenate([column, places[row], square.swapaxes(1, 2).ravel()])
        product = np.concatenate([self.B.tocoo().data, self.B.tocoo().data, np.full(square.size, -1.0)])
        return i, j, product, np.append(np.full(2 * len(row), one), np.arange(square.size))


class BesideFlows:
    """Solves with [H K'; K -D^-1], refined with the true residual: with factors of what is ``near`` to it, which any
    order has, as it is quasi-definite; where rounding is too much for these, with ``pivots``."""

    def __init__(
        self, true: sp.csc_array, of_w: Array, near: Callable[[], Solve], quick: bool = False, pivots: bool = True
    ) -> None:
        self.true, self.quick, self._pivots = true, quick, pivots
        self._size: Any = abs(true)
        self._of_w = of_w
        self._kinds = np.flatnonzero(of_w), np.flatnonzero(~of_w)
        try:
            self._solve = near()
        except ArithmeticError:
            self._solve = self._with_pivots()

    def solve(self, right: Array) -> Array:
        x, small = self._refined(right)
        if small or not self._pivots:
            return x
        self._solve = self._with_pivots()
        return self._refined(right)[0]

    def _with_pivots(self) -> Solve:
        self._pivots = False
        more: dict[str, Any] = {"diag_pivot_thresh": PIVOT, "permc_spec": "NATURAL"}
        least = np.where(self._of_w, TINIEST * np.abs(self.true.diagonal()[self._of_w]).mean(), 0.0)
        A = sp.csc_array(self.true + sp.diags_array(least))  # nothing may tell where some of w is, and is refined
        with _singular():
            return (splu if self.quick else Factor)(A, **more).solve

    def _refined(self, right: Array) -> tuple[Array, bool]:
        """The solution, and whether it leaves next to nothing."""
        x = self._solve(right)
        left = right - self.true @ x
        sizes, most = self._sizes(left), self._sizes(self._size @ np.abs(x))
        for _ in range(REFINEMENTS):
            if (sizes <= ROUNDED * most).all():
                break
            new = x + self._solve(left)
            rest = right - self.true @ new
            after = self._sizes(rest)
            if not (after < 0.5 * sizes).any():
                break
            x, left, sizes = new, rest, after
        return x, bool((sizes <= BACKWARD * most).all())

    def _sizes(self, x: Array) -> Array:
        """Of the rows of either kind, of which rounding leaves more in the one than in the other."""
        return np.array([np.abs(x[kind]).max(initial=0.0) for kind in self._kinds])


class NewtonSystem:
    """The matrices sum_b B_b' D_b B_b of a form, over its samples and edges. One D is of all rows of a sample or an
    edge, of one row where their Hessian is diagonal, and of one piece of a penalty that is a sum of norms.

    The flows of blocks that are `wide` are unknowns, after the entries of w, unless it is ``condensed``. Coordinates
    that are held at given values (see `Held`) do not move.
    """

    def __init__(self, form: Form, condensed: bool = False) -> None:
        check_size(form, condensed)
        self.wide = () if condensed else wide(form)
        A, sizes = units(form, self.wide)
        d = mean_size(sizes)
        nodes, far = banded(A)
        self.low, self.quick = _kind(d, far + 1.0)
        if not self.low:  # QDLDL, which it is for, has an order of its own
            nodes = sparse_order(A)
            self.low, self.quick = _kind(d, column_counts(A, nodes))
        ends = np.cumsum(sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes[nodes]) - sizes[nodes], sizes[nodes])
        self.order = np.repeat((ends - sizes)[nodes], sizes[nodes]) + within  # of the entries of w, then of flows
        self.shape, self._place = form.shape, np.argsort(self.order)
        held = np.append(Held(form).mask.ravel(), np.zeros(len(self.order) - form.n * form.d, dtype=bool))
        self.free = None if not held.any() else ~held[self.order]
        places = self._places(form)
        self.samples = tuple(self._samples(form, places))
        self.edges = tuple(self._edges(form, places[len(form.samples) :]))
        self.of: Any = sp.csr_array((np.ones(form.n), form.component, np.arange(form.n + 1)))  # component of each node
        self.members = self.over_components(np.ones((form.n, 1)))
        self._felt = [self.free is not None or not block.map.level for block in form.blocks]
        heavy(FOR_PRODUCT * _products(form, self.wide), lambda: self._pattern(len(self.order)))

    def vector(self, w: Array) -> Array:
        """w (n, d) in the order of the system; flows are 0."""
        flat = w.ravel()
        return np.append(flat, np.zeros(len(self.order) - len(flat)))[self.order] if self.wide else flat[self.order]

    def matrix(self, x: Array) -> Array:
        """The other way round."""
        out = np.empty(len(x))
        out[self.order] = x
        return out[: self.shape[0] * self.shape[1]].reshape(self.shape)

    def over_components(self, x: Array) -> Array:
        """The sums of x (n, p) over the nodes of each component, (c, p)."""
        return product(self.of, x, transposed=True)

    def factorised(self, D: Sequence[Array], proximal: Array | float = 0.0) -> Callable[[Array], Array]:
        """A function that solves with the sum of B'DB, D (m, k, k) per block, those of the samples first, the inverses
        of D for wide blocks, and with a diagonal beside it; until the next call.

        Raises
        ------
        ArithmeticError
            Where the matrix is not finite or singular.
        """
        parts = [rows.parts(each) for rows, each in zip((*self.samples, *self.edges), D, strict=True)]
        data = product(self._sum, np.concatenate([*parts, np.ones(1)] if self.wide else parts))
        if not np.isfinite(data).all():
            raise ArithmeticError("a Newton system is not finite")
        data[self._diagonal] += proximal
        if self.wide:
            solve = self._beside(data, D)
        else:
            diagonal = data[self._diagonal]
            data[self._diagonal] = np.where(diagonal > 0.0, diagonal * (1.0 + RIDGE), 1.0)
            own = self.over_components(self.matrix(product(self._own, np.concatenate(parts)) + proximal))
            most = HIDDEN * self.over_components(self.matrix(diagonal))
            size = np.where((own > 0.0) & (own < most), own, np.inf) ** -0.5
            solve = self._apart(data, D, proximal, size) if size.any() else self._factors(data)
        free = self.free
        return solve if free is None else lambda right: solve(np.where(free, right, 0.0))

    def _apart(self, data: Array, D: Sequence[Array], proximal: Array | float, size: Array) -> Solve:
        """Solves where factors have lost what moves of all nodes of a component together bend, in the columns in which
        these have a ``size``: edges do not feel them, and in one of 1e-9 bend all others 1e20 times as much as losses.
        They, U, are unknowns beside the other moves x, of which one node of each component, a root, has none:
        [F AU; U'A U'AU] (x, a) = (r, U'r), where F is A with more at the roots, and AU is known without edges."""
        d, at, most = self.shape[1], self.of[self.order // self.shape[1]], self.matrix(data[self._diagonal])
        felt = [each for each in zip((*self.samples, *self.edges), D, self._felt, strict=True) if each[2]]
        moves, bends = list[Array](), list[Array]()
        for j in np.flatnonzero(size.any(axis=0)):
            root = np.asarray(self.of.multiply(most[:, [j]]).tocsc().argmax(axis=0)).ravel()[size[:, j] > 0.0]
            data[self._diagonal[self._place[root * d + j]]] *= 2.0
            moves.append(u := self.vector((self.of @ size[:, [j]]) * (np.arange(d) == j)))
            bends.append(sum((r.adjoint(np.einsum("mij,jm->im", D, r.apply(u))) for r, D, _ in felt), proximal * u))
        U, AU, solve = np.stack(moves), np.stack(bends), self._factors(data)
        across = U - (V := np.stack([solve(each) for each in AU]))
        S = np.stack([at.T @ (U * a - AU * v).T for a, v in zip(AU, V, strict=True)], axis=2)
        with _singular():
            inverse = np.linalg.pinv(S, ROUNDED)

        def solved(right: Array) -> Array:
            x = solve(right)
            a = np.einsum("cij,cj->ci", inverse, at.T @ (U * right - AU * x).T)
            return x + np.einsum("jn,nj->n", across, at @ a)

        return solved

    def _beside(self, data: Array, D: Sequence[Array]) -> Solve:
        """Solves with flows beside w: pivots of w that are too small are lifted, and what that does to x is refined."""
        true = self._factors.matrix(data.copy())
        lifted, of_w = true.diagonal(), self.order < self.shape[0] * self.shape[1]
        bends = sum((rows.bends(each) for rows, each in zip(self.samples, D, strict=False)), np.zeros(len(lifted)))
        least = TIE * (bends[bends > 0.0].mean() if bends.any() else 1.0)
        lifted[of_w] = np.maximum(lifted[of_w] * (1.0 + RIDGE), least)
        data[self._diagonal] = lifted
        return BesideFlows(true, of_w, lambda: self._factors(data), self.quick).solve

    def _samples(self, form: Form, places: list[Array | None]) -> Iterator[SystemRows]:
        for block, at in zip(form.samples, places, strict=False):
            loss, one = block.loss, block.y[:1]
            coupled = isinstance(loss, AbstractSmoothLoss) and loss.curvature(block.offset[:1], one).ndim == 3
            of_w = self._place[: form.n * form.d].reshape(form.shape)
            grams = (block, of_w) if has_grams(block) else None
            yield SystemRows.of(self._ordered(block.A), block.width if coupled else 1, at, grams)

    def _edges(self, form: Form, places: list[Array | None]) -> Iterator[SystemRows]:
        for edge, at in zip(form.edges, places, strict=True):
            k = edge.penalty.pieces(form.width(edge))
            if isinstance(edge.penalty, AbstractConstraint):
                k = 1
            elif edge.penalty.is_maximum:
                k = k or form.width(edge)
            elif k is None and slopes(edge.penalty, form.width(edge)) is not None:
                k = 1
            elif k is None:
                H = edge.penalty.curvature(np.zeros((1, form.width(edge))))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
                k = form.width(edge) if H.ndim == 3 else 1
            yield SystemRows.of(self._ordered(edge.flat(form.d)), k, at)

    def _ordered(self, B: sp.csr_array) -> sp.csr_array:
        if self.wide:
            B = sp.csr_array((B.data, B.indices, B.indptr), shape=(B.shape[0], len(self.order)))  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        return B[:, self.order]

    def _places(self, form: Form) -> list[Array | None]:
        """Of the flows or prices of each block, where they are unknowns."""
        out = list[Array | None]([None] * len(form.blocks))
        begin = form.n * form.d
        for k in self.wide:
            rows = form.blocks[k].map
            out[k] = self._place[begin : begin + rows.count * rows.width(form.d)]
            begin += rows.count * rows.width(form.d)
        return out

    def _pattern(self, size: int) -> None:
        """The entries that there are, the upper half alone where the factor is low, and of which entries of all D
        they are sums."""
        i, j, factor, source = [np.arange(size)], [np.arange(size)], [np.zeros(size)], [np.zeros(size, dtype=np.int64)]
        begin, many = 0, sum(rows.size for rows in (*self.samples, *self.edges))
        for rows in (*self.samples, *self.edges):
            beside = rows.places
            row, column, product, of = rows.entries() if beside is None else rows.beside(beside, many - begin)
            kept = row <= column if self.low else np.full(len(row), True)
            if self.free is not None:
                kept = kept & self.free[row] & self.free[column]
            i.append(row[kept])
            j.append(column[kept])
            factor.append(product[kept])
            source.append(of[kept] + begin)
            begin += rows.size
        begin += bool(self.wide)
        place = np.concatenate(j).astype(np.int64) * size + np.concatenate(i)
        known, at = np.unique(place, return_inverse=True)
        content = (np.concatenate(factor), (at.ravel(), np.concatenate(source)))
        self._sum = sp.csr_array(sp.coo_array(content, shape=(len(known), max(begin, 1))))
        indptr = np.searchsorted(known, np.arange(size + 1, dtype=np.int64) * size).astype(np.int32)
        self._factors = Factors((known % size).astype(np.int32), indptr, self.low, self.quick)
        self._diagonal = np.searchsorted(known, np.arange(size, dtype=np.int64) * (size + 1))
        felt = np.repeat(self._felt, [rows.size for rows in (*self.samples, *self.edges)])
        self._own = None if self.wide else self._sum[self._diagonal] @ sp.diags_array(felt * 1.0)


def work(form: Form) -> float:
    """About how many multiplications a factorisation takes at most: d^3 sum_i b_i^2 for the band b (see `band`)."""
    return form.once("work", None, lambda: _cubes(form, band))


def filled_work(form: Form) -> float:
    """The work of a factorisation as it is: d^3 sum_i c_i^2, where c_i nodes stand in column i of a factor in the
    sparse order."""
    return form.once("filled work", None, lambda: _cubes(form, lambda A: column_counts(A, sparse_order(A))))


def factor_bytes(form: Form, how: str) -> float:
    """About how many bytes the factors take: "counted", or with less effort at "most" or at "least"."""
    A, sizes = units(form)
    if how == "counted":
        entries = float(column_counts(A, sparse_order(A)).sum())
    else:
        entries = least_fill(A) if how == "least" else float(band(A).sum() + len(sizes))
    return PER_ENTRY * mean_size(sizes) ** 2 * entries


def _cubes(form: Form, heights: Callable[[sp.csc_array], Array]) -> float:
    """d^3 times the sum of the squared heights of the columns of a factor."""

    def summed() -> float:
        A, sizes = units(form)
        return float(mean_size(sizes) ** 3 * (heights(A) ** 2).sum())

    return heavy(FOR_PRODUCT * _products(form, wide(form)), summed)
