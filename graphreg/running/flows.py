"""The flows of an answer: by edge, and as a table with what limits them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate
from ..display import Html, Shown, title
from ..form import Form
from ..terms import Array, EdgeBlock
from ..terms.penalties import row_norm

if TYPE_CHECKING:
    from ..tables import Table

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
        self._flow: dict[tuple[Hashable, Hashable], Array] = {}
        for edge, u in zip(form.edges, self._blocks, strict=True):
            columns = edge.coordinates
            for key, each in zip(_ends(form, edge), u, strict=True):
                self._flow.setdefault(key, np.zeros(form.d))[columns] += each

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

        from ..tables import Table

        parts = [_rows(self._form, edge, u, self._full) for edge, u in zip(self._form.edges, self._blocks, strict=True)]
        names = ["term", "tail", "head", "flow", "capacity", "used", "saturated"]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names)
        return Table.of(frame, "flows along the edges", ASSUMED)

    def __getitem__(self, edge: tuple[Hashable, Hashable]) -> Array:
        if edge in self._flow:
            return self._flow[edge]
        turned: Any = edge[::-1] if isinstance(edge, tuple) else edge
        if turned in self._flow:
            return -self._flow[turned]
        raise KeyError(f"{edge!r} is not an edge of the problem; edges are pairs of node labels (tail, head)")

    def __repr__(self) -> str:
        table = self.table()
        return f"<Flows on {len(self)} edges, {np.count_nonzero(table['saturated'])} saturated; print(flows.table())>"

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> Iterable[Html]:
        from ..tables import as_html, assumed_html

        table = self.table()
        full = np.count_nonzero(table["saturated"])
        yield title(f"Flows on {len(self)} edges; {full} of {len(table)} are at their capacity")
        yield as_html(table)
        yield assumed_html(table.assumed)

    def __iter__(self) -> Iterator[tuple[Hashable, Hashable]]:
        return iter(self._flow)

    def __len__(self) -> int:
        return len(self._flow)


def _ends(form: Form, edge: EdgeBlock) -> list[tuple[Hashable, Hashable]]:
    """The labels of tail and head of each edge; None for the ground."""
    heads = [None] * len(edge.head) if edge.ground else [form.labels[head] for head in edge.head]
    return list(zip([form.labels[tail] for tail in edge.tail], heads, strict=True))


def _rows(form: Form, edge: EdgeBlock, u: Array, full: float) -> Any:
    """The rows of one term."""
    import pandas as pd

    size, still = row_norm(u), (u == 0.0).all(axis=1)
    along = np.where(still[:, None], np.eye(1, u.shape[1]), u)  # where nothing flows, along the first coordinate
    share = edge.penalty.gauge(along / edge.weight[:, None])
    with np.errstate(divide="ignore"):
        capacity = row_norm(along) / share
    used = np.where(still, 0.0, share)
    tails, heads = (pd.Series(list(ends), dtype=object) for ends in zip(*_ends(form, edge), strict=True))
    columns = {"term": edge.name, "tail": tails, "head": heads, "flow": size, "capacity": capacity}
    return pd.DataFrame(columns | {"used": used, "saturated": used >= full})
