"""How an imbalance is taken up: flows carry it along a forest to roots, where prices of a few samples answer for it.

Equations are the vertices of a graph whose arcs are the flows with room. Every equation but the roots of its trees has
one arc, towards the root. A tree of the ground needs no more; of the others the totals are answered, tree by tree, by
variables that are no arcs: samples, and flows that mix coordinates. Where totals depend on one another, some of them
vanish with the others, and a combination says so. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import minimum_spanning_tree
from ...base.gate import heavy, too_much
from ...inputs import components_of
from ...terms import Array
from ..convexity import equilibrated, estimated, factor, root_of
from ..kernel.arithmetic import EPS, LEAST, RANGE, RefusedError, need, upwards
from ..kernel.balance import Answers, Balanced, Combination, Witness, balanced
from ..kernel.joint import NOTHING, Dropped, Joint
from ..kernel.system import Prices, System
from .arcs import Arcs, Forest, forest
from .slack import Slack
from .systems import DEPENDENT, MOST, Solved, right_inverses, signs, solved

Entries = tuple[Array, Array, Array]  # variables, equations and values of R
LIGHT = 1e-3  # of the largest weight: variables with less are looked at last
NEGLIGIBLE = 1e-10  # of the largest weight at a node: with less a variable answers for nothing there
MISSES = 3  # systems that are like no other, after which none is compared any more
MANY = 6  # variables for each equation of a node that are looked at
ROUNDS = 12  # in which the sizes of corrections grow
PER_ENTRY, FOR_PRODUCT = 4.5, 10.0  # numbers of 8 bytes, and multiplications that a product takes as long as
HEAVY = "the equations that all variables answer together take too much memory"
SHIFT = 1e-13  # of equilibrated squares, whose factor would break off where they are singular
UNTIED = "what may move does not tie down all equations"
ENOUGH, MORE = 10, 0.25  # variables beyond the equations of a root, in all and for each: what is near answers first


@dataclass(frozen=True)
class Plan:
    """What takes up imbalances: ``tree`` carries them to roots, where other variables answer."""

    answers: Answers
    tree: Forest
    dropped: dict[int, Combination]

    @cached_property
    def kept(self) -> Array:
        """Which equations are not dropped."""
        kept = np.ones(len(self.tree.parent), dtype=bool)
        kept[list(self.dropped)] = False
        return kept

    def gathered(self, x: Array) -> Array:
        """Of each equation that is kept what its subtree leaves in total."""
        x = np.where(self.kept, x, 0.0)
        found = self.tree.gather(np.maximum(x, 0.0)) - self.tree.gather(np.maximum(-x, 0.0))
        return np.where(self.kept, found, 0.0)

    def moved(self, left: Array) -> Array:
        """What takes up an imbalance."""
        return self.answers.R @ self.gathered(left)

    def spread(self, z: Array) -> Array:
        """How far corrections of these sizes move."""
        return self.answers.moved(z)

    def sizes(self, left: Array) -> Array:
        """z with |Bv| + E z <= z, as far as a few rounds find it."""
        size = np.where(self.kept, left, 0.0)
        depth, width = self.tree.depth, self.answers.width
        # a bound of roundings grows by some units from arc to arc
        more = 1.0 + 4 * EPS * (width + 16) * (depth.max(initial=0) - depth + 2)
        own, z = size, size
        for _ in range(ROUNDS):
            z = self.tree.gather(own) * more
            z = np.where(self.kept & (z > 0.0), np.maximum(z, LEAST), 0.0)
            short = upwards(size + self.answers.passed(z), 4) - z
            if not (self.kept & (short > 0.0)).any():
                break
            own = own + np.where(self.kept & (short > 0.0), 2.0 * short + LEAST, 0.0)
        return z

    def box(self, system: System, high: Array, low: Array, z: Array, plain: bool = False) -> Balanced:
        """What is proved of prices and flows."""
        return balanced(system, Witness(high, low, self.answers, z, self.dropped, plain))


class JointPlan:
    """What takes up imbalances where all variables do together, by least squares; of those components whose equations
    they tie down, but for equations that are ``dropped``."""

    def __init__(self, system: System, weight: Array, dropped: Dropped = NOTHING) -> None:
        self.system, self.dropped, self._kept = system, dropped, np.ones(system.shape[0], dtype=bool)
        if dropped.moves is not None:
            weight = np.where(dropped.moves.diagonal() == 0.0, 0.0, weight)
        self._kept[list(dropped.combinations)] = False
        root, none = np.sqrt(weight), np.zeros(system.form.n_components, dtype=bool)
        root[root < 1.0 / RANGE] = 0.0
        B = sp.csr_array(system.kind.rows(np.arange(system.size)))
        B.data *= np.repeat(root, np.diff(B.indptr)) * self._kept[B.indices]
        try:
            self._tie_down(B, root, none)
        except RefusedError:
            lost = _untied(system, B)
            if not 0 < lost.sum() < len(lost):
                raise
            self._tie_down(B, root, lost)

    def _tie_down(self, B: sp.csr_array, root: Array, lost: Array) -> None:
        system, self._B = self.system, B.copy()
        self._B.data[lost[system.component[B.indices]]] = 0.0
        found = equilibrated(_squared(self._B))
        if found is None:
            raise RefusedError(UNTIED)
        scale, S, self._solve = found
        mu = 0.5 * estimated(self._solve, np.ones(len(scale)))
        G = root_of(S - mu * sp.eye_array(len(scale))) if mu > 0.0 else None
        if G is None:
            raise RefusedError(UNTIED)
        self.dropped = replace(self.dropped, lost=lost)
        self.joint = heavy(_products(G.T.tocsr()), lambda: Joint(system, root, scale, G, mu, self.dropped))

    def moved(self, left: Array) -> Array:
        """What takes up an imbalance."""
        scale = self.joint.scale
        own = self.joint.root * (self._B @ (scale * self._solve(scale * left * self._kept)))
        return own if self.dropped.moves is None else self.dropped.moves @ own

    def sizes(self, left: Array) -> Array:
        return left * self._kept

    def spread(self, z: Array) -> Array:
        """How far an imbalance of that size moves."""
        return self.joint.spread(z)

    def box(self, system: System, high: Array, low: Array, z: Array, plain: bool = False) -> Balanced:
        """What is proved of prices and flows."""
        return self.joint.balanced(system, high, low, plain)


def _squared(B: sp.csr_array) -> sp.csc_array:
    """B'B, and 1 for equations of which nothing is left."""
    BB = heavy(_products(B), lambda: B.T @ B)
    return sp.csc_array(BB + sp.diags_array(1.0 * (BB.diagonal() == 0.0)))


def _untied(system: System, B: sp.csr_array) -> Array:
    """The components of whose equations some depend on the others: there the inverse of their squares is large."""
    H = _squared(B)
    q = H.diagonal() ** -0.5
    try:
        lu = factor(sp.diags_array(q) @ H @ sp.diags_array(q) + SHIFT * sp.eye_array(len(q)))
    except RuntimeError as error:
        raise RefusedError(UNTIED) from error
    x = lu.solve(np.random.default_rng(0).standard_normal(len(q)))
    lost = np.zeros(system.form.n_components, dtype=bool)
    lost[system.component[~(np.abs(x) < 1.0 / DEPENDENT)]] = True
    return lost


def _products(A: sp.csr_array) -> float:
    """The products of which A'A is a sum, times what one takes; `RefusedError` where memory does not hold the
    matrix."""
    many = float((np.diff(A.indptr) ** 2.0).sum())
    entries = min(many, float(A.shape[1]) ** 2)  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
    need(not too_much(PER_ENTRY * entries, "it"), HEAVY)
    return FOR_PRODUCT * many


class Planner:
    """Plans for systems that have the same graph and designs."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.arcs = Arcs.of(system)
        self.variable = self.arcs.variable  # of each arc
        others = np.ones(system.size, dtype=bool)
        others[self.variable] = False
        self.others = np.flatnonzero(others)  # variables that are no arcs
        self._last: tuple[Array, Array, Plan] | None = None  # for all points: which flows may move, weights, the plan

    def nodes(self, variables: Array) -> Array:
        """A node at which each of some variables acts, in rising order."""
        found = [np.zeros(0, dtype=int)]
        for one in self.system.summands:
            low, high = np.searchsorted(variables, [one.columns.start, one.columns.stop])
            found.append(one.node[(variables[low:high] - one.first) // max(one.shape[1], 1)])
        return np.concatenate(found)

    def near(self, v: Array, slack: Slack, held: Array, apart: bool) -> Plan:
        """For a point. Where ``apart``, every node with free variables answers for itself, and flows move from the
        others alone."""
        room = np.where(held, 0.0, slack.room)[self.variable]
        weight = np.where(held, 0.0, slack.weight)[self.others]
        stays, largest = held[self.variable], self._largest(v)
        if apart:
            largest, node = np.zeros(len(largest)), self.nodes(self.others)
            free = _foremost(node, weight, np.zeros(len(weight)), MANY * self.system.form.d)
            weight = np.where(weight < NEGLIGIBLE * _top(node, weight)[node], 0.0, weight)
            stays = stays | self._apart(room, self.others[free[weight[free] > 0.0]])
        return self._plan(forest(self.arcs, room, largest, stays), weight)

    def everywhere(self, slack: Slack) -> Plan:
        """For all points, whose flows are to be shrunk by as much as those move that may."""
        room, weight, last = slack.room[self.variable], slack.weight[self.others], self._last
        if last is None or not (np.array_equal(last[0], room > 0.0) and np.array_equal(last[1], weight)):
            tree = forest(self.arcs, room, np.zeros(self.system.form.d), np.zeros(len(room), dtype=bool))
            self._last = last = room > 0.0, weight, self._plan(tree, weight)
        return last[2]

    def _plan(self, tree: Forest, weight: Array) -> Plan:
        """``weight`` is that of the variables that are no arcs."""
        at, d = np.flatnonzero(tree.arc >= 0), self.system.form.d
        arc, (N, V) = tree.arc[at], self.system.shape
        carried = self.variable[arc], at, self.signs(tree)[at]
        node = self.nodes(self.others)
        group, depth = (x.reshape(-1, d).max(axis=1)[node] for x in (tree.group[:-1], tree.depth))
        free = _foremost(group, weight, depth, d + min(d, int(ENOUGH + MORE * d)))
        every = np.flatnonzero(weight > 0.0)
        for some in (free, every):
            found = Totals(self, tree, self.others[some], weight[some])
            found.answer()
            if not found.dropped or len(some) == len(every):
                break
        rows, columns, values = (np.concatenate(x) for x in zip(carried, *found.entries, strict=True))
        values = np.where(np.abs(values) < 1.0 / RANGE, 0.0, values)
        R = sp.csr_array((values, (rows, columns)), shape=(V, N))
        R.eliminate_zeros()
        return Plan(Answers(self.system, R), tree, found.dropped)

    def signs(self, tree: Forest) -> Array:
        """Of each vertex 1 where its arc towards the root begins there, -1 where that ends there, else 0."""
        out, at = np.zeros(len(tree.arc)), np.flatnonzero(tree.arc >= 0)
        out[at] = np.where(self.arcs.starts(tree.arc[at], at), 1.0, -1.0)
        return out

    def _largest(self, v: Array) -> Array:
        """The largest summand of an equation, by coordinate: what rounding leaves there is small beside it."""
        out = np.zeros(self.system.form.d)
        np.maximum.at(out, self.arcs.tail % len(out), np.abs(v[self.variable]))
        for one in self.system.prices:
            out = np.maximum(out, _tops(one, one.taken(v)))
        return out

    def _apart(self, room: Array, free: Array) -> Array:
        """All arcs but, for each coordinate of a node without enough free variables, of which those answer that they
        move most, one on its roomiest way to one that has."""
        arcs, d = self.arcs, self.system.form.d
        rows, size = self.system.kind.rows(free), np.zeros(arcs.ground + 1)
        np.maximum.at(size, rows.indices, np.abs(rows.data))
        at, most = size[:-1].reshape(-1, d), np.bincount(self.nodes(free), minlength=arcs.ground // d)
        served = size > 0.0
        served[:-1] &= (np.argsort(np.argsort(-at, axis=1), axis=1) < most[:, None]).ravel()
        served[arcs.ground] = True
        number = np.where(served, 0, np.cumsum(~served))  # all that are served are one
        tail, head = number[arcs.tail], number[arcs.head]
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        held = np.ones(len(room), dtype=bool)
        some = np.flatnonzero((low != high) & (room > 0.0))
        some = some[np.lexsort((-room[some], high[some], low[some]))]
        first = np.ones(len(some), dtype=bool)  # of several arcs between two the roomiest
        first[1:] = (low[some][1:] != low[some][:-1]) | (high[some][1:] != high[some][:-1])
        some = some[first]
        size = int(number.max(initial=0)) + 1
        rank = np.empty(len(some))
        rank[np.argsort(-room[some], kind="stable")] = np.arange(1, len(some) + 1)
        found = minimum_spanning_tree(sp.csr_array((rank, (low[some], high[some])), shape=(size, size)))
        held[some[np.isin(rank, found.data)]] = False
        return held


def _tops(one: Prices, a: Array) -> Array:
    """The largest |x_rj a_rc| of each coordinate."""
    a = np.abs(one.given(a.ravel().reshape(one.shape))).reshape(len(a), -1)
    if one.K is not None:
        products = abs(one.K).T.multiply(a.ravel()).max(axis=1)
        return products.toarray().reshape(-1, one.d).max(axis=0, initial=0.0)
    X = one.block.X
    if X is None:
        return a.max(axis=0, initial=0.0)
    return np.stack([(np.abs(X) * c[:, None]).max(axis=0, initial=0.0) for c in a.T], axis=1).ravel()


def _top(group: Array, weight: Array) -> Array:
    """The largest weight of each group."""
    top = np.zeros(int(group.max(initial=0)) + 1)
    np.maximum.at(top, group, weight)
    return top


def _foremost(group: Array, weight: Array, far: Array, most: int) -> Array:
    """So many variables of each group: those with some weight first, of these the nearest, then the heaviest."""
    light = weight < LIGHT * _top(group, weight)[group]
    heavy = (weight > 0.0) & ~light
    enough, reach = np.minimum(np.bincount(group[heavy]), most), 1
    while (np.bincount(group[heavy & (far <= reach)], minlength=len(enough)) < enough).any():
        reach *= 2
    free = np.flatnonzero((weight > 0.0) & (light | (far <= reach)))  # others come too late
    order = free[np.lexsort((-weight[free], far[free], light[free], group[free]))]
    count = np.bincount(group[order]) if len(order) else np.zeros(1, dtype=int)
    place = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    return np.sort(order[place < most])


class Totals:
    """The totals of trees without the ground, and what answers for them."""

    def __init__(self, planner: Planner, tree: Forest, free: Array, weight: Array) -> None:
        self.planner, self.tree, self.free, self.weight = planner, tree, free, weight
        self.entries: list[Entries] = []
        self.found: list[Entries] = []  # of these free variables, by their place, and roots
        self.dropped: dict[int, Combination] = {}
        group, self.count = tree.group[:-1], tree.count - 1
        self.of = np.where(group == tree.grounded, -1, group - (group > tree.grounded))  # the tree of each equation
        self.root = np.zeros(self.count, dtype=int)
        top = np.flatnonzero((self.of >= 0) & (tree.arc < 0))
        self.root[self.of[top]] = top
        self.B = B = planner.system.kind.rows(self.free)
        at = self.of[B.indices]
        row = np.repeat(np.arange(len(self.free)), np.diff(B.indptr))
        kept = at >= 0
        self.A = sp.csr_array((B.data[kept], (row[kept], at[kept])), shape=(len(self.free), self.count))
        self.A.sum_duplicates()
        # whether a variable touches trees at their roots alone, and so leaves nothing to be carried
        rooted = tree.arc[B.indices] < 0
        self.alone = np.ones(len(self.free), dtype=bool)
        self.alone[row[~rooted]] = False

    def answer(self) -> None:
        """Add to the entries of R those in the columns of roots, and to what is dropped what follows from others."""
        if not self.count:
            return
        label = self._labels()
        trees, variables = _Sorted(label[: self.count]), _Sorted(label[self.count :])
        rows, columns = trees.counts, np.zeros(len(trees.counts), dtype=int)
        columns[: len(variables.counts)] = variables.counts[: len(rows)]
        together = np.flatnonzero((columns >= rows) & (rows > 0))
        size = 1 << np.ceil(np.log2(np.maximum(columns, 1))).astype(int)
        key = rows[together] * (1 << 32) + size[together]
        need(rows.max(initial=0) <= MOST, "too many equations depend on one another")
        for each in np.unique(key).tolist():
            self._together(together[key == each], each >> 32, each & ((1 << 32) - 1), trees, variables)
        for k in np.flatnonzero((columns < rows) & (rows > 0)).tolist():
            self._alone(trees.of(k), variables.of(k) if k < len(variables.counts) else np.zeros(0, dtype=int))
        if self.found:
            self._take(*(np.concatenate(x) for x in zip(*self.found, strict=True)))

    def _labels(self) -> Array:
        """A number for each tree and then each free variable: that of the system to which it belongs."""
        M, G = len(self.free), self.count
        row = np.repeat(np.arange(M), np.diff(self.A.indptr))
        label = components_of(self.A.indices, row + G, G + M)[1]
        used = np.unique(label[:G])  # those of variables that touch no tree come behind
        number = np.full(int(label.max(initial=0)) + 1, len(used))
        number[used] = np.arange(len(used))
        return number[label]

    def _together(self, some: Array, rows: int, size: int, trees: _Sorted, variables: _Sorted) -> None:
        """Systems of one size."""
        at = np.full(len(trees.counts) + 1, -1)
        at[some] = np.arange(len(some))
        mine = np.flatnonzero(at[variables.label] >= 0)
        sub = self.A[mine]
        owner = np.repeat(mine, np.diff(sub.indptr))
        A = np.zeros((len(some), rows, size))
        w = np.zeros((len(some), size))
        A[at[variables.label[owner]], trees.place[sub.indices], variables.place[owner]] = sub.data
        w[at[variables.label[mine]], variables.place[mine]] = self.weight[mine]
        roots = self.root[trees.order[trees.starts[some][:, None] + np.arange(rows)]]

        def take(which: Array, kept: Array) -> Array:
            """Answers of these rows of some systems; for which of them floats leave no doubt."""
            X, sure = right_inverses(A[which][:, kept], w[which])
            k, c, g = np.nonzero((X != 0.0) & sure[:, None, None])
            variable = variables.order[variables.starts[some[which[k]]] + c]
            self.found.append((variable, roots[which[k], kept[g]], X[k, c, g]))
            return sure

        left, misses = np.arange(len(some)), 0
        left = left[~take(left, np.arange(rows))]
        while len(left):  # a system alone, and then those in which the same rows follow from the others
            first = int(some[left[0]])
            one = self._alone(trees.of(first), variables.of(first))
            left, plain = left[1:], signs(one, rows)
            if plain is None or not len(left) or misses == MISSES:
                continue
            like = np.abs(np.einsum("gr,krc->kgc", plain, A[left])).max(axis=(1, 2)) == 0.0
            like[like] = take(left[like], one.kept)
            for k in some[left[like]].tolist():
                self._drop(trees.of(k), one.combinations)
            left, misses = left[~like], misses + (not like.any())

    @cached_property
    def _trees(self) -> _Sorted:
        """The equations of each tree; those of the ground come first."""
        return _Sorted(self.of + 1)

    def _alone(self, trees: Array, chosen: Array) -> Solved:
        """One system whose rows may depend on one another."""
        A = self.A[chosen][:, trees].toarray().T
        try:
            found = solved(A, self.weight[chosen], self.root[trees] // self.planner.system.form.d)
        except OverflowError:
            raise RefusedError("what takes up an imbalance is beyond the largest float") from None
        c, g = np.nonzero(found.X)
        self.found.append((chosen[c], self.root[trees[found.kept[g]]], found.X[c, g]))
        self._drop(trees, found.combinations)
        return found

    def _drop(self, trees: Array, combinations: Mapping[int, Combination]) -> None:
        """Drop the equations of trees that follow from those of others."""
        for g, y in combinations.items():
            each = [(self._trees.of(trees[k] + 1).tolist(), value) for k, value in y.items()]
            self.dropped[int(self.root[trees[g]])] = {i: value for some, value in each for i in some}

    def _take(self, variable: Array, root: Array, value: Array) -> None:
        """Entries of R in the columns of roots, with the arcs that carry there what variables leave elsewhere."""
        self.entries.append((self.free[variable], root, value))
        some, tree = ~self.alone[variable], self.tree
        roots, at = np.unique(root[some], return_inverse=True)
        X = sp.csr_array((value[some], (variable[some], at)), shape=(len(self.free), len(roots)))
        left = sp.csr_array(self.B.T @ X)
        every = np.arange(left.shape[0], dtype=left.indices.dtype)  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
        i = np.repeat(every, np.diff(left.indptr))
        for ancestor in tree.steps:  # the sums over subtrees, as `Forest.gather`
            to = ancestor[i].astype(i.dtype)
            on = to < len(every)
            if not on.any():
                break
            places = np.append(i, to[on]), np.append(left.indices, left.indices[on])
            left = sp.csr_array((np.append(left.data, left.data[on]), places), shape=left.shape)
            i = np.repeat(every, np.diff(left.indptr))
        on = tree.arc[i] >= 0
        i, sign = i[on], -self.planner.signs(tree)
        self.entries.append((self.planner.variable[tree.arc[i]], roots[left.indices[on]], sign[i] * left.data[on]))


class _Sorted:
    """Things by their labels 0, 1, ...: of each label how many, and where they are in ``order``."""

    def __init__(self, label: Array) -> None:
        self.label = label
        self.order = np.argsort(label, kind="stable")
        self.counts = np.bincount(label)
        self.starts = np.cumsum(self.counts) - self.counts
        self.place = np.empty(len(label), dtype=int)
        self.place[self.order] = np.arange(len(label)) - np.repeat(self.starts, self.counts)

    def of(self, k: int) -> Array:
        return self.order[self.starts[k] : self.starts[k] + self.counts[k]]
