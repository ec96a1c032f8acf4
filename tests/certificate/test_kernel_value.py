"""The dual value over a box, from below: never above what it is in rational numbers, wherever in the box."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from kernel_cases import (
    ALMOST,
    FORMS,
    blank,
    box,
    dual_value,
    exactly,
    form_of,
    general,
    number,
    numbers,
    rows_of,
    with_rows,
)

import graphreg as gr
from graphreg.certificate.kernel import arithmetic
from graphreg.certificate.kernel.arithmetic import LEAST, RANGE, RefusedError
from graphreg.certificate.kernel.balance import Balanced
from graphreg.certificate.kernel.system import System
from graphreg.certificate.kernel.value import Enclosed, LowerBound, _scaled, lower_bound
from graphreg.form import DualPoint

RATIONAL = [name for name in FORMS if "classes" not in name]
CACHE = {}


def made(name):
    if name not in CACHE:
        form = form_of(name)
        CACHE[name] = form, System(form)
    return CACHE[name]


def inside(form, system, seed, size=0.9):
    """Prices and flows inside their domains."""
    rng = np.random.default_rng(seed)
    prices = tuple(size * a for a in form.gradient_prices(rng.standard_normal(form.shape)))
    flows = tuple(size * e.clip(rng.standard_normal((len(e.tail), form.width(e)))) for e in form.edges)
    return system.flat(DualPoint(flows, prices))


def spots(rng, b):
    """Points of a box: its middle, some corners, and others; exactly."""
    high, low, spread = (numbers(x) for x in (b.high, b.low, b.spread))
    size = len(high)
    for share in (
        np.zeros(size),
        np.ones(size),
        -np.ones(size),
        *rng.choice([-1.0, 1.0], (3, size)),
        rng.uniform(-1, 1, size),
    ):
        yield [h + l + s * exactly(t) for h, l, s, t in zip(high, low, spread, share, strict=True)]


def value_holds(form, system, b, plain, rng=None):
    found = lower_bound(system, b, plain)
    for v in spots(rng or np.random.default_rng(0), b):
        for lower, exact in zip(found.lower, dual_value(form, v), strict=True):
            assert lower == -np.inf or (exact is not None and exactly(lower) <= exact)
    return found


# ---- over all of a box -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", RATIONAL)
def test_no_value_lies_above_that_of_a_point_of_the_box(name, plain):
    form, system = made(name)
    finite = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        v = inside(form, system, seed)
        for off in (0.0, 2.0**-52, 1e-9, 0.05):
            for low in (0.0, 2.0**-54):
                b = box(form, v, low * v * rng.uniform(-1, 1, len(v)), off * np.abs(v))
                finite += np.isfinite(value_holds(form, system, b, plain, rng).lower).sum()
        close = lower_bound(system, box(form, v), plain)
        size = np.abs(v) @ (1.0 + np.abs(v)) + 10.0
        for lower, exact in zip(close.lower, dual_value(form, numbers(v)), strict=True):
            assert exact is None or lower == -np.inf or float(exact - exactly(lower)) <= 1e-12 * size * 100
    assert finite >= 6


@pytest.mark.parametrize("name", ["classes alone", "classes along a path"])
@pytest.mark.parametrize("plain", [False, True])
def test_values_of_classes_are_those_of_the_form(name, plain):
    form, system = made(name)
    v = inside(form, system, 1, size=0.8)
    exact = form.dual(system.point(v))
    found = lower_bound(system, box(form, v), plain)
    assert found.lower.sum() == pytest.approx(exact, rel=1e-12)
    assert found.lower.sum() <= exact + 1e-14 * np.abs(v).sum()
    wider = lower_bound(system, box(form, v, spread=np.full(len(v), 1e-6)), plain)
    moved = [form.dual(system.point(v + 1e-6 * t)) for t in np.random.default_rng(2).choice([-1.0, 1.0], (5, len(v)))]
    assert wider.lower.sum() <= min(moved)


@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_values_that_take_away_what_others_add(off, monkeypatch):
    """Every other sample takes away what the one before it adds, and all of a kind are rounded the same way."""
    monkeypatch.setattr(arithmetic, "PIECE", 16)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        m = 60
        first, second = 1e6 * rng.standard_normal(2)
        y = np.tile([first, second], m // 2)
        loss = gr.SquaredLoss(gr.NodeData.from_arrays(rng.standard_normal((m, 2)), y, np.arange(m) % 5))
        form = gr.Problem(loss).form
        system, (block,) = System(form), form.samples
        v = block.scale * np.tile([1.0, -first / second], m // 2) * rng.standard_normal()
        value_holds(form, system, box(form, v, spread=off * np.abs(v)), True, rng)
        value_holds(form, system, box(form, v, spread=off * np.abs(v)), False, rng)


# ---- one product, and what rounding makes of it ----------------------------------------------------------------------
def one_row(target, scale=1.0, penalty=None):
    """One function of k variables, by default without any value of its own."""
    k = len(target)
    target = np.array([target], dtype=float)
    return general(np.eye(k), penalty or gr.Zero(), k=k, scale=np.array([scale]), target=target)


def product_holds(target, v, low=None, spread=None):
    system = one_row(target)
    b = box(system.form, np.asarray(v, dtype=float), low, spread)
    least = min(
        -sum(x * y for x, y in zip(v, numbers(target), strict=True)) for v in spots(np.random.default_rng(3), b)
    )
    for plain in (False, True):
        assert exactly(lower_bound(system, b, plain).lower[0]) <= least


@pytest.mark.parametrize("k", [1, 2, 5, 7])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_products_that_lose_everything_they_can(k, sign):
    product_holds(sign * np.concatenate([[1.0], np.full(k - 1, ALMOST)]), np.ones(k))
    product_holds(np.ones(k), sign * np.concatenate([[1.0], np.full(k - 1, ALMOST)]))
    rng = np.random.default_rng(k)
    for _ in range(10):
        v, t = 1.0 + 0.01 * rng.random((2, k))
        product_holds(sign * t, v)
        product_holds(sign * t, v, low=2.0**-54 * rng.uniform(-1, 1, k))
        product_holds(sign * t, v, spread=2.0**-52 * rng.random(k))


@pytest.mark.parametrize("far", [1e-150, 1e-165, 1e-200, 5e-324])
def test_products_that_underflow_are_paid_for(far):
    for v, t in ((far, far), (1.0, far), (far, 1.0), (far, -far), (-3.0 * far, far)):
        product_holds([t], [v])
        product_holds([t], [0.0], low=np.array([v]))
        product_holds([t], [0.0], spread=np.array([abs(v)]))
        product_holds([t], [v], spread=np.array([far]))


SMALL = 1e-200
TARGETS = [
    (high, low, off, np.array([1.0, -2.0]), (0.0, 2.0**-10))
    for high in ([1.0, 3.0], [-1.0, -3.0], [0.0, 0.0])
    for low, off in (
        (2.0**-30, 0.0),
        (-(2.0**-30), 0.0),
        (0.0, 2.0**-20),
        (2.0**-30, 2.0**-20),
        (-(2.0**-30), 2.0**-20),
    )
] + [([0.0, 0.0], low, off, np.array([SMALL, -SMALL]), (0.0, SMALL)) for low, off in ((SMALL, 0.0), (0.0, SMALL))]


@pytest.mark.parametrize(("high", "low", "off", "v", "spreads"), TARGETS)
def test_targets_are_known_up_to_their_errors(high, low, off, v, spreads):
    form = blank(2)
    system = System(with_rows(form, rows_of(np.eye(2), gr.Zero(), form, k=2)))
    system.summands[0].targets = np.array([high]), np.full((1, 2), low), np.full((1, 2), off)
    for spread in spreads:
        b = box(form, v, np.array([2.0**-40, 0.0]) * v, np.full(2, spread))
        for plain in (False, True):
            lower = exactly(lower_bound(system, b, plain).lower[0])
            for point in spots(np.random.default_rng(4), b):
                for sign in (-1, 1):
                    moved = [
                        number(t) + number(low) + sign * s * number(off)
                        for t, s in zip(high, (1 if x > 0 else -1 for x in point), strict=True)
                    ]
                    assert lower <= -sum(x * y for x, y in zip(point, moved, strict=True))


@pytest.mark.parametrize("plain", [False, True])
def test_summands_that_cancel(plain):
    """1e16 - 1 - 1e16, and the other way round."""
    form = blank(1)
    for sign in (1.0, -1.0):
        targets = [np.array([[t]]) for t in (-sign * 1e16, sign, sign * 1e16)]
        system = System(with_rows(form, *(rows_of(np.eye(1), gr.Zero(), form, target=t) for t in targets)))
        lower = lower_bound(system, box(form, np.ones(3)), plain).lower[0]
        assert lower <= -sign
        assert plain or lower > -sign - 1e-14


def test_what_underflows_when_it_is_divided_is_beyond_the_end():
    system = one_row([0.0], RANGE, gr.L1())
    v, tiny, none = np.array([RANGE]), np.array([5e-324]), np.zeros(1)
    assert lower_bound(system, box(system.form, v)).lower[0] > -1e-290
    for low, spread in ((tiny, none), (none, tiny), (np.array([1e-260]), none)):
        assert lower_bound(system, box(system.form, v, low, spread)).lower[0] == -np.inf


@pytest.mark.parametrize("plain", [False, True])
def test_prices_over_their_scales_lie_within_what_they_may_be_off(plain):
    """Where a float is said to be exact it is."""
    rng = np.random.default_rng(7)
    far = [1e-255 * rng.random(20), 1e-279 * (1.0 + rng.random(20))]  # whose quotients underflow
    high = np.concatenate(
        [rng.standard_normal(40), 5e-324 * rng.integers(1, 99, 60), 1e-283 * rng.random(20), [0.0], *far]
    )
    s = np.concatenate([rng.uniform(0.1, 3.0, 60), rng.choice([3.0, 7.0, 0.1, 1e-70, 1e70], 61), np.full(40, 1e70)])
    s[:10] = 1.0
    for low, off in ((0.0, 0.0), (2.0**-54, 0.0), (0.0, 1e-9), (2.0**-54, 2.0**-60)):
        low_part = 0.0 * high if plain else low * high
        b, around = _scaled(high[:, None], low_part[:, None], off * np.abs(high)[:, None], s[:, None], plain)
        for k in range(len(high)):
            for sign in (-1, 1):
                v = number(high[k]) + number(low_part[k]) + sign * number(off * abs(high[k]))
                assert abs(v / number(s[k]) - number(b[k, 0])) <= number(around[k, 0])


def test_values_of_functions_are_multiplied_by_their_scales():
    """s / 2 (v / s)^2, where the square and its multiple are rounded."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        s, v, off = float(10.0 ** rng.uniform(-2, 2)), rng.standard_normal(1), rng.choice([0.0, 1e-3]) * np.ones(1)
        system = one_row([0.0], s, gr.SquaredL2())
        b = box(system.form, v, spread=off)
        for plain in (False, True):
            lower = exactly(lower_bound(system, b, plain).lower[0])
            far = abs(number(v[0])) + number(off[0])
            assert lower <= -far * far / (2 * number(s))
            assert float(lower) >= -float(far * far / (2 * number(s))) * (1 + 1e-14) - 1e-290


class Unrounded(gr.SquaredL2):
    """1/2 ||u||^2 where that is a float: bounds beyond it are this test's own."""

    def conjugate_bound(self, u, spread):
        return np.where(
            (spread == 0.0).all(axis=1), 0.5 * (u * u).sum(axis=1), 0.5 * ((np.abs(u) + spread) ** 2).sum(axis=1)
        )


def test_multiples_of_values_pay_for_their_rounding():
    """s f* where f* is 1/2 (v / s)^2 exactly, and s times it is rounded upwards to what is too small a loss."""
    lost = []
    for k in range(400):
        s = 1.0 + 1e-3 * k + 2.0**-52 * (k % 7)
        q = 1.0 + 2.0**-26 * k  # v = s q is no float, so that v is rounded; take q^2 / 2 exact
        exact = exactly(s) * exactly(q) ** 2 / 2
        lost.append((exact - exactly(s * (0.5 * q * q)), s, q))
    _, s, q = max(lost)
    system = one_row([0.0], s, Unrounded())
    lower = lower_bound(system, box(system.form, np.array([s * q]))).lower[0]
    b = float(s * q / s)
    assert exactly(lower) <= -exactly(0.5 * b * b) * exactly(s)


# ---- the ends of domains ---------------------------------------------------------------------------------------------
def test_flows_at_their_capacity_are_inside_and_no_others():
    """v / s is rounded: 0.3 / 0.3 is 1, and what is next to it is not."""
    for s in (0.3, 1.0, 3.7e-5, 1e9 / 3.0):
        system = one_row([0.0], s, gr.L1())
        for v, low, off, finite in (
            (s, 0.0, 0.0, True),
            (-s, 0.0, 0.0, True),
            (np.nextafter(s, np.inf), 0.0, 0.0, False),
            (s, s * 2.0**-60, 0.0, False),
            (-s, -s * 2.0**-60, 0.0, False),
            (s, 0.0, s * 2.0**-80, False),
            (s * (1 - 1e-12), 0.0, s * 1e-13, True),
        ):
            b = box(system.form, np.array([v]), np.array([low]), np.array([off]))
            assert (lower_bound(system, b).lower[0] > -1e-290) == finite
            assert finite or lower_bound(system, b).lower[0] == -np.inf
            assert finite or lower_bound(system, b, plain=True).lower[0] == -np.inf


@pytest.mark.parametrize(
    "name", ["a consensus", "labels", "squares along a path", "half lines", "columns over 12 decades", "some columns"]
)
@pytest.mark.parametrize("plain", [False, True])
def test_nothing_outside_of_a_domain_has_a_value(name, plain):
    """Prices and flows at the ends of their domains, give or take some units in the last place."""
    form, system = made(name)
    rng = np.random.default_rng(6)
    for _ in range(12):
        v = np.zeros(system.size)
        for one in system.summands:
            mine = v[one.columns].reshape(one.shape)
            some = rng.random(one.shape[0]) < 0.3
            if hasattr(one, "block"):
                low, high = one.block.loss.domain(one.block.y)
                ends = np.where(rng.random(len(low)) < 0.5, low, high)
                mine[some, 0] = np.where(np.isfinite(ends), ends * one.scale, 0.0)[some]
            else:
                unit = rng.choice([-1.0, 1.0], one.shape) / (one.shape[1] if isinstance(one.penalty, gr.LInf) else 1.0)
                if isinstance(one.penalty, gr.L2):
                    unit = unit * np.eye(one.shape[1])[0]
                mine[some] = (unit * one.scale[:, None])[some]
        for _ in range(3):
            v = np.nextafter(v, np.where(rng.random(len(v)) < 0.5, rng.choice([-1.0, 1.0], len(v)) * np.inf, v))
        low = 2.0**-55 * v * rng.choice([-1.0, 0.0, 0.0, 1.0], len(v))
        spread = np.abs(v) * rng.choice([0.0, 0.0, 2.0**-53, 2.0**-70], len(v))
        value_holds(form, system, box(form, v, low, spread), plain, rng)


def test_low_parts_count_where_sums_are_plain():
    """Once they did not: a bound of one problem was carried over to another as if its box were about the high parts."""
    system = one_row([0.0], 1.0, gr.L1())
    assert lower_bound(system, box(system.form, np.ones(1), np.full(1, 2.0**-55)), plain=True).lower[0] == -np.inf
    inside = np.nextafter(np.ones(1), 0.0) - 2.0**-40
    assert lower_bound(system, box(system.form, inside, np.full(1, 2.0**-39)), plain=True).lower[0] == -np.inf
    product_holds([2.0**60], [1.0], low=np.array([2.0**-54]))
    product_holds([-(2.0**60)], [1.0], low=np.array([2.0**-54]))
    product_holds([2.0**60], [1.0], low=np.array([-(2.0**-54)]), spread=np.array([2.0**-56]))


def test_what_leaves_its_domain_loses_its_component_and_is_named():
    loss = gr.QuantileLoss(gr.NodeData.from_arrays(np.ones((4, 1)), np.arange(4.0), list("aabb")))
    form = gr.Problem(loss).form
    system, (block,) = System(form), form.samples
    ok = np.zeros(4)
    none = lower_bound(system, box(form, ok))
    assert none.lower.tolist() == [0.0, 0.0]
    assert none.why == ""
    assert not none.outside.any()
    far = np.array([0.0, 0.0, 0.0, 2.0 * block.scale[3]])
    found = lower_bound(system, box(form, far))
    assert found.lower.tolist() == [0.0, -np.inf]
    assert found.outside.tolist() == [False, False, False, True]
    assert found.why == "a price of QuantileLoss leaves its domain at node 'b'"
    lost = replace(box(form, ok), lost=np.array([True, False]), why="not balanced")
    found = lower_bound(system, lost)
    assert found.lower.tolist() == [-np.inf, 0.0]
    assert found.why == "not balanced"
    both = lower_bound(system, replace(lost, high=far))
    assert both.lower.tolist() == [-np.inf, -np.inf]
    assert both.why == "not balanced; a price of QuantileLoss leaves its domain at node 'b'"


def test_three_functions_are_named_of_those_that_leave_their_domains():
    form = blank(1)
    system = System(with_rows(form, *(rows_of(np.eye(1), gr.L1(), form) for _ in range(5))))
    for some in range(6):
        v = np.where(np.arange(5) < some, 2.0, 0.0)
        assert lower_bound(system, box(form, v)).why.count("leaves its domain") == min(some, 3)


def test_variables_of_a_function_leave_their_domain_together():
    form = gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_arrays(np.eye(3), np.zeros(3), [0, 0, 1]))
        + gr.TotalVariation(nx.path_graph(2), gr.L2())
    ).form
    system = System(form)
    v = np.array([0.0, 0.0, 0.0, 0.9, 0.9, 0.0])
    found = lower_bound(system, box(form, v))
    assert found.outside.tolist() == [False] * 3 + [True] * 3
    assert found.lower.tolist() == [-np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["high", "low", "spread"])
@pytest.mark.parametrize("name", ["squares along a path", "a consensus", "means in boxes", "no samples", "labels"])
def test_what_is_no_number_has_no_value(bad, part, name):
    """But where the function has a value for all numbers alike."""
    form, system = made(name)
    if part == "spread" and bad == -np.inf:
        return  # an empty box
    for k in (0, system.size - 1):
        given = {x: np.zeros(system.size) for x in ("high", "low", "spread")}
        given[part][k] = bad
        b = Balanced(**given, lost=np.zeros(form.n_components, dtype=bool))
        for plain in (False, True):
            with np.errstate(all="ignore"):
                found = lower_bound(system, b, plain)
            constant = name in ("a consensus", "labels") and k > 0  # 0 for whatever flow
            assert constant or not np.isfinite(found.lower).all()


def test_nothing_is_worth_nothing_exactly():
    for name in ("squares along a path", "a consensus", "no samples", "two graphs, two parts"):
        form, system = made(name)
        for plain in (False, True):
            assert not plain or not lower_bound(system, box(form, np.zeros(system.size)), plain).lower.any()
            assert not lower_bound(system, box(form, np.zeros(system.size))).lower.any()
    empty = System(blank(2))
    assert lower_bound(empty, box(empty.form, np.zeros(0))).lower.tolist() == [0.0]


def test_components_are_added_up_apart():
    form, system = made("two graphs, two parts")
    v = inside(form, system, 3)
    whole = lower_bound(system, box(form, v)).lower
    assert (whole != 0.0).all()
    for c in range(2):
        mine = np.concatenate([np.repeat(form.component[one.node] == c, one.shape[1]) for one in system.summands])
        part = lower_bound(system, box(form, np.where(mine, v, 0.0))).lower
        np.testing.assert_array_equal(part, np.where(np.arange(2) == c, whole, 0.0))


def test_whether_all_prices_are_inner():
    form, system = made("a consensus")
    (block,) = form.samples
    v = np.zeros(system.size)
    assert lower_bound(system, box(form, v)).inner
    v[5] = 0.5 * block.scale[5]
    assert not lower_bound(system, box(form, v)).inner
    v[5] = 0.25 * block.scale[5]
    assert lower_bound(system, box(form, v)).inner
    spread = np.where(np.arange(len(v)) == 5, 0.26 * block.scale[5], 0.0)
    assert not lower_bound(system, box(form, v, spread=spread)).inner
    labels, whole = made("labels")
    assert not lower_bound(whole, box(labels, np.zeros(whole.size))).inner  # 0 is an end


# ---- scales ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [0.0, 0.9 / RANGE, 1.1 * RANGE, np.nan, np.inf, -1.0])
def test_scales_out_of_range_are_refused(scale):
    system = one_row([0.0], scale)
    with pytest.raises(RefusedError, match="scale"):
        lower_bound(system, box(system.form, np.zeros(1)))


@pytest.mark.parametrize("scale", [1.0 / RANGE, RANGE])
def test_scales_at_the_ends_of_the_range_hold(scale):
    for v in (0.0, LEAST, 1e-60, 1.0, 1e60):
        for penalty in (gr.L1(), gr.SquaredL2()):
            system = one_row([1.0], scale, penalty)
            for off in (0.0, 1e-80):
                b = box(system.form, np.array([v]), spread=np.array([off]))
                for plain in (False, True):
                    lower = lower_bound(system, b, plain).lower[0]
                    x, s = number(v) + number(off), number(scale)
                    exact = (
                        None
                        if isinstance(penalty, gr.L1) and x > s
                        else -x - (0 if isinstance(penalty, gr.L1) else x * x / (2 * s))
                    )
                    assert lower == -np.inf or (exact is not None and exactly(lower) <= exact)


# ---- what is said of it ----------------------------------------------------------------------------------------------
def enclosed(lower):
    return Enclosed(np.array(lower), DualPoint((), ()), ())


def test_the_sum_of_bounds_is_rounded_downwards():
    for lower in ([0.1, 0.2, 0.3], [1.0, 2.0**-60], [1e16, 1.0, -1e16], [0.1] * 7, [-0.1, 0.3]):
        assert exactly(enclosed(lower).value) <= sum(numbers(lower))
        assert enclosed(lower).value == pytest.approx(float(sum(numbers(lower))), rel=1e-15, abs=1e-300)
    assert enclosed([0.0, 0.0]).value == 0.0
    assert enclosed([1.0, -1.0]).value < 0.0
    for bad in (-np.inf, np.nan, np.inf):
        assert enclosed([0.0, bad]).value == -np.inf


def test_what_is_found_is_kept_as_it_is():
    found = LowerBound(np.zeros(1), np.zeros(2, dtype=bool), "", True)
    assert (found.why, found.inner) == ("", True)
