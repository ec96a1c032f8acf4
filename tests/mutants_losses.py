"""Deliberately broken losses: of counts, quantiles and several classes, and what losses say of far away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
from law_cases import CLASSES, COUNTS, KINDS, NUMBERS, samples
from mutant import mutant

from graphreg.terms.losses import AbstractLoss, PriceDomain
from graphreg.terms.losses.huber import HuberLoss
from graphreg.terms.losses.logistic import LogisticLoss
from graphreg.terms.losses.multinomial import MultinomialLoss
from graphreg.terms.losses.poisson import PoissonLoss
from graphreg.terms.losses.quantile import QuantileLoss

POISSON, QUANTILE = PoissonLoss(samples(COUNTS)), QuantileLoss(samples(NUMBERS), tau=0.3)
MULTINOMIAL, TWO = MultinomialLoss(samples(KINDS)), MultinomialLoss(samples(CLASSES))
LOGISTIC, HUBER = LogisticLoss(samples(CLASSES)), HuberLoss(samples(NUMBERS))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def entropy(q: Any) -> Any:
    return q * np.log(np.where(q > 0, q, 1.0))


def turned(self: Any, y: Any) -> Any:
    """Descent in the opposite directions."""
    found = self.original.descent(y)
    return replace(found, falls=-found.falls)


def for_ever(ever: bool) -> Any:
    def descent(self: Any, y: Any) -> Any:
        found = self.original.descent(y)
        return replace(found, for_ever=np.full_like(found.for_ever, ever))

    return descent


def nowhere(self: Any, y: Any) -> Any:
    """No direction of descent: every entry must be still."""
    found = HUBER.prices.descent(np.ones(y.size))
    return replace(found, still=np.arange(y.size))


def smooth(cls: type[AbstractLoss], value: float = 1.0, gradient: float = 1.0, curvature: float = 1.0) -> Any:
    """The smoothed loss with its parts multiplied by other numbers."""

    def smoothed(self: Any, x: Any, y: Any) -> Any:
        parts = cls.smoothed(self, x, y)
        return tuple(part * by for part, by in zip(parts, (value, gradient, curvature), strict=True))

    return smoothed


POISSONS = [
    mutant("poisson: sign of y", POISSON, "gradient differences, cvxpy value", value=lambda s, x, y: np.exp(x) + y * x),
    mutant(
        "poisson: conjugate without its constant",
        POISSON,
        "gradient fenchel young, prox fenchel young, cvxpy conjugate value",
        conjugate=lambda s, b, y: np.where(b + y >= 0, entropy(b + y), np.inf),
    ),
    mutant(
        "poisson: no domain",
        POISSON,
        "fenchel young everywhere, domain",
        conjugate=lambda s, b, y: entropy(np.maximum(b + y, 0.0)) - np.maximum(b + y, 0.0),
    ),
    mutant(
        "poisson: conjugate finite at counts alone",
        POISSON,
        "gradient fenchel young",
        conjugate=lambda s, b, y: np.where(b >= 0, PoissonLoss.conjugate(s, b, y), np.inf),
    ),
    mutant(
        "poisson: prox with the step squared",
        POISSON,
        "prox fenchel young",
        prox=lambda s, v, t, y: PoissonLoss.prox(s, v, np.square(t), y),
    ),
    mutant(
        "poisson: one gradient step for a prox",
        POISSON,
        "prox fenchel young, cvxpy argmin",
        prox=lambda s, v, t, y: v - t * (np.exp(v) - y),
    ),
    mutant("poisson: clip to any price above 0", POISSON, "clip", clip=lambda s, b, y: np.maximum(b, 0.0)),
    mutant("poisson: clip to the closed end", POISSON, "clip", clip=lambda s, b, y: np.maximum(b, -y * (1 + 1e-12))),
    mutant("poisson: 0 is inside", POISSON, "interior", interior=lambda s, y: np.full(y.shape, True)),
    mutant("poisson: said to be smooth", POISSON, "slopes, curvature", smoothness=lambda s: 1.0),
    mutant(
        "poisson: curvature of an interval at its left end",
        POISSON,
        "curvature within",
        curvature_within=lambda s, low, high, y: (s.curvature(low, y), s.curvature(low, y)),
    ),
    mutant("poisson: curvature y", POISSON, "curvature", curvature=lambda s, x, y: y),
    mutant("poisson: zeros forgotten", POISSON, "descent", descent=nowhere),
    mutant("poisson: zeros grow", POISSON, "descent", descent=turned),
    mutant("poisson: zeros reach their minimum", POISSON, "descent", descent=for_ever(ever=False)),
    mutant("poisson: response is the predictor", POISSON, "response", response=lambda s, x: x),
    mutant(
        "poisson: CVXPY with the constant log y!",
        POISSON,
        "cvxpy value",
        cvxpy=lambda s, x, y: cp.exp(x) - cp.multiply(y, x) + np.cumsum(np.log(np.maximum(y, 1.0))),
    ),
]

QUANTILES = [
    mutant(
        "quantile: 1 - tau for tau",
        QUANTILE,
        "gradient differences, cvxpy value",
        value=lambda s, x, y: np.maximum(s.tau * (x - y), (s.tau - 1) * (x - y)),
    ),
    mutant(
        "quantile: the other side",
        QUANTILE,
        "gradient differences",
        gradient=lambda s, x, y: np.where(x > y, -s.tau, 1 - s.tau),
    ),
    mutant("quantile: no domain", QUANTILE, "fenchel young everywhere, domain", conjugate=lambda s, b, y: b * y),
    mutant(
        "quantile: sign of y in the conjugate",
        QUANTILE,
        "prox fenchel young, gradient fenchel young",
        conjugate=lambda s, b, y: np.where((b >= -s.tau) & (b <= 1 - s.tau), -b * y, np.inf),
    ),
    mutant(
        "quantile: domain of the median",
        QUANTILE,
        "prox fenchel young, domain",
        conjugate=lambda s, b, y: np.where(np.abs(b) <= 0.5, b * y, np.inf),
    ),
    mutant(
        "quantile: prox that forgets the kink",
        QUANTILE,
        "prox fenchel young, cvxpy argmin",
        prox=lambda s, v, t, y: v - t * np.where(v > y, 1 - s.tau, -s.tau),
    ),
    mutant(
        "quantile: prox without the step",
        QUANTILE,
        "prox fenchel young, shapes and rows",
        prox=lambda s, v, t, y: QuantileLoss.prox(s, v, np.mean(t), y),
    ),
    mutant("quantile: clip symmetric", QUANTILE, "clip", clip=lambda s, b, y: np.clip(b, -s.tau, s.tau)),
    mutant("quantile: negative conductance", QUANTILE, "conductance", conductance=lambda s, b, y: b - s.tau),
    mutant("quantile: falls", QUANTILE, "descent", descent=lambda s, y: LOGISTIC.prices.descent(np.sign(y + 0.5))),
    mutant("quantile: smoothed value twice", QUANTILE, "smoothed", smoothed=smooth(QuantileLoss, value=2.0)),
    mutant("quantile: smoothed beyond the domain", QUANTILE, "smoothed", smoothed=smooth(QuantileLoss, 1.1, 1.1, 1.1)),
    mutant("quantile: smoothed curvature", QUANTILE, "smoothed", smoothed=smooth(QuantileLoss, curvature=0.5)),
    mutant("quantile: response 0", QUANTILE, "response", response=lambda s, x: 0.0 * x),
    mutant("quantile: names a class", QUANTILE, "classify", classify=lambda s, x: x > 0),
    mutant(
        "quantile: CVXPY conjugate without a domain",
        QUANTILE,
        "cvxpy conjugate value",
        cvxpy_conjugate=lambda s, b, y: cp.multiply(b, y),
    ),
]


def free_sums(self: Any, b: Any, y: Any) -> Any:
    p = b + y
    return np.where((p >= 0).all(axis=1), entropy(np.maximum(p, 0.0)).sum(axis=1), np.inf)


def softmax_prox(self: Any, v: Any, step: Any, y: Any) -> Any:
    """One gradient step."""
    step = np.asarray(step, dtype=float)
    return v - (step[:, None] if step.ndim else step) * (softmax(v) - y)


def least(self: Any, x: Any) -> Any:
    return MultinomialLoss.classify(self, -x)


def keeps_classes(self: Any, y: Any, fallen: Any) -> Any:
    kept, _ = self.original.remains(y, fallen)
    return kept, y[kept]


def keeps_samples(self: Any, y: Any, fallen: Any) -> Any:
    return np.full(len(y), True), y


MULTINOMIALS = [
    mutant(
        "multinomial: softmax without log",
        MULTINOMIAL,
        "gradient differences, cvxpy value",
        value=lambda s, x, y: 1.0 - (softmax(x) * y).sum(axis=-1),
    ),
    mutant(
        "multinomial: exponentials without log",
        MULTINOMIAL,
        "gradient differences",
        value=lambda s, x, y: np.exp(np.minimum(x, 50.0)).sum(axis=-1) - (x * y).sum(axis=-1),
    ),
    mutant(
        "multinomial: gradient without the class",
        MULTINOMIAL,
        "gradient differences, gradient fenchel young",
        gradient=lambda s, x, y: softmax(x),
    ),
    mutant("multinomial: sum to zero forgotten", MULTINOMIAL, "fenchel young everywhere", conjugate=free_sums),
    mutant(
        "multinomial: simplex forgotten",
        MULTINOMIAL,
        "fenchel young everywhere, domain",
        conjugate=lambda s, b, y: entropy(np.maximum(b + y, 0.0)).sum(axis=1) + 1e3 * np.abs(b.sum(axis=1)),
    ),
    mutant(
        "multinomial: conjugate without the class",
        MULTINOMIAL,
        "gradient fenchel young",
        conjugate=lambda s, b, y: MultinomialLoss.conjugate(s, b, 0.0 * y),
    ),
    mutant(
        "multinomial: sign of the entropy",
        MULTINOMIAL,
        "gradient fenchel young, prox fenchel young",
        conjugate=lambda s, b, y: np.where(
            np.isfinite(MultinomialLoss.conjugate(s, b, y)), -MultinomialLoss.conjugate(s, b, y), np.inf
        ),
    ),
    mutant("multinomial: gradient step for a prox", MULTINOMIAL, "prox fenchel young, cvxpy argmin", prox=softmax_prox),
    mutant(
        "multinomial: prox of another class",
        MULTINOMIAL,
        "prox fenchel young",
        prox=lambda s, v, t, y: MultinomialLoss.prox(s, v, t, np.roll(y, 1, axis=1)),
    ),
    mutant(
        "multinomial: conductance off the span",
        MULTINOMIAL,
        "conductance",
        conductance=lambda s, b, y: softmax(b) * (1 - softmax(b)),
    ),
    mutant(
        "multinomial: clip that leaves the sum",
        MULTINOMIAL,
        "clip",
        clip=lambda s, b, y: np.clip(b, *MultinomialLoss.domain(s, y)),
    ),
    mutant("multinomial: span of everything", MULTINOMIAL, "span", span=lambda s, b: 0.5 * b),
    mutant(
        "multinomial: reach ignores the sum",
        MULTINOMIAL,
        "step to boundary",
        step_to_boundary=PriceDomain.step_to_boundary,
    ),
    mutant("multinomial: 0 is inside", MULTINOMIAL, "interior", interior=lambda s, y: np.full(len(y), True)),
    mutant(
        "multinomial: curvature without coupling", MULTINOMIAL, "curvature", curvature=lambda s, x, y: 2.0 * softmax(x)
    ),
    mutant("multinomial: smoothness 1/4", MULTINOMIAL, "slopes", smoothness=lambda s: 0.25),
    mutant("multinomial: never falls", MULTINOMIAL, "descent", descent=nowhere),
    mutant("multinomial: falls as others gain", TWO, "descent", descent=turned),
    mutant("multinomial: classes that left stay", MULTINOMIAL, "remains", remains=keeps_classes),
    mutant("multinomial: samples that left stay", MULTINOMIAL, "remains", remains=keeps_samples),
    mutant("multinomial: probabilities that sum to 2", MULTINOMIAL, "response", response=lambda s, x: 2 * softmax(x)),
    mutant("multinomial: sigmoids", MULTINOMIAL, "response", response=lambda s, x: 1 / (1 + np.exp(-x))),
    mutant("multinomial: the least probable class", MULTINOMIAL, "classify", classify=least),
    mutant("multinomial: numbers of classes", MULTINOMIAL, "classify", classify=lambda s, x: x.argmax(axis=1)),
    mutant(
        "multinomial: CVXPY without the class",
        MULTINOMIAL,
        "cvxpy value, cvxpy argmin",
        cvxpy=lambda s, x, y: cp.log_sum_exp(x, axis=1),
    ),
    mutant(
        "multinomial: CVXPY conjugate without the sum",
        MULTINOMIAL,
        "cvxpy conjugate value",
        cvxpy_conjugate=lambda s, b, y: cp.sum(-cp.entr(b + y), axis=1),
    ),
]


FAR_AWAY = [
    mutant("logistic: never falls", LOGISTIC, "descent", descent=nowhere),
    mutant("logistic: falls to a minimum", LOGISTIC, "descent", descent=for_ever(ever=False)),
    mutant("logistic: what fell stays", LOGISTIC, "remains", remains=keeps_samples),
    mutant("logistic: response of the first class", LOGISTIC, "response", response=lambda s, x: 1 / (1 + np.exp(x))),
    mutant(
        "logistic: swapped classes predicted", LOGISTIC, "classify", classify=lambda s, x: LogisticLoss.classify(s, -x)
    ),
    mutant("huber: smoothed gradient", HUBER, "smoothed", smoothed=smooth(HuberLoss, gradient=0.9)),
]

LOSSES = [*POISSONS, *QUANTILES, *MULTINOMIALS, *FAR_AWAY]
