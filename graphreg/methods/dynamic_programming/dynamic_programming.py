"""Dynamic programming: total variation on chains and trees, solved exactly in one sweep up and one down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.clock import alarm, check_deadline
from ...certificate import Certifier, center, centred
from ...form import Form
from ...running import AbstractDirectMethod, Outcome, Task
from ...terms import Array, EdgeBlock
from ...terms.penalties import INSIDE, slopes, squares


@dataclass(frozen=True)
class DynamicProgramming(AbstractDirectMethod):
    """The minimiser itself, where every coordinate of the parameters is tied along chains or trees by absolute values
    or one-sided costs (``L1``, ``NonNegative`` along arrows: isotonic regression), and the losses speak of one
    coordinate at a time.

    Of a rooted tree let m_i(t) be the least cost of everything below the edge from node i to its parent p, as a
    function of the parent's coordinate t:

        m_i(t) = min over v of  h_i(v) + sum over children j of m_j(v) + r_i (v - t)_+ + f_i (t - v)_+

    for an edge that costs r_i by unit where v is above t and f_i where it is below, r_i = f_i = c_i for L1, infinite
    where that is forbidden. Its derivative is that of the sum, clipped to [-r_i, f_i]: a piecewise linear function,
    kept as a sequence of knots, from which a node takes those beyond its two ends and adds these. The places of the
    ends are what w_i is clipped to, given w_p, on the way back. Chains take O(n) steps (Johnson 2013; with weights
    Condat 2013; Barbero and Sra 2018); trees merge the knots of their children in heaps, O(n log n) (Kolmogorov, Pock
    and Rolinek 2016). Several trees, and coordinates with graphs of their own, are solved one by one.

    Flows and prices are then chosen so that they are conserved, by a second sweep over the same trees, and certified as
    those of any method. Squares along chains are tried by a taut string in plain floats first. It runs compiled where
    numba is installed (``pip install graphreg[fast]``), else in Python: seconds for 10^5 nodes.

    References
    ----------
    Condat, A direct algorithm for 1-D total variation denoising, IEEE Signal Processing Letters 20, 2013.
    Johnson, A dynamic programming algorithm for the fused lasso and L0-segmentation, JCGS 22, 2013.
    Kolmogorov, Pock and Rolinek, Total variation on a tree, SIAM J. Imaging Sci. 9, 2016.

    Examples
    --------
    >>> heights = gr.NodeData.from_dict({k: (None, [[y]]) for k, y in enumerate([1.0, 1.2, 3.0, 3.1])})
    >>> chain = gr.MeanLoss(heights) + 0.3 * gr.TotalVariation(nx.path_graph(4), gr.L1())
    >>> gr.Problem(chain).solve(gr.DynamicProgramming()).coef.ravel().round(2).tolist()
    [1.25, 1.25, 2.9, 2.9]
    """

    needs = (
        "L1, NonNegative or other costs by unit, coordinate by coordinate, on edges or arrows that are a forest; "
        "MeanLoss, or squared, Huber, quantile or hinge losses whose samples have one feature other than 0 each; node "
        "penalties L1 or sums of squares"
    )
    refusing = "the sweeps need all data in one place", "it takes no longer than to write one"
    in_one_pass = True

    def lacks(self, form: Form) -> tuple[str, ...]:
        if form.unlike_edges:
            from ._groups import arrows

            form = arrows(form)
        return super().lacks(form)

    def missing(self, form: Form) -> tuple[str, ...]:
        out: list[str] = []
        for block in form.samples:
            if block.loss.bends(block.y[:1]) is None:
                out.append(f"{block.loss.called()} is no piecewise quadratic function of one number")
            elif block.X is not None and block.X.shape[1] > 1 and (np.count_nonzero(block.X, axis=1) > 1).any():
                out.append(f"{block.loss.called()} has samples with several features, which tie the coordinates")
        for edge in form.edges:
            k, name = form.width(edge), f"{edge.name} has the penalty {edge.penalty.called()}"
            if edge.ground and not (edge.penalty.pieces(k) == 1 or _diagonal(edge, k)):
                out.append(f"{name}, and the method takes L1 and sums of squares at the nodes")
            elif not edge.ground and slopes(edge.penalty, k) is None:
                out.append(f"{name}, and the method takes L1, NonNegative and other costs by unit between nodes")
        if not out:
            from ._groups import groups_of_edges  # most who ask what is missing do not come here

            for group in groups_of_edges(form):
                if more := group.circles():
                    names = " and ".join(form.edges[k].name for k in group.blocks)
                    out.append(f"{names} has circles ({more} edges more than a forest), and the method takes forests")
        return tuple(dict.fromkeys(out))

    def run(self, task: Task) -> Outcome:
        began = time.perf_counter()
        with alarm():
            certifier = _certified(task)
        return Outcome(certifier.best(), certifier, "limit", seconds=time.perf_counter() - began)


def _certified(task: Task) -> Certifier:
    """What has the minimiser and its certificate."""
    from ._squares import squares  # most who ask what is missing do not come here

    form, gap, own = task.form, task.budget.gap, task.plain_certifier
    if own.bounds_cheaply and (found := squares(form)) is not None and own.from_flows(*found, gap).holds(gap):
        return own
    w, flows, prices = solved(form)
    known = np.zeros(form.n, dtype=bool)
    for block in form.samples:
        known[block.node] = True
    w = w if known.all() else np.where(form.free[:, None], 0.0, w)  # 0 where nothing ties it
    if own.from_flows(w, flows, gap).holds(gap):
        return own
    certifier = task.certifier
    certificate = certifier.certify(w, flows, prices, gap)
    v = np.zeros(form.d) if certificate.holds(gap) else center(form)[0]
    if v.any():  # large targets have cost the bound its last digits: it is the same around the best common model
        there = Certifier(centred(form, v), certifier)
        there.certify(*solved(there.form), gap)
        certifier.propose_from(there, v, gap)
    return certifier


def _diagonal(edge: EdgeBlock, k: int) -> bool:
    """True where a penalty is a sum of squares of coordinates."""
    Q = squares(edge.penalty, k)
    return Q is not None and not (Q - np.diag(np.diag(Q))).any()


def solved(form: Form) -> tuple[Array, tuple[Array, ...], tuple[Array, ...]]:
    """The minimiser, and flows and prices that are conserved with it."""
    from ._groups import arrows, groups_of_edges
    from ._pieces import Pieces

    form = arrows(form)
    groups = [(group, group.forest) for group in groups_of_edges(form)]
    tree, trees = np.empty(form.shape, np.intp), 0
    for group, forest in groups:
        number = forest.tree
        for column in group.columns:
            tree[:, column] = number + trees
            trees += int(number.max()) + 1
    pieces = Pieces(form, tree)
    t = np.zeros(form.shape)
    for group, forest in groups:
        for column in group.columns:
            check_deadline()
            slope, height = (forest.ordered(each[:, column]) for each in (pieces.slope, pieces.height))
            bounds, knots = forest.upwards(group.costs(column)), pieces.knots_of(column)
            t[:, column] = forest.in_place(forest.minimiser(slope, height, bounds, knots))
    may_be = pieces.derivatives(t)
    low, high = may_be.sums
    own = np.empty(form.shape)
    flows = list(form.nothing().flows)
    for group, forest in groups:
        for column in group.columns:
            inside: Any = tuple(INSIDE * cost for cost in group.costs(column))
            found, own[:, column] = forest.balanced(t[:, column], low[:, column], high[:, column], inside)
            group.put(found, column, flows)
    prices, ground = may_be.adding_up_to(own)
    for number, flow in ground.items():
        flows[number] = flow
    return pieces.shift + t, tuple(flows), prices
