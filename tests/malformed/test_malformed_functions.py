"""Malformed arguments of the tools around a solve: theory, inference, tuning, laws, data sets, and what a solution does.

The rows are (place, value, expected error, what its message must name), as for the constructors.
"""

from __future__ import annotations

import numpy as np
import pytest
from bad_input import CHAIN, CLUSTERS, DATA, FRAME, FUSION, RIDGE, problem
from malformed_values import (
    NOT_A_COUNT,
    NOT_A_FRACTION,
    NOT_A_GRAPH,
    NOT_A_MATRIX,
    NOT_A_NAME,
    NOT_A_NUMBER,
    NOT_A_PROBLEM,
    NOT_A_SEED,
    NOT_A_SWITCH,
    NOT_POSITIVE,
    wrong_answers,
)

import graphreg as gr
from graphreg import inference, testing, theory, tuning
from graphreg.datasets import random_problem, wild_problem
from graphreg.errors import GraphError, GraphregError, MethodError, ModelError

NONE = {"nothing": None}
LAM = gr.Parameter(0.1, "lam")
POSED = problem(LAM * FUSION, 1e-3 * RIDGE)
SQUARES = gr.SquaredLoss(DATA)
TRUTH = {label: [0.0, 1.0, 0.0] for label in "abc"}


def without(kind, *names):
    return {name: value for name, value in kind.items() if name not in names}


def path(**arguments):
    return tuning.path(POSED, **({"strengths": [0.1], "method": gr.PrimalDual()} | arguments))


def validated(**arguments):
    return tuning.cross_validate(POSED, **({"grid": [0.1], "folds": 2, "method": gr.PrimalDual()} | arguments))


STRENGTHS = {
    "text": "ten",
    "zero": [0.0],
    "minus": [1.0, -1.0],
    "nan": [np.nan],
    "infinite": [np.inf],
    "empty": [],
    "text inside": ["1"],
    "true": True,
    "half": 2.5,
    "one": 1,
    "complex": [1j],
    "huge": [10**400],
    "masked": np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "two axes": np.ones((2, 2)),
    "a set": {0.1, 0.2},
}
NOT_A_TRUTH = {
    "nothing": None,
    "text": "truth",
    "number": 3.0,
    "nan": {"a": [0.0, np.nan, 0.0], "b": [0.0] * 3, "c": [0.0] * 3},
    "short": np.zeros((2, 3)),
    "complex": np.zeros((3, 3)) * 1j,
    "masked": np.ma.masked_array(np.zeros((3, 3)), mask=np.eye(3)),
    "lacks": {"a": [0.0] * 3, "b": [0.0] * 3},
    "unknown": {**{x: [0.0] * 3 for x in "abc"}, "z": [0.0] * 3},
    "ragged": {"a": [0.0], "b": [0.0] * 3, "c": [0.0] * 3},
    "texts": {x: ["0", "1", "2"] for x in "abc"},
    "a set": {0.0, 1.0},
}

PLACES = {
    # ---- paths, cross-validation, strengths
    "path(problem)": (tuning.path, NOT_A_PROBLEM | {"a form": POSED.form}, GraphregError, ""),
    "path(strengths)": (lambda v: path(strengths=v), STRENGTHS | NONE, ModelError, ""),
    "path(parameter)": (lambda v: path(parameter=v), {"unknown": "lma", "number": 3, "other": gr.Parameter(1.0)}, ModelError, ""),
    "path(gap)": (lambda v: path(gap=v), without(NOT_POSITIVE, "zero", "minus zero") | NONE, ModelError, "gap"),
    "path(rounds)": (lambda v: path(rounds=v), NOT_A_COUNT, ModelError, "rounds"),
    "path(seed)": (lambda v: path(seed=v), NOT_A_SEED | NONE, ModelError, "seed"),
    "path(progress)": (lambda v: path(progress=v), NOT_A_SWITCH, ModelError, "progress"),
    "path(method)": (lambda v: path(method=v), {"text": "exact", "the class": gr.Exact, "number": 1}, GraphregError, "method"),
    "path(on_failure)": (lambda v: path(on_failure=v), NOT_A_NAME | NONE, ModelError, "on_failure"),
    "cross_validate(problem)": (tuning.cross_validate, NOT_A_PROBLEM, GraphregError, ""),
    "cross_validate(grid)": (lambda v: validated(grid=v), without(STRENGTHS, "one"), ModelError, ""),
    "cross_validate(folds)": (
        lambda v: validated(folds=v), {"one": 1, "zero": 0, "text": "five", "half": 2.5, "true": True, "many": 10**6, "nan": np.nan, "nothing": None, "huge": 10**400}, ModelError, "fold",
    ),
    "cross_validate(by)": (lambda v: validated(by=v), NOT_A_NAME | NONE, ModelError, "by"),
    "cross_validate(scoring)": (lambda v: validated(scoring=v), {"unknown": "acuracy", "number": 3, "true": True, "a list": ["loss"]}, ModelError, "scor"),
    "cross_validate(rule)": (lambda v: validated(rule=v), NOT_A_NAME | NONE, ModelError, "rule"),
    "cross_validate(seed)": (lambda v: validated(seed=v), NOT_A_SEED | NONE, ModelError, "seed"),
    "cross_validate(jobs)": (lambda v: validated(jobs=v), without(NOT_A_COUNT, "minus one") | NONE, ModelError, "jobs"),
    "cross_validate(refit)": (lambda v: validated(refit=v), NOT_A_SWITCH | NONE, ModelError, "refit"),
    "cross_validate(gap)": (lambda v: validated(gap=v), without(NOT_POSITIVE, "zero", "minus zero") | NONE, ModelError, "gap"),
    "cross_validate(progress)": (lambda v: validated(progress=v), NOT_A_SWITCH, ModelError, "progress"),
    "noise_strength(quantile)": (lambda v: tuning.noise_strength(POSED, v), NOT_A_FRACTION | NONE, ModelError, "quantile"),
    "noise_strength(draws)": (lambda v: tuning.noise_strength(POSED, draws=v), NOT_A_COUNT | NONE, ModelError, "draws"),
    "noise_strength(covariance)": (lambda v: tuning.noise_strength(POSED, covariance=v), NOT_A_NAME | NONE, MethodError, "covariance"),
    "noise_strength(seed)": (lambda v: tuning.noise_strength(POSED, seed=v), NOT_A_SEED, ModelError, "seed"),
    "strength_max(problem)": (theory.strength_max, NOT_A_PROBLEM, GraphregError, ""),
    "strength_max(parameter)": (lambda v: theory.strength_max(POSED, v), {"unknown": "lma", "number": 3, "other": gr.Parameter(1.0)}, ModelError, ""),
    "compare(problem)": (gr.compare, NOT_A_PROBLEM, GraphregError, ""),
    "compare(methods)": (lambda v: gr.compare(POSED, v), {"text": "exact", "the class": [gr.Exact], "texts": ["exact"], "number": 3, "empty": []}, GraphregError, "method"),
    "compare(gap)": (lambda v: gr.compare(POSED, [gr.PrimalDual()], gap=v), without(NOT_POSITIVE, "zero", "minus zero") | NONE, ModelError, "gap"),
    "compare(seconds)": (lambda v: gr.compare(POSED, [gr.PrimalDual()], seconds=v), without(NOT_POSITIVE, "infinity"), ModelError, "seconds"),
    "compare(seed)": (lambda v: gr.compare(POSED, [gr.PrimalDual()], seed=v), NOT_A_SEED, ModelError, "seed"),
    # ---- theory
    "constants(problem)": (theory.constants, NOT_A_PROBLEM, GraphregError, ""),
    "recovery(clusters)": (lambda v: theory.recovery(POSED, v), {"nothing": None, "text": "p", "number": 3, "unknown": {"p": ["a", "b", "z"]}, "twice": {"p": ["a", "b"], "q": ["b", "c"]}, "lacks": {"p": ["a"]}}, GraphregError, ""),
    "error_bound(truth)": (lambda v: theory.error_bound(POSED, v), NOT_A_TRUTH, GraphregError, ""),
    "error_bound(level)": (lambda v: theory.error_bound(POSED, TRUTH, level=v), NOT_A_FRACTION | NONE, MethodError, "level"),
    "error_bound(draws)": (lambda v: theory.error_bound(POSED, TRUTH, draws=v), NOT_A_COUNT | NONE, MethodError, "draws"),
    "graph_fidelity(graph)": (lambda v: theory.graph_fidelity(v, TRUTH), NOT_A_GRAPH, GraphError, ""),
    "graph_fidelity(truth)": (lambda v: theory.graph_fidelity(CHAIN, v), without(NOT_A_TRUTH, "short"), GraphregError, ""),
    "algebraic_connectivity(graph)": (theory.algebraic_connectivity, NOT_A_GRAPH, GraphError, ""),
    "algebraic_connectivity(weighted)": (lambda v: theory.algebraic_connectivity(CHAIN, v), NOT_A_SWITCH | NONE, MethodError, "weighted"),
    "compatibility_factor(penalty)": (lambda v: theory.compatibility_factor(CHAIN, [("a", "b")], v), {"unknown": "l7", "number": 3, "nothing": None, "a class": gr.L2}, GraphregError, ""),
    "compatibility_factor(edges)": (lambda v: theory.compatibility_factor(CHAIN, v), {"unknown": [("a", "z")], "no edge": [("a", "c")], "nothing": None, "text": "ab", "number": 3}, GraphregError, ""),
    "compatibility_factor(features)": (lambda v: theory.compatibility_factor(CHAIN, [("a", "b")], features=v), NOT_A_COUNT | NONE, MethodError, "features"),
    "rate(samples)": (lambda v: theory.rate(CHAIN, TRUTH, v, 3), NOT_A_COUNT | NONE, MethodError, "samples"),
    "rate(features)": (lambda v: theory.rate(CHAIN, TRUTH, 10, v), NOT_A_COUNT | NONE, MethodError, "features"),
    "rate(noise)": (lambda v: theory.rate(CHAIN, TRUTH, 10, 3, noise=v), NOT_POSITIVE | NONE, MethodError, "noise"),
    "well_connected(demand)": (lambda v: theory.well_connected(CHAIN, v), {"nothing": None, "text": "a", "nan": np.nan, "minus": -1.0, "short": [1.0], "unknown": {"z": 1.0}, "complex": 1j, "masked": np.ma.masked_array([1.0] * 3, mask=[1, 0, 0])}, GraphregError, ""),
    "mixing(graph)": (theory.mixing, NOT_A_GRAPH, GraphError, ""),
    "mixing(mixing)": (lambda v: theory.mixing(CHAIN, v), without(NOT_A_MATRIX, "number") | NONE | {"unknown": "metropolis-ish", "rows": np.eye(3) * 2}, GraphregError, "mixing"),
    "mixing(lazy)": (lambda v: theory.mixing(CHAIN, lazy=v), NOT_A_SWITCH | NONE, MethodError, "lazy"),
    "largest_network(T)": (theory.largest_network, NOT_A_COUNT | NONE, MethodError, "T"),
    "largest_network(exponent)": (lambda v: theory.largest_network(100, v), NOT_A_NUMBER | NONE | {"infinity": np.inf}, MethodError, "exponent"),
    # ---- inference
    "edge_tests(loss)": (lambda v: inference.edge_tests(v, CHAIN), NOT_A_PROBLEM | {"a penalty": gr.L2()}, GraphregError, ""),
    "edge_tests(graph)": (lambda v: inference.edge_tests(SQUARES, v), without(NOT_A_GRAPH, "nothing"), GraphregError, ""),
    "edge_tests(covariance)": (lambda v: inference.edge_tests(SQUARES, CHAIN, covariance=v), NOT_A_NAME | NONE, MethodError, "covariance"),
    "edge_tests(correction)": (lambda v: inference.edge_tests(SQUARES, CHAIN, correction=v), NOT_A_NAME, MethodError, "correction"),
    "edge_tests(alpha)": (lambda v: inference.edge_tests(SQUARES, CHAIN, alpha=v), NOT_A_FRACTION | NONE, MethodError, "alpha"),
    "edge_tests(features)": (lambda v: inference.edge_tests(SQUARES, CHAIN, features=v), {"unknown": ["rian"], "number": 3, "empty": [], "a set": {"rain"}}, GraphregError, "feature"),
    "estimate(rounds)": (lambda v: inference.estimate(POSED, v), NOT_A_COUNT, GraphregError, ""),
    "hierarchical(loss)": (inference.hierarchical, NOT_A_PROBLEM, GraphregError, ""),
    "hierarchical(clusters)": (lambda v: inference.hierarchical(SQUARES, v), {"text": "p", "number": 3, "a list": [["a"]], "empty": {}, "unknown": {"p": ["a", "b", "c", "z"]}}, GraphregError, ""),
    "hierarchical(components)": (lambda v: inference.hierarchical(SQUARES, CLUSTERS, v), {"text": "one", "number": 1.0, "short": [1.0], "complex": [1j, 1.0, 1.0], "masked": np.ma.masked_array([1.0] * 3, mask=[1, 0, 0])}, GraphregError, "components"),
    "hierarchical(method)": (lambda v: inference.hierarchical(SQUARES, CLUSTERS, method=v), NOT_A_NAME | NONE, GraphregError, "method"),
    "james_stein(loss)": (inference.james_stein, NOT_A_PROBLEM, GraphregError, ""),
    # ---- laws and generators
    "check_loss(loss)": (testing.check_loss, NOT_A_PROBLEM | {"a penalty": gr.L2(), "the class": gr.SquaredLoss}, GraphregError, "loss"),
    "check_penalty(penalty)": (testing.check_penalty, NOT_A_PROBLEM | {"a loss": SQUARES, "the class": gr.L2}, GraphregError, "penalty"),
    "check_penalty(k)": (lambda v: testing.check_penalty(gr.L2(), v), without(NOT_A_COUNT, "a list", "an array of one", "an array of two", "a set") | NONE | {"zeros": [0]}, GraphregError, "k"),
    "check_penalty(seed)": (lambda v: testing.check_penalty(gr.L2(), 1, v), NOT_A_SEED | NONE, GraphregError, "seed"),
    "check_penalty(tolerance)": (lambda v: testing.check_penalty(gr.L2(), 1, tolerance=v), NOT_POSITIVE | NONE, GraphregError, "tolerance"),
    "check_method(method)": (testing.check_method, {"text": "PrimalDual", "the class": gr.PrimalDual, "exact": gr.Exact(), "number": 1, "nothing": None}, GraphregError, "method"),
    "check_method(rounds)": (lambda v: testing.check_method(gr.PrimalDual(), rounds=v), NOT_A_COUNT | NONE, GraphregError, "rounds"),
    "random_problem(seed)": (random_problem, NOT_A_SEED | NONE, GraphregError, "seed"),
    "wild_problem(seed)": (wild_problem, NOT_A_SEED | NONE, GraphregError, "seed"),
    "random_problem(loss)": (lambda v: random_problem(0, loss=v), {"unknown": "SquaredLos", "number": 3, "a penalty": gr.L2, "an object": SQUARES}, GraphregError, ""),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_malformed_arguments_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}


@pytest.fixture(scope="module")
def solved():
    return POSED.solve(gr.PrimalDual())


DONE = {
    "predict(frame)": (lambda s, v: s.predict(v), {"nothing": None, "text": "new.csv", "number": 3, "an array": np.eye(3), "no rows": FRAME.iloc[:0], "no column": FRAME.drop(columns="rain"), "texts": FRAME.assign(rain="wet")}, GraphregError, ""),
    "predict(kind)": (lambda s, v: s.predict(FRAME, v), NOT_A_NAME | NONE, GraphregError, "kind"),
    "clusters(prove)": (lambda s, v: s.clusters(prove=v), NOT_A_SWITCH | NONE, GraphregError, "prove"),
}  # fmt: skip


@pytest.mark.parametrize("place", DONE)
def test_malformed_questions_to_a_solution_are_refused_by_name(place, solved):
    build, values, error, part = DONE[place]
    assert wrong_answers(lambda v: build(solved, v), values, error, part) == {}


def test_the_corpus_is_as_large_as_it_is_said_to_be():
    from test_malformed_arguments import PLACES as ARGUMENTS

    assert sum(len(values) for places in (ARGUMENTS, PLACES, DONE) for _, values, *_ in places.values()) > 2000
