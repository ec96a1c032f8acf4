"""Deliberately broken losses of gamma, expectile and support vector regression, and their bounds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from law_cases import NUMBERS, samples
from mutant import mutant
from mutants_bounds import CONJUGATE, VALUE, half_spread, nothing_spread

from graphreg.terms.losses.epsilon_insensitive import SquaredEpsilonInsensitiveLoss
from graphreg.terms.losses.expectile import ExpectileLoss
from graphreg.terms.losses.gamma import GammaLoss
from graphreg.terms.losses.squared import SquaredLoss

GAMMA, EXPECTILE = GammaLoss(samples(np.exp(NUMBERS))), ExpectileLoss(samples(NUMBERS), tau=0.3)
TUBE = SquaredEpsilonInsensitiveLoss(samples(NUMBERS), epsilon=0.5)

LOSSES = [
    mutant(
        "gamma: conjugate without y",
        GAMMA,
        "gradient fenchel young",
        conjugate=lambda s, b, y: GammaLoss.conjugate(s, b, 0.0 * y + 1.0),
    ),
    mutant(
        "gamma: no domain",
        GAMMA,
        "fenchel young everywhere, domain",
        conjugate=lambda s, b, y: GammaLoss.conjugate(s, np.minimum(b, 1.0), y),
    ),
    mutant(
        "gamma: the curvature grows",
        GAMMA,
        "curvature within",
        curvature_within=lambda s, low, high, y: GammaLoss.curvature_within(s, high, low, y),
    ),
    mutant("gamma: CVXPY without x", GAMMA, "cvxpy value", cvxpy=lambda s, x, y: cp.multiply(y, cp.exp(-x))),
    mutant("gamma: value at the middle", GAMMA, VALUE, value_bound=nothing_spread(GammaLoss, "value_bound")),
    mutant(
        "gamma: only the exponential is spread",
        GAMMA,
        VALUE,
        value_bound=lambda s, r, e, y: (r + y * np.exp(e - r)) * (1.0 + 2.0**-46),
    ),
    mutant("gamma: half the box", GAMMA, CONJUGATE, conjugate_bound=half_spread(GammaLoss, "conjugate_bound")),
    mutant(
        "gamma: a bound without y",
        GAMMA,
        CONJUGATE,
        conjugate_bound=lambda s, b, e, y: GammaLoss.conjugate_bound(s, b, e, 0.0 * y + 1.0),
    ),
    mutant(
        "expectile: sides exchanged",
        EXPECTILE,
        "gradient differences",
        value=lambda s, x, y: ExpectileLoss.value(s, y, x),
    ),
    mutant(
        "expectile: prox of a square",
        EXPECTILE,
        "prox fenchel young",
        prox=SquaredLoss.prox,
    ),
    mutant(
        "expectile: conjugate of a square",
        EXPECTILE,
        "gradient fenchel young",
        conjugate=lambda s, b, y: b * (b / 2 + y),
    ),
    mutant("expectile: too smooth", EXPECTILE, "slopes, curvature", smoothness=lambda s: 0.5),
    mutant("expectile: more than strongly convex", EXPECTILE, "slopes", least_curvature=lambda s: 0.5),
    mutant(
        "expectile: value at the middle", EXPECTILE, VALUE, value_bound=nothing_spread(ExpectileLoss, "value_bound")
    ),
    mutant(
        "expectile: sides of the bound exchanged",
        EXPECTILE,
        f"{VALUE}, {CONJUGATE}",
        _largest=lambda s, r, e, bent: ExpectileLoss._largest(s, -r, e, bent),
    ),
    mutant("expectile: bound of a square", EXPECTILE, CONJUGATE, conjugate_bound=SquaredLoss.conjugate_bound),
    mutant(
        "tube: conjugate of a square",
        TUBE,
        "gradient fenchel young",
        conjugate=lambda s, b, y: b * b / 2 + b * y,
    ),
    mutant("tube: no tube", TUBE, "gradient differences", gradient=lambda s, x, y: x - y),
    mutant("tube: strongly convex", TUBE, "slopes", least_curvature=lambda s: 1.0),
    mutant(
        "tube: CVXPY without the tube", TUBE, "cvxpy value, cvxpy argmin", cvxpy=lambda s, x, y: cp.square(x - y) / 2
    ),
    mutant(
        "tube: spread within the tube",
        TUBE,
        VALUE,
        value_bound=nothing_spread(SquaredEpsilonInsensitiveLoss, "value_bound"),
    ),
    mutant("tube: bound without the tube", TUBE, VALUE, value_bound=SquaredLoss.value_bound),
    mutant("tube: bound of a square", TUBE, CONJUGATE, conjugate_bound=SquaredLoss.conjugate_bound),
]
