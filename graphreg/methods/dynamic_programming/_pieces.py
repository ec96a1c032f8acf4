"""A problem whose losses and node penalties are piecewise quadratic and separable, coordinate by coordinate.

Its unknowns are t = w - shift, where the shift of a tree has the size of its targets: what is large in both cancels
once, before any sum is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import Form
from ...terms import Array, Bends, EdgeBlock, SampleBlock
from ...terms.penalties import squares

NEAR = 1e-15  # relative: numbers whose difference rounding may have made
TINY = 1e-300


@dataclass(frozen=True)
class Numbers:
    """The entries of a block's predictors that speak of one coordinate: sample ``row`` has x w[node, column] and no
    more."""

    block: SampleBlock
    row: Array
    node: Array
    column: Array
    x: Array

    @classmethod
    def of(cls, block: SampleBlock) -> Numbers:
        if block.X is None:
            row, column = (each.ravel() for each in np.indices(block.y.shape))
            return cls(block, row, block.node[row], column, np.ones(len(row)))
        row, column = np.nonzero(block.X)  # in the order of the rows
        return cls(block, row, block.node[row], column, block.X[row, column])

    def each(self, values: Array) -> Array:
        """One per number, of what has one per predictor."""
        if len(self.row) == values.size:
            return values.ravel()
        return values[self.row] if values.ndim == 1 else values[self.row, self.column]

    @cached_property
    def target(self) -> Array:
        """The predictor at which the loss is centred."""
        return self.each(self.block.loss.anchor(self.block.y))

    @cached_property
    def bends(self) -> Bends:
        """The derivative of the loss in the direction in which the coordinate grows."""
        found = self.block.loss.bends(self.each(self.block.y))
        assert found is not None
        return found if (self.x > 0.0).all() else _either(self.x < 0.0, found.mirrored(), found)

    def price(self, r: Array) -> Array:
        """The price at the difference r, in that direction, from the target; inside the domain."""
        b = np.where(self.x < 0.0, -1.0, 1.0) * self.bends.at(r)
        return self.scale * self.block.loss.clip(b, self.each(self.block.y))

    @cached_property
    def scale(self) -> Array:
        return self.block.scale if len(self.row) == len(self.block.node) else self.block.scale[self.row]

    def prices(self, values: Array, w: Array) -> Array:
        """The prices of the block, given those of these numbers; the gradients at w where a predictor is none of
        them, as the features of its sample are 0."""
        out = np.empty(self.block.offset.shape) if len(values) == self.block.offset.size else self.block.prices(w)
        out[(self.row, self.column) if out.ndim == 2 else self.row] = values
        return out


@dataclass(frozen=True)
class Ground:
    """An edge block to the ground on its coordinates: q/2 (w - center)^2, or a multiple of |w - center|."""

    number: int  # of the block
    edge: EdgeBlock
    smooth: bool
    weight: Array  # (m, k), times q

    @classmethod
    def of(cls, number: int, edge: EdgeBlock, k: int) -> Ground:
        Q = squares(edge.penalty, k)
        diagonal = np.ones(k) if Q is None else np.diag(Q)
        return cls(number, edge, Q is not None, edge.weight[:, None] * diagonal)

    def flow(self, z: Array) -> Array:
        """The derivative at the difference z from the center, inside the domain of flows."""
        return self.weight * z if self.smooth else self.edge.clip(self.weight * np.sign(z))

    def center(self, shift: Array) -> Array:
        """The center less the shift, (m, k)."""
        moved = -shift[self.edge.tail][:, self.edge.coordinates]
        return moved if self.edge.center is None else self.edge.center + moved


def _either(take: Array, one: Bends, other: Bends) -> Bends:
    """One or the other, number by number."""
    knots = tuple(
        (np.where(take, a, x), np.where(take, b, y), np.where(take, c, z))
        for (a, b, c), (x, y, z) in zip(one.knots, other.knots, strict=True)
    )
    return Bends(np.where(take, one.slope, other.slope), np.where(take, one.height, other.height), knots)


class Pieces:
    """The derivative of the losses and node penalties at every node and coordinate, in t = w - shift.

    It is ``slope t + height`` far to the left, and changes by ``s t + q`` at each of the ``knots``: their places, what
    they change, and the node and the column of each.
    """

    def __init__(self, form: Form, tree: Array) -> None:
        """``tree`` (n, d) tells of each coordinate of a node to which tree it belongs."""
        self.form = form
        self.numbers = [Numbers.of(block) for block in form.samples]
        self.ground = [Ground.of(k, e, form.width(e)) for k, e in enumerate(form.edges) if e.ground]
        self.shift = self._shift(tree)
        self.targets = [self._targets(each) for each in self.numbers]
        self.slope, self.height = np.zeros(form.shape), np.zeros(form.shape)
        found = [*self._of_losses(), *self._of_ground()]
        empty = np.zeros(0)
        x, s, q, node, column = (np.concatenate(each) for each in zip((empty,) * 5, *found, strict=True))
        self.knots = x, s, q, node.astype(np.intp), column.astype(np.intp)

    def knots_of(self, column: int) -> tuple[Array, ...]:
        """Places, changes and nodes of those of one coordinate."""
        *known, at = self.knots
        own = np.flatnonzero(at == column)
        return tuple(each[own] for each in known)

    def _shift(self, tree: Array) -> Array:
        """The mean of all targets and centers of a tree, each as a value of its coordinate; (n, d)."""
        total, count = (np.zeros(int(tree.max(initial=-1)) + 1) for _ in range(2))
        for each in self.numbers:
            block = each.block
            at = tree[each.node, each.column]
            total += np.bincount(at, (each.target - each.each(block.offset)) / each.x, len(total))
            count += np.bincount(at, minlength=len(total))
        return (total / np.maximum(count, 1.0))[tree]

    def _targets(self, each: Numbers) -> Array:
        """y - o - x shift, so that the loss is that of x t - target."""
        return (each.target - each.each(each.block.offset)) - each.x * self.shift[each.node, each.column]

    def _line(self, node: Array, column: Array, slope: Array, height: Array) -> None:
        d = self.form.d
        size = self.form.n * d
        self.slope += np.bincount(node * d + column, slope, size).reshape(-1, d)
        self.height += np.bincount(node * d + column, height, size).reshape(-1, d)

    def _of_losses(self) -> Iterator[tuple[Array, ...]]:
        for each, target in zip(self.numbers, self.targets, strict=True):
            # of |x| t - target or, where x < 0, of minus that
            size, weight = np.abs(each.x), each.scale * np.abs(each.x)
            place = np.where(each.x < 0.0, -target, target)
            bends = each.bends
            self._line(
                each.node, each.column, weight * size * bends.slope, weight * (bends.height - bends.slope * place)
            )
            for at, change, jump in bends.knots:
                t, bend = (place + at) / size, weight * size * change
                yield t, bend, weight * jump - bend * t, each.node, each.column

    def _of_ground(self) -> Iterator[tuple[Array, ...]]:
        for each in self.ground:
            center, columns = each.center(self.shift), each.edge.columns(self.form.d)
            node, column = np.repeat(each.edge.tail, len(columns)), np.tile(columns, len(each.edge.tail))
            c, at = each.weight.ravel(), center.ravel()
            if each.smooth:
                self._line(node, column, c, -c * at)
            else:
                self._line(node, column, np.zeros(len(c)), -c)
                yield at, np.zeros(len(c)), 2.0 * c, node, column

    def derivatives(self, t: Array) -> Derivatives:
        """The intervals of the derivatives at t, whatever rounding did to it."""
        parts: list[Interval] = []
        for each, target in zip(self.numbers, self.targets, strict=True):
            p, place = np.abs(each.x) * t[each.node, each.column], np.where(each.x < 0.0, -target, target)
            far = NEAR * (np.abs(p) + np.abs(place)) + TINY
            one, two = (each.x * each.price(p + side - place) for side in (-far, far))
            parts.append(Interval(each.node * self.form.d + each.column, np.minimum(one, two), np.maximum(one, two)))
        for each in self.ground:
            at, center = t[each.edge.tail][:, each.edge.coordinates], each.center(self.shift)
            far = NEAR * (np.abs(at) + np.abs(center)) + TINY
            place = each.edge.tail[:, None] * self.form.d + each.edge.columns(self.form.d)
            one, two = (each.flow(z) for z in (at - center - far, at - center + far))
            parts.append(Interval(place.ravel(), one.ravel(), two.ravel()))
        return Derivatives(self, t, parts)


@dataclass(frozen=True)
class Interval:
    """The bounds of what one block adds to the derivatives at nodes and coordinates ``at`` (numbered i d + j): in
    [low, high]."""

    at: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Derivatives:
    """The intervals of the derivatives of all losses and node penalties."""

    pieces: Pieces
    t: Array
    parts: list[Interval]  # of the numbers of the losses, and then of the node penalties

    @property
    def sums(self) -> tuple[Array, Array]:
        """The least and the largest sum at every node and coordinate, (n, d)."""
        return self._sum([each.low for each in self.parts]), self._sum([each.high for each in self.parts])

    @cached_property
    def _single(self) -> bool:
        """True where no two speak of the same node and coordinate."""
        return len(self.parts) == 1 and int(np.bincount(self.parts[0].at, minlength=1).max()) <= 1

    def _sum(self, values: list[Array]) -> Array:
        total = np.zeros(self.t.size)
        if self._single:
            total[self.parts[0].at] = values[0]
            return total.reshape(self.t.shape)
        for each, value in zip(self.parts, values, strict=True):
            total += np.bincount(each.at, value, self.t.size)
        return total.reshape(self.t.shape)

    def adding_up_to(self, own: Array) -> tuple[tuple[Array, ...], dict[int, Array]]:
        """Prices and flows to the ground whose sums are ``own`` (n, d): each goes the same share of its way."""
        if self._single:
            return self._prices([own.ravel()[self.parts[0].at]])
        values = [each.low for each in self.parts]
        width = self._sum([each.high - each.low for each in self.parts])
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(2):  # the second time for what rounding left
                share = np.where(width > 0.0, (own - self._sum(values)) / width, 0.0).ravel()
                values = [v + share[p.at] * (p.high - p.low) for v, p in zip(values, self.parts, strict=True)]
        return self._prices(values)

    def _prices(self, values: list[Array]) -> tuple[tuple[Array, ...], dict[int, Array]]:
        prices: list[Array] = []
        for each, value in zip(self.pieces.numbers, values, strict=False):
            prices.append(each.prices(value / each.x, self.pieces.shift + self.t))
        ground = zip(self.pieces.ground, values[len(prices) :], strict=True)
        return tuple(prices), {each.number: value.reshape(each.weight.shape) for each, value in ground}
