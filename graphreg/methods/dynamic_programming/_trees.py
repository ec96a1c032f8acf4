"""The recursion along trees: as that along chains, with the knots of all children in mergeable heaps."""

from __future__ import annotations

from ...base.compiled import Numbers, Recursion
from ._chains import plus


@Recursion
def meld(a: int, b: int, key: Numbers, child: Numbers, sibling: Numbers) -> int:
    """Two pairing heaps as one (Fredman, Sedgewick, Sleator and Tarjan 1986), by their least; -1 is the empty one."""
    if a < 0:
        return b
    if b < 0:
        return a
    if key[b] < key[a]:
        a, b = b, a
    sibling[b] = child[a]
    child[a] = b
    return a


@Recursion
def without_least(heap: int, key: Numbers, child: Numbers, sibling: Numbers) -> int:
    """A pairing heap without its least: its children melded in pairs, and the pairs from the last to the first."""
    one, pairs = child[heap], -1
    while one >= 0:
        two = sibling[one]
        rest = sibling[two] if two >= 0 else -1
        sibling[one] = -1
        if two >= 0:
            sibling[two] = -1
        pair = meld(one, two, key, child, sibling)
        sibling[pair] = pairs
        pairs, one = pair, rest
    whole = -1
    while pairs >= 0:
        rest = sibling[pairs]
        sibling[pairs] = -1
        whole = meld(whole, pairs, key, child, sibling)
        pairs = rest
    return whole


@Recursion
def along_trees(  # noqa: PLR0912, PLR0915 - one loop
    nodes: Numbers, ends: Numbers, sums: Numbers, knots: Numbers, heaps: Numbers
) -> None:
    """`along_chains` on trees, where the derivative at node i is ``slope t + height`` far to the left, and changes by
    ``s t + q`` at each of its own knots ``first[i]`` to ``first[i + 1]``.

    The knots of a message are in two heaps, by their places x and by minus these, ``key``; one that is taken from
    either is ``gone`` from both. The nodes' own are followed by two for each message. ``below`` and ``above`` add up
    what the messages of the children are far out, and ``lowest`` and ``highest`` hold their heaps.
    """
    slope, height, capacity, parent, first = nodes
    w, low, high = ends
    below, dbelow, above, dabove = sums
    x, s, ds, q, dq, key = knots
    lowest, highest, gone, child, sibling, child2, sibling2 = heaps
    inf = float("inf")
    n = len(slope)
    zero = height[0] - height[0]
    for i in range(n - 1, -1, -1):
        limit = zero if parent[i] < 0 else capacity[i]
        e, de = slope[i], zero
        f, df = plus(above[i], dabove[i], height[i], zero)
        start, end = lowest[i], highest[i]
        for k in range(first[i], first[i + 1]):
            key[k] = -x[k]
            start = meld(start, k, x, child, sibling)
            end = meld(end, k, key, child2, sibling2)
            e, de = plus(e, de, s[k], ds[k])
            f, df = plus(f, df, q[k], dq[k])
        a, da = slope[i], zero
        b, db = plus(below[i], dbelow[i], height[i], zero)
        last = -inf
        while True:
            while start >= 0 and gone[start]:
                start = without_least(start, x, child, sibling)
            c, dc = plus(b, db, limit, zero)
            if start < 0 or x[start] > last:  # else one more at the same place
                if a > 0:
                    cross = -c / a
                    if start < 0 or x[start] > cross:
                        low[i] = max(last, cross)
                        break
                elif start < 0 or c >= 0:
                    low[i] = last
                    break
            last = x[start]
            a, da = plus(a, da, s[start], ds[start])
            b, db = plus(b, db, q[start], dq[start])
            gone[start] = True
        if parent[i] < 0:
            w[i] = low[i] if low[i] > -inf else (x[start] if start >= 0 else zero)
            continue
        last = inf
        while True:
            while end >= 0 and gone[end]:
                end = without_least(end, key, child2, sibling2)
            g, dg = plus(f, df, -limit, zero)
            if end < 0 or x[end] < last:
                if e > 0:
                    cross = -g / e
                    if end < 0 or x[end] < cross:
                        high[i] = max(min(last, cross), low[i])
                        break
                elif end < 0 or g <= 0:
                    high[i] = max(last, low[i]) if g <= 0 else low[i]  # a jump from one end to the other
                    break
            last = x[end]
            e, de = plus(e, de, -s[end], -ds[end])
            f, df = plus(f, df, -q[end], -dq[end])
            gone[end] = True
        p = parent[i]
        k = first[n] + 2 * i
        if low[i] == high[i]:  # one knot: no two of a message are at one place
            start = end = -1
            a, da, c, dc = zero, zero, limit + limit, zero
        if low[i] > -inf:
            x[k], key[k], s[k], ds[k], q[k], dq[k] = low[i], -low[i], a, da, c, dc
            start = meld(start, k, x, child, sibling)
            end = meld(end, k, key, child2, sibling2)
            b, db = -limit, zero
        if low[i] == high[i]:
            f, df = limit, zero
        elif high[i] < inf:
            x[k + 1], key[k + 1], s[k + 1], ds[k + 1], q[k + 1], dq[k + 1] = high[i], -high[i], -e, -de, -g, -dg
            start = meld(start, k + 1, x, child, sibling)
            end = meld(end, k + 1, key, child2, sibling2)
            f, df = limit, zero
        lowest[p] = meld(lowest[p], start, x, child, sibling)
        highest[p] = meld(highest[p], end, key, child2, sibling2)
        below[p], dbelow[p] = plus(below[p], dbelow[p], b, db)
        above[p], dabove[p] = plus(above[p], dabove[p], f, df)
    for i in range(n):
        if parent[i] >= 0:
            w[i] = min(max(w[parent[i]], low[i]), high[i])
