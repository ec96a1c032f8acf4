"""Next to a dual point a box with an exactly conserved one, by plain sums: what that costs is little beside most gaps.

A few prices move so that the totals of groups vanish, flows move along a forest that is kept for all points, and all is
shrunk towards 0 by as much as makes room for that: where dom phi* holds a ball of radius r around 0, it holds one of
radius t r around (1 - t) u for every u in it. Conservation is linear, and Q concave: t costs at most t (Q - Q(0, 0)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...form import DualPoint, EdgeBlock, Form
from ...network import edge_pulls
from ...terms import Array
from .boxes import Box
from .closing import Closing
from .rows import AbstractRows, Prices, SampleRows
from .structure import Structure, Ways
from .sums import DUST, EPS, MORE, UNDERFLOW, Pair

LEAST = 1e-13  # what flows are shrunk by beside that: they may be rounded out of their domains as they are
MOST = 1e-2  # what they may be shrunk by in all
SLACK = 1e-6  # for rounding of what is needed


def boxes_near(structure: Structure, form: Form, rows: Sequence[AbstractRows], point: DualPoint) -> Iterator[Box]:
    """Boxes that hold an exactly conserved point, near the given one; none where none was found this way.

    The first is shrunk by as much as it takes where the gauge grows with the size of each coordinate, as that of most
    norms does; the second where it does not.
    """
    samples = [each for each in rows if isinstance(each, SampleRows)]
    if len(samples) < len(rows):  # flows that are stated by roots move otherwise
        return
    ways = structure.ways([_movable(form, k) for k in structure.blocks])
    prices = [each.start(a) for each, a in zip(samples, point.prices, strict=True)]
    pulled = Balance(form)
    for each, price in zip(samples, prices, strict=True):
        pulled.add(*each.plain_pull(price.high))
        pulled.error += each.slack(price)  # of dependent prices: totals are those of exact ones
    if not _closed(ways, samples, prices, pulled.with_lows(samples, prices), point.flows):
        return
    balance = pulled.with_lows(samples, prices)
    flows, around, needed = _carried(ways, form, samples, prices, balance, point.flows)
    for times in (1, form.d)[: 1 + (form.d > 1)]:
        t = LEAST + times * needed * (1.0 + SLACK)
        if t <= MOST:
            yield _shrunk(flows, around, prices, t)


class Balance:
    """K'u + X'a as far as it is known, (n, d), and a bound of what rounding left out."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.value, self.error = np.zeros(form.shape), np.zeros(form.shape)

    def add(self, value: Array, error: Array, columns: Array | None = None) -> None:
        """One more summand, with its error."""
        place = slice(None) if columns is None else columns
        self.value[:, place] += value
        self.error[:, place] += error + 0.5 * EPS * np.abs(self.value[:, place])

    def add_edges(self, edge: EdgeBlock, u: Array) -> None:
        """What the flows of an edge block take."""
        degree = 0.5 * EPS * (np.bincount(edge.tail, minlength=edge.n) + _heads(edge))
        found = edge_pulls(edge, u)
        if found is None:
            found = edge.transposed @ u, abs(edge.transposed) @ np.abs(u)
        value, size = found
        size *= degree[:, None]
        self.add(value, size, edge.features)

    def with_lows(self, samples: list[SampleRows], prices: list[Prices]) -> Balance:
        """With what the low parts of the prices pull as they stand: they change where prices move."""
        out = Balance(self.form)
        out.value, out.error = self.value.copy(), self.error.copy()
        for each, price in zip(samples, prices, strict=True):
            if price.low.any():
                out.add(*each.plain_pull(price.low))
        return out


def _heads(edge: EdgeBlock) -> Array:
    """How many edges each node is the head of, (n,)."""
    return np.bincount(edge.head[:0] if edge.ground else edge.head, minlength=edge.n)


def _movable(form: Form, k: int) -> Array:
    """Which arcs of an edge block may move at all around 0, (m, k)."""
    edge = form.edges[k]
    return (edge.weight > 0.0)[:, None] & (edge.penalty.domain.room(np.zeros((1, form.width(edge)))) > 0.0)


# ---- totals of groups ----------------------------------------------------------------------------------------------
def _closed(
    ways: Ways, samples: list[SampleRows], prices: list[Prices], balance: Balance, flows: tuple[Array, ...]
) -> bool:
    """Move prices so that the total of each group without a way to the ground vanishes; whether that was possible."""
    if not len(ways.inside):
        return True
    room = np.concatenate([np.zeros(0), *(each.room(p) for each, p in zip(samples, prices, strict=True))])
    closing = Closing(samples, room, ways.ties(samples, balance.value.shape[1]))
    # what arcs that do not move carry out of each group
    fixed = None if ways.movable.all() else ways.forest.carried_out(ways.arcs, ways.arcs.flat(flows))
    if closing.idle or (fixed is not None and closing.following):
        return False
    inside = [x[ways.inside] if ways.alike else x.ravel()[ways.inside] for x in (balance.value, balance.error)]
    found, slack = ways.groups.sums(inside[0]), ways.groups.sums(inside[1], plain=True)
    high, low, error = found.high.ravel(), found.low.ravel(), (found.error + slack.high + slack.error).ravel() * MORE
    if fixed is not None:
        high, low = high + fixed.high, low + fixed.low
        error = error + fixed.error + EPS * (np.abs(high) + np.abs(low))
    T = Pair(high, low, error)
    if closing.failures(T):
        return False
    closing.move(prices, T)
    return True


# ---- flows -----------------------------------------------------------------------------------------------------------
def _carried(
    ways: Ways,
    form: Form,
    samples: list[SampleRows],
    prices: list[Prices],
    balance: Balance,
    flows: tuple[Array, ...],
) -> tuple[list[Array], list[Array], float]:
    """Flows moved along the forest, how far they are from conserving exactly, and by how much they are to be shrunk."""
    for k in ways.arcs.blocks:
        balance.add_edges(form.edges[k], flows[k])
    left, off = balance.value, balance.error * MORE
    for each, price in zip(samples, prices, strict=True):
        if price.spread.any():
            off = off + each.most(price.spread)
    if not ways.alike:
        left, off = left.ravel(), off.ravel()
    forest, moves = ways.forest, len(ways.arcs.tail) > 0 and bool((np.abs(left) > off).any())
    # Where nothing moves what is left counts as error; else the sums over subtrees are rounded.
    around = forest.gather(off + np.abs(left) * (2 * (MORE - 1.0) if moves else 1.0)) * MORE
    by = np.zeros_like(around)
    if moves:
        vertex = np.arange(len(forest.arc))
        sign = np.where(ways.arcs.tail[forest.arc] == vertex, -1.0, 1.0).reshape(-1, *[1] * (left.ndim - 1))
        by = sign * (forest.gather(np.maximum(left, 0.0)) - forest.gather(np.maximum(-left, 0.0)))
    return _placed(ways, form, by, around, flows)


def _placed(
    ways: Ways, form: Form, by: Array, around: Array, flows: tuple[Array, ...]
) -> tuple[list[Array], list[Array], float]:
    found, spread, needed = list(flows), [np.zeros(u.shape) for u in flows], [0.0]
    inner = np.flatnonzero(ways.forest.arc >= 0)
    inner = inner[np.argsort(ways.forest.arc[inner], kind="stable")]
    arc, by, around = ways.forest.arc[inner], by[inner], around[inner]
    start = 0
    for k, (m, width) in zip(ways.arcs.blocks, ways.arcs.shapes, strict=True):
        some = slice(*np.searchsorted(arc, [start, start + m * width]))
        at, edge = arc[some] - start, form.edges[k]
        u, need = np.array(flows[k], dtype=float, order="C"), np.abs(by[some]) + around[some]
        flat, off = (u, spread[k]) if ways.alike else (u.reshape(-1), spread[k].reshape(-1))
        flat[at] += by[some]
        off[at] = around[some] + np.where(by[some] == 0.0, 0.0, EPS * np.abs(flat[at]))
        if not ways.alike:
            at, need = _by_edge(at, need, u.shape)
        needed.append(float(edge.penalty.domain.gauge(need / edge.weight[at, None]).max(initial=0.0)))
        found[k] = u
        start += m * width
    return found, spread, max(needed)


def _by_edge(arc: Array, need: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """The edges that have some of the arcs, and what these need, with 0 at their other arcs."""
    if shape[1] == 1:  # an arc is an edge
        return arc, need[:, None]
    edges, row = np.unique(arc // shape[1], return_inverse=True)
    out = np.zeros((len(edges), shape[1]))
    out[row, arc % shape[1]] = need
    return edges, out


def _shrunk(flows: list[Array], around: list[Array], prices: list[Prices], t: float) -> Box:
    """The box of all flows and prices times 1 - t."""
    s = 1.0 - t
    out: list[list[Array]] = [[], [], [], []]
    boxes = [*zip(flows, around, strict=True)], [each.interval() for each in prices]
    for k, pairs in enumerate(boxes):
        for x, off in pairs:
            value = s * x
            reach = np.abs(value)
            lost = (reach < UNDERFLOW) & (x != 0.0)
            reach *= EPS
            reach += off * MORE
            if lost.any():
                reach += DUST * lost
            out[2 * k].append(value)
            out[2 * k + 1].append(reach)
    return Box(*(tuple(part) for part in out))
