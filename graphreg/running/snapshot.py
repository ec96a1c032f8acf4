"""A run between two rounds, and how it is kept: a run that was killed goes on bit for bit as though nothing had
happened. The file fits one problem, method and start; the budget (gap, rounds, seconds) may differ from call to call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from ..form import Form
from ..network import Account, LocalView
from .checkpoints.checkpoint import Checkpoint, Store
from .checkpoints.fingerprint import entry, of_method, of_problem
from .checkpoints.packing import Packed
from .schedule import Schedule
from .trace import Record

if TYPE_CHECKING:
    from ..methods import AbstractMethod, Start


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

    Taken after a round and its check, never within: an interruption may leave a round half recorded. ``ended`` is why
    the run ended with this round, empty where it did not or where only the budget was used up.
    """

    round: int
    ended: str
    state: Any  # of the method
    checked: Checked
    sent: dict[str, Account]  # by purpose
    seconds: float


class StoredRuns:
    """The file of one solve, with a snapshot of each of its runs.

    There is a second run where the infimum is not attained: that of the problem at infinity. It follows from the end
    of the first one, which stays in the file beside it.
    """

    def __init__(
        self, checkpoint: Checkpoint, form: Form, method: AbstractMethod, start: Start | None, seed: int | None
    ) -> None:
        self.store = Store(checkpoint, "run", {"method": of_method(method), "problem": of_problem(form)})
        self.note, facts, begun = self.store.note, self.store.facts, entry(start)
        if facts.setdefault("start", begun) != begun and start is not None:
            raise CheckpointError(
                f"{self.store} began from another start than the one given, so it is not clear where to go on: leave "
                "start out to go on from the checkpoint, or remove the file to begin from start",
                ("the start",),
            )
        if seed is not None and facts.setdefault("seed", int(seed)) != seed:
            raise CheckpointError(
                f"{self.store} is of a run with seed={facts['seed']}, not {seed}: leave seed out to go on from the "
                "checkpoint, or remove the file to begin anew",
                ("the seed",),
            )

    def seed(self, drawn: int) -> int:
        """The seed of the run that is kept; ``drawn`` where none is kept and nobody gave one."""
        return self.store.facts.setdefault("seed", drawn)

    def keeper(self, run: int) -> Keeper:
        return Keeper(self.store, run)


class Keeper:
    """Keeps the latest snapshot of one run, and writes it when it is due. Writing changes nothing in the run."""

    def __init__(self, store: Store, run: int) -> None:
        self.store, self.run = store, run
        self.latest: Snapshot | None = None
        self.written: Snapshot | None = None

    def load(self, view: LocalView) -> Snapshot | None:
        """The snapshot to go on from; None where the run is to begin."""
        if self.run < len(self.store.values):
            self.latest = self.written = self.store.value(self.run, Snapshot, view)
        self.store.mark(-1 if self.latest is None else self.latest.round)
        return self.latest

    def keep(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        if self.store.due(snapshot.round):
            self.write()

    def write(self) -> None:
        """The latest snapshot to the file, where it is not there yet; later runs, which followed from it, leave it."""
        if self.latest is None or self.latest is self.written:
            return
        self.store.values[self.run :] = [Packed.of(self.latest, "snapshot")]
        self.store.write(self.latest.round)
        self.written = self.latest
