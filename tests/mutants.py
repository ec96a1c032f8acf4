"""Deliberately broken penalties."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from law_cases import SINGULAR, SOLVER_TOLERANCE
from mutant import Mutant, mutant

from graphreg.reading_cvxpy.cone_penalty import ConePenalty
from graphreg.reading_cvxpy.penalty import from_cvxpy
from graphreg.terms.penalties.ball import Ball
from graphreg.terms.penalties.box import Box
from graphreg.terms.penalties.domain import DualBall
from graphreg.terms.penalties.huber_norm import HuberNorm
from graphreg.terms.penalties.l1 import L1
from graphreg.terms.penalties.l2 import L2
from graphreg.terms.penalties.linf import LInf
from graphreg.terms.penalties.non_negative import NonNegative
from graphreg.terms.penalties.quadratic import Quadratic
from graphreg.terms.penalties.squared_l2 import SquaredL2
from graphreg.terms.penalties.zero import Zero
from graphreg.terms.records import RecessionCone


def norm(z: Any) -> Any:
    return np.linalg.norm(z, axis=1)


def col(step: Any) -> Any:
    step = np.asarray(step, dtype=float)
    return step[:, None] if step.ndim else step


def zeros(self: Any, u: Any) -> Any:
    return np.zeros(len(u))


def stay(self: Any, u: Any) -> Any:
    return u


def everywhere(self: Any, k: int) -> RecessionCone:
    return RecessionCone(np.full(k, -np.inf), np.full(k, np.inf))


def nowhere(self: Any, k: int) -> RecessionCone:
    return RecessionCone(np.zeros(k), np.zeros(k))


def in_place(self: Any, v: Any, step: Any) -> Any:
    v /= 1.0 + col(step)
    return v


MIXED = np.array([[2.0, 1.0], [1.0, 3.0]])


def stacked(Q: Any, z: Any) -> Any:
    return np.broadcast_to(Q, (len(z), *Q.shape))


def inverse_off_its_range(self: Any, u: Any) -> Any:
    return 0.5 * np.einsum("ij,jk,ik->i", u, np.linalg.pinv(self.Q), u)


def indefinite() -> Mutant:
    """A matrix with a negative eigenvalue that went past the constructor."""
    values = np.array([-0.3, 1.0, 2.0])
    broken = mutant(
        "Quadratic with a negative eigenvalue",
        Quadratic(np.eye(3)),
        "non negative, convex",
        value=lambda s, z: 0.5 * z**2 @ values,
    )
    broken.broken.__dict__.update(Q=np.diag(values), _values=values, _vectors=np.eye(3))
    return broken


NORMS = [
    mutant("l1: twice the step", L1(), "prox fenchel young, dual prox", prox=lambda s, v, t: L1.prox(s, v, 2 * t)),
    mutant("l1: forgotten sign", L1(), "prox fenchel young", prox=lambda s, v, t: np.maximum(np.abs(v) - col(t), 0)),
    mutant("l1: one step for all rows", L1(), "shapes and rows", prox=lambda s, v, t: L1.prox(s, v, np.mean(t))),
    mutant("l1: conjugate without a domain", L1(), "fenchel young everywhere", conjugate=zeros),
    mutant("l1: CVXPY form of l2", L1(), "cvxpy value, cvxpy argmin", cvxpy=lambda s, Z: cp.norm(Z, 2, axis=1)),
    mutant("l1: gauge of l2", L1(), "gauge, step to boundary", gauge=lambda s, u: norm(u)),
    mutant("l1: clip to just outside", L1(), "clip", clip=lambda s, u: np.clip(u, -1.0001, 1.0001)),
    mutant("l1: value with two dimensions", L1(), "shapes and rows", value=lambda s, z: np.abs(z)),
    mutant("l1: projection forgets the radius", L1(), "norm", project_dual=lambda s, u, r: np.clip(u, -1, 1)),
    mutant("l1: in one piece", L1(), "pieces", pieces=lambda s, k: k),
    mutant("l2: in pieces of one", L2(), "pieces", pieces=lambda s, k: 1),
    mutant("l2: in pieces that do not fit", L2(), "pieces", pieces=lambda s, k: k + 1),
    mutant("l2: hard threshold", L2(), "prox fenchel young", prox=lambda s, v, t: v * (norm(v) > t)[:, None]),
    mutant("l2: squared", L2(), "prox fenchel young, norm, cvxpy value", value=lambda s, z: norm(z) ** 2 / 2),
    mutant("l2: not convex", L2(), "convex, fenchel young everywhere", value=lambda s, z: np.sqrt(norm(z))),
    mutant("l2: dual norm l1", L2(), "prox fenchel young, norm", dual_norm=lambda s, u: np.abs(u).sum(1)),
    mutant("l2: capacity 2", L2(), "fenchel young everywhere", conjugate=lambda s, u: L2.conjugate(s, u / 2)),
    mutant("l2: capacity 1/2", L2(), "prox fenchel young", conjugate=lambda s, u: L2.conjugate(s, u * 2)),
    mutant("l2: one norm for all rows", L2(), "shapes and rows", value=lambda s, z: np.full(len(z), np.linalg.norm(z))),
    mutant("l2: one-sided but said to be even", L2(), "even", value=lambda s, z: norm(np.maximum(z, 0.0))),
    mutant("l2: subgradient of l1", L2(), "subgradient", subgradient=lambda s, z: np.sign(z)),
    mutant("l2: said to be strongly convex", L2(), "strong convexity", strong_convexity=lambda s: 1.0),
    mutant("l2: CVXPY conjugate of l1", L2(), "cvxpy conjugate value", cvxpy_conjugate=lambda s, U: [cp.abs(U) <= 1]),
    mutant("l1: pulls by its own norm", L1(), "gauge at zero", gauge_at_zero=lambda s, u: np.abs(u).sum(1)),
    mutant("l2: pulls twice as strongly", L2(), "gauge at zero", gauge_at_zero=lambda s, u: norm(u) / 2),
    mutant("l2: no pull at 0", L2(), "gauge at zero", gauge_at_zero=lambda s, u: np.where(norm(u) > 0, np.inf, 0.0)),
    mutant("linf: as short as it is high", LInf(), "gauge at zero", extent=lambda s, k: 1.0),
    mutant("linf: projection by clipping", LInf(), "prox fenchel young", project_dual=L1.project_dual),
    mutant("linf: mean", LInf(), "prox fenchel young, cvxpy value", value=lambda s, z: np.abs(z).mean(1)),
    mutant(
        "linf: conjugate of l1",
        LInf(),
        "fenchel young everywhere",
        conjugate=lambda s, u: np.where(np.abs(u).max(1) <= 1, 0.0, np.inf),
    ),
    mutant("linf: reach all the way", LInf(), "step to boundary", step_to_boundary=lambda s, a, b: np.ones(len(a))),
    mutant("linf: negative conductance", LInf(), "conductance, conduct", conductance=lambda s, u: -np.ones_like(u)),
]

SMOOTH = [
    mutant("squared: no half", SquaredL2(), "prox fenchel young, cvxpy value", value=lambda s, z: norm(z) ** 2),
    mutant(
        "squared: step too long",
        SquaredL2(),
        "prox fenchel young, dual prox",
        prox=lambda s, v, t: v / (1 + 2 * col(t)),
    ),
    mutant("squared: conjugate without half", SquaredL2(), "prox fenchel young", conjugate=lambda s, u: norm(u) ** 2),
    mutant(
        "squared: conjugate too small", SquaredL2(), "fenchel young everywhere", conjugate=lambda s, u: norm(u) ** 2 / 4
    ),
    mutant("squared: CVXPY without half", SquaredL2(), "cvxpy value", cvxpy=lambda s, Z: cp.sum(cp.square(Z), axis=1)),
    mutant("squared: too convex", SquaredL2(), "strong convexity", strong_convexity=lambda s: 1.01),
    mutant("squared: gradient twice", SquaredL2(), "subgradient, smoothness", gradient=lambda s, z: 2 * z),
    mutant("squared: too smooth", SquaredL2(), "smoothness", smoothness=lambda s: 0.9),
    mutant("huber norm: gradient without its end", HuberNorm(0.7), "subgradient", gradient=lambda s, z: z),
    mutant("quadratic: gradient without Q", Quadratic(np.diag([1.0, 3.0])), "subgradient", gradient=lambda s, z: z),
    mutant("quadratic: the inverse for Q", Quadratic(MIXED), "quadratic", quadratic=lambda s, k: np.linalg.inv(s.Q)),
    mutant("quadratic: least for largest", Quadratic(np.diag([1.0, 3.0])), "smoothness", smoothness=lambda s: 1.0),
    mutant("squared: curvature halved", SquaredL2(), "curvature", curvature=lambda s, z: np.full_like(z, 0.5)),
    mutant(
        "quadratic: curvature of Q^2", Quadratic(MIXED), "curvature", curvature=lambda s, z: stacked(MIXED @ MIXED, z)
    ),
    mutant(
        "quadratic: only the diagonal", Quadratic(MIXED), "curvature", curvature=lambda s, z: np.diag(MIXED) + 0 * z
    ),
    mutant(
        "huber norm: curvature without its end", HuberNorm(0.7), "curvature", curvature=lambda s, z: np.ones_like(z)
    ),
    mutant(
        "huber norm: curvature along z",
        HuberNorm(0.7),
        "curvature",
        curvature=lambda s, z: np.minimum(1.0, 0.7 / np.maximum(norm(z), 0.7))[:, None] + 0 * z,
    ),
    mutant("squared: grows nowhere", SquaredL2(), "recession", recession=everywhere),
    mutant("squared: dual prox", SquaredL2(), "dual prox", dual_prox=lambda s, v, t, c: v / (1 + col(t * c))),
    mutant("squared: works in place", SquaredL2(), "shapes and rows", prox=in_place),
    mutant(
        "squared: NaN when tiny",
        SquaredL2(),
        "prox fenchel young",
        value=lambda s, z: np.where(norm(z) < 1e-3, np.nan, norm(z) ** 2 / 2),
    ),
    mutant("huber norm: a norm in one piece", HuberNorm(0.7), "pieces", pieces=lambda s, k: k),
    mutant("huber norm: a square", HuberNorm(0.7), "quadratic", quadratic=lambda s, k: np.eye(k)),
    mutant("huber norm: no domain", HuberNorm(0.7), "fenchel young everywhere", conjugate=SquaredL2.conjugate),
    *(
        mutant(
            f"huber norm: a tolerance of {slack:g} on the domain",
            HuberNorm(0.7),
            "ends of the domain",
            conjugate=lambda s, u, slack=slack: np.where(norm(u) <= 0.7 * (1 + slack), norm(u) ** 2 / 2, np.inf),
        )
        for slack in (1e-12, 1e-8, 1e-4, 1e-2)
    ),
    mutant(
        "huber norm: conjugate without half",
        HuberNorm(0.7),
        "prox fenchel young",
        conjugate=lambda s, u: 2 * HuberNorm.conjugate(s, u),
    ),
    mutant(
        "huber norm: tail",
        HuberNorm(0.7),
        "convex, prox fenchel young",
        value=lambda s, z: np.where(norm(z) <= 0.7, norm(z) ** 2 / 2, 0.7 * norm(z) - 0.49),
    ),
    mutant("huber norm: quadratic prox", HuberNorm(0.7), "prox fenchel young", prox=SquaredL2.prox),
    mutant("huber norm: gauge without delta", HuberNorm(0.7), "gauge", gauge=lambda s, u: norm(u)),
    mutant("huber norm: strongly convex", HuberNorm(0.7), "strong convexity", strong_convexity=lambda s: 1.0),
    mutant("huber norm: a kink at 0", HuberNorm(0.7), "gauge at zero", gauge_at_zero=lambda s, u: norm(u) / 0.7),
    mutant("squared: a kink at 0", SquaredL2(), "gauge at zero", gauge_at_zero=zeros),
    mutant("huber norm: clip too far inside", HuberNorm(0.7), "clip", clip=lambda s, u: DualBall.clip(s, u) / 2),
    mutant(
        "huber norm: CVXPY twice",
        HuberNorm(0.7),
        "cvxpy value, cvxpy argmin",
        cvxpy=lambda s, Z: cp.huber(cp.norm(Z, 2, axis=1), 0.7),
    ),
    mutant(
        "quadratic: finite off its range",
        Quadratic(SINGULAR),
        "fenchel young everywhere",
        conjugate=inverse_off_its_range,
    ),
    mutant("quadratic: clip stays off the range", Quadratic(SINGULAR), "clip", clip=stay),
    mutant("quadratic: flows off the range", Quadratic(SINGULAR), "conduct", conduct=lambda s, c, z: c * z),
    mutant("quadratic: grows along its null space", Quadratic(SINGULAR), "recession", recession=nowhere),
    mutant(
        "quadratic: largest eigenvalue",
        Quadratic(np.diag([1.0, 4.0])),
        "strong convexity",
        strong_convexity=lambda s: 4.0,
    ),
    mutant(
        "quadratic: diagonal prox",
        Quadratic(SINGULAR),
        "prox fenchel young",
        prox=lambda s, v, t: v / (1 + col(t) * np.diag(s.Q)),
    ),
    mutant(
        "quadratic: skew conduct",
        Quadratic(np.eye(2)),
        "conduct",
        conduct=lambda s, c, z: z @ np.array([[1.0, 0.9], [0.0, 1.0]]),
    ),
    indefinite(),
]

CONSTRAINTS = [
    mutant("ball: an equation", Ball(2.0), "is equality", conjugate=zeros),
    mutant("ball: squared radius", Ball(2.0), "prox fenchel young", conjugate=lambda s, u: 4.0 * norm(u)),
    mutant("ball: radius too small", Ball(2.0), "fenchel young everywhere", conjugate=lambda s, u: norm(u)),
    mutant(
        "ball: everything to the sphere",
        Ball(2.0),
        "projection",
        project=lambda s, z: 1.99 * z / (norm(z) + 1e-9)[:, None],
    ),
    mutant(
        "ball: projection to outside", Ball(2.0), "projection", project=lambda s, z: Ball.project(s, z) * (1 + 1e-9)
    ),
    mutant(
        "ball: value of a ball that is larger by little",
        Ball(2.0),
        "prox fenchel young",
        value=lambda s, z: np.where(norm(z) <= 2.01, 0.0, np.inf),
    ),
    mutant(
        "ball: value of a larger ball", Ball(2.0), "cvxpy value", value=lambda s, z: np.where(norm(z) <= 3, 0.0, np.inf)
    ),
    mutant(
        "ball: CVXPY form of another",
        Ball(2.0),
        "cvxpy value, cvxpy argmin",
        cvxpy=lambda s, Z: [cp.norm(Z, 2, axis=1) <= 1],
    ),
    mutant(
        "ball: dual prox without the step",
        Ball(2.0),
        "dual prox",
        dual_prox=lambda s, v, t, c: Ball.dual_prox(s, v, np.ones_like(t), c),
    ),
    mutant("ball: a kink at 0", Ball(2.0), "gauge at zero", gauge_at_zero=lambda s, u: norm(u)),
    mutant("ball: finite penalty outside", Ball(2.0), "projection", value=lambda s, z: np.maximum(norm(z) - 2, 0)),
    mutant("zero: does not move", Zero(), "projection, prox fenchel young", project=stay),
    mutant(
        "zero: with a capacity",
        Zero(),
        "prox fenchel young",
        conjugate=lambda s, u: np.where(norm(u) <= 1, 0.0, np.inf),
    ),
    mutant("zero: CVXPY constrains nothing", Zero(), "cvxpy value, cvxpy argmin", cvxpy=lambda s, Z: []),
    mutant("zero: grows nowhere", Zero(), "recession", recession=everywhere),
    mutant("non-negative: no domain", NonNegative(), "fenchel young everywhere", conjugate=zeros),
    mutant(
        "non-negative: sign of prices",
        NonNegative(),
        "prox fenchel young, fenchel young everywhere",
        conjugate=lambda s, u: NonNegative.conjugate(s, -u),
    ),
    mutant("non-negative: pulls both ways", NonNegative(), "gauge at zero", gauge_at_zero=zeros),
    mutant("non-negative: interior on the boundary", NonNegative(), "interior", interior=lambda s, k: np.zeros(k)),
    mutant("non-negative: reflection", NonNegative(), "prox fenchel young", project=lambda s, z: np.abs(z)),
    mutant(
        "non-negative: reach all the way",
        NonNegative(),
        "step to boundary",
        step_to_boundary=lambda s, a, b: np.ones(len(a)),
    ),
    mutant("non-negative: CVXPY sign", NonNegative(), "cvxpy value, cvxpy argmin", cvxpy=lambda s, Z: [Z <= 0]),
    mutant("non-negative: bounded set", NonNegative(), "recession", recession=nowhere),
    mutant(
        "box: bounds swapped in the conjugate",
        Box(-1, 2),
        "prox fenchel young",
        conjugate=lambda s, u: Box.conjugate(s, -u),
    ),
    mutant(
        "box: conjugate of the symmetric box",
        Box(-1, 2),
        "fenchel young everywhere",
        conjugate=lambda s, u: np.abs(u).sum(1),
    ),
    mutant("box: clip stays outside", Box(0.5, np.inf), "clip", clip=stay),
    mutant("box: half a projection", Box(-1, 2), "projection", project=lambda s, z: np.maximum(z, s.low)),
    mutant("box: pulls at its bounds", Box(-1, 2), "gauge at zero", gauge_at_zero=zeros),
    mutant("box: no gauge", Box(0.5, np.inf), "gauge", gauge=zeros),
    mutant("box: half a CVXPY form", Box(-1, 2), "cvxpy value, cvxpy argmin", cvxpy=lambda s, Z: [Z >= -1]),
    mutant("box: no interior", Box(0.5, np.inf), "interior", interior=lambda s, k: np.ones(k)),
]

TWO_NORMS = from_cvxpy(lambda z: cp.norm_inf(z) + cp.norm(cp.multiply([1.0, 2.0], z))).acting_on(2)
BESIDE_SQUARES = from_cvxpy(
    lambda z: cp.norm_inf(z) + cp.norm(cp.multiply([1.0, 2.0], z)) + cp.sum_squares(z)
).acting_on(2)
SIDES = from_cvxpy(lambda z: 2 * cp.norm(cp.pos(z)) + cp.max(cp.neg(z))).acting_on(2)
SOLVED = [
    mutant(
        "from CVXPY: twice the step",
        TWO_NORMS,
        "prox fenchel young",
        SOLVER_TOLERANCE,
        prox=lambda s, v, t: ConePenalty.prox(s, v, 2 * t),
    ),
    mutant("from CVXPY: no domain", TWO_NORMS, "fenchel young everywhere", SOLVER_TOLERANCE, conjugate=zeros),
    mutant("one-sided from CVXPY: no domain", SIDES, "fenchel young everywhere", SOLVER_TOLERANCE, conjugate=zeros),
    mutant(
        "from CVXPY: the pull of its domain",
        BESIDE_SQUARES,
        "gauge at zero",
        SOLVER_TOLERANCE,
        gauge_at_zero=ConePenalty.gauge,
    ),
    mutant(
        "one-sided from CVXPY: other side",
        SIDES,
        "prox fenchel young, cvxpy value",
        SOLVER_TOLERANCE,
        value=lambda s, z: (2 * np.maximum(-z, 0) + np.maximum(z, 0)).sum(1),
    ),
]

PENALTIES = [*NORMS, *SMOOTH, *CONSTRAINTS, *SOLVED]
