"""Attainment, judged by exact arithmetic: whatever the scale, the overlap or the shift, no answer is wrong."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from factories import named, thinned

import graphreg as gr
from graphreg.base import clock
from graphreg.certificate import at_infinity, attained, rationals
from graphreg.certificate.attainment import attainment, simplex
from graphreg.certificate.attainment.directions import ConditionPart, allowed
from graphreg.certificate.attainment.recession import conditions, cones_of
from graphreg.datasets import random_problem

SCALES = [1e-12, 1e-8, 1e-7, 1e-5, 1.0, 1e5, 1e9, 1e12]
OVERLAPS = [1e-3, 1e-6, 1e-9, 1e-12, 1e-15]


def logistic(X, y, node=None):
    X = np.asarray(X, dtype=float)
    return gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node or ["a"] * len(y)))


def form_of(X, y):
    return gr.Problem(logistic(X, y)).form


def exactly_attained(X, y):
    """Of two features: candidates are the normals of the samples, the samples, and sums of two of these."""
    rows = [tuple(Fraction(float(x)) * (1 if label else -1) for x in row) for row, label in zip(X, y, strict=True)]
    rows = [row for row in rows if any(row)]
    directions = [v for a, b in rows for v in ((-b, a), (b, -a), (a, b), (-a, -b))]
    directions += [(v[0] + w[0], v[1] + w[1]) for v in directions[::2] for w in directions[1::2]]
    for v in directions:
        moved = [a * v[0] + b * v[1] for a, b in rows]
        if min(moved) >= 0 and max(moved) > 0:
            return False
    return True


def wild(rng, kind):
    """Two features that are separable or nearly so, collinear, shifted or doubled, in any units."""
    m = int(rng.integers(3, 9))
    X, y = rng.standard_normal((m, 2)), rng.integers(0, 2, m)
    v, tiny = rng.standard_normal(2), 10.0 ** -rng.uniform(3, 15)
    if kind == "separable":
        y = (X @ v > 0).astype(int)
    elif kind == "ties":
        X = np.round(2 * X)
    elif kind == "overlap":
        X, y = np.vstack([X, [tiny, 0], [-tiny, 0]]), np.r_[X[:, 0] > 0, 0, 1].astype(int)
    elif kind == "doubled":
        y = (X @ v > 0).astype(int)
        X, y = np.vstack([X, X[0], X[0] + [tiny, 0]]), np.r_[y, 1 - y[0], 1 - y[0]]
    elif kind == "shifted":
        X[:, 0] = 1.0
        X[:, 1] += 10.0 ** rng.uniform(0, 9)
        y = (X[:, 1] > np.median(X[:, 1])).astype(int)
        y[np.argmin(X[:, 1])] = rng.integers(2)
    elif kind == "collinear":
        X[:, 1] = X[:, 0] * (1 + 10.0 ** -rng.uniform(8, 16) * rng.standard_normal(m))
    return X * 10.0 ** rng.uniform(-12, 12, size=2), y


@pytest.mark.parametrize(
    ("kind", "flint"),
    thinned(["any", "separable", "ties", "overlap", "doubled", "shifted", "collinear"], [True, False], every=2),
)
def test_two_features_in_exact_arithmetic(kind, flint, monkeypatch):
    if not flint:
        monkeypatch.setattr(rationals, "_quick", lambda: Fraction)
    rng = np.random.default_rng(len(kind))
    said = []
    for _ in range(16):
        X, y = wild(rng, kind)
        said.append(attained(form_of(X, y)))
        assert said[-1] is exactly_attained(X, y), (X.tolist(), y.tolist())
    assert kind in ("separable", "overlap") or len(set(said)) == 2


@pytest.mark.parametrize(("scale", "method"), thinned(SCALES, [gr.Exact(), gr.PrimalDual()], every=2), ids=named)
def test_separable_data_in_any_units(scale, method):
    problem = gr.Problem(logistic(scale * np.array([[1.0], [2.0], [-1.0], [-3.0]]), [1, 1, 0, 0]))
    assert attained(problem.form) is False
    solution = problem.solve(method, rounds=None if method == gr.Exact() else 200, on_failure="return")
    assert solution.status == "unattained"


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_an_overlap_however_small(overlap, scale):
    X = scale * np.array([[1.0], [2.0], [-1.0], [-3.0], [overlap], [-overlap]])
    problem = gr.Problem(logistic(X, [1, 1, 0, 0, 0, 1]))
    assert attained(problem.form) is True
    assert problem.solve(gr.PrimalDual(), rounds=50, on_failure="return").status != "unattained"


PAIR = nx.path_graph(["a", "b"])
TIED = {
    "fused": lambda loss: loss + 0.1 * gr.TotalVariation(PAIR, gr.L2()),
    "partly": lambda loss: loss + gr.Consensus(PAIR, features=["x0"]),
    "a cone": lambda loss: loss + gr.NodePenalty(gr.NonNegative()),
    "a quadratic": lambda loss: loss + gr.NodePenalty(gr.Quadratic([[1.0, -3.0], [-3.0, 9.0]])),
}


@pytest.mark.parametrize(("name", "scale"), thinned(TIED, [1e-9, 1e-7, 1.0, 1e9], every=4))
def test_units_change_nothing_along_edges(name, scale):
    """Columns in other units are the same problem where edges do not mix them."""
    rng = np.random.default_rng(4)
    said = []
    for _ in range(6):
        X, v = rng.standard_normal((8, 2)), rng.standard_normal(2)
        y = (X @ v > 0).astype(int)
        y[0] = rng.integers(2)
        units = scale if name != "a quadratic" else 1.0
        plain, other = (gr.Problem(TIED[name](logistic(Z, y, list("aaaabbbb")))).form for Z in (X, X * [1.0, units]))
        said.append(attained(other))
        assert said[-1] is attained(plain)
        assert said[-1] is not None
        if said[-1] is False:
            away = at_infinity(other)
            assert away is not None
            assert not away.attained
    assert name == "a quadratic" or len(set(said)) == 2


# ---- directions and multipliers --------------------------------------------------------------------------------------
def recedes_exactly(form, v):
    """True where nothing grows along v (n, d) and some sample falls for ever, in exact arithmetic on the data as
    stored: of floats, or of rational numbers as objects."""
    v = np.asarray(v)
    cones = cones_of(form)
    if v.shape != form.shape or cones is None or not all(cone.exact for cone in cones):
        return False
    found = conditions(form, cones)
    exact = [rationals.rational(x) for x in v.ravel()]
    number = found.unknowns.number.ravel()
    first = {int(q): x for q, x in zip(number[::-1], reversed(exact), strict=True)}
    if any(x != (first[int(q)] if q >= 0 else 0) for q, x in zip(number, exact, strict=True)):
        return False  # coordinates that edges tie together, or hold at 0, move apart
    x = [first[q] / rationals.rational(float(found.scale[q])) for q in range(found.unknowns.count)]
    return allowed(*found.matrices, x)


def test_a_direction_is_one_exactly_or_not_at_all():
    form = form_of([[1.0, 3.0], [-1.0, -3.0], [1.0, 0.0]], [1, 1, 1])  # the first two allow (-3, 1) and (3, -1) only
    assert recedes_exactly(form, np.array([[3.0, -1.0]]))
    assert not recedes_exactly(form, np.array([[-3.0, 1.0]]))
    assert not recedes_exactly(form, np.array([[3.0, -1.0 + 1e-16]]))
    assert not recedes_exactly(form, np.array([[3.0, -1.0 - 2e-16]]))
    assert recedes_exactly(form, np.array([[Fraction(3, 7), Fraction(-1, 7)]], dtype=object))
    assert not recedes_exactly(form, np.zeros((1, 2)))
    assert not recedes_exactly(form, np.zeros((2, 1)))


def test_tied_coordinates_must_agree_exactly():
    form = gr.Problem(logistic([[1.0], [2.0]], [1, 1], ["a", "b"]) + gr.TotalVariation(PAIR, gr.L2())).form
    assert recedes_exactly(form, np.array([[1.0], [1.0]]))
    assert not recedes_exactly(form, np.array([[1.0], [1.0 + 3e-16]]))
    ridge = gr.Problem(logistic([[1.0]], [1]) + gr.NodePenalty(gr.SquaredL2())).form
    assert not recedes_exactly(ridge, np.array([[1.0]]))


@pytest.mark.parametrize("kind", ["separable", "shifted", "doubled"])
def test_the_simplex_method_returns_the_direction_itself(kind):
    rng, seen = np.random.default_rng(3), 0
    for _ in range(12):
        form = form_of(*wild(rng, kind))
        found = conditions(form, cones_of(form))
        for part in found.parts():
            x = simplex.find_direction(part)
            if isinstance(x, list):
                scale = [Fraction(float(found.scale[j])) for j in part.columns]
                v = np.zeros(form.d, dtype=object)
                v[part.columns] = [s * y for s, y in zip(scale, x, strict=True)]
                assert recedes_exactly(form, v[None])
                seen += 1
    assert seen


@pytest.mark.parametrize("seed", [9044, 12394])
def test_many_equations_on_many_unknowns_are_decided(seed):
    """Counts of 0 beside others that make 60 to 145 equations, dependent ones among them."""
    form = random_problem(seed).problem.form
    found = conditions(form, cones_of(form))
    (part,) = (part for part in found.parts() if len(part.columns) > 1)
    assert part.still.shape[0] >= 60
    assert len(part.columns) > 70
    x = simplex.find_direction(part)
    assert isinstance(x, list)
    assert allowed(part.falls, part.slack, part.still, x)
    assert attained(form) is False


@pytest.mark.parametrize("wrong", [1e-3, 1e-9, 0.5])
def test_a_programme_that_errs_is_not_believed(monkeypatch, wrong):
    """Whatever HiGHS says, right answers or none come out."""
    real = attainment.answers
    rng = np.random.default_rng(0)

    def lying(falls, slack, still):
        for answer in real(falls, slack, still):
            other = [each + wrong * rng.standard_normal(each.shape) for each in (answer.x, answer.falls, answer.slack)]
            yield attainment.ProgrammeAnswer(
                rng.choice([-1, 1]) * other[0], other[1], other[2], answer.still, answer.tolerance
            )

    monkeypatch.setattr(attainment, "answers", lying)
    monkeypatch.setattr(simplex, "find_direction", lambda part: None)
    for kind in ("separable", "any", "overlap", "shifted"):
        for _ in range(5):
            X, y = wild(rng, kind)
            assert attained(form_of(X, y)) in (None, exactly_attained(X, y))


@pytest.mark.parametrize("method", [gr.Exact(), gr.PrimalDual()], ids=["exact", "primal-dual"])
def test_what_is_not_known_is_said(monkeypatch, method):
    monkeypatch.setattr(attainment, "answers", lambda *kinds: iter(()))
    monkeypatch.setattr(simplex, "find_direction", lambda part: None)
    X, y = np.random.default_rng(0).standard_normal((20, 2)), [0, 1] * 10
    problem = gr.Problem(logistic(X, y))
    assert attained(problem.form) is None
    monkeypatch.setattr(
        "graphreg.certificate.attainment.directions.ConditionPart.has_no_direction", lambda self, *given: False
    )
    monkeypatch.setattr("graphreg.certificate.certify.cones_of", lambda form: None)  # nor is a dual point asked
    solution = problem.solve(method)
    assert solution.status == "certified"
    assert "not known" in solution.message


def test_large_data_are_settled_by_their_prices():
    rng = np.random.default_rng(0)
    X, node = rng.standard_normal((5000, 4)) * [1.0, 1e-8, 1e8, 1.0], list(np.arange(5000) % 50)
    y = (X[:, 0] + rng.standard_normal(5000) > 0).astype(int)
    loss = gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node))
    form = gr.Problem(loss + 0.1 * gr.TotalVariation(nx.path_graph(50), gr.L2())).form
    point = form.nothing()
    point.prices[0][:] = np.where(y == 1, -0.5, 0.5) * form.samples[0].scale
    with clock.within(5.0):
        assert attained(form, point) in (True, None)
        assert attained(form) is True


@pytest.mark.parametrize("loss", [gr.PoissonLoss, gr.MultinomialLoss])
def test_other_losses_in_any_units(loss):
    rng = np.random.default_rng(0)
    for scale in (1e-10, 1e-7, 1.0, 1e10):
        X = rng.standard_normal((9, 2))
        mixed, alone = rng.integers(0, 3, 9), np.zeros(9, dtype=int)
        mixed[:3] = [0, 1, 2]
        for y in (mixed, alone) if loss is gr.PoissonLoss else (mixed, (X[:, 0] > 0) + (X[:, 0] > 1).astype(int)):
            make = [loss(gr.NodeData.from_arrays(Z, y, ["a"] * 9)) for Z in (X, X * [scale, 1.0])]
            said = [attained(gr.Problem(each).form) for each in make]
            assert said[0] is said[1]
            assert said[0] is not None


@pytest.mark.parametrize(("rank", "separable"), [(1, True), (33, True), (33, False)])
def test_many_unknowns_that_few_equations_tie(rank, separable):
    """Each node is separable along a direction of its own; the edges leave the differences between these free."""
    rng, d = np.random.default_rng(rank), 36
    root = rng.standard_normal((rank, d))
    null = np.linalg.svd(root)[2][rank:]
    w = rng.standard_normal(d) + 3.0 * rng.standard_normal((3, len(null))) @ null
    X, node = rng.standard_normal((120, d)), np.arange(120) % 3
    y = (np.einsum("rd,rd->r", X, w[node]) > 0).astype(int)
    if not separable:
        X, y, node = np.vstack([X, X]), np.r_[y, 1 - y], np.r_[node, node]
    loss = logistic(X, y, [f"n{i}" for i in node])
    tie = gr.TotalVariation(nx.Graph([("n0", "n1"), ("n1", "n2")]), gr.Quadratic(root.T @ root))
    assert attained(gr.Problem(loss + tie).form) is (not separable)


def test_a_part_in_which_no_sample_falls_recedes_nowhere():
    none, one = sp.csr_array((0, 2)), sp.csr_array(np.array([[1.0, 0.0]]))
    part = ConditionPart(np.arange(2), (), none, one, none)
    assert not part.recedes(np.array([1.0, 0.0]))
    part = ConditionPart(np.arange(2), (), one, none, none)
    assert part.recedes(np.array([1.0, 0.0]))


@pytest.mark.parametrize("scale", [0, 5, 140])
def test_products_are_exact(scale):
    """Of numbers of all sizes, the smallest that there are among them."""
    rng = np.random.default_rng(scale)
    M, x = rng.normal(size=(40, 6)) * 10.0 ** rng.uniform(-scale, scale, (40, 6)), rng.normal(size=40)
    x *= 10.0 ** rng.uniform(-scale, scale, 40)
    M[rng.random(M.shape) < 0.3], x[3], x[5] = 0.0, 0.0, 5e-324
    expected = [
        sum((Fraction(a) * Fraction(b) for a, b in zip(M[:, j], x, strict=True)), Fraction(0)) for j in range(6)
    ]
    assert rationals.products(sp.csr_array(M), x) == expected
    assert rationals.products(sp.csr_array((0, 2)), np.zeros(0)) == [0, 0]
