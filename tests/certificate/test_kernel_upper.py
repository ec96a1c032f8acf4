"""The upper bound of P(w): not below P in rational numbers, and +inf where a constraint is broken in the last place."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from kernel_cases import ALMOST, FORMS, HALF, exactly, form_of, number, numbers, regression, root

import graphreg as gr
from graphreg.certificate.kernel import system as system_module
from graphreg.certificate.kernel.arithmetic import RefusedError, down, multiples, sums
from graphreg.certificate.kernel.system import System, summands_of
from graphreg.certificate.kernel.upper import upper_bound
from graphreg.terms import alike

RATIONAL = [name for name in FORMS if "classes" not in name]


def least_value(term, y, ends, z):  # noqa: PLR0911, PLR0912  (one for each kind)
    """f(z), or less where it has a root; None where it is infinite."""
    square = sum(x * x for x in z)
    match term:
        case gr.SquaredLoss() | gr.MeanLoss():
            return sum((x - t) ** 2 for x, t in zip(z, y, strict=True)) / 2
        case gr.HuberLoss():
            r, delta = abs(z[0] - y[0]), number(term.delta)
            return r * r / 2 if r <= delta else delta * (r - delta / 2)
        case gr.QuantileLoss():
            r = z[0] - y[0]
            return max(ends[0] * r, ends[1] * r)
        case gr.HingeLoss():
            return max(exactly(0), 1 - y[0] * z[0])
        case gr.L1():
            return sum(map(abs, z))
        case gr.L2():
            return root(square)
        case gr.LInf():
            return max(map(abs, z))
        case gr.SquaredL2():
            return square / 2
        case gr.Quadratic():
            return sum(sum(a * b for a, b in zip(numbers(row), z, strict=True)) ** 2 for row in term.root) / 2
        case gr.Zero():
            return None if any(z) else exactly(0)
        case gr.Ball():
            return exactly(0) if square <= number(term.radius) ** 2 else None
        case gr.NonNegative():
            return exactly(0) if min(z) >= 0 else None
        case gr.Box():
            inside = all(number(term.low) <= x <= number(term.high) for x in z)
            return exactly(0) if inside else None
    raise AssertionError(term)


def exact(form, w):
    """P(w), or less where it has roots; None where it is infinite."""
    w, total = [numbers(row) for row in w], exactly(0)
    for block in form.samples:
        ends, y = block.loss.domain(block.y), block.y.reshape(len(block.node), -1)
        offset = block.offset.reshape(len(block.node), -1)
        for r, i in enumerate(block.node.tolist()):
            z = w[i] if block.X is None else [sum(a * b for a, b in zip(numbers(block.X[r]), w[i], strict=True))]
            z = [a + number(b) for a, b in zip(z, offset[r], strict=True)]
            limits = None if block.X is None else [exactly(e[r]) if np.isfinite(e[r]) else None for e in ends]
            total += number(block.scale[r]) * least_value(block.loss, numbers(y[r]), limits, z)
    for edge in form.edges:
        at = list(range(form.d)) if edge.features is None else edge.features.tolist()
        for e, (i, j) in enumerate(zip(edge.tail.tolist(), edge.head.tolist(), strict=True)):
            z = [w[i][k] - (w[j][k] if j >= 0 else 0) for k in at]
            if edge.center is not None:
                z = [a - b for a, b in zip(z, numbers(edge.center[e]), strict=True)]
            value = least_value(edge.penalty, None, None, z)
            if value is None:
                return None
            total += number(edge.weight[e]) * value
    return total


def middle(form):
    """A point that satisfies all constraints."""
    centers = [edge.center for edge in form.edges if edge.center is not None]
    same = np.full(form.shape, 0.1)
    return same if not centers or centers[-1].shape != form.shape else centers[-1] + 0.1


def both(form, w):
    return upper_bound(form, w), upper_bound(form, w, summands_of(form))


@pytest.mark.parametrize("name", RATIONAL)
def test_no_bound_lies_below_the_objective(name):
    form, rng = form_of(name), np.random.default_rng(0)
    finite = 0
    for w in (
        np.zeros(form.shape),
        middle(form),
        np.full(form.shape, 0.1),
        *rng.standard_normal((2, *form.shape)),
        1e9 * rng.standard_normal(form.shape),
        1e-9 * np.abs(rng.standard_normal(form.shape)),
        np.broadcast_to(np.abs(rng.standard_normal(form.d)), form.shape),
        1e-200 * rng.standard_normal(form.shape),
    ):
        value = exact(form, w)
        for found in both(form, w):
            if value is None:
                assert found == np.inf
            elif np.isfinite(found):
                finite += 1
                assert exactly(found) >= value
                assert found <= float(value) * (1 + 1e-9) + 1e-6 * (1 + np.abs(w).max() ** 2)
    assert finite >= 2


@pytest.mark.parametrize("name", ["classes alone", "classes along a path"])
def test_bounds_of_classes_are_near_the_objective(name):
    form = form_of(name)
    w = np.random.default_rng(1).standard_normal(form.shape)
    for found in both(form, w):
        assert form.primal(w) * (1 - 1e-14) <= found <= form.primal(w) * (1 + 1e-12)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_has_no_bound(name, bad):
    form = form_of(name)
    for i, j in ((0, 0), (form.n - 1, form.d - 1)):
        w = np.zeros(form.shape)
        w[i, j] = bad
        with np.errstate(all="ignore"):
            for found in both(form, w):
                assert found == np.inf


# ---- residuals -------------------------------------------------------------------------------------------------------
def worst():
    """A number a little above 1 whose square is rounded down by almost half a unit."""
    a = 1.0 + 0.01 * np.random.default_rng(0).random(400)
    lost = [exactly(v) ** 2 - exactly(v * v) for v in a.tolist()]
    return float(a[int(np.argmax(lost))])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 8, 33])
def test_residuals_that_err_at_every_step_stay_within_their_bound(p, sign):
    """The first product loses almost half a unit, and each sum absorbs almost half a unit more; up to p + 2 of them."""
    X, w = np.full((1, p), worst()), np.full(p, ALMOST)
    w[0] = worst()
    y = np.array([-ALMOST])
    X, y = sign * X, sign * y
    data = gr.NodeData.from_arrays(np.concatenate([X, X]), np.concatenate([y, y]), [0, 1])
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(2), gr.L2())).form
    one, at = summands_of(form)[0], np.stack([w, w])
    ((_, r, around),) = one.predicted(at, plain=True)
    true = sum((exactly(x) * exactly(v) for x, v in zip(X[0].tolist(), w.tolist(), strict=True)), exactly(0)) - number(
        y[0]
    )
    missed = abs(true - number(r[0, 0]))
    assert missed <= number(around[0, 0])
    assert missed > exactly(11, 10) * HALF * number(one.products.sizes(at)[0] + 2 * abs(y[0]))  # as bad as it is meant
    ((_, high, off),) = one.predicted(at)
    assert abs(true - number(high[0, 0])) <= number(off[0, 0])


def predicted(one, w, plain):
    """B'w - t, and how far that is off, of all functions."""
    each = [(z, around) for _, z, around in one.predicted(w, plain)]
    return tuple(np.concatenate(x) for x in zip(*each, strict=True))


@pytest.mark.parametrize("rows", [1 << 14, 9])
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("size", [1.0, 1e-160, 1e-250, 1e9])
def test_residuals_lie_within_what_they_may_be_off(name, size, rows, monkeypatch):
    monkeypatch.setattr(system_module, "ROWS", rows)
    form, rng = form_of(name), np.random.default_rng(2)
    w = size * rng.standard_normal(form.shape)
    w[0] = 0.0
    for one, block in zip(summands_of(form), form.samples, strict=False):
        anchor = np.broadcast_to(block.loss.anchor(block.y), block.offset.shape).reshape(one.shape)
        A, found = block.A.toarray(), [predicted(one, w, plain) for plain in (False, True)]
        sizes = one.products.sizes(w) if isinstance(one.products, system_module.Design) else None
        for r, c in np.ndindex(*one.shape):
            products = [a * b for a, b in zip(numbers(A[r * one.shape[1] + c]), numbers(w), strict=True) if a and b]
            true = sum(products, exactly(0)) + number(block.offset.reshape(one.shape)[r, c]) - number(anchor[r, c])
            for value, around in found:
                assert abs(true - number(value[r, c])) <= number(around[r, c])
            assert sizes is None or sum(map(abs, products), exactly(0)) <= number(sizes[block.node[r]])
    for one, block in zip(summands_of(form)[len(form.samples) :], form.edges, strict=True):
        A, found = block.flat(form.d).toarray(), [predicted(one, w, plain) for plain in (False, True)]
        center = np.broadcast_to(0.0 if block.center is None else block.center, one.shape)
        for r, c in np.ndindex(*one.shape):
            products = (a * b for a, b in zip(numbers(A[r * one.shape[1] + c]), numbers(w), strict=True) if a and b)
            true = sum(products, -number(center[r, c]))
            for value, around in found:
                assert abs(true - number(value[r, c])) <= number(around[r, c])


@pytest.mark.parametrize("place", [0, -1])
def test_of_arcs_both_parts_of_a_target_are_taken(place):
    form, rng = form_of("means in boxes"), np.random.default_rng(5)
    one, w = summands_of(form)[place], rng.standard_normal(form.shape)
    high = rng.standard_normal(one.shape)
    one.targets = high, 0.4 * np.spacing(high) * rng.uniform(-1.0, 1.0, one.shape), np.zeros(one.shape)
    (z, around), (sharp, off) = predicted(one, w, True), predicted(one, w, False)
    missed = [
        abs(number(a) - number(b)) - number(c) for a, b, c in zip(z.ravel(), sharp.ravel(), off.ravel(), strict=True)
    ]
    assert all(miss <= number(r) for miss, r in zip(missed, around.ravel(), strict=True))


@pytest.mark.parametrize("size", [1e-220, 1e-265, 1e-320])
def test_products_that_underflow_are_paid_for(size):
    data = gr.NodeData.from_arrays(np.full((3, 2), 0.7e-60), np.zeros(3), [0, 0, 1])
    form = gr.Problem(gr.SquaredLoss(data)).form
    (one,), (block,) = summands_of(form), form.samples
    w = size * np.array([[1.0, 3.0], [0.0, -7.0]])
    assert (one.products.sizes(w) > 0.0).all()
    for plain in (False, True):
        for r, (z, around) in enumerate(zip(*predicted(one, w, plain), strict=True)):
            true = sum(a * b for a, b in zip(numbers(block.X[r]), numbers(w[block.node[r]]), strict=True))
            assert abs(true - number(z[0])) <= number(around[0])
    assert not one.products.sizes(0.0 * w).any()


def test_sizes_are_not_0_where_designs_are_out_of_range():
    form = gr.Problem(gr.SquaredLoss(gr.NodeData.from_arrays(np.full((2, 2), 1e-150), np.zeros(2), [0, 1]))).form
    (one,) = summands_of(form)
    sizes = one.products.sizes(np.array([[1e-200, 0.0], [0.0, 0.0]]))
    assert sizes[0] > 0.0
    assert sizes[1] == 0.0


def test_differences_that_are_floats_are_exact():
    form = form_of("means in boxes")
    w = np.arange(8.0).reshape(4, 2) / 8.0
    one = summands_of(form)[len(form.samples)]
    z, around = predicted(one, w, False)
    np.testing.assert_array_equal(z, form.edges[0].difference(w))
    assert not around.any()


def test_losses_of_all_classes_are_none_of_some():
    form = form_of("classes alone")
    one = System(form).prices[0]
    with pytest.raises(RefusedError, match="classes"):
        one.value(np.zeros(one.shape), np.zeros(one.shape), slice(None))


def test_offsets_and_targets_cancel_exactly():
    data = gr.NodeData.from_arrays(np.ones((2, 1)), [1e9, 0.1], [0, 0], offset=[1e9, 0.3])
    form = gr.Problem(gr.SquaredLoss(data)).form
    w = np.array([[0.1]])
    value = exact(form, w)
    for found in both(form, w):
        assert value <= exactly(found)
    assert both(form, w)[0] <= float(value) * (1 + 1e-14)


def test_differences_are_exact_or_say_that_they_are_not():
    form = form_of("means in boxes")
    w = np.random.default_rng(3).standard_normal(form.shape)
    w[2] = w[1]
    for one, edge in zip(summands_of(form)[len(form.samples) :], form.edges, strict=True):
        for plain in (False, True):
            z, around = predicted(one, w, plain)
            for e, j in np.ndindex(*one.shape):
                true = number(w[edge.tail[e], j]) - (0 if edge.ground else number(w[edge.head[e], j]))
                true -= 0 if edge.center is None else number(edge.center[e, j])
                assert abs(true - number(z[e, j])) <= number(around[e, j])
                if true == 0:
                    assert z[e, j] == around[e, j] == 0.0


def test_numbers_as_they_are_are_exact():
    """Half lines and boxes without centers hold at their very ends."""
    form = form_of("half lines")
    one = summands_of(form)[1]
    for w in (np.full(form.shape, 0.1), np.full(form.shape, 5e-324)):
        for plain in (False, True):
            z, around = predicted(one, w, plain)
            np.testing.assert_array_equal(z, w[:, 1:2])
            assert not around.any()
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.array([0.0, 1.0]), [0, 0])
    form = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.Box(0.1, 0.3))).form
    for x, finite in ((0.1, True), (0.3, True), (np.nextafter(0.1, 0), False), (np.nextafter(0.3, 1), False)):
        assert all(np.isfinite(found) == finite for found in both(form, np.array([[x]])))


# ---- constraints -----------------------------------------------------------------------------------------------------
def test_a_consensus_holds_exactly_or_not_at_all():
    form = form_of("a consensus")
    w = np.full(form.shape, 0.1)
    assert all(np.isfinite(found) for found in both(form, w))
    w[2, 1] = np.nextafter(0.1, 1.0)
    assert both(form, w) == (np.inf, np.inf)
    w[2, 1] = 5e-324
    w[[0, 1, 3], 1] = 0.0
    assert both(form, w) == (np.inf, np.inf)


def test_a_box_holds_for_the_exact_difference_to_a_centre():
    """1 - 1e-20 is not at least 1, whatever it is rounded to."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.array([0.0, 1.0]), [0, 0])
    for center, finite in ((1e-20, False), (-1e-20, True), (0.0, True)):
        form = gr.Problem(gr.SquaredLoss(data) + gr.NodePenalty(gr.Box(1.0, 2.0), center=[center])).form
        assert all(np.isfinite(found) for found in both(form, np.array([[1.0 + 1e-15]])))
        if not finite or center == 0.0:
            assert all(np.isfinite(found) == finite for found in both(form, np.array([[1.0]])))


def test_a_ball_holds_exactly_or_not_at_all():
    form = gr.Problem(gr.SquaredLoss(regression()) + gr.NodePenalty(gr.Ball(1.0))).form
    w = np.zeros(form.shape)
    w[0, 0] = 1.0 + 2.0**-52
    assert both(form, w) == (np.inf, np.inf)


# ---- what is small, and what is not ----------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [1e-160, 1e-170])
def test_what_underflows_is_not_nothing(scale):
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    pair = nx.path_graph(2)
    w = np.array([[scale], [0.0]])
    for found in both(gr.Problem(gr.SquaredLoss(data)).form, w):
        assert found > 0.0
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(pair, gr.L2())).form
    for found in both(form, w):
        assert found >= scale


@pytest.mark.parametrize("weight", [1e-60, 1e-20])
def test_multiples_that_underflow_are_not_nothing(weight):
    """A weight times a difference was 0, and so the bound."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    form = gr.Problem(gr.SquaredLoss(data) + weight * gr.TotalVariation(nx.path_graph(2), gr.L1())).form
    bare = type(form)(form.space, (), (), form.edges)
    w = np.array([[1e-310], [0.0]])
    for found in both(bare, w):
        assert exactly(found) >= number(form.edges[0].weight[0]) * number(1e-310) > 0
    assert both(bare, np.ones((2, 1))) == (0.0, 0.0)


def test_a_logistic_loss_is_never_nothing():
    data = gr.NodeData.from_arrays(np.array([[1.0], [-1.0]]), [1, 0], [0, 0])
    assert all(found > 0.0 for found in both(gr.Problem(gr.LogisticLoss(data)).form, np.array([[1e4]])))


def summed(scales, each, plain):
    return 0.0 - float(down(sums([(np.zeros(len(each), dtype=int), multiples(scales, each))], 1, plain))[0])


@pytest.mark.parametrize("plain", [False, True])
def test_sums_of_values_are_rounded_upwards(plain):
    """Values that 1 swallows, and multiples that are rounded downwards."""
    a = worst()
    for scales, each in (
        (np.ones(9), np.concatenate([[1.0], np.full(8, ALMOST)])),
        (np.full(50, a), np.full(50, a)),
        (np.ones(2), np.array([-1.0, 1.0 + 2.0**-52])),
        (np.ones(3), np.array([1e16, 1.0, -1e16])),
        (np.ones(1), np.array([5e-324])),
        (np.append(np.full(50, a), 1.0), np.append(np.full(50, a), -50.0 * a * a)),
        (np.array([1e-200]), np.array([1e-200])),
    ):
        true = sum(x * y for x, y in zip(numbers(scales), numbers(each), strict=True))
        found = summed(scales, each, plain)
        assert exactly(found) >= true
        assert found <= float(true) + 1e-12 * float(np.abs(scales * each).sum()) + 1e-290
    assert summed(np.ones(2), np.zeros(2), plain) == 0.0


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_infinite_once_is_so_altogether(bad, monkeypatch):
    form = gr.Problem(gr.SquaredLoss(regression())).form
    monkeypatch.setattr(gr.SquaredLoss, "value_bound", lambda self, r, spread, y: np.where(r == r[3], bad, 0.0))
    assert both(form, np.ones(form.shape)) == (np.inf, np.inf)


def test_sums_of_blocks_are_rounded_upwards():
    """Blocks of 0.1, 0.2 and so on: their sum is no float."""
    data = gr.NodeData.from_arrays(np.ones((2, 1)), np.zeros(2), [0, 1])
    model = gr.SquaredLoss(data) + sum(
        (c * gr.TotalVariation(nx.path_graph(2), gr.L1()) for c in (0.1, 0.2, 0.3, 1e-17)), start=0
    )
    form = gr.Problem(model).form
    w = np.array([[1.0], [0.0]])
    for found in both(form, w):
        assert exact(form, w) <= exactly(found) <= exact(form, w) * (1 + exactly(1e-13))
    bare = type(form)(form.space, (), (), form.edges)
    assert all(exactly(found) > exact(bare, w) for found in both(bare, w))


def test_rows_come_some_at_a_time(monkeypatch):
    monkeypatch.setattr(system_module, "ROWS", 7)
    for name in ("squares along a path", "means in boxes"):
        form = form_of(name)
        w = middle(form)
        for found in both(form, w):
            assert exactly(found) >= exact(form, w)
            assert found <= float(exact(form, w)) * (1 + 1e-12)
    assert System(form).size
    assert alike(form.edges[0]).tail is form.edges[0].tail
