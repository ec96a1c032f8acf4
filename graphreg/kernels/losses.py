"""The proxes of the nodes' losses as a round takes them: quadratic ones compiled, the others as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..compiled import compiled, specialised, width_of
from ..oracles import AbstractNodeProx, Factors, Memory, Quadratics
from ..terms import Array, Packed
from .nodes import mean_round, quadratic_round, relaxed
from .packed import packed_round, packed_spreads

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
    strict: bool = False

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        whole = len(self.nodes) == len(at.degree)
        values = self.nodes, self.mass, self.h, at.degree, at.s, at.pull, at.w, out.rho
        kernel = specialised(mean_round, width_of(self.d), int(whole), strict=self.strict)
        kernel(*values, out.hat, out.ahead, out.new, self.d)
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
    strict: bool = False

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        rank = len(self.work)
        values = self.nodes, self.V, self.values, self.target, at.degree, at.s, at.pull, at.w, out.rho, self.work
        widths = width_of(self.d), width_of(rank) if width_of(self.d) else 0
        kernel = specialised(quadratic_round, *widths, strict=self.strict)
        kernel(*values, out.hat, out.ahead, out.new, self.d)
        return memory


class PackedRound(AbstractRoundLoss):
    """f_i = 1/2 w'H_i w - <h_i, w>, by the inverses of H_i + I/tau_i at the s of the moment; at nodes where such a
    matrix is nearly singular by the prox' eigenvectors."""

    def __init__(self, nodes: Array, prox: AbstractNodeProx, each: Quadratics, d: int, strict: bool = False) -> None:
        self.nodes, self.prox, self.each, self.d, self.strict = nodes, prox, each, d, strict
        self.h, self.work = _flat(each.h), np.empty(d)
        # s, the inverses there, and the nodes that must not take theirs
        self._known: tuple[float, Packed | None, QuadraticRound | None] = (0.0, None, None)

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        inverse, others = self._ways(at)
        if inverse is not None:
            values = self.nodes, inverse.flat, self.h, at.degree, at.s, at.pull, at.w, out.rho, self.work
            kernel = specialised(packed_round, width_of(self.d), strict=self.strict)
            kernel(*values, out.hat, out.ahead, out.new, self.d)
        return memory if others is None else others.round(at, memory, out)

    def _ways(self, at: Standing) -> tuple[Packed | None, QuadraticRound | None]:
        """Each node decides for itself, so that the bits of one do not depend on which others are here."""
        if self._known[0] != at.s:
            self._known = (0.0, None, None)  # before there is another as large
            inverse, spread = packed_spreads(self.each.H, at.degree[self.nodes] / at.s, self.strict)
            bad = ~(spread <= EVEN)
            others = self._by_factors(slice(None) if bad.all() else bad) if bad.any() else None
            self._known = at.s, None if bad.all() else inverse, others
        return self._known[1:]

    def _by_factors(self, some: slice | Array) -> QuadraticRound:
        found = cast(Factors, self.prox.factors())
        own = Factors(cast(Array, found.V)[some], found.values[some], found.pull[some])
        return _by_factors(self.nodes[some], own, self.d, self.strict)


@dataclass(frozen=True)
class PlainRound(AbstractRoundLoss):
    """Any other prox."""

    begins = True

    prox: AbstractNodeProx
    whole: bool
    d: int
    strict: bool = False

    def round(self, at: Standing, memory: Memory, out: Moved) -> Memory:
        i = slice(None) if self.whole else self.prox.nodes
        tau = at.s / at.degree[i]
        w, pull, hat, ahead, new = (a.reshape(-1, self.d) for a in (at.w, at.pull, out.hat, out.ahead, out.new))
        v = w[i] - tau[:, None] * pull[i]
        begin = v if at.warm is None else at.warm[i]
        x, memory = self.prox(v, tau, begin, memory)
        if self.whole:
            out.hat[:] = x.reshape(-1)
            compiled(relaxed, self.strict)(out.rho, at.w, out.hat, out.ahead, out.new)
        else:
            hat[i] = x
            ahead[i] = 2.0 * x - w[i]
            new[i] = w[i] + out.rho * (x - w[i])
        return memory


def round_losses(
    proxes: tuple[AbstractNodeProx, ...], n: int, d: int, place: Array | None = None, strict: bool = False
) -> tuple[AbstractRoundLoss, ...]:
    """One for each prox, and one for the nodes that have none, where there are any; ``place`` is where nodes stand.
    ``strict``: as `compiled` says."""
    out: list[AbstractRoundLoss] = []
    left = np.full(n, True)
    for prox in proxes:
        nodes = np.asarray(prox.nodes if place is None else place[prox.nodes], dtype=np.int32)
        left[nodes] = False
        quadratics = prox.quadratics()
        if quadratics is not None:
            out.append(PackedRound(nodes, prox, quadratics, d, strict))
            continue
        found = prox.factors()
        if found is not None and not (np.diff(nodes) > 0).all():  # in order, in which means of all nodes stand
            order = np.argsort(nodes)
            V = None if found.V is None else found.V[order]
            nodes, found = nodes[order], replace(found, V=V, values=found.values[order], pull=found.pull[order])
        whole = np.array_equal(nodes, np.arange(n))
        if found is None:
            out.append(PlainRound(prox, whole, d, strict))
        elif found.V is None:
            out.append(MeanRound(nodes, found.values[:, 0], _flat(found.pull), d, strict))
        elif d == 1 and found.V.shape[2] == 1:  # of one coordinate
            V = found.V[:, 0, 0]
            out.append(MeanRound(nodes, V * V * found.values[:, 0], V * found.pull[:, 0], d, strict))
        else:
            out.append(_by_factors(nodes, found, d, strict))
    if left.any():
        nodes = np.flatnonzero(left).astype(np.int32)
        out.append(MeanRound(nodes, np.zeros(len(nodes)), np.zeros(len(nodes) * d), d, strict))
    return tuple(out)


def _by_factors(nodes: Array, found: Factors, d: int, strict: bool) -> QuadraticRound:
    V = cast(Array, found.V)
    return QuadraticRound(nodes, _flat(V), _flat(found.values), _flat(found.pull), np.empty(V.shape[2]), d, strict)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=float).reshape(-1)
