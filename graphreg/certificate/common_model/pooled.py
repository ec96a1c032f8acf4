"""One parameter vector for all nodes: its objective, and its best value by a few Newton steps.

    P_common(v) = sum_r s_r l_r(x_r'v + o_r)  +  sum over edges to the ground of c_e phi_e(v - center_e)

The steps are taken in coordinates in which the pooled design has orthonormal columns, so that neither the units of the
columns nor their collinearity matter. Constraints are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.gate import refuse
from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array, Design, gram
from ...terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss
from ...terms.penalties import AbstractConstraint, AbstractSmoothPenalty, at_units
from .coordinates import RANK, coordinates, inverse_root, largest, slices, weighted

STEPS = 16  # at most; what is not attained falls for ever
MOST = 1000  # with those that halve the objective
WIDE = 3  # the first so many of them are those of quadratics that touch the losses from above
LEAST = 1e-6  # of the mean residual: smaller ones count as this where a quadratic is to touch a kink
HALVINGS = 40  # of a step
SETTLED = 1e-12  # of the objective: what a step may still gain
WORTH = 1e-9  # of the objective: less is not worth more halvings
ENOUGH = 1e-2  # of the objective at 0 of losses that fall for ever where classes are separable: no need to go on


def pooled(form: Form) -> Form:
    """The form whose losses of rows are losses of samples with the same predictors where all nodes have the same
    parameters. Of rows of several numbers each is to see coordinates of its own: what they share is left out, and so
    are rows of more or fewer numbers than the samples at nodes have predictors."""
    if not form.beside:
        return form
    width = {form.d if block.X is None else block.X.shape[1] for block in form.at_nodes}
    p = min(width) if width else form.d // form.beside[0].width
    fits = [block for block in form.samples if block.map.noun == "sample" or block.width * p == form.d]
    return replace(form, samples=tuple(b if b.map.noun == "sample" else _pooled(b, p) for b in fits))


def _pooled(block: SampleBlock, p: int) -> SampleBlock:
    every: Any = sp.kron(np.ones((block.n, 1)), sp.eye_array(p * block.width), format="csr")
    each = (block.A @ every).toarray().reshape(block.count, block.width, p, block.width)
    outputs = None if block.offset.ndim == 1 else block.width
    return replace(block, map=Design(block.map.owner, np.ascontiguousarray(each[:, 0, :, 0]), outputs, block.n))


class Pool:
    """P_common of one form at the strengths of this moment."""

    def __init__(self, form: Form, fixed: Array | None = None) -> None:
        """``fixed`` marks coordinates that stay 0."""
        self.form = form
        ground = [edge for edge in form.to_ground if not isinstance(edge.penalty, AbstractConstraint)]
        self.smooth = [edge for edge in ground if isinstance(edge.penalty, AbstractSmoothPenalty)]
        self.kinked = [edge for edge in ground if not isinstance(edge.penalty, AbstractSmoothPenalty)]
        self.sums = 0  # how often gradients and Hessians were added up over all nodes
        self.grams: dict[int, Array] = {}  # of blocks, which the form keeps
        unfitted = 0.0  # the sum of s_r min(|l_r(0)|, 1) of the losses that are no functions of a difference
        for block in form.samples:
            for some in () if of_difference(block) else block.some():
                value = block.loss.value(np.zeros_like(block.offset[some]), block.y[some])
                unfitted += float(block.scale_of(some) @ np.fmin(np.abs(value), 1.0))
        self.enough = ENOUGH * unfitted
        self.largest = largest(form)
        self.base, self.soft, bends = np.zeros(form.d), np.zeros(form.d), np.zeros(form.d)
        if fixed is None and ground:
            self.base, bends = centers(ground, form.d), self._bends(ground)
        self.T = coordinates(form, self.largest, np.zeros(form.d, dtype=bool) if fixed is None else fixed, bends)
        steps = self.T.shape[1] * form.d // max(len(self.T), 1)
        refuse(2.0 * steps**2, "the best common model", "about ")
        designs = [block for block in form.samples if block.X is not None]
        if len(designs) == 1 and not bends.any():  # by the definition of T
            self.grams[id(designs[0])] = float(designs[0].scale.max()) * np.eye(self.T.shape[1])

    def parameters(self, theta: Array) -> Array:
        """v (d,) from the coordinates of the steps."""
        return (self.T @ theta.reshape(self.T.shape[1], self.form.d // len(self.T))).ravel()

    def gradient_in_steps(self, gradient: Array) -> Array:
        """A gradient in v as one in the coordinates of the steps."""
        return (self.T.T @ gradient.reshape(len(self.T), -1)).ravel()

    def value(self, v: Array, edges: list[EdgeBlock]) -> float:
        """P_common(v), with the penalties of these edges."""
        losses = sum(float(scale @ block.loss.value(x, y)) for block, _, scale, y, x in moved(self.form, v))
        return losses + sum(float(edge.weight @ edge.penalty.value(differences(edge, v))) for edge in edges)

    def _bends(self, ground: list[EdgeBlock]) -> Array:
        """The curvature of the penalties at the centers, (d,), which counts as data do where steps are to be taken."""
        self.base = centers(ground, self.form.d)
        if self.kinked:
            self.soft = kinks(self.kinked, self.form.d, self._spread())
        bends = self.soft.copy()
        for edge in self.smooth:
            bends[edge.columns(len(bends))] += np.diagonal(derivatives(edge, self.base, self.soft)[1])
        return np.where(np.isfinite(bends), bends, 0.0)

    def _spread(self) -> float:
        """The losses at the centers, those of differences around their mean, so that no shift changes it."""
        around, at = 0.0, 0.0
        for block, _, scale, y, x in moved(self.form, self.base, whole=True):
            at += float(scale @ np.abs(block.loss.value(x, y)))
            mean = scale @ y / scale.sum() if of_difference(block) else 0.0
            around += float(scale @ np.abs(block.loss.value(x, y - mean)))
        return around if around > LEAST * at else at

    def start(self) -> Array:
        """Least squares, with the smooth penalties, on the samples whose loss is a function of the difference, so that
        a shift of the targets shifts all that follows; 0 where there are none."""
        slope, H = np.zeros(self.form.d), np.zeros(())
        for block in self.form.samples:
            if of_difference(block):
                for some in block.some():
                    y = block.loss.moved(block.y[some], predictors(block, self.base, some))[0]
                    slope -= adjoint(block, block.column(block.scale_of(some)) * y, some)
                H = H + self._hessian(block, np.broadcast_to(1.0, block.offset.shape))
        if not H.ndim:
            return slope
        g, bend = self._penalties(self.base, self.smooth)
        return self.base - self.parameters(_solve(H + bend, self.gradient_in_steps(slope + g)))

    def model(self, v: Array, edges: list[EdgeBlock], wide: bool) -> tuple[Array, Array]:
        """Gradient and Hessian of the smoothed P_common, in the coordinates of the steps; a ``wide`` one bends at
        least as much as the quadratic that touches a loss of the difference from above."""
        T, d = self.T, len(v)
        self.sums += 1
        classes = d // len(T)
        slope, H = np.zeros(d), np.zeros((T.shape[1] * classes, T.shape[1] * classes))
        whole = wide and any(map(_bends_less, self.form.samples))
        bends: dict[int, list[Array]] = {}
        for block, some, scale, y, x in moved(self.form, v, whole):
            a, h = _derivatives(block, x, y)
            if wide and _bends_less(block):
                size = np.abs(y)
                h = np.maximum(h, np.abs(a) / np.maximum(size, LEAST * (float(size.mean()) or 1.0)))
            slope += adjoint(block, block.column(scale) * a, some)
            bends.setdefault(id(block), []).append(h)
        for block in self.form.samples:
            H += self._hessian(block, np.concatenate(bends[id(block)]))
        g, bend = self._penalties(v, edges)
        return self.gradient_in_steps(slope + g), H + bend

    def _penalties(self, v: Array, edges: list[EdgeBlock]) -> tuple[Array, Array | float]:
        """The gradient of these edges' penalties in v, and their Hessian in the coordinates of the steps."""
        if not edges:
            return np.zeros(len(v)), 0.0
        slope, bend = np.zeros(len(v)), np.zeros((len(v), len(v)))
        for edge in edges:
            at = edge.columns(len(v))
            g, h = derivatives(edge, v, self.soft)
            slope[at] += g
            bend[np.ix_(at, at)] += h
        J, diagonal = np.kron(self.T, np.eye(len(v) // len(self.T))), np.diagonal(bend)
        plain = np.count_nonzero(bend) == np.count_nonzero(diagonal)
        return slope, J.T @ (diagonal[:, None] * J if plain else bend @ J)

    def _hessian(self, block: SampleBlock, h: Array) -> Array:
        """The sum of s_r Z'h_r Z; where h is one number, from the sum of s_r Z'Z, which is found once."""
        if block.X is None or h.ndim > 1 or not len(h) or h.min() != h.max():
            return _hessian(block, block.scaled(h), self.T)
        key = id(block)
        if key not in self.grams:
            self.grams[key] = weighted(block.X, block.scale, self.T)
        return float(h[0]) * self.grams[key]

    def descend(self, v: Array, edges: list[EdgeBlock]) -> tuple[Array, float]:
        """A few damped Newton steps from v, and P_common there; those that halve it, as where exponentials begin far
        out, do not count."""
        best, k = self.value(v, edges), 0
        for _ in range(MOST):
            if abs(best) <= self.enough or k == STEPS:
                break
            for wide in (True, False) if k < WIDE else (False, True):
                slope, H = self.model(v, edges, wide)
                step = _solve(H, slope)
                gain = float(slope @ step)
                if gain <= SETTLED * abs(best):
                    return v, best
                after, value = self._along(v, -self.parameters(step), best, edges, gain)
                if value < best:
                    break
            else:
                return v, best
            k += not value < 0.5 * best
            v, best = after, value
        return v, best

    def _along(self, v: Array, move: Array, best: float, edges: list[EdgeBlock], gain: float) -> tuple[Array, float]:
        """The first point of v + move, v + move / 2, ... below ``best``, and its value; v itself where none is. At
        v + t move no more than t ``gain`` can be won, but for kinks."""
        t = 1.0
        for _ in range(HALVINGS):
            value = self.value(v + t * move, edges)
            if value < best:
                return v + t * move, value
            t *= 0.5
            if t * gain <= WORTH * abs(best):
                break
        return v, best

    def fit(self) -> tuple[Array, list[EdgeBlock], float]:
        """The best v that was found, the edges whose penalties count (those that are finite there), and P_common."""
        v, value, edges = *self._better(self.start(), self.smooth), self.smooth
        kinked = [edge for edge in self.kinked if np.isfinite(edge.penalty.value(differences(edge, v))).all()]
        if kinked:
            edges = [*self.smooth, *kinked]
            v, value = self._better(v, edges)
        return v, edges, value

    def _better(self, v: Array, edges: list[EdgeBlock]) -> tuple[Array, float]:
        """Steps from v; and, unless they come below 0 and the centers, from there: numbers may overflow at v, or
        penalties be far stronger than the data."""
        start, (v, best) = v, self.descend(v, edges)
        for other in (self.base, np.zeros_like(v)) if self.base.any() else (self.base,):
            if (start != other).any() and not best <= (1.0 - SETTLED) * self.value(other, edges):
                w, value = self.descend(other, edges)
                v, best = (w, value) if value < best or np.isnan(best) else (v, best)
        return v, best


def moved(form: Form, v: Array, whole: bool = False) -> Iterator[tuple[SampleBlock, slice, Array, Array, Array]]:
    """Per block some samples at a time, or all of a ``whole`` one: their scales, and targets and predictors at v, moved
    to where their numbers are small."""
    for block in form.samples:
        for some in (slice(0, len(block.y)),) if whole else block.some():
            y, x = block.loss.moved(block.y[some], predictors(block, v, some))
            yield block, some, block.scale_of(some), y, x


def of_difference(block: SampleBlock) -> bool:
    """True of a loss that is a function of the difference of predictor and target."""
    return not block.loss.moved(block.y[:1], np.ones_like(block.offset[:1]))[1].any()


def _bends_less(block: SampleBlock) -> bool:
    """True of a loss that may bend less than a quadratic of the difference that touches it from above."""
    return of_difference(block) and not isinstance(block.loss, AbstractQuadraticLoss)


def _derivatives(block: SampleBlock, x: Array, y: Array) -> tuple[Array, Array]:
    """First and second derivatives, of a smoothed loss where it has kinks."""
    loss = block.loss
    if isinstance(loss, AbstractSmoothLoss):
        return loss.gradient(x, y), loss.curvature(x, y)
    return loss.smoothed(x, y)[1:]


def predictors(block: SampleBlock, v: Array, some: slice = slice(None)) -> Array:
    """x_r'v + o_r of some samples for one v at all nodes, shaped like the offsets."""
    offset = block.offset[some]
    if block.X is None:
        return v + offset
    if not v.any():
        return offset
    return (block.X[some] @ v.reshape(block.X.shape[1], -1)).reshape(offset.shape) + offset


def adjoint(block: SampleBlock, a: Array, some: slice) -> Array:
    """The sum of X_i'a_i over some samples, (d,)."""
    return a.sum(axis=0) if block.X is None else (block.X[some].T @ a).ravel()


def magnitude(block: SampleBlock, v: Array, some: slice) -> Array:
    """|o_r| + |y_r| + sum_j |x_rj v_j|: what a predictor at v is a sum of, and its difference from the target."""
    size = np.abs(block.offset[some]) + (np.abs(block.y[some]) if of_difference(block) else 0.0)
    if block.X is None:
        return size + np.abs(v)
    W = np.abs(v).reshape(block.X.shape[1], -1)
    return size + (np.abs(block.X[some]) @ W).reshape(size.shape)


def _hessian(block: SampleBlock, h: Array, T: Array) -> Array:
    """The sum of Z'hZ, where h has numbers, or matrices between the predictors of a sample."""
    if block.X is None:
        return T.T @ (np.diag(h.sum(axis=0)) if h.ndim == 2 else h.sum(axis=0)) @ T
    if h.ndim == 1:
        return weighted(block.X, h, T)
    M = h if h.ndim == 3 else h[:, :, None] * np.eye(h.shape[1])
    out = 0.0
    for rows in slices(block.X):
        out = out + gram((block.X[rows] @ T)[None], M[None, rows])[0]
    return np.asarray(out)


def _solve(H: Array, slope: Array) -> Array:
    """The shortest solution of Hx = slope, on equilibrated coordinates, without what rounding hides."""
    size = np.sqrt(np.maximum(np.diagonal(H), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.maximum(size, 1e-300), 0.0)
    H = H * np.outer(scale, scale)
    if not (np.isfinite(H).all() and np.isfinite(slope).all()):
        return np.zeros_like(slope)
    if (R := inverse_root(H + np.diag(size == 0.0), RANK * len(H))) is not None:
        return scale * (R @ (R.T @ (scale * slope)))
    values, U = np.linalg.eigh(H)
    kept = values > RANK * values.max(initial=0.0)
    return scale * (U[:, kept] @ ((U[:, kept].T @ (scale * slope)) / values[kept]))


# ---- penalties on nodes ----------------------------------------------------------------------------------------------
def centers(edges: list[EdgeBlock], d: int) -> Array:
    """The weighted mean of the centers, (d,); 0 where no edge acts."""
    total, weights = np.zeros(d), np.zeros(d)
    for edge in edges:
        at = edge.columns(d)
        weights[at] += edge.weight.sum()
        if edge.center is not None:
            total[at] += edge.weight @ edge.center
    return np.where(weights > 0.0, total / np.where(weights > 0.0, weights, 1.0), 0.0)


def kinks(edges: list[EdgeBlock], d: int, size: float) -> Array:
    """The curvature of a quadratic in place of the kinks, (d,), which is as large as they are where these are
    ``size``."""
    slopes = np.zeros(d)
    for edge in edges:
        at = edge.columns(d)
        rise = edge.weight.sum() * at_units(edge.penalty.value, len(at))
        slopes[at] += np.where(np.isfinite(rise), rise, 0.0)
    return slopes**2 / (size or 1.0)


def derivatives(edge: EdgeBlock, v: Array, soft: Array) -> tuple[Array, Array]:
    """Gradient (k,) and curvature (k, k) of an edge block's sum; that of kinks as if each were the quadratic that
    touches it from above, around the mean of the centers, or ``soft`` (d,) along what they have no slope in."""
    penalty, c = edge.penalty, edge.weight
    if isinstance(penalty, AbstractSmoothPenalty):
        z = differences(edge, v)
        h = c.reshape(-1, *[1] * (penalty.curvature(z).ndim - 1)) * penalty.curvature(z)
        h = h.sum(axis=0)
        return c @ penalty.gradient(z), np.diag(h) if h.ndim == 1 else h
    at = edge.columns(len(v))
    z = v[at] - (0.0 if edge.center is None else c @ edge.center / c.sum())
    g = c.sum() * penalty.subgradient(z[None])[0]
    h = np.maximum(g * np.sign(z), 0.0) / np.maximum(np.abs(z), 1e-300)
    return g, np.diag(np.where(h > 0.0, h, soft[at]))


def differences(edge: EdgeBlock, v: Array) -> Array:
    """v - center_e for each edge, (m, k)."""
    part = v[edge.columns(len(v))]
    part = np.broadcast_to(part, (len(edge.tail), len(part)))
    return part if edge.center is None else part - edge.center
