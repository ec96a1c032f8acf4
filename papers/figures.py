"""Figures like a paper's: readable in grey, axes with labels and units, stated values marked, error bars."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphreg.errors import ModelError

SIZE = (6.4, 4.0)  # inches; a wider sheet has small type where a page is fitted to it
FEW = 2.75  # decades: a logarithmic axis with no more has numbers between the powers of ten, too
INK = ("black", "0.55", "0.3", "0.7", "0.15", "0.45")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "x")
TYPE: dict[Any, float] = {"font.size": 9.5, "axes.titlesize": 9.5, "axes.labelsize": 9.5, "legend.fontsize": 8.5}


def draw(figure: Callable[[Any, dict[str, Any]], None], data: Mapping[str, Any]) -> bytes:
    """The picture as PNG: ``figure(figure, data)`` draws on a matplotlib Figure.

    Raises
    ------
    ModelError
        Where an axis has no label.
    """
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure  # not pyplot: no window, and no state of the whole program

    cycle = cycler(color=INK) + cycler(linestyle=DASHES) + cycler(marker=MARKERS)
    looks: dict[Any, Any] = {"axes.prop_cycle": cycle, "image.cmap": "Greys", **TYPE}
    with mpl.rc_context(looks):
        sheet = Figure(figsize=SIZE, layout="constrained")
        figure(sheet, dict(data))
        for axes in sheet.axes:
            if axes.axison and not (axes.get_xlabel() and axes.get_ylabel()):
                raise ModelError("an axis has no label; name what it shows, with the unit")
            _label_once(axes)
            for axis in (axes.xaxis, axes.yaxis):
                _number(axis)
        picture = io.BytesIO()
        sheet.savefig(picture, format="png", dpi=150)
    return picture.getvalue()


def _label_once(axes: Any) -> None:
    """Of panels that share an axis only those at the edge of the sheet have its label."""
    place = axes.get_subplotspec()
    if place is None:
        return
    for shared, at_edge, forget in (
        (axes.get_shared_x_axes(), place.is_last_row(), axes.set_xlabel),
        (axes.get_shared_y_axes(), place.is_first_col(), axes.set_ylabel),
    ):
        if not at_edge and len(shared.get_siblings(axes)) > 1:
            forget("")


def _number(axis: Any) -> None:
    """Plain numbers (2, 5, 10) at a logarithmic axis of few decades, where its figure has not placed ticks itself."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if not isinstance(axis.get_major_locator(), LogLocator) or high > low * 10.0**FEW:
        return
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def curve(axes: Any, x: Sequence[float], samples: Sequence[Sequence[float]], label: str) -> None:
    """Means over replications with their standard errors as bars; ``samples`` holds the replications at each x."""
    means = [float(np.mean(each)) for each in samples]
    errors = [float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0 for each in samples]
    axes.errorbar(x, means, yerr=errors, capsize=2.5, markersize=4.0, linewidth=1.2, label=label)


def curves(axes: Any, x: Sequence[float], samples: Mapping[str, Sequence[Sequence[float]]], **looks: Any) -> None:
    """A `curve` for each label, and a legend; ``looks``: labels and scales of the axes."""
    for label, each in samples.items():
        curve(axes, x, each, label)
    axes.set(**looks)
    axes.legend()


def mark(axes: Any, x: Sequence[float], values: Sequence[float], label: str = "stated") -> None:
    """Values that the paper states, as open circles."""
    axes.plot(x, values, linestyle="none", marker="o", markersize=9.0, fillstyle="none", color="black", label=label)
