"""Formulas of penalties from CVXPY: those of built-in ones where they are such, else what CVXPY writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr


def problem(function: Callable[[Any], Any]) -> gr.Problem:
    data = gr.NodeData.from_dict({i: (np.eye(3), [1.0, 2.0, 4.0 + i]) for i in range(3)})
    penalty = gr.TotalVariation(nx.path_graph(3), gr.Penalty.from_cvxpy(function, name="mine"))
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * penalty)


FORMULAS = [
    (
        lambda z: cp.norm_inf(z) + 0.5 * cp.norm1(z),
        "+ 0.1 sum_e mine(w_i - w_j)\n      with mine(z) = norm_inf(z) + 0.5 * norm1(z)\n",
        "mine^o(u_e) <= 0.1",
        r"0.1 \, \sum_{e=(i,j)} \, \mathrm{mine}(w_i - w_j)",
    ),
    (
        lambda z: cp.norm1(z) + cp.sum_squares(z),
        "+ 0.1 sum_e mine(w_i - w_j)\n      with mine(z) = norm1(z) + ",
        "- sum_e 0.1 mine*(u_e / 0.1)\n      with mine*(u) = max over z of <u, z> - mine(z)",
        r"\text{with } \mathrm{mine}(z) = \mathrm{norm1(z)",
    ),
    (
        lambda z: cp.norm(np.diag([1.0, 2.0, 3.0]) @ z),  # what takes lines is left out
        "+ 0.1 sum_e mine(w_i - w_j)\n\nwhere",
        "mine^o(u_e) <= 0.1",
        r"\mathrm{mine}(w_i - w_j)",
    ),
    (
        lambda z: cp.sum(cp.abs(z)),
        "+ 0.1 sum_e ||w_i - w_j||_1",
        "||u_e||_inf <= 0.1",
        r"\|w_i - w_j\|_1",
    ),
]


@pytest.mark.parametrize(("function", "primal", "dual", "latex"), FORMULAS)
def test_the_formula_says_what_the_function_is(
    function: Callable[[Any], Any], primal: str, dual: str, latex: str
) -> None:
    of = problem(function)
    assert primal in str(of)
    assert dual in str(of.dual())
    assert latex in of.latex()
