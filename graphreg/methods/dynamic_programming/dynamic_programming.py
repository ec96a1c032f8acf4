"""Dynamic programming: total variation on chains and trees, solved exactly in one sweep up and one down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...certificate import Certifier, center, centred
from ...clock import look
from ...form import Form, held_together
from ...inputs import components_of
from ...running import Outcome, Task
from ...terms import Array
from ..base import AbstractMethod
from ._forest import Forest
from ._pieces import Pieces, absolute, diagonal


@dataclass(frozen=True)
class DynamicProgramming(AbstractMethod):
    """The minimiser itself, where every coordinate of the parameters is tied along chains or trees by absolute values,
    and the losses speak of one coordinate at a time.

    Of a rooted tree let m_i(t) be the least cost of everything below the edge from node i to its parent p, as a
    function of the parent's coordinate t:

        m_i(t) = min over v of  h_i(v) + sum over children j of m_j(v) + c_i |v - t|

    Its derivative is that of the sum, clipped to [-c_i, c_i]: a piecewise linear function, kept as a sequence of knots,
    from which a node takes those beyond its two ends and adds these. The places of the ends are what w_i is clipped to,
    given w_p, on the way back. Chains take O(n) steps (Johnson 2013; with weights Condat 2013; Barbero and Sra 2018);
    trees merge the knots of their children in heaps, O(n log n) (Kolmogorov, Pock and Rolinek 2016). Several trees,
    and coordinates with graphs of their own, are solved one by one.

    Flows and prices are then chosen so that they are conserved, by a second sweep over the same trees, and certified as
    those of any method. It runs compiled where numba is installed (``pip install graphreg[fast]``), else in Python:
    seconds for 10^5 nodes.

    References
    ----------
    Johnson, A dynamic programming algorithm for the fused lasso and L0-segmentation, JCGS 22, 2013.
    Kolmogorov, Pock and Rolinek, Total variation on a tree, SIAM J. Imaging Sci. 9, 2016.
    """

    needs = (
        "L1 on edges that are a forest, coordinate by coordinate; MeanLoss, or squared, Huber, quantile or hinge "
        "losses whose samples have one feature other than 0 each; node penalties L1 or sums of squares"
    )
    sends = "nothing: all data are in one place"

    def missing(self, form: Form) -> tuple[str, ...]:
        out: list[str] = []
        for block in form.samples:
            if block.loss.bends(block.y[:1]) is None:
                out.append(f"{block.loss.called()} is no piecewise quadratic function of one number")
            elif block.X is not None and (np.count_nonzero(block.X, axis=1) > 1).any():
                out.append(f"{block.loss.called()} has samples with several features, which tie the coordinates")
        for edge in form.edges:
            k, name = form.width(edge), f"{edge.name} has the penalty {edge.penalty.called()}"
            if edge.ground and not (absolute(edge, k) or diagonal(edge, k)):
                out.append(f"{name}, and the method takes L1 and sums of squares at the nodes")
            elif not edge.ground and not absolute(edge, k):
                out.append(f"{name}, and the method takes L1 between nodes")
        if not out:
            for group in _groups(form):
                if more := group.circles(form):
                    names = " and ".join(form.edges[k].name for k in group.blocks)
                    out.append(f"{names} has circles ({more} edges more than a forest), and the method takes forests")
        return tuple(dict.fromkeys(out))

    def refuses(self) -> dict[str, str]:
        return {
            "engine": "DynamicProgramming has no actors: the sweeps need all data in one place",
            "checkpoint": "DynamicProgramming takes no checkpoint: it takes no longer than to write one",
            "rounds": "DynamicProgramming has no rounds that could be counted: give seconds=",
            "callback": "DynamicProgramming has no rounds after which to call",
            "observe": "DynamicProgramming has no rounds that could be observed",
        }

    def run(self, task: Task) -> Outcome:
        began, certifier, gap = time.perf_counter(), task.certifier, task.budget.gap
        w, flows, prices = solved(task.form)
        certificate = certifier.certify(np.where(task.form.free[:, None], 0.0, w), flows, prices, gap)
        v = np.zeros(task.form.d) if certificate.holds(gap) else center(task.form)[0]
        if v.any():  # large targets have cost the bound its last digits: it is the same around the best common model
            there = Certifier(centred(task.form, v), certifier)
            there.certify(*solved(there.form), gap)
            certifier.beside(there, v)
        return Outcome(certifier.best(), certifier, "limit", seconds=time.perf_counter() - began)


@dataclass(frozen=True)
class _Group:
    """The edges that tie some coordinates: the numbers of their blocks, and the edges of all of these in turn."""

    blocks: tuple[int, ...]
    columns: Array
    tail: Array
    head: Array
    weight: Array
    most: Array  # the flow that may be on each, inside the domain

    def circles(self, form: Form) -> int:
        """How many edges there are more than in a forest."""
        alone = len(self.blocks) == sum(not edge.ground for edge in form.edges)  # the parts of the form are its trees
        parts = form.n_components if alone else components_of(self.tail, self.head, form.n)[0]
        return len(self.tail) - form.n + parts


def _groups(form: Form) -> Iterator[_Group]:
    """The coordinates that the same blocks of edges tie, and these; also those that none does."""
    between = [k for k, edge in enumerate(form.edges) if not edge.ground]
    held = held_together([form.edges[k].columns(form.d) for k in between], form.d)
    rest = np.setdiff1d(np.arange(form.d), np.concatenate([np.zeros(0, np.intp), *(each for _, each in held)]))
    for holding, columns in [*held, *([((), rest)] if len(rest) else [])]:
        blocks = tuple(between[k] for k in holding)
        none = np.zeros(0, np.intp)
        tail, head = (
            np.concatenate([none, *(getattr(form.edges[k], end) for k in blocks)]) for end in ("tail", "head")
        )
        weight = np.concatenate([np.zeros(0), *(form.edges[k].weight for k in blocks)])
        full = [edge.clip(np.tile(edge.weight[:, None], form.width(edge))) for edge in (form.edges[k] for k in blocks)]
        most = np.concatenate([np.zeros(0), *(each[:, 0] for each in full)])
        yield _Group(blocks, columns, tail, head, weight, most)


def solved(form: Form) -> tuple[Array, tuple[Array, ...], tuple[Array, ...]]:
    """The minimiser, and flows and prices that are conserved with it."""
    each = list(_groups(form))
    forests = form.once("forests", None, lambda: [Forest.of(group.tail, group.head, form.n) for group in each])
    groups = list(zip(each, forests, strict=True))
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
            look()
            t[:, column] = forest.minimiser(pieces, column, group.weight)
    may_be = pieces.derivatives(t)
    low, high = may_be.sums
    own = np.empty(form.shape)
    flows = list(form.nothing().flows)
    for group, forest in groups:
        for column in group.columns:
            found, own[:, column] = forest.balanced(t[:, column], low[:, column], high[:, column], group.most)
            for k, part in zip(group.blocks, _parts(form, group, found), strict=True):
                place = int(np.flatnonzero(form.edges[k].columns(form.d) == column)[0])
                flows[k][:, place] = part
    prices, ground = may_be.adding_up_to(own)
    for number, flow in ground.items():
        flows[number] = flow
    return pieces.shift + t, tuple(flows), prices


def _parts(form: Form, group: _Group, values: Array) -> list[Array]:
    """Values of all edges of a group, block by block."""
    ends = np.cumsum([len(form.edges[k].tail) for k in group.blocks])
    return np.split(values, ends[:-1]) if len(ends) else []
