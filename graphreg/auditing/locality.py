"""The delays of an algorithm's messages: the targets of one node are changed, and the rounds counted until others move.

Targets, and not features: steps may depend on features everywhere, as in max_i L_i. A saturated flow or an unchanged
sign passes nothing on, so that one instance may hide a message; none can invent one. So the least delay over several
instances counts, one of them with smooth penalties.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import scipy.sparse as sp

from ..base.csgraph import shortest_path
from ..form import Form
from ..network import arcs_of
from ..problem import Problem
from ..terms import AbstractGraphTerm, Array
from .algorithms import AbstractAlgorithm
from .course import Course, run, unit_of
from .instances import nearly_flat, rebuilt, scaled, with_targets

ROUNDS = 14
NEVER = 10**9  # beyond all hops
ROUNDING = 1e-13  # of a coordinate, below which a change is no message
STRENGTHS = (1.0, 1e2, 1e4)
MOVES = (1.0, -40.0)  # of the targets, in their standard deviations
MORE_MOVES = (-1.0, 0.1, -0.1, 8.0, -8.0, 40.0, 1e3, -1e3)
NODES = 40  # that are tried, at most
AT_ONCE = 0.9  # of the pairs further apart than a hop: a server, or a step in one place
UNIFORM = 0.6  # of them, above which several exchanges a round are meant


@dataclass(frozen=True)
class Delays:
    """``rounds[j, i]``: after how many rounds node i first differs when node j's targets differ; NEVER where it was not
    seen to, or node j was not ``tried``, its targets changed. ``hops`` are the distances in the graph."""

    labels: tuple[Hashable, ...]
    tried: Array
    rounds: Array
    hops: Array

    def pair(self, j: int, i: int) -> str:
        return f"{self.labels[i]!r} of {self.labels[j]!r}"

    @property
    def seen(self) -> bool:
        """True where any message was seen."""
        return bool((self.rounds[self.hops >= 1] < NEVER).any())

    @property
    def share_early(self) -> float:
        """The share of the pairs further apart than a hop that heard of each other before so many rounds."""
        return float((self._hops_after[self._far] < self.hops[self._far]).mean()) if self._far.any() else 0.0

    @property
    def _far(self) -> Array:
        return self._moved & (self.hops >= 2) & np.isfinite(self.hops)

    @property
    def _apart(self) -> Array:
        """The pairs of different components, where any of them hear of each other; else none."""
        apart = self._moved & np.isinf(self.hops)
        return apart & (self.rounds[apart] < NEVER).any()

    @property
    def like_one_place(self) -> bool:
        """True where most pairs of different components hear of each other as soon as the first, as by a server."""
        rounds = self.rounds[self._apart]
        return bool((rounds == rounds.min(initial=NEVER)).mean() > UNIFORM)

    @property
    def _near(self) -> Array:
        return self.rounds[self._moved & (self.hops == 1)]

    @property
    def _moved(self) -> Array:
        """The nodes, (n, 1), whose own points move with their targets: of the others nobody can know."""
        return np.diag(self.rounds)[:, None] < NEVER

    @property
    def _hops_after(self) -> Array:
        """The hops that messages of one exchange a round have gone by then. Where neighbours hear in the round in
        which a node steps, it sends after its step, and that round counts."""
        return self.rounds + int(np.median(self._near) == 0 if self._near.size else 0)

    @property
    def at_once(self) -> bool:
        """True where every node hears of every other at once: far ones no later than neighbours. Those two hops away
        decide only where none are further, as two exchanges in a round look alike there."""
        far = (self._far & (self.hops >= 3)) | self._apart
        far = far if far.any() else self._far
        soon = np.minimum(2, np.median(self._near)) if self._near.size else 0  # of a hierarchy none are neighbours
        return bool(far.any() and (self.rounds[far] <= soon).mean() > AT_ONCE)

    @property
    def hops_a_round(self) -> int:
        """The hops that messages go in a round everywhere, or to all that are nearest beyond a hop, as where nodes
        hear of the others by chance later; 1 where only some pairs are early."""
        far = self._far & (self.rounds < NEVER)
        first = far & (self.hops == self.hops[self._far].min(initial=np.inf))
        paces = (self.hops[each] / np.maximum(self._hops_after[each], 1) for each in (far, first))
        often = [pace for pace in paces if pace.size and (pace > 1.0).mean() > UNIFORM]
        return max((int(np.ceil(np.median(pace) - 1e-9)) for pace in often), default=1)

    def early(self) -> list[tuple[int, int]]:
        """The pairs (j, i) for which i knew of j before a message could have come: of two components first, the
        earliest, and of these the furthest apart, from which the others follow; what several hops a round everywhere
        explain is none."""
        early = self._far & (self.hops_a_round * self._hops_after < self.hops) | self._apart & (self.rounds < NEVER)
        pairs = [(j, i) for j, i in np.argwhere(early).tolist()]
        return sorted(pairs, key=lambda pair: (self.hops[*pair] < np.inf, self.rounds[*pair], -self.hops[*pair]))

    def late(self) -> list[tuple[int, int]]:
        """The neighbours (j, i) for which i hears of j later than others do of theirs, or never."""
        near = self.tried[:, None] & (self.hops == 1)
        unit = self.rounds[near].min(initial=NEVER - 1)
        return [(int(j), int(i)) for j, i in np.argwhere(near & (self.rounds > unit))]

    @property
    def pace(self) -> float:
        """Rounds that each further hop takes, in the median."""
        hop = [self.rounds[self.tried[:, None] & (self.hops == h) & (self.rounds < NEVER)] for h in (1, 2)]
        return float(np.median(hop[1]) - np.median(hop[0])) if all(len(each) for each in hop) else 1.0

    def by_detour(self) -> list[tuple[int, int]]:
        """The late messages that come no sooner than by another way, or never."""
        return [(j, i) for j, i in self.late() if self._detours(j, i)]

    def _detours(self, j: int, i: int) -> bool:
        unit = self.rounds[self.tried[:, None] & (self.hops == 1)].min()
        links = np.where(self.hops == 1, 1.0, 0.0)
        links[i, j] = links[j, i] = 0.0
        way = shortest_path(links, unweighted=True, indices=j)[i]
        return bool(self.rounds[j, i] - unit >= min((way - 1) / self.hops_a_round, ROUNDS))


def delays(
    algorithm: AbstractAlgorithm, problem: Problem, seed: int, at: Callable[[str], None] = lambda stage: None
) -> Delays | None:
    """The delays between all nodes; None where no targets can be changed. ``at`` is told how many runs are done."""
    form = problem.form
    n = form.space.n_observed
    chosen = sorted(np.random.default_rng(seed).permutation(n)[:NODES].tolist())
    chosen = [j for j in chosen if with_targets(problem, form.labels[j], MOVES[0]) is not None]
    least = np.full((n, n), NEVER)
    _listen(algorithm, problem, seed, product(chosen, MOVES), least, at)
    found = Delays(tuple(form.labels[:n]), np.isin(np.arange(n), chosen), least, hops(form)[:n, :n])
    return found if (np.diag(least) < NEVER).any() else None


def confirmed(algorithm: AbstractAlgorithm, problem: Problem, found: Delays, seed: int) -> Delays:
    """The delays, after more has been tried of the messages that seem late: of an algorithm that sends signs, say,
    some messages show for the right changes only."""
    least = found.rounds.copy()
    _listen(algorithm, problem, seed, product(sorted({j for j, _ in found.late()}), MORE_MOVES), least)
    return replace(found, rounds=least)


def _listen(
    algorithm: AbstractAlgorithm,
    problem: Problem,
    seed: int,
    changes: Iterable[tuple[int, float]],
    least: Array,
    at: Callable[[str], None] = lambda stage: None,
) -> None:
    """The delays from some nodes, whose targets are changed by so much, where they are shorter than those that are
    known."""
    instances, changes = _instances(problem), list(changes)
    for k, base_problem in enumerate(instances):
        base = run(algorithm, base_problem, ROUNDS, seed=seed).points
        for done, (j, by) in enumerate(changes, k * len(changes)):
            at(f"locality, {done} of {len(instances) * len(changes)} changes of targets tried")
            other = with_targets(base_problem, problem.form.labels[j], by)
            if other is not None:
                moved = run(algorithm, other, ROUNDS, seed=seed).points
                least[j] = np.minimum(least[j], _delay(base, moved, j, len(least)))


def _instances(problem: Problem) -> list[Problem]:
    """The problem with several strengths, and with penalties that are smooth, where every message shows: those without
    kinks decide what is late. Where nothing has a strength, the problem alone."""
    if not any(term.takes_strength() and term.labels() for _, term in problem.model.terms):
        return [problem]
    smooth = rebuilt(problem, other=lambda term: term.squared() if isinstance(term, AbstractGraphTerm) else term)
    return [*(scaled(problem, 1.0, strength) for strength in STRENGTHS), smooth]


def _delay(base: list[Array], moved: list[Array], j: int, n: int) -> Array:
    """The number of rounds after which each of n nodes first differs, counted from the first in which node j does."""
    first = np.full(n, NEVER)
    for k, (a, b) in enumerate(zip(base, moved, strict=False)):
        size = np.maximum(np.abs(a), np.abs(b)).max(axis=0)  # each coordinate has a unit of its own
        first[(np.abs(a - b) > ROUNDING * size).any(axis=1) & (first == NEVER)] = k
    return np.where(first < NEVER, first - first[j], NEVER) if first[j] < NEVER else np.full(n, NEVER)


def hops(form: Form) -> Array:
    """Distances in the graph of all edges between nodes, and between the ends of rows, whose owner hears of all and
    answers within a round, (n, n); inf between components."""
    arcs = arcs_of(form)
    links = sp.csr_array((np.ones(len(arcs.source)), (arcs.source, arcs.target)), shape=(form.n, form.n))
    for block in form.unlike_edges:
        K = block.map.flat(form.d).tocoo()
        places = K.coords[0] // block.map.width(form.d), K.coords[1] // form.d
        ends = sp.csr_array((np.ones(K.nnz), places), shape=(block.count, form.n))
        links = links + ends.T @ ends
    return shortest_path(links, directed=False, unweighted=True)


# ---- how parameters mix where losses are flat: W(k), read off from impulses at single nodes --------------------------
# Consensus methods keep the mean of the nodes while they mix: each row of W sums to 1, and each column. A matrix whose
# rows alone do (the plain mean of a node and its neighbours) leads to a weighted sum of the losses instead.
FLAT = 1e-9  # times the losses
IMPULSE = 1e-3
IMPULSES = 40  # at which impulses are given, at most
EXPLAINED = 0.1  # of the sum of all gradients, that is left of it where weights explain a limit
MASS_ROUNDS = 3
SUMS = 1e-5  # by which a sum may miss 1
REACTS = 1e-2  # of the impulse that must arrive somewhere


@dataclass(frozen=True)
class Mass:
    """The share of an impulse that is left over all nodes in the round in which it first spreads, and what becomes of a
    constant 1 in the first round, by the labels of the nodes where either can be told; and, where every node was given
    an impulse, the weights of the mean (1 on average) that the mixing leads to."""

    kept: dict[Hashable, float]
    sums: dict[Hashable, float]
    weights: Array | None = None

    @property
    def even(self) -> bool:
        """True where nothing is lost or gained."""
        return not off(self.kept)

    @property
    def constant(self) -> bool:
        """True where a constant stays one."""
        return not off(self.sums)

    def explains(self, gradients: Array) -> bool:
        """True where the gradients (n, d) at a limit, so weighted, add up to next to nothing. Methods that average by
        rows and correct by duals lead to no weighted mean, whatever becomes of an impulse."""
        left = np.inf if self.weights is None else float(np.linalg.norm(self.weights @ gradients))
        return left <= EXPLAINED * float(np.linalg.norm(gradients.sum(axis=0)))


def off(sums: dict[Hashable, float]) -> dict[Hashable, float]:
    """Those that are not 1."""
    return {label: each for label, each in sums.items() if not abs(each - 1.0) <= SUMS}


def mass(algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> Mass | None:
    """The mass of impulses; None where the algorithm takes no start or does not react to it, or where all nodes are
    neighbours, so that nothing can be said of it.

    The losses of one node are not flat. At it and its neighbours what arrives may be answered by its gradient in the
    same round: these are looked at with the losses of a node that is further."""
    labels = problem.form.labels[: problem.form.space.n_observed]
    n, apart = len(labels), hops(problem.form)[: len(labels), : len(labels)] > 1
    some = np.isin(np.arange(n), np.linspace(0, n - 1, min(IMPULSES, n)).astype(int))
    kept: dict[Hashable, float] = {}
    sums: dict[Hashable, float] = {}
    weights, todo = None, np.ones(n, dtype=bool)
    anchor = n - 1 if apart[n - 1].any() else int(np.argmax(apart.sum(axis=1)))
    while (far := todo & apart[anchor]).any():
        flat = nearly_flat(problem, labels[anchor], FLAT, FLAT)
        rounds = partial(run, algorithm, flat, MASS_ROUNDS, seed=seed)
        asked = some & (np.arange(n) < anchor if anchor == n - 1 else far)
        constant, impulses = _mixed(rounds, asked, problem.form.d, IMPULSE * unit_of(problem.form))
        if constant is None:
            return None
        sums |= {labels[i]: float(constant[i]) for i in np.flatnonzero(far)}
        kept |= {labels[j]: float(column.sum()) for j, column in impulses.items() if far[j]}
        if len(impulses) == n - 1:
            weights = _weights(np.column_stack(list(impulses.values())))
        todo &= ~far
        anchor = int(np.argmax((todo & apart).sum(axis=1)))
    return Mass(kept, sums, weights) if kept else None


def _mixed(rounds: Callable[..., Course], nodes: Array, d: int, size: Array) -> tuple[Array | None, dict[int, Array]]:
    """What becomes of a constant 1 after a round (None: nothing), and of impulses at nodes (a mask) when they first
    spread, in the first coordinate."""
    base = np.zeros((len(nodes), d))
    still = rounds(start=base).points

    def response(by: Array) -> list[Array]:
        return [(w - v) / size for w, v in zip(rounds(start=base + size * by).points, still, strict=False)]

    if not (constant := response(np.ones((len(nodes), 1)))):
        return None, {}
    spread: dict[int, Array] = {}
    for j in np.flatnonzero(nodes).tolist():
        for w in response(np.eye(len(nodes))[:, [j]]):
            if j not in spread and np.abs(np.delete(w, j, axis=0)).max(initial=0.0) > REACTS / len(nodes):
                spread[j] = w[:, 0]
    return constant[0][:, 0], spread


def _weights(columns: Array) -> Array:
    """The left eigenvector of a matrix with rows of sum 1, of which all columns but the last are given."""
    W = np.column_stack([columns, 1.0 - columns.sum(axis=1)])
    values, vectors = np.linalg.eig(W.T)
    found = np.real(vectors[:, np.argmin(np.abs(values - 1.0))])
    return found / found.mean()
