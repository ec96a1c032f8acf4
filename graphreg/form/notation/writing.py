"""Formulas as text and as LaTeX at once, and the page that they make up."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from ...base.display import Html, ShownFormula
from ...base.escaping import IN_FORMULAS, visible
from ...base.shortcuts import shortcut

WIDTH = 110  # of a printed page
COLUMN = 62  # formulas up to this long have their note beside them, longer ones below
SLIDE = 72  # characters of a line of a formula in LaTeX, which does not break by itself
WORDS = 62  # of one of words, which are wider
GREEK = frozenset(
    {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi"}
    | {"rho", "sigma", "tau", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi"}
)
SHORT = {"lam": r"\lambda", "lmbda": r"\lambda", "lambd": r"\lambda", "eps": r"\varepsilon"}


@dataclass(frozen=True)
class Math:
    """A formula, as text and as LaTeX (math mode)."""

    text: str
    latex: str

    def __add__(self, other: Math) -> Math:
        return Math(self.text + other.text, self.latex + other.latex)

    def __bool__(self) -> bool:
        return bool(self.text)


NOTHING = Math("", "")
INDENT = Math("  ", r"\quad ")
WITH = Math("  with ", r"\text{with } ")
IMPLIES = Math("  =>  ", r" \Rightarrow ")


NUMERAL = r"\d+|\\[dt]?frac(?:\{[^{}]*\}|\d){2}"  # of two that stand side by side the product is not read


def beside(weight: Math, factor: Math) -> Math:
    """The product of a weight, which may be left out, and a factor."""
    text = " * " if factor.text[:1].isdigit() else " "
    return join([weight, factor], text, r" \cdot " if re.match(NUMERAL, factor.latex) else r" \, ")


def join(parts: Iterable[Math], text: str, latex: str | None = None) -> Math:
    """The parts that are not empty, with a separator."""
    kept = [part for part in parts if part]
    return Math(text.join(p.text for p in kept), (text if latex is None else latex).join(p.latex for p in kept))


def same(written: str) -> Math:
    """A formula that is written the same in both."""
    return Math(written, written)


def grouped(math: Math) -> Math:
    """The formula, in brackets where it is a sum."""
    flat, before = math.text, ""
    while flat != before:  # what stands in brackets within it does not matter
        flat, before = re.sub(r"\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>|\|\|.*?\|\|", "", flat), flat
    if " + " not in flat and " - " not in flat:
        return math
    return Math(f"({math.text})", rf"\left({math.latex}\right)")


SPECIAL = f"[{re.escape(''.join(IN_FORMULAS))}]"
SYMBOL = re.compile(  # what is a symbol although it stands among words
    r"((?<=node )i\b|(?<=sample )r\b|(?<=edge )e\b|(?<=edges )e\b|\(i, j\)|\b[a-zA-Z]_[a-z0-9]\b|\b[EFR]\d+\b"
    rf"|{SPECIAL})"
)
NONE = re.compile(f"({SPECIAL})")  # names of the user's are no symbols


def prose(words: str, symbol: re.Pattern[str] = SYMBOL) -> Math:
    r"""Words inside a formula. Special characters stand outside \text, where MathJax knows them escaped."""
    words, latex = visible(words, None), ""
    for k, piece in enumerate(symbol.split(words)):
        if k % 2 == 0:
            latex += rf"\text{{{piece}}}" if piece else ""
        elif piece in IN_FORMULAS:
            latex += IN_FORMULAS[piece]
        else:
            latex += f"{piece[0]}_{{{piece[1:]}}}" if piece[0] in "EFR" and piece[1:].isdigit() else piece
    return Math(words, latex)


def name(written: str) -> Math:
    """A name of the user's: one letter or a Greek letter as a symbol, words upright."""
    written = visible(written)
    if written in GREEK or written in SHORT:
        return Math(written, SHORT.get(written, "\\" + written))
    head, _, tail = written.partition("_")
    if tail.isalnum() and (len(head) == 1 or head in GREEK or head in SHORT):
        return Math(written, rf"{name(head).latex}_{{{tail}}}")
    return Math(written, written) if written.isalpha() and len(written) == 1 else prose(written)


def number(value: float) -> Math:
    """A number; powers of ten as such in LaTeX."""
    text = f"{value:.6g}"
    digits, _, power = text.partition("e")
    if not power:
        return same(text)
    ten = f"10^{{{int(power)}}}"
    return Math(text, ten if digits == "1" else rf"{digits} \cdot {ten}")


def span(values: Iterable[float]) -> str:
    """'2', or '0.5 to 2'."""
    values = list(values)
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def listed(names: Iterable[object], most: int = 6) -> str:
    """The first few names of a list."""
    every = list(names)
    return ", ".join(visible(each) or "''" for each in every[:most]) + (
        f", ... ({len(every)})" if len(every) > most else ""
    )


def some(names: Iterable[object], most: int = 6) -> Math:
    """The first few names of a list, inside a formula."""
    return prose(listed(names, most), NONE)


@dataclass(frozen=True)
class Row:
    """A formula with a note; as a legend: a symbol with its meaning."""

    math: Math
    note: Math = NOTHING


@dataclass(frozen=True)
class Section:
    """Rows under a heading."""

    heading: Math
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Written(ShownFormula):
    """Formulas to be read: ``print`` shows them as text, ``latex()`` is their LaTeX, notebooks typeset them.

    Attributes
    ----------
    sections : tuple of Section
        The formulas.
    legend : tuple of Row
        What the symbols stand for.
    remarks : tuple of str
        What it means; in the text only.
    """

    sections: tuple[Section, ...]
    legend: tuple[Row, ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [_section_text(section) for section in self.sections]
        if self.legend:
            parts.append("where\n" + _legend_text(self.legend))
        parts += [textwrap.fill(remark, WIDTH) for remark in self.remarks]
        return "\n\n".join(parts)

    __repr__ = __str__

    def latex(self) -> str:
        """An ``aligned`` environment, for math mode with amsmath or MathJax."""
        blocks = [_section_latex(section) for section in self.sections]
        if self.legend:
            meanings = [line for row in self.legend for line in _lines(row, r" :\ \; ", beside=True)]
            blocks.append([r"\text{where} \quad & " + meanings[0], *("& " + meaning for meaning in meanings[1:])])
        return (
            "\\begin{aligned}\n" + " \\\\[1ex]\n".join(" \\\\\n".join(lines) for lines in blocks) + "\n\\end{aligned}"
        )

    def _html(self) -> Iterable[Html]:
        return shortcut("Written._html")(self)


def _section_text(section: Section) -> str:
    short = [len(row.math.text) for row in section.rows if row.note and len(row.math.text) <= COLUMN]
    column = max(short, default=0) + 3
    lines = [textwrap.fill(section.heading.text, WIDTH, subsequent_indent="    "), ""]
    for row in section.rows:
        start = "    " + row.math.text
        if not row.note:
            lines.append(start)
        elif len(row.math.text) <= COLUMN and column + len(row.note.text) <= WIDTH:
            lines.append(f"{start:<{column + 4}}{row.note.text}")
        elif len(start) + len(row.note.text) <= WIDTH:
            lines.append(f"{start}   {row.note.text}")
        else:
            lines += [start, *textwrap.wrap(row.note.text, WIDTH, initial_indent=" " * 10, subsequent_indent=" " * 10)]
    return "\n".join(lines)


def _legend_text(legend: tuple[Row, ...]) -> str:
    column = max(len(row.math.text) for row in legend) + 4
    indent = " " * (column + 2)
    return "\n".join(
        textwrap.fill(row.note.text, WIDTH, initial_indent=f"  {row.math.text:<{column}}", subsequent_indent=indent)
        for row in legend
    )


def _lines(row: Row, between: str, beside: bool) -> list[str]:
    """A row in LaTeX, in lines that a slide has room for; of a note that is too long the beginning stands beside the
    formula, or all of it below."""
    formula, note = row.math, row.note
    if not note or len(formula.text) + len(note.text) <= WORDS:
        return [formula.latex + (between + note.latex if note else "")]
    first, *pieces = _pieces(note, len(formula.text) * beside)
    start = [formula.latex + between + first] if beside else [formula.latex, r"\qquad " + first]
    return start + [r"\qquad " + piece for piece in pieces]


def _pieces(said: Math, lead: int = 0) -> list[str]:
    """Words in LaTeX, in lines that a slide has room for; among formulas after a comma or before an 'and'."""
    if said.latex.replace(r"}\text{", "") != prose(said.text).latex:
        lines = [""]
        for part in re.split(r"(?<=,\\ )|(?=\\text\{ and \})", said.latex):
            if lines[-1] and len(re.sub(r"\\\w+|[{}()^_]", "", lines[-1] + part)) > WORDS:
                lines.append("")
            lines[-1] += part if lines[-1] else part.replace(r"\text{ and }", r"\text{and }")
        return lines
    pieces = textwrap.wrap(said.text, WORDS, initial_indent=" " * lead, break_long_words=False)
    return [prose(piece.strip()).latex for piece in pieces]


def _section_latex(section: Section) -> list[str]:
    rows = [line for row in section.rows for line in _lines(row, r" \qquad ", beside=False)]
    first, *rest = _pieces(section.heading)
    return ["& " + first, *(rf"& \qquad {each}" for each in rest), *(rf"& \quad {row}" for row in rows)]
