"""Balance where columns depend on one another and rows act on every coordinate alike.

Where ``sum_j nu_j X_rj = 0`` for all samples, as of a column that stands twice or of all categories beside a constant,
conservation X'a + K'u = 0 says the same of K'u, whatever the prices are. Flows have it for which kappa_e, the sum of
nu_j u_ej, is 0, or what K' takes to 0; in floats, where they have few digits. Then one coordinate of every dependency
follows from the others, at each node. Nothing here is trusted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from ...form import Form
from ...terms import Array
from ..kernel.arithmetic import need
from ..kernel.balance import Answers, Combination
from ..kernel.system import System
from .arcs import forest
from .plan import Plan, Planner
from .slack import Slack
from .systems import MOST, solved

DIGITS = 40  # of flows and answers, in binary: sums of a few thousand of them are exact
COARSE = 2.0**10  # units of kappa, which rounding leaves alike where it is alike
LARGEST = 1000  # a whole number in a dependency
NEAR = 1e-9  # of numbers that are rounded to whole ones
Ties = dict[int, Array]  # a coordinate that follows from others, and nu, which has a 1 there


def ties_of(form: Form) -> Ties:
    """Whole numbers nu (d,) with ``X nu = 0`` in floats, for all samples together; none where `tied_plan` has too many
    equations at any rate."""
    given = [block.X for block in form.samples if block.map.noun == "sample"]
    designs = [X for X in given if X is not None and X.shape[1] == form.d]
    if not designs or len(designs) < len(form.samples) or form.n > MOST:
        return {}
    X = np.concatenate(designs)
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    found: Any = qr(X / scale, mode="r", pivoting=True)
    R, order = found
    pivots = np.abs(np.diagonal(R))
    rank = int((pivots > NEAR * pivots.max(initial=0.0)).sum())
    last, first = order[rank:], order[:rank]
    nu = np.zeros((len(last), form.d))
    nu[:, first] = -np.linalg.solve(R[:rank, :rank], R[:rank, rank:]).T * scale[last, None] / scale[first]
    nu[np.arange(len(last)), last] = 1.0
    whole = np.rint(nu)
    good = np.asarray((np.abs(nu - whole) <= NEAR).all(axis=1) & (np.abs(whole) <= LARGEST).all(axis=1))
    return {int(j): each for j, each, holds in zip(last, whole, good, strict=True) if holds and not (X @ each).any()}


def tied(system: System, v: Array, ties: Ties, free: bool = True) -> Array:
    """Prices and flows, these with few digits and as the dependencies want them; unless kappa is ``free``, it is 0."""
    v = v.copy()
    for one in system.flows:
        u = one.taken(v)
        if one.shape[1] != system.form.d or not u.any():
            continue
        unit = 2.0 ** (np.ceil(np.log2(np.abs(u).max())) - DIGITS)
        kappa = {j: np.rint(u @ nu / (COARSE * unit)) * (COARSE * unit * free) for j, nu in ties.items()}
        u[:] = np.rint(u / unit) * unit
        for j, nu in ties.items():
            u[:, j] = kappa[j] - np.delete(u, j, axis=1) @ np.delete(nu, j)
    return v


def tied_plan(planner: Planner, slack: Slack, held: Array, ties: Ties) -> Plan:
    """What takes up imbalances in the coordinates that follow from no others."""
    system, (n, d) = planner.system, planner.system.form.shape
    N, V = system.shape
    kept = np.setdiff1d(np.arange(d), list(ties))
    rows = (np.arange(n)[:, None] * d + kept).ravel()
    weight = np.where(held, 0.0, slack.weight)
    for one in system.flows:
        each = one.taken(weight)
        if one.shape[1] == d:  # all coordinates of a row move, or none
            each *= np.asarray(each.all(axis=1))[:, None]
            each[:, list(ties)] = 0.0
    free = np.flatnonzero(weight > 0.0)
    need(len(rows) <= MOST, "too many equations depend on one another")
    B = system.kind.rows(free)
    found = solved(B[:, rows].toarray().T, weight[free], rows // d)
    R = np.zeros((V, N))
    R[np.ix_(free, rows[found.kept])] = found.X
    R = np.stack([tied(system, column, ties, free=False) for column in R.T], axis=1)
    dropped: dict[int, Combination] = {
        int(rows[g]): {int(rows[k]): y for k, y in each.items()} for g, each in found.combinations.items()
    }
    for i in range(n):
        for j, nu in ties.items():
            total = {i * d + k: Fraction(int(nu[k])) for k in np.flatnonzero(nu).tolist()}
            for g in [g for g in total if g in dropped]:
                times = total[g]
                for k, y in dropped[g].items():
                    total[k] = total.get(k, Fraction(0)) - times * y / dropped[g][g]
            dropped[i * d + j] = {k: y for k, y in total.items() if y}
    tree = forest(
        planner.arcs, np.zeros(len(planner.variable)), np.zeros(d), np.ones(len(planner.variable), dtype=bool)
    )
    return Plan(Answers(system, sp.csr_array(R)), tree, dropped)
