"""An answer on its graph. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import picture
from ..base.messages import count, did_you_mean
from ..errors import ModelError
from ..form import Form
from ..running import Solution
from ..terms import Array
from ..theory import Recovery
from .canvas import answer_of, axes_for, framed
from .layouts import MOST_GROUPS, area_of, draw_group, draw_links, given_places, places, thinned, write_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .layouts import Positions

# ---- states of edges: one per pair of nodes, over all terms that join them -------------------------------------------
STATES: dict[str, tuple[Any, str, float]] = {  # how edges are drawn: line style, colour, width
    "fused": ("-", "0.2", 2.2),
    "near": ("-", "0.6", 1.4),
    "split": ("--", "tab:red", 1.4),
    "undecided": (":", "0.4", 1.4),
    "fused on some coordinates": ("-.", "tab:blue", 1.4),
}
FIRST = ("split", "near", "fused", "fused on some coordinates", "undecided")  # of several terms the first one counts


def edge_states(solution: Solution, prove: bool) -> dict[tuple[int, int], str]:
    """The state of each pair of nodes (tail, head), by their positions; latent nodes come last."""
    form, clusters = solution.form, solution.clusters(prove)
    labels = clusters.labels
    number = [labels[label] for label in form.space.index]
    said: dict[tuple[int, int], set[str]] = {}
    table = iter(clusters.edges["state"].tolist())  # in the order of the edge blocks
    for edge in form.between:
        for tail, head in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            state = next(table)
            whole = edge.features is None or max(tail, head) >= len(number) or number[tail] == number[head]
            said.setdefault((tail, head), set()).add(
                "fused on some coordinates" if state in ("near", "fused") and not whole else state
            )
    return {pair: next(state for state in FIRST if state in found) for pair, found in said.items()}


def boundary(solution: Solution, pairs: list[tuple[int, int]], prove: bool) -> list[str]:
    """The boundary between the two nodes of each pair: "between clusters"; "undecided", where that is all that parts
    their clusters; or nothing, within one."""
    states, labels = edge_states(solution, prove), solution.clusters(prove).labels
    number = [labels[label] for label in solution.labels]
    found: list[str] = []
    for i, j in pairs:
        state = states.get((i, j), states.get((j, i), "split"))
        apart = "undecided" if state == "undecided" else "between clusters"
        found.append(apart if number[i] != number[j] else "")
    return found


# ---- answers ---------------------------------------------------------------------------------------------------------
def plot_graph(solution: Solution, positions: Positions = None, ax: Axes | None = None, prove: bool = False) -> Axes:
    """The graph of an answer: nodes drawn by cluster, edges by their state.

    Clusters differ in colour and marker. Fused edges are solid, near ones solid and lighter, split ones dashed,
    undecided ones dotted; where several terms share an edge it is split as soon as one of them is. Latent nodes are
    white squares.

    Parameters
    ----------
    solution : Solution
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; by default the cells of a grid, where all labels are pairs (row, column), and a
        layout by the lengths of paths (Kamada and Kawai; parts of more than 100 nodes by springs) elsewhere. Latent
        nodes are put amid their neighbours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    prove : bool
        Whether to look for proofs that edges are fused or split, as `Solution.clusters` does.

    Raises
    ------
    ModelError
        Where matplotlib is missing, or a node has no position.

    Examples
    --------
    >>> gr.plots.plot_graph(solution).get_title() != ""
    True
    """
    solution = answer_of(solution)
    form, clusters = solution.form, solution.clusters(prove)
    axes = axes_for(ax, (8.0, 6.0))
    states = edge_states(solution, prove)
    if positions is None:
        place = places(form.labels, list(states), None)
    else:
        place = given_places(positions, form.labels, len(form.latent), np.array(list(states)).reshape(-1, 2))
    for state, (style, colour, width) in STATES.items():
        ends = place[[pair for pair, found in states.items() if found == state]]
        draw_links(axes, ends, state, style, colour, width if state == "split" else thinned(width, form.n))
    ranks = _draw_nodes(axes, form, place, clusters.labels)
    counts = Counter(states.values())
    edges = ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts)
    what = f"{count(form.space.n_observed, 'node')} in {count(clusters.count, 'cluster')}"
    framed(axes, what + (f"; edges: {edges}" if edges else ""), 0.08)
    write_labels(axes, form.labels, place, ranks)
    return axes


def _draw_nodes(axes: Axes, form: Form, place: Array, labels: Mapping[Hashable, int]) -> list[int | None]:
    """Draw the nodes; the rank of the group of each is returned."""
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
    return [rank.get(int(k)) for k in number]


# ---- the graph of a `Recovery`: its clusters, and the sets of nodes that are too loosely connected -------------------
EDGES: tuple[tuple[str, Any, str, float], ...] = (  # name, line style, colour, width
    ("between clusters", ":", "0.6", 0.9),
    ("inside", "-", "0.4", 1.2),
    ("cut of a set that is too loosely connected", (0, (2, 1)), "tab:red", 3.0),
)


def plot_recovery(
    recovery: Recovery, cluster: Hashable = None, positions: Positions = None, ax: Axes | None = None
) -> Axes:
    """The graph by clusters, with the sets that break (35) ringed, and the edges of their cuts thick and dashed.

    Parameters
    ----------
    recovery : Recovery
        Of `graphreg.theory.recovery`.
    cluster : hashable, optional
        Draw this cluster alone; all of them by default.
    positions : mapping or DataFrame, optional
        A pair (x, y) per node label; a layout by the lengths of paths by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        Where matplotlib is missing, the cluster is not one, or a node has no position.

    Examples
    --------
    >>> found = gr.theory.recovery(problem, {"a": 0, "b": 0, "c": 1, "d": 1})
    >>> len(gr.plots.plot_recovery(found).texts)
    4
    """
    tests = recovery.tests
    if cluster is not None and cluster not in tests:
        raise ModelError(f"{cluster!r} is not a cluster{did_you_mean(cluster, tests)}; there are {list(tests)[:8]}")
    labels, shown = recovery.graph.labels, list(tests) if cluster is None else [cluster]
    number = np.array([shown.index(c) if (c := recovery.clusters[x]) in shown else -1 for x in labels])
    loose = np.array([x in recovery.violating.get(recovery.clusters[x], ()) for x in labels]) & (number >= 0)
    axes, nodes = axes_for(ax, (8.0, 6.0)), np.flatnonzero(number >= 0)
    ends = np.stack([recovery.graph.tail, recovery.graph.head], axis=1)
    ends = ends[(number[ends] >= 0).all(axis=1)]
    inside = number[ends[:, 0]] == number[ends[:, 1]]
    cut = inside & (loose[ends[:, 0]] != loose[ends[:, 1]])
    kinds = [ends[~inside], ends[inside & ~cut], ends[cut]]  # of the entries of `EDGES`
    at = {int(i): k for k, i in enumerate(nodes)}
    pairs = [(at[i], at[j]) for ends in kinds for i, j in ends.tolist()]
    place = np.full((len(labels), 2), np.nan)
    place[nodes] = places([labels[i] for i in nodes], pairs, positions)
    for (name, style, colour, width), ends in zip(EDGES, kinds, strict=True):
        draw_links(axes, place[ends], name, style, colour, thinned(width, len(nodes)))
    _nodes(axes, place, number, loose, shown)
    holds = sum(tests[c].holds for c in shown)
    title = f"{count(len(shown), 'cluster')}, {holds} well-connected at the strength {recovery.strength:.4g}"
    framed(axes, title, 0.12)
    write_labels(axes, [labels[i] for i in nodes], place[nodes], number[nodes].tolist())
    return axes


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
