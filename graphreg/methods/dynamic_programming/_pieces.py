"""A problem whose losses and node penalties are piecewise quadratic and separable, coordinate by coordinate.

Its unknowns are t = w - shift, where the shift of a tree has the size of its targets: what is large in both cancels
once, before any sum is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...form import Form
from ...terms import Array, EdgeBlock, SampleBlock
from ...terms.losses import AbstractLoss
from ...terms.losses._piecewise import AbstractPiecewiseLinearLoss
from ...terms.losses.base import AbstractQuadraticLoss
from ...terms.losses.huber import HuberLoss
from ...terms.penalties import AbstractSmoothPenalty

NEAR = 1e-15  # relative: numbers whose difference rounding may have made
TINY = 1e-300


@dataclass(frozen=True)
class Numbers:
    """Where the predictors of a block speak of a coordinate: sample ``row`` has x w[node, column] and no more."""

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
        row, column = np.nonzero(block.X)
        return cls(block, row, block.node[row], column, block.X[row, column])

    def each(self, values: Array) -> Array:
        """One per number, of what has one per predictor."""
        return values[self.row] if values.ndim == 1 else values[self.row, self.column]

    @property
    def scale(self) -> Array:
        return self.block.scale[self.row]


@dataclass(frozen=True)
class Ground:
    """An edge block to the ground on its coordinates: q/2 (w - center)^2, or a multiple of |w - center|."""

    number: int  # of the block
    edge: EdgeBlock
    smooth: bool
    weight: Array  # (m, k), times q

    @classmethod
    def of(cls, number: int, edge: EdgeBlock, k: int) -> Ground:
        Q = edge.penalty.quadratic(k)
        diagonal = np.ones(k) if Q is None else np.diag(Q)
        return cls(number, edge, Q is not None, edge.weight[:, None] * diagonal)

    def center(self, shift: Array) -> Array:
        """The center less the shift, (m, k)."""
        moved = -shift[self.edge.tail][:, self.edge.coordinates]
        return moved if self.edge.center is None else self.edge.center + moved


def of_one_number(loss: AbstractLoss) -> bool:
    """Whether the derivative of a loss is known to be piecewise linear."""
    return isinstance(loss, (AbstractQuadraticLoss, AbstractPiecewiseLinearLoss, HuberLoss))


def absolute(edge: EdgeBlock, k: int) -> bool:
    """Whether a penalty is a sum of absolute values."""
    return edge.penalty.pieces(k) == 1


def diagonal(edge: EdgeBlock, k: int) -> bool:
    """Whether a penalty is a sum of squares of coordinates."""
    if not isinstance(edge.penalty, AbstractSmoothPenalty):
        return False
    Q = edge.penalty.quadratic(k)
    return Q is not None and not (Q - np.diag(np.diag(Q))).any()


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

    def _shift(self, tree: Array) -> Array:
        """The mean of all targets and centers of a tree, each as a value of its coordinate; (n, d)."""
        total, count = (np.zeros(int(tree.max(initial=-1)) + 1) for _ in range(2))
        for each in self.numbers:
            block = each.block
            at = tree[each.node, each.column]
            total += np.bincount(at, (each.each(block.y) - each.each(block.offset)) / each.x, len(total))
            count += np.bincount(at, minlength=len(total))
        return (total / np.maximum(count, 1.0))[tree]

    def _targets(self, each: Numbers) -> Array:
        """y - o - x shift, so that the loss is that of x t - target."""
        block = each.block
        return (each.each(block.y) - each.each(block.offset)) - each.x * self.shift[each.node, each.column]

    def _line(self, node: Array, column: Array, slope: Array, height: Array) -> None:
        d = self.form.d
        size = self.form.n * d
        self.slope += np.bincount(node * d + column, slope, size).reshape(-1, d)
        self.height += np.bincount(node * d + column, height, size).reshape(-1, d)

    def _of_losses(self) -> Iterator[tuple[Array, ...]]:
        for each, target in zip(self.numbers, self.targets, strict=True):
            loss, s, x = each.block.loss, each.scale, each.x
            if isinstance(loss, AbstractQuadraticLoss):
                self._line(each.node, each.column, s * x * x, -s * x * target)
            elif isinstance(loss, HuberLoss):
                size, bend = s * np.abs(x), s * x * x
                self._line(each.node, each.column, np.zeros(len(x)), -size * loss.delta)
                for sign in (-1.0, 1.0):
                    at = target / x + sign * loss.delta / np.abs(x)
                    yield at, -sign * bend, sign * bend * at, each.node, each.column
            else:
                low, high = (each.each(end) for end in loss.domain(each.block.y))
                jump = s * np.abs(x) * (high - low)
                self._line(each.node, each.column, np.zeros(len(x)), s * np.minimum(x * low, x * high))
                yield target / x, np.zeros(len(x)), jump, each.node, each.column

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

    # ---- what every derivative may be, whatever rounding did to t ----------------------------------------------------
    def prices(self, t: Array) -> list[tuple[Array, Array]]:
        """The least and the largest price of every number."""
        out: list[tuple[Array, Array]] = []
        for each, target in zip(self.numbers, self.targets, strict=True):
            x = each.x * t[each.node, each.column]
            far = NEAR * (np.abs(x) + np.abs(target)) + TINY
            out.append(tuple(each.scale * self._gradient(each, x + side - target) for side in (-far, far)))
        return out

    def _gradient(self, each: Numbers, r: Array) -> Array:
        """l' at the difference r from the target."""
        loss = each.block.loss
        if isinstance(loss, AbstractQuadraticLoss):
            return r
        if isinstance(loss, HuberLoss):
            return np.clip(r, -loss.delta, loss.delta)
        low, high = (each.each(end) for end in loss.domain(each.block.y))
        return np.where(r > 0.0, high, low)

    def ground_flows(self, t: Array) -> list[tuple[Array, Array]]:
        """The least and the largest flow of every edge to the ground."""
        out: list[tuple[Array, Array]] = []
        for each in self.ground:
            at, center = t[each.edge.tail][:, each.edge.coordinates], each.center(self.shift)
            far = NEAR * (np.abs(at) + np.abs(center)) + TINY
            z = at - center
            shape = (lambda r: r) if each.smooth else np.sign
            out.append((each.weight * shape(z - far), each.weight * shape(z + far)))
        return out

    def derivatives(self, prices: list[tuple[Array, Array]], flows: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """The least and the largest derivative at every node and coordinate, (n, d)."""
        d, size = self.form.d, self.form.n * self.form.d
        low, high = np.zeros(size), np.zeros(size)
        for each, (one, two) in zip(self.numbers, prices, strict=True):
            at = each.node * d + each.column
            low += np.bincount(at, np.minimum(each.x * one, each.x * two), size)
            high += np.bincount(at, np.maximum(each.x * one, each.x * two), size)
        for each, (one, two) in zip(self.ground, flows, strict=True):
            at = (each.edge.tail[:, None] * d + each.edge.columns(d)).ravel()
            low += np.bincount(at, one.ravel(), size)
            high += np.bincount(at, two.ravel(), size)
        return low.reshape(-1, d), high.reshape(-1, d)

    def prices_at(self, share: Array, prices: list[tuple[Array, Array]], t: Array) -> tuple[Array, ...]:
        """The price of every predictor, with the share of the way that its node and coordinate take."""
        out: list[Array] = []
        for each, (low, high) in zip(self.numbers, prices, strict=True):
            way = share[each.node, each.column]
            a = low + np.where(each.x > 0.0, way, 1.0 - way) * (high - low)
            whole = each.block.prices(self.shift + t) if len(a) < each.block.offset.size else np.empty(0)
            if not len(whole):
                whole = np.empty(each.block.offset.shape)
            whole[(each.row, each.column) if whole.ndim == 2 else each.row] = a
            out.append(whole)
        return tuple(out)
