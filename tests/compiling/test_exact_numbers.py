"""What users get is compiled from the numbers of the problem themselves, not from rounded ones."""

from __future__ import annotations

import pytest

import graphreg as gr
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
