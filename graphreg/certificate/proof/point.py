"""A dual point in exact numbers, near one in floats, and what is left of its balance."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...terms import Array
from ...verify import Model, rational
from ..kernel.system import Flows, Prices, Summand, System
from .statement import exact, exactly, flow_root, solve

AT_AN_END = 1e-9  # prices (at scale 1) so near an end of their domain are put inside exactly
Rows = list[list[Any]]


@dataclass
class ExactPoint:
    """The variables v of a system as rationals, with ``rest`` = Bv over its equations.

    ``roots`` has of each block of flows u = c R't, by its first variable, the t from which they started, and these u.
    """

    system: System
    model: Model
    v: list[Any]
    roots: dict[int, tuple[Rows, Rows]] = field(default_factory=dict[int, tuple[Rows, Rows]])
    rest: list[Any] = field(default_factory=list[Any])

    @cached_property
    def _columns(self) -> tuple[list[tuple[int, float]], list[int]]:
        columns: Any = self.system.kind.rows(np.arange(self.system.size))
        return list(zip(columns.indices.tolist(), columns.data.tolist(), strict=True)), columns.indptr.tolist()

    def cells(self, j: int) -> list[tuple[int, Any]]:
        """The change of ``rest`` by one unit more of a variable: (equation, amount)."""
        cells, start = self._columns
        return [(i, exact(x)) for i, x in cells[start[j] : start[j + 1]]]

    def move(self, j: int, amount: Any) -> None:
        """Change a variable, and with it ``rest``."""
        self.v[j] += amount
        for i, x in self.cells(j):
            self.rest[i] += x * amount

    def rows(self, one: Summand) -> Rows:
        """The variables of a summand."""
        k = one.shape[1]
        return [self.v[first : first + k] for first in range(one.first, one.columns.stop, k)]

    def put(self, one: Summand, rows: Rows) -> None:
        """State the variables of a summand; `balance` is to follow."""
        self.v[one.columns] = [x for row in rows for x in row]

    def balance(self) -> None:
        """``rest`` from the variables."""
        self.rest = [rational(0)] * self.system.shape[0]
        for j, v in enumerate(self.v):
            if v:
                for i, x in self.cells(j):
                    self.rest[i] += x * v

    def statement(self) -> list[Rows]:
        """The point as the checker takes it: prices, then flows, those of a Quadratic as t."""
        prices = [self._prices(one) for one in self.system.prices]
        flows = zip(self.system.flows, self.model.blocks[len(prices) :], strict=True)
        return [*prices, *(self._flows(one, block) for one, block in flows)]

    def _prices(self, one: Prices) -> Rows:
        rows = self.rows(one)
        if one.own is not None:
            for row, own in zip(rows, one.own.tolist(), strict=True):
                row.insert(own, -sum(row, rational(0)))
        return rows

    def _flows(self, one: Flows, block: Any) -> Rows:
        rows = self.rows(one)
        if one.mix is not None:
            return [[q / c for q in row] for row, c in zip(rows, block.c, strict=True)]
        if one.first not in self.roots:
            return rows
        turned = [list(column) for column in zip(*block.penalty.root, strict=True)]  # R't = u / c, with a square R
        each = zip(rows, block.c, *self.roots[one.first], strict=True)
        return [t if u == start else solve(turned, [x / c for x in u]) for u, c, t, start in each]


def exact_point(system: System, model: Model, v: Array) -> ExactPoint:
    """The floats as the rationals that they are; prices beyond an end of their domain exactly there, and the flows of a
    Quadratic by a t that is near."""
    out = ExactPoint(system, model, exactly(v.tolist()))
    for one, block in zip(system.prices, model.blocks, strict=False):
        out.put(one, _inside(one, block.s, v))
    for one, block in zip(system.flows, model.blocks[model.m :], strict=True):
        root = flow_root(system.form, one.edge)
        if root is not None:
            t: Rows = exactly(((one.given(one.taken(v)) / one.scale[:, None]) @ np.linalg.pinv(root)).tolist())
            if one.mix is None:
                u = [block.penalty.flow(c, row) for c, row in zip(block.c, t, strict=True)]
                out.roots[one.first] = t, u
            else:
                u = [[c * x for x in row] for c, row in zip(block.c, t, strict=True)]
            out.put(one, u)
    out.balance()
    return out


def _inside(one: Prices, scales: list[Any], v: Array) -> Rows:
    """The prices, those beyond an end of their domain at it."""
    out: Rows = exactly(one.taken(v).tolist())
    ends = one.block.loss.domain(one.block.y)
    low, high = (one.reduced(np.broadcast_to(side, one.block.offset.shape)) for side in ends)
    b = one.taken(v) / one.scale[:, None]
    near = AT_AN_END * np.maximum(1.0, np.abs(b))
    for r, c in zip(*(x.tolist() for x in np.nonzero(b <= low + near)), strict=True):
        out[r][c] = max(out[r][c], scales[r] * exact(float(low[r, c])))
    for r, c in zip(*(x.tolist() for x in np.nonzero(b >= high - near)), strict=True):
        out[r][c] = min(out[r][c], scales[r] * exact(float(high[r, c])))
    return out
