"""The laws of what a penalty derives from its four methods, and may override."""

from __future__ import annotations

import numpy as np

from ..certificate import laws
from ..terms import Array, RecessionCone
from ..terms.penalties import (
    AbstractConstraint,
    AbstractNorm,
    AbstractPenalty,
    AbstractSmoothPenalty,
    extent,
    gauge_around,
)
from . import fenchel
from .probe import Probe
from .report import Failures, demand, distance, dots, frozen, judge, judged, shaped, size


def gauge(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """gauge(u) is the smallest t >= 0 with u / t in dom phi*."""
    u = probe.points[1:]
    g = penalty.domain.gauge(u)
    shaped("gauge", g, (len(u),))

    yield from judge("gauge(u) >= 0", -g, 0.0, u=u)
    proper, never, always = (g > 0) & np.isfinite(g), g == np.inf, g == 0
    t = 1.0 / np.where(proper, g, 1.0)
    margin = max(1e-9, 1e-1 * probe.tolerance)
    for rows, factor, outside, sentence in (
        (proper, t * (1 - margin), False, "u (1 - eps) / gauge(u) lies in dom phi*"),
        (proper, t * (1 + margin), True, "u (1 + eps) / gauge(u) lies outside dom phi*"),
        (never, np.full_like(g, 1e-6), True, "no multiple of u lies in dom phi* where gauge(u) is infinite"),
        (always, np.full_like(g, 1e6), False, "every multiple of u lies in dom phi* where gauge(u) is 0"),
    ):
        if rows.any():
            wrong = probe.outside((u * factor[:, None])[rows]) != outside
            yield from judge(sentence, wrong, 0, u=u[rows], gauge=g[rows])


def gauge_at_zero(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """The pull at 0: phi(z) >= <u, z> for every z, near and far, and phi*(u) = 0, where gauge_at_zero(u) <= 1; beyond,
    phi*(u) > 0. gauge_around(u, eta) bounds it over a box."""
    u = probe.points
    g = penalty.gauge_at_zero(u)
    shaped("gauge_at_zero", g, (len(u),))
    yield from judge("gauge_at_zero(u) >= 0", ~(g >= 0), 0, u=u)
    within, margin = np.isfinite(g), 1e3 * probe.tolerance
    # where no pull is too strong: a strong one
    t = (1.0 - max(1e-9, 10.0 * probe.tolerance)) / np.where(g > 0, g, 1e-3)
    held = frozen((u * np.where(within, t, 0.0)[:, None])[within])
    yield from judge("phi*(u) = 0 where gauge_at_zero(u) <= 1", penalty.conjugate(held), probe.tolerance, u=held)
    yield from _holds_below(penalty, probe, held)
    never, proper = (g == np.inf) & u.any(axis=1), (g > 0) & within
    out = np.where(never, 1.0, (1.0 + max(margin, 1e-3)) / np.where(proper, g, 1.0))
    # what a derived penalty does not know may be called too large
    known = proper if probe.tolerance > fenchel.CLOSED else never | proper
    away = known & bool((penalty.value(np.zeros((1, probe.k))) == 0).all())
    beyond = frozen((u * out[:, None])[away])
    yield from judge("phi*(u) > 0 beyond", ~(penalty.conjugate(beyond) > 0), 0, u=beyond)
    R = extent(penalty, probe.k)
    value = penalty.value(u)
    by = np.where(np.isinf(value) | np.isinf(R), 0.0, size(u) - R * value)
    yield from judge("||z|| <= extent(k) phi(z)", by / np.maximum(size(u), 1e-300), margin, z=u)
    eta = np.abs(probe.rng.standard_normal(u.shape)) * np.abs(u).max(axis=1, keepdims=True)
    corner = frozen(u + eta * np.where(probe.rng.random(u.shape) < 0.5, -1.0, 1.0))
    largest = np.maximum(penalty.gauge_at_zero(corner), g)
    most = gauge_around(penalty, u, frozen(eta))
    by = np.where(most == np.inf, 0.0, (largest - most) / (1e-300 + most))
    yield from judge("gauge_around(u, eta) bounds gauge_at_zero around u", by, margin, u=u, eta=eta)


def _holds_below(penalty: AbstractPenalty, probe: Probe, u: Array) -> Failures:
    """phi(z) >= <u, z>: asked of ``value`` alone, along u, its signs, its largest coordinate, and at random."""
    largest = np.where(np.abs(u) == np.abs(u).max(axis=1, keepdims=True, initial=0.0), np.sign(u), 0.0)
    for length in (1e-6, 1e-3, 1.0, 1e3):
        for direction in (u, np.sign(u), largest, probe.rng.standard_normal(u.shape)):
            z = frozen(length * direction / np.maximum(size(direction), 1e-300)[:, None])
            by = (dots(u, z) - penalty.value(z)) / np.maximum(size(u) * size(z), 1e-300)
            yield from judge("phi(z) >= <u, z> where gauge_at_zero(u) <= 1", by, probe.tolerance, z=z, u=u)


def clip(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """clip lands in dom phi*, twice is once, and what lies inside stays."""
    u = np.vstack([probe.points, probe.extremes, 0.5 * probe.inside, probe.inside])
    return fenchel.clip_is_sound(probe.rows, frozen(u), max(1e-12, probe.tolerance * 1e-2))


def step_to_boundary(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """start + step_to_boundary (end - start) lies in dom phi*; from 0 it is the largest such multiple."""
    inside = probe.inside
    end = frozen(2.0 * probe.points[probe.rng.integers(1, len(probe.points), len(inside))])
    margin = max(1e-6, 10.0 * probe.tolerance)
    yield from fenchel.step_is_sound(probe.rows, penalty.domain.step_to_boundary(inside, end), inside, end)
    zero = frozen(np.zeros_like(end))
    if not probe.outside(zero).any():
        yield from fenchel.step_is_sound(probe.rows, penalty.domain.step_to_boundary(zero, end), zero, end, margin)


def dual_prox(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """dual_prox(v, step, weight) is the prox of step (weight phi)*: by Moreau's identity it follows from prox.

    That says nothing where the one is derived from the other; it counts where both are written by hand, and the prox
    is held to its own law.
    """
    v = probe.points
    step, weight = (frozen(10.0**each) for each in probe.rng.uniform(-1, 1, (2, len(v))))
    y = penalty.dual_prox(v, step, weight)
    moreau = v - step[:, None] * penalty.prox(frozen(v / step[:, None]), frozen(weight / step))
    by = size(y - moreau) / np.maximum(size(v), 1e-300)
    return judge("dual_prox agrees with prox", by, probe.tolerance, v=v, step=step, weight=weight)


def conductance(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """conductance(u) is finite, non-negative and shaped like u, or one number per row."""
    u = probe.inside
    c = penalty.domain.conductance(u)
    shaped("conductance", c, u.shape, (len(u), 1))
    return judge("conductance is finite and non-negative", ~(np.isfinite(c) & (c >= 0)).all(axis=1), 0, u=u)


def conduct(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """conduct is a symmetric positive semidefinite map, which does not lead out of the span of dom phi*."""
    u = probe.inside
    c = penalty.domain.conductance(u)
    z, other = (frozen(probe.rng.standard_normal(u.shape) + shift) for shift in (0.0, 1.0))
    flow, back = penalty.domain.conduct(c, z), penalty.domain.conduct(c, other)
    shaped("conduct", flow, u.shape)
    where = {"u": u, "z": z}
    scale = size(flow) * (size(z) + size(other)) + 1e-300
    yield from judge("<z, conduct(z)> >= 0", -dots(z, flow) / scale, probe.tolerance, **where)
    off = np.abs(dots(other, flow) - dots(z, back)) / scale
    yield from judge("conduct is symmetric", off, probe.tolerance, **where)
    near = probe.middle + 1e-6 * flow / np.maximum(size(flow), 1e-300)[:, None]
    sentence = "interior(k) and a little of conduct(z) lies in dom phi*"
    yield from judge(sentence, probe.outside(near), 0, **where)


def interior(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """interior(k) lies in dom phi* so far inside that one may step a little away from every other point of it."""
    middle = probe.middle
    shaped("interior", middle, (probe.k,))
    u = penalty.domain.clip(probe.points)
    away = middle - 1e-3 * (u - middle) / np.maximum(1.0, size(u - middle))[:, None]
    tried = np.vstack([middle[None], away])
    return judge("interior(k) lies well inside dom phi*", probe.outside(tried), 0, interior=tried)


def subgradient(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """subgradient(z) closes Fenchel-Young: at every z for a smooth penalty, inside the set for a constraint."""
    z = np.vstack([probe.points, 0.9 * penalty.prox(probe.points, 1.0)])
    z = frozen(z[np.isfinite(penalty.value(z))])
    u = penalty.subgradient(z)
    shaped("subgradient", u, z.shape)
    # at the end of its domain phi may be infinitely steep
    keep = np.isfinite(u).all(axis=1) | np.isfinite(penalty.value(frozen(z * (1.0 + 1e-9))))
    smooth = isinstance(penalty, AbstractSmoothPenalty)
    if not smooth:  # a difference of points by default, of which rounding may be longer than all of dom phi*
        keep &= ~(fenchel.CLOSED * size(u) > max(np.median(size(u)), np.median(size(probe.inside))))
    z, u = frozen(z[keep]), u[keep]
    clipped = penalty.domain.clip(u)  # by a last bit, where it lies on the boundary
    by = size(u - clipped) / (1e-300 + size(u) + (0.0 if smooth else fenchel.CLOSED * size(z)))
    yield from judge("subgradient(z) lies in dom phi*", by, 1e-3, z=z)
    gap = penalty.value(z) + penalty.conjugate(clipped) - dots(clipped, z)
    steep = penalty.value(z) / np.maximum(size(z), 1e-300)
    # that of a point near z, by default
    near = 0.0 if smooth else np.maximum(size(clipped), steep) + probe.floor + probe.tolerance
    by = np.abs(gap) / (1e-12 + penalty.value(z) + size(clipped) * size(z) + near)
    yield from judge("subgradient(z) closes Fenchel-Young", by, probe.tolerance if smooth else 1e-3, z=z)


def smoothness(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi(x) <= phi(z) + <gradient(z), x - z> + L/2 ||x - z||^2 for the claimed L, near and far."""
    if not isinstance(penalty, AbstractSmoothPenalty):
        return []
    z, L = probe.points, penalty.smoothness()
    demand(0.0 < L < np.inf, f"the smoothness {L} is not a finite positive number")
    x = frozen(z + probe.rng.standard_normal(z.shape) * 10.0 ** probe.rng.uniform(-2, 1, (len(z), 1)))
    rise = penalty.value(x) - penalty.value(z) - dots(penalty.gradient(z), x - z)
    by = (rise - L / 2 * dots(x - z, x - z)) / (penalty.value(x) + penalty.value(z) + 1e-300)
    return judge(f"phi is smooth with the claimed L = {L:g}", by, probe.tolerance, x=x, z=z)


def curvature(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """curvature is the derivative of the gradient away from kinks, symmetric, between 0 and smoothness."""
    if not isinstance(penalty, AbstractSmoothPenalty):
        return
    z, k = probe.points, probe.k
    c = penalty.curvature(z)
    shaped("curvature", c, z.shape, (len(z), k, k))
    full = c if c.ndim == 3 else c[:, :, None] * np.eye(k)
    asymmetry = np.abs(full - full.transpose(0, 2, 1)).max(axis=(1, 2))
    values, L = np.linalg.eigvalsh(full), penalty.smoothness()
    out = np.maximum(-values[:, 0], values[:, -1] - L)
    yield from judge("0 <= curvature <= smoothness", out, probe.tolerance * (1.0 + L), z=z)
    yield from judge("curvature is symmetric", asymmetry, probe.tolerance * (1.0 + L), z=z)
    yield from fenchel.curvature_is_right(penalty.gradient, c, z)


def strong_convexity(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi - mu/2 ||.||^2 is convex for the claimed mu."""
    mu = penalty.strong_convexity()
    demand(mu >= 0, f"the modulus {mu} of strong convexity is negative")
    if mu == 0:
        return []
    demand(not isinstance(penalty, AbstractConstraint), "an indicator is not strongly convex")
    x = np.vstack([probe.points, 1e3 * probe.points])
    p = penalty.prox(frozen(x), 1e3)  # pulled towards the directions of least curvature
    z = frozen(np.vstack([x, p]))
    other = frozen(z[probe.rng.permutation(len(z))] * 0.5)
    return judged(laws.midpoints(probe.rows, z, other, mu), probe.tolerance, 1e-300)


def recession(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi stays bounded along the directions of recession(k), and grows along all others."""
    cone = penalty.domain.recession(probe.k)
    if cone is None:
        return
    start = penalty.prox(np.zeros((1, probe.k)), 1.0)
    base, rng = penalty.value(start), probe.rng
    candidates = np.vstack([np.eye(probe.k), -np.eye(probe.k), rng.standard_normal((20, probe.k))])
    inside = _into_cone(cone, candidates)
    growth = penalty.value(frozen(start + 1e3 * inside)) - base
    sentence, most = "phi does not grow along its directions of recession", max(1e-6, probe.tolerance)
    yield from judge(sentence, growth, most, direction=inside)
    flat = penalty.prox(frozen(start + 1e3 * candidates), 1e9) - start  # leaves what costs nothing
    flat = flat[size(flat) > 1e-9] / size(flat[size(flat) > 1e-9])[:, None]
    outside = np.vstack([candidates, flat])
    if cone.equations is not None:  # directions at right angles to these
        outside = np.vstack([outside, np.linalg.svd(np.atleast_2d(cone.equations))[2]])
    outside = outside[_distance_to_cone(cone, outside) > 0.1]
    if not len(outside):
        return
    grown = penalty.value(frozen(start + 1e6 * outside)) > base + 1.0
    yield from judge("phi grows along every other direction", ~grown, 0, direction=outside)


def _into_cone(cone: RecessionCone, z: Array) -> Array:
    """Directions of the cone near z."""
    z = np.clip(z, cone.lower, cone.upper)
    if cone.equations is not None and np.size(cone.equations):
        E = np.atleast_2d(cone.equations)
        z = z - z @ np.linalg.pinv(E) @ E if E.shape[1] == z.shape[1] else z
        within = ((z >= cone.lower - 1e-12) & (z <= cone.upper + 1e-12)).all(axis=1, keepdims=True)
        z = np.where(within, z, 0.0)
    return z


def _distance_to_cone(cone: RecessionCone, z: Array) -> Array:
    """The distance of each direction from satisfying the bounds and equations of the cone."""
    out = np.abs(z - np.clip(z, cone.lower, cone.upper)).max(axis=1)
    if cone.equations is None or not np.size(cone.equations):
        return out
    E = np.atleast_2d(cone.equations)
    return np.maximum(out, np.abs(z @ E.T).max(axis=1) / max(np.abs(E).max(), 1e-300))


# ---- constraints and norms ---------------------------------------------------------------------------------------
def projection(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """project lands exactly inside the set and leaves alone what is inside."""
    if not isinstance(penalty, AbstractConstraint):
        return
    z = np.vstack([probe.points, probe.extremes])
    p = penalty.project(frozen(z))
    yield from judged(laws.membership(probe.rows, z, p), 0.0)
    yield from judge("phi is 0 or infinite", ~np.isin(penalty.value(z), (0.0, np.inf)), 0, z=z)
    inside = penalty.value(z) == 0
    yield from judge("project(z) = z inside the set", np.where(inside, distance(p, z), 0.0), 1e-13, z=z)


def norm(penalty: AbstractPenalty, probe: Probe) -> Failures:
    """phi(3 z) = 3 phi(z); <z, u> <= phi(z) dual_norm(u), attained; project_dual lands in the dual ball."""
    if not isinstance(penalty, AbstractNorm):
        return
    z, tolerance = probe.points[1:], probe.tolerance
    u, t = probe.points[1:][::-1], 10.0 ** probe.rng.uniform(-1, 1, len(z))
    value = penalty.value(z)
    yield from judge("phi(3 z) = 3 phi(z)", distance(penalty.value(frozen(3.0 * z)), 3.0 * value), tolerance, z=z)
    pairing = dots(z, u) - value * penalty.dual_norm(u)
    yield from judge("<z, u> <= phi(z) dual_norm(u)", pairing / (size(z) * size(u)), tolerance, z=z, u=u)
    p = penalty.project_dual(frozen(1e3 * z), 1.0)
    by = np.abs(dots(z, penalty.project_dual(frozen(1e9 * z), 1.0)) - value) / value if tolerance < 1e-7 else 0.0
    yield from judge("phi(z) is the largest <z, u> over the dual ball", by, 1e-4, z=z)
    yield from judge("project_dual(u, r) lies in the dual ball", penalty.dual_norm(p) - 1.0, tolerance, u=1e3 * z)
    p = penalty.project_dual(z, frozen(t))
    yield from judge("project_dual takes one radius per row", penalty.dual_norm(p) / t - 1.0, tolerance, u=z, radius=t)
    stays = np.where(penalty.dual_norm(z) < t, distance(p, z), 0.0)
    yield from judge("project_dual(u, r) = u inside the ball", stays, tolerance, u=z, radius=t)
