"""A dual point in exact numbers, near one in floats, and what is left of its balance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...form import DualPoint, Form, SampleBlock
from ...terms import Array
from ...verify import Model, rational
from .statement import exact, exactly, flow_root, nearest

AT_AN_END = 1e-9  # prices (at scale 1) so near an end of their domain are put inside exactly


@dataclass(frozen=True)
class Variable:
    """A number that may be moved beside the flows along trees: a price (several, with signs, that keep a sum) or an
    entry of a t; and its room."""

    block: int
    row: int
    parts: tuple[tuple[int, int], ...]
    slack: float
    root: bool = False


@dataclass
class ExactPoint:
    """Prices (block, sample, class) and flows (block, edge, place), with ``rest`` = K'u + X'a over the vertices
    ``node * d + column`` and, last, the ground.

    ``roots[m]`` are the t of a block of edges whose flows are stated by u = c R't; None for all other blocks.
    """

    form: Form
    model: Model
    prices: list[list[list[Any]]]
    flows: list[list[list[Any]]]
    roots: list[list[list[Any]] | None]
    moved: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    rest: list[Any] = field(default_factory=list[Any])

    def edges(self, m: int) -> Any:
        """The block of edges as the checker holds it."""
        return self.model.blocks[len(self.form.samples) + m]

    def statement(self) -> list[list[list[Any]]]:
        """The point as the checker takes it: prices, then flows, those of roots as t."""
        return [*self.prices, *(u if t is None else t for u, t in zip(self.flows, self.roots, strict=True))]

    def price_cells(self, m: int, r: int, c: int) -> list[tuple[int, Any]]:
        """The change of ``rest`` by one unit more of a price: (vertex, amount)."""
        block, base = self.model.blocks[m], int(self.form.samples[m].node[r]) * self.form.d
        if block.x is None:
            return [(base + c, rational(1))]
        return [(base + f * block.k + c, x) for f, x in enumerate(block.x[r]) if x != 0]

    def root_cells(self, m: int, e: int, s: int) -> list[tuple[int, Any]]:
        """The change of ``rest`` by one unit more of t_s."""
        edge, block, d = self.form.edges[m], self.edges(m), self.form.d
        tail, head = int(edge.tail[e]), int(edge.head[e])
        cells = [(f, block.c[e] * block.penalty.root[s][p]) for p, f in enumerate(block.columns)]
        return [(tail * d + f, v) for f, v in cells] + [(head * d + f, -v) for f, v in cells if head >= 0]

    def cells(self, variable: Variable) -> list[tuple[int, Any]]:
        """The change of ``rest`` by one unit more of the variable."""
        own = self.root_cells if variable.root else self.price_cells
        return [(v, s * x) for c, s in variable.parts for v, x in own(variable.block, variable.row, c)]

    def move(self, variable: Variable, amount: Any) -> None:
        """Change a variable, and with it ``rest`` and the flows of a t."""
        m, row = variable.block, variable.row
        values = self.roots[m] if variable.root else self.prices[m]
        assert values is not None  # as only the t of roots are variables
        for c, s in variable.parts:
            values[row][c] += s * amount
        if variable.root:
            block = self.edges(m)
            self.flows[m][row] = [block.c[row] * x for x in _combined(block.penalty.root, values[row])]
        for v, x in self.cells(variable):
            self.rest[v] += x * amount

    def balance(self) -> None:
        """``rest`` from the flows and prices."""
        d = self.form.d
        self.rest = [rational(0)] * (self.form.n * d + 1)
        for m, block in enumerate(self.prices):
            for r, a in enumerate(block):
                for c, p in enumerate(a):
                    if p != 0:
                        for v, x in self.price_cells(m, r, c):
                            self.rest[v] += x * p
        for edge, block, flows in zip(self.form.edges, self.model.blocks[len(self.prices) :], self.flows, strict=True):
            for i, j, u in zip(edge.tail.tolist(), edge.head.tolist(), flows, strict=True):
                for f, x in zip(block.columns, u, strict=True):
                    self.rest[i * d + f] += x
                    if j >= 0:
                        self.rest[j * d + f] -= x


def exact_point(form: Form, model: Model, point: DualPoint, snap: float = 0.0) -> ExactPoint:
    """The floats as the rationals that they are; prices within ``snap`` of an end of their domain exactly there."""
    samples = zip(form.samples, model.blocks[: model.m], point.prices, strict=True)
    prices = [_prices(block, stated, a, snap) for block, stated, a in samples]
    flows: list[list[list[Any]]] = []
    roots: list[list[list[Any]] | None] = []
    for edge, block, u in zip(form.edges, model.blocks[len(prices) :], point.flows, strict=True):
        root = flow_root(form, edge)
        if root is None:
            flows.append(exactly(u.tolist()))
            roots.append(None)
            continue
        t = exactly(((u / edge.weight[:, None]) @ np.linalg.pinv(root)).tolist())
        flows.append([[c * x for x in _combined(block.penalty.root, row)] for c, row in zip(block.c, t, strict=True)])
        roots.append(t)
    out = ExactPoint(form, model, prices, flows, roots)
    out.balance()
    return out


def _prices(block: SampleBlock, stated: Any, a: Array, snap: float) -> list[list[Any]]:
    M = len(block.node)
    out: list[list[Any]] = exactly(a.reshape(M, -1).tolist())
    low, high = (np.broadcast_to(side.reshape(M, -1), (M, len(out[0]))) for side in block.loss.domain(block.y))
    b = a.reshape(M, -1) / block.scale[:, None]
    near = np.maximum(AT_AN_END, snap) * np.maximum(1.0, np.abs(b))
    for r, c in zip(*np.nonzero((b <= low + near) | (b >= high - near)), strict=True):
        ends = [stated.s[r] * exact(float(side[r, c])) if np.isfinite(side[r, c]) else None for side in (low, high)]
        out[r][c] = _inside(out[r][c], ends, exact(snap) * stated.s[r])
    if block.loss.prices.dependent(block.y) is not None:
        for row, own in zip(out, block.loss.stated_targets(block.y), strict=True):
            row[own] = -sum((v for c, v in enumerate(row) if c != own), rational(0))
    return out


def _inside(x: Any, ends: list[Any], snap: Any) -> Any:
    low, high = ends
    if low is not None and x <= low + snap:
        return low
    return high if high is not None and x >= high - snap else x


def _combined(rows: list[list[Any]], t: list[Any]) -> list[Any]:
    """R't."""
    return [sum((row[j] * x for row, x in zip(rows, t, strict=True)), rational(0)) for j in range(len(rows[0]))]


# ---- what may be moved to balance a point beside the flows along trees -----------------------------------------------
def free_prices(point: ExactPoint, least: float) -> list[Variable]:
    """The prices that may move."""
    out: list[Variable] = []
    for m, (block, a) in enumerate(zip(point.form.samples, point.prices, strict=True)):
        M = len(block.node)
        b = np.array([[nearest(x) for x in row] for row in a]) / block.scale[:, None]
        low, high = (np.broadcast_to(side.reshape(M, -1), b.shape) for side in block.loss.domain(block.y))
        room = np.clip(np.minimum(b - low, high - b), 0.0, 1.0)
        contrast = block.loss.prices.dependent(block.y) is not None
        for r, row in enumerate(room.tolist()):
            most = int(np.argmax(row))
            for c, each in enumerate(row):
                if each > 1e-2 * least and not (contrast and c == most):
                    parts = ((c, 1), (most, -1)) if contrast else ((c, 1),)
                    out.append(Variable(m, r, parts, each))
    return out


def free_roots(point: ExactPoint) -> list[Variable]:
    """The t of all flows that are stated by a root."""
    return [
        Variable(m, e, ((s, 1),), 1.0, root=True)
        for m, t in enumerate(point.roots)
        for e, row in enumerate(t or [])
        for s in range(len(row))
    ]
