"""Each node's own estimate, from its data alone, and what is known of its error.

    w_i = argmin f_i + (smooth ground edges of i),    Var(w_i) = H_i^-1 S_i H_i^-1

H_i the Hessian at w_i, S_i a covariance of the score sum_r s_r l'_r x_r (Huber's sandwich; White 1980, MacKinnon and
White 1985 and Cribari-Neto 2004 for its corrections in small samples; of graph-fused M-estimation Lemma S.3.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.display import Suggesting
from ..certificate import Certificate, Certifier, at_infinity
from ..errors import DataError, MethodError
from ..form import Form, SampleBlock, without_edges
from ..methods import Exact
from ..oracles import STEPPING, NodeGradients, minimisers, without_gradient
from ..running import solved
from ..terms import Array, batches, feature_of, gram
from ..terms.losses import AbstractSmoothLoss, at_rows

COVARIANCES = ("HC0", "HC1", "HC2", "HC3", "HC4", "model")
GAP = 1e-9  # relative, to which estimates are to be certified
SUSPICIOUS = 1e-6  # below this share of the curvature of its design a fit may be on its way to infinity


@dataclass(frozen=True, repr=False)
class LocalFits(Suggesting):
    """The local estimates of all nodes that have data.

    Attributes
    ----------
    form : Form
        The losses and the smooth ground edges, without edges between nodes.
    coef : (n, d)
        The estimates; nan at nodes without data. Of standardised features per standard deviation, as H_i is.
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
        """The certificate of the estimates as minimisers, of all nodes together."""
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
        HC3's above twice the mean. "model": sum_r s_r^2 / v_r l''_r x_r x_r', with the sample weights v_r in s_r: what
        it would be if v_r l_r were minus the log-likelihood of a sample (of squared losses: noise of variance 1 / v_r,
        of rates weighted by exposures the counts), the form in which the paper prints it.
        """
        checks.one_of(*COVARIANCES)(kind, "the covariance", MethodError)
        if kind in ("HC0", "HC1") and (short := self.short(kind)):
            raise UnfitError(short)  # of HC0 else errors of 0, but for rounding and a ridge
        out = np.zeros_like(self.hessian)
        for block in self.form.samples:
            if kind == "model":
                v = block.loss.data.weights
                curved = block.scaled(block.curvatures(self.coef))  # s_r^2 l''_r
                out += block.sums(curved / np.where(v > 0.0, v, 1.0).reshape(-1, *[1] * (curved.ndim - 1)))
                continue
            scores = self.scores(block, kind)
            for batch in batches(block.node, scores):
                out[batch.nodes] += gram(batch.X, batch.mask)
        if kind == "HC1":
            out *= (self.counts / np.maximum(self.counts - self.form.d, 1))[:, None, None]
        return out

    def covariance(self, kind: str = "HC3") -> Array:
        """The covariance of each node's estimate, H_i^-1 S_i H_i^-1, (n, d, d); nan at nodes without data."""
        S = self.score_covariance(kind)
        V = np.full(S.shape, np.nan)
        some = np.isfinite(S).all(axis=(1, 2)) & np.isfinite(self.inverse).all(axis=(1, 2))
        size = np.sqrt(np.diagonal(S[some], axis1=1, axis2=2))[:, :, None]
        size = np.where(size > 0.0, size, 1.0)  # of columns of any units
        values, Q = np.linalg.eigh(S[some] / size / size.transpose(0, 2, 1))
        root = self.inverse[some] @ (size * Q * np.sqrt(np.maximum(values, 0.0))[:, None, :])
        V[some] = root @ root.transpose(0, 2, 1)  # a square: no negative variance where columns nearly agree
        return V

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
        if h.ndim == 3 and kind != "HC3":
            raise MethodError(f"{kind} is for losses with one predictor per sample; take HC0, HC1 or HC3")
        left = 1.0 - h if h.ndim == 1 else np.eye(h.shape[1]) - h
        least = left if h.ndim == 1 else np.linalg.eigvals(left).real.min(axis=1)  # of a product of two that are >= 0
        full = np.flatnonzero(least < 1e-10)
        if full.size:
            why = (
                f"alone determines a coefficient (its leverage is 1), so that {kind} cannot estimate its noise; give "
                "the node more samples, drop the feature, or, where the loss is minus a log-likelihood that holds (of "
                "counts, say), take covariance='model'"
            )
            nodes = np.unique(block.node[full]).tolist()
            raise UnfitError({i: f"a sample of the node {self.form.labels[i]!r} {why}" for i in nodes})
        if h.ndim == 1:
            if kind == "HC4":
                mean = (np.bincount(block.node, h, self.form.n) / np.maximum(self.counts, 1))[block.node]
                share = np.divide(h, mean, where=mean > 0.0, out=np.zeros(len(h)))  # 0 where no sample has a feature
                return a / left ** (0.5 * np.minimum(4.0, share))
            return a / (np.sqrt(left) if kind == "HC2" else left)
        return np.linalg.solve(left, a[:, :, None])[:, :, 0]

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
        variance = np.einsum("ijj->ij", omega)
        size = np.divide(1.0, np.sqrt(variance), where=variance > 0.0, out=np.zeros_like(variance))
        scaled = np.linalg.pinv(omega * size[:, :, None] * size[:, None, :], rtol=SINGULAR, hermitian=True)
        out = np.full_like(self.hessian, np.nan)
        scaled *= size[:, :, None] * size[:, None, :]
        out[self.fitted] = C.transpose(0, 2, 1) @ scaled @ C
        return out

    def short(self, what: str) -> dict[int, str]:
        """The nodes whose samples leave nothing to tell the noise by, each with these words."""
        return {
            i: f"the node {self.form.labels[i]!r} has {self.counts[i]} samples for {self.form.d} coefficients: no "
            f"residual degrees of freedom are left for the noise, which {what} needs; give it more samples, or use "
            "fewer features"
            for i in np.flatnonzero(self.fitted & (self.counts <= self.form.d)).tolist()
        }


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
        raise MethodError(f"local fits need smooth losses (HuberLoss, ExpectileLoss): {'; '.join(missing)}", missing)
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
            why = f"is not determined by its data: the Hessian is singular at the best point found; {MORE}"
            raise UnfitError({i: f"the local fit of the node {form.labels[i]!r} {why}" for i in lost.tolist()}, RIDGE)
    w[counts == 0] = np.nan
    return LocalFits(form, w, H, counts)


def data_fits(form: Form) -> LocalFits:
    """`local_fits` for tests and intervals: a node whose losses alone run to infinity has none, whatever its node
    penalties make of it. Of coefficients that are open `determined` tells."""
    fits = local_fits(form)
    if fits.form.edges:
        bare, fitted = replace(fits.form, edges=()), np.flatnonzero(fits.fitted)
        gradients = NodeGradients(bare)
        start = gradients.hessians(np.zeros(form.shape))[fitted]
        size = np.einsum("ijj->ij", start)[:, None, :]
        lift = SINGULAR * np.where(size > 0.0, size, 1.0) * np.eye(form.d)  # what no sample sees does not run
        with np.errstate(all="ignore"):
            w, converged = _newton(gradients, np.nan_to_num(fits.coef))
            least = _least(gradients.hessians(w)[fitted] + lift, start + lift)
        doubtful = fitted[~converged[fitted] | ~(least >= SUSPICIOUS)]
        left_open = "the data of the node {!r} leave it open ({}), and node penalties decide"
        check_attained(only(bare, doubtful), doubtful, left_open)
    return fits


def determined(fits: LocalFits) -> Array:
    """The coefficients (n, d), in the user's units, of a node with data those that no direction without curvature of
    its losses has a share in: along it others may take their place. Of classes a common shift of all is no such
    direction: it changes nothing, and penalties make their sum 0."""
    form, names, out = fits.form, names_of(fits.form), np.ones(fits.form.shape, dtype=bool)
    units = np.diag(form.space.in_units(np.eye(form.d)))  # an intercept takes up the means of standardised features
    curvature, feature = of_losses(form, np.nan_to_num(fits.coef)), names.get_level_values(0)
    for i in np.flatnonzero(fits.fitted):
        size = np.sqrt(np.where(np.diag(curvature[i]) > 0.0, np.diag(curvature[i]), 1.0))
        scaled = curvature[i] / size[:, None] / size[None, :]
        if names.nlevels > 1:
            shift = (feature.to_numpy()[:, None] == feature.unique().to_numpy()) * size[:, None]
            shift /= np.linalg.norm(shift, axis=0)
            scaled = scaled + shift @ shift.T
        values, vectors = np.linalg.eigh(scaled)
        open_ = vectors[:, values <= SINGULAR * values[-1]] / size[:, None]
        share = np.abs(form.space.in_units(open_.T)) / units * size
        out[i] = share.max(axis=0, initial=0.0) <= OPEN
    return out


def names_of(form: Form) -> pd.Index:
    """The coordinates as an index, as in tables of solutions."""
    names: list[Any] = list(form.space.coordinates)
    if any(isinstance(name, tuple) for name in names):
        return pd.MultiIndex.from_tuples(names, names=["feature", "class"])
    return pd.Index(names, dtype=object)


def only(form: Form, nodes: Array) -> Form:
    """The form with the samples of these nodes alone."""
    some = [(block, np.flatnonzero(np.isin(block.node, nodes))) for block in form.at_nodes]
    if all(rows.size == block.count for block, rows in some):
        return form
    samples = [replace(block.part(rows), loss=at_rows(block.loss, rows)) for block, rows in some if rows.size]
    return replace(form, samples=tuple(samples))


class UnfitError(DataError):
    """The nodes whose data do not do, each with the reason; ``ridge`` is a remedy for estimates, not for tests."""

    def __init__(self, reasons: dict[int, str], ridge: str = "") -> None:
        first, *rest = reasons.values()
        super().__init__(f"{first}{ridge}" + f" (and {len(rest)} more nodes)" * bool(rest))
        self.reasons = reasons


def spared(nodes: Array, attempt: Callable[[Array], Any]) -> tuple[Any, dict[int, str]]:
    """``attempt(nodes)`` without the nodes whose data stop it, None where all do, and the reason of each of these."""
    lost = dict[int, str]()
    while nodes.size:
        try:
            return attempt(nodes), lost
        except UnfitError as error:
            lost |= error.reasons
            nodes = np.setdiff1d(nodes, list(lost))
    return None, lost


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


SINGULAR = 1e-11  # smallest over largest eigenvalue of a design's matrix whose diagonal is 1
OPEN = 1e-4  # share of a coefficient in a direction that the data leave open, below which it is rounding
SEPARABLE = "its classes are separable by the features, or its counts are all 0"
MORE = "give the node more samples, or drop features"
RIDGE = (
    ", or, for an estimate without intervals and tests, add a ridge, for instance 1e-3 * NodePenalty(SquaredL2()) (an "
    'intercept has none but by features=["intercept", ...])'
)


def condition(H: Array) -> Array:
    """Smallest over largest eigenvalue of each Hessian, in units in which its diagonal is 1."""
    diagonal = np.sqrt(np.maximum(np.einsum("ijj->ij", H), 1e-300))
    values = np.linalg.eigvalsh(H / diagonal[:, :, None] / diagonal[:, None, :])
    return values[:, 0] / np.maximum(values[:, -1], 1e-300)


def check_rank(form: Form, gradients: NodeGradients, fitted: Array) -> Array:
    """sum_r s_r x_r x_r' plus the ground edges of each node with data: whether it determines all coefficients,
    whatever the targets are."""
    gram_matrices = np.zeros((form.n, form.d, form.d))
    for block in form.samples:
        H, k = block.sums(block.scale), block.width
        gram_matrices += H if H.shape[1] == form.d else np.kron(H, _free_classes(block, k))
    gram_matrices += gradients.hessians(np.zeros(form.shape)) - of_losses(form, np.zeros(form.shape))
    matrices = gram_matrices[fitted]
    reasons, d = dict[int, str](), form.d
    for k in np.flatnonzero(condition(matrices) < SINGULAR).tolist():
        i, diagonal = int(fitted[k]), np.diag(matrices[k])
        node, m = f"the node {form.labels[i]!r}", int(gradients.counts[i])
        if (diagonal <= 0.0).any():
            name = form.space.coordinates[int(np.argmin(diagonal))]
            why = f"the feature {name!r} is 0 in all {m} samples of {node}: its coefficient is not determined there"
        elif m < d:
            why = f"{node} has {m} samples for {d} coefficients: its local estimate is not determined"
        else:
            why = f"at {node} {dependent(form, matrices[k])}"
        reasons[i] = f"{why}; {MORE}"
    if reasons:
        raise UnfitError(reasons, RIDGE)
    return matrices


def _free_classes(block: SampleBlock, k: int) -> Array:
    """The curvature of a loss whose predictor has k entries: that of its first sample at 0, which shows what of a
    common shift of all entries it sees."""
    assert isinstance(block.loss, AbstractSmoothLoss)
    C = block.loss.curvature(np.zeros((1, k)), block.y[:1])[0]
    return np.diag(C) if C.ndim == 1 else C


def of_losses(form: Form, w: Array) -> Array:
    """The Hessians at w of the losses alone."""
    return NodeGradients(Form(form.space, form.latent, form.samples, ())).hessians(w)


def dependent(form: Form, H: Array) -> str:
    """The collinear features, those of the null direction, in words."""
    diagonal = np.sqrt(np.diag(H))
    direction = np.abs(np.linalg.eigh(H / diagonal[:, None] / diagonal[None, :])[1][:, 0])
    named = [form.space.coordinates[j] for j in np.flatnonzero(direction > 1e-3 * direction.max())]
    names = ", ".join(dict.fromkeys(repr(feature_of(name)) for name in named))
    if any(isinstance(name, tuple) for name in named):
        return f"the coefficients of {names} are determined up to a common shift of all classes only"
    return f"the features {names} are collinear"


def check_attained(
    form: Form, nodes: Array, said: str = "the local fit of the node {!r} runs to infinity ({})"
) -> None:
    """Names the nodes among these whose data are separable."""
    infinity = at_infinity(form) if nodes.size else None
    if infinity is None or infinity.attained:
        return
    running = infinity.running
    running = running[np.isin(running, nodes)] if np.isin(running, nodes).any() else running
    raise UnfitError({i: f"{said.format(form.labels[i], SEPARABLE)}; {MORE}" for i in running.tolist()}, RIDGE)
