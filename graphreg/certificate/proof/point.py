"""A dual point in exact numbers, near one in floats, and what is left of its balance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...form import DualPoint, Form, SampleBlock
from ...terms import Array
from ...verify import Model, rational
from .numbers import exact, exactly

AT_AN_END = 1e-9  # prices (at scale 1) so near an end of their domain are put inside exactly


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

    def samples(self, m: int) -> Any:
        """The block of samples as the checker holds it."""
        return self.model.blocks[m]

    def edges(self, m: int) -> Any:
        return self.model.blocks[len(self.form.samples) + m]

    def stated(self) -> list[list[list[Any]]]:
        """What the checker takes: prices, then flows, those of roots as t."""
        return [*self.prices, *(u if t is None else t for u, t in zip(self.flows, self.roots, strict=True))]

    def price_cells(self, m: int, r: int, c: int) -> list[tuple[int, Any]]:
        """What one unit more of a price adds to ``rest``: (vertex, amount)."""
        block, base = self.samples(m), int(self.form.samples[m].node[r]) * self.form.d
        if block.x is None:
            return [(base + c, rational(1))]
        return [(base + f * block.k + c, x) for f, x in enumerate(block.x[r]) if x != 0]

    def root_cells(self, m: int, e: int, s: int) -> list[tuple[int, Any]]:
        """What one unit more of t_s adds to ``rest``."""
        edge, block, d = self.form.edges[m], self.edges(m), self.form.d
        tail, head = int(edge.tail[e]), int(edge.head[e])
        cells = [(f, block.c[e] * block.par[s][p]) for p, f in enumerate(block.columns)]
        return [(tail * d + f, v) for f, v in cells] + [(head * d + f, -v) for f, v in cells if head >= 0]

    def add_price(self, m: int, r: int, c: int, amount: Any) -> None:
        self.prices[m][r][c] += amount
        for v, x in self.price_cells(m, r, c):
            self.rest[v] += x * amount

    def add_root(self, m: int, e: int, s: int, amount: Any) -> None:
        t = self.roots[m]
        assert t is not None  # as only their t are variables
        t[e][s] += amount
        block = self.edges(m)
        self.flows[m][e] = [block.c[e] * x for x in _combined(block.par, t[e])]
        for v, x in self.root_cells(m, e, s):
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
    prices = [
        _prices(block, model.blocks[m], a, snap)
        for m, (block, a) in enumerate(zip(form.samples, point.prices, strict=True))
    ]
    flows: list[list[list[Any]]] = []
    roots: list[list[list[Any]] | None] = []
    for edge, block, u in zip(form.edges, model.blocks[len(prices) :], point.flows, strict=True):
        root = edge.penalty.flow_root()
        if root is None:
            flows.append(exactly(u.tolist()))
            roots.append(None)
            continue
        t = exactly(((u / edge.weight[:, None]) @ np.linalg.pinv(root)).tolist())
        flows.append([[c * x for x in _combined(block.par, row)] for c, row in zip(block.c, t, strict=True)])
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
    if block.loss.prices_add_up_to_zero():
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
