"""Which samples a stochastic gradient takes, and the moments of these gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...network import LocalView
from ...terms import Array


@dataclass(frozen=True)
class SampleOrder:
    """Each node's samples in the order of its present pass: ``place`` (n, most), of the pass ``epoch`` (n,)."""

    epoch: Array
    place: Array

    @staticmethod
    def start(view: LocalView) -> SampleOrder:
        counts = view.gradients.counts
        order = SampleOrder(
            np.full(len(counts), -1), np.zeros((len(counts), max(int(counts.max()), 1)), dtype=np.int32)
        )
        return order.at(view, np.zeros(len(counts), dtype=np.int64))

    def at(self, view: LocalView, epoch: Array) -> SampleOrder:
        """The order in other passes: a permutation that depends on the seed, the node and the pass alone."""
        new = np.flatnonzero(epoch != self.epoch)
        if not len(new):
            return self
        place, counts, streams = self.place.copy(), view.gradients.counts, view.streams("samples")
        for k in new:
            place[k, : counts[k]] = streams.generator(int(k), int(epoch[k])).permutation(counts[k])
        return SampleOrder(epoch, place)


def next_places(view: LocalView, at: int, batch: int, order: SampleOrder | None) -> tuple[Array, SampleOrder | None]:
    """The samples (n, b) of step ``at``, one after the other through pass after pass, in the order of the data where
    there is no other."""
    counts = np.maximum(view.gradients.counts, 1)
    out = np.zeros((len(counts), batch), dtype=np.int64)
    for j in range(batch):
        epoch, out[:, j] = np.divmod(at * batch + j, counts)
        if order is not None:
            order = order.at(view, epoch)
            out[:, j] = order.place[np.arange(len(counts)), out[:, j]]
    return out, order


@dataclass(frozen=True)
class Moments:
    """Of the stochastic gradients of each node so far; by Welford's updates, free of cancellation."""

    count: int
    mean: Array  # (n, d)
    scatter: Array  # sum over t of (g_t - mean)(g_t - mean)', (n, d, d)
    recent: Array  # the samples of the last a steps, (n, a, b); step t at t mod a

    @staticmethod
    def start(n: int, d: int, a: int, batch: int) -> Moments:
        return Moments(0, np.zeros((n, d)), np.zeros((n, d, d)), np.zeros((n, a, batch), dtype=np.int64))

    def add(self, g: Array, place: Array) -> Moments:
        count, off = self.count + 1, g - self.mean
        mean = self.mean + off / count
        recent = self.recent.copy()
        recent[:, self.count % recent.shape[1]] = place
        scatter = self.scatter + off[:, :, None] * (g - mean)[:, None, :]
        return replace(self, count=count, mean=mean, scatter=scatter, recent=recent)

    def last(self) -> Array:
        """The samples of the last a steps, or of all where there were fewer, (n, steps * b)."""
        steps = min(self.count, self.recent.shape[1])
        return self.recent[:, :steps].reshape(len(self.recent), steps * self.recent.shape[2])
