"""What users get is compiled from the numbers of the problem themselves, not from rounded ones."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.compiling.conic import primal
from graphreg.compiling.units import PLAIN
from graphreg.datasets import random_problem


@pytest.mark.parametrize("seed", [1310, 1330, 2270, 2340])
def test_what_is_proved_of_the_compiled_problem_is_so_of_the_problem(seed):
    """Squares that are reduced to as many as there are coordinates have optima that differ in the last digits, which
    two proofs tell apart."""
    problem = random_problem(seed, hard=seed % 2 == 1).problem
    own = problem.solve(gap=1e-7, progress=False).certificate
    compiled = gr.certify(problem.compile().cvxpy, solver="CLARABEL")
    assert compiled.status == "certified"
    assert max(own.dual, compiled.lower) <= min(own.primal, compiled.upper)


def test_constraints_alone_are_a_problem():
    # what is left where all losses fall for ever may be no more than constraints
    counts = gr.PoissonLoss(gr.NodeData.from_arrays(np.ones((3, 1)), np.zeros(3), np.arange(3)))
    low = gr.NodePenalty(gr.Box(low=1.0, high=2.0), nodes=[0])
    form = replace(gr.Problem(counts + gr.TotalVariation(nx.path_graph(3), gr.Zero()) + low).form, samples=())
    for units in (PLAIN, replace(PLAIN, value=2.0)):
        compiled = primal(form, units)
        assert compiled.cvxpy.solve(solver="CLARABEL") == 0.0
        w, _ = compiled.read_back()
        assert (w >= 1.0 - 1e-6).all()
