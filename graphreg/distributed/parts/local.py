"""A part that nobody has dealt out: the problem of one site, put in the order that all sites share.

No part knows who has which node: each keeps a share of the answers, by the nodes' numbers. A node's number is its label
where that is a whole number, and else a number made of it, which is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from typing import Any, cast

import numpy as np

from ...errors import DataError, MethodError
from ...form import EdgeBlock, Form, SampleBlock
from ...network import WholeGraph, arcs_of
from ...terms import AbstractEdges, Array, Layout, Matrix, Space
from .part import Part, part_of
from .wire import Wire, digest, everyone

OCTAVES = 64


def local_part(form: Form, own: Collection[Hashable], wire: Wire) -> tuple[Part, Array]:
    """The part that the form of a site is, and the part of each of its nodes.

    The site has the samples of its ``own`` nodes, and every edge and row that touches one; the other ends of these are
    nodes of its form, without samples. Nodes are put in the order of their numbers, edges in that of their ends, and
    rows in that of their owners and digests: so sums at a node do not depend on where it is.
    """
    _check(form, own)
    labels = list(form.labels)
    numbers = numbers_of(labels, wire)
    mine = np.array([label in own for label in labels], dtype=bool)
    order = np.argsort(numbers, kind="stable")
    numbers, mine, labels = numbers[order], mine[order], [labels[i] for i in order.tolist()]
    same = np.flatnonzero(numbers[1:] == numbers[:-1])
    if len(same):
        raise DataError(f"the nodes {labels[int(same[0])]!r} and {labels[int(same[0]) + 1]!r} cannot be told apart")
    owner = np.full(form.n, wire.me)
    near, far = ([labels[i] for i in np.flatnonzero(mask).tolist()] for mask in (mine, ~mine))
    owner[~mine] = owners_of(numbers[mine], near, numbers[~mine], far, wire)
    place = np.empty(form.n, dtype=np.int64)
    place[order] = np.arange(form.n)
    edges = tuple(_sorted(edge, place, numbers, mine) for edge in _by_length(form))
    counted = sum(np.count_nonzero(mine[edge.map.owner]) * form.width(edge) for edge in edges)
    n, entries = map(int, wire.total(np.array([mine.sum(), counted], dtype=float)))
    space = Space({label: k for k, label in enumerate(labels)}, form.space.coordinates, form.space.penalised)
    known = Form(space, (), (), edges)
    _check_alike(known, numbers, owner, wire)
    part = part_of(known, arcs_of(known), mine)
    ids = part.whole.ids
    place[order[ids]] = np.arange(len(ids))
    samples = tuple(_placed(block, place, len(ids), wire) for block in form.samples)
    whole = WholeGraph(n, n, numbers[ids], mine[ids], entries)
    every = tuple((k, np.arange(block.count)) for k, block in enumerate(samples))
    return Part(replace(part.form, samples=samples), whole, every, part.edges), owner[ids]


def _check(form: Form, own: Collection[Hashable]) -> None:
    if form.latent:
        raise MethodError("hierarchies and consensus have nodes of their own, which belong to no site")
    for block in form.beside:
        raise MethodError(
            f"{block.name} is a loss of rows, and bounds by sites know losses of nodes and penalties of rows so far: "
            "solve it with engine=gr.MPI(), which certifies what the processes send"
        )
    mine = np.array([label in own for label in form.labels], dtype=bool)
    if missing := [label for label in own if label not in form.space.index]:
        raise DataError(f"the node {missing[0]!r} is the site's own, and no sample and no edge of the site has it")
    for block in form.samples:
        far = block.node[~mine[block.node]]
        if len(far):
            raise DataError(f"there are samples of the node {form.labels[far[0]]!r}, which is not the site's own")
    for edge in () if form.unlike_edges else form.between:  # rows are made of edges further away, too
        far = edge.map.within(~mine)
        if far.any():
            e = int(np.argmax(far))
            ends = form.labels[edge.tail[e]], form.labels[edge.head[e]]
            raise DataError(f"the edge between {ends[0]!r} and {ends[1]!r} touches no node of the site's own")


def _placed(block: SampleBlock, place: Array, n: int, wire: Wire) -> SampleBlock:
    """The block with its nodes in their new places among n, multiplied as with the samples of all sites."""
    return replace(block, map=block.map.moved(place, n).changed(given_layout=_layout(block, wire)))


def _layout(block: SampleBlock, wire: Wire) -> Layout:
    """The layout of the samples of all sites."""
    counts = np.bincount(block.node)
    counts = counts[counts > 0]
    most = np.zeros(OCTAVES)
    np.maximum.at(most, np.ceil(np.log2(counts)).astype(int), counts)
    most = wire.largest(most)
    least = -wire.largest(np.array([-float(counts.min(initial=np.iinfo(np.int64).max))]))[0]
    every = np.append(most[most > 0.0], least)
    size = 0 if block.X is None else block.X.size * block.width
    return Layout.of(every.astype(int), int(wire.total(np.array([float(size)]))[0]))


def _by_length(form: Form) -> Iterator[EdgeBlock]:
    """The blocks, of rows of one term the shorter ones first: at a site they come as their groups do."""
    for _, each in groupby(form.edges, lambda edge: edge.name):
        yield from sorted(each, key=form.width)


def _sorted(edge: EdgeBlock, place: Array, numbers: Array, mine: Array) -> EdgeBlock:
    """The block with its nodes in their new places, its edges from the first of their ends to the second and in the
    order of these: penalties of edges between nodes are even. What touches no node of a mask is left out."""
    moved = edge.moved(place, edge.n)
    far = moved.map.within(~mine)
    moved = moved.part(np.flatnonzero(~far)) if far.any() else moved
    if edge.map.edges is None:
        return moved.part(np.lexsort((digests(moved, numbers), moved.map.owner)))
    ends = np.sort(moved.ends, axis=0)
    order = np.lexsort(ends[::-1])
    part, ends = moved.part(order), ends[:, order]
    turned = None if part.center is None else np.where((part.tail != ends[0])[:, None], -part.center, part.center)
    return replace(part, map=part.edges.between(ends), center=turned)


def _check_alike(form: Form, numbers: Array, owner: Array, wire: Wire) -> None:
    """Every two sites must have the same edges and rows between them, with the same penalties, and all the same
    features."""
    said = digest(repr(form.space.coordinates).encode())
    counts, contents = [0] * wire.count, [b""] * wire.count
    for edge in form.edges:
        for k in range(wire.count):
            some = np.flatnonzero(~edge.map.within(owner != k) & (edge.map.noun != "node") & (k != wire.me))
            if len(some):
                counts[k] += len(some)
                words = f"{edge.name} {edge.penalty!r} {edge.map.columns(form.d).tolist()}"
                contents[k] += words.encode() + digests(edge.part(some), numbers).tobytes()
    mine = [np.array([said, counts[k], digest(contents[k])]) for k in range(wire.count)]
    for k, theirs in everyone(wire, dict(enumerate(mine))).items():
        if theirs[0] != said:
            raise DataError(
                f"part {wire.me} has the features {form.space.names}, and part {k} has others; every site must read "
                "the same model, with the same features and classes"
            )
        if (theirs != mine[k]).any():
            raise DataError(
                f"part {wire.me} and part {k} do not have the same edges between them ({counts[k]} and {theirs[1]}); "
                "both sites must have every edge and row between their nodes, with one weight and one penalty; of rows "
                "of order 2 or more all edges that these are made of, nodes and edges in one order"
            )


MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of Steele, Lea and Flood's SplitMix, 2014


def _mixed(x: Array) -> Array:
    """Numbers of 64 bits, each as good as any other, of numbers of 64 bits."""
    x = np.ascontiguousarray(x).view(np.uint64) + np.uint64(MIX[0])
    x = (x ^ (x >> 30)) * np.uint64(MIX[1])
    x = (x ^ (x >> 27)) * np.uint64(MIX[2])
    return x ^ (x >> 31)


def digests(block: EdgeBlock, numbers: Array) -> Array:
    """Of each row a number that no other has, as far as anybody knows: made of its nodes, by their ``numbers``, its
    owner, coefficients, weight and center, (m,)."""
    K: Any = cast(AbstractEdges | Matrix, block.map).K
    k = K.shape[0] // max(block.count, 1)
    line, column = K.tocoo().coords
    node, j = np.divmod(column, K.shape[1] // block.n)
    place = _mixed(j.astype(np.int64) * k + line % max(k, 1))
    each = np.append(np.uint64(0), np.cumsum(_mixed(_mixed(_mixed(numbers[node]) ^ place) ^ _mixed(K.data))))
    begin = K.indptr[:: max(k, 1)]
    out = _mixed(each[begin[1:]] - each[begin[:-1]])
    for column in (numbers[block.map.owner], block.weight, *(() if block.center is None else block.center.T)):
        out = _mixed(_mixed(out) ^ _mixed(column))
    return out


# ---- who has which node ----------------------------------------------------------------------------------------------
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
    """The part of each of the ``others``, (k,). ``mine`` and ``names`` are the labels of ``own`` and ``others``, by
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
