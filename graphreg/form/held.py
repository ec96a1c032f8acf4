"""What has no choice: coordinates that equations at single nodes hold (fixed nodes, boundary values), and flows that
balance holds at 0."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..terms import Array, EdgeBlock
from ..terms.penalties import AbstractEntrywise, at_units, is_equality, slopes
from .form import Form

LONGEST = 100  # ways from node to node along which flows have no choice


def flows_without_choice(form: Form) -> tuple[Array, ...] | None:
    """Of each block of edges the flows that are 0 wherever balance holds, (m, k); None where no flow must keep a sign.

    All that may be in an equation of a node and coordinate without data push the same way there, as at one from which
    all arrows lead away; and so on, where these are left out.
    """
    return form.once("flows without choice", None, lambda: _without_choice(form))


def _without_choice(form: Form) -> tuple[Array, ...] | None:
    ways = [_ways(edge, form.width(edge)) for edge in form.edges]
    if all(up.all() and down.all() for up, down in ways):
        return None
    answers = np.zeros(form.n * form.d, dtype=bool)  # the equations in which there are prices
    for block in form.samples:
        answers[block.A.indices[block.A.data != 0.0]] = True
    if answers.all():
        return tuple([np.zeros((edge.count, form.width(edge)), dtype=bool) for edge in form.edges])
    up, down = (
        np.concatenate([np.tile(way[k], e.count) for e, way in zip(form.edges, ways, strict=True)]) for k in (0, 1)
    )
    K = sp.vstack([edge.flat(form.d) for edge in form.edges]).T.tocsr()
    plus, minus = (K > 0.0).astype(int), (K < 0.0).astype(int)
    found = ~(up | down)
    for _ in range(LONGEST):
        rising, falling = plus @ up + minus @ down, plus @ down + minus @ up
        one_way = ~answers & ((rising == 0) != (falling == 0))
        new = ((plus + minus).T @ one_way > 0) & ~found
        if not new.any():
            break
        found, up, down = found | new, up & ~new, down & ~new
    ends = np.cumsum([edge.count * form.width(edge) for edge in form.edges])[:-1]
    return tuple([part.reshape(-1, form.width(e)) for e, part in zip(form.edges, np.split(found, ends), strict=True)])


def _ways(edge: EdgeBlock, k: int) -> tuple[Array, Array]:
    """Whether each coordinate of a flow may be above 0, and below it, (k,) each; of domains that tie coordinates that
    is not asked."""
    gauge = edge.penalty.domain.gauge
    if k > 1 and not isinstance(edge.penalty, AbstractEntrywise) and slopes(edge.penalty, k) is None:
        return np.ones(k, dtype=bool), np.ones(k, dtype=bool)
    return np.isfinite(at_units(gauge, k)), np.isfinite(at_units(lambda unit: gauge(-unit), k))


def fixes(form: Form, edge: EdgeBlock) -> bool:
    """True where a block says what its nodes are: w_i = b_i on its coordinates."""
    return edge.map.noun == "node" and is_equality(edge.penalty, form.width(edge))


class Held:
    """The coordinates that a form fixes, which need no equation: they are taken out of a system, and the flows of
    their blocks are what is left to balance there.

    Attributes
    ----------
    mask : (n, d) array of bool
    values : (n, d) array
        What they are held at; 0 elsewhere.
    torn : list of str
        The names of blocks that ask for other values than those before them, which no point can meet.
    """

    def __init__(self, form: Form) -> None:
        self.mask, self.values = np.zeros(form.shape, dtype=bool), np.zeros(form.shape)
        self.torn: list[str] = []
        self._first: dict[int, Array] = {}  # of each block: which of its numbers hold a coordinate first, (m, k)
        for number, edge in enumerate(form.edges):
            if fixes(form, edge):
                self._take(number, edge)

    def _take(self, number: int, edge: EdgeBlock) -> None:
        index = _index(edge, self.mask)
        value = np.zeros(index[0].shape) if edge.center is None else edge.center
        flat = np.ravel_multi_index(index, self.mask.shape).ravel()
        first = np.zeros(len(flat), dtype=bool)
        first[np.unique(flat, return_index=True)[1]] = True
        first = first.reshape(value.shape) & ~self.mask[index]
        self.values.ravel()[flat[first.ravel()]] = value[first]
        self.mask[index] = True
        self._first[number] = first
        if (self.values[index] != value).any():
            self.torn.append(edge.name)

    def at(self, w: Array) -> Array:
        """w where nothing is held, and what is."""
        return np.where(self.mask, self.values, w)

    def flows(self, form: Form, flows: tuple[Array, ...], left: Array) -> tuple[Array, ...]:
        """The flows, of which those of the blocks that hold take up what is ``left`` (n, d) to balance."""
        return tuple(
            u - np.where(self._first[k], left[_index(form.edges[k], left)], 0.0) if k in self._first else u
            for k, u in enumerate(flows)
        )


def _index(edge: EdgeBlock, w: Array) -> tuple[Array, Array]:
    """The nodes and coordinates that a block at nodes sees, (m, k) each."""
    node, j = np.broadcast_arrays(edge.tail[:, None], edge.columns(w.shape[1])[None, :])
    return node, j
