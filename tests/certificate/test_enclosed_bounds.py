"""Lower and upper bounds against exact arithmetic: no lower bound above P at any point, no upper one below."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from factories import thinned
from kernel_cases import LINE, exactly, form_of, number, regression, solved

import graphreg as gr
from benchmarks.soundness.exact import above, below, exact
from benchmarks.soundness.stored import as_stored
from benchmarks.wild import wild_problem
from graphreg.certificate import Certifier, Enclosure
from graphreg.certificate.kernel.upper import upper_bound
from graphreg.certificate.repairing.feasible import feasible
from graphreg.datasets import random_problem
from graphreg.form.form import DualPoint

RANDOM = (0, 21, 42, 63, 84, 95, 116, 137, 158, 179, 187, 208, 229, 244)  # every loss; most penalties and structures
WILD = (0, 3, 11, 24, 37, 55, 86, 99, 103)
SLOW = (208, 11, 37, 86, 103)  # what takes longest


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
        assert above(upper_bound(form, w, enclosure.written), there)
    for point in (
        certificate.dual_point,
        form.nothing(),
        DualPoint(form.nothing().flows, form.gradient_prices(points[0])),
    ):
        with np.errstate(all="ignore"):
            lower, plain = enclosure(point).value, enclosure(point, least=-1e300).value
        assert all(below(lower, there) and below(plain, there) for there in at)


@pytest.mark.parametrize("seed", thinned(RANDOM, every=2))
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
    "entries over 300 decades": {
        "scale": 10.0 ** -np.array([[0.0, 90.0, 300.0], [60.0, 0.0, 150.0], [310.0, 71.0, 0.0]] * 4)
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_a_rational_optimum_lies_between(way):
    data, model = squares(**WAYS[way])
    problem = gr.Problem(model)
    form = problem.form
    X = [[exactly(x) for x in row] for row in data.X.tolist()]
    y = [number(a) - number(b) for a, b in zip(data.y, data.offset, strict=True)]
    s, c = [number(v) for v in form.samples[0].scale], [number(v) for v in form.edges[0].weight]
    optimum = least_squares(X, y, s, data.node.tolist(), form.edges[0], c)
    certificate = problem.solve(gap=1e-9, on_failure="return").certificate
    assert exactly(certificate.dual) <= optimum <= exactly(certificate.primal)
    assert certificate.relative_gap <= 1e-8


def least_squares(X, y, s, node, edge, c):
    """The optimum of sum s/2 (x'w - y)^2 + sum c/2 ||w_tail - w_head||^2 by rational elimination."""
    d, n = len(X[0]), 4
    A = [[exactly(0)] * (n * d) for _ in range(n * d)]
    b, constant = [exactly(0)] * (n * d), exactly(0)
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
    w = solved(A, b)
    return constant - sum(x * z for x, z in zip(b, w, strict=True)) / 2


# ---- dual points, and the flows that lie near them -------------------------------------------------------------------
POINTS = {
    "classes along a path": ("classes along a path", 1e-9),
    "squares along a path": ("squares along a path", 1e-9),
    "a consensus": ("a consensus", 1e-12),
    "half lines": ("half lines", 0.0),
    "flows of a root": ("flows of a root", 1e-9),
}


def moved(name):
    """A form, and its prices moved by a little noise: out of balance by as much."""
    case, noise = POINTS[name]
    form = form_of(case)
    rng = np.random.default_rng(5)
    point = Certifier(form).certify(rng.standard_normal(form.shape), None, None, 1e-6).dual_point
    prices = tuple(a * (1.0 + noise * rng.standard_normal(a.shape)) for a in point.prices)
    return form, DualPoint(point.flows, prices)


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("least", [np.inf, -1e300])
def test_a_box_lies_near_the_flows_that_are_given_with_it(name, least):
    form, point = moved(name)
    found = Enclosure(form)(point, least=least)
    assert np.isfinite(found.value)
    for edge, u, flow, spread in zip(form.edges, point.flows, found.dual_point.flows, found.spread, strict=True):
        assert spread.shape == u.shape == (len(edge.tail), form.width(edge))
        size = max(1.0, float(np.abs(u).max(initial=0.0)))
        assert (np.abs(flow - u) + spread <= 1e-5 * size).all()


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("least", [np.inf, -1e300])
def test_the_layout_of_the_flows_is_none_of_a_bounds_business(name, least):
    form, point = moved(name)
    shuffled = DualPoint(tuple(np.asfortranarray(u) for u in point.flows), point.prices)
    one, other = (Enclosure(form)(each, least=least) for each in (point, shuffled))
    np.testing.assert_array_equal(one.lower, other.lower)


def test_what_one_point_prepared_serves_the_next():
    form, point = moved("squares along a path")
    enclosure = Enclosure(form)
    enclosure(point, least=-1e300)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        prices = tuple(a * (1.0 + 1e-7 * rng.standard_normal(a.shape)) for a in point.prices)
        again = DualPoint(point.flows, prices)
        found, fresh = enclosure(again, least=-1e300), Enclosure(form)(again, least=-1e300)
        assert found.value == pytest.approx(fresh.value, rel=1e-9)


def test_a_component_without_a_bound_has_none_in_another_form():
    """Its box need not hold a conserved point: nothing carries over."""
    form, point = moved("squares along a path")
    enclosure = Enclosure(form)
    found = enclosure(point)
    assert np.isfinite(enclosure.beside(found).value)
    lost = replace(found.box, lost=np.ones(form.n_components, dtype=bool))
    assert enclosure.beside(replace(found, box=lost)).value == -np.inf


@pytest.mark.parametrize(("scale", "strength"), [(1.0, 1e-90), (1e-90, 1.0)])
def test_scales_out_of_range_have_no_bound_and_are_named(scale, strength):
    """Around the common model, which the targets ask for, bounds are proved of another form first."""
    data = gr.NodeData.from_arrays(None, [1e6, 1e6 + 1.0, 1e6 + 3.0], list("abc"))
    edges = gr.TotalVariation(nx.path_graph(list("abc")), gr.L2())
    problem = gr.Problem(gr.MeanLoss(data, scale=scale) + strength * edges)
    solution = problem.solve(gr.PrimalDual(), rounds=20, on_failure="return")
    assert not solution.certificate.valid
    assert "out of range" in solution.certificate.note
    alone = replace(problem.form.frozen(), samples=())
    worth = Enclosure(alone).over(alone.nothing().flows)
    assert worth.tolist() == [-np.inf if strength < 1.0 else 0.0]


def test_a_bound_around_the_common_fit_is_one_of_the_problem():
    """Targets around 1e6: the run is around the common fit, and its flows and prices are worth as much here."""
    graph, rng = nx.path_graph(30), np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.standard_normal(300)])
    data = gr.NodeData.from_arrays(X, 1e6 + rng.standard_normal(300), np.arange(300) % 30)
    problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    certificate = problem.solve(gr.PrimalDual(), gap=1e-6).certificate
    again = Enclosure(problem.form)(certificate.dual_point)
    assert certificate.dual <= again.value * (1 + 1e-12)
    assert certificate.dual >= again.value * (1 - 1e-7)


# ---- one number a node, over many decades ----------------------------------------------------------------------------
def line(rng, n, decades, offset, loss):
    """A tree of nodes with one sample each, weights over twice so many decades."""
    ends = np.array([(int(rng.integers(max(i - 3, 0), i)), i) for i in range(1, n)])
    weight, scale = (10.0 ** rng.uniform(-decades, decades, m) for m in (n - 1, n))
    edges = gr.Graph(tuple(range(n)), ends[:, 0], ends[:, 1], weight)
    x, y = 10.0 ** rng.uniform(-2, 2, (n, 1)) * rng.choice([-1.0, 1.0], (n, 1)), rng.standard_normal(n) + offset
    data = gr.NodeData.from_arrays(x, y, np.arange(n), weights=scale)
    return gr.Problem(loss(data, scale="sum") + 0.7 * gr.TotalVariation(edges, gr.L1())).form


def exact_line(form, w, flows):
    """P and Q: the price of a node's one sample is what its flows leave to it."""
    out, P, Q, w = [exactly(0)] * form.n, exactly(0), exactly(0), [number(x) for x in w.ravel()]
    (edge,), (block,) = form.edges, form.samples
    for e, (i, j) in enumerate(zip(edge.tail.tolist(), edge.head.tolist(), strict=True)):
        c, u = number(edge.weight[e]), number(flows[e, 0])
        assert abs(u) <= c
        P += c * abs(w[i] - w[j])
        out[i], out[j] = out[i] - u, out[j] + u
    low, high = block.loss.domain(block.y)
    for r, i in enumerate(block.node.tolist()):
        x, y, s = (number(v) for v in (block.X[r, 0], block.y[r], block.scale[r]))
        z, b = x * w[i] - y, out[i] / x / s
        if isinstance(block.loss, gr.SquaredLoss):
            P, Q = P + s * z * z / 2, Q - s * (b * b / 2 + b * y)
            continue
        P += s * max(number(low[r]) * z, number(high[r]) * z)
        inside = Q is not None and number(low[r]) <= b <= number(high[r])
        Q = Q - s * b * y if inside else None
    return P, Q


@pytest.mark.parametrize(("loss", "seed"), thinned([gr.SquaredLoss, gr.QuantileLoss], range(12), every=3))
def test_bounds_hold_in_exact_arithmetic(loss, seed):
    rng = np.random.default_rng(seed)
    form = line(rng, 8, rng.choice([1.0, 6.0, 12.0]), rng.choice([0.0, 1e9]), loss)
    enclosure, (edge,) = Enclosure(form), form.edges
    for size in (0.0, 1e-6, 1.0):
        share = size * rng.choice([-1.0, 0.0, 1.0, *rng.uniform(-1, 1, 5)], (len(edge.tail), 1))
        u, w = edge.clip(share * edge.weight[:, None]), rng.standard_normal(form.shape) + np.mean(form.samples[0].y)
        P, _ = exact_line(form, w, u)
        assert all(exactly(upper_bound(form, w, designs)) >= P for designs in (None, enclosure.written))
        for least in (np.inf, -1e300):
            found = enclosure(DualPoint((u,), form.gradient_prices(w)), least=least)
            if np.isfinite(found.value):
                assert exactly(found.value) <= P
                assert exactly(found.value) <= exact_line(form, np.zeros(form.shape), 0.0 * u)[0]


# ---- what would break a bound is seen --------------------------------------------------------------------------------
def fused(strength):
    return gr.Problem(gr.SquaredLoss(regression()) + strength * gr.TotalVariation(LINE, gr.L2()))


@pytest.mark.parametrize("stand_in", [0.0, 1e-3])
def test_a_finite_number_for_infinity(stand_in, monkeypatch):
    """Flows of the same problem with a larger strength, offered where nothing may carry as much."""
    certificate, poor = fused(10.0).solve(gap=1e-9).certificate, fused(0.01)
    upper = upper_bound(poor.form, poor.solve(gap=1e-9).certificate.w)
    assert Enclosure(poor.form)(certificate.dual_point).value <= upper
    monkeypatch.setattr(gr.L2, "conjugate_bound", lambda self, u, spread: np.full(len(u), stand_in))
    assert Enclosure(poor.form)(certificate.dual_point).value > upper


def test_an_anchor_twice_as_far(monkeypatch):
    certificate = fused(10.0).solve(gap=1e-10, on_failure="return").certificate
    form, point = certificate.form, certificate.dual_point
    assert Enclosure(form)(point).value <= certificate.primal
    monkeypatch.setattr(gr.SquaredLoss, "anchor", lambda self, y: 2.0 * y)
    assert Enclosure(fused(10.0).form)(point).value > certificate.primal  # another form, of which nothing is kept


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
    form = gr.Problem(gr.SquaredLoss(data, scale="sum")).form
    fit = np.linalg.lstsq(X[:-1, :2], y[:-1], rcond=None)[0]
    fit = np.round(fit * 2**20) / 2**20
    found = [
        Enclosure(form)(DualPoint((), form.gradient_prices(w[None]))).value
        for w in (
            np.append(fit, 0.0),
            np.append(fit, (y[-1] - fit.sum()) * 2.0**40),
            np.linalg.lstsq(X, y, rcond=None)[0],
        )
    ]
    left = [number(t) - number(x[0] * fit[0] + x[1] * fit[1]) for x, t in zip(X[:-1], y[:-1], strict=True)]
    reached = sum(r * r for r in left) / 2  # with the third coefficient the last row costs nothing
    assert all(value == -np.inf or exactly(value) <= reached for value in found)


def beside_separable() -> gr.Problem:
    """A path of four nodes, and beside it a node of which all samples are of one class: no loss there is least."""
    rng, graph = np.random.default_rng(0), nx.path_graph(4)
    graph.add_node(9)
    X = np.vstack([rng.standard_normal((40, 2)), np.eye(2)])
    y = np.append(np.where(X[:40] @ [1.0, -2.0] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0), [1.0, 1.0])
    data = gr.NodeData.from_arrays(X, y, [*np.repeat(np.arange(4), 10), 9, 9])
    return gr.Problem(gr.LogisticLoss(data, scale="sum") + 1e-3 * gr.TotalVariation(graph, gr.LInf()))


def test_what_zero_is_worth_is_enough_where_a_loss_has_no_minimum():
    one = beside_separable()
    certificate = one.solve(gr.InteriorPoint(), on_failure="return").certificate
    (prices,) = certificate.dual_point.prices
    prices = np.concatenate([prices[:-2], np.full_like(prices[-2:], 0.3)])  # which node 9 cannot balance inside
    asked = []
    point = DualPoint(certificate.dual_point.flows, (prices,))
    found = Enclosure(one.form)(point, lambda: asked.append("a point inside"), certificate.dual - 1e-6)
    assert found.value >= certificate.dual - 1e-6
    assert not asked


def test_a_component_without_a_bound_keeps_no_other_from_a_nearer_point(monkeypatch):
    enclosure = Enclosure(beside_separable().form)
    v, tried = np.zeros(enclosure.system.size), []
    nothing = enclosure._nothing(v)

    def bound_from(share):
        lower = np.array([-share if share >= 1e-9 else -np.inf, -np.inf])
        return replace(nothing[0], lower=lower), nothing[1]

    monkeypatch.setattr(Enclosure, "_tried", lambda self, at: (tried.append(at[0]), bound_from(at[0]))[1])
    none = enclosure.form.nothing()
    ones = DualPoint(*(tuple(np.ones_like(each) for each in parts) for parts in (none.flows, none.prices)))
    found = enclosure._pulled(nothing, v, ones)
    assert found[0].lower[0] == -1e-9
    assert len(tried) == len(set(tried))
    tried.clear()
    known = replace(nothing[0], lower=np.array([-1e-15, -np.inf])), nothing[1]
    enclosure._pulled(known, v, ones)
    assert len(tried) == 2  # the nearest and the farthest: no point does for more than what is known
