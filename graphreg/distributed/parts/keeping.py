"""The files of parts: an answer of which each has its own nodes alone, and the checkpoint of a run.

Of a checkpoint every part has a file, and one manifest says which files belong together. A file is written beside
those before it. The manifest names a round only when the files of all parts are there, and what came before is removed
only then: whenever a part is killed, the files of some round are whole.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b, file_digest
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.files import put
from ...certificate import OWN_TERMS
from ...errors import CheckpointError, DataError, GraphregError
from ...methods import AbstractMethod
from ...network import LocalView
from ...running import Checkpoint, Record, Schedule, Trace
from ...saving import JsonTree, Store, archive, of_method, of_problem, write_values
from ...terms import Array
from .engine import PartEngine
from .part import Part
from .wire import Wire

if TYPE_CHECKING:
    import pandas as pd


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
        write_values(path, KIND, self.of, self.facts, [JsonTree.of(snapshot, KIND)], archive.UNLIMITED)
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
    """The digest of a file, in as many bits as a float holds."""
    with path.open("rb") as file:
        return int.from_bytes(file_digest(file, partial(blake2b, digest_size=8)).digest(), "big") >> 12


SUMMARY = "summary.json"


@dataclass(frozen=True)
class Sent:
    """The traffic from each part to each other one: messages and bytes, (parts, parts)."""

    messages: Array
    bytes: Array

    @staticmethod
    def of(engine: PartEngine, wire: Wire) -> Sent:
        """Put together from what each has sent."""
        out = np.zeros((2, wire.count, wire.count))
        for other, (messages, numbers) in engine.crossed.items():
            out[:, wire.me, other] = messages, 8 * numbers
        messages, size = wire.total(out)
        return Sent(messages.astype(np.int64), size.astype(np.int64))


@dataclass(frozen=True)
class LocalSolution:
    """The answer at the nodes of one part, and the bounds of the whole problem.

    Attributes
    ----------
    labels : tuple
        The part's own nodes.
    coordinates : tuple of str
    coef : (k, d) array
        Their parameters.
    status : str
        "certified" where ``relative_gap`` is at most what was asked for; "budget" where rounds or seconds were used up
        first; "no_certificate" where there is no lower bound.
    dual, primal : float
        Proved: ``dual <= optimum <= primal``, of the whole problem.
    relative_gap : float
    rounds : int
    seconds : float
    trace : Trace
    sent : Sent
        What crossed from part to part.
    part, parts, n : int
        The number of this part, how many there are, and how many nodes they have.
    why : str
        What stands in the way of a lower bound on this part; empty where nothing does.
    note : str
        What the bounds rest on where losses or penalties are your own; empty where all are the library's.
    """

    labels: tuple[Hashable, ...]
    coordinates: tuple[str, ...]
    coef: Array
    status: str
    dual: float
    primal: float
    relative_gap: float
    rounds: int
    seconds: float
    trace: Trace
    sent: Sent
    part: int
    parts: int
    n: int
    why: str = ""
    note: str = ""

    @property
    def scope(self) -> str:
        """The scope of the bounds, as of a `Certificate`: "own terms" where the bounds rest on what you wrote,
        "none" where there are not both, else "global"."""
        if not np.isfinite([self.dual, self.primal]).all():
            return "none"
        return OWN_TERMS if self.note else "global"

    def frame(self) -> pd.DataFrame:
        """The parameters, one row per node."""
        import pandas as pd

        return pd.DataFrame(self.coef, index=pd.Index(list(self.labels), name="node"), columns=list(self.coordinates))

    def save(self, folder: Any) -> None:
        """Write this part's file, and by the first part the summary; files of their names are replaced as a whole.

        Raises
        ------
        CheckpointError
            Where that cannot be.
        """
        place, content = Path(folder), BytesIO()
        writable(place, "results", CheckpointError)
        labels = json.dumps([label if isinstance(label, (int, str)) else repr(label) for label in self.labels])
        np.savez(content, labels=np.array(labels), coef=self.coef)
        put(_file(place, self.part), content.getvalue(), "result", CheckpointError)
        if self.part == 0:
            names = ("status", "dual", "primal", "relative_gap", "scope", "note", "rounds", "seconds", "parts", "n")
            summary = {name: getattr(self, name) for name in names} | {"coordinates": list(self.coordinates)}
            summary |= {"messages": self.sent.messages.tolist(), "bytes": self.sent.bytes.tolist()}
            put(place / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode(), "result", CheckpointError)

    def __str__(self) -> str:
        return (
            f"{self.status}: {self.dual:.9g} <= optimum <= {self.primal:.9g} (relative gap {self.relative_gap:.2g}), "
            f"{self.rounds:,} rounds, {self.seconds:.3g} s; part {self.part} of {self.parts} has {len(self.labels):,} "
            f"of {self.n:,} nodes" + (f"\n  {self.note}" if self.note else "")
        )


@dataclass(frozen=True)
class SavedParts:
    """The answer in the folder of a run, whose files are read one at a time.

    Attributes
    ----------
    folder : Path
    summary : dict
    """

    folder: Path
    summary: dict[str, Any]

    @staticmethod
    def open(folder: Any) -> SavedParts:
        """The parts that `LocalSolution.save` has written; `DataError` where a file is missing."""
        place = Path(folder)
        try:
            summary = json.loads((place / SUMMARY).read_text())
        except FileNotFoundError:
            raise DataError(f"there is no {SUMMARY} in {place}: a run that ended writes one") from None
        if missing := [k for k in range(summary["parts"]) if not _file(place, k).exists()]:
            raise DataError(f"the files of {len(missing)} of {summary['parts']} parts are missing in {place}: "
                            f"{_file(place, missing[0]).name} is the first")  # fmt: skip
        return SavedParts(place, summary)

    def parts(self) -> Iterator[tuple[list[Hashable], Array]]:
        """Labels and parameters, part by part."""
        for k in range(self.summary["parts"]):
            with np.load(_file(self.folder, k)) as file:
                yield json.loads(str(file["labels"])), file["coef"]

    @cached_property
    def _place(self) -> dict[Hashable, tuple[int, int]]:
        return {label: (k, i) for k, (labels, _) in enumerate(self.parts()) for i, label in enumerate(labels)}

    def __getitem__(self, label: Hashable) -> Array:
        """The parameters of one node, (d,)."""
        k, i = self._place[label]
        with np.load(_file(self.folder, k)) as file:
            return file["coef"][i]


def _file(folder: Path, part: int) -> Path:
    return folder / f"part-{part:05d}.npz"
