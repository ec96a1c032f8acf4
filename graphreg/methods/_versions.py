"""The edges' half of Fed-ADMM with inverse-probability weights: each end of an edge acts for the other while it is away.

Smooth edges to the ground have no copies: they are a part of the gradients of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..form import EdgeBlock, Form
from ..lowering.site import Site
from ..terms.records import Array
from ._copies import Copies, Flows, copied, flows_of, smooth_ground

Geometry = tuple[Array, Array, Array]  # own ends, other ends (v,), and the signs of the own ends in K (v, 1)


@dataclass(frozen=True)
class Version:
    """A block of m edges as each end has it: v = 2m rows, those of the tails above those of the heads (v = m on edges
    to the ground). Where there is an axis of two, it is the own end and the other one."""

    u: Array  # (v, k)
    beta: Array  # (2, v, k)
    theta: Array  # theta(t + 1) of both ends by (21b), from this version and the record, (2, v, k)
    record: Array  # the sum of rho beta + alpha over the other edges of both ends, when these last met, (2, v, k)

    def shares(self, sign: Array, rho: float) -> Array:
        """rho beta + alpha at both ends, (2, v, k)."""
        return rho * self.beta - np.stack([sign * self.u, -sign * self.u])


@dataclass(frozen=True)
class Versions:
    """The flows and copies of all edges that have copies, in two versions."""

    blocks: tuple[Version, ...]
    alone: Array  # rounds since a pair last met in which the source of each arc was there, (2p,)
    apart: Array  # rounds since then, (2p,)

    @staticmethod
    def of(site: Site, copies: Copies) -> Versions:
        """One version, and everything else as it is when all have met."""
        blocks: list[Version] = []
        for (edge, _), u, beta in zip(copied(site), copies.u, copies.beta, strict=True):
            other = beta if edge.ground else np.roll(beta, len(u), axis=0)
            both = np.stack([beta, other])
            blocks.append(Version(u if edge.ground else np.tile(u, (2, 1)), both, both, np.zeros_like(both)))
        never = np.zeros(len(site.arcs.source), dtype=np.int64)
        return Versions(tuple(blocks), never, never)

    def flows(self, form: Form, w: Array) -> Flows:
        """The flows of all edges at the parameters w, those of edges in the tails' version."""
        edges = [edge for edge in form.edges if not smooth_ground(edge)]
        each = zip(edges, self.blocks, strict=True)
        return flows_of(form, w, tuple(block.u[: len(edge.tail)] for edge, block in each))

    def pull(self, site: Site, w: Array, rho: float) -> Array:
        """K'u + rho sum over the edges of each node of (theta_i - beta_ij), each in the node's own version, (n, d)."""
        out = np.zeros(site.form.shape)
        for edge, ends, _, block in self._each(site):
            me, _, sign = _geometry(edge)
            _add(edge, ends @ (rho * _rows(edge, w, me) - block.shares(sign, rho)[0]), out)
        return out

    # ---- a round ---------------------------------------------------------------------------------------------------
    def met(self, site: Site, w: Array, there: Array) -> tuple[Versions, Array]:
        """Pairs that meet again agree on a version: that of the end that was there in more of the rounds in between.

        The other end takes it up: the flow, its copy, and, where it was away and its neighbour there in all of these
        rounds, what the neighbour's version has made of its theta_i and its own has not: (21b) is affine in what the
        edges add, so that the corrections of several neighbours add up.
        """
        p, arcs = site.arcs.pairs, site.arcs
        mate = np.roll(self.alone, p)
        ahead = (self.alone > mate) | ((self.alone == mate) & (np.arange(2 * p) < p))
        along = there[arcs.source] & there[arcs.target] & (self.apart > 0) & ahead
        acted = along & (mate == 0) & (self.alone == self.apart)  # the source has acted for the target throughout
        heard = site.engine.swap_ends(self._told(site), site.toward, along)
        w, blocks = w.copy(), list[Version]()
        for edge, ends, k, block in self._each(site):
            if edge.ground:
                blocks.append(block)
                continue
            back = np.roll(site.toward[k], len(edge.tail))
            u, beta, theta = np.split(heard[k], 3, axis=1)
            came = (along[back] & np.isfinite(heard[k]).all(axis=1))[:, None]
            _add(edge, ends @ np.where(came & acted[back][:, None], theta - block.theta[0], 0.0), w)
            both = np.stack([np.where(came, beta, block.beta[0]), block.beta[1]])
            blocks.append(replace(block, u=np.where(came, u, block.u), beta=both))
        return replace(self, blocks=tuple(blocks)), w

    def step(self, site: Site, w: Array, eta: Array, held: Array, rho: float, there: Array) -> Versions:
        """(21b) for both ends of each version, (18) and (19) in each version, and new records where both ends are
        there: theta_i is sent before, and the sum of rho beta + alpha after the edges have moved."""
        arcs = site.arcs
        along = there[arcs.source] & there[arcs.target]
        heard = site.engine.exchange(w, along)
        blocks: list[Version] = []
        for edge, _, k, block in self._each(site):
            new = _drifted(edge, block, eta, held, rho)
            if not edge.ground:
                new = replace(new, theta=np.where(along[site.toward[k]][:, None], _at(edge, heard), new.theta))
            blocks.append(_moved(edge, new, w, rho))
        alone, apart = self.alone + there[arcs.source], self.apart + 1
        new = Versions(tuple(blocks), np.where(along, 0, alone), np.where(along, 0, apart))
        return new.recorded(site, rho, along)

    def recorded(self, site: Site, rho: float, along: Array, purpose: str = "method") -> Versions:
        """With new records of the pairs of a mask (2p,)."""
        total = np.zeros(site.form.shape)
        for edge, ends, _, block in self._each(site):
            _add(edge, ends @ block.shares(_geometry(edge)[2], rho)[0], total)
        total = site.engine.exchange(total, along, purpose=purpose)
        blocks: list[Version] = []
        for edge, _, k, block in self._each(site):
            if not edge.ground:
                rest = _at(edge, total) - block.shares(_geometry(edge)[2], rho)
                block = replace(block, record=np.where(along[site.toward[k]][:, None], rest, block.record))
            blocks.append(block)
        return replace(self, blocks=tuple(blocks))

    def _each(self, site: Site) -> Iterator[tuple[EdgeBlock, sp.csr_array, int, Version]]:
        """The blocks that have copies, the ends of their edges, and their numbers in the form."""
        places = [k for k, edge in enumerate(site.form.edges) if not smooth_ground(edge)]
        for (edge, ends), k, block in zip(copied(site), places, self.blocks, strict=True):
            yield edge, ends, k, block

    def _told(self, site: Site) -> tuple[Array, ...]:
        """Per edge block of the form what each end has for the other: u, the other's copy, and its theta."""
        out = [np.zeros((len(toward), 0)) for toward in site.toward]
        for edge, _, k, block in self._each(site):
            if not edge.ground:
                out[k] = np.concatenate([block.u, block.beta[1], block.theta[1]], axis=1)
        return tuple(out)


def _drifted(edge: EdgeBlock, block: Version, eta: Array, held: Array, rho: float) -> Version:
    """(21b) at both ends."""
    if edge.ground:
        return block
    me, other, sign = _geometry(edge)
    ends = np.stack([me, other])
    pull = held[ends][:, :, None] * block.theta - block.record - block.shares(sign, rho)
    return replace(block, theta=block.theta - eta[ends][:, :, None] * pull)


def _moved(edge: EdgeBlock, block: Version, w: Array, rho: float) -> Version:
    """(18) and (19), each end with its own parameters and those that it has of the other."""
    me, _, sign = _geometry(edge)
    own, other = _rows(edge, w, me), block.theta[1]
    z, sigma = (edge.difference(w), rho) if edge.ground else (sign * (own - other), 0.5 * rho)
    c = edge.weight if edge.ground else np.tile(edge.weight, 2)
    u = edge.penalty.dual_prox(block.u + sigma * z, np.full(len(c), sigma), c)
    move = sign * (u - block.u) / rho
    return replace(block, u=u, beta=np.stack([own - move, other + move]))


def _geometry(edge: EdgeBlock) -> Geometry:
    if edge.ground:
        return edge.tail, edge.tail, np.ones((len(edge.tail), 1))
    ends = np.concatenate([edge.tail, edge.head])
    sign = np.repeat([1.0, -1.0], len(edge.tail))[:, None]
    return ends, np.roll(ends, len(edge.tail)), sign


def _rows(edge: EdgeBlock, w: Array, nodes: Array) -> Array:
    """Rows of w on the coordinates of a block."""
    return w[nodes] if edge.features is None else w[np.ix_(nodes, edge.features)]


def _at(edge: EdgeBlock, w: Array) -> Array:
    """Rows of w at both ends of each version, (2, v, k)."""
    me, other, _ = _geometry(edge)
    return np.stack([_rows(edge, w, me), _rows(edge, w, other)])


def _add(edge: EdgeBlock, values: Array, out: Array) -> None:
    if edge.features is None:
        out += values
    else:
        out[:, edge.features] += values
