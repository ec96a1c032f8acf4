"""Both bounds in one pass, where losses and penalties are functions of single numbers: squares, losses whose slopes
end, and absolute values.

With h_i the loss of node i in one coordinate, any parameters w and any flows u within their capacities c bound the
optimum from both sides, where the flows leave prices -(K'u)_i to the nodes that are in the domains of h_i*:

    P(w) - Q(u) = sum_e (c_e |z_e| - u_e z_e)  +  sum_i h_i(w_i) + h_i*(-(K'u)_i) + w_i (K'u)_i,    z = Kw.

All summands are at least 0, and each is computed without any cancellation: with squares alone, whose second derivatives
add up to H_i, those of the nodes are (h_i'(w_i) + (K'u)_i)^2 / (2 H_i), squares of what rounding has left. So the lower
bound, which is the upper one less this, is about as good as the sum of P. Prices that may be at the ends of domains are
known up to rounding only: all flows are shrunk a little for them, and so are all prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array, SampleBlock
from ..enclosure.boxes import Enclosed
from ..enclosure.sums import EPS, MORE
from ..remembered import Dual, Primal, Source
from .in_one_pass import PIECE, on_a_graph, on_a_line

ROUNDED = 0.5 * EPS * (PIECE + 16) * MORE  # of a sum of terms that are rounded a few times each, added up in pieces
END = 1e-130  # more than what each term may miss near the end of the range
SHRUNK = (1e-13, 1e-11)  # by what flows are shrunk where prices end


@dataclass(frozen=True)
class AddedUp:
    """The sums of one form."""

    form: Form

    @classmethod
    def of(cls, form: Form) -> AddedUp | None:
        """None where a loss or a penalty is another."""
        single = all(_curved(block) is not None for block in form.samples)
        absolute = all(not edge.ground and edge.penalty.pieces(form.width(edge)) == 1 for edge in form.edges)
        return cls(form) if single and absolute else None

    @cached_property
    def _end(self) -> bool:
        """Whether prices may."""
        return any(np.isfinite(np.concatenate(block.loss.domain(block.y[:1]))).any() for block in self.form.samples)

    @cached_property
    def _in_line(self) -> bool:
        """Whether the nodes stand in the order of a chain, each with one sample of its own."""
        edges, samples = self.form.edges, self.form.samples
        whole = len(edges) == 1 and edges[0].features is None and edges[0].in_line
        return whole and len(samples) == 1 and samples[0].one_each and not self._end

    def __call__(self, w: Array, flows: tuple[Array, ...]) -> tuple[Primal, Dual] | None:
        """The bounds from parameters and flows; None where a flow is beyond its capacity or a price beyond its domain,
        or numbers are so large or so small that products may leave the range of floats."""
        for t in SHRUNK if self._end else ():
            found = self._bounds(w, tuple((1.0 - t) * u for u in flows))
            if found is not None:
                return found
        return None if self._end else self._bounds(w, flows)

    def _bounds(self, w: Array, flows: tuple[Array, ...]) -> tuple[Primal, Dual] | None:
        form, d = self.form, self.form.d
        sums, columns = zip(*(self._coordinate(j, w, flows) for j in range(d)), strict=True)
        value, off, gap = (math.fsum(each) for each in zip(*sums, strict=True))
        terms = w.size + sum(u.size for u in flows) + sum(block.offset.size for block in form.samples)
        off = (off + ROUNDED * value + END * terms) * MORE
        gap = (gap + END * terms) * MORE
        if not np.isfinite(off + gap):
            return None
        prices = [np.stack(each, axis=1) if d > 1 else each[0] for each in zip(*columns, strict=True)]
        shapes = [block.offset.shape for block in form.samples]
        point = DualPoint(flows, tuple(a.reshape(shape) for a, shape in zip(prices, shapes, strict=True)))
        lower = (value - off - gap) - EPS * (value + off + gap)
        found = Enclosed(np.array([lower]), point, tuple(np.zeros(u.shape) for u in flows), inner=True)
        primal = Primal(value, (value + off) * (1.0 + EPS), w, True)
        return primal, Dual(value - gap, found, Source(point, lower, w))

    def _coordinate(self, j: int, w: Array, flows: tuple[Array, ...]) -> tuple[tuple[float, ...], list[Array]]:
        """The sums of one coordinate, and the prices of each loss."""
        samples, edges = self.form.samples, self.form.edges
        here = [(edge, np.flatnonzero(edge.columns(self.form.d) == j)) for edge in edges]
        acting = [(edge, u[:, place[0]]) for (edge, place), u in zip(here, flows, strict=True) if len(place)]
        own = np.ascontiguousarray(w[:, j])
        y, u = _joined([_of(b.y, j) for b in samples]), _joined([u for _, u in acting])
        a = np.empty(len(y))
        if self._in_line:
            times = np.array([float(samples[0].strength), float(edges[0].strength)])
            value, gap = on_a_line((y, samples[0].base_scale, edges[0].base_weight, times, own, u), (a,))
            return (value, 0.0, gap), [a]
        s, c = _joined([b.scale for b in samples]), _joined([edge.weight for edge, _ in acting])
        ends = self._ends(j) if self._end else (np.zeros(0),) * 3
        x = _joined([np.ones(len(b.node)) if b.X is None else b.X[:, 0] for b in samples])
        tail, head = (_joined([getattr(edge, end) for edge, _ in acting]) for end in ("tail", "head"))
        nodes = tuple(np.zeros(self.form.n) for _ in range(3))
        node = _joined([b.node for b in samples])
        found = on_a_graph((node, x, y, s, *ends, tail, head, c, u, own), nodes, (a,))
        return found, np.split(a, np.cumsum([len(b.node) for b in samples])[:-1])

    def _ends(self, j: int) -> tuple[Array, Array, Array]:
        """Of the slopes of all losses in one coordinate, and whether they are curved."""
        samples = self.form.samples
        low, high = (
            _joined([np.broadcast_to(_of(b.loss.domain(b.y)[k], j), len(b.node)) for b in samples]) for k in (0, 1)
        )
        return low, high, np.concatenate([np.full(len(b.node), float(bool(_curved(b)))) for b in samples])


def _curved(block: SampleBlock) -> bool | None:
    """Of a loss of single numbers whose derivative is the number or jumps at 0, clipped to the domain of prices,
    whether it is the first; None of any other."""
    single = (block.X is None or block.X.shape[1] == 1) and not block.offset.any()
    bends = block.loss.bends(block.y[:1]) if single else None
    if bends is None:
        return None
    low, high = block.loss.domain(block.y[:1])
    if not (low < 0.0).all() or not (high > 0.0).all():  # to shrink prices takes them away from all ends but 0
        return None
    places = [(*(each.ravel()[0] for each in knot),) for knot in bends.knots]
    slope, height, first, last = (each.ravel()[0] for each in (bends.slope, bends.height, low, high))
    if not places:
        return True if (slope, height, first, last) == (1.0, 0.0, -np.inf, np.inf) else None
    if (slope, height, places) == (0.0, first, [(0.0, 0.0, last - first)]):
        return False
    return True if (slope, height, places) == (0.0, first, [(first, 1.0, 0.0), (last, -1.0, 0.0)]) else None


def _of(values: Array, j: int) -> Array:
    """One coordinate, of numbers or of vectors."""
    return values if values.ndim == 1 else values[:, j]


def _joined(parts: list[Array]) -> Array:
    """One behind the other; itself where there is one."""
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate([np.zeros(0, int), *parts])
