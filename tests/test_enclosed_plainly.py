"""Sums that are taken plainly: they pay for what that misses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from graphreg.certificate.enclosure.sums import PIECE, Runs


@pytest.mark.parametrize("size", [PIECE + 1, 3 * PIECE, 5001])
def test_the_exact_sum_lies_within_the_error_of_a_plain_one(size):
    rng = np.random.default_rng(size)
    values = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size)
    found = Runs(np.zeros(size, dtype=int), 1).sums(values, plain=True)
    high, low, error = (Fraction(float(part[0])) for part in (found.high, found.low, found.error))
    assert abs(high + low - sum(map(Fraction, values.tolist()))) <= error
