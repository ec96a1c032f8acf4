"""Tests of edges: each statistic beside its threshold. matplotlib is imported when it is drawn."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import LONGEST, picture, visible
from ..base.messages import count
from ..errors import ModelError
from ..inputs import Graph
from ..terms import name_of
from .canvas import axes_for, described, finished, framed
from .layouts import area_of, draw_group, draw_links, places, thinned, write_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..base.tables import Table
    from ..inference import ConfidenceRegion, EdgeSelection
    from .layouts import Positions

MOST_NAMES = 24  # edges that are named
LEAST = 1e-4  # of a threshold: smaller statistics are drawn here on the logarithmic axis
TESTS_DRAWN = {True: ("kept", "o", "white", "0.3"), False: ("removed", "X", "tab:red", "0.2")}


def plot_tests(tests: Table | EdgeSelection, ax: Axes | None = None) -> Axes:
    """The statistic of every tested edge, as a multiple of its own threshold, from the largest to the smallest.

    Beyond 1 equality of the two ends is rejected, and the edge is removed.

    Parameters
    ----------
    tests : Table of `graphreg.inference.edge_tests`, or an EdgeSelection
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Edges that were not tested are left out.

    Raises
    ------
    ModelError
        Where no edge was tested, or matplotlib is missing.

    Examples
    --------
    >>> rain = gr.NodeData.from_frame(frame, node="site", target="level", features=["rain"])
    >>> tests = gr.inference.edge_tests(gr.SquaredLoss(rain), graph)
    >>> gr.plots.plot_tests(tests).get_title()
    '3 edges: 2 kept, 1 removed'
    """
    table: Any = getattr(tests, "tests", tests)
    ratio = (table["statistic"] / table["threshold"]).to_numpy(dtype=float)
    order = np.argsort(-ratio, kind="stable")[: int(np.isfinite(ratio).sum())]
    if not len(order):
        raise ModelError("there is nothing to draw: no edge was tested")
    rows, ratio = table.iloc[order], np.maximum(ratio[order], LEAST)
    few, place, keep = len(order) <= MOST_NAMES, np.arange(len(order)), rows["keep"].to_numpy(dtype=bool)
    axes = axes_for(ax, (7.5, 1.8 + 0.24 * len(order) if few else 4.5))
    for kept, (name, mark, face, edge) in TESTS_DRAWN.items():
        chosen = place[keep == kept]
        at = (ratio[chosen], chosen) if few else (chosen + 1, ratio[chosen])
        style: dict[str, Any] = {"color": edge, "markerfacecolor": face, "markersize": 7 if few else 3}
        if len(chosen):
            axes.plot(*at, mark, label=f"{name} ({len(chosen)})", **style)
    line: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.0, "label": "threshold"}
    if few:
        axes.axvline(1.0, **line)
        names = [f"{picture(a)} to {picture(b)}" for a, b in zip(rows["tail"], rows["head"], strict=True)]
        axes.set_yticks(place, names, fontsize=8)
        axes.set_ylim(len(order) - 0.4, -0.6)
        described(axes, "statistic / threshold", logs="x", grid="0.92")
    else:
        axes.axhline(1.0, **line)
        described(axes, "edges, from the largest statistic to the smallest", "statistic / threshold", "y", "0.92")
    return finished(axes, f"{count(len(order), 'edge')}: {int(keep.sum())} kept, {int((~keep).sum())} removed")


# ---- a picture of an edge selection: which edges were kept and which were removed ------------------------------------
EDGES_DRAWN = {True: ("kept", "-", "0.5", 1.6), False: ("removed", "--", "tab:red", 1.2)}


def plot_selection(selection: EdgeSelection, positions: Positions = None, ax: Axes | None = None) -> Axes:
    """The tested edges, kept ones solid and removed ones dashed; colours and markers of the nodes are those of their
    components in the reduced graph.

    Parameters
    ----------
    selection : EdgeSelection
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; by default the cells of a grid, where all labels are pairs (row, column), and a
        layout by the lengths of paths elsewhere.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        Where matplotlib is missing, or a node has no position.

    Examples
    --------
    >>> found = gr.inference.select_edges(gr.SquaredLoss(many), graph)
    >>> len(gr.plots.plot_selection(found).texts)
    4
    """
    graph = Graph.of(selection.graph)
    index = graph.index
    kept, removed = zip(graph.tail.tolist(), graph.head.tolist(), strict=True), selection.removed
    place = places(graph.labels, [*kept, *((index[a], index[b]) for a, b in removed)], positions)
    axes = axes_for(ax, (8.0, 6.0))
    tests: Any = selection.tests
    for keep, (name, style, colour, width) in EDGES_DRAWN.items():
        rows = tests[tests["keep"] == keep]
        ends = place[[[index[a], index[b]] for a, b in zip(rows["tail"], rows["head"], strict=True)]]
        draw_links(axes, ends, f"{name} ({len(rows)})", style, colour, thinned(width, graph.n_nodes) if keep else width)
    component = graph.components()
    for number in range(int(component.max()) + 1):
        draw_group(axes, place[np.flatnonzero(component == number)], number, area_of(graph.n_nodes), None)
    groups = count(int(component.max()) + 1, "component")
    framed(axes, f"{count(graph.n_nodes, 'node')} in {groups} of the kept edges", 0.12)
    write_labels(axes, graph.labels, place, component.tolist())
    return axes


# ---- a picture of the joint confidence region of two coefficients. matplotlib is imported when one is drawn ----------
def plot_region(
    region: ConfidenceRegion, a: Hashable, b: Hashable, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """The joint region of two coefficients at a level (an ellipse), and the interval of each by itself (a box).

    Parameters
    ----------
    region : ConfidenceRegion
    a, b : names of coefficients, along the axes
    level : float
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    DataError
        For coefficients that the region does not have, or twice the same.

    Examples
    --------
    >>> region = gr.inference.local_regions(problem)["a"]
    >>> gr.plots.plot_region(region, "rain", "temp").get_xlabel()
    'rain'
    """
    points, intervals = region.ellipse(a, b, level), region.intervals(level)
    axes = axes_for(ax, (6.0, 5.4))
    low, high = intervals["low"], intervals["high"]
    x, y = points.to_numpy().T
    (line,) = axes.plot(x, y, label=f"joint region, {100 * level:g}%")
    axes.fill(x, y, color=line.get_color(), alpha=0.15)
    corners = [low[a], high[a], high[a], low[a], low[a]], [low[b], low[b], high[b], high[b], low[b]]
    axes.plot(*corners, ":", color="0.4", linewidth=1.0, label=f"{100 * level:g}% interval of each by itself")
    axes.plot([region.estimate[a]], [region.estimate[b]], "o", color=line.get_color(), label="estimate")
    for at, inside, draw in ((0.0, axes.get_xlim(), axes.axvline), (0.0, axes.get_ylim(), axes.axhline)):
        if inside[0] <= at <= inside[1]:
            draw(at, color="0.7", linewidth=0.8, zorder=0)
    x_name = visible(name_of(a), LONGEST)  # pyright: ignore[reportArgumentType]  (a name, or a feature and a class)
    y_name = visible(name_of(b), LONGEST)  # pyright: ignore[reportArgumentType]
    described(axes, x_name, y_name)
    return finished(axes, region.title)
