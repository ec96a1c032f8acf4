"""Instances of every loss and penalty of the library: what the laws and the mutants are tried on."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import cvxpy as cp
import numpy as np

import graphreg.terms
from graphreg.inputs.data import NodeData
from graphreg.reading_cvxpy.loss import from_cvxpy as loss_from_cvxpy
from graphreg.reading_cvxpy.penalty import from_cvxpy
from graphreg.reading_prox import from_prox
from graphreg.terms.losses.epsilon_insensitive import SquaredEpsilonInsensitiveLoss
from graphreg.terms.losses.expectile import ExpectileLoss
from graphreg.terms.losses.gamma import GammaLoss
from graphreg.terms.losses.hinge import HingeLoss, SquaredHingeLoss
from graphreg.terms.losses.huber import HuberLoss
from graphreg.terms.losses.logistic import LogisticLoss
from graphreg.terms.losses.multinomial import MultinomialLoss
from graphreg.terms.losses.poisson import PoissonLoss
from graphreg.terms.losses.quantile import QuantileLoss
from graphreg.terms.losses.squared import MeanLoss, SquaredLoss
from graphreg.terms.penalties.ball import Ball
from graphreg.terms.penalties.box import Box
from graphreg.terms.penalties.huber_norm import HuberNorm
from graphreg.terms.penalties.l1 import L1
from graphreg.terms.penalties.l2 import L2
from graphreg.terms.penalties.linf import LInf
from graphreg.terms.penalties.non_negative import NonNegative
from graphreg.terms.penalties.quadratic import Quadratic
from graphreg.terms.penalties.squared_l2 import SquaredL2
from graphreg.terms.penalties.zero import Zero

SOLVER_TOLERANCE = 1e-6  # of penalties whose methods run a conic solver


def samples(y, features=2):
    """Data on three nodes, with the targets y and random features."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((len(y), features)) if features else None
    weights = rng.uniform(0.5, 2.0, len(y))
    return NodeData.from_arrays(X, y, np.arange(len(y)) % 3, weights=weights)


NUMBERS = np.round(2.0 * np.random.default_rng(3).standard_normal(30), 2)
CLASSES = (NUMBERS > 0).astype(int)
COUNTS = np.random.default_rng(6).poisson(np.exp(np.linspace(-2, 2, 30)))  # many of them 0
LARGE = np.array([0.0, 0.5, 1.0, 7.0, 300.0, 20_000.0])
KINDS = np.array(["ash", "beech", "cedar"])[np.arange(30) % 3]
POINTS = np.random.default_rng(4).standard_normal((12, 2))
SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 1.0]])  # of rank 2

LOSSES = [
    SquaredLoss(samples(NUMBERS)),
    SquaredLoss(samples(NUMBERS), scale="sum"),
    HuberLoss(samples(NUMBERS)),
    HuberLoss(samples(NUMBERS), delta=0.3),
    LogisticLoss(samples(CLASSES)),
    LogisticLoss(samples(2 * CLASSES - 1), scale=3.0),
    LogisticLoss(samples(CLASSES == 1), scale={0: 1.0, 1: 2.0, 2: 0.5}),
    MeanLoss(samples(POINTS, features=0)),
    MeanLoss(samples(NUMBERS, features=0)),
    PoissonLoss(samples(COUNTS)),
    PoissonLoss(samples(LARGE), scale="sum"),
    PoissonLoss(samples(np.zeros(6))),
    QuantileLoss(samples(NUMBERS)),
    QuantileLoss(samples(NUMBERS), tau=0.1),
    QuantileLoss(samples(1e3 * NUMBERS), tau=0.9, scale=2.0),
    MultinomialLoss(samples(CLASSES)),
    MultinomialLoss(samples(KINDS)),
    MultinomialLoss(samples(KINDS), classes=("cedar", "ash", "dogwood", "beech", "elm"), scale="sum"),
    MultinomialLoss(samples(np.arange(30) % 5)),
    HingeLoss(samples(CLASSES)),
    HingeLoss(samples(2 * CLASSES - 1), scale="sum"),
    SquaredHingeLoss(samples(CLASSES == 1)),
    SquaredHingeLoss(samples(CLASSES), scale={0: 1.0, 1: 2.0, 2: 0.5}),
    GammaLoss(samples(np.exp(NUMBERS))),
    GammaLoss(samples(LARGE + 1e-3), scale="sum"),
    ExpectileLoss(samples(NUMBERS)),
    ExpectileLoss(samples(1e3 * NUMBERS), tau=0.95, scale=2.0),
    ExpectileLoss(samples(NUMBERS), tau=0.1),
    SquaredEpsilonInsensitiveLoss(samples(NUMBERS)),
    SquaredEpsilonInsensitiveLoss(samples(NUMBERS), epsilon=1.5, scale="sum"),
    loss_from_cvxpy(lambda x, y: cp.logistic(2 * (x - y)) - (x - y) - np.log(2.0), samples(NUMBERS), "log cosh"),
    loss_from_cvxpy(lambda x, y: cp.exp(x) - cp.multiply(y, x), samples(COUNTS), "poisson", scale="sum"),
    loss_from_cvxpy(lambda x, y: cp.huber(x - y, 0.5) + cp.power(x - y, 4) / 8, samples(NUMBERS)),
]

PENALTIES = [
    L1(),
    L2(),
    LInf(),
    SquaredL2(),
    HuberNorm(),
    HuberNorm(0.2),
    Quadratic([[2.0]]),
    Quadratic(SINGULAR),
    Quadratic(np.diag([1.0, 4.0, 0.1])),
    Quadratic(np.diag([1.0, 0.0, 3.0])),
    Ball(),
    Ball(2.5),
    Zero(),
    NonNegative(),
    Box(-1.0, 2.0),
    Box(0.5, np.inf),
    Box(-np.inf, 1.0),
    Box([-np.inf, -1.0, -np.inf], [0.5, 1.0, np.inf]),
]

# What functions of CVXPY are recognised as, on three coordinates.
RECOGNISED = [
    from_cvxpy(function).acting_on(3)
    for function in (
        lambda z: cp.norm(z, 3),
        lambda z: cp.norm(z, 1.5),
        lambda z: cp.norm(z, 7),
        lambda z: 0.3 * cp.norm(z, 1.25),
        lambda z: 2.5 * cp.norm_inf(z),
        lambda z: cp.norm(np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0], [0.3, 0.0, 0.1]]) @ z),
        lambda z: cp.norm(cp.multiply([1.0, 0.5, 2.0], z), 1),
        lambda z: cp.sum(cp.huber(z, 0.5)) + 0.1 * cp.sum(cp.huber(2.0 * z, 3.0)),
        lambda z: cp.sum(cp.pos(cp.abs(z) - 0.2)) + cp.norm1(z[:1]),
        lambda z: cp.sum(cp.maximum(0.3 * z, -0.7 * z)) + cp.sum_squares(cp.pos(z[0])),
        lambda z: cp.pos(cp.norm(z) - 0.05),
        lambda z: 2.0 * cp.huber(cp.norm(z), 0.7),
        lambda z: cp.norm(z[:2]) + 0.7 * cp.norm1(z[2]),
        lambda z: cp.norm(z[1:], "inf") + cp.pos(z[0]),
        lambda z: 0.5 * cp.norm1(z) + cp.norm(z, 2),
        lambda z: cp.norm(cp.multiply([1.0, 0.0, 2.0], z), 1) + cp.norm(z, 3) + 0.2 * cp.sum_squares(z),
        lambda z: cp.norm(z, 2) + 0.2 * cp.sum_squares(z),
        lambda z: cp.sum(cp.pos(z)),
        lambda z: cp.sum(cp.power(cp.abs(z), 1.5)),
        lambda z: cp.sum(cp.power(cp.pos(z), 3)) + cp.norm1(z),
        lambda z: cp.square(cp.norm1(z)),
        lambda z: cp.norm(cp.hstack([z, np.ones(1)])) - 1,
        lambda z: cp.sum_largest(cp.abs(z), 2),
        lambda z: 40.0 * cp.sum_largest(cp.abs(z), 1.5) + 0.3 * cp.norm1(z),
        lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z),
        lambda z: 0.1 * cp.sum_largest(cp.abs(z), 2) + 1e-3 * cp.norm(z) + cp.norm1(z[1:]) + cp.sum_squares(z),
        lambda z: cp.norm(cp.multiply([1.0, 0.5, 2.0], z)) + 3.0 * cp.norm(z),
        lambda z: 100.0 * cp.norm1(cp.diff(z)),
        lambda z: cp.abs(z[0] + 2.0 * z[1] - 0.5 * z[2]),
        lambda z: cp.norm1(cp.diff(z)) + cp.sum_squares(z),
        lambda z: 3.0 * cp.norm1(cp.diff(z)) + 0.2 * cp.abs(z[0]),
    )
]

SOLVED_PENALTIES = [
    from_cvxpy(lambda Z: cp.norm(Z, 2, axis=1), rows=True, name="l2"),
    from_cvxpy(lambda z: cp.norm(z, 3), name="l3"),
    from_cvxpy(lambda z: cp.sum_squares(z) + cp.norm(z, 1), name="elastic"),
    from_cvxpy(lambda z: cp.sum(cp.huber(z)), name="huber"),
    from_cvxpy(lambda z: cp.sum(2 * cp.pos(z) + cp.neg(z)), name="pinball"),
    from_prox(L2().value, L2().prox, L2().cvxpy, "given"),
    from_cvxpy(lambda z: cp.norm_inf(z) + cp.norm(cp.multiply([1.0, 2.0], z)), name="two norms").acting_on(2),
    from_cvxpy(lambda z: cp.norm(cp.pos(z)) + 0.5 * cp.norm_inf(z), name="one-sided").acting_on(2),
]


def concrete_subclasses(base: type) -> Iterator[type]:
    """Every class of the library that derives from ``base`` and is not abstract, by its methods or by its name."""
    for module in pkgutil.walk_packages(graphreg.terms.__path__, "graphreg.terms."):
        importlib.import_module(module.name)
    todo = [base]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        abstract = inspect.isabstract(cls) or cls.__name__.startswith("Abstract")
        if cls.__module__.split(".")[0] == "graphreg" and not abstract:
            yield cls
