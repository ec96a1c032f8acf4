"""The recursions over a forest: loops over arrays of numbers, compiled where numba is installed.

The message of a node to its parent is the least cost of the tree below as a function of the parent's coordinate. Its
derivative rises from one straight line to another over knots, and is clipped at the capacity of the edge. Only sums of
lines are kept, so that slopes and heights are sums of what comes and goes: each is a number and what rounding left of
it (a, da), so that a light node behind a heavy one loses no digits.

Nodes are numbered so that a parent comes before its children; the parent of a root is -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])

    def compiled(function: F) -> F: ...

    fast: bool
else:
    try:
        from numba import njit
    except ImportError:
        fast = False

        def compiled(function):
            return function
    else:
        fast = True
        compiled = njit(cache=True, nogil=True)

Numbers = Any  # arrays where these are compiled, else lists


@compiled
def plus(a: Any, da: Any, b: Any, db: Any) -> tuple[Any, Any]:
    """(a + da) + (b + db), as a number and what rounding left of it (Knuth 1969)."""
    s = a + b
    t = s - a
    rest = ((a - (s - t)) + (b - t)) + (da + db)
    total = s + rest
    return total, rest - (total - s)


@compiled
def breadth_first(tail: Numbers, head: Numbers, first: Numbers, near: Numbers, via: Numbers,
                  order: Numbers, place: Numbers, parent: Numbers, up: Numbers) -> bool:  # fmt: skip
    """Number the nodes of a forest from the leaf of each tree with the smallest number on, tree by tree; whether no
    node has more than two edges.

    ``order`` are the nodes in their new order and ``place`` the other way round; ``parent`` in new numbers and ``up``,
    the edge to it, or -1. ``first`` (n + 2 zeros), ``near`` and ``via`` (one per end of an edge) are scratch.
    """
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
        near[first[i + 1]], via[first[i + 1]] = j, e
        near[first[j + 1]], via[first[j + 1]] = i, e
        first[i + 1] += 1
        first[j + 1] += 1
    done = known = 0
    for root in range(n):
        if place[root] >= 0 or first[root + 1] - first[root] > 1:
            continue  # every tree has a leaf
        place[root], order[known], parent[known], up[known] = known, root, -1, -1
        known += 1
        while done < known:
            i = order[done]
            for k in range(first[i], first[i + 1]):
                j = near[k]
                if place[j] < 0:
                    place[j], order[known], parent[known], up[known] = known, j, done, via[k]
                    known += 1
            done += 1
    return lines


@compiled
def along_chains(slope: Numbers, height: Numbers, capacity: Numbers, parent: Numbers, w: Numbers, low: Numbers,
                 high: Numbers, x: Numbers, s: Numbers, ds: Numbers, q: Numbers, dq: Numbers) -> None:  # fmt: skip
    """The minimiser ``w`` on chains, whose nodes stand one behind the other, where the derivative at every node is one
    line ``slope t + height``.

    Knots lie in the order of their places in the middle of the scratch arrays (twice as long as the others): a line and
    the next differ by (s + ds) t + (q + dq). ``low`` and ``high`` is what w is clipped to, given that of the parent.
    """
    inf = float("inf")
    n = len(slope)
    left, right = n, n - 1  # the knots
    zero = height[0] - height[0]
    below, dbelow, above, dabove = zero, zero, zero, zero  # what the message of the child is far out
    for i in range(n - 1, -1, -1):
        limit = zero if parent[i] < 0 else capacity[i]
        a, da = slope[i], zero
        b, db = plus(below, dbelow, height[i], zero)
        last = -inf
        while True:
            c, dc = plus(b, db, limit, zero)
            if left > right or x[left] > last:  # else one more at the same place
                if a > 0:
                    cross = -c / a
                    if left > right or x[left] > cross:
                        low[i] = max(last, cross)
                        break
                elif left > right or c >= 0:
                    low[i] = last
                    break
            last = x[left]
            a, da = plus(a, da, s[left], ds[left])
            b, db = plus(b, db, q[left], dq[left])
            left += 1
        if parent[i] < 0:
            w[i] = low[i] if low[i] > -inf else (x[left] if left <= right else zero)
            left, right = n, n - 1
            below, dbelow, above, dabove = zero, zero, zero, zero
            continue
        e, de = slope[i], zero
        f, df = plus(above, dabove, height[i], zero)
        last = inf
        while True:
            g, dg = plus(f, df, -limit, zero)
            if left > right or x[right] < last:
                if e > 0:
                    cross = -g / e
                    if left > right or x[right] < cross:
                        high[i] = max(min(last, cross), low[i])
                        break
                elif left > right or g <= 0:
                    high[i] = max(last, low[i]) if g <= 0 else low[i]
                    break
            last = x[right]
            e, de = plus(e, de, -s[right], -ds[right])
            f, df = plus(f, df, -q[right], -dq[right])
            right -= 1
        below, dbelow, above, dabove = b, db, f, df
        if low[i] == high[i]:  # one knot: no two of a message are at one place
            left, right = n, n - 1
            a, da, c, dc = zero, zero, limit + limit, zero
        if low[i] > -inf:
            left -= 1
            x[left], s[left], ds[left], q[left], dq[left] = low[i], a, da, c, dc
            below, dbelow = -limit, zero
        if low[i] == high[i]:
            above, dabove = limit, zero
        elif high[i] < inf:
            right += 1
            x[right], s[right], ds[right], q[right], dq[right] = high[i], -e, -de, -g, -dg
            above, dabove = limit, zero
    for i in range(n):
        if parent[i] >= 0:
            w[i] = min(max(w[i - 1], low[i]), high[i])


@compiled
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


@compiled
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


@compiled
def along_trees(slope: Numbers, height: Numbers, first: Numbers, capacity: Numbers, parent: Numbers, w: Numbers,
                low: Numbers, high: Numbers, below: Numbers, dbelow: Numbers, above: Numbers, dabove: Numbers,
                lowest: Numbers, highest: Numbers, x: Numbers, s: Numbers, ds: Numbers, q: Numbers, dq: Numbers,
                key: Numbers, gone: Numbers, child: Numbers, sibling: Numbers, child2: Numbers,
                sibling2: Numbers) -> None:  # fmt: skip
    """`along_chains` on trees, where the derivative at node i is ``slope t + height`` far to the left, and changes by
    ``s t + q`` at each of its own knots ``first[i]`` to ``first[i + 1]``.

    The knots of a message are in two heaps, by their places and (``key``) by minus these; one that is taken from
    either is ``gone`` from both. A node's own are followed by two for each message; ``below`` and ``above`` add up what
    the messages of the children are far out, and ``lowest`` and ``highest`` hold their heaps.
    """
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


@compiled
def balanced(low: Numbers, high: Numbers, least: Numbers, most: Numbers, parent: Numbers, share: Numbers,
             flow: Numbers, own: Numbers, rest: Numbers) -> None:  # fmt: skip
    """Flows to the parents that are conserved, given that the derivative at node i may be anything in [low, high] and
    the flow from it to its parent anything in [least, most]; and the derivative that balances them, ``own``.

    Upwards, what each flow may be: the sum of what may be below, within the bounds of its edge. Downwards, each node
    and each of its children take the same ``share`` of the way from least to most.
    """
    unit = 2.3e-16
    n = len(parent)
    for i in range(n - 1, -1, -1):
        low[i] -= unit * abs(low[i])
        high[i] += unit * abs(high[i])
        p = parent[i]
        if p >= 0:
            least[i], most[i] = min(max(low[i], least[i]), most[i]), max(min(high[i], most[i]), least[i])
            low[p] += least[i]
            high[p] += most[i]
    for i in range(n):
        p = parent[i]
        flow[i] = 0.0 if p < 0 else least[i] + share[p] * (most[i] - least[i])
        width = high[i] - low[i]
        share[i] = min(max((flow[i] - low[i]) / width, 0.0), 1.0) if width > 0.0 else 0.5
    for i in range(n):
        own[i], rest[i] = plus(own[i], rest[i], flow[i], 0.0)
        p = parent[i]
        if p >= 0:
            own[p], rest[p] = plus(own[p], rest[p], -flow[i], 0.0)
