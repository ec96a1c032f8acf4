"""The iterates of the interior-point method, and one step from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...certificate import common
from ...form import DualPoint, EdgeBlock, Form, in_parts, joined
from ...network import LocalView
from ...oracles import NewtonSystem
from ...running import Point
from ...terms import Array
from ...terms.penalties import AbstractSmoothPenalty
from .cones import TINY, Scaling, lengths
from .directions import Directions, Move, Solve

HALVINGS = 30  # of a step
INTERIOR = 0.99  # of the way to the boundary
BALANCE = 0.1  # of what the imbalance may be worth: no step aims at less complementarity, which it could not use
DAMPED = 1e-3  # share of the largest second derivatives, where steps begin to be damped
SIGHT = 0.5  # of the curvature along a step: what losses may add to it that it has not foreseen
MARGIN = 1e-12  # relative; nearer to it than rounding knows, nothing is
FINEST = 3e-12  # relative gap: what rounding leaves of scalings beyond it only spoils the iterate
EARLY = 1e-4  # relative gap: iterates from here on hug the boundary too closely to begin a neighbour's run

Cones = tuple[Array, ...]  # (1 + k, m) per block of edges with kinks


@dataclass(frozen=True)
class Interior:
    """w, and s and y strictly inside the cones."""

    w: Array  # (n, d)
    s: Cones
    y: Cones

    def blend(self, other: Interior, t: float) -> Interior:
        """(1 - t) self + t other, at the strength between those of the two: inside again, and conserved as they are."""

        def mixed(a: Array, b: Array) -> Array:
            return (1.0 - t) * a + t * b

        cones = (tuple(map(mixed, a, b)) for a, b in ((self.s, other.s), (self.y, other.y)))
        return Interior(mixed(self.w, other.w), *cones)


@dataclass(frozen=True)
class State:
    view: LocalView = field(repr=False)
    round: int
    at: Interior
    early: Interior  # the last iterate with a relative gap of EARLY or more, from which other strengths begin
    scalings: tuple[tuple[Array, Array, Array], ...]  # q, eta and v per block with kinks
    slope: Array  # grad f + K'u, in the order of the system
    point: Point
    most: float  # the capacity that is enough for every edge
    damped: float = 0.0  # the share of the largest second derivative of each loss that replaces the one at hand
    stuck: bool = False  # rounding, or a problem without an optimum, leaves nowhere to go
    gap: float = np.inf  # the complementarity, relative to P


def fits(form: Form) -> Callable[[EdgeBlock], bool]:
    """A test whether the penalty of a block is smooth, or has cones."""
    return lambda edge: isinstance(edge.penalty, AbstractSmoothPenalty) or bool(edge.penalty.pieces(form.width(edge)))


class InteriorBlocks:
    """The blocks of a form as the steps see them: those with kinks as cones, the others with their Hessians."""

    def __init__(self, view: LocalView, most: float | None = None) -> None:
        self.view, self.form = view, in_parts(view.form, fits(view.form))
        whole = self.form is view.form
        system = view.newton if whole else view.form.once("newton of parts", None, lambda: NewtonSystem(self.form))
        self.system: NewtonSystem = system
        self.most = sufficient_capacity(self.form) if most is None else most
        self.kinks = self.system.kinks
        self.smooth = {k: e for k, e in enumerate(self.form.edges) if isinstance(e.penalty, AbstractSmoothPenalty)}
        self.capacity = [self._capacity(k) for k in self.kinks]

    def _capacity(self, number: int) -> Array:
        edge = self.form.edges[number]
        c = np.minimum(edge.weight, self.most)
        return np.repeat(c, self.form.width(edge) // self.system.edges[number].k)

    # ---- edges as columns of cones, one per piece (of L1 per coordinate) -----------------------------------------
    def columns(self, number: int, u: Array) -> Array:
        return np.ascontiguousarray(u.reshape(-1, self.system.edges[number].k).T)

    def rows(self, number: int, u: Array) -> Array:
        """The other way round, (m, k)."""
        return np.ascontiguousarray(u.T).reshape(len(self.form.edges[number].tail), -1)

    def differences(self, number: int, w: Array) -> Array:
        return self.columns(number, self.form.edges[number].difference(w))

    # ---- the smooth terms -------------------------------------------------------------------------------------------
    def slopes(self, w: Array) -> tuple[tuple[Array, ...], dict[int, Array]]:
        """The gradients: prices of the samples, and flows of the edges without kinks by block."""
        return self.form.gradient_prices(w), {k: edge.gradients(w) for k, edge in self.smooth.items()}

    def bends(self, w: Array, damped: float) -> tuple[list[Array], dict[int, Array]]:
        """The Hessians of the same, (m, k, k) per block of the system, moved towards the largest that they have."""
        samples: list[Array] = []
        for block, rows in zip(self.form.samples, self.system.samples, strict=True):
            h = _damped(block.loss, block.loss.curvature(block.predict(w), block.y), damped)  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
            samples.append(block.scaled(h).reshape(-1, rows.k, rows.k))
        edges: dict[int, Array] = {}
        for number, edge in self.smooth.items():
            h = _damped(edge.penalty, edge.penalty.curvature(edge.difference(w)), damped)  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
            h = edge.weight.reshape(-1, *[1] * (h.ndim - 1)) * h
            k = self.system.edges[number].k
            edges[number] = h.reshape(-1, k, k)
        return samples, edges

    def flows(self, smooth: dict[int, Array], y: Cones) -> tuple[Array, ...]:
        cones = dict(zip(self.kinks, y, strict=True))
        every = range(len(self.form.edges))
        return tuple(smooth[k] if k in smooth else self.rows(k, -cones[k][1:]) for k in every)

    def joined(self, flows: Sequence[Array]) -> tuple[Array, ...]:
        """The flows of the form itself, whose penalties may be sums."""
        return joined(self.view.form, fits(self.view.form), flows)

    # ---- states -----------------------------------------------------------------------------------------------------
    def state(self, at: Interior) -> State:
        """The state before the first step."""
        point, slope = self._slope(at)
        scalings = (Scaling.of(s, y) for s, y in zip(at.s, at.y, strict=True))
        carried = tuple((each.q, each.eta, each.v) for each in scalings)
        return State(self.view, 0, at, at, carried, slope, point, self.most)

    def step(self, before: State) -> State:
        at, system = before.at, self.system
        scalings = [Scaling(*each) for each in before.scalings]
        reduced = [scaling.reduced() for scaling in scalings]
        samples, edges = self.bends(at.w, before.damped)
        edges.update((k, D) for k, (_, _, D) in zip(self.kinks, reduced, strict=True))
        blocks = [*samples, *(edges[k] for k in range(len(edges)))]
        solve = system.factorised(blocks)
        rows = [system.edges[k] for k in self.kinks]
        newton = Directions(rows, solve, scalings, reduced, before.slope)
        worth = float(np.abs(before.slope).sum()) * float(np.abs(at.w).max(initial=0.0))
        cones = max(sum(each.v.shape[1] for each in scalings), 1)
        move = newton.move(max(_complementarity(scalings), BALANCE * worth) / cones)
        t, (after, scalings, point, slope) = self._moved(at, move, newton)
        damped = before.damped / 10.0 if t > 0.5 * min(1.0, move.max_step) else max(DAMPED, 10.0 * before.damped)
        damped = min(damped, 1.0) if damped >= DAMPED else 0.0
        gap = _complementarity(scalings) / max(abs(self.form.primal(after.w)), TINY)
        early = before.early if gap < EARLY else after
        carried = tuple((each.q, each.eta, each.v) for each in scalings)
        point = self._conserved(point, slope, solve, blocks)
        ended = 0.0 < gap < FINEST
        return State(self.view, before.round + 1, after, early, carried, slope, point, self.most, damped, ended, gap)

    def _slope(self, at: Interior) -> tuple[Point, Array]:
        """w with its flows and prices, and grad f + K'u in the order of the system: how far they are from balance."""
        prices, smooth = self.slopes(at.w)
        flows = self.flows(smooth, at.y)
        return (at.w, flows, prices), self.system.vector(self.form.conservation(DualPoint(flows, prices)))

    def _moved(
        self, at: Interior, move: Move, newton: Directions
    ) -> tuple[float, tuple[Interior, list[Scaling], Point, Array]]:
        """The length of the step and the next iterate: as far as the cones allow, and not so far that gradients of
        losses that are not quadratic turn against it.

        With H the Hessian of the step, the gradients at its end minus (1 - t) those before are what H has not foreseen.
        """
        t = min(1.0, INTERIOR * move.max_step)
        for _ in range(HALVINGS):
            after, scalings = self._along(at, move, newton, t)
            point, slope = self._slope(after)
            unforeseen = float((slope - (1.0 - t) * newton.slope) @ move.x)
            worth = float(np.abs(slope).sum()) * float(np.abs(after.w).max(initial=0.0))
            if unforeseen <= SIGHT * move.bend or worth <= _complementarity(scalings):
                return t, (after, scalings, point, slope)
            t *= 0.5
        raise ArithmeticError("no step is short enough for its Hessian")

    def _along(self, at: Interior, move: Move, newton: Directions, t: float) -> tuple[Interior, list[Scaling]]:
        w = at.w + t * self.system.matrix(move.x)
        s: list[Array] = []
        y: list[Array] = []
        scalings: list[Scaling] = []
        each = zip(self.kinks, self.capacity, newton.scalings, move.s, move.y, strict=True)
        for number, c, scaling, ds, dy in each:
            one, two = scaling.v + t * ds, scaling.v + t * dy
            z, u = self.differences(number, w), scaling.undo(two)[1:]
            u *= np.minimum(1.0, (1.0 - MARGIN) * c / np.maximum(lengths(u), TINY))
            y.append(np.vstack([c, u]))
            s.append(np.vstack([np.maximum(scaling.apply(one)[0], (1.0 + MARGIN) * lengths(z) + TINY), z]))
            scalings.append(scaling.moved(one, two))
        return Interior(w, tuple(s), tuple(y)), scalings

    def _conserved(self, point: Point, slope: Array, solve: Solve, blocks: list[Array]) -> Point:
        """The point with what flows and prices change by, to first order, in the Newton step that balances them."""
        w, flows, prices = point
        assert flows is not None
        assert prices is not None
        x = solve(-slope)
        many = len(prices)
        moved: list[Array] = []
        for value, rows, D in zip((*prices, *flows), (*self.system.samples, *self.system.edges), blocks, strict=True):
            moved.append(value + np.einsum("mij,jm->mi", D, rows.apply(x)).reshape(value.shape))
        return w, tuple(moved[many:]), tuple(moved[:many])


def sufficient_capacity(form: Form) -> float:
    """A capacity that no edge with kinks needs: with all larger ones cut down to it, the minimisers are the same.

    Some optimal flow runs in no circles, so that no edge carries more than flows in at all nodes together: at most
    sum_r s_r ||x_r|| |l'_r| <= sqrt(2 L sum_r s_r ||x_r||^2 (P(v) - inf P)) for losses of smoothness L, at any v such
    as the best common model, and so for smooth penalties. At twice that no flow fills an edge which is cut down, and
    its ends agree. Where kinks have centers there may be flows in circles, through the ground.
    """
    if any(edge.center is not None for edge in form.edges if not isinstance(edge.penalty, AbstractSmoothPenalty)):
        return np.inf
    lowest, supply = 0.0, 0.0
    for block in form.samples:
        zero, squares = np.zeros_like(block.offset), block.norms.reshape(len(block.node), -1)[:, 0] ** 2
        lowest -= float(block.conjugates(zero).sum())
        supply += float(np.sqrt(2.0 * block.loss.smoothness() * (block.scale @ squares)))  # pyright: ignore[reportAttributeAccessIssue]  (smooth)
    for edge in form.edges:
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            supply += 2.0 * float(np.sqrt(edge.penalty.smoothness() * edge.weight.sum() * len(edge.ends)))
    best = common(form)
    most = 2.0 * supply * np.sqrt(max(best.value, best.floor, lowest) - lowest)
    return most if 0.0 < most < np.inf else np.inf


def _damped(term: Any, h: Array, damped: float) -> Array:
    """(1 - damped) h + damped L, where second derivatives are at most L."""
    L = term.smoothness()
    if damped == 0.0 or not np.isfinite(L):
        return h
    return (1.0 - damped) * h + damped * L * (np.eye(h.shape[-1]) if h.ndim == 3 else 1.0)


def _complementarity(scalings: list[Scaling]) -> float:
    """The sum of <s_e, y_e> = ||v_e||^2."""
    return sum(float(np.vdot(each.v, each.v)) for each in scalings)
