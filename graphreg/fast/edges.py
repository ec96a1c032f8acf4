"""The edges' half of a round: the prox of sigma g* at u + sigma (K(2 w+ - w) - center), relaxed, and K'u of it.

All arrays are flat: coordinate k of row i stands at i d + k. One pass reads and writes everything once; its loops over
the coordinates are short and many, because each of them becomes a few vector instructions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..terms import Array, EdgeBlock
from .compiler import Kernel

BOX, BALL, SQUARE = 0, 1, 2
KINDS = {"box": BOX, "ball": BALL, "square": SQUARE}
TINY = 1e-300  # a square: no capacity is divided by less than its root


def kind_of(edge: EdgeBlock, d: int) -> int | None:
    """The number of the kernel that the penalty of a block has; None for one of the user's, on some coordinates only,
    or on rows that are no edges."""
    name = "" if edge.penalty.is_users() else edge.penalty.kernel()
    if not name or edge.map.edges is None or edge.features is not None:
        return None
    return KINDS["box" if name == "ball" and d == 1 else name]


class EdgeArrays(NamedTuple):
    """The ends of edges, in the order of a round, their capacities and centres."""

    tail: Array
    head: Array
    c: Array
    center: Array


class FlowBuffers(NamedTuple):
    """The arrays that edges read and write: 2 w+ - w, flows, which move in place, and K' of what they become."""

    ahead: Array
    u: Array
    adjoint: Array


def edge_round(width: int, kind: int, ground: int, centred: int) -> Kernel:
    """The round for edges of ``width`` coordinates (0: any number of them) in a list."""

    def kernel(edges: EdgeArrays, sigma: float, rho: float, flows: FlowBuffers, work: Array, d: int) -> None:
        """Flows relaxed by ``rho``, as the prox leaves them for 0; K' of them is added to ``adjoint``; ``work`` is room
        for an edge's."""
        end = width if width else d
        tail, head, c, center = edges
        ahead, u, adjoint = flows
        for e in range(tail.size):
            i, at = tail[e] * end, e * end
            j = 0 if ground else head[e] * end
            size = 0.0
            for k in range(end):
                z = ahead[i + k] if ground else ahead[i + k] - ahead[j + k]
                if centred:
                    z -= center[at + k]
                v = u[at + k] + sigma * z
                size += v * v
                work[k] = v
            factor = 1.0
            if kind == SQUARE:
                factor = 1.0 / (1.0 + sigma / c[e])
            elif kind == BALL:  # without a branch: nobody can foresee which edges are saturated
                factor = c[e] / math.sqrt(max(size, c[e] * c[e], TINY))
            for k in range(end):
                v = min(max(work[k], -c[e]), c[e]) if kind == BOX else factor * work[k]
                before = u[at + k]
                work[k] = v if rho == 0.0 else before + rho * (v - before)
            for k in range(end):
                u[at + k] = work[k]
            for k in range(end):
                adjoint[i + k] += work[k]
            if not ground:
                for k in range(end):
                    adjoint[j + k] -= work[k]

    return kernel


def edge_adjoint(tail: Array, head: Array, u: Array, adjoint: Array, d: int, ground: int) -> None:
    """K'u is added to ``adjoint``, in the order of `edge_round`."""
    for e in range(tail.size):
        i, at = tail[e] * d, e * d
        for k in range(d):
            adjoint[i + k] += u[at + k]
        if not ground:
            j = head[e] * d
            for k in range(d):
                adjoint[j + k] -= u[at + k]
