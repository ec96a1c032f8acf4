# ruff: noqa: RUF001 - signs of mathematics that look like letters
"""Formulas as MathML, which browsers typeset by themselves: the LaTeX that the library writes, and no more of it.

Names of the user's stand in that LaTeX as `graphreg.escaping` writes them, so that no command in it is theirs; whatever
is text here is escaped once more for HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.S)
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "zeta": "ζ"}
GREEK |= {"eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "nu": "ν", "mu": "μ", "xi": "ξ"}
GREEK |= {"pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "ϕ", "chi": "χ", "psi": "ψ"}
GREEK |= {"omega": "ω", "ell": "ℓ", "lambda": "λ"}
CAPITALS = {"Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ"}
OPERATORS = {"le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "cdot": "·", "times": "×", "Rightarrow": "⇒"}
OPERATORS |= {"circ": "∘", "sum": "∑", "sim": "∼", "backslash": "\\"}
QUANTITIES = {"infty": "∞", "partial": "∂", "top": "⊤", "ldots": "…"}
FENCES = {"langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "|": "‖", "{": "{", "}": "}"}
SPACES = {",": "0.17em", ":": "0.22em", ";": "0.28em", " ": "0.25em", "quad": "1em", "qquad": "2em"}
FUNCTIONS = ("max", "min", "log", "exp", "sup", "inf")
PLAIN = {  # commands without arguments
    **{name: f"<mi>{sign}</mi>" for name, sign in (GREEK | QUANTITIES).items()},
    **{name: f'<mi mathvariant="normal">{sign}</mi>' for name, sign in CAPITALS.items()},
    **{name: f"<mo>{sign}</mo>" for name, sign in OPERATORS.items()},
    **{name: f'<mo stretchy="false">{sign}</mo>' for name, sign in FENCES.items()},
    **{name: f"<mi>{html.escape(name)}</mi>" for name in "_#$%&"},  # escaped with a backslash
    **{name: f'<mspace width="{width}"/>' for name, width in SPACES.items()},
    "textstyle": "",
}
STYLES = {"mathbb": {"R": "ℝ"}, "mathbf": {"1": "𝟏"}}


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
        base, below = self.thing(), ""
        above: list[str] = []
        while self.peek() in ("_", "^", "'"):
            mark = self.take()
            if mark == "_":
                below = self.argument()
            else:
                above.append("<mo>′</mo>" if mark == "'" else self.argument())
        return _with_scripts(base, below, "".join(above) if len(above) < 2 else f"<mrow>{''.join(above)}</mrow>", large)

    def argument(self) -> str:
        """A group in braces, or one token."""
        while self.peek().isspace():
            self.take()
        if self.peek() == "{":
            self.take()
            return self.row("}")
        token = self.peek()
        if token[:1].isdigit() and len(token) > 1:  # of 12 only the 1
            self.tokens[self.place : self.place + 1] = [token[0], token[1:]]
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
        if name in PLAIN:
            return PLAIN[name]
        if name in FUNCTIONS:
            return f"<mo>{name}</mo>" if self.peek() in ("_", "^") else f'<mi>{name}</mi><mspace width="0.1em"/>'
        if name in STYLES:
            letter = self.letter()
            return f"<mi>{html.escape(STYLES[name].get(letter, letter))}</mi>"
        with_arguments = {
            "frac": self.fraction,
            "tfrac": lambda: f'<mstyle displaystyle="false">{self.fraction()}</mstyle>',
            "text": lambda: f"<mtext>{html.escape(self.raw()).replace(' ', chr(160))}</mtext>",
            "mathrm": lambda: f'<mi mathvariant="normal">{html.escape(self.upright())}</mi>',
            "hat": lambda: f'<mover accent="true">{self.argument()}<mo>^</mo></mover>',
            "left": self.fenced,
        }
        if name not in with_arguments:
            raise UnknownError(f"\\{name} is not known")
        return with_arguments[name]()

    def fraction(self) -> str:
        above, below = self.argument(), self.argument()
        return f"<mfrac>{above}{below}</mfrac>"

    def fenced(self) -> str:
        opening, inner = self.fence(), self.row(r"\right")
        return f"<mrow><mo>{opening}</mo>{inner}<mo>{self.fence()}</mo></mrow>"

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
