"""The direction along which edges give way first, as a conic programme.

    maximise over w   sum_k <-r, w>_k    subject to   sum over the edges of component k of A_e phi((Kw)_e) <= 1

for all components at once, each by itself. The dual value of the bound of component k is the least load of its edges,
min over flows with K'u = -r of max_e ||u_e||_* / A_e; the dual values of the links z = Kw are such flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..form import EdgeBlock
from ..terms.records import Array
from .conic import ATTEMPTS, split


@dataclass(frozen=True)
class Links:
    """Some edges of a block: their rows, weights A_e > 0 and components."""

    block: EdgeBlock
    rows: Array
    weight: Array
    component: Array


def steepest(links: Sequence[Links], r: Array) -> tuple[Array, list[Array]]:
    """The directions w (n, d), and the flows of the edges of each entry of ``links``; both to the solver's accuracy.

    The numbers that the solver sees are about 1 where the loads of the components (largest ||u_e||_* / A_e) and their
    mean weights are.
    """
    import cvxpy as cp

    n, d = r.shape
    nodes = np.unique(np.concatenate([_ends(each) for each in links]))
    w = cp.Variable((len(nodes), d))
    zs: list[Any] = []
    ties: list[Any] = []
    bounds: Any = 0
    constraints: list[Any] = []
    size = 1 + max(int(each.component.max()) for each in links)
    for each in links:
        K = sp.csr_array(each.block.K[each.rows][:, nodes])
        part = w if each.block.features is None else w[:, each.block.features]
        z = cp.Variable((len(each.rows), d if each.block.features is None else len(each.block.features)))
        tie = K @ part - z == 0
        value, domain = split(each.block.penalty.cvxpy(z))
        add = sp.csr_array((each.weight, (each.component, np.arange(len(each.rows)))), shape=(size, len(each.rows)))
        bounds = bounds + add @ value
        constraints += [tie, *domain]
        zs.append(z)
        ties.append(tie)
    used = np.unique(np.concatenate([each.component for each in links]))
    constraints.append(bounds[used] <= 1.0)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(r[nodes], w))), constraints)
    _solve(problem)
    direction = np.zeros((n, d))
    flows = [np.zeros(z.shape) for z in zs]
    if w.value is not None:
        direction[nodes] = w.value
        flows = [np.asarray(tie.dual_value, dtype=float).reshape(z.shape) for tie, z in zip(ties, zs, strict=True)]
    return direction, flows


def _ends(each: Links) -> Array:
    return np.concatenate([each.block.tail[each.rows], each.block.head[each.rows]])


def _solve(problem: Any) -> None:
    """At tight tolerances; what it is worth is for the caller to judge."""
    import warnings

    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in (ATTEMPTS["CLARABEL"][1][1], ATTEMPTS["CLARABEL"][0][1]):
            try:
                problem.solve(solver="CLARABEL", **options)
            except cp.SolverError:
                continue
            if problem.status in ("optimal", "optimal_inaccurate"):
                return
