"""Deliberately broken bounds: what a certificate rests on beside values and conjugates."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from law_cases import CLASSES, COUNTS, KINDS, NUMBERS, POINTS, SINGULAR, samples
from mutant import mutant

from graphreg.reading_cvxpy.penalty import from_cvxpy
from graphreg.terms.losses import AbstractLoss
from graphreg.terms.losses.hinge import HingeLoss, SquaredHingeLoss
from graphreg.terms.losses.huber import HuberLoss
from graphreg.terms.losses.logistic import LogisticLoss
from graphreg.terms.losses.multinomial import MultinomialLoss
from graphreg.terms.losses.poisson import PoissonLoss
from graphreg.terms.losses.quantile import QuantileLoss
from graphreg.terms.losses.squared import MeanLoss, SquaredLoss
from graphreg.terms.penalties.ball import Ball
from graphreg.terms.penalties.base import AbstractPenalty
from graphreg.terms.penalties.box import Box
from graphreg.terms.penalties.domain import Cube
from graphreg.terms.penalties.huber_norm import HuberNorm
from graphreg.terms.penalties.l1 import L1
from graphreg.terms.penalties.l2 import L2
from graphreg.terms.penalties.linf import LInf
from graphreg.terms.penalties.non_negative import NonNegative
from graphreg.terms.penalties.quadratic import Quadratic
from graphreg.terms.penalties.squared_l2 import SquaredL2
from graphreg.terms.penalties.zero import Zero
from graphreg.terms.records import Statement

VALUE, CONJUGATE = "value bound of losses", "conjugate bound of losses"
Z_VALUE, U_CONJUGATE = "value bound of penalties", "conjugate bound of penalties"
DIFFERENCES = from_cvxpy(lambda z: cp.norm1(cp.diff(z))).acting_on(3)
WIDE, HALF = Statement("HuberNorm", 0.25), Statement("Quadratic", (np.eye(3) / 2).tolist())
ROUNDED = 1.0 + 2.0**-46  # more than any rounding of a bound


def nothing_spread(cls: type[AbstractLoss], method: str) -> Any:
    """The bound at the middle of the box."""
    return lambda s, x, spread, y: getattr(cls, method)(s, x, 0.0 * spread, y)


def middle(cls: type[AbstractPenalty], method: str) -> Any:
    return lambda s, x, spread: getattr(cls, method)(s, x, 0.0 * spread)


def half_spread(cls: type[AbstractLoss], method: str) -> Any:
    return lambda s, x, spread, y: getattr(cls, method)(s, x, 0.5 * spread, y)


def rounded_ends(s: Any, b: Any, spread: Any, y: Any) -> Any:
    """Ends of the box rounded to nearest: a spread below the last place is lost."""
    low, high = s.domain(y)
    return np.where((b - spread >= low) & (b + spread <= high), 0.0, np.inf)


def loose(cls: type[AbstractLoss], method: str) -> Any:
    def bound(s: Any, x: Any, spread: Any, y: Any) -> Any:
        found = getattr(cls, method)(s, x, spread, y)
        return found + 1e-6 * (1.0 + np.abs(found))

    return bound


SQUARED, MEAN = SquaredLoss(samples(NUMBERS)), MeanLoss(samples(POINTS, features=0))
HUBER, LOGISTIC = HuberLoss(samples(NUMBERS), delta=0.3), LogisticLoss(samples(CLASSES))
POISSON, QUANTILE = PoissonLoss(samples(COUNTS)), QuantileLoss(samples(NUMBERS), tau=0.3)
MULTINOMIAL = MultinomialLoss(samples(KINDS))
HINGE, SQUARED_HINGE = HingeLoss(samples(CLASSES)), SquaredHingeLoss(samples(CLASSES))

LOSSES = [
    mutant("squared: value at the middle", SQUARED, VALUE, value_bound=nothing_spread(SquaredLoss, "value_bound")),
    mutant("squared: half the box", SQUARED, CONJUGATE, conjugate_bound=half_spread(SquaredLoss, "conjugate_bound")),
    mutant("squared: anchor of the wrong sign", SQUARED, f"{VALUE}, {CONJUGATE}", anchor=lambda s, y: -y),
    mutant("squared: anchor forgotten", SQUARED, f"{VALUE}, {CONJUGATE}", anchor=lambda s, y: 0.0 * y),
    mutant("squared: no half", SQUARED, VALUE, value_bound=lambda s, r, e, y: (np.abs(r) + e) ** 2 * ROUNDED),
    mutant(
        "mean: the largest coordinate",
        MEAN,
        CONJUGATE,
        conjugate_bound=lambda s, b, e, y: (np.abs(b) + e).max(1) ** 2 / 2,
    ),
    mutant("squared: stated as a wide huber", SQUARED, "statement", statement=lambda s: Statement("huber", 1.0)),
    mutant("squared: stated without its targets", SQUARED, "statement", stated_targets=lambda s, y: (0.0 * y).tolist()),
    mutant("mean: prices that sum to 0", MEAN, "dependent", dependent=lambda s, y: np.zeros(len(y), dtype=int)),
    mutant("huber: no domain", HUBER, CONJUGATE, conjugate_bound=SquaredLoss.conjugate_bound),
    mutant(
        "huber: domain at the middle", HUBER, CONJUGATE, conjugate_bound=nothing_spread(HuberLoss, "conjugate_bound")
    ),
    mutant("huber: square everywhere", HUBER, VALUE, value_bound=SquaredLoss.value_bound),
    mutant("logistic: value at the middle", LOGISTIC, VALUE, value_bound=nothing_spread(LogisticLoss, "value_bound")),
    mutant(
        "logistic: at the middle", LOGISTIC, CONJUGATE, conjugate_bound=nothing_spread(LogisticLoss, "conjugate_bound")
    ),
    mutant(
        "logistic: loose",
        LOGISTIC,
        f"{VALUE}, {CONJUGATE}",
        value_bound=loose(LogisticLoss, "value_bound"),
        conjugate_bound=loose(LogisticLoss, "conjugate_bound"),
    ),
    mutant(
        "poisson: only the exponential is spread",
        POISSON,
        VALUE,
        value_bound=lambda s, r, e, y: (np.exp(r + e) - y * r) * ROUNDED,
    ),
    mutant(
        "poisson: domain at the middle",
        POISSON,
        CONJUGATE,
        conjugate_bound=nothing_spread(PoissonLoss, "conjugate_bound"),
    ),
    mutant(
        "poisson: nothing below 0",
        POISSON,
        CONJUGATE,
        conjugate_bound=lambda s, b, e, y: np.maximum(PoissonLoss.conjugate_bound(s, b, e, y), 0.0),
    ),
    mutant("quantile: ends rounded to nearest", QUANTILE, CONJUGATE, conjugate_bound=rounded_ends),
    mutant("quantile: no domain", QUANTILE, CONJUGATE, conjugate_bound=lambda s, b, e, y: 0.0 * b),
    mutant(
        "quantile: the smaller side",
        QUANTILE,
        VALUE,
        value_bound=lambda s, r, e, y: np.minimum(s.tau, 1 - s.tau) * (np.abs(r) + e),
    ),
    mutant("hinge: ends rounded to nearest", HINGE, CONJUGATE, conjugate_bound=rounded_ends),
    mutant(
        "hinge: value of the other label",
        HINGE,
        VALUE,
        value_bound=lambda s, r, e, y: HingeLoss.value_bound(s, r, e, -y),
    ),
    mutant("squared hinge: no domain", SQUARED_HINGE, CONJUGATE, conjugate_bound=SquaredLoss.conjugate_bound),
    mutant("squared hinge: both sides", SQUARED_HINGE, VALUE, value_bound=SquaredLoss.value_bound),
    mutant("multinomial: all prices are free", MULTINOMIAL, "dependent", dependent=lambda s, y: None),
    mutant(
        "multinomial: the class after the own one",
        MULTINOMIAL,
        "dependent",
        dependent=lambda s, y: np.full(len(y), y.shape[1]),
    ),
    mutant(
        "multinomial: value at the middle",
        MULTINOMIAL,
        VALUE,
        value_bound=nothing_spread(MultinomialLoss, "value_bound"),
    ),
    mutant(
        "multinomial: domain at the middle",
        MULTINOMIAL,
        CONJUGATE,
        conjugate_bound=nothing_spread(MultinomialLoss, "conjugate_bound"),
    ),
]

PENALTIES = [
    mutant("l1: capacity at the middle", L1(), U_CONJUGATE, conjugate_bound=middle(L1, "conjugate_bound")),
    mutant("l1: endless room", L1(), "slacks", slacks=lambda s, u: np.full(u.shape, np.inf)),
    mutant("l1: negative room", L1(), "slacks", slacks=lambda s, u: -np.abs(u)),
    mutant(
        "l2: capacity 1 + 1e-6",
        L2(),
        U_CONJUGATE,
        conjugate_bound=lambda s, u, e: L2.conjugate_bound(s, u / (1 + 1e-6), e),
    ),
    mutant("l2: length of the middle", L2(), Z_VALUE, value_bound=middle(L2, "value_bound")),
    mutant("l2: room of l1", L2(), "slacks", slacks=Cube.slacks),
    mutant("linf: room of l1", LInf(), "slacks", slacks=Cube.slacks),
    mutant("linf: bound of l1", LInf(), Z_VALUE, value_bound=lambda s, z, e: L1.value_bound(L1(), z, e)),
    mutant(
        "squared: middle",
        SquaredL2(),
        f"{U_CONJUGATE}, {Z_VALUE}",
        conjugate_bound=middle(SquaredL2, "conjugate_bound"),
        value_bound=middle(SquaredL2, "value_bound"),
    ),
    mutant(
        "squared: loose",
        SquaredL2(),
        U_CONJUGATE,
        conjugate_bound=lambda s, u, e: 1.001 * SquaredL2.conjugate_bound(s, u, e),
    ),
    mutant("squared: stated by too many squares", SquaredL2(), "composed", composed=lambda s: (np.eye(3), SquaredL2())),
    mutant("huber norm: no domain", HuberNorm(0.2), U_CONJUGATE, conjugate_bound=SquaredL2.conjugate_bound),
    mutant("huber norm: endless room", HuberNorm(0.2), "slacks", slacks=lambda s, u: np.full(u.shape, np.inf)),
    mutant("differences: of half the size", DIFFERENCES, "composed", composed=lambda s: (0.5 * s.R, L1())),
    mutant("differences: another norm of them", DIFFERENCES, "composed", composed=lambda s: (s.R, LInf())),
    mutant("differences: all coordinates", DIFFERENCES, "composed", composed=lambda s: (np.eye(3), L1())),
    mutant("quadratic: half the root", Quadratic(SINGULAR), "composed", composed=lambda s: (s.root / 2, SquaredL2())),
    mutant("quadratic: one row of it", Quadratic(SINGULAR), "composed", composed=lambda s: (s.root[:1], SquaredL2())),
    mutant("l1: half of itself", L1(), "parts", parts=lambda s: [(0.5, L1())]),
    mutant("l1: stated as another norm", L1(), "statement", statement=lambda s, k: Statement("L2")),
    mutant("huber norm: stated of another size", HuberNorm(0.2), "statement", statement=lambda s, k: WIDE),
    mutant("ball: stated as a larger one", Ball(2.5), "statement", statement=lambda s, k: Statement("Ball", 2.6)),
    mutant("box: stated without its bounds", Box(-0.5, 2.0), "statement", statement=lambda s, k: Statement("L1")),
    mutant("quadratic: stated by half", Quadratic(np.eye(3)), "statement", statement=lambda s, k: HALF),
    mutant("l2: stated by a name of its own", L2(), "statement", statement=lambda s, k: Statement("Length")),
    mutant("l1: with a square beside it", L1(), "parts", parts=lambda s: [(1.0, L1()), (0.5, SquaredL2())]),
    mutant("l1: less than nothing of a part", L1(), "parts", parts=lambda s: [(2.0, L1()), (-1.0, L1())]),
    mutant(
        "quadratic: no inverse",
        Quadratic(np.diag([1.0, 4.0, 0.1])),
        U_CONJUGATE,
        conjugate_bound=Quadratic.value_bound,
    ),
    mutant(
        "ball: middle",
        Ball(2.5),
        f"{U_CONJUGATE}, {Z_VALUE}",
        conjugate_bound=middle(Ball, "conjugate_bound"),
        value_bound=middle(Ball, "value_bound"),
    ),
    mutant("ball: radius 1", Ball(2.5), U_CONJUGATE, conjugate_bound=lambda s, u, e: Ball(1.0).conjugate_bound(u, e)),
    mutant("zero: anything goes", Zero(), Z_VALUE, value_bound=lambda s, z, e: np.zeros(len(z))),
    mutant(
        "non-negative: sign of the middle",
        NonNegative(),
        U_CONJUGATE,
        conjugate_bound=middle(NonNegative, "conjugate_bound"),
    ),
    mutant("non-negative: endless room", NonNegative(), "slacks", slacks=lambda s, u: np.full(u.shape, np.inf)),
    mutant(
        "box: middle",
        Box(-1.0, 2.0),
        f"{U_CONJUGATE}, {Z_VALUE}",
        conjugate_bound=middle(Box, "conjugate_bound"),
        value_bound=middle(Box, "value_bound"),
    ),
    mutant(
        "half a box: no domain", Box(0.5, np.inf), U_CONJUGATE, conjugate_bound=lambda s, u, e: 0.5 * (u + e).sum(1)
    ),
]
