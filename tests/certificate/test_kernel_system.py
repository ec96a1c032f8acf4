"""B of a problem's dual and the functions of its variables, against what the form says of them in rational numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from kernel_cases import (
    ALMOST,
    FORMS,
    HALF,
    LINE,
    classes,
    columns,
    exactly,
    form_of,
    number,
    numbers,
    pulled,
    regression,
    rows_of,
    wide,
    with_rows,
    within,
)

import graphreg as gr
from graphreg.certificate.kernel import system as system_module
from graphreg.certificate.kernel.arithmetic import Pair, RefusedError
from graphreg.certificate.kernel.system import Arcs, Columns, Design, Flows, System, _csr, _predicted, summands_of
from graphreg.form import DualPoint
from graphreg.terms import alike

NAMES = list(FORMS)
CACHE = {}


def made(name):
    if name not in CACHE:
        form = form_of(name)
        CACHE[name] = form, System(form), columns(form)
    return CACHE[name]


def at(form, exact, i):
    return exact.get(i, exactly(0))


def some(system, seed, decades=4):
    """Variables, of which some are 0."""
    rng = np.random.default_rng(seed)
    v = wide(rng, system.size, decades)
    return np.where(rng.random(system.size) < 0.2, 0.0, v), 2.0**-54 * v * rng.uniform(-1, 1, system.size)


# ---- B ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_the_form(name):
    form, system, found = made(name)
    assert system.shape == (form.n * form.d, len(found))
    rows = system.kind.rows(np.arange(system.size))
    for k, column in enumerate(found):
        row = rows[[k]]
        assert {i: number(x) for i, x in zip(row.indices.tolist(), row.data.tolist(), strict=True)} == {
            i: x for i, x in column.items() if x
        }
    few = np.flatnonzero(np.random.default_rng(0).random(system.size) < 0.4)
    np.testing.assert_array_equal(system.kind.rows(few).toarray(), rows.toarray()[few])
    np.testing.assert_array_equal(system.kind.B.toarray(), rows.toarray().T)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("low", [False, True])
def test_what_variables_leave_of_the_balance(name, low):
    form, system, found = made(name)
    v, rest = some(system, 1)
    rest = rest if low else np.zeros_like(v)
    exact = pulled(found, [x + y for x, y in zip(numbers(v), numbers(rest), strict=True)])
    left = system.residual(v, rest)
    for i in range(system.shape[0]):
        within(left, divmod(i, form.d), at(form, exact, i))
    assert (left.error <= 1e-25 * np.abs(v).max() * max(1.0, float(abs(system.kind.B).max())) + 1e-280).all()


@pytest.mark.parametrize("name", NAMES)
def test_plain_sums_pay_for_their_rounding(name):
    form, system, found = made(name)
    v, rest = some(system, 2)
    exact = pulled(found, numbers(v))
    left = system.residual(v, rest, plain=True)
    for i in range(system.shape[0]):
        within(left, divmod(i, form.d), at(form, exact, i))
    assert not left.low.any()
    assert (left.error <= 1e-12 * np.abs(v).sum() * max(1.0, float(abs(system.kind.B).max())) + 1e-290).all()
    for one in system.summands:
        value, size = np.zeros((2, system.shape[0]))
        system.kind.pull(one, v[one.columns], value, size)
        mine = pulled(found[one.columns], numbers(v[one.columns]))
        reach = pulled([{i: abs(x) for i, x in c.items()} for c in found[one.columns]], numbers(np.abs(v[one.columns])))
        for i in range(system.shape[0]):
            assert abs(number(value[i]) - at(form, mine, i)) <= number(1e-13) * number(size[i])
            assert at(form, reach, i) <= number(size[i])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_leaves_nothing(name):
    form, system, _ = made(name)
    zero = np.zeros(system.size)
    for plain in (False, True):
        left = system.residual(zero, zero, plain)
        assert not left.size().any()
    assert (system.component.reshape(form.shape) == form.component[:, None]).all()


def test_no_variables_leave_nothing():
    form = form_of("means in boxes")
    empty = System(type(form)(form.space, (), (), ()))
    for plain in (False, True):
        left = empty.residual(np.zeros(0), np.zeros(0), plain)
        assert left.high.shape == form.shape
        assert not left.size().any()
    assert empty.shape == (form.n * form.d, 0)


@pytest.mark.parametrize("plain", [False, True])
def test_what_is_taken_outside_counts(plain):
    form, _, found = made("squares along a path")
    rng = np.random.default_rng(3)
    outside = Pair(rng.standard_normal(form.shape), 0.1 * rng.standard_normal(form.shape), np.full(form.shape, 1e-9))
    system = System(form, outside=outside)
    v, zero = some(system, 4)[0], np.zeros(system.size)
    exact = pulled(found, numbers(v))
    left = system.residual(v, zero, plain)
    for i in range(system.shape[0]):
        i_, j = divmod(i, form.d)
        for off in (-1, 1):
            value = at(form, exact, i) + number(outside.high[i_, j]) + number(outside.low[i_, j]) + off * number(1e-9)
            within(left, (i_, j), value)


@pytest.mark.parametrize("m", [2, 9, 40])
def test_plain_pulls_that_lose_everything_they_can(m):
    """1, and then prices that every sum with it swallows."""
    data = gr.NodeData.from_arrays(np.ones((m, 1)), np.zeros(m), np.zeros(m, dtype=int))
    form = gr.Problem(gr.SquaredLoss(data)).form
    system, v = System(form), np.concatenate([[1.0], np.full(m - 1, ALMOST)])
    left = system.residual(v, np.zeros(m), plain=True)
    within(left, (0, 0), sum(numbers(v)))
    assert abs(number(left.high[0, 0]) - sum(numbers(v))) > (m - 1) * HALF * exactly(9, 10)


@pytest.mark.parametrize("m", [2, 9, 40])
@pytest.mark.parametrize("turned", [False, True])
def test_plain_flows_that_lose_everything_they_can(m, turned):
    star = nx.Graph([(0, k) if not turned else (k, 0) for k in range(1, m + 1)])
    nodes = sorted(star)
    data = gr.NodeData.from_arrays(np.ones((m + 1, 1)), np.zeros(m + 1), nodes)
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(star, gr.L1())).form
    system, v = System(form), np.zeros(2 * m + 1)
    v[-m:] = np.concatenate([[1.0], np.full(m - 1, ALMOST)])
    exact = pulled(columns(form), numbers(v))
    left = system.residual(v, 0.0 * v, plain=True)
    for i in range(m + 1):
        within(left, (i, 0), at(form, exact, i))


def test_plain_sums_of_several_summands_lose_what_they_can():
    """Graph after graph, each with a flow that the ones before swallow."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    pair, k = nx.path_graph(2), 12
    form = gr.Problem(gr.SquaredLoss(data) + sum((gr.TotalVariation(pair, gr.L1()) for _ in range(k)), start=0)).form
    system = System(form)
    v = np.concatenate([[1.0, -1.0], np.full(system.size - 2, ALMOST)])
    exact, left = pulled(columns(form), numbers(v)), system.residual(v, 0.0 * v, plain=True)
    for i in range(2):
        within(left, (i, 0), at(form, exact, i))


@pytest.mark.parametrize("far", [1e-160, 1e-240, 1e-300, 5e-324])
@pytest.mark.parametrize("name", ["squares along a path", "flows of a root", "classes along a path"])
def test_what_underflows_is_paid_for(name, far):
    form, system, found = made(name)
    v = far * np.random.default_rng(5).integers(-3, 4, system.size)
    exact = pulled(found, numbers(v))
    for plain in (False, True):
        left = system.residual(v, 0.0 * v, plain)
        for i in range(system.shape[0]):
            within(left, divmod(i, form.d), at(form, exact, i))


@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("far", [1.0, 1e-100, 1e-200, 1e-300])
def test_entries_of_all_sizes_are_paid_for(far, features):
    """Designs whose entries, and products with prices, underflow."""
    rng = np.random.default_rng(features)
    X = rng.standard_normal((40, features)) * 10.0 ** -rng.uniform(0.0, 323.0, (40, features))
    X[::7] = 5e-324
    data = gr.NodeData.from_arrays(X, np.zeros(40), np.arange(40) % 2)
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(2), gr.L1())).form
    system, found = System(form), columns(form)
    for size in (1.0, 1e-150):
        v = far * rng.standard_normal(system.size) * np.where(np.arange(system.size) % 2, 1.0, size)
        exact = pulled(found, numbers(v))
        w = far * rng.standard_normal(form.shape)
        for plain in (False, True):
            left = system.residual(v, 0.0 * v, plain)
            for i in range(system.shape[0]):
                within(left, divmod(i, form.d), at(form, exact, i))
            for one in system.summands:
                for some_, z, around in one.predicted(w, plain):
                    mine = found[one.columns][some_.start * one.shape[1] : some_.stop * one.shape[1]]
                    for column, middle, off in zip(mine, z.ravel(), around.ravel(), strict=True):
                        value = sum((x * number(w.ravel()[i]) for i, x in column.items()), exactly(0))
                        assert abs(value - number(middle)) <= number(off)


@pytest.mark.parametrize("x", [1e-200, -1e-300, 5e-324])
@pytest.mark.parametrize("features", [1, 2])
def test_a_product_that_underflows_alone_is_not_nothing(x, features):
    """No other summand of the equation is large enough to pay for it."""
    data = gr.NodeData.from_arrays([[x] * features, [1.0] * features], np.zeros(2), [0, 1])
    system = System(gr.Problem(gr.SquaredLoss(data)).form)
    for v in (1e-200, 5e-324):
        left = system.residual(np.array([v, 1.0]), np.zeros(2), plain=True)
        within(left, (0, 0), number(x) * number(v))
        assert left.size()[0, 0] > 0.0
        value, size = np.zeros((2, system.shape[0]))
        system.kind.pull(system.prices[0], np.array([v, 1.0]), value, size)  # as large systems are, by the design
        assert size[0] * 2.0**-53 > 0.0


def test_a_product_of_a_row_that_underflows_alone_is_not_nothing():
    """Rows that are no edges have no design: the columns of B are pulled as they are."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    form = gr.Problem(gr.SquaredLoss(data) + gr.L1()(gr.Rows([[1e-200, 0.0]]))).form
    system = System(form)
    v = np.array([0.0, 0.0, 1e-200])
    assert system.residual(v, 0.0 * v, plain=True).size()[0, 0] > 0.0


# ---- prices that depend on others ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["classes alone", "classes along a path"])
def test_prices_of_all_classes_add_up_to_nothing(name):
    form, system, _ = made(name)
    (one,) = system.prices
    v = one.taken(some(system, 6)[0])
    for part in (slice(None), slice(3, 11)):
        whole, missed = one._of_all(v[part], 0.0 * v[part], part)
        own = one.own[part]
        for r in range(len(whole)):
            others = [c for c in range(whole.shape[1]) if c != own[r]]
            assert abs(-sum(numbers(v[part][r])) - number(whole[r, own[r]])) <= number(missed[r, own[r]])
            np.testing.assert_array_equal(whole[r, others], v[part][r])
            assert not missed[r, others].any()
    np.testing.assert_array_equal(one.reduced(one.given(v)), v)
    assert one.given(v).shape == form.samples[0].offset.shape


def test_the_price_of_the_own_class_keeps_what_rounding_leaves_of_it():
    """1/4, and six numbers that it swallows: in the plain pull, in the exact one, and in the domain."""
    k, n = 8, 24
    y = np.array(list("abcdefgh") * 3)
    loss = gr.MultinomialLoss(gr.NodeData.from_arrays(np.ones((n, 1)), y, np.arange(n)), scale="sum")
    form = gr.Problem(loss + gr.TotalVariation(nx.path_graph(n), gr.L2())).form
    system, found = System(form), columns(form)
    v = np.zeros(system.size)
    v[: n * (k - 1)] = np.tile([0.25, *[2.0**-55] * 6], n)
    exact = pulled(found, numbers(v))
    for plain in (False, True):
        left = system.residual(v, 0.0 * v, plain)
        for i in range(system.shape[0]):
            within(left, divmod(i, form.d), at(form, exact, i))


def test_prices_of_all_classes_lie_within_what_those_that_are_free_may_be():
    _, system, _ = made("classes alone")
    (one,), rng = system.prices, np.random.default_rng(7)
    b, around = rng.standard_normal(one.shape), 0.1 * rng.random(one.shape)
    for part in (slice(None), slice(2, 9)):
        high, spread = one._of_all(b[part], around[part], part)
        for sign in (-1.0, 0.0, 1.0):
            moved = [
                [x + exactly(sign) * y for x, y in zip(*map(numbers, both), strict=True)]
                for both in zip(b[part], around[part], strict=True)
            ]
            for r, own in enumerate(np.asarray(one.own)[part]):
                whole = [*moved[r][:own], -sum(moved[r]), *moved[r][own:]]
                assert all(abs(x - number(p)) <= number(q) for x, p, q in zip(whole, high[r], spread[r], strict=True))


def test_whether_prices_lie_inside_is_said_of_all_classes():
    _, system, _ = made("classes alone")
    (one,) = system.prices
    v = np.full(one.shape, 0.2)  # 0.2, 0.2 and -0.4 of the own class, whose domain is -1 .. 0
    none, every = np.zeros(one.shape), slice(None)
    assert one.inner(v, none, every)
    assert not one.inner(0.0 * v, none, every)
    assert not one.inner(v, none + 0.2, every)
    assert not one.inner(v * 2.5, none, every)  # -1 is the end
    assert not one.inner(v, none + np.where(np.arange(len(v))[:, None] == 5, 0.31, 0.0), every)
    last = np.where(np.arange(len(v))[:, None] == len(v) - 1, 0.0, 0.2) * np.ones(one.shape)
    assert not one.inner(last, none, every)
    _, system, _ = made("a consensus")
    (one,) = system.prices  # domains from -0.5 to 0.5
    for end in (0.5, -0.5):
        v = np.where(np.arange(24)[:, None] == 7, end, 0.1)
        assert not one.inner(v, 0.0 * v, every)
        assert one.inner(0.99 * v, 0.0 * v, every)
        assert not one.inner(0.9 * v, np.full(v.shape, 0.05), every)
    _, system, _ = made("squares along a path")
    assert all(each.inner(np.zeros(each.shape), np.zeros(each.shape), every) for each in system.summands)


# ---- targets ---------------------------------------------------------------------------------------------------------
def test_targets_are_anchors_less_offsets():
    rng = np.random.default_rng(8)
    for loss, binary in ((gr.SquaredLoss, False), (gr.HingeLoss, True), (gr.LogisticLoss, True)):
        y = rng.integers(2, size=12) if binary else 1e9 + rng.standard_normal(12)
        data = gr.NodeData.from_arrays(
            rng.standard_normal((12, 2)), y, np.arange(12) % 3, offset=rng.standard_normal(12)
        )
        form = gr.Problem(loss(data)).form
        (one,), (block,) = System(form).prices, form.samples
        anchor = np.broadcast_to(block.loss.anchor(block.y), block.offset.shape)
        high, low, off = one.targets
        for r in range(12):
            exact = number(anchor[r]) - number(block.offset[r])
            assert abs(number(high[r, 0]) + number(low[r, 0]) - exact) <= number(off[r, 0])
    for y, offset in (([0.0, 0.0, 2.0], [0.0] * 3), ([0.0] * 3, [0.0, 3.0, 0.0])):
        data = gr.NodeData.from_arrays(np.ones((3, 1)), y, [0, 1, 2], offset=offset)
        high, low, _ = System(gr.Problem(gr.SquaredLoss(data)).form).prices[0].targets
        np.testing.assert_array_equal((high + low)[:, 0], np.subtract(y, offset))
    assert System(form_of("classes along a path")).prices[0].targets is not None
    none = gr.NodeData.from_arrays(np.ones((3, 1)), np.zeros(3), [0, 1, 2])
    assert System(gr.Problem(gr.SquaredLoss(none)).form).prices[0].targets is None
    no_offset = gr.MultinomialLoss(gr.NodeData.from_arrays(np.ones((3, 1)), list("abc"), [0, 1, 2]))
    assert System(gr.Problem(no_offset).form).prices[0].targets is None


def test_targets_of_classes_are_of_those_that_are_free():
    form, system, _ = made("classes along a path")
    block = form.samples[0]
    block = alike(block, offset=np.where(np.arange(3) == 1, 0.0, block.offset))
    system = System(type(form)(form.space, (), (block,), form.edges))
    (one,) = system.prices
    high, low, off = one.targets
    v = one.taken(some(system, 9)[0])
    for r, own in enumerate(np.asarray(one.own).tolist()):
        free, last = numbers(v[r]), -sum(numbers(v[r]))
        whole = [*free[:own], last, *free[own:]]
        exact = -sum(x * y for x, y in zip(whole, numbers(block.offset[r]), strict=True))
        t = [x + y for x, y in zip(numbers(high[r]), numbers(low[r]), strict=True)]
        assert not off.any()
        assert exact == sum(x * y for x, y in zip(free, t, strict=True))


@pytest.mark.parametrize("name", ["means in boxes", "a root at nodes"])
def test_targets_of_flows_are_centers(name):
    form, system, _ = made(name)
    one, edge = system.flows[-1], form.edges[-1]
    high, low, off = one.targets
    for e, center in enumerate(edge.center):
        exact = numbers(center)
        if one.mix is not None:
            exact = [sum(x * y for x, y in zip(numbers(row), exact, strict=True)) for row in one.mix]
        for j, x in enumerate(exact):
            assert abs(number(high[e, j]) + number(low[e, j]) - x) <= number(off[e, j])
    assert System(form_of("flows of a root")).flows[0].targets is None


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e-200])
def test_targets_of_roots_pay_for_their_products(scale):
    rng = np.random.default_rng(10)
    Q = THIN_LONG = np.outer(rng.standard_normal(6), np.ones(6))
    Q = THIN_LONG[:, :1] @ THIN_LONG[:, :1].T
    data = regression(6, nodes=2, samples=8)
    center = {i: scale * rng.standard_normal(6) for i in range(2)}
    names = [f"x{j}" for j in range(6)]
    form = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.Quadratic(Q), center=center, features=names)).form
    (one,) = System(form).flows
    high, low, off = one.targets
    for e, each in enumerate(form.edges[0].center):
        exact = sum(x * y for x, y in zip(numbers(one.mix[0]), numbers(each), strict=True))
        assert abs(number(high[e, 0]) + number(low[e, 0]) - exact) <= number(off[e, 0])


# ---- flows of roots --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["flows of a root", "a root at nodes"])
def test_flows_lie_within_what_is_said_of_them(name):
    _, system, _ = made(name)
    one, rng = system.flows[0], np.random.default_rng(11)
    assert one.mix is not None
    q, off = one.taken(some(system, 12)[0]), 0.1 * rng.random(one.shape)
    u, around = one.given(q), one.around(q, off)
    for e in range(len(q)):
        for j in range(u.shape[1]):
            for sign in (-1, 0, 1):
                exact = sum(
                    number(one.mix[s, j])
                    * (number(q[e, s]) + sign * np.sign(one.mix[s, j]).astype(int).item() * number(off[e, s]))
                    for s in range(len(one.mix))
                )
                assert abs(exact - number(u[e, j])) <= number(around[e, j])
    assert (one.around(q, 0.0 * off) > 0.0).all()
    np.testing.assert_allclose(one.reduced(u), q, rtol=1e-12)
    plain = System(form_of("squares along a path")).flows[0]
    assert plain.around(u, off) is off


def test_flows_that_are_off_by_all_that_rounding_allows():
    """R has rows 1 and then almost nothing, so that each sum loses it."""
    k = 9
    Q = np.eye(k + 1)
    Q[-1, -1] = 0.0
    data = regression(k + 1, nodes=2, samples=4)
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(2), gr.Quadratic(Q))).form
    one = Flows(form.edges[0], form.d)
    one.mix = np.concatenate([np.ones((1, k + 1)), np.full((k - 1, k + 1), ALMOST)])
    q, zero = np.ones((1, k)), np.zeros((1, k))
    u, around = one.given(q), one.around(q, zero)
    exact = sum(numbers(one.mix[:, 0]))
    assert abs(exact - number(u[0, 0])) <= number(around[0, 0])
    system = System(form)
    system.flows[0].mix = one.mix
    system.kind = Columns(system.summands, system.shape[0])
    system.count = system.kind.count
    v = np.concatenate([np.zeros(system.size - k), q[0]])
    for plain in (False, True):
        left = system.residual(v, 0.0 * v, plain)
        for i in range(2):
            for j in range(k + 1):
                within(left, (i, j), (1 - 2 * i) * exact)


def test_dual_points_are_variables_and_back():
    for name in NAMES:
        form, system, _ = made(name)
        v = some(system, 13)[0]
        point = system.point(v)
        assert [u.shape for u in point.flows] == [(len(e.tail), form.width(e)) for e in form.edges]
        assert [a.shape for a in point.prices] == [block.offset.shape for block in form.samples]
        np.testing.assert_allclose(system.flat(point), v, rtol=1e-9, atol=1e-12)
    assert len(system.flat(DualPoint((), ()))) == 0 if not system.summands else True


# ---- what is refused -------------------------------------------------------------------------------------------------
def refused(form, **more):
    with pytest.raises(RefusedError) as found:
        System(form, **more)
    return str(found.value)


@pytest.mark.parametrize("x", [1e71, -1e140])
def test_designs_out_of_range_are_refused(x):
    form = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays([[1.0], [x]], [0.0, 1.0], [0, 0]))).form
    assert "designs" in refused(form)


def test_targets_out_of_range_are_refused():
    form = gr.Problem(gr.SquaredLoss(regression())).form
    block = form.samples[0]
    for y in (1e140, np.nan):
        for change in (
            {"y": np.where(np.arange(24) == 3, y, block.y)},
            {"offset": np.where(np.arange(24) == 3, y, 0.0)},
        ):
            wrong = type(form)(form.space, (), (alike(block, **change),), ())
            assert "target" in refused(wrong)


def test_roots_out_of_range_are_refused():
    Q = np.outer([1e-80, 0.0], [1e-80, 0.0])
    form = gr.Problem(gr.SquaredLoss(regression(2)) + gr.TotalVariation(LINE, gr.L2())).form
    edge = alike(form.edges[0], penalty=gr.Quadratic(Q))
    if edge.penalty.composed() is not None:
        assert "root" in refused(type(form)(form.space, (), form.samples, (edge,)))


def test_an_anchor_beside_prices_that_depend_on_others_is_refused(monkeypatch):
    monkeypatch.setattr(gr.MultinomialLoss, "anchor", lambda self, y: np.eye(*y.shape))
    assert "anchor" in refused(gr.Problem(classes()).form)


def test_systems_share_what_is_the_same_alone():
    """Answers of one were once taken for those of the other, whatever it was."""
    form = form_of("classes along a path")
    (block,), (edge,) = form.samples, form.edges
    first = System(form)
    moved = alike(block, offset=block.offset + 1.0)
    again = System(type(form)(form.space, (), (moved,), (edge,)), first)
    assert again.kind is first.kind
    assert again.prices[0].products is first.prices[0].products
    squares = System(form_of("squares along a path"))
    other = System(form_of("squares along a path"), squares)
    assert other.prices[0].products is squares.prices[0].products is not None
    assert System(form).kind is not first.kind
    others = {
        "node": alike(block, map=replace(block.map, node=np.roll(block.node, 1))),
        "X": alike(block, map=replace(block.map, X=2.0 * block.X)),
        "y": alike(block, y=np.roll(block.y, 1, axis=1)),
    }
    for other in others.values():
        assert "like" in refused(type(form)(form.space, (), (other,), (edge,)), like=first)
    for change in (
        {"tail": edge.head, "head": edge.tail},
        {"features": np.arange(form.d)[::-1]},
        {"features": np.arange(2)},
    ):
        other = alike(edge, map=replace(edge.map, **change))
        assert "like" in refused(type(form)(form.space, (), (block,), (other,)), like=first)
    assert "like" in refused(type(form)(form.space, (), (block,), ()), like=first)
    assert "like" in refused(type(form)(form.space, ("more",), (block,), (edge,)), like=first)
    assert "like" in refused(type(form)(form.space, (), (block,), (edge, edge)), like=first)
    root, low = System(form_of("flows of a root")), form_of("flows of a root")
    other = alike(low.edges[0], penalty=gr.Quadratic(np.outer([0.1, 0.3, 0.7], [0.1, 0.3, 0.7])))
    assert "like" in refused(type(low)(low.space, (), low.samples, (other,)), like=root)
    assert System(low, root).kind is root.kind


def test_designs_say_what_is_largest(monkeypatch):
    rng = np.random.default_rng(14)
    X, node = rng.standard_normal((20, 3)), rng.integers(0, 4, 20)
    (block,) = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(X, np.zeros(20), node))).form.samples
    for rows in (1 << 14, 7):
        monkeypatch.setattr(system_module, "ROWS", rows)
        design = Design(block)
        for i in range(4):
            mine = block.node == i
            np.testing.assert_array_equal(design.top[i], np.abs(block.X[mine]).max(axis=0, initial=0.0))
    assert [type(each.products) for each in System(form_of("means in boxes")).prices] == [Arcs]
    assert [each.products for each in System(form_of("classes alone")).prices] == [None]


# ---- large problems, some at a time ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kept", [1 << 19, 3])
@pytest.mark.parametrize("name", NAMES)
def test_many_variables_are_taken_some_at_a_time(name, kept, monkeypatch):
    """The same B, and sums as good, as where all are taken together."""
    form, small, found = made(name)
    v, low = some(small, 15)
    monkeypatch.setattr(system_module, "ROWS", 5)
    monkeypatch.setattr(system_module, "KEPT", kept)
    system = System(form)
    assert len(system.kind.parts) == len(system.summands)
    np.testing.assert_array_equal(system.kind.B.toarray(), small.kind.B.toarray())
    np.testing.assert_array_equal(system.kind.count >= small.kind.count, True)
    exact, high = (
        pulled(found, [x + y for x, y in zip(numbers(v), numbers(low), strict=True)]),
        pulled(found, numbers(v)),
    )
    for _ in range(2):
        left, plain = system.residual(v, low), system.residual(v, low, plain=True)
        for i in range(system.shape[0]):
            within(left, divmod(i, form.d), at(form, exact, i))
            within(plain, divmod(i, form.d), at(form, high, i))
    for one in system.summands:
        rows = np.concatenate([np.arange(len(one.node))[each] for each in one.some()])
        np.testing.assert_array_equal(rows, np.arange(len(one.node)))


def test_columns_of_any_entries_are_taken_as_they_are():
    """Between any nodes, uneven, and twice in one place."""
    rng = np.random.default_rng(16)
    form = form_of("squares along a path")
    K = sp.csr_array(rng.standard_normal((6, 12)) * (rng.random((6, 12)) < 0.4))
    system = System(with_rows(form, rows_of(K, gr.L1(), form, k=2, target=rng.standard_normal((3, 2)))))
    one = system.summands[-1]
    assert one.columns == slice(system.size - 6, system.size)
    np.testing.assert_array_equal(system.kind.B.toarray()[:, one.columns], K.toarray().T)
    v = some(system, 17)[0]
    exact = pulled(
        columns(form)
        + [dict(zip(r.indices.tolist(), numbers(r.data), strict=True)) for r in (K[[e]] for e in range(6))],
        numbers(v),
    )
    for plain in (False, True):
        left = system.residual(v, 0.0 * v, plain)
        for i in range(12):
            within(left, divmod(i, 3), at(form, exact, i))
    w = rng.standard_normal(form.shape)
    target = one.targets[0]
    for low, large in product((0.0, 1.0, -1.0), (1.0, 1e8)):  # targets that low parts undo, too, or that outweigh Kw
        high = large * target
        one.targets = high, low * high * (1.0 + 2.0**-40), np.full(one.shape, 2.0**-30)
        for plain in (False, True):
            ((_, z, around),) = one.predicted(w, plain)
            for e, c in np.ndindex(*one.shape):
                true = sum(a * b for a, b in zip(numbers(K.toarray()[2 * e + c]), numbers(w), strict=True))
                true -= number(one.targets[0][e, c]) + number(one.targets[1][e, c])
                for off in (-1, 1):
                    assert abs(true + off * number(2.0**-30) - number(z[e, c])) <= number(around[e, c])
                assert around[e, c] <= 2.0**-30 + 1e-14 * large


def test_errors_of_targets_along_edges_are_no_part_of_them():
    form = form_of("squares along a path")
    system, rng = System(form), np.random.default_rng(18)
    one, w = system.flows[0], rng.standard_normal(form.shape)
    exact = [sum(x * number(w.ravel()[i]) for i, x in column.items()) for column in columns(form)[one.columns]]
    target = rng.standard_normal(one.shape)
    one.targets = target, 2.0**-60 * target, np.full(one.shape, 2.0**-30)
    for some_, z, around in one.predicted(w, True):
        for r, (e, c) in enumerate(np.ndindex(*z.shape)):
            at_ = some_.start + e, c
            true = exact[some_.start * one.shape[1] + r] - number(target[at_]) - number(one.targets[1][at_])
            for off in (-1, 1):
                assert abs(true + off * number(2.0**-30) - number(z[e, c])) <= number(around[e, c])


def test_rows_of_systems_that_are_alike_are_looked_at():
    form = form_of("squares along a path")
    K = np.arange(24.0).reshape(2, 12)
    first = System(with_rows(form, rows_of(K, gr.L1(), form)))
    assert System(with_rows(form, rows_of(K, gr.L2(), form)), first).kind is first.kind
    nothing = rows_of(np.zeros((0, 12)), gr.L1(), form)
    assert System(with_rows(form, rows_of(K, gr.L2(), form), nothing), first).kind is first.kind
    for other in (K + 1.0, np.roll(K, 1, axis=1), K[:1], np.where(K == 5.0, 0.0, K)):
        with pytest.raises(RefusedError, match="like"):
            System(with_rows(form, rows_of(other, gr.L1(), form)), first)
    parts = form_of("two graphs, two parts")
    for k in (1, 2):
        joined = with_rows(parts, rows_of(np.eye(12)[[0, 11]] + np.eye(12)[[11, 0]], gr.L1(), parts, k=k))
        System(joined)
        vars(joined)["component"] = parts.component  # of a form that is told otherwise
        with pytest.raises(RefusedError, match="components"):
            System(joined)


def test_uneven_rows_of_any_entries_are_known_up_to_their_errors():
    """Of one entry and of many, with numbers and targets that lie far apart."""
    counts = np.array([1, 2, 3, 4, 5, 6, 9])
    starts, M = np.append(0, np.cumsum(counts)), len(counts)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        at = np.concatenate([rng.permutation(9)[:k] for k in counts])
        A = sp.csr_array((wide(rng, len(at), 24), at, starts), shape=(M, 9))
        w, high = wide(rng, 9, 24), wide(rng, M, 36)
        t = high, 2.0**-54 * high * rng.uniform(-1, 1, M), np.zeros(M)
        z, around = _predicted(A, w, t)
        for r in range(M):
            entries = zip(A[[r]].indices.tolist(), numbers(A[[r]].data), strict=True)
            true = sum(x * number(w[j]) for j, x in entries) - number(t[0][r]) - number(t[1][r])
            assert abs(true - number(z[r])) <= number(around[r])
            assert around[r] <= 1e-15 * abs(z[r]) + 1e-30 * (abs(A) @ np.abs(w) + np.abs(high))[r]


def test_places_beyond_32_bits_are_kept():
    size = 1 << 33
    place = np.array([[5, size - 1], [(1 << 31) + 5, 1 << 31]])
    A = _csr([place], [np.array([2.0, 3.0])], size)
    assert A.shape == (2, size)
    np.testing.assert_array_equal(A.indices.reshape(2, 2), place)
    np.testing.assert_array_equal(A.data, [2.0, 3.0, 2.0, 3.0])
    assert _csr([place % 100], [np.ones(2)], 100).indices.dtype == np.int32


def test_rows_without_entries_are_nothing():
    form = form_of("squares along a path")
    one = System(with_rows(form, rows_of(np.zeros((2, 12)), gr.L1(), form, target=np.ones((2, 1))))).summands[-1]
    for plain in (False, True):
        ((_, z, around),) = one.predicted(np.ones(form.shape), plain)
        np.testing.assert_array_equal(z, -np.ones((2, 1)))
        assert (around <= 1e-15).all()


def test_functions_as_they_are_written():
    """Of all classes and coordinates; those that are so anyway are shared."""
    for name in NAMES:
        form, system, _ = made(name)
        for one, block, own in zip(system.written, form.blocks, system.summands, strict=True):
            assert one.shape == (len(block.nodes), block.width if one.name.startswith("a price") else form.width(block))
            assert (one is own) == (one.shape == own.shape)
        assert [each.name for each in summands_of(form)] == [each.name for each in system.written]
    system = made("squares along a path")[1]
    assert [one.columns for one in system.summands] == [slice(0, 24), slice(24, 33)]
    assert isinstance(system.kind.rows(np.zeros(0, dtype=int)), sp.csr_array)
