"""A convex CVXPY function of one row, as the cone programme that Clarabel takes.

    phi(z) = min over x = (z, ...) of  1/2 x'Px + q'x + constant   subject to   A x + s = b,  s in K

CVXPY writes it down once; after that prox, conjugate and gauge of a row are one small solve each, without CVXPY. What
certificates rest on (conjugate and gauge) is bounded from above by the dual solution and its residual.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ...errors import SolverError
from ...lazy import cp
from ..records import Array

TOLERANCES = (1e-11, 1e-8)  # tried in this order: tight, then Clarabel's default
MARGIN = 1e-9  # relative; added to what the solver found, on the safe side
LEAST_SIZE = 1e-4  # rows are scaled to norm 1 before a prox, and smaller ones by this much


@dataclass(frozen=True)
class Optimum:
    """A minimiser x of a small cone programme, its value, and a safe lower bound of the minimum."""

    x: Array
    value: float
    bound: float


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

    @property
    def homogeneous(self) -> bool:
        """Whether phi(t z) = t phi(z) for t > 0 by construction; what looks so on a few rows may end far out."""
        return self.P.nnz == 0 and self.constant == 0.0 and not self.b.any()

    @cached_property
    def ignored(self) -> Array | None:
        """The coordinates that phi does not depend on, (k,); None where it is constant along other directions too."""
        share = (self.lineality**2).sum(axis=1)  # of each axis
        aligned = np.minimum(np.abs(share), np.abs(share - 1.0)).max(initial=0.0) < 1e-9
        return share > 0.5 if aligned else None

    def prox(self, v: Array, step: float) -> Array:
        """argmin over p of ``step * phi(p) + 1/2 ||p - v||^2``."""
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return np.zeros(self.k)
        size = max(size, LEAST_SIZE)  # solved for x / size: the cones are the same, and b becomes b / size
        on_z = np.concatenate([np.ones(self.k), np.zeros(len(self.q) - self.k)])
        P = step * self.P + sparse.diags_array(on_z, format="csc")
        best = self._minimise(P, (step * self.q + self._on_z(-v)) / size, self.A, self.b / size, [])
        if not isinstance(best, Optimum):
            raise SolverError(f"Clarabel could not evaluate the prox at v = {v} with step {step:g}: {best}")
        return best.x[: self.k] * size

    def value(self, z: Array) -> float:
        """phi(z) as the cones have it."""
        fixed = sparse.csc_array(sparse.vstack([self.A, sparse.eye_array(self.k, len(self.q))]))
        best = self._minimise(self.P, self.q, fixed, np.concatenate([self.b, z]), [_clarabel().ZeroConeT(self.k)])
        return best.value + self.constant if isinstance(best, Optimum) else np.inf

    def conjugate(self, u: Array) -> float:
        """An upper bound of sup over z of <u, z> - phi(z), as tight as the solver; +inf unless it proved one."""
        size = max(float(np.linalg.norm(u)), 1.0)  # solved for x / size, as in prox
        best = self._minimise(self.P, (self.q + self._on_z(-u)) / size, self.A, self.b / size, [])
        if not isinstance(best, Optimum):
            return np.inf
        product = size * float(u @ best.x[: self.k])
        phi = product + size**2 * best.value + self.constant
        return -(size**2) * min(best.value, best.bound) - self.constant + MARGIN * (abs(product) + abs(phi))

    def support(self, u: Array) -> float:
        """An upper bound of max <u, z> where the recession function of phi is at most 1.

        That is where P x = 0, q'x <= 1 and A x + s = 0: the recession cone of a cone programme has b = 0.
        """
        size = float(np.linalg.norm(u))
        if size == 0.0:
            return 0.0
        A, b = self._recession
        clarabel, flat = _clarabel(), len(b) - len(self.b) - 1
        cones = ([clarabel.ZeroConeT(flat)] if flat else []) + [clarabel.NonnegativeConeT(1)]
        best = self._minimise(sparse.csc_array(self.P.shape), self._on_z(-u / size), A, b, cones)
        if not isinstance(best, Optimum):
            return np.inf
        return -min(best.value, best.bound) * size * (1.0 + MARGIN)

    @cached_property
    def _recession(self) -> tuple[Any, Array]:
        """A and b of `support`, which are the same for every row."""
        flat = linalg.orth(self.P.toarray()).T
        A = sparse.csc_array(sparse.vstack([self.A, sparse.csc_array(flat), sparse.csc_array(self.q[None])]))
        return A, np.concatenate([np.zeros(len(self.b) + len(flat)), [1.0]])

    def support_at_zero(self, u: Array) -> float:
        """An upper bound of inf {t : u / t is a subgradient of phi at 0}; +inf unless one is proved.

        Where b = 0 and the constant is 0, phi without its quadratic part, which is never negative, is
        homogeneous and lies below phi: its subgradients at 0 are some of phi, and they are all of them, as the
        quadratic part is of second order at 0. What remains is `support` without that part.
        """
        if not u.any():
            return 0.0
        if self.b.any() or abs(self.constant) > 0.0:
            return np.inf
        return self._at_zero.support(u)

    @cached_property
    def _at_zero(self) -> ConeProgramme:
        return replace(self, P=sparse.csc_array(self.P.shape))

    @cached_property
    def _upper(self) -> Any:
        return sparse.csc_array(sparse.triu(self.P))

    def _on_z(self, v: Array) -> Array:
        return np.concatenate([v, np.zeros(len(self.q) - self.k)])

    def _minimise(self, P: Any, q: Array, A: Any, b: Array, further: list[Any]) -> Optimum | str:
        """Clarabel's answer to min 1/2 x'Px + q'x over the cones and ``further`` ones; its status where it has none."""
        from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones

        cones, status = dims_to_solver_cones(self.dims) + further, ""
        upper = self._upper if P is self.P else sparse.csc_array(sparse.triu(P)) if P.nnz else P
        for tolerance in TOLERANCES:
            answer = _clarabel().DefaultSolver(upper, q, A, b, cones, _settings(tolerance)).solve()
            status = str(answer.status)
            if status in ("Solved", "AlmostSolved"):
                x, y = np.asarray(answer.x), np.asarray(answer.z)
                # 1/2 x'Px + q'x >= -1/2 c'Pc - b'y + r'x for every feasible x, where c is any point, y is in the
                # dual cone and r = Pc + q + A'y
                error = float(np.linalg.norm(P @ x + q + A.T @ y) * np.linalg.norm(x))
                curved = 0.5 * float(x @ (P @ x))
                return Optimum(x, curved + float(q @ x), -curved - float(b @ y) - 2.0 * error)
            if status.endswith("Infeasible"):
                break
        return status


def cone_programme(function: Callable[[Any], Any], k: int) -> ConeProgramme:
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
    return ConeProgramme(k, P, q, constant, A, np.asarray(data["b"], dtype=float), data["dims"], linalg.orth(still[:k]))


def _clarabel() -> Any:
    return importlib.import_module("clarabel")  # its classes are compiled, and untyped


def _settings(tolerance: float) -> Any:
    settings = _clarabel().DefaultSettings.default()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings
