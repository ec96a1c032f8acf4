"""Other problems of the same terms: with other targets, data, graphs, orders of nodes, losses and strengths. They are
made from the model, so that whatever can be run on the problem can be run on them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

import numpy as np

from ..certificate import lengths
from ..errors import GraphregError
from ..form import Form, with_latent_means
from ..inputs import Graph, NodeData
from ..oracles import NodeGradients
from ..problem import Problem
from ..terms import AbstractGraphTerm, AbstractTerm, Array, Model, Strength
from ..terms.losses import AbstractLoss, at_rows, on_data
from ..terms.penalties import AbstractNorm, is_equality

CHORDS = 0.4  # edges that an irregular graph has more, as a share of its nodes
UNEVEN = 30.0  # times as far as another parameter, that one must move to be felt as much
SPREAD = 0.9  # of the logarithms of its weights


def rebuilt(
    problem: Problem,
    loss: Callable[[AbstractLoss], AbstractTerm] = lambda term: term,
    other: Callable[[AbstractTerm], AbstractTerm] = lambda term: term,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Problem:
    """The problem with every loss and every other term changed, and strengths of both multiplied, where they may be."""
    terms: list[tuple[object, AbstractTerm]] = []
    for strength, term in problem.model.terms:
        if isinstance(term, AbstractLoss):
            terms.append((strength * factors[0], loss(term)))
        else:
            terms.append((strength * factors[1] if term.takes_strength() else strength, other(term)))
    return Problem(Model(tuple(terms)))  # pyright: ignore[reportArgumentType]  (a strength times a number is one)


def with_latent(form: Form, w: Array) -> Array:
    """Parameters of the user's nodes with those of the latent ones beside them."""
    return with_latent_means(form, np.vstack([w, np.zeros((form.n - len(w), form.d))]))


def on_graph(term: AbstractTerm, change: Callable[[Graph], Graph]) -> AbstractTerm:
    """The term on the graph that ``change`` makes of its own; itself where it has none."""
    return term.on_graph(change) if isinstance(term, AbstractGraphTerm) else term


def frozen_problem(problem: Problem) -> Problem:
    """A problem of its own at the strengths of this moment, so that what an algorithm does to it harms no other."""
    return Problem(Model(tuple((Strength(float(strength)), term) for strength, term in problem.model.terms)))


def scaled(problem: Problem, losses: float, others: float = 1.0) -> Problem:
    """The problem with the strengths of all losses and of all penalties multiplied."""
    return rebuilt(problem, factors=(losses, others))


# ---- targets ---------------------------------------------------------------------------------------------------------
def with_targets(problem: Problem, label: Hashable, by: float) -> Problem | None:
    """The problem with the targets of one node changed: moved by so many standard deviations of all targets where
    the loss takes such targets, else each replaced by another one of those that occur. None where there are none."""
    for change in (lambda y, rows: _moved(y, rows, by), _exchanged):
        try:
            found = rebuilt(problem, lambda term, change=change: _changed(term, label, change))
            pairs = zip(problem.form.samples, found.form.samples, strict=True)
            if not all(np.array_equal(here.y, there.y) for here, there in pairs):
                return found
        except (GraphregError, TypeError, ValueError):  # such targets the loss does not take, or they are names
            continue
    return None


def _changed(term: AbstractLoss, label: Hashable, change: Callable[[Array, Array], Array]) -> AbstractLoss:
    data = term.data
    if label not in data.labels or data.y is None:
        return term
    rows = data.node == data.labels.index(label)
    return on_data(term, replace(data, y=change(data.y, rows)))


def _moved(y: Array, rows: Array, by: float) -> Array:
    out = np.array(y, dtype=float)
    out[rows] += by * (out.std() or 1.0)
    return out


def _exchanged(y: Array, rows: Array) -> Array:
    known, place = np.unique(y, return_inverse=True)
    return np.where(rows.reshape(-1, *[1] * (y.ndim - 1)), known[(place.reshape(y.shape) + 1) % len(known)], y)


def in_even_units(problem: Problem) -> Problem | None:
    """The problem with every feature in units in which the losses feel it like any other; None where they do so
    already, or where there are no features."""
    unit = lengths(problem.form)[0]
    if unit.max() < UNEVEN * unit.min() or any(block.X is None for block in problem.form.samples):
        return None

    def factors(data: NodeData) -> Array:
        assert data.X is not None  # of every block
        each = unit.reshape(data.X.shape[1], -1).min(axis=1)
        return each / np.exp(np.log(each).mean())

    return _featured(problem, factors)


def in_finer_units(problem: Problem, by: float) -> Problem | None:
    """The problem with parameters that are so many times as large, and else the same: features over that, strengths
    over the power of it by which penalties grow. None where they grow by several, or there are no features."""
    form, powers = problem.form, set[float]()
    for edge in form.edges:
        if not is_equality(edge.penalty, k := form.width(edge)):
            smooth = edge.penalty.quadratic(k) is not None
            powers.add(2.0 if smooth else 1.0 if isinstance(edge.penalty, AbstractNorm) else 0.0)
    without = form.beside or any(block.X is None for block in form.samples)
    if without or len(powers) > 1 or 0.0 in powers or any(edge.center is not None for edge in form.edges):
        return None
    return scaled(steeper(problem, 1.0 / by), 1.0, by ** -max(powers, default=0.0))


def steeper(problem: Problem, by: float, label: Hashable | None = None) -> Problem:
    """The problem with the features of one node, or of all, times a factor."""

    def factors(data: NodeData) -> Array:
        own = np.array([label in (None, each) for each in data.labels])
        return np.where(own[data.node], by, 1.0)[:, None]

    return _featured(problem, factors)


def _featured(problem: Problem, factors: Callable[[NodeData], Array]) -> Problem:
    def changed(term: AbstractLoss) -> AbstractLoss:
        return on_data(term, replace(term.data, X=np.asarray(term.data.X) * factors(term.data)))

    return rebuilt(problem, changed)


# ---- nodes and graphs ------------------------------------------------------------------------------------------------
def reordered(problem: Problem, rng: np.random.Generator) -> Problem | None:
    """The problem with the nodes and edges of all graphs in another order; None where the order of the nodes stays."""
    rank = {label: float(r) for label, r in zip(problem.form.labels, rng.permutation(problem.form.n), strict=True)}

    def change(graph: Graph) -> Graph:
        order = np.argsort([rank[label] for label in graph.labels])
        place, edges = np.argsort(order), rng.permutation(graph.n_edges)
        labels = tuple(graph.labels[i] for i in order)
        return Graph(labels, place[graph.tail][edges], place[graph.head][edges], graph.weight[edges])

    found = rebuilt(problem, other=lambda term: on_graph(term, change))
    return None if found.form.labels == problem.form.labels else found


def irregular(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with chords added to all graphs and their weights drawn anew, and some samples of each node left
    out: a mistake in degrees, weights or counts does not show where these are the same everywhere."""

    def change(graph: Graph) -> Graph:
        n, known = graph.n_nodes, set(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
        wanted, chords = int(np.ceil(CHORDS * n)) if n > 3 else 0, list[tuple[int, int]]()
        for i, j in np.sort(rng.integers(0, n, size=(20 * wanted, 2)), axis=1).tolist():
            if i != j and (i, j) not in known and len(chords) < wanted:
                known.add((i, j))
                chords.append((i, j))
        ends = np.array(chords, dtype=np.intp).reshape(-1, 2)
        weight = np.exp(rng.uniform(-SPREAD, SPREAD, graph.n_edges + len(ends)))
        typical = np.exp(np.mean(np.log(graph.weight))) if graph.n_edges else 1.0
        tail, head = np.append(graph.tail, ends[:, 0]), np.append(graph.head, ends[:, 1])
        return Graph(graph.labels, tail, head, typical * weight)

    return rebuilt(problem, lambda term: _thinned(term, rng), lambda term: on_graph(term, change))


def _thinned(term: AbstractLoss, rng: np.random.Generator) -> AbstractLoss:
    keep = np.full(term.data.n_samples, True)
    for i, count in enumerate(term.data.counts()):
        if count > 4:
            rows = np.flatnonzero(term.data.node == i)
            keep[rng.permutation(rows)[: int(rng.integers(0, count // 2))]] = False
    return at_rows(term, keep)


def degrees(form: Form) -> Array:
    """The number of edges to other nodes that each has, (n,)."""
    return sum((abs(edge.K).sum(axis=0) for edge in form.edges if not edge.ground), np.zeros(form.n))


def is_irregular(problem: Problem) -> bool:
    """True where degrees, weights (where there may be some) and sample counts all differ between nodes."""
    form = problem.form
    if form.unlike_edges:  # which no other graph has
        return True
    links, degree = [edge for edge in form.edges if not edge.ground], degrees(form)
    counts = NodeGradients(form).counts
    weighted = [edge for edge in links if not is_equality(edge.penalty, form.width(edge))]
    even = [len(edge.base_weight) > 1 and np.ptp(edge.base_weight) == 0.0 for edge in weighted]
    own = slice(0, form.space.n_observed)
    return bool(np.ptp(degree[own]) > 0 and np.ptp(counts[own]) > 0 and not any(even))


# ---- losses ----------------------------------------------------------------------------------------------------------
def with_equal_data(problem: Problem) -> Problem | None:
    """The problem with the samples of the node that has most at every node; None where nodes have different losses."""
    losses = [term for _, term in problem.model.terms if isinstance(term, AbstractLoss)]
    if len(losses) > 1:
        return None
    (loss,) = losses
    data, times = loss.data, len(loss.data.labels)
    most = int(np.argmax(data.counts()))
    rows = np.flatnonzero(data.node == most)
    scales = (loss.scales() / data.weights)[np.unique(data.node, return_index=True)[1]]
    even = {label: float(scales[most] / s) for label, s in zip(data.labels, scales, strict=True)}  # to that of one
    tiled = {
        name: None if (value := getattr(data, name)) is None else np.concatenate([value[rows]] * times)
        for name in ("X", "y", "weights", "offset")
    }
    everywhere = replace(data, node=np.repeat(np.arange(times), len(rows)), **tiled)
    return rebuilt(problem, lambda term: on_data(rescaled(term, even), everywhere))


def rescaled(loss: AbstractLoss, factors: Mapping[Hashable, float]) -> AbstractLoss:
    """The loss with the sum of each node times a factor, 1 where the mapping says nothing."""
    first = np.unique(loss.data.node, return_index=True)[1]
    each = (loss.scales() / loss.data.weights)[first]
    scale = {x: float(s * factors.get(x, 1.0)) for x, s in zip(loss.data.labels, each, strict=True)}
    return replace(loss, scale=scale, **loss.coding())


def nearly_flat(problem: Problem, but: Hashable, by: float, others: float = 1.0) -> Problem:
    """The problem with the losses of all nodes but one multiplied by a small number, and all penalties by another:
    the one node keeps the constants on which steps depend."""

    def flattened(term: AbstractLoss) -> AbstractLoss:
        return rescaled(term, {label: by for label in term.data.labels if label != but})

    return rebuilt(problem, flattened, factors=(1.0, others))
