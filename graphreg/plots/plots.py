"""Plots of an answer on its graph, and of the certified gap of runs. matplotlib is imported when one is drawn."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compare import distinct
from ..errors import ModelError
from ..escaping import picture, visible
from ..form import Form
from ..form.notation import count
from ..messages import missing_entries
from ..running import Solution
from ..terms import Array

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

STATES = {  # how edges are drawn: line style, colour, width
    "fused": ("-", "0.25", 2.0),
    "near": ("-", "0.55", 1.6),
    "split": ("--", "tab:red", 1.2),
    "undecided": (":", "0.5", 1.4),
    "fused on some coordinates": ("-.", "tab:blue", 1.4),
}
MOST_COLOURS = 10  # beyond so many clusters, those of one node are grey
MOST_LABELS = 40  # nodes whose labels are still legible
LONGEST_INSIDE = 3  # characters of a label that fit inside a node
WEAK = 0.1  # of springs that only keep parts from flying apart, against 1
LEAST_GAP = 1e-17  # gaps of 0 are drawn here on the logarithmic axis


def plot_graph(
    solution: Solution, positions: Mapping[Hashable, tuple[float, float]] | None = None, ax: Axes | None = None
) -> Axes:
    """The graph of an answer: nodes coloured by cluster, edges drawn by their state.

    Fused edges are solid, near ones solid and lighter, split ones dashed, undecided ones dotted; where several terms
    share an edge it is split as soon as one of them is. Latent nodes are squares.

    Parameters
    ----------
    solution : Solution
    positions : mapping, optional
        A pair (x, y) per node label; a spring layout (seed 0) by default. Latent nodes are put amid their neighbours.
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
    form, clusters = solution.form, solution.clusters()
    axes = axes_for(ax, (8.0, 6.0))
    states = _edge_states(solution)
    place = _layout(form, list(states), positions)
    for state, look in STATES.items():
        draw_links(axes, place[[pair for pair, found in states.items() if found == state]], state, *look)
    _draw_nodes(axes, form, place, clusters.labels)
    counts = Counter(states.values())
    edges = ", ".join(f"{counts[state]} {state}" for state in STATES if state in counts)
    what = f"{count(form.space.n_observed, 'node')} in {count(clusters.count, 'cluster')}"
    title = what + (f"; edges: {edges}" if edges else "")
    return framed(axes, title, 0.08, loc="center left", bbox_to_anchor=(1.0, 0.5))


def plot_trace(solutions: Solution | Sequence[Solution] | Mapping[str, Solution], ax: Axes | None = None) -> Axes:
    """The relative gap of runs against rounds, both axes logarithmic.

    Markers on lines are certified gaps; faint dots are screens, cheap estimates that certify nothing. A solution
    without rounds (an exact one) is a horizontal line at its certified gap.

    Parameters
    ----------
    solutions : Solution, sequence of them, or mapping from names to them
        For instance ``gr.compare(problem).solutions``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModelError
        Where matplotlib is missing, or there is nothing to draw.
    """
    runs = _named(solutions)
    if not runs:
        raise ModelError("plot_trace needs at least one solution")
    axes = axes_for(ax, (8.0, 5.0))
    screened = False
    for k, (name, solution) in enumerate(runs.items()):
        screened |= _draw_run(axes, name, solution, f"C{k % 10}")
    if screened:
        axes.plot([], [], ".", color="0.4", alpha=0.5, markersize=6, label="screens (not certified)")
    axes.set(xscale="log", yscale="log", xlabel="communication rounds", ylabel="relative gap")
    axes.set_title("Certified relative gap")
    ticker = importlib.import_module("matplotlib.ticker")
    for set_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        set_formatter(ticker.LogFormatter(minor_thresholds=(2, 0.5)))  # 10, 20, 50 rather than powers
    axes.grid(True, which="major", color="0.9")
    axes.legend(frameon=False)
    return axes


# ---- the graph -----------------------------------------------------------------------------------------------------
def pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise ModelError("plots need matplotlib, which is not installed: pip install graphreg[plot]") from None


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def framed(axes: Axes, title: str, margin: float, **legend: Any) -> Axes:
    """A picture of a graph with its title and legend, without scales."""
    axes.set_title(title)
    axes.set_axis_off()
    axes.margins(margin)
    axes.legend(frameon=False, handlelength=2.6, **legend)
    return axes


def _edge_states(solution: Solution) -> dict[tuple[int, int], str]:
    """One state per pair of nodes, by their positions; over all terms that join them."""
    form = solution.form
    labels = solution.clusters().labels
    number = [labels[label] for label in form.space.index]
    said: dict[tuple[int, int], set[str]] = {}
    table = iter(solution.clusters().edges["state"].tolist())  # in the order of the edge blocks
    for edge in form.edges:
        if edge.ground:
            continue
        for tail, head in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            state = next(table)
            whole = edge.features is None or max(tail, head) >= len(number) or number[tail] == number[head]
            said.setdefault((tail, head), set()).add(
                "fused on some coordinates" if state in ("near", "fused") and not whole else state
            )
    order = ("split", "near", "fused", "fused on some coordinates", "undecided")
    return {pair: next(state for state in order if state in found) for pair, found in said.items()}


def _layout(
    form: Form, pairs: list[tuple[int, int]], positions: Mapping[Hashable, tuple[float, float]] | None
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


def placed(
    labels: Sequence[Hashable],
    pairs: Iterable[tuple[int, int]],
    positions: Mapping[Hashable, tuple[float, float]] | None,
    weak: Iterable[tuple[int, int]] = (),
) -> Array:
    """Where nodes are drawn, (n, 2): as given, or by a spring layout of pairs of their numbers, with weak springs for
    some."""
    import networkx as nx

    if positions is not None:
        for said in missing_entries("positions", positions, labels):
            raise ModelError(said)
        return np.array([positions[label] for label in labels], dtype=float).reshape(-1, 2)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(labels)))
    graph.add_edges_from(weak, weight=WEAK)
    graph.add_edges_from(pairs, weight=1.0)
    return _spring(graph)


def _spring(graph: nx.Graph[int]) -> Array:
    """A spring layout, with nodes without edges in a row below: springs would push them far away."""
    import networkx as nx

    alone = [i for i in graph if graph.degree(i) == 0]
    found = nx.spring_layout(graph.subgraph(i for i in graph if graph.degree(i) > 0), seed=0)
    place = np.zeros((len(graph), 2))
    for i, position in found.items():
        place[i] = position
    if alone:
        (left, _), (right, _) = place.min(axis=0), place.max(axis=0)
        place[alone, 0] = np.linspace(left, right, len(alone) + 2)[1:-1] if found else np.arange(len(alone))
        place[alone, 1] = place[:, 1].min() - 0.2
    return place


def draw_links(axes: Axes, ends: Array, name: str, style: str, colour: str, width: float) -> None:
    """Lines between pairs of points (m, 2, 2), with one entry in the legend; nothing where there are none."""
    if not len(ends):
        return
    collections = importlib.import_module("matplotlib.collections")
    lines = collections.LineCollection(list(ends), linestyles=style, colors=colour, linewidths=width, zorder=1)
    axes.add_collection(lines)
    axes.plot([], [], style, color=colour, linewidth=width, label=name)


def _draw_nodes(axes: Axes, form: Form, place: Array, labels: Mapping[Hashable, int]) -> None:
    n = form.space.n_observed
    number = np.array([labels[label] for label in form.space.index])
    size = np.bincount(number)
    grey = (size == 1) & (len(size) > MOST_COLOURS)
    coloured = np.flatnonzero(~grey)
    area = float(np.clip(12000.0 / max(n, 1), 15.0, 260.0))
    for rank, cluster in enumerate(coloured):
        which = np.flatnonzero(number == cluster)
        members = f"cluster {cluster} ({count(int(size[cluster]), 'node')})"
        _dots(axes, place[which], f"C{rank % 10}", area, members if len(coloured) <= MOST_COLOURS else None)
    if grey.any():
        _dots(axes, place[:n][grey[number]], "0.75", area, f"clusters of one node ({int(grey.sum())})")
    if n < form.n:
        style: dict[str, Any] = {"marker": "s", "facecolors": "white", "edgecolors": "black"}
        axes.scatter(*place[n:].T, s=area, zorder=2, label="latent nodes", **style)
    write_labels(axes, form.labels, place, form.space.n_observed)


def write_labels(axes: Axes, labels: Sequence[Hashable], place: Array, dark: int) -> None:
    """Short labels inside the nodes, white in the ``dark`` first ones; long ones above them, shortened. None where
    there are too many to be read."""
    for i, label in enumerate(labels if len(labels) <= MOST_LABELS else ()):
        inside = len(visible(label)) <= LONGEST_INSIDE
        axes.annotate(
            picture(label),
            (place[i][0], place[i][1]),
            xytext=(0, 0 if inside else 9),
            textcoords="offset points",
            ha="center",
            va="center" if inside else "bottom",
            fontsize=8,
            color="white" if inside and i < dark else "black",
            zorder=5,
        )


def _dots(axes: Axes, place: Array, colour: str, area: float, label: str | None) -> None:
    axes.scatter(*place.T, s=area, color=colour, edgecolors="white", linewidths=0.8, zorder=2, label=label)


# ---- the trace -----------------------------------------------------------------------------------------------------
def _named(solutions: Solution | Sequence[Solution] | Mapping[str, Solution]) -> dict[str, Solution]:
    if isinstance(solutions, Solution):
        return {solutions.method: solutions}
    if isinstance(solutions, Mapping):
        return dict(solutions)
    runs: dict[str, Solution] = {}
    for solution in solutions:
        runs[distinct(solution.method, runs)] = solution
    return runs


def _draw_run(axes: Axes, name: str, solution: Solution, colour: str) -> bool:
    """Draws one run; whether it has screens."""
    records = [record for record in solution.trace.records if np.isfinite(record.relative_gap)]
    if not solution.trace.records:
        if solution.certificate.valid:
            gap = max(solution.certificate.relative_gap, LEAST_GAP)
            axes.axhline(gap, color=colour, linestyle="--", label=f"{picture(name)}, {gap:.1e}")
        return False
    certified = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if r.certified]
    screens = [(max(r.round, 1), max(r.relative_gap, LEAST_GAP)) for r in records if not r.certified]
    if screens:
        axes.plot(*np.array(screens).T, ".", color=colour, alpha=0.4, markersize=6)
    points = np.array(certified).reshape(-1, 2)
    axes.plot(*points.T, "o-", color=colour, markersize=6, linewidth=1.2, label=f"{picture(name)} ({solution.status})")
    return bool(screens)
