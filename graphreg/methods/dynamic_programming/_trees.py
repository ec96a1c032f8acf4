"""The recursion along trees: as that along chains, with the knots of all children in mergeable heaps."""

from __future__ import annotations

from typing import Any

from ...base.compiled import Numbers, Recursion
from ._chains import INF, clip_down, plus


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
def reached(top: int, heap: Numbers, changes: Numbers, line: Any, sign: int) -> Any:
    """Where the derivative of a message passes minus the ``limit``, from far to the left on: the place, the heap of the
    knots beyond, the line there, and its height and the limit. ``sign`` is -1 for what is mirrored, and so comes from
    the right.
    """
    key, child, sibling, gone = heap
    s, ds, q, dq = changes
    a, da, b, db, limit = line
    last, zero = -INF, a - a
    if limit == INF:
        return last, top, a, da, b, db, zero, zero
    while True:
        while top >= 0 and gone[top]:
            top = without_least(top, key, child, sibling)
        c, dc = plus(b, db, limit, zero)
        if top < 0 or key[top] > last:  # else one more at the same place
            cross = -c / a if a > 0 else last
            if top < 0 or (key[top] > cross if a > 0 else c >= 0):
                return max(last, cross), top, a, da, b, db, c, dc
        last = key[top]
        a, da = plus(a, da, sign * s[top], sign * ds[top])
        b, db = plus(b, db, q[top], dq[top])
        gone[top] = True


@Recursion
def along_trees(  # noqa: PLR0915 - one loop
    nodes: Numbers, ends: Numbers, sums: Numbers, knots: Numbers, heaps: Numbers
) -> None:
    """`along_chains` on trees, where the derivative at node i is ``slope t + height`` far to the left, and changes by
    ``s t + q`` at each of its own knots ``first[i]`` to ``first[i + 1]``.

    The knots of a message are in two heaps, by their places x and by minus these, ``key``; one that is taken from
    either is ``gone`` from both. The nodes' own are followed by two for each message. ``falling`` and ``below`` add up
    the lines of the messages of the children far to the left, ``rising`` and ``above`` to the right, and ``lowest`` and
    ``highest`` hold their heaps.
    """
    slope, height, least, most, parent, first = nodes
    w, low, high = ends
    falling, dfalling, below, dbelow, rising, drising, above, dabove = sums
    x, s, ds, q, dq, key = knots
    lowest, highest, gone, child, sibling, child2, sibling2 = heaps
    from_left, from_right, changes = (x, child, sibling, gone), (key, child2, sibling2, gone), (s, ds, q, dq)
    n = len(slope)
    zero = height[0] - height[0]
    for i in range(n - 1, -1, -1):
        p = parent[i]
        e, de = plus(rising[i], drising[i], slope[i], zero)
        f, df = plus(above[i], dabove[i], height[i], zero)
        start, end = lowest[i], highest[i]
        for k in range(first[i], first[i + 1]):
            key[k] = -x[k]
            start = meld(start, k, x, child, sibling)
            end = meld(end, k, key, child2, sibling2)
            e, de = plus(e, de, s[k], ds[k])
            f, df = plus(f, df, q[k], dq[k])
        a, da = plus(falling[i], dfalling[i], slope[i], zero)
        b, db = plus(below[i], dbelow[i], height[i], zero)
        here, start, a, da, b, db, c, dc = reached(start, from_left, changes, (a, da, b, db, -least[i]), 1)
        low[i] = here
        if p < 0:
            w[i] = here if here > -INF else (x[start] if start >= 0 else zero)
            continue
        far, end, e, de, f, df, g, dg = reached(end, from_right, changes, (e, de, -f, -df, most[i]), -1)
        jump = e == 0 and g < 0 and here > -INF  # from one end to the other
        there = here if jump else max(-far, here)
        high[i] = there
        f, df = -f, -df
        k = first[n] + 2 * i
        if here == there:  # one knot: no two of a message are at one place
            start = end = -1
            a, da, c, dc = zero, zero, most[i] - least[i], zero
        if here > -INF:
            x[k], key[k], s[k], ds[k], q[k], dq[k] = here, -here, a, da, c, dc
            start = meld(start, k, x, child, sibling)
            end = meld(end, k, key, child2, sibling2)
            a, da, b, db = zero, zero, least[i], zero
        if here < there < INF:
            k += 1
            x[k], key[k], s[k], ds[k], q[k], dq[k] = there, -there, -e, -de, g, dg
            start = meld(start, k, x, child, sibling)
            end = meld(end, k, key, child2, sibling2)
        if there < INF:
            e, de, f, df = zero, zero, most[i], zero
        lowest[p] = meld(lowest[p], start, x, child, sibling)
        highest[p] = meld(highest[p], end, key, child2, sibling2)
        falling[p], dfalling[p] = plus(falling[p], dfalling[p], a, da)
        rising[p], drising[p] = plus(rising[p], drising[p], e, de)
        below[p], dbelow[p] = plus(below[p], dbelow[p], b, db)
        above[p], dabove[p] = plus(above[p], dabove[p], f, df)
    clip_down(parent, ends)
