"""Stochastic gradients for the methods of a consensus, and what is gathered on the way for inference."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from ...network import LocalView, MixingMatrix
from ...terms import Array
from ..base import AbstractIteration, warn
from ._decreasing import DecreasingStep, Steps
from ._sample_order import Moments, SampleOrder, next_places


class AbstractConsensusMethod(AbstractIteration):
    """A method for a consensus: nodes mix their parameters, and step along gradients, full or stochastic."""

    needs = (
        "smooth losses (a bound of their curvature or a given step), smooth node penalties, a Consensus of all nodes "
        "in all coordinates and no other edges"
    )
    step_size: float | DecreasingStep | None
    mixing: Any
    batch: int | None
    replacement: bool
    shuffle: bool
    hessian_samples: int | None
    burn_in: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mixing", MixingMatrix.of(self.mixing, self.name))

    @property
    def steps_are_given(self) -> bool:
        """Whether none need follow from the curvature."""
        step = self.step_size
        return None not in (step.D, step.gamma) if isinstance(step, DecreasingStep) else step is not None


@dataclass(frozen=True)
class SampleHistory:
    """What the nodes of a local view have seen in the steps so far, those of the burn-in left out."""

    order: SampleOrder | None  # of the samples in the present pass; None in the order of the data, or with replacement
    mean: Array  # of theta_B, ..., theta_{t-1} at each node, after B steps of burn-in
    moments: Moments | None  # None with full gradients


def start(method: AbstractConsensusMethod, view: LocalView, theta: Array) -> SampleHistory:
    """Before the first step. The Hessians are taken over a(T) = ceil(100 d / (K batch)) steps by default."""
    order, moments, form = None, None, view.form
    if method.batch is not None:
        a = method.hessian_samples or ceil(100 * form.d / (view.n_nodes * method.batch))
        moments = Moments.start(form.n, form.d, a, method.batch)
        order = None if method.replacement or not method.shuffle else SampleOrder.start(view)
    return SampleHistory(order, np.zeros_like(theta), moments)


def look(
    method: AbstractConsensusMethod, view: LocalView, theta: Array, seen: SampleHistory, t: int
) -> tuple[Array, SampleHistory]:
    """The gradients G_kt of f_k that the nodes see at theta_kt in step t, and what they have seen with them."""
    order, moments, counted = seen.order, seen.moments, t - method.burn_in + 1
    if moments is None or method.batch is None:
        G = view.gradients.full(theta)
    else:
        if method.replacement:
            place = view.gradients.places(view.streams("samples").uniform(t, method.batch))
        else:
            place, order = next_places(view, t, method.batch, order)
            _warn_of_a_second_pass(method, view, t)
        G = view.gradients.at_samples(theta, place)
        moments = moments.add(G, place) if counted > 0 else moments
    return G, SampleHistory(order, seen.mean + (theta - seen.mean) / counted if counted > 0 else seen.mean, moments)


def gathered(
    method: AbstractConsensusMethod, view: LocalView, theta: Array, seen: SampleHistory, steps: Steps, t: int
) -> dict[str, Any]:
    """What inference needs after t steps (see `LocalSGD`), one row per node; without noise, averages alone."""
    moments, counts = seen.moments, view.gradients.counts
    counted = {"steps": max(t - method.burn_in, 0), "burn_in": min(t, method.burn_in)}
    if moments is None or method.batch is None:
        passes = np.full(view.form.n, float(counted["steps"]))
        return {**counted, "passes": passes, "mean": seen.mean, "hessian": view.gradients.hessians(theta)}
    each = moments.count * method.batch / np.maximum(counts, 1)
    return {
        **counted,
        "batch": method.batch,
        "replacement": int(method.replacement),
        "alpha": steps.alpha,
        "hessian_samples": min(moments.count, moments.recent.shape[1]) * method.batch,
        "passes": np.where(counts > 0, each, 0.0),
        "mean": seen.mean,
        "gradient_mean": moments.mean,
        "gradient_covariance": moments.scatter / max(moments.count, 1),
        "hessian": view.gradients.hessians(theta, moments.last() if moments.count else None),
    }


def _warn_of_a_second_pass(method: AbstractConsensusMethod, view: LocalView, t: int) -> None:
    """At the step in which the first node takes a sample for the second time."""
    counts, batch = view.gradients.counts, method.batch or 1
    if not (view.own & (counts > 0)).any():
        return
    k = int(np.argmin(np.where(view.own & (counts > 0), counts, np.iinfo(np.int64).max)))
    if t * batch <= counts[k] < (t + 1) * batch:
        warn(
            f"the {counts[k]} samples of the node {view.form.labels[k]!r} are used up after {t} steps of "
            f"{method.name}: from here on samples are taken again, which inference from a single pass does not allow"
        )
