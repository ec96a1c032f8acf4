"""What one run leaves to the next, of the same problem at other strengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..network import LocalView
from .schedule import Schedule

if TYPE_CHECKING:
    from ..methods import AbstractIteration, Start


@dataclass
class WarmStart:
    """The view of a run, its last state, and what its repairs taught; None before there was one.

    ``interrupted``: whether the user broke the run off, also where its answer was certified all the same: whoever
    presses Ctrl-C means all that is still to come.
    """

    view: LocalView | None = None
    state: Any = None
    schedule: Schedule | None = None
    interrupted: bool = False

    def first(self, method: AbstractIteration, view: LocalView, start: Start | None) -> Any:
        """The state in which the next run begins."""
        return method.init(view, start) if self.state is None else method.resume(view, self.state, start)

    def expecting(self, schedule: Schedule) -> Schedule:
        """The schedule of the next run."""
        return schedule if self.schedule is None else schedule.expecting(self.schedule)

    def take(self, view: LocalView, state: Any, schedule: Schedule) -> None:
        """Keep what a run ended with."""
        self.view, self.state, self.schedule = view, state, schedule
