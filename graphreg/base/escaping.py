"""Foreign text, as it is written in each medium, so that it is shown and never obeyed.

Labels, features, classes, the names of parameters and methods come from files and from strangers. Nothing else in the
library escapes them; docs/security.md says what each medium would obey.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

SMALL = 1e-4  # a table with smaller numbers shows significant digits
LONGEST = 60  # characters of a name in a printed table or formula
IN_PICTURES = 24  # and in a picture

# ---- terminals -------------------------------------------------------------------------------------------------------


def visible(text: object, most: int | None = LONGEST) -> str:
    r"""The text for a terminal: what is not printable (control characters, newlines, marks that turn the direction of
    writing) is written as ``repr`` writes it, ``\x1b``; of what is long the beginning and the end."""
    written = _seen(str(text), "")
    if most is None or len(written) <= most:
        return written
    return f"{written[: most - most // 3 - 3]}...{written[-(most // 3) :]}"


def page(text: object) -> str:
    """Several lines for a terminal: as `visible`, but nothing is cut, and the lines stay lines."""
    return _seen(str(text), "\n")


def printed(frame: pd.DataFrame, **how: Any) -> str:
    """A table for a terminal; ``how`` are arguments of ``DataFrame.to_string``. In columns with numbers that six digits
    behind the point do not tell, significant digits are shown."""
    shown = readable(frame)
    if not {"formatters", "float_format"} & how.keys():
        how["formatters"] = ["{:.6g}".format if needs_digits(shown.iloc[:, j]) else None for j in range(shown.shape[1])]
    return shown.to_string(**how)


def needs_digits(column: pd.Series) -> bool:
    """True where numbers are so small that a fixed number of decimals does not tell them."""
    return column.dtype.kind == "f" and bool(((column != 0.0) & (column.abs() < SMALL)).any())


def readable(frame: pd.DataFrame, most: int | None = LONGEST) -> pd.DataFrame:
    """A copy of a table whose texts, labels and names are `visible`; of those in cells so many characters at most."""
    import pandas as pd

    shown = _named(pd.DataFrame(frame), visible)
    for j, kind in enumerate(shown.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            texts = [_within(each, lambda text: visible(text, most)) for each in shown.iloc[:, j]]
            shown.isetitem(j, pd.Series(texts, shown.index, object if kind.kind == "O" else None))  # None stays None
    return shown


def _seen(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def _within(each: Any, write: Callable[[str], str]) -> Any:
    """A text as ``write`` writes it, those in a tuple as well; what is no text stays."""
    if isinstance(each, tuple):
        return tuple(_within(one, write) for one in each)
    return write(each) if isinstance(each, str) else each


def _named(frame: pd.DataFrame, write: Any) -> pd.DataFrame:
    """A copy of the frame whose labels and names of columns are written so; what is no text stays."""
    import pandas as pd

    def inside(each: Any) -> Any:
        return _within(each, write)

    copy = frame.copy(deep=False)
    for axis in ("index", "columns"):
        labels: Any = getattr(frame, axis)
        if labels.nlevels > 1 and len(labels):
            setattr(copy, axis, labels.map(inside).set_names(list(map(inside, labels.names))))
        elif labels.dtype.kind not in "biufM" or labels.name is not None:
            names = pd.Index(list(map(inside, labels)), dtype=object, tupleize_cols=False, name=inside(labels.name))
            setattr(copy, axis, names)
    return copy


# ---- LaTeX -----------------------------------------------------------------------------------------------------------
# In formulas, where these stand outside \text (MathJax does not know them escaped inside). Neither < nor & may be
# taken for HTML by a page that the formula is put into: no tag begins with "<}".
IN_FORMULAS = {"\\": r"\backslash ", "^": r"\hat{\ }", "~": r"\sim ", "<": "{<}", ">": "{>}"}
IN_FORMULAS |= {c: rf"{{\{c}}}" for c in "&%"} | {c: "\\" + c for c in "_#${}"}


def upright(text: str) -> str:
    """The text as one upright word of a formula."""
    return rf"\mathrm{{{''.join(IN_FORMULAS.get(c, c) for c in visible(text))}}}"


# Outside formulas, for pictures that LaTeX typesets.
IN_TEXT = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
IN_TEXT |= {"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}"} | {c: "\\" + c for c in "&_%#${}"}


# ---- pictures --------------------------------------------------------------------------------------------------------
def picture(text: object, most: int | None = IN_PICTURES) -> str:
    """The text for matplotlib: no ``$`` begins a formula, and no name is left out of a legend because it begins with an
    underscore (or is empty)."""
    written = visible(text, most)
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is not None and matplotlib.rcParams["text.usetex"]:
        written = "".join(IN_TEXT.get(c, c) for c in written)
    else:
        written = written.replace("$", r"\$")
    return f" {written}" if written[:1] in ("", "_") else written


def caption(text: object, width: int) -> str:
    """The text for matplotlib, in lines of so many characters. (They are broken first: ``\\$`` is not to be parted.)"""
    return "\n".join(picture(line, None) for line in textwrap.wrap(visible(text, None), width))


# ---- cells -----------------------------------------------------------------------------------------------------------
# A spreadsheet of another country ends a cell at a semicolon, and then a line within quotes is a line of its own.
_TRIGGER = r"(?:[^\S\t\r\n]|\")*[=+\-@\uff1d\uff0b\uff0d\uff20]"  # the last four are the wide ones
_BEGINS = rf"(?:^(?='*[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?='*{_TRIGGER}))"
FORMULA, ESCAPED = re.compile(_BEGINS), re.compile(_BEGINS.replace("(?='*", "'(?='*"))
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def cell(text: str) -> str:
    """The text for a cell that a spreadsheet shows and does not compute: an apostrophe stands before what would begin a
    formula and is no number (and before apostrophes that stand there already)."""
    return text if NUMBER.fullmatch(text) else FORMULA.sub("'", text)


def text_of_cell(written: str) -> str:
    """The text that `cell` has written; a converter for ``pandas.read_csv``."""
    return ESCAPED.sub("", written)


def table(frame: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8, without its index; docs/security.md says how pandas reads it back to the letter."""
    safe = _named(frame, cell)
    texts = list(map(str, safe.columns))
    for j, kind in enumerate(safe.dtypes):
        if kind.kind not in "biuf":
            column = [cell(each) if isinstance(each, str) else each for each in safe.iloc[:, j]]
            safe.isetitem(j, column)
            texts += map(str, column)
    # which the writer does not put in quotes by itself, and which would end a line
    quoting = csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL
    out = io.StringIO()
    safe.to_csv(out, index=False, lineterminator="\n", quoting=quoting)
    return out.getvalue().encode(errors="backslashreplace")


# ---- JSON ------------------------------------------------------------------------------------------------------------
def json_text(content: Any) -> str:
    """Strict JSON, indented; what is not printable stands in it as ``\\u....``, so that it can be shown."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
