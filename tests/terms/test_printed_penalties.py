"""Formulas of penalties from CVXPY: those of built-in ones where they are such, else what CVXPY writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import TermError
from graphreg.running.statuses import floor_of


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
        lambda z: cp.norm(cp.hstack([z[0] - z[1], 2 * z[1], cp.sum(z[:2])]), 3),  # in a shape that CVXPY added
        "      with mine(z) = norm(hstack(z[0] - z[1], 2 * z[1], sum(z[0:2])), 3)\n",
        "mine^o(u_e) <= 0.1",
        r"\mathrm{mine}(w_i - w_j)",
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


# ---- of classes that a user writes -----------------------------------------------------------------------------------
class Lengths(gr.Penalty):
    """Another name for the l2 norm."""

    notation: Any = "length of (%z) where length of (z) = sqrt(z'z)"

    def value(self, z):
        return gr.L2().value(z)

    def prox(self, v, step):
        return gr.L2().prox(v, step)

    def conjugate(self, u):
        return gr.L2().conjugate(u)

    def cvxpy(self, Z):
        return cp.norm(Z, 2, axis=1)

    def accuracy(self) -> float:
        return 1e-3  # so that statuses speak of it


class Squares(gr.SquaredLoss):
    """Another name for half a square."""

    notation = "half the square of (%z - %y)"


DATA = gr.NodeData.from_dict({i: (np.eye(3), [1.0, 2.0, 4.0 + i]) for i in range(3)})


def test_a_notation_may_be_a_string():
    """It is the text of the value, in every place that prints one; LaTeX goes by the name of the class."""
    of = gr.Problem(Squares(DATA) + 0.1 * gr.TotalVariation(nx.path_graph(3), Lengths()))
    assert "half the square of (x_r'w_i - y_r)" in str(of)
    assert "+ 0.1 sum_e length of (w_i - w_j)\n      with length of (z) = sqrt(z'z)" in str(of)
    assert "0.1 Lengths*(u_e / 0.1)" in str(of.dual())
    assert "half the square of (t - y_r)" in str(of.kkt())
    assert r"\mathrm{Lengths}(w_i - w_j)" in of.latex()
    assert r"\mathrm{Squares}(x_r^\top w_i; y_r)" in of.latex()
    assert "Lengths" in of._repr_html_()
    assert "the conjugate of length of (z)" in floor_of(of.solve(gap=1e-9).certificate)


@pytest.mark.parametrize("notation", [lambda self: "h(%z)", 3, ("h(%z)",), None])
def test_another_notation_is_refused_when_the_problem_is_made(notation):
    penalty, loss = (type("Wrong", (kind,), {"notation": notation}) for kind in (Lengths, gr.SquaredLoss))
    for model in (gr.SquaredLoss(DATA) + penalty()(gr.w), loss(DATA)):
        with pytest.raises(TermError, match=r"Wrong\.notation is a string with %z for the argument"):
            gr.Problem(model)
