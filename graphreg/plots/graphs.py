"""An answer on its graph. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..form import Form
from ..form.notation import count
from ..running import Solution
from ..terms import Array
from .canvas import axes_for, framed
from .layouts import MOST_GROUPS, area_of, draw_group, draw_links, placed, thinned, write_labels
from .states import STATES, edge_states

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_graph(
    solution: Solution,
    positions: Mapping[Hashable, tuple[float, float]] | pd.DataFrame | None = None,
    ax: Axes | None = None,
    prove: bool = False,
) -> Axes:
    """The graph of an answer: nodes drawn by cluster, edges by their state.

    Clusters differ in colour and marker. Fused edges are solid, near ones solid and lighter, split ones dashed,
    undecided ones dotted; where several terms share an edge it is split as soon as one of them is. Latent nodes are
    white squares.

    Parameters
    ----------
    solution : Solution
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; by default the cells of a grid, where all labels are pairs (row, column), and a
        spring layout (seed 0) elsewhere. Latent nodes are put amid their neighbours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    prove : bool
        Whether to look for proofs that edges are fused or split, as `Solution.clusters` does.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModelError
        Where matplotlib is missing, or a node has no position.
    """
    form, clusters = solution.form, solution.clusters(prove)
    axes = axes_for(ax, (8.0, 6.0))
    states = edge_states(solution, prove)
    place = _layout(form, list(states), positions)
    for state, (style, colour, width) in STATES.items():
        ends = place[[pair for pair, found in states.items() if found == state]]
        draw_links(axes, ends, state, style, colour, width if state == "split" else thinned(width, form.n))
    _draw_nodes(axes, form, place, clusters.labels)
    counts = Counter(states.values())
    edges = ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts)
    what = f"{count(form.space.n_observed, 'node')} in {count(clusters.count, 'cluster')}"
    return framed(axes, what + (f"; edges: {edges}" if edges else ""), 0.08)


def _layout(
    form: Form, pairs: list[tuple[int, int]], positions: Mapping[Hashable, tuple[float, float]] | pd.DataFrame | None
) -> Array:
    """Where each node is drawn, (n, 2)."""
    if positions is None:
        return placed(form.labels, pairs, None)
    place = np.full((form.n, 2), np.nan)
    place[: form.space.n_observed] = placed(tuple(form.space.index), (), positions)
    for i in range(form.space.n_observed, form.n):  # those of lower levels come first
        ends = [a + b - i for a, b in pairs if i in (a, b)]
        near = place[[j for j in ends if np.isfinite(place[j]).all()]]
        place[i] = near.mean(axis=0) if len(near) else np.nanmean(place, axis=0)
    return place


def _draw_nodes(axes: Axes, form: Form, place: Array, labels: Mapping[Hashable, int]) -> None:
    n = form.space.n_observed
    number = np.array([labels[label] for label in form.space.index])
    size = np.bincount(number)
    grey = (size == 1) & (len(size) > MOST_GROUPS)
    coloured = np.flatnonzero(~grey).tolist()
    rank: dict[int, int] = {cluster: k for k, cluster in enumerate(coloured)}
    area = area_of(n)
    for cluster, k in rank.items():
        members = f"cluster {cluster} ({count(int(size[cluster]), 'node')})"
        which = np.flatnonzero(number == cluster)
        draw_group(axes, place[which], k, area, members if len(coloured) <= MOST_GROUPS else None)
    if grey.any():
        draw_group(axes, place[:n][grey[number]], None, area, f"clusters of one node ({int(grey.sum())})")
    if n < form.n:
        style: dict[str, Any] = {"marker": "s", "facecolors": "white", "edgecolors": "black"}
        axes.scatter(*place[n:].T, s=0.6 * area, zorder=2, label="latent nodes", **style)
    write_labels(axes, form.labels, place, [rank.get(int(k)) for k in number])
