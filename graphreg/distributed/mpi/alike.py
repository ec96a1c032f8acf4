"""Facts that must be the same on every rank, compared before a run that would go wrong otherwise, later, in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np

from ...base.compiled import compiles
from ...errors import GraphregError, MethodError
from ...methods import AbstractMethod
from ...running import Budget
from ...saving import entry, of_method
from ...version import __version__
from .job import meet

REMEDIES = {
    "versions": "install the same versions on every machine",
    "call": "call it with the same arguments on every rank",
    "model": "every rank must read the same model",
    "problem": "build the same problem on every rank, from the same files and the same seeds",
}
MOST = 3  # differences that a message lists
E = TypeVar("E", bound=Exception)
Facts = dict[str, Mapping[str, str]]  # by the keys of REMEDIES


def agreed(comm: Any, find: Callable[[], Facts]) -> None:
    """Raises, on every rank the same, where ``find`` raises on one of them or its facts differ between them.

    Digests are gathered, and only where these differ the facts themselves.
    """
    facts, error = dict[tuple[str, str], str](), None
    try:
        facts = {(group, name): value for group, each in find().items() for name, value in each.items()}
    except GraphregError as own:
        error = own
    mine = (
        None if error is None else (type(error), str(error)),
        blake2b(repr(sorted(facts.items())).encode(), digest_size=16).digest(),
    )
    if comm.size > 1:
        meet()
    every = comm.allgather(mine)
    first = next((rank for rank, (refused, _) in enumerate(every) if refused is not None), None)
    if first is not None:
        kind, text = every[first][0]
        raise shared(kind(f"rank {first} of {comm.size}: {text}" if comm.size > 1 else text)) from error
    if len({digest for _, digest in every}) > 1:
        raise shared(MethodError(_differences(comm.allgather(facts))))


def shared(error: E) -> E:
    """As all ranks raise it."""
    vars(error)["shared"] = True
    return error


def versions() -> dict[str, str]:
    """Of what rounds are computed with."""
    numba = "not installed" if find_spec("numba") is None else version("numba")
    return {
        "graphreg": __version__,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": np.__version__,
        "numba": numba if compiles() or numba == "not installed" else f"{numba}, which does not compile",
    }


def call(method: AbstractMethod, budget: Budget) -> dict[str, str]:
    """The method with its options, and the budget."""
    kept = budget.checkpoint
    asked = {
        "the start": budget.start,
        "the rounds between checkpoints": kept and kept.rounds,
        "the seconds between checkpoints": kept and kept.seconds,
        **{name: getattr(budget, name) for name in ("gap", "rounds", "seconds", "seed")},
    }
    options = {
        "the method" if key == "the class" else f"the option {key}": value for key, value in of_method(method).items()
    }
    return options | {name: entry(value) for name, value in asked.items()}


def _differences(every: list[dict[tuple[str, str], str]]) -> str:
    keys = list(dict.fromkeys(key for facts in every for key in facts))
    wrong = [key for key in keys if len({facts.get(key) for facts in every}) > 1]
    said = [_difference(name, [facts.get((group, name), "none") for facts in every]) for group, name in wrong[:MOST]]
    more = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
    remedies = dict.fromkeys(REMEDIES[group] for group, _ in wrong)
    return f"the processes of this job are not alike: {'; '.join([*said, *more, *remedies])}"


def _difference(name: str, values: list[str]) -> str:
    """A sentence that says which ranks have which value; of long ones, which differ."""
    ranks: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        ranks.setdefault(value, []).append(rank)
    if any(value.startswith("#") for value in ranks):
        return f"not the same {name.removeprefix('the ')} on {' and '.join(map(_of, ranks.values()))}"
    return f"{name} is {' and '.join(f'{value} on {_of(who)}' for value, who in ranks.items())}"


def _of(ranks: list[int]) -> str:
    listed = ", ".join(map(str, ranks[:MOST])) + (", ..." if len(ranks) > MOST else "")
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"
