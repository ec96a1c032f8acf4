"""Exact likelihood and prediction in a tree of Gaussian coefficients, in time linear in the number of nodes.

    y_r = x_r'w_i + e_r,    e_r ~ N(0, sigma^2 / p_r),    w_v = w_parent(v) + E xi_v,    xi_v ~ N(0, sigma^2 rho_l I)

on a tree whose leaves are the nodes, E the coordinates that vary (the others are those of the root everywhere). Of the
samples below a vertex v the likelihood given w_v is that of (A_v, b_v): up to constants
exp(-(w'A_v w - 2 b_v'w) / (2 sigma^2)), A = X'PX and b = X'Py at the leaves. Passing an edge integrates xi_v out,

    M = I + rho E'AE,    A <- A - rho A E M^-1 E'A,    b <- b - rho A E M^-1 E'b,
    y'Py <- y'Py - rho b'E M^-1 E'b,    log-determinant <- log-determinant + log det M,

and children add up at their parent. Nothing is divided by rho, so that 0 is a value like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.display import Brief
from ..errors import DataError
from ..form import Form
from ..terms import Array, times
from .local import flat


@dataclass(frozen=True, repr=False)
class CoefficientTree(Brief):
    """The tree as positions 0 ... n - 1, the root last.

    Attributes
    ----------
    levels : tuple of pairs (child, parent)
        Per level from the leaves upwards the positions of children and of their parents.
    random : (r,) array
        The coordinates in which children differ from their parents.
    """

    levels: tuple[tuple[Array, Array], ...]
    random: Array


@dataclass(frozen=True)
class Statistics:
    """The statistics of the samples that the likelihood takes: A (n, d, d), b (n, d) and y'Py, of targets from which a
    common ``centre`` (d,) is taken out, so that the sums do not cancel; ``size`` numbers with precisions p_r, of which
    ``log_precision`` is the sum of logarithms."""

    A: Array
    b: Array
    squares: float
    centre: Array
    size: int
    log_precision: float

    @staticmethod
    def of(form: Form) -> Statistics:
        """The statistics of the squared losses of a form; `DataError` where even one model for all is not
        determined."""
        A = sum((block.sums(block.scale) for block in form.samples), np.zeros((form.n, form.d, form.d)))
        size = sum(block.offset.size for block in form.samples)
        _check_determined(form, A.sum(axis=0), size)
        b, _ = _moments(form, np.zeros(form.d))
        centre = np.linalg.solve(A.sum(axis=0), b.sum(axis=0))
        b, squares = _moments(form, centre)
        logs = sum(float(np.log(b.scale).sum()) * b.width for b in form.samples)
        return Statistics(A, b, squares, centre, size, logs)


@dataclass(frozen=True)
class Passed:
    """The numbers that the children of one level keep for the way down: given w at its parent, xi_v has the posterior
    mean rho (``pull`` - ``slope`` w) and the covariance sigma^2 rho M^-1."""

    rho: float
    slope: Array  # M^-1 E'A, (k, r, d)
    pull: Array  # M^-1 E'b, (k, r)
    M: Array  # (k, r, r)


@dataclass(frozen=True)
class Upward:
    """The samples as the root sees them, and what each level keeps. ``A`` and ``b`` hold at every vertex what came
    from below it, before its own edge."""

    A: Array
    b: Array
    squares: float
    logdet: float
    stored: tuple[Passed, ...]

    @cached_property
    def root(self) -> Array:
        """The generalised least squares estimate of w at the root, from the (centred) targets."""
        return np.linalg.solve(self.A[-1], self.b[-1])

    @property
    def residual(self) -> float:
        """(y - X theta)'V^-1 (y - X theta) at that estimate, in units of sigma^2."""
        return self.squares - float(self.b[-1] @ self.root)


def upward(data: Statistics, tree: CoefficientTree, ratios: Array) -> Upward:
    """The pass from the leaves to the root, at the ratios rho_l."""
    A, b, R, d = data.A.copy(), data.b.copy(), tree.random, data.A.shape[1]
    squares, logs, stored = data.squares, 0.0, list[Passed]()
    for (child, parent), rho in zip(tree.levels, ratios.tolist(), strict=True):
        A_v, b_v = A[child], b[child]
        M = np.eye(len(R)) + rho * A_v[:, R[:, None], R]
        solved = np.linalg.solve(M, np.concatenate([A_v[:, R], b_v[:, R, None]], axis=2))
        slope, pull = solved[..., :d], solved[..., d]
        across = rho * A_v[:, :, R]
        np.add.at(A, parent, A_v - across @ slope)
        np.add.at(b, parent, b_v - times(across, pull))
        squares -= rho * float(np.vdot(b_v[:, R], pull))
        logs += log_determinant(M)
        stored.append(Passed(rho, slope, pull, M))
    return Upward(A, b, squares, logs, tuple(stored))


def downward(up: Upward, tree: CoefficientTree, lowest: int = 0, *, known: bool = False) -> tuple[Array, Array]:
    """The pass from the root to the children of a level (0 the leaves): the best linear unbiased predictions w (n,
    d), and the covariances (n, d, d) of their errors in units of sigma^2, what the root's estimate contributes
    included (Henderson's), but for a root that is ``known``; 0 below."""
    w, C, R = np.zeros_like(up.b), np.zeros_like(up.A), tree.random
    w[-1] = up.root
    if not known:
        C[-1] = np.linalg.inv(up.A[-1])
    for level in range(len(up.stored) - 1, lowest - 1, -1):
        (child, parent), stored = tree.levels[level], up.stored[level]
        w[child] = w[parent]
        w[child[:, None], R] += stored.rho * (stored.pull - times(stored.slope, w[parent]))
        T = np.tile(np.eye(w.shape[1]), (len(child), 1, 1))
        T[:, R] -= stored.rho * stored.slope
        below = T @ C[parent] @ T.transpose(0, 2, 1)
        below[:, R[:, None], R] += stored.rho * np.linalg.inv(stored.M)
        C[child] = (below + below.transpose(0, 2, 1)) / 2.0
    return w, C


def slopes(up: Upward, tree: CoefficientTree, *, restricted: bool) -> tuple[Array, Array]:
    """The derivatives by each rho_l of the log-determinants, sum_v tr Z_v'PZ_v, and of minus the residual,
    sum_v ||Z_v'Py||^2. With w and C (sigma^2 C) of the parent

        Z_v'Py = M^-1 E'(b - A w),    Z_v'PZ_v = M^-1 E'AE - M^-1 E'A C A E M^-1

    where P = V^-1 - V^-1 X (X'V^-1 X)^-1 X'V^-1; without restriction the first has V^-1 for P, a root that is known."""
    w, C = downward(up, tree, 1, known=not restricted)
    traces, squares = np.zeros(len(up.stored)), np.zeros(len(up.stored))
    for level, ((_, parent), stored) in enumerate(zip(tree.levels, up.stored, strict=True)):
        g = stored.slope
        own = float(np.einsum("krr->", g[:, :, tree.random]))
        traces[level] = own - float(np.vdot(g @ C[parent], g))
        squares[level] = float(np.sum((stored.pull - times(g, w[parent])) ** 2))
    return traces, squares


def log_determinant(M: Array) -> float:
    """The sum of log det over a stack of matrices."""
    return float(np.linalg.slogdet(M)[1].sum())


def _moments(form: Form, centre: Array) -> tuple[Array, float]:
    """X'P(y - X centre) per node, and the sum of squares of what is left."""
    b, squares = np.zeros(form.shape), 0.0
    w = np.tile(centre, (form.n, 1))
    for block in form.samples:
        left = block.y - block.predict(w)
        priced = block.scaled(left)
        b += block.adjoint(priced, form.shape)
        squares += float(np.vdot(left, priced))
    return b, squares


def _check_determined(form: Form, A: Array, size: int) -> None:
    """An error where the samples of all nodes do not determine the root's coefficients, or leave nothing for the
    noise."""
    if size <= form.d:
        raise DataError(
            f"there are {size} samples in all for {form.d} coefficients of the root: no residual degrees of "
            "freedom are left for the noise; give more samples, or use fewer features"
        )
    zero = np.flatnonzero(np.diag(A) <= 0)
    if zero.size:
        raise DataError(f"the feature {form.space.coordinates[zero[0]]!r} is 0 in all samples; drop it")
    open_ = np.abs(flat(A[None])[1][0]).max(axis=1)
    if names := ", ".join(repr(form.space.coordinates[j]) for j in np.flatnonzero(open_ > 1e-3)):
        raise DataError(
            f"over the samples of all nodes together the features {names} are collinear; drop one of them, or, where "
            "one varies little beside its mean, read the data with standardise=True"
        )
