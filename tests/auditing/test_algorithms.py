"""Kinds of algorithms: how each is run, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from audit_cases import gradient_step, network, primal_dual

import graphreg as gr
from graphreg.auditing.algorithms import algorithm_of
from graphreg.auditing.course import run
from graphreg.errors import MethodError

PROBLEM = network("squared")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (primal_dual, "function"),
        (lambda problem: primal_dual(problem, factor=0.5), "function"),
        (gradient_step, "step"),
        (gr.PrimalDual(), "iteration"),
        ([np.zeros((9, 2))], "iterable"),
        (itertools.repeat(np.zeros((9, 2))), "iterable"),
    ],
    ids=["function", "lambda", "step", "method", "list", "iterator"],
)
def test_kinds(given, kind):
    algorithm = algorithm_of(given)
    assert algorithm.kind == kind
    assert run(algorithm, PROBLEM, 3).total >= 1


@pytest.mark.parametrize("given", [3, "PrimalDual", None, gr.PrimalDual, gr.Exact(), lambda: 0, lambda a, b: 0, {}])
def test_what_is_no_algorithm_is_refused(given):
    with pytest.raises(MethodError):
        algorithm_of(given)


def test_a_step_reaches_the_optimum_and_is_counted():
    course = run(algorithm_of(gradient_step), PROBLEM, 400)
    np.testing.assert_allclose(course.last, PROBLEM.solve(gap=1e-11).coef, atol=1e-5)
    edges = len(PROBLEM.oracles().tail)
    assert course.sent == (course.total * 2 * edges, course.total * 2 * edges * 2 * 8)


def test_nodes_share_no_array():
    def writes(state, node, messages):
        w = np.zeros(node.d) if state is None else state
        for value in messages.values():
            value[:] = 1.0  # into what a neighbour sent
        return w, w

    assert not run(algorithm_of(writes), PROBLEM, 5).last.any()


@pytest.mark.parametrize(
    ("step", "names"),
    [
        (lambda state, node, messages: np.zeros(node.d), "(state, messages)"),
        (lambda state, node, messages: (np.zeros(5), None), "shape (2,)"),
        (lambda state, node, messages: (np.zeros(node.d), {"stranger": 1.0}), "'stranger'"),
        (lambda state, node, messages: (node.edge_prox("stranger", np.zeros(2), 1.0), None), "'stranger'"),
    ],
    ids=["no pair", "shape", "a stranger", "the edge to a stranger"],
)
def test_steps_that_break_the_rules_are_told_so(step, names):
    course = run(algorithm_of(step), PROBLEM, 3)
    assert course.ended == "raised"
    assert names in course.why


def test_messages_to_some_and_states_that_are_mappings():
    def first_only(state, node, messages):
        known = set() if state is None else state["from"]
        return {"w": np.zeros(node.d), "from": known | set(messages)}, {node.neighbours[0]: np.ones(3)}

    assert run(algorithm_of(first_only), PROBLEM, 4).sent == (36, 36 * 3 * 8)


def test_a_start_is_where_every_kind_begins():
    start = np.arange(18.0).reshape(9, 2)

    def stays(problem, start=None):
        return itertools.repeat(start)

    def keeps(state, node, messages):
        return (node.start if state is None else state), None

    for given in (stays, keeps):
        assert np.array_equal(run(algorithm_of(given), PROBLEM, 2, start=start).last, start)


def test_what_a_node_computes_is_what_the_whole_computes():
    from graphreg.auditing.algorithms import Node, split
    from graphreg.network import arcs_of

    problem = network("l2")
    o, form = problem.oracles(), problem.form
    w = np.random.default_rng(0).normal(size=form.shape)
    for part in split(form, arcs_of(form)):
        node = Node(part, None, 0)
        i = part.node
        np.testing.assert_allclose(node.gradient(w[i]), o.gradient(w)[i], atol=1e-12)
        np.testing.assert_allclose(node.prox(w[i], 0.7), o.prox(w, 0.7)[i], atol=1e-12)
        assert node.smoothness == pytest.approx(o.smoothness[i])
        e = next(e for e in range(len(o.tail)) if i in (o.tail[e], o.head[e]))
        other = form.labels[o.head[e] if o.tail[e] == i else o.tail[e]]
        assert node.weight[other] == pytest.approx(o.weight[e])
        rows = np.tile(w[i], (len(o.tail), 1))
        np.testing.assert_allclose(node.edge_prox(other, w[i], 0.5), o.edge_prox(rows, 0.5)[e])
        np.testing.assert_allclose(node.dual_prox(other, w[i], 0.5), o.dual_prox(rows, 0.5)[e])
