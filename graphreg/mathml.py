"""Formulas as MathML, for pages that have no LaTeX: a reader of the LaTeX that the library itself writes. What is left
where a page loses the elements, as notebooks of strangers do, reads ``x_r^2 / (2 s_r)``.

A command that it does not know is shown as it stands, and what is not closed ends with the formula: of the notation of
a term of the user's nothing is refused here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

from .base.display import Html, details, sentence, title
from .form.notation import Row, Written

ROW = '<tr style="background:none">'  # formulas are no table to the reader

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.S)
GREEK = re.findall(  # entities of HTML as they are
    r"\w+",
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi "
    "omega Gamma Delta Theta Lambda Sigma Phi ell",
)
LETTERS = {**{name: f"&{name};" for name in GREEK}, "infty": "&infin;", "partial": "&part;"}
OPERATORS = {
    **{name: f"&{name};" for name in ("le", "ge", "ne", "times", "top", "sum")},
    "in": "&isin;",
    "cdot": "&sdot;",
    "circ": "&compfn;",
    "sim": "~",
    "Rightarrow": "&rArr;",
    "ldots": "&hellip;",
    "backslash": "\\",
    "-": "&minus;",
    "*": "&lowast;",
    "'": "&prime;",
}
FENCES = {"langle": "&lang;", "rangle": "&rang;", "lVert": "&Vert;", "rVert": "&Vert;"}
FUNCTIONS = ("log", "exp", "max", "min", "sup", "inf")
BELOW = ("sum", "max", "min", "sup", "inf")  # what stands below these in a formula on a line of its own
SPACES = {"quad": "1em", "qquad": "2em", ",": "0.17em", ";": "0.28em", " ": "0.25em", ":": "0.22em", "!": "0"}
BOLD = {ord("0") + k: chr(0x1D7CE + k) for k in range(10)}  # browsers know no bold but that of Unicode
UPRIGHT = {"\\backslash": "\\", "\\sim": "~", "\\ ": " "} | {"\\" + c: c for c in "_#${}&%"}


def page_of(written: Written) -> Iterable[Html]:
    """What a notebook shows of written formulas: each in a row, its note beside it."""
    for section in written.sections:
        yield title(Html(to_sentence(section.heading.latex)))
        yield _rows_html(section.rows, own_line=True)
    if written.legend:
        yield details("where", _rows_html(written.legend, own_line=False))
    yield from (sentence(remark, quiet=True) for remark in written.remarks)


def _rows_html(rows: Iterable[Row], own_line: bool) -> Html:
    """Formulas with their notes beside them."""
    cell, lines = 'style="text-align:left;padding:0.15em 1.5em 0.15em 0"', ""
    for row in rows:
        formula = to_mathml(row.math.latex) if own_line else to_sentence(row.math.latex)
        if row.note:
            lines += f"{ROW}<td {cell}>{formula}</td><td {cell}>{to_sentence(row.note.latex)}</td></tr>"
        else:
            lines += f'{ROW}<td {cell} colspan="2">{formula}</td></tr>'
    return Html(f'<table style="margin:0 0 0 1em;border:none;font-size:inherit">{lines}</table>')


def to_mathml(latex: str, own_line: bool = True) -> str:
    """A formula as an element ``math``; on a line of its own, or within a sentence.

    Examples
    --------
    >>> to_mathml("w", own_line=False)
    '<math><mi>w</mi></math>'
    """
    return _math(_Reader(latex).row(), own_line)


def to_sentence(latex: str) -> str:
    """Words with symbols among them, as HTML: words wrap as those of a page do, what is between them is MathML."""
    out = ""
    formula: list[str] = []
    for node in [*_Reader(latex).row(), "<mtext></mtext>"]:
        if node.startswith("<mtext>"):
            words = node.removeprefix("<mtext>").removesuffix("</mtext>").replace("&nbsp;", " ")
            out += (_math(formula, False) if formula else "") + words
            formula = []
        else:
            formula.append(node)
    return out


def _math(nodes: list[str], own_line: bool) -> str:
    display = ' displaystyle="true"' if own_line else ""
    return f"<math{display}>{''.join(nodes)}</math>"


class _Reader:
    """A formula, read from left to right."""

    def __init__(self, latex: str) -> None:
        self.tokens = ["\\rVert" if token == "\\|" else token for token in TOKEN.findall(latex)]
        self.at = 0

    def next(self) -> str:
        """The token that stands here; empty at the end."""
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def see(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def skip(self) -> None:
        while self.see().isspace():
            self.at += 1

    def row(self, closing: str = "") -> list[str]:
        """The nodes up to a token, which is read too, or to the end."""
        nodes: list[str] = []
        while (token := self.see()) and token != closing:
            if not token.isspace():
                nodes.append(self.scripted())
                continue
            self.at += 1
            if nodes and self.see() not in ("", closing) and not nodes[-1].endswith(_unseen(" ")):
                nodes.append(_unseen(" "))
        self.at += 1
        return nodes

    def scripted(self) -> str:
        """A node with what stands below and above it."""
        name = self.see().removeprefix("\\")
        base, below = self.atom(), ""
        above: list[str] = []
        while (mark := self.mark()) in ("_", "^", "'") and mark:
            self.at += 1
            if mark == "'":
                above.append(_operator("'"))
            elif mark == "_":
                below = self.argument()
            else:
                above.append(_script("^", self.argument()))
        kind = "munder munderover mover" if name in BELOW else "msub msubsup msup"
        under, both, over = kind.split()
        after = _unseen(" ") if name in BELOW else ""
        if below and above:
            return f"<{both}>{base}{_script('_', below)}{_row(above)}</{both}>{after}"
        if below:
            return f"<{under}>{base}{_script('_', below)}</{under}>{after}"
        return f"<{over}>{base}{_row(above)}</{over}>{after}" if above else base

    def mark(self) -> str:
        """The token that stands here, spaces before a script left out."""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if self.see().isspace() and after in ("_", "^"):
            self.at += 1
        return self.see()

    def argument(self) -> str:
        """The expression in braces, or the one symbol that follows (of a number its first digit)."""
        self.skip()
        token = self.see()
        if token[:1].isdigit() and len(token) > 1:
            self.tokens[self.at] = token[1:]
            return f"<mn>{token[0]}</mn>"
        return self.atom() if token else "<mrow></mrow>"

    def atom(self) -> str:
        """One symbol, one command with its arguments, or what stands in braces."""
        token = self.next()
        if token == "{":
            return _row(self.row("}"))
        if token[:1] == "\\" and len(token) > 1:
            return self.command(token[1:])
        if token[:1].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{html.escape(token)}</mi>"
        return _operator(token, fence=token in "()[]|")

    def command(self, name: str) -> str:
        known: dict[str, Callable[[], str]] = {
            "text": lambda: f"<mtext>{_kept(self.inside())}</mtext>",
            "mathrm": lambda: _upright(self.upright()),
            "mathbf": lambda: f"<mi>{html.escape(self.inside()).translate(BOLD)}</mi>",
            "mathbb": lambda: f"<mi>&{html.escape(self.inside())}opf;</mi>",
            "frac": lambda: _fraction(self.argument(), self.argument()),
            "tfrac": lambda: f'<mstyle displaystyle="false">{_fraction(self.argument(), self.argument())}</mstyle>',
            "left": self.fenced,
            "hat": lambda: self.argument() and "<mo>^</mo>",  # how escaping.py writes this character
            "textstyle": lambda: "<mrow></mrow>",
        }
        if name in known:
            return known[name]()
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>" + ("" if self.see() in ("_", "(") else f'<mspace width="0.17em"/>{_unseen(" ")}')
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>{_unseen(" ")}'
        if name in OPERATORS or name in FENCES or not name.isalpha():
            return _operator(name, fence=name in FENCES or name in "{}")
        return f"<mtext>{html.escape(chr(92) + name)}</mtext>"

    def inside(self) -> str:
        """The text in braces."""
        self.skip()
        if self.next() != "{":
            return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""
        parts: list[str] = []
        while (token := self.next()) not in ("}", ""):
            parts.append(token)
        return "".join(parts)

    def upright(self) -> str:
        """The characters of a word that `graphreg.base.escaping.upright` has written."""
        self.skip()
        written, deep = "", 1 if self.next() == "{" else 0
        while deep and (token := self.next()):
            deep += (token == "{") - (token == "}")
            if token == "\\hat":
                self.argument()
                written += "^"
            elif token.startswith("\\"):
                written += UPRIGHT.get(token, token)
                if token in ("\\backslash", "\\sim"):
                    self.skip()
            elif token not in "{}":
                written += token
        return written

    def fenced(self) -> str:
        """The expression between ``\\left`` and ``\\right``."""
        opening = self.atom()
        return _row([opening, *self.row("\\right"), self.atom()])


def _unseen(text: str) -> str:
    """Text that pages do not show, and that is left where the elements of a formula are taken out of them, as of a
    notebook that is not trusted, or of what is copied."""
    return f'<mtext mathsize="0px">{text}</mtext>'


def _script(mark: str, node: str) -> str:
    """The expression below or above, as one node."""
    end = ")" if node.startswith("<mrow>") and not node.startswith('<mrow><mo stretchy="false">(') else ""
    return f"<mrow>{_unseen(mark + '(' * len(end))}{node}{_unseen(end) if end else ''}</mrow>"


def _fraction(above: str, below: str) -> str:
    slash = _unseen("/(") if below.startswith("<mrow>") else _unseen("/")
    end = _unseen(")") if below.startswith("<mrow>") else ""
    start, close = (_unseen("("), _unseen(")")) if above.startswith("<mrow>") else ("", "")
    return f"<mfrac><mrow>{start}{above}{close}{slash}</mrow><mrow>{below}{end}</mrow></mfrac>{_unseen(' ')}"


def _row(nodes: list[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"<mrow>{''.join(nodes)}</mrow>"


def _kept(words: str) -> str:
    """The words in HTML, with spaces at their ends that do not vanish."""
    return re.sub("^ | $", "&nbsp;", html.escape(words))


def _operator(name: str, fence: bool = False) -> str:
    still = ' stretchy="false"' if fence else ""
    return f"<mo{still}>{OPERATORS.get(name) or FENCES.get(name) or html.escape(name)}</mo>"


def _upright(word: str) -> str:
    variant = ' mathvariant="normal"' if len(word) == 1 else ""
    return f"<mi{variant}>{html.escape(word)}</mi>"
