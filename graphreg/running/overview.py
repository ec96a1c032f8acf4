"""The methods that apply to a problem, what each needs, and what it sends: a DataFrame that prints as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import isinf, isnan, nan
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..base.display import block, table, title
from ..base.gate import GB
from ..form import Form
from ..network import Arcs, arcs_of
from .predicting import Costs

if TYPE_CHECKING:
    from .method import AbstractMethod

WIDTH = 118


class Overview(pd.DataFrame):
    """One row per method: ``applies``, ``missing`` (each requirement that the problem does not meet), ``needs`` (what
    it asks of any problem) and ``sends`` (what goes across an edge in a round); ``seconds`` that a run of a method
    without rounds, or of Newton steps, is predicted to take (inf: too many to be counted), and ``gigabytes`` beside the
    problem itself; nan where that is not known, or it does not apply."""

    def __str__(self) -> str:
        lines = [str(self.attrs.get("sizes", ""))]
        for name, row in self.to_dict("index").items():
            lines.append(f"{name}: " + (f"applies{_takes(row)}" if row["applies"] else "does not apply"))
            for word in ("missing", "needs", "sends"):
                if row[word]:
                    indent = f"    {word:8s}"
                    lines += textwrap.wrap(str(row[word]), WIDTH, initial_indent=indent, subsequent_indent=" " * 12)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                "yes" + _takes(row) if row["applies"] else "no",
                *(row[each] for each in ("missing", "needs", "sends")),
            )
            for name, row in self.to_dict("index").items()
        ]
        shown = table(("method", "applies", "missing", "needs", "sends"), rows)
        return str(block(title(self.attrs.get("sizes", "")), shown))


def overview(form: Form, methods: Sequence[AbstractMethod]) -> Overview:
    """The overview of the methods for a form."""
    rows, costs = list[Sequence[Any]](), Costs(form)
    for method in methods:
        lacks = method.lacks(form)
        seconds, size = (nan, nan) if lacks else method.cost(costs)
        rows.append((not lacks, "; ".join(lacks), method.needs, method.sends, seconds, size / GB))
    names = pd.Index([m.name for m in methods], name="method")
    out = Overview(rows, index=names, columns=["applies", "missing", "needs", "sends", "seconds", "gigabytes"])
    out.attrs["sizes"] = _sizes(arcs_of(form))
    return out


def _takes(row: Mapping[Any, Any]) -> str:
    """The seconds and gigabytes that a run is predicted to take, in words."""
    seconds = row["seconds"]
    long = "at least" if isinf(seconds) else "with about" if isnan(seconds) else f"in about {seconds:.2g} s and"
    return f", {long} {max(row['gigabytes'], 0.01):.2g} GB"


def _sizes(arcs: Arcs) -> str:
    """The size of a message across every edge, in words."""
    if not arcs.pairs:
        return "no two nodes are neighbours: nothing is sent"
    (count, entries), (back, flows) = arcs.sizes
    some = arcs.numbers[arcs.numbers > 0]
    numbers = str(some.max()) if some.min() == some.max() else f"{some.min()} to {some.max()}"
    said = f"across every edge: {count} messages of {numbers} numbers, {8 * entries:,} bytes"
    return said + (f"; back from the owners of rows {back}, {8 * flows:,} bytes" if back else "")
