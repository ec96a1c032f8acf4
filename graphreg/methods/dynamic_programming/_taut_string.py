"""Squares along a line, by the taut string: in plain floats the fastest way."""

from __future__ import annotations

from ...compiled import Numbers, Recursion

WASTED = 6  # times the length of the line: what may be looked at in vain


@Recursion
def balanced_along(begin: int, end: int, value: float, flow: float, given: Numbers, found: Numbers) -> None:
    """A piece of the string: its value, and the flows within it after the ``flow`` into it."""
    y, scale, capacity, times = given
    w, u = found
    of_scale, of_capacity = times[0], times[1]
    for k in range(begin, end + 1):
        w[k] = value
        if k < end:
            c = of_capacity * capacity[k]
            flow = min(max(flow - of_scale * scale[k] * (w[k] - y[k]), -c), c)
            u[k] = flow


@Recursion
def taut_string(given: Numbers, found: Numbers) -> bool:
    """The minimiser w of ``sum s/2 (w_i - y_i)^2 + sum c_i |w_i - w_{i + 1}|``, and the flows u that balance its
    gradients: c_i where w_i is larger than w_{i + 1}, -c_i where it is smaller. False where too much was looked at in
    vain.

    It is the slope of the shortest string through a tube of half-width c around the sums of s y over those of s. From
    where a piece begins, the slopes at which the string stays in the tube as far as node i lie in [low, high], which
    the tube at every node makes narrower; where it leaves none, the piece ends at the node that its side was set by,
    and the next begins there (Condat, A direct algorithm for 1-D total variation denoising, IEEE SPL 20, 2013; with
    weights, Barbero and Sra 2018). Slopes are those less the y where the piece begins, so that no digits are lost.

    ``given`` are y, and s and c but for their factors in ``times``.
    """
    y, scale, capacity, times = given
    u = found[1]
    of_scale, of_capacity = times[0], times[1]
    n = len(y)
    begin, wasted, away = 0, 0, 0.0  # away: from the middle of the tube, where the piece begins
    while begin < n:
        first, area, width = y[begin], away, 0.0
        low, high, at_low, at_high = -float("inf"), float("inf"), begin, begin
        value, end, after = 0.0, -1, 0.0
        i = begin
        while i < n:
            s, c = of_scale * scale[i], of_capacity * capacity[i] if i < n - 1 else 0.0
            area += s * (y[i] - first)
            width += s
            least, most = (area - c) / width, (area + c) / width
            if most < low:
                value, end, after = low, at_low, of_capacity * capacity[at_low]
                break
            if least > high:
                value, end, after = high, at_high, -of_capacity * capacity[at_high]
                break
            at_low = i if least >= low else at_low
            low = max(low, least)
            at_high = i if most <= high else at_high
            high = min(high, most)
            i += 1
        if end < 0:  # the line is at its end, where the tube has no width
            value, end = low, n - 1
        wasted += i - end
        if wasted > WASTED * n:
            return False
        balanced_along(begin, end, value + first, away, given, found)
        if end < n - 1:
            u[end] = after
        begin, away = end + 1, after
    return True
