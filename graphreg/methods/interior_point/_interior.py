"""The iterates of the interior-point method, and one step from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...certificate import common
from ...form import DualPoint, EdgeBlock, Form, Held, SampleBlock, fixes, in_parts, joined
from ...network import LocalView
from ...oracles import NewtonSystem, SystemRows
from ...running import Point
from ...terms import Array, product, strengths
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractBox, AbstractSmoothPenalty
from .cones import TINY, Scaling
from .directions import Directions, Move, Solve
from .kinks import AbstractCones, AbstractPulls, BoxCones, CostCones, HeightCones, NormCones, SideCones, has_costs

HALVINGS = 30  # of a step
INTERIOR = 0.99  # of the way to the boundary
BALANCE = 0.1  # of what the imbalance may be worth: no step aims at less complementarity, which it could not use
SIGHT = 0.5  # of the curvature along a step: what losses may add to it that it has not foreseen
FINEST = 3e-12  # relative gap: what rounding leaves of scalings beyond it only spoils the iterate
STILL = 1e-3  # of the complementarity of a cone: what a step of typical lengths costs, lest w runs off where it is free
REFINEMENTS = 4  # of a point that is to be balanced
LESS, TIDY = 0.5, 1e-14  # of the imbalance what a refinement must leave at most; of the largest flow what needs none
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
        pairs = (zip(a, b, strict=True) for a, b in (((self.w,), (other.w,)), (self.s, other.s), (self.y, other.y)))
        (w,), s, y = (tuple((1.0 - t) * a + t * b for a, b in each) for each in pairs)
        return Interior(w, s, y)


@dataclass(frozen=True)
class State:
    view: LocalView = field(repr=False)
    round: int
    at: Interior
    early: Interior  # the last iterate with a relative gap of EARLY or more, from which other strengths begin
    scalings: tuple[tuple[Array, Array, Array], ...]  # q, eta and v per block with kinks
    slope: Array  # grad f + K'u, in the order of the system
    point: Point
    stuck: bool = False  # rounding, or a problem without an optimum, leaves nowhere to go
    primal: float = np.inf
    gap: float = np.inf  # the complementarity, relative to P: what it will certify to, about
    fell: tuple[int, float, float] = (0, np.inf, np.inf)  # when it or the imbalance last halved, and both


def fits(form: Form) -> Callable[[EdgeBlock], bool]:
    """A test whether the penalty of a block is smooth, has cones, or bounds, or says what nodes are."""

    def fit(edge: EdgeBlock) -> bool:
        known = isinstance(edge.penalty, AbstractSmoothPenalty | AbstractBox) or edge.penalty.is_maximum
        k = form.width(edge)
        return known or fixes(form, edge) or bool(edge.penalty.pieces(k)) or has_costs(edge.penalty, k)

    return fit


class InteriorBlocks:
    """The blocks of a form as the steps see them: those with kinks or bounds as cones, the others with their
    Hessians."""

    def __init__(self, view: LocalView) -> None:
        self.view, self.form = view, in_parts(view.form, fits(view.form))
        whole = self.form is view.form
        system = view.newton if whole else view.form.once("newton of parts", None, lambda: NewtonSystem(self.form))
        self.system: NewtonSystem = system
        self.most, self.floor = sufficient_capacity(self.form), max(common(view.form).floor, TINY)
        self.rows = (*system.samples, *system.edges)
        each, blocks = map(self._cones, self.form.blocks, self.rows), enumerate(self.form.blocks)
        self.cones = {k: cones for k, cones in enumerate(each) if cones is not None}
        smooth = AbstractSmoothLoss | AbstractSmoothPenalty
        self.smooth = {k: block for k, block in blocks if isinstance(_term(block), smooth) and k not in self.cones}
        far, self.worth = self.typical(np.zeros(self.form.shape))
        with np.errstate(divide="ignore", over="ignore"):
            still = STILL * self.system.vector(far**-2.0)
        self.still = np.where(np.isfinite(still), still, 0.0)
        self.held = Held(self.form) if system.free is not None else None

    @classmethod
    def of(cls, view: LocalView) -> InteriorBlocks:
        """Those of a view, found once for its strengths."""
        return view.form.once("interior blocks", strengths(view.form.blocks), lambda: cls(view))

    def _cones(self, block: SampleBlock | EdgeBlock, rows: SystemRows) -> AbstractCones | None:
        if isinstance(block, SampleBlock):
            return BoxCones(block, rows) if has_pieces(block) else None
        if isinstance(block.penalty, AbstractBox):
            return SideCones(block, rows)
        if block.penalty.pieces(self.form.width(block)) or block.penalty.envelope() is not None:
            known = block.map.edges is not None
            return NormCones(block, rows, self.most[block.columns(self.form.d)] if known else np.full(rows.k, np.inf))
        if has_costs(block.penalty, self.form.width(block)):
            return CostCones(block, rows)
        return HeightCones(block, rows) if block.penalty.is_maximum else None

    # ---- the smooth terms -------------------------------------------------------------------------------------------
    def slopes(self, w: Array) -> dict[int, Array]:
        """The gradients of blocks without kinks: prices of samples, and flows of edges."""
        return {k: b.prices(w) if isinstance(b, SampleBlock) else b.gradients(w) for k, b in self.smooth.items()}

    def flows(self, smooth: dict[int, Array], y: Cones) -> DualPoint:
        out = smooth | {k: cones.flows(each) for (k, cones), each in zip(self.cones.items(), y, strict=True)}
        nothing = self.form.nothing()
        each = [out.get(k, none) for k, none in enumerate((*nothing.prices, *nothing.flows))]
        many = len(nothing.prices)
        return DualPoint(tuple(each[many:]), tuple(each[:many]))

    def balanced(self, point: DualPoint) -> tuple[DualPoint, Array]:
        """The flows, of which those that hold nodes take up what is left there, and what is left elsewhere."""
        left = self.form.conservation(point)
        if self.held is None:
            return point, left
        return replace(point, flows=self.held.flows(self.form, point.flows, left)), np.where(self.held.mask, 0.0, left)

    def joined(self, flows: Sequence[Array]) -> tuple[Array, ...]:
        """The flows of the form itself, whose penalties may be sums."""
        return joined(self.view.form, fits(self.view.form), flows)

    def typical(self, w: Array) -> tuple[Array, float]:
        """The lengths of gradient steps from w, root mean squares by column, for every entry; and what one is worth."""
        form = self.form
        gradient = form.conservation(DualPoint(form.nothing().flows, form.gradient_prices(w)))
        bends = np.zeros(len(self.system.order))
        for block, rows in zip(form.samples, self.system.samples, strict=True):
            each = block.scale * block.loss.typical_curvature(block.difference(w), block.y)
            bends += rows.B.power(2).T @ np.repeat(each, block.width)
        pull, bend = (np.sqrt(np.mean(each**2, axis=0)) for each in (gradient, self.system.matrix(bends)))
        far = np.where((pull > 0.0) & (bend > 0.0), pull / np.maximum(bend, TINY), form.step_length)
        return np.broadcast_to(far, form.shape), float(np.mean(pull * far)) or 1.0

    def begun(self, w: Array, flows: tuple[Array, ...] | None) -> State:
        """The state before the first step, at w inside the cones."""
        far, worth = self.typical(w)
        point = () if flows is None else (*(None for _ in self.form.samples), *flows)
        squares, rows = self.system.vector(far**2), self.rows
        lengths = {k: np.sqrt(rows[k].columns(rows[k].B.power(2) @ squares)) for k in self.cones}
        each = self.cones.items()
        found = [cones.start(w, lengths[k], worth, point[k] if point else None) for k, cones in each]
        return self.state(Interior(w, tuple(s for s, _ in found), tuple(y for _, y in found)))

    def _imbalance(self, slope: Array, w: Array) -> float:
        """What a gradient is worth at most: what all nodes of a component have in common, and the rest by columns."""
        slope, system = self.system.matrix(slope), self.system
        common = system.over_components(w) / system.members
        rest = np.abs(w - product(system.of, common)).max(axis=0, initial=0.0)
        return float(np.abs(system.over_components(slope) * common).sum() + np.abs(slope).sum(axis=0) @ rest)

    # ---- states -----------------------------------------------------------------------------------------------------
    def state(self, at: Interior) -> State:
        """The state before the first step."""
        point, slope = self._slope(at)
        scalings = (Scaling.of(s, y) for s, y in zip(at.s, at.y, strict=True))
        carried = tuple((each.q, each.eta, each.v) for each in scalings)
        return State(self.view, 0, at, at, carried, slope, point)

    def step(self, before: State) -> State:
        at = before.at
        bends = {k: _bend(block, self.rows[k], at.w) for k, block in self.smooth.items()}
        pulls: list[AbstractPulls] = []
        worth = self._imbalance(before.slope, at.w)
        for (k, cones), scaling, s, y in zip(self.cones.items(), before.scalings, at.s, at.y, strict=True):
            off = cones.off(at.w, s, y)
            worth += cones.worth(off, y)
            pulls.append(cones.pulls(cones, Scaling(*scaling), off))
            bends[k] = pulls[-1].D
        none = (np.zeros((rows.m, rows.k, rows.k)) for rows in self.rows)  # of what holds nodes
        blocks = [bends.get(k, zero) for k, zero in enumerate(none)]
        v = [pull.scaling.v for pull in pulls]
        mu = max(_complementarity(v), BALANCE * worth) / max(sum(each.shape[1] for each in v), 1)
        solve = self.system.factorised(blocks, min(mu, self.worth) * self.still)
        newton = Directions(pulls, solve, before.slope)
        after, scalings, point, slope = self._moved(at, newton.move(mu), newton)
        free = tuple(e for e in self.form.edges if not isinstance(e.penalty, AbstractBox) and not fixes(self.form, e))
        primal = (self.form if len(free) == len(self.form.edges) else replace(self.form, edges=free)).primal(after.w)
        gap = (_complementarity([each.v for each in scalings]) + self._outside(after)) / max(abs(primal), self.floor)
        early = before.early if gap < EARLY else after
        carried = tuple((each.q, each.eta, each.v) for each in scalings)
        point = self._conserved(point, slope, solve, blocks)
        ended = 0.0 < gap < FINEST
        return State(self.view, before.round + 1, after, early, carried, slope, point, ended, primal, gap)

    def _outside(self, at: Interior) -> float:
        """What it is worth that w is not where bounds say."""
        sides = ((c, s, y) for c, s, y in zip(self.cones.values(), at.s, at.y, strict=True) if isinstance(c, SideCones))
        return sum(cones.worth(cones.off(at.w, s, y), y) for cones, s, y in sides)

    def _slope(self, at: Interior) -> tuple[Point, Array]:
        """w with its flows and prices, and grad f + K'u in the order of the system: how far they are from balance."""
        point, left = self.balanced(self.flows(self.slopes(at.w), at.y))
        return (at.w, point.flows, point.prices), self.system.vector(left)

    def _moved(self, at: Interior, move: Move, newton: Directions) -> tuple[Interior, list[Scaling], Point, Array]:
        """The next iterate: as far as the cones allow, and not so far that gradients of
        losses that are not quadratic turn against it.

        With H the Hessian of the step, the gradients at its end minus (1 - t) those before are what H has not foreseen.
        """
        t = min(1.0, INTERIOR * move.max_step)
        for _ in range(HALVINGS):
            after, scalings = self._along(at, move, newton, t)
            point, slope = self._slope(after)
            unforeseen = float((slope - (1.0 - t) * newton.slope) @ move.x)
            worth = self._imbalance(slope, after.w)
            if unforeseen <= SIGHT * move.bend or worth <= _complementarity([each.v for each in scalings]):
                return after, scalings, point, slope
            t *= 0.5
        raise ArithmeticError("no step is short enough for its Hessian")

    def _along(self, at: Interior, move: Move, newton: Directions, t: float) -> tuple[Interior, list[Scaling]]:
        w = at.w + t * self.system.matrix(move.x)
        found: list[tuple[Array, Array]] = []
        scalings: list[Scaling] = []
        each = zip(self.cones.values(), newton.pulls, move.s, move.y, at.y, strict=True)
        for cones, pull, ds, dy, before in each:
            rows, one, two = pull.rows, pull.scaling.v + t * ds, pull.scaling.v + t * dy
            du = None if rows.places is None else t * rows.columns(move.x[rows.places])
            found.append(cones.along(pull.scaling, one, two, w, before, du))
            scalings.append(pull.scaling.moved(one, two))
        return Interior(w, tuple(s for s, _ in found), tuple(y for _, y in found)), scalings

    def _conserved(self, point: Point, slope: Array, solve: Solve, blocks: list[Array]) -> Point:
        """The point with what flows and prices change by, to first order, in the Newton step that balances them; again
        for what the rounding of its factors leaves, while that becomes much less."""
        w, flows, prices = point
        assert flows is not None
        assert prices is not None
        found, least, many = DualPoint(flows, prices), np.inf, len(prices)
        for _ in range(REFINEMENTS):
            x = solve(-slope)
            moved: list[Array] = []
            for value, rows, D in zip((*found.prices, *found.flows), self.rows, blocks, strict=True):
                by = np.einsum("mij,jm->mi", D, rows.apply(x)) if rows.places is None else x[rows.places]
                moved.append(value + by.reshape(value.shape))
            after, open_ = self.balanced(DualPoint(tuple(moved[many:]), tuple(moved[:many])))
            left = float(np.abs(open_).max(initial=0.0))
            if not left <= LESS * least:
                break
            found, slope, least = after, self.system.vector(open_), left
            if left <= TIDY * max((float(np.abs(part).max(initial=0.0)) for part in after.parts), default=0.0):
                break
        return w, found.flows, found.prices


def sufficient_capacity(form: Form) -> Array:
    """Capacities, by column, that no edge with kinks needs: with all larger ones cut down to them, the minimisers are
    the same, (d,).

    Some optimal flow runs in no circles, so that no edge carries more than flows in at all nodes together: at most
    sum_r s_r |x_rj| |l'_r| <= sqrt(2 L sum_r s_r x_rj^2 (P(v) - inf P)) for losses of smoothness L, at any v such
    as the best common model, and so for smooth penalties. At twice that no flow fills an edge which is cut down, and
    its ends agree. Where kinks have centers there may be flows in circles, through the ground; of bounds, and of rows
    that are no edges, nothing is known.
    """
    rough = [edge for edge in form.edges if not isinstance(edge.penalty, AbstractSmoothPenalty)]
    unlike = any(edge.map.edges is None for edge in form.edges)
    if unlike or any(e.center is not None or not e.penalty.pieces(form.width(e)) for e in rough):
        return np.full(form.d, np.inf)
    lowest, supply, most = 0.0, np.zeros(form.d), np.zeros(form.d)

    def by_column(A: Any, weight: Array) -> Array:
        return (A.T @ weight).reshape(form.shape).sum(axis=0)

    for block in form.samples:
        scale = np.repeat(block.scale, block.width)
        lowest -= float(block.conjugates(np.zeros_like(block.offset)).sum())
        if isinstance(block.loss, AbstractSmoothLoss):
            supply += np.sqrt(2.0 * block.loss.smoothness() * by_column(block.A.power(2), scale))
        else:
            reach = np.maximum(*map(np.abs, block.loss.domain(block.y))).ravel()
            most += 2.0 * by_column(abs(block.A), scale * reach)
    for edge in form.edges:
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            supply += 2.0 * np.sqrt(edge.penalty.smoothness() * edge.weight.sum() * len(edge.ends))
    best = common(form)
    most += 2.0 * supply * np.sqrt(max(best.value, best.floor, lowest) - lowest)
    return np.where((most > 0.0) & np.isfinite(most), most, np.inf)


def _term(block: SampleBlock | EdgeBlock) -> Any:
    return block.loss if isinstance(block, SampleBlock) else block.penalty


def has_pieces(block: SampleBlock) -> bool:
    """True where the derivative of a loss is piecewise linear, and not linear."""
    found = block.loss.bends(block.y.ravel()[:1])
    return found is not None and bool(found.knots)


def _bend(block: Any, rows: SystemRows, w: Array) -> Array:
    """The Hessian of a block at w; where its flows are unknowns the inverse, of one that is nowhere flat."""
    term, inverse = _term(block), rows.places is not None
    scale, targets = (block.scale, (block.y,)) if isinstance(block, SampleBlock) else (block.weight, ())
    h = term.curvature(block.difference(w), *targets)
    if inverse and np.isfinite(L := term.smoothness()):
        h = (1.0 - FLAT) * h + FLAT * L * (np.eye(h.shape[-1]) if h.ndim == 3 else 1.0)
    h = (scale.reshape(-1, *[1] * (h.ndim - 1)) * h).reshape(-1, rows.k, rows.k)
    return np.linalg.inv(np.maximum(h, TINY) if rows.k == 1 else h) if inverse else h


def _complementarity(v: list[Array]) -> float:
    """The sum of <s_e, y_e> = ||v_e||^2."""
    return sum(float(np.vdot(each, each)) for each in v)
