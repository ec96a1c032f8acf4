"""Records of what a caller asks for, what a method gives back, and what one run leaves to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..base.breakdown import Watched
from ..certificate import Certificate, Certifier
from ..network import Ledger, LocalView
from .observed import Observed
from .schedule import Schedule
from .snapshot import Checkpoint
from .trace import Record, Trace

if TYPE_CHECKING:
    from .method import AbstractEngine, Start


DIVERGED = "the iterates diverged"  # the cause of a failure


@dataclass
class WarmStart:
    """The view of a run, its last state, and what its repairs taught; None before there was one.

    ``stages``: the same of each method that it goes through, by its name, and ``by`` which of them gave the answers at
    the strengths on either side. ``interrupted``: whether the user broke the run off, also where its answer was
    certified all the same: whoever presses Ctrl-C means all that is still to come. ``cut``: whether the time cut it
    short, likewise.
    """

    view: LocalView | None = None
    state: Any = None
    schedule: Schedule | None = None
    interrupted: bool = False
    cut: bool = False
    stages: dict[str, WarmStart] = field(default_factory=dict[str, "WarmStart"])
    by: tuple[str, ...] = ()

    def of(self, name: str) -> WarmStart:
        """That of a method by its name."""
        return self.stages.setdefault(name, WarmStart())

    def copy(self) -> WarmStart:
        """As it is now, whatever runs go on from it."""
        return replace(self, stages={name: each.copy() for name, each in self.stages.items()})


@dataclass(frozen=True)
class Budget:
    """The budget that the caller asked for; see `Problem.solve`."""

    gap: float = 1e-6
    rounds: int | None = None
    seconds: float | None = None
    start: Start | None = None
    callback: Callable[[Record], Any] | None = None
    progress: bool | None = None
    checkpoint: Checkpoint | None = None
    seed: int | None = None
    engine: AbstractEngine | None = None  # None: whole arrays
    further: Callable[[Trace, int], int] | None = None  # how many may follow when ``rounds`` are over, and so on
    warm_start: WarmStart | None = None
    known: Certificate | None = None  # bounds that are known beforehand
    observer: Watched | None = None  # an Observer
    memory: float | None = None  # bytes
    threads: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a method. ``ended`` is 'gap', 'budget', 'limit', 'recession', 'interrupted', 'infeasible' or
    'failed', of a file 'read'; status and message are those of the judgement, empty before it."""

    certificate: Certificate
    certifier: Certifier  # whose it is
    ended: str
    trace: Trace = field(default_factory=Trace)
    ledger: Ledger = field(default_factory=Ledger)
    rounds: int = 0
    seconds: float = 0.0
    gathered: dict[str, Any] = field(default_factory=dict[str, Any])
    cause: str = ""  # of what failed, where that is known
    by: str = ""  # what gave it, where that is more than the method's name
    note: str = ""  # for the end of the message
    remedy: str = ""  # where the engine knows better than to advise more rounds
    own: Outcome | None = None  # of a baseline: what it itself minimises, in the words of ``aim``, as judged
    aim: str = ""
    bias: str = ""  # of a baseline: its options that lead off the optimum of that
    status: str = ""
    message: str = ""
    observed: Observed | None = None
