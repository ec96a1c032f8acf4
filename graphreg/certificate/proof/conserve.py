"""From a dual point that is balanced up to rounding to one that is balanced exactly, in three steps.

1. The total of each group of vertices (see `forest`) is cancelled by as many independent prices, all at one node where
   it has them; where groups are coupled, by the solution of one linear system.
2. What is left at each vertex is pushed along the trees to a root, which then has nothing left.
3. The flows that moved are stated again, those of roots by t.

The vertices are (node, column), numbered ``node * d + column``, and the ground, ``n * d``. An edge e with room is a
link between the two vertices of each of its columns. What is not tied to the ground falls into groups: moving flows
cannot change the total of a group, prices can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import EdgeBlock, Form
from ...inputs import components_of, groups_of
from ...terms import Array
from ...verify import rational
from .point import ExactPoint, Variable, free_prices, free_roots
from .statement import exact, flow_root, nearest, solve, truncated


# ---- the trees along which flows are moved ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Link:
    """One column of one edge: (block, edge, place in the block's columns), and its ends, as the flow runs."""

    block: int
    edge: int
    place: int
    tail: int
    head: int


@dataclass(frozen=True)
class Forest:
    """Spanning trees of the links with most room; ``group`` (n d,) is -1 where the ground is tied to."""

    links: list[list[Link]]  # of the trees, at each vertex
    group: Array
    count: int


def forest(form: Form, rooms: list[Array], least: float) -> Forest:
    """The trees of the links whose room is above ``least``, those with most room first (Kruskal)."""
    from networkx.utils import UnionFind

    ground = form.n * form.d
    joined, trees = UnionFind(range(ground + 1)), [list[Link]() for _ in range(ground + 1)]
    for link in _links(form, rooms, least):
        if joined[link.tail] != joined[link.head]:
            joined.union(link.tail, link.head)
            trees[link.tail].append(link)
            trees[link.head].append(link)
    group, count = group_numbers([joined[v] for v in range(ground + 1)])
    return Forest(trees, np.array(group), count)


def _links(form: Form, rooms: list[Array], least: float) -> list[Link]:
    found: list[Link] = []
    sizes: list[Array] = []
    for m, (edge, given) in enumerate(zip(form.edges, rooms, strict=True)):
        room = np.broadcast_to(given, (len(edge.tail), form.width(edge)))
        chosen = room > least
        ends = zip(*np.nonzero(chosen), *ends_of(form, edge, chosen), strict=True)
        found += [Link(m, *map(int, each)) for each in ends]
        sizes.append(room[chosen])
    order = np.argsort(-np.concatenate(sizes), kind="stable") if sizes else []
    return [found[k] for k in order]


def ends_of(form: Form, edge: EdgeBlock, chosen: Array) -> tuple[Array, Array]:
    """The vertices between which the chosen entries (m, k) of a block's flows run."""
    e, p = np.nonzero(chosen)
    f = edge.columns(form.d)[p]
    return edge.tail[e] * form.d + f, np.where(edge.head[e] < 0, form.n * form.d, edge.head[e] * form.d + f)


def group_numbers(label: list[int]) -> tuple[list[int], int]:
    """Groups 0, 1, ... of all vertices but the ground, which is the last, by their labels; -1 where that is the
    ground's. And how many there are."""
    numbers: dict[int, int] = {}
    group = [-1 if g == label[-1] else numbers.setdefault(g, len(numbers)) for g in label[:-1]]
    return group, len(numbers)


# ---- exact balance ---------------------------------------------------------------------------------------------------
RATIONAL = 60  # groups in one system that is solved in rationals; larger ones are refined in dyadics
BITS = 1300  # 2^-BITS is what refinement leaves
ENTRIES = 20_000_000  # of a dense matrix
ROUNDS = 80


@dataclass(frozen=True)
class Coupled:
    """Groups that share variables, and their totals."""

    groups: list[int]
    total: list[Any]
    variables: list[Variable]


@dataclass
class Conserver:
    """Balances one point exactly."""

    point: ExactPoint
    forest: Forest
    least: float
    with_roots: bool
    refined: bool = False

    def __call__(self) -> bool:
        """True where the balance is exact; else it is to 2^-BITS. `ProofError` where neither is found."""
        near = self._cancel() if self.forest.count else []
        self._push(near)
        self._state_roots()
        return not self.refined

    # ---- the totals of groups ----------------------------------------------------------------------------------------
    def totals(self) -> list[Any]:
        total = [rational(0)] * self.forest.count
        for g, x in zip(self.forest.group.tolist(), self.point.rest[:-1], strict=True):
            if g >= 0 and x != 0:
                total[g] += x
        return total

    def _cancel(self) -> list[int]:
        """Cancel the totals; returns the nodes at which prices moved."""
        total = self.totals()
        if all(x == 0 for x in total):
            return []
        variables = free_prices(self.point, self.least)
        if self.with_roots:
            variables += free_roots(self.point)
        rows = [self._row(variable) for variable in variables]
        nodes: list[int] = []
        for groups, members in _blocks(self.forest.count, rows):
            if any(total[g] != 0 for g in groups):
                block = Coupled(groups, [total[g] for g in groups], [variables[i] for i in members])
                chosen = self._cancel_block(block, [rows[i] for i in members])
                nodes += [int(self.point.form.samples[v.block].node[v.row]) for v in chosen if not v.root]
        return nodes

    def _row(self, variable: Variable) -> dict[int, float]:
        """The amounts that the variable adds to each group, in floats."""
        out: dict[int, float] = {}
        for vertex, x in self.point.cells(variable):
            g = int(self.forest.group[vertex])
            if g >= 0:
                out[g] = out.get(g, 0.0) + nearest(x)
        return out

    def _cancel_block(self, block: Coupled, rows: list[dict[int, float]]) -> list[Variable]:
        groups, variables = block.groups, block.variables
        if not variables:
            raise ProofError(f"{self._name(groups)} has no price or flow that may move")
        if len(groups) * len(variables) > ENTRIES:
            raise ProofError(f"{len(groups)} groups of coordinates are coupled, too many for a proof")
        place = {g: k for k, g in enumerate(groups)}
        Y = np.zeros((len(groups), len(variables)))
        for column, row in enumerate(rows):
            for g, x in row.items():
                Y[place[g], column] = x
        kept, columns = independent(Y, self._preferred(Y, variables))
        chosen = [variables[c] for c in columns]
        if len(groups) > RATIONAL and len(kept) == len(groups):
            self._refine(Coupled(groups, block.total, chosen), Y[:, columns])
        else:
            self._solve(Coupled([groups[k] for k in kept], [block.total[k] for k in kept], chosen))
        return chosen

    def _preferred(self, Y: Array, variables: list[Variable]) -> Array:
        """Weights of the columns: their room, and only those of one node where these suffice: few flows then become
        rational, all others stay dyadic."""
        room = np.sqrt(np.maximum([v.slack for v in variables], 1e-30))
        size = np.abs(Y * room).max(axis=1, initial=0.0)[:, None]
        Z = Y * room / np.where(size > 0, size, 1.0)
        if len(Y) > RATIONAL or self.with_roots:
            return room
        node = np.array([self.point.form.samples[v.block].node[v.row] for v in variables])
        least = np.linalg.svd(Z, compute_uv=False)[min(Z.shape) - 1]
        best, mask = 1e-4 * least, np.ones(len(variables), dtype=bool)
        order = np.argsort(node, kind="stable")
        for columns in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
            if len(columns) >= len(Y):
                smallest = np.linalg.svd(Z[:, columns], compute_uv=False)[-1]
                if smallest > best:
                    best, mask = smallest, np.isin(np.arange(len(variables)), columns)
        return np.where(mask, room, 0.0)

    def _solve(self, block: Coupled) -> None:
        place, k = {g: row for row, g in enumerate(block.groups)}, len(block.groups)
        A = [[rational(0)] * k for _ in range(k)]
        for column, variable in enumerate(block.variables):
            for row, x in self._exact_row(variable, place):
                A[row][column] += x
        try:
            z = solve(A, [-total for total in block.total])
        except ZeroDivisionError:
            raise ProofError(f"the prices at {self._name(block.groups)} are dependent") from None
        for variable, amount in zip(block.variables, z, strict=True):
            self.point.move(variable, amount)

    def _refine(self, block: Coupled, Y: Array) -> None:
        """Newton's method in dyadics: exact totals, solves in floats."""
        from scipy.linalg import lu_factor, lu_solve

        scale = np.abs(Y).max(axis=1)
        factor = lu_factor(Y / scale[:, None])
        place = {g: row for row, g in enumerate(block.groups)}
        rows = [self._exact_row(variable, place) for variable in block.variables]
        left = list(block.total)
        before, self.refined = float("-inf"), True
        for _ in range(ROUNDS):
            most = max(map(abs, left))
            e = int(most.denominator).bit_length() - int(most.numerator).bit_length()
            if most == 0 or e > BITS:
                return
            if e <= before:
                break
            before = e
            unit = rational(1 << max(e, 0), 1 << max(-e, 0))
            z = lu_solve(factor, -np.array([nearest(x * unit) for x in left]) / scale)
            for variable, row, amount in zip(block.variables, rows, z.tolist(), strict=True):
                step = truncated(exact(amount) / unit, max(e + 60, 0))
                self.point.move(variable, step)
                for k, x in row:
                    left[k] += x * step
        raise ProofError(f"the prices that {len(block.groups)} groups of coordinates share are nearly dependent")

    def _exact_row(self, variable: Variable, place: dict[int, int]) -> list[tuple[int, Any]]:
        """The amounts that the variable adds to some groups: (place, amount)."""
        found = [(int(self.forest.group[vertex]), x) for vertex, x in self.point.cells(variable)]
        return [(place[g], x) for g, x in found if g in place]

    # ---- the trees ---------------------------------------------------------------------------------------------------
    def _push(self, nodes: list[int]) -> None:
        """Move what is left at every vertex to the root of its tree: the ground, or a node at which prices moved."""
        d, rest = self.point.form.d, self.point.rest
        most = rational(1 if self.refined else 0, 1 << BITS - 100)
        ground = len(rest) - 1
        seen = bytearray(len(rest))
        for root in [ground, *(i * d + j for i in sorted(set(nodes)) for j in range(d)), *range(ground)]:
            if seen[root]:
                continue
            order = self._walk(root, seen)
            for v, link, up in reversed(order):
                if link is not None and rest[v] != 0:
                    self._carry(link, v, up)
            if root != ground and abs(rest[root]) > most:
                raise ProofError(
                    f"{self._name([int(self.forest.group[root])])} keeps {nearest(rest[root]):.2g}, and has no "
                    "independent prices with room"
                )

    def _walk(self, root: int, seen: bytearray) -> list[tuple[int, Link | None, int]]:
        """The vertices of a tree from its root on, each with the link to the one before."""
        seen[root] = 1
        order: list[tuple[int, Link | None, int]] = [(root, None, root)]
        for v, _, _ in order:
            for link in self.forest.links[v]:
                other = link.head if link.tail == v else link.tail
                if not seen[other]:
                    seen[other] = 1
                    order.append((other, link, v))
        return order

    def _carry(self, link: Link, v: int, up: int) -> None:
        rest, amount = self.point.rest, self.point.rest[v]
        self.point.flows[link.block][link.edge][link.place] += -amount if link.tail == v else amount
        self.point.moved.add((link.block, link.edge))
        rest[v] = rational(0)
        if up < len(rest) - 1:
            rest[up] += amount

    def _state_roots(self) -> None:
        """t of the flows that moved: R't = u / c, with a square R."""
        for m, e in self.point.moved:
            t, block = self.point.roots[m], self.point.edges(m)
            if t is not None:
                turned = [list(column) for column in zip(*block.penalty.root, strict=True)]
                t[e] = solve(turned, [x / block.c[e] for x in self.point.flows[m][e]])

    def _name(self, groups: list[int]) -> str:
        """A group by one of its coordinates."""
        vertex = int(np.flatnonzero(self.forest.group == groups[0])[0])
        form = self.point.form
        node, column = form.labels[vertex // form.d], form.space.names[vertex % form.d]
        return f"the group of {column!r} at the node {node!r}"


def conserve(point: ExactPoint, rooms: list[Array], least: float, with_roots: bool) -> bool:
    """Balance the point exactly (or to 2^-BITS, then False), moving flows with more room than ``least``."""
    rooms = [
        room * 0.0 if with_roots and flow_root(point.form, edge) is not None else room
        for edge, room in zip(point.form.edges, rooms, strict=True)
    ]
    return Conserver(point, forest(point.form, rooms, least), least, with_roots)()


def slacks_of(form: Form, flows: tuple[Array, ...]) -> list[Array]:
    return [edge.penalty.domain.share(u / edge.weight[:, None]) for edge, u in zip(form.edges, flows, strict=True)]


def independent(Y: Array, weight: Array) -> tuple[list[int], list[int]]:
    """Rows and as many columns of Y that are independent, columns of large weight first."""
    size = np.abs(Y * weight).max(axis=1, initial=0.0)[:, None]
    Z = Y * weight / np.where(size > 0, size, 1.0)
    R, order = _pivoted(Z)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-11 * max(diagonal[0], 1e-300)).sum())
    columns = order[:rank].tolist()
    if rank == len(Y):
        return list(range(rank)), columns
    rows = _pivoted(Z[:, columns].T)[1]
    return sorted(rows[:rank].tolist()), columns


def _pivoted(Z: Array) -> tuple[Array, Array]:
    """R and the order of the columns of a QR factorisation with pivoting."""
    from scipy.linalg import qr

    found: Any = qr(Z, mode="r", pivoting=True)
    return found


def _blocks(count: int, rows: list[dict[int, float]]) -> list[tuple[list[int], list[int]]]:
    """Groups that share variables, each with its variables."""
    pairs = [(next(iter(row)), g) for row in rows for g in row]
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    number, label = components_of(i, j, count)
    first = np.array([next(iter(row), -1) for row in rows], dtype=int)
    some = np.flatnonzero(first >= 0)
    each = zip(groups_of(label), groups_of(label[first[some]], number), strict=True)
    return [(groups.tolist(), some[members].tolist()) for groups, members in each]
