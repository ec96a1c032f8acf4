"""Tables that say what they rest on: DataFrames whose printed form, and whose HTML, ends with their assumptions."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .display import Html, Shown, block, more, sentence, sentences, title
from .escaping import needs_digits, page, printed, readable

WIDTH = 118
CELL = 200  # characters of a text in a cell of a notebook
MOST, FEW = 40, 20  # of a table with more than so many rows so few are printed


def assumed_lines(assumed: Sequence[str]) -> list[str]:
    """The assumptions of a result, one item each, as lines of its printed form."""
    head, rest = "assumed: ", "         "
    lines = [x for each in assumed for x in textwrap.wrap(each, WIDTH, initial_indent=rest, subsequent_indent=rest)]
    return [head + lines[0][len(head) :], *lines[1:]] if lines else lines


def as_html(frame: pd.DataFrame, **how: Any) -> Html:
    """A table for a notebook, of the size that pandas' options allow; names are escaped. ``how`` are arguments of
    ``DataFrame.to_html``."""
    n, most, few = len(frame), pd.get_option("display.max_rows"), pd.get_option("display.min_rows")
    how = {"border": 0, "max_cols": pd.get_option("display.max_columns"), "na_rep": "-", **how}
    if not most or n <= most:
        return Html(readable(frame, CELL).to_html(**how))
    few = min(few or most, most)
    ends = frame.iloc[[*range(few), *range(n - few, n)]]  # of these pandas leaves out the middle
    return Html(readable(ends, CELL).to_html(max_rows=few, **how) + more(n, few))


def assumed_html(assumed: Sequence[str]) -> Html:
    """The assumptions of a result for a notebook."""
    return sentences("assumed:", assumed)


class LabelledTable(pd.DataFrame):
    """A DataFrame with names of the user's, which ``print`` shows and no terminal obeys; also what is cut out of it."""

    @property
    def _constructor(self) -> Any:
        return LabelledTable

    def __repr__(self) -> str:
        small = any(needs_digits(self.iloc[:, j]) for j in range(self.shape[1]))
        usual: Any = pd.get_option("display.float_format")
        with pd.option_context("display.float_format", "{:.6g}".format if small else usual):
            return page(super().__repr__())  # pandas itself escapes the ends of lines

    def _repr_html_(self) -> str:
        return str(block(as_html(self)))


def by_label(values: Any, labels: Iterable[Any], columns: Iterable[Any], name: str = "node") -> pd.DataFrame:
    """A DataFrame with a row per label; labels stay what they are, tuples as well."""
    index = pd.Index(list(labels), dtype=object, name=name, tupleize_cols=False)
    return LabelledTable(values, index=index, columns=list(columns))


class PrintedTable:
    """A table among the lines of a result; ``how`` are arguments of ``DataFrame.to_string``."""

    def __init__(self, frame: pd.DataFrame, **how: Any) -> None:
        self.frame, self.how = frame, how

    def __str__(self) -> str:
        return printed(self.frame, max_rows=MOST, min_rows=FEW, **self.how)

    def to_html(self) -> Html:
        return as_html(self.frame, **self.how)


@dataclass(frozen=True)
class ResultWithAssumptions(Shown):
    """A result with ``assumed``, the sentences that it rests on; ``print`` shows its lines and then these."""

    assumed: tuple[str, ...] = field(kw_only=True, repr=False)

    @abstractmethod
    def _lines(self) -> Sequence[str | PrintedTable]:
        """The lines of the result."""

    def _html(self) -> Iterable[Html]:
        for k, line in enumerate(self._lines()):
            yield line.to_html() if isinstance(line, PrintedTable) else (sentence if k else title)(line)
        yield assumed_html(self.assumed)

    def __str__(self) -> str:
        return page("\n".join([*map(str, self._lines()), *assumed_lines(self.assumed)]))


@dataclass(frozen=True)
class NumberWithAssumptions(ResultWithAssumptions):
    """A result that is one number, its ``value``: ``float`` gives it."""

    value: float

    def __float__(self) -> float:
        return self.value


class Table(LabelledTable):
    """A DataFrame with ``assumed``, the sentences that its numbers rest on; ``print`` shows both. What is cut out of it
    has none."""

    @staticmethod
    def of(frame: pd.DataFrame, title: str, assumed: Sequence[str], verdict: str = "") -> Table:
        """The frame under a title, with what it says in a sentence, and with what it rests on."""
        table = Table(frame)
        table.attrs["title"], table.attrs["assumed"], table.attrs["verdict"] = title, tuple(assumed), verdict
        return table

    @property
    def verdict(self) -> str:
        """The verdict of the table, in a sentence; empty where it has none."""
        return str(self.attrs.get("verdict", ""))

    @property
    def assumed(self) -> tuple[str, ...]:
        return tuple(self.attrs.get("assumed", ()))

    def __str__(self) -> str:
        shown = str(PrintedTable(self, show_dimensions="truncate")) if len(self) else "(no rows)"
        head = [str(self.attrs.get("title", "")), *textwrap.wrap(self.verdict, WIDTH)]
        return page("\n".join([*head, shown, *assumed_lines(self.assumed)]).lstrip("\n"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(block(whole_html(self)))


def whole_html(table: Table) -> Html:
    """A table with its title and its assumptions, for a notebook."""
    shown = as_html(table) if len(table) else sentence("(no rows)")
    said = sentence(table.verdict) if table.verdict else ""
    return Html("".join((title(table.attrs.get("title", "")), said, shown, assumed_html(table.assumed))))


class ShownByTable(Shown):
    """A result that is shown by its table."""

    @abstractmethod
    def table(self) -> Table:
        """The table of the result."""

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> Iterable[Html]:
        yield whole_html(self.table())
