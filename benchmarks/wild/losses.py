"""Data and losses far from any good scale, for `wild_problem`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphreg.datasets.families import (
    SCALAR,
    FamilyParameters,
    drawn_like,
    is_kinked,
    is_unitless,
    random_shape,
    targets,
    term,
)
from graphreg.datasets.plain import Array, PlainSamples
from graphreg.datasets.random_losses import LOSSES_WITH_KINKS, MOST, Losses, Rows, data_of, names_of

REAL = ("squared", "huber", "quantile", "mean")  # targets that may be shifted
EXPONENTS = ("poisson", "gamma", "logistic", "multinomial")  # predictors are exponents, so that offsets stay moderate
DECADES = 12.0  # of column scales, on each side of 1
WEIGHTS = 6.0  # of weights
TALL = "tall nodes"
NEAR = 1e-10  # relative: so near are collinear columns


@dataclass(frozen=True)
class _Columns:
    """The way in which the columns of the designs of all nodes are drawn."""

    scale: Array  # (p,), 0 for columns of zeros
    intercept: bool
    dummies: int  # columns that add up to 1, the last ones
    near: str  # "", "copy" (of the column before) or "ones"

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        p = len(self.scale)
        X = rng.standard_normal((m, p))
        if self.near == "ones":
            X[:, -2] = 1.0
        if self.near:
            X[:, -1] = X[:, -2] * (1.0 + NEAR * rng.standard_normal(m))
        if self.dummies:
            X[:, p - self.dummies :] = np.eye(self.dummies)[rng.integers(self.dummies, size=m)]
        X = X * self.scale
        if self.intercept:
            X[:, 0] = 1.0
        return X


@dataclass(frozen=True)
class _Wild:
    """The parameters with which the data of all nodes are drawn."""

    rng: np.random.Generator
    traits: list[str]
    columns: _Columns
    response: float
    shift: float  # of targets
    offset: float  # 0 where there are none
    shape: FamilyParameters
    classes: int

    def one_node(self, family: str, m: int, truth: Array) -> Rows:
        """Design, targets, offsets and weights of one node."""
        rng, columns = self.rng, self.columns
        X = None if family == "mean" else columns.draw(rng, m)
        offset = self._offsets(family, m)
        noise = 0.0 if "exact fit" in self.traits else 1.0
        if X is None:
            eta = truth[:, 0]
            y = eta + noise * self.response * columns.scale * rng.standard_normal((m, len(columns.scale)))
        else:
            eta = X @ truth if family == "multinomial" else (X @ truth)[:, 0]
            y = targets(rng, family, eta, 1.0 if is_unitless(family) else self.response, offset, self.shape)
            y = eta + offset if drawn_like(family) in REAL and noise == 0.0 else y
        if "separable" in self.traits and X is not None:
            y = _separated(family, eta, y)
        y = y + self.shift if drawn_like(family) in REAL else y
        decades = WEIGHTS if "wild weights" in self.traits else 0.0
        weight = 10.0 ** rng.uniform(-decades, decades, size=m)
        if "duplicate rows" in self.traits:
            again = np.repeat(np.arange(m), 2)
            X, y, offset, weight = None if X is None else X[again], y[again], offset[again], weight[again]
        return X, y, offset, weight

    def _offsets(self, family: str, m: int) -> Array:
        if self.offset == 0.0 or family in ("mean", "multinomial"):
            return np.zeros(m)
        return (0.0 if drawn_like(family) in EXPONENTS else self.offset) + self.rng.standard_normal(m)


def _separated(family: str, eta: Array, y: Array) -> Array:
    """Targets that a hyperplane separates: no minimum is attained without a ridge."""
    if family == "multinomial":
        return np.argmax(eta, axis=1).astype(float)
    if drawn_like(family) == "poisson":
        return np.where(eta < 0, 0.0, y)
    return np.where(eta > 0, 1.0, -1.0) if is_unitless(family) else y


def wild_losses(rng: np.random.Generator, loss: str, labels: list[Hashable], d: int, traits: list[str]) -> Losses:
    """Losses of the kind on data with the traits at some of the nodes; ``d`` features or a few more."""
    families = tuple(rng.choice(SCALAR, size=3, replace=False).tolist()) if loss == "mixed" else (loss,)
    classes = int(rng.integers(2, 4)) if loss == "multinomial" else 1
    columns = _columns(rng, loss, min(d, MOST // classes) if classes > 1 else d, traits)
    p = len(columns.scale)
    wild = _Wild(rng, traits, columns, *_sizes(rng, loss, classes, traits), classes)
    truth = _truth(rng, wild, loss, labels)
    counts = _counts(rng, labels, p, traits)
    owner = rng.integers(len(families), size=len(labels))
    names = names_of(loss, p, columns.intercept)
    model: Any = 0
    plain: list[PlainSamples] = []
    for k, family in enumerate(families):
        chosen = {label: m for label, m, f in zip(labels, counts, owner, strict=True) if m > 0 and f == k}
        if chosen:
            rows = {label: wild.one_node(family, m, truth[label]) for label, m in chosen.items()}
            loss_term, parts = _one_family(wild, family, rows, names)
            model, plain = model + loss_term, plain + parts
    traits += [LOSSES_WITH_KINKS] * any(is_kinked(part.family) for part in plain)
    size = np.repeat(np.abs(np.array(list(truth.values()))).max(axis=(0, 2)), classes)
    return Losses.of(model, plain, names, classes, columns.intercept, np.where(size > 0, size, 1.0))


def _columns(rng: np.random.Generator, loss: str, d: int, traits: list[str]) -> _Columns:
    scale = np.ones(d)
    if "column scales" in traits:
        scale = 10.0 ** rng.uniform(-DECADES, DECADES, size=d)
    if loss == "mean":
        return _Columns(scale, False, 0, "")
    if "dollars and rates" in traits:  # a table with an intercept, an output in dollars and a rate
        scale = np.array([1.0, 10.0 ** rng.uniform(11, 13), 10.0 ** rng.uniform(-3, -1)])
        return _Columns(scale, True, 0, "")
    near = str(rng.choice(["copy", "ones"])) if "near-collinear columns" in traits else ""
    dummies = int(rng.integers(2, 4)) if "dummies and intercept" in traits else 0
    intercept = dummies > 0 or rng.random() < 0.5
    need = int(intercept) + max(dummies, 2 if near else 1) + ("zero column" in traits)
    scale = np.concatenate([scale, np.ones(max(0, need - d))])
    if intercept:
        scale[0] = 1.0
    if dummies:
        scale[len(scale) - dummies :] = 1.0
    if "zero column" in traits:
        scale[int(intercept)] = 0.0
    return _Columns(scale, intercept, dummies, near)


def _sizes(
    rng: np.random.Generator, loss: str, classes: int, traits: list[str]
) -> tuple[float, float, float, FamilyParameters]:
    """The size of responses, the shift of targets, the size of offsets (0: none), and the parameters of families."""
    response = 1.0 if loss == "mixed" or is_unitless(loss) else 10.0 ** rng.uniform(-2, 2)
    sign = rng.choice([-1.0, 1.0])
    shift = sign * 10.0 ** rng.uniform(3, 9) if "shifted targets" in traits else 0.0
    offset = 10.0 ** rng.uniform(3, 9) if "large offsets" in traits else 0.0
    return response, float(shift), float(offset), random_shape(rng, response, classes)


def _truth(rng: np.random.Generator, wild: _Wild, loss: str, labels: list[Hashable]) -> dict[Hashable, Array]:
    """The parameters behind the data: a few centres and what nodes differ by, in units of the columns."""
    shape = (len(wild.columns.scale), wild.classes)
    scale = np.where(wild.columns.scale > 0, wild.columns.scale, 1.0)[:, None]
    unit = wild.response * (scale if loss == "mean" else 1.0 / scale)
    centers = rng.standard_normal((2, *shape))
    spread = 10.0 ** rng.uniform(-2, 0)
    return {label: unit * (centers[rng.integers(2)] + spread * rng.standard_normal(shape)) for label in labels}


def _counts(rng: np.random.Generator, labels: list[Hashable], p: int, traits: list[str]) -> list[int]:
    tall = TALL in traits
    counts = rng.integers(3 * p if tall else 0, 12 * p + 20 if tall else 2 * min(p, 8) + 1, size=len(labels))
    if tall:
        counts[rng.random(len(labels)) < 0.1] = 0
    if "one sample" in traits:
        counts[:] = 0
    if not counts.any():
        counts[rng.integers(len(labels))] = 3 * p if tall else 1
    return counts.tolist()


def _one_family(
    wild: _Wild, family: str, rows: dict[Hashable, Rows], names: tuple[str, ...]
) -> tuple[Any, list[PlainSamples]]:
    shape, data = wild.shape, data_of(wild.rng, family, rows, wild.shape, names)
    mean = wild.rng.random() < 0.5
    parts = [
        PlainSamples(
            *(label, family, X, y, weight / weight.sum() if mean else weight, offset),
            *(shape.delta, shape.tau, wild.classes),
        )
        for label, (X, y, offset, weight) in rows.items()
    ]
    return term(wild.rng, family, data, "mean" if mean else "sum", shape), parts
