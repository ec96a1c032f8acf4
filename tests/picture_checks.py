"""The checks of every picture: texts inside the figure, logarithmic axes that can be read, and legends that say what is
what, also in grey."""

from __future__ import annotations

import re
import warnings
from itertools import combinations

import numpy as np

PLAIN = r"(0\.0*[1-9]\d{0,3}|[1-9]\d{0,2}(,\d{3})*(\.\d{1,3})?)"
POWER = r"\$\\mathdefault\{10\^\{-?\d+\}\}\$"
SHORT = r"[1-9](\.\d{1,3})?e-?\d+"
READABLE = re.compile(f"{PLAIN}|{POWER}|{SHORT}")
FAINT = 0.6  # lightness from which on a grey line is a guide, and needs no entry in a legend


def check_picture(axes_or_figure):
    """Draws it, without a warning, and looks at it."""
    figure = getattr(axes_or_figure, "figure", axes_or_figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    check_texts(figure)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labelled = any(tick.label1.get_visible() for tick in ticks_in_view(axis))  # or it shares another's labels
            if axis.get_scale() == "log" and axes.axison and axis.get_visible() and labelled:
                check_ticks(axis)
    check_legends(figure)


def ticks_in_view(axis):
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    return [tick for tick in axis.get_major_ticks() if low - slack <= tick.get_loc() <= high + slack]


def texts_of(figure):
    """The texts that are drawn."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    if figure.get_suptitle():
        found.append(figure._suptitle)
    for axes in figure.axes:
        found += [axes.title, *axes.texts]
        if axes.get_legend():
            found += axes.get_legend().get_texts()
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            found.append(axis.label)
            found += [label for tick in ticks_in_view(axis) for label in (tick.label1, tick.label2)]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def check_texts(figure):
    width, height = figure.bbox.size
    for text in texts_of(figure):
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, f"{text.get_text()!r} is at {box.extents.round()}, the figure is {width:g} x {height:g}"


def check_ticks(axis):
    shown = [tick.label1.get_text() for tick in ticks_in_view(axis) if tick.label1.get_text()]
    assert len(shown) >= 2, f"a logarithmic axis from {axis.get_view_interval()} has the ticks {shown}"
    assert len(shown) <= 10, shown
    assert len(set(shown)) == len(shown), shown
    assert not [text for text in shown if not READABLE.fullmatch(text)], shown
    assert not [tick for tick in axis.get_minor_ticks() if tick.label1.get_text()]


# ---- legends ---------------------------------------------------------------------------------------------------------
def handles_of(figure):
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [handle for legend in legends for handle in legend.legend_handles]


def colour_of(line):
    from matplotlib.colors import to_rgba

    return to_rgba(line.get_color())[:3]


def check_legends(figure):
    """Every line has an entry of its colour, and no two entries look the same in grey."""
    from matplotlib.lines import Line2D

    handles = handles_of(figure)
    said = {colour_of(handle) for handle in handles if isinstance(handle, Line2D)}
    said |= {tuple(c[:3]) for handle in handles if hasattr(handle, "get_edgecolors") for c in handle.get_edgecolors()}
    for axes in figure.axes:
        for line in axes.lines:
            colour = colour_of(line)
            faint = len(set(colour)) == 1 and colour[0] >= FAINT
            alone = not handles and len(axes.lines) == 1
            assert faint or alone or not len(line.get_xdata()) or colour in said or line in unexplained(axes), (
                f"no entry of the legend says what a line in {colour} of {axes.get_ylabel()!r} is"
            )
    looks = [grey_look(handle) for handle in handles]
    for (one, first), (two, second) in combinations(zip(looks, handles, strict=True), 2):
        assert one != two, f"{first.get_label()!r} and {second.get_label()!r} look the same in grey: {one}"


def unexplained(axes):
    """The gap below two bounds, the only line of its axes, with its label on the axis."""
    return [line for line in axes.lines if axes.get_ylabel() == "relative gap" and axes.get_legend() is axes.legend_]


def grey_look(handle):
    """The look of a handle without its colour."""
    from matplotlib.container import Container
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(handle, Line2D):
        hollow = str(handle.get_markerfacecolor()) == "white"
        light = round(float(np.mean(colour_of(handle))) / 0.3) if len(set(colour_of(handle))) == 1 else 0
        dashes = handle._unscaled_dash_pattern
        return ("line", str(dashes), str(handle.get_marker()), round(handle.get_linewidth(), 1), hollow, light)
    if isinstance(handle, Patch):
        return ("area", handle.get_hatch(), round(float(np.mean(handle.get_facecolor()[:3])) / 0.2))
    if isinstance(handle, Container):
        return ("bars", str(handle))
    marks = [path.vertices.round(2).tobytes() for path in handle.get_paths()]
    size = round(float(handle.get_sizes()[0]) / 200) if hasattr(handle, "get_sizes") else 0
    return ("dots", marks, size, len(handle.get_facecolors()) > 0, str(getattr(handle, "get_linestyle", str)()))
