"""The outlines of nodes, for maps and reports: from GeoJSON, TopoJSON, frames or lists of points."""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.messages import did_you_mean, shown
from ..errors import ModelError
from ..terms import Array

FORMATS = ("FeatureCollection", "Topology")  # of GeoJSON and of TopoJSON
FEW = 5  # names that a message lists
Rings = list[Array]  # closed lines (k, 2): outlines of parts and of holes


@dataclass(frozen=True)
class Shape:
    """A shape of a file, without rings where it has no area."""

    names: dict[str, str]  # the id and the properties, as text
    rings: Rings


@dataclass(frozen=True)
class Outlines:
    """The outlines of nodes.

    Attributes
    ----------
    own : list
        The rings of each node.
    others : list
        Those of shapes that are no node's.
    degrees : bool
        Whether all points may be longitudes and latitudes.
    upwards : bool
        Whether y is known to run upwards: of degrees, frames and mappings, and not of files that are projected.
    """

    own: list[Rings]
    others: list[Rings]
    degrees: bool
    upwards: bool


def outlines_of(given: Any, labels: Sequence[Hashable], key: str | None = None) -> Outlines:
    """The outlines of nodes: of a mapping from labels to rings of points (k, 2), of GeoJSON or TopoJSON (a dict, or the
    path of a file), of a frame of geopandas. A shape belongs to the node whose label, as text, is its id or property
    ``key``; without a key the one is taken that names most nodes.

    Returns
    -------
    Outlines
        The rings of points of each node, and those of no node.

    Raises
    ------
    ModelError
        For what is none of these, shapes that are no polygons, and a node without an outline, with the names that
        there are.
    """
    frame: Any = getattr(given, "__geo_interface__", None)
    plain = isinstance(given, Mapping) and frame is None and not isinstance(given.get("type"), str)
    if plain:
        key = "id"
        collections = {"outlines": [Shape({key: str(label)}, _rings(label, each)) for label, each in given.items()]}
    else:
        collections = _shapes_of(given if frame is None else frame)
    shapes, key = _matching(collections, list(map(str, labels)), key)
    for shape in shapes:
        if not all(np.isfinite(ring).all() for ring in shape.rings):
            names = sorted(shape.names.values())
            raise ModelError(f"outlines: the shape called {names} has points that are not finite; mend its coordinates")
    own: dict[str, Rings] = {str(label): [] for label in labels}  # a node may have several
    others = list[Rings]()
    for shape in shapes:
        name = shape.names.get(key)
        if name in own:
            own[name] += shape.rings
        else:
            others.append(shape.rings)
    points = np.concatenate([ring for shape in shapes for ring in shape.rings])
    degrees = not plain and bool((np.abs(points) <= [180.0, 90.0]).all())
    return Outlines([own[str(label)] for label in labels], others, degrees, degrees or plain or frame is not None)


def positions_or_outlines(positions: Any, outlines: Any) -> None:
    """Refuses both at once.

    Raises
    ------
    ModelError
        Where both are given.
    """
    if positions is not None and outlines is not None:
        raise ModelError("where nodes lie is said by positions or outlines, and not both; leave one of them out")


def _shapes_of(given: Any) -> dict[str, list[Shape]]:
    """The shapes of GeoJSON or TopoJSON (a dict, or the path of a file), by the name of their collection."""
    given = _parsed(given) if isinstance(given, (str, Path)) else given
    kind = given.get("type") if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) or kind not in FORMATS:
        raise ModelError(
            "outlines must be a mapping from labels to rings, a frame with a geometry, or GeoJSON of the type "
            "'FeatureCollection' or TopoJSON of the type 'Topology' (a dict, or the path of a file), got "
            f"{shown(kind)}"
        )
    try:
        if kind == "FeatureCollection":
            return {"features": [_shape(each, _geometry(each["geometry"], None)) for each in given["features"]]}
        arcs = _arcs(given)
        objects = {name: each.get("geometries", [each]) for name, each in given["objects"].items()}
        return {name: [_shape(each, _geometry(each, arcs)) for each in some] for name, some in objects.items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise ModelError(f"outlines: this is no {kind} as its format says ({wrong!r})") from None


def _matching(collections: Mapping[str, list[Shape]], labels: list[str], key: str | None) -> tuple[list[Shape], str]:
    """The collection, and the id or property, that names all nodes."""
    found: list[tuple[int, str, str]] = []
    names = dict.fromkeys(name for shapes in collections.values() for shape in shapes for name in shape.names)
    if key is not None and key not in names:
        raise ModelError(f"outlines have no property {key!r}{did_you_mean(key, names)}; they have {list(names)[:8]}")
    for name, shapes in collections.items():
        drawable = [shape for shape in shapes if shape.rings]
        for each in dict.fromkeys(each for shape in drawable for each in shape.names):
            known = {shape.names[each] for shape in drawable if each in shape.names}
            if key is None or each == key:
                found.append((sum(label in known for label in labels), name, each))
    if not found:
        raise ModelError("outlines have no polygon with an id or a property, by which a node could be known")
    best, name, key = max(found, key=lambda each: each[0])
    shapes = [shape for shape in collections[name] if shape.rings]
    if best == len(labels):
        return shapes, key
    known = {shape.names[key] for shape in shapes if key in shape.names}
    missing = next(label for label in labels if label not in known)
    keys = list(dict.fromkeys(repr(key) for shape in shapes for key in shape.names))
    if best:
        raise ModelError(
            f"outlines have no shape whose {key!r} is {missing!r}, a node ({best} of {len(labels)} nodes have one); "
            "add its shape, or leave outlines out"
        )
    values = ", ".join(map(repr, sorted(known)[:FEW]))
    raise ModelError(
        f"outlines: neither an id nor a property of a shape is the label of a node, such as {missing!r}. Found were "
        f"{', '.join(keys[:FEW])}, for instance {values} as {key!r}; give each shape the label of its node as its 'id'"
    )


def _parsed(file: str | Path) -> Any:
    """The content of a file, which may be compressed by gzip."""
    try:
        raw = Path(file).read_bytes()
        return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except OSError as wrong:
        raise ModelError(f"outlines: {str(file)!r} cannot be read: {wrong.strerror}; name another file") from None
    except (ValueError, EOFError, RecursionError) as wrong:
        raise ModelError(f"outlines: {str(file)!r} is no JSON ({wrong}); give GeoJSON or TopoJSON") from None


def _shape(of: Mapping[str, Any], rings: Rings) -> Shape:
    known = {} if of.get("id") is None else {"id": of["id"]}
    return Shape({str(key): str(value) for key, value in (known | dict(of.get("properties") or {})).items()}, rings)


def _geometry(geometry: Mapping[str, Any] | None, arcs: list[Array] | None) -> Rings:
    """The rings of a geometry; none where it has no area."""
    kind = None if geometry is None else geometry["type"]
    if geometry is None or kind not in ("Polygon", "MultiPolygon", "GeometryCollection"):
        return []
    if kind == "GeometryCollection":
        return [ring for each in geometry["geometries"] for ring in _geometry(each, arcs)]
    parts = geometry["coordinates" if arcs is None else "arcs"]
    rings = parts if kind == "Polygon" else [ring for part in parts for ring in part]
    if arcs is None:
        return [np.asarray(ring, dtype=float)[:, :2] for ring in rings]
    return [_joined(ring, arcs) for ring in rings]


def _arcs(topology: Mapping[str, Any]) -> list[Array]:
    """The arcs in their coordinates: quantised ones are differences, to be scaled and moved."""
    arcs = [np.asarray(arc, dtype=float)[:, :2] for arc in topology["arcs"]]
    transform = topology.get("transform")
    if transform is None:
        return arcs
    return [np.cumsum(arc, axis=0) * transform["scale"] + transform["translate"] for arc in arcs]


def _joined(ring: Sequence[int], arcs: list[Array]) -> Array:
    """Arcs one after the other, ``~k`` being arc k backwards; each begins where the last one ends."""
    parts = [arcs[k] if k >= 0 else arcs[~k][::-1] for k in ring]
    return np.concatenate([part if i == 0 else part[1:] for i, part in enumerate(parts)])


def _rings(label: Hashable, given: Any) -> Rings:
    """One ring (k, 2), or a list of them."""
    try:
        one = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        one = np.empty(0)
    try:
        rings = [one] if one.ndim == 2 else [np.asarray(ring, dtype=float) for ring in given]
    except (TypeError, ValueError):
        rings = []
    if not rings or any(ring.ndim != 2 or ring.shape[-1] != 2 or len(ring) < 3 for ring in rings):
        raise ModelError(f"the outline of the node {label!r} must be a ring of three or more points (x, y), or several")
    return rings


# ---- borders ---------------------------------------------------------------------------------------------------------
def borders(shapes: Sequence[Rings]) -> tuple[Array, list[tuple[int, int]]]:
    """The lines (m, 2, 2) that two of the outlines share point by point, and which two."""
    seen: dict[tuple[tuple[float, float], tuple[float, float]], list[int]] = {}
    for k, rings in enumerate(shapes):
        for ring in rings:
            points = list(map(tuple, ring.tolist()))
            for a, b in zip(points, points[1:] + points[:1], strict=True):
                if a != b:
                    seen.setdefault((min(a, b), max(a, b)), []).append(k)
    shared = {line: (min(own), max(own)) for line, own in seen.items() if min(own) != max(own)}
    return np.array(list(shared), dtype=float).reshape(-1, 2, 2), list(shared.values())


def squares(cells: Array) -> list[Rings]:
    """The outline of each cell (row, column) of a grid: columns to the right, rows downwards."""
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return [[np.array([column, -row]) + corners] for row, column in cells.tolist()]
