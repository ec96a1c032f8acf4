"""The data of a page: the graph and where it is drawn, the frames of the slider, the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..escaping import visible
from ..form import Form
from ..terms import Array
from ..terms.penalties import AbstractNorm
from .clusters import followed
from .frames import NUMBERS, Frame, between, ends_of, packed
from .layout import drawn_places, fitted, given_places
from .outlines import WIDTH, outlines_of
from .slices import slices


def graph(form: Form, positions: Any, outlines: Any) -> dict[str, Any]:
    """Names, edges and places."""
    ends = ends_of(form)
    blocks = between(form)
    data: dict[str, Any] = {
        "nodes": [visible(label) for label in form.labels],
        "latent": len(form.latent),
        "features": [visible(_name(each)) for each in form.space.coordinates],
        "edges": {
            "tail": ends[:, 0].tolist(),
            "head": ends[:, 1].tolist(),
            "block": np.repeat(np.arange(len(blocks)), [len(edge.tail) for _, edge in blocks]).tolist(),
        },
        "grounded": any(edge.ground for edge in form.edges),
        "numbers": list(NUMBERS),
        "width": WIDTH,
    }
    return data | _places(form, ends, positions, outlines)


def _places(form: Form, ends: Array, positions: Any, outlines: Any) -> dict[str, Any]:
    if positions is not None and outlines is not None:
        raise ModelError("a report takes positions or outlines, and not both; leave one of them out")
    shapes: list[str] | None = None
    others = ""
    if outlines is not None:
        users = form.labels[: form.space.n_observed]
        found = outlines_of(outlines, users)
        middle = dict(zip(users, (found.place * [1.0, -1.0]).tolist(), strict=True))
        place = np.rint(given_places(middle, form.labels, len(form.latent), ends)).astype(int)
        height, shapes, others = found.height, found.paths, "".join(found.others)
    elif positions is not None:
        place, height = fitted(given_places(positions, form.labels, len(form.latent), ends))
    else:
        place, height = fitted(drawn_places(form.n, ends))
    x, y = place.T.tolist()
    return {"x": x, "y": y, "height": height, "shapes": shapes, "others": others}


def moving(form: Form, frames: Sequence[Frame]) -> dict[str, Any]:
    """The frames, and how edges are drawn in all of them."""
    kinds = slices(form, list(frames))
    for kind, (_, edge) in zip(kinds, between(form), strict=True):
        k = form.width(edge)
        gauge = edge.penalty.domain.gauge(np.eye(k))
        kind |= {
            "name": visible(edge.name),
            "width": k,
            "limited": isinstance(edge.penalty, AbstractNorm) or bool((gauge > 0.0).any() and np.isfinite(gauge).any()),
        }
    colours = followed([frame.cluster for frame in frames])
    return {
        "slices": kinds,
        "frames": [packed(frame, colour) for frame, colour in zip(frames, colours, strict=True)],
    }


def first_edge(frame: Frame) -> int:
    """An edge to begin with: that whose ends differ most."""
    return int(np.argmax(frame.edge["distance"])) if len(frame.state) else 0


def script_json(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it ends the element, or begins one."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _name(coordinate: Any) -> str:
    return f"{coordinate[0]}[{coordinate[1]}]" if isinstance(coordinate, tuple) else str(coordinate)
