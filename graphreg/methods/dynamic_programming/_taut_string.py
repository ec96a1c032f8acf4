"""Squares along a line by the taut string: the fastest way where every node has one square, in plain floats."""

from __future__ import annotations

from ...kernels import Numbers, Recursion

WASTED = 16  # times the length of the line: what may be looked at in vain


@Recursion
def taut_string(given: Numbers, found: Numbers) -> bool:
    """The minimiser w of ``sum s/2 (w_i - y_i)^2 + sum c_i |w_i - w_{i + 1}|``, with c = 0 at the last node; False
    where too much was looked at in vain.

    It is the slope of the shortest string through a tube of half-width c around the sums of s y over those of s. From
    where a piece begins, the slopes at which the string stays in the tube as far as node i lie in [low, high], which
    the tube at every node makes narrower; where it leaves none, the piece ends at the node that its side was set by,
    and the next begins there (Condat, A direct algorithm for 1-D total variation denoising, IEEE SPL 20, 2013; with
    weights, Barbero and Sra 2018). Slopes are those less the y where the piece begins, so that no digits are lost.
    """
    y, s, c = given
    (w,) = found
    n = len(y)
    begin, wasted, away = 0, 0, 0.0  # away: from the middle of the tube, where the piece begins
    while begin < n:
        first, area, width = y[begin], away, 0.0
        low, high, at_low, at_high = -float("inf"), float("inf"), begin, begin
        value, end = 0.0, -1
        i = begin
        while i < n:
            area += s[i] * (y[i] - first)
            width += s[i]
            least, most = (area - c[i]) / width, (area + c[i]) / width
            if most < low:
                value, end, away = low, at_low, c[at_low]
                break
            if least > high:
                value, end, away = high, at_high, -c[at_high]
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
        for k in range(begin, end + 1):
            w[k] = value + first
        begin = end + 1
    return True


@Recursion
def flows_of_line(given: Numbers, found: Numbers) -> None:
    """The flow from each node of a line to the next that balances the gradients ``s (w - y)`` of all before: what the
    capacity c is where they differ, and within it."""
    y, s, c, w = given
    (u,) = found
    flow = 0.0
    for i in range(len(u)):
        flow -= s[i] * (w[i] - y[i])
        if w[i] != w[i + 1]:
            flow = c[i] if w[i] > w[i + 1] else -c[i]
        flow = min(max(flow, -c[i]), c[i])
        u[i] = flow
