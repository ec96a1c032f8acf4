"""What squared losses say of their noise: one variance at both ends of an edge, the same at all samples?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from ...form import SampleBlock
from ...lazy import stats
from ...terms import Array, Batch
from ...terms.losses import AbstractQuadraticLoss
from ..local import LocalFits
from ..wald import Ends

N_CHECKS = 3
MARGIN = 1.1  # scores are up to 4 % too large where samples are few (measured), which sums over many nodes would show
SILENT = 1e-12  # residuals that are rounding, beside the targets


@dataclass(frozen=True)
class Noise:
    """The noise at each node, nan at nodes whose loss is not a squared one.

    Attributes
    ----------
    variance : (n,)
        sigma_i^2 = sum_r v_r e_r^2 / (m_i - d), v_r the sample weights, over the node 1 on average.
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

    def pooled(self, ends: Ends) -> tuple[Array, Array]:
        """The common variance of both ends of each edge, and its degrees of freedom m_i + m_j - 2d."""
        return ends.sum(self.variance * self.residual_df) / ends.sum(self.residual_df), ends.sum(self.residual_df)

    def overall(self) -> float:
        """How the residuals of all nodes together fit a constant variance within each: twice the lesser of the p-values
        of the two regressions."""
        score, rank = self.score[:, self.known].sum(axis=1), self.rank[:, self.known].sum(axis=1)
        return float(min(1.0, 2.0 * stats.chi2.sf(score / MARGIN, np.maximum(rank, 1e-9)).min()))

    def p_values(self, ends: Ends) -> Array:
        """How the residuals of both ends fit one variance, (m,): three times the least of the p-values of three tests,
        of the two regressions within the nodes and of the ratio of the two variances. nan where not known."""
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


def check_noise(fits: LocalFits, ends: Ends) -> None:
    """Refuses edges both of whose nodes are fitted without error by squared losses."""
    silent = np.zeros(fits.form.n, dtype=bool)
    for block in fits.form.samples:
        if isinstance(block.loss, AbstractQuadraticLoss):
            squares = np.square(np.stack([block.predict(fits.coef) - block.y, block.y]))
            residual, target = (np.bincount(block.node, part.reshape(len(part), -1).sum(axis=1)) for part in squares)
            nodes = np.unique(block.node)
            silent[nodes] = residual[nodes] <= SILENT**2 * target[nodes]
    both = np.flatnonzero(silent[ends.tail] & silent[ends.head])
    if both.size:
        i, j = int(ends.tail[both[0]]), int(ends.head[both[0]])
        raise DataError(
            f"the edge {ends.labels[i]!r} - {ends.labels[j]!r} cannot be tested: both nodes are fitted without error, "
            "so that there is no noise to judge a difference by; compare the estimates themselves"
        )


def _add(fits: LocalFits, block: SampleBlock, contrast: Array, noise: Noise) -> None:
    assert block.stacks is not None
    residual, h = block.predict(fits.coef) - block.y, fits.leverage(block)
    part = fits.leverage(block, fits.metric(contrast))
    for batch in block.stacks:
        nodes, count = batch.nodes, batch.mask.sum(axis=1)
        s = batch.pad(block.scale) * batch.mask
        average = s.sum(axis=1) / count
        squares = s / average[:, None] * batch.pad(residual) ** 2  # v_r e_r^2
        residual_df = count - fits.form.d
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
