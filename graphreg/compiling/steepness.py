"""The direction along which edges give way first, as a conic programme.

    maximise over w   sum_k <-r, w>_k    subject to   sum over the edges of component k of A_e phi((Kw)_e) <= 1

for all components at once, each by itself. The dual value of the bound of component k is the least load of its edges,
min over flows with K'u = -r of max_e ||u_e||_* / A_e; the dual values of the links z = Kw are such flows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..clock import carry_out
from ..lazy import cp
from ..terms import Array
from ..terms.penalties import AbstractPenalty, split
from .solvers import ATTEMPTS


@dataclass(frozen=True)
class Links:
    """Edges that share a penalty on the coordinates ``columns``, with weights A_e > 0 and components."""

    penalty: AbstractPenalty
    columns: Array
    K: sp.csr_array  # (m, n)
    weight: Array
    component: Array
    near: float = 1.0  # phi is taken at so small a multiple: for its growth at 0 where it is not homogeneous


def steepest(links: Sequence[Links], r: Array) -> tuple[Array, list[Array]]:
    """The directions w (n, d), and the flows of the edges of each entry of ``links``; both to the solver's accuracy.

    The numbers that the solver sees are about 1 where the loads of the components (largest ||u_e||_* / A_e) and the
    sums of their weights are.
    """
    w = cp.Variable(r.shape)
    zs: list[Any] = []
    ties: list[Any] = []
    bounds: Any = 0
    constraints: list[Any] = []
    size = 1 + max(int(each.component.max()) for each in links)
    for each in links:
        m = len(each.weight)
        z = cp.Variable((m, len(each.columns)))
        tie = each.K @ w[:, each.columns] - z == 0
        value, domain = split(each.penalty.cvxpy(each.near * z))
        bounds = (
            bounds + sp.csr_array((each.weight, (each.component, np.arange(m))), shape=(size, m)) @ value / each.near
        )
        constraints += [tie, *domain]
        zs.append(z)
        ties.append(tie)
    used = np.unique(np.concatenate([each.component for each in links]))
    constraints.append(bounds[used] <= 1.0)
    _solve(cp.Problem(cp.Minimize(cp.sum(cp.multiply(r, w))), constraints))
    if w.value is None or any(tie.dual_value is None for tie in ties):
        return np.zeros(r.shape), [np.zeros(z.shape) for z in zs]
    flows = [np.asarray(tie.dual_value, dtype=float).reshape(z.shape) for tie, z in zip(ties, zs, strict=True)]
    return np.asarray(w.value, dtype=float), flows


def _solve(problem: Any) -> None:
    """At tight tolerances; what it is worth is for the caller to judge."""
    with warnings.catch_warnings(action="ignore"):
        for options in (ATTEMPTS["CLARABEL"][1][1], ATTEMPTS["CLARABEL"][0][1]):
            try:
                carry_out(lambda options=options: problem.solve(solver="CLARABEL", **options))
            except cp.SolverError:
                continue
            if problem.status in ("optimal", "optimal_inaccurate"):
                return
