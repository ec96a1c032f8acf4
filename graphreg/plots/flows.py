"""The flows of an answer beside the capacities of their edges. matplotlib is imported when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..base.escaping import picture
from ..base.messages import count
from ..errors import ModelError
from ..network import Ledger
from ..running import Solution
from .canvas import HATCHES, answer_of, axes_for, described, finished, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24  # edges that have a bar with their names each


def plot_flows(solution: Solution, ax: Axes | None = None) -> Axes:
    """The share of its capacity that the flow of each edge uses, |u_e| / c_e: bars with the names of a few edges, the
    sorted loads of each term where edges are many.

    Only where all of the capacity is used may the ends of an edge differ: these edges are marked. The dual norm |u_e|
    is that of the penalty of the term. Terms whose flows nothing limits (squared penalties, constraints) are left out,
    and named in the title.

    Parameters
    ----------
    solution : Solution
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        Where no edge has a capacity, or matplotlib is missing.

    Examples
    --------
    >>> gr.plots.plot_flows(solution).get_title()
    'flows of 3 edges, 1 saturated'
    """
    table: Any = answer_of(solution).flows.table()
    capacity = table["capacity"].to_numpy(dtype=float)
    limited = np.isfinite(capacity) & (capacity > 0.0)
    terms = dict.fromkeys(table["term"])
    free = [term for term in terms if not limited[table["term"] == term].any()]
    if not limited.any():
        raise ModelError("there is nothing to draw: no edge of the problem has a capacity that limits its flow")
    shown = table[limited]
    few = len(shown) <= MOST_BARS
    axes = axes_for(ax, (7.5, 1.6 + 0.24 * len(shown) if few else 4.5))
    (_bars if few else _curves)(axes, shown)
    what = (
        f"flows of {count(len(shown), 'row' if 'row' in shown else 'edge')}, {int(shown['saturated'].sum())} saturated"
    )
    left = f"; without capacities: {', '.join(map(str, free))}" if free else ""
    return finished(axes, what + left)


def _bars(axes: Axes, shown: Any) -> None:
    """A bar for each edge, the first one on top."""
    terms = list(dict.fromkeys(shown["term"]))
    for k, term in enumerate(terms):
        for full in (False, True):
            rows = np.flatnonzero((shown["term"] == term) & (shown["saturated"] == full))
            style: dict[str, Any] = {"facecolor": "0.3" if full else "0.85", "edgecolor": "0.5" if full else "0.3"}
            said = f"{picture(term)}{', saturated' if full else ''}"
            used = shown["used"].to_numpy(dtype=float)[rows]
            if len(rows):
                axes.barh(rows, used, height=0.7, hatch=HATCHES[k % len(HATCHES)], label=said, **style)
    ends = [shown[name] if name in shown else [None] * len(shown) for name in ("tail", "head", "row")]
    names = [_name(*each) for each in zip(*ends, strict=True)]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(1.0, color="black", linestyle="--", linewidth=1.0, label="capacity")
    axes.set_xlim(0.0, 1.05)
    described(axes, "flow / capacity")


def _name(tail: Any, head: Any, row: Any) -> str:
    if row is not None:
        return picture(row)
    return f"{picture(tail)} to {'the ground' if head is None else picture(head)}"


def _curves(axes: Axes, shown: Any) -> None:
    """The loads of each term from the largest to the smallest."""
    for k, term in enumerate(dict.fromkeys(shown["term"])):
        rows = shown[shown["term"] == term].sort_values("used", ascending=False)
        used, full = rows["used"].to_numpy(dtype=float), rows["saturated"].to_numpy(dtype=bool)
        at = 100.0 * (np.arange(len(used)) + 0.5) / len(used)
        style = line_style(k)
        mark = style.pop("marker")
        axes.plot(at, used, linewidth=1.4, **style)
        axes.plot(at[full], used[full], mark, color=style["color"], markersize=5)
        said = f"{picture(term)}: {int(full.sum()):,} of {len(rows):,} saturated (marked)"
        axes.plot([], [], marker=mark, label=said, **style)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=(0, (6, 2)), label="capacity")
    axes.set(xlim=(0.0, 100.0), ylim=(0.0, 1.08))
    described(axes, "edges of the term, from the largest load to the smallest (%)", "flow / capacity", grid="0.92")


# ---- what a run has sent, by purpose and level. matplotlib is imported when it is drawn ------------------------------
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
    axes.xaxis.set_major_formatter(lambda value, _: _written(value, what))
    axes.tick_params(axis="x", labelsize=9)
    axes.locator_params(axis="x", nbins=5)
    described(axes, what)
    sent = f"{_written(left.sum(), what)}{' messages' if what == 'messages' else ''}"
    return finished(axes, f"{sent} in {of.rounds:,} rounds")


def _written(value: float, what: str) -> str:
    if what == "messages":
        return f"{value:,.0f}"
    factor, unit = next((each for each in UNITS if value >= each[0]), UNITS[-1])
    return f"{value / factor:.3g} {unit}"
