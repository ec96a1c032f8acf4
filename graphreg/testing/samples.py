"""The targets, predictors and prices at which losses are tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..terms import Array
from ..terms.losses import AbstractLoss
from .fenchel import Pair
from .report import frozen, rowwise


@dataclass(frozen=True)
class LossProbe:
    """Targets of the loss's own data, each met by predictors and prices of every size."""

    loss: AbstractLoss
    seed: int
    tolerance: float

    @property
    def rng(self) -> np.random.Generator:
        """A fresh stream: every law sees the same numbers, whichever laws came before."""
        return np.random.default_rng(self.seed)

    @cached_property
    def y(self) -> Array:
        """Up to six different targets, the extreme ones among them, each several times."""
        distinct = np.unique(self.loss.targets(), axis=0)
        chosen = distinct[np.unique(np.linspace(0, len(distinct) - 1, 6).astype(int))]
        return frozen(np.repeat(chosen, 16, axis=0))

    @cached_property
    def x(self) -> Array:
        """For each target: 0, the target, close to it and beside it, random predictors from tiny to large."""
        y, rng = self.y, self.rng
        sizes = np.array([0, 0, 0, 0, 0, 0, 1e-6, 1e-3, 0.1, 0.5, 1, 2, 5, 10, 30, 300.0])
        x = rng.standard_normal(y.shape) * rowwise(np.tile(sizes, len(y) // 16), y)
        at = np.arange(len(y)) % 16
        for row, shift in ((1, 0.0), (2, 1.0), (3, -1.0), (4, 1e-3), (5, -2.5)):
            x[at == row] = y[at == row] + shift
        huge = ~(np.abs(self.loss.value(x, y)) < 1e12)  # of a loss that grows exponentially
        return frozen(np.where(rowwise(huge.astype(float), x) > 0, 0.01 * x, x))

    @cached_property
    def prices(self) -> Array:
        """Prices, feasible or not: random ones of every size, and those at and beside the ends of the domain."""
        b = self.rng.permutation(self.x) * 0.3
        low, high = self.loss.domain(self.y)
        shifts = (0.0, 0.0, -0.1, 0.1, 0.1, -0.1)
        for row, end, shift in zip(range(6), (low, high) * 3, shifts, strict=True):
            at = np.arange(len(b)) % 16 == row
            b[at] = np.where(np.isfinite(end), end + shift, b)[at]
        return frozen(b)

    @cached_property
    def inside(self) -> Array:
        """Prices inside the domain."""
        clipped = self.loss.clip(self.prices, self.y)
        gradient = self.loss.gradient(self.x, self.y)
        even = np.arange(len(clipped)) % 2 == 0
        return frozen(np.where(rowwise(even.astype(float), clipped) > 0, clipped, gradient))

    @cached_property
    def pair(self) -> Pair:
        loss, y = self.loss, self.y
        return Pair(
            lambda x: loss.value(x, y),
            lambda b: loss.conjugate(b, y),
            lambda v, step: loss.prox(v, step, y),
            lambda b: loss.clip(b, y),
        )

    def directions(self) -> list[Array]:
        """Both directions of each coordinate of a predictor."""
        return [*units(self.y), *(-unit for unit in units(self.y))]


def units(x: Array) -> list[Array]:
    """The coordinate directions of predictors, shaped like x."""
    return [np.ones_like(x)] if x.ndim == 1 else [np.ones_like(x) * each for each in np.eye(x.shape[1])]
