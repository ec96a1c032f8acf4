"""The record of observers: observations in arrays that grow, within a bound of their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.breakdown import Watched
from ..base.display import Suggesting
from ..base.messages import did_you_mean, shown
from ..checks import checked, whole
from ..errors import CheckpointError, MethodError, MissingError
from ..form import Form
from ..network import Ledger
from ..terms import Array
from .observing import Observation, Observer, Seen, copied, entries_of, grid_of

if TYPE_CHECKING:
    import pandas as pd

    from .method import AbstractIteration

LEAST = 64  # rounds for which there is room at first


@dataclass
class Log:
    """Observations in arrays that grow, the first ``size`` rows of each; of a tuple an array each."""

    of: str  # the observer, in words
    rounds: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    arrays: dict[str, Seen] = field(default_factory=dict[str, Seen])
    size: int = checked(whole(0), 0)
    stride: int = checked(whole(1), 1)  # rounds of the grid per round that is kept

    def parts(self) -> list[Array]:
        return [part for value in self.arrays.values() for part in _listed(value)]

    def sound(self) -> bool:
        """True where it is one that a run has left."""
        parts = [self.rounds, *self.parts()]
        even = all(part.ndim for part in parts) and len({len(part) for part in parts}) == 1
        return even and self.rounds.dtype == np.int64 and self.rounds.ndim == 1 and self.size <= len(self.rounds)

    def begin(self, like: Mapping[str, Seen]) -> None:
        """No rows, of these shapes."""
        none = {name: _each(value, lambda a: np.zeros((0, *a.shape), a.dtype)) for name, value in like.items()}
        self.arrays, self.rounds = none, np.zeros(0, dtype=np.int64)

    def fits(self, like: Mapping[str, Seen]) -> str:
        """The name of what has another shape or type than the rows so far; empty where there is none."""
        for name, value in like.items():
            rows, new = _listed(self.arrays[name]), _listed(value)
            if [(a.shape[1:], a.dtype) for a in rows] != [(a.shape, a.dtype) for a in new]:
                return name
        return ""

    def thinned(self) -> Log:
        """Every second row, with room for as many again."""
        return self._with(slice(None, None, 2), len(self.rounds), 2 * self.stride)

    def grown(self, most: int) -> Log:
        return self._with(slice(None), min(max(2 * len(self.rounds), LEAST), most), self.stride)

    def _with(self, rows: slice, room: int, stride: int) -> Log:
        """A log of its own: a Ctrl-C leaves the one or the other whole."""

        def moved(a: Array) -> Array:
            kept = a[: self.size][rows]
            out = np.zeros((room, *a.shape[1:]), a.dtype)
            out[: len(kept)] = kept
            return out

        arrays = {name: _each(value, moved) for name, value in self.arrays.items()}
        return Log(self.of, moved(self.rounds), arrays, len(range(self.size)[rows]), stride)

    def add(self, k: int, row: Mapping[str, Seen]) -> None:
        for name, value in row.items():
            for part, new in zip(_listed(self.arrays[name]), _listed(value), strict=True):
                part[self.size] = new
        self.rounds[self.size] = k
        self.size += 1  # last: what is broken off before has added nothing


def _listed(value: Seen) -> tuple[Array, ...]:
    return value if isinstance(value, tuple) else (value,)


def _each(value: Seen, change: Callable[[Array], Array]) -> Seen:
    return tuple(map(change, value)) if isinstance(value, tuple) else change(value)


class Recorder:
    """An observer in a run: it looks at the state after every round of its grid."""

    def __init__(self, look: Watched, form: Form, v: Array, ledger: Ledger) -> None:
        observer: Any = look.function
        self.look, self.form, self.v, self.ledger = look, form, v, ledger
        self.observer: Observer = observer
        self.log, self.last, self.entries = Log(str(observer)), None, dict[str, list[str]]()
        self._begin(-1)

    def _begin(self, k: int) -> None:
        """Set, where round k was the last, which round of the grid is next, and how many there were since the first."""
        first = self.log.rounds[0] if self.log.size else k + 1
        self._number = sum(each >= first for each in takewhile(lambda each: each <= k, grid_of(self.observer)))
        self._grid = dropwhile(lambda each: each <= k, grid_of(self.observer))
        self._next = next(self._grid, None)

    def resume(self, log: Log | None, method: AbstractIteration, state: Any, k: int) -> None:
        """Go on from what a checkpoint of round k has kept."""
        if log is not None and log.of != self.log.of:
            raise CheckpointError(
                f"the checkpoint holds observations of {shown(log.of)}, not {shown(self.log.of)}: ask for the same, "
                "leave observe out (what was observed is then lost), or name another file"
            )
        if log is not None and log.size:
            seen = self._seen(method, state, k)
            if not log.sound() or log.arrays.keys() != seen.keys() or log.fits(seen):
                raise CheckpointError("the observations in the checkpoint are not of this run; name another file")
            log.size = int(np.searchsorted(log.rounds[: log.size], k, side="right"))  # it may have seen one round more
            self.log = log
        self._begin(k)

    def see(self, method: AbstractIteration, state: Any, k: int) -> None:
        """Look, where round k is due."""
        if k != self._next:
            return
        if self._number % self.log.stride == 0:
            self._keep(self._seen(method, state, k), k)
        self._number, self._next = self._number + 1, next(self._grid, None)

    def close(self, method: AbstractIteration, state: Any, k: int) -> None:
        """Look at the last round, unless the rounds were named."""
        seen = self.log.rounds[: self.log.size]
        if not self.observer.named and len(seen) and k > seen[-1]:
            self.last = k, self._seen(method, state, k)

    def _seen(self, method: AbstractIteration, state: Any, k: int) -> dict[str, Seen]:
        seen = self.look(Observation(self.form, method, state, k, self.v, self.ledger))
        entries = {name: labels for name, value in seen.items() if (labels := entries_of(value))}
        if self.log.size and self.entries and entries != self.entries:
            raise MethodError(f"a frame has other labels, or another order, after round {k} than before")
        self.entries = entries
        return {name: copied(name, value) for name, value in seen.items()}

    def _keep(self, row: dict[str, Seen], k: int) -> None:
        log = self.log
        if not log.size:
            log.begin(row)
        if other := log.fits(row):
            raise MethodError(
                f"{other!r} has another shape after round {k} than before, or is complex there alone, so its rounds "
                "make no array; observe a function of it that is always alike"
            )
        if log.size == len(log.rounds):
            most = self._most(row)
            self.log = log = log.grown(most) if log.size < most else log.thinned()
        if self._number % log.stride == 0:
            log.add(k, row)

    def _most(self, row: Mapping[str, Seen]) -> int:
        """The number of observations that memory allows, at least two."""
        each = 8 + sum(part.nbytes for value in row.values() for part in _listed(value))
        most = int(self.observer.memory // each)
        asked = len(self.observer.rounds) if self.observer.named else 0
        if most < max(asked, 2):
            raise MethodError(
                f"an observation takes {each:,} bytes, and Observer(memory={self.observer.memory:g}) has room for "
                f"{most}{f' of the {asked} that are asked for' if asked else ''}: give more memory, or observe less"
            )
        return most

    def observed(self) -> Observed:
        """All observations, with that of the last round."""
        log, rounds = self.log, self.log.rounds[: self.log.size]
        arrays = {name: _each(value, lambda a: a[: log.size].copy()) for name, value in log.arrays.items()}
        if self.last is not None and not log.fits(self.last[1]):
            k, row = self.last
            rounds, arrays = np.append(rounds, k), {name: _joined(arrays[name], row[name]) for name in arrays}
        return Observed(rounds.copy(), arrays, self.v, log.stride, self.entries)


def _joined(rows: Seen, last: Seen) -> Seen:
    out = tuple(np.concatenate([a, b[None]]) for a, b in zip(_listed(rows), _listed(last), strict=True))
    return out if isinstance(rows, tuple) else out[0]


@dataclass(frozen=True, eq=False)
class Observed(Mapping[str, Any], Suggesting):
    """The observations of an observer, by name: ``observed["w"]`` is (rounds, n, d). None of it is certified.

    Attributes
    ----------
    rounds : (k,) array
        After which each observation was made; 0 is the start.
    arrays : dict
        One row per observation: (k, ...) arrays; "flows" and "prices" are tuples of them, one per block.
    center : (d,) array
        See `Observation`.
    stride : int
        Of how many rounds of the grid one was kept, for want of memory; 1 where all were.
    entries : dict
        Of results that were frames, the labels of their numbers.
    """

    rounds: Array
    arrays: dict[str, Seen] = field(repr=False)
    center: Array = field(repr=False)
    stride: int = 1
    entries: dict[str, list[str]] = field(default_factory=dict[str, list[str]], repr=False)

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            raise MissingError(f"{name!r} was not observed{did_you_mean(name, self.arrays)}; there is {[*self.arrays]}")
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def table(self) -> pd.DataFrame:
        """The numbers by round, as learning curves: one column for each name that is one number per round, and for
        each number of a frame, as "score[a, mse]".

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        MethodError
            Where nothing that was observed is one number per round, or a frame.

        Examples
        --------
        >>> run = problem.solve(gr.PrimalDual(), rounds=3, gap=0, observe={"largest": lambda at: abs(at.w).max()})
        >>> run.observed.table().index.tolist()
        [0, 1, 2, 3]
        """
        import pandas as pd

        curves = {n: a for n, a in self.arrays.items() if not isinstance(a, tuple) and a.ndim == 1}
        for name, labels in self.entries.items():
            each = np.reshape(self.arrays[name], (len(self.rounds), -1)).T
            curves |= {f"{name}[{label}]": column for label, column in zip(labels, each, strict=True)}
        if not curves:
            raise MethodError(
                f"none of what was observed ({', '.join(self.arrays)}) is one number per round; observe a function, as "
                "in observe={'largest': lambda at: abs(at.w).max()}, or take the arrays: observed['w']"
            )
        return pd.DataFrame(curves, index=pd.Index(self.rounds, name="round"))

    def __repr__(self) -> str:
        if not len(self.rounds):
            return "<nothing was observed>"
        sizes = ", ".join(f"{n} {', '.join(str(p.shape) for p in _listed(a))}" for n, a in self.arrays.items())
        size = sum(part.nbytes for a in self.arrays.values() for part in _listed(a)) / 2**20
        left = f"; one of {self.stride} rounds of the grid, for want of memory" if self.stride > 1 else ""
        span = f"{len(self.rounds)} rounds from {self.rounds[0]} to {self.rounds[-1]}"
        return f"<observed after {span}{left}: {sizes}; {size:.2g} MiB, nothing of it certified>"
