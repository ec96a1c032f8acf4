"""The flows of an answer: by edge, and as a table with what limits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.display import Html, Shown, title
from ..certificate import Certificate, flow_column
from ..errors import MissingError
from ..form import Form
from ..terms import GROUND, Array, EdgeBlock
from ..terms.penalties import AbstractOneSided, row_norm

if TYPE_CHECKING:
    from ..base.tables import Table

LEAST, MOST = 1e-9, 1e-2  # of a capacity: what may be left of one that is used up
ASSUMED = (
    "the flows are those of the certificate's dual point; where an optimum has several optimal flows they are one of "
    "them, so that what holds at every optimum is said by solution.held()",
    "capacity is the length that a flow may have in its own direction: strength x weight for L2, else as far as the "
    "conjugate is finite there",
)


class Flows(Shown, Mapping[Any, Array]):
    """Flows by edge: ``flows[i, j]`` is the sum over all terms of the flow (d,) from i to j, the negative of that
    from j to i; ``flows[i, None]`` that to the ground.

    Rows of terms that are no edges have a flow of their own, as long as the row, by their key: a node, an arrow (i, j),
    the nodes along a path, a group, else a number. Of several terms with rows of one key, and where an edge has it, it
    is ``flows[term, key]``, by the name of the term (with its place behind it, where several have the same).
    """

    def __init__(self, form: Form, certificate: Certificate) -> None:
        self._form = form
        self._blocks = list(zip(form.edges, certificate.dual_point.flows, strict=True))
        self._full = 1.0 - float(np.clip(np.sqrt(max(certificate.relative_gap, 0.0)), LEAST, MOST))

    @cached_property
    def _edges(self) -> list[tuple[EdgeBlock, Array]]:
        """The blocks of edges, and their flows."""
        return [(edge, u) for edge, u in self._blocks if edge.map.edges is not None]

    @cached_property
    def _of_rows(self) -> dict[Hashable, Array]:
        """The flows of rows that are no edges, by key."""
        rows = [(edge, self._form.keys(edge), u) for edge, u in self._blocks if edge.map.edges is None]
        times = Counter(key for _, keys, _ in rows for key in keys)
        names = Counter(edge.name for edge, _, _ in rows)
        out: dict[Hashable, Array] = {}
        for place, (edge, keys, u) in enumerate(rows, 1):
            name = edge.name if names[edge.name] == 1 else f"{edge.name} {place}"
            for key, flow in zip(keys, u, strict=True):
                alone = times[key] == 1 and self._of_edge(key) is None
                out[key if alone else (name, key)] = flow
        return out

    @cached_property
    def _order(self) -> tuple[Array, Array]:
        """The pairs of ends of all edges, in order, as numbers tail * (n + 1) + head, and where each edge stands when
        the edges of all blocks follow one another."""
        n = self._form.n
        blocks = [e.tail * np.int64(n + 1) + np.where(e.head == GROUND, n, e.head) for e, _ in self._edges]
        every = np.concatenate([np.zeros(0, dtype=np.int64), *blocks])
        order = np.argsort(every, kind="stable")  # edges of one pair stay in the order of their terms
        return every[order], order

    @cached_property
    def _starts(self) -> Array:
        """The first edge of each block when the blocks follow one another."""
        return np.cumsum([0, *(edge.count for edge, _ in self._edges)])

    @cached_property
    def _places(self) -> Mapping[Any, int]:
        """The number of each node by its label; the ground, None, which is no label, comes behind all nodes."""
        latent = {label: k for k, label in enumerate(self._form.latent, self._form.space.n_observed)}
        return {None: self._form.n, **self._form.space.index, **latent}

    def _along(self, tail: int, head: int) -> Array | None:
        """The flow (d,) of the edges from one node to another; None where there are none."""
        known, order = self._order
        number = tail * (self._form.n + 1) + head
        begin, end = np.searchsorted(known, (number, number + 1)).tolist()
        if begin == end:
            return None
        out = np.zeros(self._form.d)
        for row in order[begin:end].tolist():
            k = int(np.searchsorted(self._starts, row, side="right")) - 1
            edge, flows = self._edges[k]
            out[edge.coordinates] += flows[row - self._starts[k]]
        return out

    def table(self) -> Table:
        """One row per edge and term: term, tail, head (None: the ground), flow (from tail to head, negative where it
        runs from head to tail) where every flow is one number, else length (the Euclidean length of the flow, over the
        term's coordinates), capacity (how long it may be in that direction, or along the first coordinate where nothing
        flows; inf where nothing limits it), used (the share of the capacity) and saturated (whether all of it is used,
        but for the root of the relative gap, which is how near flows come to their limits: only then do the ends of
        the edge differ, or is the row not 0). Rows of terms that are no edges have their key under ``row``, a column
        that there is where there are such terms. Where a penalty is one-sided, ``back`` is the capacity in the other
        direction; either may be 0, and a flow that is at either end is saturated.

        Returns
        -------
        Table
            A DataFrame whose printed form ends with what it rests on.

        Examples
        --------
        >>> solution.flows.table().columns.tolist()
        ['term', 'tail', 'head', 'length', 'capacity', 'used', 'saturated']
        """
        import pandas as pd

        from ..base.tables import Table

        beside = bool(self._edges and self._of_rows)
        heading, flows = flow_column([u for _, u in self._blocks])
        parts = [
            _rows(self._form, edge, u, {heading: flow}, self._full, beside)
            for (edge, u), flow in zip(self._blocks, flows, strict=True)
        ]
        names = ["term", "tail", "head", "row", heading, "capacity", "back", "used", "saturated"]
        if not parts:
            parts = [pd.DataFrame(columns=[name for name in names if name != "row"])]
        frame = pd.concat(parts, ignore_index=True)
        if not any(isinstance(edge.penalty, AbstractOneSided) for edge, _ in self._blocks):
            names.remove("back")
        frame = frame.reindex(columns=[name for name in names if name in frame])
        return Table.of(frame, f"flows along the {'rows' if self._of_rows else 'edges'}", ASSUMED)

    def __getitem__(self, edge: Hashable) -> Array:
        if (flow := self._of_edge(edge)) is not None:
            return flow
        if not self._form.unlike_edges:
            raise MissingError(f"{edge!r} is not an edge of the problem; edges are pairs of node labels (tail, head)")
        if edge in self._of_rows:
            return self._of_rows[edge]
        raise MissingError(f"{edge!r} is no edge (tail, head) and no row of the problem; list(flows) has them all")

    def _of_edge(self, key: Any) -> Array | None:
        """The flow along an edge; None where there is none."""
        if isinstance(key, tuple) and len(key) == 2:
            tail, head = map(self._places.get, key)
            if tail is not None and head is not None:
                if (flow := self._along(tail, head)) is not None:
                    return flow
                if (back := self._along(head, tail)) is not None:
                    return -back
        return None

    def __repr__(self) -> str:
        table = self.table()
        return f"<Flows on {self._counted()}, {np.count_nonzero(table['saturated'])} saturated; print(flows.table())>"

    def _counted(self) -> str:
        return (
            f"{len(self)} {'edges and rows' if self._edges and self._of_rows else 'rows' if self._of_rows else 'edges'}"
        )

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html, assumed_html

        table = self.table()
        full = np.count_nonzero(table["saturated"])
        yield title(f"Flows on {self._counted()}; {full} of {len(table)} are at their capacity")
        yield as_html(table)
        yield assumed_html(table.assumed)

    def __iter__(self) -> Iterator[Any]:
        known, order = self._order
        first = np.sort(order[_firsts(known)])  # of each pair, in the order of the terms
        ends = [pair for edge, _ in self._edges for pair in zip(*self._form.ends(edge), strict=True)]
        return chain((ends[row] for row in first.tolist()), self._of_rows)

    def __len__(self) -> int:
        return int(_firsts(self._order[0]).sum()) + len(self._of_rows)


def _firsts(ordered: Array) -> Array:
    """A mask of the entries that differ from the one before."""
    return np.diff(ordered, prepend=-1) > 0


def _rows(form: Form, edge: EdgeBlock, u: Array, flow: dict[str, Array], full: float, rows_beside: bool) -> Any:
    """The rows of one term."""
    import pandas as pd

    still = (u == 0.0).all(axis=1)
    along = np.where(still[:, None], np.eye(1, u.shape[1]), u)  # where nothing flows, along the first coordinate
    share = edge.penalty.domain.gauge(along / edge.weight[:, None])
    capacity, back = (
        np.divide(row_norm(along), part, where=part > 0.0, out=np.full(len(u), np.inf))
        for part in (share, edge.penalty.domain.gauge(-along / edge.weight[:, None]))
    )
    used = np.where(still, 0.0, share)
    saturated = used >= full
    if isinstance(edge.penalty, AbstractOneSided):
        saturated |= _at_an_end(edge, u, full)
    rows = edge.map.edges is None
    names = {"row": form.keys(edge)} if rows else dict(zip(("tail", "head"), form.ends(edge), strict=True))
    if rows_beside:
        names = dict.fromkeys(("tail", "head", "row"), [None] * edge.count) | names
    places = {name: pd.Series(list(which), dtype=object) for name, which in names.items()}
    columns = {"term": edge.name, **places, **flow, "capacity": capacity, "back": back}
    return pd.DataFrame(columns | {"used": used, "saturated": saturated})


def _at_an_end(edge: EdgeBlock, u: Array, full: float) -> Array:
    """Whether flows, a little further away from an inner point, leave their domain, of which 0 may be an end."""
    flows, domain = u / edge.weight[:, None], edge.penalty.domain
    inner = domain.interior(u.shape[1])[None]
    sized = inner * (np.abs(flows).max(initial=0.0) or 1.0)  # a cone has no size, so that of its flows is taken
    inner = np.repeat(np.where(np.isfinite(edge.penalty.conjugate(sized)), sized, inner), len(u), axis=0)
    return domain.step_to_boundary(inner, inner + (flows - inner) / full) < 1.0
