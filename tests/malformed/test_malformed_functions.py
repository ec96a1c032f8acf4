"""Malformed arguments of the tools around a solve: tuning, laws, data sets, and what a solution does.

The rows are (place, value, expected error, what its message must name), as for the constructors.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from bad_input import DATA, FRAME, FUSION, RIDGE, problem
from malformed_values import (
    NOT_A_COUNT,
    NOT_A_FRACTION,
    NOT_A_NAME,
    NOT_A_PROBLEM,
    NOT_A_SEED,
    NOT_A_SWITCH,
    NOT_POSITIVE,
    without,
    wrong_answers,
)

import graphreg as gr
from benchmarks.wild import wild_problem
from graphreg import testing, theory, tuning
from graphreg.datasets import random_problem
from graphreg.errors import GraphregError, MethodError, ModelError

NONE = {"nothing": None}
LAM = gr.Parameter(0.1, "lam")
POSED = problem(LAM * FUSION, 1e-3 * RIDGE)
SQUARES = gr.SquaredLoss(DATA)


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
}

PLACES = {
    # ---- paths, cross-validation, strengths
    "path(problem)": (tuning.path, NOT_A_PROBLEM | {"a form": POSED.form}, GraphregError, ""),
    "path(strengths)": (lambda v: path(strengths=v), STRENGTHS | NONE, ModelError, ""),
    "path(parameter)": (
        lambda v: path(parameter=v),
        {"unknown": "lma", "number": 3, "other": gr.Parameter(1.0)},
        ModelError,
        "",
    ),
    "path(gap)": (lambda v: path(gap=v), without(NOT_POSITIVE, "zero", "minus zero") | NONE, ModelError, "gap"),
    "path(rounds)": (lambda v: path(rounds=v), NOT_A_COUNT, ModelError, "rounds"),
    "path(seed)": (lambda v: path(seed=v), NOT_A_SEED | NONE, ModelError, "seed"),
    "path(progress)": (lambda v: path(progress=v), NOT_A_SWITCH, ModelError, "progress"),
    "path(method)": (
        lambda v: path(method=v),
        {"text": "exact", "the class": gr.Exact, "number": 1},
        GraphregError,
        "method",
    ),
    "path(on_failure)": (lambda v: path(on_failure=v), NOT_A_NAME | NONE, ModelError, "on_failure"),
    "cross_validate(problem)": (tuning.cross_validate, NOT_A_PROBLEM, GraphregError, ""),
    "cross_validate(grid)": (lambda v: validated(grid=v), without(STRENGTHS, "one"), ModelError, ""),
    "cross_validate(folds)": (
        lambda v: validated(folds=v),
        {
            "one": 1,
            "zero": 0,
            "text": "five",
            "half": 2.5,
            "true": True,
            "many": 10**6,
            "nan": np.nan,
            "nothing": None,
            "huge": 10**400,
        },
        ModelError,
        "fold",
    ),
    "cross_validate(by)": (lambda v: validated(by=v), NOT_A_NAME | NONE, ModelError, "by"),
    "cross_validate(scoring)": (
        lambda v: validated(scoring=v),
        {"unknown": "acuracy", "number": 3, "true": True, "a list": ["loss"]},
        ModelError,
        "scor",
    ),
    "cross_validate(rule)": (lambda v: validated(rule=v), NOT_A_NAME | NONE, ModelError, "rule"),
    "cross_validate(seed)": (lambda v: validated(seed=v), NOT_A_SEED | NONE, ModelError, "seed"),
    "cross_validate(jobs)": (lambda v: validated(jobs=v), without(NOT_A_COUNT, "minus one") | NONE, ModelError, "jobs"),
    "cross_validate(refit)": (lambda v: validated(refit=v), NOT_A_SWITCH | NONE, ModelError, "refit"),
    "cross_validate(gap)": (
        lambda v: validated(gap=v),
        without(NOT_POSITIVE, "zero", "minus zero") | NONE,
        ModelError,
        "gap",
    ),
    "cross_validate(progress)": (lambda v: validated(progress=v), NOT_A_SWITCH, ModelError, "progress"),
    "noise_strength(quantile)": (
        lambda v: tuning.noise_strength(POSED, v),
        NOT_A_FRACTION | NONE,
        ModelError,
        "quantile",
    ),
    "noise_strength(draws)": (lambda v: tuning.noise_strength(POSED, draws=v), NOT_A_COUNT | NONE, ModelError, "draws"),
    "noise_strength(covariance)": (
        lambda v: tuning.noise_strength(POSED, covariance=v),
        NOT_A_NAME | NONE,
        MethodError,
        "covariance",
    ),
    "noise_strength(seed)": (lambda v: tuning.noise_strength(POSED, seed=v), NOT_A_SEED, ModelError, "seed"),
    "strength_max(problem)": (theory.strength_max, NOT_A_PROBLEM, GraphregError, ""),
    "strength_max(parameter)": (
        lambda v: theory.strength_max(POSED, v),
        {"unknown": "lma", "number": 3, "other": gr.Parameter(1.0)},
        ModelError,
        "",
    ),
    "compare(problem)": (gr.compare, NOT_A_PROBLEM, GraphregError, ""),
    "compare(methods)": (
        lambda v: gr.compare(POSED, v),
        {"text": "exact", "the class": [gr.Exact], "texts": ["exact"], "number": 3, "empty": []},
        GraphregError,
        "method",
    ),
    "compare(gap)": (
        lambda v: gr.compare(POSED, [gr.PrimalDual()], gap=v),
        without(NOT_POSITIVE, "zero", "minus zero") | NONE,
        ModelError,
        "gap",
    ),
    "compare(seconds)": (
        lambda v: gr.compare(POSED, [gr.PrimalDual()], seconds=v),
        without(NOT_POSITIVE, "infinity"),
        ModelError,
        "seconds",
    ),
    "compare(rounds)": (
        lambda v: gr.compare(POSED, [gr.PrimalDual()], rounds=v),
        NOT_A_COUNT,
        ModelError,
        "rounds",
    ),
    "compare(seed)": (lambda v: gr.compare(POSED, [gr.PrimalDual()], seed=v), NOT_A_SEED, ModelError, "seed"),
    "audit(problem)": (lambda v: gr.audit(v, gr.PrimalDual()), NOT_A_PROBLEM, GraphregError, ""),
    "audit(algorithm)": (
        lambda v: gr.audit(POSED, v),
        {"text": "PrimalDual", "the class": gr.PrimalDual, "number": 3, "nothing": None, "no rounds": gr.Exact()},
        MethodError,
        "",
    ),
    "audit(rounds)": (lambda v: gr.audit(POSED, gr.PrimalDual(), rounds=v), NOT_A_COUNT, ModelError, "rounds"),
    "audit(seed)": (lambda v: gr.audit(POSED, gr.PrimalDual(), seed=v), NOT_A_SEED | NONE, ModelError, "seed"),
    "audit(seconds)": (
        lambda v: gr.audit(POSED, gr.PrimalDual(), seconds=v),
        without(NOT_POSITIVE, "infinity") | NONE,
        ModelError,
        "seconds",
    ),
    "audit(claims)": (
        lambda v: gr.audit(POSED, gr.PrimalDual(), claims=v),
        {"unknown": ["locl"], "number": 3, "a number": [3], "text": "local", "a set": {"local"}},
        ModelError,
        "claims",
    ),
    # ---- laws and generators
    "check_loss(loss)": (
        testing.check_loss,
        NOT_A_PROBLEM | {"a penalty": gr.L2(), "the class": gr.SquaredLoss},
        GraphregError,
        "loss",
    ),
    "check_penalty(penalty)": (
        testing.check_penalty,
        NOT_A_PROBLEM | {"a loss": SQUARES, "the class": gr.L2},
        GraphregError,
        "penalty",
    ),
    "check_penalty(k)": (
        lambda v: testing.check_penalty(gr.L2(), v),
        without(NOT_A_COUNT, "bytes", "a list", "an array of one", "an array of two", "a set") | NONE | {"zeros": [0]},
        GraphregError,
        "k",
    ),
    "check_penalty(seed)": (lambda v: testing.check_penalty(gr.L2(), 1, v), NOT_A_SEED | NONE, GraphregError, "seed"),
    "check_penalty(tolerance)": (
        lambda v: testing.check_penalty(gr.L2(), 1, tolerance=v),
        NOT_POSITIVE,
        GraphregError,
        "tolerance",
    ),
    "from_cvxpy(function)": (gr.Penalty.from_cvxpy, {"text": "norm", "number": 1} | NONE, GraphregError, "from_cvxpy"),
    "from_prox(value)": (
        lambda v: gr.Penalty.from_prox(v, gr.L2().prox),
        {"text": "norm", "number": 1} | NONE,
        GraphregError,
        "value",
    ),
    "from_prox(prox)": (
        lambda v: gr.Penalty.from_prox(gr.L2().value, v),
        {"text": "norm", "number": 1} | NONE,
        GraphregError,
        "prox",
    ),
    "check_method(method)": (
        testing.check_method,
        {"text": "PrimalDual", "the class": gr.PrimalDual, "exact": gr.Exact(), "number": 1, "nothing": None},
        GraphregError,
        "method",
    ),
    "check_method(rounds)": (
        lambda v: testing.check_method(gr.PrimalDual(), rounds=v),
        NOT_A_COUNT | NONE,
        GraphregError,
        "rounds",
    ),
    "random_problem(seed)": (random_problem, NOT_A_SEED | NONE, GraphregError, "seed"),
    "wild_problem(seed)": (wild_problem, NOT_A_SEED | NONE, GraphregError, "seed"),
    "random_problem(loss)": (
        lambda v: random_problem(0, loss=v),
        {"unknown": "SquaredLos", "number": 3, "a penalty": gr.L2, "an object": SQUARES},
        GraphregError,
        "",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_arguments_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}


@pytest.fixture(scope="module")
def solved():
    return POSED.solve(gr.PrimalDual())


DONE = {
    "predict(frame)": (
        lambda s, v: s.predict(v),
        {
            "nothing": None,
            "text": "new.csv",
            "number": 3,
            "an array": np.eye(3),
            "no column": FRAME.drop(columns="rain"),
            "texts": FRAME.assign(rain="wet"),
        },
        GraphregError,
        "",
    ),
    "predict(kind)": (lambda s, v: s.predict(FRAME, v), NOT_A_NAME | NONE, GraphregError, "kind"),
    "clusters(prove)": (lambda s, v: s.clusters(prove=v), NOT_A_SWITCH | NONE, GraphregError, "prove"),
}


@pytest.mark.parametrize("place", DONE)
def test_malformed_questions_to_a_solution_are_refused_by_name(place, solved):
    build, values, error, part = DONE[place]
    assert wrong_answers(lambda v: build(solved, v), values, error, part) == {}


ROOM = Path(__file__).parent


def test_the_corpus_is_as_large_as_the_documents_say():
    tables = [
        PLACES,
        DONE,
        *(import_module(each.stem).PLACES for each in ROOM.glob("test_*.py") if each != Path(__file__)),
    ]
    assert sum(len(values) for places in tables for _, values, *_ in places.values()) > 3000
