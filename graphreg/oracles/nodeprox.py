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
from ..terms import Array, Batch, Packed
from ..terms.losses import AbstractPiecewiseLinearLoss, AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import row_norm
from .boxprox import PiecewiseProx
from .quadraticprox import AbstractNodeProx, GramProx, MeanProx, Memory, QuadraticProx, Quadratics
from .smooth_samples import SmoothSamples

SMALL = 32  # up to this many coordinates all nodes share one stack of d x d matrices
ACCURACY = 1e-2  # of an inner Newton solve, relative to the move of the outer round
CONTRACTION = 0.3  # of the residual, below which a step with an old inverse Hessian will do
MOST_STEPS = 50
WORTH = 0.7  # of the nodes: if no more are left, the others are put aside


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
        self.samples = SmoothSamples.of(block, batch, loss)
        self.typical_curvature = batch.pad(loss.typical_curvature(block.offset, block.y))

    def curvature(self) -> Array:
        X, s = self.samples.X, self.samples.s
        return np.einsum("gmd,gmd,gm->g", X, X, self.typical_curvature * s, optimize=True) / X.shape[2]

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        own, todo = self.samples.near(v, tau), np.arange(len(v))
        out, inverse = warm.copy(), memory  # the inverse Hessians of an earlier round
        w, x = warm, own.predict(warm)
        slope = own.slope(x, w)
        size = row_norm(slope) * tau
        left = np.ones(len(w), dtype=bool)  # nodes that are not there yet; each decides for itself
        slow = np.full(len(w), inverse is None)  # nodes whose inverse is to be renewed
        for _ in range(MOST_STEPS):
            look()
            inverse = _renewed(inverse, todo, slow, own, x)
            known = inverse if len(todo) == len(inverse) else inverse[todo]
            step = np.matmul(known, slope[:, :, None])[:, :, 0]
            new, x_new = own.stepped(w, x, slope, step, slow)
            slope_new = own.slope(x_new, new)
            size_new = row_norm(slope_new) * tau
            good = slow | (size_new <= CONTRACTION * size)
            take = left & good
            w, x = np.where(take[:, None], new, w), np.where(take.reshape(-1, *[1] * (x.ndim - 1)), x_new, x)
            slope, size = np.where(take[:, None], slope_new, slope), np.where(take, size_new, size)
            left &= size > np.maximum(ACCURACY * row_norm(w - warm), 1e-14 * row_norm(w))
            slow = left & ~good
            out[todo] = w
            if not left.any():
                break
            if left.mean() <= WORTH:  # the others are done with
                own, (todo, w, x, warm, slope) = own.part(left), (each[left] for each in (todo, w, x, warm, slope))
                size, tau, slow, left = size[left], tau[left], slow[left], left[left]
        return out, inverse


def _renewed(inverse: Array | None, todo: Array, slow: Array, own: SmoothSamples, x: Array) -> Array:
    """The inverse Hessians, those of the slow nodes among some anew."""
    if inverse is None:
        return own.inverses(x)
    if slow.any():
        nodes = np.flatnonzero(slow)
        inverse = inverse.copy()
        inverse[todo[nodes]] = own.part(nodes).inverses(x[nodes])
    return inverse


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
