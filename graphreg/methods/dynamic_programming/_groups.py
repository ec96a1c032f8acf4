"""The edges that tie some coordinates, and the forests that these are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...form import Form, held_together
from ...inputs import components_of
from ...terms import Array

if TYPE_CHECKING:
    from ._forest import CoordinateForest


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

    @cached_property
    def weight(self) -> Array:
        return self._joined([self.form.edges[k].weight for k in self.blocks])

    @cached_property
    def most(self) -> Array:
        """The flow that may be on each, inside the domain."""
        blocks = [self.form.edges[k] for k in self.blocks]
        return self._joined([edge.clip(np.tile(edge.weight[:, None], self.form.width(edge)))[:, 0] for edge in blocks])

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
                flows[k][:, np.flatnonzero(edge.columns(self.form.d) == column)[0]] = values[start:end]
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


def groups_of_edges(form: Form) -> Iterator[EdgeGroup]:
    """The coordinates that the same blocks of edges tie, and these; also those that none does."""
    between = [k for k, edge in enumerate(form.edges) if not edge.ground]
    held = held_together([form.edges[k].columns(form.d) for k in between], form.d)
    known = {j for _, columns in held for j in columns.tolist()}
    rest = np.array([j for j in range(form.d) if j not in known], dtype=np.intp)
    for holding, columns in [*held, *([((), rest)] if len(rest) else [])]:
        blocks = tuple(between[k] for k in holding)
        yield EdgeGroup(form, blocks, columns)
