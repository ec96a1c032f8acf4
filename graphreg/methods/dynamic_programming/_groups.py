"""The edges that tie some coordinates, and the forests that these are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...form import Form, held_together
from ...inputs import components_of
from ...terms import Array, alike
from ...terms.penalties import slopes

if TYPE_CHECKING:
    from ._forest import CoordinateForest
    from ._sweeps import Costs


@dataclass(frozen=True)
class EdgeGroup:
    """The edges that tie some coordinates: the numbers of their blocks, and the edges of all of these in turn."""

    form: Form
    blocks: tuple[int, ...]
    columns: Array

    @cached_property
    def in_line(self) -> bool:
        """True where they join each node with the next, in order."""
        return len(self.blocks) == 1 and self.form.edges[self.blocks[0]].in_line

    @cached_property
    def tail(self) -> Array:
        return self._joined([self.form.edges[k].tail for k in self.blocks])

    @cached_property
    def head(self) -> Array:
        return self._joined([self.form.edges[k].head for k in self.blocks])

    def costs(self, column: int) -> Costs:
        """What the edges cost in one coordinate."""
        sides: tuple[list[Array], list[Array]] = [], []
        for k in self.blocks:
            edge = self.form.edges[k]
            for side, slope in zip(sides, self.slopes(k, column), strict=True):
                side.append(edge.weight * slope if slope else np.zeros(edge.count))
        return self._joined(sides[0]), self._joined(sides[1])

    def slopes(self, k: int, column: int) -> tuple[float, float]:
        """The costs of an edge of weight 1 of a block in one coordinate."""
        edge = self.form.edges[k]
        found = slopes(edge.penalty, self.form.width(edge))
        assert found is not None
        fall, rise = (float(side[self._place(k, column)]) for side in found)
        return fall, rise

    def _place(self, k: int, column: int) -> int:
        """The place of a coordinate among those of a block."""
        return int(np.flatnonzero(self.form.edges[k].columns(self.form.d) == column)[0])

    @staticmethod
    def _joined(parts: list[Array]) -> Array:
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, int), *parts])

    def put(self, values: Array, column: int, flows: list[Array]) -> None:
        """The flows of one coordinate, edge by edge, to where they stand among those of all blocks."""
        start = 0
        for k in self.blocks:
            edge = self.form.edges[k]
            end = start + len(edge.tail)
            if self.form.width(edge) == 1:
                flows[k] = values[start:end, None]
            else:
                flows[k][:, self._place(k, column)] = values[start:end]
            start = end

    @property
    def forest(self) -> CoordinateForest:
        """The forest that they are: there are no circles."""
        found = self._found()
        assert found is not None
        return found

    def _found(self) -> CoordinateForest | None:
        """The forest, found once; None where there are circles."""
        if len(self.tail) >= self.form.n:  # most have, and need not wait for the files of forests
            return None
        from ._forest import CoordinateForest

        name = f"forest of {self.blocks}"
        return self.form.once(name, None, lambda: CoordinateForest.of(self.tail, self.head, self.form.n))

    def circles(self) -> int:
        """The number of edges beyond those of a forest."""
        if self.in_line or self._found() is not None:
            return 0
        return len(self.tail) - self.form.n + components_of(self.tail, self.head, self.form.n)[0]


def arrows(form: Form) -> Form:
    """The form with rows that are differences along arrows as edges, from the nodes that these lead to."""
    if not form.unlike_edges:
        return form
    plain = [edge.center is None or not edge.center.any() for edge in form.edges]
    maps = [edge.map.differences if at_zero else None for edge, at_zero in zip(form.edges, plain, strict=True)]
    changed = ((edge, own and replace(edge, map=own, center=None)) for edge, own in zip(form.edges, maps, strict=True))
    return alike(form, edges=tuple([as_edges or edge for edge, as_edges in changed]))


def groups_of_edges(form: Form) -> Iterator[EdgeGroup]:
    """The coordinates that the same blocks of edges tie, and these; also those that none does."""
    between = [k for k, edge in enumerate(form.edges) if not edge.ground]
    held = held_together([form.edges[k].columns(form.d) for k in between], form.d)
    known = {j for _, columns in held for j in columns.tolist()}
    rest = np.array([j for j in range(form.d) if j not in known], dtype=np.intp)
    for holding, columns in [*held, *([((), rest)] if len(rest) else [])]:
        yield EdgeGroup(form, tuple(between[k] for k in holding), columns)
