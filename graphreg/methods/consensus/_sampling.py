"""Stochastic gradients for the methods of a consensus, and what is gathered on the way for inference."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from ...base.messages import unmatched, warn
from ...form import Form
from ...network import LocalView, MixingMatrix, most
from ...running import AbstractIteration
from ...terms import Array
from . import _consensus as consensus
from ._decreasing import DecreasingStep


@dataclass(frozen=True)
class SampleHistory:
    """Sums of what the nodes of a local view have seen in the steps so far, those of the burn-in left out."""

    order: SampleOrder | None  # of the samples in the present pass; None in the order of the data, or with replacement
    mean: Array  # of theta_B, ..., theta_{t-1} at each node, after B steps of burn-in
    moments: Moments | None  # None with full gradients


class AbstractConsensusMethod(AbstractIteration):
    """A method for a consensus: nodes mix their parameters, and step along gradients, full or stochastic.

    Its state has theta, the mixing, the steps, and in ``seen`` what the nodes have seen.
    """

    needs = (
        "smooth losses (a bound of their curvature or a given step), smooth node penalties, a Consensus of all nodes "
        "in all coordinates and no other edges"
    )
    step_size: float | DecreasingStep | None
    mixing: Any
    lazy: bool
    batch: consensus.Batch
    replacement: bool
    shuffle: bool
    hessian_samples: int | None
    burn_in: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mixing", MixingMatrix.of(self.mixing, self.name))

    @property
    def steps_are_given(self) -> bool:
        """True where none need follow from the curvature."""
        step = self.step_size
        return None not in (step.D, step.gamma) if isinstance(step, DecreasingStep) else step is not None

    def missing(self, form: Form) -> tuple[str, ...]:
        wrong = unmatched("batch", self.batch, form.space.index)
        return (*consensus.missing(form, self.mixing, self.lazy, self.steps_are_given), *wrong)

    def nothing_seen(self, view: LocalView, theta: Array) -> SampleHistory:
        """Before the first step. The Hessians are taken over a(T) = ceil(100 d / (K batch)) steps by default."""
        order, moments, form = None, None, view.form
        if self.batch is not None:
            together = sum(self.batch.values()) if isinstance(self.batch, Mapping) else view.n_nodes * self.batch
            a = self.hessian_samples or ceil(100 * form.d / together)
            moments = Moments.start(form.n, form.d, a, most(self.batch))
            order = None if self.replacement or not self.shuffle else SampleOrder.start(view)
        return SampleHistory(order, np.zeros_like(theta), moments)

    def sampled_gradients(self, state: Any) -> tuple[Array, SampleHistory]:
        """The gradients G_kt of f_k that the nodes see at theta_kt in step t, and what they have seen with them."""
        view, theta, t, seen = state.view, state.theta, state.round, state.seen
        order, moments, counted = seen.order, seen.moments, t - self.burn_in + 1
        if moments is None or self.batch is None:
            G = view.gradients.full(theta)
        else:
            if self.replacement:
                place = view.places(self.batch, t)
            else:
                place, order = next_places(view, t, self.batch, order)
                _warn_of_a_second_pass(self, view, t)
            G = view.gradients.at_samples(theta, place)
            moments = moments.add(G, place) if counted > 0 else moments
        mean = seen.mean + (theta - seen.mean) / counted if counted > 0 else seen.mean
        return G, SampleHistory(order, mean, moments)

    def gathered(self, state: Any) -> dict[str, Any]:
        """The sums that inference needs after t steps (see `LocalSGD`), one row per node; without noise, averages
        alone."""
        view, seen, t = state.view, state.seen, state.round
        moments, counts = seen.moments, view.gradients.counts
        counted = {"steps": max(t - self.burn_in, 0), "burn_in": min(t, self.burn_in)}
        if moments is None or self.batch is None:
            passes = np.full(view.form.n, float(counted["steps"]))
            return {**counted, "passes": passes, "mean": seen.mean, "hessian": view.gradients.hessians(state.theta)}
        own = view.each(self.batch) if isinstance(self.batch, Mapping) else self.batch
        each = moments.count * own / np.maximum(counts, 1)
        return {
            **counted,
            "batch": own,
            "replacement": int(self.replacement),
            "alpha": state.steps.alpha,
            "hessian_samples": min(moments.count, moments.recent.shape[1]) * own,
            "passes": np.where(counts > 0, each, 0.0),
            "mean": seen.mean,
            "gradient_mean": moments.mean,
            "gradient_covariance": moments.scatter / max(moments.count, 1),
            "hessian": view.gradients.hessians(state.theta, moments.last() if moments.count else None),
        }


def _warn_of_a_second_pass(method: AbstractConsensusMethod, view: LocalView, t: int) -> None:
    """Warn at the step in which the first node takes a sample for the second time."""
    counts, batch = view.gradients.counts, view.each(method.batch or 1)
    if not (view.own & (counts > 0)).any():
        return
    k = int(np.argmin(np.where(view.own & (counts > 0), counts / batch, np.inf)))
    if t * batch[k] <= counts[k] < (t + 1) * batch[k]:
        warn(
            f"the {counts[k]} samples of the node {view.form.labels[k]!r} are used up after {t} steps of "
            f"{method.name}: from here on samples are taken again, which inference from a single pass does not allow"
        )


# ---- the order of samples --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SampleOrder:
    """Each node's samples in the order of its present pass: ``place`` (n, most), of the pass ``epoch`` (n,)."""

    epoch: Array
    place: Array

    @staticmethod
    def start(view: LocalView) -> SampleOrder:
        counts = view.gradients.counts
        place = np.zeros((len(counts), max(int(counts.max()), 1)), dtype=np.int32)
        return SampleOrder(np.full(len(counts), -1), place).at(view, np.zeros(len(counts), dtype=np.int64))

    def at(self, view: LocalView, epoch: Array) -> SampleOrder:
        """The order in other passes: a permutation that depends on the seed, the node and the pass alone."""
        new = np.flatnonzero(epoch != self.epoch)
        if not len(new):
            return self
        place, counts, streams = self.place.copy(), view.gradients.counts, view.streams("samples")
        for k in new:
            place[k, : counts[k]] = streams.generator(int(k), int(epoch[k])).permutation(counts[k])
        return SampleOrder(epoch, place)


def next_places(
    view: LocalView, at: int, batch: int | Mapping[Hashable, int], order: SampleOrder | None
) -> tuple[Array, SampleOrder | None]:
    """The samples (n, b) of step ``at``, one after the other through pass after pass, in the order of the data where
    there is no other; -1 beyond the batch of a node."""
    counts, own = np.maximum(view.gradients.counts, 1), view.each(batch)
    out = np.zeros((len(counts), most(batch)), dtype=np.int64)
    for j in range(most(batch)):
        epoch, place = np.divmod(at * own + np.minimum(j, own - 1), counts)
        if order is not None:
            order = order.at(view, epoch)
            place = order.place[np.arange(len(counts)), place]
        out[:, j] = np.where(j < own, place, -1)
    return out, order


@dataclass(frozen=True)
class Moments:
    """The moments of the stochastic gradients of each node so far; by Welford's updates, free of cancellation."""

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
