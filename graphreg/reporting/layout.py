"""Where nodes are drawn that have no positions: each component by itself, the same way every time."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np

from ..inputs import components_of
from ..terms import Array
from .outlines import WIDTH

SMALL = 120  # nodes of a component up to which distances on the graph are drawn as they are (Kamada and Kawai)
ROUNDS = 300  # of Fruchterman and Reingold's forces, in larger ones
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
    """A connected graph in the unit square."""
    import igraph

    if n == 1:
        return np.full((1, 2), 0.5)
    graph = igraph.Graph(n, ends.tolist()).simplify()
    source = random.Random(0)
    igraph.set_random_number_generator(source)
    try:
        begin = [[math.cos(2 * math.pi * k / n), math.sin(2 * math.pi * k / n)] for k in range(n)]
        if n <= SMALL:
            found = graph.layout_kamada_kawai(maxiter=50 * n, seed=begin)
        else:
            found = graph.layout_fruchterman_reingold(niter=ROUNDS, seed=_spectral(n, ends), grid="auto")
    finally:
        igraph.set_random_number_generator(random)  # igraph's own choice, see its manual
    place = np.array(found.coords)
    place = place - place.mean(axis=0)
    place = place @ np.linalg.svd(place, full_matrices=False)[2].T  # along its principal axes
    return (place - place.min(axis=0)) / max(float(np.ptp(place, axis=0).max()), 1e-300)


def _spectral(n: int, ends: Array) -> list[list[float]]:
    """The two slowest vibrations of the graph: a start from which forces unfold no large graph wrongly."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import lobpcg

    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T
    adjacency = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    scaling = sp.diags_array(1.0 / np.sqrt(degree))
    laplacian = sp.eye_array(n, format="csr") - scaling @ adjacency @ scaling
    rng = np.random.default_rng(0)
    constant = np.sqrt(degree)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not accurate: it is a start
        _, vectors = lobpcg(laplacian, rng.standard_normal((n, 2)), Y=constant, largest=False, maxiter=60, tol=1e-4)
    found = np.asarray(vectors) / np.sqrt(degree)[:, None]
    found = found / np.maximum(np.abs(found).max(axis=0), 1e-300) * math.sqrt(n)
    return (found + 1e-3 * rng.standard_normal((n, 2))).tolist()


def fitted(place: Array) -> tuple[Array, int]:
    """The places in whole units of the picture, and its height."""
    low = place.min(axis=0)
    span = np.ptp(place, axis=0)
    unit = (WIDTH - 2 * MARGIN) / max(float(span[0]), 1.5 * float(span[1]), 1e-300)
    offset = MARGIN + (WIDTH - 2 * MARGIN - span[0] * unit) / 2
    height = max(int(span[1] * unit) + 2 * MARGIN, 3 * MARGIN)
    shift = np.array([offset, (height - span[1] * unit) / 2])
    return np.rint((place - low) * unit + shift).astype(int), height
