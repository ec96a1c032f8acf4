"""Bounds of every loss and penalty over boxes, against their formulas in rationals and in decimals of 100 digits.

A convex function is largest at a corner of a box. The formulas are written here a second time, from the definitions;
a bound is never less than the largest exact value, and next to it where nothing is spread.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from law_cases import CLASSES, LOSSES, NUMBERS, PENALTIES, samples

from graphreg.base.declaring import in_library
from graphreg.terms.bounds import ULP, largest_around
from graphreg.terms.bounds import half_square as half_square_of
from graphreg.terms.losses import AbstractLoss
from graphreg.terms.losses.epsilon_insensitive import SquaredEpsilonInsensitiveLoss
from graphreg.terms.losses.expectile import ExpectileLoss
from graphreg.terms.losses.gamma import GammaLoss
from graphreg.terms.losses.hinge import HingeLoss, SquaredHingeLoss
from graphreg.terms.losses.huber import HuberLoss
from graphreg.terms.losses.logistic import LogisticLoss
from graphreg.terms.losses.multinomial import MultinomialLoss
from graphreg.terms.losses.poisson import PoissonLoss
from graphreg.terms.losses.quantile import QuantileLoss
from graphreg.terms.losses.squared import MeanLoss, SquaredLoss
from graphreg.terms.penalties import AbstractPenalty
from graphreg.terms.penalties.ball import Ball
from graphreg.terms.penalties.box import AbstractBox, Box
from graphreg.terms.penalties.huber_norm import HuberNorm
from graphreg.terms.penalties.l1 import L1
from graphreg.terms.penalties.l2 import L2
from graphreg.terms.penalties.linf import LInf
from graphreg.terms.penalties.non_negative import NonNegative
from graphreg.terms.penalties.quadratic import Quadratic
from graphreg.terms.penalties.squared_l2 import SquaredL2
from graphreg.terms.penalties.zero import Zero

getcontext().prec = 100
INF = Decimal("Infinity")
DRAWN = 300
CLOSE = Decimal(2) ** -44  # of the value, and of what is added up
LEAST = Decimal("1e-290")  # what underflow may cost
SHORT = 1e-139  # below it lengths are no sums of squares, and bounds are not tight
HUGE = Decimal("1e200")  # values of which squares may overflow
BESIDE = (1 + Fraction(1, 10**13), 1 - Fraction(1, 10**13))  # points of the domain nearer to its end may be left out
SURE = Decimal("1e-60")  # of the digits of a logarithm


# ---- exact values ----------------------------------------------------------------------------------------------------
def exact(x):
    """A float, exactly."""
    return Fraction(float(x))


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def norm(x):
    return decimal(sum(each * each for each in x)).sqrt()


def half_square(x):
    return decimal(sum(each * each for each in x) / 2)


def entropy(p):
    """p log p; near 1 by the series of log(1 - t), of which decimals would see nothing."""
    t = 1 - p
    if 0 < t < Fraction(1, 10**20):
        return -decimal(p * (t + t**2 / 2 + t**3 / 3 + t**4 / 4 + t**5 / 5))
    return decimal(p) * decimal(p).ln() if p > 0 else Decimal(0)


def exponential(x):
    with localcontext() as context:
        context.Emax, context.Emin = 10**9, -(10**9)
        return decimal(x).exp()


def inside(holds):
    return Decimal(0) if holds else INF


def huber(length, delta):
    delta = decimal(exact(delta))
    return length * length / 2 if length <= delta else delta * (length - delta / 2)


def log_of_one_and(x):
    """log(1 + x); where the sum has no digits of x, by its series."""
    return (1 + x).ln() if x > Decimal("1e-30") else x - x * x / 2


def log_sum(r, y):
    """log sum exp(x_j) - x_own over the classes that are there."""
    own = next(x for x, of in zip(r, y, strict=True) if of > 0)
    return log_of_one_and(sum((exponential(x - own) for x, of in zip(r, y, strict=True) if of == 0), Decimal(0)))


LOSS_VALUES = {  # h(r), around the anchor
    SquaredLoss: lambda loss: lambda r, y: half_square(r),
    MeanLoss: lambda loss: lambda r, y: half_square(r),
    HuberLoss: lambda loss: lambda r, y: huber(decimal(abs(r[0])), loss.delta),
    QuantileLoss: lambda loss: lambda r, y: decimal(max(-exact(loss.tau) * r[0], exact(1.0 - loss.tau) * r[0])),
    HingeLoss: lambda loss: lambda r, y: decimal(max(-exact(y[0]) * r[0], Fraction(0))),
    SquaredHingeLoss: lambda loss: lambda r, y: half_square([max(-exact(y[0]) * r[0], Fraction(0))]),
    LogisticLoss: lambda loss: lambda r, y: log_of_one_and(exponential(-exact(y[0]) * r[0])),
    PoissonLoss: lambda loss: lambda r, y: exponential(r[0]) - decimal(exact(y[0]) * r[0]),
    MultinomialLoss: lambda loss: log_sum,
    GammaLoss: lambda loss: lambda r, y: decimal(r[0]) + decimal(exact(y[0])) * exponential(-r[0]),
    ExpectileLoss: lambda loss: lambda r, y: half_square(r) * sided(loss, r[0]),
    SquaredEpsilonInsensitiveLoss: lambda loss: (
        lambda r, y: half_square([max(abs(r[0]) - exact(loss.epsilon), Fraction(0))])
    ),
}


def sided(loss, r):
    """The factor of an expectile loss on the side of r."""
    return decimal(exact(loss.tau if r < 0 else 1.0 - loss.tau))


def gamma_conjugate(b, y):
    q = 1 - b[0]
    return entropy(q) - decimal(q) * (decimal(exact(y[0])).ln() + 1) if q >= 0 else INF


def logistic_conjugate(b, y):
    q = -exact(y[0]) * b[0]
    return entropy(q) + entropy(1 - q) if 0 <= q <= 1 else INF


def poisson_conjugate(b, y):
    q = b[0] + exact(y[0])
    return entropy(q) - decimal(q) if q >= 0 else INF


def multinomial_conjugate(b, y):
    p = [x + max(exact(of), 0) for x, of in zip(b, y, strict=True)]
    assert sum(p) == 1
    there = all(x >= 0 and (x == 0 or of >= 0) for x, of in zip(p, y, strict=True))
    return sum(map(entropy, p)) if there else INF


LOSS_CONJUGATES = {  # h*(b)
    SquaredLoss: lambda loss: lambda b, y: half_square(b),
    MeanLoss: lambda loss: lambda b, y: half_square(b),
    HuberLoss: lambda loss: lambda b, y: half_square(b) if abs(b[0]) <= exact(loss.delta) else INF,
    QuantileLoss: lambda loss: lambda b, y: inside(-exact(loss.tau) <= b[0] <= exact(1.0 - loss.tau)),
    HingeLoss: lambda loss: lambda b, y: inside(-1 <= b[0] * exact(y[0]) <= 0),
    SquaredHingeLoss: lambda loss: lambda b, y: half_square(b) if b[0] * exact(y[0]) <= 0 else INF,
    LogisticLoss: lambda loss: logistic_conjugate,
    PoissonLoss: lambda loss: poisson_conjugate,
    MultinomialLoss: lambda loss: multinomial_conjugate,
    GammaLoss: lambda loss: gamma_conjugate,
    ExpectileLoss: lambda loss: lambda b, y: half_square(b) / sided(loss, b[0]),
    SquaredEpsilonInsensitiveLoss: lambda loss: lambda b, y: half_square(b) + decimal(exact(loss.epsilon) * abs(b[0])),
}


def largest(x):
    return max(abs(each) for each in x)


def box_conjugate(phi):
    def value(u):
        total = Fraction(0)
        for x, low, high in zip(u, *(np.broadcast_to(b, (len(u),)).tolist() for b in (phi.low, phi.high)), strict=True):
            end = high if x > 0 else low
            if x != 0 and math.isinf(end):
                return INF
            total += x * exact(end) if x != 0 else 0
        return decimal(total)

    return value


def box_value(phi):
    def value(z):
        low, high = (np.broadcast_to(b, (len(z),)).tolist() for b in (phi.low, phi.high))
        return inside(all(a <= x <= b for x, a, b in zip(z, low, high, strict=True)))

    return value


def root_times(phi, z):
    return [sum(exact(r) * x for r, x in zip(row, z, strict=True)) for row in phi.root.tolist()]


def quadratic_conjugate(phi):
    """1/2 ||t||^2 with R't = u, for R square."""
    root = [[exact(x) for x in row] for row in phi.root.tolist()]
    return lambda u: half_square(solved([list(column) for column in zip(*root, strict=True)], u))


def solved(A, b):
    """The solution of A x = b by elimination."""
    rows = [[*row, x] for row, x in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


PENALTY_VALUES = {
    L1: lambda phi: lambda z: decimal(sum(map(abs, z))),
    L2: lambda phi: norm,
    LInf: lambda phi: lambda z: decimal(largest(z)),
    SquaredL2: lambda phi: half_square,
    HuberNorm: lambda phi: lambda z: huber(norm(z), phi.delta),
    Quadratic: lambda phi: lambda z: half_square(root_times(phi, z)),
    Ball: lambda phi: lambda z: inside(sum(x * x for x in z) <= exact(phi.radius) ** 2),
    Zero: lambda phi: lambda z: inside(not any(z)),
    AbstractBox: box_value,
}
PENALTY_CONJUGATES = {
    L1: lambda phi: lambda u: inside(largest(u) <= 1),
    L2: lambda phi: lambda u: inside(sum(x * x for x in u) <= 1),
    LInf: lambda phi: lambda u: inside(sum(map(abs, u)) <= 1),
    SquaredL2: lambda phi: half_square,
    HuberNorm: lambda phi: lambda u: half_square(u) if sum(x * x for x in u) <= exact(phi.delta) ** 2 else INF,
    Quadratic: quadratic_conjugate,
    Ball: lambda phi: lambda u: decimal(exact(phi.radius)) * norm(u),
    Zero: lambda phi: lambda u: Decimal(0),
    AbstractBox: box_conjugate,
}


def of_class(table, term):
    return next(make for cls, make in table.items() if isinstance(term, cls))(term)


# ---- boxes -----------------------------------------------------------------------------------------------------------
SPECIAL = (0.0, 1.0, 0.5, 1e-300, 5e-324, 1e-160, 1e-155, 2.0**-52, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0))


def centers(rng, shape, ends=(), top=12.0):
    """Numbers of all sizes; ends of domains, and the floats beside them."""
    beside = [np.nextafter(e, e + by) for e in ends for by in (-1.0, 1.0)]
    tiny = rng.integers(1, 1 << 20, shape) * 5e-324
    special = np.where(rng.random(shape) < 0.3, tiny, rng.choice(SPECIAL, shape)) * rng.choice([-1.0, 1.0], shape)
    at_ends = rng.choice([*ends, *beside, 0.0], shape) * rng.choice([-1.0, 1.0, 1.0], shape)
    drawn = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-14.0, top, shape)
    within = rng.uniform(-1.0, 1.0, shape) * (max(map(abs, ends)) if ends else 1.0)
    return np.choose(rng.integers(0, 4, shape), [special, at_ends, drawn, within])


def spreads(rng, x):
    """None; far less than rounding, about as much, about x; alone or with others."""
    size = np.choose(
        rng.integers(0, 6, x.shape),
        [0.0 * x, np.full(x.shape, 5e-324), np.abs(x) * 2.0**-54, np.abs(x) * 2.0**-52, np.abs(x), np.abs(x) * 0.3],
    )
    own = 10.0 ** rng.uniform(-20.0, 1.0, x.shape)
    return np.where(
        rng.random(len(x)).reshape(-1, *[1] * (x.ndim - 1)) < 0.3, 0.0, np.where(rng.random(x.shape) < 0.2, own, size)
    )


def corners(x, spread):
    each = [{exact(a) - exact(b), exact(a) + exact(b)} for a, b in zip(np.ravel(x), np.ravel(spread), strict=True)]
    return [list(corner) for corner in product(*each)]


def judge(bound, x, spread, value, at, tight=False, apart=None):
    """The bound of each row is one, and tight where nothing is spread; ``at`` says what values are added up of.

    ``tight``: it is largest at a corner, to rounding, and to ``apart`` where that is given.
    """
    for r in range(len(x)):
        found = [value(corner, r) for corner in corners(x[r], spread[r])]
        most, here = max(found), f"{x[r]} +- {spread[r]}: {bound[r]!r} for {max(found):.20}"
        plain = (tight or not np.any(spread[r])) and (np.abs(x[r]) + spread[r]).max() > SHORT
        assert not np.isnan(bound[r]), here
        if most == INF:
            assert bound[r] == np.inf, here
        elif bound[r] != np.inf:
            assert decimal(exact(bound[r])) >= most - abs(most) * SURE, here
            if plain:
                size = abs(most) + decimal(sum(exact(z) for each in (at[r], spread[r]) for z in np.abs(np.ravel(each))))
                more = 0 if apart is None else decimal(sum(exact(z) for z in np.ravel(apart[r])))
                assert decimal(exact(bound[r])) - most <= CLOSE * size + more + LEAST, here
        elif plain:
            near = [[by * z for z in corner] for by in BESIDE for corner in corners(x[r], spread[r])]
            beside = [value(corner, r) for corner in [*near, *corners(x[r], spread[r] * (1.0 + 1e-13))]]
            assert INF in beside or most > HUGE, here


EXTREME_LOSSES = [
    QuantileLoss(samples(NUMBERS), tau=1e-300),
    HuberLoss(samples(NUMBERS), delta=1e-160),
    ExpectileLoss(samples(NUMBERS), tau=1e-310),
]
SMALL = [
    Ball(1e-200),
    Box(-1e-200, 1e-200),
    Box(-1e-200, 0.0),
    Box(0.0, 1e-200),
    HuberNorm(1e-160),
    Quadratic(1e-200 * np.eye(2)),
]
LOSS_CASES = [*(loss for loss in LOSSES if type(loss) in LOSS_VALUES), *EXTREME_LOSSES]
PENALTY_CASES = [*PENALTIES, *SMALL, Ball(1e90), Box(0.0, 1e90)]


def named(term):
    return repr(term)[:60]


def drawn_targets(loss, rng):
    """The coded targets of some samples."""
    y = loss.targets()
    return y[rng.integers(0, len(y), DRAWN)]


def some_gone(y, rng):
    """The targets, with classes that have left."""
    return np.where((rng.random(y.shape) < 0.1) & (y == 0.0), -1.0, y)


def rows(x):
    """The entries of each sample, one or several."""
    return x.reshape(len(x), -1)


@pytest.mark.parametrize("loss", LOSS_CASES, ids=named)
def test_values_of_losses(loss):
    rng = np.random.default_rng(0)
    y, h = drawn_targets(loss, rng), of_class(LOSS_VALUES, loss)
    steep = isinstance(loss, (PoissonLoss, GammaLoss))
    top = 2.5 if steep else 6.0
    ends = (loss.delta,) if isinstance(loss, HuberLoss) else ()
    x = centers(rng, y.shape, ends, top)
    x = np.clip(x, -60.0, 60.0) if steep else x
    spread = np.minimum(spreads(rng, x), 100.0 if steep else np.inf)
    if y.ndim == 2:
        y, common = some_gone(y, rng), rng.choice([-1.0, 1.0], (DRAWN, 1)) * 10.0 ** rng.uniform(3.0, 8.0, (DRAWN, 1))
        x = np.where(rng.random((DRAWN, 1)) < 0.3, 1e-2 * x + common, x)
    apart = 2.0 * spread * (y if isinstance(loss, PoissonLoss) else 1.0) if steep else 0.0 * spread  # of both ends
    with np.errstate(over="ignore"):
        found = loss.value_bound(x, spread, y)
    at = np.abs(x) + np.abs(y) + 1.0
    judge(found, x, spread, lambda r, i: h(r, rows(y)[i].tolist()), at, tight=True, apart=apart)


@pytest.mark.parametrize("loss", [each for each in LOSS_CASES if not isinstance(each, MultinomialLoss)], ids=named)
def test_conjugates_of_losses(loss):
    rng = np.random.default_rng(1)
    y, conjugate = drawn_targets(loss, rng), of_class(LOSS_CONJUGATES, loss)
    low, high = loss.domain(y)
    ends = np.unique([*rows(low).ravel(), *rows(high).ravel()])
    b = centers(rng, y.shape, tuple(ends[np.isfinite(ends)]))
    nearest = np.minimum(np.abs(b - low), np.abs(high - b))
    reaching = nearest * (1.0 - 10.0 ** rng.uniform(-16.0, -1.0, b.shape))
    spread = np.where((rng.random(b.shape) < 0.3) & np.isfinite(nearest), reaching, spreads(rng, b))
    b, spread = (np.concatenate([b, b]), np.concatenate([spread, 0.0 * spread]))
    y = np.concatenate([y, y])
    judge(
        loss.conjugate_bound(b, spread, y),
        b,
        spread,
        lambda r, i: conjugate(r, rows(y)[i].tolist()),
        np.abs(y) + 1.0,
        True,
    )


@pytest.mark.parametrize("k", [3, 40])
def test_conjugates_of_multinomial_classes(k):
    """Prices add up to 0: of one class they follow, and its box holds what those of the others may give."""
    loss = next(each for each in LOSS_CASES if isinstance(each, MultinomialLoss))
    rng, drawn = np.random.default_rng(2), DRAWN if k == 3 else 20
    row, own = np.arange(drawn), rng.integers(0, k, drawn)
    y = some_gone(np.eye(k)[own], rng)
    assert (loss.prices.dependent(y) == own).all()
    p = rng.dirichlet(np.full(k, 0.5), drawn) * rng.choice([1.0, 1.0, 0.0], (drawn, k))
    b = np.where((y < 0.0) & (rng.random((drawn, 1)) < 0.9), 0.0, p)  # of the others: of the own class what is left
    spread = np.where(y < 0.0, 0.0, np.minimum(spreads(rng, b), 1.0)) * rng.choice([1.0, 1e-3, 0.0], (drawn, 1))
    spread = spread if k == 3 else 0.0 * spread
    b[row, own] = spread[row, own] = 0.0
    sums = [sum(map(exact, each)) for each in b]
    b[row, own] = [-float(each) for each in sums]
    off = [abs(exact(b[r, own[r]]) + sums[r]) + sum(map(exact, spread[r])) for r in row]
    spread[row, own] = list(map(upwards, off))
    found = loss.conjugate_bound(b, spread, y)
    for r in row:
        others = [j for j in range(k) if j != own[r]]
        values = []
        for corner in corners(b[r, others], spread[r, others]):
            whole = dict(zip(others, corner, strict=True))
            whole[own[r]] = -sum(corner)
            values.append(multinomial_conjugate([whole[j] for j in range(k)], y[r].tolist()))
        most, left = max(values), 1 + exact(b[r, own[r]]) - exact(spread[r, own[r]])
        assert found[r] == np.inf if most == INF else decimal_of(found[r]) >= most - abs(most) * SURE
        inside = most < INF and left > 2**-40 and all(exact(b[r, j]) >= exact(spread[r, j]) for j in others)
        assert not inside or np.isfinite(found[r]) or spread[r, others].any()
        if inside and not spread[r, others].any():
            assert decimal_of(found[r]) - most <= CLOSE


def test_multinomial_values_of_many_classes():
    """What is paid for rounding grows with them, and for that of large predictors with these."""
    loss, rng, k = next(each for each in LOSS_CASES if isinstance(each, MultinomialLoss)), np.random.default_rng(13), 40
    y, x = np.eye(k)[rng.integers(0, k, 20)], 1e-3 * rng.standard_normal((20, k))
    judge(
        loss.value_bound(x, 0.0 * x, y), x, 0.0 * x, lambda r, i: log_sum(r, y[i].tolist()), np.abs(x) + y, tight=True
    )


@pytest.mark.parametrize("term", [*LOSS_CASES, *PENALTY_CASES], ids=named)
def test_a_row_is_bounded_by_itself(term):
    """The bound of a row does not depend on others that it is asked for with: some ulp of how BLAS adds are less."""
    rng = np.random.default_rng(14)
    of = (drawn_targets(term, rng),) if isinstance(term, AbstractLoss) else ()
    x = rng.uniform(-1.0, 1.0, of[0].shape if of else (DRAWN, coordinates(term)))
    spread = rng.uniform(0.0, 1.0, x.shape) * rng.choice([0.0, 1.0], len(x)).reshape(-1, *[1] * (x.ndim - 1))
    for bound in (term.value_bound, term.conjugate_bound):
        found = bound(x, spread, *of)
        alone = [bound(*(each[r : r + 1] for each in (x, spread, *of)))[0] for r in range(20)]
        np.testing.assert_allclose(found[:20], alone, rtol=1e-14)


def upwards(x):
    """The least float that is no less."""
    return float(x) if exact(float(x)) >= x else np.nextafter(float(x), np.inf)


def decimal_of(bound):
    return INF if bound == np.inf else decimal(exact(bound))


def coordinates(phi):
    """How many coordinates a penalty is tried with."""
    if isinstance(phi, Quadratic):
        return phi.root.shape[1]
    return next(k for k in (np.size(getattr(phi, "low", 0.0)), 3) if k > 1) if isinstance(phi, AbstractBox) else 2


def drawn_rows(phi, rng, ends):
    x = centers(rng, (DRAWN, coordinates(phi)), ends)
    x[: DRAWN // 4] /= np.maximum(np.linalg.norm(x[: DRAWN // 4], axis=1, keepdims=True), 1e-300)  # near 1
    x = x * rng.choice([1.0, 1.0, *map(abs, ends)], (DRAWN, 1))
    spread = spreads(rng, x)
    return np.concatenate([x, x]), np.concatenate([spread, 0.0 * spread])


def ends_of(phi):
    own = [getattr(phi, name) for name in ("radius", "delta", "low", "high") if hasattr(phi, name)]
    own = np.concatenate([np.zeros(0), *(np.ravel(each) for each in own)])
    return (1.0, *own[np.isfinite(own) & (own != 0.0)].tolist())


@pytest.mark.parametrize("phi", PENALTY_CASES, ids=named)
def test_values_of_penalties(phi):
    rng = np.random.default_rng(3)
    x, spread = drawn_rows(phi, rng, ends_of(phi))
    value = of_class(PENALTY_VALUES, phi)
    size = np.abs(x) ** 2 * 100 if isinstance(phi, Quadratic) else np.zeros(x.shape)
    with np.errstate(over="ignore"):
        found = phi.value_bound(x, spread)
    judge(found, x, spread, lambda z, _: value(z), size, not isinstance(phi, (L2, LInf, Quadratic)))


@pytest.mark.parametrize("phi", PENALTY_CASES, ids=named)
def test_conjugates_of_penalties(phi):
    rng = np.random.default_rng(4)
    u, spread = drawn_rows(phi, rng, ends_of(phi))
    if isinstance(phi, Quadratic) and len(phi.root) < phi.root.shape[1]:
        assert np.isinf(phi.conjugate_bound(u, spread)).all()  # which is asked of SquaredL2 instead, see `composed`
        return
    conjugate = of_class(PENALTY_CONJUGATES, phi)
    size = np.abs(u) ** 2 * 1e4 if isinstance(phi, Quadratic) else np.zeros(u.shape)
    with np.errstate(over="ignore"):
        found = phi.conjugate_bound(u, spread)
    judge(found, u, spread, lambda z, _: conjugate(z), size, not isinstance(phi, Quadratic))


@pytest.mark.parametrize("phi", [L1(), L2(), LInf(), SquaredL2(), HuberNorm(0.2), Box(-1.0, 2.0)], ids=named)
def test_bounds_by_values_alone(phi):
    """What a term has that says no bounds of its own."""
    rng = np.random.default_rng(5)
    x = rng.choice([-1.0, 1.0], (DRAWN, 2)) * 10.0 ** rng.uniform(-6.0, 3.0, (DRAWN, 2))
    spread = spreads(rng, x)
    x, spread = np.concatenate([x, x]), np.concatenate([spread, 0.0 * spread])
    for found, table in (
        (AbstractPenalty.value_bound(phi, x, spread), PENALTY_VALUES),
        (AbstractPenalty.conjugate_bound(phi, x, spread), PENALTY_CONJUGATES),
    ):
        value = of_class(table, phi)
        judge(found, x, spread, lambda z, _, value=value: value(z), 0.0 * x)


def test_bounds_by_values_alone_trust_them_to_some_ulp():
    """Of the largest, of which a row has its own, whatever others are asked for."""
    x, spread = np.array([[1.0, 0.5, 0.25]]), np.array([[0.75, 0.5, 0.25]])
    for k in (1, 3):
        few = largest_around(lambda z: np.abs(z).sum(axis=1) * (1.0 - 15 * ULP), x[:, :k], spread[:, :k])
        assert few[0] >= (x + spread)[:, :k].sum()
    assert largest_around(lambda z: np.abs(z) * (1.0 - 15 * ULP), x[0], spread[0]).tolist() >= (x + spread)[0].tolist()
    below = largest_around(lambda z: (z.sum(axis=1) - 100.0) * (1.0 + 15 * ULP), x[:, :1], spread[:, :1])
    assert below[0] >= (x + spread)[0, 0] - 100.0


def test_bounds_by_values_alone_are_asked_for_points_around_the_whole_box():
    """k times the spread from the middle, at least, also where that is rounded and the middle is taken off."""
    spread = np.random.default_rng(17).uniform(0.5, 1.0, (100, 3))
    asked = []
    for sign in (1.0, -1.0):
        x = sign * 3.0 * spread
        largest_around(lambda z: asked.append(z) or z.sum(axis=1), x, spread)
        below, above = [map(exact, np.ravel(end(asked, axis=0))) for end in (np.min, np.max)]
        for low, high, at, by in zip(below, above, x.ravel(), spread.ravel(), strict=True):
            assert low <= exact(at) - 3 * exact(by)
            assert high >= exact(at) + 3 * exact(by)
        asked.clear()
        spread[0] = 0.0  # a row of none, beside others
        largest_around(lambda z: asked.append(z[0]) or z.sum(axis=1), x, spread)
        assert all((z == x[0]).all() for z in asked)
        asked.clear()


@pytest.mark.parametrize("phi", [L1(), SquaredL2(), Box(-1.0, 2.0)], ids=named)
@pytest.mark.parametrize("k", [1, 3])
def test_bounds_by_values_alone_along_one_coordinate(phi, k):
    rng = np.random.default_rng(9)
    x, spread = rng.uniform(-2.0, 2.0, (60, k)), np.zeros((60, k))
    spread[:, 0] = rng.uniform(0.0, 1.0, 60)
    for bound, table in ((phi.value_bound, PENALTY_VALUES), (phi.conjugate_bound, PENALTY_CONJUGATES)):
        value, found = of_class(table, phi), getattr(AbstractPenalty, bound.__name__)(phi, x, spread)
        judge(found, x, spread, lambda z, _, value=value: value(z), 0.0 * x)


@pytest.mark.parametrize("loss", [SquaredLoss(samples(NUMBERS)), SquaredHingeLoss(samples(CLASSES))], ids=named)
def test_bounds_of_losses_by_values_alone(loss):
    rng = np.random.default_rng(6)
    y = drawn_targets(loss, rng)
    x = rng.choice([-1.0, 1.0], DRAWN) * 10.0 ** rng.uniform(-6.0, 3.0, DRAWN)
    x = x - y + y - y  # such that x + y is no sum of numbers of other sizes
    spread = spreads(rng, x)
    for found, table in (
        (AbstractLoss.value_bound(loss, x, spread, y), LOSS_VALUES),
        (AbstractLoss.conjugate_bound(loss, x, spread, y), LOSS_CONJUGATES),
    ):
        value = of_class(table, loss)
        for r in range(DRAWN):
            most = max(value(corner, [y[r]]) for corner in corners(x[r], spread[r]))
            size = decimal(exact(abs(y[r])) + exact(abs(x[r])) + 1) ** 2  # of what the sum with the target rounds
            assert decimal_of(found[r]) >= most - size * Decimal(2) ** -49


@pytest.mark.parametrize("phi", PENALTY_CASES, ids=named)
def test_nothing_costs_nothing(phi):
    """What has not moved, and pulls nothing, is 0 to the last bit."""
    zero = np.zeros((1, coordinates(phi)))
    bounds = [(phi.value_bound, PENALTY_VALUES), (phi.conjugate_bound, PENALTY_CONJUGATES)]
    for bound, value in bounds[: 2 if phi.composed() is None else 1]:
        if of_class(value, phi)([Fraction(0)] * zero.shape[1]) == 0:
            assert bound(zero, zero)[0] == 0.0


@pytest.mark.parametrize("loss", [each for each in LOSS_CASES if not isinstance(each, MultinomialLoss)], ids=named)
def test_no_price_costs_nothing(loss):
    y = loss.targets()[:1]
    zero = np.zeros(y.shape)
    for bound, value in ((loss.value_bound, LOSS_VALUES), (loss.conjugate_bound, LOSS_CONJUGATES)):
        if of_class(value, loss)([Fraction(0)] * zero.size, y.ravel().tolist()) == 0:
            assert bound(zero, zero, y)[0] == 0.0


@pytest.mark.parametrize("phi", [L1(), L2(), LInf(), SquaredL2(), HuberNorm(0.2), Ball(0.3)], ids=named)
def test_many_coordinates(phi):
    """What is paid for rounding grows with them."""
    rng = np.random.default_rng(7)
    x = rng.choice([-1.0, 1.0], (60, 14)) * rng.uniform(0.5, 1.0, (60, 14)) * 10.0 ** rng.uniform(-3.0, 3.0, (60, 1))
    zero = 0.0 * x
    for bound, table in ((phi.value_bound, PENALTY_VALUES), (phi.conjugate_bound, PENALTY_CONJUGATES)):
        value = of_class(table, phi)
        judge(bound(x, zero), x, zero, lambda z, _, value=value: value(z), zero)


def test_half_squares_of_many_coordinates():
    """What each addition may lose is paid by their number."""
    a = np.full((2, 20000), 2.0**-27)
    a[:, :64] = 1.0
    for found in half_square_of(a):
        assert exact(found) >= (64 + (20000 - 64) * exact(2.0**-54)) / 2


@pytest.mark.parametrize(
    "phi", [L1(), L2(), LInf(), SquaredL2(), HuberNorm(0.2), HuberNorm(1e-3), Ball(0.3)], ids=named
)
def test_one_coordinate(phi):
    """Where least is paid, rounding shows at some of many points."""
    rng = np.random.default_rng(8)
    x, spread = rng.uniform(0.5, 1.0, (2, 2000, 1)) * 10.0 ** np.array(
        [rng.uniform(-4.0, 4.0, (2000, 1)), np.full((2000, 1), -4.0)]
    )
    spread *= rng.choice([0.0, 1.0], spread.shape)
    found = [phi.value_bound(x, spread), phi.conjugate_bound(x, spread)]
    for bound, table in zip(found, (PENALTY_VALUES, PENALTY_CONJUGATES), strict=True):
        value = of_class(table, phi)
        for r in range(len(x)):
            assert decimal_of(bound[r]) >= value([exact(x[r, 0]) + exact(spread[r, 0])])


AT_ENDS = [  # points that reach the end of a domain, and how far they may be spread there without rounding
    (L1().conjugate_bound, [1.0, -1.0], [0.0, 0.0]),
    (L1().conjugate_bound, [0.5, -0.25], [0.25, 0.5]),
    (Zero().value_bound, [0.0, 0.0], [0.0, 0.0]),
    (Box(-1.0, 2.0).value_bound, [-1.0, 2.0], [0.0, 0.0]),
    (NonNegative().conjugate_bound, [-1.0, 0.0], [1.0, 0.0]),
    (NonNegative().conjugate_bound, [-1.0, 0.0], [0.5, 0.0]),
]


@pytest.mark.parametrize(
    ("bound", "x", "spread"), AT_ENDS, ids=["L1", "L1-spread", "Zero", "Box", "NonNegative-Box", "NonNegative-Box-less"]
)
def test_ends_of_domains(bound, x, spread):
    """They belong to it, and what lies a float beyond does not."""
    x, spread = np.array([x]), np.array([spread])
    assert bound(x, spread)[0] == 0.0
    assert bound(x, spread + 0.5 * np.abs(x) + 5e-324)[0] == np.inf


@pytest.mark.parametrize(
    "loss", [each for each in LOSS_CASES if isinstance(each, (HingeLoss, QuantileLoss))], ids=named
)
def test_two_straight_lines(loss):
    """Both ends belong to the domain; a line that is 0 is 0 to the last bit."""
    y = loss.targets()
    zero = np.zeros(y.shape)
    low, high = loss.domain(y)
    for b, beyond in ((low, np.nextafter(low, -np.inf)), (high, np.nextafter(high, np.inf))):
        assert not loss.conjugate_bound(b, zero, y).any()
        assert np.isinf(loss.conjugate_bound(beyond, zero, y)).all()
    flat = np.where(low == 0.0, -2.0, 2.0)
    assert (loss.value_bound(flat, zero + 1.0, y) == 0.0).all() or (low.all() and high.all())


A_COUNT, AROUND, AT = map(float.fromhex, ("0x1.ff49267d75fefp+64", "0x1.005b8d7371d50p-11", "-0x1.005b8d7371d50p-66"))


def test_poisson_of_counts_that_outweigh_what_rises():
    """The rounding of y times the spread is paid, where exp and y r are far less."""
    loss = next(each for each in LOSS_CASES if isinstance(each, PoissonLoss))
    found = loss.value_bound(*(np.array([each]) for each in (AT, AROUND, A_COUNT)))
    assert decimal(exact(found[0])) >= of_class(LOSS_VALUES, loss)([exact(AT) - exact(AROUND)], [A_COUNT])


@pytest.mark.parametrize("off", [0, 4])
def test_poisson_and_gamma_rise_as_exp_does(off, monkeypatch):
    """Its rounding grows with the spread, and exp is trusted to 4 ulp."""
    poisson, gamma = (next(each for each in LOSS_CASES if isinstance(each, cls)) for cls in (PoissonLoss, GammaLoss))
    spread = np.random.default_rng(10).uniform(20.0, 60.0, 100)
    zero, plain = 0.0 * spread, np.exp
    monkeypatch.setattr(np, "exp", lambda x: plain(x) * (1.0 - off * ULP))
    for loss, y in ((poisson, zero), (gamma, zero + 1.0)):
        sign = 1.0 if loss is poisson else -1.0
        for r, around in ((zero, spread), (sign * spread, zero)):
            found = loss.value_bound(r, around, y)
            for a, s in zip(found, spread, strict=True):
                linear = exact(0.0) if loss is poisson else -exact(s)
                assert decimal(exact(a)) >= exponential(exact(s)) + decimal(linear)


def test_gamma_of_tiny_amounts():
    """The rounding of the spread is paid where exp is far less; the last price costs nothing."""
    loss = next(each for each in LOSS_CASES if isinstance(each, GammaLoss))
    spread = np.random.default_rng(15).uniform(0.5, 1.0, 100)
    r, y = np.full(100, 1e-3), np.full(100, 1e-30)
    for a, s in zip(loss.value_bound(r, spread, y), spread, strict=True):
        assert exact(a) >= exact(1e-3) + exact(s)
    assert not loss.conjugate_bound(np.ones(3), np.zeros(3), np.array([1e-9, 1.0, 1e9])).any()


def test_quadratic_where_products_cancel_or_underflow():
    rng = np.random.default_rng(11)
    for sign in (1.0, -1.0):
        phi = Quadratic(np.array([[2.0, 0.7 * sign], [0.7 * sign, 1.3]]))
        last = rng.uniform(0.5, 1.0, 200)
        z = np.stack([-last * phi.root[0, 1] / phi.root[0, 0], last], axis=1)
        phi.root[1] = 0.0
        found = phi.value_bound(z, 0.0 * z)
        for bound, each in zip(found, z, strict=True):
            assert decimal_of(bound) >= half_square(root_times(phi, list(map(exact, each))))
    for k in (1, 2):
        assert (Quadratic(1e-200 * np.eye(k)).value_bound(1e-300 * np.eye(k), np.zeros((k, k))) > 0.0).all()
    assert not Quadratic(np.diag([1.0, 0.0])).value_bound(np.array([[0.0, 5.0]]), np.array([[0.0, 1.0]])).any()


def test_quadratic_of_many_coordinates():
    """Of one root with many: what each addition may lose is paid by their number."""
    phi, k = Quadratic(np.diag([1.0, 0.0])), 4000
    object.__setattr__(phi, "root", np.ones((1, k)))
    z = np.full((2, k), 2.0**-54)
    z[:, :64] = 1.0
    found = phi.value_bound(z, 0.0 * z)
    for bound in found:
        assert exact(bound) >= (64 + (k - 64) * exact(2.0**-54)) ** 2 / 2


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("tilt", [1.0, -1.0])
def test_quadratic_by_a_solution_of_what_is_nearly_singular(sign, tilt, monkeypatch):
    """What rounding leaves out of its residual is paid, times what the inverse makes of it; as much is left, too."""
    rng, plain, phi = np.random.default_rng(16), np.linalg.solve, Quadratic(np.eye(2))
    object.__setattr__(phi, "root", sign * np.array([[1.3, 0.9 * tilt], [0.0, 3e-4]]))
    u = rng.standard_normal((400, 2))
    u[:, 1] = 0.9 / 1.3 * tilt * u[:, 0] * (1.0 + 10.0 ** rng.uniform(-8.0, -2.0, 400))
    units = rng.choice([0.0, 0.0, 1.0], (400, 1)) * rng.uniform(0.0, 16.0, (400, 1)) * rng.choice([-1.0, 1.0], u.shape)
    monkeypatch.setattr(np.linalg, "solve", lambda A, b: plain(A, b + (units * ULP * np.abs(u)).T))
    value = quadratic_conjugate(phi)
    for bound, each in zip(phi.conjugate_bound(u, 0.0 * u), u, strict=True):
        assert decimal_of(bound) >= value(list(map(exact, each)))


def test_quadratic_by_any_solution(monkeypatch):
    """The bound holds of whatever is taken for the solution of a system, near it or far away."""
    rng = np.random.default_rng(12)
    u, spread = rng.standard_normal((60, 2)), rng.uniform(0.0, 1.0, (60, 2))
    for Q in (np.eye(2), np.array([[2.0, -0.7], [-0.7, 1.3]])):
        phi = Quadratic(Q)
        with monkeypatch.context() as patched:
            patched.setattr(np.linalg, "solve", lambda A, b: b + spread.T * rng.uniform(-1.5, 1.5, b.shape))
            found = phi.conjugate_bound(u, spread)
        for r in range(len(u)):
            assert decimal_of(found[r]) >= max(map(quadratic_conjugate(phi), corners(u[r], spread[r])))


def test_every_loss_and_penalty_has_its_formula():
    own = {type(loss) for loss in LOSSES if in_library(type(loss)) and not hasattr(loss, "function")}
    assert own == {type(loss) for loss in LOSS_CASES} == set(LOSS_VALUES) == set(LOSS_CONJUGATES)
    boxes = {type(phi) for phi in PENALTY_CASES if isinstance(phi, AbstractBox)}
    assert (
        {type(phi) for phi in PENALTY_CASES} - boxes | {AbstractBox} == set(PENALTY_VALUES) == set(PENALTY_CONJUGATES)
    )
