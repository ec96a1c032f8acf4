"""Attainment: whether the infimum is reached, decided on the directions along which the objective does not grow.

Every summand is non-negative up to a linear term, so its recession function is >= 0; the infimum is attained if every
direction v along which all recession functions vanish is one along which all summands are constant, or fall to a
minimum that they reach (hinges). That fails only through samples whose loss falls for ever (logistic: b x_r'v >= 0;
each loss says so by its `descent`). A linear programme looks for such a v and for the multipliers that rule it out;
what it finds is believed where exact arithmetic, or an enclosure, confirms it, and otherwise nothing is known.
Coordinates that coercive edges tie together are one unknown there. Where nothing falls for ever, but hinges fall to 0
or constraints slacken, the infimum is attained and the same programme finds the prices and flows that are 0 at every
dual point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.clock import OutOfTimeError, at_least, check_deadline, left
from ...base.gate import GRACE, carry_out
from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...terms import Array, RecessionCone
from ...terms.penalties import AbstractEntrywise
from ..common_model.best_common import common
from . import simplex
from .directions import ConditionPart
from .recession import Conditions, conditions, cones_of, multipliers

# Bounds on the entries of a direction, and tolerances: the next where the answer of the one before is not verified.
# ---- linear programmes, by HiGHS, which hears the clock and Ctrl-C ---------------------------------------------------
LOOKS = ((1e3, 1e-10), (1e3, 1e-7), (1e6, 1e-10))
MOST_SECONDS = 300.0  # where no time is set: then nothing is known


@dataclass(frozen=True)
class ProgrammeAnswer:
    """A direction x that a programme found, and the multipliers that show there is no better one."""

    x: Array
    falls: Array
    slack: Array
    still: Array
    tolerance: float


def answers(falls: Any, slack: Any, still: Any) -> Iterator[ProgrammeAnswer]:
    """x that maximises sum_r min(1, (falls x)_r) over the conditions, with its multipliers; look after look, and no
    farther than where nothing falls."""
    rows, count = falls.shape
    none: Any = sp.csr_array((slack.shape[0], rows))
    upper: Any = sp.vstack([sp.hstack([-falls, sp.eye_array(rows)]), sp.hstack([-slack, none])])
    equal = sp.hstack([still, sp.csr_array((still.shape[0], rows))])
    c = np.r_[np.zeros(count), -np.ones(rows)]
    nearest, nothing = LOOKS[0][0], False
    for far, tolerance in LOOKS:
        if nothing and far > nearest:
            return
        bounds = [(-far, far)] * count + [(0.0, 1.0)] * rows
        try:
            result = _solved(c, upper, np.zeros(upper.shape[0]), equal, bounds, tolerance)
        except OutOfTimeError:  # the next look would take as long, and the programme that was left goes on for a while
            return
        if result is not None:
            marginals = -np.asarray(result.ineqlin.marginals)
            free = np.asarray(result.eqlin.marginals) if still.shape[0] else np.zeros(0)
            nothing = nothing or result.fun > -0.5
            yield ProgrammeAnswer(np.asarray(result.x)[:count], marginals[:rows], marginals[rows:], free, tolerance)


def smallest(x: Array, found: Conditions, tolerance: float) -> Array:
    """minimise max |v| where the rows that fall along the given x fall by 1 at least; entries that no row needs are at
    their bounds in that x, and coefficients that run along it would be huge for nothing."""
    falls = (found.falls.matrix @ x > 0.5).astype(float)
    G: Any = sp.vstack([found.falls.matrix, found.slack.matrix])
    least = np.r_[falls, np.zeros(G.shape[0] - len(falls))]
    count = len(x)
    one, eye = np.ones((count, 1)), sp.eye_array(count)
    upper = sp.vstack([sp.hstack([-G, sp.csr_array((G.shape[0], 1))]), sp.hstack([eye, -one]), sp.hstack([-eye, -one])])
    right = np.r_[-least, np.zeros(2 * count)]
    equal = sp.hstack([found.still.matrix, sp.csr_array((found.still.matrix.shape[0], 1))])
    bounds = [(None, None)] * count + [(0.0, None)]
    try:
        result = _solved(np.r_[np.zeros(count), 1.0], upper, right, equal, bounds, tolerance)
    except OutOfTimeError:
        result = None
    return x if result is None else np.asarray(result.x)[:count]


def _solved(c: Array, upper: Any, right: Array, equal: Any, bounds: list[Any], tolerance: float) -> Any:
    """argmin c'x over upper x <= right, equal x = 0; None where HiGHS gets lost."""
    from scipy.optimize import linprog  # half of the time that importing graphreg would take

    options: dict[str, Any] = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
    seconds = left()
    options["time_limit"] = MOST_SECONDS if seconds is None else max(seconds, GRACE)

    def work() -> Any:
        above, zero = sp.csr_array(upper), np.zeros(equal.shape[0])
        return linprog(c, above, right, sp.csr_array(equal), zero, bounds, method="highs", options=options)

    result = carry_out(work)
    return result if result.status == 0 else None


# ---- attainment ------------------------------------------------------------------------------------------------------
def attained(form: Form, point: DualPoint | None = None) -> bool | None:
    """True where the infimum of P is attained; None where that is not known: a penalty does not say how it grows, no
    answer of the linear programme is confirmed, or time is up.

    ``point`` is a conserved dual point: where the prices of the one-sided samples lie well inside their domains it
    mostly settles the question at once (Gordan: <a, Xv> = -<u, Kv> leaves no room for a direction of recession).
    """
    if not any(block.loss.prices.descent(block.y).for_ever.any() for block in form.samples):
        return True
    cones = cones_of(form)
    if cones is None:
        return None
    known = form.memory.get("attained")  # at other strengths: they are positive, and no condition depends on them
    if known is None:
        with suppress(OutOfTimeError), at_least(GRACE):
            known = form.memory["attained"] = _decided(form, cones, point)
    return known


def _decided(form: Form, cones: list[RecessionCone], point: DualPoint | None) -> bool | None:
    exact = all(cone.exact for cone in cones)  # equations known to rounding only are left out: more is allowed then
    found = conditions(form, [cone if cone.exact else replace(cone, equations=None) for cone in cones])
    parts = found.parts()
    single = [_along_one(part) for part in parts if len(part.columns) == 1]
    if any(single):
        return False if exact else None
    parts = [part for part in parts if len(part.columns) > 1]
    if point is not None and parts:
        raw = multipliers(form, cones, point)
        given = tuple(each[kind.kept] / kind.across[kind.kept] for kind, each in zip(found.kinds, raw, strict=True))
        parts = [part for part in parts if not _excluded(part, given)]
    if not parts:
        return True
    for answer in answers(*found.matrices):
        for part in parts:
            moves = float((found.falls.matrix[part.places[0]] @ answer.x).max()) > 0.5
            if exact and moves and part.recedes(answer.x[part.columns]):
                return False
        parts = [part for part in parts if not _excluded(part, (answer.falls, answer.slack, answer.still))]
        if not parts:
            return True
    # by the simplex method in exact arithmetic, where a part is small
    closer = [None if found is None else found is False for found in map(simplex.find_direction, parts)]
    if exact and False in closer:
        return False
    return True if all(closer) else None


def _along_one(part: ConditionPart) -> bool:
    """True where samples fall for ever along the only unknown of a part, one way or the other: signs say it exactly."""
    if part.still.shape[0]:
        return False
    moved = np.concatenate([part.falls.data, part.slack.data])
    return bool((moved > 0).all() or (moved < 0).all())


def _excluded(part: ConditionPart, given: tuple[Array, ...]) -> bool:
    check_deadline()
    return part.has_no_direction(*(kind[places] for kind, places in zip(given, part.places, strict=True)))


@dataclass(frozen=True)
class AtInfinity:
    """A problem that does not change along some direction but that samples fall and constraints slacken, and what is
    left of it far out along that direction.

    At every dual point the prices and flows of what falls away are 0: <a, Xv> + <u, Kv> = 0 is a sum of numbers that
    are all <= 0. So no dual point lies well inside all domains, and none can be repaired; but those of ``rest``, the
    problem without what falls away, can. Its infimum is that of the whole.

    Attributes
    ----------
    attained : bool or None
        Whether the whole attains its infimum: nothing that falls away falls for ever (hinges fall to 0). None where
        something seems to, and exact arithmetic does not confirm it.
    samples : tuple of masks
        The samples that are left, one mask per block.
    edges : tuple of (block, rows, columns)
        Where each edge block of the rest stands in the whole.
    running : array of int
        The nodes at which samples fall for ever.
    """

    form: Form
    direction: Array
    rest: Form
    attained: bool | None
    samples: tuple[Array, ...]
    edges: tuple[tuple[int, Array, Array], ...]
    running: Array

    def extend(self, point: DualPoint) -> DualPoint:
        """A dual point of the rest as one of the whole: what has fallen away has no price and no flow."""
        whole = self.form.nothing()
        remaining = iter(point.prices)
        for a, kept in zip(whole.prices, self.samples, strict=True):
            if kept.any():
                a[kept] = next(remaining)
        for (block, rows, columns), u in zip(self.edges, point.flows, strict=True):
            whole.flows[block][np.ix_(rows, columns)] = u
        return whole

    def lower(self, rest: float) -> float:
        """A lower bound of the whole from one of the rest: a sample that has fallen away is nowhere less than
        -s_r l_r*(0), its limit along the direction."""
        parts = [rest]
        for block, kept in zip(self.form.samples, self.samples, strict=True):
            y = block.y[~kept]
            zero = np.zeros(y.shape)
            limit = -block.scale[~kept] * block.loss.conjugate_bound(zero, zero, y)
            parts += np.nextafter(limit, -np.inf).tolist()
        return float(np.nextafter(math.fsum(parts), -np.inf))

    def push(self, w: Array, gap: float) -> Array:
        """w moved along the direction until P is near the infimum: to a tenth of the relative gap, and no further,
        so that the coefficients stay as small as the gap allows."""
        steps = np.r_[0.0, np.logspace(-2, 6, 60)]
        values = np.array([self.form.primal(w + t * self.direction) for t in steps])
        low = float(np.nanmin(values))
        near = values <= low + 0.1 * gap * max(abs(low), common(self.form).floor)
        return w + steps[int(np.argmax(near))] * self.direction


def at_infinity(form: Form) -> AtInfinity | None:
    """The rest of a problem at infinity; None where nothing falls away (or that is not known)."""
    cones = cones_of(form)
    away = None if cones is None else _away(form, cones)
    if away is None or cones is None:
        return None
    masks: list[Array] = []
    blocks: list[SampleBlock] = []
    falls = np.zeros(form.n, dtype=bool)
    for block, fallen in zip(form.samples, away.fallen, strict=True):
        if block.map.noun == "sample":
            descent = block.loss.prices.descent(block.y)
            falls[block.node[descent.sample[fallen & descent.for_ever]]] = True
        rows, y = block.loss.prices.remains(block.y, fallen)
        masks.append(rows)
        if rows.any():
            blocks.append(replace(block.part(np.flatnonzero(rows)), y=y))
    places: list[tuple[int, Array, Array]] = []
    edges: list[EdgeBlock] = []
    for k, (edge, slack) in enumerate(zip(form.edges, away.slack, strict=True)):
        for rows, columns, part in _tight(edge, slack):
            places.append((k, rows, columns))
            edges.append(part)
    rest = replace(form, samples=tuple(blocks), edges=tuple(edges))
    running = np.flatnonzero(falls)
    return AtInfinity(form, away.direction, rest, away.attained, tuple(masks), tuple(places), running)


@dataclass(frozen=True)
class _Away:
    """A direction (n, d), the rows of each block's `descent` that fall along it, and the coordinates (m, k) of each
    edge block's differences that slacken."""

    direction: Array
    fallen: list[Array]
    slack: list[Array]
    attained: bool | None


def _away(form: Form, cones: list[RecessionCone]) -> _Away | None:
    """A direction along which nothing grows and all samples fall, and constraints slacken, that can."""
    found = conditions(form, cones, everything=True)
    if not found.falls.matrix.shape[0]:
        return None
    answer = next((a for a in answers(*found.matrices) if (found.falls.matrix @ a.x > 0.5).any()), None)
    if answer is None:
        return None
    x = smallest(answer.x, found, answer.tolerance)
    moved = found.falls.moved(x)
    chosen = moved > 0.5
    if not chosen.any():
        return None
    x = x / (moved[chosen] / found.falls.across[chosen]).min()  # in the data's own units they fall by 1 or more
    fallen, slack = _by_block(form, cones, chosen)
    ends = any((each & b.loss.prices.descent(b.y).for_ever).any() for each, b in zip(fallen, form.samples, strict=True))
    return _Away(found.spread(x), fallen, slack, _confirmed(form, cones, answer, found) if ends else True)


def _confirmed(form: Form, cones: list[RecessionCone], answer: ProgrammeAnswer, found: Conditions) -> bool | None:
    """False where some part of a direction is one of recession exactly; None where that is not known."""
    if not all(cone.exact for cone in cones):
        return None
    own = conditions(form, cones)
    x = answer.x * found.scale / own.scale
    try:
        seen = any(part.recedes(x[part.columns]) for part in own.parts())
    except OutOfTimeError:
        return None
    return False if seen else None


def _by_block(form: Form, cones: list[RecessionCone], chosen: Array) -> tuple[list[Array], list[Array]]:
    """The rows of `conditions` that fall, by sample block and by edge block."""
    descents = [block.loss.prices.descent(block.y) for block in form.samples]
    fallen = [np.zeros(len(descent.for_ever), dtype=bool) for descent in descents]
    at = 0
    for kind in (True, False):  # in the order of `conditions`
        for mask, descent in zip(fallen, descents, strict=True):
            rows = np.flatnonzero(descent.for_ever == kind)
            mask[rows] = chosen[at : at + len(rows)]
            at += len(rows)
    slack: list[Array] = []
    for edge, cone in zip(form.edges, cones, strict=True):
        loose = np.zeros((edge.count, form.width(edge)), dtype=bool)
        for one_sided, _ in cone.one_sided:
            size = edge.count * int(one_sided.sum())
            loose[:, one_sided] |= chosen[at : at + size].reshape(edge.count, -1)
            at += size
        slack.append(loose)
    return fallen, slack


def _tight(edge: EdgeBlock, slack: Array) -> list[tuple[Array, Array, EdgeBlock]]:
    """The rest of an edge block whose constraints slacken at some coordinates, by those that are left: rows,
    columns within the block, and the block."""
    m, k = slack.shape
    if not slack.any():
        return [(np.arange(m), np.arange(k), edge)]
    out: list[tuple[Array, Array, EdgeBlock]] = []
    for pattern in np.unique(slack, axis=0):
        rows, columns = np.flatnonzero((slack == pattern).all(axis=1)), np.flatnonzero(~pattern)
        if not len(columns):
            continue
        part = edge.part(rows)
        if pattern.any() and isinstance(edge.penalty, AbstractEntrywise):
            out.append((rows, columns, part.on(columns)))
        else:  # where it is no sum over coordinates it stays as it is
            out.append((rows, np.arange(k), part))
    return out
