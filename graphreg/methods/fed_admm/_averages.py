"""Averages of iterates, in the memory of two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...terms import Array


@dataclass(frozen=True)
class WholeMean:
    """The mean of all points so far."""

    total: Array
    count: int

    def step(self, w: Array) -> WholeMean:
        return WholeMean(self.total + w, self.count + 1)

    def value(self) -> Array:
        return self.total / self.count


@dataclass(frozen=True)
class SuffixMean:
    """The mean of the last points, at least their last half and at most their last three quarters.

    With 2^k <= count < 2^(k+1) it is that of the points 2^(k-1), ..., count: those since the last power of two
    (``total``) and those of the block before it (``before``). So old points are left out without being kept. (Suffix
    averages: Rakhlin, Shamir and Sridharan, Making gradient descent optimal for strongly convex stochastic
    optimization, ICML 2012.)
    """

    total: Array
    before: Array
    count: int

    @staticmethod
    def of(w: Array) -> SuffixMean:
        return SuffixMean(w, np.zeros_like(w), 1)

    def step(self, w: Array) -> SuffixMean:
        count = self.count + 1
        if count & (count - 1) == 0:
            return SuffixMean(w, self.total, count)
        return SuffixMean(self.total + w, self.before, count)

    def value(self) -> Array:
        block = 1 << (self.count.bit_length() - 1)  # the last power of two
        return (self.total + self.before) / (self.count - block + 1 + block // 2)


def averaged(printed: bool, average: WholeMean | SuffixMean | None, before: Array, w: Array) -> WholeMean | SuffixMean:
    """The average after one more round: that of theta(0), ..., theta(T - 1), without the last one, or of a suffix."""
    if average is None:
        return WholeMean(before, 1) if printed else SuffixMean.of(w)
    return average.step(before if printed else w)
