"""An audit drawn: how far the points of a run are from the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..auditing import Audit
from ..errors import ModelError
from ..escaping import picture
from .canvas import LEAST_GAP, axes_for, labelled, legend_below, log_scale, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_audit(audit: Audit, ax: Axes | None = None) -> Axes:
    """The distance from the optimum against the rounds, both axes logarithmic; the dotted line is how far the optimum
    itself is known.

    Parameters
    ----------
    audit : Audit
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        Where the algorithm gave no points, or matplotlib is missing.
    """
    if not len(audit.distances):
        raise ModelError(f"there is nothing to draw: {audit.algorithm} gave no points")
    axes = axes_for(ax, (8.0, 5.0))
    rounds, distance = audit.distances.T
    keep = np.isfinite(distance)
    label = f"{picture(audit.algorithm)} ({audit.verdict})"
    axes.plot(rounds[keep], np.maximum(distance[keep], LEAST_GAP), ".-", linewidth=1.2, markersize=3, label=label)
    if np.isfinite(audit.radius):
        known = max(audit.radius, LEAST_GAP)
        axes.axhline(known, color="0.5", linestyle=":", linewidth=1.0, label="how far the optimum itself is known")
    log_scale(axes.xaxis, axes.yaxis)
    labelled(axes, "rounds", "distance from the optimum")
    axes.grid(True, which="major", color="0.9")
    if ax is None:
        titled(axes, audit.name or audit.measure, 9.0)
        legend_below(axes)
    return axes
