"""``python -m benchmarks.hard``: what is hard for second-order methods, by `InteriorPoint` and by ``solve()``.

Huber losses with l2 at weak strengths, quantiles at .01 and .99, hinges of nodes whose classes are apart, columns over
many decades, and one to a thousand samples a node, on the real counties and on small worlds. CPU seconds of one thread,
the certificate included; every problem is drawn anew by ``--seed``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from .statistics.paths import map_of_counties

GAP = 1e-6
LONGEST = 120.0  # seconds for a solve
WIDTHS = (58, 24, 16, 10, 7, 6)
Array = Any
Problem = Callable[[], gr.Problem]


def _graphs(rng: np.random.Generator) -> dict[str, gr.Graph]:
    counties = map_of_counties()[1]
    pairs = np.array(nx.watts_strogatz_graph(300, 6, 0.1, rng).edges)
    return {
        "counties": gr.Graph(tuple(range(counties.n_nodes)), counties.tail, counties.head, counties.weight),
        "small world": gr.Graph(tuple(range(300)), pairs[:, 0], pairs[:, 1], np.ones(len(pairs))),
    }


def _data(graph: gr.Graph, d: int, samples: Array, scales: Array, rng: np.random.Generator) -> tuple[Array, ...]:
    """Features, predictors and nodes; four kinds of nodes, side by side."""
    n = graph.n_nodes
    node = np.repeat(np.arange(n), samples)
    X = rng.standard_normal((len(node), d))
    kinds = rng.standard_normal((4, d))
    return X * scales, np.einsum("rd,rd->r", X, kinds[node * 4 // n]), node


def _problem(loss: Any, edges: Any, graph: gr.Graph, strength: float, data: gr.NodeData, ridge: float = 0.0) -> Problem:
    def made() -> gr.Problem:
        model = loss(data) + gr.Parameter(strength, name="lam") * gr.TotalVariation(graph, edges())
        return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) if ridge else model)

    return made


def problems(seed: int) -> Iterator[tuple[str, Problem]]:
    """Each in words, and a function that makes it."""
    rng = np.random.default_rng(seed)
    for name, graph in _graphs(rng).items():
        n, one = graph.n_nodes, np.ones(2)
        X, eta, node = _data(graph, 2, np.full(n, 15), one, rng)
        y = eta + 0.5 * rng.standard_t(2, len(eta))
        data = gr.NodeData.from_arrays(X, y, node)
        for strength in (3e-4, 3e-3, 3e-2):
            yield f"{name}: Huber, l2, strength {strength:g}", _problem(gr.HuberLoss, gr.L2, graph, strength, data)
        for tau in (0.01, 0.99):
            for edges in (gr.L1, gr.L2):
                told = f"{name}: quantile {tau:g}, {edges.__name__}, strength .1"
                yield told, _problem(lambda d, tau=tau: gr.QuantileLoss(d, tau=tau), edges, graph, 0.1, data)
        apart = gr.NodeData.from_arrays(X, np.where(eta > 0, 1.0, -1.0), node)
        for strength in (1e-3, 1e-1):
            told = f"{name}: hinge, classes apart, l2, strength {strength:g}"
            yield told, _problem(gr.HingeLoss, gr.L2, graph, strength, apart)
        for few, most in ((-6.0, 6.0), (-9.0, 12.0)):
            X, eta, node = _data(graph, 4, np.full(n, 15), np.logspace(few, most, 4), rng)
            data = gr.NodeData.from_arrays(X, eta + 0.5 * rng.standard_normal(len(eta)), node)
            told = f"{name}: squared, l2, columns of 1e{few:g} to 1e{most:g}"
            yield told, _problem(gr.SquaredLoss, gr.L2, graph, 0.1, data)
        uneven = np.maximum((10 ** rng.uniform(0.0, 3.0, n)).astype(int) // (1 + 9 * (n > 1000)), 1)
        X, eta, node = _data(graph, 3, uneven, np.ones(3), rng)
        for loss in (gr.SquaredLoss, gr.HuberLoss, gr.LogisticLoss):
            y = np.where(eta + rng.logistic(size=len(eta)) > 0, 1.0, -1.0) if loss is gr.LogisticLoss else eta
            data = gr.NodeData.from_arrays(X, y, node)
            told = f"{name}: {loss.__name__}, l2, {uneven.min()} to {uneven.max()} samples a node"
            yield told, _problem(loss, gr.L2, graph, 0.1, data)


def row(*cells: str) -> str:
    return "".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hard", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the words of the problems")
    asked = parser.parse_args()
    print(row("problem", "method", "status", "gap", "steps", "CPU s"))
    for words, make in problems(asked.seed):
        if asked.only not in words:
            continue
        for method in (gr.InteriorPoint(), gr.Auto()):
            problem, began = make(), time.process_time()
            found = problem.solve(method, gap=GAP, seconds=LONGEST, on_failure="return", progress=False)
            took, gap = time.process_time() - began, found.certificate.relative_gap
            print(
                row(words, str(found.method), found.status, f"{gap:.1e}", str(found.rounds), f"{took:.2f}"), flush=True
            )


if __name__ == "__main__":
    main()
