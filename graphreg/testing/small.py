"""Small problems on which methods are tried: one of each kind that some method asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import networkx as nx
import numpy as np

from ..compiling import Compiler
from ..form import Form, build
from ..inputs import NodeData
from ..methods import Exact
from ..running import Budget, Solution, solve
from ..terms import Consensus, Hierarchy, Model, NodePenalty, TotalVariation
from ..terms.losses import HuberLoss, LogisticLoss, QuantileLoss, SquaredLoss
from ..terms.penalties import L1, L2, SquaredL2

EXACT = 1e-8  # the relative gap of the optima
NODES, EACH = 7, 6  # no graph below has as many edges as nodes


@dataclass(frozen=True)
class Case:
    """A problem by name."""

    name: str
    form: Form

    @cached_property
    def optimum(self) -> Solution:
        """What answers are held to."""
        return solve(self.form, Exact(), Budget(EXACT), Compiler(self.form))

    def elsewhere(self, node: int) -> Form:
        """The form with other data at one node: its offsets are shifted."""
        moved = [
            replace(b, offset=b.offset + 0.5 * (b.node == node).reshape(-1, *[1] * (b.offset.ndim - 1)))
            for b in self.form.samples
        ]
        return replace(self.form, samples=tuple(moved))


@lru_cache(maxsize=1)
def small_problems(seed: int) -> tuple[Case, ...]:
    """Losses that are smooth, strongly convex, and have kinks; penalties on graphs, trees and constraints; a node
    without data, two components, an edge on one coordinate. The last ones are kept, with their optima."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((NODES * EACH, 2))
    node = np.repeat(np.arange(NODES), EACH)
    truth = np.where((node < 4)[:, None], [1.0, -0.5], [-0.5, 1.0])
    y = (X * truth).sum(axis=1) + 0.3 * rng.standard_normal(len(X))
    path, chord = nx.path_graph(NODES), nx.cycle_graph(NODES)
    chord.add_edge(0, 3)
    parts = nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6)])
    numbers, classes = NodeData.from_arrays(X, y, node), NodeData.from_arrays(X, (y > 0).astype(int), node)
    fewer = NodeData.from_arrays(X[node != 2], y[node != 2], node[node != 2])
    ridge = 0.1 * NodePenalty(SquaredL2())
    first = numbers.features[:1]
    models: dict[str, Any] = {
        "least squares, l2 on a path": SquaredLoss(numbers) + 0.2 * TotalVariation(path, L2()) + ridge,
        "logistic, squared on a ring": LogisticLoss(classes) + 0.3 * TotalVariation(chord, SquaredL2()) + ridge,
        "least squares, known clusters": SquaredLoss(numbers)
        + Hierarchy({"a": [0, 1, 2, 3], "b": [4, 5, 6]}, weights=(0.5, 0.5)),
        "least squares, consensus": SquaredLoss(numbers) + Consensus(chord),
        "logistic, consensus": LogisticLoss(classes) + Consensus(path) + ridge,
        "quantiles, l1 on a path": QuantileLoss(numbers, tau=0.4) + 0.1 * TotalVariation(path, L1()) + ridge,
        "Huber, two parts, a node without data": HuberLoss(fewer)
        + 0.2 * TotalVariation(parts, L2(), features=first)
        + 0.05 * TotalVariation(parts, SquaredL2())
        + ridge,
    }
    return tuple(Case(name, build(Model.of(model))) for name, model in models.items())
