"""A convex CVXPY function of one row, as the cone programme that Clarabel takes.

    phi(z) = min over x = (z, ...) of  1/2 x'Px + q'x + constant   subject to   A x + s = b,  s in K

CVXPY writes it down once; after that prox, conjugate and gauge of many rows are one solve, without CVXPY. What
certificates rest on (conjugate and gauge) is bounded from above by the dual solution and its residual, row by row.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..base.lazy import cp
from ..terms import Array

TOLERANCES = (1e-12, 1e-8)  # tried in this order: tight, then Clarabel's default
MARGIN = 1e-9  # relative; added to what the solver found, on the safe side
TOGETHER = 200  # rows that one solve takes
LEAST_LENGTH = 1e-3  # relative to b
POOR = 1e-4  # duality gap, of that kind, of what proves nothing
GOOD = 1e-8  # duality gap, where all that matters is of order 1, of a row that is not solved again


@dataclass(frozen=True, eq=False)
class Optima:
    """Minimisers x (m, n) of m cone programmes, their values, and safe lower bounds of the minima, (m,); NaN where the
    solver found none. In units of ``length`` and of ``length * pull``, (m,)."""

    x: Array
    value: Array
    bound: Array
    length: Array
    pull: Array

    @property
    def found(self) -> Array:
        """A mask of the rows that have a minimiser, (m,)."""
        return np.isfinite(self.value)

    @property
    def gap(self) -> Array:
        """The distances of the bounds from the values, (m,)."""
        return np.abs(self.value - self.bound)

    def put(self, rows: Array, other: Optima) -> None:
        """Put others into some rows, where they are better."""
        better = np.nan_to_num(other.gap, nan=np.inf) < np.nan_to_num(self.gap[rows], nan=np.inf)
        for each in fields(self):
            getattr(self, each.name)[rows[better]] = getattr(other, each.name)[better]


@dataclass(frozen=True, eq=False)
class ConeProgramme:
    """The programme of the module's docstring, with z in the first k entries of x.

    ``lineality`` (k, l) has orthonormal columns: the directions along which phi is constant.
    """

    k: int
    P: Any  # scipy CSC (n, n), symmetric
    q: Array
    constant: float
    A: Any  # scipy CSC (rows, n)
    b: Array
    dims: Any  # CVXPY's ConeDims
    lineality: Array
    strength: float = 1.0  # about phi(z) / ||z||

    @property
    def homogeneous(self) -> bool:
        """True where phi(t z) = t phi(z) for t > 0 by construction; what looks so on a few rows may end far out."""
        return self.P.nnz == 0 and self.constant == 0.0 and not self.b.any()

    @cached_property
    def ignored(self) -> Array | None:
        """The coordinates that phi does not depend on, (k,); None where it is constant along other directions too."""
        share = (self.lineality**2).sum(axis=1)  # of each axis
        aligned = np.minimum(np.abs(share), np.abs(share - 1.0)).max(initial=0.0) < 1e-9
        return share > 0.5 if aligned else None

    def scaled(self, factor: Array, linear: Array, near: float, length: Array, pull: Array) -> Optima:
        """The optima of ``(factor phi(p) - <linear, p> + near/2 ||p||^2) / (pull length)`` in x / length, but for the
        constant of phi: the cones are the same, b becomes b / length, and all that matters is of order 1. ``length`` is
        about that of p, and ``pull`` how large gradients are. Where kinks hide how long p is, the rows of ``linear``
        tell."""
        best = self._in_units(factor, linear, near, length, pull)
        poor = np.flatnonzero(~(best.gap <= POOR))
        if len(poor):
            size = np.maximum(np.linalg.norm(linear[poor], axis=1), 1.0 if near == 0.0 else self.least_length)
            best.put(poor, self._in_units(factor[poor], linear[poor], near, size, size))
        return best

    def _in_units(self, factor: Array, linear: Array, near: float, length: Array, pull: Array) -> Optima:
        q = (factor[:, None] * self.q - self._on_z(linear)) / pull[:, None]
        unit = length / pull
        best = self._minimise(unit * factor, unit * near, q, self.A, self.b / length[:, None], [])
        return replace(best, length=np.array(length), pull=np.array(pull))

    @cached_property
    def least_length(self) -> float:
        """Shorter rows are solved for as if they were so long: b / length is then not too large."""
        return LEAST_LENGTH * float(np.abs(self.b).max(initial=0.0))

    def value(self, z: Array) -> Array:
        """phi at each row as the cones have it."""
        fixed = sparse.csc_array(sparse.vstack([self.A, sparse.eye_array(self.k, len(self.q))]))
        b = np.hstack([np.broadcast_to(self.b, (len(z), len(self.b))), z])
        q, none = np.broadcast_to(self.q / self.strength, (len(z), len(self.q))), np.zeros(len(z))
        best = self._minimise(none + 1.0 / self.strength, none, q, fixed, b, [_clarabel().ZeroConeT(self.k)])
        return np.where(best.found, best.value * self.strength + self.constant, np.inf)

    def least_above(self, u: Array, best: Optima) -> Array:
        """An upper bound of sup over z of <u, z> - phi(z) for each row by the optima that `scaled` found for it, as
        tight as the solver; +inf unless it proved one."""
        unit = best.length * best.pull
        with np.errstate(invalid="ignore"):
            product = best.length * np.einsum("ij,ij->i", u, best.x[:, : self.k])
            phi = product + unit * best.value + self.constant
            top = -unit * np.minimum(best.value, best.bound) - self.constant
            close = best.found & (best.gap <= POOR)
            return np.where(close, top + MARGIN * (np.abs(product) + np.abs(phi)), np.inf)

    def support(self, u: Array) -> Array:
        """An upper bound of max <u, z> where the recession function of phi is at most 1, for each row.

        That is where P x = 0, q'x <= 1 and A x + s = 0: the recession cone of a cone programme has b = 0.
        """
        out, size = np.zeros(len(u)), np.linalg.norm(u, axis=1)
        live = np.flatnonzero(size > 0.0)
        A, b = self._recession
        clarabel, flat = _clarabel(), len(b) - len(self.b) - 1
        cones = ([clarabel.ZeroConeT(flat)] if flat else []) + [clarabel.NonnegativeConeT(1)]
        q = self._on_z(-u[live] / size[live, None])
        none = np.zeros(len(live))
        best = self._minimise(none, none, q, A, np.broadcast_to(b, (len(live), len(b))), cones)
        most = -np.minimum(best.value, best.bound) * size[live] / self.strength * (1.0 + MARGIN)
        out[live] = np.where(best.found, most, np.inf)
        return out

    @cached_property
    def _recession(self) -> tuple[Any, Array]:
        """A and b of `support`, which are the same for every row."""
        flat = linalg.orth(self.P.toarray()).T
        slope = sparse.csc_array(self.q[None] / self.strength)
        A = sparse.csc_array(sparse.vstack([self.A, sparse.csc_array(flat), slope]))
        return A, np.concatenate([np.zeros(len(self.b) + len(flat)), [1.0]])

    def support_at_zero(self, u: Array) -> Array:
        """An upper bound of inf {t : u / t is a subgradient of phi at 0} for each row; +inf unless one is proved.

        Where b = 0 and the constant is 0, phi without its quadratic part, which is never negative, is
        homogeneous and lies below phi: its subgradients at 0 are some of phi, and they are all of them, as the
        quadratic part is of second order at 0. What remains is `support` without that part.
        """
        if self.b.any() or abs(self.constant) > 0.0:
            return np.where(u.any(axis=1), np.inf, 0.0)
        return self._at_zero.support(u)

    @cached_property
    def _at_zero(self) -> ConeProgramme:
        return replace(self, P=sparse.csc_array(self.P.shape))

    @property
    def stacks(self) -> bool:
        """True where all of its cones can be written for many rows at once."""
        return not self.dims.psd and not self.dims.pnd

    def written(self, Z: Any) -> list[Any]:
        """phi at each row of the (m, k) expression Z in CVXPY: the cones of all rows, and then an expression (m,)."""
        m, n = Z.shape[0], len(self.q)
        X = cp.hstack([Z, cp.Variable((m, n - self.k))]) if n > self.k else Z
        value = X @ self.q + self.constant
        if self.P.nnz:
            size, V = np.linalg.eigh(self.P.toarray())
            kept = size > 1e-14 * size.max()
            value = value + cp.sum(cp.square(X @ (V[:, kept] * np.sqrt(size[kept]))), axis=1) / 2
        S = np.ones((m, 1)) @ self.b[None] - X @ self.A.T.toarray()
        return [*_cones(S, self.dims), value]

    def _on_z(self, v: Array) -> Array:
        return np.hstack([v, np.zeros((len(v), len(self.q) - self.k))])

    def _minimise(self, scale: Array, near: Array, q: Array, A: Any, b: Array, further: list[Any]) -> Optima:
        """Clarabel's answers to min 1/2 x'Qx + q'x over the cones and ``further`` ones, a programme per row, with
        Q = scale P, and ``near`` more on the diagonal of z. Many are solved as one; what that leaves poor in halves,
        and in the end row by row."""
        best, m = Optima(np.full(q.shape, np.nan), *np.full((4, len(q)), np.nan)), len(q)
        todo = [np.arange(at, min(at + TOGETHER, m)) for at in range(0, m, TOGETHER)]
        while todo:
            rows = todo.pop()
            alone = len(rows) == 1
            for tolerance in TOLERANCES if alone else TOLERANCES[:1]:
                status, answer = self._solved((scale[rows], near[rows]), q[rows], A, b[rows], further, tolerance)
                # a prox has one minimiser, and nothing is proved by it
                nearly = alone and near[rows[0]] > 0.0 and status == "InsufficientProgress"
                if status in ("Solved", "AlmostSolved") or nearly:
                    best.put(rows, answer)
                if best.gap[rows[0]] <= GOOD or status.endswith("Infeasible"):
                    break
            poor = rows[~(best.gap[rows] <= GOOD)]
            if not alone:
                todo += [half for half in np.array_split(poor, 2) if len(half)]
        return best

    def _solved(
        self, bend: tuple[Array, Array], q: Array, A: Any, b: Array, further: list[Any], tolerance: float
    ) -> tuple[str, Optima]:
        """The verdict of one solve, and its answer; ``bend`` are scale and near."""
        from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones

        (m, n), (scale, near) = q.shape, bend
        P, Z = self._upper
        Q = _block_diagonal(P, scale[:, None] * P.data + near[:, None] * Z.data)
        blocks = _block_diagonal(A, np.broadcast_to(A.data, (m, A.nnz)))
        cones = [each for _ in range(m) for each in (*dims_to_solver_cones(self.dims), *further)]
        settings: Any = _clarabel().DefaultSettings.default()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        answer = _clarabel().DefaultSolver(Q, q.ravel(), blocks, b.ravel(), cones, settings).solve()
        x, y = np.asarray(answer.x).reshape(m, n), np.asarray(answer.z).reshape(m, -1)
        Qx = scale[:, None] * (x @ self.P) + near[:, None] * self._on_z(x[:, : self.k])
        return str(answer.status), _bounded(x, y, Qx, q, A, b)

    @cached_property
    def _upper(self) -> tuple[Any, Any]:
        """The upper triangles of P and of the identity on z, with the same entries, some of which are 0."""
        P, Z = np.triu(self.P.toarray()), np.diag(np.arange(len(self.q)) < self.k)
        column, row = np.nonzero(((P != 0.0) | Z).T)  # column by column
        found = [sparse.csc_array((M[row, column].astype(float), (row, column)), shape=P.shape) for M in (P, Z)]
        return found[0], found[1]


def _cones(S: Any, dims: Any) -> list[Any]:
    """The constraints that each row of S lies in the product of cones, in Clarabel's order."""
    at, out = dims.zero + dims.nonneg, []
    if dims.zero:
        out.append(S[:, : dims.zero] == 0)
    if dims.nonneg:
        out.append(S[:, dims.zero : at] >= 0)
    for size in dims.soc:
        out.append(cp.SOC(S[:, at], S[:, at + 1 : at + size], axis=1))
        at += size
    triples = [(cp.ExpCone, ())] * dims.exp + [(cp.PowCone3D, (float(alpha),)) for alpha in dims.p3d]
    for i, (cone, more) in enumerate(triples):
        out.append(cone(*(S[:, at + 3 * i + j] for j in range(3)), *more))
    return out


def _block_diagonal(pattern: Any, data: Array) -> Any:
    """A CSC matrix of blocks with the entries of one, and each its row of data (m, entries)."""
    m, (r, c) = len(data), pattern.shape
    block = np.arange(m)[:, None]
    indices = (pattern.indices + r * block).ravel()
    starts = np.append((pattern.indptr[:-1] + pattern.nnz * block).ravel(), m * pattern.nnz)
    return sparse.csc_array((data.ravel(), indices, starts), shape=(m * r, m * c))


def _bounded(x: Array, y: Array, Px: Array, q: Array, A: Any, b: Array) -> Optima:
    """1/2 x'Px + q'x >= -1/2 c'Pc - b'y + r'x for every feasible x, where c is any point, y is in the dual cone and
    r = Pc + q + A'y."""
    error = np.linalg.norm(Px + q + y @ A, axis=1) * np.linalg.norm(x, axis=1)
    curved = 0.5 * np.einsum("ij,ij->i", x, Px)
    value = curved + np.einsum("ij,ij->i", q, x)
    return Optima(x, value, -curved - np.einsum("ij,ij->i", b, y) - 2.0 * error, *np.ones((2, len(x))))


def cone_programme(function: Callable[[Any], Any], k: int, strength: float) -> ConeProgramme:
    """``function`` on rows of k coordinates, as CVXPY writes it for Clarabel."""

    def compiled(slope: Array) -> tuple[Any, float]:
        z = cp.Variable(k, name="z")
        data, _, inverse = cp.Problem(cp.Minimize(function(z) + slope @ z)).get_problem_data(cp.CLARABEL)
        return data, float(inverse[-1].inverse_data["offset"])

    # two slopes tell which columns are z
    (data, constant), (other, _) = compiled(np.arange(1.0, k + 1)), compiled(np.arange(1.0, k + 1) * 2.0)
    labels = np.rint(other["c"] - data["c"])
    order = np.argsort(np.where(labels == 0, np.inf, labels), kind="stable")
    n = len(order)
    P = sparse.csc_array(data["P"] if data.get("P") is not None else (n, n))[:, order][order]
    A = sparse.csc_array(data["A"])[:, order]
    q = (data["c"] - labels)[order]
    # Along x with A x = 0, P x = 0 and q'x = 0 the programme does not change, forwards and backwards.
    still = linalg.null_space(np.vstack([A.toarray(), P.toarray(), q[None]]))
    A.sort_indices()
    b, lineality = np.asarray(data["b"], dtype=float), linalg.orth(still[:k])
    return ConeProgramme(k, P, q, constant, A, b, data["dims"], lineality, strength)


def _clarabel() -> Any:
    return importlib.import_module("clarabel")  # its classes are compiled, and untyped
