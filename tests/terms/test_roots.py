"""The ground of smooth losses of one predictor: the limits of their slopes."""

from __future__ import annotations

import numpy as np
import pytest

from graphreg.terms.roots import slopes_far_out

SLOPES = {
    "tanh": (np.tanh, -1.0, 1.0),
    "exp": (np.exp, 0.0, np.inf),
    "a line": (lambda x: 2.0 * x, -np.inf, np.inf),
    "the root of a square": (lambda x: x / np.sqrt(1.0 + x * x), -1.0, 1.0),  # 0 where the square overflows
    "not a number far out": (lambda x: x / np.sqrt(1.0 + x * x * x * x / (x * x)), -1.0, 1.0),
    "the logistic slope": (lambda x: 1.0 / (1.0 + np.exp(-x)), 0.0, 1.0),
}


@pytest.mark.parametrize("name", SLOPES)
def test_the_limits_of_slopes(name):
    slope, low, high = SLOPES[name]
    found = slopes_far_out(slope, (3,))
    np.testing.assert_array_equal(found[0], np.full(3, low))
    np.testing.assert_array_equal(found[1], np.full(3, high))
