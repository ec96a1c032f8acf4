"""An answer of which every part has its own nodes alone, and the files of all parts."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.files import put
from ...certificate import OWN_TERMS
from ...errors import CheckpointError, DataError
from ...running import Trace
from ...terms import Array
from .engine import PartEngine
from .keeping import writable
from .wire import Wire

if TYPE_CHECKING:
    import pandas as pd

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
        "certified" where ``relative_gap`` is at most what was asked for, else "no_certificate".
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
        """As of a `Certificate`: "own terms" where the bounds rest on what you wrote, "none" where there are not both,
        else "global"."""
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
        """Of what `LocalSolution.save` has written; `DataError` where a file is missing."""
        place = Path(folder)
        try:
            summary = json.loads((place / SUMMARY).read_text())
        except FileNotFoundError:
            raise DataError(f"there is no {SUMMARY} in {place}: a run that ended writes one") from None
        missing = [k for k in range(summary["parts"]) if not _file(place, k).exists()]
        if missing:
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
