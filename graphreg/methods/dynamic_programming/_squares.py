"""Squares of single numbers alone: the minimiser and its flows, as fast as can be.

Prices that lose no digits, and the recursions for all that is no square, follow where the certificate is not as good as
was asked for.
"""

from __future__ import annotations

import numpy as np

from ...base.clock import check_deadline
from ...base.compiled import Numbers, Recursion
from ...form import Form
from ...terms import Array, SampleBlock
from ...terms.losses import AbstractQuadraticLoss
from ._chains import along_chains
from ._groups import EdgeGroup, arrows, groups_of_edges
from ._sweeps import Costs, flows_of_tree

NONE = (*(np.zeros(0) for _ in range(3)), np.zeros(0, np.intp))  # no knots


def squares(form: Form) -> tuple[Array, tuple[Array, ...]] | None:
    """The minimiser and flows near the best ones; None where a loss is no square of a single number, or a node has a
    penalty of its own."""
    form = arrows(form)
    if any(edge.ground for edge in form.edges) or not all(map(_single, form.samples)):
        return None
    groups = list(groups_of_edges(form))
    in_line = len(form.samples) == 1 and form.samples[0].one_each and all(group.in_line for group in groups)
    columns, flows = list[Array](), [np.empty((len(edge.tail), form.width(edge))) for edge in form.edges]
    order = [j for group in groups for j in group.columns]
    for group in groups:
        for j in group.columns:
            check_deadline()
            found = _in_line(form, group, j) if in_line else _on(group, j, *_nodes(form, j))
            if found is None:
                return None
            columns.append(found[0])
            group.put(found[1], j, flows)
    w = columns[0][:, None] if len(columns) == 1 else np.stack([columns[order.index(j)] for j in range(form.d)], axis=1)
    return w, tuple(flows)


def _single(block: SampleBlock) -> bool:
    """True of squares each of which speaks of one coordinate of a node."""
    single = block.X is None or block.X.shape[1] == 1
    return single and isinstance(block.loss, AbstractQuadraticLoss) and not block.offset.any()


def _in_line(form: Form, group: EdgeGroup, j: int) -> tuple[Array, Array]:
    """The minimisers of one coordinate where node after node has a sample, and the edges join each with the next."""
    block, edge = form.samples[0], form.edges[group.blocks[0]]
    y = np.ascontiguousarray(block.y.reshape(form.n, -1)[:, j])
    fall, rise = group.slopes(group.blocks[0], j)
    times = np.array([float(block.strength), fall * float(edge.strength), rise * float(edge.strength)])
    return _along(y, block.base_scale, (edge.base_weight, edge.base_weight), times)


def _along(y: Array, s: Array, costs: Costs, times: Array) -> tuple[Array, Array]:
    """The minimiser and the flows from each node to the next; ``costs`` may be 0."""
    n = len(y)
    w, u = np.empty(n), np.empty(n - 1)
    if taut_string((y, s, *costs, times), (w, u)):
        return w, u
    s, fall, rise = (times[0] * s, *(np.append(0.0, of * c) for of, c in zip(times[1:], costs, strict=True)))
    middle, parent = y.mean(), np.arange(-1, n - 1, dtype=np.int32)
    along_chains((s, s * (middle - y), -fall, rise, parent), (w, *np.zeros((2, n))), tuple(np.zeros((5, 2 * n))))
    w += middle
    flow = np.zeros(n)
    flows_of_tree((parent, y, s, -fall, rise, w), (flow,))
    return w, -flow[1:]


def _nodes(form: Form, j: int) -> tuple[Array, Array]:
    """The minimiser of the losses at each node in one coordinate, and their second derivative."""
    s, pull = np.zeros(form.n), np.zeros(form.n)
    for block in form.samples:
        x = np.ones(len(block.node)) if block.X is None else block.X[:, 0]
        y = block.y.reshape(len(block.node), -1)[:, j]
        s += np.bincount(block.node, block.scale * x * x, form.n)
        pull += np.bincount(block.node, block.scale * x * y, form.n)
    return pull / np.where(s > 0.0, s, 1.0), s


def _on(group: EdgeGroup, j: int, y: Array, s: Array) -> tuple[Array, Array] | None:
    """The minimiser and the flows from tails to heads; None where a node has no square."""
    if not s.min() > 0.0:
        return None
    forest = group.forest
    (least, most), flows = forest.upwards(group.costs(j)), np.zeros(len(group.tail))
    inner = forest.up >= 0
    y, s = forest.ordered(y), forest.ordered(s)
    if forest.lines:
        w, u = _along(y, s, (-least[1:], most[1:]), np.ones(3))
        flow = np.append(0.0, -u)
    else:
        middle = y.mean()
        w, flow = middle + forest.minimiser(s, s * (middle - y), (least, most), NONE), np.zeros(len(y))
        flows_of_tree((forest.parent, y, s, least, most, w), (flow,))
    flows[forest.up[inner]] = (forest.sign * flow)[inner]
    return forest.in_place(w), flows


# ---- the taut string -------------------------------------------------------------------------------------------------
WASTED = 6  # times the length of the line: what may be looked at in vain


@Recursion
def balanced_along(begin: int, end: int, value: float, flow: float, given: Numbers, found: Numbers) -> None:
    """A piece of the string: its value, and the flows within it after the ``flow`` into it."""
    y, scale, fall, rise, times = given
    w, u = found
    of_scale, of_fall, of_rise = times[0], times[1], times[2]
    for k in range(begin, end + 1):
        w[k] = value
        if k < end:
            flow -= of_scale * scale[k] * (w[k] - y[k])
            flow = min(max(flow, -of_fall * fall[k]), of_rise * rise[k])
            u[k] = flow


@Recursion
def taut_string(given: Numbers, found: Numbers) -> bool:
    """The minimiser w of ``sum s/2 (w_i - y_i)^2 + sum rise_i (w_i - w_{i + 1})_+ + fall_i (w_{i + 1} - w_i)_+``, and
    the flows u that balance its gradients: rise_i where w_i is larger than w_{i + 1}, -fall_i where it is smaller.
    False where too much was looked at in vain.

    It is the slope of the shortest string through a tube around the sums of s y over those of s, from ``rise`` below to
    ``fall`` above them (of infinite width on a side that is forbidden). From where a piece begins, the slopes at which
    the string stays in the tube as far as node i lie in [low, high], which the tube at every node makes narrower; where
    it leaves none, the piece ends at the node that its side was set by, and the next begins there (Condat, A direct
    algorithm for 1-D total variation denoising, IEEE SPL 20, 2013; with weights, Barbero and Sra 2018). Slopes are
    those less the y where the piece begins, so that no digits are lost.

    ``given`` are y, and s, fall and rise but for their factors in ``times``.
    """
    y, scale, fall, rise, times = given
    u = found[1]
    of_scale, of_fall, of_rise = times[0], times[1], times[2]
    n = len(y)
    begin, wasted, away = 0, 0, 0.0  # away: from the middle of the tube, where the piece begins
    while begin < n:
        first, area, width = y[begin], away, 0.0
        low, high, at_low, at_high = -float("inf"), float("inf"), begin, begin
        value, end, after = 0.0, -1, 0.0
        i = begin
        while i < n:
            s = of_scale * scale[i]
            up, down = (of_fall * fall[i], of_rise * rise[i]) if i < n - 1 else (0.0, 0.0)
            area += s * (y[i] - first)
            width += s
            least, most = (area - down) / width, (area + up) / width
            if most < low:
                value, end, after = low, at_low, of_rise * rise[at_low]
                break
            if least > high:
                value, end, after = high, at_high, -of_fall * fall[at_high]
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
