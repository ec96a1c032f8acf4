"""A picture of the joint confidence region of two coefficients. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..escaping import LONGEST, visible
from ..terms import name_of
from .canvas import axes_for, labelled, legend_below, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..inference import ConfidenceRegion


def plot_region(
    region: ConfidenceRegion, a: Hashable, b: Hashable, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """The joint region of two coefficients at a level (an ellipse), and the interval of each by itself (a box).

    Parameters
    ----------
    region : ConfidenceRegion
    a, b : names of coefficients, along the axes
    level : float
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        For coefficients that the region does not have, or twice the same.
    """
    points, intervals = region.ellipse(a, b, level), region.intervals(level)
    axes = axes_for(ax, (6.0, 5.4))
    low, high = intervals["low"], intervals["high"]
    x, y = points.to_numpy().T
    (line,) = axes.plot(x, y, label=f"joint region, {100 * level:g}%")
    axes.fill(x, y, color=line.get_color(), alpha=0.15)
    corners = [low[a], high[a], high[a], low[a], low[a]], [low[b], low[b], high[b], high[b], low[b]]
    axes.plot(*corners, ":", color="0.4", linewidth=1.0, label=f"{100 * level:g}% interval of each by itself")
    axes.plot([region.estimate[a]], [region.estimate[b]], "o", color=line.get_color(), label="estimate")
    for at, inside, draw in ((0.0, axes.get_xlim(), axes.axvline), (0.0, axes.get_ylim(), axes.axhline)):
        if inside[0] <= at <= inside[1]:
            draw(at, color="0.7", linewidth=0.8, zorder=0)
    x_name = visible(name_of(a), LONGEST)  # pyright: ignore[reportArgumentType]  (a name, or a feature and a class)
    y_name = visible(name_of(b), LONGEST)  # pyright: ignore[reportArgumentType]
    labelled(axes, x_name, y_name)
    titled(axes, region.title)
    legend_below(axes)
    return axes
