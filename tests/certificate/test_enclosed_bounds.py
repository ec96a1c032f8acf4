"""Lower and upper bounds against exact arithmetic: no lower bound above P at any point, no upper one below."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from box_cases import BOXES, LINE, box_holds, enclosed, moved, number, numbers

import graphreg as gr
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.stored import as_stored
from benchmarks.wild import wild_problem
from graphreg.certificate import Enclosure
from graphreg.certificate.enclosure.upper import upper_bound
from graphreg.certificate.repairing.feasible import feasible
from graphreg.datasets import random_problem
from graphreg.form.form import DualPoint

RANDOM = (0, 21, 42, 63, 84, 95, 116, 137, 158, 179, 187, 208, 229, 244)  # every loss; most penalties and structures
WILD = (0, 3, 11, 24, 37, 55, 86, 99, 103)
SLOW = (208, 37)  # one of each


def known(drawn):
    """P in exact arithmetic, for parameters in the order of the form."""
    form = drawn.problem.form
    problem = exact(as_stored(drawn.plain, form))
    order = [form.labels.index(label) for label in drawn.plain.nodes]
    return form, lambda w: problem.at(np.asarray(w)[order])


def points_near(form, w, rng):
    """Feasible points: the one given, 0, and others of several sizes beside it."""
    size = np.abs(w).max(initial=0.0) or 1.0
    others = [w + by * size * rng.standard_normal(form.shape) for by in (1e-9, 1e-2, 1.0)]
    with np.errstate(all="ignore"):
        return [w, *(feasible(form, each) for each in (np.zeros(form.shape), *others))]


def drawn_problems():
    drawn = [(draw, seed) for draw, seeds in ((random_problem, RANDOM), (wild_problem, WILD)) for seed in seeds]
    return [
        pytest.param(draw, seed, id=f"{draw.__name__} {seed}", marks=pytest.mark.whole if seed in SLOW else ())
        for draw, seed in drawn
    ]


@pytest.mark.parametrize(("draw", "seed"), drawn_problems())
def test_no_bound_lies(draw, seed):
    drawn = draw(seed)
    form, P = known(drawn)
    solution = drawn.problem.solve(gap=1e-8, on_failure="return")
    certificate = solution.certificate
    points = points_near(form, certificate.w, np.random.default_rng(seed))
    enclosure = Enclosure(form)
    at = [P(w) for w in points]
    for w, there in zip(points, at, strict=True):
        assert below(certificate.dual, there)
        assert above(upper_bound(form, w), there)
        assert above(upper_bound(form, w, enclosure.structure.designs), there)
    for point in (
        certificate.dual_point,
        form.nothing(),
        DualPoint(form.nothing().flows, form.gradient_prices(points[0])),
    ):
        with np.errstate(all="ignore"):
            lower, plain = enclosure(point).value, enclosure(point, least=-1e300).value
        assert all(below(lower, there) and below(plain, there) for there in at)


@pytest.mark.parametrize("seed", RANDOM)
def test_bounds_are_bounds_by_rounding_alone(seed):
    """Next to a dual point that balances up to rounding there is a bound, and it costs next to nothing."""
    drawn = random_problem(seed)
    certificate = drawn.problem.solve(gap=1e-7, on_failure="return").certificate
    assert certificate.valid
    form = drawn.problem.form
    at_zero = sum(np.abs(block.values(np.zeros(form.shape))).sum() for block in form.samples)
    assert certificate.charge <= 1e-9 * max(abs(certificate.primal), at_zero)


def squares(scale=1.0, shift=0.0, offset=0.0, weights=1.0):
    """Squared losses and squared differences: the optimum is rational."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 3)) * scale
    data = gr.NodeData.from_arrays(
        X, shift + rng.standard_normal(12), np.repeat(range(4), 3), offset=np.full(12, offset)
    )
    return data, gr.SquaredLoss(data) + 0.3 * weights * gr.TotalVariation(LINE, gr.SquaredL2())


WAYS = {
    "tame": {},
    "columns over 12 decades": {"scale": np.array([1e-6, 1.0, 1e6])},
    "shifted by 1e9": {"shift": 1e9},
    "offsets of 1e9": {"offset": 1e9},
    "tiny strength": {"weights": 1e-9},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_rational_optimum_lies_between(way):
    data, model = squares(**WAYS[way])
    problem = gr.Problem(model)
    form = problem.form
    X = [[Fraction(x) for x in row] for row in data.X.tolist()]
    y = [number(a) - number(b) for a, b in zip(data.y, data.offset, strict=True)]
    s, c = [number(v) for v in form.samples[0].scale], [number(v) for v in form.edges[0].weight]
    optimum = least_squares(X, y, s, data.node.tolist(), form.edges[0], c)
    certificate = problem.solve(gap=1e-9, on_failure="return").certificate
    assert Fraction(certificate.dual) <= optimum <= Fraction(certificate.primal)
    assert certificate.relative_gap <= 1e-8


def least_squares(X, y, s, node, edge, c):
    """The optimum of sum s/2 (x'w - y)^2 + sum c/2 ||w_tail - w_head||^2 by rational elimination."""
    d, n = len(X[0]), 4
    A = [[Fraction(0)] * (n * d) for _ in range(n * d)]
    b, constant = [Fraction(0)] * (n * d), Fraction(0)
    for row, target, weight, i in zip(X, y, s, node, strict=True):
        constant += weight * target * target / 2
        for j in range(d):
            b[i * d + j] += weight * row[j] * target
            for k in range(d):
                A[i * d + j][i * d + k] += weight * row[j] * row[k]
    for t, h, weight in zip(edge.tail.tolist(), edge.head.tolist(), c, strict=True):
        for j in range(d):
            for p, q, sign in ((t, t, 1), (h, h, 1), (t, h, -1), (h, t, -1)):
                A[p * d + j][q * d + j] += sign * weight
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n * d):
        for i in range(k + 1, n * d):
            if rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * z for x, z in zip(rows[i], rows[k], strict=True)]
    w = [Fraction(0)] * (n * d)
    for k in reversed(range(n * d)):
        w[k] = (rows[k][-1] - sum(rows[k][j] * w[j] for j in range(k + 1, n * d))) / rows[k][k]
    return constant - sum(x * z for x, z in zip(b, w, strict=True)) / 2


# ---- the boxes that an attempt claims -------------------------------------------------------------------------------
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize("name", BOXES)
def test_a_conserved_point_may_lie_in_the_box(name, noise, monkeypatch):
    box_holds(*moved(name, noise), monkeypatch)


def test_flows_of_a_root_lie_within_their_spread(monkeypatch):
    """Flows R'q of a singular quadratic form, where R'R = Q holds up to rounding only."""
    Q = np.outer([0.1, 0.3, -0.7], [0.1, 0.3, -0.7])
    problem = gr.Problem(gr.SquaredLoss(numbers()) + gr.TotalVariation(LINE, gr.Quadratic(Q)))
    form, point = problem.form, problem.solve(gap=1e-6).certificate.dual_point
    prices, flows, spread, _, _ = enclosed(form, point, monkeypatch)
    R, q = form.edges[0].penalty.root, prices[-1]
    assert len(R) < R.shape[1]
    for e in range(len(q.high)):
        for j in range(R.shape[1]):
            true = sum(number(R[s, j]) * (number(q.high[e, s]) + number(q.low[e, s])) for s in range(len(R)))
            assert abs(true - number(flows[0][e, j])) <= number(spread[0][e, j])


# ---- what once went wrong, or nearly ---------------------------------------------------------------------------------
def test_columns_that_depend_on_one_another_but_in_one_row_of_many():
    """Dummies that add up to the intercept but in the last of 4000 rows, whose target the third column then fits."""
    n = 4000
    rng = np.random.default_rng(1)
    a = np.round(rng.standard_normal(n) * 2**20) / 2**20
    X = np.column_stack([np.ones(n), a, 1.0 - a])
    X[-1] = [1.0, 1.0, 2.0**-40]
    y = rng.standard_normal(n)
    data = gr.NodeData.from_arrays(X, y, np.zeros(n, dtype=int))
    certificate = gr.Problem(gr.SquaredLoss(data, scale="sum")).solve(on_failure="return").certificate
    fit = np.linalg.lstsq(X[:-1, :2], y[:-1], rcond=None)[0]
    fit = np.round(fit * 2**20) / 2**20
    left = [number(t) - number(x[0] * fit[0] + x[1] * fit[1]) for x, t in zip(X[:-1], y[:-1], strict=True)]
    reached = sum(r * r for r in left) / 2  # with the third coefficient the last row costs nothing
    assert Fraction(certificate.dual) <= reached * (1 + Fraction(1, 10**6))


def test_a_box_holds_for_the_exact_difference_to_a_centre():
    """1 - 1e-20 is not at least 1, whatever it is rounded to."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.array([0.0, 1.0]), [0, 0])
    for center, finite in ((1e-20, False), (-1e-20, True), (0.0, True)):
        form = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.Box(1.0, 2.0), center=[center])).form
        assert np.isfinite(upper_bound(form, np.array([[1.0 + 1e-15]])))
        if not finite or center == 0.0:
            assert np.isfinite(upper_bound(form, np.array([[1.0]]))) == finite


@pytest.mark.parametrize("scale", [1e-160, 1e-170])
def test_what_underflows_is_not_nothing(scale):
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    pair = nx.path_graph(2)
    w = np.array([[scale], [0.0]])
    assert upper_bound(gr.Problem(gr.SquaredLoss(data)).form, w) > 0.0
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(pair, gr.L2())).form
    assert upper_bound(form, w) >= scale


def test_a_logistic_loss_is_never_nothing():
    data = gr.NodeData.from_arrays(np.array([[1.0], [-1.0]]), [1, 0], [0, 0])
    assert upper_bound(gr.Problem(gr.LogisticLoss(data)).form, np.array([[1e4]])) > 0.0
