"""An upper bound of P(w), valid whatever rounding did: predictors by exact sums, functions at their worst end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...form import Form
from ...terms import Array
from .arithmetic import DUST, EPS, MORE, Pair, sums
from .system import Summand, summands_of


def upper_bound(form: Form, w: Array, known: Sequence[Summand] | None = None) -> float:
    """Not less than P(w); +inf where w does not satisfy every constraint exactly. Where its functions are ``known``
    predictors are rounded at every step, and the bound pays for it."""
    plain = known is not None
    values: list[float] = []
    for one in summands_of(form) if known is None else known:
        scale = one.scale
        for some, z, around in one.predicted(w, plain):
            values.append(_sum_up(scale[some], one.value(z, around, some), plain))
    if not all(np.isfinite(values)):
        return np.inf
    exact = math.fsum(values)
    return float(np.nextafter(exact, np.inf)) if any(values) else 0.0


def _sum_up(scales: Array, each: Array, plain: bool) -> float:
    """The sum of multiples, upwards; 0 where all are 0, and not where they underflow."""
    values = scales * each
    if not np.isfinite(values).all():
        return np.inf
    if not each.any():
        return 0.0
    place, none = np.zeros(len(values), dtype=int), np.zeros(1)
    found = sums([(place, Pair(values, none, none))], 1, plain)
    size = float(np.abs(values).sum()) * MORE
    value = float(found.high[0] + found.low[0])
    return value + (float(found.error[0]) + 2 * EPS * size + len(values) * DUST)
