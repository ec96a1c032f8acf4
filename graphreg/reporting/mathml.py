"""Formulas as MathML, which browsers typeset by themselves: the LaTeX that the library writes, and no more of it.

Names of the user's stand in that LaTeX as `graphreg.escaping` writes them, so that no command in it is theirs; whatever
is text here is escaped once more for HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.S)
GREEK = dict(zip("alpha beta gamma delta zeta eta theta kappa mu nu xi pi rho sigma tau psi omega".split(), "αβγδζηθκμνξπρστψω"))  # noqa: E501, SIM905
GREEK |= {"epsilon": "ϵ", "varepsilon": "ε", "lambda": "λ", "phi": "ϕ", "chi": "χ", "iota": "ι", "ell": "ℓ"}
CAPITALS = {"Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ"}
OPERATORS = {"le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "cdot": "·", "times": "×", "Rightarrow": "⇒", "circ": "∘"}
OPERATORS |= {"partial": "∂", "infty": "∞", "top": "⊤", "sum": "∑", "ldots": "…", "sim": "∼", "backslash": "\\"}
OPERATORS |= {"langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "|": "‖", "lvert": "|", "rvert": "|", "to": "→"}
IDENTIFIERS = {"infty", "partial", "top", "ldots"}  # which are no operators between two things
FUNCTIONS = {"max", "min", "log", "exp", "sup", "inf"}
SPACES = {",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.25em", "quad": "1em", "qquad": "2em"}
FENCES = {"langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "|": "‖", "{": "{", "}": "}"}
STYLES = {"mathbb": {"R": "ℝ"}, "mathbf": {"1": "𝟏"}}
LITERAL = set("{}_#$%&")  # escaped with a backslash


class UnknownError(ValueError):
    """LaTeX that is not among what the library writes."""


def mathml(latex: str, display: bool = False) -> str:
    """A formula as a ``math`` element.

    Raises `UnknownError` for commands that the library does not write.
    """
    style = ' displaystyle="true"' if display else ""
    return f"<math{style}>{_Reader(latex).row('')}</math>"


def mixed(latex: str, display: bool = False) -> str:
    r"""Words and formulas as they alternate: what is ``\text`` becomes HTML, which can be broken into lines, the rest
    MathML."""
    parts: list[str] = []
    for words, formula in _pieces(latex):
        if words:
            parts.append(html.escape(words))
        elif formula.strip():
            parts.append(mathml(formula, display))
    return "".join(parts)


def _pieces(latex: str) -> Iterator[tuple[str, str]]:
    r"""The words of each ``\text`` that is not inside of anything, and the formulas between them."""
    depth, begun, place = 0, 0, 0
    tokens = list(TOKEN.finditer(latex))
    while place < len(tokens):
        token = tokens[place]
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if token[0] == r"\text" and depth == 0 and not _opened(latex[begun : token.start()]):
            end = latex.index("}", token.end())
            yield "", latex[begun : token.start()]
            yield latex[token.end() + 1 : end], ""
            begun = end + 1
            while place < len(tokens) and tokens[place].start() < begun:
                place += 1
            continue
        place += 1
    yield "", latex[begun:]


def _opened(latex: str) -> bool:
    r"""Whether a ``\left`` waits for its ``\right``: no formula is broken there."""
    return len(re.findall(r"\\left\b", latex)) > len(re.findall(r"\\right\b", latex))


class _Reader:
    """Reads one formula from left to right."""

    def __init__(self, latex: str) -> None:
        self.tokens = TOKEN.findall(latex)
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def row(self, end: str) -> str:
        """What stands before ``end``, which is taken as well."""
        parts: list[str] = []
        while self.peek() != end:
            if not self.peek():
                raise UnknownError(f"{end} is missing")
            if self.peek().isspace():
                self.take()
                continue
            parts.append(self.scripted())
        self.take()
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self) -> str:
        """One thing with what stands below and above it."""
        large = self.peek() in (r"\sum", r"\max", r"\min")
        base, below, above = self.thing(), "", ""
        while self.peek() in ("_", "^", "'"):
            mark = self.take()
            if mark == "'":
                above += "<mo>′</mo>"
            elif mark == "_":
                below = self.argument()
            else:
                above += self.argument()
        if above.count("<mo>′</mo>") and above != "<mo>′</mo>":
            above = f"<mrow>{above}</mrow>"
        return _with_scripts(base, below, above, large)

    def argument(self) -> str:
        """A group in braces, or one token."""
        while self.peek().isspace():
            self.take()
        if self.peek() == "{":
            self.take()
            return self.row("}")
        return self.thing()

    def thing(self) -> str:
        token = self.take()
        if token == "{":
            return self.row("}")
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in "()[]|":
            return f'<mo stretchy="false">{token}</mo>'
        if token in "}_^&\\":
            raise UnknownError(f"{token!r} stands alone")
        return f"<mo>{html.escape({'-': '−', '*': '∗', '~': ' '}.get(token, token))}</mo>"

    def command(self, name: str) -> str:
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in CAPITALS:
            return f'<mi mathvariant="normal">{CAPITALS[name]}</mi>'
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        if name in LITERAL:
            return f'<mo stretchy="false">{html.escape(name)}</mo>'
        if name in FUNCTIONS:
            return f"<mi>{name}</mi><mspace width='0.1em'/>" if self.peek() not in ("_", "^") else f"<mo>{name}</mo>"
        if name in OPERATORS:
            tag, stretch = ("mi", "") if name in IDENTIFIERS else ("mo", ' stretchy="false"' if name in FENCES else "")
            return f"<{tag}{stretch}>{OPERATORS[name]}</{tag}>"
        return self.structure(name)

    def structure(self, name: str) -> str:
        """What has arguments."""
        if name in ("frac", "tfrac"):
            above, below = self.argument(), self.argument()
            fraction = f"<mfrac>{above}{below}</mfrac>"
            return f'<mstyle displaystyle="false">{fraction}</mstyle>' if name == "tfrac" else fraction
        if name == "text":
            return f"<mtext>{html.escape(self.raw()).replace(' ', chr(160))}</mtext>"
        if name == "mathrm":
            return f'<mi mathvariant="normal">{html.escape(self.upright())}</mi>'
        if name in STYLES:
            letter = self.letter()
            return f"<mi>{html.escape(STYLES[name].get(letter, letter))}</mi>"
        if name == "textstyle":
            return ""
        if name == "hat":
            return f'<mover accent="true">{self.argument()}<mo>^</mo></mover>'
        if name == "left":
            opening, inner = self.fence(), self.row(r"\right")
            return f"<mrow><mo>{opening}</mo>{inner}<mo>{self.fence()}</mo></mrow>"
        raise UnknownError(f"\\{name} is not known")

    def fence(self) -> str:
        token = self.take()
        return html.escape(FENCES.get(token[1:], "") if token.startswith("\\") else token.replace(".", ""))

    def letter(self) -> str:
        while self.peek().isspace():
            self.take()
        return self.raw() if self.peek() == "{" else self.take()

    def raw(self) -> str:
        """The text of a group, to the letter."""
        if self.take() != "{":
            raise UnknownError("a text stands in braces")
        text, depth = "", 1
        while depth:
            token = self.take()
            if not token:
                raise UnknownError("a text does not end")
            depth += {"{": 1, "}": -1}.get(token, 0)
            text += token if depth else ""
        return text

    def upright(self) -> str:
        r"""The letters of a ``\mathrm``, without the marks that keep them from being obeyed."""
        text = self.raw()
        text = re.sub(r"\\hat\{\\ \}|\\sim |\\backslash ", lambda m: {"h": "^", "s": "~", "b": "\\"}[m[0][1]], text)
        text = re.sub(r"\{([<>])\}", r"\1", text)
        return re.sub(r"\{\\([&%])\}|\\([_#${}])", lambda m: m[1] or m[2], text)


def _with_scripts(base: str, below: str, above: str, large: bool) -> str:
    under, over, both = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
    if below and above:
        return f"<{both}>{base}{below}{above}</{both}>"
    if below:
        return f"<{under}>{base}{below}</{under}>"
    return f"<{over}>{base}{above}</{over}>" if above else base
