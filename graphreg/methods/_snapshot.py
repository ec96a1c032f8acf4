"""A run between two rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._schedule import Schedule
from .ledger import Account
from .trace import Record


@dataclass(frozen=True)
class Checked:
    """What the checks of a run left; it changes with a check only."""

    schedule: Schedule
    certifier: dict[str, Any]  # what it remembers
    unknowns: int | None  # of the last guess of a polish
    records: list[Record]
    check_seconds: float


@dataclass(frozen=True)
class Snapshot:
    """All that the rounds to come depend on beside the problem, the method and the budget, and what is reported.

    Taken after a round and its check, never within: an interruption may leave a round half booked. ``ended`` is why
    the run ended with this round, empty where it did not or where only the budget was used up.
    """

    round: int
    ended: str
    state: Any  # of the method
    checked: Checked
    sent: dict[str, Account]  # by purpose
    seconds: float
