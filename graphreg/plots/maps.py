"""A coefficient on a map, a grid or at points. matplotlib is imported when it is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import LONGEST, visible
from ..base.messages import count
from ..errors import ModelError
from ..running import Solution
from ..terms import Array, name_of
from .canvas import answer_of, axes_for, column_of, fitted, legend_below, room_of, swatch, titled
from .graphs import boundary
from .layouts import DARK, area_of, cells_of, given_places, luminance
from .shapes import Outlines, Rings, borders, outlines_of, positions_or_outlines, squares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .layouts import Positions

BOLD, OPEN = 2.0, 1.0  # widths of the lines between clusters, and where that is undecided
MANY = 300  # nodes from which on these are thinner
THIN = "0.55"
SHORT = 0.25  # of the edges: bars across longer ones do not grow with them, and cross each other less
MARGIN = 1.15  # of a diverging scale, whose ends are too dark to tell apart
BELOW, UNKNOWN = "////", "xxxx"  # the hatches of what is below 0, and of nodes without data


Borders = tuple[Array, list[tuple[int, int]]]  # lines, and the two nodes on both sides of each


def plot_map(
    solution: Solution,
    positions: Positions = None,
    outlines: Any = None,
    feature: Any = None,
    key: str | None = None,
    unit: str = "",
    ax: Axes | None = None,
    prove: bool = False,
) -> Axes:
    """A coefficient of every node on a map; bold lines are the boundaries between clusters, dotted ones stand where
    that is undecided.

    The scale of colours is sequential where all values have one sign, and else diverging around 0; then values below 0
    are hatched (at points: triangles downwards), so that the map reads in grey. Nodes that no data reach are white
    and crossed out.

    Parameters
    ----------
    solution : Solution
    positions : mapping or DataFrame, optional
        Where the nodes are, as points: a pair (x, y) per label, or a frame whose first two columns are x and y. Without
        positions and outlines the cells of a grid, where all labels are pairs (row, column).
    outlines : mapping, frame, dict or path, optional
        Where they are, as areas: a mapping from labels to a ring of points (k, 2) or to several; a frame of geopandas;
        GeoJSON (a FeatureCollection) or TopoJSON, as a dict or as the path of a file. Longitudes and latitudes are
        drawn at the scale of their middle. Shapes of no node are outlines without a colour.
    feature : coordinate, optional
        The first one by default.
    key : str, optional
        The property of the outlines that has the label of the node; by default the one, or the ``id``, that names
        all nodes.
    unit : str
        Of the coefficient, for the scale of colours.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    prove : bool
        Whether to look for proofs that edges are fused or split, as `Solution.clusters` does.

    Neighbouring rings have a boundary where they share points exactly, as in TopoJSON. At points boundaries are short
    bars across the edges that join two clusters. Where y runs downwards, as in shapes that are projected for a screen,
    ``axes.invert_yaxis()`` turns the map.

    Raises
    ------
    ModelError
        For outlines that are none, a node without one or without a position, an unknown feature, where nothing says
        where the nodes are, or where matplotlib is missing.

    Examples
    --------
    >>> places = {"a": (0, 0), "b": (1, 0), "c": (2, 1), "d": (3, 1)}
    >>> gr.plots.plot_map(solution, places, feature="rain", unit="m per mm").get_title()
    'rain at 4 nodes in 2 clusters'
    """
    solution = answer_of(solution)
    space = solution.form.space
    column = column_of(space, feature)
    name = visible(name_of(space.coordinates[column]), LONGEST)
    values, clusters = space.in_units(solution.coef)[:, column].copy(), solution.clusters(prove)
    values[[space.index[label] for label in solution.unreached]] = np.nan
    axes = axes_for(ax, (7.5, 5.5))
    positions_or_outlines(positions, outlines)
    colours = _Colours.of(values)
    if positions is not None:
        lines, pairs = _draw_points(axes, solution, given_places(positions, solution.labels), values, colours)
    else:
        areas = _cells(solution.labels) if outlines is None else outlines_of(outlines, solution.labels, key)
        lines, pairs = _draw_areas(axes, areas, outlines is None, values, colours)
    share = float(np.clip((MANY / len(values)) ** 0.25, 0.6, 1.0))
    _draw_boundary(axes, lines, boundary(solution, pairs, prove), share)
    axes.set_axis_off()
    label = f"{name} ({visible(unit)})" if unit else name
    bar: Any = axes.figure.colorbar(colours.mapping, ax=axes, shrink=0.85, pad=0.02)
    bar.set_label(fitted(label, 0.8 * room_of(axes, 1), 10.0))
    what = f"{name} at {count(len(values), 'node')} in {count(clusters.count, 'cluster')}"
    titled(axes, what + ("" if solution.status == "certified" else f" (not certified: {solution.status})"))
    legend_below(axes, below=0.1)
    return axes


class _Colours:
    """The scale: sequential, or diverging around 0."""

    def __init__(self, mapping: Any, diverging: bool) -> None:
        self.mapping, self.diverging = mapping, diverging

    @staticmethod
    def of(values: Array) -> _Colours:
        cm, colors = map(importlib.import_module, ("matplotlib.cm", "matplotlib.colors"))
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        diverging = low < 0.0 < high
        if diverging:
            low, high = -MARGIN * max(-low, high), MARGIN * max(-low, high)
        elif low == high:
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        norm = colors.Normalize(low, high)
        return _Colours(cm.ScalarMappable(norm, "PuOr_r" if diverging else "viridis"), diverging)


# ---- areas -----------------------------------------------------------------------------------------------------------
def _cells(labels: Sequence[Hashable]) -> Outlines:
    """The cells of a grid."""
    cells = cells_of(labels)
    if cells is None:
        raise ModelError(
            "the labels of the nodes are no cells (row, column) of a grid; say where they are: positions= or outlines="
        )
    return Outlines(squares(cells), [], degrees=False, upwards=True)


def _draw_areas(axes: Axes, areas: Outlines, cells: bool, values: Array, colours: _Colours) -> Borders:
    """Nodes as areas, and the lines between them."""
    patches = list(map(_path, areas.own))
    collection: Any = importlib.import_module("matplotlib.collections").PathCollection
    line = 0.0 if cells else float(np.clip(40.0 / len(patches), 0.1, 0.6))
    for each in areas.others:
        axes.add_collection(collection([_path(each)], facecolors="none", edgecolors="0.8", linewidths=0.4))
    known = np.isfinite(values)
    face = np.where(known[:, None], colours.mapping.to_rgba(np.nan_to_num(values)), 1.0)
    edge: Any = face if cells else THIN
    axes.add_collection(collection(patches, facecolors=face, edgecolors=edge, linewidths=line or 0.3))
    below, dark = colours.diverging & (values < 0), luminance(face) < DARK
    hatched = ((below & ~dark, BELOW, "0.35"), (below & dark, BELOW, "0.85"), (~known, UNKNOWN, "0.35"))
    for chosen, hatch, ink in hatched:
        if some := [patches[k] for k in np.flatnonzero(chosen)]:
            axes.add_collection(collection(some, facecolors="none", edgecolors=ink, linewidths=0.0, hatch=hatch))
    if below.any():
        swatch(axes, BELOW, "below 0")
    if not known.all():
        swatch(axes, UNKNOWN, "no data")
    axes.autoscale_view()
    middle = np.mean(axes.get_ylim())
    axes.set_aspect(1.0 / max(np.cos(np.radians(middle)), 0.1) if areas.degrees else 1.0)
    return borders(areas.own)


def _path(rings: Rings) -> Any:
    """All rings as one path, so that holes are holes."""
    path: Any = importlib.import_module("matplotlib.path").Path
    codes = [np.r_[1, np.full(len(ring) - 1, 2), 79] for ring in rings]  # MOVETO, LINETO, CLOSEPOLY
    return path(np.concatenate([np.concatenate([ring, ring[:1]]) for ring in rings]), np.concatenate(codes))


def _draw_boundary(axes: Axes, lines: Array, kinds: list[str], thin: float) -> None:
    """Bold lines on white ones, so that they are seen on dark colours; those that are open are thin and dotted."""
    collection: Any = importlib.import_module("matplotlib.collections").LineCollection
    for kind, style, width in (("undecided", ":", OPEN), ("between clusters", "-", thin * BOLD)):
        some = lines[np.array(kinds, dtype=object) == kind]
        if len(some):
            under = width + (1.6 * thin if style == "-" else 0.0)
            axes.add_collection(collection(list(some), colors="white", linewidths=under, zorder=3))
            axes.add_collection(collection(list(some), colors="black", linewidths=width, linestyles=style, zorder=3))
            axes.plot([], [], color="black", linewidth=width, linestyle=style, label=kind)


# ---- points ----------------------------------------------------------------------------------------------------------
def _draw_points(axes: Axes, solution: Solution, place: Array, values: Array, colours: _Colours) -> Borders:
    """Nodes as points, edges as thin lines, and a bar across each edge."""
    pairs = [np.stack([edge.tail, edge.head], axis=1) for edge in solution.form.edges if not edge.ground]
    ends = np.unique(np.concatenate([*pairs, np.zeros((0, 2), dtype=int)]), axis=0)
    ends = ends[(ends < len(values)).all(axis=1)]  # no latent nodes, which have no place
    collection: Any = importlib.import_module("matplotlib.collections").LineCollection
    axes.add_collection(collection(list(place[ends]), colors="0.75", linewidths=0.6, zorder=1))
    known, below = np.isfinite(values), colours.diverging & (values < 0)
    area = 0.6 * area_of(len(values))
    style: dict[str, Any] = {"s": area, "edgecolors": "0.3", "linewidths": min(0.6, area / 30.0), "zorder": 2}
    for chosen, mark, said in ((known & ~below, "o", "0 and above"), (known & below, "v", "below 0")):
        if chosen.any():
            axes.scatter(*place[chosen].T, c=colours.mapping.to_rgba(values[chosen]), marker=mark, **style)
            if colours.diverging:
                entry: dict[str, Any] = style | {"s": float(np.clip(area, 40.0, 90.0)), "linewidths": 0.6}
                axes.scatter([], [], c="0.7", marker=mark, label=said, **entry)
    if not known.all():
        axes.scatter(*place[~known].T, s=area, c="0.3", marker="x", label="no data", zorder=2)
    between = place[ends]
    across = np.stack([between[:, 1, 1] - between[:, 0, 1], between[:, 0, 0] - between[:, 1, 0]], axis=1)
    length = np.linalg.norm(across, axis=1, keepdims=True)
    usual = np.quantile(length, SHORT) if len(length) else 0.0
    across = np.where(length > usual, across * usual / np.maximum(length, 1e-300), across)
    middle = between.mean(axis=1)
    bars = np.stack([middle - 0.25 * across, middle + 0.25 * across], axis=1)
    axes.margins(0.08)
    axes.set_aspect("equal")
    return bars, list(map(tuple, ends.tolist()))
