"""The best bounds of a form, and what is remembered of them: the points from which they are proved anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..checks import checked, inside, whole
from ..form import DualPoint, Form
from ..terms import Array
from .kernel.value import Enclosed


@dataclass(frozen=True)
class BoundSource:
    """The source from which a lower bound is proved, to the bit: a point (None: 0), the bound from which on sums may
    be plain, and the parameters whose gradients its prices are, where it was proved by these (see
    `graphreg.certificate.kernel.squares`)."""

    point: DualPoint | None
    least: float
    at: Array | None = None

    def like(self, other: BoundSource) -> bool:
        """True where the same is proved from both."""
        one, two = (
            [*(() if each.point is None else each.point.parts), *(() if each.at is None else (each.at,))]
            for each in (self, other)
        )
        return self.least == other.least and len(one) == len(two) and all(map(np.array_equal, one, two))


@dataclass(frozen=True)
class Remembered:
    """The state that certificates to come depend on beside the problem. Of bounds only the points from which they are
    proved anew: nobody has to believe whoever had it meanwhile."""

    w: Array | None
    plain: bool  # how the sums of its upper bound are taken
    source: BoundSource | None
    decided: tuple[BoundSource | None, ...] | None  # how attainment was decided; (): by ``source``, None: not yet
    screened: float
    centred: bool  # what the repair remembers, as the two last
    gap: float = checked(inside("[0, inf)"))
    size: float = checked(inside("[0, inf)"))
    exchanges: int = checked(whole(0))


@dataclass(frozen=True)
class Dual:
    """A dual point as it was computed, the lower bound of each component that was proved next to it, and from what."""

    value: float
    found: Enclosed
    source: BoundSource

    @property
    def bound(self) -> float:
        return self.found.value


@dataclass(frozen=True)
class Primal:
    """P(w) as it was computed, and the upper bound that was proved."""

    value: float
    bound: float
    w: Array
    plain: bool  # whether its sums were taken plainly


def check_point(form: Form, w: Array | None, point: DualPoint | None) -> None:
    """Refuse points that are not finite floats of the shapes of a form, by a `ValueError`; None is none."""
    none = form.nothing()
    given = [] if w is None else [("parameters", (w,), (np.zeros(form.shape),))]
    if point is not None:
        given += [("flows", point.flows, none.flows), ("prices", point.prices, none.prices)]
    for what, arrays, like in given:
        there, here = ([each.shape for each in some] for some in (arrays, like))
        if there != here:
            raise ValueError(f"its {what} have the shapes {there}, and not {here}")
        if any(each.dtype != np.float64 or not np.isfinite(each).all() for each in arrays):
            raise ValueError(f"its {what} are not finite numbers")
