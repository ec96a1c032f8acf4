"""Names of clusters that last while a slider moves: a cluster keeps the name of the one that most of it comes from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..terms import Array

NAMED = 8  # clusters with a colour, a shape and a letter; the page has that many


def followed(clusters: Sequence[Array]) -> list[Array]:
    """The cluster of each node, (n,), frame by frame (-1: none), under lasting names: 0, 1, ... in the order of how
    large they are over all frames, clusters of one node last.

    From one frame to the next a name goes to the cluster with which it shares most nodes, the largest share first.
    """
    named: list[Array] = []
    unused = 0
    for k, now in enumerate(clusters):
        names, unused = _inherited(named[k - 1] if k else None, now, unused)
        named.append(names)
    if not named:
        return []
    size = np.zeros(unused)
    for names in named:
        counts = np.bincount(names[names >= 0], minlength=unused)
        size += np.where(counts > 1, counts, 0)
    rank = np.empty(unused, dtype=int)
    rank[np.argsort(-size, kind="stable")] = np.arange(unused)
    return [np.where(names >= 0, rank[names], -1) for names in named]


def _inherited(before: Array | None, now: Array, unused: int) -> tuple[Array, int]:
    """The names of the clusters of now, and the first that is still unused."""
    user = now >= 0
    groups = np.unique(now[user])
    name_of: dict[int, int] = {}
    if before is not None:
        pairs, shared = np.unique(np.stack([before[user], now[user]]), axis=1, return_counts=True)
        taken: set[int] = set()
        for j in np.argsort(-shared, kind="stable").tolist():
            old, new = int(pairs[0, j]), int(pairs[1, j])
            if old not in taken and new not in name_of:
                name_of[new] = old
                taken.add(old)
    for group in groups.tolist():
        if group not in name_of:
            name_of[group] = unused
            unused += 1
    return np.array([name_of.get(group, -1) for group in now.tolist()], dtype=int), unused
