"""Pieces of HTML: titles, sentences, facts, tables, and what opens at a click.

Colours are those of the page around, so that they can be read on light and dark; styles stand in the elements, since a
notebook has no place for style sheets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ..escaping import LONGEST, visible

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
    """What is known, by name."""
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
    """What opens at a click."""
    head = f'<summary style="cursor:pointer">{html(summary, None)}</summary>'
    body = f'<div style="margin:0.3em 0 0.3em 1em">{"".join(inner)}</div>'
    return Html(f'<details style="margin:0.3em 0">{head}{body}</details>')


def block(*parts: Html) -> Html:
    """All of what is shown of an object. In it no dollar of a name begins a formula of MathJax's."""
    return Html(f'<div class="{NO_LATEX}" style="overflow-x:auto">{"".join(parts)}</div>')
