"""The pieces of HTML that notebooks show of an object, in which everything that is given is escaped.

Colours are those of the page around, so that they can be read on light and dark; styles stand in the elements, since a
notebook has no place for style sheets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import GraphregError
from .escaping import LONGEST, visible
from .messages import did_you_mean

LINE = "border:none;border-bottom:1px solid;border-color:color-mix(in srgb, currentColor 30%, transparent)"
CELL = "text-align:left;vertical-align:top;padding:0.15em 1em 0.15em 0;background:none"
NUMBER = CELL.replace("left", "right")
QUIET = "opacity:0.8"
WIDE = "max-width:60em"
PARAGRAPH = f"margin:0.3em 0;{WIDE}"
NO_LATEX = "mathjax_ignore tex2jax_ignore"  # MathJax 3 and 2


class Html(str):
    """Text that is HTML already; whatever else is given to the functions of this file they escape."""

    __slots__ = ()


def html(value: object, most: int | None = LONGEST) -> Html:
    """The value as HTML: numbers in six digits, text as it is shown in a terminal, long text cut."""
    if isinstance(value, Html):
        return value
    text = f"{value:.6g}" if isinstance(value, float) else visible(value, most)
    return Html(escape(text))


def title(words: object) -> Html:
    """A heading."""
    return Html(f'<p style="{PARAGRAPH}"><strong>{html(words, None)}</strong></p>')


def sentence(words: object, quiet: bool = False) -> Html:
    """A paragraph."""
    return Html(f'<p style="{PARAGRAPH}{";" + QUIET if quiet else ""}">{html(words, None)}</p>')


def sentences(heading: str, each: Iterable[object]) -> Html:
    """A list under a heading; nothing where it is empty."""
    items = "".join(f"<li>{html(one, None)}</li>" for one in each)
    if not items:
        return Html("")
    return Html(f'<div style="{QUIET};{WIDE}">{sentence(heading)}<ul style="margin:0 0 0.3em">{items}</ul></div>')


def facts(known: Mapping[str, object]) -> Html:
    """The facts that are known, by name."""
    head = f'style="{CELL};font-weight:normal;white-space:nowrap;{QUIET}"'
    rows = "".join(
        f'<tr><th {head}>{html(name)}</th><td style="{CELL}">{html(value, None)}</td></tr>'
        for name, value in known.items()
    )
    return Html(f'<table style="margin:0.3em 0;border:none;{WIDE}">{rows}</table>')


def table(columns: Sequence[object], rows: Iterable[Sequence[Any]]) -> Html:
    """A table; numbers stand to the right."""
    body = [list(row) for row in rows]
    styles = [NUMBER if all(_is_number(row[j]) for row in body) else CELL for j in range(len(columns))]
    head = "".join(f'<th style="{style}">{html(each)}</th>' for style, each in zip(styles, columns, strict=True))
    lines = "".join(
        "<tr>" + "".join(f'<td style="{s}">{html(c, None)}</td>' for s, c in zip(styles, row, strict=True)) + "</tr>"
        for row in body
    )
    return Html(
        f'<table style="margin:0.3em 0;border:none"><thead><tr style="{LINE}">{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def more(all_of_them: int, shown: int) -> Html:
    """'and 290 more', where not all are shown."""
    return sentence(f"and {all_of_them - shown:,} more", quiet=True) if all_of_them > shown else Html("")


def details(summary: object, *inner: Html) -> Html:
    """Content that opens at a click."""
    head = f'<summary style="cursor:pointer">{html(summary, None)}</summary>'
    body = f'<div style="margin:0.3em 0 0.3em 1em">{"".join(inner)}</div>'
    return Html(f'<details style="margin:0.3em 0">{head}{body}</details>')


def block(*parts: Html) -> Html:
    """All of what is shown of an object. In it no dollar of a name begins a formula of MathJax's."""
    return Html(f'<div class="{NO_LATEX}" style="overflow-x:auto">{"".join(parts)}</div>')


# ---- names that are not there ----------------------------------------------------------------------------------------
SOUGHT = {  # what things are called elsewhere
    "lower": "dual",
    "lower_bound": "dual",
    "bound": "dual",
    "upper": "primal",
    "upper_bound": "primal",
    "history": "trace",
    "certified": "status",
    "converged": "status",
    "iterations": "rounds",
    "n_iter_": "rounds",
    "params": "coef",
    "prices": "dual_point.prices",
}


class Suggesting:
    """Objects of which a wrong attribute is refused with the one that was probably meant, theirs or of what they hold:
    ``solution.coeff``, ``solution.gap``. It is asked only for names that are not there.

    ``_holds`` names properties in which it is looked for, too, and ``_instead`` says what to write for a name."""

    __slots__ = ()
    _holds: ClassVar[tuple[str, ...]] = ()
    _instead: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # else every name would be one that this knows

        def __getattr__(self, name):
            kind = type(self)
            if name.startswith("_") or hasattr(kind, name):  # of protocols, and of properties that failed by themselves
                return object.__getattribute__(self, name)
            held = {each: value for each, value in getattr(self, "__dict__", {}).items() if each[0] != "_"}
            for each in kind._holds:
                with suppress(GraphregError):
                    held[each] = getattr(self, each)
            known, word = [*held, *(each for each in dir(kind) if each[0] != "_")], SOUGHT.get(name, name)
            first, _, _ = word.partition(".")
            inner = [f"{each}.{word}" for each, of in held.items() if isinstance(of, Suggesting) and first in dir(of)]
            meant = [word] * (first in known) or inner
            hint = f"; did you mean {meant[0]!r}?" if meant else did_you_mean(name, known)
            hint = f"; write {kind._instead[name]}" if name in kind._instead else hint
            # the empty name keeps Python from saying it once more
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{hint}", name="", obj=None)


# ---- what shows itself -----------------------------------------------------------------------------------------------
class Shown(Suggesting, ABC):
    """Objects that notebooks show as HTML, and as what ``print`` gives where no HTML can be shown (a console, an
    export)."""

    __slots__ = ()

    @abstractmethod
    def _html(self) -> Iterable[Html]:
        """The pieces that are shown, from top to bottom."""

    def __html__(self) -> str:
        return "".join(self._html())

    def _repr_html_(self) -> str:
        return str(block(inside(self)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The same in several media, as Jupyter asks for it. The arguments are wishes, which it carries out itself."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}


class ShownFormula(Shown):
    """An object that is a formula, too: as LaTeX for what prints pages, as MathML in the HTML."""

    __slots__ = ()

    @abstractmethod
    def latex(self) -> str:
        """The formula for math mode with amsmath or MathJax."""

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**super()._repr_mimebundle_(include, exclude), "text/latex": self._repr_latex_()}


def inside(shown: Shown) -> Html:
    """All that is shown of an object, to stand within what is shown of another."""
    return Html(shown.__html__())


# ---- records whose repr is short -------------------------------------------------------------------------------------
LONG = 200  # characters of a field


def briefly(value: object) -> str:
    """The value as ``repr`` shows it, in one line; of an array its shape, of what is long the beginning and the end."""
    shape: Any = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        sizes: tuple[Any, ...] = shape
        return f"<{type(value).__name__} of the shape {sizes}>"
    return visible(repr(value), LONG)


class Brief(Suggesting):
    """A dataclass of which ``repr`` shows every field briefly; it is declared with ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        known: Any = fields(self) if is_dataclass(self) else ()
        each = [f"{field.name}={briefly(getattr(self, field.name))}" for field in known if field.repr]
        return f"{type(self).__qualname__}({', '.join(each)})"
