"""Tables that say what they rest on: DataFrames whose printed form ends with their assumptions."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .escaping import page, printed

WIDTH = 118


def assumed_lines(assumed: Sequence[str]) -> list[str]:
    """The assumptions of a result, one item each, as lines of its printed form."""
    head, rest = "assumed: ", "         "
    lines: list[str] = []
    for sentence in assumed:
        first = head if not lines else rest
        lines += textwrap.wrap(sentence, WIDTH, initial_indent=first, subsequent_indent=rest)
    return lines


class LabelledTable(pd.DataFrame):
    """A DataFrame with names of the user's, which ``print`` shows and no terminal obeys; also what is cut out of it."""

    @property
    def _constructor(self) -> Any:
        return LabelledTable

    def __repr__(self) -> str:
        return page(super().__repr__())  # pandas itself escapes the ends of lines


def by_label(values: Any, labels: Iterable[Any], columns: Iterable[Any], name: str = "node") -> pd.DataFrame:
    """A DataFrame with a row per label; labels stay what they are, tuples as well."""
    index = pd.Index(list(labels), dtype=object, name=name, tupleize_cols=False)
    return LabelledTable(values, index=index, columns=list(columns))


@dataclass(frozen=True)
class Stated(ABC):
    """A result with ``assumed``, the sentences that it rests on; ``print`` shows its lines and then these."""

    assumed: tuple[str, ...] = field(kw_only=True, repr=False)

    @abstractmethod
    def _lines(self) -> Sequence[str]:
        """What it says."""

    def __str__(self) -> str:
        return page("\n".join([*self._lines(), *assumed_lines(self.assumed)]))


@dataclass(frozen=True)
class StatedNumber(Stated):
    """A result that is one number, its ``value``: ``float`` gives it."""

    value: float

    def __float__(self) -> float:
        return self.value


class Table(LabelledTable):
    """A DataFrame with ``assumed``, the sentences that its numbers rest on; ``print`` shows both. What is cut out of it
    has none."""

    @staticmethod
    def of(frame: pd.DataFrame, title: str, assumed: Sequence[str]) -> Table:
        """The frame under a title, with what it rests on."""
        table = Table(frame)
        table.attrs["title"], table.attrs["assumed"] = title, tuple(assumed)
        return table

    @property
    def assumed(self) -> tuple[str, ...]:
        return tuple(self.attrs.get("assumed", ()))

    def __str__(self) -> str:
        shown = printed(self, max_rows=40) if len(self) else "(no rows)"
        return page("\n".join([str(self.attrs.get("title", "")), shown, *assumed_lines(self.assumed)]).lstrip("\n"))

    __repr__ = __str__
