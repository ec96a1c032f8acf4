"""Affine rows of the parameters, as a user writes them: what penalties are called on.

``gr.w`` is a symbol: the matrix of parameters, one row per node and one column per coordinate. Selections of its rows,
differences between them and products with matrices are rows as well, ``r -> (K w)_r - b_r`` in R^k with K sparse on
vec(w), and a penalty called on rows is a term, the sum over the rows of ``c_r phi((K w)_r - b_r)``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from ..base.display import Brief
from ..base.messages import PRODUCT, count, did_you_mean, missing_entries, shown, unknown_labels
from ..checks import is_number, is_whole, numbers, sequence
from ..errors import GraphError, TermError
from ..inputs import Graph, Labels, all_of, as_labels, difference_matrix, is_networkx
from .maps import AbstractEdges, Differences, Selection
from .records import GROUND, Array, Space

DIGITS = 50  # of sums of weights over a node, in binary; differences of two of them are exact
NEAR = 1e-12  # relative: what a weight may change by for that
INDEX = re.compile(r"\bw_([i-n])\b")
NO_SIGN = "w_i - w_j of an undirected graph has no sign: give a DiGraph, whose arrow i -> j means w_j - w_i"


@dataclass(frozen=True)
class Made:
    """Rows over a space of parameters: ``K vec(w) - b``, k numbers each, with their weights.

    ``keys`` name the rows: a node, an arrow or edge (i, j), the nodes along a path, else its number. ``nodes`` says
    that each row is of one node, so that graphs and paths may lead across them. ``signless`` rows may as well be their
    negatives, each of the ``pieces`` that a group has on its own.
    """

    K: Any  # (m k, n d)
    b: Array  # (m, k)
    c: Array  # (m,)
    keys: tuple[Hashable, ...]
    nodes: bool = False
    signless: bool = False
    pieces: int = 1
    edges: AbstractEdges | None = None  # the same map, where it is w_i or +-(w_i - w_j) on some coordinates
    owners: Array | None = None  # the nodes in the middle of rows of more than two ends, where rows know them, (m,)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and of how many numbers each."""
        return self.b.shape[0], self.b.shape[1]

    def mixed(self, A: Any, keys: tuple[Hashable, ...] | None = None, **changes: Any) -> Made:
        """The rows A rows, each of as many numbers; A is sparse (rows, rows before)."""
        whole = sp.kron(A, sp.eye_array(self.shape[1]), format="csr")
        named = tuple(range(A.shape[0])) if keys is None else keys
        return Made(sp.csr_array(whole @ self.K), A @ self.b, np.ones(A.shape[0]), named, **changes)

    def taken(self, rows: Array) -> Made:
        """Some of the rows."""
        k = self.shape[1]
        flat = (rows[:, None] * k + np.arange(k)).ravel()
        keys = tuple(self.keys[r] for r in rows.tolist())
        edges = None if self.edges is None else self.edges.part(rows)
        owners = None if self.owners is None else self.owners[rows]
        return replace(self, K=self.K[flat], b=self.b[rows], c=self.c[rows], keys=keys, edges=edges, owners=owners)


class NoAttributeError(TermError, AttributeError):
    """An attribute that arrays have, and rows of a symbol have not."""


REFLECTED = {"add": "radd", "subtract": "rsub", "multiply": "rmul", "matmul": "rmatmul"}  # of an array and rows
REFLECTED |= {"less": "gt", "less_equal": "ge", "greater": "lt", "greater_equal": "le"}
OF_ARRAYS = ("shape", "size", "ndim", "dtype", "T", "sum", "mean", "dot", "reshape", "ravel")


def _refusing(said: str) -> Any:
    """A method that says what to write instead."""

    def refuse(rows: AbstractRows, *_: Any) -> NoReturn:
        raise TermError(said.format(rows.text()))

    return refuse


class AbstractRows(Brief, ABC):
    """Affine rows r -> (K w)_r - b_r of the parameters w, of k numbers each.

    They are added, subtracted and scaled by numbers; ``A @ rows`` mixes rows, ``rows @ B`` the numbers within a row, as
    numpy does with a matrix.
    """

    def __array_ufunc__(self, ufunc: Any, how: str, *given: Any, **__: Any) -> Any:
        """Of numpy: `array - rows` and `A @ rows` are left to the methods below, and no function is applied."""
        method = REFLECTED.get(ufunc.__name__)
        if method is not None and how == "__call__" and given[-1] is self:
            return getattr(self, f"__{method}__")(given[0])
        raise TermError(
            f"np.{ufunc.__name__} of {self.text()} is no term: write gr.L1()(rows) for absolute values, "
            "gr.L2()(rows) for lengths, gr.SquaredL2()(rows) for squares"
        )

    @abstractmethod
    def made(self, space: Space) -> Made:
        """The rows over the nodes and coordinates of ``space``."""

    @abstractmethod
    def text(self) -> str:
        """One of the rows, as it is printed."""

    def each(self, space: Space) -> list[Made]:
        """The same, those of one length together."""
        return [self.made(space)]

    def unshifted(self) -> str:
        """The same without what is subtracted at the end; empty where something is subtracted within."""
        return "" if self._is_shifted() else self.text()

    def _is_shifted(self) -> bool:
        """True where something is subtracted anywhere."""
        return any(each._is_shifted() for each in self._within())

    def _within(self) -> list[AbstractRows]:
        """The rows that these are made of."""
        return [each for each in vars(self).values() if isinstance(each, AbstractRows)]

    def _nodes(self) -> set[Labels | None]:
        """The nodes that the rows are taken from, in their order."""
        inner = [each._nodes() for each in self._within()]
        return set[Labels | None]().union(*inner) if inner else {vars(self).get("at")}

    def labels(self) -> Labels:
        """The labels of the nodes that the rows bring into the problem."""
        return all_of(each.labels() for each in self._within())

    @property
    def leads(self) -> bool:
        """True where a graph or a path gives the order of the nodes."""
        return any(each.leads for each in self._within())

    def __repr__(self) -> str:
        return f"<Rows: {self.text()}>"

    # ---- sums and products -------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> AbstractRows:
        return Plus(self, other) if isinstance(other, AbstractRows) else Shifted(self, other, -1.0)

    def __radd__(self, other: Any) -> AbstractRows:
        return self if is_number(other) and other == 0 else self + other  # the start of sum([...])

    def __sub__(self, other: Any) -> AbstractRows:
        return Plus(self, other, -1.0) if isinstance(other, AbstractRows) else Shifted(self, other)

    def __rsub__(self, other: Any) -> AbstractRows:
        return -self + other

    def __neg__(self) -> AbstractRows:
        return Times(self, -1.0)

    def _by(self, factor: Any) -> Any:
        if isinstance(factor, AbstractRows):
            raise TermError(f"({self.text()}) ({factor.text()}) {PRODUCT}")
        return factor

    def __mul__(self, factor: Any) -> AbstractRows:
        if not is_number(self._by(factor)):
            raise TermError(f"rows are scaled by a number, got {shown(factor)}; for a number per row use .weighted")
        return Times(self, float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> AbstractRows:
        if not is_number(divisor) or divisor == 0:
            raise TermError(f"rows are divided by a number other than 0, got {shown(divisor)}")
        return Times(self, 1.0 / float(divisor))

    __ge__ = __gt__ = __le__ = __lt__ = _refusing(
        "a comparison of {0} is no term: that rows are at least b says gr.NonNegative()(rows - b), that they lie "
        "between two numbers gr.Box(low, high)(rows)"
    )
    __abs__ = _refusing("abs of {0} is no term: write gr.L1()(rows), or gr.L2()(rows) for their lengths")
    __pow__ = _refusing("powers of {0} are no rows: for squares write gr.SquaredL2()(rows)")
    __getitem__ = _refusing("{0} is not indexed: write gr.w.at(nodes, features)")
    __len__ = _refusing("how many rows {0} are is known when the problem is made")

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> NoReturn:
        if name in OF_ARRAYS:
            raise NoAttributeError(f"{self.text()} are rows of a symbol, no array, and have no {name}")
        hint = "" if name.startswith("_") else did_you_mean(name, [each for each in dir(self) if each[0] != "_"])
        raise AttributeError(f"rows have no attribute {name!r}{hint}")

    def __matmul__(self, B: Any) -> AbstractRows:
        return Within(self, _matrix(self._by(B), "B in rows @ B"))

    def __rmatmul__(self, A: Any) -> AbstractRows:
        return Mixed(self, _matrix(A, "A in A @ rows"))

    # ---- what leads across nodes -------------------------------------------------------------------------------------
    def across(self, graph: Any, order: int = 1) -> AbstractRows:
        """Differences across a graph, of rows that are of one node each.

        Of order 1 the differences w_i - w_j over the edges, or w_j - w_i over the arrows i -> j of a DiGraph, with the
        weights A_e of the edges; of order 2 the rows of the Laplacian, ``sum_j A_ij (w_i - w_j)`` at each node; of
        order 3 the differences of these, and so on (Wang et al., Trend filtering on graphs, 2016). From order 2 on
        weights are rounded, by a unit in 10^12 of them at most, so that their sums over a node are exact and what is
        the same everywhere has the differences 0; where that is too little they stay as they are.

        Parameters
        ----------
        graph : networkx.Graph or DiGraph, Graph or sparse adjacency
        order : int
            From 1.

        Returns
        -------
        AbstractRows

        Raises
        ------
        GraphError
            For what is no graph, or a node of it that the rows lack.
        TermError
            For an order that is no whole number from 1.

        Examples
        --------
        >>> gr.w.across(nx.path_graph(3), 2).text()
        '(D^2 w)_i'
        """
        return Across(self, Arrows.of(graph), _order(order))

    def along(self, nodes: Any, order: int = 1, at: Any = None) -> AbstractRows:
        """Differences along a path of nodes, of which L1 is a trend filter, without rows at its ends: ``w_2 - w_1``,
        ``w_1 - 2 w_2 + w_3``, ...

        With the places t of the nodes they are divided differences: D of order 1 is w_2 - w_1, and D of order r + 1 the
        differences of ``r D / (t_(i+r) - t_i)``, which at places 1, 2, 3, ... is what it is without them; the first of
        these factors are rounded as the weights of `across` are.

        Parameters
        ----------
        nodes : sequence of labels
        order : int
            From 1; trend filtering of order q penalises order q + 1.
        at : array of as many increasing numbers, or mapping by node, optional
            The places of the nodes: times, ages, doses.

        Returns
        -------
        AbstractRows

        Raises
        ------
        TermError
            For nodes that the rows lack or that come twice running, an order that is no whole number from 1, or places
            that do not increase.

        Examples
        --------
        >>> gr.w.along(range(10), 2).text()
        '(D^2 w)_t'
        """
        if isinstance(nodes, str):
            raise TermError(f"nodes must be a list of nodes, the path in its order, got the text {nodes!r}")
        labels, order = _labels(nodes, "nodes", "a list of nodes"), _order(order)
        for one, two in pairwise(labels if order > 1 else ()):
            if one == two:
                raise TermError(f"the path names the node {one!r} twice running; a path has each of its nodes once")
        return Along(self, labels, order, None if at is None else _places(at, labels))

    # ---- weights and groups ------------------------------------------------------------------------------------------
    def weighted(self, weights: Any) -> AbstractRows:
        """The rows with these weights c_r, in the place of those they have; 0 leaves a row out.

        Parameters
        ----------
        weights : number, array of one per row, or mapping by node or edge

        Returns
        -------
        AbstractRows

        Raises
        ------
        TermError
            For weights that are negative, infinite or too few; the row is named.

        Examples
        --------
        >>> gr.w.at(["a", "b"]).weighted([1.0, 2.0]).text()
        'w_i'
        """
        return Weighted(self, weights)

    def grouped(self, by: Any) -> AbstractRows:
        """The rows of each group one behind the other as one row, of which the penalty is a function.

        Parameters
        ----------
        by : function, mapping or sequence
            The group of each row: a function of its node or edge, a mapping by node or edge, or one key per row.

        Returns
        -------
        AbstractRows

        Raises
        ------
        TermError
            For a row without a group, or a group whose rows have different weights.

        Examples
        --------
        >>> gr.w.across(nx.path_graph(3)).grouped(lambda edge: edge[0]).text()
        '(w_i - w_j)_(in g)'
        """
        return Grouped(self, by)


# ---- the symbol, and what is taken from it ---------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class Parameters(AbstractRows):
    """The parameters w (n, d), a symbol: one row w_i per node, in the order of the problem, on all coordinates, the
    intercept included. Nodes that a model introduces (clusters, servers) are not among them.

    Examples
    --------
    >>> smooth = 0.5 * gr.L1()(gr.w.along(["a", "b", "c", "d"], order=2))
    >>> gr.Problem(gr.SquaredLoss(data) + smooth).solve().table()["rain"].round(2).tolist()
    [1.56, 0.67, -0.23, -1.12]
    """

    def made(self, space: Space) -> Made:
        return At(None).made(space)

    def text(self) -> str:
        return "w_i"

    def at(self, nodes: Any = None, features: Sequence[str] | None = None) -> AbstractRows:
        """The parameters at some nodes, on some coordinates.

        Parameters
        ----------
        nodes : label or list of labels, optional
            One node, or several, which may come again; a tuple is one label. All by default. Labels without data are
            nodes of the problem as those of a graph are.
        features : sequence of str, optional
            All coordinates by default.

        Returns
        -------
        AbstractRows

        Raises
        ------
        TermError
            For a feature that the problem does not have, when the problem is made.

        Examples
        --------
        >>> (gr.w.at("a") - gr.w.at("b")).text()
        'w_a - w_b'
        """
        features = [features] if isinstance(features, str) else features
        several = nodes is None or (isinstance(nodes, Sequence) and not isinstance(nodes, (str, bytes, tuple)))
        if nodes is not None and (several or (hasattr(nodes, "__array__") and np.ndim(nodes))):
            return At(_labels(nodes, "nodes", "a label or a list of labels"), features)
        return At(None if nodes is None else tuple(as_labels([nodes])), features, one=not several)


@dataclass(frozen=True, repr=False)
class At(AbstractRows):
    """The parameters at these nodes (all: None), on these features."""

    at: Labels | None
    features: Sequence[str] | None = None
    one: bool = False

    def labels(self) -> Labels:
        return () if self.at is None else tuple(dict.fromkeys(self.at))

    def made(self, space: Space) -> Made:
        d, columns = len(space.coordinates), space.select(self.features, self.text())
        labels = tuple(space.index) if self.at is None else self.at
        columns = np.arange(d) if columns is None else columns
        places, m = _found(labels, space.index), len(labels)
        every: Any = sp.eye_array(space.n_observed * d, format="csr")
        K = every[(places[:, None] * d + columns).ravel()]
        edges = Selection(places, None if self.features is None else columns, space.n_observed)
        once = len(set(labels)) == m
        return Made(sp.csr_array(K), np.zeros((m, len(columns))), np.ones(m), tuple(labels), once, edges=edges)

    def text(self) -> str:
        name = f"w_{self.at[0]}" if self.one and self.at else "w_i"
        return name if self.features is None else f"{name}[{', '.join(map(str, self.features))}]"


@dataclass(frozen=True, repr=False)
class Rows(AbstractRows):
    """Any rows, K w.ravel(): w is node after node, in the order of the problem, and every k lines of K are one row.

    Parameters
    ----------
    K : array or sparse matrix, shape (m k, n d)
        m rows of k numbers each, of n nodes with d coordinates each.
    k : int
        1 by default: each line is a row.
    nodes : list of labels, optional
        The n nodes of K in order; all nodes of the problem by default, in its order.
    features : sequence of str, optional
        The d coordinates of K in order; all by default.
    names : sequence of labels, optional
        What the m rows are called in answers and messages; their numbers by default.

    Raises
    ------
    TermError
        For a K of another shape, or with an entry that is no finite number, or names that are not as many as rows.

    Examples
    --------
    >>> (gr.Rows([[1.0, -1.0]]) - 2.0).text()
    '(K w)_r - 2'
    """

    K: Any
    k: int = 1
    nodes: Any = None
    features: Sequence[str] | None = None
    names: Any = None

    def __post_init__(self) -> None:
        K = _matrix(self.K, "K of Rows")
        if not is_whole(self.k) or self.k < 1 or K.shape[0] % self.k:
            raise TermError(f"Rows: k must divide the {K.shape[0]} lines of K, got {shown(self.k)}")
        m = K.shape[0] // self.k
        names = tuple(range(m)) if self.names is None else _labels(self.names, "names", "a list of names")
        if len(names) != m:
            raise TermError(f"Rows: there are {m} rows and {len(names)} names; give one per row")
        nodes = None if self.nodes is None else _labels(self.nodes, "nodes", "a list of labels")
        vars(self).update(K=K, names=names, nodes=nodes)

    def labels(self) -> Labels:
        return At(self.nodes).labels()

    def made(self, space: Space) -> Made:
        seen = At(self.nodes, self.features).made(space)
        (n, d), columns, m = seen.shape, self.K.shape[1], len(self.names)
        if columns != n * d:
            whole = self.nodes is None and self.features is None
            what = f"{'w has' if whole else 'it is of'} {n} nodes x {d} coordinates = {n * d} numbers"
            remedy = "; nodes=[...] and features=[...] of Rows say which of them the columns are" * whole
            raise TermError(f"K of Rows has {columns} columns, and {what}{remedy}")
        return Made(sp.csr_array(self.K @ seen.K), np.zeros((m, self.k)), np.ones(m), self.names)

    def text(self) -> str:
        return "(K w)_r"


# ---- rows of rows ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class AbstractRowsOfRows(AbstractRows):
    """Rows that are made of others."""

    inner: AbstractRows

    def plain(self, space: Space) -> Made:
        """The rows within; their weights come last."""
        made = self.inner.made(space)
        if (made.c != 1.0).any():
            raise TermError(
                f"{self.inner.text()} has weights, which come last: write .weighted or a graph's edges there"
            )
        return made


@dataclass(frozen=True, repr=False)
class Plus(AbstractRowsOfRows):
    """The sum or the difference of two; one row is added to each of several."""

    other: AbstractRows
    sign: float = 1.0

    def made(self, space: Space) -> Made:
        one, two = self.plain(space), replace(self, inner=self.other).plain(space)
        if one.signless or two.signless:
            raise TermError(f"{self.text()}: {NO_SIGN}")
        m = max(one.shape[0], two.shape[0]) if 1 in (one.shape[0], two.shape[0]) else one.shape[0]
        one, two = (x.taken(np.zeros(m, dtype=int)) if x.shape[0] == 1 else x for x in (one, two))
        if one.shape != two.shape:
            raise TermError(
                f"{self.text()}: there are {_sizes(one)} and {count(two.shape[0], 'row')} of {two.shape[1]}; give as "
                "many of each"
            )
        keys = one.keys if one.keys == two.keys else tuple(zip(one.keys, two.keys, strict=True))
        return Made(sp.csr_array(one.K + self.sign * two.K), one.b + self.sign * two.b, one.c, keys)

    def text(self) -> str:
        one, two = self.inner.text(), self.other.text()
        if self.inner._nodes() != self.other._nodes():  # w_i - w_j, of different nodes
            letters, own = (set(INDEX.findall(text)) for text in (one, two))
            new = dict(zip(sorted(letters & own), [x for x in "ijklmn" if x not in letters | own], strict=False))
            two = INDEX.sub(lambda found: "w_" + new.get(found[1], found[1]), two)
        two = f"({two})" if self.sign < 0 and isinstance(self.other, (Plus, Shifted)) else two
        return f"{one} {'+' if self.sign > 0 else '-'} {two}"


@dataclass(frozen=True, repr=False)
class Times(AbstractRowsOfRows):
    """A number times the rows."""

    factor: float

    def made(self, space: Space) -> Made:
        made = self.inner.made(space)
        return replace(made, K=sp.csr_array(self.factor * made.K), b=self.factor * made.b, edges=None)

    def text(self) -> str:
        return f"{'-' if self.factor == -1.0 else f'{self.factor:.6g} '}{_bracketed(self.inner)}"


@dataclass(frozen=True, repr=False)
class Shifted(AbstractRowsOfRows):
    """The rows minus b: a number, an array of one number or vector per row, or a mapping by node or edge."""

    b: Any
    sign: float = 1.0

    def made(self, space: Space) -> Made:
        made = self.inner.made(space)
        b = self.sign * self._offsets(made)
        if made.signless and b.any():
            raise TermError(f"{self.text()}: {NO_SIGN}")
        return replace(made, b=made.b + b)

    def _offsets(self, made: Made) -> Array:
        (m, k), b = made.shape, self.b
        by_row = isinstance(b, Mapping)
        if isinstance(b, Mapping):
            b = [*by_key(b, made.keys, f"b of {self.text()}")]
        given = numbers(b, f"b of {self.text()}", "finite numbers", TermError)
        if given.ndim == 1 and not by_row and len(given) == m == k > 1:
            raise TermError(
                f"b of {self.text()} has {m} numbers, and there are {m} rows of {k}; give a number per row as "
                "b[:, None], or the same vector for all rows as b[None, :]"
            )
        if given.ndim == 1 and len(given) == m and (by_row or k == 1 or m != 1):
            given = given[:, None]
        there = f"there {'is' if m == 1 else 'are'} {_sizes(made)}"
        if given.ndim > 2 or (given.ndim == 2 and len(given) not in (1, m)) or given.shape[-1:] not in ((), (1,), (k,)):
            raise TermError(
                f"b of {self.text()} has the shape {given.shape}, and {there}; give one number, a number or a vector "
                "per row, or a mapping by node or edge"
            )
        if not np.isfinite(given).all():
            raise TermError(f"b of {self.text()} must be finite, and has an entry that is not")
        return np.broadcast_to(given, (m, k))

    def unshifted(self) -> str:
        return self.inner.unshifted()

    def _is_shifted(self) -> bool:
        return True

    def text(self) -> str:
        if is_number(self.b):
            return f"{self.inner.text()} {'-' if self.sign * self.b >= 0 else '+'} {abs(self.b):.6g}"
        return f"{self.inner.text()} {'-' if self.sign > 0 else '+'} b_r"


@dataclass(frozen=True, repr=False)
class Within(AbstractRowsOfRows):
    """The rows times B (k, q): combinations of the numbers within a row."""

    B: Any

    def made(self, space: Space) -> Made:
        made = self.inner.made(space)
        m, k = made.shape
        if made.signless and made.pieces > 1:
            raise TermError(f"{self.text()}: {NO_SIGN}")
        if self.B.shape[0] != k:
            raise TermError(f"B in rows @ B has {self.B.shape[0]} lines, and the rows {self.inner.text()} {k} numbers")
        K = sp.kron(sp.eye_array(m), self.B.T, format="csr") @ made.K
        return replace(made, K=sp.csr_array(K), b=made.b @ self.B, edges=None)

    def text(self) -> str:
        return f"{_bracketed(self.inner)} B"


@dataclass(frozen=True, repr=False)
class Mixed(AbstractRowsOfRows):
    """A (q, m) times the rows: combinations of rows."""

    A: Any

    def made(self, space: Space) -> Made:
        made = self.plain(space)
        if made.signless:
            raise TermError(f"{self.text()}: {NO_SIGN}")
        if self.A.shape[1] != made.shape[0]:
            raise TermError(
                f"A in A @ rows has {self.A.shape[1]} columns, and there are {made.shape[0]} rows {self.inner.text()}"
            )
        return made.mixed(self.A)

    def text(self) -> str:
        return "(A w)_r" if self.inner.text() == "w_i" else f"(A {_bracketed(self.inner)})_r"


@dataclass(frozen=True)
class Arrows:
    """The edges of a graph, or the arrows of a DiGraph, between labels."""

    labels: Labels
    tail: Array
    head: Array
    weight: Array
    directed: bool

    @staticmethod
    def of(graph: Any) -> Arrows:
        """The edges of any graph; only here may it be directed."""
        if not (is_networkx(graph) and graph.is_directed()):
            own = Graph.of(graph)
            return Arrows(own.labels, own.tail, own.head, own.weight, False)
        if graph.is_multigraph():
            raise GraphError("the graph has parallel arrows, which are refused; sum their weights into one")
        labels = as_labels(list(graph.nodes))
        place = {label: i for i, label in enumerate(labels)}
        ends = np.array([(place[i], place[j]) for i, j in graph.edges], dtype=int).reshape(-1, 2)
        weight = [float(w) for _, _, w in graph.edges(data="weight", default=1.0)]
        for (i, j), c in zip(graph.edges, weight, strict=True):
            if i == j or not (np.isfinite(c) and c > 0):
                what = "leads from a node to itself" if i == j else f"has the weight {c:g}, which must be positive"
                raise GraphError(f"the arrow from {i!r} to {j!r} {what}; drop it")
        return Arrows(labels, ends[:, 1], ends[:, 0], np.array(weight), True)

    def keys(self) -> tuple[Hashable, ...]:
        """The edges (i, j), or the arrows i -> j."""
        first, second = (self.head, self.tail) if self.directed else (self.tail, self.head)
        return tuple((self.labels[i], self.labels[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True))


@dataclass(frozen=True, repr=False)
class AbstractWay(AbstractRowsOfRows):
    """Differences of rows that are of one node each, in the order in which a graph or a path names these."""

    @property
    def leads(self) -> bool:
        return True

    def by_node(self, space: Space, way: str) -> tuple[Made, dict[Hashable, int]]:
        """The rows within, and which of them each node has."""
        made = self.plain(space)
        if not made.nodes:
            raise TermError(f"{self.inner.text()} are not rows of one node each, so no {way} them")
        return made, {label: r for r, label in enumerate(made.keys)}


@dataclass(frozen=True, repr=False)
class Across(AbstractWay):
    """Differences across a graph."""

    arrows: Arrows
    order: int

    def labels(self) -> Labels:
        return self.arrows.labels

    def made(self, space: Space) -> Made:
        own, (made, place) = self.arrows, self.by_node(space, "graph leads across")
        unknown = unknown_labels(f"the graph across {self.inner.text()}", own.labels, place)
        if unknown:
            raise GraphError(unknown[0])
        rows = np.array([place[label] for label in own.labels], dtype=int)
        D = difference_matrix(rows[own.tail], rows[own.head], made.shape[0])
        A: Any = D
        between = self.order % 2 == 1
        if self.order > 1:
            L = sp.csr_array(D.T @ sp.diags_array(_summable(own.weight, D)) @ D)
            A = L if not between else D @ L
            for _ in range((self.order - 2) // 2):
                A = A @ L
        A = sp.csr_array(A if between else A[rows])
        A.eliminate_zeros()
        middle, keys = _found(own.labels, space.index), own.keys() if between else tuple(own.labels)
        owners = np.where(np.diff(A.indptr) > 2, middle[own.tail] if between else middle, GROUND)
        out = made.mixed(A, keys, nodes=not between, owners=owners if made.owners is None else None)
        if not between:
            return out
        edges = _differences(made, rows[own.tail], rows[own.head], space) if self.order == 1 else None
        return replace(out, c=own.weight, signless=not own.directed, edges=edges)

    def text(self) -> str:
        if self.order == 1 and self.inner.text() == "w_i":
            return "w_j - w_i" if self.arrows.directed else "w_i - w_j"
        return f"({_power(self.order)} {_inner(self.inner)})_{'e' if self.order % 2 else 'i'}"


def _summable(weight: Array, D: Any) -> Array:
    """Weights of edges with few enough digits that sums of them over a node are exact: so differences of what is the
    same everywhere are exactly 0. As they are, where that would change one by more than a unit in 10^12."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = abs(D) @ (abs(D).T @ weight)  # of both ends: not less than the sum at either
        unit = 2.0 ** (np.ceil(np.log2(total)) - DIGITS)
        rounded = np.rint(weight / unit) * unit
    return rounded if (np.abs(rounded - weight) <= NEAR * weight).all() else weight


def _differences(made: Made, one: Array, other: Array, space: Space) -> Differences | None:
    """Differences between rows as edges, where they are +-(w_i - w_j): each from the node that comes first in the
    space."""
    nodes = made.edges
    if nodes is None or (one == other).any():
        return None
    ends = np.sort(nodes.tail[np.stack([one, other])], axis=0)
    return Differences(ends[0], ends[1], nodes.features, space.n_observed)


@dataclass(frozen=True, repr=False)
class Along(AbstractWay):
    """Differences along a path."""

    path: Labels
    order: int
    places: Array | None

    def labels(self) -> Labels:
        return self.path

    def made(self, space: Space) -> Made:
        (made, place), T, t = self.by_node(space, "path leads along"), len(self.path), self.places
        rows = _found(self.path, place)
        A: Any = sp.csr_array((np.ones(T), (np.arange(T), rows)), shape=(T, made.shape[0]))
        path = difference_matrix(np.arange(T - 1), np.arange(1, T), T)
        for r in range(min(self.order, T)):
            if r > 0 and t is not None:
                slope = r / (t[r:] - t[:-r])
                A = sp.diags_array(_summable(slope, path) if r == 1 else slope) @ A
            A = sp.csr_array(A[1:] - A[:-1])
        keys = tuple(tuple(self.path[i : i + self.order + 1]) for i in range(A.shape[0]))
        edges = _differences(made, rows[:-1], rows[1:], space) if self.order == 1 else None
        return made.mixed(sp.csr_array(A), keys, edges=edges)

    def text(self) -> str:
        return f"({_power(self.order)} {_inner(self.inner)})_t"


@dataclass(frozen=True, repr=False)
class Weighted(AbstractRowsOfRows):
    """The rows with other weights."""

    weights: Any = field(default=1.0)

    def made(self, space: Space) -> Made:
        return self._weighted(self.inner.made(space))

    def each(self, space: Space) -> list[Made]:
        each = self.inner.each(space)
        if len(each) > 1 and not isinstance(self.weights, Mapping) and np.ndim(self.weights):
            raise TermError(f"the weights of groups of different sizes, {self.text()}: give a mapping by group")
        known = self.weights if isinstance(self.weights, Mapping) else {}
        for said in unknown_labels(
            f"the weights of {self.text()}", known, {k for one in each for k in one.keys}, "row"
        ):
            raise TermError(said)
        return [self._weighted(one) for one in each]

    def _weighted(self, made: Made) -> Made:
        name, given = f"the weights of {self.inner.text()}", self.weights
        if isinstance(given, Mapping) and isinstance(self.inner, Grouped):
            given = {key: given[key] for key in made.keys if key in given}
        if isinstance(given, Mapping):
            given = [*by_key(given, made.keys, name)]
        c = numbers(given, name, "numbers", TermError)
        if c.ndim and c.shape != made.c.shape:
            raise TermError(f"{name} have the shape {c.shape}, and there are {len(made.c)} rows; give one per row")
        c = np.broadcast_to(c, made.c.shape)
        bad = ~(np.isfinite(c) & (c >= 0.0))
        if bad.any():
            r = int(np.argmax(bad))
            raise TermError(f"{name} must be finite and not negative, got {c[r]:g} at {made.keys[r]!r}")
        return replace(made, c=c)

    def unshifted(self) -> str:
        return self.inner.unshifted()

    def text(self) -> str:
        return self.inner.text()


@dataclass(frozen=True, repr=False)
class Grouped(AbstractRowsOfRows):
    """The rows of each group as one; groups of different sizes make rows of different lengths (see `each`)."""

    by: Any

    def each(self, space: Space) -> list[Made]:
        made, found = self.inner.made(space), dict[Hashable, list[int]]()
        for r, key in enumerate(self._keys(made)):
            found.setdefault(key, []).append(r)
        for key, rows in found.items():
            if (made.c[rows] != made.c[rows[0]]).any():
                raise TermError(
                    f"the rows {self.inner.text()} of the group {key!r} have different weights; give a graph without "
                    "weights, and one weight per group by .grouped(...).weighted(...)"
                )
        by_size = dict[int, list[Hashable]]()
        for key, rows in found.items():
            by_size.setdefault(len(rows), []).append(key)
        return [self._of(made, size, keys, found) for size, keys in by_size.items()]

    def _of(self, made: Made, size: int, keys: list[Hashable], found: Mapping[Hashable, list[int]]) -> Made:
        some = made.taken(np.array([r for key in keys for r in found[key]]))
        b, c, pieces = some.b.reshape(len(keys), -1), some.c[::size], size * some.pieces
        return replace(some, b=b, c=c, keys=tuple(keys), nodes=False, pieces=pieces, edges=None, owners=None)

    def _keys(self, made: Made) -> list[Hashable]:
        if isinstance(self.by, Mapping):
            return [*by_key(self.by, made.keys, f"the groups of {self.inner.text()}")]
        if callable(self.by):
            return [self.by(key) for key in made.keys]
        keys = sequence(self.by, "by", "a function, a mapping or one key per row", TermError)
        if len(keys) != len(made.keys):
            raise TermError(f".grouped takes one key per row, got {len(keys)} for {len(made.keys)} rows")
        return keys

    def made(self, space: Space) -> Made:
        each = self.each(space)
        if len(each) != 1:
            sizes = sorted(made.shape[1] for made in each)
            raise TermError(f"the groups of {self.inner.text()} have {sizes} numbers; only a penalty is called on them")
        return each[0]

    def text(self) -> str:
        text = _bracketed(self.inner)
        return f"{text}_(in g)" if text[0] == "(" and text[-1] == ")" else f"({text})_(in g)"


w = Parameters()


# ---- small things ----------------------------------------------------------------------------------------------------
def _bracketed(rows: AbstractRows) -> str:
    text = rows.text()
    return f"({text})" if " " in text and not text.endswith(")_" + text[-1:]) else text


def _inner(rows: AbstractRows) -> str:
    return "w" if rows.text() == "w_i" else _bracketed(rows)


def _power(order: int) -> str:
    return "D" if order == 1 else f"D^{order}"


def _sizes(made: Made) -> str:
    return f"{count(made.shape[0], 'row')} of {count(made.shape[1], 'number')}"


def _order(order: Any) -> int:
    if not is_whole(order) or order < 1:
        raise TermError(f"the order of differences must be a whole number from 1, got {shown(order)}")
    return int(order)


def _labels(given: Any, what: str, wanted: str) -> Labels:
    return tuple(as_labels(sequence(given, what, wanted, TermError)))


def _found(labels: Labels, index: Mapping[Hashable, int]) -> Array:
    for label in labels:
        if label not in index:
            inside = isinstance(label, tuple) and all(each in index for each in label)
            hint = "; a tuple is one label: for several nodes give a list" if inside else did_you_mean(label, index)
            raise TermError(f"the rows name the node {label!r}, which the problem does not have{hint}")
    return np.array([index[label] for label in labels], dtype=int)


def _matrix(given: Any, what: str) -> Any:
    matrix: Any = sp.csr_array(given) if sp.issparse(given) else numbers(given, what, "a matrix of numbers", TermError)
    if matrix.ndim != 2:
        raise TermError(f"{what} must be a matrix, got {matrix.ndim} dimension{'' if matrix.ndim == 1 else 's'}")
    matrix = sp.csr_array(matrix, dtype=float, copy=True)  # which may be changed by whoever gave it
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise TermError(f"{what} must be finite, and has an entry that is not")
    return matrix


def _places(at: Any, labels: Labels) -> Array:
    if isinstance(at, Mapping):
        at = by_key(at, tuple(labels), "at")
    t = numbers(at, "at", "the place of each node as a number (dates as days since the first)", TermError)
    if t.shape != (len(labels),) or not np.isfinite(t).all():
        raise TermError(
            f"at must be {len(labels)} finite numbers, one for each node of the path, got the shape {t.shape}"
        )
    if (np.diff(t) <= 0.0).any():
        i = int(np.argmax(np.diff(t) <= 0.0))
        raise TermError(
            f"at must increase along the path, and {labels[i + 1]!r} at {t[i + 1]:g} follows {labels[i]!r} at {t[i]:g}"
        )
    return t


def by_key(given: Mapping[Any, Any], keys: tuple[Hashable, ...], what: str) -> list[Any]:
    """The entries of a mapping, row by row."""
    for said in (*missing_entries(what, given, keys, "row"), *unknown_labels(what, given, keys, "row")):
        raise TermError(said)
    return [given[key] for key in keys]
