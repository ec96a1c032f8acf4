"""The dual point of a proof: the certificate's as it is stored, and only where that fails one slightly moved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...errors import ProofError
from ...form import DualPoint, Form
from ...terms import Array
from ...verify import BOX, STATE, Model, NotProvedError, rational
from ..repairing.repair import Repair
from .conserve import conserve, rooms_of
from .point import ExactPoint, exact_point
from .statement import flow_root


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
    rooted = any(flow_root(form, edge) is not None for edge in form.edges)
    starts = _Starts(form, w, point)
    for repaired, attempt in product((False, True), ATTEMPTS):
        start = starts(repaired, attempt)
        for with_roots in (False, True)[: 1 + rooted]:
            STATE.where = ""
            try:
                found = _attempt(form, model, start, attempt, with_roots)
                best = found if best is None or found.bound > best.bound else best
                if best.bound >= enough:
                    return best
            except (ProofError, NotProvedError, ZeroDivisionError, np.linalg.LinAlgError) as error:
                reasons.setdefault(str(error))
    if best is not None:
        return best
    raise ProofError(f"no exact dual point was found: {'; '.join(list(reasons)[:3])}")


@dataclass
class _Starts:
    """Where the attempts start from; what takes a while is computed once."""

    form: Form
    w: Array
    point: DualPoint

    def __call__(self, repaired: bool, attempt: Attempt) -> DualPoint:
        start = self.repaired if repaired else self.point
        if attempt.bits == 0:
            return start
        return pulled(start, attempt, self.center if attempt.slater else self.form.nothing())

    @cached_property
    def repaired(self) -> DualPoint:
        """The point pulled well inside the domains: the point of a certificate may lie at their very ends."""
        return Repair(self.form)(self.w, self.point)

    @cached_property
    def center(self) -> DualPoint:
        """A point well inside all domains."""
        repair = Repair(self.form)
        repair.size = float(np.sqrt(np.mean(self.w * self.w))) or 1.0
        return repair.center


def _attempt(form: Form, model: Model, point: DualPoint, attempt: Attempt, with_roots: bool) -> Lower:
    point = _snapped(form, point, attempt.snap)
    exact: ExactPoint = exact_point(form, model, point, attempt.snap)
    whole = conserve(exact, rooms_of(form, point.flows), attempt.least, with_roots)
    within = None if whole else rational(1 << BOX)
    stated = exact.stated()
    return Lower(stated, model.dual(stated, within), within)


def _snapped(form: Form, point: DualPoint, snap: float) -> DualPoint:
    """Flows that are nearly 0 as 0: what has no room then must not be seen to have some."""
    flows: list[Array] = []
    for edge, u in zip(form.edges, point.flows, strict=True):
        size, rooted = np.abs(u), flow_root(form, edge) is not None
        size = size.max(axis=1, keepdims=True, initial=0.0) if rooted else size
        flows.append(np.where(size <= snap * edge.weight[:, None], 0.0, u))
    return DualPoint(tuple(flows), point.prices)


def pulled(point: DualPoint, attempt: Attempt, center: DualPoint) -> DualPoint:
    """The point moved by 2^-bits towards a center."""
    t = 2.0**-attempt.bits
    flows = tuple((1.0 - t) * u + t * c for u, c in zip(point.flows, center.flows, strict=True))
    return DualPoint(flows, tuple((1.0 - t) * a + t * c for a, c in zip(point.prices, center.prices, strict=True)))
