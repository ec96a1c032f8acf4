"""A path drawn: coefficients, and the number of clusters, against the strength."""

from __future__ import annotations

import importlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..escaping import LONGEST, picture, visible
from ..messages import did_you_mean
from ..terms import Array, name_of
from ..tuning import Path
from .canvas import axes_for, labelled, legend_below, log_scale, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 10  # lines that have a colour and an entry in the legend each


def plot_path(path: Path, node: Hashable = None, feature: Any = None, ax: Axes | None = None) -> Axes:
    """Coefficients against the strength (logarithmic), and the number of clusters on a second axis.

    The number is drawn as it is counted, in a band of what is proved of it at each strength (`Clusters.count_range`).

    Parameters
    ----------
    path : Path
    node : label, optional
        Draw all coefficients of this node.
    feature : coordinate, optional
        Draw this coefficient of all nodes, or of ``node`` alone; without a node the first one by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Strengths whose solution is not certified to the gap asked for are marked by crosses at the bottom.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        For an unknown node or feature, an empty path, or where matplotlib is missing.
    """
    if not len(path):
        raise ModelError("the path holds no solution; there is nothing to draw")
    lines, names, what = _lines(path, node, feature)
    axes = axes_for(ax, (8.0, 5.0))
    strengths = path.strengths
    left = "" if path.complete else f" (incomplete: {len(path.left)} strengths were not reached)"
    _draw(axes, strengths, lines, names, "node" if node is None else "coefficient")
    second = _clusters(axes, path)
    log_scale(axes.xaxis)
    labelled(axes, f"{visible(path.parameter.name, LONGEST)}{left}", what)
    missed = [strength for strength, each in path.solutions.items() if not each.certificate.holds(path.gap)]
    if missed:
        style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "label": "uncertified"}
        axes.plot(missed, np.zeros(len(missed)), "x", color="tab:red", **style)
    both = [each.get_legend_handles_labels() for each in (axes, second)]
    legend_below(axes, both[0][0] + both[1][0], both[0][1] + both[1][1])
    return axes


def _clusters(axes: Axes, path: Path) -> Axes:
    """The second axis, behind the first: how many clusters there are, and between how many that is proved to be."""
    second = axes.twinx()
    found = [solution.clusters() for solution in path]
    counts, (least, most) = [each.count for each in found], np.array([each.count_range for each in found]).T
    style: dict[str, Any] = {"step": "mid", "facecolor": "0.96", "edgecolor": "0.86", "hatch": "..", "linewidth": 0.0}
    second.fill_between(path.strengths, least, most, label="clusters: proved range", **style)
    second.step(path.strengths, counts, where="mid", color="0.45", linewidth=3.0, alpha=0.6, label="clusters: counted")
    second.set(ylabel="clusters", ylim=(0, 1.05 * max(*most, 1)))
    second.yaxis.set_major_locator(importlib.import_module("matplotlib.ticker").MaxNLocator(integer=True))
    axes.set_zorder(second.get_zorder() + 1)
    axes.patch.set_visible(False)
    return second


def _lines(path: Path, node: Hashable, feature: Any) -> tuple[Array, list[str], str]:
    """The curves (k, lines), their names, and what they are."""
    space = next(iter(path)).form.space
    coordinates = list(space.coordinates)
    if node is not None and node not in space.index:
        raise ModelError(f"{node!r} is not a node of the problem{did_you_mean(node, space.index)}")
    if feature is not None and feature not in coordinates:
        known = ", ".join(map(repr, coordinates[:FEW]))
        near = did_you_mean(feature, coordinates)
        raise ModelError(f"{feature!r} is not a coefficient of the problem, which has {known}{near}")
    if node is not None:
        chosen = coordinates if feature is None else [feature]
        places = [coordinates.index(each) for each in chosen]
        lines = path.coef[:, space.index[node], places]
        return lines, [picture(name_of(each)) for each in chosen], f"coefficients of {visible(node, LONGEST)}"
    feature = coordinates[0] if feature is None else feature
    lines = path.coef[:, :, coordinates.index(feature)]
    what = f"coefficient of {visible(name_of(feature), LONGEST)}, of each node"
    return lines, [picture(label) for label in space.index], what


def _draw(axes: Axes, strengths: Array, lines: Array, names: list[str], each: str) -> None:
    """A few lines in colours with their names, many as one thin bundle."""
    if len(names) <= FEW:
        for k, name in enumerate(names):
            axes.plot(strengths, lines[:, k], markersize=4, linewidth=1.2, label=name, **look(k))
        return
    collection = importlib.import_module("matplotlib.collections").LineCollection
    bundle = np.stack([np.broadcast_to(strengths[:, None], lines.shape), lines], axis=2).transpose(1, 0, 2)
    thin = float(np.clip(20.0 / len(names), 0.05, 0.8))
    axes.add_collection(collection(bundle, colors="tab:blue", alpha=thin, linewidths=0.8))
    axes.plot([], [], color="tab:blue", linewidth=0.8, label=f"{len(names)} lines, one for each {each}")
    axes.autoscale_view()
