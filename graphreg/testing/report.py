"""The report of a check: one line per law, and for each failure where it happened and by how much."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from inspect import isfunction
from itertools import islice
from typing import Any

import numpy as np

from ..base.display import Html, Shown, Suggesting, sentence, sentences, table, title
from ..base.escaping import page
from ..base.messages import count
from ..certificate import laws
from ..checks import positive, seed
from ..terms import Array


@dataclass(frozen=True)
class Failure(Suggesting):
    """One law that did not hold, at the row where it was missed by most.

    Attributes
    ----------
    law : str
        The name of the law.
    sentence : str
        What should have been true and was not.
    where : str
        The concrete input rows, ready to be typed in again.
    by : float
        By how much the law is missed, relative to the size of what is compared (inf or nan where nothing can be
        measured: an infinite value, an exception).

    Examples
    --------
    >>> class Half(gr.L1):
    ...     def value(self, z):
    ...         return 0.5 * np.abs(z).sum(axis=1)
    >>> {failure.law for failure in gr.testing.check_penalty(Half()).failures} >= {"prox fenchel young"}
    True
    """

    law: str
    sentence: str
    where: str
    by: float

    def __str__(self) -> str:
        by = f"by {self.by:.3g}; " if np.isfinite(self.by) else ""
        return page(f"{self.sentence} ({by}at {self.where})" if self.where else self.sentence)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The findings of `check_penalty` or `check_loss`.

    Attributes
    ----------
    subject : str
        What was checked.
    laws : tuple of str
        The names of the laws, in order.
    failures : tuple of Failure
        The first few of each law; empty where everything holds.
    untried : dict
        Why a law was not tried, by its name.
    blamed : str
        What is wrong where a law of conjugates fails, if the kind of the subject tells it.
    note : str
        What else is to be known where a law fails.
    page : str
        Where the laws are described.

    Examples
    --------
    >>> report = gr.testing.check_penalty(gr.L2())
    >>> report.ok, len(report.failures)
    (True, 0)
    """

    subject: str
    laws: tuple[str, ...]
    failures: tuple[Failure, ...]
    untried: Mapping[str, str] = field(default_factory=dict[str, str])
    blamed: str = ""
    note: str = ""
    page: str = "docs/adding-a-penalty.md#the-laws"

    @property
    def ok(self) -> bool:
        """True where every law that was tried holds."""
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def _title(self) -> str:
        broken = len({failure.law for failure in self.failures})
        known = f"; {len(self.untried)} not tried" if self.untried else ""
        said = "every law holds" if self.ok else f"{broken} of {len(self.laws)} laws fail"
        return f"{self.subject}: {said}{known}"

    def __repr__(self) -> str:
        return page(f"<Report on {self._title()}>")

    def _html(self) -> Iterable[Html]:
        yield title(self._title())
        yield table(("fails", "how"), [(each.law, str(each)) for each in self.failures]) if self.failures else Html("")
        broken = {each.law for each in self.failures}
        held = [law for law in self.laws if law not in broken and law not in self.untried]
        yield sentence(f"{len(held)} laws hold: {', '.join(held)}")
        yield sentences("not tried:", (f"{law}: {why}" for law, why in self.untried.items()))

    def __str__(self) -> str:
        lines, not_held = [self._title()], {each.law for each in self.failures} | set(self.untried)
        last = ""
        for law in self.laws:
            if law in self.untried:
                alike = [each for each, why in self.untried.items() if why == self.untried[law]]
                which = law if len(alike) <= MOST else count(len(alike), "law")
                said = f"  skip  {which}: not tried, {self.untried[law]}"
                lines += [said] * (said != last)
                last = said
                continue
            found = [failure for failure in self.failures if failure.law == law]
            lines.append(f"  {'FAIL' if found else 'pass'}  {law}")
            lines += [f"          {failure}" for failure in found]
            usually = f"usually: {advice()[law]}" if law in advice() else ""
            if law == "prox fenchel young" and not not_held & {"cvxpy value", "cvxpy argmin"}:
                usually = CONJUGATE
            usually = self.blamed if self.blamed and law in OF_CONJUGATES else usually
            lines += [f"          {usually}"] if found and usually else []
        lines += [self.note] if self.note and self.failures else []
        lines.append(f"what each law says: {self.page}")
        return page("\n".join(lines))

    def raise_if_failed(self) -> None:
        """Raise `AssertionError` with the printed report unless every law holds."""
        if not self.ok:
            raise AssertionError(str(self))


@cache
def advice() -> dict[str, str]:
    """What is usually wrong where a law fails, by its name."""
    return tomllib.loads((files("graphreg.testing") / "advice.toml").read_text(encoding="utf-8"))


dots, size = laws.dots, laws.lengths
Failures = Iterable[Failure]
Law = Callable[..., Failures]
OF_CONJUGATES = ("prox fenchel young", "fenchel young everywhere", "ends of the domain", "conjugate bound of penalties")
CONJUGATE = "usually: conjugate is not that of value, as prox is what CVXPY's solver finds; else prox at these points"
SHAPES = "shapes and rows"  # the law without which no other says anything
MOST = 3  # failures of a law on a term that are told


def named(*laws: Law) -> dict[str, Law]:
    """Laws by name: that of the function, in words."""
    return {law.__name__.replace("_", " "): law for law in laws}


def laws_of(kind: type, *modules: Mapping[str, Any]) -> dict[str, Law]:
    """The laws of a kind of terms, in the order in which they stand in some modules: declaring is registering.

    A law is a public function that takes a term of that kind and its probe, and gives the failures.
    """

    def is_law(name: str, each: Any) -> bool:
        types = list(each.__annotations__.values()) if isfunction(each) else []
        return name[0] != "_" and len(types) == 3 and (types[0], types[2]) == (kind.__name__, "Failures")

    return named(*(each for module in modules for name, each in module.items() if is_law(name, each)))


class LawError(Exception):
    """A law is broken so that the rest of it cannot be tried: a wrong shape, a claim that makes no sense."""

    def __init__(self, sentence: str, where: str = "", by: float = np.inf) -> None:
        super().__init__(sentence)
        self.failure = Failure("", sentence, where, by)


def check_numbers(seed_of_points: Any, tolerance: Any) -> None:
    """Refuse what is no seed, and no tolerance."""
    seed(seed_of_points, "seed")
    positive(tolerance, "tolerance")


def demand(holds: Any, sentence: str, where: str = "", by: float = np.inf) -> None:
    """Raise `LawError` unless something holds."""
    if not holds:
        raise LawError(sentence, where, by)


def demand_on_its_domain(term: Any, base: type, part: Any, kind: type, name: str) -> None:
    """Demand that a term has no method of a domain, where nothing asks for it, but for one that is its own domain."""
    if part is not term:
        theirs = {each for each, value in vars(kind).items() if isfunction(value) and each[0] != "_"} - set(dir(base))
        stray = sorted(theirs & set(dir(type(term))))
        sentence = f"nothing asks {term.called()} for {', '.join(stray)}: its `{name}` is asked (a {kind.__name__})"
        demand(not stray, sentence)


def shaped(name: str, array: Array, *shapes: tuple[int, ...]) -> None:
    """Demand that an array has one of some shapes."""
    demand(array.shape in shapes, f"{name} has the shape {array.shape}, expected {' or '.join(map(str, shapes))}")


def try_laws(
    laws: dict[str, Law], subject: Any, probe: Any, at: Callable[[str], None], most: int | None = MOST
) -> list[Failure]:
    """The first failures of each law, of which ``at`` is told; one that raises has failed, with its text. See
    `not_tried`."""
    failures: list[Failure] = []
    for name, law in laws.items():
        at(name)
        try:
            with np.errstate(all="ignore"):  # answers are judged by their numbers, where NaN always fails
                found = list(islice(law(subject, probe), most))
        except LawError as error:
            found = [error.failure]
        except Exception as error:  # noqa: BLE001 - whatever a user's term raises is what the report has to say
            found = [Failure("", f"{type(error).__name__}: {error}", "", np.inf)]
        failures += [Failure(name, each.sentence, each.where, each.by) for each in found]
        if any(_ends_all(each) for each in failures):
            break
    return failures


def _ends_all(failure: Failure) -> bool:
    """True of a wrong shape, or an error: of rows that depend on one another it says where."""
    return failure.law == SHAPES and not failure.where


def not_tried(failures: Iterable[Failure], laws: Iterable[str]) -> dict[str, str]:
    """The laws that were left out, and why: of arrays of wrong shapes the rest says nothing, and may fill the
    memory."""
    broken = {failure.law for failure in failures}
    left_out = [name for name in laws if name not in broken] if any(map(_ends_all, failures)) else []
    return dict.fromkeys(left_out, f"mend {SHAPES} first")


def judge(sentence: str, by: Any, allowed: Any, **where: Any) -> list[Failure]:
    """No failure where ``by <= allowed`` in every row; otherwise one, at the worst row (NaN is the worst).

    ``where`` are the inputs: arrays with one row per row of ``by``, or numbers that hold for all of them.
    """
    by = np.atleast_1d(np.asarray(by, dtype=float))
    if by.ndim > 1:
        return [Failure("", f"{sentence}: a number per row was expected, got the shape {by.shape}", "", np.inf)]
    bad = ~(by <= allowed)
    if not bad.any():
        return []
    worst = int(np.argmax(np.where(bad, np.where(np.isnan(by), np.inf, by), -np.inf)))
    shown = ", ".join(f"{name} = {_show(value, worst, len(by))}" for name, value in where.items())
    return [Failure("", f"{sentence}, missed in {int(bad.sum())} of {len(by)} rows", shown, float(by[worst]))]


def judged(trial: laws.Trial, allowed: float, more: Any = 0.0, **where: Any) -> list[Failure]:
    """The failures of an inequality, relative to the size of its parts and ``more``."""
    by = np.where(trial.excess <= 0.0, 0.0, trial.excess / (trial.size + more))
    return judge(trial.law, by, allowed, **where, **trial.said, **{"absolute miss": trial.excess})


def _show(value: Any, row: int, rows: int) -> str:
    value = np.asarray(value)
    return repr((value[row] if value.ndim and len(value) == rows else value).tolist())


def distance(a: Array, b: Array, floor: Array | float = 1e-300) -> Array:
    """|a - b| per row, relative to floor + max(|a|, |b|); 0 where both are the same infinity, inf where only one is."""
    a, b = (np.asarray(each, dtype=float).reshape(len(each), -1) for each in (a, b))
    same = (a == b).all(axis=1)
    known = ~(np.isnan(a) | np.isnan(b)).any(axis=1)
    gap = np.abs(a - b).max(axis=1, initial=0.0)
    size = np.maximum(np.abs(a).max(axis=1, initial=0.0), np.abs(b).max(axis=1, initial=0.0))
    return np.where(same, 0.0, np.where(known & np.isinf(size), np.inf, gap / (size + floor)))


def rowwise(number: Any, like: Array) -> Array:
    """A number per row (or whether it holds for the row) that broadcasts against rows shaped like those of ``like``."""
    number = np.asarray(number)
    return number[:, None] if number.ndim == 1 and like.ndim == 2 else number


def frozen(a: Array) -> Array:
    """A read-only copy, so that a function that writes into its input is found out."""
    a = np.array(a, dtype=float)
    a.flags.writeable = False
    return a
