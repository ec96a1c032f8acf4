"""The checkpoint of a run on parts: each has a file of its own, and one manifest that says which files belong together.

A file is written beside those before it. The manifest names a round only when the files of all parts are there, and
what came before is removed only then: whenever a part is killed, the files of some round are whole.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import numpy as np

from ...base.files import put
from ...errors import CheckpointError, GraphregError
from ...methods import AbstractMethod
from ...network import LocalView
from ...running import Checkpoint, Record, Schedule
from ...saving import Packed, Store, archive, of_method, of_problem, write_values
from ...terms import Array
from .part import Part
from .wire import Wire


def writable(folder: Path, what: str, kind: type[GraphregError]) -> None:
    """Make a folder, and try to write to it; an error of a kind where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise kind(
            f"nothing can be written to the folder {folder} for the {what} ({error.strerror}); name another one"
        ) from error


KIND = "part of a run"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class JointSnapshot:
    """A part between two rounds: the state of the method, and what later checks depend on."""

    state: Any
    schedule: Schedule
    records: list[Record]
    best: Array  # the bounds
    w: Array  # of the upper one
    crossed: Array  # (k, 3): to which part, messages, numbers
    round: int
    seconds: float


class JointStore:
    """The folder of a run, as one part sees it."""

    def __init__(self, folder: Any, part: Part, method: AbstractMethod, seed: int, wire: Wire) -> None:
        self.folder, self.wire = Path(folder), wire
        self.of = {"method": of_method(method), "problem": of_problem(part.form)}
        self.facts = {"seed": seed, "part": wire.me, "parts": wire.count}

    def begun(self, view: LocalView, meeting: Wire) -> JointSnapshot | None:
        """The snapshot that is there, after the folder has been made; None where the run begins. `CheckpointError`
        where parts do not see the same folder, or cannot write to it."""
        if self.wire.me == 0:
            writable(self.folder, "checkpoint", CheckpointError)
        meeting.largest(np.zeros(1))  # it is there
        if not self.folder.is_dir():
            raise CheckpointError(
                f"the folder {self.folder} of the checkpoint, which the first process has made, is not seen here; name "
                "one that all processes see"
            )
        writable(self.folder, "checkpoint", CheckpointError)
        stored = self.load(view)
        k = -1.0 if stored is None else float(stored.round)
        if -meeting.largest(np.array([-k]))[0] != meeting.largest(np.array([k]))[0]:
            raise CheckpointError(
                f"not all processes find the same run in {self.folder}; name a folder that all of them see"
            )
        return stored

    def load(self, view: LocalView) -> JointSnapshot | None:
        """The snapshot that the manifest names, if there is one; `CheckpointError` where it is of another run."""
        manifest = self._manifest()
        if manifest is None:
            return None
        path = self._path(manifest["round"])
        if manifest["parts"] != self.wire.count:
            raise CheckpointError(
                f"the run in {self.folder} has {manifest['parts']} parts, and this one has {self.wire.count}; start as "
                "many processes, with the same sites, or name another folder"
            )
        if not path.exists():
            raise CheckpointError(f"{path} is missing, which {MANIFEST} names; name another folder to begin anew")
        if _digest(path) != manifest["digests"][self.wire.me]:
            raise CheckpointError(f"{path} is not the file that {MANIFEST} names: it is damaged, or of another run")
        store = Store(Checkpoint(path), KIND, self.of, view.form, alone=False)
        if store.facts != self.facts:
            raise CheckpointError(f"{path} is of another run ({store.facts}, here {self.facts})")
        return store.value(0, JointSnapshot, view)

    def keep(self, snapshot: JointSnapshot) -> None:
        """Write this part's file, and by the first part the manifest when all are there."""
        path = self._path(snapshot.round)
        write_values(path, KIND, self.of, self.facts, [Packed.of(snapshot, KIND)], archive.UNLIMITED)
        digests = np.zeros(self.wire.count)
        digests[self.wire.me] = _digest(path)
        digests = self.wire.total(digests)
        if self.wire.me == 0:
            manifest = {"round": snapshot.round, "parts": self.wire.count, "digests": [int(x) for x in digests]}
            put(self.folder / MANIFEST, json.dumps(manifest).encode(), "checkpoint", CheckpointError)
        self.wire.total(np.zeros(1))  # the manifest is there
        for old in self.folder.glob(f"part-{self.wire.me:05d}-round-*.npz"):
            if old != path:
                old.unlink()

    def _manifest(self) -> dict[str, Any] | None:
        try:
            found = json.loads((self.folder / MANIFEST).read_text())
            return {key: found[key] for key in ("round", "parts", "digests")}
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, OSError) as error:
            raise CheckpointError(f"{self.folder / MANIFEST} is damaged ({error}); name another folder") from None

    def _path(self, k: int) -> Path:
        return self.folder / f"part-{self.wire.me:05d}-round-{k:09d}.npz"


def _digest(path: Path) -> int:
    """Of a file, in as many bits as a float holds."""
    with path.open("rb") as file:
        return int.from_bytes(file_digest(file, partial(blake2b, digest_size=8)).digest(), "big") >> 12
