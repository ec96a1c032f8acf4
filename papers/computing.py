"""Computations that claims of several papers share: optima, runs that are watched, what was sent, and what follows from
replications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

import graphreg as gr

Array = np.ndarray[Any, np.dtype[Any]]


def optimum(problem: gr.Problem, gap: float = 1e-12) -> gr.Solution:
    """The optimum, as exactly as can be certified."""
    return problem.solve(gr.Exact(), gap=gap, on_failure="return")


def fixed(problem: gr.Problem, method: Any, rounds: int, **more: Any) -> gr.Solution:
    """A run of so many rounds, whatever becomes of it."""
    return problem.solve(method, rounds=rounds, gap=0.0, on_failure="return", **more)


def watched(problem: gr.Problem, method: Any, rounds: int, look: Any, **more: Any) -> Any:
    """What an observer sees of a run of so many rounds."""
    seen = fixed(problem, method, rounds, observe=look, **more).observed
    assert seen is not None
    return seen


def sent(run: gr.Solution, **ends: Any) -> int:
    """The messages of a method along an edge: the first from the ``sender``, or to the ``receiver``, in the ledger."""
    table: Any = run.ledger.by_edge().query("purpose == 'method'")
    for end, node in ends.items():
        table = table[table[end] == node]
    return int(table["messages"].iloc[0])


def grid(**settings: Any) -> list[dict[str, Any]]:
    """Cells with all combinations of settings, the last varying fastest; a number or a text is the same in all."""
    every = [each if np.ndim(each) else [each] for each in settings.values()]
    return [dict(zip(settings, each, strict=True)) for each in product(*every)]


def column(runs: Sequence[Sequence[Mapping[str, Any]]], name: str) -> Array:
    """A number of every replication: by cell, by replication, and by its own entries."""
    return np.array([[one[name] for one in cell] for cell in runs])


def slope(x: Any, y: Any) -> float:
    """The exponent a of a power law y = c x^a, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def error_of_share(share: Any, count: Any) -> Any:
    """The standard error of a frequency among so many."""
    return np.sqrt(share * (1.0 - share) / count)


def rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table from its columns; a number or a text stands in every row."""
    whole = {name: each for name, each in columns.items() if np.ndim(each)}
    return [{**columns, **dict(zip(whole, row, strict=True))} for row in zip(*whole.values(), strict=True)]
