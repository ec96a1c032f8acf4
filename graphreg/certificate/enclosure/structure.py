"""What the enclosures of a problem have in common: it depends on the graph and the designs alone, and not on the point,
on targets, offsets or centers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...form import Form
from ...terms import Array
from .arcs import Arcs, Forest, forest_of
from .closing import Tied, tied, tied_alike
from .rows import AbstractRows, Design, RootRows, SampleRows, at_ends
from .sums import Runs


@dataclass
class Ways:
    """A forest of all edges along which flows may move at all, and the systems of its groups.

    ``alike`` where all arcs may move, and all coordinates share one forest of the nodes; else its vertices are i d + j.
    ``movable`` tells, for each of its arcs, whether it has room around 0; ``groups`` orders ``inside``, the vertices
    without a way to the ground; ``tied`` is found with the first prices.
    """

    alike: bool
    arcs: Arcs
    forest: Forest
    movable: Array
    groups: Runs
    inside: Array
    tied: Tied | None = None

    def ties(self, rows: Sequence[AbstractRows], d: int) -> Tied:
        """The parts of the groups without a way to the ground, coordinate by coordinate."""
        if self.tied is None:
            forest, count = self.forest, self.forest.count
            group = np.where(forest.group == forest.grounded, -1, forest.group)[:-1]
            self.tied = tied_alike(rows, group, count, d) if self.alike else tied(rows, group, count)
        return self.tied


class Structure:
    """Designs, arcs and orders of one problem."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.n, self.d = form.shape
        self.designs = [Design(block.node, block.X, form.n) for block in form.samples]
        each = [(k, edge.penalty.composed()) for k, edge in enumerate(form.edges)]
        self.roots = [(k, *found) for k, found in each if found is not None]  # whose flows are R'q
        self.blocks = tuple(k for k, found in each if found is None)  # the other edge blocks, which have arcs
        self._ways: Ways | None = None

    def rows(self, form: Form) -> list[AbstractRows]:
        """The prices of a form of this structure."""
        pairs = zip(form.samples, self.designs, strict=True)
        samples: list[AbstractRows] = [SampleRows(block, design, self.n, self.d) for block, design in pairs]
        return samples + [RootRows(form.edges[k], R, h, self.n, self.d) for k, R, h in self.roots]

    @cached_property
    def wheres(self) -> list[Runs]:
        """For each block of prices its samples or edges by component."""
        form = self.form
        at = [block.node for block in form.samples] + [form.edges[k].tail for k, _, _ in self.roots]
        return [Runs(form.component[nodes], form.n_components) for nodes in at]

    @cached_property
    def edge_wheres(self) -> list[Runs]:
        """For each edge block with arcs its edges by component."""
        form = self.form
        return [Runs(form.component[form.edges[k].tail], form.n_components) for k in self.blocks]

    @cached_property
    def arcs(self) -> Arcs:
        return Arcs.of(self.form)

    @cached_property
    def arc_runs(self) -> list[tuple[int, Runs]]:
        """For each edge block with arcs its ends, ordered by node."""
        blocks = [(k, self.form.edges[k]) for k in self.blocks]
        return [(k, Runs(at_ends(edge, edge.tail, edge.head), self.n)) for k, edge in blocks]

    def ways(self, movable_of: list[Array]) -> Ways:
        """The forest, given which arcs of each edge block may move around 0; kept as long as the same may."""
        alike = self.d > 1 and all(each.shape[1] == self.d and bool(each.all()) for each in movable_of)
        each = [some[:, 0] if alike else some.ravel() for some in movable_of]
        movable = np.concatenate([np.zeros(0, dtype=bool), *each])
        kept = self._ways
        if kept is None or kept.alike != alike or not np.array_equal(kept.movable, movable):
            arcs = Arcs.of_nodes(self.form, self.blocks) if alike else self.arcs
            forest = forest_of(arcs, movable, movable, np.ones(len(movable)))
            inside = np.flatnonzero(forest.group[:-1] != forest.grounded)
            groups = Runs(forest.group[inside], forest.count)
            kept = self._ways = Ways(alike, arcs, forest, movable, groups, inside)
        return kept
