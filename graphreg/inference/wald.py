"""Wald statistics of all edges at once, and the distributions by which they are judged."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..lazy import stats
from ..terms import Array, at_a_time
from .local import LocalFits
from .missing_estimates import SINGULAR

AT_ONCE = 2_000_000  # entries of the stacked matrices of the edges that are worked on at once


@dataclass(frozen=True)
class Reference:
    """How W^2 is distributed where the two nodes' parameters are equal: ``factor W^2 / k ~ F(k, residual_df)`` per
    edge, chi-square with k degrees of freedom where residual_df is inf. At residual_df <= 0 nothing can be said: p is
    1."""

    k: int
    residual_df: Array
    factor: Array

    def p_values(self, statistic: Array) -> Array:
        df = np.where(self.residual_df > 0, self.residual_df, 1.0)
        finite = np.where(np.isfinite(df), df, 1.0)
        p = stats.f.sf(self.factor * statistic / self.k, self.k, finite)
        p = np.where(np.isinf(df), stats.chi2.sf(statistic, self.k), p)
        return np.where(self.residual_df > 0, p, np.where(np.isnan(statistic), np.nan, 1.0))

    def critical(self, level: float) -> Array:
        """What W^2 exceeds with probability ``level``."""
        df = np.where(self.residual_df > 0, self.residual_df, 1.0)
        f = stats.f.isf(level, self.k, np.where(np.isfinite(df), df, 1.0))
        value = np.where(np.isinf(df), stats.chi2.isf(level, self.k), self.k * f / np.maximum(self.factor, 1e-300))
        return np.where(self.residual_df > 0, value, np.inf)

    @staticmethod
    def chi_square(k: int, m: int) -> Reference:
        """For m edges, where the samples are many."""
        return Reference(k, np.full(m, np.inf), np.ones(m))

    @staticmethod
    def hotelling(k: int, nu: Array) -> Reference:
        """As if the covariance had been estimated from nu samples of a normal distribution."""
        left = nu - k + 1.0
        return Reference(k, left, np.maximum(left, 0.0) / nu)


@dataclass(frozen=True)
class Ends:
    """The nodes of the edges under test, and what of their coefficients is tested: C w_i, C (k, d)."""

    labels: Sequence[Hashable]
    tail: Array
    head: Array
    contrast: Array

    @property
    def k(self) -> int:
        return len(self.contrast)

    def part(self, matrices: Array) -> Array:
        """C M C' of one matrix per node."""
        return self.contrast @ matrices @ self.contrast.T

    def sum(self, values: Array) -> Array:
        """values_i + values_j per edge."""
        return values[self.tail] + values[self.head]


def degrees(fits: LocalFits, ends: Ends) -> Array:
    """nu_i: the Wishart matrix that varies as much as HC2 of node i has so many degrees of freedom, (n,).

    Whitened by its mean, HC2 is sum_r g_r g_r' with g_r ~ N(0, K_r) under the model's own noise, tr K_r the sample's
    leverage on what is tested, and its entries have a total variance of sum_r tr(K_r)^2 + tr(K_r^2); those of
    a Wishart matrix over its nu have k (k + 1) / nu. (For one contrast this is the degrees of freedom of Bell and
    McCaffrey 2002, for several that of Pustejovsky and Tipton 2018, both but for what the residuals share.)

    What is judged with it is HC4, which corrects high leverages more, or HC3, which is larger always: the nu of HC2 is
    then conservative (measured with HC4: sizes of .00 to .05 at .05; with HC3 of .00 to .03).
    """
    total, metric = np.zeros(fits.form.n), fits.metric(ends.contrast)
    for block in fits.form.samples:
        h = fits.leverage(block, metric)
        squares = 2.0 * h**2 if h.ndim == 1 else np.einsum("rjj->r", h) ** 2 + np.einsum("rjk,rkj->r", h, h)
        total += np.bincount(block.node, squares, fits.form.n)
    return ends.k * (ends.k + 1) / np.where(total > 0, total, np.nan)


def wald(delta: Array, omega: Array, ends: Ends, nu: Array | None = None) -> tuple[Array, Array]:
    """``W^2 = delta'(Omega_i + Omega_j)^-1 delta`` of each edge, (m,) (graph-fused M-estimation (13)), for the
    differences delta (m, k) and the covariances omega (n, k, k); and, with the degrees of freedom nu of the nodes,
    those of the edge: of Omega_i + Omega_j,

        nu_e = k (k + 1) / sum over its ends of (tr(V^2) + tr(V)^2) / nu_i,    V = Omega_i (Omega_i + Omega_j)^-1

    (the multivariate Behrens-Fisher problem: Krishnamoorthy and Yu 2004).
    """
    k, m = ends.k, len(ends.tail)
    statistic, out = np.empty(m), np.full(m, np.inf)
    for part in at_a_time(AT_ONCE // (k * k), m):
        i, j = ends.tail[part], ends.head[part]
        pair, d = omega[i] + omega[j], delta[part]
        scale = 1.0 / np.sqrt(np.maximum(np.einsum("ijj->ij", pair), 1e-300))
        pair *= scale[:, :, None] * scale[:, None, :]  # units in which the diagonal is 1
        _check_regular(pair, ends, part)
        own = omega[i] * scale[:, :, None] * scale[:, None, :]
        right = (d * scale)[:, :, None]
        solved = np.linalg.solve(pair, right if nu is None else np.concatenate([right, own], axis=2))
        statistic[part] = np.einsum("ij,ij->i", right[:, :, 0], solved[:, :, 0])
        if nu is not None:
            V = solved[:, :, 1:]  # transposed
            one, two = np.einsum("ijj->i", V), np.einsum("ijk,ikj->i", V, V)
            spread = (two + one**2) / nu[i] + (k - 2.0 * one + two + (k - one) ** 2) / nu[j]
            out[part] = k * (k + 1) / spread
    return statistic, out


def _check_regular(pair: Array, ends: Ends, part: slice) -> None:
    try:
        least = np.einsum("ijj->ij", np.linalg.cholesky(pair)).min(axis=1) ** 2
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(pair)[:, 0]
    bad = np.flatnonzero(~(least > SINGULAR))
    if bad.size:
        e = part.start + int(bad[0])
        i, j = int(ends.tail[e]), int(ends.head[e])
        raise DataError(
            f"the edge {ends.labels[i]!r} - {ends.labels[j]!r} cannot be tested: the estimated covariance of the "
            f"difference of its {ends.k} coefficients is singular; give its nodes more samples, or test fewer "
            "coefficients with features="
        )
