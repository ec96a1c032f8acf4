"""Messages and tables call a term as the user named it, and name the part of it that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.errors import ConvexityError, FailedError, TermError

DATA = gr.NodeData.from_dict({i: (np.eye(2), [1.0, 2.0 + i]) for i in range(3)})
GRAPH = nx.path_graph(3)


def total(penalty: Any) -> gr.Problem:
    return gr.Problem(gr.SquaredLoss(DATA) + 0.1 * gr.TotalVariation(GRAPH, penalty))


def of_value(value: Any) -> Any:
    return gr.Penalty.from_prox(value, gr.L1().prox, lambda Z: cp.norm1(Z, axis=1), name="mine")


@pytest.mark.parametrize(
    "penalty",
    [
        gr.Penalty.from_cvxpy(lambda z: 2 * cp.norm1(z), name="mine"),
        gr.Penalty.from_cvxpy(lambda z: cp.norm(z, 3) + cp.norm_inf(z), name="mine"),
        of_value(gr.L1().value),
    ],
)
def test_a_problem_calls_a_penalty_by_its_name(penalty: Any) -> None:
    assert "TotalVariation(mine) " in str(total(penalty))


def test_a_problem_calls_a_loss_by_its_name() -> None:
    loss = gr.Loss.from_cvxpy(lambda x, y: cp.square(x - y), DATA, name="mine")
    assert "\n  mine  " in str(gr.Problem(loss + gr.TotalVariation(GRAPH, gr.L2())))


def test_a_one_sided_penalty_is_called_by_its_name() -> None:
    with pytest.raises(TermError, match=r"^mine may be one-sided"):
        total(gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.pos(z)), name="mine"))


@pytest.mark.parametrize(
    "function",
    [
        lambda z: cp.norm(z, 3) + cp.norm_inf(z),
        lambda z: 2 * cp.norm(z, 3),
        lambda z: 2 * cp.norm(z, 3) + 0.5 * cp.norm1(z),
    ],
)
def test_a_penalty_without_a_conjugate_for_cvxpy_is_called_by_its_name(function: Any) -> None:
    with pytest.raises(TermError, match=r"^mine has no method cvxpy_conjugate"):
        total(gr.Penalty.from_cvxpy(function, name="mine")).compile("dual")


def test_a_sum_of_penalties_of_ours_has_the_conjugate_of_that() -> None:
    problem = total(gr.Penalty.from_cvxpy(lambda z: cp.norm_inf(z) + 0.5 * cp.norm1(z), name="mine"))
    dual = problem.compile("dual")
    dual.cvxpy.solve()
    assert abs(dual.cvxpy.value - problem.solve(gap=1e-8).objective) < 1e-5


def test_a_broken_law_names_the_penalty_and_what_can_be_run() -> None:
    wrong = of_value(lambda z: 0.5 * np.abs(z).sum(axis=1))
    with pytest.raises(FailedError, match=r"mine breaks the law .*check_penalty\(penalty\) of this penalty, "):
        total(wrong).solve(gr.PrimalDual())


@dataclass(frozen=True)
class Dented(gr.Penalty):
    """Says that a square root is convex."""

    def value(self, z: Any) -> Any:
        return np.abs(z).sum(axis=1)

    def prox(self, v: Any, step: Any) -> Any:
        return gr.L1().prox(v, step)

    def conjugate(self, u: Any) -> Any:
        return gr.L1().conjugate(u)

    def cvxpy(self, Z: Any) -> Any:
        return cp.norm1(Z, axis=1) + cp.sum(cp.sqrt(cp.abs(Z)), axis=1)


def test_a_class_that_is_not_convex_for_cvxpy_is_named_with_its_guilty_part() -> None:
    said = r"cvxpy of Dented in TotalVariation\(Dented\): \S*\(abs\(z\).* is neither"
    with pytest.raises(ConvexityError, match=said):
        total(Dented()).solve(gr.Exact())
