"""A path drawn: coefficients, and the number of clusters, against the strength."""

from __future__ import annotations

import importlib
from collections.abc import Hashable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import LONGEST, picture, visible
from ..base.messages import did_you_mean
from ..checks import instance
from ..errors import ModelError
from ..terms import Array, name_of
from ..tuning import CrossValidation, Path
from .canvas import axes_for, column_of, described, finished, fitted, legend_below, line_style, room_of, swatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 10  # of an axis of a map, evenly spread
FAR = 100.0  # times as much worse than the best as a good quarter of scores, or as its error, are off the scale
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
        Draw this coefficient of all nodes that data reach, or of ``node`` alone; without a node the first one by
        default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Strengths whose solution is not certified to the gap asked for are marked by crosses at the bottom.

    Raises
    ------
    ModelError
        For an unknown node or feature, an empty path, or where matplotlib is missing.

    Examples
    --------
    >>> gr.plots.plot_path(gr.path(problem, [0.1, 1.0])).get_xscale()
    'log'
    """
    instance(Path, "a path, as gr.path(problem, strengths) gives it")(path, "the path of plot_path", ModelError)
    if not len(path):
        raise ModelError("the path holds no solution; there is nothing to draw")
    lines, names, what = _lines(path, node, feature)
    axes = axes_for(ax, (8.0, 5.0))
    strengths = path.strengths
    left = "" if path.complete else f" (incomplete: {len(path.left)} strengths were not reached)"
    _draw(axes, strengths, lines, names, "node" if node is None else "coefficient")
    drawn = [axes, _clusters(axes, path)] if next(iter(path)).form.clustered else [axes]
    described(axes, f"{visible(path.parameter.name, LONGEST)}{left}", what, "x")
    missed = [strength for strength, each in path.solutions.items() if not each.certificate.holds(path.gap)]
    if missed:
        style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "label": "uncertified"}
        axes.plot(missed, np.zeros(len(missed)), "x", color="tab:red", **style)
    handles, labels = zip(*[each.get_legend_handles_labels() for each in drawn], strict=True)
    legend_below(axes, [*chain(*handles)], [*chain(*labels)])
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
    column = column_of(space, feature)
    coef = np.stack([space.in_units(each) for each in path.coef])
    if node is not None:
        places = list(range(len(coordinates))) if feature is None else [column]
        names = [picture(name_of(coordinates[j])) for j in places]
        return coef[:, space.index[node], places], names, f"coefficients of {visible(node, LONGEST)}"
    what = f"coefficient of {visible(name_of(coordinates[column]), LONGEST)}, of each node"
    kept = [i for i in space.index.values() if not next(iter(path)).form.silent[i]] or list(space.index.values())
    labels = list(space.index)
    return coef[:, kept, column], [picture(labels[i]) for i in kept], what


def _draw(axes: Axes, strengths: Array, lines: Array, names: list[str], each: str) -> None:
    """A few lines in colours with their names, many as one thin bundle."""
    if len(names) <= FEW:
        for k, name in enumerate(names):
            axes.plot(strengths, lines[:, k], markersize=4, linewidth=1.2, label=name, **line_style(k))
        return
    collection = importlib.import_module("matplotlib.collections").LineCollection
    bundle = np.stack([np.broadcast_to(strengths[:, None], lines.shape), lines], axis=2).transpose(1, 0, 2)
    thin = float(np.clip(20.0 / len(names), 0.05, 0.8))
    axes.add_collection(collection(bundle, colors="tab:blue", alpha=thin, linewidths=0.8))
    axes.plot([], [], color="tab:blue", linewidth=0.8, label=f"{len(names)} lines, one for each {each}")
    axes.autoscale_view()


# ---- pictures of a cross-validation: held-out scores against one strength, or over two -------------------------------
CHOICES = {"best": ("o", "tab:green"), "1se": ("D", "tab:orange"), "paired": ("s", "tab:purple")}  # how they are marked


def plot_cross_validation(found: CrossValidation, ax: Axes | None = None) -> Axes:
    """The score of every point of the grid, and the points of the rules: "min", "1se", and "paired" where it is taken.

    Of one Parameter: the score against its value (logarithmic), one standard error up and down; the dashed line is the
    best score plus one standard error, and arrows at the edge are scores beside which all others would be one flat
    line. Of two: a map of the scores. Points at which some fold was not certified have no score: crosses at the foot,
    or hatched cells.

    Parameters
    ----------
    found : CrossValidation
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        For more than two Parameters, where there is no score, or where matplotlib is missing.

    Examples
    --------
    >>> gr.plots.plot_cross_validation(fitted.validation).get_xscale()
    'log'
    """
    count = len(found.grid.parameters)
    if count > 2:
        raise ModelError(f"the picture is for one or two Parameters, and the grid has {count}; print the table")
    if not found.usable.any():
        found.index("min")  # says why
    axes = axes_for(ax, (7.5, 5.0))
    if count == 1:
        _line(axes, found)
    else:
        _map(axes, found)
    done = "" if found.complete else f" (incomplete: {len(found.runs)} of {len(found.folds)} folds)"
    return finished(axes, f"{len(found.folds)}-fold cross-validation{done}")


def _mark(axes: Axes, found: CrossValidation, x: Array, y: Array, sizes: tuple[int, ...], **style: Any) -> None:
    """Mark the choices, where they are known; the larger mark shows around the other where they are the same."""
    for (name, (mark, colour)), size in zip(CHOICES.items(), sizes, strict=True):
        for k in np.flatnonzero([name in said for said in found.choices]):
            label = f"{name}: {', '.join(f'{value:.3g}' for value in found.grid.points[k])}"
            axes.plot(x[k], y[k], mark, color=colour, markersize=size, label=label, **style)


def _line(axes: Axes, found: CrossValidation) -> None:
    x, foot = np.array([point[0] for point in found.grid.points]), axes.get_xaxis_transform()
    order = np.argsort(x)
    keep = order[found.usable[order]]
    error, sign = np.nan_to_num(found.standard_error[keep]), -1.0 if found.scorer.greater_is_better else 1.0
    worse = sign * found.mean[keep] - np.min(sign * found.mean[keep])
    far = worse > FAR * max(float(np.quantile(worse, 0.25)), float(error[np.argmin(worse)]))
    if far.any():  # with them on the axis all others are one flat line
        most, (mark, edge) = found.mean[keep[np.argmax(worse)]], ("^", 0.97) if sign > 0.0 else ("v", 0.03)
        label = f"off the scale: the worst is {most:.2g}"
        axes.plot(x[keep[far]], np.full(far.sum(), edge), mark, color="0.3", transform=foot, label=label)
        keep, error = keep[~far], error[~far]
    style: dict[str, Any] = {"color": "0.3", "capsize": 3, "linewidth": 1.2, "zorder": 1}
    axes.errorbar(x[keep], found.mean[keep], error, fmt=".-", label="mean of the folds, +- one standard error", **style)
    lost = x[~found.usable]
    if len(lost):
        axes.plot(lost, np.full(len(lost), 0.02), "x", color="tab:red", transform=foot, label="not certified")
    _mark(axes, found, x, found.mean, (11, 6, 8), zorder=2)
    if found.complete:
        best = found.index("min")
        limit = found.mean[best] + sign * found.standard_error[best]
        axes.axhline(limit, color="0.5", linestyle="--", linewidth=1.0, label="one standard error from the best")
    score = f"held-out {visible(found.scorer.name, LONGEST)}"
    described(axes, visible(found.grid.names[0], LONGEST), score, "x", "0.92")


def _map(axes: Axes, found: CrossValidation) -> None:
    points = np.array(found.grid.points)
    rows, columns = np.unique(points[:, 0]), np.unique(points[:, 1])
    place = np.searchsorted(rows, points[:, 0]), np.searchsorted(columns, points[:, 1])
    table = np.full((len(rows), len(columns)), np.nan)
    table[place] = np.where(found.usable, found.mean, np.nan)
    colours = "viridis" if found.scorer.greater_is_better else "viridis_r"  # the brighter the better
    image = axes.imshow(table, origin="lower", aspect="auto", cmap=colours)
    score = fitted(f"held-out {visible(found.scorer.name, LONGEST)}", room_of(axes, 1), 10.0)
    axes.figure.colorbar(image, ax=axes, label=score)
    if np.isnan(table).any():
        axes.patch.set(hatch="////", edgecolor="0.35")
        swatch(axes, "////", "no score")
    _mark(axes, found, place[1], place[0], (13, 7, 9), markeredgecolor="white")
    for axis, values in ((axes.yaxis, rows), (axes.xaxis, columns)):
        shown = np.arange(0, len(values), -(-len(values) // MOST_TICKS))
        axis.set_ticks(shown, [f"{values[j]:.3g}" for j in shown])
    described(axes, visible(found.grid.names[1], LONGEST), visible(found.grid.names[0], LONGEST))
