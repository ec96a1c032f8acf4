"""The recursion along chains: Johnson's, with weights.

The message of a node to its parent is the least cost of all behind it as a function of the parent's coordinate. Its
derivative rises from one straight line to another over knots, and is cut off at the capacity of the edge. Only sums of
lines are kept, so that slopes and heights are sums of what comes and goes: each is a number and what rounding left of
it (a, da), so that a light node behind a heavy one loses no digits.

Nodes are numbered so that a parent comes before its children.
"""

from __future__ import annotations

from typing import Any

from ...base.compiled import Numbers, Recursion


@Recursion
def plus(a: Any, da: Any, b: Any, db: Any) -> tuple[Any, Any]:
    """(a + da) + (b + db), as a number and what rounding left of it (Knuth 1969)."""
    s = a + b
    t = s - a
    rest = ((a - (s - t)) + (b - t)) + (da + db)
    total = s + rest
    return total, rest - (total - s)


@Recursion
def along_chains(nodes: Numbers, ends: Numbers, knots: Numbers) -> None:  # noqa: PLR0912, PLR0915 - one loop
    """The minimiser ``w`` on chains, whose nodes stand one behind the other, where the derivative at every node is one
    line ``slope t + height``.

    ``nodes`` are slope, height, the capacity of the edge to the parent, and the parent (-1: none). ``ends`` are w, and
    what it is clipped to, given that of the parent. Knots lie in the order of their places x in the middle of scratch
    arrays, twice as long as the others: a line and the next differ by (s + ds) t + (q + dq).
    """
    slope, height, capacity, parent = nodes
    w, low, high = ends
    x, s, ds, q, dq = knots
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
                    high[i] = max(last, low[i])
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
        if low[i] < high[i] < inf:
            right += 1
            x[right], s[right], ds[right], q[right], dq[right] = high[i], -e, -de, -g, -dg
        if high[i] < inf:
            above, dabove = limit, zero
    for i in range(n):
        if parent[i] >= 0:
            w[i] = min(max(w[i - 1], low[i]), high[i])
