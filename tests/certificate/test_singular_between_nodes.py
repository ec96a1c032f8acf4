"""Singular quadratic forms between nodes with fewer independent samples than columns: what a node's samples do not see
is tied by flows alone, and these obey no law of the samples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import Enclosure

METHODS = [gr.Exact(), gr.PrimalDual(), None]


def twins(X, y, q, strength, n):
    """Two samples with one row of X at each node. Where q is no multiple of the rows, the means are fitted with all
    q'w_i equal: the optimum is sum_i (y_1 - y_2)^2 / 8, exactly."""
    data = gr.NodeData.from_arrays(np.repeat(X, 2, axis=0), y, np.repeat(np.arange(n), 2))
    tied = gr.TotalVariation(gr.Graph.chain(n), gr.Quadratic(np.outer(q, q)))
    optimum = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(y[::2].tolist(), y[1::2].tolist(), strict=True)) / 8
    return gr.Problem(gr.SquaredLoss(data) + strength * tied), optimum


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("q", [(0.3, 0.7), (1.0, 2.0)])
def test_no_bound_lies_above_an_optimum_that_is_known_exactly(scale, q):
    X, y = np.array([[1.0, 2 * scale], [3, -scale], [2, 5 * scale]]), np.array([1.0, -1, 2, 0.5, 0, 3])
    problem, optimum = twins(X, y, q, 1.0, 3)
    assert float(optimum) == 1.90625
    for method in METHODS:
        found = problem.solve(method).certificate
        assert Fraction(found.dual) <= optimum <= Fraction(found.primal)


def test_nor_on_drawn_ones_of_any_units():
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6, 6, size=d)
        problem, optimum = twins(X, rng.normal(size=2 * n), rng.normal(size=d), 0.01 ** rng.integers(0, 2), n)
        for method in METHODS[1:]:
            found = problem.solve(method, rounds=50 if method else None, on_failure="return").certificate
            assert Fraction(found.dual) <= optimum <= Fraction(found.primal)


def test_totals_follow_from_others_only_with_what_stays():
    """Held flows R'q leave something where no sample of a node can answer; nothing says that it vanishes."""
    X, y = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1.0, -1.0, 2.0, 0.5])
    problem, optimum = twins(X, y, (1.0, 2.0), 1.0, 2)
    point = problem.form.nothing()
    point.flows[0][:] = [[0.1, 0.2]]
    point.prices[0][:] = [-0.5, 0.5, 0.375, -0.375]
    enclosure = Enclosure(problem.form)
    v = enclosure.system.flat(point)
    held = np.arange(len(v)) >= enclosure.system.flows[0].first
    assert not np.isfinite(enclosure._next_to(v, held, False)[0].lower).any()
    found = enclosure._next_to(v, held & False, False)[0]
    assert np.isfinite(found.lower).all()
    assert Fraction(float(found.lower.sum())) <= optimum
