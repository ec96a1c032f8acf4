"""Where a report draws its nodes: by a layout, or as outlines with few points.

Coordinates that may be degrees are drawn with north upwards, and as wide as they are at their middle latitude; those of
other files are taken as they are, with y downwards, as maps that are already projected have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..base.csgraph import dijkstra
from ..inputs import components_of
from ..plots import Outlines, Rings
from ..terms import Array

WIDTH = 1920  # of a picture, in its own units; coordinates are whole numbers of them
MOST_POINTS = 120_000  # of all outlines together


@dataclass(frozen=True)
class Drawn:
    """Outlines as SVG paths.

    Attributes
    ----------
    paths : list of str
        One per node.
    others : list of str
        Shapes that are no nodes.
    place : (n, 2)
        The middle of the largest part of each node's shape.
    height : int
    """

    paths: list[str]
    others: list[str]
    place: Array
    height: int


def drawn(given: Outlines) -> Drawn:
    """Outlines in the units of the picture."""
    shapes, n = [*given.own, *given.others], len(given.own)
    shapes, height = _fitted(shapes, given)
    step = 1
    rounded = [_rounded(rings, step) for rings in shapes]
    while sum(len(ring) for rings in rounded for ring in rings) > MOST_POINTS:
        step *= 2
        rounded = [_rounded(rings, step) for rings in shapes]
    paths = ["".join(map(_path, rings)) for rings in rounded]
    place = np.array([_middle(max(rings, key=lambda ring: abs(_area(ring)))) for rings in shapes[:n]])
    return Drawn(paths[:n], paths[n:], place, height)


# ---- how it is drawn -------------------------------------------------------------------------------------------------
def _fitted(shapes: list[Rings], given: Outlines) -> tuple[list[Rings], int]:
    """The rings of the shapes in the units of the picture, and its height."""
    points = np.concatenate([ring for rings in shapes for ring in rings])
    low, high = points.min(axis=0), points.max(axis=0)
    wide = np.cos(np.radians((low[1] + high[1]) / 2)) if given.degrees else 1.0
    stretch = np.array([wide, -1.0 if given.upwards else 1.0])
    corner = np.minimum(low * stretch, high * stretch)
    span = np.abs((high - low) * stretch)
    unit = (WIDTH - 40) / max(float(span[0]), float(span[1]) / 1.2, 1e-300)
    return [[(ring * stretch - corner) * unit + 20 for ring in rings] for rings in shapes], int(span[1] * unit) + 40


def _rounded(rings: list[Array], step: int) -> list[Array]:
    """Rings of whole multiples of the step, without points that say nothing; the largest stays in any case. Neighbours
    share their border still: a point is rounded alike for both."""
    kept: list[Array] = []
    for ring in rings:
        whole = np.rint(ring / step).astype(int) * step
        whole = whole[np.append(True, (np.diff(whole, axis=0) != 0).any(axis=1))]
        whole = whole[:-1] if len(whole) > 1 and (whole[0] == whole[-1]).all() else whole
        if len(whole) > 3:
            before, after = whole - np.roll(whole, 1, axis=0), np.roll(whole, -1, axis=0) - whole
            whole = whole[before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]]
        if len(whole) >= 3:
            kept.append(whole)
    if not kept:
        largest = max(rings, key=lambda ring: abs(_area(ring)))
        corner = np.rint(largest.mean(axis=0)).astype(int)
        kept.append(corner + np.array([[0, 0], [step, 0], [step, step], [0, step]]))
    return kept


def _path(ring: Array) -> str:
    steps = np.diff(ring, axis=0)
    return f"M{ring[0][0]},{ring[0][1]}l" + " ".join(f"{x},{y}" for x, y in steps.tolist()) + "z"


def _area(ring: Array) -> float:
    x, y = (ring - ring[0]).T
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2)


def _middle(ring: Array) -> Array:
    """The centroid of the area within."""
    area = _area(ring)
    if abs(area) < 1e-12:
        return ring.mean(axis=0)
    x, y = (ring - ring[0]).T
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    return ring[0] + np.array([((z + np.roll(z, -1)) * cross).sum() / (6 * area) for z in (x, y)])


# ---- places of nodes without positions: each component by itself, the same way every time ----------------------------
PIVOTS = 120  # nodes whose distances to all others are drawn as they are, as far as they can: in small graphs all
ROUNDS = 80  # of majorisation
MARGIN = 90


def drawn_places(n: int, ends: Array) -> Array:
    """A layout (n, 2) of a graph whose edges (m, 2) are pairs of node numbers: components side by side in rows, the
    largest first."""
    number = components_of(ends[:, 0], ends[:, 1], n)[1]
    sizes = np.bincount(number)
    order = np.argsort(-sizes, kind="stable")
    side = math.sqrt(1.5 * float(np.sum((np.sqrt(sizes) + 1.0) ** 2)))  # of the rows
    place, at, top, row = np.zeros((n, 2)), 0.0, 0.0, 0.0
    local = np.zeros(n, dtype=int)
    for component in order.tolist():
        nodes = np.flatnonzero(number == component)
        local[nodes] = np.arange(len(nodes))
        own = local[ends[number[ends[:, 0]] == component]]
        size = math.sqrt(len(nodes)) + 1.0  # its room, with a gap
        if at > 0 and at + size > side:
            at, top, row = 0.0, top + row, 0.0
        place[nodes] = _component(len(nodes), own) * (size - 1.0) + [at, top]
        at, row = at + size, max(row, size)
    return place


def _component(n: int, ends: Array) -> Array:
    """A connected graph in the unit square: the sum over pairs of (|x_i - x_j| - hops)^2 / hops^2 is made small by
    majorisation (Gansner, Koren, North 2004), from the multidimensional scaling of the pivots' distances."""
    import scipy.sparse as sp

    if n == 1:
        return np.full((1, 2), 0.5)
    graph = sp.csr_array((np.ones(len(ends)), ends.T), shape=(n, n))
    pivots, found, nearest = [0], list[Array](), np.full(n, np.inf)
    while len(found) < min(n, PIVOTS):  # the next one is the farthest from those that there are
        found.append(dijkstra(graph, directed=False, unweighted=True, indices=pivots[-1]))
        nearest = np.minimum(nearest, found[-1])
        pivots.append(int(np.argmax(nearest)))
    hops = np.stack(found)
    square = hops**2
    centred = square.mean(axis=1, keepdims=True) + square.mean(axis=0) - square - square.mean()
    slow = np.linalg.svd(centred, full_matrices=False)[2][:2].T
    place = 0.01 * np.random.default_rng(0).normal(size=(n, 2))  # twins have the same distances
    place[:, : slow.shape[1]] += slow * math.sqrt(n * float(hops.mean()))

    pivot, j = np.nonzero(hops)
    i, apart = np.array(pivots)[pivot], hops[pivot, j]
    if n > PIVOTS:  # the edges, and pairs of neighbours of one node, are drawn as well
        both = np.concatenate([ends, ends[:, ::-1]])
        node, other = both[np.argsort(both[:, 0], kind="stable")].T
        at = np.flatnonzero(node[1:] == node[:-1])
        i, j = np.concatenate([i, ends[:, 0], other[at]]), np.concatenate([j, ends[:, 1], other[at + 1]])
        apart = np.concatenate([apart, np.ones(len(ends)), np.full(len(at), 2.0)])
    place = _majorised(place, i, j, apart)
    place = place - place.mean(axis=0)
    place = place @ np.linalg.svd(place, full_matrices=False)[2].T  # along its principal axes
    return (place - place.min(axis=0)) / max(float(np.ptp(place, axis=0).max()), 1e-300)


def _majorised(place: Array, i: Array, j: Array, apart: Array) -> Array:
    """Places (n, 2) whose pairs (i, j) are about as far apart as they should be."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    pairs = np.arange(len(i))
    signs, rows = np.repeat([1.0, -1.0], len(i)), np.concatenate([pairs, pairs])
    difference = sp.csr_array((signs, (rows, np.concatenate([i, j]))), shape=(len(i), len(place)))
    weighted = sp.csr_array(difference[:, 1:].T @ sp.diags_array(apart**-2.0))
    system = splu(sp.csc_array(weighted @ difference[:, 1:]))
    for _ in range(ROUNDS):
        between = difference @ place
        length = np.maximum(np.hypot(*between.T), 1e-9)
        place = np.vstack([np.zeros(2), system.solve(weighted @ ((apart / length)[:, None] * between))])
    return place


def fitted(place: Array) -> tuple[Array, int]:
    """The places in whole units of the picture, and its height."""
    low = place.min(axis=0)
    span = np.ptp(place, axis=0)
    unit = (WIDTH - 2 * MARGIN) / max(float(span[0]), 1.5 * float(span[1]), 1e-300)
    offset = MARGIN + (WIDTH - 2 * MARGIN - span[0] * unit) / 2
    height = max(int(span[1] * unit) + 2 * MARGIN, 3 * MARGIN)
    shift = np.array([offset, (height - span[1] * unit) / 2])
    return np.rint((place - low) * unit + shift).astype(int), height
