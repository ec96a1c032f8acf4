"""The prox of a node's losses, for all nodes at once: argmin f_i(w) + 1/(2 tau_i) ||w - v_i||^2.

Squared losses are factorised once, for every step size; other smooth losses take Newton steps, warm from round to
round; piecewise linear ones solve a quadratic programme in their prices. Nodes without data return v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..clock import look
from ..errors import MethodError
from ..form import Form, SampleBlock
from ..terms import Array, Batch, Packed, adjoint, gram, predictors
from ..terms.losses import AbstractPiecewiseLinearLoss, AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import row_norm
from .boxprox import PiecewiseProx
from .quadraticprox import AbstractNodeProx, GramProx, MeanProx, Memory, QuadraticProx, Quadratics

SMALL = 32  # up to this many coordinates all nodes share one stack of d x d matrices
ACCURACY = 1e-2  # of an inner Newton solve, relative to the move of the outer round
CONTRACTION = 0.3  # of the residual, below which a step with an old inverse Hessian will do
MOST_STEPS, MOST_HALVINGS = 50, 40
LEAST_BEND = 1e-12  # of the largest eigenvalue, where a Hessian has no inverse in floats


@dataclass(frozen=True)
class PriceProx(AbstractNodeProx):
    """A piecewise linear loss: a box quadratic programme in the prices, which its prox returns beside the point."""

    nodes: Array
    block: int  # which of the form's sample blocks
    batch: Batch
    inner: PiecewiseProx

    @staticmethod
    def of(k: int, block: SampleBlock, batch: Batch) -> PriceProx:
        low, high = (batch.pad(block.scale * end) * batch.mask for end in block.loss.domain(block.y))
        shift = batch.pad(block.offset - block.y)
        return PriceProx(batch.nodes, k, batch, PiecewiseProx(batch.nodes, batch.X, shift, low, high))

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        return self.inner(v, tau, warm, memory)

    def write_prices(self, memory: Memory, out: tuple[Array, ...]) -> None:
        if memory is not None:
            real = self.batch.mask > 0
            out[self.block][self.batch.rows[real]] = self.inner.prices(memory)[real]

    def curvature(self) -> Array:
        return self.inner.curvature()


class NewtonProx(AbstractNodeProx):
    """A smooth loss: chord-Newton steps with the inverse Hessian of an earlier round, renewed where they slow down."""

    def __init__(self, block: SampleBlock, batch: Batch, loss: AbstractSmoothLoss) -> None:
        self.nodes = batch.nodes
        self.loss, self.X = loss, batch.X
        self.XT = np.ascontiguousarray(batch.X.transpose(0, 2, 1))
        self.y, self.offset = batch.pad(block.y), batch.pad(block.offset)
        self.s = batch.pad(block.scale) * batch.mask
        self.typical_curvature = batch.pad(loss.typical_curvature(block.offset, block.y))

    def curvature(self) -> Array:
        d = self.X.shape[2]
        return np.einsum("gmd,gmd,gm->g", self.X, self.X, self.typical_curvature * self.s, optimize=True) / d

    def _scaled(self, values: Array) -> Array:
        return self.s.reshape(*self.s.shape, *[1] * (values.ndim - 2)) * values

    def _predict(self, w: Array) -> Array:
        return predictors(self.X, w) + self.offset

    def _slope(self, x: Array, w: Array, v: Array, weight: Array) -> Array:
        return adjoint(self.XT, self._scaled(self.loss.gradient(x, self.y))) + weight * (w - v)

    def _value(self, x: Array, w: Array, v: Array, weight: Array) -> Array:
        return (self.s * self.loss.value(x, self.y)).sum(axis=1) + 0.5 * (weight * (w - v) ** 2).sum(axis=1)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        weight = (1.0 / tau)[:, None]
        w, inverse = warm, memory  # the inverse Hessians of an earlier round
        x = self._predict(w)
        slope = self._slope(x, w, v, weight)
        size = row_norm(slope) * tau
        left = np.ones(len(w), dtype=bool)  # nodes that are not there yet; each decides for itself
        slow = np.full(len(w), inverse is None)  # nodes whose inverse is to be renewed
        for _ in range(MOST_STEPS):
            look()
            inverse = self._renewed(inverse, slow, x, weight)
            step = np.matmul(inverse, slope[:, :, None])[:, :, 0]
            new, x_new = self._damped(w, x, slope, step, v, weight, slow)
            slope_new = self._slope(x_new, new, v, weight)
            size_new = row_norm(slope_new) * tau
            good = slow | (size_new <= CONTRACTION * size)
            take = left & good
            w, x = np.where(take[:, None], new, w), np.where(take.reshape(-1, *[1] * (x.ndim - 1)), x_new, x)
            slope, size = np.where(take[:, None], slope_new, slope), np.where(take, size_new, size)
            left &= size > np.maximum(ACCURACY * row_norm(w - warm), 1e-14 * row_norm(w))
            slow = left & ~good
            if not left.any():
                break
        return w, inverse

    def _renewed(self, inverse: Array | None, slow: Array, x: Array, weight: Array) -> Array:
        """The inverse Hessians, those of the slow nodes anew."""
        if not slow.any():
            assert inverse is not None
            return inverse
        nodes = slice(None) if slow.all() else np.flatnonzero(slow)
        h = self.loss.curvature(x[nodes], self.y[nodes])
        H = gram(self.X[nodes], self.s[nodes].reshape(*h.shape[:2], *[1] * (h.ndim - 2)) * h)
        new = _inverse(H, weight[nodes])
        if inverse is None or slow.all():
            return new
        inverse = inverse.copy()
        inverse[nodes] = new
        return inverse

    def _damped(
        self, w: Array, x: Array, slope: Array, step: Array, v: Array, weight: Array, slow: Array
    ) -> tuple[Array, Array]:
        """The point after a step; after a Newton step (``slow`` nodes) halved until the objective decreases."""
        new = w - step
        x_new = self._predict(new)
        if not slow.any():
            return new, x_new
        gain = 1e-4 * np.einsum("gd,gd->g", step, slope)
        before = self._value(x, w, v, weight)
        t = np.ones(len(w))
        for _ in range(MOST_HALVINGS):
            bad = slow & (self._value(x_new, new, v, weight) > before - t * gain + 1e-12 * np.abs(before))
            if not bad.any():
                break
            t[bad] *= 0.5
            new = w - t[:, None] * step
            x_new = self._predict(new)
        return new, x_new


def _inverse(H: Array, weight: Array) -> Array:
    """The inverses of H + weight I, for positive semidefinite H (g, d, d) and weight (g, 1)."""
    d = H.shape[1]
    more = H.copy()
    more[:, np.arange(d), np.arange(d)] += weight
    try:
        return np.linalg.inv(more)
    except np.linalg.LinAlgError:  # a weight below the rounding of H, whose columns are collinear
        return _inverse_by_parts(H, weight)


def _inverse_by_parts(H: Array, weight: Array) -> Array:
    """About the same by eigenvalues, with columns of length 1, and positive definite always: an eigenvalue below
    `LEAST_BEND` counts as that, because one number cannot hold the inverses of both ends."""
    D = 1.0 / np.sqrt(np.einsum("gdd->gd", H) + weight)
    values, V = np.linalg.eigh(D[:, :, None] * H * D[:, None, :])
    values += weight * np.einsum("gd,gdk->gk", D**2, V**2)
    V = D[:, :, None] * V
    return np.matmul(V / np.maximum(values, LEAST_BEND * values[:, -1:])[:, None, :], V.transpose(0, 2, 1))


def node_proxes(form: Form) -> tuple[AbstractNodeProx, ...]:
    """The proxes of all nodes with data."""
    out: list[AbstractNodeProx] = []
    for k, block in enumerate(form.samples):
        if block.stacks is None:
            out.append(_mean(block, form.d))
        elif isinstance(block.loss, AbstractQuadraticLoss):
            out += _quadratic(block, block.stacks)
        elif isinstance(block.loss, AbstractSmoothLoss):
            out += [NewtonProx(block, batch, block.loss) for batch in block.stacks]
        elif isinstance(block.loss, AbstractPiecewiseLinearLoss):
            out += [PriceProx.of(k, block, batch) for batch in block.stacks]
        else:
            raise MethodError(without_prox(form)[0])
    return tuple(out)


def without_prox(form: Form) -> tuple[str, ...]:
    """Losses whose sum over a node has no prox here, as sentences."""
    known = (AbstractSmoothLoss, AbstractPiecewiseLinearLoss)
    unknown = {block.loss.called() for block in form.samples if not isinstance(block.loss, known)}
    return tuple(f"{name} is neither smooth nor piecewise linear: no prox of a node's sum is known" for name in unknown)


def _mean(block: SampleBlock, d: int) -> MeanProx:
    nodes, place = np.unique(block.node, return_inverse=True)
    mass = np.bincount(place, block.scale)
    pull = np.zeros((len(nodes), d))
    np.add.at(pull, place, block.scale[:, None] * (block.y - block.offset))
    return MeanProx(nodes, mass, pull)


def _quadratic(block: SampleBlock, stacks: tuple[Batch, ...]) -> list[AbstractNodeProx]:
    d = stacks[0].X.shape[2]
    out: list[AbstractNodeProx] = []
    thick: list[tuple[Array, Packed]] = []
    for k, batch in enumerate(stacks):
        if batch.X.shape[1] >= d or d <= SMALL:
            thick.append((batch.nodes, block.grams[k]))
            continue
        root = np.sqrt(batch.pad(block.scale)) * batch.mask
        U, sigma, Vt = np.linalg.svd(root[:, :, None] * batch.X, full_matrices=False)
        target = batch.pad(block.y - block.offset)
        pull = sigma * np.matmul((root * target)[:, None, :], U)[:, 0, :]
        out.append(QuadraticProx(batch.nodes, np.ascontiguousarray(Vt.transpose(0, 2, 1)), sigma**2, pull))
    if thick:
        nodes = thick[0][0] if len(thick) == 1 else np.concatenate([each for each, _ in thick])
        H = thick[0][1] if len(thick) == 1 else Packed(np.concatenate([each.flat for _, each in thick]), d)
        h = block.moments if len(nodes) == block.n and (np.diff(nodes) == 1).all() else block.moments[nodes]
        strength = float(block.strength)
        out.append(GramProx(nodes, Quadratics(H.scaled(strength), h if strength == 1.0 else strength * h)))
    return out
