"""A round of a primal-dual method of which any message may be lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...form import EdgeBlock
from ...network import LocalView, Memories
from ...terms import Array
from ..tolerance import Messages, Swap, ToleratesLostMessages
from ._halpern import Iterate
from .fixed_point import AbstractFixedPoint, State

Ends = tuple[Array, Array, Array]  # of the flows of a block: of this end, prox outputs; which ends were heard (m, 1)


class LossyEdges(AbstractFixedPoint, ToleratesLostMessages):
    """A fixed-point method whose map is a half of the nodes, then (33) at the edges (`LocalView.dual_prox`): the edges'
    half may miss messages."""

    @abstractmethod
    def nodes(self, state: State) -> tuple[Array, Memories]:
        """The nodes' half of T x."""

    def step_with_lost_messages(self, state: State, messages: Messages) -> State:
        """See `edges_with_lost_messages`: the same round where nothing is lost."""
        x, relaxation = state.x, self.acceleration.relaxation
        w_hat, memory = self.nodes(state)
        w = x.w + relaxation * (w_hat - x.w)
        given, form = (state.view, (x.w, w_hat, w), x.u, state.s, relaxation), state.view.form
        edges = iter(edges_with_lost_messages(*given, messages.swap))
        rows = iter(rows_with_lost_messages(*given, messages) if form.unlike_edges else [])
        ends = [next(rows if edge.map.edges is None else edges) for edge in form.edges]
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
    edges = {k: (edge, *end_of(view, edge)) for k, edge in enumerate(view.form.edges) if edge.map.edges is not None}
    mine = [np.zeros((0, 1)) for _ in u]
    for k, (edge, i, sign) in edges.items():
        mine[k] = ahead[i][:, edge.coordinates] + s * sign * u[k]
    theirs = swap(tuple(mine))
    out: list[Ends] = []
    for k, (edge, i, sign) in edges.items():
        r, other, flow, c = mine[k], theirs[k], u[k], view.weights[k]
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


def rows_with_lost_messages(
    view: LocalView, moves: Sequence[Array], u: Sequence[Array], s: float, rho: float, messages: Messages
) -> list[Ends]:
    """The same at rows that are no edges, in two hops: from the ends to the owner, and back.

    Every end keeps one variable for each of the numbers of a row that it sees, x = w -+ s u of the coordinate that it
    sees there, by the sign of its coefficient: with steps s/deg and 1/(s |K|) the method is Douglas-Rachford splitting
    on these copies, each weighted by |K_ei|/s. Of every row an end sends

        q_i = K_i (2 w_hat - w) + s |K_i| u_i,     and its owner     u_hat = prox of sigma g*  at  sigma (sum_i q_i - b)

    back. An owner needs all ends, and an end what the owner has: where either is lost, x stays.
    """
    w, w_hat, new = moves
    form, none = view.form, list[Array]([np.zeros((0, 1))] * len(u))
    rows = form.once("own columns", None, lambda: _own_columns(view))
    mine, sent, out = none.copy(), none.copy(), list[Ends]()
    for k, K in rows.items():
        mine[k] = _times(view, K, 2.0 * w_hat - w, u[k]) + s * np.abs(K).sum(axis=1).reshape(u[k].shape) * u[k]
    got = messages.to_owners(tuple(mine))
    for k in rows:
        own, sent[k] = np.flatnonzero(view.own[form.edges[k].map.owner]), np.full(u[k].shape, np.nan)
        block, z = form.edges[k].part(own), got[k][own]
        z = z if block.center is None else z - block.center
        sigma, whole = np.full(len(own), 1.0 / block.lengths / s), np.asarray(np.isfinite(z).all(axis=1, keepdims=True))
        found = block.dual_prox(np.where(whole, sigma[:, None] * z, 0.0), sigma, block.weight)
        sent[k][own] = np.where(whole, found, np.nan)
    sent = messages.to_ends(tuple(sent))
    for k, K in rows.items():
        unseen = ~K.any(axis=1).reshape(u[k].shape) & ~view.own[form.edges[k].map.owner][:, None]
        received = np.asarray((np.isfinite(sent[k]) | unseen).all(axis=1, keepdims=True))
        u_hat = np.where(np.isfinite(sent[k]), sent[k], 0.0)
        stays = u[k] + _times(view, np.sign(K), new - w, u[k]) / s
        out.append((np.where(received, u[k] + rho * (u_hat - u[k]), stays), u_hat, received))
    return out


def _own_columns(view: LocalView) -> dict[int, Array]:
    """What rows that are no edges see of the own node, (m k, d), by the number of the block."""
    d, me = view.form.d, int(np.argmax(view.own))
    blocks = {k: edge for k, edge in enumerate(view.form.edges) if edge.map.edges is None}
    return {k: edge.map.flat(d)[:, me * d : me * d + d].toarray() for k, edge in blocks.items()}


def _times(view: LocalView, K: Array, x: Array, like: Array) -> Array:
    """K x_i at the own node, shaped as some flows."""
    return (K @ x[view.own][0]).reshape(like.shape)


def end_of(view: LocalView, edge: EdgeBlock) -> tuple[Array, Array]:
    """This end of each edge of a block, and its sign (m, 1)."""
    tail = view.own[edge.tail]
    return np.where(tail, edge.tail, edge.head), np.where(tail, 1.0, -1.0)[:, None]
