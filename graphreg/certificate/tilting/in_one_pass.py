"""The sums of `AddedUp`, in one pass over samples and edges, with a bound of what rounding did to them.

A rounded number is off by at most U times itself. Where it is added to others, its node keeps the sum of these bounds;
a sum of numbers that are not negative is off by U times itself for every time that it is added to, and such sums are
kept short. What a bound of a bound is off by, and numbers near the end of the range, `AddedUp` pays for at the end.
"""

from __future__ import annotations

from ...base.compiled import Numbers, Recursion

U = 2.0**-53
AND_ITS_OWN = 1.0 + 1e-7  # what a sum of bounds is rounded by itself
PIECE = 64  # numbers that are added up plainly
LEAST, MOST = 1e-60, 1e60  # of scales, features and capacities: beyond, products might leave the range of floats
DUST = 1e-250  # more than what a gradient may miss where a product of such numbers does all the same


@Recursion
def on_a_line(given: Numbers, found: Numbers) -> tuple[float, float]:
    """The objective at w, and the gap to flows u, both as computed, where edge i joins nodes i and i + 1 and each node
    has one sample, ``s/2 (w - y)^2``; an infinite gap where a flow is beyond its capacity c. Leaves its prices.

    ``given`` are y, s and c but for their factors in ``times``, w and u.
    """
    y, s, c, times, w, u = given
    (a,) = found
    of_scale, of_capacity = times[0], times[1]
    n = len(y)
    objective, low, gap, before = 0.0, 0.0, 0.0, 0.0
    start = 0
    while start < n:
        end = min(start + PIECE // 2, n)  # each node and each edge is a number
        piece = 0.0
        for i in range(start, end):
            scale, flow = of_scale * s[i], 0.0
            if not LEAST <= scale <= MOST:
                return 0.0, float("inf")
            if i < n - 1:
                capacity, flow, z = of_capacity * c[i], u[i], w[i] - w[i + 1]
                if not (LEAST <= capacity <= MOST and abs(flow) <= capacity):
                    return 0.0, float("inf")
                piece += capacity * abs(z)
                gap += (capacity - flow) * z if z > 0.0 else (capacity + flow) * -z
            r = w[i] - y[i]
            slope, out = scale * r, flow - before
            piece += 0.5 * slope * r
            left = abs(slope + out)  # of the gradient at w, once the flows are taken away
            left += U * (2.0 * abs(slope) + abs(out) + left) + DUST
            gap += 0.5 * left * left / scale
            a[i] = -out
            before = flow
        total = objective + piece
        back = total - objective
        low += (objective - (total - back)) + (piece - back)
        objective = total
        start = end
    return objective + low, gap


@Recursion
def on_a_graph(  # noqa: PLR0915 - one pass
    given: Numbers, nodes: Numbers, found: Numbers
) -> tuple[float, float, float]:
    """The same for any samples ``s h(x w_i - y)`` at the nodes i, and any edges, with a bound of how far the objective
    is off beside the rounding of its sum.

    ``given`` are i, x, y and s of the samples, and the ends low and high of the slopes of h and whether it is curved:
    h' is r, or 0 where h is not curved and only jumps there, clipped to [low, high]. Without these all are squares. A
    node with slopes that end has one sample. Tails, heads, c and u of the edges, and w, follow; ``nodes`` are zeros.
    """
    node, x, y, s, low, high, curved, tail, head, c, u, w = given
    slope, curvature, error = nodes
    inf = float("inf")
    objective, rest, off, gap, piece = 0.0, 0.0, 0.0, 0.0, 0.0
    samples, edges = len(node), len(tail)
    ends = len(low) > 0
    for k in range(samples + edges):
        if k < samples:
            i, scale, factor = node[k], s[k], x[k]
            if not (LEAST <= scale <= MOST and (factor == 0.0 or LEAST <= abs(factor) <= MOST)):
                return 0.0, 0.0, inf
            p = factor * w[i]
            r = p - y[k]
            around = U * (abs(r) if factor == 1.0 else abs(p) + abs(r)) + DUST
            if ends and (low[k] > -inf or high[k] < inf):
                if curvature[i] != 0.0 or factor == 0.0:
                    return 0.0, 0.0, inf
                curvature[i] = -1.0  # for itself
                if curved[k]:
                    m = min(max(r, low[k]), high[k])
                    piece += scale * (m * (r - 0.5 * m))
                    off += scale * around * (abs(m) + around)
                else:
                    piece += scale * (high[k] * r if r > 0.0 else low[k] * r)
                    off += scale * around * max(high[k], -low[k])
            else:
                if curvature[i] < 0.0:
                    return 0.0, 0.0, inf
                pull = scale * r
                weighted = factor * pull
                piece += 0.5 * pull * r
                off += scale * around * (abs(r) + around)
                slope[i] += weighted
                curvature[i] += scale * factor * factor
                error[i] += scale * abs(factor) * around + U * (2.0 * abs(weighted) + abs(slope[i])) + DUST
        else:
            e = k - samples
            i, j, capacity, flow = tail[e], head[e], c[e], u[e]
            if not (LEAST <= capacity <= MOST and abs(flow) <= capacity):
                return 0.0, 0.0, inf
            z = w[i] - w[j]
            piece += capacity * abs(z)
            gap += (capacity - flow) * z if z > 0.0 else (capacity + flow) * -z
            slope[i] += flow
            slope[j] -= flow
            error[i] += U * abs(slope[i])
            error[j] += U * abs(slope[j])
        if k % PIECE == 0 or k == samples + edges - 1:
            total = objective + piece
            back = total - objective
            rest += (objective - (total - back)) + (piece - back)
            objective, piece = total, 0.0
    gap = _at_nodes(nodes, gap)
    return objective + rest, off, _of_prices(given, nodes, found, gap)


@Recursion
def _at_nodes(nodes: Numbers, gap: float) -> float:
    """The gap with what is left at nodes without ends of slopes. Leaves the steps to their minimisers for slopes."""
    slope, curvature, error = nodes
    for i in range(len(slope)):
        if curvature[i] >= 0.0:
            left = abs(slope[i]) + error[i]
            if left > 0.0:
                gap += 0.5 * left * left / curvature[i] if curvature[i] > 0.0 else float("inf")
            slope[i] = slope[i] / curvature[i] if curvature[i] > 0.0 else 0.0
    return gap


@Recursion
def _of_prices(given: Numbers, nodes: Numbers, found: Numbers, gap: float) -> float:
    """The gap with that of samples whose slopes end; infinite where a price may be beyond them. Leaves all prices."""
    node, x, y, s, low, high, curved, _, _, _, _, w = given
    slope, curvature, error = nodes
    (a,) = found
    inf = float("inf")
    for k in range(len(node)):
        i, scale, factor = node[k], s[k], x[k]
        if curvature[i] >= 0.0:
            a[k] = scale * ((factor * w[i] - y[k]) - factor * slope[i])
            continue
        a[k] = -slope[i] / factor
        b = a[k] / scale
        size = abs(b) + (high[k] if high[k] < inf else 0.0) - (low[k] if low[k] > -inf else 0.0)
        away = AND_ITS_OWN * error[i] / (abs(factor) * scale) + 4.0 * U * size + DUST  # off the price over the scale
        if not low[k] + away <= b <= high[k] - away:
            return inf
        p = factor * w[i]
        r = p - y[k]
        around = U * (abs(r) if factor == 1.0 else abs(p) + abs(r)) + DUST
        if curved[k]:
            m = min(max(r, low[k]), high[k])
            apart = abs(m - b) + around + away
            gap += scale * (0.5 * apart * apart + (abs(r - m) + around) * apart)
        elif abs(r) > around:
            gap += scale * (abs(r) + around) * ((high[k] - b if r > 0.0 else b - low[k]) + away)
        else:
            gap += scale * 2.0 * around * (high[k] - low[k])
    return gap
