"""The trace of a run: what was known, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..base.display import Html, Shown, Suggesting, sentence, title
from ..checks import checked, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd


@dataclass(frozen=True)
class Record(Suggesting):
    """One check. ``relative_gap`` is certified where ``certified`` says so, else a cheap estimate (a screen).

    ``primal`` and ``dual`` are the certified bounds; at a screen ``primal`` is the objective at the iterate as it was
    computed, and ``dual`` nan. ``messages`` and ``bytes`` are what the method and its adaptation have sent so far,
    without what certificates cost.
    """

    round: int
    seconds: float
    relative_gap: float
    certified: bool
    primal: float = float("nan")
    dual: float = float("nan")
    messages: int = checked(whole(0), 0)
    bytes: int = checked(whole(0), 0)


@dataclass(repr=False)
class Trace(Shown):
    """The checks of a run in order, and the seconds that they cost; polishes, tried or taken, are counted apart."""

    records: list[Record] = field(default_factory=list)
    check_seconds: float = 0.0
    polish_seconds: float = 0.0

    def certified(self) -> list[Record]:
        """The checks that carry a certificate."""
        return [record for record in self.records if record.certified]

    def reached(self, target: float) -> str:
        """The last check beside the gap that is asked for, for a progress bar; empty before the first."""
        if not self.records:
            return ""
        last = self.records[-1]
        if not last.relative_gap < float("inf"):
            return f"no bound so far, target {target:.0e}"
        return f"gap{'' if last.certified else ' about'} {last.relative_gap:.1e}, target {target:.0e}"

    def table(self) -> pd.DataFrame:
        """One row per check."""
        import pandas as pd

        return pd.DataFrame([vars(record) for record in self.records])

    def __repr__(self) -> str:
        if not self.records:
            return "<Trace: no checks>"
        last = self.records[-1]
        word = "certified" if last.certified else "not certified"
        return f"<Trace: {len(self)} checks; after round {last.round} relative gap {last.relative_gap:.3g}, {word}>"

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html

        yield title(f"Trace: {len(self)} checks, {len(self.certified())} of them certified")
        yield as_html(self.table())
        yield sentence("what is not certified is a cheap estimate", quiet=True)

    def __len__(self) -> int:
        return len(self.records)
