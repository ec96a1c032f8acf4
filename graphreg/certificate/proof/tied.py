"""The exact dual point by which equal ends of an edge are excluded.

With z_e = 0 as a constraint the flow of e has no domain and no value. What stands here is a dual point of that problem
written as one of the problem itself: the flow of the constraint is added to that of e.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ...errors import ProofError
from ...verify import Edges, NotProvedError
from ..record import Certificate
from .attempts import lower_bound
from .statement import state_edges

if TYPE_CHECKING:
    from .claims import Found


def tied_point(found: Found, block: int, e: int, certificate: Certificate) -> tuple[list[Any], int]:
    """The point as the checker takes it, and its bound in the checker's units; `ProofError` where none is found."""
    form = certificate.form
    model = copy.copy(found.model)
    last = state_edges(form.edges[-1], form.width(form.edges[-1]))
    model.blocks = [*found.model.blocks, Edges(last, form.n, form.d)]
    lower = lower_bound(form, model, certificate.w, certificate.dual_point, found.upper + 1)
    if lower.within is not None and found.within is None:
        raise ProofError("the problem in which the ends are equal is bounded within a box only")
    *point, tie = lower.point
    place = found.model.m + block
    point[place] = [*point[place]]
    point[place][e] = [u + t for u, t in zip(point[place][e], tie[0], strict=True)]
    try:
        return point, found.model.dual(point, found.within, (place, e))
    except NotProvedError as error:
        raise ProofError(f"the dual point with equal ends is none: {error}") from None
