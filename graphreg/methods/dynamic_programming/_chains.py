"""The recursion along chains: Johnson's, with weights.

The message of a node to its parent is the least cost of all behind it as a function of the parent's coordinate. Its
derivative rises from one straight line to another over knots, and is cut off at what the edge lets through either way:
from ``least`` to ``most``, without an end where the edge forbids that its ends differ that way. Only sums of lines are
kept, so that slopes and heights are sums of what comes and goes: each is a number and what rounding left of
it (a, da), so that a light node behind a heavy one loses no digits.

Nodes are numbered so that a parent comes before its children.
"""

from __future__ import annotations

from typing import Any

from ...base.compiled import Numbers, Recursion

INF = float("inf")


@Recursion
def plus(a: Any, da: Any, b: Any, db: Any) -> tuple[Any, Any]:
    """(a + da) + (b + db), as a number and what rounding left of it (Knuth 1969)."""
    s = a + b
    t = s - a
    rest = ((a - (s - t)) + (b - t)) + (da + db)
    total = s + rest
    return total, rest - (total - s)


@Recursion
def clip_down(parent: Numbers, ends: Numbers) -> None:
    """w from the parents down: each is that of its parent, clipped."""
    w, low, high = ends
    for i in range(len(parent)):
        if parent[i] >= 0:
            w[i] = min(max(w[parent[i]], low[i]), high[i])


@Recursion
def along_chain(  # noqa: PLR0915 - one loop
    first: int, end: int, nodes: Numbers, ends: Numbers, knots: Numbers
) -> None:
    """`along_chains` on the one of the nodes from ``first``, which has no parent, to before ``end``; of w only that of
    the first."""
    slope, height, least, most, _ = nodes
    w, low, high = ends
    x, s, ds, q, dq = knots
    left, right = len(slope), len(slope) - 1  # the knots
    zero = height[0] - height[0]
    a, da, below, dbelow = zero, zero, zero, zero  # what the message of the child is far to the left
    e, de, above, dabove = zero, zero, zero, zero  # and to the right
    c, dc, g, dg = zero, zero, zero, zero
    for i in range(end - 1, first - 1, -1):
        a, da = plus(a, da, slope[i], zero)
        below, dbelow = plus(below, dbelow, height[i], zero)
        last = low[i] = -INF
        while least[i] > -INF:
            c, dc = plus(below, dbelow, -least[i], zero)
            if left > right or x[left] > last:  # else one more at the same place
                cross = -c / a if a > 0 else last
                if left > right or (x[left] > cross if a > 0 else c >= 0):
                    low[i] = max(last, cross)
                    break
            last = x[left]
            a, da = plus(a, da, s[left], ds[left])
            below, dbelow = plus(below, dbelow, q[left], dq[left])
            left += 1
        if i == first:
            w[i] = low[i] if low[i] > -INF else (x[left] if left <= right else zero)
            return
        e, de = plus(e, de, slope[i], zero)
        above, dabove = plus(above, dabove, height[i], zero)
        last = high[i] = INF
        while most[i] < INF:
            g, dg = plus(above, dabove, -most[i], zero)
            if left > right or x[right] < last:
                jump = g > 0 and low[i] > -INF  # from one end to the other, where no more is beyond
                cross = -g / e if e > 0 else low[i] if jump else last
                if left > right or (x[right] < cross if e > 0 else g <= 0):
                    high[i] = max(min(last, cross), low[i])
                    break
            last = x[right]
            e, de = plus(e, de, -s[right], -ds[right])
            above, dabove = plus(above, dabove, -q[right], -dq[right])
            right -= 1
        if low[i] == high[i]:  # one knot: no two of a message are at one place
            left, right = len(slope), len(slope) - 1
            a, da, c, dc = zero, zero, most[i] - least[i], zero
        if low[i] > -INF:
            left -= 1
            x[left], s[left], ds[left], q[left], dq[left] = low[i], a, da, c, dc
            a, da, below, dbelow = zero, zero, least[i], zero
        if low[i] < high[i] < INF:
            right += 1
            x[right], s[right], ds[right], q[right], dq[right] = high[i], -e, -de, -g, -dg
        if high[i] < INF:
            e, de, above, dabove = zero, zero, most[i], zero


@Recursion
def along_chains(nodes: Numbers, ends: Numbers, knots: Numbers) -> None:
    """The minimiser ``w`` on chains, whose nodes stand one behind the other, where the derivative at every node is one
    line ``slope t + height``.

    ``nodes`` are slope, height, the least and the most of the derivative of the message to the parent (0 where there is
    none; -inf and inf where it has no such end), and the parent (-1: none). ``ends`` are w, and what it is clipped to,
    given that of the parent. Knots lie in the order of their places x in the middle of scratch arrays, twice as long as
    the others: a line and the next differ by (s + ds) t + (q + dq).
    """
    parent, end = nodes[4], len(nodes[4])
    for i in range(end - 1, -1, -1):
        if parent[i] < 0:
            along_chain(i, end, nodes, ends, knots)
            end = i
    clip_down(parent, ends)
