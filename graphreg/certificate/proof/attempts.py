"""The dual point of a proof: the certificate's own made exact, and only where that fails one that is slightly moved.

The optimum itself is found in exact numbers where it solves a linear system: only there is the gap exactly 0. Near an
answer the coordinates that edges with slack tie together are one unknown each, rows with slack are equations, the
flows of all other norms are at an end, and what is left is quadratic: a sum of c/2 (<cells, theta> - target)^2 and
linear terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import DualPoint, Form
from ...inputs import components_of, groups_of
from ...terms import Array
from ...verify import STATE, Model, NotProvedError, rational
from ..kernel.arithmetic import RefusedError
from ..kernel.system import System
from ..proposing.plan import Plan, Planner
from ..proposing.slack import Slack, held_first
from ..rationals import Echelon
from ..repairing.repair import Repair
from .conserve import Conserver
from .point import ExactPoint, exact_point
from .statement import solve

PULLS = (0.0, 2.0**-44, 2.0**-36, 2.0**-28, 2.0**-20)  # shares of the way to a point well inside all domains
WIDE = 1e-9  # of the capacity: flows with so much room may move by all that rounding leaves


@dataclass(frozen=True)
class Lower:
    """A dual point as the checker takes it, and its bound in the checker's units."""

    point: list[Any]
    bound: int


def lower_bound(form: Form, model: Model, w: Array, point: DualPoint, enough: float = -np.inf) -> Lower:
    """The first bound that is ``enough`` (in the checker's units) of points near ``point``, else the best; `ProofError`
    with the reasons where none is found."""
    best: Lower | None = None
    reasons: dict[str, None] = {}
    attempts = _Attempts(form, model, w, point)
    for way in attempts.ways():
        STATE.where = ""
        try:
            found = attempts.found(*way)
        except (ProofError, NotProvedError, RefusedError, np.linalg.LinAlgError) as error:
            reasons.setdefault(str(error))
            continue
        best = found if best is None or found.bound > best.bound else best
        if best.bound >= enough:
            break
    if best is None:
        raise ProofError(f"no exact dual point was found: {'; '.join(list(reasons)[:3])}")
    return best


def _planner(form: Form) -> Planner:
    """What plans how an imbalance is taken up: R, as certificates have it."""
    try:
        return Planner(System(form))
    except RefusedError as error:
        raise ProofError(f"no exact dual point is looked for: {error}") from None


class _Attempts:
    """Ways from the floats to an exact point: by the corrections R with which an enclosure would bound it."""

    def __init__(self, form: Form, model: Model, w: Array, point: DualPoint) -> None:
        self.form, self.model, self.w, self.point = form, model, w, point
        self.planner = _planner(form)
        self.system = self.planner.system

    def ways(self) -> Iterator[tuple[float, bool, Array, bool]]:
        """Pulled by t, with flows that may move far, with these variables held, with nodes that answer apart; at last 0
        itself, which balances as it is."""
        held = held_first(self.system)
        yield from product(PULLS, (False, True), held, (False, True))
        yield 1.0, False, held[0], False

    def found(self, t: float, wide: bool, held: Array, apart: bool) -> Lower:
        """The bound of one way."""
        start = self.point
        if t == 1.0:
            start = self.form.nothing()
        elif t > 0.0:
            start = self.form.mapped(lambda _, x, c: (1.0 - t) * x + t * c, start, self._center)
        v = self.system.flat(start)
        exact = exact_point(self.system, self.model, v)
        if any(exact.rest):
            slack = Slack.of(self.system, v)
            if wide:
                slack = Slack(np.where(slack.room > WIDE * self._scale, np.inf, 0.0), slack.weight)
            Conserver(exact, self.planner, slack, self.planner.near(v, slack, held, apart))()
        stated = exact.statement()
        return Lower(stated, self.model.dual(stated))

    @cached_property
    def _scale(self) -> Array:
        """The scale of each variable."""
        return np.concatenate([np.repeat(one.scale, one.shape[1]) for one in self.system.summands])

    @cached_property
    def _center(self) -> DualPoint:
        """A point well inside all domains."""
        repair = Repair(self.form)
        repair.size = float(np.sqrt(np.mean(self.w * self.w))) or 1.0
        return repair.center


# ---- the optimum itself ----------------------------------------------------------------------------------------------
LOSSES = ("squared", "mean")
TYING = ("L1", "L2", "LInf", "Zero")
COUPLED, BY_FLINT = 60, 300  # groups and equations in one system
LEAST = 1e-12  # the room of an edge that ties, where its flow is at its capacity to rounding
EVEN = 1e2  # flows beside which shares are looked at: less than 1e-10 is little room


@dataclass
class Squares:
    """The terms c/2 (sum of x theta over cells - target)^2, the linear ones, and equations, over groups of
    coordinates."""

    group: list[int]  # of each vertex, -1 where it is 0
    quadratic: dict[int, dict[int, Any]] = field(default_factory=dict[int, dict[int, Any]])
    right: dict[int, Any] = field(default_factory=dict[int, Any])
    held: list[tuple[dict[int, Any], Any]] = field(default_factory=list[tuple[dict[int, Any], Any]])

    def merged(self, cells: list[tuple[int, Any]]) -> dict[int, Any]:
        """The cells by groups."""
        merged: dict[int, Any] = {}
        for v, x in cells:
            if self.group[v] >= 0:
                merged[self.group[v]] = merged.get(self.group[v], 0) + x
        return merged

    def add(self, cells: list[tuple[int, Any]], c: Any, target: Any) -> None:
        merged = self.merged(cells)
        for g, x in merged.items():
            self.push(g, c * x * target)
            row = self.quadratic.setdefault(g, {})
            for h, y in merged.items():
                row[h] = row.get(h, 0) + c * x * y

    def push(self, g: int, amount: Any) -> None:
        if g >= 0:
            self.right[g] = self.right.get(g, rational(0)) + amount

    def solved(self, count: int) -> list[Any]:
        """theta, block by block of groups that share terms or equations."""
        theta = [rational(0)] * count
        links = [(g, h) for g, row in self.quadratic.items() for h in row]
        links += [(min(row), h) for row, _ in self.held for h in row]
        i, j = np.array(links, dtype=int).reshape(-1, 2).T
        label = components_of(i, j, count)[1]
        held: dict[int, list[tuple[dict[int, Any], Any]]] = {}
        for row, target in self.held:
            if row:
                held.setdefault(int(label[min(row)]), []).append((row, target))
        for groups in (each.tolist() for each in groups_of(label)):
            known = held.get(int(label[groups[0]]), [])
            if not known and not any(self.right.get(g) or any(self.quadratic.get(g, {}).values()) for g in groups):
                continue  # nothing decides, as of a node alone without data: 0 will do
            for g, x in zip(groups, self._solved(groups, known), strict=True):
                theta[g] = x
        return theta

    def _solved(self, groups: list[int], held: list[tuple[dict[int, Any], Any]]) -> list[Any]:
        """The minimiser over some groups where equations hold, with one multiplier for each of these."""
        n, zero = len(groups), rational(0)
        if n + len(held) > (BY_FLINT if STATE.flint else COUPLED):
            raise ProofError(f"{n} groups of coordinates are coupled" + f" by {len(held)} rows" * bool(held))
        place, system = {g: k for k, g in enumerate(groups)}, Echelon(n)
        C: list[list[Any]] = [_dense(row, place) for row, _ in held]
        new = [k for k, (_, target) in enumerate(held) if system.add(C[k], target)]  # the others follow from these
        A = [[*_dense(self.quadratic.get(g, {}), place), *(C[k][place[g]] for k in new)] for g in groups]
        A += [[*C[k], *[zero] * len(new)] for k in new]
        try:
            return solve(A, [*(self.right.get(g, zero) for g in groups), *(held[k][1] for k in new)])[:n]
        except ZeroDivisionError:
            raise ProofError("the optimum is not unique, and the search for an exact one needs that") from None


def _dense(row: dict[int, Any], place: dict[int, int]) -> list[Any]:
    out = [rational(0)] * len(place)
    for g, x in row.items():
        out[place[g]] = x
    return out


def exact_optimum(form: Form, model: Model, w: Array, point: DualPoint) -> tuple[list[list[Any]], list[Any]]:
    """An optimum near w and its dual point, as the checker takes them, with a gap of exactly 0; `ProofError` where none
    is found, and why."""
    _refuse(model)
    planner = _planner(form)
    tied = _tied(form, model, w, point)
    dual = exact_point(planner.system, model, planner.system.flat(point))
    blocks = zip(model.blocks[model.m :], form.edges, tied, strict=True)
    ends = [_at_ends(block, mask, edge.difference(w)) for block, edge, mask in blocks]
    group = _groups(planner, tied)
    theta = _squares(dual, group, tied, ends).solved(int(group.max(initial=-1)) + 1)
    flat = [theta[g] if g >= 0 else rational(0) for g in group.tolist()]
    W = [flat[i * form.d : (i + 1) * form.d] for i in range(form.n)]
    _state(dual, W, tied, ends)
    STATE.where = ""
    try:
        Conserver(dual, planner, *_carrying(planner, point, tied))()
        if model.residuals(W, dual.statement()) == 0 and model.primal(W) >= model.dual(dual.statement()):
            return W, dual.statement()
    except NotProvedError as error:
        raise ProofError(f"edges that are fused near the answer are not fused at the optimum: {error}") from None
    except (RefusedError, np.linalg.LinAlgError) as error:
        raise ProofError(f"nothing that is tied near the answer takes up what is left: {error}") from None
    if any(block.kind == "L2" and not mask.all() for block, mask in zip(model.blocks[model.m :], tied, strict=True)):
        raise ProofError("proofs round the root in L2; gr.L1() is the same of one number, and is not rounded")
    raise ProofError("edges that are fused near the answer are not fused at the optimum")


def _carrying(planner: Planner, point: DualPoint, tied: list[Array]) -> tuple[Slack, Plan]:
    """What is tied carries all that is left, the roomiest first, by shares of capacities; no price answers for it."""
    room, like, weight = np.zeros((3, planner.system.size))
    for one, u, mask in zip(planner.system.flows, point.flows, tied, strict=True):
        share = one.penalty.domain.share(u / one.scale[:, None])
        room[one.columns] = np.where(mask, np.maximum(share, LEAST), 0.0).ravel()
        like[one.columns] = EVEN
        if one.mixed:
            weight[one.columns] = room[one.columns]
    slack = Slack(room, weight)
    return slack, planner.near(like, slack, room < 0.0, apart=False)


def _refuse(model: Model) -> None:
    """Terms whose optimum solves no linear system."""
    for block in model.blocks:
        smooth = block.kind in (*LOSSES, "SquaredL2")
        if not smooth and (block.kind not in TYING or (block.center is not None and block.rows is None)):
            raise ProofError(f"an optimum with {block.kind} is no rational number, or none is looked for")


def _tied(form: Form, model: Model, w: Array, point: DualPoint) -> list[Array]:
    """Masks (m, k), per block of edges, of the coordinates that are equal at the optimum by the answer: their slack
    is larger than their difference."""
    unit = float(np.abs(w).max(initial=0.0)) or 1.0
    out: list[Array] = []
    for edge, block, u in zip(form.edges, model.blocks[model.m :], point.flows, strict=True):
        z = np.abs(edge.difference(w)) / unit
        if block.kind == "Zero":
            out.append(np.ones(z.shape, dtype=bool))
            continue
        if block.kind == "SquaredL2":
            out.append(np.zeros(z.shape, dtype=bool))
            continue
        room = np.broadcast_to(edge.penalty.domain.share(u / edge.weight[:, None]), z.shape)
        mask: Array = np.greater(room, z)
        together = block.kind != "L1" and z.shape[1] > 1  # of one number every norm is its absolute value
        if together:
            mask = np.broadcast_to(mask.all(axis=1, keepdims=True), z.shape)
        if together and not mask.all():
            raise ProofError(f"an {block.kind} of a difference that is not 0 has no rational optimum")
        out.append(mask)
    return out


def _groups(planner: Planner, tied: list[Array]) -> Array:
    """The group of each vertex ``node * d + column``, -1 for those tied to the ground."""
    arcs, mask = planner.arcs, np.zeros(planner.system.size, dtype=bool)
    for one, each in zip(planner.system.flows, tied, strict=True):
        mask[one.columns] = each.ravel() if one.mix is None else False
    mask = mask[planner.variable]
    label = components_of(arcs.tail[mask], arcs.head[mask], arcs.ground + 1)[1]
    group, free = np.full(arcs.ground, -1), label[:-1] != label[-1]
    group[free] = np.unique(label[:-1][free], return_inverse=True)[1]
    return group


def _at_ends(block: Any, mask: Array, z: Array) -> list[list[Any]]:
    """The flows of L1 at an end of their capacity; 0 where coordinates are tied."""
    signs = np.where(mask, 0, np.where(z > 0, 1, -1)).tolist()
    return [[s * capacity for s in row] for row, capacity in zip(signs, block.c, strict=True)]


def _squares(dual: ExactPoint, group: Array, tied: list[Array], ends: list[list[list[Any]]]) -> Squares:
    squares = Squares(group.tolist())
    samples = zip(dual.system.prices, dual.model.blocks, strict=False)
    for one, block in samples:
        for r in range(block.size):
            for c, (y, o) in enumerate(zip(_targets(block, r), block.o[r], strict=True)):
                squares.add(dual.cells(one.first + r * one.shape[1] + c), block.s[r], y - o)
    flows = zip(dual.system.flows, dual.model.blocks[dual.model.m :], tied, ends, strict=True)
    for one, block, mask, at_ends in flows:
        for e, p in product(range(block.size), range(one.shape[1])):
            cells = dual.cells(one.first + e * one.shape[1] + p)
            center = block.center[e][p] if block.center else rational(0)
            if block.kind == "SquaredL2":
                squares.add(cells, block.c[e], center)
            elif mask[e, p] and one.mixed:
                squares.held.append((squares.merged(cells), center))
            elif not mask[e, p]:
                for v, x in cells:
                    squares.push(squares.group[v], -x * at_ends[e][p])
    return squares


def _targets(block: Any, r: int) -> list[Any]:
    return block.y[r] if block.kind == "mean" else [block.y[r]]


def _state(dual: ExactPoint, W: list[list[Any]], tied: list[Array], ends: list[list[list[Any]]]) -> None:
    """Prices and flows that belong to W; the flows of what is tied stay as they are, and will be moved."""
    model = dual.model
    for one, block in zip(dual.system.prices, model.blocks, strict=False):
        each = [zip(block.argument(r, W), _targets(block, r), strict=True) for r in range(block.size)]
        dual.put(one, [[s * (p - y) for p, y in pairs] for s, pairs in zip(block.s, each, strict=True)])
    for one, block, mask, flows in zip(dual.system.flows, model.blocks[model.m :], tied, ends, strict=True):
        if block.kind == "SquaredL2":
            dual.put(one, [[c * x for x in block.argument(e, W)] for e, c in enumerate(block.c)])
        else:
            rows = zip(dual.rows(one), flows, mask.tolist(), strict=True)
            dual.put(one, [[u if held else v for u, v, held in zip(*row, strict=True)] for row in rows])
    dual.balance()
