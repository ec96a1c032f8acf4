"""Pictures of a cross-validation: held-out scores against one strength, or over two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..escaping import LONGEST, visible
from ..terms import Array
from ..tuning import CrossValidation
from .canvas import axes_for, fitted, labelled, legend_below, log_scale, room_of, swatch, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHOICES = {"best": ("o", "tab:green"), "1se": ("D", "tab:orange")}  # how the two are marked


def plot_cross_validation(found: CrossValidation, ax: Axes | None = None) -> Axes:
    """The score of every point of the grid, with the best one and that of the 1-SE rule.

    Of one Parameter: the score against its value (logarithmic), one standard error up and down; the dashed line is the
    best score plus one standard error. Of two: a map of the scores. Points at which some fold was not certified have no
    score: crosses at the foot, or hatched cells.

    Parameters
    ----------
    found : CrossValidation
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        For more than two Parameters, where there is no score, or where matplotlib is missing.
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
    titled(axes, f"{len(found.folds)}-fold cross-validation{done}")
    return axes


def _mark(axes: Axes, found: CrossValidation, x: Array, y: Array, sizes: tuple[int, int], **style: Any) -> None:
    """Mark the two choices, where they are known; the larger mark shows around the other where they are the same."""
    for (name, (mark, colour)), size in zip(CHOICES.items(), sizes, strict=True):
        for k in np.flatnonzero([name in said for said in found.choices]):
            label = f"{name}: {', '.join(f'{value:.3g}' for value in found.grid.points[k])}"
            axes.plot(x[k], y[k], mark, color=colour, markersize=size, label=label, **style)


def _line(axes: Axes, found: CrossValidation) -> None:
    x = np.array([point[0] for point in found.grid.points])
    order = np.argsort(x)
    keep = order[found.usable[order]]
    error = np.nan_to_num(found.standard_error[keep])
    style: dict[str, Any] = {"color": "0.3", "capsize": 3, "linewidth": 1.2, "zorder": 1}
    axes.errorbar(x[keep], found.mean[keep], error, fmt=".-", label="mean of the folds, +- one standard error", **style)
    lost = x[~found.usable]
    if len(lost):
        foot = axes.get_xaxis_transform()
        axes.plot(lost, np.full(len(lost), 0.02), "x", color="tab:red", transform=foot, label="not certified")
    _mark(axes, found, x, found.mean, (11, 6), zorder=2)
    if found.complete:
        best, sign = found.index("min"), -1.0 if found.scorer.greater_is_better else 1.0
        limit = found.mean[best] + sign * found.standard_error[best]
        axes.axhline(limit, color="0.5", linestyle="--", linewidth=1.0, label="one standard error from the best")
    log_scale(axes.xaxis)
    axes.set_axisbelow(True)
    labelled(axes, visible(found.grid.names[0], LONGEST), f"held-out {visible(found.scorer.name, LONGEST)}")
    axes.grid(True, which="major", color="0.92")
    legend_below(axes)


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
    _mark(axes, found, place[1], place[0], (13, 7), markeredgecolor="white")
    for axis, values in ((axes.yaxis, rows), (axes.xaxis, columns)):
        shown = _some(len(values))
        axis.set_ticks(shown, [f"{values[j]:.3g}" for j in shown])
    labelled(axes, visible(found.grid.names[1], LONGEST), visible(found.grid.names[0], LONGEST))
    legend_below(axes)


def _some(count: int, most: int = 10) -> Array:
    """At most so many positions, evenly spread."""
    return np.arange(0, count, -(-count // most))
