"""The runs of a solve in a file: a run that was killed goes on bit for bit as though nothing had happened.

The file fits one problem, method and start; the budget (gap, rounds, seconds) may differ from call to call.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Any

from ..base.breakdown import alone, numerical
from ..base.clock import OutOfTimeError
from ..checks import text, whole
from ..errors import CheckpointError, GraphregError
from ..form import Form
from ..network import PURPOSES, LocalView, arcs_of
from ..running import LATEST, AbstractKeeper, AbstractMethod, Checkpoint, Kept, Snapshot, Start
from .fingerprint import entry, of_method, of_problem
from .packing import JsonTree, MisfitError, check_state
from .store import Store


@contextmanager
def opened(
    checkpoint: Checkpoint, form: Form, method: AbstractMethod, start: Start | None, seed: int | None
) -> Generator[Kept]:
    """The file of one solve, with a snapshot of each of its runs; refused where it is of another start or seed.

    There is a second run where the infimum is not attained: that of the problem at infinity. It follows from the end
    of the first one, which stays in the file beside it.
    """
    with closing(Store(checkpoint, "run", {"method": of_method(method), "problem": of_problem(form)}, form)) as store:
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
        facts.setdefault("seed", secrets.randbits(32))
        yield Kept(facts["seed"], partial(Keeper, store), lambda: (store.note, store.ending))


class Keeper(AbstractKeeper):
    """Keeps a run in the file of its solve."""

    def __init__(self, store: Store, run: int) -> None:
        self.store, self.run = store, run
        self.resumed = run < len(store.values)
        self.latest: Snapshot | None = None

    def load(self, view: LocalView, init: Callable[[], Any]) -> Snapshot | None:
        store = self.store
        if self.resumed:
            self.latest = store.value(self.run, Snapshot, view)
            with store.reading():
                _check(self.latest, view.form, init())
        store.mark(-1 if self.latest is None else self.latest.round)
        return self.latest

    def reading(self) -> AbstractContextManager[None]:
        return self.store.reading()

    @contextmanager
    def going_on(self) -> Generator[None]:
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
        """The latest snapshot to the file; later runs, which followed from it, leave it."""
        latest, before = self.latest, self.store.values[: self.run]
        if latest is not None:
            first = not self.store.values
            self.store.write(latest.round, lambda: [*before, JsonTree.of(latest, "run")], first)


def _check(snapshot: Snapshot, form: Form, like: Any) -> None:
    """Refuse what does not fit the form, or a state ``like`` this before the first round."""
    check_state(snapshot.state, like, form, "run.state")
    if set(snapshot.sent) != set(PURPOSES):
        raise MisfitError(f"run.sent is of {', '.join(snapshot.sent)}")
    arcs = 2 * arcs_of(form).pairs
    for purpose, account in snapshot.sent.items():
        for name, size in (("messages", arcs), ("numbers", arcs), ("away", form.n)):
            value = getattr(account, name)
            if value is not None and (value.shape != (size,) or value.dtype.kind != "i" or (value < 0).any()):
                raise MisfitError(f"run.sent[{purpose!r}].{name} is not {size} counts")
    schedule, k = snapshot.checks.schedule, snapshot.round
    for name in ("next_screen", "next_repair", "next_polish"):
        if (at := getattr(schedule, name)) > 4 * (k + LATEST + schedule.every):
            raise MisfitError(f"run.checks.schedule.{name} is the round {at}, seen from the round {k}")
