"""Which nodes chosen edges join, over all terms and coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...form import EdgeBlock, Form
from ...inputs import components_of
from ...terms import Array
from ...terms.penalties import is_equality


def joined(
    form: Form, ends: list[tuple[EdgeBlock, Array]], chosen: Callable[[Array], Array], observed: bool = True
) -> Array:
    """The component of each node in the graph of the pairs that chosen edges join: on all coordinates, by all terms
    together, and none of the terms of the pair being split. What an equality shares holds for all that it connects."""
    covered: dict[int, set[int]] = {}
    whole, apart = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for edge, state in ends:
        pairs = edge.tail.astype(np.int64) * form.n + edge.head
        apart.append(pairs[state == "split"])
        mask = chosen(state)
        if edge.features is None:
            whole.append(pairs[mask])
        else:  # on some coordinates: a cluster only where the terms together cover all of them
            for pair in pairs[mask].tolist():
                covered.setdefault(pair, set()).update(map(int, edge.features))
    for edge, _ in ends:
        if edge.features is not None and is_equality(edge.penalty, len(edge.features)):
            part = components_of(edge.tail, edge.head, form.n)[1]
            for pair in (pair for pair in covered if part[pair // form.n] == part[pair % form.n]):
                covered[pair].update(map(int, edge.features))
    whole.append(np.array([pair for pair, columns in covered.items() if len(columns) == form.d], dtype=np.int64))
    pairs = np.concatenate(whole)
    links = np.stack(np.divmod(pairs[~np.isin(pairs, np.concatenate(apart))], form.n), axis=1)
    number = components_of(links[:, 0], links[:, 1], form.n)[1]
    return number[: form.space.n_observed] if observed else number
