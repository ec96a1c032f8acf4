"""A picture of an edge selection: which edges were kept and which were removed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..form.notation import count
from ..inputs import Graph
from .canvas import axes_for, framed
from .layouts import area_of, draw_group, draw_links, placed, thinned, write_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..inference import EdgeSelection

DRAWN = {True: ("kept", "-", "0.5", 1.6), False: ("removed", "--", "tab:red", 1.2)}


def plot_selection(
    selection: EdgeSelection,
    positions: Mapping[Hashable, tuple[float, float]] | pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The tested edges, kept ones solid and removed ones dashed; colours and markers of the nodes are those of their
    components in the reduced graph.

    Parameters
    ----------
    selection : EdgeSelection
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; by default the cells of a grid, where all labels are pairs (row, column), and a
        spring layout (seed 0) elsewhere, with weak springs for removed edges.
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
        draw_links(axes, ends, f"{name} ({len(rows)})", style, colour, thinned(width, graph.n_nodes) if keep else width)
    component = graph.components()
    for number in range(int(component.max()) + 1):
        draw_group(axes, place[np.flatnonzero(component == number)], number, area_of(graph.n_nodes), None)
    write_labels(axes, graph.labels, place, component.tolist())
    groups = count(int(component.max()) + 1, "component")
    title = f"{count(graph.n_nodes, 'node')} in {groups} of the kept edges"
    return framed(axes, title, 0.12)
