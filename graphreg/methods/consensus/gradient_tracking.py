"""Gradient tracking: decentralised gradient descent along an estimate of the whole gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...checks import checked, count, counts, whole
from ...network import LocalView, Mixing, largest
from . import _consensus as consensus
from ._decreasing import STEP, DecreasingStep
from ._tracked import AbstractTracking, Tracked


@dataclass(frozen=True)
class GradientTracking(AbstractTracking):
    """Gradient tracking, adapt then combine (Xu, Zhu, Soh and Xie 2015; Nedic, Olshevsky and Shi 2017), for a smooth
    consensus, with g_i = grad f_i(theta_i):

        y+     = C (y + g - g_old),       y_0 = g_old = 0
        theta+ = C (theta - eta y+).

    As C = I - K' diag(c) K, the tracker is y = g + K'u with a flow u on every edge, and the round is the same as

        v      = g + K'u                 (sent to the neighbours: d numbers)
        u+     = u - c K v
        y+     = g + K'u+
        theta+ = C (theta - eta y+)      (the bracket sent to the neighbours: d numbers).

    So a round sends two messages along each arc, the second after the first has arrived. The tracker is what the
    flows leave of the conservation (K'u)_i + grad f_i = 0, and vanishes at the optimum: u are the certificate's.

    Parameters
    ----------
    step_size : float or DecreasingStep, optional
        eta, in units of 1 / curvature of the summands f_i (not of their mean). With lazy mixing any step below
        2 / max L_i converges linearly whatever the network, where every f_i is strongly convex (Alghunaim, Ryu, Yuan
        and Sayed, Decentralized proximal gradient algorithms with linear convergence rates, 2021, Theorem 1 with
        A = C^2, B^2 = I - C, which needs C to be positive); half of it by default. With a smallest eigenvalue
        lambda < -1/3 of C the bound is ((1 + lambda) / lambda)^2 / (2 max L_i), which is necessary (nodes of one and
        the same Hessian oscillate beyond it); lambda is bounded by 2 min c_ii - 1. Both are found from sums over all
        nodes (four numbers each), recorded as adaptation. A `DecreasingStep` is in units of its own.
    mixing : "metropolis", (n, n) array in node order, DataFrame or {i: {j: c_ij}}
        C: symmetric, rows of sum 1, positive on the edges of the communication graph and 0 off it.
    lazy : bool
        Whether (C + I)/2 takes the place of C; True by default.
    batch : int or mapping, optional
        Stochastic gradients from so many samples of each node; all of them by default. With a constant step the
        iterates then stay within a distance of the optimum of the order of sqrt(eta), and the default step is that of
        the roughest sample; with a `DecreasingStep` they converge.
    replacement, shuffle : bool
    hessian_samples, burn_in : int, optional
        As for `LocalSGD`, and so is what ``solution.gathered`` has after a run with batches: what
        `graphreg.inference.confidence_region` needs.

    Examples
    --------
    >>> one_model = gr.Problem(gr.SquaredLoss(data) + gr.Consensus(graph))
    >>> one_model.solve(gr.GradientTracking()).status
    'certified'
    """

    sends = (
        "two messages each way, one after the other: what is left of the gradient, and the parameters after the step"
    )
    source = "2 / max L_i (Alghunaim et al. 2021, Theorem 1), less where the mixing has negative eigenvalues"

    step_size: float | DecreasingStep | None = checked(STEP, None)
    mixing: Any = "metropolis"
    lazy: bool = True
    batch: consensus.Batch = checked(counts | None, None)
    replacement: bool = True
    shuffle: bool = True
    hessian_samples: int | None = checked(count, None)
    burn_in: int = checked(whole(0), 0)

    def share_of_bound(self, view: LocalView, mixing: Mixing) -> float:
        """min(1, ((1 + lambda) / (2 lambda))^2) for the lower bound lambda = 1 - 2 max (1 - c_ii) of the eigenvalues of
        C: 1 where lambda >= -1/3."""
        low = max(1.0 - 2.0 * largest(view, mixing.outflow(view.form)), -1.0 + 1e-3)
        return 1.0 if low >= 0.0 else min(1.0, ((1.0 + low) / (2.0 * low)) ** 2)

    def step(self, state: Tracked) -> Tracked:
        view, mixing = state.view, state.mixing
        g, seen = self.sampled_gradients(state)
        v = view.engine.exchange(g + view.adjoint(state.u))
        u = consensus.next_flows(view, mixing, state.u, v, -1.0)
        y = g + view.adjoint(u)
        theta = mixing.apply(view.form, view.engine.exchange(state.theta - state.eta * y))
        return replace(state, round=state.round + 1, theta=theta, u=u, seen=seen)
