"""The flows of an answer: by edge, and as a table with what limits them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.display import Html, Shown, title
from ..certificate import Certificate
from ..form import Form
from ..terms import GROUND, Array, EdgeBlock
from ..terms.penalties import row_norm

if TYPE_CHECKING:
    from ..base.tables import Table

LEAST, MOST = 1e-9, 1e-2  # of a capacity: what may be left of one that is used up
ASSUMED = (
    "the flows are those of the certificate's dual point; where an optimum has several optimal flows they are one of "
    "them, so that what holds at every optimum is said by clusters()",
)


class Flows(Shown, Mapping[tuple[Hashable, Hashable], Array]):
    """Flows by edge: ``flows[i, j]`` is the sum over all terms of the flow (d,) from i to j, the negative of that
    from j to i; ``flows[i, None]`` that to the ground."""

    def __init__(self, form: Form, certificate: Certificate) -> None:
        self._form, self._blocks = form, certificate.dual_point.flows
        self._full = 1.0 - float(np.clip(np.sqrt(max(certificate.relative_gap, 0.0)), LEAST, MOST))

    @cached_property
    def _order(self) -> tuple[Array, Array]:
        """The pairs of ends of all edges, in order, as numbers tail * (n + 1) + head, and where each edge stands when
        the edges of all blocks follow one another."""
        blocks = [_number(e.tail, e.head, self._form.n) for e in self._form.edges]
        every = np.concatenate([np.zeros(0, dtype=np.int64), *blocks])
        order = np.argsort(every, kind="stable")  # edges of one pair stay in the order of their terms
        return every[order], order

    @cached_property
    def _starts(self) -> Array:
        """The first edge of each block when the blocks follow one another."""
        return np.cumsum([0, *(len(edge.tail) for edge in self._form.edges)])

    @cached_property
    def _latent(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self._form.latent, self._form.space.n_observed)}

    def _node(self, label: Hashable) -> int | None:
        """The number of a node, None where there is none; the ground comes behind all nodes."""
        index = self._form.space.index
        if label is None:  # which is no label of a node
            return self._form.n
        return index[label] if label in index else self._latent.get(label)

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
            out[self._form.edges[k].coordinates] += self._blocks[k][row - self._starts[k]]
        return out

    def table(self) -> Table:
        """One row per edge and term: term, tail, head (None: the ground), flow (its Euclidean length, over the term's
        coordinates), capacity (how long it may be in that direction; inf where nothing limits it), used (the share of
        the capacity) and saturated (whether all of it is used, but for the root of the relative gap, which is how
        near flows come to their limits: only then do the ends of the edge differ).

        Returns
        -------
        Table
            A DataFrame whose printed form ends with what it rests on.

        Examples
        --------
        >>> solution.flows.table().columns.tolist()
        ['term', 'tail', 'head', 'flow', 'capacity', 'used', 'saturated']
        """
        import pandas as pd

        from ..base.tables import Table

        parts = [_rows(self._form, edge, u, self._full) for edge, u in zip(self._form.edges, self._blocks, strict=True)]
        names = ["term", "tail", "head", "flow", "capacity", "used", "saturated"]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)
        return Table.of(frame, "flows along the edges", ASSUMED)

    def __getitem__(self, edge: tuple[Hashable, Hashable]) -> Array:
        pair: Any = edge
        if isinstance(pair, tuple) and len(edge) == 2:
            tail, head = map(self._node, edge)
            if tail is not None and head is not None:
                if (flow := self._along(tail, head)) is not None:
                    return flow
                if (back := self._along(head, tail)) is not None:
                    return -back
        raise KeyError(f"{edge!r} is not an edge of the problem; edges are pairs of node labels (tail, head)")

    def __repr__(self) -> str:
        table = self.table()
        return f"<Flows on {len(self)} edges, {np.count_nonzero(table['saturated'])} saturated; print(flows.table())>"

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html, assumed_html

        table = self.table()
        full = np.count_nonzero(table["saturated"])
        yield title(f"Flows on {len(self)} edges; {full} of {len(table)} are at their capacity")
        yield as_html(table)
        yield assumed_html(table.assumed)

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        known, order = self._order
        first = np.sort(order[_firsts(known)])  # of each pair, in the order of the terms
        ends = [pair for edge in self._form.edges for pair in zip(*self._form.ends(edge), strict=True)]
        return (ends[row] for row in first.tolist())

    def __len__(self) -> int:
        return int(_firsts(self._order[0]).sum())


def _firsts(ordered: Array) -> Array:
    """A mask of the entries that differ from the one before."""
    return np.diff(ordered, prepend=-1) > 0


def _number(tail: Array, head: Array, n: int) -> Array:
    return tail * np.int64(n + 1) + np.where(head == GROUND, n, head)


def _rows(form: Form, edge: EdgeBlock, u: Array, full: float) -> Any:
    """The rows of one term."""
    import pandas as pd

    size, still = row_norm(u), (u == 0.0).all(axis=1)
    along = np.where(still[:, None], np.eye(1, u.shape[1]), u)  # where nothing flows, along the first coordinate
    share = edge.penalty.domain.gauge(along / edge.weight[:, None])
    with np.errstate(divide="ignore"):
        capacity = row_norm(along) / share
    used = np.where(still, 0.0, share)
    tails, heads = (pd.Series(ends, dtype=object) for ends in form.ends(edge))
    columns = {"term": edge.name, "tail": tails, "head": heads, "flow": size, "capacity": capacity}
    return pd.DataFrame(columns | {"used": used, "saturated": used >= full})
