"""The flows of an answer beside the capacities of their edges. matplotlib is imported when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..escaping import picture
from ..form.notation import count
from ..running import Solution
from .canvas import HATCHES, axes_for, labelled, legend_below, look, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24  # edges that have a bar with their names each


def plot_flows(solution: Solution, ax: Axes | None = None) -> Axes:
    """How much of its capacity the flow of each edge uses, |u_e| / c_e: bars with the names of a few edges, the sorted
    loads of each term where edges are many.

    Only where all of the capacity is used may the ends of an edge differ: these edges are marked. The dual norm |u_e|
    is that of the penalty of the term. Terms whose flows nothing limits (squared penalties, constraints) are left out,
    and named in the title.

    Parameters
    ----------
    solution : Solution
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        Where no edge has a capacity, or matplotlib is missing.

    Examples
    --------
    >>> gr.plots.plot_flows(solution).get_title()
    'flows of 3 edges, 1 saturated'
    """
    table: Any = solution.flows.table()
    limited = np.isfinite(table["capacity"].to_numpy(dtype=float))
    terms = dict.fromkeys(table["term"])
    free = [term for term in terms if not limited[table["term"] == term].any()]
    if not limited.any():
        raise ModelError("there is nothing to draw: no edge of the problem has a capacity that limits its flow")
    shown = table[limited]
    few = len(shown) <= MOST_BARS
    axes = axes_for(ax, (7.5, 1.6 + 0.24 * len(shown) if few else 4.5))
    (_bars if few else _curves)(axes, shown)
    what = f"flows of {count(len(shown), 'edge')}, {int(shown['saturated'].sum())} saturated"
    left = f"; without capacities: {', '.join(map(str, free))}" if free else ""
    titled(axes, what + left)
    return axes


def _bars(axes: Axes, shown: Any) -> None:
    """A bar for each edge, the first one on top."""
    terms = list(dict.fromkeys(shown["term"]))
    for k, term in enumerate(terms):
        for full in (False, True):
            rows = np.flatnonzero((shown["term"] == term) & (shown["saturated"] == full))
            style: dict[str, Any] = {"facecolor": "0.3" if full else "0.85", "edgecolor": "0.5" if full else "0.3"}
            said = f"{picture(term)}{', saturated' if full else ''}"
            used = shown["used"].to_numpy(dtype=float)[rows]
            if len(rows):
                axes.barh(rows, used, height=0.7, hatch=HATCHES[k % len(HATCHES)], label=said, **style)
    names = [_name(tail, head) for tail, head in zip(shown["tail"], shown["head"], strict=True)]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(1.0, color="black", linestyle="--", linewidth=1.0, label="capacity")
    axes.set_xlim(0.0, 1.05)
    labelled(axes, "flow / capacity")
    legend_below(axes)


def _name(tail: Any, head: Any) -> str:
    return f"{picture(tail)} to {'the ground' if head is None else picture(head)}"


def _curves(axes: Axes, shown: Any) -> None:
    """The loads of each term from the largest to the smallest."""
    for k, term in enumerate(dict.fromkeys(shown["term"])):
        rows = shown[shown["term"] == term].sort_values("used", ascending=False)
        used, full = rows["used"].to_numpy(dtype=float), rows["saturated"].to_numpy(dtype=bool)
        at = 100.0 * (np.arange(len(used)) + 0.5) / len(used)
        style = look(k)
        mark = style.pop("marker")
        axes.plot(at, used, linewidth=1.4, **style)
        axes.plot(at[full], used[full], mark, color=style["color"], markersize=5)
        said = f"{picture(term)}: {int(full.sum()):,} of {len(rows):,} saturated (marked)"
        axes.plot([], [], marker=mark, label=said, **style)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (6, 2)), label="capacity")
    axes.set(xlim=(0.0, 100.0), ylim=(0.0, 1.08))
    axes.grid(True, color="0.92")
    labelled(axes, "edges of the term, from the largest load to the smallest (%)", "flow / capacity")
    legend_below(axes)
