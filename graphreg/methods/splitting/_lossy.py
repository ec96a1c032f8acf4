"""A round of a primal-dual method of which any message may be lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...form import EdgeBlock
from ...network import LocalView, Memories
from ...terms import Array
from ..tolerance import Swap, ToleratesLostMessages
from ._halpern import Iterate
from .fixed_point import AbstractFixedPoint, State

Ends = tuple[Array, Array, Array]  # of the flows of a block: of this end, prox outputs; which ends were heard (m, 1)


class LossyEdges(AbstractFixedPoint, ToleratesLostMessages):
    """A fixed-point method whose map is a half of the nodes, then (33) at the edges (`LocalView.dual_prox`): the edges'
    half may miss messages."""

    @abstractmethod
    def nodes(self, state: State) -> tuple[Array, Memories]:
        """The nodes' half of T x."""

    def step_with_lost_messages(self, state: State, swap: Swap) -> State:
        """See `edges_with_lost_messages`: the same round where nothing is lost."""
        x, relaxation = state.x, self.acceleration.relaxation
        w_hat, memory = self.nodes(state)
        w = x.w + relaxation * (w_hat - x.w)
        ends = edges_with_lost_messages(state.view, (x.w, w_hat, w), x.u, state.s, relaxation, swap)
        u_hat = (np.where(received, new, old) for (_, new, received), old in zip(ends, state.hat.u, strict=True))
        x, hat = Iterate(w, tuple(u for u, _, _ in ends)), Iterate(w_hat, tuple(u_hat))
        return self.adapted(replace(state, round=state.round + 1, x=x, hat=hat, memory=memory))


def edges_with_lost_messages(
    view: LocalView, moves: Sequence[Array], u: Sequence[Array], s: float, rho: float, swap: Swap
) -> list[Ends]:
    """The edges' half of a round, from ``moves`` = (w, w_hat, w+): the flows of this end, and the prox outputs.

    The primal-dual method with steps s/deg and 1/(2s) is Douglas-Rachford splitting on copies of the parameters: with
    x_t = w_t - s u and x_h = w_h + s u, one variable per edge and end, a round is

        w_hat_i = prox of s/deg_i f_i  at the mean of the x of its edges,           r = 2 w_hat - x             (nodes)
        (z_t, z_h) = prox of s g_e at (r_t, r_h):   u_hat = prox of sigma g*  at  sigma (r_t - r_h),  z = r -+ s u_hat
        x+ = x + rho (z - w_hat),                                                    sigma = 1/(2s).            (edges)

    x_t is kept by the tail and x_h by the head; each update needs the r of the other end, and nothing else. Where that
    is lost, x stays as it is (`ToleratesLostMessages` says why that converges). Each end has its own copy of the flow,
    u_t = (w_t - x_t)/s and u_h = (x_h - w_h)/s: they agree while nothing is lost, and again in the limit. In terms of
    these, with +- the sign of the end (+ at the tail):

        r = 2 w_hat - w +- s u                                                                           is sent
        u+ = u + rho (u_hat - u)  where the other end was heard,     u +- (w+ - w)/s  where it was not: x stays.

    With a gradient step at the nodes, w_hat = w - eta (grad f(w) + K'u) with eta_i = 1/(L_i + deg_i/s), and rho = 1, it
    is Davis-Yin splitting (Set-Valued Var. Anal. 25, 2017) with the further variable w_i - grad f_i(w_i)/L_i, which the
    node keeps: averaged in the same norm, so that the same holds.
    """
    w, w_hat, new = moves
    ahead = 2.0 * w_hat - w
    ends = [end_of(view, edge) for edge in view.form.edges]
    edges = list(zip(view.form.edges, u, ends, strict=True))
    mine = tuple(ahead[i][:, edge.coordinates] + s * sign * flow for edge, flow, (i, sign) in edges)
    theirs = swap(mine)
    out: list[Ends] = []
    for (edge, flow, (i, sign)), r, other, c in zip(edges, mine, theirs, view.weights, strict=True):
        if edge.ground:  # one end, which hears itself
            z = s * flow + edge.difference(ahead)
        else:
            z = sign * (r - other)
        sigma = 1.0 / edge.lengths / s
        received = np.asarray(np.isfinite(z).all(axis=1, keepdims=True))
        u_hat = edge.penalty.dual_prox(np.where(received, sigma * z, 0.0), np.full(len(c), sigma), c)
        stays = flow + sign * (new - w)[i][:, edge.coordinates] / s
        out.append((np.where(received, flow + rho * (u_hat - flow), stays), u_hat, received))
    return out


def end_of(view: LocalView, edge: EdgeBlock) -> tuple[Array, Array]:
    """This end of each edge of a block, and its sign (m, 1)."""
    tail = view.own[edge.tail]
    return np.where(tail, edge.tail, edge.head), np.where(tail, 1.0, -1.0)[:, None]
