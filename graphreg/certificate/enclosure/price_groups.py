"""Which groups without a way to the ground are tied by prices: each part is one small system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...inputs import components_of, groups_of
from ...terms import Array
from .rows import AbstractRows


@dataclass(frozen=True)
class PriceGroup:
    """Groups that share prices: their columns, the free prices that may move, and all (numbers over the blocks)."""

    rows: Array
    groups: Array
    whole: Array


@dataclass(frozen=True)
class Tied:
    """The parts of one forest, with all their prices; ``lone`` are groups without any.

    ``vertex`` (n d + 1,) has the group of each coordinate, -1 where there is a way to the ground, ``starts`` the number
    of the first free price of each block, and ``width`` the most coordinates that a price touches.
    """

    vertex: Array
    count: int
    starts: Array
    width: int
    parts: list[PriceGroup]
    lone: Array


def tied(blocks: Sequence[AbstractRows], vertex: Array, count: int) -> Tied:
    """Parts by connected components: a price ties all groups that its place touches."""
    starts = np.cumsum([0, *(len(b.nodes()) for b in blocks)])
    ends = np.append(vertex, -1)
    width = max((block.places().shape[1] for block in blocks), default=0)
    groups = np.unique(vertex[vertex >= 0])
    if not len(groups):
        return Tied(ends, count, starts, width, [], groups)
    links: list[tuple[Array, Array]] = []
    at_group: list[Array] = []  # of each price one of the groups that its place touches, -1 for none
    for block in blocks:
        free = block.nodes()
        touched = ends[block.places()]
        one = touched.max(axis=1, initial=-1)
        used = np.bincount(free, minlength=len(touched)) > 0
        ties = used[:, None] & (touched >= 0)
        links.append((np.broadcast_to(one[:, None], touched.shape)[ties], touched[ties]))
        at_group.append(one[free])
    tail, head = (np.concatenate([np.zeros(0, dtype=int), *(link[k] for link in links)]) for k in (0, 1))
    label = components_of(tail, head, count)[1]
    group = np.concatenate([np.zeros(0, dtype=int), *at_group])
    rows = np.flatnonzero(group >= 0)
    parts, lone = _collected(label[groups], groups, label[group[rows]], rows)
    return Tied(ends, count, starts, width, parts, lone)


def tied_alike(blocks: Sequence[AbstractRows], group: Array, count: int, d: int) -> Tied:
    """The same where each group has all d coordinates of some nodes, and each price touches all of one: ``group`` (n,)
    has that of each node, and coordinate j of group g is g d + j."""
    starts = np.cumsum([0, *(len(b.nodes()) for b in blocks)])
    at = group[np.concatenate([np.zeros(0, dtype=int), *(b.nodes() for b in blocks)])]
    rows, groups = np.flatnonzero(at >= 0), np.unique(group[group >= 0])
    parts, lone = _collected(groups, groups, at[rows], rows)
    each = np.arange(d)
    vertex = np.append(np.where(group[:, None] < 0, -1, group[:, None] * d + each), -1)
    spread = [PriceGroup(part.rows, (part.groups[:, None] * d + each).ravel(), part.whole) for part in parts]
    return Tied(vertex, count * d, starts, d, spread, (lone[:, None] * d + each).ravel())


def _collected(group_label: Array, groups: Array, row_label: Array, rows: Array) -> tuple[list[PriceGroup], Array]:
    labels, where = np.unique(group_label, return_inverse=True)
    at = np.searchsorted(labels, row_label)
    places = zip(groups_of(at, len(labels)), groups_of(where, len(labels)), strict=True)
    pairs = [(rows[mine], groups[own]) for mine, own in places]
    lone = [own for mine, own in pairs if not len(mine)]
    return [PriceGroup(mine, own, mine) for mine, own in pairs if len(mine)], np.concatenate([groups[:0], *lone])
