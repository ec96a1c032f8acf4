"""The prox of nodes' smooth losses by gradient steps: as many as are asked for, or until the point is near enough.

Node i descends h_i(w) = f_i(w) + 1/(2 tau_i) ||w - v_i||^2, which is mu_i + 1/tau_i strongly convex, from the last
round's point. With p_i the prox,

    ||w - p_i||  <=  ||grad h_i(w)|| / (mu_i + 1/tau_i)                                                          (1)

so the distance from the exact prox is known from the gradient alone, without p_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from ..checks import Check, inside, is_number
from ..clock import look
from ..errors import MethodError
from ..form import Form
from ..terms import Array
from ..terms.penalties import row_norm
from .gradients import NodeGradients, without_gradient

MOST_STEPS = 10_000
EASE = 0.7  # by which the curvature of a step is tried lower each time, where the loss has no bound of it
ROUNDING = 1e-14  # of a point: no tolerance is met more closely


INEXACT = Check(
    "a whole number of gradient steps, a number c for the tolerance c / (t + 1)^2, or a function of the round t",
    lambda given: callable(given) or (is_number(given) and 0.0 < given < np.inf),
)
TOLERANCE = inside("[0, inf]", "a tolerance >= 0")
Inexact = int | float | Callable[[int], float]


@dataclass(frozen=True)
class Accuracy:
    """When a node stops: after ``steps``, or within ``tolerance`` of its prox by (1)."""

    steps: int = MOST_STEPS
    tolerance: float = 0.0

    @staticmethod
    def of(given: Inexact, t: int, owner: str) -> Accuracy:
        """In round t = 0, 1, ..., as the option ``inexact`` of a method says."""
        if isinstance(given, Integral):
            return Accuracy(steps=int(given))
        tolerance = given(t) if callable(given) else float(given) / (t + 1) ** 2
        return Accuracy(
            tolerance=float(TOLERANCE(tolerance, f"the value of {owner}(inexact=...) in round {t}", MethodError))
        )


def gradient_steps(
    gradients: NodeGradients, v: Array, tau: Array, warm: Array, memory: tuple[Any, ...], accuracy: Accuracy
) -> tuple[Array, tuple[Array]]:
    """Points near the prox of every node's losses, and as ``memory`` the curvatures of the last steps; () at first.

    Steps are 1/(L_i + 1/tau_i), L_i the smoothness of f_i. Where that is infinite (Poisson losses) L_i is the
    curvature of the last step, tried lower each time and doubled until the step does not go beyond the minimum along
    its direction: <grad h(w+), grad h(w)> >= 0, which also says that h has decreased.
    """
    bound = gradients.smoothness
    free, convexity = ~np.isfinite(bound), gradients.convexity + 1.0 / tau
    L = memory[0] if memory else np.where(free, 1.0, bound)
    has = gradients.counts > 0
    w = np.where(has[:, None], warm, v)

    def slope(w: Array) -> Array:
        return gradients.full(w) + (w - v) / tau[:, None]

    g = slope(w)
    for _ in range(accuracy.steps):
        look()
        left = has & (row_norm(g) / convexity > np.maximum(accuracy.tolerance, ROUNDING * row_norm(w)))
        if not left.any():
            break
        L = np.where(free & left, EASE * L, L)
        w, g, L = _step(slope, w, g, L, tau, left, free)
    return w, (L,)


def _step(
    slope: Callable[[Array], Array], w: Array, g: Array, L: Array, tau: Array, left: Array, free: Array
) -> tuple[Array, Array, Array]:
    """One step of the nodes ``left``; those ``free`` shorten theirs until it does not overshoot."""
    while True:  # at most a thousand times: then L is infinite
        look()
        new = np.where(left[:, None], w - g / (L + 1.0 / tau)[:, None], w)
        g_new = slope(new)
        inner = np.einsum("ij,ij->i", g_new, g)
        over = left & free & np.isfinite(L) & ~((inner >= 0.0) & np.isfinite(g_new).all(axis=1))
        if not over.any():
            return new, g_new, L
        L = np.where(over, 2.0 * L, L)


def without_steps(form: Form) -> tuple[str, ...]:
    """Losses with kinks, as sentences."""
    return without_gradient(replace(form, edges=()))
