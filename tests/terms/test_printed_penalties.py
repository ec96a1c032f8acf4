"""The formulas of penalties that are recognised: complete, with their numbers, in brackets where they are sums."""

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
        "+ 0.1 sum_e (0.5 ||w_i - w_j||_1 + ||w_i - w_j||_inf)",
        "||S(u_e, 0.5 * 0.1)||_1 <= 0.1",
        r"0.1 \, \sum_{e=(i,j)} \, \left(0.5 \|w_i - w_j\|_1 + \|w_i - w_j\|_\infty\right)",
    ),
    (
        lambda z: 2 * cp.norm1(z),
        "+ 0.1 sum_e 2 ||w_i - w_j||_1",
        "||u_e||_inf <= 2 * 0.1",
        r"2 \|w_i - w_j\|_1",
    ),
    (
        lambda z: cp.sum(cp.multiply([1, 2, 3], cp.abs(z))),
        "+ 0.1 sum_e ||diag(1, 2, 3) (w_i - w_j)||_1",
        "|u_e| <= 0.1 (1, 2, 3)",
        r"\|\mathrm{diag}(1, 2, 3) (w_i - w_j)\|_1",
    ),
    (
        lambda z: cp.sum(cp.huber(z, 0.5)),
        "+ 0.1 sum_e sum_j 2 huber_0.5([w_i - w_j]_j)\n"
        "      with huber_d(t) = t^2 / 2 up to |t| = d, then d |t| - d^2 / 2",
        "- sum_e sum_j max over x of ([u_e]_j x - 0.1 (2 huber_0.5(x)))",
        r"\sum_j 2 h_{0.5}([w_i - w_j]_j)",
    ),
    (
        lambda z: cp.norm1(z) + cp.sum_squares(z),
        "+ 0.1 sum_e sum_j (|[w_i - w_j]_j| + [w_i - w_j]_j^2)",
        "max over x of ([u_e]_j x - 0.1 (|x| + x^2))",
        r"\sum_j (|[w_i - w_j]_j| + [w_i - w_j]_j^2)",
    ),
    (
        lambda z: cp.norm(z) + cp.sum_squares(z),
        "+ 0.1 sum_e (||w_i - w_j||_2^2 + ||w_i - w_j||_2)",
        "- sum_e min over s with ||s||_2 <= 0.1, of ||u_e - s||_2^2 / (4 * 0.1)",
        r"\left(\|w_i - w_j\|_2^2 + \|w_i - w_j\|_2\right)",
    ),
    (
        lambda z: cp.pos(cp.norm(z) - 1),
        "+ 0.1 sum_e max(||w_i - w_j||_2 - 1, 0)",
        "- sum_e max over x >= 0 of (||u_e||_2 x - 0.1 max(x - 1, 0))",
        r"\max(\|w_i - w_j\|_2 - 1, 0)",
    ),
    (
        lambda z: cp.norm(z[:2]) + 2 * cp.abs(z[2]),
        "+ 0.1 sum_e (2 ||[w_i - w_j]_2||_1 + ||[w_i - w_j]_(0,1)||_2)",
        "||[u_e]_2||_inf <= 2 * 0.1, ||[u_e]_(0,1)||_2 <= 0.1",
        r"\left(2 \|[w_i - w_j]_{2}\|_1 + \|[w_i - w_j]_{0,1}\|_2\right)",
    ),
    (
        lambda z: cp.square(z[0]) + 3 * cp.square(z[2]),
        "+ 0.1 sum_e ([w_i - w_j]_0^2 + 3 [w_i - w_j]_2^2)",
        "max over x of ([u_e]_0 x - 0.1 x^2) + max over x of [u_e]_1 x + ",
        r"\left([w_i - w_j]_0^2 + 3 [w_i - w_j]_2^2\right)",
    ),
    (
        lambda z: cp.norm(np.diag([1.0, 2.0, 3.0]) @ z),
        "+ 0.1 sum_e ||R (w_i - w_j)||_2\n      with R = [(",
        "||R^-T u_e||_2 <= 0.1",
        r"\text{with } R = [(",
    ),
    (
        lambda z: 3 * cp.sum_largest(cp.abs(z), 2),
        "+ 0.1 sum_e 3 sum of 2 largest(|w_i - w_j|)",
        "||u_e||_inf <= 3 * 0.1, ||u_e||_1 / 2 <= 3 * 0.1",
        r"0.1 \, \sum_{e=(i,j)} \, 3 \|w_i - w_j\|_{(2)}",
    ),
    (
        lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z),
        "+ 0.1 sum_e (0.5 ||w_i - w_j||_2 + ||w_i - w_j||_inf)",
        "min over v with ||v||_1 <= 0.1, of ||u_e - v||_2 <= 0.5 * 0.1",
        r"0.5 \|w_i - w_j\|_2 + \|w_i - w_j\|_\infty",
    ),
    (
        lambda z: cp.norm_inf(z) + cp.norm(z) + cp.sum_squares(z),
        "+ 0.1 sum_e (||w_i - w_j||_2^2 + ||w_i - w_j||_2 + ||w_i - w_j||_inf)",
        "min over s with min over v with ||v||_1 <= 0.1, of ||s - v||_2 <= 0.1, of ||u_e - s||_2^2 / (4 * 0.1)",
        r"\|w_i - w_j\|_2^2 + \|w_i - w_j\|_2 + \|w_i - w_j\|_\infty",
    ),
    (
        lambda z: cp.norm1(cp.diff(z)),
        "+ 0.1 sum_e ||R (w_i - w_j)||_1\n      with R = [(-1, 1, 0); (0, -1, 1)]",
        "u_e = R'y, ||y||_inf <= 0.1",
        r"\|R (w_i - w_j)\|_1",
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


def test_a_formula_without_strength_has_no_factor() -> None:
    data = gr.NodeData.from_dict({i: (np.eye(3), [1.0, 2.0, 4.0 + i]) for i in range(3)})
    mine = gr.Penalty.from_cvxpy(lambda z: cp.norm(z) + cp.sum_squares(z))
    dual = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(3), mine)).dual()
    assert "min over s with ||s||_2 <= 1, of ||u_e - s||_2^2 / 4\n" in str(dual)


def test_many_functions_are_cut_and_counted() -> None:
    mine = gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.multiply(np.arange(1, 13), cp.square(z))))
    text = mine.acting_on(12).notation.value
    assert text.startswith("[%z]_0^2 + 2 [%z]_1^2 + ")
    assert text.endswith(" + ... (4 more)")
