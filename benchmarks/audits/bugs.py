"""Planted bugs: each is a small change of an algorithm that is right, most of them in what it reads of the problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

import graphreg as gr

from .algorithms import Algorithm
from .consensus import consensus_admm, dgd, extra, fed_avg, nids, stochastic
from .reading import Array, Parts, parts_of
from .splitting import chambolle_pock, condat_vu, douglas_rachford

Points = Iterator[Any]


def misread(mistake: Callable[[Parts], Parts]) -> Callable[[gr.Problem], Parts]:
    """A reading of a problem with a mistake in it."""
    return lambda problem: mistake(parts_of(problem))


def _some_edge(p: Parts) -> int:
    """An edge in the middle of the list."""
    return len(p.K) // 2


def _some_node(p: Parts) -> int:
    """A node in the middle of the list."""
    return p.shape[0] // 2


def _far_apart(p: Parts) -> list[int]:
    """Two nodes that are as many edges apart as any."""
    hops = shortest_path(p.neighbours, unweighted=True)
    return [int(k) for k in np.unravel_index(np.argmax(np.where(np.isfinite(hops), hops, 0.0)), hops.shape)]


# ---- between the losses and the edges --------------------------------------------------------------------------------
def sign(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Nodes move along K'u, not against it."""
    return chambolle_pock(problem, start, seed, misread(lambda p: replace(p, back=-p.back)))


def sign_on_one_edge(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The flow of one edge is taken with the wrong sign."""

    def mistake(p: Parts) -> Parts:
        back = p.back.copy()
        back[:, _some_edge(p)] *= -1.0
        return replace(p, back=back)

    return chambolle_pock(problem, start, seed, misread(mistake))


def twice_the_strength(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Every edge is counted from both of its ends."""
    return condat_vu(problem, start, seed, misread(lambda p: replace(p, weight=2.0 * p.weight)))


def sum_for_mean(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The losses of a node are added up, where their mean is meant."""
    return douglas_rachford(problem, start, seed, misread(_by_counts))


def _by_counts(p: Parts) -> Parts:
    return replace(p, times=np.bincount(p.oracles.form.samples[0].node, minlength=p.shape[0]))


def sum_for_mean_in_a_consensus(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """As before, where the nodes agree: those with more samples count for more."""
    return consensus_admm(problem, start, seed, misread(_by_counts))


def node_left_out(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The losses of one node are never read."""
    return condat_vu(problem, start, seed, misread(lambda p: replace(p, times=np.arange(p.shape[0]) != _some_node(p))))


def another_penalty(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The largest difference of a coordinate is penalised, whatever was meant."""
    return condat_vu(problem, start, seed, misread(lambda p: replace(p, penalty=gr.LInf())))


def weights_forgotten(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The strength is read, and the weights of the edges are not."""
    (edges,) = (edge for edge in problem.form.edges if not edge.ground)
    strength = np.full(len(edges.tail), float(edges.strength))
    return douglas_rachford(problem, start, seed, misread(lambda p: replace(p, weight=strength)))


def edge_missing(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The last edge is left out."""

    def mistake(p: Parts) -> Parts:
        return replace(p, K=p.K[:-1], back=p.back[:, :-1], weight=p.weight[:-1], late=p.late[:-1])

    return condat_vu(problem, start, seed, misread(mistake))


def wrong_prox_step(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The prox of the losses has the step tau / 2 at a point that was moved by tau."""
    return chambolle_pock(problem, start, seed, stretch=0.5)


@dataclass(frozen=True)
class _Unbounded:
    """A penalty whose flows nothing bounds."""

    def prox(self, v: Array, step: Any) -> Array:
        return np.zeros_like(v)


def flows_leave_their_ball(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Flows are not projected."""
    return chambolle_pock(problem, start, seed, misread(lambda p: replace(p, penalty=_Unbounded())))


# ---- steps -----------------------------------------------------------------------------------------------------------
def step_too_long(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """tau sigma ||K||^2 = 8."""
    return chambolle_pock(problem, start, seed, product=8.0)


def step_too_long_and_yet(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """tau sigma ||K||^2 = 1.6, which is too long for some problems, and converges on most."""
    return chambolle_pock(problem, start, seed, product=1.6)


def constant_step(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """DGD with a step that does not decrease."""
    return dgd(problem, start, seed, step=lambda _: 0.5)


def local_steps(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Five local steps between two averages."""
    return fed_avg(problem, start, seed, local_steps=5)


def uneven_samples(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The first samples of a node are drawn more often than the last, and weigh no less for it."""
    return stochastic(problem, start, seed, draw=lambda rng, n: rng.random((n, 1)) ** 2)


# ---- who hears what of whom ------------------------------------------------------------------------------------------
def stale_message(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """One edge knows the parameters of its head as they were a round ago."""

    def mistake(p: Parts) -> Parts:
        late, e = np.zeros_like(p.K), _some_edge(p)
        late[e] = np.minimum(p.K[e], 0.0)
        return replace(p, late=late)

    return chambolle_pock(problem, start, seed, misread(mistake), product=0.5)


def reads_a_stranger(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """The two nodes that are farthest apart mix."""

    def mistake(p: Parts) -> Parts:
        link = np.zeros((1, p.shape[0]))
        link[0, _far_apart(p)] = 1.0, -1.0
        return replace(p, C=p.C - 0.2 * link.T @ link)

    return extra(problem, start, seed, misread(mistake))


def asymmetric_mixing(problem: gr.Problem, start: Any = None, seed: Any = None) -> Points:
    """Every node takes the plain mean of itself and its neighbours."""

    def mistake(p: Parts) -> Parts:
        C = np.eye(p.shape[0]) + p.neighbours
        return replace(p, C=C / C.sum(axis=1, keepdims=True))

    return nids(problem, start, seed, misread(mistake))


def _ends(p: Parts, edge: int) -> list[int]:
    """The ends of an edge by its number."""
    return np.flatnonzero(p.K[edge]).tolist()


def _nowhere(p: Parts) -> list[int]:
    return []


@dataclass(frozen=True)
class Bug:
    """An algorithm with a planted bug, the kind of problem that it is for, and the name that an audit should find.

    ``says`` is a regular expression of that name, and ``where`` gives the nodes that it should name as well.
    """

    run: Algorithm
    kind: str
    says: str
    where: Callable[[Parts], list[int]] = _nowhere

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ")

    def named(self, found: str, problem: gr.Problem) -> bool:
        """True where what an audit has found is this bug."""
        labels = (problem.form.labels[i] for i in self.where(parts_of(problem)))
        nodes = all(re.search(rf"\b{label}\b", found) for label in labels)
        return nodes and re.search(self.says, found) is not None


BUGS = (
    Bug(sign, "edges", "^sign: "),
    Bug(sign_on_one_edge, "edges", "^sign on one edge", lambda p: _ends(p, _some_edge(p))),
    Bug(twice_the_strength, "edges", r"strength.* x 2\b"),
    Bug(sum_for_mean, "edges", "sum.*mean"),
    Bug(sum_for_mean_in_a_consensus, "consensus", "sum.*mean"),
    Bug(node_left_out, "edges", "losses of the node.* left out", lambda p: [_some_node(p)]),
    Bug(another_penalty, "edges", "penalty LInf for"),
    Bug(step_too_long, "edges", "step or relaxation too long"),
    Bug(step_too_long_and_yet, "edges", "step too long"),
    Bug(stale_message, "edges", "stale message", lambda p: _ends(p, _some_edge(p))),
    Bug(reads_a_stranger, "consensus", "non-neighbour", _far_apart),
    Bug(weights_forgotten, "edges", "weights.* forgotten"),
    Bug(edge_missing, "edges", "missing edge", lambda p: _ends(p, -1)),
    Bug(wrong_prox_step, "edges", "prox x 1/2"),
    Bug(flows_leave_their_ball, "edges", "leave their ball|never saturates|not projected"),
    Bug(asymmetric_mixing, "consensus", "asymmetric mixing"),
    Bug(local_steps, "consensus", "^drift: .* local steps"),
    Bug(constant_step, "consensus", "constant step"),
    Bug(uneven_samples, "consensus", "^biased: a stochastic gradient"),
)
