"""Both bounds in one pass, where losses are squares of numbers and penalties absolute values of them.

With h_i the losses of node i in one coordinate, whose second derivative is H_i, any parameters w and any flows u within
their capacities c bound the optimum from both sides, and the prices at the minimisers of what the flows leave to the
nodes make these conserved:

    P(w) - Q(u) = sum_e (c_e |z_e| - u_e z_e)  +  sum_i (h_i'(w_i) + (K'u)_i)^2 / (2 H_i),    z = Kw.

All summands are at least 0, so that nothing cancels; those of the nodes are squares of what rounding has left. So the
lower bound, which is the upper one less this, is as good as the sum of P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import DualPoint, Form
from ...terms import Array, SampleBlock
from ...terms.losses import AbstractQuadraticLoss
from ..enclosure.enclosed import Enclosed
from ..enclosure.sums import EPS, MORE
from ..remembered import Dual, Primal, Source
from .in_one_pass import PIECE, on_a_graph, on_a_line

ROUNDED = 0.5 * EPS * (PIECE + 16) * MORE  # of a sum of terms that are rounded a few times each, added up in pieces
END = 1e-130  # more than what each term may miss near the end of the range


@dataclass(frozen=True)
class Squares:
    """The sums of one form."""

    form: Form

    @classmethod
    def of(cls, form: Form) -> Squares | None:
        """None where a loss or a penalty is another."""
        apart = all(_apart(block) for block in form.samples)
        absolute = all(not edge.ground and edge.penalty.pieces(form.width(edge)) == 1 for edge in form.edges)
        return cls(form) if apart and absolute else None

    @cached_property
    def _in_line(self) -> bool:
        """Whether the nodes stand in the order of a chain, each with one sample of its own."""
        edges, samples = self.form.edges, self.form.samples
        whole = len(edges) == 1 and edges[0].features is None and edges[0].in_line
        return whole and len(samples) == 1 and samples[0].one_each

    def __call__(self, w: Array, flows: tuple[Array, ...]) -> tuple[Primal, Dual] | None:
        """The bounds from parameters and flows; None where a flow is beyond its capacity, or numbers are so large or so
        small that products may leave the range of floats."""
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
        return primal, Dual(value - gap, found, Source(point, -np.inf, w))

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
        x = _joined([np.ones(len(b.node)) if b.X is None else b.X[:, 0] for b in samples])
        tail, head = (_joined([getattr(edge, end) for edge, _ in acting]) for end in ("tail", "head"))
        nodes = tuple(np.zeros(self.form.n) for _ in range(3))
        found = on_a_graph((_joined([b.node for b in samples]), x, y, s, tail, head, c, u, own), nodes, (a,))
        return found, np.split(a, np.cumsum([len(b.node) for b in samples])[:-1])


def _apart(block: SampleBlock) -> bool:
    """Whether each sample of a loss is a square of one number."""
    square = isinstance(block.loss, AbstractQuadraticLoss) and not block.loss.is_users()
    return square and (block.X is None or block.X.shape[1] == 1) and not block.offset.any()


def _of(values: Array, j: int) -> Array:
    """One coordinate, of numbers or of vectors."""
    return values if values.ndim == 1 else values[:, j]


def _joined(parts: list[Array]) -> Array:
    """One behind the other; itself where there is one."""
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate([np.zeros(0, int), *parts])
