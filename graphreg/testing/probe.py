"""The points at which penalties are tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..terms import Array
from ..terms.penalties import AbstractPenalty
from .fenchel import Pair
from .report import frozen


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
    def pair(self) -> Pair:
        penalty = self.penalty
        return Pair(penalty.value, penalty.conjugate, penalty.prox, penalty.clip)

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

    @cached_property
    def inside(self) -> Array:
        """Prices inside dom phi*, most of them on its boundary, some nearer to the interior point."""
        clipped = self.penalty.clip(self.points)
        middle = np.asarray(self.penalty.interior(self.k), dtype=float)
        return frozen(np.vstack([clipped, middle + 0.5 * (clipped[1::2] - middle), middle[None]]))
