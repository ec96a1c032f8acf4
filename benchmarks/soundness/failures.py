"""Small problems that are known to have broken certificates, each with a number that makes it harmless or hopeless.

Each function gives a `WildProblem`, so that `judged.examine` judges it; ``FAILURES`` has them by name, with the values
to sweep. The first value of a sweep is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr
from benchmarks.wild import WildProblem
from graphreg.datasets.plain import Array, PlainEdge, PlainProblem, PlainSamples

LOSSES = {"squared": gr.SquaredLoss, "logistic": gr.LogisticLoss, "quantile": gr.QuantileLoss, "huber": gr.HuberLoss}
PENALTIES = {"L1": gr.L1, "L2": gr.L2, "SquaredL2": gr.SquaredL2}

Rows = Mapping[Hashable, tuple[Any, Any]]


@dataclass(frozen=True)
class Failure:
    """A family of problems, by one number."""

    make: Callable[[float], WildProblem]
    sweep: tuple[float, ...]


def dollars_and_rates(dollars: float = 1e12) -> WildProblem:
    """Three regions, an intercept, an output of the size of ``dollars`` and a rate: a certificate of 14.08, and the
    pooled fit has P = 0.0016."""
    rng = np.random.default_rng(0)
    rows: dict[Hashable, tuple[Array, Array]] = {}
    for region in ("north", "middle", "south"):
        output, rate = rng.uniform(0.1, 10.0, size=8), rng.uniform(0.0, 0.1, size=8)
        X = np.column_stack([np.ones(8), output * dollars, rate])
        rows[region] = X, 2.0 + 0.4 * output + 3.0 * rate + 0.05 * rng.standard_normal(8)
    return _path("dollars and rates", rows, 0.1, "L2")


def almost_collinear(distance: float = 1e-10) -> WildProblem:
    """``X = [[1, 1], [1, 1 + distance]]``, ``y = (0, 1)``: a certificate of 0.25, and the optimum is 0."""
    X = np.array([[1.0, 1.0], [1.0, 1.0 + distance]])
    return _path("almost collinear", {"a": (X, np.array([0.0, 1.0]))}, 1.0, "L2")


def shifted_targets(shift: float = 1e6) -> WildProblem:
    """Three regions with two slopes, targets around ``shift``: regions with slopes of .46 and -.46 called equal, and
    runs certified to 1e-6 at 4.8 times the optimum."""
    return _path("shifted targets", _two_slopes(shift, 0.0), 0.05, "L2")


def large_offsets(offset: float = 1e6) -> WildProblem:
    """Offsets around ``offset``, which targets share: they cancel within one summand of the dual value."""
    rows = _two_slopes(offset, 0.0)
    rng = np.random.default_rng(2)
    return _path(
        "large offsets", rows, 0.05, "L2", {i: offset + rng.standard_normal(len(y)) for i, (_, y) in rows.items()}
    )


def separable(scale: float = 1e-8) -> WildProblem:
    """Two classes that a line separates, features of the size of ``scale``: no minimum, and one was certified."""
    X = scale * np.array([[-2.0], [-1.0], [1.0], [3.0]])
    return _path("separable", {"a": (X, np.array([-1.0, -1.0, 1.0, 1.0]))}, 1.0, "L2", family="logistic")


def small_overlap(overlap: float = 1e-9) -> WildProblem:
    """Two classes that overlap by ``overlap``: there is a minimum, far away, and it was said that there is none."""
    X = np.array([[-1.0], [overlap], [-overlap], [1.0]])
    X = np.column_stack([np.ones(4), X])
    return _path("small overlap", {"a": (X, np.array([-1.0, -1.0, 1.0, 1.0]))}, 1.0, "L2", family="logistic")


def near_fusion(strength: float = 0.4999) -> WildProblem:
    """Two nodes that are tied not quite hard enough: at 0.5 they are equal at the optimum, and ``1 - 2 strength`` apart
    below; what slack proves is that they are near."""
    rows: Rows = {"a": (np.ones((1, 1)), np.zeros(1)), "b": (np.ones((1, 1)), np.ones(1))}
    return _path("near fusion", rows, strength, "L1")


def heavy_and_light(decades: float = 12.0) -> WildProblem:
    """Sample weights over ``decades``: what rounding leaves of the heavy samples is more than all light ones weigh."""
    rng = np.random.default_rng(3)
    rows = _two_slopes(0.0, 0.3)
    weights = {i: 10.0 ** rng.uniform(-decades / 2, decades / 2, size=len(y)) for i, (_, y) in rows.items()}
    return _path("heavy and light", rows, 0.05, "L2", weights=weights)


def exact_fit(size: float = 1e6) -> WildProblem:
    """Targets of the given size that a common model fits up to rounding: the optimum is 0, or nearly."""
    rng = np.random.default_rng(4)
    rows: dict[Hashable, tuple[Array, Array]] = {}
    for region in ("north", "middle", "south"):
        X = np.column_stack([np.ones(6), rng.standard_normal(6)])
        rows[region] = X, size * (X @ np.array([1.0, 0.5]))
    return _path("exact fit", rows, 0.1, "L2")


def huge_targets(size: float = 1e160) -> WildProblem:
    """Targets whose squares overflow: to be refused with the column."""
    rows = {i: (X, size * y) for i, (X, y) in _two_slopes(0.0, 0.1).items()}
    return _path("huge targets", rows, 1.0, "L2")


def _decades(first: int, last: int, step: int = 1) -> tuple[float, ...]:
    return tuple(float(f"1e{k}") for k in range(first, last + (1 if step > 0 else -1), step))


FAILURES: dict[str, Failure] = {
    "dollars and rates": Failure(dollars_and_rates, _decades(0, 15)),
    "almost collinear": Failure(almost_collinear, _decades(0, -15, -1)),
    "shifted targets": Failure(shifted_targets, _decades(0, 12)),
    "large offsets": Failure(large_offsets, _decades(0, 12)),
    "separable": Failure(separable, _decades(0, -15, -1)),
    "small overlap": Failure(small_overlap, _decades(-1, -15, -1)),
    "near fusion": Failure(near_fusion, (0.25, 0.4, 0.49, 0.499, 0.4999, 0.49999, 0.499999999, 0.5)),
    "heavy and light": Failure(heavy_and_light, (0.0, 3.0, 6.0, 9.0, 12.0, 15.0)),
    "exact fit": Failure(exact_fit, _decades(0, 12)),
    "huge targets": Failure(huge_targets, (1.0, 1e50, 1e100, 1e140, 1e155, 1e160, 1e200)),
}


# ---- as model and as plain numbers -----------------------------------------------------------------------------------
def _two_slopes(shift: float, noise: float) -> dict[Hashable, tuple[Array, Array]]:
    rng = np.random.default_rng(1)
    rows: dict[Hashable, tuple[Array, Array]] = {}
    for region, slope in (("north", 0.46), ("middle", 0.46), ("south", -0.46)):
        x = rng.standard_normal(12)
        rows[region] = np.column_stack([np.ones(12), x]), shift + slope * x + (noise or 0.1) * rng.standard_normal(12)
    return rows


def _path(
    name: str,
    rows: Rows,
    strength: float,
    penalty: str,
    offsets: Mapping[Hashable, Array] | None = None,
    weights: Mapping[Hashable, Array] | None = None,
    family: str = "squared",
) -> WildProblem:
    """A mean loss per node on a path through the nodes."""
    labels = list(rows)
    X, y = (np.concatenate(column) for column in zip(*rows.values(), strict=True))
    each = [None if given is None else np.concatenate([given[i] for i in labels]) for given in (weights, offsets)]
    node = [label for label, (_, targets) in rows.items() for _ in targets]
    data = gr.NodeData.from_arrays(X, y, node, weights=each[0], offset=each[1])
    graph = nx.path_graph(len(labels))
    graph = nx.relabel_nodes(graph, dict(enumerate(labels)))
    model = LOSSES[family](data) + strength * gr.TotalVariation(graph, PENALTIES[penalty]())
    samples = tuple(_samples(i, family, *rows[i], weights and weights[i], offsets and offsets[i]) for i in labels)
    d = X.shape[1]
    edges = tuple(PlainEdge(tail, head, penalty, strength, np.arange(d), np.zeros(d)) for tail, head in graph.edges)
    plain = PlainProblem(tuple(labels), d, samples, edges, np.zeros(d), np.ones(d))
    return WildProblem(0, family, penalty, "one graph", (name,), model, plain, 1e-6, None, False)


def _samples(
    node: Hashable, family: str, X: Array, y: Array, weights: Array | None, offset: Array | None
) -> PlainSamples:
    weights = np.ones(len(y)) if weights is None else weights
    return PlainSamples(node, family, X, y, weights / weights.sum(), np.zeros(len(y)) if offset is None else offset)
