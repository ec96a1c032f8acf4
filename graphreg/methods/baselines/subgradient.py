"""Subgradient descent on the problem as it stands, full or stochastic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...base.messages import warn
from ...checks import checked, count, function, is_number, one_of, positive
from ...form import Form
from ...network import LocalView
from ...running import AbstractIteration, Point, Start
from ...terms import Array
from ...terms.losses import AbstractSmoothLoss
from ...terms.penalties import AbstractConstraint, AbstractSmoothPenalty
from ..fed_admm._averages import SuffixMean, WholeMean, averaged

POWER = 16  # of the norms that bound the largest and the least of numbers from their sums


@dataclass(frozen=True)
class State:
    view: LocalView
    round: int
    w: Array
    L: float  # bounds of the curvature of P; mu may be 0
    mu: float
    smooth: bool  # whether all of P is
    average: WholeMean | SuffixMean | None = None  # None: the last iterate is certified


@dataclass(frozen=True)
class SubgradientDescent(AbstractIteration):
    """Subgradient descent, for every loss and every finite penalty.

        w_i <- w_i - eta_t (g_i + (K'u)_i),    g_i in the subdifferential of f_i at w_i,  u_e in that of g_e at (Kw)_e

    One exchange of w per round. With ``batch`` g_i is an unbiased estimate from so many samples of node i, drawn with
    replacement. It is slow (O(1/sqrt(t)), O(1/t) where P is strongly convex), converges to no kink exactly, and so is
    seldom certified: what every other method is to be measured against.

    Parameters
    ----------
    step_size : number or function, optional
        eta, or eta_t as a function of the round t = 0, 1, ... None (default), with mu and L bounds of the curvature of
        P from below and above, from sums over the nodes: 1/L where all is smooth and no samples are drawn; otherwise
        2 / (mu (t + 2 L/mu)), which is 1/L at first, where mu > 0 (for 1/t see Bottou, Curtis and Nocedal, SIAM Review
        2018, Theorem 4.7; with averages Lacoste-Julien, Schmidt and Bach, 2012), and 1 / (L sqrt(t + 1)) where mu = 0.
        Where losses have no curvature of their own, L is that at the step at which their kinks would be smoothed.
        A number beyond 2/L, where all is smooth, gives a MethodWarning.
    batch : int, optional
        None (default): all samples.
    average : {None, "suffix"}
        What is certified: the last iterate, or the mean over the last half of the rounds at least (Rakhlin, Shamir and
        Sridharan, ICML 2012).

    Examples
    --------
    >>> run = problem.solve(gr.SubgradientDescent(), rounds=300, gap=0)
    >>> run.status, run.certificate.relative_gap < 0.5  # slow, and certified all the same
    ('budget', True)
    """

    seldom_certified = True
    needs = "penalties that are finite everywhere, so no constraints; any loss, any graph"
    sends = "the parameters, both ways across every edge: the coordinates that it couples"

    step_size: float | Callable[[int], float] | None = checked(positive | function("a function of the round"), None)
    batch: int | None = checked(count | None, None)
    average: str | None = checked(one_of("suffix"), None)

    def missing(self, form: Form) -> tuple[str, ...]:
        names = dict.fromkeys(edge.name for edge in form.edges if isinstance(edge.penalty, AbstractConstraint))
        return tuple(f"{name} is a constraint, which a step along subgradients leaves" for name in names)

    def init(self, view: LocalView, start: Start | None) -> State:
        w = np.zeros(view.form.shape) if start is None else start[0]
        L, mu, smooth = _bounds(view, self.batch is not None)
        if is_number(self.step_size) and smooth:
            eta = float(self.step_size)
            if eta > 2.0 / L:
                warn(f"the step_size {eta:.3g} of SubgradientDescent is beyond 2/L = {2.0 / L:.3g}: it may diverge")
        return State(view, 0, w, L, mu, smooth)

    def step(self, state: State) -> State:
        view, t = state.view, state.round
        seen = view.engine.exchange(state.w)
        g = view.gradient(state.w, self.batch, t)
        for edge in view.form.edges:
            if not any(edge is known for known in view.gradients.ground):
                edge.add_adjoint(edge.weight[:, None] * edge.penalty.subgradient(edge.difference(seen)), g)
        w = state.w - self._eta(state) * g
        average = None if self.average is None else averaged(False, state.average, state.w, w)
        return replace(state, round=t + 1, w=w, average=average)

    def _eta(self, state: State) -> float:
        t, L, mu = state.round, state.L, state.mu
        if callable(self.step_size):
            return float(self.step_size(t))
        if self.step_size is not None:
            return float(self.step_size)
        if self.batch is None and state.smooth:
            return 1.0 / L
        return 2.0 / (mu * t + 2.0 * L) if mu > 0 else 1.0 / (L * np.sqrt(t + 1.0))

    def point(self, state: State) -> Point:
        return state.w if state.average is None else state.average.value(), None, None


def _kinks(form: Form) -> Array:
    """The number of losses and edges with kinks at each node, (n,)."""
    nodes = [block.node for block in form.samples if not isinstance(block.loss, AbstractSmoothLoss)]
    nodes += [edge.tail for edge in form.edges if not isinstance(edge.penalty, AbstractSmoothPenalty)]
    return sum((np.bincount(each, minlength=form.n) for each in nodes), np.zeros(form.n))


def _bounds(view: LocalView, sampled: bool) -> tuple[float, float, bool]:
    """L and mu: bounds of the curvature of P from above (where all is smooth; of the steepest sample, where these are
    drawn) and below, and whether all is smooth, from two reductions.

    max x <= (sum x^q)^(1/q) and min x >= (sum x^-q)^(-1/q), relative to the means so that nothing overflows.
    """
    gradients, form = view.gradients, view.form
    L = gradients.sample_smoothness if sampled else gradients.smoothness
    L = np.where(np.isfinite(L), L, form.d * view.curvature)
    for edge in form.edges:
        if not edge.ground and isinstance(edge.penalty, AbstractSmoothPenalty):
            L = L + 2.0 * edge.penalty.smoothness() * (abs(edge.K).T @ edge.weight)
    mu = gradients.convexity
    total = view.engine.reduce(np.stack([L, mu, mu <= 0.0, _kinks(form)], axis=1)) / view.n_nodes
    mean = total[:2] if total[0] > 0 else np.ones(2)
    powers = np.stack([(L / mean[0]) ** POWER, (np.where(mu > 0, mu, 1.0) / (mean[1] or 1.0)) ** -POWER], axis=1)
    high, low = view.engine.reduce(powers) ** (1.0 / POWER)
    return float(mean[0] * (high or 1.0)), 0.0 if total[2] > 0 else float(mean[1] / low), not total[3] > 0
