"""Penalties along a line through 0, for the picture of an edge: f(s) = c phi(s q), and its conjugate.

For a unit vector q, f*(t) = sup over s of t s - f(s), and the Fenchel-Young residual f(s) + f*(t) - s t of the slice at
z = s q and t = <u, q> is at most that of the edge, as f*(<u, q>) <= c phi*(u / c).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form import Form
from ..terms import Array, EdgeBlock
from ..terms.penalties import AbstractNorm, is_equality
from .frames import Frame, between

POINTS = 241  # of a tabulated curve, evenly spaced on a logarithmic scale
DECADES = 5.0
INSIDE = 1.0 - 1e-12  # of a flow: the end of the domain itself may be outside for rounding


def slices(form: Form, frames: list[Frame]) -> list[dict[str, Any]]:
    """For each block of edges between nodes how the page finds f and f*, from the number ``slope`` of an edge.

    "norm": f(s) = slope |s|. "quadratic": f(s) = slope s^2 / 2. "equal": f is 0 at 0 alone. "radial": f(s) = c h(|s|)
    with tables of h and h*, of functions of the Euclidean length. "none": no slice is drawn.
    """
    out: list[dict[str, Any]] = []
    begun = 0
    for _, edge in between(form):
        rows = slice(begun, begun + len(edge.tail))
        begun = rows.stop
        out.append({"name": edge.name, **_kind(edge, form.width(edge), rows, frames)})
    return out


def _kind(edge: EdgeBlock, k: int, rows: slice, frames: list[Frame]) -> dict[str, Any]:
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
    """Whether phi is a function of the Euclidean length, as was tried."""
    if k == 1:
        return True
    rng = np.random.default_rng(0)
    q = rng.standard_normal((6, k))
    q = np.vstack([np.eye(1, k), q / np.linalg.norm(q, axis=1)[:, None]])
    for length in (0.1, 1.0, 7.0):
        value = edge.penalty.value(length * q)
        if not np.allclose(value, value[0], rtol=1e-9, atol=0.0):
            return False
    return True


def _short(values: Array) -> list[float | None]:
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in values.tolist()]
