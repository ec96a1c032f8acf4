"""The cost of another strength: a tiny problem solved again, regularisation paths over a map, cross-validation.

    python -m benchmarks.strengths [tiny] [means] [regressions] [folds] [--repeats 3]

CPU seconds of one thread by the default methods at the default gap: medians, and how many answers were certified. The
map and its data are those of `benchmarks.statistics.paths`.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from .statistics.paths import PREDICTORS, counties, map_of_counties

Timed = tuple[str, float, str]  # what was solved, in how many seconds, and what came of it
THIRD = "HSG495213"  # median value of homes, the third predictor
AGAIN, POINTS, GRID, FOLDS = 20, 50, 8, 5


def _cpu(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def tiny() -> Iterator[Timed]:
    """Ten nodes with three parameters each, solved at one strength after another: a median of each further solve."""
    for loss in (gr.SquaredLoss, gr.LogisticLoss):
        for penalty in (gr.L2(), gr.L1()):
            graph = nx.connected_watts_strogatz_graph(10, 4, 0.3, seed=0)
            problem, strength = _regressions(graph, 3, 10, loss, penalty)
            problem.solve(progress=False)
            took: list[float] = []
            for value in np.geomspace(0.01, 0.3, AGAIN):
                strength.value = float(value)
                took.append(_cpu(partial(problem.solve, progress=False)))
            yield f"10 nodes, {loss.__name__}, {type(penalty).__name__}, again", float(np.median(took)), "all certified"


def means() -> Iterator[Timed]:
    """Paths of total variation denoising: the share of every county."""
    frame, graph = map_of_counties()
    data = gr.NodeData.from_frame(frame, node="fips", target=["share"])
    strength = gr.Parameter(1.0, name="lam")
    yield _path("county means, L1", gr.Problem(gr.MeanLoss(data) + strength * gr.TotalVariation(graph, gr.L1())))


def regressions() -> Iterator[Timed]:
    """Paths of regressions with four parameters per county."""
    for loss, penalty in ((gr.SquaredLoss, gr.L2()), (gr.LogisticLoss, gr.L1())):
        problem = counties(loss, penalty, [*PREDICTORS, THIRD])[0]
        yield _path(f"county regressions, {loss.__name__}, {type(penalty).__name__}", problem)


def folds() -> Iterator[Timed]:
    """Cross-validation of eight strengths in five folds, 100 nodes with 20 parameters each."""
    for loss in (gr.SquaredLoss, gr.LogisticLoss):
        graph = nx.gnm_random_graph(100, 1268, seed=0)
        problem, _ = _regressions(graph, 20, 30, loss, gr.L2())
        grid, began = np.geomspace(1e-3, 1.0, GRID), time.process_time()
        found = gr.cross_validate(problem, grid, FOLDS, progress=False, refit=False)
        took = time.process_time() - began
        states = [status for run in found.runs.values() for status in run.statuses]
        words = f"{states.count('certified')} of {len(states)} certified"
        yield f"cross-validation {GRID} x {FOLDS}, {loss.__name__}", took, words


def _path(name: str, problem: gr.Problem) -> Timed:
    began = time.process_time()
    found = gr.path(problem, POINTS, progress=False, on_failure="return")
    took, states = time.process_time() - began, [solution.status for solution in found]
    return f"path of {POINTS}, {name}", took, f"{states.count('certified')} certified"


def _regressions(
    graph: nx.Graph, d: int, m: int, loss: Callable[..., Any], penalty: gr.Penalty
) -> tuple[gr.Problem, gr.Parameter]:
    """Regressions in two groups, m samples a node, a ridge on all."""
    n, rng = graph.number_of_nodes(), np.random.default_rng(0)
    node, X = np.repeat(np.arange(n), m), rng.standard_normal((n * m, d))
    eta = np.einsum("rd,rd->r", X, rng.standard_normal((2, d))[2 * node // n] / np.sqrt(d))
    y = eta + 0.5 * rng.standard_normal(n * m)
    data = gr.NodeData.from_arrays(X, (y > 0).astype(float) if loss is gr.LogisticLoss else y, node)
    strength, ridge = gr.Parameter(0.1, name="lam"), 1e-2 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss(data) + strength * gr.TotalVariation(graph, penalty) + ridge), strength


STUDIES = {study.__name__: study for study in (tiny, means, regressions, folds)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strengths", description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], help="which ones; all by default")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    for name in args.studies or STUDIES:
        known: dict[str, list[float]] = defaultdict(list)
        said: dict[str, str] = {}
        for _ in range(args.repeats):
            for what, seconds, words in STUDIES[name]():
                known[what].append(seconds)
                said[what] = words
        for what, times in known.items():
            each = ", ".join(f"{t:.3g}" for t in times)
            print(f"{np.median(times):8.3g} s  {what} ({each}; {said[what]})", flush=True)


if __name__ == "__main__":
    main()
