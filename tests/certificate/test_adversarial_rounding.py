"""Bounds of rounding against fractions, at numbers built so that every rounding errs the same way.

Random draws err to both sides, and come nowhere near what a bound of rounding allows: a constant of it may be wrong by
far, and no random test sees that.
"""

from fractions import Fraction

import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate.enclosure.rows import Prices
from graphreg.certificate.enclosure.structure import Structure
from graphreg.certificate.enclosure.upper import plain_residuals, sizes

HALF = Fraction(1, 2**53)  # of a unit in the last place of 1


@pytest.mark.parametrize("share", [1.0, 0.98, 0.51, -0.5, -0.49, -0.26])
@pytest.mark.parametrize("scale", [1.0, 2.0**-40, -1.5 * 2.0**30])
def test_the_interval_of_prices_contains_them(share, scale):
    """A low part of up to half a unit is lost where the two are added, with whatever spread, also 0."""
    high, low = scale, scale * share * 2.0**-53
    for spread in (0.0, abs(low) * 2.0**-52, abs(low)):
        value, around = Prices(np.array([high]), np.array([low]), np.array([spread])).interval()
        lost = abs(Fraction(high) + Fraction(low) - Fraction(float(value[0])))
        assert lost + Fraction(spread) <= Fraction(float(around[0]))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 8, 33])
def test_residuals_that_err_at_every_step_stay_within_their_bound(p, sign):
    """The first product loses almost half a unit, and each sum absorbs almost half a unit more; up to p + 2 of them."""
    lost = Fraction(_worst()) ** 2 - Fraction(_worst() * _worst())
    assert Fraction(9, 10) * HALF < lost <= HALF
    X = np.full((1, p), _worst())
    w = np.full(p, 2.0**-53 * 0.98)
    w[0] = _worst()
    y = np.array([-(2.0**-53) * 0.98])
    X, y = sign * X, sign * y
    data = gr.NodeData.from_arrays(np.concatenate([X, X]), np.concatenate([y, y]), [0, 1])
    form = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(2), gr.L2())).form
    block, at = form.samples[0], np.stack([w, w])
    (rows,) = Structure(form).rows(form)
    size = sizes(block, at, rows.design)
    r, around = plain_residuals(block, at, size, slice(0, 2))
    exact = sum((Fraction(x) * Fraction(v) for x, v in zip(X[0].tolist(), w.tolist(), strict=True)), Fraction(0))
    missed = abs(exact - Fraction(float(y[0])) - Fraction(float(r[0])))
    assert missed <= Fraction(float(around[0]))
    unit = HALF * Fraction(float(size[0] + 2 * abs(y[0])))
    assert missed > Fraction(11, 10) * unit  # more than one rounding: the draw is as bad as it is meant to be


def _worst() -> float:
    """A number a little above 1 whose square is rounded down by almost half a unit."""
    a = 1.0 + 0.01 * np.random.default_rng(0).random(400)
    lost = [Fraction(float(v)) ** 2 - Fraction(float(v * v)) for v in a]
    return float(a[int(np.argmax([float(v) for v in lost]))])
