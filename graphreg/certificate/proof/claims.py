"""The claims about an answer, beside its bounds, that a proof can make."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import EdgeBlock, Form
from ...form.notation import listed
from ...terms import Array
from ...verify import STATE, UNIT, WORK, Edges, Model, NotProvedError, inside, kept, number, rational
from ..attainment import simplex
from ..attainment.attainment import answers
from ..attainment.directions import ConditionPart
from ..attainment.recession import conditions, cones_of
from ..edges.clusters import NEGLIGIBLE
from ..edges.near import scales
from ..record import Certificate
from .attempts import lower_bound
from .statement import exact, nearest, state_rows, text, texts

NORMS = ("L1", "L2", "LInf")
MOST = 50  # programmes for the edges of one answer that may be split
NONE_NEAR = ' so near that it is negligible and nothing more is proved; ("near", a, b) says how far apart'
UPWARDS = Context(prec=3, rounding=ROUND_CEILING)  # of distances in sentences
TIGHT = 1e-3  # only edges whose flow is so near its capacity, as a share, are tried
Claim = str | tuple[Any, ...]
CertifyTied = Callable[[Form, EdgeBlock, int], Certificate | None]


@dataclass(frozen=True)
class Found:
    """The exact points and bounds of a proof, and the answer that they are of.

    ``certify_tied`` solves the problem in which the ends of an edge are tied; ``inexact`` is why no exact optimum was
    found.
    """

    form: Form
    model: Model
    w: list[list[Any]]
    point: list[Any]
    lower: int
    upper: int
    floats: Array
    certify_tied: CertifyTied | None
    inexact: str = ""

    @cached_property
    def keys(self) -> list[Sequence[Hashable]]:
        """The names of the edges or rows of each block."""
        return [self.form.keys(edge) for edge in self.form.edges]

    @cached_property
    def room(self) -> list[Array]:
        """The distance of each edge or row that is negligible, as in `Clusters`: a share of its norm where nodes differ
        as they do (of what is no edge, where coefficients have their usual size)."""
        w, form, apart = self.floats, self.form, scales(self.form, self.floats)
        usual = np.maximum(apart, np.sqrt(np.mean(w * w, axis=0)))
        each = [(edge, 0.5 * apart if edge.map.noun == "edge" else usual) for edge in form.edges]
        sizes = [(abs(edge.flat(form.d)) @ np.tile(x, form.n)).reshape(edge.count, -1) for edge, x in each]
        return [NEGLIGIBLE * edge.penalty.value(size) for edge, size in zip(form.edges, sizes, strict=True)]


@dataclass(frozen=True)
class Edge:
    """An edge of a norm without a centre, or a row of a norm: its place among those of the model, the checker's block,
    its flow."""

    block: int
    place: int
    checked: Any
    flow: list[Any]

    @property
    def is_row(self) -> bool:
        return self.checked.rows is not None

    @property
    def capacity(self) -> Any:
        return self.checked.c[self.place]

    def keeps(self, capacity: Any) -> bool:
        """True where the dual norm of the flow is at most this."""
        return capacity > 0 and self.checked.penalty.dual_norm_is_at_most(capacity, self.flow)

    def slack(self) -> float:
        """The rest of the capacity, to rounding: of L2 that of the squares over the sum."""
        c, t, kind = self.capacity, [abs(x) for x in self.flow], self.checked.kind
        if kind != "L2":
            return nearest(c - (max(t) if kind == "L1" else sum(t)))
        squares = sum(x * x for x in t)
        return nearest(c * c - squares) / (nearest(c) + nearest(squares) ** 0.5)


def kinds(claims: Sequence[Claim]) -> list[str]:
    """The kinds of the wanted claims; `ProofError` for what is none."""
    names = [claim if isinstance(claim, str) else str(claim[0]) if claim else "" for claim in claims]
    if unknown := [name for name in names if name not in ("bounds", "unattained", *OF_EDGES)]:
        raise ProofError(f"there is no claim {unknown[0]!r}; there are bounds, {', '.join(OF_EDGES)}, unattained")
    return names


def claims_of(found: Found, wanted: Sequence[Claim]) -> list[dict[str, Any]]:
    """The claims of the wanted kinds that hold; those of one edge, and "unattained", or a `ProofError`."""
    STATE.work, out = WORK, list[dict[str, Any]]()
    one = [claim if isinstance(claim, tuple) and len(claim) > 1 else None for claim in wanted]
    for name, claim in sorted(zip(kinds(wanted), one, strict=True), key=lambda x: x == ("near", None)):  # beside others
        if name == "unattained":
            out.append(unattained(found))
        elif name != "bounds":
            out += _of_all(found, name, out) if claim is None else _of_one(found, claim)
    return out


def statements(found: Found, wanted: Sequence[Claim], claims: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """A sentence for each wanted kind: of which edges or rows it is proved, or that none was found."""
    out: list[str] = []
    for kind in dict.fromkeys(kinds(wanted)):
        mine = [claim for claim in claims if claim["says"] == kind]
        if kind == "unattained":
            out.append("unattained: proved, so that there is no optimum")
        elif kind != "bounds":
            names = listed(found.keys[claim["block"]][claim["edge"]] for claim in mine)
            out.append(f"{kind}: {len(mine) or 'none'} of {len(list(_edges(found, kind)))}" + f": {names}" * bool(mine))
            if kind == "near" and mine:
                most = UPWARDS.create_decimal_from_float(max(nearest(number(claim["distance"])) for claim in mine))
                out[-1] += f"; at most {float(most)!r} apart in the norm of their penalty"
            elif kind == "near":
                out[-1] += NONE_NEAR
            elif OF_EDGES[kind] is fused and found.inexact:
                out[-1] += f": there is no exact optimum ({found.inexact})"
    return tuple(out)


def _of_all(found: Found, kind: str, others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The claims of a kind; of "near" those of negligible distances, where others do not say more."""
    edges = list(_edges(found, kind))
    if kind == "near":
        known = {(claim.get("block"), claim.get("edge")) for claim in others}
        edges = [edge for edge in edges if (edge.block, edge.place) not in known]
    if kind == "split":
        edges = _candidates(found, edges)
    out: list[dict[str, Any]] = []
    for edge in edges:
        try:
            claim = OF_EDGES[kind](found, edge, None)
        except ProofError:
            continue  # wanted is what holds
        if kind != "near" or nearest(number(claim["distance"])) <= found.room[edge.block][edge.place]:
            out.append(claim)
    return out


def _of_one(found: Found, claim: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The claim on every norm between two nodes, on one node, or of the rows of this name; with its distance where that
    is given."""
    labels = found.form.labels
    kind, ends, distance = _read(claim, labels)
    names = [tuple(ends), *ends[:1]] if len(ends) < 2 else [tuple(ends)]
    chosen = [edge for edge in _edges(found, kind) if edge.is_row and found.keys[edge.block][edge.place] in names]
    named = f"of the row {names[-1]!r}"
    if not chosen:
        if unknown := [end for end in ends if end not in labels]:
            raise ProofError(
                f"{kind}: {unknown[0]!r} is no node" + ", nor a row of a norm" * bool(found.form.unlike_edges)
            )
        if len(ends) > 2:
            raise ProofError(f"{kind}: an edge has two ends, not {ends}")
        numbers = sorted(labels.index(end) for end in ends)
        names = [repr(labels[i]) for i in numbers]
        named = f"at the node {names[0]}" if len(names) == 1 else f"of the edge {' - '.join(names)}"
        chosen = [edge for edge in _edges(found, kind) if not edge.is_row and _ends(edge) == numbers]
    if not chosen:
        raise ProofError(f"{kind}: there is no norm without a centre {named}")
    try:
        return [OF_EDGES[kind](found, edge, distance) for edge in chosen]
    except ProofError as error:
        raise ProofError(f"{kind} is not proved {named}: {error}") from None


def _read(claim: tuple[Any, ...], labels: Sequence[Any]) -> tuple[str, list[Any], float | None]:
    """The kind, the ends, and of `near` the distance: what comes last and is no node, or comes after two ends."""
    kind, *ends = claim
    if kind != "near" or len(ends) < 2 or (len(ends) == 2 and ends[-1] in labels):
        return kind, ends, None
    last = ends[-1]
    if not isinstance(last, (int, float)):
        return kind, ends, None
    if not 0 < last < float("inf"):
        raise ProofError(f"near: a distance is a positive number, not {last!r}")
    return kind, ends[:-1], float(last)


def _ends(edge: Edge) -> list[int]:
    return sorted(i for i in (edge.checked.tail[edge.place], edge.checked.head[edge.place]) if i >= 0)


def _edges(found: Found, kind: str) -> Iterator[Edge]:
    """The edges and rows that may have a claim of a kind."""
    first = found.model.m
    for b, checked in enumerate(found.model.blocks[first:]):
        is_row = checked.rows is not None
        may = kind in ("near", "held") if is_row else checked.center is None and kind != "held"
        if checked.kind in NORMS and may:
            for i in range(checked.size):
                yield Edge(b, i, checked, found.point[first + b][i])


# ---- the claims ------------------------------------------------------------------------------------------------------
def near(found: Found, edge: Edge, distance: float | None) -> dict[str, Any]:
    """A bound of the distance between the ends at every optimum: (c - dual norm of u) phi(z) <= gap."""
    gap = rational(found.upper - found.lower, 1 << UNIT)
    slack = edge.slack()
    least = nearest(gap) / slack * (1.0 + 1e-9) if slack > 0 else float("inf")
    r = exact(least if distance is None and least < float("inf") else distance or 0.0)
    if r <= 0 or not edge.keeps(kept(edge.capacity, gap, r)):
        said = f"at most {least:.3g} apart is proved" if slack > 0 else "its flow has no slack"
        raise ProofError(f"{said}; a smaller gap proves more")
    return {"says": "near", "block": edge.block, "edge": edge.place, "distance": text(r)}


def fused(found: Found, edge: Edge, _: float | None) -> dict[str, Any]:
    """The ends are equal, or the row holds, at every optimum: the gap is exactly 0, the flow inside its capacity."""
    if found.inexact:
        raise ProofError(f"there is no exact optimum ({found.inexact}); `near` needs none")
    if not edge.keeps(inside(edge.capacity)):
        raise ProofError("its flow is at its capacity")
    return {"says": "held" if edge.is_row else "fused", "block": edge.block, "edge": edge.place}


def split(found: Found, edge: Edge, _: float | None) -> dict[str, Any]:
    """The ends differ at every optimum: a dual point of the problem with z_e = 0 has a value above P(w)."""
    block = found.form.edges[edge.block]
    tied = None if found.certify_tied is None else found.certify_tied(found.form, block, edge.place)
    if tied is None or not tied.valid:
        raise ProofError("no dual point was found of the problem in which the ends are equal")
    point, bound = _tied_point(found, edge.block, edge.place, tied)
    if bound <= found.upper:
        low, high = (nearest(rational(x, 1 << UNIT)) for x in (bound, found.upper))
        raise ProofError(f"equal ends may cost as little as {low:.10g}, and P(w) is {high:.10g}")
    m = found.model.m
    dual = {"flows": texts(point[m:]), "prices": texts(point[:m])}
    return {"says": "split", "block": edge.block, "edge": edge.place, "dual": dual}


def _tied_point(found: Found, block: int, e: int, certificate: Certificate) -> tuple[list[Any], int]:
    """The point by which equal ends of an edge are excluded, and its bound in the checker's units; `ProofError` where
    none is found.

    With z_e = 0 as a constraint the flow of e has no domain and no value. What is returned is a dual point of that
    problem written as one of the problem itself: the flow of the constraint is added to that of e.
    """
    form = certificate.form
    model = copy.copy(found.model)
    model.blocks = [*found.model.blocks, Edges(state_rows(form.edges[-1], form.d), form.n, form.d)]
    lower = lower_bound(form, model, certificate.w, certificate.dual_point, found.upper + 1)
    *point, constraint = lower.point
    place = found.model.m + block
    point[place] = [*point[place]]
    point[place][e] = [u + t for u, t in zip(point[place][e], constraint[0], strict=True)]
    try:
        return point, found.model.dual(point, None, (place, e))
    except NotProvedError as error:
        raise ProofError(f"the dual point with equal ends is none: {error}") from None


def unattained(found: Found) -> dict[str, Any]:
    """No minimum is attained: along a direction nothing grows and something falls for ever."""
    direction = next(_receding(found.form), None)
    if direction is None:
        raise ProofError("unattained is not proved: along no direction that was found does a loss fall for ever")
    v = [[rational(x.numerator, x.denominator) for x in row] for row in direction]
    for _, i, block in found.model.terms():
        if not block.recedes(i, block.argument(i, v, False)):
            where, STATE.where = STATE.where, ""
            raise ProofError(f"unattained is not proved: {where}grows along the direction that was found")
    return {"says": "unattained", "direction": texts(v)}


def _receding(form: Form) -> Iterator[list[list[Fraction]]]:
    """Rational directions (n, d) along which no term grows and some loss falls for ever: first of the parts that the
    simplex method decides in exact arithmetic, then near what a programme finds. All other unknowns stay."""
    cones = cones_of(form)
    if cones is None:
        return
    found = conditions(form, cones)

    def spread(part: ConditionPart, x: list[Fraction]) -> list[list[Fraction]]:
        values = {int(q): Fraction(float(found.scale[q])) * y for q, y in zip(part.columns, x, strict=True)}
        return [[values.get(q, Fraction(0)) for q in row] for row in found.unknowns.number.tolist()]

    undecided: list[ConditionPart] = []
    for part in found.parts():
        x = simplex.find_direction(part)
        if isinstance(x, list):
            yield spread(part, x)
        elif x is None:
            undecided.append(part)
    for answer in answers(*found.matrices) if undecided else ():
        for part in undecided:
            x = part.exact_direction(answer.x[part.columns])
            if x is not None:
                yield spread(part, x)


def _candidates(found: Found, edges: list[Edge]) -> list[Edge]:
    """The edges that may be split, those with the largest differences first."""
    size = [abs(block.difference(found.floats)).max(axis=1, initial=0.0) for block in found.form.edges]
    far = [edge for edge in edges if size[edge.block][edge.place] > 0]
    tight = [edge for edge in far if edge.slack() <= TIGHT * nearest(edge.capacity)]
    return sorted(tight, key=lambda edge: -float(size[edge.block][edge.place]))[:MOST]


OfEdge = Callable[[Found, Edge, float | None], dict[str, Any]]
OF_EDGES: dict[str, OfEdge] = {"near": near, "fused": fused, "split": split, "held": fused}
