"""Tests of edges: each statistic beside its threshold. matplotlib is imported when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..escaping import picture
from ..form.notation import count
from .canvas import axes_for, labelled, legend_below, log_scale, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import EdgeSelection
    from ..tables import Table

MOST_NAMES = 24  # edges that are named
LEAST = 1e-4  # of a threshold: smaller statistics are drawn here on the logarithmic axis
DRAWN = {True: ("kept", "o", "white", "0.3"), False: ("removed", "X", "tab:red", "0.2")}


def plot_tests(tests: Table | EdgeSelection, ax: Axes | None = None) -> Axes:
    """The statistic of every tested edge, as a multiple of its own threshold, from the largest to the smallest.

    Beyond 1 equality of the two ends is rejected, and the edge is removed.

    Parameters
    ----------
    tests : Table of `graphreg.inference.edge_tests`, or an EdgeSelection
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Edges to nodes without data are not tested, and left out.

    Returns
    -------
    matplotlib.axes.Axes

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
    for kept, (name, mark, face, edge) in DRAWN.items():
        chosen = place[keep == kept]
        at = (ratio[chosen], chosen) if few else (chosen + 1, ratio[chosen])
        style: dict[str, Any] = {"color": edge, "markerfacecolor": face, "markersize": 7 if few else 3}
        if len(chosen):
            axes.plot(*at, mark, label=f"{name} ({len(chosen)})", **style)
    line: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.0, "label": "threshold"}
    if few:
        axes.axvline(1.0, **line)
        log_scale(axes.xaxis)
        names = [f"{picture(a)} to {picture(b)}" for a, b in zip(rows["tail"], rows["head"], strict=True)]
        axes.set_yticks(place, names, fontsize=8)
        axes.set_ylim(len(order) - 0.4, -0.6)
        labelled(axes, "statistic / threshold")
    else:
        axes.axhline(1.0, **line)
        log_scale(axes.yaxis)
        labelled(axes, "edges, from the largest statistic to the smallest", "statistic / threshold")
    axes.grid(True, which="major", color="0.92")
    axes.set_axisbelow(True)
    titled(axes, f"{count(len(order), 'edge')}: {int(keep.sum())} kept, {int((~keep).sum())} removed")
    legend_below(axes)
    return axes
