"""Sums and products that pay for their rounding, against rational numbers."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import ALMOST, HALF, exactly, number, numbers, wide, within

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
    below,
    down,
    extracted,
    in_range,
    magnitudes,
    multiples,
    need,
    product,
    sums,
    total,
    two_product,
    two_sum,
    upwards,
)


def added(values, place=None, places=1, plain=False, parts=1):
    """Sums of numbers by their places, some at a time."""
    place, none = np.zeros(len(values), dtype=int) if place is None else np.asarray(place), np.zeros(1)
    some = np.array_split(np.arange(len(values)), parts)
    return sums([(place[k], Pair(values[k], none, none)) for k in some], places, plain)


def products(a, b, place=None, places=1, parts=1):
    """The same of products, as where B is multiplied: between the first place and the last of each piece."""
    place = np.zeros(len(a), dtype=int) if place is None else np.asarray(place)

    def pieces():
        for k in np.array_split(np.arange(len(a)), parts):
            if len(k):
                low, high = int(place[k].min()), int(place[k].max()) + 1
                yield slice(low, high), (place[k] - low).astype(np.int32), *product(a[k], b[k])

    size = np.bincount(place, magnitudes(a) * np.abs(b), places) * arithmetic.MORE
    return extracted(pieces, size, np.bincount(place, minlength=places))


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
    exact = exactly(value)
    for _ in range(roundings):
        factors = 1.0 + 1e-3 * rng.random(300)
        lost = [exactly(value) * exactly(x) - exactly(value * x) for x in factors.tolist()]
        best = float(factors[int(np.argmax(lost))])
        value, exact = value * best, exact * exactly(best)
    assert exact - number(value) > roundings * HALF * exactly(8, 10)
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


@pytest.mark.parametrize("x", [1e-70, -1e-70, 1.0, 3e70])
def test_magnitudes_are_large_enough_that_no_product_underflows(x):
    v = np.array([0.0, -0.0, 5e-324, -1e-250, 1e-200, -3.0, np.inf])
    found = magnitudes(v)
    assert found[:2].tolist() == [0.0, 0.0]
    assert (found >= np.abs(v)).all()
    assert (found[2:] * abs(x) >= 1e-271).all()
    assert found[4:].tolist() == [1e-200, 3.0, np.inf]
    assert np.isnan(magnitudes(np.array([np.nan]))).all()


# ---- the ends of the range -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("one", "other"),
    [(1e-150, 3e-160), (1e-200, 1e-200), (1.1e-290, 0.7), (3e-308, 0.3), (3e-155, 1.7e-156), (7e-200, 3e-95)],
)
def test_products_at_the_lower_end_of_the_range_are_off_by_dust(one, other):
    rng = np.random.default_rng(9)
    for _ in range(20):
        a, b = one * rng.uniform(1, 2), other * rng.uniform(1, 2)
        found = products(np.full(3, a), np.full(3, b))
        within(found, 0, 3 * number(a) * number(b))
        if a * b < 1e-280:
            assert found.error[0] >= DUST


def test_dust_is_where_products_are_small():
    """And not where they are multiples by 1, which are exact."""
    a = np.array([1.0, 1e-150, 0.0, 3.0, -1.0, -1e-150, 1.0, -1.0, 2.0])
    b = np.array([1.0, 1e-150, 1e-300, 0.0, 1.0, 1e-150, 1e-300, 5e-324, 1e-300])
    p, e, off = product(a, b)
    np.testing.assert_array_equal(off, [0.0, DUST, 0.0, 0.0, 0.0, DUST, 0.0, 0.0, DUST])
    np.testing.assert_array_equal(p, a * b)
    assert all(
        number(x) * number(y) == number(v) + number(w)
        for x, y, v, w in zip(*(k[6:8] for k in (a, b, p, e)), strict=True)
    )
    assert not product(a[[0, 2, 3]], b[[0, 2, 3]])[2].any()


def test_products_beyond_the_range_bound_nothing():
    with np.errstate(all="ignore"):
        found = products(np.array([1e301, 1e200]), np.array([2.0, 1e200]))
    assert not np.isfinite(found.high + found.error).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_bounds_nothing(bad):
    values = np.array([1.0, bad, 2.0, 3.0])
    with np.errstate(all="ignore"):
        for found in (added(values, [0, 0, 1, 1], 2, plain) for plain in (False, True)):
            assert not np.isfinite(found.high[0] + found.low[0] + found.error[0])
            assert found.high[1] == 5.0
        long = np.ones(3 * PIECE)
        long[700] = bad
        found = added(long, plain=True)
        assert not np.isfinite(found.high[0] + found.low[0] + found.error[0])


def test_sums_near_the_end_of_the_range_bound_nothing_or_hold():
    rng = np.random.default_rng(2)
    for size in (1e290, 1e300, 1e304, 1e306, 1.7e308, LARGEST / 64, LARGEST / 32, LARGEST):
        values = size * rng.uniform(0.1, 1.0, 64) * rng.choice([-1.0, 1.0], 64)
        with np.errstate(all="ignore"):
            found = added(values)
        if np.isfinite(found.high[0] + found.low[0] + found.error[0]):
            within(found, 0, sum(numbers(values)))
    tiny = 5e-324 * rng.integers(-99, 99, 40)
    within(added(tiny), 0, sum(numbers(tiny)))
    assert not added(tiny).error.any()


# ---- sums by places --------------------------------------------------------------------------------------------------
def cancelling(rng, count, length):
    """Runs of products over 40 decades, the second half of each almost undoing the first."""
    X, a = wide(rng, count * length), wide(rng, count * length)
    half = length // 2
    for k in range(count):
        first = slice(k * length, k * length + half)
        X[k * length + half : k * length + 2 * half] = X[first]
        a[k * length + half : k * length + 2 * half] = -a[first] * (1.0 + 2.0**-50 * rng.integers(0, 2, half))
    return X, a, np.repeat(np.arange(count), length)


@pytest.mark.parametrize("parts", [1, 4, 100])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_sums_of_products_with_cancellation(order, parts):
    rng = np.random.default_rng(3)
    X, a, place = cancelling(rng, 8, 31)
    place = np.where(place >= 5, place + 1, place)  # a place without entries
    if order == "unsorted":
        mixed = rng.permutation(len(a))
        X, a, place = X[mixed], a[mixed], place[mixed]
    found = products(X, a, place, 10, parts)
    for k in set(place.tolist()):
        each = [x * y for x, y in zip(numbers(X[place == k]), numbers(a[place == k]), strict=True)]
        within(found, k, sum(each))
        largest = max(abs(p) for p in each)
        # two layers: what is left is of the order of the unit roundoff squared
        assert number(found.error[k]) <= 64**3 * number(EPS) ** 2 * largest + number(DUST) * 64
    for k in (5, 9):
        assert not found.high[k].any()
        assert not found.error[k].any()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("places", [1, 7, 300])
def test_sums_hold(plain, places):
    rng = np.random.default_rng(4)
    values, place = wide(rng, 300), rng.integers(0, places, 300)
    place[place == 3] = 4
    found = added(values, place, max(places, 5) + 1, plain, parts=3)
    for k in range(max(places, 5) + 1):
        mine = values[place == k]
        within(found, k, sum(numbers(mine), exactly(0)))
        assert found.error[k] <= (1e-12 if plain else 1e-25) * np.abs(mine).sum() + 1e-280


def test_sums_of_pairs_hold_with_their_low_parts_and_errors():
    rng = np.random.default_rng(5)
    high, low, off = rng.standard_normal((3, 40))
    place, off = np.arange(40) % 3, np.abs(off)
    for plain in (False, True):
        found = sums([(place, Pair(high, low, off)), (place, Pair(low, np.full(1, 0.3), np.zeros(1)))], 4, plain)
        for k in range(3):
            mine = place == k
            exact = sum(numbers(high[mine])) + 2 * sum(numbers(low[mine])) + int(mine.sum()) * number(0.3)
            for sign in (-1, 1):
                within(found, k, exact + sign * sum(numbers(off[mine])))
        assert (found.high[3], found.low[3], found.error[3]) == (0.0, 0.0, 0.0)


def test_nothing_adds_up_to_nothing():
    for plain in (False, True):
        for found in (added(np.zeros(0), np.zeros(0, dtype=int), 3, plain), sums([], 3, plain)):
            assert not found.high.any()
            assert not found.low.any()
            assert not found.error.any()
    found = added(np.array([1.5, -1.5, 0.25]), [0, 0, 1], 2)
    assert found.high.tolist() == [0.0, 0.25]
    assert not found.error.any()


@pytest.mark.parametrize("size", [2, PIECE, PIECE + 1, 3 * PIECE, 5001])
def test_the_exact_sum_lies_within_the_error_of_a_plain_one(size):
    rng = np.random.default_rng(size)
    for values in (wide(rng, size, 16), np.concatenate([[1.0], np.full(size - 1, ALMOST)])):
        found = added(values, plain=True)
        within(found, 0, sum(numbers(values)))
        assert found.error[0] <= 1e-12 * np.abs(values).sum()


@pytest.mark.parametrize("count", [3, 17, 130])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sums_of_what_two_layers_leave_pay_for_their_rounding(count, sign):
    """Numbers far below the largest, of which every sum but the first is lost."""
    tiny = 2.0**-125
    values = sign * np.concatenate([[1.0, 2.0**-53, tiny], np.full(count, tiny * ALMOST)])
    found = added(values)
    exact = sum(numbers(values))
    within(found, 0, exact)
    assert (
        abs(number(found.high[0]) + number(found.low[0]) - exact) > number(tiny) * HALF * count / 2
    )  # as bad as meant


@pytest.mark.parametrize("count", [2, 6, 14, 30, 62, 126, 1000])
def test_leading_parts_add_up_exactly(count):
    """The largest numbers that there may be of one size, all odd in their last places."""
    values = np.full(count, 1.0 - 2.0**-53)
    found = added(values)
    assert number(found.high[0]) + number(found.low[0]) == sum(numbers(values))
    mixed = np.where(np.arange(count) % 3 == 0, 1.0 - 2.0**-53, 2.0**-40 * (1.0 - 2.0**-52))
    within(added(mixed), 0, sum(numbers(mixed)))
    x, a = np.full(count, 1.0 - 2.0**-53), np.full(count, 1.0 - 2.0**-52)
    within(products(x, a), 0, count * number(x[0]) * number(a[0]))


@pytest.mark.parametrize("count", [6, 14, 30, 62])
def test_what_products_miss_adds_up_with_what_the_first_layer_leaves(count):
    """Products of which the first layer leaves as much as it can, or nothing, beside remainders of all sizes."""
    rng = np.random.default_rng(count)
    bits = int(np.ceil(np.log2(count + 2)))
    for share in (0.49, -0.49, 0.3):
        a = 1.0 + 2.0**-20 * rng.random(count)
        x = (1.0 - 2.0**-30 - share * 2.0 ** (bits - 53)) / a
        exact = sum(p * q for p, q in zip(numbers(x), numbers(a), strict=True))
        within(products(x, a), 0, exact)
    x, a = 0.5 + 0.4 * rng.random((2, 1000 * count))
    p = x * a
    whole = np.flatnonzero(p * 2.0 ** (52 - bits) % 1.0 == 0.0)[: count - 1]
    x, a = np.append(x[whole], 0.5), np.append(a[whole], 0.5)
    exact = sum(p * q for p, q in zip(numbers(x), numbers(a), strict=True))
    assert len(x) > count // 2
    within(products(x, a), 0, exact)


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
    assert lost > count * HALF * exactly(9, 10)
    assert lost + number(2.0**-70) + number(2.0**-71) <= number(found.error[0])


# ---- downwards -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("high", [1.0, -1.0, 3e9, -2e-300])
@pytest.mark.parametrize("share", [0.98, 1.02, -0.98, -1.02, 0.3, -0.3])
def test_numbers_are_rounded_downwards(high, share):
    """Low parts that are rounded away, or upwards to the next float."""
    low, errors = high * share * 2.0**-53, (0.0, abs(high) * 2.0**-60, abs(high))
    for error in errors:
        (found,) = down(Pair(np.array([high]), np.array([low]), np.array([error])))
        exact = number(high) + number(low) - number(error)
        assert number(found) <= exact
        assert float(exact) - found <= 1e-6 * error + 1e-15 * abs(high) + 2e-300
    assert down(Pair(np.array([high]), np.zeros(1), np.zeros(1))) == high
    assert down(Pair(np.zeros(1), np.array([low]), np.zeros(1))) <= low


def test_what_is_not_known_is_minus_infinity():
    for bad in (np.nan, np.inf, -np.inf):
        for k in range(3):
            parts = [np.array([x]) for x in np.roll([bad, 0.0, 0.0], k)]
            assert down(Pair(*parts)) == -np.inf


def test_multiples_pay_for_their_rounding():
    rng = np.random.default_rng(9)
    s, values = rng.uniform(0.5, 2.0, 200), rng.standard_normal(200)
    values[:3] = 0.0, 1e-300, 5e-324
    s[:3] = 1.0, 1e-70, 1e-70
    found = multiples(s, values)
    for x, y, high, error in zip(s, values, found.high, found.error, strict=True):
        assert abs(-number(x) * number(y) - number(high)) <= number(error)
    assert found.error[0] == 0.0
    assert not found.low.any()
