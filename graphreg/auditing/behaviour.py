"""The behaviour of an algorithm that is run again: other seeds, other orders of the nodes, harder and easier
problems."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..errors import GraphregError
from ..form import Form
from ..inputs import Graph
from ..oracles import NodeGradients
from ..problem import Problem
from ..terms import Array
from .algorithms import AbstractAlgorithm
from .course import Course, run
from .instances import nearly_flat, on_graph, rebuilt, reordered, scaled, steeper, with_equal_data, with_targets
from .limits import Optimum, limit_of

FIRST = 30  # rounds that are compared bit for bit
PATH = 1e-8  # by which paths on reordered nodes may differ: rounding
ENDS = 1e-3  # and limits
STRESSED, LONGER = 600, 6000  # rounds on the stress instance; where it does not settle in these, steps may decrease
WEAK, STRONG = 1e-3, 1e3  # the factors of its losses and strengths
STEEP, GROWS = 10.0, 150  # a factor of features, and rounds in which steps that do not follow it diverge
SOFT = 0.2  # a factor of losses at which steps that are too long for them may do
BACK = -0.3  # the cosine between moves below which a run goes to and fro


def same(one: Course, two: Course) -> bool:
    """True of two courses with the same bits."""
    if one.total != two.total or one.ended != two.ended:
        return False
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one.points, two.points, strict=True))


@dataclass(frozen=True)
class Repeats:
    """The answers to whether the first rounds are the same for the same seed and for another, and whether they are
    others on other problems."""

    same_seed: bool
    other_seed: bool
    reads: bool = True


def repeats(algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> Repeats:
    one, two, other = (run(algorithm, problem, FIRST, seed=s) for s in (seed, seed, seed + 7))
    changed = (scaled(problem, WEAK, STRONG), with_targets(problem, _of_least_degree(problem.form), 1.0))
    reads = any(each is None or not same(one, run(algorithm, each, FIRST, seed=seed)) for each in changed)
    return Repeats(same(one, two), same(one, other), reads)


def order(algorithm: AbstractAlgorithm, problem: Problem, course: Course, seed: int) -> tuple[float, float] | None:
    """The changes of the path and the limit with the order of nodes and edges, relative to the size of the points;
    None where the nodes cannot be put in another order."""
    other = reordered(problem, np.random.default_rng(seed))
    if other is None:
        return None
    place = [other.form.labels.index(label) for label in problem.form.labels[: len(course.last)]]
    base, there = run(algorithm, problem, FIRST, seed=seed).points, run(algorithm, other, FIRST, seed=seed).points
    path = max((_apart(w[place], v) for w, v in zip(there, base, strict=False)), default=0.0)
    if path <= PATH:
        return path, 0.0
    return path, _apart(run(algorithm, other, course.total, seed=seed).last[place], course.last)


def _apart(w: Array, v: Array) -> float:
    return float(np.abs(w - v).max() / max(np.abs(v).max(), 1e-300))


# ---- steps -----------------------------------------------------------------------------------------------------------
def unsettled(course: Course) -> bool:
    """True of a run that diverges, or goes to and fro with moves that do not decay."""
    if course.ended == "diverged":
        return True
    if len(course.moves) < FIRST * 4:
        return False
    moves = np.array(course.moves)
    quarter = len(moves) // 4
    last, early = moves[-quarter:].mean(), moves[quarter : 2 * quarter].mean()
    return bool(last > 0.9 * early and last > 1e-6 * course.length(course.last) and goes_to_and_fro(course))


def goes_to_and_fro(course: Course) -> bool:
    """True where the moves of the last quarter turn back on each other, as those of too long a step do."""
    turns = course.turns[-max(len(course.turns) // 4, 1) :]
    return bool(turns) and float(np.mean(turns)) < BACK


def steep(algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> Iterator[tuple[str, Course]]:
    """Runs on data that are steeper, at one node, so that max L_i is not the mean, or at all."""
    lone = _of_least_degree(problem.form)
    for label, said in ((lone, f"the node {lone!r}"), (None, "all nodes")):
        other = steeper(problem, STEEP, label)
        yield f"the features of {said} x {STEEP:g}", run(algorithm, other, GROWS, seed=seed)


def stressed(algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> Iterator[tuple[str, Course]]:
    """Runs where losses are weak and penalties strong, so that the coupling alone decides whether they settle; and
    where losses are weak at all nodes but one, which sets the steps."""
    lone = _of_least_degree(problem.form)  # where the graph is densest, nodes are flat
    cases = {f"losses x {WEAK:g} and strengths x {STRONG:g}": lambda: scaled(problem, WEAK, STRONG)}
    cases[f"losses x {WEAK:g} at all nodes but {lone!r}"] = lambda: nearly_flat(problem, lone, WEAK)
    for said, make in cases.items():
        harder = make()
        course = run(algorithm, harder, STRESSED, seed=seed)
        slow = unsettled(course) and course.ended != "diverged"
        yield said, run(algorithm, harder, LONGER, seed=seed) if slow else course


def _of_least_degree(form: Form) -> Hashable:
    """A node with data and the fewest edges, but some."""
    data, degree = NodeGradients(replace(form, samples=form.at_nodes)).counts, form.degree()
    return form.labels[int(np.argmin(np.where((data > 0) & (degree > 0), degree, np.inf)))]


def too_long_for(algorithm: AbstractAlgorithm, problem: Problem, rounds: int, seed: int) -> str:
    """The reason for which a step is too long, of a run that does not settle: the graph, where it settles on a single
    edge, the losses, where it settles with losses and penalties that are weaker; empty where neither helps."""
    try:
        alone = rebuilt(problem, other=lambda term: on_graph(term, _first_edge))
        first = next((int(edge.tail[0]) for edge in problem.form.between if len(edge.tail)), 0)
        alone = with_targets(alone, problem.form.labels[first], 1.0) or alone  # so that ends differ
        course = run(algorithm, alone, rounds, seed=seed)
        if settles(course) and limit_of(course, Optimum.of(alone)).kind == "right":  # else the step is not all
            return "it settles on a single edge, and not on this graph"
    except GraphregError:  # a consensus takes a connected graph only
        pass
    if settles(run(algorithm, scaled(problem, SOFT, SOFT), rounds, seed=seed)):
        return f"it settles with losses and penalties x {SOFT}, so that the step is too long for these losses"
    return ""


def _first_edge(graph: Graph) -> Graph:
    return Graph(graph.labels, graph.tail[:1], graph.head[:1], graph.weight[:1])


def settles(course: Course) -> bool:
    """True where the last moves are next to nothing."""
    if not course.finite or not course.moves:
        return False
    return float(np.mean(course.moves[-5:])) < 1e-6 * max(course.length(course.last), 1e-300)


# ---- drift -----------------------------------------------------------------------------------------------------------


def drift(algorithm: AbstractAlgorithm, problem: Problem, rounds: int, seed: int) -> float | None:
    """The distance from the optimum where all nodes have the same data; None where they cannot be given it."""
    even = with_equal_data(problem)
    if even is None:
        return None
    course = run(algorithm, even, rounds, seed=seed)
    return limit_of(course, Optimum.of(even)).distance if course.finite else np.inf
