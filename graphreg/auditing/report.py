"""The report of an audit: the verdict, what every piece of evidence says, and what was not tried."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.display import Html, Shown, Suggesting, sentence, table, title
from ..base.escaping import page, visible
from ..base.messages import count
from ..base.shortcuts import shortcut
from ..judging import Judgement
from ..problem import Problem
from ..terms import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RIGHT, IN_THE_LIMIT, UNCLAIMED = PASSED = "right", "right in the limit", "limit not claimed"
COLUMNS = ("evidence", "outcome", "sentence")
WIDTH = 12  # of an outcome, and of the name of a piece of evidence
LONGEST = 120  # characters of a line
WRAPPED: Any = {"subsequent_indent": " " * (2 + 2 * WIDTH), "break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True)
class Finding(Suggesting):
    """The sentence of one piece of evidence.

    Attributes
    ----------
    evidence : str
        run, limit, locality, promptness, mixing, balance, dictionary, drift, start, steps, steep data, bias,
        repetition or order.
    outcome : str
        "holds" or "fails" (a property that was claimed), "name" (what the algorithm does instead), "consistent" (with
        the name), "remark", "not tried".
    sentence : str
    """

    evidence: str
    outcome: str
    sentence: str

    def __str__(self) -> str:
        return page(f"{self.outcome:{WIDTH}s}{self.evidence:{WIDTH}s}{self.sentence}")


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """A referee's report on an algorithm.

    Attributes
    ----------
    algorithm, kind : str
        Its name, and what it was given as: function, step, iteration or iterable.
    verdict : str
        "right", "right in the limit", "right limit, not repeatable", "right limit, not local", "right limit, late",
        "right limit, long steps", "right limit, fixed steps", "wrong", "never settles", "undecided", "limit not
        claimed" or "no limit": docs/auditing.md says what each means.
    findings : tuple of Finding
        In the order of the evidence.
    claims : tuple of str
        The properties that could fail.
    rounds : int
        Of the main run.
    distances : array (k, 2)
        Rounds, and the distance from the optimum there.
    measure : str
        What the distances are, and what they rest on.
    radius : float
        How far w* itself may be from the optimum, in units of the distances; inf where that is not known.
    certificate : Judgement or None
        Of the last point, against the lower bound that is known: it lies at most ``gap`` above the optimum.
    sent : (int, int) or None
        Messages and bytes of the main run, where somebody counted them.
    seed : int
    interrupted : bool
        By Ctrl-C, so that not everything was tried.
    seconds : float

    Examples
    --------
    >>> found = gr.audit(problem, gr.PrimalDual(), claims=["repeatable"])
    >>> found.verdict, found.ok
    ('right', True)
    """

    algorithm: str
    kind: str
    verdict: str
    findings: tuple[Finding, ...]
    claims: tuple[str, ...]
    rounds: int
    distances: Array
    measure: str
    radius: float
    certificate: Judgement | None
    sent: tuple[int, int] | None
    seed: int
    interrupted: bool
    seconds: float
    problem: Problem = field(repr=False)
    given: Any = field(repr=False)

    @property
    def ok(self) -> bool:
        """True where nothing that was claimed fails, as far as it was tried (see `untried`), and the limit is right
        or not claimed; False where it is undecided, or the audit was interrupted."""
        fails = any(each.outcome == "fails" for each in self.findings)
        return self.verdict in PASSED and not fails and not self.interrupted

    @property
    def untried(self) -> tuple[Finding, ...]:
        """The evidence that was not tried, each with the reason."""
        return tuple(each for each in self.findings if each.outcome == "not tried")

    def __bool__(self) -> bool:
        return self.ok

    @property
    def name(self) -> str:
        """The name of what the algorithm does instead, by the first evidence that says so; empty where none
        does."""
        return next((each.sentence for each in self.findings if each.outcome == "name"), "")

    def table(self) -> pd.DataFrame:
        """One row per piece of evidence: evidence, outcome and sentence.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> gr.audit(problem, [problem.solve().coef]).table()["evidence"].tolist()[-1]
        'the rest'
        """
        from ..base.tables import LabelledTable

        return LabelledTable(self._rows(), columns=list(COLUMNS))

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(each.evidence, each.outcome, each.sentence) for each in self.findings]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The distance from the optimum by round; both axes logarithmic.

        Raises
        ------
        ModelError
            Where the algorithm gave no points.

        Examples
        --------
        >>> gr.audit(problem, [problem.solve().coef]).plot().get_xscale()
        'log'
        """
        return shortcut("Audit.plot")(self, ax)

    def _lines(self) -> list[str]:
        head = f"{visible(self.algorithm)} ({self.kind}): {self.verdict}"
        if self.verdict in PASSED and self.untried:
            parts = ", ".join(f"{each.evidence} ({each.sentence.partition(';')[0]})" for each in self.untried)
            head += f" as far as it was checked; {count(len(self.untried), 'part')} not tried: {parts}"
        if self.verdict == "undecided":
            head += "".join(f": {each.sentence}" for each in self.findings if each.evidence == "limit")
        lines = [head if not self.name else f"{head}. {self.name}"]
        lines += [f"  {each}" for each in self.findings]
        sent = f"{self.sent[0]} messages, {self.sent[1]} bytes" if self.sent else "messages and bytes were not counted"
        lines.append(f"{self.rounds} rounds, seed {self.seed}, {self.seconds:.2g} seconds; {sent}")
        lines.append(self.measure)
        if self.certificate is not None and self.certificate.valid and np.isfinite(self.certificate.gap):
            certificate = self.certificate
            by = certificate.moved
            moved = f", moved by at most {by:.2g} to where every constraint holds" if by else ""
            lines.append(
                f"last point{moved}: {certificate.dual:.10g} <= optimum <= {certificate.primal:.10g} "
                f"(relative gap {certificate.relative_gap:.2e}; both bounds are certified)"
            )
        return lines

    def __repr__(self) -> str:
        fails = sum(each.outcome == "fails" for each in self.findings)
        said = f"{len(self.findings)} findings, {fails} fail, {len(self.untried)} not tried"
        return f"<Audit of {visible(self.algorithm)}: {self.verdict}; {said}>"

    def __str__(self) -> str:
        return page("\n".join(textwrap.fill(line, LONGEST, **WRAPPED) for line in self._lines()))

    def report(self, file: str | Path) -> None:
        """Write what ``print`` says as a page (HTML) that opens offline. A report that is there is replaced, anything
        else is not.

        Raises
        ------
        ModelError
            Where the file cannot be written.

        Examples
        --------
        >>> gr.audit(problem, [problem.solve().coef]).report(folder / "audit.html")
        """
        shortcut("Audit.report")(self, file)

    def _html(self) -> Iterable[Html]:
        first, *rest = self._lines()
        yield title(first)
        yield table(COLUMNS, self._rows())
        yield from map(sentence, rest[len(self.findings) :])
