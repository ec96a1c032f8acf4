"""What may be moved to balance a point beside the flows along trees: prices, and the t of flows with roots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .numbers import nearest
from .point import ExactPoint


@dataclass(frozen=True)
class Variable:
    """A price (several, with signs, that keep a sum) or an entry of a t, and its room."""

    block: int
    row: int
    parts: tuple[tuple[int, int], ...]
    room: float
    root: bool = False


def free_prices(point: ExactPoint, least: float) -> list[Variable]:
    """The prices that may move."""
    out: list[Variable] = []
    for m, (block, a) in enumerate(zip(point.form.samples, point.prices, strict=True)):
        M = len(block.node)
        b = np.array([[nearest(x) for x in row] for row in a]) / block.scale[:, None]
        low, high = (np.broadcast_to(side.reshape(M, -1), b.shape) for side in block.loss.domain(block.y))
        room = np.clip(np.minimum(b - low, high - b), 0.0, 1.0)
        contrast = block.loss.prices_add_up_to_zero()
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


def cells(point: ExactPoint, variable: Variable) -> list[tuple[int, Any]]:
    """What one unit more of the variable adds to the balance: (vertex, amount)."""
    own = point.root_cells if variable.root else point.price_cells
    return [(v, s * x) for c, s in variable.parts for v, x in own(variable.block, variable.row, c)]


def move(point: ExactPoint, variable: Variable, amount: Any) -> None:
    add = point.add_root if variable.root else point.add_price
    for c, s in variable.parts:
        add(variable.block, variable.row, c, s * amount)
