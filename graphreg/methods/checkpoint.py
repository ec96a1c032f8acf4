"""Checkpoints: a run that was killed goes on from its file, bit for bit as though nothing had happened.

A file holds the run between two rounds (`Snapshot`) and says what it is of (`_fingerprint`); it fits one problem,
method and start. The budget (gap, rounds, seconds) may differ from call to call.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from ..checks import check_fields, checked, count, positive
from ..errors import CheckpointError
from ..form import Form
from ..lowering.site import Site
from ..terms.records import Array
from . import _archive, _fingerprint
from ._base import AbstractMethod, Start
from ._packing import Packer, Unpacker
from ._snapshot import Snapshot

FORMAT, VERSION = "graphreg checkpoint", 2


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


@dataclass(frozen=True)
class _Packed:
    """A snapshot as it stands in the file."""

    tree: Any
    generators: list[Any]
    arrays: list[Array]


class Store:
    """The file of one solve, with a snapshot of each of its runs.

    There is a second run where the infimum is not attained: that of the problem at infinity. It follows from the end
    of the first one, which stays in the file beside it.
    """

    def __init__(
        self, checkpoint: Checkpoint, form: Form, method: AbstractMethod, start: Start | None, seed: int | None
    ) -> None:
        self.checkpoint = checkpoint
        self.problem, self.method = _fingerprint.of_problem(form), _fingerprint.of_method(method)
        self.start = _fingerprint.of_start(start)
        self.seed = seed
        self.packed: list[_Packed] = []
        self.note = ""  # for the user: why the last bits may differ
        self._open(started=start is not None)

    def keeper(self, run: int) -> Keeper:
        return Keeper(self, run)

    def _open(self, started: bool) -> None:
        """Read the file where there is one, and refuse what does not fit."""
        path = self.checkpoint.file
        if path.is_dir():
            raise CheckpointError(f"the checkpoint {str(path)!r} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise CheckpointError(f"the checkpoint {str(path)!r} needs a folder that does not exist; create it")
        if not path.exists():
            return
        header, arrays = _archive.read(path)
        try:
            self._check(header, started)
            self._check_seed(header["seed"])
            for run, entry in enumerate(header["runs"]):
                own = [arrays[f"run{run}-{k}"] for k in range(entry["arrays"])]
                self.packed.append(_Packed(entry["tree"], entry["generators"], own))
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise self._unreadable(error) from error

    def _check(self, header: Mapping[str, Any], started: bool) -> None:
        name = repr(str(self.checkpoint.file))
        if header.get("format") != FORMAT:
            raise CheckpointError(f"{name} is no checkpoint of graphreg; name another file for it")
        if header["version"] != VERSION:
            raise CheckpointError(
                f"the checkpoint {name} has the format version {header['version']}, and this graphreg "
                f"({_versions()['graphreg']}) reads and writes {VERSION}; go on with graphreg "
                f"{header['versions']['graphreg']}, or remove the file to begin anew"
            )
        remedy = "name another file, or remove this one to begin anew"
        for what, here in (("method", self.method), ("problem", self.problem)):
            found = _fingerprint.differences(here, header[what])
            if found:
                raise CheckpointError(
                    f"the checkpoint {name} is of another {what}; what differs: {', '.join(found)}; {remedy}",
                    tuple(found),
                )
        if started and header["start"] != self.start:
            raise CheckpointError(
                f"the checkpoint {name} began from another start than the one given, so it is not clear where to go "
                "on: leave start out to go on from the checkpoint, or remove the file to begin from start",
                ("the start",),
            )
        self.start = header["start"]
        self.note = _note(header["versions"])

    def _check_seed(self, found: int) -> None:
        """The seed of the run that is kept; another one is refused."""
        if self.seed is not None and self.seed != found:
            raise CheckpointError(
                f"the checkpoint {str(self.checkpoint.file)!r} is of a run with seed={found}, not {self.seed}: leave "
                "seed out to go on from the checkpoint, or remove the file to begin anew",
                ("the seed",),
            )
        self.seed = found

    def read(self, run: int, site: Site) -> Snapshot | None:
        if run >= len(self.packed):
            return None
        packed = self.packed[run]
        try:
            snapshot = Unpacker(packed.arrays, packed.generators, site).unpack(packed.tree)
            assert isinstance(snapshot, Snapshot)
        except (LookupError, TypeError, AttributeError, ValueError, AssertionError) as error:
            reason = str(error) if isinstance(error, CheckpointError) else error
            raise self._unreadable(reason) from error
        return snapshot

    def _unreadable(self, reason: Any) -> CheckpointError:
        path = str(self.checkpoint.file)
        return CheckpointError(f"the checkpoint {path!r} cannot be read ({reason}); remove it to begin anew")

    def write(self, run: int, snapshot: Snapshot) -> None:
        """Put the snapshot of a run into the file; later runs, which followed from an earlier one, leave it."""
        packer = Packer()
        tree = packer.pack(snapshot, type(snapshot).__name__.lower())
        self.packed[run:] = [_Packed(tree, packer.generators, packer.arrays)]
        header = {
            "format": FORMAT,
            "version": VERSION,
            "versions": _versions(),
            "method": self.method,
            "problem": self.problem,
            "start": self.start,
            "seed": self.seed,
            "runs": [{"tree": p.tree, "generators": p.generators, "arrays": len(p.arrays)} for p in self.packed],
        }
        arrays = {f"run{r}-{k}": array for r, p in enumerate(self.packed) for k, array in enumerate(p.arrays)}
        _archive.write(self.checkpoint.file, header, arrays)


class Keeper:
    """Keeps the latest snapshot of one run, and writes it when it is due. Writing changes nothing in the run."""

    def __init__(self, store: Store, run: int) -> None:
        self.store, self.run = store, run
        self.latest: Snapshot | None = None
        self.written: Snapshot | None = None
        self.when = time.perf_counter()

    def load(self, site: Site) -> Snapshot | None:
        """The snapshot to go on from; None where the run is to begin."""
        self.latest = self.written = self.store.read(self.run, site)
        return self.latest

    def keep(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        if self._due(snapshot.round):
            self.write()

    def _due(self, k: int) -> bool:
        if self.written is None:  # whatever is wrong with the file or the state is to be known before the first round
            return True
        every, seconds = self.store.checkpoint.rounds, self.store.checkpoint.seconds
        if every is not None and k - self.written.round >= every:
            return True
        return seconds is not None and time.perf_counter() - self.when >= seconds

    def write(self) -> None:
        """The latest snapshot to the file, where it is not there yet."""
        if self.latest is None or self.latest is self.written:
            return
        self.store.write(self.run, self.latest)
        self.written, self.when = self.latest, time.perf_counter()


def _versions() -> dict[str, str]:
    from .. import __version__  # the face of the package, which is complete by then

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
