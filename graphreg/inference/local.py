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
from ..base.messages import few
from ..certificate import Certificate, Certifier, at_infinity
from ..errors import DataError, MethodError
from ..form import Form, SampleBlock, without_edges
from ..methods import Exact
from ..oracles import STEPPING, NodeGradients, minimisers, without_gradient
from ..running import solved
from ..terms import Array, batches, gram
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
        H_i at the estimates; along what neither data nor ground edges see, 1 in units of the design.
    counts : (n,)
        m_i, the number of samples.
    ranks : (n,)
        The numbers of coefficients, or of combinations of them, that the data determine.
    """

    form: Form
    coef: Array
    hessian: Array
    counts: Array
    ranks: Array

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

        HC0: sum_r g_r g_r' with the scores g_r = s_r l'_r x_r. HC1: that times m_i / (m_i - rank). HC2, HC3: with
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
            out *= (self.counts / np.maximum(self.counts - self.ranks, 1))[:, None, None]
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
        own = h if not self.form.edges else self.leverage(block, self._without_ridge)
        if h.ndim == 3 and kind != "HC3":
            raise MethodError(f"{kind} is for losses with one predictor per sample; take HC0, HC1 or HC3")
        left, alone = (1.0 - each if h.ndim == 1 else np.eye(h.shape[1]) - each for each in (h, own))
        least = alone if h.ndim == 1 else np.linalg.eigvals(alone).real.min(axis=1)  # of a product of two that are >= 0
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

    @cached_property
    def _without_ridge(self) -> Array:
        """The inverse Hessians of the losses alone: that a sample alone determines a coefficient, a ridge hides."""
        H = of_losses(self.form, np.nan_to_num(self.coef))
        size = np.sqrt(np.einsum("ndd->nd", H))
        unit = np.divide(1.0, size, where=size > 0.0, out=np.zeros_like(size))  # of columns of any units
        scaled = unit[:, :, None] * H * unit[:, None, :]
        return unit[:, :, None] * np.linalg.pinv(scaled, 1e-12, hermitian=True) * unit[:, None, :]

    def metric(self, contrast: Array) -> Array:
        """The metric of the leverages on the contrasts C w_i (C (k, d) of full rank) alone, (n, d, d):
        H^-1 C' (C Omega C')^-1 C H^-1 with Omega = H^-1 (sum_r s_r l''_r x_r x_r') H^-1. Without ground edges it is
        H^-1 where C is the identity.

        Under the model's own noise, Var(s_r l'_r) = s_r l''_r up to a factor of the node, Omega is the covariance of
        the estimate, and the leverages are the samples' shares in that of C w_i: over the node they add up to k.
        """
        C = contrast @ self.inverse[self.fitted]
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
            i: f"the node {self.form.labels[i]!r} has {self.counts[i]} samples for {self.ranks[i]} coefficients: no "
            f"residual degrees of freedom are left for the noise, which {what} needs; give it more samples, or use "
            "fewer features"
            for i in np.flatnonzero(self.fitted & (self.counts <= self.ranks)).tolist()
        }

    def unproved(self) -> Array:
        """The nodes, a mask (n,), whose part of the gap is not small beside 1/2 tr(H^-1 S), by which noise leaves an
        estimate above the minimum: they may be off by more than a hundredth of their errors."""
        part, most = np.zeros(self.form.n), np.zeros(self.form.n)
        for block, residual in zip(self.form.blocks, sum(self.certificate.residuals, list[Array]()), strict=True):
            np.add.at(part, block.map.owner, residual)
        for block in self.form.samples:
            terms = np.abs(block.prices(self.coef) * block.predict(self.coef)).reshape(len(block.node), -1).sum(axis=1)
            np.add.at(most, block.node, ROUNDING * (terms + np.abs(block.values(self.coef))))
            for batch in batches(block.node, self.scores(block)):
                squares = (batch.X @ self.inverse[batch.nodes]) * batch.X
                most[batch.nodes] += SMALL * 0.5 * squares.sum(axis=(1, 2))
        return self.fitted & ~(part <= most)


def local_fits(form: Form) -> LocalFits:
    """The local estimates of every node with data, from the losses and smooth ground edges of a form (edges between
    nodes are left out), by Newton's method. Where these leave a direction open, the estimate has no part in it: it is
    the shortest, in units in which the columns of the node are alike.

    Raises
    ------
    MethodError
        For losses or ground edges that are not smooth.
    DataError
        For a node with separable classes, or whose losses are flat at their minimum; it names the node, what is wrong
        there, and the ridge that would help.
    """
    form = without_edges(form.frozen())
    if missing := tuple(said.removesuffix(STEPPING) for said in without_gradient(form)):
        raise MethodError(f"local fits need smooth losses (HuberLoss, ExpectileLoss): {'; '.join(missing)}", missing)
    gradients, zero, design = NodeGradients(form), np.zeros(form.shape), _design(form)
    fitted, whole = gradients.counts > 0, design + gradients.hessians(zero) - of_losses(form, zero)
    w, H, left = _minimised(gradients, zero, whole)
    doubtful = np.flatnonzero(fitted & ~(left >= SUSPICIOUS))
    if doubtful.size:
        check_attained(form, doubtful)
        if not left[fitted].all():  # a Hessian that vanishes in between (Huber losses) leads Newton's method astray
            w, H, left = _minimised(gradients, solved(form, Exact(), GAP).certificate.w, whole)
        lost = np.flatnonzero(fitted & ~(left >= SINGULAR))
        if lost.size:
            why = f"is not determined by its data: the Hessian is singular at the best point found; {MORE}"
            raise UnfitError({i: f"the local fit of the node {form.labels[i]!r} {why}" for i in lost.tolist()}, RIDGE)
    w[~fitted] = np.nan
    return LocalFits(form, w, H, gradients.counts, form.d - flat(design)[1].any(axis=1).sum(axis=1))


def data_fits(form: Form) -> LocalFits:
    """`local_fits` for tests and intervals. None has a node whose losses alone run to infinity, or determine no
    coefficient, whatever its node penalties make of it, or whose estimate is not proved to be near the minimum. Of
    single coefficients that are open `determined` tells."""
    fits = local_fits(form)
    if fits.form.edges:
        bare = replace(fits.form, edges=())
        with np.errstate(all="ignore"):
            left = _minimised(NodeGradients(bare), np.nan_to_num(fits.coef), _design(bare))[2]
        doubtful = np.flatnonzero(fits.fitted & ~(left >= SUSPICIOUS))
        endless = "the data of the node {!r} leave it open ({}), and node penalties decide"
        check_attained(only(bare, doubtful), doubtful, endless)
    known = determined(fits)
    lost = {i: UNPROVED.format(form.labels[i]) for i in np.flatnonzero(fits.unproved()).tolist()}
    lost |= {i: left_open(fits, i, ~known[i]) for i in np.flatnonzero(fits.fitted & ~known.any(axis=1)).tolist()}
    if lost:
        raise UnfitError(lost)
    return fits


def left_open(fits: LocalFits, i: int, which: Array) -> str:
    """That the data of a node leave these coefficients open, and why."""
    m, d, names = fits.counts[i], fits.form.d, few(names_of(fits.form)[which])
    why = f"it has {m} samples for {d} coefficients" if m < d else COLLINEAR
    return f"the data of the node {fits.form.labels[i]!r} leave {names} open: {why}"


def determined(fits: LocalFits) -> Array:
    """The coefficients (n, d), in the user's units, of a node with data those that no direction without curvature of
    its losses has a share in: along it others may take their place. Of classes a common shift of all is no such
    direction: it changes nothing, and their sum is 0."""
    form, names = fits.form, names_of(fits.form)
    own = np.diag(form.space.in_units(np.eye(form.d)))  # an intercept takes up the means of standardised features
    curvature, feature = of_losses(form, np.nan_to_num(fits.coef)), names.get_level_values(0)
    if names.nlevels > 1:
        size = flat(curvature)[0][:, :, None]
        shift = (feature.to_numpy()[:, None] == feature.unique().to_numpy()) * size
        shift *= size / np.linalg.norm(shift, axis=1, keepdims=True)
        curvature += shift @ shift.transpose(0, 2, 1)
    units, open_ = flat(curvature)
    along = (open_ / units[:, :, None]).transpose(0, 2, 1)
    share = np.abs(form.space.in_units(along.reshape(-1, form.d)).reshape(along.shape)) / own * units[:, None, :]
    return share.max(axis=1, initial=0.0) <= OPEN


def flat(H: Array) -> tuple[Array, Array]:
    """The units (n, d) in which matrices (n, d, d) have the diagonal 1, and the directions along which they vanish
    there, of length 1, among columns of 0, (n, d, d)."""
    diagonal = np.einsum("ijj->ij", H)
    units = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(H / units[:, :, None] / units[:, None, :])
    return units, vectors * (values <= SINGULAR * values[:, -1:])[:, None, :]


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


def _minimised(gradients: NodeGradients, w: Array, whole: Array) -> tuple[Array, Array, Array]:
    """Newton's method at all nodes at once, in units of ``whole``, as a column far from 0 is nearly an intercept: where
    it ends, the Hessians, with 1 along what ``whole`` does not see, and their least share of it, 0 where it failed."""
    units, open_ = flat(whole)
    held = units[:, :, None] * (open_ @ open_.transpose(0, 2, 1)) * units[:, None, :]
    L = gradients.smoothness

    def solve(H: Array, g: Array, left: Array) -> Array:
        s = units[left]
        most = np.where(np.isfinite(L[left]), L[left], np.einsum("ijj->i", H)) / (s**2).sum(axis=1)
        scaled = (H + held[left]) / s[:, :, None] / s[:, None, :]
        scaled += (1e-13 * most + 1e-300)[:, None, None] * np.eye(s.shape[1])
        return np.linalg.solve(scaled, (g / s)[:, :, None])[:, :, 0] / s

    w, converged = minimisers(gradients, w, solve, 1e-13)
    w -= np.einsum("ijk,ilk,il->ij", open_, open_, w * units, optimize=True) / units
    H, root = gradients.hessians(w) + held, np.linalg.inv(np.linalg.cholesky(whole + held))
    return w, H, np.where(converged, np.linalg.eigvalsh(root @ H @ root.transpose(0, 2, 1))[:, 0], 0.0)


SINGULAR = 1e-11  # smallest over largest eigenvalue of a design's matrix whose diagonal is 1
OPEN = 1e-4  # share of a coefficient in a direction that the data leave open, below which it is rounding
SEPARABLE = "its classes are separable by the features, or its counts are all 0"
MORE = "give the node more samples, or drop features"
COLLINEAR = "columns are collinear there, or 0; one that varies little beside its mean wants standardise=True"
UNPROVED = "the estimate of node {!r} has no small gap; drop columns alike but for rounding, or take standardise=True"
SMALL = 1e-4  # of what noise leaves of a loss: the square of a hundredth of a standard error
ROUNDING = 1e-12  # of its terms: what a part of a gap may be off by
RIDGE = (
    ", or, for an estimate without intervals and tests, add a ridge, for instance 1e-3 * NodePenalty(SquaredL2()) (an "
    'intercept has none but by features=["intercept", ...])'
)


def _design(form: Form) -> Array:
    """sum_r s_r x_r x_r' of each node: whether it determines all coefficients, whatever the targets are."""
    out = np.zeros((form.n, form.d, form.d))
    for block in form.samples:
        H = block.sums(block.scale)
        out += H if H.shape[1] == form.d else np.kron(H, _free_classes(block, block.width))
    return out


def _free_classes(block: SampleBlock, k: int) -> Array:
    """The curvature of a loss whose predictor has k entries: that of its first sample at 0, which shows what of a
    common shift of all entries it sees."""
    assert isinstance(block.loss, AbstractSmoothLoss)
    C = block.loss.curvature(np.zeros((1, k)), block.y[:1])[0]
    return np.diag(C) if C.ndim == 1 else C


def of_losses(form: Form, w: Array) -> Array:
    """The Hessians at w of the losses alone."""
    return NodeGradients(Form(form.space, form.latent, form.samples, ())).hessians(w)


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
