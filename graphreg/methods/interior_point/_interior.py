"""The iterates of the interior-point method, and one step from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...certificate import common
from ...form import DualPoint, EdgeBlock, Form, Held, SampleBlock, fixes, in_parts, joined
from ...network import LocalView
from ...oracles import NewtonSystem, SystemRows
from ...running import Point
from ...terms import Array
from ...terms.penalties import AbstractBox, AbstractSmoothPenalty
from .cones import TINY, Scaling, lengths
from .directions import AbstractPulls, Directions, Move, Pull, Solve, pulling

HALVINGS = 30  # of a step
INTERIOR = 0.99  # of the way to the boundary
BALANCE = 0.1  # of what the imbalance may be worth: no step aims at less complementarity, which it could not use
DAMPED = 1e-3  # share of the largest second derivatives, where steps begin to be damped
SIGHT = 0.5  # of the curvature along a step: what losses may add to it that it has not foreseen
MARGIN = 1e-12  # relative; nearer to it than rounding knows, nothing is
FINEST = 3e-12  # relative gap: what rounding leaves of scalings beyond it only spoils the iterate
EARLY = 1e-4  # relative gap: iterates from here on hug the boundary too closely to begin a neighbour's run

FLAT = 1e-9  # share of the largest second derivative of a penalty that is its least, where its inverse is needed

Cones = tuple[Array, ...]  # (1 + k, m) per block of edges with kinks, (1, m) per side of bounds


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
    fell: tuple[int, float] = (0, np.inf)  # the round in which it was last half of what it had been, and what it was


def fits(form: Form) -> Callable[[EdgeBlock], bool]:
    """A test whether the penalty of a block is smooth, has cones, or bounds, or says what nodes are."""

    def fit(edge: EdgeBlock) -> bool:
        known = isinstance(edge.penalty, AbstractSmoothPenalty | AbstractBox) or edge.penalty.is_maximum
        return known or fixes(form, edge) or bool(edge.penalty.pieces(form.width(edge)))

    return fit


@dataclass(frozen=True)
class Cone:
    """The cones of a block, one per column: (t, z) with t >= ||z|| and c t in the objective; of bounds on one side,
    side (z - c) >= 0; of the largest of k numbers on one side, t + side z_j >= 0 for each, and c t in the objective."""

    number: int
    k: int
    c: Array
    side: float = 0.0  # 0 of Euclidean norms
    of: Array | None = None  # the numbers of the block that have a bound; None where there are no bounds

    def columns(self, z: Array) -> Array:
        """What rows (m, k) are in the cones, (k, m)."""
        if self.of is not None:
            return self.side * (z.ravel()[self.of] - self.c)[None]
        if self.side:
            return (np.abs(z).max(axis=1, initial=0.0)[:, None] + self.side * z).reshape(1, -1)
        return np.ascontiguousarray(z.reshape(-1, self.k).T)

    def even(self) -> Array:
        """The y of a side of largest numbers that are equal, with their sum over both sides c."""
        return np.repeat(self.c / (2.0 * self.k), self.k)[None]


class InteriorBlocks:
    """The blocks of a form as the steps see them: those with kinks or bounds as cones, the others with their
    Hessians."""

    def __init__(self, view: LocalView, most: float | None = None) -> None:
        self.view, self.form = view, in_parts(view.form, fits(view.form))
        whole = self.form is view.form
        system = view.newton if whole else view.form.once("newton of parts", None, lambda: NewtonSystem(self.form))
        self.system: NewtonSystem = system
        self.most = sufficient_capacity(self.form) if most is None else most
        self.smooth = {k: e for k, e in enumerate(self.form.edges) if isinstance(e.penalty, AbstractSmoothPenalty)}
        self.held = Held(self.form) if system.free is not None else None
        self.cones = [cone for number, edge in enumerate(self.form.edges) for cone in self._cones(number, edge)]
        self.norms = [cone for cone in self.cones if not cone.side]

    def _cones(self, number: int, edge: EdgeBlock) -> Iterator[Cone]:
        if isinstance(edge.penalty, AbstractBox):
            for side, bound in ((1.0, edge.penalty.low), (-1.0, edge.penalty.high)):
                each = np.broadcast_to(bound, (edge.count, self.form.width(edge))).ravel()
                of = np.flatnonzero(np.isfinite(each))
                if len(of):
                    yield Cone(number, 1, each[of], side, of)
        elif number in self.system.kinks:
            c, k = np.minimum(edge.weight, self.most), self.system.edges[number].k
            yield Cone(number, k, np.repeat(c, self.form.width(edge) // k))
        elif edge.penalty.is_maximum:
            yield Cone(number, self.form.width(edge), edge.weight, -1.0)
            yield Cone(number, self.form.width(edge), edge.weight, 1.0)

    def rows(self, number: int, u: Array) -> Array:
        """Columns of the cones of norms as rows, (m, k)."""
        return np.ascontiguousarray(u.T).reshape(self.form.edges[number].count, -1)

    def differences(self, cone: Cone, w: Array) -> Array:
        return cone.columns(self.form.edges[cone.number].difference(w))

    def off(self, cone: Cone, w: Array, s: Array) -> Array | float:
        """s - z, what the rows are from where the cones say; 0 where s is made from w."""
        if cone.of is not None:
            return s - self.differences(cone, w)
        made = cone.side or self.system.edges[cone.number].places is None
        return 0.0 if made else s[1:] - self.differences(cone, w)

    # ---- the smooth terms -------------------------------------------------------------------------------------------
    def slopes(self, w: Array) -> tuple[tuple[Array, ...], dict[int, Array]]:
        """The gradients: prices of the samples, and flows of the edges without kinks by block."""
        return self.form.gradient_prices(w), {k: edge.gradients(w) for k, edge in self.smooth.items()}

    def bends(self, w: Array, damped: float) -> tuple[list[Array], dict[int, Array]]:
        """The Hessians of the same, (m, k, k) per block of the system, moved towards the largest that they have."""
        each = zip(self.form.samples, self.system.samples, strict=True)
        samples = [_bend(block, block.loss, block.scale, rows, w, damped) for block, rows in each]
        smooth = ((number, edge, self.system.edges[number]) for number, edge in self.smooth.items())
        return samples, {k: _bend(edge, edge.penalty, edge.weight, rows, w, damped) for k, edge, rows in smooth}

    def flows(self, smooth: dict[int, Array], y: Cones) -> tuple[Array, ...]:
        out = dict(smooth)
        for cone, each in zip(self.cones, y, strict=True):
            if cone.side:
                edge = self.form.edges[cone.number]
                u = out.setdefault(cone.number, np.zeros((edge.count, self.form.width(edge))))
                u.ravel()[slice(None) if cone.of is None else cone.of] -= cone.side * each[0]
            else:
                out[cone.number] = self.rows(cone.number, -each[1:])
        every = enumerate(self.form.edges)
        return tuple(out[k] if k in out else np.zeros((edge.count, self.form.width(edge))) for k, edge in every)

    def balanced(self, flows: tuple[Array, ...], prices: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        """The flows, of which those that hold nodes take up what is left there, and what is left elsewhere."""
        left = self.form.conservation(DualPoint(flows, prices))
        if self.held is None:
            return flows, left
        return self.held.flows(self.form, flows, left), np.where(self.held.mask, 0.0, left)

    def resized(self, y: Cones) -> Cones:
        """The y of other strengths, as large a share of the capacities here as there."""
        sums: dict[int, Array] = {}
        for cone, each in zip(self.cones, y, strict=True):
            if cone.side and cone.of is None:
                sums[cone.number] = each.reshape(-1, cone.k).sum(axis=1) + sums.get(cone.number, 0.0)
        out: list[Array] = []
        for cone, each in zip(self.cones, y, strict=True):
            share = cone.c / each[0] if not cone.side else 1.0
            out.append(each * (np.repeat(cone.c / sums[cone.number], cone.k) if cone.number in sums else share))
        return tuple(out)

    def joined(self, flows: Sequence[Array]) -> tuple[Array, ...]:
        """The flows of the form itself, whose penalties may be sums."""
        return joined(self.view.form, fits(self.view.form), flows)

    def typical_pull(self, w: Array) -> float:
        """The root mean square of the gradients of the losses; 1 where they are 0."""
        flows = self.form.nothing().flows
        pull = self.form.conservation(DualPoint(flows, self.form.gradient_prices(w)))
        return float(np.sqrt(np.mean(pull**2))) or 1.0

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
        samples, edges = self.bends(at.w, before.damped)
        offs = [self.off(cone, at.w, each) for cone, each in zip(self.cones, at.s, strict=True)]
        pulls = self._pulls(scalings, offs)
        edges.update((number, pull.D) for number, pull in pulls.items())
        none = (np.zeros((rows.m, rows.k, rows.k)) for rows in system.edges)  # of what holds nodes
        blocks = [*samples, *(edges.get(k, zero) for k, zero in enumerate(none))]
        solve = system.factorised(blocks)
        newton = Directions(pulls.values(), solve, scalings, before.slope)
        worth = float(np.abs(before.slope).sum()) * float(np.abs(at.w).max(initial=0.0))
        each = zip(self.cones, offs, at.y, strict=True)
        worth += sum(float(np.abs(off * (y if cone.side else y[1:])).sum()) for cone, off, y in each)
        cones = max(sum(each.v.shape[1] for each in scalings), 1)
        move = newton.move(max(_complementarity(scalings), BALANCE * worth) / cones)
        t, (after, scalings, point, slope) = self._moved(at, move, newton)
        damped = before.damped / 10.0 if t > 0.5 * min(1.0, move.max_step) else max(DAMPED, 10.0 * before.damped)
        damped = min(damped, 1.0) if damped >= DAMPED else 0.0
        gap = _complementarity(scalings) / max(abs(self._primal(after.w)), TINY)
        early = before.early if gap < EARLY else after
        carried = tuple((each.q, each.eta, each.v) for each in scalings)
        point = self._conserved(point, slope, solve, blocks)
        ended = 0.0 < gap < FINEST
        return State(self.view, before.round + 1, after, early, carried, slope, point, self.most, damped, ended, gap)

    def _primal(self, w: Array) -> float:
        """P(w) without the constraints, which w may violate."""
        beside = {cone.number for cone in self.cones if cone.of is not None}
        if not beside and self.held is None:
            return self.form.primal(w)
        kept = [e for k, e in enumerate(self.form.edges) if k not in beside and not fixes(self.form, e)]
        return replace(self.form, edges=tuple(kept)).primal(w)

    def _pulls(self, scalings: list[Scaling], offs: list[Array | float]) -> dict[int, AbstractPulls]:
        """What the cones of each block pull with."""
        pulls: dict[int, list[Pull]] = {}
        for place, (cone, scaling, off) in enumerate(zip(self.cones, scalings, offs, strict=True)):
            pulls.setdefault(cone.number, []).append(Pull(place, scaling, cone.side, cone.of, off))
        return {number: pulling(self.system.edges[number], each) for number, each in pulls.items()}

    def _slope(self, at: Interior) -> tuple[Point, Array]:
        """w with its flows and prices, and grad f + K'u in the order of the system: how far they are from balance."""
        prices, smooth = self.slopes(at.w)
        flows, left = self.balanced(self.flows(smooth, at.y), prices)
        return (at.w, flows, prices), self.system.vector(left)

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
        each = zip(self.cones, newton.scalings, move.s, move.y, at.y, strict=True)
        for cone, scaling, ds, dy, before in each:
            one, two = scaling.v + t * ds, scaling.v + t * dy
            if cone.side:
                s.append(scaling.apply(one))
                y.append(scaling.undo(two))
            else:
                top, z = (moved := scaling.apply(one))[0], moved[1:]
                rows = self.system.edges[cone.number]
                if rows.places is None:
                    u, z = scaling.undo(two)[1:], self.differences(cone, w)
                else:  # the scaled ones have lost the digits of the balance
                    u = before[1:] - t * rows.columns(move.x[rows.places])
                u *= np.minimum(1.0, (1.0 - MARGIN) * cone.c / np.maximum(lengths(u), TINY))
                y.append(np.vstack([cone.c, u]))
                s.append(np.vstack([np.maximum(top, (1.0 + MARGIN) * lengths(z) + TINY), z]))
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
        each = zip((*prices, *flows), (*self.system.samples, *self.system.edges), blocks, strict=True)
        for value, rows, D in each:
            by = np.einsum("mij,jm->mi", D, rows.apply(x)) if rows.places is None else x[rows.places]
            moved.append(value + by.reshape(value.shape))
        new = tuple(moved[:many])
        return w, self.balanced(tuple(moved[many:]), new)[0] if self.held else tuple(moved[many:]), new


def sufficient_capacity(form: Form) -> float:
    """A capacity that no edge with kinks needs: with all larger ones cut down to it, the minimisers are the same.

    Some optimal flow runs in no circles, so that no edge carries more than flows in at all nodes together: at most
    sum_r s_r ||x_r|| |l'_r| <= sqrt(2 L sum_r s_r ||x_r||^2 (P(v) - inf P)) for losses of smoothness L, at any v such
    as the best common model, and so for smooth penalties. At twice that no flow fills an edge which is cut down, and
    its ends agree. Where kinks have centers there may be flows in circles, through the ground; of bounds, and of rows
    that are no edges, nothing is known.
    """
    rough = [edge for edge in form.edges if not isinstance(edge.penalty, AbstractSmoothPenalty)]
    if form.unlike_edges or any(e.center is not None or not e.penalty.pieces(form.width(e)) for e in rough):
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


def _bend(block: SampleBlock | EdgeBlock, term: Any, scale: Array, rows: SystemRows, w: Array, damped: float) -> Array:
    """The Hessians of a block at w, scales and damping included; their inverses where its flows are unknowns."""
    inverse = rows.places is not None
    targets = (block.y,) if isinstance(block, SampleBlock) else ()
    h = _damped(term, term.curvature(block.difference(w), *targets), max(damped, FLAT) if inverse else damped)
    h = (scale.reshape(-1, *[1] * (h.ndim - 1)) * h).reshape(-1, rows.k, rows.k)
    return np.linalg.inv(np.maximum(h, TINY) if rows.k == 1 else h) if inverse else h


def _damped(term: Any, h: Array, damped: float) -> Array:
    """(1 - damped) h + damped L, where second derivatives are at most L."""
    L = term.smoothness()
    if damped == 0.0 or not np.isfinite(L):
        return h
    return (1.0 - damped) * h + damped * L * (np.eye(h.shape[-1]) if h.ndim == 3 else 1.0)


def _complementarity(scalings: list[Scaling]) -> float:
    """The sum of <s_e, y_e> = ||v_e||^2."""
    return sum(float(np.vdot(each.v, each.v)) for each in scalings)
