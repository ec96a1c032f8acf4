"""A rational direction along which no term grows and some loss falls for ever."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ...form import Form
from ..attainment import simplex
from ..attainment.directions import ConditionPart
from ..attainment.programmes import answers
from ..attainment.recession import Conditions, conditions, cones_of


def receding(form: Form) -> list[list[Fraction]] | None:
    """The direction (n, d); None where none is found, as where the infimum is attained."""
    cones = cones_of(form)
    if cones is None:
        return None
    found = conditions(form, cones)
    return next((_spread(found, part, x) for part, x in _directions(found)), None)


def _directions(found: Conditions) -> Iterator[tuple[ConditionPart, list[Fraction]]]:
    """First of the parts that the simplex method decides in exact arithmetic, then near what a programme finds."""
    undecided: list[ConditionPart] = []
    for part in found.parts():
        x = simplex.decided(part)
        if isinstance(x, list):
            yield part, x
        elif x is None:
            undecided.append(part)
    for answer in answers(*found.matrices) if undecided else ():
        for part in undecided:
            near = part.verified(answer.x[part.columns])
            if near is not None:
                yield part, near


def _spread(found: Conditions, part: ConditionPart, x: list[Fraction]) -> list[list[Fraction]]:
    """The direction of the unknowns of one part; all others stay."""
    values = {int(q): Fraction(float(found.scale[q])) * y for q, y in zip(part.columns, x, strict=True)}
    return [[values.get(q, Fraction(0)) for q in row] for row in found.unknowns.number.tolist()]
