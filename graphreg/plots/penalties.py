"""Penalties along a line: values, proxes and conjugates. matplotlib is imported when they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..base.escaping import caption, picture
from ..errors import ModelError
from ..terms import Array
from ..terms.penalties import AbstractPenalty
from .canvas import axes_for, described, legend_below, line_style, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHAT = {  # what may be drawn, and its label
    "value": "penalty of s d",
    "prox": "prox of s d, along d",
    "conjugate": "conjugate of s d",
}
POINTS = 1201  # odd: 0 is one of them
Penalties = AbstractPenalty | Sequence[AbstractPenalty] | Mapping[str, AbstractPenalty]


def plot_penalty(
    penalties: Penalties,
    what: str = "value",
    direction: Sequence[float] | Array = (1.0, 0.5),
    reach: float = 2.5,
    ax: Axes | None = None,
) -> Axes:
    """One or several penalties along the line of all s d, d of length 1:

        value      phi(s d)
        prox       <d, argmin_p phi(p) + 1/2 ||p - s d||^2>, how far the prox goes along d
        conjugate  phi*(s d) = sup_z <s d, z> - phi(z)

    Vertical lines are the ends of the domain: beyond them the function is +inf.

    Parameters
    ----------
    penalties : penalty, sequence of them, or mapping from names to them
    what : {"value", "prox", "conjugate"}
    direction : sequence of k numbers
        d is this vector, divided by its length; norms differ where it has several coordinates that are not equal.
    reach : float
        s runs from minus this to this.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    ModelError
        For another ``what``, a direction that is none, a reach that is not positive, no penalty, or where matplotlib
        is missing.
    TermError
        For a penalty that cannot act on k coordinates.

    Examples
    --------
    >>> gr.plots.plot_penalty([gr.L1(), gr.L2()], "prox").get_xlabel()
    's'
    """
    checks.one_of(*WHAT)(what, "what")
    checks.inside("(0, inf)")(reach, "reach")
    d = np.asarray(direction, dtype=float)
    if d.ndim != 1 or not np.isfinite(d).all() or not d.any():
        raise ModelError(f"direction must be finite numbers, not all 0, got {direction!r}")
    named = _named(penalties)
    if not named:
        raise ModelError("plot_penalty needs at least one penalty")
    axes = axes_for(ax, (6.0, 4.5))
    s = np.linspace(-reach, reach, POINTS)
    lines = {name: _along(penalty.acting_on(len(d)), what, s, d / np.linalg.norm(d)) for name, penalty in named.items()}
    for k, (name, y) in enumerate(lines.items()):
        _draw(axes, s, y, picture(name), k)
    axes.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    axes.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    top = max((float(y[np.isfinite(y)].max(initial=0.0)) for y in lines.values()), default=0.0)
    if what != "prox":
        axes.set_ylim(-0.08 * (top or 1.0), 1.08 * min(top or 1.0, 2.0 * reach))
    described(axes, "s", WHAT[what])
    legend_below(axes)
    return axes


def penalty_figure(
    penalties: Penalties,
    direction: Sequence[float] | Array = (1.0, 0.5),
    reach: float = 2.5,
    figure: Figure | None = None,
) -> Figure:
    """Values, proxes and conjugates of penalties side by side; see `plot_penalty`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> len(gr.plots.penalty_figure([gr.L2(), gr.SquaredL2()]).axes)
    3
    """
    whole: Figure = pyplot().figure(figsize=(11.0, 4.4), layout="constrained") if figure is None else figure
    panels = whole.subplots(1, 3)
    for what, axes in zip(WHAT, panels, strict=True):
        plot_penalty(penalties, what, direction, reach, axes)
        axes.get_legend().remove()
    handles, labels = panels[0].get_legend_handles_labels()
    whole.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5, handlelength=2.8)
    d = ", ".join(f"{x:g}" for x in np.asarray(direction, dtype=float))
    whole.suptitle(caption(f"along d, the direction of ({d})", 100), fontsize="medium")
    return whole


def _named(penalties: Penalties) -> dict[str, AbstractPenalty]:
    if isinstance(penalties, Mapping):
        return dict(penalties)
    each = [penalties] if isinstance(penalties, AbstractPenalty) else list(penalties)
    named = dict[str, AbstractPenalty]()
    for penalty in each:
        plain = type(penalty).__repr__ is object.__repr__  # the name that models print, with a number where it is taken
        name = penalty.called() if plain else repr(penalty)
        named[f"{name} {len(named) + 1}" if plain and name in named else name] = penalty
    return named


def _along(penalty: AbstractPenalty, what: str, s: Array, d: Array) -> Array:
    points = s[:, None] * d
    with np.errstate(all="ignore"):
        if what == "prox":
            return penalty.prox(points, 1.0) @ d
        return penalty.value(points) if what == "value" else penalty.conjugate(points)


def _draw(axes: Axes, s: Array, y: Array, name: str, k: int) -> None:
    """A line where the function is finite, and a wall at each end of its domain."""
    style: dict[str, Any] = line_style(k) | {"markevery": (7 * k % 60, 120), "markersize": 5, "linewidth": 1.5}
    inside = np.isfinite(y)
    axes.plot(s, np.where(inside, y, np.nan), label=name, **style)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return
    for end, edge in ((rows[0], 0), (rows[-1], len(s) - 1)):
        if end != edge:
            axes.vlines(s[end], y[end], 1e6, color=style["color"], linestyle=style["linestyle"], linewidth=1.5)
