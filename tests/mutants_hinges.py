"""Deliberately broken hinge losses."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
from law_cases import CLASSES, samples
from mutant import mutant
from mutants_losses import for_ever, keeps_samples, smooth, turned

from graphreg.terms.losses.hinge import HingeLoss, SquaredHingeLoss

HINGE, SQUARED_HINGE = HingeLoss(samples(CLASSES)), SquaredHingeLoss(samples(CLASSES))

HINGES = [
    mutant("hinge: margin 0", HINGE, "gradient differences, cvxpy value", value=lambda s, x, y: np.maximum(-y * x, 0)),
    mutant(
        "hinge: the other class",
        HINGE,
        "gradient differences, cvxpy value",
        value=lambda s, x, y: np.maximum(1 + y * x, 0),
    ),
    mutant("hinge: no domain", HINGE, "fenchel young everywhere, domain", conjugate=lambda s, b, y: b * y),
    mutant(
        "hinge: domain of both signs",
        HINGE,
        "fenchel young everywhere",
        conjugate=lambda s, b, y: np.where(np.abs(b) <= 1, b * y, np.inf),
    ),
    mutant(
        "hinge: prox without the kink",
        HINGE,
        "prox fenchel young, cvxpy argmin",
        prox=lambda s, v, t, y: np.where(y * v < 1, v + t * y, v),
    ),
    mutant(
        "hinge: gradient 0 inside the margin",
        HINGE,
        "gradient differences",
        gradient=lambda s, x, y: np.where(y * x < 0, -y, 0.0),
    ),
    mutant("hinge: 0 is inside", HINGE, "interior", interior=lambda s, y: np.full(y.shape, True)),
    mutant("hinge: falls for ever", HINGE, "descent", descent=for_ever(ever=True)),
    mutant("hinge: falls the other way", HINGE, "descent", descent=turned),
    mutant("hinge: what fell stays", HINGE, "remains", remains=keeps_samples),
    mutant("hinge: smoothed outside the domain", HINGE, "smoothed", smoothed=smooth(HingeLoss, gradient=-1.0)),
    mutant("hinge: swapped classes", HINGE, "classify", classify=lambda s, x: HingeLoss.classify(s, -x)),
    mutant("hinge: classes coded as signs", HINGE, "classify", classify=lambda s, x: np.where(x > 0, 1, -1)),
    mutant("hinge: any coding", HINGE, "encode", encode=lambda s, y: np.where(np.asarray(y) == 1, 1.0, -1.0)),
    mutant(
        "squared hinge: no half",
        SQUARED_HINGE,
        "gradient differences, cvxpy value",
        value=lambda s, x, y: np.maximum(1 - y * x, 0) ** 2,
    ),
    mutant(
        "squared hinge: not squared",
        SQUARED_HINGE,
        "gradient differences, slopes",
        gradient=lambda s, x, y: np.where(y * x < 1, -y, 0.0),
    ),
    mutant(
        "squared hinge: no domain",
        SQUARED_HINGE,
        "fenchel young everywhere, domain",
        conjugate=lambda s, b, y: b * b / 2 + b * y,
    ),
    mutant(
        "squared hinge: domain of the hinge",
        SQUARED_HINGE,
        "gradient fenchel young, prox fenchel young",
        conjugate=lambda s, b, y: np.where((b * y <= 0) & (b * y >= -1), b * b / 2 + b * y, np.inf),
    ),
    mutant(
        "squared hinge: prox of the square",
        SQUARED_HINGE,
        "prox fenchel young",
        prox=lambda s, v, t, y: v + y * t * (1 - y * v) / (1 + t),
    ),
    mutant(
        "squared hinge: prox without a denominator",
        SQUARED_HINGE,
        "prox fenchel young, cvxpy argmin",
        prox=lambda s, v, t, y: v + y * t * np.maximum(1 - y * v, 0),
    ),
    mutant("squared hinge: strongly convex", SQUARED_HINGE, "slopes, curvature", least_curvature=lambda s: 1.0),
    mutant(
        "squared hinge: curvature on both sides", SQUARED_HINGE, "curvature", curvature=lambda s, x, y: np.ones_like(x)
    ),
    mutant("squared hinge: falls for ever", SQUARED_HINGE, "descent", descent=for_ever(ever=True)),
    mutant(
        "squared hinge: both ways",
        SQUARED_HINGE,
        "descent",
        descent=lambda s, y: replace(s.original.descent(y), falls=0 * s.original.descent(y).falls),
    ),
    mutant(
        "squared hinge: smoothed by itself",
        SQUARED_HINGE,
        "smoothed",
        smoothed=lambda s, x, y: (s.value(x, y), s.gradient(x, y), -s.curvature(x, y)),
    ),
    mutant(
        "squared hinge: swapped classes",
        SQUARED_HINGE,
        "classify",
        classify=lambda s, x: SquaredHingeLoss.classify(s, -x),
    ),
    mutant(
        "squared hinge: CVXPY without the square",
        SQUARED_HINGE,
        "cvxpy value, cvxpy argmin",
        cvxpy=lambda s, x, y: cp.pos(1 - cp.multiply(y, x)),
    ),
    mutant(
        "squared hinge: CVXPY conjugate without a domain",
        SQUARED_HINGE,
        "cvxpy conjugate value",
        cvxpy_conjugate=lambda s, b, y: cp.square(b) / 2 + cp.multiply(b, y),
    ),
]
