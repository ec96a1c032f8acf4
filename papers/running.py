"""Running claims: each is computed, judged by its numbers, and kept; what is not as expected is said."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphreg.errors import ModelError, ModelFileError

from .breaking_off import heeded
from .declaring import SCALES, Declaration, chosen
from .kept import Kept
from .records import Evidence, Verdict, plain
from .replications import Replications, quiet
from .trial import Trial, folder_of_data

OUT = Path("papers-out")
SAME = ("id", "paper", "source", "statement", "stated", "expected")  # fields of declarations and claims
SENTENCES = {
    "correction": Verdict.CORRECTED,
    "weight": Verdict.CORRECTED,
    "part": Verdict.PART,
}  # said where it was found


@dataclass(frozen=True)
class Claim:
    """A claim, and what was found of it.

    Attributes
    ----------
    id, paper, source, statement : str
    stated : str or number
        As printed.
    expected, verdict : Verdict
        The verdict that was expected in advance, and that which was found; None where nothing has been computed.
    evidence : Evidence or None
    settings : dict
        With the scale and the seed.
    seconds : float or None
    reason : str
        Of a verdict that is not "holds": the first number that is off, what is not computed, or why nothing is.
    correction, weight, part : str
        The sentence of the verdict that was found, where it is one with a correction, or in part; else empty.
    unexplained : str
        Where the verdict is not the expected one: what is the matter. Else empty.
    note : str
        On files of earlier results that were damaged.
    """

    id: str
    paper: str
    source: str
    statement: str
    stated: Any
    expected: Verdict
    verdict: Verdict | None = None
    evidence: Evidence | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    seconds: float | None = None
    reason: str = ""
    correction: str = ""
    weight: str = ""
    part: str = ""
    unexplained: str = ""
    note: str = ""

    @property
    def computed(self) -> dict[str, Any] | None:
        """The computed numbers, by what they are of."""
        return None if self.evidence is None else {c.what: _one_or_all(c.computed) for c in self.evidence.checks}

    @property
    def tolerance(self) -> dict[str, str] | None:
        """The tolerance of each, with the unit."""
        return None if self.evidence is None else {c.what: f"{c.tolerance:g} {c.unit}" for c in self.evidence.checks}

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON has it; but for what the figure is drawn from."""
        fields = ("id", "paper", "source", "statement", "stated", "computed", "tolerance", "verdict", "expected")
        more = ("settings", "seconds", "reason", "correction", "weight", "part", "unexplained", "note")
        found: dict[str, Any] = {name: getattr(self, name) for name in (*fields, *more)}
        every = self.evidence.checks if self.evidence else ()
        found["checks"] = [{**vars(c), "deviation": c.deviation if c.finite else None, "holds": c.holds} for c in every]
        found["counterexample"] = self.evidence.counterexample if self.evidence else {}
        found["table"] = self.evidence.table if self.evidence else []
        return plain(found)


def _one_or_all(values: tuple[float, ...]) -> Any:
    return values[0] if len(values) == 1 else list(values)


# ---- one claim -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Runner:
    """The way in which claims are computed.

    Attributes
    ----------
    scale : {"quick", "full"}
    out : Path or None
        The folder of results; None keeps nothing.
    processes : int
        For the replications of experiments.
    data : Path or None
        The folder of real data; see `papers.trial.folder_of_data`.
    progress : bool or None
    perturbation : bool
        Whether to tamper with the inputs; nothing is kept then.
    """

    scale: str = "quick"
    out: Path | None = None
    processes: int = 1
    data: Path | None = None
    progress: bool | None = False
    perturbation: bool = False

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ModelError(f"scale is one of {', '.join(SCALES)}, got {self.scale!r}")
        if not (isinstance(self.processes, int) and self.processes >= 1):
            raise ModelError(f"processes is a whole number, at least 1, got {self.processes!r}")

    def run(self, declared: Declaration) -> Claim:
        """Compute a claim, or read what is kept of it."""
        files = self._files(declared)
        if declared.function is None or _lacking(declared, files):
            return self._row(declared, {}, verdict=Verdict.UNCHECKED)
        kept = Kept(None if self.perturbation else self.out)
        key = self._key(declared, files)
        content = _read(kept, key)
        if content is None:
            began = time.perf_counter()
            evidence, reason = self._computed(declared, key, files, kept)
            if evidence is None:
                unchecked = Verdict.UNCHECKED
                return self._row(declared, key["settings"], verdict=unchecked, reason=reason, note=_note(kept))
            content = evidence, time.perf_counter() - began
            if evidence.checks and all(check.finite for check in evidence.checks):
                kept.write(key, {"evidence": evidence.to_json(), "seconds": content[1]})
        return self._row(declared, key["settings"], content, note=_note(kept))

    def kept(self, declared: Declaration) -> Claim:
        """The claim as it is known without computing: its verdict is None where nothing is kept."""
        if declared.function is None:
            return self._row(declared, {}, verdict=Verdict.UNCHECKED)
        key = self._key(declared, self._files(declared))
        return self._row(declared, key["settings"], _read(Kept(self.out), key))

    def _files(self, declared: Declaration) -> dict[str, Path]:
        """The files of real data that are there."""
        folder = folder_of_data(self.data)
        return {name: folder / name for name in declared.data if (folder / name).is_file()}

    def _key(self, declared: Declaration, files: Mapping[str, Path]) -> dict[str, Any]:
        settings = declared.settings(self.scale)
        if declared.data:
            settings["data"] = ", ".join(declared.data) if len(files) == len(declared.data) else declared.stand_in
        return {
            "id": declared.id,
            "settings": plain(settings),
            "seed": declared.seed,
            "code": declared.code if self.out else "",
            "data": {name: _digest(path) for name, path in files.items()} if self.out else {},
        }

    def _computed(
        self, declared: Declaration, key: Mapping[str, Any], files: Mapping[str, Path], kept: Kept
    ) -> tuple[Evidence | None, str]:
        """The evidence, or why there is none. Whatever an author's function raises is a claim that was not computed."""
        assert declared.function is not None
        same = {name: key[name] for name in ("id", "code", "data")}
        replications = Replications(kept, same, self.processes, self.progress)
        whole = files if len(files) == len(declared.data) else {}
        at = Trial(declared.seed, whole, replications, declared.perturbation if self.perturbation else 0.0)
        try:
            with heeded(), quiet():
                found: Any = declared.function(at, **declared.settings(self.scale))
        except ModelFileError:  # of the folder of results
            raise
        except Exception as error:  # noqa: BLE001
            return None, f"not computed: {type(error).__name__}: {error}"
        if not isinstance(found, Evidence):
            return None, f"not computed: its function returns no Evidence, but {type(found).__name__}"
        if not at.perturbed and any(check.relation == "=" for check in found.checks):
            return (
                None,
                "not computed: an equality, and no input of it goes through Trial.given, where a test perturbs it",
            )
        return found, ""

    def _row(
        self,
        declared: Declaration,
        settings: Mapping[str, Any],
        found: tuple[Evidence, float] | None = None,
        verdict: Verdict | None = None,
        reason: str = "",
        note: str = "",
    ) -> Claim:
        """A claim with the evidence and the seconds that were found; the verdict is that of the evidence, where there
        is some."""
        evidence, seconds = found or (None, None)
        if evidence is not None:
            verdict, reason = evidence.verdict(declared.correction, declared.part)
            verdict, reason = (Verdict.UNCHECKED, declared.reason) if declared.reason else (verdict, reason)
        lacking = _lacking(declared, self._files(declared))
        if verdict == Verdict.UNCHECKED:
            reason = reason or lacking or declared.reason
        same: dict[str, Any] = {name: getattr(declared, name) for name in SAME}
        same |= {name: getattr(declared, name) for name, of in SENTENCES.items() if of == verdict}
        scale = self.scale if declared.full is not None else "both"
        whole = {"scale": scale, "seed": declared.seed, **settings}
        row = Claim(
            **same, settings=whole, verdict=verdict, evidence=evidence, seconds=seconds, reason=reason, note=note
        )
        return row if lacking else replace(row, unexplained=_unexplained(row))


def _digest(path: Path) -> str:
    """Of a file of real data: with other content it is another file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]


def _unexplained(row: Claim) -> str:
    if row.verdict is None:
        return ""
    if row.verdict != row.expected:
        return f"expected was: {row.expected}; found: {row.verdict}" + (f" ({row.reason})" if row.reason else "")
    if row.verdict == Verdict.FAILS and not (row.evidence and row.evidence.counterexample):
        return "it does not hold, and there is no counterexample"
    return ""


def _lacking(declared: Declaration, files: Mapping[str, Path]) -> str:
    """The things missing here: a file of real data, or a module; empty where nothing is."""
    absent = [name for name in declared.data if name not in files]
    if absent and not declared.stand_in:
        return f"the data are not here: {', '.join(absent)}"
    modules = [name for name in declared.extras if find_spec(name) is None]
    return f"{modules[0]} is not installed" if modules else ""


def _read(kept: Kept, key: Mapping[str, Any]) -> tuple[Evidence, float] | None:
    content = kept.read(key)
    if content is None:
        return None
    try:
        return Evidence.from_json(content["evidence"]), float(content["seconds"])
    except (LookupError, TypeError, ValueError):
        kept.damaged.append(f"the result of {key['id']}")
        return None


def _note(kept: Kept) -> str:
    """The sentence on files that were no results."""
    if not kept.damaged:
        return ""
    more = f" and {len(kept.damaged) - 1} more" if len(kept.damaged) > 1 else ""
    return f"{kept.damaged[0]}{more} was no result of graphreg, or damaged; computed again"


# ---- several claims --------------------------------------------------------------------------------------------------
def run(*names: str, out: Path | str | None = None, scale: str = "quick", processes: int = 1) -> list[Claim]:
    """Compute claims of the papers, and judge each by its numbers.

    Parameters
    ----------
    *names : str
        Papers ("clusters") and ids of claims ("clusters.prop2.2"); all of them where none is named.
    out : path, optional
        A folder where results are kept, and taken from; by default none.
    scale : {"quick", "full"}
    processes : int
        For the replications of experiments.

    Returns
    -------
    list of Claim

    Raises
    ------
    ModelError
        For a name that there is not, and for what is no scale, no path or no number of processes.

    Examples
    --------
    >>> [claim] = papers.run("clusters.prop3.3")
    >>> print(claim.verdict)
    holds
    """
    if not (out is None or (isinstance(out, (str, Path)) and str(out))):
        raise ModelError(f"run(out=...) must be the path of a folder or None, got {out!r}")
    runner = Runner(scale, None if out is None else Path(out), processes)
    return [runner.run(each) for each in chosen(*names).values()]


def known(out: Path, data: Path | None = None, *names: str) -> list[Claim]:
    """The claims as they are kept, without computing: at full scale where that was run, else at quick scale."""
    full, fast = Runner("full", out, data=data), Runner("quick", out, data=data)
    found = [(fast.kept(each), full.kept(each)) for each in chosen(*names).values()]
    return [whole if whole.verdict is not None and whole.seconds is not None else part for part, whole in found]
