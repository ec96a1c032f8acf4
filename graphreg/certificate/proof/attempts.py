"""The dual point of a proof: the certificate's as it is stored, and only where that fails one slightly moved.

The optimum itself is found in exact numbers where it solves a linear system: only there is the gap exactly 0. Near an
answer the coordinates that edges with slack tie together are one unknown each, the flows of all other norms are at an
end, and what is left is quadratic: a sum of c/2 (<cells, theta> - target)^2 and linear terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import DualPoint, Form
from ...inputs import components_of, groups_of
from ...terms import Array
from ...verify import BOX, STATE, Model, NotProvedError, rational
from ..repairing.repair import Repair
from .conserve import RATIONAL, conserve, ends_of, group_numbers, slacks_of
from .point import ExactPoint, exact_point
from .statement import flow_root, solve


@dataclass(frozen=True)
class Attempt:
    """One way from the floats to an exact point.

    ``snap`` puts prices and flows that are nearly at an end of their domain there; ``bits`` pulls by 2^-bits towards
    0 or (``slater``) towards a point well inside all domains; flows with less room than ``least`` keep still.
    """

    least: float = 1e-7
    snap: float = 0.0
    bits: int = 0
    slater: bool = False


ATTEMPTS = (
    Attempt(),
    Attempt(1e-12),
    *(
        Attempt(least, bits=bits, slater=slater)
        for bits, least in ((44, 1e-13), (36, 1e-11))
        for slater in (False, True)
    ),
    *(Attempt(1e-9, snap) for snap in (1e-11, 1e-9, 1e-7)),
    *(Attempt(10.0 ** -(bits / 3.5), bits=bits, slater=slater) for bits in (28, 20) for slater in (True, False)),
)


@dataclass(frozen=True)
class Lower:
    """A dual point as the checker takes it, its bound in the checker's units, and the box that it is valid in."""

    point: list[Any]
    bound: int
    within: Any = None


def lower_bound(form: Form, model: Model, w: Array, point: DualPoint, enough: float = -np.inf) -> Lower:
    """The first bound that is ``enough`` (in the checker's units) of points near ``point``, else the best; `ProofError`
    with the reasons where none is found."""
    best: Lower | None = None
    reasons: dict[str, None] = {}
    rooted = any(flow_root(form, edge) is not None for edge in form.edges)
    starts = _Starts(form, w, point)
    for repaired, attempt in product((False, True), ATTEMPTS):
        start = starts(repaired, attempt)
        for with_roots in (False, True)[: 1 + rooted]:
            STATE.where = ""
            try:
                found = _attempt(form, model, start, attempt, with_roots)
                best = found if best is None or found.bound > best.bound else best
                if best.bound >= enough:
                    return best
            except (ProofError, NotProvedError, ZeroDivisionError, np.linalg.LinAlgError) as error:
                reasons.setdefault(str(error))
    if best is not None:
        return best
    raise ProofError(f"no exact dual point was found: {'; '.join(list(reasons)[:3])}")


@dataclass
class _Starts:
    """The starts of the attempts; what takes a while is computed once."""

    form: Form
    w: Array
    point: DualPoint

    def __call__(self, repaired: bool, attempt: Attempt) -> DualPoint:
        start = self.repaired if repaired else self.point
        if attempt.bits == 0:
            return start
        t = 2.0**-attempt.bits
        center = self.center if attempt.slater else self.form.nothing()
        return self.form.mapped(lambda _, x, c: (1.0 - t) * x + t * c, start, center)

    @cached_property
    def repaired(self) -> DualPoint:
        """The point pulled well inside the domains: the point of a certificate may lie at their very ends."""
        return Repair(self.form)(self.w, self.point)

    @cached_property
    def center(self) -> DualPoint:
        """A point well inside all domains."""
        repair = Repair(self.form)
        repair.size = float(np.sqrt(np.mean(self.w * self.w))) or 1.0
        return repair.center


def _attempt(form: Form, model: Model, point: DualPoint, attempt: Attempt, with_roots: bool) -> Lower:
    point = _snapped(form, point, attempt.snap)
    exact: ExactPoint = exact_point(form, model, point, attempt.snap)
    whole = conserve(exact, slacks_of(form, point.flows), attempt.least, with_roots)
    within = None if whole else rational(1 << BOX)
    stated = exact.statement()
    return Lower(stated, model.dual(stated, within), within)


def _snapped(form: Form, point: DualPoint, snap: float) -> DualPoint:
    """Flows that are nearly 0 as 0: what has no room then must not be seen to have some."""
    flows: list[Array] = []
    for edge, u in zip(form.edges, point.flows, strict=True):
        size, rooted = np.abs(u), flow_root(form, edge) is not None
        size = size.max(axis=1, keepdims=True, initial=0.0) if rooted else size
        flows.append(np.where(size <= snap * edge.weight[:, None], 0.0, u))
    return DualPoint(tuple(flows), point.prices)


# ---- the optimum itself ----------------------------------------------------------------------------------------------
LOSSES = ("squared", "mean")
TYING = ("L1", "L2", "LInf", "Zero")
LEAST = 1e-12  # the room of an edge that ties, where its flow is at its capacity to rounding


@dataclass
class Squares:
    """The terms c/2 (sum of x theta over cells - target)^2, and the linear ones, over groups of coordinates."""

    group: list[int]  # of each vertex, -1 where it is 0
    quadratic: dict[int, dict[int, Any]] = field(default_factory=dict[int, dict[int, Any]])
    right: dict[int, Any] = field(default_factory=dict[int, Any])

    def add(self, cells: list[tuple[int, Any]], c: Any, target: Any) -> None:
        merged: dict[int, Any] = {}
        for v, x in cells:
            if self.group[v] >= 0:
                merged[self.group[v]] = merged.get(self.group[v], 0) + x
        for g, x in merged.items():
            self.push(g, c * x * target)
            row = self.quadratic.setdefault(g, {})
            for h, y in merged.items():
                row[h] = row.get(h, 0) + c * x * y

    def push(self, g: int, amount: Any) -> None:
        if g >= 0:
            self.right[g] = self.right.get(g, rational(0)) + amount

    def solved(self, count: int) -> list[Any]:
        """theta, block by block of groups that share terms."""
        theta = [rational(0)] * count
        links = [(g, h) for g, row in self.quadratic.items() for h in row]
        i, j = np.array(links, dtype=int).reshape(-1, 2).T
        for groups in (each.tolist() for each in groups_of(components_of(i, j, count)[1])):
            if len(groups) > RATIONAL:
                raise ProofError(f"{len(groups)} groups of coordinates are coupled")
            place = {g: k for k, g in enumerate(groups)}
            A = [[rational(0)] * len(groups) for _ in groups]
            for g in groups:
                for h, x in self.quadratic.get(g, {}).items():
                    A[place[g]][place[h]] = x
            try:
                found = solve(A, [self.right.get(g, rational(0)) for g in groups])
            except ZeroDivisionError:
                raise ProofError("the optimum is not unique") from None
            for g, x in zip(groups, found, strict=True):
                theta[g] = x
        return theta


def exact_optimum(form: Form, model: Model, w: Array, point: DualPoint) -> tuple[list[list[Any]], list[Any]]:
    """An optimum near w and its dual point, as the checker takes them, with a gap of exactly 0; `ProofError` where none
    is found, and why."""
    _refuse(model)
    tied = _tied(form, model, w, point)
    dual = exact_point(form, model, point)
    group, count = _groups(form, tied)
    blocks = zip(model.blocks[model.m :], form.edges, tied, strict=True)
    ends = [_at_ends(block, mask, edge.difference(w)) for block, edge, mask in blocks]
    theta = _squares(dual, group, tied, ends).solved(count)
    flat = [theta[g] if g >= 0 else rational(0) for g in group]
    W = [flat[i * form.d : (i + 1) * form.d] for i in range(form.n)]
    _state(dual, W, tied, ends)
    rooms = zip(slacks_of(form, point.flows), tied, strict=True)
    rooms = [np.where(mask, np.maximum(room, LEAST), 0.0) for room, mask in rooms]
    STATE.where = ""
    try:
        conserve(dual, rooms, 0.5 * LEAST, False)
        if model.residuals(W, dual.statement()) == 0 and model.primal(W) >= model.dual(dual.statement()):
            return W, dual.statement()
    except NotProvedError as error:
        raise ProofError(f"edges that are fused near the answer are not fused at the optimum: {error}") from None
    raise ProofError("edges that are fused near the answer are not fused at the optimum")


def _refuse(model: Model) -> None:
    """Terms whose optimum solves no linear system."""
    for block in model.blocks:
        smooth = block.kind in (*LOSSES, "SquaredL2")
        if not smooth and (block.kind not in TYING or block.center is not None):
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
        if block.kind != "L1":
            mask = np.broadcast_to(mask.all(axis=1, keepdims=True), z.shape)
        if block.kind != "L1" and not mask.all():
            raise ProofError(f"an {block.kind} of a difference that is not 0 has no rational optimum")
        out.append(mask)
    return out


def _groups(form: Form, tied: list[Array]) -> tuple[list[int], int]:
    """The group of each vertex ``node * d + column``, -1 for those tied to the ground."""
    ends = [np.stack(ends_of(form, edge, mask)) for edge, mask in zip(form.edges, tied, strict=True)]
    i, j = np.concatenate([np.zeros((2, 0), dtype=int), *ends], axis=1)
    return group_numbers(components_of(i, j, form.n * form.d + 1)[1].tolist())


def _at_ends(block: Any, mask: Array, z: Array) -> list[list[Any]]:
    """The flows of L1 at an end of their capacity; 0 where coordinates are tied."""
    signs = np.where(mask, 0, np.where(z > 0, 1, -1)).tolist()
    return [[s * capacity for s in row] for row, capacity in zip(signs, block.c, strict=True)]


def _squares(dual: ExactPoint, group: list[int], tied: list[Array], ends: list[list[list[Any]]]) -> Squares:
    model, d = dual.model, dual.form.d
    squares = Squares(group)
    for m, block in enumerate(model.blocks[: model.m]):
        for r in range(block.size):
            targets = block.y[r] if block.kind == "mean" else [block.y[r]]
            for c, (y, o) in enumerate(zip(targets, block.o[r], strict=True)):
                squares.add(dual.price_cells(m, r, c), block.s[r], y - o)
    for block, mask, flows in zip(model.blocks[model.m :], tied, ends, strict=True):
        for e, (tail, head) in enumerate(zip(block.tail, block.head, strict=True)):
            for p, f in enumerate(block.columns):
                cells = [(tail * d + f, rational(1)), *([(head * d + f, rational(-1))] if head >= 0 else [])]
                if block.kind == "SquaredL2":
                    squares.add(cells, block.c[e], block.center[e][p] if block.center else rational(0))
                elif not mask[e, p]:
                    for v, x in cells:
                        squares.push(group[v], -x * flows[e][p])
    return squares


def _state(dual: ExactPoint, W: list[list[Any]], tied: list[Array], ends: list[list[list[Any]]]) -> None:
    """Prices and flows that belong to W; the flows of what is tied stay as they are, and will be moved."""
    model = dual.model
    for m, block in enumerate(model.blocks[: model.m]):
        for r in range(block.size):
            targets = block.y[r] if block.kind == "mean" else [block.y[r]]
            x = block.argument(r, W)
            dual.prices[m][r] = [block.s[r] * (p - y) for p, y in zip(x, targets, strict=True)]
    for m, (block, mask, flows) in enumerate(zip(model.blocks[model.m :], tied, ends, strict=True)):
        for e in range(block.size):
            z = block.argument(e, W)
            if block.kind == "SquaredL2":
                dual.flows[m][e] = [block.c[e] * x for x in z]
            else:
                entries = zip(dual.flows[m][e], flows[e], mask[e].tolist(), strict=True)
                dual.flows[m][e] = [u if held else v for u, v, held in entries]
    dual.balance()
