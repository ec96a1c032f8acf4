"""A picture of an edge selection: which edges were kept and which were removed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..graph import Graph
from ._writing import count
from .plots import LONGEST_INSIDE, MOST_LABELS, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import EdgeSelection

DRAWN = {True: ("kept", "-", "0.25", 1.6), False: ("removed", "--", "tab:red", 0.9)}


def plot_selection(
    selection: EdgeSelection, positions: Mapping[Hashable, tuple[float, float]] | None = None, ax: Axes | None = None
) -> Axes:
    """The tested edges, kept ones solid and removed ones dashed; nodes are coloured by component of the reduced graph.

    Parameters
    ----------
    selection : EdgeSelection
    positions : mapping, optional
        A pair (x, y) per node label; by default a spring layout (seed 0) of the kept edges.
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
    import networkx as nx

    graph = Graph.of(selection.graph)
    place = nx.spring_layout(graph.to_networkx(), seed=0) if positions is None else positions
    missing = next((label for label in graph.labels if label not in place), None)
    if missing is not None:
        raise ModelError(f"positions have no entry for the node {missing!r}")
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
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return axes


def _draw_nodes(axes: Axes, graph: Graph, place: Mapping[Hashable, Any]) -> None:
    points = np.array([place[label] for label in graph.labels], dtype=float)
    colours = [f"C{number % 10}" for number in graph.components().tolist()]
    axes.scatter(*points.T, s=float(np.clip(12000.0 / graph.n_nodes, 15.0, 260.0)), c=colours, zorder=2)
    if graph.n_nodes > MOST_LABELS:
        return
    for label, point in zip(graph.labels, points, strict=True):
        inside = len(str(label)) <= LONGEST_INSIDE
        style: dict[str, Any] = {"ha": "center", "fontsize": 8, "textcoords": "offset points", "zorder": 3}
        style |= {"va": "center", "color": "white"} if inside else {"va": "bottom", "color": "black"}
        axes.annotate(str(label), (point[0], point[1]), xytext=(0, 0 if inside else 9), **style)
