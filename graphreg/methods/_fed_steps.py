"""How long the steps of Fed-ADMM may be: smoothness, bounds, schedules of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ..checks import function, per, positive
from ..errors import MethodError, MethodWarning
from ..lowering.gradients import NodeGradients
from ..lowering.site import Site
from ..terms.records import Array
from .availability import per_node

ROUNDING = 1e-13  # of the sum over the samples of a node

Schedule = Callable[[int], Any]
StepSize = float | Mapping[Hashable, float] | Schedule
STEPS = per("node", positive) | function("a function of the round")


def batch_smoothness(gradients: NodeGradients, batch: int | None) -> Array:
    """L_i with E[H^2] <= L_i E[H] for the Hessian H of a batch, the mean of b samples drawn with replacement:
    (1 - 1/b) L_i + max_k L_ik / b, as E[H^2] = (1 - 1/b) E[H]^2 + E[H_k^2] / b. Of all samples, L_i."""
    if batch is None:
        return gradients.smoothness
    return (1.0 - 1.0 / batch) * gradients.smoothness + gradients.sample_smoothness / batch


def constant_steps(site: Site, step_size: float | Mapping[Hashable, float], bound: Array) -> Array:
    """The constant steps that a user gave, (n,), and the bound at latent nodes; warned of where they are beyond it."""
    given = per_node(site.form, step_size, np.nan)
    given = np.where(np.isnan(given), bound, given)
    beyond = np.flatnonzero(given > bound * (1.0 + 1e-9))
    if len(beyond):
        worst = beyond[np.argmax(given[beyond] / bound[beyond])]
        warn(
            f"the step_size {given[worst]:.3g} of node {site.form.labels[worst]!r} is beyond its bound "
            f"1 / (L_i + rho deg_i) = {bound[worst]:.3g}, up to which the iteration is known to converge"
        )
    return given


def scheduled(site: Site, schedule: Schedule, t: int) -> Array:
    """The steps of round t by a function of the user's, (n,)."""
    eta = np.asarray(schedule(t))
    right = eta.shape in ((), (site.n_nodes,)) and eta.dtype.kind in "fiu"
    if not (right and np.isfinite(eta).all() and (eta > 0).all()):
        raise MethodError(
            f"the step_size of FedADMM as a function must return a positive number, or {site.n_nodes} of them, one per "
            f"node; for round {t} it returned {eta!r}"
        )
    return np.broadcast_to(eta.astype(float), (site.n_nodes,))[site.ids]


def bends_more(gradients: NodeGradients, w: Array, new: Array, g: Array, L: Array) -> Array:
    """Nodes where f(new) > f(w) + <g, new - w> + L/2 ||new - w||^2, beyond rounding, (n,) bool."""
    move, before = new - w, gradients.value(w)
    bound = before + np.einsum("ij,ij->i", g, move) + 0.5 * L * np.einsum("ij,ij->i", move, move)
    return ~(gradients.value(new) <= bound + ROUNDING * np.abs(before))


def warn(what: str) -> None:
    warnings.warn(f"FedADMM: {what}", MethodWarning, stacklevel=2)
