"""The points at which penalties and losses are tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..certificate import TermRows
from ..terms import Array
from ..terms.losses import AbstractLoss
from ..terms.penalties import AbstractPenalty
from .fenchel import CLOSED, outside, units
from .report import frozen, rowwise, size

HALVINGS = 30  # of the way to a point where a loss is finite


@dataclass(frozen=True)
class Probe:
    """The points at which a penalty on k coordinates is tried."""

    penalty: AbstractPenalty
    k: int
    seed: int
    tolerance: float

    @property
    def rng(self) -> np.random.Generator:
        """A fresh stream: every law sees the same numbers, whichever laws came before."""
        return np.random.default_rng([self.seed, self.k])

    @cached_property
    def rows(self) -> TermRows:
        return TermRows(self.penalty)

    def outside(self, u: Array) -> Array:
        return outside(self.rows, u)

    @cached_property
    def points(self) -> Array:
        """Zero, coordinates, ties of both signs, random rows from tiny to big."""
        rng, k = self.rng, self.k
        signs = np.where(rng.random((3, k)) < 0.5, -1.0, 1.0)
        special = np.vstack([np.zeros((1, k)), np.eye(k), -np.eye(k), np.ones((1, k)), signs, 0.4 * signs])
        sizes = 10.0 ** np.concatenate([np.linspace(-2, 2, 12), [-4.0, 3.0]])
        random = rng.standard_normal((len(sizes), k)) * sizes[:, None]
        if k > 1:
            random[::3, 0] = 0.0
            random[1::3, 0] = -random[1::3, 1]
        return frozen(np.vstack([special, random]))

    @cached_property
    def extremes(self) -> Array:
        """Rows as small and as big as the tolerance lets one tell anything about."""
        big = min(1e6, 1e-2 / self.tolerance)
        rows = self.rng.standard_normal((2, self.k))
        return frozen(np.vstack([rows * big, rows / big]))

    def sum_over_coordinates(self, z: Array) -> Array:
        """phi of each coordinate by itself, added up: of what phi may be a difference; 0 where that is infinite."""
        each = np.sum([self.penalty.value(frozen(z * unit)) for unit in np.eye(self.k)], axis=0)
        return np.where(np.isfinite(each), each, 0.0)

    @cached_property
    def floor(self) -> float:
        """What is added to the size of flows: that of usual ones, against which a solver knows them; 0 for closed
        forms, which keep their digits near 0."""
        return 0.0 if self.tolerance <= CLOSED else float(np.median(size(self.inside)))

    @cached_property
    def middle(self) -> Array:
        """The interior point of dom phi*, (k,)."""
        return np.asarray(self.penalty.domain.interior(self.k), dtype=float)

    @cached_property
    def inside(self) -> Array:
        """Prices inside dom phi*, most of them on its boundary, some nearer to the interior point."""
        clipped, middle = self.penalty.domain.clip(self.points), self.middle
        return frozen(np.vstack([clipped, middle + 0.5 * (clipped[1::2] - middle), middle[None]]))


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
        huge = ~(np.abs(self.loss.value(x, y)) < 1e12) | self._beyond(x)  # of a loss that grows exponentially
        inside = x[np.repeat(np.arange(0, len(y), 16) + np.argmin(huge.reshape(-1, 16), axis=1), 16)]
        x = np.where(rowwise(huge, x), 0.01 * x, x)
        for _ in range(HALVINGS):
            if not (beyond := self._beyond(x)).any():
                break
            x = np.where(rowwise(beyond, x), inside + 0.5 * (x - inside), x)
        return frozen(x)

    def _beyond(self, x: Array) -> Array:
        """Where the loss is +inf, or ends so that its gradient is infinite, (M,)."""
        loss, y = self.loss, self.y
        slope = loss.gradient(frozen(x), y)
        steep = np.where(np.isinf(slope), np.sign(slope), 0.0)
        ended = loss.value(frozen(x + 1e-6 * np.maximum(1.0, np.abs(x)) * steep), y) == np.inf
        return (loss.value(frozen(x), y) == np.inf) | (ended & (size(steep) > 0.0))

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
        return frozen(np.where(rowwise(even, clipped), clipped, gradient))

    @cached_property
    def rows(self) -> TermRows:
        return TermRows(self.loss, (self.y,))

    def outside(self, b: Array) -> Array:
        return outside(self.rows, b)

    def directions(self) -> list[Array]:
        """Both directions of each coordinate of a predictor."""
        return [*units(self.y), *(-unit for unit in units(self.y))]
