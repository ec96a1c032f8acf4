"""The places at which the papers print something else than what holds: places.toml as a table."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pandas as pd

from ...base.tables import Table

COLUMNS = ("paper", "place", "print", "holds", "as_printed", "right", "unnamed")


def differences() -> Table:
    """Every place of the four papers that prints something else than what holds, as far as it is known.

    Returns
    -------
    Table
        One row per place: paper, place (an equation, a theorem), print, holds; as_printed and right, what to write for
        what is printed and for what holds, empty where nothing of the library computes it; and unnamed, why nothing
        computes what is printed.

    Examples
    --------
    >>> table = gr.theory.printed.differences()
    >>> table.loc[table["place"] == "(4.1)", "as_printed"].item()
    "gr.AsyncAL2SGD(as_printed='(4.1)')"
    """
    known = tomllib.loads((files("graphreg.theory.printed") / "places.toml").read_text(encoding="utf-8"))
    rows = [{"paper": paper, **place} for paper, places in known.items() for place in places]
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS)).fillna("")
    title = "where the papers print something else than what holds"
    return Table.of(frame, title, ("what was found so far, by computing it",))
