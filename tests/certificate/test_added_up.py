"""Both bounds from one pass: valid in exact arithmetic at any point, tight near the optimum, and refused elsewhere."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from factories import thinned

import graphreg as gr
from graphreg.base import compiled
from graphreg.certificate import Certifier
from graphreg.certificate.enclosure.sums import MORE
from graphreg.certificate.tilting import AddedUp
from graphreg.certificate.tilting.added_up import ROUNDED
from graphreg.certificate.tilting.in_one_pass import on_a_graph, on_a_line
from graphreg.datasets import random_problem
from graphreg.methods.dynamic_programming._squares import squares
from graphreg.methods.dynamic_programming.dynamic_programming import solved

KINDS = ("line", "chain", "tree", "cycle", "parts")


def graph(rng, kind, n):
    if kind in ("line", "chain"):
        order = np.arange(n) if kind == "line" else rng.permutation(n)
        pairs = list(zip(order[:-1].tolist(), order[1:].tolist(), strict=True))
    elif kind == "tree":
        pairs = [(int(rng.integers(i)), i) for i in range(1, n)]
    elif kind == "cycle":
        pairs = [(i, (i + 1) % n) for i in range(n)] + [(0, n // 2)]
    else:
        pairs = [(i, i + 1) for i in range(n - 1) if i % 4 != 3]
    return pairs


def drawn(rng, kind, n=12, d=1, decades=2.0, offset=0.0, samples=1, features=False):
    """AddedUp with weights over twice so many decades: means, or regressions with one feature."""
    pairs = graph(rng, kind, n)
    ends = np.sort(np.array(pairs), axis=1)
    node = np.concatenate([np.arange(n), rng.integers(0, n, (samples - 1) * n)])
    y = rng.standard_normal((len(node), d)) + offset
    weight, scale = (10.0 ** rng.uniform(-decades, decades, m) for m in (len(pairs), len(node)))
    edges = gr.Graph(tuple(range(n)), ends[:, 0], ends[:, 1], weight)
    if features:
        X = 10.0 ** rng.uniform(-2, 2, (len(node), 1)) * rng.choice([-1.0, 1.0], (len(node), 1))
        loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y[:, 0], node, weights=scale), scale="sum")
    else:
        loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, node, weights=scale), scale="sum")
    return gr.Problem(loss + 0.7 * gr.TotalVariation(edges, gr.L1())).form


def exact(numbers):
    return [Fraction(float(x)) for x in np.ravel(numbers)]


def values(form, w, flows):
    """P and Q, exactly: Q is the sum of the least that the flows leave to the nodes."""
    P = Q = Fraction(0)
    for j in range(form.d):
        column, A, B, C = exact(w[:, j]), *([Fraction(0)] * form.n for _ in range(3))
        for block in form.samples:
            x = exact(np.ones(len(block.node)) if block.X is None else block.X[:, 0])
            y = exact(block.y.reshape(len(block.node), -1)[:, j])
            for i, s, a, b in zip(block.node.tolist(), exact(block.scale), x, y, strict=True):
                P += s * (a * column[i] - b) ** 2 / 2
                A[i], B[i], C[i] = A[i] + s * a * a, B[i] + s * a * b, C[i] + s * b * b / 2
        for edge, flow in zip(form.edges, flows, strict=True):
            ends = zip(edge.tail.tolist(), edge.head.tolist(), exact(edge.weight), exact(flow[:, j]), strict=True)
            for tail, head, c, u in ends:
                assert abs(u) <= c
                P += c * abs(column[tail] - column[head])
                B[tail], B[head] = B[tail] - u, B[head] + u
        Q += sum(c - b * b / (2 * a) for a, b, c in zip(A, B, C, strict=True))
    return P, Q


def points(rng, form):
    """Near the optimum where the form is a forest, and anywhere."""
    if not gr.DynamicProgramming().missing(form):
        yield squares(form)
    w = rng.standard_normal(form.shape) + np.mean(form.samples[0].y)
    shares = [rng.choice([-1.0, 0.0, 1.0, *rng.uniform(-1, 1, 5)], (len(e.tail), form.d)) for e in form.edges]
    yield w, tuple(e.clip(share * e.weight[:, None]) for e, share in zip(form.edges, shares, strict=True))
    yield np.round(w), tuple(np.zeros_like(share) for share in shares)


def random(seed, kind, n=10):
    """A form of a kind, wild or tame."""
    rng = np.random.default_rng(seed)
    features = bool(rng.random() < 0.4)
    d = 1 if features else int(rng.integers(1, 3))
    wild = {"decades": rng.choice([1.0, 6.0, 12.0]), "offset": rng.choice([0.0, 1e9])}
    return rng, drawn(rng, kind, n, d, **wild, samples=int(rng.integers(1, 3)), features=features)


@pytest.mark.parametrize("seed", thinned(range(60), every=4))
def test_the_bounds_hold_in_exact_arithmetic(seed):
    for kind in KINDS:
        rng, form = random(seed, kind)
        for w, flows in points(rng, form):
            found = AddedUp.of(form)(w, flows)
            assert found is not None
            P, Q = values(form, w, flows)
            assert Fraction(found[0].bound) >= P
            assert Fraction(found[1].bound) <= Q


@pytest.mark.parametrize("seed", thinned(range(60), every=4))
def test_the_sums_are_bounded_one_by_one(seed):
    """Also where the rounding of the objective would hide what is missing in the gap."""
    for kind in KINDS:
        rng, form = random(seed, kind, n=5)
        for w, flows in points(rng, form):
            sums = [AddedUp.of(form)._coordinate(j, w, flows)[0] for j in range(form.d)]
            value, off, gap = (sum(map(Fraction, each)) for each in zip(*sums, strict=True))
            P, Q = values(form, w, flows)
            assert abs(value - P) <= off + Fraction(1e-14) * value
            assert gap * Fraction(MORE) >= P - Q


# ---- losses whose slopes end -----------------------------------------------------------------------------------------
ENDING = {
    "huber": lambda data: gr.HuberLoss(data, delta=0.7, scale="sum"),
    "median": lambda data: gr.QuantileLoss(data, scale="sum"),
    "quantile": lambda data: gr.QuantileLoss(data, tau=0.1, scale="sum"),
}


def ending(rng, kind, loss, n=10):
    """One sample a node, with a feature, and squares at some of the nodes."""
    ends = np.sort(np.array(graph(rng, kind, n)), axis=1)
    weight, scale = (10.0 ** rng.uniform(-1, 1, m) for m in (len(ends), n))
    y, x = rng.standard_normal(n), rng.choice([1.0, -1.0, 3.0, 0.1], (n, 1))
    x, y = (np.ones((n, 1)), y) if rng.random() < 0.3 else (x, y + rng.choice([0.0, 1e9]))
    squared = rng.random(n) < rng.choice([0.0, 0.2])
    squared[0] = False
    parts = [
        gr.NodeData.from_arrays(x[some], y[some], np.flatnonzero(some), weights=scale[some])
        for some in (~squared, squared)
        if some.any()
    ]
    model = ENDING[loss](parts[0])
    if squared.any():
        model = model + gr.SquaredLoss(parts[1], scale="sum")
    edges = gr.Graph(tuple(range(n)), ends[:, 0], ends[:, 1], weight)
    return gr.Problem(model + 0.7 * gr.TotalVariation(edges, gr.L1())).form


def exact_loss(loss, r, low, high):
    """h(r), and h*(b) less b times the target, of which the caller knows."""
    if isinstance(loss, gr.QuantileLoss):
        return max(low * r, high * r), lambda b: Fraction(0)
    m = r if isinstance(loss, gr.SquaredLoss) else min(max(r, low), high)
    return m * (r - m / 2), lambda b: b * b / 2


def exact_values(form, w, flows):
    """P and Q, where every node has one sample."""
    out = [Fraction(0)] * form.n
    P = Q = Fraction(0)
    column = exact(w)
    for edge, flow in zip(form.edges, flows, strict=True):
        ends = zip(edge.tail.tolist(), edge.head.tolist(), exact(edge.weight), exact(flow), strict=True)
        for tail, head, c, u in ends:
            assert abs(u) <= c
            P += c * abs(column[tail] - column[head])
            out[tail], out[head] = out[tail] + u, out[head] - u
    for block in form.samples:
        limits = block.loss.domain(block.y)
        rows = zip(block.node.tolist(), exact(block.X), exact(block.y), exact(block.scale), *limits, strict=True)
        for i, x, y, s, low, high in rows:
            squared = isinstance(block.loss, gr.SquaredLoss)
            least, most = (None, None) if squared else (Fraction(float(low)), Fraction(float(high)))
            value, conjugate = exact_loss(block.loss, x * column[i] - y, least, most)
            b = -out[i] / x / s
            assert squared or least <= b <= most
            P, Q = P + s * value, Q - s * (conjugate(b) + b * y)
    return P, Q


@pytest.mark.parametrize("loss", ENDING)
@pytest.mark.parametrize("seed", thinned(range(40), every=4))
def test_slopes_that_end_are_bounded_in_exact_arithmetic(loss, seed):
    for kind in KINDS:
        rng = np.random.default_rng(seed)
        form = ending(rng, kind, loss)
        sums, none = AddedUp.of(form), tuple(np.zeros((len(edge.tail), 1)) for edge in form.edges)
        targets = np.concatenate([block.y / block.X[:, 0] for block in form.samples])
        points = [(each + targets[:, None], none) for each in rng.standard_normal((2, form.n, 1))]
        if kind != "cycle":
            points.append(solved(form)[:2])
        for w, flows in points:
            upper, lower = sums(w, flows)
            near = lower.found.dual_point
            P, Q = exact_values(form, w, near.flows)
            assert Fraction(upper.bound) >= P
            assert Fraction(lower.bound) <= Q
            value, off, gap = map(Fraction, sums._coordinate(0, w, near.flows)[0])
            assert abs(value - P) <= off + Fraction(1e-14) * value
            assert gap * Fraction(MORE) >= P - Q
            size = max(float((block.scale * np.maximum(1.0, np.abs(block.y))).max()) for block in form.samples)
            assert np.abs(form.conservation(near)).max() <= 1e-14 * size
        if kind != "cycle" and np.abs(targets).max() < 1e6:
            assert upper.bound - lower.bound <= 1e-10 * upper.bound


@pytest.mark.parametrize("loss", ENDING)
def test_prices_beyond_their_ends_prove_nothing(loss):
    rng = np.random.default_rng(0)
    form = ending(rng, "line", loss)
    w, (u,) = solved(form)[:2]
    sums = AddedUp.of(form)
    assert sums(w, (u,)) is not None
    c = form.edges[0].weight[:, None]
    assert sums(w, (np.where(np.arange(len(u))[:, None] % 2 == 0, c, -c),)) is None


def test_where_slopes_end_a_node_has_one_sample():
    data = gr.NodeData.from_arrays(np.ones((4, 1)), np.arange(4.0), np.array([0, 1, 1, 2]))
    problem = gr.Problem(gr.QuantileLoss(data) + gr.TotalVariation(nx.path_graph(3), gr.L1()))
    assert AddedUp.of(problem.form)(np.ones((3, 1)), (np.zeros((2, 1)),)) is None
    assert problem.solve().status == "certified"
    none, one = np.zeros(0, int), np.ones(2)
    for order in ([0, 1], [1, 0]):  # a square beside it
        ends = (each[order] for each in (np.array([-0.5, -np.inf]), np.array([0.5, np.inf]), np.array([0.0, 1.0])))
        given = np.zeros(2, int), one, one, np.array([1.0, 2.0])[order], *ends, none, none, np.zeros(0), np.zeros(0)
        assert on_a_graph((*given, np.ones(1)), tuple(np.zeros((3, 1))), (np.empty(2),))[-1] == np.inf


TINY = 2.0**-60
NO_ENDS = (np.zeros(0),) * 3


def test_differences_that_rounding_swallows_are_counted():
    """w - y = 1 + TINY is rounded to 1, which the flow seems to balance."""
    y, w = np.array([-TINY, 2.0]), np.ones(2)
    line = on_a_line((y, np.ones(2), np.ones(1), np.ones(2), w, -np.ones(1)), (np.empty(2),))
    samples, edge = (np.arange(2), np.ones(2), y, np.ones(2)), (np.zeros(1, int), np.ones(1, int), np.ones(1))
    pair = on_a_graph((*samples, *NO_ENDS, *edge, -np.ones(1), w), tuple(np.zeros((3, 2))), (np.empty(2),))
    for gap in (line[-1], pair[-1]):
        assert gap >= TINY**2 / 2


@pytest.mark.parametrize("turned", [False, True])
def test_flows_that_rounding_swallows_are_counted(turned):
    """1 + TINY - 1 is rounded to 0; what bounds the rounding at the other ends costs nothing, as these are stiff."""
    u, stiff, center, others = np.array([1.0, TINY, -1.0]), 2.0**40, np.zeros(3, int), np.arange(1, 4)
    y, s = np.append(0.0, -u / stiff), np.append(1.0, np.full(3, stiff))
    ends = (others, center, np.ones(3), -u) if turned else (center, others, np.ones(3), u)
    given = np.arange(4), np.ones(4), y, s, *NO_ENDS, *ends, np.zeros(4)
    gap = on_a_graph(given, tuple(np.zeros((3, 4))), (np.empty(4),))[-1]
    assert gap >= TINY**2 / 2


def test_prices_that_rounding_moves_are_counted():
    """2^30 + 2^-24 - 2^30 is rounded to 0: the price is off by 2^-24, and so the gap."""
    u, stiff, center, others = np.array([2.0**30, 2.0**-24, -(2.0**30)]), 2.0**60, np.zeros(3, int), np.arange(1, 4)
    y, s = np.append(-1.0, -u / stiff), np.append(1.0, np.full(3, stiff))
    ends = (center, others, np.full(3, 2.0**31), u)
    slopes = np.array([-0.5, *[-np.inf] * 3]), np.array([0.5, *[np.inf] * 3]), np.array([0.0, 1.0, 1.0, 1.0])
    found = np.empty(4)
    given = np.arange(4), np.ones(4), y, s, *slopes, *ends, np.zeros(4)
    gap = on_a_graph(given, tuple(np.zeros((3, 4))), (found,))[-1]
    assert found[0] == 0.0
    assert 0.51 >= gap >= 0.5 + 2.0**-24


def test_prices_over_their_scales_are_rounded():
    """1 / 10 is rounded upwards, away from what it costs."""
    stiff, ends = 2.0**60, (np.zeros(1, int), np.ones(1, int), np.ones(1), -np.ones(1))
    slopes = np.array([-1.0, -np.inf]), np.array([0.125, np.inf]), np.array([0.0, 1.0])
    given = np.arange(2), np.ones(2), np.array([-1.0, 1.0 / stiff]), np.array([10.0, stiff]), *slopes, *ends
    gap = on_a_graph((*given, np.zeros(2)), tuple(np.zeros((3, 2))), (np.empty(2),))[-1]
    assert 0.26 >= gap >= 0.25


@pytest.mark.parametrize("curved", [0.0, 1.0])
def test_predictors_that_rounding_moves_to_their_targets_are_counted(curved):
    """3 fl(1/3) is rounded to 1."""
    w, none, ends = np.array([1.0 / 3.0]), np.zeros(0, int), (np.array([-0.5]), np.array([0.5]), np.array([curved]))
    given = np.zeros(1, int), np.array([3.0]), np.ones(1), np.ones(1), *ends, none, none, np.zeros(0), np.zeros(0), w
    objective, off, gap = on_a_graph(given, tuple(np.zeros((3, 1))), (np.empty(1),))
    r = abs(3 * Fraction(w[0]) - 1)
    exact_one = r * r / 2 if curved else r / 2
    assert objective == 0.0
    assert off >= exact_one > 0
    assert gap >= exact_one


def test_long_sums_lose_nothing():
    n = 64 * 3000
    y, w = np.zeros(n), np.full(n, 0.3)
    for in_line in (True, False):
        if in_line:
            given = y, np.ones(n), np.ones(n - 1), np.ones(2), w, np.zeros(n - 1)
            value = on_a_line(given, (np.empty(n),))[0]
        else:
            none = np.zeros(0, int)
            given = np.arange(n), np.ones(n), y, np.ones(n), *NO_ENDS, none, none, np.zeros(0), np.zeros(0), w
            value = on_a_graph(given, tuple(np.zeros((3, n))), (np.empty(n),))[0]
        assert abs(Fraction(value) - n * Fraction(0.3) ** 2 / 2) <= Fraction(ROUNDED * value)


@pytest.mark.parametrize("share", [1.02, 0.98])
def test_sums_along_a_chain_that_round_one_way_stay_within_their_bound(share):
    """Each of the 127 numbers beside the first is a little more, or less, than half of the last bit of their sum."""
    n, c, sign = 64, 2.0**-27 * 1.125, np.where(np.arange(64) % 2 == 0, 1.0, -1.0)
    z = np.round(share * 2.0**-53 / c * 2.0**80) / 2.0**80
    s, first = np.full(n, 2 * c / z), 2.0000002 / c
    y = sign * z / 2 + sign * 2 * c / s
    s[0], y[0] = c / first, z / 2 + first
    s[-1], y[-1] = c / z, sign[-1] * (z / 2 + z)
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(np.ones((n, 1)), y, np.arange(n), weights=s), scale="sum")
    form = gr.Problem(loss + c * gr.TotalVariation(gr.Graph.chain(n), gr.L1())).form
    w, flows = squares(form)
    found, (P, Q) = AddedUp.of(form)(w, flows), values(form, w, flows)
    assert Fraction(found[0].bound) >= P
    assert Fraction(found[1].bound) <= Q


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_nearly_equal_at_the_optimum(kind):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        form = drawn(rng, "line" if kind == "cycle" else kind, decades=3.0, offset=(0.0, 1e6)[seed % 2])
        upper, lower = AddedUp.of(form)(*squares(form))
        assert upper.bound - lower.bound <= 3e-14 * upper.bound


@pytest.mark.parametrize("d", [1, 2])
def test_in_order_or_not_they_are_the_same(d):
    rng = np.random.default_rng(0)
    n, y = 9, rng.standard_normal((9, d))
    order = rng.permutation(n)
    pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    found = []
    for label in (np.arange(n), order):
        edges = gr.Graph(tuple(range(n)), label[pairs[:, 0]], label[pairs[:, 1]], np.arange(1.0, n))
        loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, label))
        form = gr.Problem(loss + 0.3 * gr.TotalVariation(edges, gr.L1())).form
        assert AddedUp.of(form)._in_line == (label is not order)
        w, flows = squares(form)
        upper, lower = AddedUp.of(form)(w, flows)
        point = lower.found.dual_point
        assert np.abs(form.conservation(point)).max() <= 1e-14
        found.append((w[label], upper.bound, lower.bound))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=0.0, atol=4e-16)
    np.testing.assert_allclose(found[1][1:], found[0][1:], rtol=3e-14)


def test_what_is_no_such_function_of_a_number_has_none():
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(rng.standard_normal((8, 2)), rng.standard_normal(8), np.arange(8) % 4)
    one = gr.NodeData.from_arrays(np.ones((4, 1)), np.arange(4.0), np.arange(4), offset=np.ones(4))
    path, l1 = nx.path_graph(4), gr.TotalVariation(nx.path_graph(4), gr.L1())
    simple = gr.MeanLoss(gr.NodeData.from_arrays(None, np.arange(4.0)[:, None], np.arange(4)))
    assert AddedUp.of(gr.Problem(simple + l1).form) is not None
    for model in (
        gr.SquaredLoss(data) + l1,
        gr.SquaredLoss(one) + l1,
        gr.HingeLoss(gr.NodeData.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], np.arange(4))) + l1,
        gr.SquaredHingeLoss(gr.NodeData.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], np.arange(4))) + l1,
        gr.LogisticLoss(gr.NodeData.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], np.arange(4))) + l1,
        simple + gr.TotalVariation(path, gr.SquaredL2()),
        simple + l1 + gr.NodePenalty(gr.SquaredL2()),
        simple + l1 + gr.NodePenalty(gr.L1()),
    ):
        assert AddedUp.of(gr.Problem(model).form) is None


@pytest.mark.parametrize("kind", ["line", "chain"])
def test_what_proves_nothing_is_refused(kind):
    rng = np.random.default_rng(1)
    form = drawn(rng, kind)
    sums, (w, (u,)) = AddedUp.of(form), squares(form)
    assert sums(w, (u,)) is not None
    over = u.copy()
    over[3] = np.nextafter(form.edges[0].weight[3], np.inf)
    assert sums(w, (over,)) is None
    for bad in (np.nan, np.inf, 1e200):
        far = w.copy()
        far[2] = bad
        assert sums(far, (u,)) is None
        lost = u.copy()
        lost[2] = bad
        assert sums(w, (lost,)) is None


@pytest.mark.parametrize("exponent", [-70, 70])
def test_scales_and_capacities_near_the_end_of_the_range_are_refused(exponent):
    n = 5
    for at_sample in (True, False):
        weights = np.ones(n)
        strengths = np.ones(n - 1)
        (weights if at_sample else strengths)[1] = 10.0**exponent
        edges = gr.Graph(tuple(range(n)), np.arange(n - 1), np.arange(1, n), strengths)
        for label in (np.arange(n), np.arange(n)[::-1]):
            data = gr.NodeData.from_arrays(None, np.arange(float(n))[:, None], label, weights=weights)
            form = gr.Problem(gr.MeanLoss(data, scale="sum") + gr.TotalVariation(edges, gr.L1())).form
            assert AddedUp.of(form)(np.ones((n, 1)), (np.zeros((n - 1, 1)),)) is None


def test_a_node_without_samples_takes_no_flow():
    edges = gr.Graph((0, 1, 2), np.array([0, 1]), np.array([1, 2]), np.ones(2))
    data = gr.NodeData.from_arrays(None, np.array([[0.0], [2.0]]), np.array([0, 2]))
    form = gr.Problem(gr.MeanLoss(data) + 0.5 * gr.TotalVariation(edges, gr.L1())).form
    sums, w = AddedUp.of(form), np.array([[0.5], [1.0], [1.5]])
    assert sums(w, (np.array([[-0.5], [-0.25]]),)) is None
    upper, lower = sums(w, (np.zeros((2, 1)),))
    assert lower.bound <= 0.0
    assert upper.bound == pytest.approx(0.75)
    assert gr.Problem(gr.MeanLoss(data) + 0.5 * gr.TotalVariation(edges, gr.L1())).solve().status == "certified"


@pytest.mark.parametrize("seed", range(4))
def test_compiled_or_not_they_are_the_same(seed):
    pytest.importorskip("numba")
    form = drawn(np.random.default_rng(seed), KINDS[seed % 3], samples=1 + seed % 2)
    point = squares(form)
    plain = AddedUp.of(form)(*point)
    with mock.patch.object(compiled, "LARGE", 0):
        machine = AddedUp.of(form)(*point)
    assert [each.bound for each in machine] == [each.bound for each in plain]


def test_they_are_remembered_by_their_points():
    form = drawn(np.random.default_rng(2), "line")
    certifier = Certifier(form)
    assert certifier.adds_up
    found = certifier.added_up(*squares(form))
    assert found.holds(1e-13)
    again = Certifier(form)
    again.recall(certifier.remembered(0.0))
    assert again.best().holds(1e-12)
    assert not Certifier(random_problem(0).problem.form).added_up(*squares(form)).valid


def test_where_everything_vanishes_the_gap_does_too():
    data = gr.NodeData.from_arrays(None, np.zeros((5, 1)), np.arange(5))
    problem = gr.Problem(gr.MeanLoss(data) + gr.TotalVariation(nx.path_graph(5), gr.L1()))
    found = problem.solve()
    assert found.status == "certified"
    assert found.certificate.gap == found.objective == 0.0
