"""The graph of a `Recovery`: its clusters, and the sets of nodes that are too loosely connected."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..escaping import picture
from ..form.notation import count
from ..messages import did_you_mean
from ..terms import Array
from ..theory import Recovery
from .canvas import axes_for, framed
from .layouts import MOST_GROUPS, area_of, draw_group, draw_links, placed, thinned, write_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

EDGES: tuple[tuple[str, Any, str, float], ...] = (  # name, line style, colour, width
    ("between clusters", ":", "0.6", 0.9),
    ("inside", "-", "0.4", 1.2),
    ("cut of a set that is too loosely connected", (0, (2, 1)), "tab:red", 3.0),
)


def plot_recovery(
    recovery: Recovery,
    cluster: Hashable = None,
    positions: Mapping[Hashable, tuple[float, float]] | pd.DataFrame | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The graph by clusters, with the sets that break (35) ringed, and the edges of their cuts thick and dashed.

    Parameters
    ----------
    recovery : Recovery
        Of `graphreg.theory.recovery`.
    cluster : hashable, optional
        Draw this cluster alone; all of them by default.
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; a spring layout (seed 0) by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        Where matplotlib is missing, the cluster is not one, or a node has no position.
    """
    tests = recovery.tests
    if cluster is not None and cluster not in tests:
        raise ModelError(f"{cluster!r} is not a cluster{did_you_mean(cluster, tests)}; there are {list(tests)[:8]}")
    labels, shown = recovery.graph.labels, list(tests) if cluster is None else [cluster]
    number = np.array([shown.index(c) if (c := recovery.clusters[x]) in shown else -1 for x in labels])
    loose = np.array([x in recovery.violating.get(recovery.clusters[x], ()) for x in labels]) & (number >= 0)
    axes, nodes = axes_for(ax, (8.0, 6.0)), np.flatnonzero(number >= 0)
    kinds = _kinds(recovery, number, loose)
    at = {int(i): k for k, i in enumerate(nodes)}
    pairs = [(at[i], at[j]) for ends in kinds for i, j in ends.tolist()]
    place = np.full((len(labels), 2), np.nan)
    place[nodes] = placed([labels[i] for i in nodes], pairs, positions)
    for (name, style, colour, width), ends in zip(EDGES, kinds, strict=True):
        draw_links(axes, place[ends], name, style, colour, thinned(width, len(nodes)))
    _nodes(axes, place, number, loose, shown)
    write_labels(axes, [labels[i] for i in nodes], place[nodes], number[nodes].tolist())
    holds = sum(tests[c].holds for c in shown)
    title = f"{count(len(shown), 'cluster')}, {holds} well-connected at the strength {recovery.strength:.4g}"
    return framed(axes, title, 0.12)


def _kinds(recovery: Recovery, number: Array, loose: Array) -> list[Array]:
    """The ends (m, 2) of the edges of each entry of `EDGES`, among the nodes that are shown."""
    ends = np.stack([recovery.graph.tail, recovery.graph.head], axis=1)
    ends = ends[(number[ends] >= 0).all(axis=1)]
    inside = number[ends[:, 0]] == number[ends[:, 1]]
    cut = inside & (loose[ends[:, 0]] != loose[ends[:, 1]])
    return [ends[~inside], ends[inside & ~cut], ends[cut]]


def _nodes(axes: Axes, place: Array, number: Array, loose: Array, shown: list[Hashable]) -> None:
    area = area_of(len(number))
    for c, name in enumerate(shown):
        which = number == c
        said = f"cluster {picture(name)} ({count(int(which.sum()), 'node')})" if len(shown) <= MOST_GROUPS else None
        draw_group(axes, place[which], c, area, said)
    if loose.any():
        style: dict[str, Any] = {"facecolors": "none", "edgecolors": "tab:red", "linewidths": 1.6}
        axes.scatter(*place[loose].T, s=2.2 * area, zorder=3, **style)
        axes.scatter([], [], s=120.0, label=f"are too loosely connected ({int(loose.sum())})", **style)
