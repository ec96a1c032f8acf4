"""Clarabel, SCS and OSQP, given matrices: what they need themselves, without the time of a modelling language."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..objective import Array, Objective
from ._base import FEW, AbstractSolver, Answer
from .modelled import block_diagonal


@dataclass(frozen=True)
class Programme:
    """minimise 1/2 x'Px + q'x over A x + s = b, s = 0 in the first ``zero`` rows, >= 0 in the next ``least``, then in
    second-order cones of the sizes ``second`` and in ``exponential`` cones {(x, y, z): y exp(x/y) <= z}.

    The parameters are the first n d numbers of x, in C order.
    """

    P: Any
    q: Array
    A: Any
    b: Array
    zero: int
    least: int
    second: tuple[int, ...] = ()
    exponential: int = 0


def programme(objective: Objective) -> Programme:
    """Losses and penalty side by side: each adds variables of its own, and rows that tie them to the parameters."""
    losses, penalty = _losses(objective), _penalty(objective)
    nd = int(np.prod(objective.shape))
    more = losses.q.size - nd
    total = losses.q.size + penalty.q.size - nd
    P = sp.block_diag([losses.P, sp.csc_array((total - losses.q.size,) * 2)], format="csc")
    gap = sp.csr_array((penalty.b.size, more))
    theirs = sp.hstack([penalty.A[:, :nd], gap, penalty.A[:, nd:]], format="csr")
    ours = sp.hstack([losses.A, sp.csr_array((losses.b.size, total - losses.q.size))], format="csr")
    cuts = [0, losses.zero, losses.zero + losses.least, losses.b.size]
    parts = [(ours[cuts[k] : cuts[k + 1]], losses.b[cuts[k] : cuts[k + 1]]) for k in range(3)]
    kinds = (parts[0], parts[1], (theirs[: penalty.least], penalty.b[: penalty.least]))
    last = ((theirs[penalty.least :], penalty.b[penalty.least :]), parts[2])
    rows = [*kinds, *last]
    return Programme(
        sp.csc_array(P),
        np.concatenate([losses.q, penalty.q[nd:]]),
        sp.csc_array(sp.vstack([A for A, _ in rows])),
        np.concatenate([b for _, b in rows]),
        losses.zero,
        losses.least + penalty.least,
        penalty.second,
        losses.exponential,
    )


def _losses(objective: Objective) -> Programme:
    """Residuals as variables where they are fewer than the coefficients; logistic losses as two exponential cones."""
    (n, d), scale, X, y = objective.shape, objective.scale, objective.X, objective.y
    nd = n * d
    none = sp.csr_array((0, nd))
    if X is None:
        return Programme(scale * sp.eye_array(nd), -scale * y.ravel(), none, np.zeros(0), 0, 0)
    if objective.loss == "logistic":
        return _logistic(objective)
    s = X.shape[1]
    if s >= d:
        H = scale * np.einsum("nsd,nse->nde", X, X)
        h = scale * np.einsum("nsd,ns->nd", X, y)
        return Programme(block_diagonal(H), -h.ravel(), none, np.zeros(0), 0, 0)
    P = sp.block_diag([sp.csr_array((nd, nd)), scale * sp.eye_array(n * s)])
    A = sp.hstack([block_diagonal(X), -sp.eye_array(n * s)], format="csr")
    return Programme(P, np.zeros(nd + n * s), A, y.ravel(), n * s, 0)


def _logistic(objective: Objective) -> Programme:
    """log(1 + exp(-m)) <= t where exp(-t) <= u, exp(-m - t) <= v and u + v <= 1; variables t, u, v per sample."""
    assert objective.X is not None
    (n, d), N = objective.shape, objective.y.size
    margins, eye, zero = block_diagonal(objective.y[:, :, None] * objective.X), sp.eye_array(N), sp.csr_array((N, N))
    none = sp.csr_array((N, n * d))
    sum_to_one = sp.hstack([none, zero, eye, eye])
    first = [sp.hstack([none, eye, zero, zero]), sp.csr_array((N, n * d + 3 * N)), sp.hstack([none, zero, -eye, zero])]
    then = [sp.hstack([margins, eye, zero, zero]), first[1], sp.hstack([none, zero, zero, -eye])]
    b = np.tile(np.repeat([0.0, 1.0, 0.0], N), 2)
    turn = np.arange(6 * N).reshape(2, 3, N).transpose(0, 2, 1).ravel()  # the three rows of a cone, one after the other
    cones = sp.csr_array(sp.vstack([*first, *then]))[turn]
    q = np.concatenate([np.zeros(n * d), np.full(N, objective.scale), np.zeros(2 * N)])
    A = sp.vstack([sum_to_one, cones], format="csr")
    P = sp.csr_array((n * d + 3 * N,) * 2)
    return Programme(P, q, A, np.concatenate([np.ones(N), b[turn]]), 0, N, exponential=2 * N)


def _penalty(objective: Objective) -> Programme:
    """strength sum_e weight_e phi(z_e) by bounds on each number of z (l1), or on the length of z_e (l2)."""
    (n, d), m = objective.shape, len(objective.edges)
    K = sp.csr_array(sp.kron(objective.difference(), sp.eye_array(d)))
    cost = objective.strength * objective.weight
    if objective.penalty == "l1":
        eye = sp.eye_array(m * d)
        A = sp.vstack([sp.hstack([K, -eye]), sp.hstack([-K, -eye])], format="csr")
        q = np.concatenate([np.zeros(n * d), np.repeat(cost, d)])
        return Programme(None, q, A, np.zeros(2 * m * d), 0, 2 * m * d)
    place = np.arange(m * (d + 1)).reshape(m, d + 1)
    heads = sp.csr_array((-np.ones(m), (place[:, 0], np.arange(m))), shape=(place.size, m))
    tails = sp.csr_array((np.ones(m * d), (place[:, 1:].ravel(), np.arange(m * d))), shape=(place.size, m * d)) @ K
    A = sp.hstack([-tails, heads], format="csr")
    q = np.concatenate([np.zeros(n * d), cost])
    return Programme(None, q, A, np.zeros(place.size), 0, 0, (d + 1,) * m)


@dataclass(frozen=True)
class Direct(AbstractSolver):
    """A solver and its ladder of tolerances; its set-up is in its time, building the matrices is not."""

    name: str
    ladder: tuple[float, ...]
    quadratic: bool = False  # for quadratic programmes only

    def applies(self, objective: Objective) -> bool:
        return not self.quadratic or (objective.penalty == "l1" and objective.loss != "logistic")

    @property
    def most(self) -> float:
        return FEW

    def run(self, objective: Objective, setting: float) -> Answer:
        solve = {CLARABEL_DIRECT: _clarabel, SCS_DIRECT: _scs, OSQP_DIRECT: _osqp}[self.name]
        began = time.process_time()
        given = programme(objective)
        built = time.process_time()
        x, rounds, status = solve(given, setting)
        done = time.process_time()
        n, d = objective.shape
        return Answer(np.asarray(x)[: n * d].reshape(n, d), built - began, done - built, rounds, status=status)


def _clarabel(given: Programme, setting: float) -> tuple[Array, int, str]:
    import clarabel

    cones: list[Any] = [clarabel.ZeroConeT(given.zero)] if given.zero else []
    cones += [clarabel.NonnegativeConeT(given.least)] if given.least else []
    cones += [clarabel.SecondOrderConeT(size) for size in given.second]
    cones += [clarabel.ExponentialConeT()] * given.exponential
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = setting
    P, A = (sp.csc_matrix(each) for each in (sp.triu(given.P), given.A))
    found = clarabel.DefaultSolver(P, given.q, A, given.b, cones, settings).solve()
    return np.array(found.x), found.iterations, str(found.status)


def _scs(given: Programme, setting: float) -> tuple[Array, int, str]:
    import scs

    cone: dict[str, Any] = {"z": given.zero, "l": given.least, "q": list(given.second), "ep": given.exponential}
    data = {"P": sp.csc_matrix(sp.triu(given.P)), "A": sp.csc_matrix(given.A), "b": given.b, "c": given.q}
    found = scs.SCS(data, cone, eps_abs=setting, eps_rel=setting, max_iters=20_000, verbose=False).solve()
    return found["x"], found["info"]["iter"], found["info"]["status"]


def _osqp(given: Programme, setting: float) -> tuple[Array, int, str]:
    import osqp

    low = np.concatenate([given.b[: given.zero], np.full(given.least, -np.inf)])
    solver = osqp.OSQP()
    options = {"eps_abs": setting, "eps_rel": setting, "max_iter": 20_000, "verbose": False}
    solver.setup(sp.csc_matrix(sp.triu(given.P)), given.q, sp.csc_matrix(given.A), low, given.b, **options)
    found = solver.solve(raise_error=False)
    return found.x, found.info.iter, found.info.status


CLARABEL_DIRECT, SCS_DIRECT, OSQP_DIRECT = "Clarabel", "SCS", "OSQP"
DIRECT = (
    Direct(CLARABEL_DIRECT, (1e-8, 1e-5, 1e-3)),
    Direct(SCS_DIRECT, (1e-3, 1e-5, 1e-7)),
    Direct(OSQP_DIRECT, (1e-3, 1e-5, 1e-7), True),
)
