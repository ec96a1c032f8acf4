"""What a case is, and the numbers that the problems are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

Array = np.ndarray[Any, Any]
BOUNDS, INFEASIBLE, UNBOUNDED, STORED = "bounds", "infeasible", "unbounded", "infeasible as stored"
NONE = (INFEASIBLE, UNBOUNDED, STORED, "unbounded as stored")  # no optimum, proved
ROWS, COLUMNS = 40, 12


@dataclass(frozen=True)
class Case:
    """A problem, what is right to say of it, and its optimum where that is known in closed form.

    Where no finite proof of what is ``right`` exists, ``hard`` says why; then one side only, or nothing, is right too.
    """

    name: str
    problem: cp.Problem
    known: float | None = None
    right: str = BOUNDS
    hard: str = ""


Cases = Iterator[Case]


def least(name: str, objective: Any, constraints: Sequence[Any] = (), **more: Any) -> Case:
    return Case(name, cp.Problem(cp.Minimize(objective), list(constraints)), **more)


def most(name: str, objective: Any, constraints: Sequence[Any] = (), **more: Any) -> Case:
    return Case(name, cp.Problem(cp.Maximize(objective), list(constraints)), **more)


class Data:
    """A regression with labels, a covariance, a signal and a graph, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        r = self.r = np.random.default_rng(seed)
        m, n = ROWS, COLUMNS
        self.A = r.standard_normal((m, n))
        truth = r.standard_normal(n) * (r.random(n) < 0.5)
        self.b = self.A @ truth + 0.3 * r.standard_normal(m)
        self.y = np.sign(self.A @ truth + 0.5 * r.standard_normal(m))
        self.F = r.standard_normal((n, 4))
        self.S = self.F @ self.F.T + np.diag(r.random(n))
        self.mu = r.random(n)
        self.t = np.cumsum(0.2 * r.standard_normal(60)) + (np.arange(60) > 30)
        C = r.standard_normal((5, 5))
        self.C = C + C.T
        self.edges = [(i, j) for i in range(8) for j in range(8) if i != j and (j == i + 1 or r.random() < 0.4)]
        self.incidence = np.zeros((8, len(self.edges)))
        for e, (i, j) in enumerate(self.edges):
            self.incidence[i, e], self.incidence[j, e] = 1.0, -1.0
