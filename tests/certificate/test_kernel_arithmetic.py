"""Sums and products that pay for their rounding, against rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_cases import ALMOST, HALF, number, numbers, wide, within

from graphreg.certificate.kernel import arithmetic
from graphreg.certificate.kernel.arithmetic import (
    DUST,
    EPS,
    LARGEST,
    MOST,
    PIECE,
    RANGE,
    Pair,
    RefusedError,
    Runs,
    below,
    dust,
    in_range,
    need,
    total,
    two_product,
    two_sum,
    upwards,
)


def one_run(count):
    return Runs(np.zeros(count, dtype=int), 1)


# ---- numbers and their errors ----------------------------------------------------------------------------------------
def test_sums_of_two_are_exact():
    rng = np.random.default_rng(0)
    a, b = wide(rng, 200), wide(rng, 200)
    s, e = two_sum(a, b)
    assert all(number(x) + number(y) == number(p) + number(q) for x, y, p, q in zip(a, b, s, e, strict=True))


@pytest.mark.parametrize("decades", [0, 40, 260])
def test_products_are_exact(decades):
    rng = np.random.default_rng(1)
    a, b = wide(rng, 300, decades), wide(rng, 300, decades)
    p, e = two_product(a, b)
    assert all(number(x) * number(y) == number(v) + number(w) for x, y, v, w in zip(a, b, p, e, strict=True))
    assert (np.abs(e) <= 2.0**-53 * np.abs(p)).all()


def test_what_does_not_hold_is_refused():
    need(1, "so it is")
    for no in (False, 0, None, np.False_):
        with pytest.raises(RefusedError, match="why"):
            need(no, "why")


def test_ranges():
    for x in (0.0, -0.0, RANGE, -RANGE, 1.0 / RANGE, 1.0):
        assert in_range(np.array([1.0, x]))
    for x in (np.nan, np.inf, -np.inf, np.nextafter(RANGE, np.inf), np.nextafter(1.0 / RANGE, 0.0), -1e-300, 5e-324):
        assert not in_range(np.array([1.0, x]))
    assert in_range(np.zeros(0))
    assert below(np.array([0.0, -0.99 * MOST]))
    for x in (np.nan, np.inf, -np.inf, MOST, -MOST):
        assert not below(np.array([1.0, x]))


def test_the_range_leaves_no_product_to_underflow():
    """What is verified of a float in the range times one of the sizes of corrections: see `Answers.passed`."""
    least = (1.0 / RANGE) * (1.0 / RANGE) * EPS * EPS * arithmetic.LEAST
    assert least > 1e-290
    assert RANGE * RANGE * MOST < 1e290
    assert MOST * MOST < 1e290
    assert arithmetic.UNDERFLOW > 2.0**-960  # both parts of such a product are floats
    assert arithmetic.UNDERFLOW * arithmetic.DUST == 0.0 or arithmetic.DUST >= 1e-305


@pytest.mark.parametrize("roundings", [1, 2, 3, 5, 20])
def test_what_is_rounded_upwards_is_not_less(roundings):
    """Products that all lose almost half a unit."""
    rng = np.random.default_rng(roundings)
    value = 1.0 + 1e-3 * float(rng.random())
    exact = Fraction(value)
    for _ in range(roundings):
        factors = 1.0 + 1e-3 * rng.random(300)
        lost = [Fraction(value) * Fraction(x) - Fraction(value * x) for x in factors.tolist()]
        best = float(factors[int(np.argmax(lost))])
        value, exact = value * best, exact * Fraction(best)
    assert exact - number(value) > roundings * HALF * Fraction(8, 10)
    assert exact <= number(upwards(np.array([value]), roundings)[0]) <= exact * (1 + (roundings + 4) * 2 * HALF)
    tiny = upwards(np.array([5e-324, 0.0, np.nan, np.inf, 1e-310]), roundings)
    assert tiny[0] >= 1e-320
    assert tiny[1] == 0.0
    assert np.isnan(tiny[2])
    assert tiny[3] == np.inf
    assert tiny[4] >= 2e-310


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sizes_are_not_less(sign):
    high, low = (
        sign * np.array([1.0, 1.0, 0.0, 0.0, 1e-300, 1.0]),
        sign * np.array([ALMOST, -ALMOST, 0.0, 1e-5, 0.0, 1.0]),
    )
    error = np.array([0.0, 2.0**-60, 1e-9, 0.0, 1e-310, 1e16])
    size = Pair(high, low, error).size()
    for h, l, e, found in zip(high, low, error, size, strict=True):
        assert number(found) >= abs(number(h) + number(l)) + number(e)
        assert found <= (abs(h) + abs(l) + e) * (1.0 + 1e-6) + 1e-290


def test_sizes_that_are_not_known_are_not_small():
    """Once nothing was said of them to be left, as no comparison holds of NaN."""
    for high, error in ((np.nan, 0.0), (0.0, np.nan), (np.inf, 0.0), (0.0, np.inf)):
        (size,) = Pair(np.array([high]), np.zeros(1), np.array([error])).size()
        assert not size <= 1e300
    assert Pair(np.zeros(1), np.zeros(1), np.zeros(1)).size() == 0.0
    assert Pair(np.ones(1), -np.ones(1), np.zeros(1)).size() == 0.0


def test_pairs_in_some_columns():
    pair = Pair(*np.arange(1.0, 19.0).reshape(3, 3, 2))
    found = pair.within(np.array([3, 1]), (3, 4))
    for whole, part in ((found.high, pair.high), (found.low, pair.low), (found.error, pair.error)):
        np.testing.assert_array_equal(whole[:, [3, 1]], part)
        np.testing.assert_array_equal(whole[:, [0, 2]], 0.0)


# ---- the ends of the range -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("one", "other"),
    [(1e-150, 3e-160), (1e-200, 1e-200), (1.1e-290, 0.7), (3e-308, 0.3), (3e-155, 1.7e-156), (7e-200, 3e-95)],
)
def test_products_at_the_lower_end_of_the_range_are_off_by_dust(one, other):
    rng = np.random.default_rng(9)
    for _ in range(20):
        a, b = one * rng.uniform(1, 2), other * rng.uniform(1, 2)
        found = one_run(3).products(np.full((3, 1), a), np.full(3, b))
        within(found, (0, 0), 3 * number(a) * number(b))
        if a * b < 1e-280:
            assert found.error[0, 0] >= DUST


def test_dust_is_where_products_are_small():
    a, b = np.array([1.0, 1e-150, 0.0, 1.0, -1.0, -1e-150]), np.array([1.0, 1e-150, 1e-300, 0.0, 1.0, 1e-150])
    np.testing.assert_array_equal(dust(a * b, a, b), [0.0, DUST, 0.0, 0.0, 0.0, DUST])
    assert dust(a[[0, 2, 3]] * b[[0, 2, 3]], a[[0, 2, 3]], b[[0, 2, 3]]) is None


def test_products_beyond_the_range_bound_nothing():
    with np.errstate(all="ignore"):
        found = one_run(2).products(np.array([[1e301], [1e200]]), np.array([2.0, 1e200]))
    assert not np.isfinite(found.high + found.error).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_bounds_nothing(bad):
    values = np.array([1.0, bad, 2.0, 3.0])
    runs = Runs(np.array([0, 0, 1, 1]), 2)
    with np.errstate(all="ignore"):
        for found in (runs.sums(values), runs.plain(values)):
            assert not np.isfinite(found.high[0] + found.low[0] + found.error[0])
            assert found.high[1] == 5.0
        long = np.ones(3 * PIECE)
        long[700] = bad
        found = one_run(len(long)).plain(long)
        assert not np.isfinite(found.high[0] + found.low[0] + found.error[0])
        assert not np.isfinite(one_run(4).most(np.abs(values))[0])


def test_sums_near_the_end_of_the_range_bound_nothing_or_hold():
    rng = np.random.default_rng(2)
    for size in (1e290, 1e300, 1e304, 1e306, 1.7e308, 2.0 ** (LARGEST - 8), 2.0 ** (LARGEST - 6)):
        values = size * rng.uniform(0.1, 1.0, 64) * rng.choice([-1.0, 1.0], 64)
        with np.errstate(all="ignore"):
            found = one_run(64).sums(values)
        if np.isfinite(found.high[0] + found.low[0] + found.error[0]):
            within(found, 0, sum(numbers(values)))
    tiny = 5e-324 * rng.integers(-99, 99, 40)
    within(one_run(40).sums(tiny), 0, sum(numbers(tiny)))
    assert not one_run(40).sums(tiny).error.any()


# ---- sums over runs --------------------------------------------------------------------------------------------------
def cancelling(rng, count, length):
    """Runs of products over 40 decades, the second half of each almost undoing the first."""
    X, a = wide(rng, (count * length, 2)), wide(rng, count * length)
    half = length // 2
    for k in range(count):
        first = slice(k * length, k * length + half)
        X[k * length + half : k * length + 2 * half] = X[first]
        a[k * length + half : k * length + 2 * half] = -a[first] * (1.0 + 2.0**-50 * rng.integers(0, 2, half))
    return X, a, np.repeat(np.arange(count), length)


@pytest.mark.parametrize(
    "order", ["sorted", "unsorted", "chunked", "chunked and unsorted", "in chunks smaller than runs"]
)
def test_sums_of_products_with_cancellation(order, monkeypatch):
    rng = np.random.default_rng(3)
    X, a, index = cancelling(rng, 8, 31)
    index = np.where(index >= 5, index + 1, index)  # a run without entries
    if "unsorted" in order:
        mixed = rng.permutation(len(a))
        X, a, index = X[mixed], a[mixed], index[mixed]
    if "chunked" in order:
        monkeypatch.setattr(arithmetic, "CHUNK", 70)
    if "smaller" in order:
        monkeypatch.setattr(arithmetic, "CHUNK", 10)
    found = Runs(index, 10).products(X, a)
    for k in set(index.tolist()):
        for j in range(2):
            parts = [x * y for x, y in zip(numbers(X[index == k, j]), numbers(a[index == k]), strict=True)]
            within(found, (k, j), sum(parts))
            largest = max(abs(p) for p in parts)
            # two layers: what is left is of the order of the unit roundoff squared
            assert number(found.error[k, j]) <= 64**2 * number(EPS) ** 2 * largest + number(DUST) * 64
    for k in (5, 9):
        assert not found.high[k].any()
        assert not found.error[k].any()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("runs", [1, 7, 300])
def test_sums_hold(plain, runs):
    rng = np.random.default_rng(4)
    values, index = wide(rng, 300), rng.integers(0, runs, 300)
    index[index == 3] = 4
    runs_of = Runs(index, runs + 1)
    found = runs_of.plain(values) if plain else runs_of.sums(values)
    size = runs_of.magnitudes(values[:, None])[:, 0]
    for k in range(runs + 1):
        within(found, k, sum(numbers(values[index == k]), Fraction(0)))
        assert found.error[k] <= (1e-13 if plain else 1e-28) * size[k] + 1e-280
        assert size[k] == pytest.approx(np.abs(values[index == k]).sum())


def test_runs_in_order_are_taken_as_they_are():
    values = wide(np.random.default_rng(5), 6, 3)
    for index, size in (
        ([0, 1, 2, 3, 4, 5], 6),
        ([0, 1, 3, 4, 5, 6], 7),
        ([5, 4, 3, 2, 1, 0], 6),
        ([0, 0, 1, 1, 3, 3], 5),
    ):
        for found in (Runs(np.array(index), size).plain(values), Runs(np.array(index), size).sums(values)):
            for k in range(size):
                within(found, k, sum(numbers(values[np.array(index) == k]), Fraction(0)))
    none = Runs(np.zeros(0, dtype=int), 3)
    for found in (none.plain(np.zeros(0)), none.sums(np.zeros(0)), none.products(np.zeros((0, 2)), np.zeros(0))):
        assert not found.high.any()
        assert not found.error.any()
    assert not none.most(np.zeros(0)).any()


@pytest.mark.parametrize("size", [2, PIECE, PIECE + 1, 3 * PIECE, 5001])
def test_the_exact_sum_lies_within_the_error_of_a_plain_one(size):
    rng = np.random.default_rng(size)
    for values in (wide(rng, size, 16), np.concatenate([[1.0], np.full(size - 1, ALMOST)])):
        found = one_run(size).plain(values)
        within(found, 0, sum(numbers(values)))
        assert found.error[0] <= 1e-12 * np.abs(values).sum()


@pytest.mark.parametrize("count", [3, 17, 130])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sums_of_what_two_layers_leave_pay_for_their_rounding(count, sign):
    """Numbers far below the largest, of which every sum but the first is lost."""
    tiny = 2.0**-125
    values = sign * np.concatenate([[1.0, 2.0**-53, tiny], np.full(count, tiny * ALMOST)])
    found = one_run(len(values)).sums(values)
    exact = sum(numbers(values))
    within(found, 0, exact)
    assert (
        abs(number(found.high[0]) + number(found.low[0]) - exact) > number(tiny) * HALF * count / 2
    )  # as bad as meant


@pytest.mark.parametrize("count", [2, 6, 14, 30, 62, 126, 1000])
def test_leading_parts_add_up_exactly(count):
    """The largest numbers that there may be of one size, all odd in their last places."""
    values = np.full(count, 1.0 - 2.0**-53)
    found = one_run(count).sums(values)
    assert number(found.high[0]) + number(found.low[0]) == sum(numbers(values))
    mixed = np.where(np.arange(count) % 3 == 0, 1.0 - 2.0**-53, 2.0**-40 * (1.0 - 2.0**-52))
    within(one_run(count).sums(mixed), 0, sum(numbers(mixed)))
    X, a = np.full((count, 1), 1.0 - 2.0**-53), np.full(count, 1.0 - 2.0**-52)
    within(one_run(count).products(X, a), (0, 0), count * number(X[0, 0]) * number(a[0]))


@pytest.mark.parametrize("count", [6, 14, 30, 62])
def test_what_products_miss_adds_up_with_what_the_first_layer_leaves(count):
    """Products of which the first layer leaves as much as it can, or nothing, beside remainders of all sizes."""
    rng = np.random.default_rng(count)
    bits = int(np.ceil(np.log2(count + 2)))
    for share in (0.49, -0.49, 0.3):
        a = 1.0 + 2.0**-20 * rng.random(count)
        x = (1.0 - 2.0**-30 - share * 2.0 ** (bits - 53)) / a
        exact = sum(p * q for p, q in zip(numbers(x), numbers(a), strict=True))
        within(one_run(count).products(x[:, None], a), (0, 0), exact)
    x, a = 0.5 + 0.4 * rng.random((2, 1000 * count))
    p = x * a
    whole = np.flatnonzero(p * 2.0 ** (52 - bits) % 1.0 == 0.0)[: count - 1]
    x, a = np.append(x[whole], 0.5), np.append(a[whole], 0.5)
    exact = sum(p * q for p, q in zip(numbers(x), numbers(a), strict=True))
    assert len(x) > count // 2
    within(one_run(len(x)).products(x[:, None], a), (0, 0), exact)


def test_amounts_add_up_to_no_more():
    rng = np.random.default_rng(8)
    for values in (np.abs(wide(rng, 200)), np.concatenate([[1.0], np.full(5000, ALMOST)])):
        index = rng.integers(0, 5, len(values)) if len(values) < 1000 else np.zeros(len(values), dtype=int)
        found = Runs(index, 6).most(values)
        for k in range(6):
            exact = sum(numbers(values[index == k]), Fraction(0))
            assert exact <= number(found[k]) <= exact * Fraction(1 + 1e-6)


def test_the_largest_of_each_run(monkeypatch):
    rng = np.random.default_rng(6)
    values, index = rng.random((200, 2)) - 0.5, rng.integers(0, 9, 200)
    for chunk in (1 << 16, 30):
        monkeypatch.setattr(arithmetic, "CHUNK", chunk)
        found = Runs(index, 10).largest(values)
        for j in range(2):
            assert found[:, j].tolist() == [np.abs(values[index == k, j]).max() for k in range(9)] + [0.0]


# ---- totals ----------------------------------------------------------------------------------------------------------
def test_cascaded_totals_hold_and_say_where_they_are_exact():
    rng = np.random.default_rng(5)
    parts = [wide(rng, 50, 30) for _ in range(6)]
    found = total([*parts, *(-p for p in parts[:5])], [])
    for r in range(50):
        within(found, r, number(parts[5][r]))
    integers = [rng.integers(-99, 99, 5).astype(float) for _ in range(8)]
    found = total(integers, [])
    assert not found.error.any()
    np.testing.assert_array_equal(found.high, np.sum(integers, axis=0))
    alone = total([parts[0]], [np.full(50, 0.25)])
    np.testing.assert_array_equal(alone.high, parts[0])
    assert (alone.error >= 0.25).all()


@pytest.mark.parametrize("count", [3, 10, 60])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_totals_pay_for_what_their_low_parts_lose(count, sign):
    """The low parts are 1 and then numbers that 1 swallows."""
    parts = [np.array([sign * x]) for x in (2.0**60, 1.0, *[ALMOST] * count)]
    found = total(parts, [np.array([2.0**-70]), np.array([2.0**-71])])
    exact = sum(number(x[0]) for x in parts)
    lost = abs(number(found.high[0]) + number(found.low[0]) - exact)
    assert lost > count * HALF * Fraction(9, 10)
    assert lost + number(2.0**-70) + number(2.0**-71) <= number(found.error[0])
