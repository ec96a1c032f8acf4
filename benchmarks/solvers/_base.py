"""The interface of solvers: a new one is one file in this folder and one entry in `SOLVERS`; the measure is not
touched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..objective import Array, Objective

FEW = 1.5e6  # edge components beyond which general solvers take minutes, or more memory than there is


@dataclass(frozen=True)
class Answer:
    """The answer of a solver: w and the CPU seconds it took to build the problem and to solve it.

    ``lower`` and ``gap`` (relative) are what the solver itself certifies, which of all of them only graphreg does.
    ``trace`` holds (CPU seconds, objective, lower bound) at each certificate on the way, and ``checks`` the share of
    the time that went into all of them.
    """

    w: Array
    build: float
    solve: float
    rounds: int = 0
    lower: float = -np.inf
    gap: float = np.inf
    status: str = ""
    checks: float = np.nan
    trace: tuple[tuple[float, float, float], ...] = ()


class AbstractSolver(ABC):
    """A solver that can be asked for more or less accuracy."""

    name: str
    ladder: tuple[float, ...]  # tolerances or budgets, in the order in which they are tried

    @property
    def most(self) -> float:
        """The number of edge components, m d, beyond which it is not tried."""
        return np.inf

    @abstractmethod
    def applies(self, objective: Objective) -> bool:
        """True where this very objective is what the solver minimises."""

    @abstractmethod
    def run(self, objective: Objective, setting: float) -> Answer:
        """Its answer at one setting of the ladder, timed. An exception becomes a row of the table that quotes it."""
