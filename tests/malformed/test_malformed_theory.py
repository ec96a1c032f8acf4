"""Malformed arguments of theory and inference.

The rows are (place, value, expected error, what its message must name), as for the constructors.
"""

from __future__ import annotations

import numpy as np
import pytest
from bad_input import CHAIN, CLUSTERS, DATA, FUSION, RIDGE, problem
from malformed_values import (
    NOT_A_COUNT,
    NOT_A_FRACTION,
    NOT_A_GRAPH,
    NOT_A_MATRIX,
    NOT_A_NAME,
    NOT_A_NUMBER,
    NOT_A_PROBLEM,
    NOT_A_SWITCH,
    NOT_POSITIVE,
    without,
    wrong_answers,
)

import graphreg as gr
from graphreg import inference, theory
from graphreg.errors import GraphError, GraphregError, MethodError

NONE = {"nothing": None}
LAM = gr.Parameter(0.1, "lam")
POSED = problem(LAM * FUSION, 1e-3 * RIDGE)
SQUARES = gr.SquaredLoss(DATA)
TRUTH = {label: [0.0, 1.0, 0.0] for label in "abc"}


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
    # ---- theory
    "constants(problem)": (theory.constants, NOT_A_PROBLEM, GraphregError, ""),
    "recovery(clusters)": (
        lambda v: theory.recovery(POSED, v),
        {
            "nothing": None,
            "text": "p",
            "number": 3,
            "unknown": {"p": ["a", "b", "z"]},
            "twice": {"p": ["a", "b"], "q": ["b", "c"]},
            "lacks": {"p": ["a"]},
        },
        GraphregError,
        "",
    ),
    "error_bound(truth)": (lambda v: theory.error_bound(POSED, v), NOT_A_TRUTH, GraphregError, ""),
    "error_bound(level)": (
        lambda v: theory.error_bound(POSED, TRUTH, level=v),
        NOT_A_FRACTION | NONE,
        MethodError,
        "level",
    ),
    "error_bound(draws)": (
        lambda v: theory.error_bound(POSED, TRUTH, draws=v),
        NOT_A_COUNT | NONE,
        MethodError,
        "draws",
    ),
    "graph_fidelity(graph)": (lambda v: theory.graph_fidelity(v, TRUTH), NOT_A_GRAPH, GraphError, ""),
    "graph_fidelity(truth)": (
        lambda v: theory.graph_fidelity(CHAIN, v),
        without(NOT_A_TRUTH, "short"),
        GraphregError,
        "",
    ),
    "algebraic_connectivity(graph)": (theory.algebraic_connectivity, NOT_A_GRAPH, GraphError, ""),
    "algebraic_connectivity(weighted)": (
        lambda v: theory.algebraic_connectivity(CHAIN, v),
        NOT_A_SWITCH | NONE,
        MethodError,
        "weighted",
    ),
    "compatibility_factor(penalty)": (
        lambda v: theory.compatibility_factor(CHAIN, [("a", "b")], v),
        {"unknown": "l7", "number": 3, "nothing": None, "a class": gr.L2},
        GraphregError,
        "",
    ),
    "compatibility_factor(edges)": (
        lambda v: theory.compatibility_factor(CHAIN, v),
        {"unknown": [("a", "z")], "no edge": [("a", "c")], "nothing": None, "text": "ab", "number": 3},
        GraphregError,
        "",
    ),
    "compatibility_factor(features)": (
        lambda v: theory.compatibility_factor(CHAIN, [("a", "b")], features=v),
        NOT_A_COUNT | NONE,
        MethodError,
        "features",
    ),
    "rate(samples)": (lambda v: theory.rate(CHAIN, TRUTH, v, 3), NOT_A_COUNT | NONE, MethodError, "samples"),
    "rate(features)": (lambda v: theory.rate(CHAIN, TRUTH, 10, v), NOT_A_COUNT | NONE, MethodError, "features"),
    "rate(noise)": (lambda v: theory.rate(CHAIN, TRUTH, 10, 3, noise=v), NOT_POSITIVE | NONE, MethodError, "noise"),
    "well_connected(demand)": (
        lambda v: theory.well_connected(CHAIN, v),
        {
            "nothing": None,
            "text": "a",
            "nan": np.nan,
            "minus": -1.0,
            "short": [1.0],
            "unknown": {"z": 1.0},
            "complex": 1j,
            "masked": np.ma.masked_array([1.0] * 3, mask=[1, 0, 0]),
        },
        GraphregError,
        "",
    ),
    "mixing(graph)": (theory.mixing, NOT_A_GRAPH, GraphError, ""),
    "mixing(mixing)": (
        lambda v: theory.mixing(CHAIN, v),
        without(NOT_A_MATRIX, "number") | NONE | {"unknown": "metropolis-ish", "rows": np.eye(3) * 2},
        GraphregError,
        "mixing",
    ),
    "mixing(lazy)": (lambda v: theory.mixing(CHAIN, lazy=v), NOT_A_SWITCH | NONE, MethodError, "lazy"),
    "largest_network(T)": (theory.largest_network, NOT_A_COUNT | NONE, MethodError, "T"),
    "largest_network(exponent)": (
        lambda v: theory.largest_network(100, v),
        NOT_A_NUMBER | NONE | {"infinity": np.inf},
        MethodError,
        "exponent",
    ),
    # ---- inference
    "edge_tests(loss)": (
        lambda v: inference.edge_tests(v, CHAIN),
        NOT_A_PROBLEM | {"a penalty": gr.L2()},
        GraphregError,
        "",
    ),
    "edge_tests(graph)": (
        lambda v: inference.edge_tests(SQUARES, v),
        without(NOT_A_GRAPH, "nothing"),
        GraphregError,
        "",
    ),
    "edge_tests(covariance)": (
        lambda v: inference.edge_tests(SQUARES, CHAIN, covariance=v),
        NOT_A_NAME | NONE,
        MethodError,
        "covariance",
    ),
    "edge_tests(correction)": (
        lambda v: inference.edge_tests(SQUARES, CHAIN, correction=v),
        NOT_A_NAME,
        MethodError,
        "correction",
    ),
    "edge_tests(alpha)": (
        lambda v: inference.edge_tests(SQUARES, CHAIN, alpha=v),
        NOT_A_FRACTION | NONE,
        MethodError,
        "alpha",
    ),
    "edge_tests(features)": (
        lambda v: inference.edge_tests(SQUARES, CHAIN, features=v),
        {"unknown": ["rian"], "number": 3, "empty": [], "a set": {"rain"}},
        GraphregError,
        "feature",
    ),
    "estimate(rounds)": (lambda v: inference.estimate(POSED, v), NOT_A_COUNT, GraphregError, ""),
    "hierarchical(loss)": (inference.hierarchical, NOT_A_PROBLEM, GraphregError, ""),
    "hierarchical(clusters)": (
        lambda v: inference.hierarchical(SQUARES, v),
        {"text": "p", "number": 3, "a list": [["a"]], "empty": {}, "unknown": {"p": ["a", "b", "c", "z"]}},
        GraphregError,
        "",
    ),
    "hierarchical(components)": (
        lambda v: inference.hierarchical(SQUARES, CLUSTERS, v),
        {
            "text": "one",
            "number": 1.0,
            "short": [1.0],
            "complex": [1j, 1.0, 1.0],
            "masked": np.ma.masked_array([1.0] * 3, mask=[1, 0, 0]),
        },
        GraphregError,
        "components",
    ),
    "hierarchical(method)": (
        lambda v: inference.hierarchical(SQUARES, CLUSTERS, method=v),
        NOT_A_NAME | NONE,
        GraphregError,
        "method",
    ),
    "james_stein(loss)": (inference.james_stein, NOT_A_PROBLEM, GraphregError, ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_arguments_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}
