"""What flows say is fused: entries of w that are tied together by flows strictly inside their capacities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..form import EdgeBlock, Form
from ..inputs import components_of
from ..network import kernels
from ..terms import Array
from ..terms.penalties import row_norm

STRICT = 1.0 - 1e-9  # a flow below this share of its capacity is strictly inside


@dataclass(frozen=True)
class Groups:
    """To which of ``count`` values each node belongs, or each entry of w where they are not tied as a ``whole``; to 0
    where it is -1."""

    number: Array
    count: int
    whole: bool

    def numbers(self, d: int) -> int:
        """Of how many numbers w is made."""
        return self.count * (d if self.whole else 1)

    def merged(self, w: Array) -> Array:
        """w with each entry set to the mean of its group: the differences there vanish, which iterates only tend to."""
        values = w if self.whole else w.reshape(-1, 1)
        fast = kernels() if self.number.dtype == np.int32 else None
        if fast is not None:
            return fast.group_means(self.number, self.count, values).reshape(w.shape)
        number = np.where(self.number < 0, self.count, self.number)
        sizes = np.maximum(np.bincount(number, minlength=self.count + 1), 1.0)
        out = np.empty(values.shape)
        for j in range(values.shape[1]):
            means = np.bincount(number, values[:, j], self.count + 1) / sizes
            means[self.count] = 0.0  # with the ground
            out[:, j] = means[number]
        return out.reshape(w.shape)


def groups_of_flows(form: Form, flows: tuple[Array, ...], most: int | None = None, fast: bool = False) -> Groups | None:
    """What is fused; None where more than ``most`` numbers are left. By compiled code where that is ``fast``, and
    knows all penalties."""
    n, d = form.shape
    whole = all(e.features is None and e.penalty.pieces(d) in (None, d) for e in form.edges)
    each, per = (d, 1) if whole else (1, d)  # nodes are tied as a whole, or their coordinates one by one
    compiled = kernels() if fast else None
    passes = [None] if compiled is None else [compiled.edge_passes(edge, d) for edge in form.edges]
    if compiled is not None and all(found is not None for found in passes):
        parent = np.arange(n * per + 1, dtype=np.int32)
        for found, u in zip(passes, flows, strict=True):
            if found is not None:
                found.unite(STRICT, u, parent, whole)
        number, count = compiled.group_numbers(parent)
        return None if most is not None and count * each > most else Groups(number, count, whole)
    return _joined(form, flows, whole, n * d if most is None else most, each, per)


def _joined(form: Form, flows: tuple[Array, ...], whole: bool, most: int, each: int, per: int) -> Groups | None:
    size = form.n * per
    tails, heads = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
    for edge, u in zip(form.edges, flows, strict=True):
        mask = inside(edge, u)
        if per == 1:
            e, j = np.flatnonzero(mask[:, 0]), 0
        else:
            e, j = np.nonzero(mask)
            j = j if edge.features is None else edge.features[j]
        tails.append(edge.tail[e] * per + j)
        heads.append(np.full(len(e), size) if edge.ground else edge.head[e] * per + j)
    t, h = np.concatenate(tails), np.concatenate(heads)
    if (size - len(t)) * each > most:  # every tie joins two at most
        return None
    count, member = components_of(t, h, size + 1)
    if (count - 1) * each > most:
        return None
    tied = np.arange(count) != member[size]  # not tied to 0 by the ground
    return Groups(np.where(tied, np.cumsum(tied) - 1, -1)[member[:size]], count - 1, whole)


def inside(edge: EdgeBlock, u: Array) -> Array:
    """Which entries (m, k) vanish at each edge: those of pieces whose flow is strictly inside."""
    p = edge.penalty.pieces(u.shape[1])
    if p is None:
        return np.zeros(u.shape, dtype=bool)
    lengths = row_norm(u.reshape(-1, p)).reshape(len(u), -1)
    return np.repeat(lengths < STRICT * edge.weight[:, None], p, axis=1)
