"""A picture of an edge selection: which edges were kept and which were removed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..form.notation import count
from ..inputs import Graph
from .plots import axes_for, draw_links, framed, placed, write_labels

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
    index = graph.index
    kept, removed = zip(graph.tail.tolist(), graph.head.tolist(), strict=True), selection.removed
    place = placed(graph.labels, kept, positions, [(index[a], index[b]) for a, b in removed])
    axes = axes_for(ax, (8.0, 6.0))
    tests: Any = selection.tests
    for keep, (name, style, colour, width) in DRAWN.items():
        rows = tests[tests["keep"] == keep]
        ends = place[[[index[a], index[b]] for a, b in zip(rows["tail"], rows["head"], strict=True)]]
        draw_links(axes, ends, f"{name} ({len(rows)})", style, colour, width)
    component = graph.components()
    colours = [f"C{number % 10}" for number in component.tolist()]
    axes.scatter(*place.T, s=float(np.clip(12000.0 / graph.n_nodes, 15.0, 260.0)), c=colours, zorder=2)
    write_labels(axes, graph.labels, place, graph.n_nodes)
    groups = count(int(component.max()) + 1, "component")
    title = f"{count(graph.n_nodes, 'node')} in {groups} of the kept edges"
    return framed(axes, title, 0.12, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)
