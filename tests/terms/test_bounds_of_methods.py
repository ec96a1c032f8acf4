"""Whatever a method returns after a few rounds: its bounds enclose the optimum, on random problems of every kind."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cluster_cases import CASES
from factories import thinned

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.methods import METHODS, AbstractIteration

ITERATIVE = [method for method in METHODS if isinstance(method, AbstractIteration)]


def consensus(loss, ridge=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    y = (y > 0).astype(int) if loss is gr.LogisticLoss else np.abs(y).round() if loss is gr.PoissonLoss else y
    data = gr.NodeData.from_arrays(X, y, np.repeat(range(8), 5))
    graph = nx.random_regular_graph(3, 8, seed=seed)
    model = gr.Consensus(graph) + loss(data)
    return gr.Problem(model + ridge * gr.NodePenalty(gr.SquaredL2()) if ridge else model)


RANDOM = {f"random {seed}": lambda seed=seed: random_problem(seed).problem for seed in range(0, 96, 4)}
PROBLEMS = {
    **RANDOM,
    **{f"clusters, {name}": lambda make=make: make().problem for name, make in CASES.items()},
    "consensus, squared": lambda: consensus(gr.SquaredLoss),
    "consensus, logistic": lambda: consensus(gr.LogisticLoss, 0.1),
    "consensus, Huber": lambda: consensus(gr.HuberLoss, 0.01),
}


@pytest.mark.filterwarnings("ignore::graphreg.errors.MethodWarning")
@pytest.mark.parametrize("name", [*thinned(RANDOM, every=12), *(name for name in PROBLEMS if name not in RANDOM)])
def test_the_bounds_enclose_the_optimum(name, whole):
    """A twelfth of the random problems; all, and for longer, with ``--whole``, and many more by `make soundness`."""
    problem, rounds = PROBLEMS[name](), 60 if whole else 30
    exact = problem.solve(gap=1e-9, on_failure="return").certificate
    tried = [method for method in ITERATIVE if not method.missing(problem.form)]
    assert len(tried) >= 3
    for method in tried:
        run = problem.solve(method, gap=1e-9, rounds=rounds, seed=1, on_failure="return")
        found = run.certificate
        rounding = 1e-13 * abs(exact.primal)
        assert found.primal >= exact.dual - rounding, method.name
        if found.valid:
            assert found.dual <= exact.primal + rounding, method.name
            assert run.form.primal(found.w) == pytest.approx(found.primal, rel=1e-9), method.name
        if run.own is not None and run.own.valid:
            assert run.own.dual <= run.own.primal, method.name
