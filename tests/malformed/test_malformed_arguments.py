"""Malformed arguments, one by one: every constructor and function, every argument, every value that it cannot have.

A row of the corpus is (place, value, expected error, what its message must name). ``graphreg`` refuses each with an
error of its own kind: nothing is accepted in silence, and nothing ends in an error of another library.
"""

from __future__ import annotations

import numpy as np
import pytest
from bad_input import CHAIN, CLUSTERS, DATA, FUSION, problem
from malformed_values import (
    NOT_A_COUNT,
    NOT_A_FRACTION,
    NOT_A_FUNCTION,
    NOT_A_GRAPH,
    NOT_A_MATRIX,
    NOT_A_NAME,
    NOT_A_NUMBER,
    NOT_A_PATH,
    NOT_A_PROBLEM,
    NOT_A_SEED,
    NOT_A_SWITCH,
    NOT_POSITIVE,
    without,
    wrong_answers,
)

import graphreg as gr
from graphreg.errors import CheckpointError, GraphError, GraphregError, MethodError, ModelError, TermError

NONE = {"nothing": None}
POSED = problem(0.1 * FUSION)
SOLVED = POSED.solve()


def solve(**arguments):
    return POSED.solve(gr.PrimalDual(), **({"rounds": 2, "on_failure": "return"} | arguments))


# place -> (build from the value, values it cannot have, error, what the message names)
PLACES = {
    # ---- terms
    "HuberLoss(delta)": (lambda v: gr.HuberLoss(DATA, delta=v), NOT_POSITIVE | NONE, TermError, "delta"),
    "QuantileLoss(tau)": (lambda v: gr.QuantileLoss(DATA, tau=v), NOT_A_FRACTION | NONE, TermError, "tau"),
    "SquaredLoss(scale)": (
        lambda v: gr.SquaredLoss(DATA, scale=v),
        NOT_POSITIVE | NONE,
        TermError,
        "scale",
    ),
    "SquaredLoss(scale of a node)": (
        lambda v: gr.SquaredLoss(DATA, scale={"a": 1.0, "b": v, "c": 1.0}),
        NOT_POSITIVE | NONE,
        TermError,
        "node 'b'",
    ),
    "HuberNorm(delta)": (gr.HuberNorm, NOT_POSITIVE | NONE, TermError, "delta"),
    "Ball(radius)": (gr.Ball, NOT_POSITIVE | NONE, TermError, "radius"),
    "Box(low)": (
        lambda v: problem(gr.NodePenalty(gr.Box(v, 1.0))),
        without(NOT_A_NUMBER, "minus infinity", "an array of two") | {"above": 2.0},
        TermError,
        "low",
    ),
    "Quadratic(Q)": (
        gr.Quadratic,
        NOT_A_MATRIX | NONE | {"not square": np.ones((2, 3)), "indefinite": -np.eye(2)},
        TermError,
        "Q",
    ),
    "Parameter(value)": (gr.Parameter, NOT_POSITIVE | NONE, TermError, ""),
    "Parameter(name)": (
        lambda v: gr.Parameter(1.0, v),
        {"number": 3, "empty": "", "nothing": None, "a list": ["lam"]},
        TermError,
        "name",
    ),
    "strength": (lambda v: v * FUSION, without(NOT_POSITIVE, "masked") | NONE, TermError, ""),
    "TotalVariation(graph)": (lambda v: gr.TotalVariation(v, gr.L2()), NOT_A_GRAPH, GraphError, ""),
    "Consensus(graph)": (gr.Consensus, NOT_A_GRAPH, GraphError, ""),
    "TotalVariation(penalty)": (
        lambda v: gr.TotalVariation(CHAIN, v),
        NOT_A_PROBLEM | {"the class": gr.L2},
        TermError,
        "",
    ),
    "NodePenalty(penalty)": (gr.NodePenalty, NOT_A_PROBLEM | {"the class": gr.L2}, TermError, ""),
    "NodePenalty(weights of a node)": (
        lambda v: problem(gr.NodePenalty(gr.L2(), weights={"a": 1.0, "b": v, "c": 1.0})),
        NOT_POSITIVE | NONE,
        TermError,
        "'b'",
    ),
    "edge weight": (
        lambda v: gr.Graph.from_edges([("a", "b"), ("b", "c")], weights=[1.0, v]),
        NOT_POSITIVE | NONE,
        GraphError,
        "",
    ),
    "Hierarchy(weights)": (lambda v: gr.Hierarchy(CLUSTERS, (1.0, v)), NOT_POSITIVE | NONE, TermError, "level 2"),
    "Hierarchy.from_alpha(alpha)": (
        lambda v: gr.Hierarchy.from_alpha(CLUSTERS, alpha=v, gamma=1.0),
        NOT_A_NUMBER | NONE | {"above": 1.5, "below": -0.5},
        TermError,
        "alpha",
    ),
    "Hierarchy.from_alpha(gamma)": (
        lambda v: gr.Hierarchy.from_alpha(CLUSTERS, alpha=0.5, gamma=v),
        NOT_POSITIVE | NONE,
        TermError,
        "gamma",
    ),
    # ---- problems and solving
    "Problem(model)": (
        gr.Problem,
        NOT_A_PROBLEM | {"the class": gr.SquaredLoss, "a term alone": gr.L2()},
        TermError,
        "",
    ),
    "solve(method)": (
        POSED.solve,
        {"text": "exact", "number": 3, "the class": gr.Exact, "a list": [gr.Exact()], "true": True},
        MethodError,
        "method",
    ),
    "solve(gap)": (lambda v: solve(gap=v), without(NOT_POSITIVE, "zero", "minus zero") | NONE, ModelError, "gap"),
    "solve(rounds)": (lambda v: solve(rounds=v), NOT_A_COUNT, ModelError, "rounds"),
    "solve(seconds)": (lambda v: solve(seconds=v), without(NOT_POSITIVE, "infinity"), ModelError, "seconds"),
    "solve(seed)": (lambda v: solve(seed=v), NOT_A_SEED, ModelError, "seed"),
    "solve(start)": (lambda v: solve(start=v), NOT_A_MATRIX, ModelError, "start"),
    "solve(callback)": (lambda v: solve(callback=v), NOT_A_FUNCTION, ModelError, "callback"),
    "solve(observe)": (
        lambda v: solve(observe=v),
        {"a view that is none": "x", "number": 3, "a set": {"w"}, "a list of numbers": [1.0], "true": True, "none": []},
        MethodError,
        "observer",
    ),
    "solve(observe by functions)": (
        lambda v: solve(observe={"error": v}),
        without(NOT_A_FUNCTION, "nothing") | NONE | {"a name": "w"},
        MethodError,
        "'error'",
    ),
    "solve(observe with names)": (
        lambda v: solve(observe={v: len}),
        {"number": 3, "nothing": None, "a pair": ("w", "u")},
        MethodError,
        "by name",
    ),
    "Observer(rounds)": (lambda v: gr.Observer(rounds=v), NOT_A_COUNT, MethodError, "rounds"),
    "Observer(rounds, each)": (
        lambda v: gr.Observer(rounds=[3, v]),
        without(NOT_A_COUNT, "zero") | NONE,
        MethodError,
        "rounds",
    ),
    "Observer(memory)": (
        lambda v: gr.Observer(memory=v),
        without(NOT_POSITIVE, "infinity", "huge") | NONE,
        MethodError,
        "memory",
    ),
    "solve(progress)": (lambda v: solve(progress=v), NOT_A_SWITCH, ModelError, "progress"),
    "solve(checkpoint)": (lambda v: solve(checkpoint=v), NOT_A_PATH, GraphregError, "checkpoint"),
    "save(path)": (SOLVED.save, NOT_A_PATH, CheckpointError, ""),
    "load(path)": (gr.load, NOT_A_PATH, CheckpointError, ""),
    "load(problem)": (lambda v: gr.load("answer.npz", v), without(NOT_A_PROBLEM, "nothing"), ModelError, ""),
    "load(gap)": (lambda v: gr.load("answer.npz", gap=v), NOT_A_NUMBER | {"minus one": -1.0}, ModelError, "gap"),
    "solve(engine)": (
        lambda v: solve(engine=v),
        {"text": "actors", "the class": gr.Actors, "true": True},
        GraphregError,
        "engine",
    ),
    "solve(on_failure)": (lambda v: solve(on_failure=v), NOT_A_NAME | NONE, ModelError, "on_failure"),
    "compile(form)": (POSED.compile, NOT_A_NAME | NONE, ModelError, "form"),
    # ---- methods
    "Exact(solver)": (gr.Exact, without(NOT_A_NAME, "no name", "empty text"), GraphregError, "solver"),
    "Exact(form)": (lambda v: gr.Exact(form=v), NOT_A_NAME | NONE, MethodError, "form"),
    "PrimalDual(tau)": (lambda v: gr.PrimalDual(tau=v), NOT_POSITIVE, MethodError, "tau"),
    "PrimalDual(tau of a node)": (lambda v: gr.PrimalDual(tau={"b": v}), NOT_POSITIVE | NONE, MethodError, "node 'b'"),
    "PrimalDual(sigma)": (lambda v: gr.PrimalDual(sigma=v), NOT_POSITIVE, MethodError, "sigma"),
    "PrimalDual(balance)": (lambda v: gr.PrimalDual(balance=v), NOT_POSITIVE, MethodError, "balance"),
    "PrimalDual(relaxation)": (
        lambda v: gr.PrimalDual(relaxation=v),
        NOT_POSITIVE | NONE | {"two": 2},
        MethodError,
        "relaxation",
    ),
    "PrimalDual(restarts)": (lambda v: gr.PrimalDual(restarts=v), NOT_A_SWITCH, MethodError, "restarts"),
    "PrimalDual(polish)": (lambda v: gr.PrimalDual(polish=v), NOT_A_SWITCH | NONE, MethodError, "polish"),
    "ADMM(rho)": (lambda v: gr.ADMM(rho=v), NOT_POSITIVE, MethodError, "rho"),
    "ADMM(polish)": (lambda v: gr.ADMM(polish=v), NOT_A_SWITCH | NONE, MethodError, "polish"),
    "FedADMM(rho)": (lambda v: gr.FedADMM(rho=v), NOT_POSITIVE, MethodError, "rho"),
    "FedADMM(batch)": (lambda v: gr.FedADMM(batch=v), NOT_A_COUNT, MethodError, "batch"),
    "FedADMM(while_away)": (lambda v: gr.FedADMM(while_away=v), NOT_A_NAME | NONE, MethodError, "while_away"),
    "FedADMM(average)": (lambda v: gr.FedADMM(average=v), NOT_A_NAME, MethodError, "average"),
    "LocalSGD(step_size)": (lambda v: gr.LocalSGD(step_size=v), NOT_POSITIVE, MethodError, "step_size"),
    "LocalSGD(tau)": (lambda v: gr.LocalSGD(tau=v), NOT_A_COUNT | NONE, MethodError, "tau"),
    "LocalSGD(batch)": (lambda v: gr.LocalSGD(batch=v), NOT_A_COUNT, MethodError, "batch"),
    "LocalSGD(shuffle)": (lambda v: gr.LocalSGD(shuffle=v), NOT_A_SWITCH | NONE, MethodError, "shuffle"),
    "LocalSGD(burn_in)": (lambda v: gr.LocalSGD(burn_in=v), NOT_A_SEED | NONE, MethodError, "burn_in"),
    "AsyncL2GD(p_global)": (
        lambda v: gr.AsyncL2GD(p_global=v),
        without(NOT_A_FRACTION, "zero", "minus zero"),
        MethodError,
        "p_global",
    ),
    "AsyncL2GD(coin)": (lambda v: gr.AsyncL2GD(coin=v), NOT_A_NAME | NONE, MethodError, "coin"),
    "FedADMM(as_printed)": (lambda v: gr.FedADMM(as_printed=v), NOT_A_NAME | NONE, MethodError, "as_printed"),
    "AsyncAL2SGD(as_printed)": (lambda v: gr.AsyncAL2SGD(as_printed=v), NOT_A_NAME | NONE, MethodError, "as_printed"),
    "AsyncAL2SGD(rho)": (lambda v: gr.AsyncAL2SGD(rho=v), NOT_POSITIVE, MethodError, "rho"),
    "IFCA(k)": (lambda v: gr.IFCA(k=v), NOT_A_COUNT, MethodError, "k"),
    "IFCA(starts)": (lambda v: gr.IFCA(starts=v), NOT_A_COUNT | NONE, MethodError, "starts"),
    "FedAvg(local_steps)": (lambda v: gr.FedAvg(local_steps=v), NOT_A_COUNT | NONE, MethodError, "local_steps"),
    "FedAvg(availability)": (
        lambda v: gr.FedAvg(availability=v),
        without(NOT_A_FRACTION, "true") | {"true": True},
        MethodError,
        "availability",
    ),
    "PFedMe(lam)": (lambda v: gr.PFedMe(lam=v), NOT_POSITIVE, MethodError, "lam"),
    "PFedMe(beta)": (lambda v: gr.PFedMe(beta=v), NOT_POSITIVE | NONE, MethodError, "beta"),
    "SubgradientDescent(batch)": (lambda v: gr.SubgradientDescent(batch=v), NOT_A_COUNT, MethodError, "batch"),
    "DecreasingStep(alpha)": (lambda v: gr.DecreasingStep(alpha=v), NOT_POSITIVE | NONE, MethodError, "alpha"),
    "Availability(probability)": (gr.Availability, NOT_A_FRACTION, MethodError, "probability"),
    "Faults(drop)": (
        lambda v: gr.Faults(drop=v),
        without(NOT_A_FRACTION, "zero", "minus zero") | NONE,
        GraphregError,
        "drop",
    ),
    "Faults(delay)": (lambda v: gr.Faults(delay=v), without(NOT_A_SEED, "minus zero") | NONE, GraphregError, "delay"),
    "Faults(reorder)": (
        lambda v: gr.Faults(reorder=v),
        without(NOT_A_FRACTION, "zero", "minus zero") | NONE | {"all": 1.0},
        GraphregError,
        "reorder",
    ),
    "Actors(timeout)": (lambda v: gr.Actors(timeout=v), NOT_POSITIVE | NONE, GraphregError, "timeout"),
    "Actors(processes)": (
        lambda v: gr.Actors(processes=v),
        without(NOT_A_COUNT, "true", "zero") | NONE,
        GraphregError,
        "processes",
    ),
    "Actors(faults)": (
        lambda v: gr.Actors(faults=v),
        {"text": "drop", "number": 0.5, "the class": gr.Faults},
        GraphregError,
        "faults",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_malformed_arguments_are_refused_by_name(place):
    build, values, error, part = PLACES[place]
    assert wrong_answers(build, values, error, part) == {}
