"""The decreasing step of the methods for a consensus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.messages import warn
from ...checks import ChecksFields, checked, inside, instance, is_number, nonnegative, positive
from ...network import LocalView, largest
from ...terms import Array
from . import _consensus as consensus

MARGIN = 2.5  # of the default D over 1/mu; Theorem 2 asks for more than 2
NOTHING = 1e-10  # of the largest eigenvalue: a direction without curvature, in which no gradient points either


@dataclass(frozen=True)
class DecreasingStep(ChecksFields):
    """A step that decreases: eta_t = D (floor(t / tau) + 1 + gamma)^(-alpha), t = 0, 1, ... (Assumption 4), tau = 1 but
    for local SGD. The mean over the K nodes moves by eta_t times the sum of their gradients: nodes step along
    K grad f_i, by `LocalSGD`, `GradientTracking` and `ExactDiffusion` alike.

    Parameters
    ----------
    D, gamma : float, optional
        Positive and non-negative. What is left out follows from the constants, with mu the smallest eigenvalue of the
        Hessian of the sum of all f_i at the start and L the largest smoothness K L_i of what a node steps along
        (that of single samples with batches): D = 2.5 / mu, beyond the 2 / mu of Theorem 2, and gamma such that the
        first step is 1 / L <= 1 / mu. Given gamma alone, D is what makes the first step 1 / L.
    alpha : float
        In (1/2, 1], 0.8 by default. Averages over time are efficient for alpha < 1 (Theorem 3); for alpha = 1 the
        one-step estimator is.

    Examples
    --------
    >>> tracked = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(graph))
    >>> run = tracked.solve(gr.LocalSGD(gr.DecreasingStep(alpha=0.8)), rounds=200, gap=0, seed=0)
    >>> run.rounds, run.status
    (200, 'budget')
    """

    D: float | None = checked(positive, None)
    gamma: float | None = checked(nonnegative, None)
    alpha: float = checked(inside("(1/2, 1]"), 0.8)


STEP = positive | instance(DecreasingStep, "a gr.DecreasingStep(...)")  # what the methods for a consensus take


@dataclass(frozen=True)
class Steps:
    """The steps of a run: eta_t = D (floor(t / tau) + 1 + gamma)^(-alpha); alpha = 0 where the step is constant."""

    D: float
    gamma: float
    alpha: float
    tau: int = 1

    def at(self, t: int) -> float:
        return self.D * (t // self.tau + 1 + self.gamma) ** -self.alpha


def steps_of(
    view: LocalView,
    theta: Array,
    given: float | DecreasingStep | None,
    batch: consensus.Batch,
    method: str = "LocalSGD",
    slowed: float = 1.0,
) -> Steps:
    """The steps on a local view for tau = 1, with a warning where one is beyond its bound.

    Nodes step along K grad f_i, so L = K max L_i; a longer step than 2 / L makes a node's own steps diverge. ``slowed``
    is what is left of that bound on this mixing.
    """
    n = view.n_nodes
    bound = slowed * 2.0 / (n * L) if 0.0 < (L := consensus.smoothness(view, None)) < np.inf else 0.0
    if is_number(given):
        steps = Steps(float(given), 0.0, 0.0)
        consensus.warn_beyond(steps.D, bound, method, f"2 / (K max L_i), K = {n}")
        return steps
    asked = given if isinstance(given, DecreasingStep) else DecreasingStep()
    mu = _curvature(view, theta)
    rough = L if batch is None else largest(view, view.gradients.sample_smoothness)
    first = slowed / (n * rough) if 0.0 < rough < np.inf else 1.0
    D, gamma = asked.D, asked.gamma
    if D is None:
        D = MARGIN / mu if gamma is None and mu > 0.0 else first * (1.0 + (gamma or 0.0)) ** asked.alpha
    if gamma is None:
        gamma = max((D / first) ** (1.0 / asked.alpha) - 1.0, 0.0)
    steps = Steps(float(D), float(gamma), float(asked.alpha))
    least = min([b for b in (bound, 1.0 / mu if mu > 0.0 else 0.0) if b > 0.0], default=0.0)
    consensus.warn_beyond(steps.at(0), least, f"{method} at the start", "the lesser of 2 / (K max L_i) and 1 / mu")
    if asked.alpha == 1.0 and mu > 0.0 and 2.0 / mu >= steps.D:
        warn(
            f"the D = {steps.D:.4g} of a step with alpha = 1 is not beyond its bound {2.0 / mu:.4g} (2 / mu of Theorem "
            "2, mu the curvature of the sum at the start): what is left of the start falls slower than the noise"
        )
    return steps


def _curvature(view: LocalView, theta: Array) -> float:
    """mu, the smallest eigenvalue of the Hessian of the sum at the start, but for directions without curvature; the
    mean of the nodes' own starts is not needed, as each takes its own. One sum of d^2 numbers."""
    H = np.where(view.own[:, None, None], view.gradients.hessians(theta), 0.0)
    values = np.linalg.eigvalsh(view.engine.reduce(H))
    present = values[values > NOTHING * values[-1]]
    return float(present[0]) if values[-1] > 0.0 else 0.0
