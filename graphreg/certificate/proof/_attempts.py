"""The dual point of a proof: the certificate's as it is stored, and only where that fails one slightly moved."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import DualPoint, Form
from ...terms.records import Array
from ...verify import Model, NotProvedError, State, rational
from ..repair import Repair
from ._conserve import conserve, rooms_of
from ._point import ExactPoint, exact_point

WITHIN = 1000  # the box |w_ij| <= 2^WITHIN, where the balance is refined and not exact


@dataclass(frozen=True)
class Attempt:
    """One way from the floats to an exact point.

    ``snap`` puts prices and flows that are nearly at an end of their domain there; ``bits`` pulls by 2^-bits towards
    0 or (``slater``) towards a point well inside all domains; flows with less room than ``least`` keep still.
    """

    least: float = 1e-7
    snap: float = 0.0
    bits: int = 0
    slater: bool = False


ATTEMPTS = (
    Attempt(),
    Attempt(1e-12),
    *(
        Attempt(least, bits=bits, slater=slater)
        for bits, least in ((44, 1e-13), (36, 1e-11))
        for slater in (False, True)
    ),
    *(Attempt(1e-9, snap) for snap in (1e-11, 1e-9, 1e-7)),
    *(Attempt(10.0 ** -(bits / 3.5), bits=bits, slater=slater) for bits in (28, 20) for slater in (True, False)),
)


@dataclass(frozen=True)
class Lower:
    """A dual point as the checker takes it, its bound in the checker's units, and the box that it is valid in."""

    point: list[Any]
    bound: int
    within: Any = None


def lower_bound(form: Form, model: Model, w: Array, point: DualPoint, enough: float = -np.inf) -> Lower:
    """The first bound that is ``enough`` (in the checker's units) of points near ``point``, else the best; `ProofError`
    with the reasons where none is found."""
    best: Lower | None = None
    reasons: dict[str, None] = {}
    rooted = any(edge.penalty.flow_root() is not None for edge in form.edges)
    for repaired, attempt in product((False, True), ATTEMPTS):
        start = _repaired(form, w, point) if repaired else point
        for with_roots in (False, True)[: 1 + rooted]:
            State.where = ""
            try:
                found = _attempt(form, model, pulled(form, w, start, attempt), attempt, with_roots)
                best = found if best is None or found.bound > best.bound else best
                if best.bound >= enough:
                    return best
            except (ProofError, NotProvedError, ZeroDivisionError, np.linalg.LinAlgError) as error:
                reasons.setdefault(str(error))
    if best is not None:
        return best
    raise ProofError(f"no exact dual point was found: {'; '.join(list(reasons)[:3])}")


def _repaired(form: Form, w: Array, point: DualPoint) -> DualPoint:
    """The point pulled well inside the domains: the point of a certificate may lie at their very ends."""
    return Repair(form)(w, point)


def _attempt(form: Form, model: Model, point: DualPoint, attempt: Attempt, with_roots: bool) -> Lower:
    exact: ExactPoint = exact_point(form, model, point, attempt.snap)
    whole = conserve(exact, rooms_of(form, point.flows), attempt.least, with_roots)
    within = None if whole else rational(1 << WITHIN)
    stated = exact.stated()
    return Lower(stated, model.dual(stated, within), within)


def pulled(form: Form, w: Array, point: DualPoint, attempt: Attempt) -> DualPoint:
    if attempt.bits == 0:
        return point
    center = form.nothing()
    if attempt.slater:
        repair = Repair(form)
        repair.size = float(np.sqrt(np.mean(w * w))) or 1.0
        center = repair.center
    t = 2.0**-attempt.bits
    flows = tuple((1.0 - t) * u + t * c for u, c in zip(point.flows, center.flows, strict=True))
    return DualPoint(flows, tuple((1.0 - t) * a + t * c for a, c in zip(point.prices, center.prices, strict=True)))
