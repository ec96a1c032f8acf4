"""Checkpoints: the file in which a run, a path or a cross-validation is kept, and from which it goes on.

A file says what it is of (`fingerprint`) and holds packed values (`packing`), one after the other: the snapshots of a
run, the points of a path, the folds of a cross-validation. It is refused where it is of something else.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy

from ...checks import check_fields, checked, count, positive
from ...errors import CheckpointError
from ...network import LocalView
from ...version import __version__
from . import archive
from .fingerprint import Fingerprint, differences
from .packing import Packed

FORMAT, VERSION = "graphreg checkpoint", 3
T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is kept, and how often.

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
        """From what a user gives: a path, a Checkpoint, or None."""
        return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)

    @property
    def file(self) -> Path:
        return Path(self.path)


class Store:
    """The file of one run, path or cross-validation.

    Attributes
    ----------
    values : list of Packed
        What the file holds; the caller adds to it, and calls `write`.
    facts : dict
        What else is to be known before a value is read, in numbers and texts.
    note : str
        For the user: why the last bits may differ.
    """

    def __init__(self, checkpoint: Checkpoint, kind: str, of: Mapping[str, Fingerprint]) -> None:
        """``of`` says of which problem, method and so on, in entries by name; a file of others is refused."""
        self.checkpoint, self.kind, self.of = checkpoint, kind, of
        self.values: list[Packed] = []
        self.facts: dict[str, Any] = {}
        self.note = ""
        self.mark(-1)
        path = checkpoint.file
        if path.is_dir():
            raise CheckpointError(f"{self} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise CheckpointError(f"{self} is to lie in a folder that does not exist; create it")
        if path.exists():
            self._read(*archive.read(path))

    def __str__(self) -> str:
        return f"the checkpoint {str(self.checkpoint.file)!r}"

    def _read(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        with self.reading():
            self._check(header)
            for k, entry in enumerate(header["values"]):
                own = [arrays[f"{k}-{number}"] for number in range(entry["arrays"])]
                self.values.append(Packed(entry["tree"], entry["generators"], own))
            self.facts, self.note = dict(header["facts"]), _note(header["versions"])

    def _check(self, header: Mapping[str, Any]) -> None:
        name = repr(str(self.checkpoint.file))
        if not str(header.get("format")).startswith("graphreg "):  # up to version 2 every kind had a name of its own
            raise CheckpointError(f"{name} is no checkpoint of graphreg; name another file for it")
        if header["version"] != VERSION:
            writer = header.get("versions", {}).get("graphreg", "as it was then")
            raise CheckpointError(
                f"{self} has the format version {header['version']}, and this graphreg "
                f"({_versions()['graphreg']}) reads and writes {VERSION}; go on with graphreg {writer}, or "
                "remove the file to begin anew"
            )
        if header["kind"] != self.kind:
            raise CheckpointError(
                f"{name} is no checkpoint of a {self.kind} but of a {header['kind']}; name another file for it"
            )
        for what, here in self.of.items():
            found = differences(here, header["of"][what])
            if found:
                raise CheckpointError(
                    f"{self} is of another {what}; what differs: {', '.join(found)}; name another file, or remove "
                    "this one to begin anew",
                    tuple(found),
                )

    @contextmanager
    def reading(self) -> Generator[None]:
        """Content that makes no sense is refused."""
        try:
            yield
        except CheckpointError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"{self} cannot be read ({error}); remove it to begin anew") from error

    def value(self, k: int, kind: type[T], view: LocalView | None = None) -> T:
        """The k-th value, which must be of a kind; a state needs the view on which it stood."""
        with self.reading():
            value = self.values[k].value(view)
            if not isinstance(value, kind):
                raise TypeError(f"its value {k} is no {kind.__name__}")
        return value

    def mark(self, count: int) -> None:
        """Note that the file is that after so many rounds; -1 where there is none yet."""
        self.when, self.count = time.perf_counter(), count

    def due(self, count: int) -> bool:
        """Whether to write after so many rounds: at first, so that whatever is wrong with the file or the state is
        known before work is done, and then as often as the user says."""
        every, seconds = self.checkpoint.rounds, self.checkpoint.seconds
        many = every is not None and count - self.count >= every
        return self.count < 0 or many or (seconds is not None and time.perf_counter() - self.when >= seconds)

    def write(self, count: int) -> None:
        """Put all values into the file, after so many rounds."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "versions": _versions(),
            "kind": self.kind,
            "of": self.of,
            "facts": self.facts,
            "values": [{"tree": p.tree, "generators": p.generators, "arrays": len(p.arrays)} for p in self.values],
        }
        arrays = {f"{k}-{number}": array for k, p in enumerate(self.values) for number, array in enumerate(p.arrays)}
        archive.write(self.checkpoint.file, header, arrays)
        self.mark(count)


def _versions() -> dict[str, str]:
    return {
        "graphreg": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _note(there: Mapping[str, str]) -> str:
    found = [f"{name} {there.get(name)}, here {mine}" for name, mine in _versions().items() if there.get(name) != mine]
    if not found:
        return ""
    return f"The run went on from a checkpoint of {'; '.join(found)}: its last bits may differ from an unbroken run's."
