"""The functions of CVXPY that are recognised, those that are not, and that either is the function."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.errors import TermError
from graphreg.reading_cvxpy.examine import values
from graphreg.reading_cvxpy.recognise import closed_form
from graphreg.terms.penalties import AbstractNorm, AbstractOneSided, AbstractPenalty, AbstractSmoothPenalty

own = AbstractPenalty.from_cvxpy
W = np.array([1.0, 0.5, 2.0])
Q = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])

KNOWN = {
    "L1": lambda z: cp.sum(cp.abs(z)),
    "L2": cp.norm,
    "LInf": lambda z: cp.max(cp.abs(z)),
    "SquaredL2": lambda z: cp.sum_squares(z) / 2,
    "Quadratic": lambda z: cp.quad_form(z, Q),
    "PNorm": lambda z: cp.norm(z, 1.5),
    "ScaledNorm": lambda z: 3 * cp.norm(-z) / 2,
    "Separable": lambda z: cp.norm(cp.multiply(W, z), 1) + cp.sum_squares(z[1]),
    "SmoothSeparable": lambda z: cp.sum(cp.huber(z, 0.3)),
    "OneSidedSeparable": lambda z: cp.sum(cp.maximum(0.3 * z, -0.7 * z)),
    "OneSidedSeparable, squares of parts": lambda z: cp.sum_squares(cp.pos(z)) + 0.5 * cp.sum(cp.neg(z)),
    "OneSidedSeparable, Huber of parts": lambda z: cp.sum(cp.huber(cp.pos(z - 0.5), 0.2)),
    "OfNorm": lambda z: cp.pos(cp.norm(z) - 0.1),
    "OfNorm, smooth": lambda z: cp.huber(cp.norm(z), 2),
    "OfNorm, with a square": lambda z: cp.norm(z) + cp.sum_squares(z),
    "Blocks": lambda z: cp.sum(cp.hstack([cp.norm(z[:2]), cp.abs(z[2])])),
    "Thresholded": lambda z: cp.norm1(z) + cp.norm(z) + cp.sum_squares(z),
    "MappedNorm, weighted": lambda z: cp.norm(cp.multiply(W, z)),
    "MappedNorm, differences": lambda z: cp.norm1(cp.diff(z)),
    "MappedNorm, from the last": lambda z: cp.norm1(cp.diff(z)) + 0.5 * cp.abs(z[2]),
    "MappedNorm, of fewer rows": lambda z: 2 * cp.norm(np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]]) @ z, 3),
}
UNKNOWN = {
    "norm inf and norm 2": lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z),
    "norm inf and square": lambda z: cp.norm_inf(z) + cp.sum_squares(z),
    "two largest": lambda z: cp.sum_largest(cp.abs(-z), 2),
    "two norms": lambda z: cp.norm_inf(z) + cp.norm(cp.multiply(W, z)),
    "the larger norm": lambda z: cp.maximum(cp.norm1(z), 1.5 * cp.norm(z)),
    "dependent differences": lambda z: cp.norm1(cp.diff(z)) + cp.abs(z[0] - z[2]),
    "nearly dependent rows": lambda z: cp.norm1(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0 + 1e-5]]) @ z),
    "nuclear": lambda z: cp.normNuc(cp.vstack([z, z[::-1]])),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_function_is_recognised_and_is_the_function(name):
    function = KNOWN[name]
    phi = own(function).acting_on(3)
    assert type(phi).__name__ == name.split(",")[0]
    z = np.random.default_rng(1).normal(size=(40, 3)) * np.logspace(-4, 4, 40)[:, None]
    np.testing.assert_allclose(phi.value(z), values(function, False, 3)(z), rtol=1e-12)


@pytest.mark.parametrize("name", UNKNOWN)
def test_the_rest_is_solved_together_as_it_is_row_by_row(name):
    phi = own(UNKNOWN[name]).acting_on(3)
    assert type(phi).__name__ == "ConePenalty"
    v, step = np.random.default_rng(2).normal(size=(230, 3)), np.full(230, 0.4)
    together = phi.prox(v, step)
    alone = np.vstack([phi.prox(v[i : i + 1], step[i : i + 1]) for i in range(0, 230, 23)])
    np.testing.assert_allclose(together[::23], alone, atol=1e-4)  # the root of what the solver misses
    np.testing.assert_allclose(phi.value(v), values(UNKNOWN[name], False, 3)(v), rtol=1e-12)


def test_a_tree_that_was_misread_is_not_used():
    z = cp.Variable(2)
    rows = np.array([[1.0, 2.0], [-1.0, 0.5]])
    assert closed_form(cp.norm1(z), z, rows, np.array([3.0, 1.5]), True) is not None
    assert closed_form(cp.norm1(z), z, rows, np.array([3.0, 1.5 + 1e-9]), True) is None


def test_what_stands_in_a_model_has_the_capabilities_of_its_kind():
    problem = gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_dict({i: (np.eye(3), [1.0, i, 0.0]) for i in range(3)}))
        + gr.TotalVariation(nx.path_graph(3), own(KNOWN["SmoothSeparable"]))
        + gr.NodePenalty(own(KNOWN["OneSidedSeparable"]))
        + gr.NodePenalty(own(KNOWN["PNorm"]))
    )
    smooth, one_sided, norm = (edge.penalty for edge in problem.form.edges)
    assert isinstance(smooth, AbstractSmoothPenalty)
    assert isinstance(one_sided, AbstractOneSided)
    assert isinstance(norm, AbstractNorm)
    assert problem.solve().status == "certified"


@pytest.mark.parametrize("name", thinned([*list(KNOWN)[5:], *list(UNKNOWN)[1:]], every=2))
def test_both_routes_agree_on_a_graph_with_a_lonely_node(name):
    rng = np.random.default_rng(3)
    data = gr.NodeData.from_dict({i: (rng.normal(size=(5, 3)), rng.normal(size=5)) for i in range(5)})
    graph = nx.path_graph(4)
    graph.add_node(4)
    penalty = own({**KNOWN, **UNKNOWN}[name])
    where = gr.NodePenalty(penalty)
    if not isinstance(penalty, AbstractOneSided):
        where = gr.TotalVariation(graph, penalty)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * where + 0.01 * gr.NodePenalty(gr.SquaredL2()))
    exact, run = problem.solve(), problem.solve(gr.PrimalDual(), seconds=20)
    assert exact.status == run.status == "certified"
    assert max(exact.certificate.dual, run.certificate.dual) <= min(exact.objective, run.objective)


def test_a_function_that_breaks_on_other_sizes_is_refused_there():
    penalty = own(lambda z: cp.quad_form(z, Q))  # CVXPY raises a bare Exception
    penalty.check(3)
    with pytest.raises(TermError, match="cannot act on 2 coordinates"):
        penalty.check(2)
