"""What flows take from the nodes, K'u, and the sums of their magnitudes there, |K'||u|, in one pass over the edges."""

from __future__ import annotations

import numpy as np

from ..terms import Array, EdgeBlock
from .compiled import Kernel, compiles, specialised, width_of

LARGE = 1 << 20  # numbers of flows: those of less take numpy no time worth a word


def edge_pulls(edge: EdgeBlock, u: Array) -> tuple[Array, Array] | None:
    """K'u and |K'||u| on the coordinates of the block, (n, k), each rounded as sums are; None where nothing is
    compiled, or flows are few."""
    if u.size < LARGE or not compiles():
        return None
    pull, size = np.zeros((2, edge.n, u.shape[1]))
    kernel = specialised(magnitudes, width_of(u.shape[1]), int(edge.ground))
    kernel(edge.tail, edge.head, np.ascontiguousarray(u).reshape(-1), pull.reshape(-1), size.reshape(-1), u.shape[1])
    return pull, size


def magnitudes(width: int, ground: int) -> Kernel:
    """K'u is added to ``pull``, |K'||u| to ``size``; all arrays are flat."""

    def kernel(tail: Array, head: Array, u: Array, pull: Array, size: Array, d: int) -> None:
        end = width if width else d
        for e in range(tail.size):
            i, at = tail[e] * end, e * end
            for k in range(end):
                pull[i + k] += u[at + k]
                size[i + k] += abs(u[at + k])
            if not ground:
                j = head[e] * end
                for k in range(end):
                    pull[j + k] -= u[at + k]
                    size[j + k] += abs(u[at + k])

    return kernel
