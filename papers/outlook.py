"""The time that the claims that are left will take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .declaring import Declaration

FORMULA, EXPERIMENT = 1.0, 5.0  # seconds, about; of a formula at either scale, and of an experiment at quick scale


@dataclass
class Outlook:
    """An estimate that learns how fast this machine is.

    Attributes
    ----------
    scale : {"quick", "full"}
    processes : int
        Replications are dealt out to so many.
    foreseen, spent : float
        Seconds that the claims computed so far were declared to take, and that they took.
    """

    scale: str
    processes: int = 1
    foreseen: float = 0.0
    spent: float = 0.0

    def declared(self, claim: Declaration) -> float:
        """Seconds on one core, as declared."""
        if claim.function is None:
            return 0.0
        if self.scale == "full" and claim.full is not None:
            return 60.0 * claim.minutes
        return EXPERIMENT if claim.experiment else FORMULA

    def tell(self, claim: Declaration, seconds: float) -> None:
        """A claim was computed in so many seconds."""
        self.foreseen += self.declared(claim) / self.processes
        self.spent += seconds

    def left(self, claims: Iterable[Declaration]) -> float:
        """Seconds that some claims will take. The declared ones count as a minute that went as foreseen."""
        speed = (60.0 + self.spent) / (60.0 + self.foreseen)
        return speed * sum(map(self.declared, claims)) / self.processes


def duration(seconds: float) -> str:
    """In words: "40 s", "12 min", "3.5 h"."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
