"""Deliberately broken losses of least squares, means, Huber and logistic regression."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from law_cases import CLASSES, NUMBERS, POINTS, samples
from mutant import mutant

from graphreg.terms.losses.huber import HuberLoss
from graphreg.terms.losses.logistic import LogisticLoss
from graphreg.terms.losses.squared import MeanLoss, SquaredLoss

SQUARED, HUBER = SquaredLoss(samples(NUMBERS)), HuberLoss(samples(NUMBERS), delta=0.8)
LOGISTIC, MEAN = LogisticLoss(samples(CLASSES)), MeanLoss(samples(POINTS, features=0))


def newton_from_v(self: Any, v: Any, step: Any, y: Any) -> Any:
    p = v
    for _ in range(100):  # cycles around the root where the step is long
        p = p - (p + step * self.gradient(p, y) - v) / (1.0 + step * self.curvature(p, y))
    return p


LOSSES = [
    mutant(
        "squared: sign of y in the conjugate",
        SQUARED,
        "gradient fenchel young",
        conjugate=lambda s, b, y: b * b / 2 - b * y,
    ),
    mutant("squared: sign of the gradient", SQUARED, "gradient differences, slopes", gradient=lambda s, x, y: y - x),
    mutant("squared: no half", SQUARED, "gradient differences, cvxpy value", value=lambda s, x, y: (x - y) ** 2),
    mutant(
        "squared: prox without the step",
        SQUARED,
        "prox fenchel young, shapes and rows",
        prox=lambda s, v, t, y: (v + np.mean(t) * y) / (1 + np.mean(t)),
    ),
    mutant("squared: too smooth", SQUARED, "slopes, curvature", smoothness=lambda s: 0.5),
    mutant("squared: weights forgotten", SQUARED, "scales", scales=lambda s: np.ones(len(s.data.y))),
    mutant("squared: CVXPY without half", SQUARED, "cvxpy value, cvxpy argmin", cvxpy=lambda s, x, y: cp.square(x - y)),
    mutant("mean: conjugate without y", MEAN, "prox fenchel young", conjugate=lambda s, b, y: (b * b).sum(1) / 2),
    mutant("mean: one value per entry", MEAN, "shapes and rows", value=lambda s, x, y: (x - y) ** 2 / 2),
    mutant("mean: interior per entry", MEAN, "interior", interior=lambda s, y: np.full(y.shape, True)),
    mutant("mean: curvature 2", MEAN, "curvature", curvature=lambda s, x, y: 2 * np.ones_like(x)),
    mutant("mean: more than strongly convex", MEAN, "slopes", least_curvature=lambda s: 1.5),
    mutant(
        "mean: CVXPY conjugate without y",
        MEAN,
        "cvxpy conjugate value",
        cvxpy_conjugate=lambda s, b, y: cp.sum(cp.square(b), axis=1) / 2,
    ),
    mutant("huber: no domain", HUBER, "fenchel young everywhere, domain", conjugate=lambda s, b, y: b * b / 2 + b * y),
    mutant(
        "huber: curvature of an interval in its middle",
        HUBER,
        "curvature within",
        curvature_within=lambda s, low, high, y: (s.curvature((low + high) / 2, y), np.ones_like(low)),
    ),
    mutant(
        "huber: a tolerance on the domain",
        HUBER,
        "ends of the domain",
        conjugate=lambda s, b, y: np.where(np.abs(b) <= s.delta * (1 + 1e-12), b * b / 2 + b * y, np.inf),
    ),
    mutant("huber: curvature 1 everywhere", HUBER, "curvature", curvature=lambda s, x, y: np.ones_like(x)),
    mutant(
        "huber: domain twice as wide",
        HUBER,
        "domain, clip",
        domain=lambda s, y: (np.full(y.shape, -1.6), np.full(y.shape, 1.6)),
    ),
    mutant("huber: CVXPY without half", HUBER, "cvxpy value", cvxpy=lambda s, x, y: cp.huber(x - y, s.delta)),
    mutant("huber: negative conductance", HUBER, "conductance", conductance=lambda s, b, y: -np.ones_like(b)),
    mutant(
        "huber: tail",
        HUBER,
        "convex, gradient fenchel young",
        value=lambda s, x, y: np.where(abs(x - y) <= s.delta, (x - y) ** 2 / 2, s.delta * abs(x - y) - s.delta**2),
    ),
    mutant("huber: quadratic prox", HUBER, "prox fenchel young", prox=SquaredLoss.prox),
    mutant(
        "huber: CVXPY conjugate without a domain",
        HUBER,
        "cvxpy conjugate value",
        cvxpy_conjugate=lambda s, b, y: cp.square(b) / 2 + cp.multiply(b, y),
    ),
    mutant("logistic: swapped classes", LOGISTIC, "encode", encode=lambda s, y: -LogisticLoss.encode(s, y)),
    mutant("logistic: any coding", LOGISTIC, "encode", encode=lambda s, y: np.where(np.asarray(y) == 1, 1.0, -1.0)),
    mutant(
        "logistic: swapped gradient",
        LOGISTIC,
        "gradient differences",
        gradient=lambda s, x, y: LogisticLoss.gradient(s, x, -y),
    ),
    mutant(
        "logistic: sign of the entropy",
        LOGISTIC,
        "gradient fenchel young, prox fenchel young",
        conjugate=lambda s, b, y: np.where(
            np.isfinite(LogisticLoss.conjugate(s, b, y)), -LogisticLoss.conjugate(s, b, y), np.inf
        ),
    ),
    mutant(
        "logistic: no domain",
        LOGISTIC,
        "fenchel young everywhere",
        conjugate=lambda s, b, y: LogisticLoss.conjugate(s, LogisticLoss.clip(s, b, y), y),
    ),
    mutant(
        "logistic: an interval without an end",
        LOGISTIC,
        "curvature within",
        curvature_within=lambda s, low, high, y: LogisticLoss.curvature_within(
            s, np.maximum(low, -3.0), np.minimum(high, 3.0), y
        ),
    ),
    mutant("logistic: curvature", LOGISTIC, "curvature", curvature=lambda s, x, y: np.full_like(x, 0.25)),
    mutant("logistic: smoothness 1/8", LOGISTIC, "slopes, curvature", smoothness=lambda s: 0.125),
    mutant("logistic: Newton from v", LOGISTIC, "prox fenchel young", prox=newton_from_v),
    mutant(
        "logistic: reach all the way", LOGISTIC, "step to boundary", step_to_boundary=lambda s, a, b, y: np.ones(len(y))
    ),
    mutant("logistic: clip without the class", LOGISTIC, "clip", clip=lambda s, b, y: np.clip(b, -1, 1)),
    mutant("logistic: 0 is inside", LOGISTIC, "interior", interior=lambda s, y: np.full(y.shape, True)),
    mutant(
        "logistic: CVXPY of the other class",
        LOGISTIC,
        "cvxpy value, cvxpy argmin",
        cvxpy=lambda s, x, y: cp.logistic(cp.multiply(y, x)),
    ),
]
