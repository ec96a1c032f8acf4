"""The prox of a node's losses, for all nodes at once: argmin f_i(w) + 1/(2 tau_i) ||w - v_i||^2.

Squared losses are factorised once, for every step size; other smooth losses take Newton steps, warm from round to
round; piecewise linear ones solve a quadratic programme in their prices. Nodes without data return v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..base.clock import check_deadline
from ..errors import MethodError
from ..form import Form, SampleBlock
from ..terms import Array, Batch, Packed, adjoint, gram, of_stack, predictors
from ..terms.losses import AbstractPiecewiseLinearLoss, AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import row_norm
from .boxprox import PiecewiseProx

Memory = Any  # what a prox keeps from round to round: None, arrays, tuples of them


class AbstractNodeProx(ABC):
    """The prox of the losses of some nodes, ``nodes`` (g,)."""

    nodes: Array

    @abstractmethod
    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        """The minimisers (g, d) for v (g, d) and tau (g,), started from ``warm`` (g, d) where that matters.

        ``memory`` is what the last call returned beside them (None at first): nothing is kept in the object, so that
        a step can be repeated.
        """

    def write_prices(self, memory: Memory, out: tuple[Array, ...]) -> None:
        """Write the prices of the last call, where they are not the gradients at its point, into those of all samples
        (one array per block)."""

    @abstractmethod
    def curvature(self) -> Array:
        """The mean curvature of each node's loss, trace(Hessian) / d, (g,)."""

    def factors(self) -> QuadraticProx | None:
        """The losses by their factors, where they are quadratic: what a compiled round needs of them."""
        return None

    def grams(self) -> GramProx | None:
        """The proxes by their Hessians, where these are kept, of more than one coordinate."""
        return None


@dataclass(frozen=True)
class MeanProx(AbstractNodeProx):
    """f_i = 1/2 mass_i ||w||^2 - <pull_i, w>."""

    nodes: Array
    mass: Array
    linear: Array

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        weight = 1.0 / tau
        return (weight[:, None] * v + self.linear) / (weight + self.mass)[:, None], None

    def curvature(self) -> Array:
        return self.mass

    def factors(self) -> QuadraticProx:
        return QuadraticProx(self.nodes, None, self.mass[:, None], self.linear)


@dataclass(frozen=True)
class QuadraticProx(AbstractNodeProx):
    """f_i = 1/2 w'H_i w - <h_i, w> with H_i = V diag(values) V' thin and h_i = V pull, V with orthonormal columns.

    w - v = V (pull - values V'v) / (values + 1/tau): free of cancellation, one factorisation for every tau.
    """

    nodes: Array
    V: Array | None  # (g, d, k); None: I, values all the same
    values: Array  # (g, k); (g, 1) where V is I
    linear: Array  # (g, k)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        turned = v if self.V is None else np.matmul(v[:, None, :], self.V)[:, 0, :]
        r = (self.linear - self.values * turned) / (self.values + 1.0 / tau[:, None])
        return v + (r if self.V is None else np.matmul(self.V, r[:, :, None])[:, :, 0]), None

    def curvature(self) -> Array:
        return self.values[:, 0] if self.V is None else self.values.sum(axis=1) / self.V.shape[1]

    def factors(self) -> QuadraticProx:
        return self


@dataclass(frozen=True)
class GramProx(AbstractNodeProx):
    """f_i = 1/2 w'H_i w - <h_i, w>, factorised when it is first asked for."""

    nodes: Array
    H: Packed
    h: Array  # (g, d)

    @cached_property
    def factorised(self) -> QuadraticProx:
        """The prox by eigenvectors."""
        values, V = of_stack(np.linalg.eigh, self.H.dense(), 10.0)
        values = np.where(values > 1e-15 * values[:, -1:], values, 0.0)
        pull = np.where(values > 0, np.matmul(self.h[:, None, :], V)[:, 0, :], 0.0)
        return QuadraticProx(self.nodes, np.ascontiguousarray(V), values, pull)

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, None]:
        return self.factorised(v, tau, warm, memory)

    def curvature(self) -> Array:
        return self.H.diagonal.mean(axis=1)

    def factors(self) -> QuadraticProx:
        return QuadraticProx(self.nodes, None, self.H.rows, self.h) if self.H.d == 1 else self.factorised

    def grams(self) -> GramProx | None:
        return None if self.H.d == 1 else self


# ---- the samples of smooth losses, as stacks of arrays ---------------------------------------------------------------
MOST_HALVINGS = 40
LEAST_BEND = 1e-12  # of the largest eigenvalue, where a Hessian has no inverse in floats

Nodes = Any  # numbers, a mask or a slice


@dataclass(frozen=True)
class SmoothSamples:
    """f_i(w) + 1/(2 tau_i) ||w - v_i||^2 at each of g nodes, f_i(w) = sum_r s_r l((Xw)_r + o_r)."""

    loss: AbstractSmoothLoss
    X: Array  # (g, m, p)
    XT: Array
    y: Array
    offset: Array
    s: Array  # 0 where a node has fewer samples
    v: Array  # (g, d)
    weight: Array  # 1 / tau_i, (g, 1)

    @staticmethod
    def of(block: SampleBlock, batch: Batch, loss: AbstractSmoothLoss) -> SmoothSamples:
        XT, s = np.ascontiguousarray(batch.X.transpose(0, 2, 1)), batch.pad(block.scale) * batch.mask
        none = np.zeros((len(s), 0)), np.zeros((len(s), 1))
        return SmoothSamples(loss, batch.X, XT, batch.pad(block.y), batch.pad(block.offset), s, *none)

    def near(self, v: Array, tau: Array) -> SmoothSamples:
        """The samples with v_i and tau_i."""
        return replace(self, v=v, weight=(1.0 / tau)[:, None])

    def part(self, nodes: Nodes) -> SmoothSamples:
        """Some of the nodes."""
        arrays = (self.X, self.XT, self.y, self.offset, self.s, self.v, self.weight)
        return SmoothSamples(self.loss, *(each[nodes] for each in arrays))

    def predict(self, w: Array) -> Array:
        return predictors(self.X, w) + self.offset

    def slope(self, x: Array, w: Array) -> Array:
        """The gradient at w, whose predictors are x, (g, d)."""
        return adjoint(self.XT, self._scaled(self._each(self.loss.gradient, x))) + self.weight * (w - self.v)

    def value(self, x: Array, w: Array) -> Array:
        """(g,)."""
        return (self.s * self._each(self.loss.value, x)).sum(axis=1) + 0.5 * (self.weight * (w - self.v) ** 2).sum(
            axis=1
        )

    def inverses(self, x: Array) -> Array:
        """The inverse Hessians, (g, d, d)."""
        return _inverse(gram(self.X, self._scaled(self._each(self.loss.curvature, x))), self.weight)

    def stepped(self, w: Array, x: Array, slope: Array, step: Array, slow: Array) -> tuple[Array, Array]:
        """The point after a step and its predictors; after a Newton step (``slow`` nodes) halved until the objective
        decreases."""
        new = w - step
        x_new = self.predict(new)
        if not slow.any():
            return new, x_new
        nodes = slice(None) if slow.all() else np.flatnonzero(slow)
        own = self.part(nodes)
        w, step, there, x_there = w[nodes], step[nodes], new[nodes], x_new[nodes]
        gain = 1e-4 * np.einsum("gd,gd->g", step, slope[nodes])
        before = own.value(x[nodes], w)
        t = np.ones(len(w))
        for _ in range(MOST_HALVINGS):
            bad = own.value(x_there, there) > before - t * gain + 1e-12 * np.abs(before)
            if not bad.any():
                break
            t[bad] *= 0.5
            there = w - t[:, None] * step
            x_there = own.predict(there)
        new[nodes], x_new[nodes] = there, x_there
        return new, x_new

    def _each(self, method: Callable[[Array, Array], Array], x: Array) -> Array:
        """What a method of the loss, which takes an entry per sample, says of the stack."""
        g, m = x.shape[:2]
        values = method(*(each.reshape(g * m, *each.shape[2:]) for each in (x, self.y)))
        return values.reshape(g, m, *values.shape[1:])

    def _scaled(self, values: Array) -> Array:
        return self.s.reshape(*self.s.shape, *[1] * (values.ndim - 2)) * values


def _inverse(H: Array, weight: Array) -> Array:
    """The inverses of H + weight I, for positive semidefinite H (g, d, d) and weight (g, 1)."""
    d = H.shape[1]
    more = H.copy()
    more[:, np.arange(d), np.arange(d)] += weight
    try:
        return of_stack(np.linalg.inv, more, 1.0)
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


# ---- the proxes of all nodes -----------------------------------------------------------------------------------------
SMALL = 32  # up to this many coordinates all nodes share one stack of d x d matrices
ACCURACY = 1e-2  # of an inner Newton solve, relative to the move of the outer round
CONTRACTION = 0.3  # of the residual, below which a step with an old inverse Hessian will do
ROUNDING = 1e-14  # of a point: a step that moves it no further is its last, however steep rounding leaves it
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
            check_deadline()
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
            left &= (size > ACCURACY * row_norm(w - warm)) & ~(take & (row_norm(step) <= ROUNDING * row_norm(w)))
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
        if block.map.noun == "row":  # of no one node
            continue
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
    said = "is neither smooth nor piecewise linear: no prox of a node's sum is known"
    known = AbstractSmoothLoss, AbstractPiecewiseLinearLoss
    return tuple(dict.fromkeys(f"{b.name} {said}" for b in form.at_nodes if not isinstance(b.loss, known)))


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
        A = root[:, :, None] * batch.X
        U, sigma, Vt = of_stack(partial(np.linalg.svd, full_matrices=False), A, 10.0)
        target = batch.pad(block.y - block.offset)
        pull = sigma * np.matmul((root * target)[:, None, :], U)[:, 0, :]
        out.append(QuadraticProx(batch.nodes, np.ascontiguousarray(Vt.transpose(0, 2, 1)), sigma**2, pull))
    if thick:
        nodes = thick[0][0] if len(thick) == 1 else np.concatenate([each for each, _ in thick])
        H = thick[0][1] if len(thick) == 1 else Packed(np.concatenate([each.flat for _, each in thick]), d)
        h = block.moments if len(nodes) == block.n and (np.diff(nodes) == 1).all() else block.moments[nodes]
        strength = float(block.strength)
        out.append(GramProx(nodes, H.scaled(strength), h if strength == 1.0 else strength * h))
    return out
