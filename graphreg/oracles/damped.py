"""Newton's method with steps that are halved until they descend: of all nodes at once, and of one problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.clock import check_deadline
from ..terms import Array
from .gradients import NodeGradients

STEPS, HALVINGS = 100, 40
ARMIJO, ROUNDING = 1e-4, 1e-14  # of a decrease: how much of it must come; of a value: what it may be off by
ALL_BUT = 1e-9  # of a value: what a step that cannot be made might still gain at a minimum


def minimisers(
    gradients: NodeGradients,
    w: Array,
    solve: Callable[[Array, Array, Array], Array],
    settled: float,
    steps: int = STEPS,
) -> tuple[Array, Array]:
    """The minimisers of every node's h_i, from w, and which nodes are there, (n,) bool.

    ``solve`` gives the steps H^-1 g of some nodes from H, g and the mask of these. A node whose step gains less than
    ``settled`` of its value takes it as its last: quadratic convergence makes that the best one.
    """
    w, value = w.copy(), gradients.value(w)
    first, left = np.abs(value), np.full(len(w), True)
    for _ in range(steps):
        check_deadline()
        g, step = gradients.full(w), np.zeros_like(w)
        step[left] = solve(gradients.hessians(w)[left], g[left], left)
        decrease = np.einsum("ij,ij->i", g, step)
        last = left & (decrease <= settled * np.abs(value) + 1e-28 * first)
        t, worse, after = np.where(left & ~last, 1.0, 0.0), np.zeros(len(w), dtype=bool), value
        for _ in range(HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):
                after = gradients.value(w - t[:, None] * step)
            worse = (t > 0.0) & ~(after <= value - ARMIJO * t * decrease + ROUNDING * np.abs(value))
            if not worse.any():
                break
            t[worse] /= 2.0
        t[worse], t[last] = 0.0, 1.0
        w = w - t[:, None] * step
        left &= ~(last | (worse & (decrease <= ALL_BUT * np.abs(value))))
        value = np.where(worse, value, after)  # of nodes that are there the one before: nobody asks for it
        if worse[left].all():  # or none is left
            break
    return w, ~left


def minimiser(
    value: Callable[[Array], float],
    step: Callable[[Array], tuple[Array, float]],
    x: Array,
    *,
    settled: float,
    shortest: float,
    steps: int = STEPS,
) -> tuple[Array, bool, int]:
    """A minimiser of a smooth function from x, whether one was reached, and after how many steps.

    ``step`` gives the Newton step at a point and what it gains to first order (nan where there is none). That which
    gains less than ``settled`` of the value is the last.
    """
    now = value(x)
    for k in range(1, steps + 1):
        move, gain = step(x)
        if not np.isfinite(gain):
            return x, False, k
        if gain <= settled * abs(now):
            return x - move, True, k
        t = 1.0
        while not (after := value(x - t * move)) <= now - ARMIJO * t * gain:
            t *= 0.5
            if t <= shortest:
                return x, False, k
        x, now = x - t * move, after
    return x, False, steps
