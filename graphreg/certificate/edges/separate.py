"""Edges whose penalty is a sum over coordinates, taken apart: one edge per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...form import EdgeBlock, Form
from ...terms import Array
from ...terms.penalties import AbstractEntrywise


@dataclass(frozen=True)
class Separated:
    """``form`` with the same objective; its edge block k is part of block ``owner[k]`` and acts on ``columns[k]`` of
    that block's coordinates."""

    form: Form
    owner: tuple[int, ...]
    columns: tuple[Array, ...]

    def parts(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        """Arrays shaped like the flows of the whole, taken apart."""
        return tuple(flows[k][:, j] for k, j in zip(self.owner, self.columns, strict=True))

    def together(self, masks: list[Array], count: int) -> list[Array]:
        """Per edge of the whole, whether a mask is true of all its parts."""
        out: list[Array | None] = [None] * count
        for k, mask in zip(self.owner, masks, strict=True):
            out[k] = mask if out[k] is None else out[k] & mask
        return [np.zeros(0, dtype=bool) if each is None else each for each in out]


def separate(form: Form) -> Separated:
    """The form with every penalty that is a sum over coordinates (`restricted`) taken apart."""
    edges, owner, columns = list[EdgeBlock](), list[int](), list[Array]()
    for k, edge in enumerate(form.edges):
        features = edge.columns(form.d)
        places = [np.array([j]) for j in range(len(features))]
        if len(places) < 2 or not isinstance(edge.penalty, AbstractEntrywise):
            edges.append(edge)
            owner.append(k)
            columns.append(np.arange(len(features)))
            continue
        for j in places:
            center = None if edge.center is None else edge.center[:, j]
            edges.append(replace(edge, penalty=edge.penalty.restricted(j), features=features[j], center=center))
            owner.append(k)
            columns.append(j)
    return Separated(replace(form, edges=tuple(edges)), tuple(owner), tuple(columns))
