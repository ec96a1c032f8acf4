"""What penalties on nodes say of a common model: where they vanish, and how much they bend there."""

from __future__ import annotations

import numpy as np

from ...form import EdgeBlock
from ...terms import Array
from ...terms.penalties import AbstractSmoothPenalty


def centers(edges: list[EdgeBlock], d: int) -> Array:
    """The weighted mean of the centers, (d,); 0 where no edge acts."""
    total, weights = np.zeros(d), np.zeros(d)
    for edge in edges:
        at = edge.columns(d)
        weights[at] += edge.weight.sum()
        if edge.center is not None:
            total[at] += edge.weight @ edge.center
    return np.where(weights > 0.0, total / np.where(weights > 0.0, weights, 1.0), 0.0)


def kinks(edges: list[EdgeBlock], d: int, size: float) -> Array:
    """What a quadratic in place of the kinks bends by, (d,): it is as large as they are, where these are ``size``."""
    slopes = np.zeros(d)
    for edge in edges:
        at = edge.columns(d)
        rise = edge.weight.sum() * edge.penalty.value(np.eye(len(at)))
        slopes[at] += np.where(np.isfinite(rise), rise, 0.0)
    return slopes**2 / (size or 1.0)


def derivatives(edge: EdgeBlock, v: Array, soft: Array) -> tuple[Array, Array]:
    """Gradient (k,) and curvature (k, k) of an edge block's sum; that of kinks as if each were the quadratic that
    touches it from above, around the mean of the centers, or ``soft`` (d,) along what they have no slope in."""
    penalty, c = edge.penalty, edge.weight
    if isinstance(penalty, AbstractSmoothPenalty):
        z = differences(edge, v)
        h = c.reshape(-1, *[1] * (penalty.curvature(z).ndim - 1)) * penalty.curvature(z)
        h = h.sum(axis=0)
        return c @ penalty.gradient(z), np.diag(h) if h.ndim == 1 else h
    at = edge.columns(len(v))
    z = v[at] - (0.0 if edge.center is None else c @ edge.center / c.sum())
    g = c.sum() * penalty.subgradient(z[None])[0]
    h = np.maximum(g * np.sign(z), 0.0) / np.maximum(np.abs(z), 1e-300)
    return g, np.diag(np.where(h > 0.0, h, soft[at]))


def differences(edge: EdgeBlock, v: Array) -> Array:
    """v - center_e for each edge, (m, k)."""
    part = v[edge.columns(len(v))]
    part = np.broadcast_to(part, (len(edge.tail), len(part)))
    return part if edge.center is None else part - edge.center
