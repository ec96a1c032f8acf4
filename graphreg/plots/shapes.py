"""The outlines of nodes on a map, from GeoJSON, TopoJSON or lists of points."""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..base.messages import did_you_mean, missing_entries, shown
from ..errors import DataError, GraphregError
from ..terms import Array

FORMATS = ("FeatureCollection", "Topology")  # of GeoJSON and of TopoJSON
Rings = list[Array]  # closed lines (k, 2): outlines of parts and of holes


@dataclass(frozen=True)
class Shape:
    """A shape of a file, without rings where it has no area."""

    id: Any
    properties: Mapping[str, Any]
    rings: Rings

    @cached_property
    def names(self) -> dict[str, str]:
        """The id and the properties, as text."""
        known = {} if self.id is None else {"id": self.id}
        return {str(key): str(value) for key, value in (known | dict(self.properties)).items()}


def shapes_of(given: Any, what: str, error: type[GraphregError]) -> dict[str, list[Shape]]:
    """The shapes of GeoJSON or TopoJSON (a dict, or the path of a file), by the name of their collection.

    Returns
    -------
    A list of shapes for each collection; GeoJSON is the one named features.

    Raises
    ------
    error
        For a file that cannot be read, and for what does not keep to its format.
    """
    given = _parsed(given, what, error) if isinstance(given, (str, Path)) else given
    kind = given.get("type") if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) or kind not in FORMATS:
        raise error(
            f"{what} must be GeoJSON of the type 'FeatureCollection' or TopoJSON of the type 'Topology' (a dict, or "
            f"the path of a file), got {shown(kind)}"
        )
    try:
        if kind == "FeatureCollection":
            return {"features": [_shape(each, _geometry(each["geometry"], None)) for each in given["features"]]}
        arcs = _arcs(given)
        objects = {name: each.get("geometries", [each]) for name, each in given["objects"].items()}
        return {name: [_shape(each, _geometry(each, arcs)) for each in some] for name, some in objects.items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as wrong:
        raise error(f"{what}: this is no {kind} as its format says ({wrong!r})") from None


def _parsed(file: str | Path, what: str, error: type[GraphregError]) -> Any:
    """The content of a file, which may be compressed by gzip."""
    try:
        raw = Path(file).read_bytes()
        return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except OSError as wrong:
        raise error(f"{what}: {str(file)!r} cannot be read: {wrong.strerror}; name another file") from None
    except (ValueError, EOFError, RecursionError) as wrong:
        raise error(f"{what}: {str(file)!r} is no JSON ({wrong}); give GeoJSON or TopoJSON") from None


def _shape(of: Mapping[str, Any], rings: Rings) -> Shape:
    return Shape(of.get("id"), of.get("properties") or {}, rings)


def outlines(
    shapes: Any, labels: Sequence[Hashable], key: str | None
) -> tuple[dict[Hashable, Rings], list[Rings], bool]:
    """The rings of each node, those of shapes that are no node's, and whether coordinates are degrees.

    ``shapes`` is a mapping from labels to rings, GeoJSON or TopoJSON (as a dict, or the path of a file); ``key`` is the
    property of a feature that has its label, by default its ``id``.
    """
    if not isinstance(shapes, (str, Path, Mapping)):
        raise DataError("shapes must be a mapping from labels to rings, GeoJSON (a FeatureCollection) or TopoJSON")
    degrees = False
    if isinstance(shapes, Mapping) and key is None and shapes.get("type") not in FORMATS:
        found = [(label, _rings(label, each)) for label, each in shapes.items()]
    else:
        groups = shapes_of(shapes, "shapes", DataError).values()
        found = [(_label(each, key), each.rings) for group in groups for each in group]
        degrees = _in_degrees(found)
    own, others = _matched(found, labels)
    for said in missing_entries("shapes", own, labels):
        raise DataError(said + _hint(found, labels, key))
    return own, others, degrees


def _label(shape: Shape, key: str | None) -> Any:
    if key is None:
        return shape.id
    if key not in shape.properties:
        known = shape.properties
        raise DataError(f"a feature has no property {key!r}{did_you_mean(key, known)}; it has {list(known)[:8]}")
    return shape.properties[key]


def _matched(
    found: Iterable[tuple[Any, Rings]], labels: Sequence[Hashable]
) -> tuple[dict[Hashable, Rings], list[Rings]]:
    """The rings by node (a node may have several features), and those of no node."""
    own: dict[Hashable, Rings] = {}
    others, known = list[Rings](), set(labels)
    for label, rings in found:
        if isinstance(label, Hashable) and label in known:
            own.setdefault(label, []).extend(rings)
        elif rings:
            others.append(rings)
    return own, others


def _hint(found: Sequence[tuple[Any, Rings]], labels: Sequence[Hashable], key: str | None) -> str:
    """The names of the shapes, where they are not those of the nodes."""
    names = [label for label, _ in found][:3]
    known = set(map(str, labels))
    of_text = sum(str(label) in known for label, _ in found)
    where = "by their id (name the property with key=)" if key is None else f"by {key!r}"
    kind = "; they are text there and no text here, or the other way" if of_text == len(known) else ""
    return f"; the shapes are called {names}, ... {where}{kind}"


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
        raise DataError(f"the shape of the node {label!r} must be a ring of at least three points (x, y), or several")
    if not all(np.isfinite(ring).all() for ring in rings):
        raise DataError(f"the shape of the node {label!r} has points that are not finite")
    return rings


def _in_degrees(found: Sequence[tuple[Any, Rings]]) -> bool:
    """True where all points may be longitudes and latitudes."""
    rings = [ring for _, each in found for ring in each]
    return bool(rings) and all((np.abs(ring) <= (180.0, 90.0)).all() for ring in rings)


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
