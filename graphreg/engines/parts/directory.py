"""Who has which node, where no part knows all of them: each part keeps a share of the answers, by the nodes' numbers.

A node's number is its label where that is a whole number, and else a number made of it, which is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b

import numpy as np

from ...errors import DataError
from ...terms import Array
from .wire import Wire

MOST = 1 << 62


def numbers_of(labels: Sequence[Hashable], wire: Wire) -> Array:
    """The numbers of some labels, int64: they themselves where all parts have non-negative whole numbers."""
    whole = all(isinstance(label, (int, np.integer)) and 0 <= int(label) < MOST for label in labels)
    if not wire.largest(np.array([0.0 if whole else 1.0]))[0]:
        return np.array([int(label) for label in labels], dtype=np.int64)  # pyright: ignore[reportArgumentType]
    return np.array([_number(label) for label in labels], dtype=np.int64)


def _number(label: Hashable) -> int:
    text = f"{type(label).__name__}:{label!r}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % MOST


def owners_of(own: Array, mine: Sequence[Hashable], others: Array, names: Sequence[Hashable], wire: Wire) -> Array:
    """Which part has each of the ``others``, (k,). ``mine`` and ``names`` are the labels of ``own`` and ``others``, by
    which errors name them.

    `DataError` where a node is claimed by two parts, or one at the end of an edge by none.
    """
    given, givers = _to_keepers(own, wire)
    order = np.lexsort((givers, given))
    claims, senders = given[order], givers[order]
    last = np.append(claims[1:] != claims[:-1], True)[: len(claims)]
    rival = _back(own, senders[last][np.searchsorted(claims[last], given)], givers, wire)  # of all who claim, the last
    if (rival != wire.me).any():
        k = int(np.flatnonzero(rival != wire.me)[0])
        raise DataError(
            f"the node {mine[k]!r} belongs to part {wire.me} and to part {rival[k]}; a node and its samples belong to "
            "one site"
        )
    asked, askers = _to_keepers(others, wire)
    place = np.searchsorted(claims, asked)
    place[place == len(claims)] = 0
    found = np.full(len(asked), -1)
    known = claims[place] == asked if len(claims) else np.zeros(len(asked), dtype=bool)
    found[known] = senders[place[known]]
    out = _back(others, found, askers, wire)
    if (out < 0).any():
        label = names[int(np.flatnonzero(out < 0)[0])]
        raise DataError(f"the node {label!r} is at an edge of part {wire.me}, and no part has it; add it to a site")
    return out


def _to_keepers(numbers: Array, wire: Wire) -> tuple[Array, Array]:
    """The numbers that this part keeps, of those that all parts send, and who sent each."""
    keeper = numbers % wire.count
    got = everyone(wire, {k: numbers[keeper == k] for k in range(wire.count)})
    senders = np.concatenate([np.full(len(got[k]), k) for k in range(wire.count)])
    return np.concatenate([got[k] for k in range(wire.count)]), senders


def _back(numbers: Array, found: Array, askers: Array, wire: Wire) -> Array:
    """Answers, in the order of the questions."""
    got = everyone(wire, {k: found[askers == k] for k in range(wire.count)})
    keeper, out = numbers % wire.count, np.empty(len(numbers), dtype=np.int64)
    for k in range(wire.count):
        out[keeper == k] = got[k]
    return out


def everyone(wire: Wire, out: dict[int, Array]) -> dict[int, Array]:
    """Whole numbers from every part to every part, however many."""
    others = [k for k in range(wire.count) if k != wire.me]
    sizes = {k: np.empty(1) for k in others}
    wire.swap({k: np.array([float(len(out[k]))]) for k in others}, sizes)
    flat = {k: np.ascontiguousarray(out[k], dtype=np.int64).view(float) for k in others}  # their bits, as they are
    got = {k: np.empty(int(sizes[k][0])) for k in others}
    wire.swap(flat, got)
    return {k: out[k].astype(np.int64) if k == wire.me else got[k].view(np.int64) for k in range(wire.count)}
