"""How an imbalance is taken up: flows carry it along a forest to roots, where prices of a few samples answer for it.

Equations are the vertices of a graph whose arcs are the flows with room. Every equation but the roots of its trees has
one arc, towards the root. A tree of the ground needs no more; of the others the totals are answered, tree by tree, by
variables that are no arcs: samples, and flows that mix coordinates. Where totals depend on one another, some of them
vanish with the others, and a combination says so. Nothing here is trusted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from graphreg.base.csgraph import connected_components
from graphreg.certificate.enclosure.arcs import Arcs, Forest, forest
from graphreg.certificate.enclosure.attempt import held_apart
from graphreg.terms import Array

from .arithmetic import RANGE
from .balance import Answers, Combination
from .slack import Slack
from .system import System
from .systems import MANY, independent, right_inverses, solved

Entries = tuple[Array, Array, Array]  # variables, equations and values of R


@dataclass(frozen=True)
class Plan:
    """What takes up imbalances: ``tree`` carries them to roots, where other variables answer."""

    answers: Answers
    R: sp.csr_array
    tree: Forest
    dropped: dict[int, Combination]

    @cached_property
    def depth(self) -> Array:
        """How many arcs lie between each equation and its root."""
        return _depth(self.tree)

    @cached_property
    def kept(self) -> Array:
        kept = np.ones(self.R.shape[1], dtype=bool)
        kept[list(self.dropped)] = False
        return kept


def _depth(tree: Forest) -> Array:
    depth, at = np.zeros(len(tree.parent), dtype=int), np.arange(len(tree.parent))
    for k, up in reversed([*enumerate(tree.jumps)]):  # 2^k arcs at a time
        ancestor = up[at]
        further = ancestor < len(tree.parent)
        depth[further] += 2**k
        at = np.where(further, ancestor, at)
    return depth


class Planner:
    """Plans for one system."""

    def __init__(self, system: System) -> None:
        self.system, self.form = system, system.form
        self.arcs = Arcs.of(self.form)
        each = [system.summands[len(self.form.samples) + k].columns for k in self.arcs.blocks]
        ranges = [np.arange(columns.start, columns.stop) for columns in each]
        self.variable = np.concatenate([np.zeros(0, dtype=int), *ranges])  # of each arc
        self.is_arc = np.zeros(system.size, dtype=bool)
        self.is_arc[self.variable] = True

    def __call__(self, v: Array, slack: Slack, held: Array, apart: bool) -> Plan:
        """Where ``apart``, every node with free variables answers for itself, and flows move from the others alone."""
        room = np.where(held, 0.0, slack.room)[self.variable]
        weight = np.where(held | self.is_arc, 0.0, slack.weight)
        stays = held[self.variable]
        if apart:
            free = np.flatnonzero(weight > 0.0)
            stays = stays | held_apart(self.arcs, room, [_Free(self.system.transposed[free])], weight[free])
        tree = forest(self.arcs, room, self._largest(v), stays)
        at = np.flatnonzero(tree.arc >= 0)
        arc = tree.arc[at]
        entries: list[Entries] = [(self.variable[arc], at, np.where(self.arcs.tail[arc] == at, 1.0, -1.0))]
        dropped: dict[int, Combination] = {}
        Totals(self, tree, weight, entries, dropped).answer()
        rows, columns, values = (np.concatenate(x) for x in zip(*entries, strict=True))
        values = np.where(np.abs(values) < 1.0 / RANGE, 0.0, values)
        R = sp.csr_array((values, (rows, columns)), shape=self.system.transposed.shape)
        R.eliminate_zeros()
        return Plan(Answers(self.system, R), R, tree, dropped)

    def _largest(self, v: Array) -> Array:
        """The largest summand of an equation, by coordinate: what rounding leaves there is small beside it."""
        B, d = self.system.transposed, self.form.d
        size = np.abs(B.data) * np.repeat(np.abs(v), np.diff(B.indptr))
        out = np.zeros(d)
        if d == 1:
            return np.array([size.max(initial=0.0)])
        np.maximum.at(out, B.indices % d, size)
        return out


class _Free:
    """Free variables, as `held_apart` asks for them."""

    def __init__(self, rows: sp.csr_array) -> None:
        self.rows = rows

    def nodes(self) -> Array:
        return np.zeros(self.rows.shape[0])

    def entries(self, free: Array) -> tuple[Array, Array]:
        rows = self.rows[free]
        return rows.indices, rows.data


class Totals:
    """The totals of trees without the ground, and what answers for them."""

    def __init__(
        self, planner: Planner, tree: Forest, weight: Array, entries: list[Entries], dropped: dict[int, Combination]
    ) -> None:
        self.planner, self.tree, self.entries, self.dropped = planner, tree, entries, dropped
        group = tree.group[:-1]
        inside = np.flatnonzero(group != tree.grounded)
        number = np.unique(group[inside], return_inverse=True)[1]
        self.count = int(number.max(initial=-1)) + 1
        self.of = np.full(len(group), -1)  # the tree of each equation
        self.of[inside] = number
        self.root = np.zeros(self.count, dtype=int)
        top = inside[tree.arc[inside] < 0]
        self.root[self.of[top]] = top
        self.free = np.flatnonzero(weight > 0.0)
        self.weight = weight[self.free]
        B = planner.system.transposed[self.free]
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
        large = columns > 2 * (MANY * rows + 10)
        together = np.flatnonzero((columns >= rows) & ~large & (rows > 0))
        size = 1 << np.ceil(np.log2(np.maximum(columns, 1))).astype(int)
        key = rows[together] * (1 << 32) + size[together]
        alone = [np.flatnonzero(((columns < rows) | large) & (rows > 0))]
        for each in np.unique(key).tolist():
            some = together[key == each]
            sure = self._together(some, each >> 32, each & ((1 << 32) - 1), trees, variables)
            alone.append(some[~sure])
        for k in np.concatenate(alone).tolist():
            mine = variables.of(k) if k < len(variables.counts) else np.zeros(0, dtype=int)
            self._alone(trees.of(k), mine, bool(large[k]))

    def _labels(self) -> Array:
        """A number for each tree and then each free variable: that of the system to which it belongs."""
        M, G = self.A.shape
        row = np.repeat(np.arange(M), np.diff(self.A.indptr))
        graph = sp.csr_array((np.ones(self.A.nnz), (self.A.indices, row + G)), shape=(G + M, G + M))
        label = connected_components(graph, directed=False)[1]
        used = np.unique(label[:G])  # those of variables that touch no tree come behind
        number = np.full(int(label.max(initial=0)) + 1, len(used))
        number[used] = np.arange(len(used))
        return number[label]

    def _together(self, some: Array, rows: int, size: int, trees: _Sorted, variables: _Sorted) -> Array:
        """Systems of one size; for which of them floats leave no doubt."""
        at = np.full(len(trees.counts) + 1, -1)
        at[some] = np.arange(len(some))
        mine = np.flatnonzero(at[variables.label] >= 0)
        sub = self.A[mine]
        owner = np.repeat(mine, np.diff(sub.indptr))
        A = np.zeros((len(some), rows, size))
        w = np.zeros((len(some), size))
        A[at[variables.label[owner]], trees.place[sub.indices], variables.place[owner]] = sub.data
        w[at[variables.label[mine]], variables.place[mine]] = self.weight[mine]
        X, sure = right_inverses(A, w)
        k, c, g = np.nonzero((X != 0.0) & sure[:, None, None])
        variable = variables.order[variables.starts[some[k]] + c]
        self._take(variable, self.root[trees.order[trees.starts[some[k]] + g]], X[k, c, g])
        return sure

    def _alone(self, trees: Array, variables: Array, large: bool) -> None:
        """One system whose rows may depend on one another, or that has many columns."""
        chosen = self._near(trees, variables) if large else variables
        A = self.A[chosen][:, trees].toarray().T
        found = solved(A, self.weight[chosen], self.root[trees] // self.planner.form.d)
        c, g = np.nonzero(found.X)
        self._take(chosen[c], self.root[trees[found.kept[g]]], found.X[c, g])
        for g, y in found.combinations.items():
            members = [(np.flatnonzero(self.of == trees[k]).tolist(), value) for k, value in y.items()]
            self.dropped[int(self.root[trees[g]])] = {i: value for some, value in members for i in some}

    def _near(self, trees: Array, variables: Array) -> Array:
        """Some of many variables: those near the roots, and heavy ones first, until they do."""
        B = self.planner.system.transposed[self.free[variables]]
        far = np.maximum.reduceat(self._depth[B.indices], B.indptr[:-1])
        order = variables[np.lexsort((-self.weight[variables], far))]
        most = MANY * len(trees) + 10
        while most < len(order):
            chosen = order[:most]
            if len(independent(self.A[chosen][:, trees].toarray().T, self.weight[chosen])) == len(trees):
                return chosen
            most *= 4
        return order

    @cached_property
    def _depth(self) -> Array:
        return _depth(self.tree)

    def _take(self, variable: Array, root: Array, value: Array) -> None:
        """Entries of R in the columns of roots, with the arcs that carry there what variables leave elsewhere."""
        self.entries.append((self.free[variable], root, value))
        carried = ~self.alone[variable]
        if not carried.any():
            return
        variable, root, value = variable[carried], root[carried], value[carried]
        order = np.argsort(root, kind="stable")
        ends = np.flatnonzero(np.diff(root[order], append=-1)) + 1
        for some in np.split(order, ends[:-1]):
            self.entries.append(self._carried(variable[some], value[some], int(root[some[0]])))

    def _carried(self, variable: Array, by: Array, root: int) -> Entries:
        """The arcs from where variables move what is no root."""
        tree, arcs = self.tree, self.planner.arcs
        B = self.planner.system.transposed[self.free[variable]]
        left = np.bincount(B.indices, B.data * np.repeat(by, np.diff(B.indptr)), len(tree.parent))
        load = {int(i): float(left[i]) for i in np.flatnonzero(left)}
        queue = [(-int(self._depth[i]), i) for i in load]
        heapq.heapify(queue)
        moved: list[tuple[int, float]] = []
        while queue:
            i = heapq.heappop(queue)[1]
            x, arc = load.pop(i), int(tree.arc[i])
            if arc < 0:
                continue
            moved.append((int(self.planner.variable[arc]), -x if arcs.tail[arc] == i else x))
            above = int(tree.parent[i])
            if above < len(tree.parent):
                if above not in load:
                    heapq.heappush(queue, (-int(self._depth[above]), above))
                load[above] = load.get(above, 0.0) + x
        columns = np.array([j for j, _ in moved], dtype=int)
        return columns, np.full(len(moved), root), np.array([x for _, x in moved])


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
