"""The linear programmes of attainment, by HiGHS, which hears the clock and Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...clock import GRACE, OutOfTimeError, carry_out, left
from ...terms import Array
from .recession import Conditions

# Bounds on the entries of a direction, and tolerances: the next where the answer of the one before is not verified.
LOOKS = ((1e6, 1e-10), (1e3, 1e-10), (1e3, 1e-7))
MOST_SECONDS = 300.0  # where no time is set: then nothing is known


@dataclass(frozen=True)
class Answer:
    """A direction x that a programme found, and the multipliers that show there is no better one."""

    x: Array
    falls: Array
    slack: Array
    still: Array
    tolerance: float


def answers(falls: Any, slack: Any, still: Any) -> Iterator[Answer]:
    """x that maximises sum_r min(1, (falls x)_r) over the conditions, with its multipliers; look after look."""
    rows, count = falls.shape
    none: Any = sp.csr_array((slack.shape[0], rows))
    upper: Any = sp.vstack([sp.hstack([-falls, sp.eye_array(rows)]), sp.hstack([-slack, none])])
    equal = sp.hstack([still, sp.csr_array((still.shape[0], rows))])
    c = np.r_[np.zeros(count), -np.ones(rows)]
    for far, tolerance in LOOKS:
        bounds = [(-far, far)] * count + [(0.0, 1.0)] * rows
        result = _solved(c, upper, np.zeros(upper.shape[0]), equal, bounds, tolerance)
        if result is not None:
            marginals = -np.asarray(result.ineqlin.marginals)
            free = np.asarray(result.eqlin.marginals) if still.shape[0] else np.zeros(0)
            yield Answer(np.asarray(result.x)[:count], marginals[:rows], marginals[rows:], free, tolerance)


def smallest(x: Array, found: Conditions, tolerance: float) -> Array:
    """minimise max |v| where the rows that fall along the given x fall by 1 at least; entries that no row needs are at
    their bounds in that x, and coefficients that run along it would be huge for nothing."""
    falls = (found.falls.matrix @ x > 0.5).astype(float)
    G: Any = sp.vstack([found.falls.matrix, found.slack.matrix])
    least = np.r_[falls, np.zeros(G.shape[0] - len(falls))]
    count = len(x)
    one, eye = np.ones((count, 1)), sp.eye_array(count)
    upper = sp.vstack([sp.hstack([-G, sp.csr_array((G.shape[0], 1))]), sp.hstack([eye, -one]), sp.hstack([-eye, -one])])
    right = np.r_[-least, np.zeros(2 * count)]
    equal = sp.hstack([found.still.matrix, sp.csr_array((found.still.matrix.shape[0], 1))])
    bounds = [(None, None)] * count + [(0.0, None)]
    result = _solved(np.r_[np.zeros(count), 1.0], upper, right, equal, bounds, tolerance)
    return x if result is None else np.asarray(result.x)[:count]


def _solved(c: Array, upper: Any, right: Array, equal: Any, bounds: list[Any], tolerance: float) -> Any:
    """argmin c'x over upper x <= right, equal x = 0; None where HiGHS gets lost or the time is up."""
    from scipy.optimize import linprog  # half of the time that importing graphreg would take

    options: dict[str, Any] = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
    seconds = left()
    options["time_limit"] = MOST_SECONDS if seconds is None else max(seconds, GRACE)

    def work() -> Any:
        above, zero = sp.csr_array(upper), np.zeros(equal.shape[0])
        return linprog(c, above, right, sp.csr_array(equal), zero, bounds, method="highs", options=options)

    try:
        result = carry_out(work)
    except OutOfTimeError:
        return None
    return result if result.status == 0 else None
