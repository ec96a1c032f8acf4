"""The nodes' half of Fed-ADMM: theta_i+ = theta_i - eta_i (weight_i g_i + pull_i), and how long its steps may be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.clock import check_deadline
from ...base.messages import warn
from ...checks import function, per, positive
from ...errors import MethodError
from ...network import LocalView, per_node
from ...oracles import NodeGradients
from ...terms import Array
from ._copies import copies_at

RHO = 4.0  # in units of mean curvature / mean degree
KAPPA = 3.0  # in units of 1 / mean curvature
LEAST = 1e-300  # the curvature of a node without samples and edges, which does not move
ROUNDING = 1e-13  # of the sum over the samples of a node

Schedule = Callable[[int], Any]
StepSize = float | Mapping[Hashable, float] | Schedule
STEPS = per("node", positive) | function("a function of the round")


@dataclass(frozen=True)
class StepRule:
    """The part of a step that stays the same in a run: eta_i = 1 / bound_i with bound_i = L_i + rho deg_i; or, with a
    kappa, kappa / (t + kappa bound_i), or ``steep`` kappa / t; or what is ``given``."""

    rho: float
    degree: Array  # deg_i, the number of copies of node i, (n,)
    kappa: float | None = None
    steep: bool = False
    given: Array | None = None  # the constant steps of a user, (n,)

    def bound(self, L: Array) -> Array:
        return np.maximum(L + self.rho * self.degree, LEAST)

    def eta(self, t: int, L: Array) -> Array:
        """eta_i(t), (n,)."""
        if self.given is not None:
            return self.given
        if self.kappa is None:
            return 1.0 / self.bound(L)
        return np.full(len(L), self.kappa / t) if self.steep else self.kappa / (t + self.kappa * self.bound(L))


# ---- a node's step ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class StepOptions:
    """See `FedADMM`, whose options these are; ``noisy``: steps must decrease to converge. f_i stands for |V| f_i where
    ``whole`` says so, (17) as printed; ``steep``: kappa/t as printed."""

    rho: float | None
    step_size: StepSize | None
    kappa: float | None
    batch: int | None
    noisy: bool
    whole: bool = False
    steep: bool = False

    def factor(self, view: LocalView) -> float:
        """The factor by which f_i and its gradients are multiplied."""
        return float(view.n_observed) if self.whole else 1.0

    def gradient(self, view: LocalView, theta: Array, t: int) -> Array:
        return self.factor(view) * view.gradient(theta, self.batch, t)

    def begin(self, view: LocalView) -> tuple[StepRule, Array]:
        """rho, deg_i and the rule before the first round; and L_i, where there is no bound the mean curvature."""
        factor, rho, kappa = self.factor(view), self.rho, self.kappa
        L = factor * view.gradients.expected_smoothness(self.batch)
        decreasing = self.step_size is None and (self.noisy or self.steep or kappa is not None)
        if rho is None or (decreasing and kappa is None):
            scales = view.scales()
            h, degree = factor * scales.curvature or 1.0, scales.degree or 1.0
            rho, kappa = rho or RHO * h / degree, kappa or KAPPA / h
        rule = StepRule(rho, copies_at(view), kappa if decreasing else None, self.steep)
        return rule, np.where(np.isfinite(L), L, factor * view.curvature)

    def given(self, view: LocalView, scale: StepRule, L: Array) -> StepRule:
        """The scale with the constant steps that were given, if any; warned of where they are beyond their bound."""
        if self.step_size is None or callable(self.step_size):
            return scale
        if self.noisy:
            warn("FedADMM: a constant step_size keeps the variance of its gradients: let it decrease like 1/t")
        bound = np.where(np.isfinite(view.gradients.smoothness), 1.0 / scale.bound(L), np.inf)
        return replace(scale, given=_constant(view, self.step_size, bound))

    def eta(self, view: LocalView, scale: StepRule, t: int, L: Array) -> Array:
        """eta_i(t), (n,)."""
        return _scheduled(view, self.step_size, t) if callable(self.step_size) else scale.eta(t, L)

    def step(
        self, view: LocalView, theta: Array, g: Array, slope: Array, L: Array, eta: Callable[[Array], Array]
    ) -> tuple[Array, Array]:
        """theta - eta slope, and L_i: doubled, where the loss has no bound, as long as the step shows that f_i bends
        more. eta is that of L."""
        unbounded = ~np.isfinite(view.gradients.smoothness) & (self.step_size is None) & (not self.steep)
        while True:  # at most a thousand times: then the L_i of all that bend more are infinite
            check_deadline()
            new, factor = theta - eta(L)[:, None] * slope, self.factor(view)
            short = unbounded & np.isfinite(L)  # a gradient that is no number is not mended by shorter steps
            if short.any():
                short &= _bends_more(view.gradients, theta, new, g / factor, L / factor)
            if not short.any():
                return new, L
            L = np.where(short, 2.0 * L, L)


def _bends_more(gradients: NodeGradients, w: Array, new: Array, g: Array, L: Array) -> Array:
    """Nodes where f(new) > f(w) + <g, new - w> + L/2 ||new - w||^2, beyond rounding, (n,) bool."""
    move, before = new - w, gradients.value(w)
    bound = before + np.einsum("ij,ij->i", g, move) + 0.5 * L * np.einsum("ij,ij->i", move, move)
    return ~(gradients.value(new) <= bound + ROUNDING * np.abs(before))


def _constant(view: LocalView, step_size: float | Mapping[Hashable, float], bound: Array) -> Array:
    """The constant steps that a user gave, (n,), and the bound at latent nodes."""
    given = per_node(view.form, step_size, np.nan)
    given = np.where(np.isnan(given), bound, given)
    beyond = np.flatnonzero(given > bound * (1.0 + 1e-9))
    if len(beyond):
        worst = beyond[np.argmax(given[beyond] / bound[beyond])]
        warn(
            f"FedADMM: the step_size {given[worst]:.3g} of node {view.form.labels[worst]!r} is beyond its bound "
            f"1 / (L_i + rho deg_i) = {bound[worst]:.3g}, up to which the iteration is known to converge"
        )
    return given


def _scheduled(view: LocalView, schedule: Schedule, t: int) -> Array:
    """The steps of round t by a function of the user's, (n,)."""
    eta = np.asarray(schedule(t))
    right = eta.shape in ((), (view.n_nodes,)) and eta.dtype.kind in "fiu"
    if not (right and np.isfinite(eta).all() and (eta > 0).all()):
        raise MethodError(
            f"the step_size of FedADMM as a function must return a positive number, or {view.n_nodes} of them, one per "
            f"node; for round {t} it returned {eta!r}"
        )
    return np.broadcast_to(eta.astype(float), (view.n_nodes,))[view.ids]
