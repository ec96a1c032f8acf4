"""Exact diffusion: decentralised gradient descent without the bias of a constant step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...checks import checked, count, counts, whole
from . import _consensus as consensus
from ._decreasing import STEP, DecreasingStep
from ._tracked import AbstractTracking, Tracked


@dataclass(frozen=True)
class ExactDiffusion(AbstractTracking):
    """Exact diffusion (Yuan, Ying, Zhao and Sayed 2019) for a smooth consensus, with g_i = grad f_i(theta_i):

        psi+   = theta - eta g
        theta+ = (I + C)/2 (psi+ + theta - psi),        psi_0 = theta_0.

    As (I - C)/2 = 1/2 K' diag(c) K, the sum of all corrections is theta - psi = -eta K'u with a flow u on every edge,
    and the round is, with a constant step the same,

        phi    = theta - eta (g + K'u)              (sent to the neighbours: d numbers)
        u+     = u + c / (2 eta) K phi
        theta+ = theta - eta (g + K'u+).

    With decreasing steps the second form is what is computed, the first with (eta_t / eta_{t-1}) (theta - psi) in the
    place of theta - psi: flows keep their size, and corrections shrink with the step.

    At a fixed point all theta_i agree and (K'u)_i = -grad f_i: u are the flows of the certificate.

    Parameters
    ----------
    step_size : float or DecreasingStep, optional
        eta, in units of 1 / curvature of the summands f_i (not of their mean). By default 1 / max L_i; any step below
        2 / max L_i converges linearly whatever the network, where every f_i is strongly convex (Li, Shi and Yan, A
        decentralized proximal-gradient method with network independent step-sizes, 2019; Alghunaim, Ryu, Yuan and
        Sayed 2021, Theorem 1). The maximum is bounded by sums over all nodes (four numbers each), recorded as
        adaptation. A `DecreasingStep` is in units of its own.
    mixing : "metropolis", (n, n) array in node order, DataFrame or {i: {j: c_ij}}
        C: symmetric, rows of sum 1, positive on the edges of the communication graph and 0 off it.
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
    >>> one_model.solve(gr.ExactDiffusion()).status
    'certified'
    """

    sends = "the parameters after the gradient step, both ways across every edge"
    source = "2 / max L_i (Li, Shi and Yan 2019)"
    lazy = True  # (I + C)/2

    step_size: float | DecreasingStep | None = checked(STEP, None)
    mixing: Any = "metropolis"
    batch: consensus.Batch = checked(counts | None, None)
    replacement: bool = True
    shuffle: bool = True
    hessian_samples: int | None = checked(count, None)
    burn_in: int = checked(whole(0), 0)

    def step(self, state: Tracked) -> Tracked:
        view, theta, eta = state.view, state.theta, state.eta
        g, seen = self.sampled_gradients(state)
        phi = view.engine.exchange(theta - eta * (g + view.adjoint(state.u)))
        u = consensus.next_flows(view, state.mixing, state.u, phi, 1.0 / eta)  # the mixing is lazy: c stands for c/2
        theta = theta - eta * (g + view.adjoint(u))
        return replace(state, round=state.round + 1, theta=theta, u=u, seen=seen)
