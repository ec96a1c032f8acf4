"""Wald statistics of all edges at once, and the distributions by which they are judged."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..base.lazy import stats
from ..form import SampleBlock
from ..terms import Array, Batch, at_a_time
from ..terms.losses import AbstractQuadraticLoss
from .local import SINGULAR, LocalFits

AT_ONCE = 2_000_000  # entries of the stacked matrices of the edges that are worked on at once


@dataclass(frozen=True)
class Reference:
    """The distribution of W^2 where the two nodes' parameters are equal: ``factor W^2 / k ~ F(k, residual_df)`` per
    edge, chi-square with k degrees of freedom where residual_df is inf. At residual_df <= 0 nothing can be said: p is
    1."""

    k: int
    residual_df: Array
    factor: Array

    def p_values(self, statistic: Array) -> Array:
        df = np.where(self.residual_df > 0, self.residual_df, 1.0)
        p = stats.f.sf(self.factor * statistic / self.k, self.k, np.where(np.isfinite(df), df, 1.0))
        p = np.where(np.isinf(df), stats.chi2.sf(statistic, self.k), p)
        return np.where(self.residual_df > 0, p, np.where(np.isnan(statistic), np.nan, 1.0))

    def critical(self, level: float) -> Array:
        """The value that W^2 exceeds with probability ``level``."""
        df = np.where(self.residual_df > 0, self.residual_df, 1.0)
        f = stats.f.isf(level, self.k, np.where(np.isfinite(df), df, 1.0))
        value = np.where(np.isinf(df), stats.chi2.isf(level, self.k), self.k * f / np.maximum(self.factor, 1e-300))
        return np.where(self.residual_df > 0, value, np.inf)

    @staticmethod
    def hotelling(k: int, nu: Array) -> Reference:
        """The reference distribution as if the covariance had been estimated from nu samples of a normal
        distribution."""
        left = nu - k + 1.0
        return Reference(k, left, np.maximum(left, 0.0) / nu)


@dataclass(frozen=True)
class EndsUnderTest:
    """The nodes of the edges under test, and what of their coefficients is tested: C w_i, C (k, d); ``units`` U (k, k)
    are such that U C w_i are the tested coefficients in the units of the columns (None: U = I)."""

    labels: Sequence[Hashable]
    tail: Array
    head: Array
    contrast: Array
    units: Array | None = None

    @property
    def k(self) -> int:
        return len(self.contrast)

    def part(self, matrices: Array) -> Array:
        """C M C' of one matrix per node."""
        return self.contrast @ matrices @ self.contrast.T

    def sum(self, values: Array) -> Array:
        """values_i + values_j per edge."""
        return values[self.tail] + values[self.head]


def degrees(fits: LocalFits, ends: EndsUnderTest) -> Array:
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


def wald(delta: Array, omega: Array, ends: EndsUnderTest, nu: Array | None = None) -> tuple[Array, Array]:
    """``W^2 = delta'(Omega_i + Omega_j)^-1 delta`` of each edge, (m,) (graph-fused M-estimation (13)), for the
    differences delta (m, k) and the covariances omega (n, k, k); and, with the degrees of freedom nu of the nodes,
    those of the edge: of Omega_i + Omega_j,

        nu_e = k (k + 1) / sum over its ends of (tr(V^2) + tr(V)^2) / nu_i,    V = Omega_i (Omega_i + Omega_j)^-1

    (the multivariate Behrens-Fisher problem: Krishnamoorthy and Yu 2004). W^2 is nan where a sum is singular.
    """
    k, m = ends.k, len(ends.tail)
    statistic, out = np.empty(m), np.full(m, np.inf)
    for part in at_a_time(AT_ONCE // (k * k), m):
        i, j = ends.tail[part], ends.head[part]
        pair, d = omega[i] + omega[j], delta[part]
        scale = 1.0 / np.sqrt(np.maximum(np.einsum("ijj->ij", pair), 1e-300))
        pair *= scale[:, :, None] * scale[:, None, :]  # units in which the diagonal is 1
        bad = _singular(pair)
        pair[bad] = np.eye(k)
        own = omega[i] * scale[:, :, None] * scale[:, None, :]
        right = (d * scale)[:, :, None]
        solved = np.linalg.solve(pair, right if nu is None else np.concatenate([right, own], axis=2))
        statistic[part] = np.where(bad, np.nan, np.einsum("ij,ij->i", right[:, :, 0], solved[:, :, 0]))
        if nu is not None:
            V = solved[:, :, 1:]  # transposed
            one, two = np.einsum("ijj->i", V), np.einsum("ijk,ikj->i", V, V)
            spread = (two + one**2) / nu[i] + (k - 2.0 * one + two + (k - one) ** 2) / nu[j]
            out[part] = k * (k + 1) / spread
    return statistic, out


def _singular(pair: Array) -> Array:
    """Which of the matrices, of diagonal 1, are singular or overflow, a mask."""
    try:
        least = np.einsum("ijj->ij", np.linalg.cholesky(pair)).min(axis=1) ** 2
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(pair)[:, 0]
    return ~(least > SINGULAR)


# ---- what squared losses say of their noise: one variance at both ends of an edge, the same at all samples? ----------
N_CHECKS = 3
MARGIN = 1.1  # scores are up to 4 % too large where samples are few (measured), which sums over many nodes would show
SILENT = 1e-12  # residuals that are rounding, beside the targets


@dataclass(frozen=True)
class Noise:
    """The noise at each node, nan at nodes whose loss is not a squared one.

    Attributes
    ----------
    variance : (n,)
        sigma_i^2 = sum_r v_r e_r^2 / (m_i - d), v_r the sample weights, over the node 1 on average, d the rank of X.
    spare : (n,)
        m_i - d.
    average : (n,)
        The mean of s_r over the node, so that sigma_i^2 average_i H_i^-1 is the covariance of the estimate.
    score, rank : (2, n)
        (m_i - 1) R^2 of the regression of the squared residuals, e_r^2 / (1 - h_r), on the samples' leverages, and on
        their squared influences on each tested coefficient, and with how many degrees of freedom it is a chi-square
        where the variance is constant (Koenker 1981; against the latter the robust variances differ from the plain
        ones: White 1980). Koenker has m_i; with m_i - 1 its mean is right for few samples too, which sums over many
        nodes need.
    """

    variance: Array
    residual_df: Array
    average: Array
    score: Array
    rank: Array

    @property
    def known(self) -> Array:
        """The nodes of which it is known, a mask (n,)."""
        return np.isfinite(self.variance)

    def pooled(self, ends: EndsUnderTest) -> tuple[Array, Array]:
        """The common variance of both ends of each edge, and its degrees of freedom m_i + m_j - 2d."""
        return ends.sum(self.variance * self.residual_df) / ends.sum(self.residual_df), ends.sum(self.residual_df)

    def overall(self) -> float:
        """The fit of the residuals of all nodes together to a constant variance within each: twice the lesser of the
        p-values of the two regressions."""
        score, rank = self.score[:, self.known].sum(axis=1), self.rank[:, self.known].sum(axis=1)
        return float(min(1.0, 2.0 * stats.chi2.sf(score / MARGIN, np.maximum(rank, 1e-9)).min()))

    def p_values(self, ends: EndsUnderTest) -> Array:
        """The fit of the residuals of both ends to one variance, (m,): three times the least of the p-values of three
        tests, of the two regressions within the nodes and of the ratio of the two variances. nan where not known."""
        within = stats.chi2.sf(ends.sum(self.score.T), np.maximum(ends.sum(self.rank.T), 1e-9))
        a, b = self.residual_df[ends.tail], self.residual_df[ends.head]
        with np.errstate(divide="ignore"):  # a node without noise beside one that has some
            ratio = self.variance[ends.tail] / self.variance[ends.head]
        between = 2.0 * np.minimum(stats.f.sf(ratio, a, b), stats.f.cdf(ratio, a, b))
        return np.minimum(1.0, N_CHECKS * np.minimum(within.min(axis=1), between))


def noise_of(fits: LocalFits, contrast: Array) -> Noise:
    """The noise at the nodes with squared losses, of which the influences on the contrasts are looked at. Ground
    edges bias the residuals: with them nothing is known."""
    n = fits.form.n
    noise = Noise(*(np.full(n, np.nan) for _ in range(3)), *(np.full((2, n), np.nan) for _ in range(2)))
    if fits.form.edges:
        return noise
    for block in fits.form.samples:
        if isinstance(block.loss, AbstractQuadraticLoss) and block.stacks is not None:
            _add(fits, block, contrast, noise)
    return noise


def noiseless(fits: LocalFits) -> Array:
    """The nodes that squared losses fit without error, a mask (n,)."""
    silent = np.zeros(fits.form.n, dtype=bool)
    for block in fits.form.samples:
        if isinstance(block.loss, AbstractQuadraticLoss):
            squares = np.square(np.stack([block.predict(fits.coef) - block.y, block.y]))
            residual, target = (np.bincount(block.node, part.reshape(len(part), -1).sum(axis=1)) for part in squares)
            nodes = np.unique(block.node)
            silent[nodes] = residual[nodes] <= SILENT**2 * target[nodes]
    return silent


def _add(fits: LocalFits, block: SampleBlock, contrast: Array, noise: Noise) -> None:
    assert block.stacks is not None
    residual, h = block.predict(fits.coef) - block.y, fits.leverage(block)
    part = fits.leverage(block, fits.metric(contrast))
    for batch in block.stacks:
        nodes, count = batch.nodes, batch.mask.sum(axis=1)
        s = batch.pad(block.scale) * batch.mask
        average = s.sum(axis=1) / count
        squares = s / average[:, None] * batch.pad(residual) ** 2  # v_r e_r^2
        residual_df = count - fits.ranks[nodes]
        noise.average[nodes], noise.residual_df[nodes] = average, residual_df
        noise.variance[nodes] = np.where(
            residual_df > 0, squares.sum(axis=1) / np.where(residual_df > 0, residual_df, 1.0), np.nan
        )
        level = squares / np.maximum(1.0 - batch.pad(h), 1e-10)
        influence = (batch.X @ fits.inverse[nodes] @ contrast.T) ** 2 * s[:, :, None]
        for q, Q in enumerate((batch.pad(part)[:, :, None], influence)):
            noise.score[q, nodes], noise.rank[q, nodes] = _koenker(level, Q, batch)


def _koenker(level: Array, Q: Array, batch: Batch) -> tuple[Array, Array]:
    """(m - 1) R^2 of the regression of ``level`` (g, m) on 1 and Q (g, m, q), and the rank of Q beside the 1."""
    mask, count = batch.mask, batch.mask.sum(axis=1)
    y = (level - (level * mask).sum(axis=1, keepdims=True) / count[:, None]) * mask
    whole = np.sqrt((Q**2 * mask[:, :, None]).sum(axis=1))
    Q = (Q - (Q * mask[:, :, None]).sum(axis=1, keepdims=True) / count[:, None, None]) * mask[:, :, None]
    size = np.sqrt((Q**2).sum(axis=1))
    varies = size > 1e-9 * whole  # those of an intercept alone are all the same
    Q = Q * np.where(varies, 1.0 / np.where(varies, size, 1.0), 0.0)[:, None, :]
    values, vectors = np.linalg.eigh(Q.transpose(0, 2, 1) @ Q)
    used = values > 1e-9
    c = np.einsum("gqk,gmq,gm->gk", vectors, Q, y, optimize=True)
    explained = (np.where(used, c**2, 0.0) / np.where(used, values, 1.0)).sum(axis=1)
    total = (y**2).sum(axis=1)
    return np.where(total > 0, (count - 1.0) * explained / np.where(total > 0, total, 1.0), 0.0), used.sum(axis=1)
