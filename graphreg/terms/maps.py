"""The maps of the parameters whose rows losses and penalties take: w_i - w_j across edges, w_i at nodes, any K.

A map answers how many rows there are, where they touch nodes, their lengths, K w and K'u. What is special about graphs
is something that a map offers: ``edges`` are rows with a tail, and None where rows are of another kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp

from ..base.display import Brief
from ..base.gate import dealt, heavy, refuse
from ..inputs import difference_matrix
from .padding import at_a_time, product
from .records import GROUND, Array

Rows = Array | slice
STREAM = 1 << 17  # numbers looked at together
PER_PAIR = 4.0  # numbers of 8 bytes
FOR_ENTRY = 200.0  # multiplications that each takes as long as while they are sorted
MANY = 1 << 18  # edges beyond which K is not kept beside K'


class AbstractMap(Brief, ABC):
    """w (n, d) -> K w (m, k): rows of k numbers each, without the offset. The nodes are those of a form of ``n``.

    Attributes
    ----------
    lengths : float or (m,) array
        max_j sum_i |K_ej,i| of each row, by which it steps: where rows are edges, the number of their ends.
    level : bool
        True where K w = 0 for every w that is the same at all nodes.
    noun : str
        What a row is called, for printing.
    """

    n: int
    lengths: float | Array
    level: bool
    noun: str
    keys: Sequence[Hashable] = ()  # what names rows that are no edges; their numbers where there are none
    text: str = ""  # one of the rows, as it is printed; empty where nobody says it
    in_line = False  # True where rows are edges that join each node of the form with the next, in order
    differences: Differences | None = None  # of rows that are no edges, but w_i - w_j: the same map as edges

    @property
    def edges(self) -> AbstractEdges | None:
        """The map itself where its rows begin at a node, their tail."""
        return None

    @property
    @abstractmethod
    def count(self) -> int:
        """The number m of rows."""

    @property
    @abstractmethod
    def degree(self) -> Array:
        """max_j sum_e |K_e,ij| of each node, (n,), by which it steps: where rows are edges, the number of these."""

    @property
    def touched(self) -> Array:
        """An index of the nodes that rows speak of."""
        return self.degree > 0.0

    @property
    @abstractmethod
    def owner(self) -> Array:
        """The node that speaks for each row, (m,): its tail, where it is an edge."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[Array, Array]:
        """The two nodes of every pair that the same row touches."""

    @property
    def links(self) -> tuple[Array, Array]:
        """Two nodes each of as many of these pairs as connect the same nodes."""
        return self.pairs

    def columns(self, d: int) -> Array:
        """The numbers of the coordinates that the rows see, of d."""
        return np.arange(d)

    @abstractmethod
    def within(self, mask: Array) -> Array:
        """True of rows all of whose nodes are in a mask, (m,)."""

    @abstractmethod
    def width(self, d: int) -> int:
        """The number k of numbers in a row, of w with d coordinates."""

    @abstractmethod
    def flat(self, d: int) -> sp.csr_array:
        """vec(w) -> vec(Kw), (m k, n d)."""

    @abstractmethod
    def chosen(self, w: Array) -> Array:
        """What of w the rows see."""

    @abstractmethod
    def across(self, part: Array, some: Rows) -> Array:
        """(Kw)_e of some rows, an array of its own, where ``part`` is what they see of w."""

    def apply(self, w: Array) -> Array:
        """K w, (m, k), an array of its own."""
        return streamed(partial(self.across, self.chosen(w)), self.count, self.width(w.shape[1]))

    @abstractmethod
    def add_adjoint(self, u: Array, out: Array) -> None:
        """out += K'u."""

    def changed(self, **fields: Any) -> Self:
        """The map with other fields."""
        return replace(cast(Any, self), **fields)

    @abstractmethod
    def part(self, rows: Array) -> Self:
        """Some of the rows, by a mask or by their numbers."""

    @abstractmethod
    def moved(self, place: Array, n: int) -> Self:
        """The same rows in a form of n nodes, where node i is ``place[i]``."""

    @abstractmethod
    def on(self, columns: Array) -> AbstractMap:
        """The same rows, some of their numbers only."""

    def over(self, n: int) -> Self:
        """The same rows in a form of n nodes, of which these are the first."""
        return self.changed(n=n)


def _counted(nodes: Array, begin: Array, n: int) -> sp.csr_array:
    """How often each line has each node; entry e of line i, ``begin[i] <= e < begin[i + 1]``, is of ``nodes[e]``."""
    ones = np.ones(len(nodes), dtype=np.int64)
    found = sp.csr_array((ones, nodes, begin.copy()), shape=(len(begin) - 1, n))  # both are changed in place
    found.sum_duplicates()  # by counting, which takes a tenth of a sort
    return found


class AbstractMatrix(AbstractMap):
    """Rows of which nothing more is known than a sparse matrix."""

    K: sp.csr_array  # vec(w) -> vec(Kw), (m k, n d)
    k: int
    owners: Array | None = None
    level = False
    noun = "row"

    @property
    def d(self) -> int:
        return self.K.shape[1] // self.n  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)

    def width(self, d: int) -> int:
        return self.k

    def flat(self, d: int) -> sp.csr_array:
        return self.K

    def chosen(self, w: Array) -> Array:
        return w

    def on(self, columns: Array) -> Matrix:
        rows = np.arange(self.count * self.k).reshape(-1, self.k)[:, columns]
        return Matrix(self.K[rows.ravel()], len(columns), self.n)

    def within(self, mask: Array) -> Array:
        rows, nodes, _ = self._places
        out = np.full(self.count, True)
        out[rows[~mask[nodes]]] = False
        return out

    @property
    def _entries(self) -> tuple[Array, Array, Array]:
        """Of each entry of K the line, the node and the coordinate."""
        line, column = self.K.tocoo().coords
        return line, *np.divmod(column, self.d)

    @cached_property
    def _places(self) -> tuple[Array, Array, Array]:
        """Rows and the nodes that they touch, in order, and how many of their lines do."""
        return heavy(FOR_ENTRY * self.K.nnz, self._sorted)

    def _sorted(self) -> tuple[Array, Array, Array]:
        lines = _counted(self.K.indices // self.d, self.K.indptr, self.n)
        seen = _counted(lines.indices, lines.indptr[:: self.k], self.n)
        rows = np.repeat(np.arange(self.count, dtype=np.int32), np.diff(seen.indptr))
        return rows, seen.indices.astype(np.int32), seen.data

    @cached_property
    def differences(self) -> Differences | None:  # pyright: ignore[reportIncompatibleVariableOverride]  (found when it is asked for)
        """The same map as edges, where each row is w_i - w_j on the same coordinates; None where it is not."""
        if (np.diff(self.K.indptr) != 2).any() or not self.K.nnz:
            return None
        ends, column = np.divmod(self.K.indices.reshape(-1, self.k, 2), self.d)
        data = self.K.data.reshape(-1, self.k, 2)
        first = data[:, :1, :1]  # 1 where the tail comes first
        same = (ends == ends[:, :1]).all() and (column == column[:1, :, :1]).all()
        if not (same and (np.abs(first) == 1.0).all() and (data == first * [1.0, -1.0]).all()):
            return None
        one, other = ends[:, 0].T
        ahead = first.ravel() > 0.0
        return Differences(np.where(ahead, one, other), np.where(ahead, other, one), column[0, :, 0], self.n)

    @cached_property
    def norms(self) -> Array:
        """The Euclidean length of each row of K, (m k,)."""
        return np.sqrt(self.K.power(2).sum(axis=1))

    @cached_property
    def plain(self) -> bool:
        """True where no line sees two numbers of a node, and the lines of a row are equally long."""
        line, node, _ = self._entries
        long = abs(self.K).sum(axis=1).reshape(-1, self.k)
        return len(np.unique(line * np.int64(self.n) + node)) == self.K.nnz and bool((long == long[:, :1]).all())

    @cached_property
    def apart(self) -> bool:
        """True where the lines of a row see different numbers of w, so that differences of them are exact."""
        line, column = self.K.tocoo().coords
        return len(np.unique(line // self.k * np.int64(self.n * self.d) + column)) == self.K.nnz

    @cached_property
    def lengths(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  (found when it is asked for)
        most = abs(self.K).sum(axis=1).reshape(-1, self.k).max(axis=1)
        return np.where(most > 0.0, most, 1.0)  # of a sample without features: its price takes any step

    @property
    def degree(self) -> Array:
        return abs(self.K).sum(axis=0).reshape(self.n, -1).max(axis=1)

    @cached_property
    def owner(self) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]  (found when it is asked for)
        rows, nodes, lines = self._places
        most = np.zeros(self.count, dtype=lines.dtype)
        np.maximum.at(most, rows, lines)
        central = lines == most[rows]  # of grouped edges of a node that node, of others all
        first = np.searchsorted(rows[central], np.arange(self.count + 1))
        middle = np.append(nodes[central], 0)[(first[:-1] + first[1:] - 1) // 2]
        middle = np.where(first[1:] > first[:-1], middle, 0)
        return middle if self.owners is None else np.where(self.owners == GROUND, middle, self.owners)

    @cached_property
    def alone(self) -> Array:
        """The node that alone keeps the flow of each row, (m,); GROUND where all ends do, which are two at most."""
        if self.owners is not None:
            return self.owners
        return np.where(np.bincount(self._places[0], minlength=self.count) > 2, self.owner, GROUND)

    @property
    def ways(self) -> tuple[Array, Array, Array, Array]:
        """Of each entry of K its node, the node that needs the coordinate, which coordinate, and which line: who keeps
        a flow needs what all ends have, and of two ends that both do each what the other has."""
        line, node, j = self._entries
        rows, ends, _ = self._places
        count, total = np.bincount(rows, minlength=self.count), np.bincount(rows, ends, self.count)
        row = line // self.k
        other = np.where(count[row] == 1, node, total[row].astype(node.dtype) - node)
        return node, np.where(self.alone[row] == GROUND, other, self.alone[row]), j, line

    @property
    def pairs(self) -> tuple[Array, Array]:
        rows, nodes, _ = self._places
        seen = sp.csr_array((np.ones(len(rows)), (rows, nodes)), shape=(self.count, self.n))
        products = float((np.bincount(rows, minlength=1) ** 2.0).sum())
        refuse(PER_PAIR * min(products, self.n**2.0), "the pairs of nodes that rows tie")
        one, other = heavy(products, lambda: sp.triu(seen.T @ seen, 1)).coords
        return one, other

    @property
    def links(self) -> tuple[Array, Array]:
        rows, nodes, _ = self._places
        same = rows[1:] == rows[:-1]
        return nodes[:-1][same], nodes[1:][same]


class AbstractEdges(AbstractMap):
    """Rows that begin at a node, on the coordinates ``features`` (None: all)."""

    tail: Array
    head: Array  # GROUND (-1) where there is no other end
    features: Array | None
    ground: bool  # True where there is none

    @property
    def edges(self) -> AbstractEdges:
        return self

    @cached_property
    def ends(self) -> tuple[Array, ...]:
        """The tails, and the heads where there are any."""
        return (self.tail,) if self.ground else (self.tail, self.head)

    @property
    def count(self) -> int:
        return len(self.tail)

    @property
    def coordinates(self) -> Any:
        """The coordinates that the rows act on, as an index."""
        return slice(None) if self.features is None else self.features

    def columns(self, d: int) -> Array:
        return np.arange(d) if self.features is None else self.features

    def width(self, d: int) -> int:
        return d if self.features is None else len(self.features)

    @cached_property
    def K(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        """The same map of one coordinate, (m, n)."""
        return difference_matrix(self.tail, self.head, self.n)

    @cached_property
    def transposed(self) -> sp.csr_array:
        return sp.csr_array((self.K if self.count < MANY else difference_matrix(self.tail, self.head, self.n)).T)

    def flat(self, d: int) -> sp.csr_array:
        pick = sp.eye_array(d, format="csr")[self.columns(d)]  # pyright: ignore[reportIndexIssue]  (scipy has no types)
        return sp.csr_array(sp.kron(self.K, pick, format="csr"))

    def chosen(self, w: Array) -> Array:
        return np.ascontiguousarray(w if self.features is None else w[:, self.features])

    def add_adjoint(self, u: Array, out: Array) -> None:
        out[:, self.coordinates] += product(self.transposed, u)

    @property
    def owner(self) -> Array:
        return self.tail

    @property
    def degree(self) -> Array:
        return sum([np.bincount(end, minlength=self.n) for end in self.ends], np.zeros(self.n))

    @property
    def pairs(self) -> tuple[Array, Array]:
        some = slice(0 if self.ground else None)
        return self.tail[some], self.ends[-1][some]

    def known(self, mine: Array) -> tuple[Array, Array, Self]:
        """What the nodes of a mask know: the rows that touch them or whose flow they keep, which of these they keep
        (all), and the map of these."""
        rows = np.flatnonzero(~self.within(~mine))
        return rows, np.full(len(rows), True), self.part(rows)

    def within(self, mask: Array) -> Array:
        return np.all([mask[end] for end in self.ends], axis=0)

    def across(self, part: Array, some: Rows) -> Array:
        z = part.take(self.tail[some], axis=0)
        for end in self.ends[1:]:
            z -= part.take(end[some], axis=0)
        return z

    def on(self, columns: Array) -> Self:
        return self.changed(features=columns if self.features is None else self.features[columns])

    def between(self, ends: Iterable[Array]) -> Self:
        """Edges with these ends, on the same coordinates."""
        return self.changed(**dict(zip(("tail", "head"), ends, strict=False)))

    def part(self, rows: Array) -> Self:
        return self.between(end[rows] for end in self.ends)

    def moved(self, place: Array, n: int) -> Self:
        return self.between(place[end] for end in self.ends).over(n)


@dataclass(frozen=True, repr=False)
class Differences(AbstractEdges):
    """w -> w_tail - w_head."""

    tail: Array
    head: Array
    features: Array | None = None
    n: int = 0

    ground = False
    lengths = 2.0
    level = True
    noun = "edge"

    @cached_property
    def in_line(self) -> bool:
        """True where the edges join each node of the form with the next, in order."""
        tail, head = self.tail, self.head
        if len(tail) != self.n - 1:
            return False
        return bool((tail < head).all() and (tail[1:] == head[:-1]).all())  # so many steps upwards are steps of one


@dataclass(frozen=True, repr=False)
class Selection(AbstractEdges):
    """w -> w_tail: some nodes, each tied to the ground."""

    tail: Array
    features: Array | None = None
    n: int = 0

    ground = True
    lengths = 1.0
    level = False
    noun = "node"

    @cached_property
    def head(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  (found when it is asked for)
        return np.full(self.count, GROUND)

    def add_adjoint(self, u: Array, out: Array) -> None:
        if self.features is None and self._once:
            out[self.tail] += u
        else:
            super().add_adjoint(u, out)

    @cached_property
    def _once(self) -> bool:
        """True where no node is the tail of two rows."""
        return self.count == 0 or int(np.bincount(self.tail).max()) == 1


@dataclass(frozen=True, repr=False)
class Matrix(AbstractMatrix):
    """w -> K vec(w) for any sparse K (m k, n d), in rows of k numbers each; vec(w) is node after node. The keys name
    the rows, and ``text`` is one of them as it is printed; the map is the same without, and without the ``owners`` (m,)
    of its rows (see `alone`), which are in their middle where nobody says so."""

    K: sp.csr_array
    k: int = 1
    n: int = 0
    keys: Sequence[Hashable] = field(default=(), compare=False)
    text: str = field(default="", compare=False)
    owners: Array | None = field(default=None, compare=False)

    @property
    def count(self) -> int:
        return len(self.K.indptr[:: self.k]) - 1

    def across(self, part: Array, some: Rows) -> Array:
        return product(self._rows(some), part.ravel()).reshape(-1, self.k)

    def _rows(self, some: Rows) -> sp.csr_array:
        if isinstance(some, slice) and some == slice(None):
            return self.K
        return self.K[np.arange(self.count * self.k).reshape(-1, self.k)[some].ravel()]

    def add_adjoint(self, u: Array, out: Array) -> None:
        out += product(self.K, u.ravel(), transposed=True).reshape(out.shape)

    def part(self, rows: Array) -> Self:
        keys = [self.keys[r] for r in np.arange(self.count)[rows].tolist()] if self.keys else ()
        return replace(self, K=self._rows(rows), keys=keys, owners=None if self.owners is None else self.owners[rows])

    def known(self, mine: Array) -> tuple[Array, Array, Self]:
        """The same, with K_ei alone of those that they do not keep."""
        source, target, _, line = self.ways
        kept = np.bincount(line[mine[target]] // self.k, minlength=self.count) > 0
        seen = kept[line // self.k] | mine[source]
        rows = np.unique(line[seen] // self.k)
        starts = np.append(0, np.cumsum(np.bincount(line[seen], minlength=self.count * self.k)))
        K = sp.csr_array((self.K.data[seen], self.K.indices[seen], starts), shape=self.K.shape)
        return rows, kept[rows], replace(self, K=K, keys=(), owners=self.alone).part(rows)

    def moved(self, place: Array, n: int) -> Self:
        node, j = np.divmod(self.K.indices, self.d)
        entries = self.K.data, place[node] * self.d + j, self.K.indptr
        K = sp.csr_array(entries, shape=(self.count * self.k, n * self.d)).sorted_indices()  # sums are in their order
        owners = None if self.owners is None else np.where(self.owners == GROUND, GROUND, place[self.owners])
        return replace(self, K=K, n=n, owners=owners)

    def over(self, n: int) -> Self:
        return self.moved(np.arange(self.n), n)


def pieces(rows: int, width: int) -> Iterator[slice]:
    """So many rows of a width at a time that they stay in the cache."""
    return at_a_time(STREAM // max(width, 1), rows)


def streamed(work: Callable[[Rows], Array], rows: int, width: int = 1) -> Array:
    """The values of ``work`` at the rows, for as many of them at a time as stay in the cache: of large blocks it
    leaves no arrays between that are as large."""
    if rows * width <= STREAM:
        return work(slice(None))
    first, *others = pieces(rows, width)
    part = work(first)
    out = np.empty((rows, *part.shape[1:]), dtype=part.dtype)
    out[first] = part

    def further(some: slice) -> None:
        out[some] = work(some)

    dealt(further, others)
    return out
