"""A picture of an edge selection: which edges were kept and which were removed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..graph import Graph
from ..messages import gaps
from ._writing import count
from .plots import MOST_LABELS, axes_for, spring, write_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import EdgeSelection

REMOVED = 0.1  # the spring of a removed edge, where that of a kept one is 1
DRAWN = {True: ("kept", "-", "0.25", 1.6), False: ("removed", "--", "tab:red", 0.9)}


def plot_selection(
    selection: EdgeSelection, positions: Mapping[Hashable, tuple[float, float]] | None = None, ax: Axes | None = None
) -> Axes:
    """The tested edges, kept ones solid and removed ones dashed; nodes are coloured by component of the reduced graph.

    Parameters
    ----------
    selection : EdgeSelection
    positions : mapping, optional
        A pair (x, y) per node label; by default a spring layout (seed 0), with weak springs for removed edges.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModelError
        Where matplotlib is missing, or a node has no position.
    """
    graph = Graph.of(selection.graph)
    place = _places(graph, selection) if positions is None else positions
    for said in gaps("positions", place, graph.labels):
        raise ModelError(said)
    axes = axes_for(ax, (8.0, 6.0))
    tests: Any = selection.tests
    for kept, (name, style, colour, width) in DRAWN.items():
        rows = tests[tests["keep"] == kept]
        for k, ends in enumerate(zip(rows["tail"], rows["head"], strict=True)):
            x, y = np.array([place[label] for label in ends]).T
            label = f"{name} ({len(rows)})" if k == 0 else None
            axes.plot(x, y, style, color=colour, linewidth=width, zorder=1, label=label)
    _draw_nodes(axes, graph, place)
    groups = int(graph.components().max()) + 1
    axes.set_title(f"{count(graph.n_nodes, 'node')} in {count(groups, 'component')} of the kept edges")
    axes.set_axis_off()
    axes.margins(0.12)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)
    return axes


def _places(graph: Graph, selection: EdgeSelection) -> dict[Hashable, Any]:
    """A layout in which components of the kept edges lie apart, but not so far that nothing else can be seen."""
    import networkx as nx

    index = graph.index
    springs: nx.Graph[int] = nx.Graph()
    springs.add_nodes_from(range(graph.n_nodes))
    springs.add_edges_from(((index[a], index[b]) for a, b in selection.removed), weight=REMOVED)
    springs.add_edges_from(zip(graph.tail.tolist(), graph.head.tolist(), strict=True), weight=1.0)
    return dict(zip(graph.labels, spring(springs), strict=True))


def _draw_nodes(axes: Axes, graph: Graph, place: Mapping[Hashable, Any]) -> None:
    points = np.array([place[label] for label in graph.labels], dtype=float)
    colours = [f"C{number % 10}" for number in graph.components().tolist()]
    axes.scatter(*points.T, s=float(np.clip(12000.0 / graph.n_nodes, 15.0, 260.0)), c=colours, zorder=2)
    if graph.n_nodes <= MOST_LABELS:
        write_labels(axes, graph.labels, points, graph.n_nodes)
