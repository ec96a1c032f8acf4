"""The nodes' half of a round: w+ = prox of tau f at w - tau K'u, with 2 w+ - w, which goes across the edges, and w
relaxed. Compiled for losses f_i = 1/2 w'H_i w - <h_i, w> with H_i = V diag(values) V', by their proxes for others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from ..base.gate import dealt
from ..oracles import AbstractNodeProx, GramProx, Memory, QuadraticProx
from ..terms import Array, Packed, at_a_time
from .compiler import Kernel, Step, specialised, width_of
from .packed import NODES, packed_spreads

EVEN = 1e6  # condition number of H + I/tau up to which an inverse does no harm to a round


class Standing(NamedTuple):
    """The state of all nodes before a round, flat: tau_i = s / degree_i, K'u and w."""

    degree: Array
    s: float
    adjoint: Array
    w: Array


class Moved(NamedTuple):
    """The arrays to which a round writes what it finds of the nodes, flat: w+, 2 w+ - w, and w relaxed by ``rho``
    towards w+."""

    hat: Array
    ahead: Array
    new: Array
    rho: float


class Eigen(NamedTuple):
    """f_i = 1/2 w'V diag(values) V'w - <V target, w>, flat."""

    V: Array
    values: Array
    target: Array


class AbstractRoundLoss(ABC):
    """The nodes of one prox; it ``begins`` where it is told."""

    begins = False

    @abstractmethod
    def round(self, at: Standing, warm: Array | None, memory: Memory, out: Moved) -> Memory:
        """Write w+, the prox at w - tau K'u, of these nodes, and say what the prox remembers; ``warm`` (n, d) is where
        it may begin."""


@dataclass(frozen=True)
class MeanRound(AbstractRoundLoss):
    """All nodes, f_i = 1/2 mass_i ||w||^2 - <h_i, w>; mass and h are 0 where there is no loss."""

    nodes: Array
    mass: Array
    h: Array
    d: int
    strict: bool = False

    def round(self, at: Standing, warm: Array | None, memory: Memory, out: Moved) -> Memory:
        whole = len(self.nodes) == len(at.degree)
        kernel = specialised(mean_round, width_of(self.d), int(whole), strict=self.strict)
        kernel(self.nodes, self.mass, self.h, at, out, self.d)
        return memory


@dataclass(frozen=True)
class QuadraticRound(AbstractRoundLoss):
    """The round of quadratic losses by the eigenvectors of the H_i."""

    nodes: Array
    own: Eigen
    rank: int
    d: int
    strict: bool = False

    def round(self, at: Standing, warm: Array | None, memory: Memory, out: Moved) -> Memory:
        d, rank = self.d, self.rank
        kernel = specialised(quadratic_round, width_of(d), width_of(rank) if width_of(d) else 0, strict=self.strict)

        def part(some: slice) -> None:
            V, values, target = (_of(x, some, width) for x, width in zip(self.own, (d * rank, rank, rank), strict=True))
            kernel(self.nodes[some], Eigen(V, values, target), at, out, np.empty(rank), d)

        dealt(part, at_a_time(NODES, len(self.nodes)))
        return memory


class PackedRound(AbstractRoundLoss):
    """f_i = 1/2 w'H_i w - <h_i, w>, by the inverses of H_i + I/tau_i at the s of the moment; at nodes where such a
    matrix is nearly singular by the prox' eigenvectors."""

    def __init__(self, nodes: Array, prox: AbstractNodeProx, grams: GramProx, d: int, strict: bool = False) -> None:
        self.nodes, self.prox, self.grams, self.d, self.strict = nodes, prox, grams, d, strict
        self.h = flattened(grams.h)
        # s, the inverses there, and the nodes that must not take theirs
        self._known: tuple[float, Packed | None, QuadraticRound | None] = (0.0, None, None)

    def round(self, at: Standing, warm: Array | None, memory: Memory, out: Moved) -> Memory:
        inverse, others = self._ways(at)
        if inverse is not None:
            d, size, flat = self.d, self.d * (self.d + 1) // 2, inverse.flat
            kernel = specialised(packed_round, width_of(d), strict=self.strict)

            def part(some: slice) -> None:
                kernel(self.nodes[some], (_of(flat, some, size), _of(self.h, some, d)), at, out, np.empty(d), d)

            dealt(part, at_a_time(NODES, len(self.nodes)))
        return memory if others is None else others.round(at, warm, memory, out)

    def _ways(self, at: Standing) -> tuple[Packed | None, QuadraticRound | None]:
        """Each node decides for itself, so that the bits of one do not depend on which others are here."""
        if self._known[0] != at.s:
            self._known = (0.0, None, None)  # before there is another as large
            inverse, spread = packed_spreads(self.grams.H, at.degree[self.nodes] / at.s, self.strict)
            bad = ~(spread <= EVEN)
            others = self._by_factors(slice(None) if bad.all() else bad) if bad.any() else None
            self._known = at.s, None if bad.all() else inverse, others
        return self._known[1:]

    def _by_factors(self, some: slice | Array) -> QuadraticRound:
        found = cast(QuadraticProx, self.prox.factors())
        own = replace(found, V=cast(Array, found.V)[some], values=found.values[some], linear=found.linear[some])
        return _by_factors(self.nodes[some], own, self.d, self.strict)


@dataclass(frozen=True)
class PlainRound(AbstractRoundLoss):
    """Any other prox."""

    begins = True

    prox: AbstractNodeProx
    whole: bool
    d: int

    def round(self, at: Standing, warm: Array | None, memory: Memory, out: Moved) -> Memory:
        i = slice(None) if self.whole else self.prox.nodes
        tau = at.s / at.degree[i]
        w, adjoint, hat, ahead, new = (a.reshape(-1, self.d) for a in (at.w, at.adjoint, out.hat, out.ahead, out.new))
        v = w[i] - tau[:, None] * adjoint[i]
        begin = v if warm is None else warm[i]
        x, memory = self.prox(v, tau, begin, memory)
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
        grams = prox.grams()
        if grams is not None:
            out.append(PackedRound(nodes, prox, grams, d, strict))
            continue
        found = prox.factors()
        if found is not None and not (np.diff(nodes) > 0).all():  # in order, in which means of all nodes stand
            order = np.argsort(nodes)
            V = None if found.V is None else found.V[order]
            nodes, found = nodes[order], replace(found, V=V, values=found.values[order], linear=found.linear[order])
        whole = np.array_equal(nodes, np.arange(n))
        if found is None:
            out.append(PlainRound(prox, whole, d))
        elif found.V is None:
            out.append(MeanRound(nodes, found.values[:, 0], flattened(found.linear), d, strict))
        elif d == 1 and found.V.shape[2] == 1:  # of one coordinate
            V = found.V[:, 0, 0]
            out.append(MeanRound(nodes, V * V * found.values[:, 0], V * found.linear[:, 0], d, strict))
        else:
            out.append(_by_factors(nodes, found, d, strict))
    if left.any():
        nodes = np.flatnonzero(left).astype(np.int32)
        out.append(MeanRound(nodes, np.zeros(len(nodes)), np.zeros(len(nodes) * d), d, strict))
    return tuple(out)


def _by_factors(nodes: Array, found: QuadraticProx, d: int, strict: bool) -> QuadraticRound:
    V = cast(Array, found.V)
    own = Eigen(flattened(V), flattened(found.values), flattened(found.linear))
    return QuadraticRound(nodes, own, V.shape[2], d, strict)


def _of(flat: Array, some: slice, width: int) -> Array:
    """What some nodes have of an array with so many numbers of each."""
    return flat[some.start * width : some.stop * width]


def flattened(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=float).reshape(-1)


# ---- kernels: all arrays are flat; a node of ``nodes`` stands at ``nodes[r]`` in w, and at r in what its loss has ----
@Step
def write_at(out: Moved, i: int, old: float, x: float) -> None:
    """Write what follows from w+ = x in one coordinate."""
    out.hat[i] = x
    out.ahead[i] = 2.0 * x - old
    out.new[i] = old + out.rho * (x - old)


def mean_round(width: int, whole: int) -> Kernel:
    """The round for H_i = mass_i I and 1/tau_i = degree_i / s; of all nodes in their order where ``whole``."""

    def kernel(nodes: Array, mass: Array, h: Array, at: Standing, out: Moved, d: int) -> None:
        end = width if width else d
        for r in range(nodes.size):
            i = r if whole else nodes[r]
            weight = at.degree[i] / at.s
            inverse = 1.0 / (weight + mass[r])
            for k in range(end):
                old = at.w[i * end + k]
                write_at(out, i * end + k, old, (weight * old - at.adjoint[i * end + k] + h[r * end + k]) * inverse)

    return kernel


def quadratic_round(width: int, rank: int) -> Kernel:
    """The round for h_i = V target: w+ - v = V (target - values V'v) / (values + 1/tau) at v = w - tau K'u, free of
    cancellation.

    ``work`` is room for as many numbers as V has columns."""

    def kernel(nodes: Array, own: Eigen, at: Standing, out: Moved, work: Array, d: int) -> None:
        end = width if width else d
        columns = rank if rank else work.size
        V, values, target = own
        degree, s, adjoint, w = at
        hat = out.hat
        for r in range(nodes.size):
            i, of, weight = nodes[r] * end, r * columns, degree[nodes[r]] / s
            tau = 1.0 / weight
            for k in range(end):
                hat[i + k] = w[i + k] - tau * adjoint[i + k]
            for q in range(columns):
                work[q] = 0.0
            for k in range(end):
                v, row = hat[i + k], of * end + k * columns
                for q in range(columns):
                    work[q] += v * V[row + q]
            for q in range(columns):
                work[q] = (target[of + q] - values[of + q] * work[q]) / (values[of + q] + weight)
            for k in range(end):
                total, row = 0.0, of * end + k * columns
                for q in range(columns):
                    total += V[row + q] * work[q]
                hat[i + k] += total
            for k in range(end):
                write_at(out, i + k, w[i + k], hat[i + k])

    return kernel


def packed_round(width: int) -> Kernel:
    """w+ = (H + I/tau)^-1 (h - K'u + w/tau), for these inverses, packed; ``own`` are they and h."""

    def kernel(nodes: Array, own: tuple[Array, Array], at: Standing, out: Moved, work: Array, d: int) -> None:
        end = width if width else d
        size = end * (end + 1) // 2
        inverse, h = own
        degree, s, adjoint, w = at
        hat = out.hat
        for r in range(nodes.size):
            i, of, mine, weight = nodes[r] * end, r * size, r * end, degree[nodes[r]] / s
            for a in range(end):
                work[a] = h[mine + a] - adjoint[i + a] + weight * w[i + a]
                hat[i + a] = 0.0
            for a in range(end):
                row, x = of + a * (a + 1) // 2, work[a]
                total = inverse[row + a] * x
                for b in range(a):
                    total += inverse[row + b] * work[b]
                for b in range(a):
                    hat[i + b] += inverse[row + b] * x
                hat[i + a] += total
            for k in range(end):
                write_at(out, i + k, w[i + k], hat[i + k])

    return kernel
