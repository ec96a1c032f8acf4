"""The proxes of the nodes' losses as a round takes them: quadratic ones compiled, the others as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from ..oracles import AbstractNodeProx, Factors, Memory, Quadratics
from ..terms import Array, Packed
from .compiled import compiled, specialised, width_of
from .nodes import mean_round, quadratic_round, relaxed
from .packed import packed_inverses, packed_round

EVEN = 1e6  # condition number of H + I/tau up to which an inverse does no harm to a round


@dataclass(frozen=True)
class Standing:
    """Where all nodes stand before a round, flat: tau_i = s / degree_i, K'u, w, and where a prox may begin (n, d)."""

    degree: Array
    s: float
    pull: Array
    w: Array
    warm: Array | None


@dataclass(frozen=True)
class Moved:
    """Where a round writes what it finds of the nodes, flat: w+, 2 w+ - w, and w relaxed by ``rho`` towards w+."""

    hat: Array
    ahead: Array
    new: Array
    rho: float


class AbstractRoundLoss(ABC):
    """The nodes of one prox; it ``begins`` where it is told."""

    begins = False

    @abstractmethod
    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        """Write w+, the prox at w - tau K'u, of these nodes, and say what the prox remembers."""


@dataclass(frozen=True)
class MeanRound(AbstractRoundLoss):
    """All nodes, f_i = 1/2 mass_i ||w||^2 - <h_i, w>; mass and h are 0 where there is no loss."""

    nodes: Array
    mass: Array
    h: Array
    d: int

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        whole = len(self.nodes) == len(at.degree)
        values = self.nodes, self.mass, self.h, at.degree, at.s, at.pull, at.w, out.rho
        specialised(mean_round, width_of(self.d), int(whole))(*values, out.hat, out.ahead, out.new, self.d)
        return memory


@dataclass(frozen=True)
class QuadraticRound(AbstractRoundLoss):
    """f_i = 1/2 w'V diag(values) V'w - <V target, w>."""

    nodes: Array
    V: Array
    values: Array
    target: Array
    work: Array
    d: int

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        rank = len(self.work)
        values = self.nodes, self.V, self.values, self.target, at.degree, at.s, at.pull, at.w, out.rho, self.work
        kernel = specialised(quadratic_round, width_of(self.d), width_of(rank) if width_of(self.d) else 0)
        kernel(*values, out.hat, out.ahead, out.new, self.d)
        return memory


class PackedRound(AbstractRoundLoss):
    """f_i = 1/2 w'H_i w - <h_i, w>, by the inverses of H_i + I/tau_i at the s of the moment; by the prox' eigenvectors
    where one of these is nearly singular."""

    def __init__(self, nodes: Array, prox: AbstractNodeProx, each: Quadratics, d: int) -> None:
        self.nodes, self.prox, self.each, self.d = nodes, prox, each, d
        self.h, self.work = _flat(each.h), np.empty(d)
        self._known: tuple[float, Packed | None] = (0.0, None)  # s, and the inverses there

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        inverse = self._inverse(at)
        if inverse is None:
            return self._factorised.round(at, memory, out)
        values = self.nodes, inverse.flat, self.h, at.degree, at.s, at.pull, at.w, out.rho, self.work
        specialised(packed_round, width_of(self.d))(*values, out.hat, out.ahead, out.new, self.d)
        return memory

    def _inverse(self, at: Standing) -> Packed | None:
        if self._known[0] != at.s:
            self._known = (0.0, None)  # before there is another as large
            found = packed_inverses(self.each.H, at.degree[self.nodes] / at.s)
            self._known = at.s, None if found is None or found[1] > EVEN else found[0]
        return self._known[1]

    @cached_property
    def _factorised(self) -> QuadraticRound:
        return _by_factors(self.nodes, cast(Factors, self.prox.factors()), self.d)


@dataclass(frozen=True)
class PlainRound(AbstractRoundLoss):
    """Any other prox."""

    begins = True

    prox: AbstractNodeProx
    whole: bool
    d: int

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        i = slice(None) if self.whole else self.prox.nodes
        tau = at.s / at.degree[i]
        w, pull, hat, ahead, new = (a.reshape(-1, self.d) for a in (at.w, at.pull, out.hat, out.ahead, out.new))
        v = w[i] - tau[:, None] * pull[i]
        begin = v if at.warm is None else at.warm[i]
        x, memory = self.prox(v, tau, begin, memory)
        if self.whole:
            out.hat[:] = x.reshape(-1)
            compiled(relaxed)(out.rho, at.w, out.hat, out.ahead, out.new)
        else:
            hat[i] = x
            ahead[i] = 2.0 * x - w[i]
            new[i] = w[i] + out.rho * (x - w[i])
        return memory


def round_losses(
    proxes: tuple[AbstractNodeProx, ...], n: int, d: int, place: Array | None = None
) -> tuple[AbstractRoundLoss, ...]:
    """One for each prox, and one for the nodes that have none, where there are any; ``place`` is where nodes stand."""
    out: list[AbstractRoundLoss] = []
    left = np.full(n, True)
    for prox in proxes:
        nodes = np.asarray(prox.nodes if place is None else place[prox.nodes], dtype=np.int32)
        left[nodes] = False
        quadratics = prox.quadratics()
        if quadratics is not None:
            out.append(PackedRound(nodes, prox, quadratics, d))
            continue
        found = prox.factors()
        if found is not None and place is not None:  # in their new order
            order = np.argsort(nodes)
            V = None if found.V is None else found.V[order]
            nodes, found = nodes[order], replace(found, V=V, values=found.values[order], pull=found.pull[order])
        whole = np.array_equal(nodes, np.arange(n))
        if found is None:
            out.append(PlainRound(prox, whole, d))
        elif found.V is None:
            out.append(MeanRound(nodes, found.values[:, 0], _flat(found.pull), d))
        elif d == 1 and found.V.shape[2] == 1:  # of one coordinate
            V = found.V[:, 0, 0]
            out.append(MeanRound(nodes, V * V * found.values[:, 0], V * found.pull[:, 0], d))
        else:
            out.append(_by_factors(nodes, found, d))
    if left.any():
        nodes = np.flatnonzero(left).astype(np.int32)
        out.append(MeanRound(nodes, np.zeros(len(nodes)), np.zeros(len(nodes) * d), d))
    return tuple(out)


def _by_factors(nodes: Array, found: Factors, d: int) -> QuadraticRound:
    V = cast(Array, found.V)
    return QuadraticRound(nodes, _flat(V), _flat(found.values), _flat(found.pull), np.empty(V.shape[2]), d)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=float).reshape(-1)
