"""Bounds of the distance between the ends of an edge, at every optimum.

Let (u, a) be conserved, w* any optimum and G = P(w) - Q(u, a). Then c phi(z*) + c phi*(u / c) - <u, z*> <= G on every
edge, z* = (Kw*)_e. With t the gauge at 0 of u / c, that is <u, z*> <= t c phi(z*), and as phi* >= 0,

    phi(z*) <= G / (c (1 - t)),        |z*_j| <= t_j phi(z*),   t_j the pull of coordinate j.

Where P is strongly convex with mu_i at the ends, ||z - z*|| <= sqrt(2 G (1 / mu_i + 1 / mu_j)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import EdgeBlock, Form
from ...terms import GROUND, Array
from ...terms.penalties import extent, gauge_around, pulls_at_zero
from ..record import Certificate

# ---- the scale of differences, beside which one is negligible or not -------------------------------------------------
ROUNDING = 1e-9  # of the coefficients themselves: closer is equal but for rounding


def scales(form: Form, w: Array) -> Array:
    """The scale of differences in each coordinate, (d,): how far nodes differ in this answer, or how far a step along
    the gradients of their own losses would take them from their mean, whichever is larger.

    Neither depends on the units of the other columns, nor on a shift that all nodes share.
    """
    mean = np.broadcast_to(w.mean(axis=0), w.shape)
    gradient, curvature = np.zeros(form.shape), np.zeros(form.shape)
    with np.errstate(all="ignore"):
        for block in form.samples:
            x = block.predict(mean)
            block.add_adjoint(block.prices(mean), gradient)
            bend = block.scale * block.loss.typical_curvature(x, block.y)
            curvature += (block.A.power(2).T @ np.repeat(bend, block.width)).reshape(form.shape)
        step = _size(gradient) / _size(curvature)
    step = np.where(np.isfinite(step), step, 0.0)
    return np.maximum(np.maximum(_size(w - mean), step), ROUNDING * _size(w))


def _size(a: Array) -> Array:
    """Root mean square of each column."""
    return np.sqrt(np.mean(a * a, axis=0)) if len(a) else np.zeros(a.shape[1])


# ---- how far apart ends are at most ----------------------------------------------------------------------------------
U = 2.0**-53
UNKNOWN = 1e-12  # of the largest flow: its rounding, where a certificate does not say how far the conserved one may be


def upper_gap(certificate: Certificate) -> float:
    """P(w) - P* at most; inf where there is no certificate."""
    if not certificate.valid:
        return float("inf")
    return 0.0 if certificate.primal <= certificate.dual else float(np.nextafter(certificate.gap, np.inf))


def spread_of(certificate: Certificate, k: int) -> Array:
    """The distance at most of the exactly conserved flows of edge block k from those that are shown, (m, k)."""
    if certificate.spread:
        return certificate.spread[k]
    u = certificate.dual_point.flows[k]
    return np.full(u.shape, UNKNOWN * float(np.abs(u).max(initial=0.0)))


def load(edge: EdgeBlock, u: Array, eta: Array) -> Array:
    """t = gauge_at_zero(v / c) at most, over all flows v with |v - u| <= eta, (m,)."""
    c = edge.weight[:, None]
    return gauge_around(edge.penalty, u / c, eta / c * (1 + 4 * U)) * (1.0 + (4 * u.shape[1] + 16) * U)


@dataclass(frozen=True)
class Nearness:
    """Bounds of the differences on the edges of a block, by their slack.

    Attributes
    ----------
    load : (m,)
        t; the edge has slack where it is below 1.
    value : (m,)
        What phi(z) is at most at every optimum.
    largest : (m, k)
        What each |z_j| is at most at every optimum.
    length : (m,)
        What ||z|| is at most at every optimum.
    """

    load: Array
    value: Array
    largest: Array
    length: Array


def nearness(edge: EdgeBlock, u: Array, eta: Array, gap: float) -> Nearness:
    """The bounds of the module's docstring, rounded upwards."""
    t = load(edge, u, eta)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(t < 1.0, gap / (edge.weight * (1.0 - t)) * (1.0 + 16 * U), np.inf)
        pull = pulls_at_zero(edge.penalty, u.shape[1])
        reach = np.where(pull > 0, pull * value[:, None] * (1.0 + 4 * U), 0.0)
        R = extent(edge.penalty, u.shape[1])
        length = R * value * (1.0 + 8 * U) if R > 0 else np.zeros(len(t))
    return Nearness(t, value, reach, length)


def radius(edge: EdgeBlock, mu: Array, whole: float, gap: float) -> Array:
    """An upper bound of ||z - z*|| by strong convexity: mu_i of the nodes (n,), or that of the whole objective,
    (m,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(mu > 0, 1.0 / mu, np.inf)
        if edge.map.edges is None:  # the sums of the squares of a row, over the curvatures, are a little more
            K = edge.map.flat(0).power(2) * (1.0 + 1e-9)
            squares, ends = (
                (K @ x).reshape(edge.count, -1).sum(axis=1)
                for x in (np.ones(K.shape[1]), np.repeat(each, K.shape[1] // edge.n))
            )
        else:
            squares, ends = 2.0, each[edge.tail] + np.where(edge.head == GROUND, 0.0, each[edge.head])
        own = np.where(np.isinf(ends), np.inf, np.sqrt(2.0 * gap * ends))
    return np.minimum(own, np.sqrt(gap / whole) * np.sqrt(2.0 * squares) if whole > 0 else np.inf) * (1.0 + 16 * U)
