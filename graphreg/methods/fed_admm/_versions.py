"""The edges' half of Fed-ADMM with inverse-probability weights: each end of an edge acts for one that is away.

Smooth edges to the ground have no copies: they are a part of the gradients of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...form import EdgeBlock, Form
from ...network import LocalView
from ...terms import Array
from ._copies import SIGNS, Copies, Flows, copied, flows_of


@dataclass(frozen=True)
class Version:
    """A block of m edges as each end has it: v = 2m rows, those of the tails above those of the heads (v = m on edges
    to the ground)."""

    u: Array  # (v, k)
    beta: Array  # at the own end, (v, k)
    other: Array  # beta at the other end, (v, k)
    theta: Array  # of the other end: as last heard, or by (21b), (v, k)


@dataclass(frozen=True)
class Versions:
    """The flows and copies of all edges that have copies, in two versions."""

    blocks: tuple[Version, ...]
    alone: Array  # rounds since a pair last met in which the source of each arc was there, (2p,)
    apart: Array  # rounds since then, (2p,)

    @staticmethod
    def of(view: LocalView, copies: Copies) -> Versions:
        """One version, and everything else as it is when all have met."""
        blocks: list[Version] = []
        for (_, edge), u, beta in zip(copied(view.form), copies.u, copies.beta, strict=True):
            other = np.roll(beta, len(u), axis=0)
            blocks.append(Version(np.tile(u, (len(edge.ends), 1)), beta, other, other))
        never = np.zeros(len(view.arcs.source), dtype=np.int64)
        return Versions(tuple(blocks), never, never)

    def flows(self, form: Form, w: Array) -> Flows:
        """The flows of all edges at the parameters w, those of edges in the tails' version."""
        each = zip(copied(form), self.blocks, strict=True)
        return flows_of(form, w, tuple(block.u[: len(edge.tail)] for (_, edge), block in each))

    def coupling_gradient(self, view: LocalView, w: Array, rho: float) -> Array:
        """K'u + rho sum over the edges of each node of (theta_i - beta_ij), each in the node's own version, (n, d)."""
        out = np.zeros(view.form.shape)
        for edge, k, block in self._each(view):
            me, _, sign = _ends(edge)
            out[:, edge.coordinates] += view.ends[k] @ (rho * (_rows(edge, w, me) - block.beta) + sign * block.u)
        return out

    # ---- a round ---------------------------------------------------------------------------------------------------
    def met(self, view: LocalView, w: Array, degree: Array, present: Array) -> tuple[Versions, Array]:
        """Pairs that meet again agree on a version: that of the end that was there in more of the rounds in between.

        The other end takes it up; and also theta_i, where it has no other edges, was away and its neighbour was there
        in all of these rounds.
        """
        p, arcs = view.arcs.pairs, view.arcs
        mate = np.roll(self.alone, p)
        ahead = (self.alone > mate) | ((self.alone == mate) & (np.arange(2 * p) < p))
        along = present[arcs.source] & present[arcs.target] & (self.apart > 0) & ahead
        acted = along & (mate == 0) & (self.alone == self.apart)  # the source has acted for the target throughout
        received = view.engine.swap_ends(self._outgoing(view), view.toward, along)
        w, blocks = w.copy(), list[Version]()
        for edge, k, block in self._each(view):
            if edge.ground:
                blocks.append(block)
                continue
            me, back = _ends(edge)[0], np.roll(view.toward[k], len(edge.tail))
            u, beta, theta = np.split(received[k], 3, axis=1)
            came = along[back] & np.isfinite(received[k]).all(axis=1)
            leaf = came & acted[back] & (degree[me] == 1)
            w[me[leaf, None], edge.columns(w.shape[1])] = theta[leaf]
            u, beta = np.where(came[:, None], [u, beta], [block.u, block.beta])
            blocks.append(replace(block, u=u, beta=beta))
        return replace(self, blocks=tuple(blocks)), w

    def step(self, view: LocalView, w: Array, eta: Array, degree: Array, rho: float, present: Array) -> Versions:
        """(18) and (19) in each version; the other end's theta is what it sends, or else as `_drifted` has it."""
        arcs = view.arcs
        along = present[arcs.source] & present[arcs.target]
        received = view.engine.exchange(w, along)
        blocks: list[Version] = []
        for edge, k, block in self._each(view):
            theta = block.theta
            if not edge.ground:
                met = along[view.toward[k]][:, None]
                theta = np.where(met, _rows(edge, received, _ends(edge)[1]), _drifted(edge, block, eta, degree, rho))
            blocks.append(_moved(edge, replace(block, theta=theta), w, rho))
        alone, apart = self.alone + present[arcs.source], self.apart + 1
        return Versions(tuple(blocks), np.where(along, 0, alone), np.where(along, 0, apart))

    def _each(self, view: LocalView) -> Iterator[tuple[EdgeBlock, int, Version]]:
        """The blocks that have copies, and their numbers in the form."""
        for (k, edge), block in zip(copied(view.form), self.blocks, strict=True):
            yield edge, k, block

    def _outgoing(self, view: LocalView) -> tuple[Array, ...]:
        """Per edge block of the form what each end has for the other: u, the other's copy, and its theta."""
        out = [np.zeros((len(toward), 0)) for toward in view.toward]
        for edge, k, block in self._each(view):
            if not edge.ground:
                out[k] = np.concatenate([block.u, block.other, block.theta], axis=1)
        return tuple(out)


def begun(view: LocalView, known: Array, w: Array, copies: Copies, started: bool) -> tuple[Array, Array, Versions]:
    """The values that neighbours tell each other before the first round, so that they can act for each other: what
    is known of each node, (n, 2) and back as (2, n), and its parameters where these do not start from zero; and the
    versions to start from."""
    known = view.engine.exchange(known, parameters=False, purpose="adaptation")
    if started:
        w = view.engine.exchange(w, purpose="adaptation")
        copies = Copies.of(view, w, copies.flows(view.form, w))
    return known.T, w, Versions.of(view, copies)


def _drifted(edge: EdgeBlock, block: Version, eta: Array, degree: Array, rho: float) -> Array:
    """theta of the other ends while they are away: by (21b) where they have no other edges, else as last heard.

    From records of other edges (21b) does worse: these stand still, and pull on and on.
    """
    _, other, sign = _ends(edge)
    pull = rho * (block.theta - block.other) - sign * block.u
    return np.where(degree[other][:, None] == 1, block.theta - eta[other][:, None] * pull, block.theta)


def _moved(edge: EdgeBlock, block: Version, w: Array, rho: float) -> Version:
    """(18) and (19), each end with its own parameters and those that it has of the other."""
    me, _, sign = _ends(edge)
    own = _rows(edge, w, me)
    z, sigma = edge.difference(w) if edge.ground else sign * (own - block.theta), rho / len(edge.ends)
    c = np.tile(edge.weight, len(edge.ends))
    u = edge.penalty.dual_prox(block.u + sigma * z, np.full(len(c), sigma), c)
    move = sign * (u - block.u) / rho
    return replace(block, u=u, beta=own - move, other=block.theta + move)


def _ends(edge: EdgeBlock) -> tuple[Array, Array, Array]:
    """The own end of each row and the other one, (v,), and the sign of the own end in K, (v, 1)."""
    ends = np.concatenate(edge.ends)
    sign = np.repeat(SIGNS[: len(edge.ends)], edge.count)[:, None]
    return ends, np.roll(ends, edge.count), sign


def _rows(edge: EdgeBlock, w: Array, nodes: Array) -> Array:
    """Rows of w on the coordinates of a block."""
    return w[nodes] if edge.features is None else w[np.ix_(nodes, edge.features)]
