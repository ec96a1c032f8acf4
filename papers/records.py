"""Results of a claim's computation: comparisons, the evidence that they make up, and the verdict that follows.

A verdict is never written down: it follows from numbers that were computed, numbers that are stated, and a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from graphreg.errors import ModelError

SHOWN = 8  # numbers of a comparison that are kept; of more, the pair that is furthest apart
RELATIONS = ("=", "<=", ">=")
UNITS = ("absolute", "relative", "standard errors", "ratio")


class Verdict(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    PART = "holds in part"
    FAILS = "does not hold"
    UNCHECKED = "cannot be checked"


@dataclass(frozen=True)
class Check:
    """A comparison of what was computed with what is stated: ``computed relation stated``, up to a tolerance.

    Attributes
    ----------
    what : str
    relation : {"=", "<=", ">="}
    unit : {"absolute", "relative", "standard errors", "ratio"}
        Of the tolerance. "relative" is to the largest of the stated numbers, "ratio" a factor (1.2: at most a fifth
        more, or less).
    tolerance : float
    computed, stated, scale : tuple of float
        Entry by entry; of more than 8 entries those of the one that is furthest off. A deviation is in units of scale.
    entries : int
        How many there were.
    """

    what: str
    relation: str
    unit: str
    tolerance: float
    computed: tuple[float, ...]
    stated: tuple[float, ...]
    scale: tuple[float, ...]
    entries: int

    @property
    def finite(self) -> bool:
        """True where there are numbers, and all of them finite."""
        return self.entries > 0 and bool(np.isfinite([*self.computed, *self.stated, *self.scale]).all())

    @property
    def deviation(self) -> float:
        """The error of the worst entry, in the unit of the tolerance; negative within a bound."""
        return float(
            _deviations(self.relation, self.unit, *map(np.array, (self.computed, self.stated, self.scale))).max()
        )

    @property
    def holds(self) -> bool:
        return self.finite and self.deviation <= self.tolerance

    def __str__(self) -> str:
        pairs = ", ".join(f"{c:.6g} {self.relation} {s:.6g}" for c, s in zip(self.computed, self.stated, strict=True))
        of = f", the worst of {self.entries}" if self.entries > len(self.computed) else ""
        return f"{self.what}: {pairs}{of}; off by {self.deviation:.3g} ({self.unit}, tolerance {self.tolerance:.3g})"


def _deviations(relation: str, unit: str, computed: Any, stated: Any, scale: Any) -> Any:
    if unit == "ratio":
        same = computed * stated > 0.0
        up = np.divide(computed, stated, out=np.full(computed.shape, np.inf), where=same)
        down = np.divide(stated, computed, out=np.full(computed.shape, np.inf), where=same)
        return {"=": np.maximum(up, down), "<=": up, ">=": down}[relation]
    off = (computed - stated) / scale
    return {"=": np.abs(off), "<=": off, ">=": -off}[relation]


def compare(
    what: str, computed: Any, relation: str, stated: Any, tolerance: float, unit: str, error: Any = None
) -> Check:
    """A comparison of numbers or arrays; where ``error`` holds standard errors, they are the unit.

    Raises
    ------
    ModelError
        For a tolerance that is none, a relative one to 0, and a standard error that is not positive.
    """
    unit, error = (unit, 1.0) if error is None else ("standard errors", error)
    if relation not in RELATIONS or unit not in UNITS:
        raise ModelError(f"{what}: a relation is one of {RELATIONS}, and a unit one of {UNITS}: {relation!r}, {unit!r}")
    least = 1.0 if unit == "ratio" else 0.0
    if not (isinstance(tolerance, (int, float)) and least <= tolerance < np.inf):
        raise ModelError(f"{what}: the tolerance is a finite number of at least {least:g}, got {tolerance!r}")
    size = float(np.abs(stated).max(initial=0.0)) if unit == "relative" else 1.0
    c, s, e = (x.ravel() for x in np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (computed, stated, error))))
    scale = e if unit == "standard errors" else np.full(len(c), size)
    if (scale <= 0.0).any():
        raise ModelError(f"{what}: a deviation in units of 0 says nothing; give an absolute tolerance")
    kept: Any = slice(None)
    if len(c) > SHOWN:
        off = _deviations(relation, unit, c, s, scale)
        kept = [int(np.nanargmax(np.where(np.isfinite(off), off, np.inf)))]
    numbers = (tuple(map(float, x[kept])) for x in (c, s, scale))
    return Check(what, relation, unit, float(tolerance), *numbers, entries=len(c))


def equal(
    what: str, computed: Any, stated: Any, tolerance: float = 1e-9, unit: str = "relative", error: Any = None
) -> Check:
    """``computed = stated``, up to the tolerance; see `compare`."""
    return compare(what, computed, "=", stated, tolerance, unit, error)


def at_most(
    what: str, computed: Any, bound: Any, tolerance: float = 0.0, unit: str = "absolute", error: Any = None
) -> Check:
    """``computed <= bound``, up to the tolerance; see `compare`."""
    return compare(what, computed, "<=", bound, tolerance, unit, error)


def at_least(
    what: str, computed: Any, bound: Any, tolerance: float = 0.0, unit: str = "absolute", error: Any = None
) -> Check:
    """``computed >= bound``, up to the tolerance; see `compare`."""
    return compare(what, computed, ">=", bound, tolerance, unit, error)


@dataclass(frozen=True)
class Evidence:
    """The value of a claim's function: `Evidence.of`.

    Attributes
    ----------
    printed : tuple of Check
        Of the claim as it is printed.
    corrected : tuple of Check
        Of the claim with the correction, or of the part that holds.
    counterexample : dict
        Where the print fails: the numbers of an instance, which can be entered again.
    table : list of dicts
        Rows to be shown.
    data : dict
        What the claim's figure is drawn from.
    """

    printed: tuple[Check, ...]
    corrected: tuple[Check, ...] = ()
    counterexample: dict[str, Any] = field(default_factory=dict[str, Any])
    table: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def of(
        *printed: Check,
        corrected: Sequence[Check] = (),
        counterexample: Mapping[str, Any] | None = None,
        table: Sequence[Mapping[str, Any]] = (),
        data: Mapping[str, Any] | None = None,
    ) -> Evidence:
        """The evidence, with plain numbers and lists in place of arrays.

        Raises
        ------
        ModelError
            Where two comparisons have the same name: a row has one number for each.
        """
        names = [check.what for check in (*printed, *corrected)]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"two comparisons are called {name!r}; say what makes the difference")
        return Evidence(printed, tuple(corrected), plain(counterexample or {}), plain(table), plain(data or {}))

    @property
    def checks(self) -> tuple[Check, ...]:
        return (*self.printed, *self.corrected)

    def verdict(self, correction: str = "", part: str = "") -> tuple[Verdict, str]:
        """The verdict and the reason of one that is not "holds"; ``part`` says which part of the claim is not computed,
        or to which it is restricted in the comparisons of `corrected`."""
        if not self.printed:
            return Verdict.UNCHECKED, "nothing was computed"
        for check in self.checks:
            if not check.finite:
                return Verdict.UNCHECKED, f"not computed: {check.what} is no finite number"
        false = [check for check in self.printed if not check.holds]
        if not false:
            return (Verdict.PART, "the rest is not computed") if part and not self.corrected else (Verdict.HOLDS, "")
        still = [check for check in self.corrected if not check.holds]
        if (correction or part) and self.corrected and not still:
            return (Verdict.CORRECTED if correction else Verdict.PART), str(false[0])
        return Verdict.FAILS, str((still or false)[0])

    def to_json(self) -> dict[str, Any]:
        return plain(asdict(self))

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Evidence:
        """The evidence that `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        printed, corrected = (tuple(_check(each) for each in content[name]) for name in ("printed", "corrected"))
        rest = {"counterexample": dict, "table": list, "data": dict}
        if any(not isinstance(content[name], kind) for name, kind in rest.items()):
            raise TypeError
        return Evidence(printed, corrected, content["counterexample"], content["table"], content["data"])


def _check(content: Mapping[str, Any]) -> Check:
    numbers: dict[str, Any] = {name: tuple(map(float, content[name])) for name in ("computed", "stated", "scale")}
    if len(set(map(len, numbers.values()))) != 1:
        raise ValueError
    return Check(**{**content, **numbers})


def plain(value: Any) -> Any:
    """The value with Python's own types, as JSON has them; a number that is not finite is None."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
