"""What a multinomial model leaves open, one number added to all classes, is reported as 0, whatever route was taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphreg as gr
from graphreg.certificate.levels import without_levels

N, CLASSES, ROUTES = 4, list("abc"), (gr.Exact(), gr.PrimalDual())
CHAIN = gr.Graph.chain(N)


def loss(seed=0):
    rng = np.random.default_rng(seed)
    node, X = np.repeat(np.arange(N), 12), rng.normal(size=(12 * N, 1))
    frame = pd.DataFrame({"x": X[:, 0], "node": node, "y": rng.choice(CLASSES, 12 * N)})
    return gr.MultinomialLoss(gr.NodeData.from_frame(frame, node="node", target="y", features=["x"], intercept=True))


MODELS = {
    "differences alone": lambda: loss() + 0.05 * gr.TotalVariation(CHAIN, gr.L2()),
    "a ridge, which skips the intercept": lambda: loss() + 0.01 * gr.NodePenalty(gr.SquaredL2()),
    "differences of one feature": lambda: loss() + 0.05 * gr.TotalVariation(CHAIN, gr.L2(), features=["x"]),
    "a hierarchy": lambda: loss() + gr.Hierarchy({0: 0, 1: 0, 2: 1, 3: 1}, weights=(0.1, 0.1)),
}


def sums(solution):
    """Of the coefficients over the classes, by node and feature."""
    return solution.table().T.groupby(level="feature").sum().T


@pytest.mark.parametrize("name", MODELS)
def test_two_certified_routes_print_the_same_table(name):
    one, other = (gr.Problem(MODELS[name]()).solve(method, gap=1e-8) for method in ROUTES)
    assert one.status == other.status == "certified"
    np.testing.assert_allclose(one.table(), other.table(), atol=2e-3)


@pytest.mark.parametrize("method", ROUTES, ids=lambda method: method.name)
def test_a_free_intercept_adds_up_to_zero_at_every_node(method):
    solution = gr.Problem(MODELS["a ridge, which skips the intercept"]()).solve(method)
    assert sums(solution)["intercept"].abs().max() < 1e-12


def test_the_certificate_stays_what_it_is():
    """The objective and every residual are those of the point before it was moved."""
    problem = gr.Problem(MODELS["differences alone"]())
    solution = problem.solve(gr.PrimalDual(), start=np.full(problem.form.shape, 7.0))
    certificate, form = solution.certificate, problem.form
    moved = certificate.w + np.repeat([[5.0, -3.0]], 3, axis=1).reshape(1, -1)
    np.testing.assert_allclose(form.primal(moved), certificate.primal, rtol=1e-12)
    assert certificate.dual <= form.primal(certificate.w) <= certificate.primal
    assert certificate.holds(1e-6)
    there, here = (form.residuals(w, certificate.dual_point) for w in (moved, certificate.w))
    for one, other in zip([*there[0], *there[1]], [*here[0], *here[1]], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_what_something_holds_stays_where_it_is():
    """Centres of a node penalty are no zeros: nothing is open there."""
    center = {node: np.full(6, 2.0) for node in range(N)}
    held = gr.NodePenalty(gr.SquaredL2(), center=center, features=["x", "intercept"])
    solution = gr.Problem(loss() + 0.1 * held).solve()
    np.testing.assert_allclose(sums(solution), 6.0, atol=1e-2)


def test_the_iterate_after_so_many_rounds_is_not_moved():
    start = np.full((N, 6), 7.0)
    problem = gr.Problem(MODELS["differences alone"]())
    asked = problem.solve(gr.PrimalDual(), gap=0.0, rounds=3, start=start)
    assert sums(asked).to_numpy().min() > 1.0


def test_predictions_are_the_same():
    problem = gr.Problem(MODELS["differences alone"]())
    frame = pd.DataFrame({"x": [0.3, -1.0], "node": [0, 3]})
    one, other = (problem.solve(method, gap=1e-9).predict(frame) for method in ROUTES)
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_levels_are_held_where_rows_speak_of_the_node_and_nowhere_else():
    data = gr.NodeData.from_arrays(np.ones((6, 1)), np.array(list("abcabc")), [0, 0, 0, 1, 1, 1])
    tall = np.arange(1.0, 4.0)[:, None]  # sees the level of the classes
    form = gr.Problem(gr.MultinomialLoss(data) + gr.L1()(gr.w.at(0) @ tall)).form
    w = np.array([[1.0, 2.0, 6.0], [1.0, 2.0, 6.0]])
    np.testing.assert_allclose(without_levels(form, w), [[1.0, 2.0, 6.0], [-2.0, -1.0, 3.0]], atol=1e-12)
