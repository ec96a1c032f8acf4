"""The data of a page: the graph and where it is drawn, the frames of the slider, the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.escaping import visible
from ..form import Form
from ..plots import given_places, outlines_of, positions_or_outlines
from ..terms import Array, EdgeBlock, name_of
from ..terms.penalties import AbstractNorm, is_equality
from .frames import NUMBERS, Frame, between, ends_of, lasting_names, packed
from .outlines import WIDTH, drawn, drawn_places, fitted

# ---- penalties along a line through 0: f(s) = c phi(s q), and its conjugate ------------------------------------------
# For a unit vector q, f*(t) = sup over s of t s - f(s), and the Fenchel-Young residual f(s) + f*(t) - s t of the slice
# at z = s q and t = <u, q> is at most that of the edge, as f*(<u, q>) <= c phi*(u / c).
POINTS = 241  # of a tabulated curve, evenly spaced on a logarithmic scale
DECADES = 5.0
INSIDE = 1.0 - 1e-12  # of a flow: the end of the domain itself may be outside for rounding


def _slice(edge: EdgeBlock, k: int, rows: slice, frames: Sequence[Frame]) -> dict[str, Any]:
    """How the page finds f and f* of a block of edges between nodes, from the number ``slope`` of an edge.

    "norm": f(s) = slope |s|. "quadratic": f(s) = slope s^2 / 2. "equal": f is 0 at 0 alone. "radial": f(s) = c h(|s|)
    with tables of h and h*, of functions of the Euclidean length. "none": no slice is drawn.
    """
    phi = edge.penalty
    if is_equality(phi, k):
        return {"kind": "equal"}
    if isinstance(phi, AbstractNorm):
        return {"kind": "norm"}
    if phi.quadratic(k) is not None:
        return {"kind": "quadratic"}
    if not _is_radial(edge, k):
        return {"kind": "none"}
    for frame in frames:  # of which c itself is the number that the page needs
        frame.edge["slope"][rows] = frame.edge["weight"][rows]
    far = max((float(frame.edge["distance"][rows].max(initial=0.0)) for frame in frames), default=1.0) or 1.0
    steep = max((_steepest(frame, rows) for frame in frames), default=1.0) or 1.0
    first = np.eye(1, k)
    gauge = float(phi.domain.gauge(first)[0])
    limit = 1.0 / gauge if gauge > 0.0 else np.inf  # of the flow, beyond which h* is infinite
    ends = 2.0 * far, min(2.0 * steep, limit)
    s, t = (np.append(0.0, end * np.logspace(-DECADES, 0.0, POINTS - 1)) for end in ends)
    return {
        "kind": "radial",
        "s": _short(s),
        "f": _short(phi.value(s[:, None] * first)),
        "t": _short(t),
        "g": _short(phi.conjugate(INSIDE * t[:, None] * first)),
        "limit": float(t[-1]) if t[-1] == limit else None,
    }


def _steepest(frame: Frame, rows: slice) -> float:
    with np.errstate(all="ignore"):
        ratio = np.abs(frame.edge["pull"][rows]) / frame.edge["slope"][rows]
    return float(np.max(ratio[np.isfinite(ratio)], initial=0.0))


def _is_radial(edge: EdgeBlock, k: int) -> bool:
    """True where phi is a function of the Euclidean length, as was tried."""
    if k == 1:
        return True
    q = np.random.default_rng(0).standard_normal((6, k))
    q = np.vstack([np.eye(1, k), q / np.linalg.norm(q, axis=1)[:, None]])
    for length in (0.1, 1.0, 7.0):
        value = edge.penalty.value(length * q)
        if not np.allclose(value, value[0], rtol=1e-9, atol=0.0):
            return False
    return True


def _short(values: Array) -> list[float | None]:
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in values.tolist()]


# ---- the graph and its frames ----------------------------------------------------------------------------------------
def graph(form: Form, positions: Any, outlines: Any) -> dict[str, Any]:
    """Names, edges and places."""
    ends = ends_of(form)
    blocks = between(form)
    data: dict[str, Any] = {
        "nodes": [visible(label) for label in form.labels],
        "latent": len(form.latent),
        "features": [visible(name_of(each)) for each in form.space.coordinates],
        "edges": {
            "tail": ends[:, 0].tolist(),
            "head": ends[:, 1].tolist(),
            "block": np.repeat(np.arange(len(blocks)), [len(edge.tail) for _, edge in blocks]).tolist(),
        },
        "grounded": bool(form.to_ground),
        "numbers": list(NUMBERS),
        "width": WIDTH,
    }
    return data | _places(form, ends, positions, outlines)


def _places(form: Form, ends: Array, positions: Any, outlines: Any) -> dict[str, Any]:
    positions_or_outlines(positions, outlines)
    shapes: list[str] | None = None
    others = ""
    if outlines is not None:
        users = form.labels[: form.space.n_observed]
        found = drawn(outlines_of(outlines, users))
        middle = dict(zip(users, found.place.tolist(), strict=True))
        place = np.rint(given_places(middle, form.labels, len(form.latent), ends)).astype(int)
        height, shapes, others = found.height, found.paths, "".join(found.others)
    elif positions is not None:
        place, height = fitted(given_places(positions, form.labels, len(form.latent), ends) * [1.0, -1.0])
    else:
        near = [np.stack(edge.map.pairs, axis=1) for edge in form.unlike_edges]  # which are not drawn themselves
        place, height = fitted(drawn_places(form.n, np.concatenate([ends, *near])))
    x, y = place.T.tolist()
    return {"x": x, "y": y, "height": height, "shapes": shapes, "others": others}


def moving(form: Form, frames: Sequence[Frame]) -> dict[str, Any]:
    """The frames, and how edges are drawn in all of them."""
    slices, begun = list[dict[str, Any]](), 0
    for _, edge in between(form):
        k, rows = form.width(edge), slice(begun, begun + edge.count)
        begun, gauge = rows.stop, edge.penalty.domain.gauge(np.eye(k))
        limited = isinstance(edge.penalty, AbstractNorm) or bool((gauge > 0.0).any() and np.isfinite(gauge).any())
        kind = _slice(edge, k, rows, frames)
        slices.append({"name": visible(edge.name), **kind, "width": k, "limited": limited})
    colours = lasting_names([frame.cluster for frame in frames])
    return {"slices": slices, "frames": [packed(frame, colour) for frame, colour in zip(frames, colours, strict=True)]}


def first_edge(frame: Frame) -> int:
    """An edge to begin with: that whose ends differ most."""
    return int(np.argmax(frame.edge["distance"])) if len(frame.state) else 0


def script_json(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it ends the element, or begins one."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
