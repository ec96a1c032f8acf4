"""Sums that no order changes: against exact ones, in any order, however dealt out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphreg.network import joined, magnitude, pieces, summed

LISTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40)


def dealt(values, cuts):
    """The sum of values that several parts have, as they find it together."""
    parts = np.split(values, sorted(cuts))
    most = np.max([magnitude(part) for part in parts], axis=0)
    return joined(np.sum([pieces(part, most, len(values)) for part in parts], axis=0), most)


@given(LISTS, st.randoms(use_true_random=False), st.lists(st.integers(0, 40), max_size=4))
def test_no_order_and_no_division_changes_a_bit(values, random, cuts):
    first, other = np.array(values), list(values)
    random.shuffle(other)
    with np.errstate(over="ignore"):
        total = summed(first)
        assert summed(np.array(other)) == total
        assert dealt(np.array(other), [min(cut, len(values)) for cut in cuts]) == total


@given(LISTS)
def test_the_sum_is_nearer_than_that_of_a_loop(values):
    array = np.array(values)
    try:
        exact = math.fsum(values)
    except OverflowError:
        return
    if abs(exact) <= 1e300:
        assert abs(summed(array) - exact) <= 2.0**-52 * abs(exact) + 2.0**-70 * float(magnitude(array))


@pytest.mark.parametrize("exponents", [(0, 0), (-300, 300), (-320, -290), (-20, 0)])
def test_columns_of_wild_scales(exponents):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((5000, 2, 3)) * 10.0 ** rng.uniform(*exponents, (5000, 2, 3))
    total = summed(values)
    assert total.shape == (2, 3)
    for order in range(3):
        shuffled = np.random.default_rng(order).permutation(values)
        np.testing.assert_array_equal(summed(shuffled), total)
        np.testing.assert_array_equal(dealt(shuffled, [7, 1000, 1000]), total)
    exact = [[math.fsum(values[:, j, k]) for k in range(3)] for j in range(2)]
    np.testing.assert_allclose(total, exact, rtol=1e-15, atol=0.0 if exponents[0] > -300 else 1e-322)


def test_what_is_not_finite_stays_so():
    assert summed(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(summed(np.array([np.nan, 1.0])))
    assert summed(np.zeros((0, 2))).tolist() == [0.0, 0.0]
