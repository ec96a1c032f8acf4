"""An upper bound of P(w), valid whatever rounding did: predictors by exact sums, functions at their worst end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...form import Form
from ...terms import Array
from .arithmetic import Pair, down, multiples, sums
from .system import Summand, summands_of


def upper_bound(form: Form, w: Array, known: Sequence[Summand] | None = None) -> float:
    """Not less than P(w); +inf where w does not satisfy every constraint exactly. Where its functions are ``known``
    predictors are rounded at every step, and the bound pays for it."""
    plain, found = known is not None, list[tuple[Array, Pair]]()
    for one in summands_of(form) if known is None else known:
        scale = one.scale
        for some, z, around in one.predicted(w, plain):
            values = multiples(scale[some], one.value(z, around, some))
            if not np.isfinite(values.high).all():
                return np.inf
            found.append((np.zeros(len(z), dtype=int), values))
    return 0.0 - float(down(sums(found, 1, plain))[0])
