"""Boxes that hold an exactly conserved point, and the dual value over all of a box from below, by plain sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import EdgeBlock, Form, SampleBlock
from ...terms import Array, at_a_time
from .structure import Structure
from .sums import DUST, EPS, MORE, PIECE, Runs
from .value import Bound, live, rowwise

CELLS = 1 << 15  # numbers of flows at a time


@dataclass(frozen=True)
class Box:
    """An exactly conserved point has its flows within ``flows +- spread`` and its prices within ``prices +- off``.

    That is a matter of the graph and the designs: it holds in every form that has these, whatever its targets, offsets
    and centers are.
    """

    flows: tuple[Array, ...]
    spread: tuple[Array, ...]
    prices: tuple[Array, ...]
    off: tuple[Array, ...]


@dataclass(frozen=True)
class BoxValue:
    """A lower bound of Q over a box for each component, what lies outside of its domain where there is none, and
    whether all prices lie in the relative interiors of theirs."""

    lower: Array
    why: str
    inner: bool


def box_value(form: Form, structure: Structure, box: Box) -> BoxValue:
    """The dual value over a box, from below. Sums are rounded at every step, and the bound pays for it."""
    found = _Sums(form)
    for block, a, off in zip(form.samples, box.prices, box.off, strict=False):
        found.samples(block, a, off)
    for k in structure.blocks:
        found.edges(form.edges[k], box.flows[k], box.spread[k])
    return BoxValue(found.down(), "; ".join(found.why), found.inner)


class _Sums(Bound):
    """The bound from sums that are rounded at every step: within pieces, which are added up without rounding."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.pieces: list[tuple[Array, Array, Array]] = []  # components, sums, and how far these are off

    def samples(self, block: SampleBlock, a: Array, off: Array) -> None:
        """Add -sum s h*(a/s) - <a, anchor - offset>, some samples at a time: what is between then stays in the
        cache."""
        for some in block.some():
            value = self.of_prices(block, a[some], off[some], some)[0]
            t = block.loss.anchor(block.y[some]) - block.offset[some]
            self._add(*_terms(block.scale_of(some) * value, a[some], off[some], t), block.node[some])

    def edges(self, edge: EdgeBlock, u: Array, spread: Array) -> None:
        """Add -sum c phi*(u/c) - <u, center>, some edges at a time."""
        for some in at_a_time(CELLS // u.shape[1], len(u)):
            c = edge.weight_of(some)[:, None]
            b, around = u[some] / c, spread[some] / c
            around *= 1.0 + 2 * EPS
            around += EPS * np.abs(b)
            each = edge.penalty.conjugate_bound(b, around)
            each = self.finite(each, edge.tail[some], f"a flow of {edge.name}")[0]
            t = None if edge.center is None else edge.center[some]
            self._add(*_terms(c[:, 0] * each, u[some], spread[some], t), edge.tail[some])

    def _add(self, value: Array, error: Array, node: Array) -> None:
        """Add values at some nodes that are off by an error at most."""
        component = self.form.component[node]
        starts = np.arange(0, len(value), PIECE)
        changes = np.flatnonzero(component[1:] != component[:-1]) + 1
        starts = np.union1d(starts, changes) if len(changes) else starts
        size = np.add.reduceat(np.abs(value), starts)
        off = np.add.reduceat(error, starts) + (PIECE - 1) * (EPS * size + DUST * (size > 0.0))
        self.pieces.append((component[starts], np.add.reduceat(value, starts), off * MORE))

    def down(self) -> Array:
        if self.pieces:
            component, value, off = (np.concatenate(each) for each in zip(*self.pieces, strict=True))
            where = Runs(component, self.form.n_components)
            found = where.sums(value)
            self.parts += [found.high, found.low]
            self.errors += found.error
            self.spend(off, where, plain=True)
        return super().down()


def _terms(value: Array, a: Array, off: Array, t: Array | None) -> tuple[Array, Array]:
    """-(value + <a, t>) row by row, where value and t were rounded once, and how far that is off."""
    error = 2 * EPS * np.abs(value) + DUST * live(a, off)
    if t is not None:
        each = 4 + (1 if t.ndim == 1 else t.shape[1])  # roundings of t, of a product, and of their sum
        error += rowwise((each * EPS * np.abs(a) + off) * np.abs(t)) * MORE
        value = value + rowwise(a * t)
        error += EPS * np.abs(value)
    return -value, error
