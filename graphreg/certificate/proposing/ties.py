"""Balance where columns depend on one another and rows act on every coordinate alike.

Where ``sum_j nu_j X_rj = 0`` for all samples, as of a column that stands twice or of all categories beside a constant,
conservation X'a + K'u = 0 says the same of K'u, whatever the prices are; and so it does where prices of classes add
up to 0. Flows have it for which kappa_e, the sum of nu_j u_ej, is 0, or what K' takes to 0; in floats, where they
have few digits. Then one coordinate of every dependency follows from the others, at each node. Nothing here is
trusted.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from ...base.gate import heavy
from ...form import Form
from ...terms import Array
from ..kernel.joint import Dropped
from ..kernel.system import System

DIGITS = 40  # of flows, in binary: sums of a few thousand of them are exact
COARSE = 2.0**10  # units of kappa, which rounding leaves alike where it is alike
MOST = 10_000  # nodes, whose equations are looked at one by one
LARGEST = 1000  # a whole number in a dependency
NEAR = 1e-9  # of numbers that are rounded to whole ones
Ties = dict[int, Array]  # a coordinate that follows from others, and nu, which has a 1 there


def ties_of(form: Form) -> Ties:
    """Whole numbers nu (d,) with ``X nu = 0`` in floats, for all samples together, and of classes whose prices add up
    to 0; none where the samples have no columns."""
    given = [(block.X, block.loss.prices.dependent(block.y)) for block in form.samples if block.map.noun == "sample"]
    designs, k = [X for X, _ in given if X is not None], form.samples[0].width if form.samples else 1
    depends = all(own is not None for _, own in given)
    if not designs or len(designs) < len(form.samples) or any(X.shape[1] * k != form.d for X in designs):
        return {}
    if (k > 1) != depends or form.n > MOST:
        return {}
    among = _dependencies(np.concatenate(designs))
    if k == 1:
        return among
    out, unit = Ties(), np.eye(k)
    for j, nu in among.items():
        out |= {j * k + c: np.kron(nu, unit[c]) for c in range(k - 1)}
    for j in range(form.d // k):
        others = among[j] * (np.arange(len(among[j])) != j) if j in among else -np.eye(form.d // k)[j]
        nu = -np.kron(others, unit[:-1].sum(axis=0))
        nu[j * k + k - 1] = 1.0
        out[j * k + k - 1] = nu
    return out


def _dependencies(X: Array) -> Ties:
    """Those of columns."""
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    found: Any = heavy(2.0 * X.size * X.shape[1], partial(qr, mode="r", pivoting=True), X / scale)
    R, order = found
    pivots = np.abs(np.diagonal(R))
    rank = int((pivots > NEAR * pivots.max(initial=0.0)).sum())
    last, first = order[rank:], order[:rank]
    nu = np.zeros((len(last), X.shape[1]))
    nu[:, first] = -np.linalg.solve(R[:rank, :rank], R[:rank, rank:]).T * scale[last, None] / scale[first]
    nu[np.arange(len(last)), last] = 1.0
    whole = np.rint(nu)
    good = np.asarray((np.abs(nu - whole) <= NEAR).all(axis=1) & (np.abs(whole) <= LARGEST).all(axis=1))
    return {int(j): each for j, each, holds in zip(last, whole, good, strict=True) if holds and not (X @ each).any()}


def tied(system: System, v: Array, ties: Ties, free: bool) -> Array:
    """Prices and flows, these with few digits and as the dependencies want them. What the sums kappa_e of nu_j u_ej are
    too much goes, to equal shares: unless they are ``free``, and may be what K' takes to 0, all of it."""
    v = v.copy()
    for one in system.flows:
        u = one.taken(v)
        if one.shape[1] != system.form.d or not u.any():
            continue
        unit = 2.0 ** (np.ceil(np.log2(np.abs(u).max())) - DIGITS)
        kappa = {j: np.rint(u @ nu / (COARSE * unit)) * (COARSE * unit * free) for j, nu in ties.items()}
        for j, nu in ties.items():
            u -= np.outer(u @ nu - kappa[j], nu) / (nu @ nu)
        u[:] = np.rint(u / unit) * unit
        for j, nu in ties.items():
            u[:, j] = kappa[j] - np.delete(u, j, axis=1) @ np.delete(nu, j)
    return v


def dropped(system: System, ties: Ties) -> Dropped:
    """At each node the equation of a coordinate that follows from others, and how flows move with others."""
    n, d = system.form.shape
    of = {
        i * d + j: {i * d + k: Fraction(int(nu[k])) for k in np.flatnonzero(nu).tolist()}
        for i in range(n)
        for j, nu in ties.items()
    }
    M = np.ones(system.size)
    entries = [(np.arange(system.size), np.arange(system.size), M)]
    for one in system.flows:
        if one.shape[1] == d:
            start = one.first + d * np.arange(one.shape[0])
            for j, nu in ties.items():
                M[start + j] = 0.0
                others = np.setdiff1d(np.flatnonzero(nu), [j])
                entries += [(start + j, start + k, np.full(len(start), -nu[k])) for k in others]
    row, column, value = (np.concatenate(each) for each in zip(*entries, strict=True))
    moves = sp.csr_array((value, (row, column)), shape=(system.size,) * 2)
    moves.eliminate_zeros()
    return Dropped(of, moves)


def alike(system: System, ties: Ties) -> Dropped:
    """At the first node of each component the equation of a coordinate that follows from others, summed over all nodes:
    where rows take no notice of what is added to all of them."""
    d, out = system.form.d, {}
    for c in range(system.form.n_components):
        nodes = np.flatnonzero(system.form.component == c).tolist()
        for j, nu in ties.items():
            each = {k: Fraction(int(nu[k])) for k in np.flatnonzero(nu).tolist()}
            out[nodes[0] * d + j] = {i * d + k: y for i in nodes for k, y in each.items()}
    return Dropped(out)
