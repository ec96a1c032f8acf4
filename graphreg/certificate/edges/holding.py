"""Rows that hold at every optimum: (K w)_e - b_e is 0, or lies at a bound of its penalty, exactly; proved.

Every optimal dual point (u*, a*) is near what one point w says (see `dual_region`). Of rows N that leave their flows
little room that is enough; those of the others, T, follow from conservation, K_T'u = -(X'a* + K_N'u*). With B
independent rows of T that span the others, R, and any L

    v_B = -L (X'a* + K_N'u* + K_R'v_R) + (I - L K_B') v_B,

of which the region bounds every number, where I - L K_B' is small. Where all of T are independent, v is the flow of
every optimum. Otherwise v_R are flows that the certificate shows, and rows R are exactly sums of rows B, b included:
then all such v are worth what u* is, and where all of them lie inside the subgradients at 0, or push against bounds,
v is optimal, too.

Either way an optimum w* closes Fenchel-Young with v: z*_e is a subgradient of phi_e* at v_e / c_e. Inside the
subgradients at 0 that is 0 alone, and where a flow pushes against a bound of an interval, that bound. Optimal dual
points exist, as is checked; see `fusion.has_optimal_dual`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from scipy.sparse.linalg import splu

from ...form import EdgeBlock, Form
from ...inputs import components_of
from ...terms import Array
from ...terms.penalties import AbstractConstraint, AbstractPenalty, AbstractSmoothPenalty, has_kink, is_equality
from ..record import Certificate
from .dual_region import AbstractNumbers, Region, flat, of_edges
from .fusion import UNBOUNDED, Separated, inside_at_zero, optimal_prices
from .near import U, load, upper_gap

NARROW, WIDEST = 1e-3, 0.05  # of the size of a flow: the room of one that is known well enough; the latter
LITTLE = 0.1  # where the flow that is shown has less than so much of that room left
MOST = 3e8  # products of the rows of a system and of what acts on it
DENSE = 1e6  # numbers of a system whose dependent rows are looked for
CHUNK = 1 << 21  # numbers that are looked at together
DEPENDENT = 1e-9  # of the largest pivot
SMALL, ADDED = 24, 200_000  # the largest denominator of a sum of rows, and how many rows are added up exactly
LEAST = 1e-8  # of the largest uncertainty: smaller ones count as so much
ROUNDS = 4  # of leaving out the rows of a system that fail


def interval(phi: AbstractPenalty) -> tuple[float, float]:
    """The bounds of z that a constraint on one number leaves; +-inf where the penalty is none."""
    if not isinstance(phi, AbstractConstraint):
        return -np.inf, np.inf
    high, low = phi.conjugate(np.array([[1.0], [-1.0]]))
    return -float(low), float(high)


def faces(edge: EdgeBlock, low: Array, high: Array) -> tuple[Array, Array]:
    """What z_e is at every optimum, (m,), where low <= v_e <= high (m, k) for an optimal flow: 0, the bound of an
    interval against which the flow pushes, or nan where that is not known; and how far the flow is from where it would
    not be known, at the least."""
    m, k = low.shape
    phi, c, pair = edge.penalty, edge.weight, np.array([[1.0], [-1.0]])
    at, margin = np.full(m, np.nan), np.zeros(m)
    if is_equality(phi, k):
        return np.zeros(m), np.full(m, np.inf)
    known = np.flatnonzero(np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1))
    low, high, c = low[known], high[known], c[known]
    if k > 1:
        if has_kink(phi, k):
            room = 0.5 * (high - low) * (1.0 + 8 * U) + 8 * U * (np.abs(low) + np.abs(high))
            margin[known] = c * (1.0 - load(edge.part(known), 0.5 * (low + high), room))
            at[margin > 0.0] = 0.0
        return at, margin
    low, high = (v[:, 0] / c + sign * 8 * U * np.abs(v[:, 0] / c) for v, sign in ((low, -1), (high, 1)))
    with np.errstate(divide="ignore"):
        top, bottom = np.array([1.0, -1.0]) / phi.gauge_at_zero(pair)  # of the subgradients at 0
    down, up = interval(phi)
    for value, left in ((up, low), (down, -high), (0.0, np.minimum(top - high, low - bottom))):
        here = (left > 0.0) & np.isfinite(value)
        at[known[here]], margin[known[here]] = value, (c * left)[here]
    return at, margin


# ---- numbers of rows, one behind the other ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Shown(AbstractNumbers):
    """What the certificate shows of numbers of rows: a flow inside the subgradients at 0, the size of flows, b and the
    bound against which the flow pushes, and the share of the size that is left."""

    flow: Array
    unit: Array
    base: Array
    room: Array

    @staticmethod
    def of(edge: EdgeBlock, u: Array, largest: float) -> _Shown:
        phi, unit = edge.penalty, np.broadcast_to(edge.weight[:, None], u.shape)
        base = np.zeros(u.shape) if edge.center is None else edge.center
        if not isinstance(phi, AbstractConstraint):
            t = phi.gauge_at_zero(u / unit)[:, None]
            room = np.broadcast_to(1.0 - np.minimum(t, 1.0), u.shape)
            return _Shown(inside_at_zero(edge, u), unit, base, room)
        if u.shape[1] == 1 and not is_equality(phi, 1):
            low, high = interval(phi)
            base = base + np.where(u > 0.0, high, np.where(u < 0.0, low, 0.0))
        return _Shown(u, np.full(u.shape, largest), base, np.abs(u) / largest)


def _stacked(maps: list[sp.csr_array], size: int) -> Any:
    """K of some blocks, (numbers, n d)."""
    return sp.csr_array(sp.vstack([sp.csr_array((0, size)), *maps], format="csr"))


def held(certificate: Certificate, parts: Separated) -> list[tuple[Array, Array]]:
    """What z_e is proved to be at every optimum, (m,), on the rows of each block of ``parts``, which is the form of
    the certificate, and by what margin of the flow; nan where nothing is proved."""
    form, w, gap = parts.form, certificate.w, upper_gap(certificate)
    out = [faces(edge, *(np.full((edge.count, form.width(edge)), np.inf) for _ in range(2))) for edge in form.edges]
    sure = optimal_prices(form, w, gap)
    if sure is None or not form.edges:
        return out
    size, flows = form.n * form.d, parts.parts(certificate.dual_point.flows)
    K = _stacked([edge.flat(form.d) for edge in form.edges], size)
    others = _stacked([block.A for block in form.samples], size), Region.joined(sure)
    region = Region.joined([_region(edge, form, w, gap) for edge in form.edges])
    largest = max([float(np.abs(x).max(initial=0.0)) for x in certificate.dual_point.parts]) or 1.0
    shown = _Shown.joined([_Shown.of(edge, u, largest) for edge, u in zip(form.edges, flows, strict=True)])
    ends = np.cumsum([0, *(u.size for u in flows)])[1:-1]

    def split(numbers: Array) -> list[Array]:
        return [part.reshape(u.shape) for part, u in zip(np.split(numbers, ends), flows, strict=True)]

    room = np.where(shown.room * shown.unit <= LITTLE * region.width, WIDEST, NARROW) * shown.unit
    wide = [over.any(axis=1) for over in split(~(region.width <= room))]
    limited = [each.all(axis=1) for each in split(np.isfinite(region.width))]
    free = [mask & (not isinstance(e.penalty, AbstractSmoothPenalty)) for mask, e in zip(wide, form.edges, strict=True)]
    for _ in range(ROUNDS):
        numbers = flat(np.repeat(mask, u.shape[1]) for mask, u in zip(free, flows, strict=True)).astype(bool)
        low, high, system = map(split, _flows(K, region, numbers, others, shown, gap))
        out = [faces(edge, a, b) for edge, a, b in zip(form.edges, low, high, strict=True)]
        fails = [np.isnan(at)[:, None] & (s >= 0) for (at, _), s in zip(out, system, strict=True)]
        lost = np.unique(flat(s[bad] for s, bad in zip(system, fails, strict=True)))
        for (at, _), s in zip(out, system, strict=True):
            at[np.isin(s, lost).any(axis=1)] = np.nan
        leave = [bad.any(axis=1) & known for bad, known in zip(fails, limited, strict=True)]
        if not any(mask.any() for mask in leave):
            break
        free = [mask & ~gone for mask, gone in zip(free, leave, strict=True)]
    return out


def _region(edge: EdgeBlock, form: Form, w: Array, gap: float) -> Region:
    if not is_equality(edge.penalty, k := form.width(edge)):
        return of_edges(edge, form, w, gap)
    none = np.zeros((edge.count, k))
    return Region(none, none + np.inf, none)


# ---- what conservation says of the flows of the other rows -----------------------------------------------------------
def _flows(
    K: Any, region: Region, free: Array, known: tuple[Any, Region], shown: _Shown, gap: float
) -> tuple[Array, Array, Array]:
    """Bounds of the flows at all numbers; and the system of each in which rows depend on others, else -1."""
    low, high, system = np.full(len(free), -np.inf), np.full(len(free), np.inf), np.full(len(free), -1.0)
    some, others = np.flatnonzero(free), Region.joined([known[1], region.part(~free)])
    S: Any = sp.csr_array(_stacked([known[0], K[~free]], K.shape[1]).T)
    row, column = K[some].tocoo().coords
    joint = components_of(row, len(some) + column, len(some) + K.shape[1])[1][: len(some)]
    for number in np.unique(joint):
        mine = some[joint == number]
        found = _solved(K[mine], shown.part(mine), S, others, gap)
        if found is not None:
            low[mine], high[mine], dependent = found
            system[mine] = number if dependent else -1
    return low, high, system


def _solved(K: Any, shown: _Shown, S: Any, others: Region, gap: float) -> tuple[Array, Array, bool] | None:
    """Bounds of the flows of one system, and whether some of its rows depend on others; None where there are none."""
    places = np.unique(K.indices)
    if not len(places):  # numbers of rows that no parameter touches
        return None
    S = S[places]
    acting = np.unique(S.indices)
    S, at, whole = S[:, acting], others.part(acting), sp.csr_array(K[:, places])
    K = sp.csr_array(sp.diags_array(shown.unit) @ whole)
    basis, rest = _independent(K, shown.room)
    m, B, R, given = len(basis), K[basis], K[rest].T, (shown.flow / shown.unit)[rest]
    if m * (len(acting) + len(places)) > MOST:
        return None
    many = 4 * U * (len(places) + 16)
    width, D = np.minimum(at.width, UNBOUNDED), S @ at.center + R @ given
    error = 4 * U * (S.shape[1] + R.shape[1] + 16) * (abs(S) @ np.abs(at.center) + abs(R) @ np.abs(given))
    inverse = _left_inverse(B, np.sqrt(2.0 * gap * (S.power(2) @ at.weight)) + abs(S) @ width + error)
    if inverse is None:
        return None
    middle, half, off, sums = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, len(rest)))
    step = max(1, int(CHUNK // (len(acting) + len(places) + m)))
    for begin in range(0, m, step):
        some = np.arange(begin, min(begin + step, m))
        L = inverse(some)
        size, left = np.abs(L), -(L @ B.T)
        left[np.arange(len(some)), some] += 1.0
        carried = np.abs(L @ S) + many * (size @ abs(S))
        off[some] = np.abs(left).sum(axis=1) + many * (size @ abs(B).sum(axis=0))
        middle[some], sums[some] = -(L @ D), L @ R
        half[some] = carried @ width + size @ (error + many * np.abs(D)) + np.sqrt(2.0 * gap * (carried**2 @ at.weight))
    if not off.max(initial=0.0) < 0.5 or not _add_up(whole, shown, basis, rest, sums):
        return None
    half += off * (np.abs(middle) + half).max(initial=0.0) / (1.0 - off.max(initial=0.0))
    low, high = shown.flow.copy(), shown.flow.copy()
    low[basis], high[basis] = shown.unit[basis] * (middle - half), shown.unit[basis] * (middle + half)
    more = (1e-9 * half + 8 * U * np.abs(middle)) * shown.unit[basis]
    low[basis] -= more
    high[basis] += more
    return low, high, len(rest) > 0


def _independent(K: Any, room: Array) -> tuple[Array, Array]:
    """Rows that are independent, of those with the most room, and the others; all where they are many."""
    every = np.arange(K.shape[0])
    if K.shape[0] * K.shape[1] > DENSE:
        return every, every[:0]
    size = np.sqrt(K.power(2).sum(axis=1))
    dense = K.toarray() * ((0.1 + room) / np.where(size > 0, size, 1.0))[:, None]
    pivots, order = cast(Any, qr(dense.T, mode="r", pivoting=True))
    found = np.abs(np.diag(pivots))
    rank = int((found > DEPENDENT * found.max(initial=0.0)).sum())
    return np.sort(order[:rank]), np.sort(order[rank:])


def _left_inverse(B: Any, uncertain: Array) -> Callable[[Array], Array] | None:
    """Some rows of an L with L B' near I, which asks most of the columns that are known best; None where rows are not
    independent."""
    m, n = B.shape
    share = uncertain / (uncertain.max(initial=0.0) or 1.0)
    system = sp.csc_array(sp.block_array([[sp.diags_array(np.maximum(share, LEAST) ** 2), B.T], [B, None]]))
    try:
        factor = splu(system)
    except RuntimeError:  # exactly singular
        return None

    def rows(some: Array) -> Array:
        unit = np.zeros((m + n, len(some)))
        unit[n + some, np.arange(len(some))] = 1.0
        x = factor.solve(unit)
        x += factor.solve(unit - system @ x)
        return np.ascontiguousarray(x[:n].T)

    return rows


def _add_up(K: Any, shown: _Shown, basis: Array, rest: Array, sums: Array) -> bool:
    """True where the other rows, and what they hold, are sums of those of the basis, exactly."""
    used = np.abs(sums) > DEPENDENT
    if used.sum() > ADDED:
        return False
    lines = [(K.indices[a:b].tolist(), K.data[a:b].tolist()) for a, b in zip(K.indptr[:-1], K.indptr[1:], strict=True)]
    for j, r in enumerate(rest.tolist()):
        total = defaultdict[int, Fraction](Fraction)
        mine = [(b, sums[i, j] * shown.unit[b] / shown.unit[r]) for i, b in enumerate(basis.tolist()) if used[i, j]]
        for b, share in [*mine, (r, -1.0)]:
            q = Fraction(float(share)).limit_denominator(SMALL)
            if not np.isfinite(shown.base[b]):
                return False
            for place, value in zip([*lines[b][0], -1], [*lines[b][1], float(shown.base[b])], strict=True):
                total[place] += q * Fraction(value)
        if any(total.values()):
            return False
    return True
