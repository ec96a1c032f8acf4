"""Ragged samples in padded stacks: nodes with about as many samples form one batch; nothing loops over nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .terms.records import Array


@dataclass(frozen=True)
class Batch:
    """g nodes, each with up to ``size`` samples.

    ``nodes`` (g,) are distinct; ``rows`` (g, size) index the samples of the block, 0 where padded; ``mask`` (g, size)
    is 1.0 at samples and 0.0 at padding; ``X`` (g, size, d) is the design with zeros at padding.
    """

    nodes: Array
    rows: Array
    mask: Array
    X: Array

    def pad(self, values: Array) -> Array:
        """Per-sample values of the block as (g, size), whatever stands at padding."""
        return values[self.rows]


def batches(node: Array, X: Array) -> tuple[Batch, ...]:
    """The samples (node (M,), design (M, d)) grouped by node, nodes grouped by their number of samples.

    Sizes are rounded up to a power of two, so that padding at most doubles the work.
    """
    order = np.argsort(node, kind="stable")
    nodes, start, count = np.unique(node[order], return_index=True, return_counts=True)
    size = 1 << np.ceil(np.log2(count)).astype(int)
    if len(nodes) and count.min() == count.max():
        size[:] = count[0]
    out: list[Batch] = []
    for s in np.unique(size):
        chosen = np.flatnonzero(size == s)
        width = int(count[chosen].max())
        lane = np.arange(width)
        mask = lane < count[chosen, None]
        rows = order[np.where(mask, start[chosen, None] + lane, start[chosen, None])]
        out.append(Batch(nodes[chosen], rows, mask.astype(float), X[rows] * mask[:, :, None]))
    return tuple(out)
