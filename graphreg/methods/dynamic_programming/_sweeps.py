"""Sweeps over forests: their order, and flows that are conserved."""

from __future__ import annotations

from ...base.compiled import Numbers, Recursion
from ...terms import Array
from ._chains import plus

Costs = tuple[Array, Array]  # of each edge, by unit of w_tail - w_head: where that falls below 0, and rises above
UNIT = 2.3e-16  # more than what a sum is rounded by, relative


@Recursion
def depth_first(edges: Numbers, near: Numbers, found: Numbers) -> tuple[bool, bool]:
    """Number the nodes of a forest, tree by tree, from its leaf with the smallest number on: whether it is one, and
    whether no node has more than two edges. What hangs below a node follows it, and so lies together in memory.

    ``edges`` are tails and heads. ``found`` are the nodes in their new order, their places in it, their parents (in new
    numbers, -1 where there is none) and the edges to these. ``near`` is scratch: n + 2 zeros, two places per edge for
    the neighbours and for the edges, and three per node for those that wait: the nodes, their parents, their edges.
    """
    tail, head = edges
    first, other, via, waiting, above, along = near
    order, place, parent, up = found
    n, m = len(order), len(tail)
    for e in range(m):
        first[tail[e] + 2] += 1
        first[head[e] + 2] += 1
    lines = True
    for i in range(n):
        lines = lines and first[i + 2] <= 2
        first[i + 2] += first[i + 1]
    for e in range(m):
        i, j = tail[e], head[e]
        other[first[i + 1]], via[first[i + 1]] = j, e
        other[first[j + 1]], via[first[j + 1]] = i, e
        first[i + 1] += 1
        first[j + 1] += 1
    known = roots = 0
    for root in range(n):
        if place[root] != -1 or first[root + 1] - first[root] > 1:
            continue  # every tree has a leaf
        waiting[0], above[0], along[0] = root, -1, -1
        roots += 1
        left = 1
        while left > 0:
            left -= 1
            i = waiting[left]
            order[known], place[i], parent[known], up[known] = i, known, above[left], along[left]
            for k in range(first[i], first[i + 1]):
                j = other[k]
                if place[j] == -1:
                    waiting[left], above[left], along[left] = j, known, via[k]
                    place[j] = -2  # it waits
                    left += 1
            known += 1
    return known == n and m == n - roots, lines


@Recursion
def balanced(nodes: Numbers, may_be: Numbers, found: Numbers) -> None:
    """Flows to the parents that are conserved, given that the derivative at node i may be anything in [low, high]; and
    the derivative that balances them, ``own + rest``.

    ``nodes`` are parents, minimisers and the ``bottom`` and ``top`` of the flows to the parents. A flow may be [least,
    most], the bottom where the node is above its parent, the top where it is below. Upwards, what each flow may be: the
    sum of what may be below, within that. Downwards, each node and each of its children take the same ``share`` of the
    way from least to most.
    """
    parent, t, bottom, top = nodes
    low, high = may_be
    least, most, share, flow, own, rest = found
    n = len(parent)
    for i in range(n - 1, -1, -1):
        low[i] -= UNIT * abs(low[i])
        high[i] += UNIT * abs(high[i])
        p = parent[i]
        if p >= 0:
            first = bottom[i] if t[i] >= t[p] else top[i]
            last = top[i] if t[i] <= t[p] else bottom[i]
            least[i], most[i] = min(max(low[i], first), last), max(min(high[i], last), first)
            low[p] += least[i]
            high[p] += most[i]
    for i in range(n):
        p = parent[i]
        flow[i] = 0.0 if p < 0 else least[i] + share[p] * (most[i] - least[i])
        width = high[i] - low[i]
        share[i] = min(max((flow[i] - low[i]) / width, 0.0), 1.0) if width > 0.0 else 0.5
        own[i], rest[i] = plus(own[i], rest[i], flow[i], 0.0)
        if p >= 0:
            own[p], rest[p] = plus(own[p], rest[p], -flow[i], 0.0)


@Recursion
def flows_of_tree(given: Numbers, found: Numbers) -> None:
    """The flow to each node from its parent that balances the gradients ``s (w - y)`` of all below it: minus the
    ``least`` or the ``most`` of the message where the two differ, and between them. ``found`` are zeros."""
    parent, y, s, least, most, w = given
    (flow,) = found
    for i in range(len(parent) - 1, -1, -1):
        p, f = parent[i], flow[i] - s[i] * (w[i] - y[i])
        if p >= 0:
            if w[i] != w[p]:
                f = -least[i] if w[i] > w[p] else -most[i]
            f = min(max(f, -most[i]), -least[i])
            flow[p] += f
        flow[i] = f
