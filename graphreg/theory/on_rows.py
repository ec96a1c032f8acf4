"""The strength from which on all rows (K w)_e - b_e of a penalty are 0, and flows that show it: in two programmes.

    c  =  argmin F(w) subject to K w = b,    r = grad F(c),    min over flows u with K'u = -r of max_e ||u_e||_* / A_e

Lasso's alpha_max (K = I), the largest strengths of trends and of groups. `agreement` has the same for the edges of a
graph, whose ties, trees and components make it fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.gate import Factor, heavy, refuse
from ..certificate import Certifier
from ..compiling import Compiler, Links, steepest
from ..errors import FailedError, MethodError
from ..oracles import BesideFlows
from ..terms import Array
from .network import Flows, Network
from .pooled import SmoothObjective, at_zero, refuse_unattained
from .routes import Best, Routes, near
from .varied import Varying

REFINED = 4  # Newton steps from what a solver leaves
LIFT = 1e-13  # of the largest entry: what is added where rows may depend on others
PER_PAIR = 4.0  # numbers of 8 bytes, for two parameters in a row
FOR_PRODUCT = 10.0  # multiplications that take as long as one of two entries of sparse matrices


@dataclass(frozen=True, eq=False, repr=False)
class RowNetwork(Network):
    """Blocks of any rows with their weights A_e, taken as one component."""

    @cached_property
    def component(self) -> Array:
        return np.zeros(self.shape[0], dtype=int)

    @cached_property
    def acyclic(self) -> Array:
        return np.zeros(1, dtype=bool)

    @cached_property
    def flat(self) -> Any:
        """K of all blocks, (numbers, n d)."""
        return sp.csr_array(sp.vstack([b.flat(self.shape[1]) for b in self.blocks], format="csr"))

    @cached_property
    def base(self) -> Array:
        """b, (numbers,)."""
        each = zip(self.blocks, self.nothing(), strict=True)
        return np.concatenate([(zero if block.center is None else block.center).ravel() for block, zero in each])

    def split(self, u: Array) -> Flows:
        """Numbers of all rows, per block."""
        shapes = [part.shape for part in self.nothing()]
        ends = np.cumsum([m * k for m, k in shapes])[:-1]
        return tuple(part.reshape(shape) for part, shape in zip(np.split(u, ends), shapes, strict=True))

    @cached_property
    def _least(self) -> Callable[[Array], Array]:
        return saddle(sp.eye_array(self.flat.shape[0], format="csr"), sp.csr_array(self.flat.T))

    def conserved(self, flows: Flows, r: Array) -> Flows:
        """The flows with the least change after which K'u = -r, as far as that may be."""
        u, K = np.concatenate([part.ravel() for part in flows]), self.flat
        for _ in range(2):
            left = np.concatenate([np.zeros(K.shape[0]), -r.ravel() - K.T @ u])
            u = u + self._least(left)[: K.shape[0]]
        return self.split(u)

    def balanced(self, r: Array) -> Array:
        """What rows can carry of r."""
        return -self.adjoint(self.conserved(self.nothing(), r))


def saddle(H: Any, K: Any) -> Callable[[Array], Array]:
    """Solutions of H x + K'y = f, K x = g, refined; of dependent rows of K the y of least size."""
    lift, kinds = LIFT * float(abs(K).max() if K.nnz else 1.0) ** 2, np.repeat([True, False], [H.shape[0], K.shape[0]])
    system = sp.csc_array(sp.block_array([[H, K.T], [K, None]]))
    near_to = sp.csc_array(system + sp.diags_array(np.where(kinds, lift, -lift)))
    return BesideFlows(system, kinds, lambda: Factor(near_to).solve, pivots=False).solve


def pooled_on_rows(vary: Varying, rows: RowNetwork, smooth: SmoothObjective) -> tuple[Array, Array]:
    """The optimum c of the rest where all rows are 0, and flows u with K'u = -grad F(c).

    Raises
    ------
    MethodError
        Where the rows cannot all be 0.
    UnattainedError
        Where the rest falls for ever there.
    FailedError
        Where the solver finds no point.
    """
    form, K, size = at_zero(vary), rows.flat, smooth.form.n * smooth.form.d
    products = float((np.diff(K.indptr) ** 2.0).sum())
    refuse(PER_PAIR * min(products, size**2.0), "the pairs of parameters that rows tie")
    ties = heavy(FOR_PRODUCT * products, lambda: K.T @ K)
    compiled = Compiler(form)("primal", False)
    outcome = compiled.solve("clarabel", {})
    found, _ = compiled.answer()
    x = np.zeros(size) if found is None else found[0].ravel()
    feasible = saddle(sp.eye_array(size, format="csr"), K)
    x = x + feasible(np.concatenate([np.zeros(size), rows.base - K @ x]))[:size]
    left = np.abs(K @ x - rows.base)
    if (left > 1e-8 * (abs(K) @ np.abs(x) + np.abs(rows.base)) + 1e-12).any():
        names = " and ".join(dict.fromkeys(block.name for block in rows.blocks))
        raise MethodError(f"the rows of {names} cannot all be 0 together: {{w : K w = b}} is empty")
    if Certifier(form).attained() is False:
        refuse_unattained(form, x.reshape(form.shape))
    if found is None:
        raise FailedError(f"the problem in which all rows are 0 was not solved: {outcome.cause or outcome.status}")
    step = np.zeros(size + K.shape[0])
    for _ in range(REFINED):
        g, H = smooth.gradient(x.reshape(form.shape)).ravel(), smooth.hessian(x.reshape(form.shape))
        step = saddle(sp.csr_array(H + ties), K)(np.concatenate([-g, rows.base - K @ x]))
        x = x + step[:size]
    return x.reshape(form.shape), step[size:]


def route_on_rows(rows: RowNetwork, r: Array, u: Array) -> Routes:
    """The flows of least load, and the direction that proves it."""
    best, d = Best(rows, r), rows.shape[1]
    best.offer(rows.conserved(rows.split(u), r), np.zeros(rows.shape))
    written = not any(b.penalty.unwritten() for b in rows.blocks)
    load, total = float(best.known.upper.max()), sum(float(A.sum()) for A in rows.weights)
    if not np.isfinite(load):
        load = float(rows.largest(rows.conserved(rows.split(u), r)).max())
    if load > 0.0 and written:
        links = [
            Links(b.penalty, None, b.flat(d), A / total, np.zeros(b.count, dtype=int), near(b, b.map.width(d)))
            for b, A in zip(rows.blocks, rows.weights, strict=True)
        ]
        w, flows = steepest(links, r / (load * total))
        best.offer(rows.conserved(tuple(load * total * each for each in flows), r), w)
    if not np.isfinite(best.known.upper).all():
        raise FailedError("no flows were found that balance the gradients where all rows are 0")
    return best.routes(np.ones(1, dtype=bool), "")
