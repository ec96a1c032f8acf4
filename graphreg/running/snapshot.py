"""A run between two rounds, and how it is kept: a run that was killed goes on bit for bit as though nothing had
happened. The file fits one problem, method and start; the budget (gap, rounds, seconds) may differ from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.breakdown import alone, numerical
from ..base.clock import OutOfTimeError
from ..certificate import Remembered
from ..checks import checked, inside, one_of, text, whole
from ..errors import CheckpointError, GraphregError
from ..form import Form
from ..network import PURPOSES, Account, LocalView, arcs_of
from .checkpoints.checkpoint import Checkpoint, Store
from .checkpoints.fingerprint import entry, of_method, of_problem
from .checkpoints.packing import MisfitError, Packed, check_state
from .observed import Log
from .schedule import LATEST, Schedule
from .trace import Record

SECONDS = inside("[0, 1e12]")

if TYPE_CHECKING:
    from .method import AbstractMethod, Start


@dataclass(frozen=True)
class Checked:
    """What the checks of a run left; it changes with a check only."""

    schedule: Schedule
    certifier: Remembered
    records: list[Record]
    unknowns: int | None = checked(whole(0) | None)  # of the last guess of a polish
    check_seconds: float = checked(SECONDS)


@dataclass(frozen=True)
class Snapshot:
    """All that the rounds to come depend on beside the problem, the method and the budget, and what is reported.

    Taken after a round and its check, never within: an interruption may leave a round half recorded. ``ended`` is why
    the run ended with this round, empty where it did not or where only the budget was used up.
    """

    state: Any  # of the method
    checks: Checked
    sent: dict[str, Account]  # by purpose
    round: int = checked(whole(0))
    ended: str = checked(one_of("", "gap", "failed", "recession"))
    seconds: float = checked(SECONDS)
    log: Log | None = None  # of an observer

    def check(self, form: Form, like: Any) -> None:
        """Refuse what does not fit the form, or a state ``like`` this before the first round."""
        check_state(self.state, like, form, "run.state")
        if set(self.sent) != set(PURPOSES):
            raise MisfitError(f"run.sent is of {', '.join(self.sent)}")
        arcs = 2 * arcs_of(form).pairs
        for purpose, account in self.sent.items():
            for name, size in (("messages", arcs), ("numbers", arcs), ("away", form.n)):
                value = getattr(account, name)
                if value is not None and (value.shape != (size,) or value.dtype.kind != "i" or (value < 0).any()):
                    raise MisfitError(f"run.sent[{purpose!r}].{name} is not {size} counts")
        schedule = self.checks.schedule
        for name in ("next_screen", "next_repair", "next_polish"):
            if (at := getattr(schedule, name)) > 4 * (self.round + LATEST + schedule.every):
                raise MisfitError(f"run.checks.schedule.{name} is the round {at}, seen from the round {self.round}")


def open_runs(
    checkpoint: Checkpoint, form: Form, method: AbstractMethod, start: Start | None, seed: int | None
) -> Store:
    """The file of one solve, with a snapshot of each of its runs; refused where it is of another start or seed.

    There is a second run where the infimum is not attained: that of the problem at infinity. It follows from the end
    of the first one, which stays in the file beside it.
    """
    store = Store(checkpoint, "run", {"method": of_method(method), "problem": of_problem(form)}, form)
    try:
        _check_begun(store, start, seed)
    except BaseException:
        store.close()
        raise
    return store


def _check_begun(store: Store, start: Start | None, seed: int | None) -> None:
    """Refuse another start and another seed than those of the file."""
    facts, begun = store.facts, entry(start)
    with store.reading():
        whole(0)(facts.get("seed", 0), "the seed", MisfitError)
        text()(facts.get("start", ""), "the start", MisfitError)
    if facts.setdefault("start", begun) != begun and start is not None:
        raise CheckpointError(
            f"{store} began from another start than the one given, so it is not clear where to go on: leave "
            "start out to go on from the checkpoint, or remove the file to begin from start",
            ("the start",),
        )
    if seed is not None and facts.setdefault("seed", int(seed)) != seed:
        raise CheckpointError(
            f"{store} is of a run with seed={facts['seed']}, not {seed}: leave seed out to go on from the "
            "checkpoint, or remove the file to begin anew",
            ("the seed",),
        )


class Keeper:
    """Keeps the latest snapshot of one run, and writes it when it is due. Writing changes nothing in the run."""

    def __init__(self, store: Store, run: int) -> None:
        self.store, self.run = store, run
        self.resumed = False
        self.latest: Snapshot | None = None
        self.written: Snapshot | None = None

    def load(self, view: LocalView, init: Callable[[], Any]) -> Snapshot | None:
        """The snapshot to go on from, with a state like that of ``init``; None where the run is to begin."""
        if self.run < len(self.store.values):
            self.latest = self.written = self.store.value(self.run, Snapshot, view)
            with self.store.reading():
                self.latest.check(view.form, init())
            self.resumed = True
        self.store.mark(-1 if self.latest is None else self.latest.round)
        return self.latest

    @contextmanager
    def going_on(self) -> Generator[None]:
        """What the library itself raises within, on a state that was read, is the file's fault."""
        try:
            yield
        except (GraphregError, OutOfTimeError, Warning):
            raise
        except Exception as error:
            if not self.resumed or numerical(error) or not alone(error):
                raise
            raise self.store.senseless(error, "gone on from") from error

    def keep(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        if self.store.due(snapshot.round):
            self.write()

    def write(self) -> None:
        """The latest snapshot to the file, where it is not there yet; later runs, which followed from it, leave it."""
        if self.latest is None or self.latest is self.written:
            return
        first = not self.store.values
        with self.store.trying(self.latest.round, first):
            self.store.values[self.run :] = [Packed.of(self.latest, "run")]
            self.store.write()
            self.written = self.latest
