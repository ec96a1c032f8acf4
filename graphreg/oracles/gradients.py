"""Gradients of the nodes' smooth parts (their losses and their smooth ground edges), full and of sampled rows, and
the constants on which steps depend; and the prox of nodes' smooth losses by gradient steps: as many as are asked for,
or until the point is near enough.

Node i descends h_i(w) = f_i(w) + 1/(2 tau_i) ||w - v_i||^2, which is mu_i + 1/tau_i strongly convex, from the last
round's point. With p_i the prox,

    ||w - p_i||  <=  ||grad h_i(w)|| / (mu_i + 1/tau_i)                                                          (1)

so the distance from the exact prox is known from the gradient alone, without p_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from ..base.clock import check_deadline
from ..checks import Check, inside, is_number
from ..errors import MethodError
from ..form import Form, SampleBlock
from ..terms import Array, gram, of_stack, predictors
from ..terms.losses import AbstractSmoothLoss
from ..terms.penalties import AbstractSmoothPenalty, row_norm

STEPPING = ", and the method steps along gradients"


class NodeGradients:
    """h_i(w_i) = f_i(w_i) + sum of the smooth ground edges of node i, for every node of a form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.ground = tuple(e for e in form.to_ground if isinstance(e.penalty, AbstractSmoothPenalty))

    @cached_property
    def counts(self) -> Array:
        """m_i, the number of samples at each node, (n,)."""
        return sum((np.bincount(b.node, minlength=self.form.n) for b in self.form.samples), np.zeros(self.form.n, int))

    def value(self, w: Array) -> Array:
        """h_i(w_i), (n,)."""
        losses = [np.bincount(block.node, block.values(w), self.form.n) for block in self.form.samples]
        ground = [np.bincount(edge.tail, edge.values(w), self.form.n) for edge in self.ground]
        return sum([*losses, *ground], np.zeros(self.form.n))

    def full(self, w: Array) -> Array:
        """grad h_i(w_i), (n, d)."""
        losses = [block.adjoint(block.prices(w), self.form.shape) for block in self.form.samples]
        return self._add_ground(w, sum(losses, np.zeros(self.form.shape)))

    def sampled(self, w: Array, uniform: Array) -> Array:
        """Unbiased estimates of grad h_i from b samples of each node, drawn with replacement by uniform (n, b): of
        the losses m_i / b times the sum over the samples drawn."""
        return self.at_samples(w, self.places(uniform))

    def places(self, uniform: Array) -> Array:
        """The samples drawn with replacement by uniform (n, b), each node's counted from 0; -1 where it is nan."""
        place = (np.nan_to_num(uniform) * self.counts[:, None]).astype(np.intp)
        return np.where(np.isnan(uniform), -1, np.minimum(place, np.maximum(self.counts - 1, 0)[:, None]))

    def at_samples(self, w: Array, place: Array) -> Array:
        """The estimates from given samples: ``place`` (n, b) counts the samples of each node from 0, in the order of
        the data; -1 is none. Nodes without samples have the gradient of their ground edges."""
        out = np.zeros(self.form.shape)
        for block, (nodes, rows, count) in zip(self.form.samples, self._rows, strict=True):
            chosen = rows[np.arange(len(nodes))[:, None], place[nodes]]  # (g, b) rows of the block
            b, factor = chosen.shape[1], _factors(count, place[nodes])
            out[nodes] += self._of_rows(block, w, np.repeat(nodes, b), chosen.ravel(), factor.ravel(), b)
        return self._add_ground(w, out)

    def _of_rows(self, block: SampleBlock, w: Array, node: Array, rows: Array, factor: Array, b: int) -> Array:
        """sum over the b rows of each node of factor s_r l'_r x_r, (g, d)."""
        offset, y = block.offset[rows], block.y[rows]
        if block.X is None:
            x, scale = w[node] + offset, (factor * block.scale_of(rows))[:, None]
            return (scale * block.loss.gradient(x, y)).reshape(-1, b, self.form.d).sum(axis=1)
        X = block.X[rows]
        if offset.ndim == 1:
            x = np.einsum("rj,rj->r", X, w[node]) + offset
            price = factor * block.scale_of(rows) * block.loss.gradient(x, y)
            return (price[:, None] * X).reshape(-1, b, self.form.d).sum(axis=1)
        x = np.einsum("rj,rjk->rk", X, w[node].reshape(len(rows), X.shape[1], -1)) + offset
        price = (factor * block.scale_of(rows))[:, None] * block.loss.gradient(x, y)
        return np.einsum("rj,rk->rjk", X, price).reshape(-1, b, self.form.d).sum(axis=1)

    def ground_gradient(self, w: Array) -> Array:
        """The gradient of the smooth ground edges of each node, (n, d)."""
        return self._add_ground(w, np.zeros(self.form.shape))

    def _add_ground(self, w: Array, out: Array) -> Array:
        for edge in self.ground:
            edge.add_adjoint(edge.gradients(w), out)
        return out

    # ---- Hessians ----------------------------------------------------------------------------------------------------
    def hessians(self, w: Array, place: Array | None = None) -> Array:
        """The Hessians of h_i at w_i, (n, d, d); with ``place`` (n, b) their estimates from those samples, as in
        `at_samples`."""
        out = np.zeros((self.form.n, self.form.d, self.form.d))
        for k, block in enumerate(self.form.samples):
            if place is None:
                out += block.sums(block.curvatures(w))
            else:
                nodes, rows, count = self._rows[k]
                chosen = rows[np.arange(len(nodes))[:, None], place[nodes]]
                out[nodes] += self._hessians_of(block, w[nodes], chosen, _factors(count, place[nodes]))
        for edge in self.ground:
            columns = edge.columns(self.form.d)
            np.add.at(out, (edge.tail[:, None, None], columns[:, None], columns), edge.curvatures(w))
        return out

    def _hessians_of(self, block: SampleBlock, w: Array, rows: Array, factor: Array) -> Array:
        """sum over the rows (g, b) of factor s_r l''_r x_r x_r' at the nodes' w (g, d)."""
        assert isinstance(block.loss, AbstractSmoothLoss)
        X = None if block.X is None else block.X[rows]
        x = (np.repeat(w[:, None], rows.shape[1], axis=1) if X is None else predictors(X, w)) + block.offset[rows]
        flat = block.loss.curvature(x.reshape(rows.size, *x.shape[2:]), block.y[rows.ravel()])
        curvature = flat.reshape(*rows.shape, *flat.shape[1:])
        weight = (factor * block.scale_of(rows)).reshape(*rows.shape, *[1] * (curvature.ndim - 2))
        if X is not None:
            return gram(X, weight * curvature)
        diagonal = (weight * curvature).sum(axis=1)
        return diagonal[:, :, None] * np.eye(diagonal.shape[1])

    @cached_property
    def shares(self) -> Array:
        """a_i with f_i = a_i F_i, (n,): the sum of the scales s_r of the samples, so that F_i is a mean loss; where
        there are none, of the weights of the ground edges."""
        samples, ground = np.zeros(self.form.n), np.zeros(self.form.n)
        for block in self.form.samples:
            samples += np.bincount(block.node, block.scale, self.form.n)
        for edge in self.ground:
            ground += np.bincount(edge.tail, edge.weight, self.form.n)
        return np.where(samples > 0, samples, ground)

    @cached_property
    def _rows(self) -> list[tuple[Array, Array, Array]]:
        """Per block its nodes, their rows (g, most), padded, and how many there are."""
        out: list[tuple[Array, Array, Array]] = []
        for block in self.form.samples:
            order = np.argsort(block.node, kind="stable")
            nodes, start, count = np.unique(block.node[order], return_index=True, return_counts=True)
            lane = np.arange(count.max(initial=0))
            rows = order[np.where(lane < count[:, None], start[:, None] + lane, start[:, None])]
            out.append((nodes, rows, count))
        return out

    # ---- constants ---------------------------------------------------------------------------------------------------
    @cached_property
    def smoothness(self) -> Array:
        """L_i, a bound of the largest eigenvalue of the Hessian of h_i: tight where the loss's bound is; inf where
        the loss has none, (n,)."""
        return self._extremes(_smoothness, largest=True) + self.ground_smoothness

    @cached_property
    def ground_smoothness(self) -> Array:
        """A bound of the largest eigenvalue of the Hessian of the smooth ground edges of each node, (n,)."""
        return self._ground_bound(largest=True)

    @cached_property
    def convexity(self) -> Array:
        """mu_i, a lower bound of the smallest eigenvalue of the Hessian of h_i, (n,)."""
        of_losses = self._extremes(lambda block: block.loss.least_curvature(), largest=False)
        return of_losses + self._ground_bound(largest=False)

    @cached_property
    def sample_smoothness(self) -> Array:
        """The largest smoothness of one sample's part of h_i, m_i s_r l_r plus the ground edges, (n,)."""
        out = np.zeros(self.form.n)
        for block in self.form.samples:
            squares = (block.norms**2).reshape(len(block.node), -1).max(axis=1)
            factor = _smoothness(block) * self.counts[block.node] * block.scale
            each = np.multiply(factor, squares, where=squares > 0.0, out=np.zeros(len(squares)))
            np.maximum.at(out, block.node, each)
        return out + self.ground_smoothness

    def expected_smoothness(self, batch: int | None) -> Array:
        """L_i with E[H^2] <= L_i E[H] for the Hessian H of a batch, the mean of b samples drawn with replacement:
        (1 - 1/b) L_i + max_k L_ik / b, as E[H^2] = (1 - 1/b) E[H]^2 + E[H_k^2] / b. Of all samples, L_i; (n,)."""
        if batch is None:
            return self.smoothness
        return (1.0 - 1.0 / batch) * self.smoothness + self.sample_smoothness / batch

    def _extremes(self, bound: Callable[[SampleBlock], float], *, largest: bool) -> Array:
        """bound(block) times the extreme eigenvalue of sum_r s_r x_r x_r' at each node."""
        out = np.zeros(self.form.n)
        for block in self.form.samples:
            factor = bound(block)
            if factor == 0.0:
                continue
            if block.X is None:
                out += factor * np.bincount(block.node, block.scale, self.form.n)
                continue
            values = of_stack(np.linalg.eigvalsh, block.sums(block.scale), 10.0)[:, -1 if largest else 0]
            out += np.multiply(factor, values, where=values > 0.0, out=np.zeros(self.form.n))
        return out

    def _ground_bound(self, *, largest: bool) -> Array:
        out = np.zeros(self.form.n)
        for edge in self.ground:
            assert isinstance(edge.penalty, AbstractSmoothPenalty)
            whole = edge.features is None or len(edge.features) == self.form.d
            convex = edge.penalty.strong_convexity() if whole else 0.0
            factor = edge.penalty.smoothness() if largest else convex
            out += np.bincount(edge.tail, factor * edge.weight, self.form.n)
        return out


def _factors(count: Array, place: Array) -> Array:
    """By how much each of the samples drawn counts in an estimate of the sum over all, (g, b)."""
    drawn = place >= 0
    return np.where(drawn, (count / np.maximum(drawn.sum(axis=1), 1))[:, None], 0.0)


def _smoothness(block: SampleBlock) -> float:
    return block.loss.smoothness() if isinstance(block.loss, AbstractSmoothLoss) else np.inf


def without_gradient(form: Form) -> tuple[str, ...]:
    """Losses and ground edges that have no gradient, as sentences."""
    out = [f"{name} is not smooth{STEPPING}" for name in sorted(form.losses_beside(AbstractSmoothLoss))]
    return (*out, *without_ground_gradient(form))


def without_ground_gradient(form: Form) -> tuple[str, ...]:
    """Ground edges that have no gradient, as sentences."""
    rough = [e for e in form.to_ground if not isinstance(e.penalty, AbstractSmoothPenalty)]
    return tuple(f"{edge.name} is not smooth{STEPPING}" for edge in rough)


def unbounded(form: Form) -> list[str]:
    """The names of the smooth losses without a bound of their curvature."""
    smooth = [block.loss for block in form.samples if isinstance(block.loss, AbstractSmoothLoss)]
    return sorted({type(loss).__name__ for loss in smooth if not np.isfinite(loss.smoothness())})


def without_bound(form: Form) -> tuple[str, ...]:
    """Smooth losses without a bound of their curvature, from which steps follow by default, as sentences."""
    remedy = "give step_size"
    return tuple(
        f"the curvature of {name} has no bound from which a step would follow: {remedy}" for name in unbounded(form)
    )


# ---- the prox of nodes by gradient steps -----------------------------------------------------------------------------
MOST_STEPS = 10_000
EASE = 0.7  # by which the curvature of a step is tried lower each time, where the loss has no bound of it
ROUNDING = 1e-14  # of a point: no tolerance is met more closely


INEXACT = Check(
    "a whole number of gradient steps, a number c for the tolerance c / (t + 1)^2, or a function of the round t",
    lambda given: callable(given) or (is_number(given) and 0.0 < given < np.inf),
)
TOLERANCE = inside("[0, inf]", "a tolerance >= 0")
Inexact = int | float | Callable[[int], float]


@dataclass(frozen=True)
class Accuracy:
    """The rule by which a node stops: after ``steps``, or within ``tolerance`` of its prox by (1)."""

    steps: int = MOST_STEPS
    tolerance: float = 0.0

    @staticmethod
    def of(given: Inexact, t: int, owner: str) -> Accuracy:
        """The accuracy in round t = 0, 1, ..., as the option ``inexact`` of a method says."""
        if isinstance(given, Integral):
            return Accuracy(steps=int(given))
        tolerance = given(t) if callable(given) else float(given) / (t + 1) ** 2
        return Accuracy(
            tolerance=float(TOLERANCE(tolerance, f"the value of {owner}(inexact=...) in round {t}", MethodError))
        )


def gradient_steps(
    gradients: NodeGradients, v: Array, tau: Array, warm: Array, memory: tuple[Any, ...], accuracy: Accuracy
) -> tuple[Array, tuple[Array]]:
    """Points near the prox of every node's losses, and as ``memory`` the curvatures of the last steps; () at first.

    Steps are 1/(L_i + 1/tau_i), L_i the smoothness of f_i. Where that is infinite (Poisson losses) L_i is the
    curvature of the last step, tried lower each time and doubled until the step does not go beyond the minimum along
    its direction: <grad h(w+), grad h(w)> >= 0, which also says that h has decreased.
    """
    bound = gradients.smoothness
    free, convexity = ~np.isfinite(bound), gradients.convexity + 1.0 / tau
    L = memory[0] if memory else np.where(free, 1.0, bound)
    has = gradients.counts > 0
    w = np.where(has[:, None], warm, v)

    def slope(w: Array) -> Array:
        return gradients.full(w) + (w - v) / tau[:, None]

    def stepped(w: Array, g: Array, L: Array, left: Array) -> tuple[Array, Array, Array]:
        """One step of the nodes ``left``; those without a bound shorten theirs until it does not overshoot."""
        while True:  # at most a thousand times: then L is infinite
            check_deadline()
            new = np.where(left[:, None], w - g / (L + 1.0 / tau)[:, None], w)
            g_new = slope(new)
            inner = np.einsum("ij,ij->i", g_new, g)
            over = left & free & np.isfinite(L) & ~((inner >= 0.0) & np.isfinite(g_new).all(axis=1))
            if not over.any():
                return new, g_new, L
            L = np.where(over, 2.0 * L, L)

    g = slope(w)
    for _ in range(accuracy.steps):
        check_deadline()
        left = has & (row_norm(g) / convexity > np.maximum(accuracy.tolerance, ROUNDING * row_norm(w)))
        if not left.any():
            break
        L = np.where(free & left, EASE * L, L)
        w, g, L = stepped(w, g, L, left)
    return w, (L,)


def without_steps(form: Form) -> tuple[str, ...]:
    """Losses with kinks, as sentences."""
    return without_gradient(replace(form, edges=()))
