"""A run between two rounds, and what is asked of whoever keeps it.

Nothing here writes or reads: the room that does is found by the shortcut ``Checkpoint.opened``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..certificate import Remembered
from ..checks import ChecksNames, check_fields, checked, count, inside, one_of, positive, whole
from ..errors import CheckpointError
from ..network import Account, LocalView
from .observed import Log
from .schedule import Schedule
from .trace import Record

SECONDS = inside("[0, 1e12]")


@dataclass(frozen=True)
class Checked:
    """The state of the checks of a run; it changes with a check only."""

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


class AbstractKeeper(ABC):
    """Keeps the latest snapshot of one run. Keeping changes nothing in the run."""

    @abstractmethod
    def load(self, view: LocalView, init: Callable[[], Any]) -> Snapshot | None:
        """The snapshot to go on from, with a state like that of ``init``; None where the run is to begin."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """A context in which what is raised, where a snapshot makes no sense, is refused as such."""

    @abstractmethod
    def going_on(self) -> AbstractContextManager[None]:
        """A context in which what the library itself raises, on a state that was loaded, is refused as such."""

    @abstractmethod
    def keep(self, snapshot: Snapshot) -> None:
        """Note it as the latest; written when it is due."""

    @abstractmethod
    def write(self) -> None:
        """Write the latest, where it is not written yet."""


@dataclass(frozen=True)
class Kept:
    """The state that is kept of one solve: each of its runs, of which the second is that of the problem at infinity."""

    seed: int
    keeper: Callable[[int], AbstractKeeper]  # of a run, by its number from 0
    said: Callable[[], tuple[str, ...]]  # to the user at the end: why last bits may differ, whether writing failed


@dataclass(frozen=True)
class Checkpoint(ChecksNames):
    """The file in which a run is kept, and how often.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist. Where the file exists the run goes on from it.
    seconds : float, optional
        Write it when so many seconds have passed since the last time; 60 by default, None for never.
    rounds : int, optional
        Write it after so many rounds; None (default) for never. With both, whichever comes first.

    A killed process loses at most one interval. The file is also written before the first round, at Ctrl-C, and at
    the end of the run. It is replaced as a whole: at any moment the file is the last complete one.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual(), checkpoint=gr.Checkpoint(folder / "run"))
    >>> (folder / "run").exists()
    True
    """

    path: str | os.PathLike[str]
    seconds: float | None = checked(positive | None, 60.0)
    rounds: int | None = checked(count, None)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)) or not isinstance(os.fspath(self.path), str):
            raise CheckpointError(f"a checkpoint is a path or gr.Checkpoint(path, ...), got {self.path!r}")
        if not os.fspath(self.path):
            raise CheckpointError("the path of a checkpoint is empty; name a file")
        check_fields(self, CheckpointError)
        if self.seconds is None and self.rounds is None:
            raise CheckpointError("a Checkpoint without seconds and without rounds is never written; give one of them")

    @staticmethod
    def of(value: Any) -> Checkpoint | None:
        """The checkpoint from what a user gives: a path, a Checkpoint, or None."""
        return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)

    @property
    def file(self) -> Path:
        return Path(self.path)
