"""What flows strictly inside their capacities hold together: groups of entries of w, and their means.

Entries are numbered as in the flat w, nodes where these are tied as a whole; the last number is the ground.
"""

from __future__ import annotations

import math

from ..terms import Array
from .compiler import Kernel

Edges = tuple[Array, Array, Array, float]  # tails, heads, and capacities but for the last number, their factor


def unite(ball: int, each: int, ground: int) -> Kernel:
    """For edges that are inside or not as a whole (``ball``), or coordinate by coordinate; they tie ``each``
    coordinate, or the nodes."""

    def kernel(edges: Edges, share: float, u: Array, parent: Array, d: int) -> None:
        """Edges of capacity c = strength base whose flow is shorter than ``share`` c join the groups of their ends, of
        which ``parent`` is a forest that grows."""
        tail, head, base, strength = edges
        ways = d if each else 1
        for e in range(tail.size):
            most, size = share * (strength * base[e]), 0.0
            if ball:
                for k in range(d):
                    size += u[e * d + k] ** 2
                size = math.sqrt(size)
                if size >= most:
                    continue
            for k in range(ways):
                if not ball and abs(u[e * d + k]) >= most:
                    continue
                i = tail[e] * ways + k
                j = parent.size - 1 if ground else head[e] * ways + k
                while parent[i] != i:
                    parent[i] = parent[parent[i]]
                    i = parent[i]
                while parent[j] != j:
                    parent[j] = parent[parent[j]]
                    j = parent[j]
                if i < j:
                    parent[j] = i
                else:
                    parent[i] = j

    return kernel


def numbered(parent: Array, number: Array) -> int:
    """The groups in the order of their first entries, written to ``number``, -1 for that of the ground; how many."""
    count, last = 0, parent.size - 1
    while parent[last] != last:
        last = parent[last]
    for i in range(number.size):
        root = parent[i]
        while parent[root] != root:
            root = parent[root]
        parent[i] = root
        if root == last:
            number[i] = -1
        elif root == i:
            number[i] = count
            count += 1
        else:
            number[i] = number[root]
    return count


def spread_means(number: Array, values: Array, size: Array, total: Array, out: Array, d: int) -> None:
    """The mean of each group at all of its members, 0 at those of the ground; ``size`` (count,) and ``total``
    (count d,) are zeros to begin with."""
    for i in range(number.size):
        g = number[i]
        if g >= 0:
            size[g] += 1.0
            for k in range(d):
                total[g * d + k] += values[i * d + k]
    for g in range(size.size):
        for k in range(d):
            total[g * d + k] /= size[g]
    for i in range(number.size):
        g = number[i]
        for k in range(d):
            out[i * d + k] = total[g * d + k] if g >= 0 else 0.0
