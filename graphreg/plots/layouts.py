"""Places of the nodes of a graph, and the drawing of its edges, nodes and labels."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import picture, visible
from ..base.messages import missing_entries, shown
from ..errors import ModelError
from ..terms import Array

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes

    Positions = Mapping[Hashable, tuple[float, float]] | pd.DataFrame | None

Pair = tuple[int, int]  # numbers of nodes
MOST_GROUPS = 10  # beyond so many, none has an entry in the legend
MOST_LABELS = 40  # nodes whose labels are still legible
FONT = 8.0  # size of labels, in points
LONGEST_INSIDE = 2  # characters of a label that fit inside a node
INSIDE = 11.0  # points that a node is wide at least where they do
LEAST = 5.0  # points that a node is wide, however close others lie
THINNER = 60  # nodes from which on lines become thinner
MOST_LENGTHS = 100  # nodes of a part whose lengths along edges are those of the picture
MARKS = "oD^vphX<>P*"  # of groups of nodes, 11 beside 10 colours; squares are latent nodes
NO_EDGES = np.zeros((0, 2), dtype=int)
DARK = 0.5  # luminance of a colour below which text on it is white


def places(labels: Sequence[Hashable], pairs: Iterable[Pair], positions: Positions) -> Array:
    """The places of nodes, (n, 2): as given; as the cells of a grid, where all labels are pairs (row, column); or by
    the lengths of paths along pairs of their numbers."""
    import networkx as nx

    if positions is not None:
        return given_places(positions, labels)
    cells = cells_of(labels)
    if cells is not None:
        return np.stack([cells[:, 1], -cells[:, 0]], axis=1).astype(float)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(labels)))
    graph.add_edges_from(pairs)
    return _laid_out(graph)


def given_places(positions: Any, labels: Sequence[Hashable], latent: int = 0, ends: Array = NO_EDGES) -> Array:
    """The positions (n, 2) that the user gave, latent nodes (the last ones) amid their neighbours along edges (m, 2).

    Returns
    -------
    A pair (x, y) for each label.

    Raises
    ------
    ModelError
        For a node without a position, and for a position that is no pair of finite numbers.
    """
    positions = _by_label(positions)
    users = labels[: len(labels) - latent]
    for said in missing_entries("positions", positions, users):
        raise ModelError(f"{said}; give it a pair (x, y), or leave positions out")
    place = np.full((len(labels), 2), np.nan)
    for i, label in enumerate(users):
        place[i] = _pair(positions[label], label)
    for i in range(len(users), len(labels)):  # those of lower levels come first
        near = place[ends[(ends == i).any(axis=1)].sum(axis=1) - i]
        near = near[np.isfinite(near).all(axis=1)]
        place[i] = near.mean(axis=0) if len(near) else np.nanmean(place, axis=0)
    return place


def _by_label(positions: Any) -> Mapping[Any, Any]:
    """The positions of nodes, by label: a mapping as it is; of a frame of pandas the first two columns."""
    if hasattr(positions, "iterrows"):
        return {label: tuple(row)[:2] for label, row in positions.iterrows()}
    if not isinstance(positions, Mapping):
        raise ModelError(f"positions must be a mapping of nodes to pairs (x, y), or a frame, got {shown(positions)}")
    return positions


def _pair(value: Any, label: Hashable) -> Array:
    try:
        pair = np.array(value, dtype=float)
    except (TypeError, ValueError):
        pair = np.zeros(0)
    if pair.shape != (2,) or not np.isfinite(pair).all():
        raise ModelError(f"the position of the node {label!r} must be a pair (x, y) of numbers, got {shown(value)}")
    return pair


def cells_of(labels: Sequence[Hashable]) -> Array | None:
    """The rows and columns (n, 2) of the nodes of a grid; None where labels are no pairs of whole numbers."""
    if not labels or not all(
        isinstance(each, tuple) and len(each) == 2 and all(isinstance(x, (int, np.integer)) for x in each)
        for each in labels
    ):
        return None
    return np.array(labels, dtype=int)


def _laid_out(graph: nx.Graph[int]) -> Array:
    """Each part by Kamada and Kawai (1989), large ones by springs, the largest first, side by side and in rows."""
    import networkx as nx

    parts = sorted(map(sorted, nx.connected_components(graph)), key=len, reverse=True)
    drawn: list[Array] = []
    for part in parts:
        own = graph.subgraph(part)
        at = nx.kamada_kawai_layout(own) if len(part) <= MOST_LENGTHS else nx.spring_layout(own, seed=0)
        place = len(part) ** 0.5 * np.array([at[i] for i in part])
        drawn.append(place - place.min(axis=0))
    sizes = np.array([place.max(axis=0) + 1.0 for place in drawn]).reshape(-1, 2)
    right = max(sizes.prod(axis=1).sum() ** 0.5, sizes[:, 0].max(initial=0.0))
    found, left, top, row = np.zeros((len(graph), 2)), 0.0, 0.0, 0.0
    for part, place, (width, height) in zip(parts, drawn, sizes, strict=True):
        if left + width > right + 1e-9:
            left, top, row = 0.0, top - row, 0.0
        found[part] = place + np.array([left, top - height])
        left, row = left + width, max(row, height)
    return found


def draw_links(axes: Axes, ends: Array, name: str, style: Any, colour: str, width: float) -> None:
    """Lines between pairs of points (m, 2, 2), with one entry in the legend; nothing where there are none."""
    if not len(ends):
        return
    collections = importlib.import_module("matplotlib.collections")
    lines = collections.LineCollection(list(ends), linestyles=[style], colors=colour, linewidths=width, zorder=1)
    axes.add_collection(lines)
    axes.plot([], [], linestyle=style, color=colour, linewidth=max(width, 1.2), label=name)


def luminance(colours: Any) -> Array:
    """The luminance of colours (..., 3 or 4), from 0 to 1."""
    return np.asarray(colours, dtype=float)[..., :3] @ np.array([0.299, 0.587, 0.114])


def area_of(n: int) -> float:
    """The area of a node in square points, of n."""
    return float(np.clip(12000.0 / max(n, 1), 7.0, 260.0))


def thinned(width: float, n: int) -> float:
    """The width of a line in a graph of n nodes."""
    return max(width * min(1.0, (THINNER / max(n, 1)) ** 0.5), 0.6)


def draw_group(axes: Axes, place: Array, rank: int | None, area: float, label: str | None) -> None:
    """The nodes of a group: colour and marker by its rank; small and grey without one."""
    colour, mark = ("0.7", "o") if rank is None else (f"C{rank % 10}", MARKS[rank % len(MARKS)])
    style: dict[str, Any] = {
        "color": colour,
        "edgecolors": "white",
        "linewidths": min(0.8, area / 40.0),
        "marker": mark,
    }
    axes.scatter(*place.T, s=area if rank is not None else 0.6 * area, zorder=2, **style)
    if label is not None:
        axes.scatter([], [], s=float(np.clip(area, 40.0, 90.0)), label=label, **style)


def write_labels(axes: Axes, labels: Sequence[Hashable], place: Array, ranks: Sequence[int | None]) -> None:
    """Short labels inside the nodes of groups, so that they can be read on the colours of these; long ones beside
    them, shortened. None where there are too many to be read. Called when all else is there: where nodes come to lie
    close they are made smaller, and labels are put where least is hidden."""
    colours, effects = map(importlib.import_module, ("matplotlib.colors", "matplotlib.patheffects"))
    figure: Any = axes.get_figure(root=True)
    figure.draw_without_rendering()  # which lays out the axes
    at = axes.transData.transform(place) * 72.0 / figure.dpi
    wide = _shrunk(axes, at)
    if len(labels) > MOST_LABELS:
        return
    inside = [len(visible(label)) <= LONGEST_INSIDE and wide >= INSIDE for label in labels]
    lengths = [0 if within else len(picture(label)) for label, within in zip(labels, inside, strict=True)]
    sides = _sides(lengths, at, 0.5 * wide)
    for i, (label, within, (x, y)) in enumerate(zip(labels, inside, sides, strict=True)):
        rank = ranks[i] if i < len(ranks) else None
        own = "0.7" if rank is None else f"C{rank % 10}"
        dark = bool(luminance(colours.to_rgb(own)) < DARK)
        axes.annotate(
            picture(label),
            (place[i][0], place[i][1]),
            xytext=(x, y),
            textcoords="offset points",
            ha={0: "center", 1: "left", -1: "right"}[int(np.sign(x))],
            va={0: "center", 1: "bottom", -1: "top"}[int(np.sign(y))],
            fontsize=FONT,
            color="white" if within and dark else "black",
            path_effects=[effects.withStroke(linewidth=2.0, foreground=own if within else "white")],
            zorder=5,
        )


def _shrunk(axes: Axes, at: Array) -> float:
    """The width of nodes at these places, in points, after which few of them touch: they are made smaller for it."""
    wide = area_of(len(at)) ** 0.5
    if len(at) > 1:
        apart: Any = importlib.import_module("scipy.spatial").cKDTree(at).query(at, k=2)[0][:, 1]
        smaller = min(1.0, max(0.75 * float(np.quantile(apart, 0.1)), LEAST) / wide)
        collections: list[Any] = list(axes.collections)
        for drawn in collections:
            if hasattr(drawn, "set_sizes") and len(drawn.get_offsets()):
                drawn.set_sizes(drawn.get_sizes() * smaller**2)
        wide *= smaller
    return wide


def _sides(lengths: Sequence[int], at: Array, away: float) -> list[tuple[float, float]]:
    """Where labels of so many letters begin, in points from their nodes: above, below or beside these, where they hide
    the least of nodes and of the labels before them; within the node where there is none to write outside."""
    taken, sides = [np.array([x - away, y - away, x + away, y + away]) for x, y in at], list[tuple[float, float]]()
    for (x, y), count in zip(at, lengths, strict=True):
        width, best = 0.6 * FONT * count, (np.inf, (0.0, 0.0), np.zeros(4))
        for a, b in ((0, 1), (0, -1), (1, 0), (-1, 0)) if count else ():
            left, low = x + a * (away + 2.0) + 0.5 * (a - 1) * width, y + b * (away + 2.0) + 0.5 * (b - 1) * FONT
            box = np.array([left, low, left + width, low + FONT])
            both = np.minimum(box[2:], np.array(taken)[:, 2:]) - np.maximum(box[:2], np.array(taken)[:, :2])
            hidden = float(np.maximum(both, 0.0).prod(axis=1).sum())
            best = min(best, (hidden, (a * (away + 2.0), b * (away + 2.0)), box), key=lambda each: each[0])
        taken.append(best[2])
        sides.append(best[1])
    return sides
