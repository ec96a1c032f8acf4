"""What a method is given to solve, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..certificate import Certificate, Certifier
from ..form import Form
from ..network import Ledger
from .trace import Record, Trace

if TYPE_CHECKING:
    from ..compiling import Compiler
    from ..methods import AbstractIteration, Start
    from .checkpoints.checkpoint import Checkpoint
    from .warm_start import WarmStart


@dataclass(frozen=True)
class Budget:
    """What the caller asked for; see `Problem.solve`."""

    gap: float = 1e-6
    rounds: int | None = None
    seconds: float | None = None
    start: Start | None = None
    callback: Callable[[Record], Any] | None = None
    progress: bool | None = None
    checkpoint: Checkpoint | None = None
    seed: int | None = None
    engine: Any = None  # graphreg.engines.Actors; None: whole arrays
    warm_start: WarmStart | None = None
    known: Certificate | None = None  # bounds that are known beforehand


@dataclass(frozen=True)
class Outcome:
    """What a method gave. ``ended`` is 'gap', 'budget', 'limit', 'recession', 'interrupted', 'infeasible' or 'failed';
    status and message are those of the judgement, empty before it."""

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
    own: Outcome | None = None  # of a baseline: what it itself minimises, in the words of ``aim``, as judged
    aim: str = ""
    status: str = ""
    message: str = ""


class Task(Protocol):
    """A form to be solved within a budget."""

    @property
    def form(self) -> Form: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def certifier(self) -> Certifier:
        """That of the form, with all that is known beforehand."""
        ...

    @property
    def compiler(self) -> Compiler:
        """Compiles the form to CVXPY."""
        ...

    def iterate(self, method: AbstractIteration, budget: Budget) -> Outcome:
        """Rounds of a method."""
        ...

    def instead(self, form: Form, method: AbstractIteration, start: Start | None) -> Outcome:
        """The outcome of another form within the same budget, judged."""
        ...
