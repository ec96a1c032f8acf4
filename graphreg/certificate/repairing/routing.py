"""Flows and prices at the kinks near a point, within their capacities: a bounded least-squares problem.

    minimise 1/2 ||D^1/2 (K'u + X'a)||^2 over the flows and prices at kinks, the others being the gradients at w

D_i is the inverse Hessian of the losses at node i, so that D (K'u + X'a) is the Newton step that what is out of balance
would cause. By accelerated projected gradients (Beck & Teboulle 2009) that begin anew where they turn back (O'Donoghue
& Candes 2015).

Which kinks are near is a guess, and so is what comes out: the certificate judges it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractNorm, AbstractSmoothPenalty, row_norm
from .feasible import tied_means, tied_parts
from .linear import System, edge_system

ROUNDS = 300
BALANCED = 1e-13  # of the imbalance at the beginning
STUCK, PATIENCE = 0.5, 100  # where so many rounds leave more than this of it, capacities or the guess stand against it
POWER = 20  # products for the largest eigenvalue


@dataclass(frozen=True)
class Kinks:
    """The flows and prices that are free: masks (m, k) over the flows of every edge block, and for every sample
    block the least and the largest price, which are equal where there is no kink."""

    flows: tuple[Array, ...]
    prices: tuple[tuple[Array, Array], ...]

    def same(self, other: Kinks | None) -> bool:
        return other is not None and all(map(np.array_equal, self.masks.parts, other.masks.parts))

    def any(self) -> bool:
        return any(mask.any() for mask in self.masks.parts)

    @property
    def masks(self) -> DualPoint:
        """What is free, in the place of flows and of prices."""
        return DualPoint(self.flows, tuple(low < high for low, high in self.prices))


def kinks(form: Form, w: Array, distance: float) -> Kinks:
    """The kinks that a move of every coordinate of w by ``distance`` may reach."""
    flows = tuple(_near(edge, edge.difference(w), distance) for edge in form.edges)
    return Kinks(flows, tuple(_interval(block, w, distance) for block in form.samples))


def _near(edge: EdgeBlock, z: Array, distance: float) -> Array:
    """Norms whose kinks are at 0, by pieces; other penalties with kinks have them anywhere."""
    k = z.shape[1]
    if isinstance(edge.penalty, AbstractSmoothPenalty):
        return np.zeros(z.shape, dtype=bool)
    if not isinstance(edge.penalty, AbstractNorm):
        return np.ones(z.shape, dtype=bool)
    p = edge.penalty.pieces(k) or k
    lengths = row_norm(z.reshape(-1, p)).reshape(len(z), -1)
    return np.repeat(lengths <= distance, p, axis=1)


def _interval(block: SampleBlock, w: Array, distance: float) -> tuple[Array, Array]:
    """The prices s l' between the ends of the interval in which the predictor may be."""
    if isinstance(block.loss, AbstractSmoothLoss) or block.width > 1:
        a = block.prices(w)
        return a, a
    x, s = block.predict(w), block.scale
    reach = distance * block.norms
    low, high = (s * block.loss.clip(block.loss.gradient(at, block.y), block.y) for at in (x - reach, x + reach))
    return np.minimum(low, high), np.maximum(low, high)


class RoutingProblem:
    """The problem at one point, for any guess of the kinks."""

    def __init__(self, form: Form, w: Array) -> None:
        self.form, self.w = form, w
        bends = tuple(_bends(block, w) for block in form.samples)
        none = tuple(np.zeros((edge.count, 1)) for edge in form.edges)
        self.newton_step = System(form, DualPoint(none, bends)).precondition
        self.steps = self._steps()

    def __call__(self, found: Kinks, flows: tuple[Array, ...] | None = None, rounds: int = ROUNDS) -> DualPoint:
        """Flows and prices near the gradients at w, and as balanced as the kinks allow.

        ``flows`` at the kinks are where to begin, by default 0.
        """
        form = self.form
        begin = form.nothing().flows if flows is None else flows
        fixed = tuple(e.weight[:, None] * e.penalty.subgradient(e.difference(self.w)) for e in form.edges)
        each = zip(found.flows, form.edges, begin, fixed, strict=True)
        u = tuple(np.where(free, edge.clip(v), g) for free, edge, v, g in each)
        a = tuple((low + high) / 2 for low, high in found.prices)
        return self._balanced(found, DualPoint(u, a), rounds) if found.any() else DualPoint(u, a)

    def _balanced(self, found: Kinks, point: DualPoint, rounds: int) -> DualPoint:
        shorter = 1.0 / self._largest(found)
        ahead, t, began = point, 1.0, None
        for k in range(rounds):
            r = self.form.conservation(ahead)
            size = float(np.linalg.norm(r))
            began = size if began is None else began
            if size <= BALANCED * began or (k == PATIENCE and size > STUCK * began):
                break
            new = self._projected(found, ahead, self.newton_step(r), shorter)
            each = zip(*((*p.flows, *p.prices) for p in (ahead, new, point)), strict=True)
            back = sum(float(np.vdot(p - q, q - o)) for p, q, o in each)
            following = 1.0 if back > 0.0 else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            carry = 0.0 if back > 0.0 else (t - 1.0) / following
            ahead = self.form.mapped(lambda _, q, o, c=carry: q + c * (q - o), new, point)
            point, t = new, following
        return point

    def _projected(self, found: Kinks, point: DualPoint, v: Array, shorter: float) -> DualPoint:
        """A step along the gradients, and back within the capacities."""
        flows, prices = [], []
        for edge, u, free, step in zip(self.form.edges, point.flows, found.flows, self.steps.flows, strict=True):
            flows.append(self._flow(edge, u, free, v, shorter * step) if free.any() else u)
        for block, a, (low, high), step in zip(
            self.form.samples, point.prices, found.prices, self.steps.prices, strict=True
        ):
            moved = a if low is high else a - shorter * block.column(step) * block.apply(v)
            prices.append(np.clip(moved, low, high))
        return DualPoint(tuple(flows), tuple(prices))

    def _flow(self, edge: EdgeBlock, u: Array, free: Array, v: Array, step: Array) -> Array:
        if isinstance(edge.penalty, AbstractNorm):
            return np.where(free, edge.clip(u - step[:, None] * edge.apply(v)), u)
        # what may have kinks anywhere: the price of leaving the subgradients at w is paid as well
        ahead = edge.difference(self.w) - edge.apply(v)
        return edge.penalty.dual_prox(u + step[:, None] * ahead, step, edge.weight)

    def _steps(self) -> DualPoint:
        """One over what a flow or price by itself bends the objective by, (m,) and (M,)."""
        form, unit = self.form, np.eye(self.form.d)
        bend = np.max([np.abs(self.newton_step(np.tile(e, (form.n, 1))) @ e) for e in unit], axis=0)
        flows = tuple(1.0 / _bend_along(edge, bend, form.d) for edge in form.edges)
        prices = tuple(1.0 / np.maximum(_bend_along(block, bend, form.d), 1e-300) for block in form.samples)
        return DualPoint(flows, prices)

    def _largest(self, found: Kinks) -> float:
        """The largest eigenvalue of the Hessian in these steps, a little above it; by the power method."""
        form, v, size = self.form, np.random.default_rng(0).standard_normal(self.form.shape), 1.0

        def moved(block: SampleBlock | EdgeBlock, free: Array, step: Array) -> Array:
            return free * block.column(step) * block.apply(v)

        for _ in range(POWER):
            new = self.newton_step(form.conservation(form.mapped(moved, found.masks, self.steps)))
            size = float(np.linalg.norm(new)) / float(np.linalg.norm(v))
            if not 0.0 < size < np.inf:
                return 1.0
            v = new / np.linalg.norm(new)
        return 1.1 * size


def _bend_along(block: EdgeBlock | SampleBlock, bend: Array, d: int) -> Array:
    """What the flow of each row, or the price, bends the objective by, of what it does at the nodes."""
    if block.map.noun == "row":
        return (block.map.flat(d).power(2) @ np.repeat(bend, d)).reshape(block.count, -1).max(axis=1)
    if isinstance(block, SampleBlock):
        return bend[block.node] * block.norms.reshape(block.count, -1).max(axis=1, initial=0.0) ** 2
    return bend[block.tail] + np.where(block.head < 0, 0.0, bend[block.head])


def _bends(block: SampleBlock, w: Array) -> Array:
    """s l'' at w, or a typical one where the loss has kinks."""
    if isinstance(block.loss, AbstractSmoothLoss):
        return block.curvatures(w)
    typical = block.scale * block.loss.typical_curvature(block.predict(w), block.y)
    return typical if block.offset.ndim == 1 else np.repeat(typical[:, None], block.width, axis=1)


# ---- flows across edges whose ends agree, where a method has none ----------------------------------------------------
FINE = 1e-9  # the relative residual of the linear solve


def consensus_flows(
    form: Form, w: Array, flows: tuple[Array, ...], prices: tuple[Array, ...]
) -> tuple[tuple[Array, ...], int]:
    """The flows with those that level out, over the edges between nodes that agree at w, what the others and the prices
    leave of the conservation, and the rounds of messages that it takes to find them.

    There any flow within the capacity is a subgradient; those of a consensus (Zero) have none. The mean of what is left
    over the nodes that are tied stays: no flow between them can change it. The prices that a consensus needs at its
    nodes are far from balanced one by one: left to the repair alone, they would be moved as well.
    """
    level = [(edge.difference(w) == 0.0).all(axis=1) & (edge.map.noun == "edge") for edge in form.edges]
    ties = [edge.part(rows) for edge, rows in zip(form.edges, level, strict=True) if rows.any()]
    if not ties or not all(np.isfinite(part).all() for part in (*flows, *prices)):
        return flows, 0
    flows = tuple(np.where(rows[:, None], 0.0, u) for u, rows in zip(flows, level, strict=True))
    r = form.conservation(DualPoint(flows, prices))
    r -= tied_means(tied_parts(form, ties), r)
    C = tuple(rows[:, None].astype(float) for rows in level)
    z, iterations = edge_system(form, C).solve(r, FINE)  # r has no part that they cannot carry
    each = zip(form.edges, flows, level, strict=True)
    return tuple(np.where(rows[:, None], -edge.apply(z), u) for edge, u, rows in each), iterations + 1
