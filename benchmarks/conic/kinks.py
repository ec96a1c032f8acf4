"""Problems of curved atoms whose optima are known to sixty digits: f(G x + h), and a multiple of |x - t| so large that
the kink at t is the least point.

The multiple is exact: f is convex, so that it falls from t by at most L |x - t| where L is the greatest quotient of
differences to the sides of t, along each coordinate and over any step.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

import cvxpy as cp
import numpy as np

Numbers = list[Decimal]
DIGITS, WITHIN = 60, Fraction(1, 10**45)  # of computation; relative, what optima may miss
STEP = 2.0**-10


def total(f: Callable[[Decimal], Decimal]) -> Callable[[Numbers], Decimal]:
    return lambda u: sum(map(f, u), Decimal(0))


def powered(p: str) -> Callable[[Decimal], Decimal]:
    return lambda u: abs(u) ** Decimal(p)


# By name: the atom, its value, and whether it asks for arguments that are positive.
ATOMS: dict[str, tuple[Callable[[Any], Any], Callable[[Numbers], Decimal], bool]] = {
    "norm": (cp.norm, lambda u: total(powered("2"))(u).sqrt(), False),
    "norm 3": (lambda u: cp.pnorm(u, 3), lambda u: (total(powered("3"))(u).ln() / 3).exp(), False),
    "greatest": (cp.max, max, False),
    "two greatest": (lambda u: cp.sum_largest(u, 2), lambda u: sum(sorted(u)[-2:], Decimal(0)), False),
    "power 4": (lambda u: cp.sum(cp.power(u, 4)), total(powered("4")), False),
    "power 5/2": (lambda u: cp.sum(cp.power(u, 2.5)), total(powered("2.5")), True),
    "inverse": (lambda u: cp.sum(cp.inv_pos(u)), total(lambda v: 1 / v), True),
    "exponential": (lambda u: cp.sum(cp.exp(u)), total(Decimal.exp), False),
    "log of a sum": (cp.log_sum_exp, lambda u: total(Decimal.exp)(u).ln(), False),
    "softplus": (lambda u: cp.sum(cp.logistic(u)), total(lambda v: (1 + v.exp()).ln()), False),
    "logarithm": (lambda u: -cp.sum(cp.log(u)), total(lambda v: -v.ln()), True),
    "entropy": (lambda u: -cp.sum(cp.entr(u)), total(lambda v: v * v.ln()), True),
    "roots": (lambda u: -cp.sum(cp.sqrt(u)), total(lambda v: -v.sqrt()), True),
    "geometric mean": (lambda u: -cp.geo_mean(u), lambda u: -(prod(u).ln() / len(u)).exp(), True),
    "harmonic mean": (lambda u: -cp.harmonic_mean(u), lambda u: -len(u) / total(lambda v: 1 / v)(u), True),
}
OUTER: dict[str, tuple[Callable[[Any], Any], Callable[[Decimal], Decimal]]] = {
    "": (lambda f: f, lambda v: v),
    "at least 1/2, ": (lambda f: cp.maximum(f, 0.5), lambda v: max(v, Decimal("0.5"))),
    "softplus of ": (cp.logistic, lambda v: (1 + v.exp()).ln()),
    "squared where positive, ": (lambda f: cp.square(cp.pos(f)), lambda v: max(v, Decimal(0)) ** 2),
}


def kink(seed: int) -> tuple[str, cp.Problem, Fraction]:
    """A name, a problem and its optimum, within `WITHIN` of itself."""
    r = np.random.default_rng([seed, 3])
    name, (atom, value, positive) = list(ATOMS.items())[seed % len(ATOMS)]
    prefix, (outer, outer_value) = list(OUTER.items())[int(r.integers(len(OUTER)))]
    m, n = int(r.integers(2, 5)), int(r.integers(1, 4))
    G, t, at = r.integers(-2, 3, (m, n)) / 2, r.integers(-4, 5, n) / 4, r.integers(-8, 9, m) / 4
    at = np.abs(at) + 0.25 if positive else np.where(at == 0.0, 0.25, at)
    scale = 2.0 ** int(r.integers(-3, 3))

    def f(shift: Any) -> Decimal:
        u = [Decimal(float(v)) for v in at + G @ shift]
        return Decimal(scale) * outer_value(value(u))

    with localcontext() as digits:
        digits.prec = DIGITS
        best = f(np.zeros(n))
        steps = [side * STEP * e for e in np.eye(n) for side in (1.0, -1.0)]
        steepest = reduce(max, [(f(step) - best) / Decimal(STEP) for step in steps], Decimal(0))
    x, slope = cp.Variable(n), 2.0 ** np.ceil(np.log2(float(steepest) * 1.01 + 1e-6))
    objective = scale * outer(atom(G @ x + (at - G @ t))) + slope * cp.norm1(x - t)
    sense = cp.Maximize(-objective) if seed % 3 == 0 else cp.Minimize(objective)
    return f"kink, {prefix}{name}", cp.Problem(sense), Fraction(best) * (-1 if seed % 3 == 0 else 1)
