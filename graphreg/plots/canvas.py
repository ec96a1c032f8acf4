"""The parts that all pictures share: axes, titles that fit, legends below, readable logarithmic axes, lines that differ
in grey.

matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import caption
from ..base.messages import did_you_mean
from ..errors import ModelError
from ..terms import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_GAP = 1e-17  # gaps of 0 are drawn here on the logarithmic axis
COSTS = {  # what a gap may be plotted against: the field of a Record, and the label
    "rounds": ("round", "communication rounds"),
    "messages": ("messages", "messages, without certificates"),
    "bytes": ("bytes", "bytes sent, without certificates"),
    "seconds": ("seconds", "seconds"),
}
STYLES = ("-", "--", "-.", ":")
MARKS = "osD^vP*Xh<>"
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++")
SHARE = 0.775  # of the width of a figure: what titles and legends may take
NEAR = 0.2  # inches below axes: beyond it stand the labels of a scale
HANDLE = 0.55  # inches that the symbol of a legend and the space around it take


def pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise ModelError("plots need matplotlib, which is not installed: pip install graphreg[plot]") from None


def answer_of(found: Any) -> Any:
    """The answer that is drawn: of a fit or a cross-validation that at what was chosen."""
    return getattr(found, "solution", found)


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def log_scale(*axes: Any) -> None:
    """Make these (``axes.xaxis``, ``axes.yaxis``) logarithmic, with ticks that can be read."""
    for axis in axes:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        importlib.import_module("graphreg.plots.ticks").scale(axis)
        axis.axes.autoscale(None, axis.axis_name)  # as the ticks want it, where the ends are not given


def line_style(k: int) -> dict[str, Any]:
    """Line k of a picture: colour, line style and marker differ, so that it is told apart in grey."""
    return {"color": f"C{k % 10}", "linestyle": STYLES[k % len(STYLES)], "marker": MARKS[k % len(MARKS)]}


def column_of(space: Space, feature: Any) -> int:
    """The place of a coefficient among the coordinates, by default the first."""
    coordinates = list(space.coordinates)
    if feature is not None and feature not in coordinates:
        known, near = ", ".join(map(repr, coordinates[:10])), did_you_mean(feature, coordinates)
        raise ModelError(f"{feature!r} is not a coefficient of the problem, which has {known}{near}")
    return 0 if feature is None else coordinates.index(feature)


def swatch(axes: Axes, hatch: str, label: str) -> None:
    """An entry of the legend for areas with a hatch."""
    nowhere = np.full(3, np.nan)
    axes.fill(nowhere, nowhere, facecolor="white", edgecolor="0.35", hatch=hatch, linewidth=0.0, label=label)


# ---- text that fits --------------------------------------------------------------------------------------------------
def width_of(text: str, points: float) -> float:
    """The width of a text in inches."""
    path, fonts = map(importlib.import_module, ("matplotlib.textpath", "matplotlib.font_manager"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a script that the font does not have: said when it is drawn
        found = path.text_to_path.get_text_width_height_descent(text, fonts.FontProperties(size=points), False)
    return float(found[0]) / 72.0


def room_of(axes: Axes, way: int = 0) -> float:
    """The width (or, the other way, the height) of the axes in inches, before anything is laid out."""
    whole: Any = axes.get_figure(root=True)
    return min(float(axes.get_position(original=True).size[way]), SHARE) * float(whole.get_size_inches()[way])


def fitted(text: str, room: float, points: float) -> str:
    """The text in lines of at most so many inches. It is escaped here, and is to be as it came."""
    width, written = 140, ""
    while width > 10:
        written = caption(text, width)
        if max(width_of(line, points) for line in written.split("\n")) <= room:
            break
        width -= 5
    return written


def titled(axes: Axes, text: str, points: float = 10.0) -> None:
    """A title in as many lines as it needs; the text is escaped here."""
    axes.set_title(fitted(text, room_of(axes), points), fontsize=points)


def legend_below(axes: Axes, *handles: Any, below: float = 0.5, points: float = 8.5) -> None:
    """A legend below the axes (so many inches: the labels of the x axis stand between), in as many columns as fit;
    of these handles and labels, by default of all that have one. In a figure that nothing lays out it would be cut off,
    and stands inside."""
    shown, labels = handles or axes.get_legend_handles_labels()
    if not labels:
        return
    whole: Any = axes.get_figure(root=True)
    if whole.get_layout_engine() is None and below > NEAR:  # below axes without scales there is room
        axes.legend(shown, labels, loc="best", fontsize=points, handlelength=2.8)
        return
    longest = max(width_of(label, points) for label in labels) + HANDLE
    columns = max(1, min(len(labels), int(room_of(axes) / longest)))
    transforms: Any = importlib.import_module("matplotlib.transforms")
    down = transforms.ScaledTranslation(0.0, -below, whole.dpi_scale_trans)
    place: Any = {"bbox_to_anchor": (0.5, 0.0), "bbox_transform": axes.transAxes + down, "borderaxespad": 0.0}
    axes.legend(
        shown, labels, loc="upper center", ncols=columns, fontsize=points, frameon=False, handlelength=2.8, **place
    )


def described(axes: Axes, x: str = "", y: str = "", logs: str = "", grid: str = "") -> None:
    """Axes with labels, in as many lines as they need, whose texts are escaped here; ``logs`` has the letters of
    logarithmic ones, ``grid`` is the colour of lines behind."""
    log_scale(*(getattr(axes, f"{each}axis") for each in logs))
    for way, (text, set_label) in enumerate(((x, axes.set_xlabel), (y, axes.set_ylabel))):
        if text:
            set_label(fitted(text, room_of(axes, way), 10.0), fontsize=10.0)
    if grid:
        axes.grid(True, which="major", color=grid)
        axes.set_axisbelow(True)


def finished(axes: Axes, title: str, points: float = 10.0) -> Axes:
    """A picture with its title and its legend below."""
    titled(axes, title, points)
    legend_below(axes)
    return axes


def framed(axes: Axes, title: str, margin: float) -> Axes:
    """A picture of a graph with its title and legend, without scales."""
    titled(axes, title)
    axes.set_axis_off()
    axes.margins(margin)
    legend_below(axes, below=0.05)
    return axes
