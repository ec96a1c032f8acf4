"""Checkpoints: the file in which a run, a path or a cross-validation is kept, and from which it goes on.

A file says what it is of (`fingerprint`) and holds packed values (`packing`), one after the other: the snapshots of a
run, the points of a path, the folds of a cross-validation. It is refused where it is of something else.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy

from ..base.files import place_of
from ..base.messages import shown
from ..checks import is_whole
from ..errors import CheckpointError, CheckpointWarning, GraphregError
from ..form import Form
from ..network import LocalView
from ..running import Checkpoint
from ..version import __version__
from . import archive
from .fingerprint import Fingerprint, differences
from .packing import JsonTree, MisfitError, check_entries

FORMAT, VERSION = "graphreg checkpoint", 5
HEADER = {
    "format": str,
    "version": int,
    "versions": dict[str, str],
    "kind": str,
    "of": dict[str, dict[str, str]],
    "facts": dict[str, str | int],
    "values": list[Any],
    "arrays": list[str],
    "layouts": dict[str, list[int]],
}
ENTRY = {"tree": Any, "generators": list[list[Any]], "arrays": int}
DENSE = 1 << 15  # numbers of which a state may hold a square
HOLDS = {"run": "round {}", "path": "{} of the points", "cross-validation": "{} of the folds"}
OTHERWISE = {  # about a file that is of no use: instead of removing it
    "solution": "solve the problem again",
    "part of a run": "begin anew in another folder",
}
T = TypeVar("T")


class Store:
    """The file of one run, path or cross-validation, which has it to itself until `close`.

    Attributes
    ----------
    values : list of Packed
        What the file holds.
    facts : dict
        What else is to be known before a value is read, in numbers and texts.
    note, ending : str
        For the user: why the last bits may differ; where writing failed, whether the last attempt succeeded.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        kind: str,
        of: Mapping[str, Fingerprint] | None,
        form: Form | None,
        many: int = 1,
        alone: bool = True,
    ) -> None:
        """``of`` says of which problem, method and so on, in entries by name; a file of others is refused (None: of
        none). The form and how ``many`` answers of it there will be say how large a file is believed. Whoever only
        reads need not be ``alone`` with it."""
        self.checkpoint, self.kind, self.of = checkpoint, kind, of
        self.values: list[JsonTree] = []
        self.facts: dict[str, Any] = {}
        self.note = self.ending = ""
        self.mark(-1)
        self.path = place_of(checkpoint.file)  # the links on the way are not looked at again
        self._limits = SMALL if form is None else limits(form, many)
        self._lock = archive.Lock(self.path) if alone else None
        try:
            if self.path.exists():
                self._read(*archive.read(self.path, self._limits))
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return f"the {'solution' if self.kind == 'solution' else 'checkpoint'} {str(self.checkpoint.file)!r}"

    def close(self, say: bool = False) -> None:
        """Leave the file to others; ``say`` in a warning what `ending` says."""
        if self._lock is not None:
            self._lock.release()
        if say and self.ending:
            warnings.warn(self.ending, CheckpointWarning, stacklevel=4)

    def _read(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        with self.reading():
            self._check(header)
            for k, entry in enumerate(header["values"]):
                check_entries(entry, ENTRY, f"entry {k} of 'values' in its header")
                own = [arrays[f"{k}-{number}"] for number in range(entry["arrays"])]
                self.values.append(JsonTree(entry["tree"], entry["generators"], own))
            if sum(len(each.arrays) for each in self.values) != len(arrays):
                raise MisfitError("'values' in its header do not speak of all arrays")
            self.facts, self.note = header["facts"], _note(header["versions"])

    def _check(self, header: Mapping[str, Any]) -> None:
        name = repr(str(self.checkpoint.file))
        if not isinstance(header, dict) or not str(header.get("format")).startswith("graphreg "):
            # up to version 2 every kind had a name of its own
            raise CheckpointError(f"{name} is no file of graphreg; name another file for it")
        version, versions = header.get("version"), header.get("versions")
        if version != VERSION and is_whole(version):
            writer = versions.get("graphreg", "") if isinstance(versions, dict) else ""
            known = isinstance(writer, str) and writer.isascii() and writer.isprintable()
            writer = (known and writer) or "as it was then"
            raise CheckpointError(
                f"{self} has the format version {version}, and this graphreg "
                f"({_versions()['graphreg']}) reads and writes {VERSION}; go on with graphreg {writer}, or "
                + self._or("remove the file to begin anew")
            )
        check_entries(header, HEADER, "its header")
        if header["kind"] != self.kind:
            raise CheckpointError(
                f"{name} is no file of a {self.kind} but of a {header['kind']}; name another file for it"
            )
        if self.of is None:
            return
        if header["of"].keys() != self.of.keys():
            raise MisfitError(f"'of' in its header is of {shown(list(header['of']))}")
        for what, here in self.of.items():
            if found := differences(here, header["of"][what]):
                raise CheckpointError(
                    f"{self} is of another {what}; what differs: {', '.join(found)}; name another file, or "
                    + self._or("remove this one to begin anew"),
                    tuple(found),
                )

    @contextmanager
    def reading(self) -> Generator[None]:
        """Content that makes no sense is refused, and what raises within is taken for it."""
        try:
            yield
        except MisfitError as error:
            raise self.senseless(error) from error.__cause__
        except GraphregError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError, MemoryError) as error:
            raise self.senseless(error) from error

    def senseless(self, error: BaseException, what: str = "read") -> CheckpointError:
        return CheckpointError(f"{self} cannot be {what} ({error}); {self._or('remove it to begin anew')}")

    def _or(self, remedy: str) -> str:
        return OTHERWISE.get(self.kind, remedy)

    def value(self, k: int, kind: type[T], view: LocalView | None = None) -> T:
        """The k-th value, which must be of a kind; a state needs the view on which it stood."""
        with self.reading():
            value = self.values[k].value(view, self.kind)
            if not isinstance(value, kind):
                raise MisfitError(f"its value {k} is a {type(value).__name__}, and not a {kind.__name__}")
        return value

    def mark(self, count: int) -> None:
        """Note that the file is that after so many rounds; -1 where there is none yet."""
        self.when, self.count, self.good = time.perf_counter(), count, count

    def due(self, count: int) -> bool:
        """True where it is time to write after so many rounds: at first, so that whatever is wrong with the file or
        the state is known before work is done, and then as often as the user says."""
        every, seconds = self.checkpoint.rounds, self.checkpoint.seconds
        many = every is not None and count - self.count >= every
        return self.count < 0 or many or (seconds is not None and time.perf_counter() - self.when >= seconds)

    def write(self, count: int, values: Callable[[], list[JsonTree]], first: bool = False) -> None:
        """Write all values that there are after so many rounds, unless the file has them already.

        Only the first time is it an error where it fails: work that there is goes on, with a warning, and the next
        attempt is made when it is due.
        """
        if count == self.good:
            return
        try:
            self.values = values()
            write_values(self.path, self.kind, self.of or {}, self.facts, self.values, self._limits)
        except CheckpointError as error:
            if first:
                raise
            holds, warned = HOLDS[self.kind].format(max(self.good, 0)), self.ending
            self.when, self.count, self.ending = time.perf_counter(), count, f"{_capital(error)}. It holds {holds}."
            if not warned:
                said = f"{error}; the {self.kind} goes on, and it is tried again when it is due"
                warnings.warn(said, CheckpointWarning, stacklevel=3)
        else:
            if self.ending:
                self.ending = f"{_capital(self)} could not be written for a while; the last write succeeded."
            self.mark(count)


def write_values(
    path: Path,
    kind: str,
    of: Mapping[str, Fingerprint],
    facts: Mapping[str, Any],
    values: Sequence[JsonTree],
    limits: archive.Limits,
) -> None:
    """A file of packed values, which replaces what is there."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "versions": _versions(),
        "kind": kind,
        "of": of,
        "facts": facts,
        "values": [{"tree": p.tree, "generators": p.generators, "arrays": len(p.arrays)} for p in values],
    }
    arrays = {f"{k}-{number}": array for k, p in enumerate(values) for number, array in enumerate(p.arrays)}
    archive.write(path, header, arrays, limits)


SMALL = archive.Limits(archive.ONE, archive.ALL)  # where the problem is not known


def limits(form: Form, many: int) -> archive.Limits:
    """A bound of what a problem can need: its numbers times what a method may keep of each, and more."""
    numbers = form.n + sum(block.count for block in form.samples) + sum(edge.count for edge in form.edges)
    much = (512 * numbers * (form.d + 1) ** 2 + 8 * min(numbers, DENSE) ** 2) * many
    return archive.Limits(archive.ONE + much, archive.ALL + 64 * much)


def _capital(said: object) -> str:
    text = str(said)
    return text[:1].upper() + text[1:]


def _versions() -> dict[str, str]:
    return {
        "graphreg": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _note(there: Mapping[str, str]) -> str:
    differ = {name: mine for name, mine in _versions().items() if there.get(name) != mine}
    found = [f"{name} {shown(there.get(name, '?'))[1:-1]}, here {mine}" for name, mine in differ.items()]
    if not found:
        return ""
    return f"The run went on from a checkpoint of {'; '.join(found)}: its last bits may differ from an unbroken run's."
