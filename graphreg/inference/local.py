"""Each node's own estimate, from its data alone, and what is known of its error.

    w_i = argmin f_i + (smooth ground edges of i),    Var(w_i) = H_i^-1 S_i H_i^-1

H_i the Hessian at w_i, S_i a covariance of the score sum_r s_r l'_r x_r (Huber's sandwich; White 1980, MacKinnon and
White 1985 and Cribari-Neto 2004 for its corrections in small samples; of graph-fused M-estimation Lemma S.3.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import checks
from ..certificate import Certificate, Certifier
from ..errors import DataError, MethodError
from ..form import Form, SampleBlock, without_edges
from ..methods import Exact
from ..oracles import STEPPING, NodeGradients, minimisers, without_gradient
from ..running import solved
from ..terms import Array, batches, gram
from .missing_estimates import RIDGE, SINGULAR, check_attained, check_rank, more, of_losses

COVARIANCES = ("HC0", "HC1", "HC2", "HC3", "HC4", "model")
GAP = 1e-9  # relative, to which estimates are to be certified
SUSPICIOUS = 1e-6  # below this share of the curvature of its design a fit may be on its way to infinity


@dataclass(frozen=True, repr=False)
class LocalFits:
    """The local estimates of all nodes that have data.

    Attributes
    ----------
    form : Form
        The losses and the smooth ground edges, without edges between nodes.
    coef : (n, d)
        The estimates; nan at nodes without data.
    hessian : (n, d, d)
        H_i at the estimates.
    counts : (n,)
        m_i, the number of samples.
    """

    form: Form
    coef: Array
    hessian: Array
    counts: Array

    def __repr__(self) -> str:
        return f"<LocalFits of {int(self.fitted.sum())} of {len(self.counts)} nodes, {self.form.d} coordinates each>"

    @property
    def fitted(self) -> Array:
        """The nodes that have data, a mask (n,)."""
        return self.counts > 0

    @cached_property
    def certificate(self) -> Certificate:
        """That of the estimates as minimisers, of all nodes together."""
        return Certifier(self.form).certify(np.where(self.fitted[:, None], self.coef, 0.0), None, None, GAP)

    @property
    def worth(self) -> str:
        """The certificate in a sentence."""
        if not self.certificate.valid:
            return f"the local estimates have no certificate ({self.certificate.note})"
        gap = max(self.certificate.relative_gap, 0.0)
        return f"the local estimates minimise their losses, certified to a relative gap of {gap:.2g}"

    @cached_property
    def inverse(self) -> Array:
        """H_i^-1, (n, d, d); nan at nodes without data."""
        out = np.full_like(self.hessian, np.nan)
        out[self.fitted] = np.linalg.inv(self.hessian[self.fitted])
        return out

    def score_covariance(self, kind: str = "HC3") -> Array:
        """S_i, the covariance of the score of each node, (n, d, d).

        HC0: sum_r g_r g_r' with the scores g_r = s_r l'_r x_r. HC1: that times m_i / (m_i - d). HC2, HC3: with
        g_r / (1 - h_r)^(1/2) and g_r / (1 - h_r), h_r = s_r l''_r x_r'H_i^-1 x_r the leverage. HC4: with
        g_r / (1 - h_r)^(delta_r / 2), delta_r = min(4, h_r / (mean of h in the node)): HC2's at the mean, more than
        HC3's above twice the mean. "model": sum_r s_r^2 l''_r x_r x_r', what it would be if the loss were minus a
        log-likelihood with unit noise (for squared losses: noise of variance 1), the form in which the paper prints it.
        """
        checks.one_of(*COVARIANCES)(kind, "the covariance", MethodError)
        out = np.zeros_like(self.hessian)
        for block in self.form.samples:
            if kind == "model":
                out += block.sums(block.scaled(block.curvatures(self.coef)))  # s_r^2 l''_r
                continue
            scores = self.scores(block, kind)
            for batch in batches(block.node, scores):
                out[batch.nodes] += gram(batch.X, batch.mask)
        if kind == "HC1":
            self.check_residual_df("HC1")
            out *= (self.counts / np.maximum(self.counts - self.form.d, 1))[:, None, None]
        return out

    def covariance(self, kind: str = "HC3") -> Array:
        """The covariance of each node's estimate, H_i^-1 S_i H_i^-1, (n, d, d); nan at nodes without data."""
        return self.inverse @ self.score_covariance(kind) @ self.inverse

    def scores(self, block: SampleBlock, kind: str = "HC0") -> Array:
        """The scores g_r of the samples of a block, corrected for their leverage as HC2 to HC4 do, (M, d)."""
        a = block.prices(self.coef)
        if kind in ("HC2", "HC3", "HC4"):
            a = self._levered(block, a, kind)
        if block.X is None:
            return a
        return (block.X[:, :, None] * a.reshape(len(a), 1, -1)).reshape(len(a), -1)

    def leverage(self, block: SampleBlock, metric: Array | None = None) -> Array:
        """The leverage of each sample: h_r = s_r l''_r x_r'H_i^-1 x_r, (M,), or the matrices (M, k, k) where the
        predictor has k entries. The h_r of a node add up to d where it has no ground edges. With ``metric`` (n, d, d)
        that stands in the place of H_i^-1."""
        metric, C = self.inverse if metric is None else metric, block.curvatures(self.coef)
        if block.stacks is not None and C.ndim == 1:
            h = np.empty(len(C))
            for batch in block.stacks:
                used = batch.mask > 0
                h[batch.rows[used]] = ((batch.X @ metric[batch.nodes]) * batch.X).sum(axis=2)[used]
            return C * h
        inverse = metric[block.node]
        if block.X is None:
            return C[:, :, None] * inverse if C.ndim == 2 else np.matmul(C, inverse)
        M, p = block.X.shape
        k = C.shape[1]
        C = C if C.ndim == 3 else C[:, :, None] * np.eye(k)
        spread = np.einsum("ra,rakbl,rb->rkl", block.X, inverse.reshape(M, p, k, p, k), block.X, optimize=True)
        return np.matmul(C, spread)

    def _levered(self, block: SampleBlock, a: Array, kind: str) -> Array:
        h = self.leverage(block)
        if h.ndim == 1:
            left = 1.0 - h
            full = np.flatnonzero(left < 1e-10)
            if full.size:
                label = self.form.labels[int(block.node[full[0]])]
                raise DataError(
                    f"a sample of the node {label!r} alone determines a coefficient (its leverage is 1), so that "
                    f"{kind} cannot estimate its noise; give the node more samples, drop the feature, or, where the "
                    "loss is minus a log-likelihood that holds (of counts, say), take covariance='model'"
                )
            if kind == "HC4":
                mean = np.bincount(block.node, h, self.form.n) / np.maximum(self.counts, 1)
                return a / left ** (0.5 * np.minimum(4.0, h / mean[block.node]))
            return a / (np.sqrt(left) if kind == "HC2" else left)
        if kind != "HC3":
            raise MethodError(f"{kind} is for losses with one predictor per sample; take HC0, HC1 or HC3")
        return np.linalg.solve(np.eye(h.shape[1]) - h, a[:, :, None])[:, :, 0]

    def metric(self, contrast: Array) -> Array:
        """The metric of the leverages on the contrasts C w_i (C (k, d) of full rank) alone, (n, d, d):
        H^-1 C' (C Omega C')^-1 C H^-1 with Omega = H^-1 (sum_r s_r l''_r x_r x_r') H^-1. Without ground edges it is
        H^-1 where C is the identity.

        Under the model's own noise, Var(s_r l'_r) = s_r l''_r up to a factor of the node, Omega is the covariance of
        the estimate, and the leverages are the samples' shares in that of C w_i: over the node they add up to k.
        """
        P = self.inverse[self.fitted]
        C = contrast @ P
        omega = C @ of_losses(self.form, np.nan_to_num(self.coef))[self.fitted] @ C.transpose(0, 2, 1)
        size = 1.0 / np.sqrt(np.einsum("ijj->ij", omega))
        scaled = np.linalg.pinv(omega * size[:, :, None] * size[:, None, :], rtol=SINGULAR, hermitian=True)
        out = np.full_like(self.hessian, np.nan)
        scaled *= size[:, :, None] * size[:, None, :]
        out[self.fitted] = C.transpose(0, 2, 1) @ scaled @ C
        return out

    def check_residual_df(self, what: str, nodes: Array | None = None) -> None:
        """Refuses nodes (a mask; by default all that have data) whose samples leave nothing to tell the noise by."""
        bad = np.flatnonzero((self.fitted if nodes is None else nodes) & (self.counts <= self.form.d))
        if bad.size:
            label, m = self.form.labels[bad[0]], self.counts[bad[0]]
            raise DataError(
                f"the node {label!r} has {m} samples for {self.form.d} coefficients: no residual degrees of "
                f"freedom are left for the noise, which {what} needs; give it more samples, or use fewer features"
            )


def local_fits(form: Form) -> LocalFits:
    """The local estimates of every node with data, from the losses and smooth ground edges of a form (edges between
    nodes are left out), by Newton's method.

    Raises
    ------
    MethodError
        For losses or ground edges that are not smooth.
    DataError
        For a node with too few samples, collinear features or separable classes; it names the node, what is wrong
        there, and the ridge that would help.
    """
    form = without_edges(form.frozen())
    missing = tuple(said.removesuffix(STEPPING) for said in without_gradient(form))
    if missing:
        raise MethodError(f"local estimates need smooth losses: {'; '.join(missing)}", missing)
    gradients = NodeGradients(form)
    counts, zero = gradients.counts, np.zeros(form.shape)
    fitted = np.flatnonzero(counts > 0)
    designs = check_rank(form, gradients, fitted)
    w, converged = _newton(gradients, zero)
    H = gradients.hessians(w)
    doubtful = np.flatnonzero(~converged[fitted] | (_least(H[fitted], designs) < SUSPICIOUS))
    if doubtful.size:
        check_attained(form, fitted[doubtful])
        if not converged.all():  # a Hessian that vanishes in between (Huber losses) leads Newton's method astray
            near = solved(form, Exact(), GAP).certificate.w
            w, converged = _newton(gradients, near)
            H = gradients.hessians(w)
        lost = fitted[~converged[fitted] | (_least(H[fitted], designs) < SINGULAR)]
        if lost.size:
            raise DataError(
                f"the local fit of the node {form.labels[lost[0]]!r}{more(lost)} is not determined by its data: the "
                f"Hessian is singular at the best point found; {RIDGE}"
            )
    w[counts == 0] = np.nan
    return LocalFits(form, w, H, counts)


def _newton(gradients: NodeGradients, w: Array) -> tuple[Array, Array]:
    """Newton's method at all nodes at once; which of them converged."""
    d, L = gradients.form.d, gradients.smoothness

    def solve(H: Array, g: Array, left: Array) -> Array:
        floor = 1e-13 * np.where(np.isfinite(L[left]), L[left], np.trace(H, axis1=1, axis2=2) / d) + 1e-300
        return np.linalg.solve(H + floor[:, None, None] * np.eye(d), g[:, :, None])[:, :, 0]

    return minimisers(gradients, w, solve, 1e-13)


def _least(H: Array, designs: Array) -> Array:
    """The least curvature of each node along any direction, beside that of its design: what far away is left of it."""
    root = np.linalg.inv(np.linalg.cholesky(designs))
    return np.linalg.eigvalsh(root @ H @ root.transpose(0, 2, 1))[:, 0]
