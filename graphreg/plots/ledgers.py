"""What a run has sent, by purpose and level. matplotlib is imported when it is drawn."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import ModelError
from ..escaping import picture
from ..network import Ledger
from ..running import Solution
from .canvas import HATCHES, axes_for, labelled, legend_below, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def plot_ledger(ledger: Ledger | Solution, what: str = "messages", ax: Axes | None = None) -> Axes:
    """Messages, or bytes, as bars by purpose (method, adaptation, certificate, inference), split by level: the graph,
    the levels of a hierarchy, to a server, beyond the graph.

    Parameters
    ----------
    ledger : Ledger, or the Solution that has it
    what : {"messages", "bytes"}
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ModelError
        For another ``what``, where nothing was sent (as by an exact solver), or where matplotlib is missing.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual())
    >>> gr.plots.plot_ledger(run, "bytes").get_xlabel()
    'bytes'
    """
    checks.one_of("messages", "bytes")(what, "what")
    of = ledger.ledger if isinstance(ledger, Solution) else ledger
    table: Any = of.by_level()[what].unstack(fill_value=0)
    if not table.size:
        raise ModelError("there is nothing to draw: the ledger has no messages")
    purposes = list(table.columns)
    axes = axes_for(ax, (7.5, 1.8 + 0.5 * len(purposes)))
    left = np.zeros(len(purposes))
    for k, (level, row) in enumerate(table.iterrows()):
        size = row.to_numpy(dtype=float)
        style: dict[str, Any] = {"facecolor": f"{0.9 - 0.25 * (k % 3):.2f}", "edgecolor": "0.2"}
        axes.barh(purposes, size, left=left, height=0.6, hatch=HATCHES[k % len(HATCHES)], label=picture(level), **style)
        left += size
    for place, total in enumerate(left):
        axes.annotate(
            _written(total, what), (total, place), (4, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.set(xlim=(0.0, 1.18 * left.max()), ylim=(len(purposes) - 0.5, -0.5))
    axes.xaxis.set_major_formatter(partial(_tick, what))
    axes.tick_params(axis="x", labelsize=9)
    axes.locator_params(axis="x", nbins=5)
    labelled(axes, what)
    titled(axes, f"{_written(left.sum(), what)}{' messages' if what == 'messages' else ''} in {of.rounds:,} rounds")
    legend_below(axes)
    return axes


def _tick(what: str, value: float, _position: float) -> str:
    return _written(value, what)


def _written(value: float, what: str) -> str:
    if what == "messages":
        return f"{value:,.0f}"
    factor, unit = next((each for each in UNITS if value >= each[0]), UNITS[-1])
    return f"{value / factor:.3g} {unit}"
