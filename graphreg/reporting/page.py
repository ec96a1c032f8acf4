"""The page: words, formulas, data and the script in one file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..base.escaping import page as visible_lines
from ..base.files import own_place, put
from ..errors import ModelError
from ..version import __version__

SCRIPTS = ("numbers.js", "graph.js", "edge.js", "bounds.js", "main.js")
MARK = b"<!-- a report of graphreg -->"


@dataclass(frozen=True)
class Words:
    """The words of a page, all of them plain text."""

    title: str
    subject: str
    answer: Sequence[str]
    assumed: Sequence[str]
    left_open: Sequence[str]
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def page(words: Words, formulas: str, data: str) -> bytes:
    """The whole page. ``formulas`` is HTML and ``data`` JSON, both ready to stand in it."""
    style = _part("report.css")
    script = '(() => {\n"use strict";\n' + "".join(map(_part, SCRIPTS)) + "})();\n"
    filled = {
        "style hash": _hash(style),
        "script hash": _hash(script),
        "version": html.escape(__version__),
        "title": _text(words.title),
        "subject": _text(words.subject),
        "facts": _rows(words.facts),
        "answer": "".join(f"<p>{_text(each)}</p>" for each in words.answer),
        "assumed": _items(words.assumed),
        "open": _items(words.left_open),
        "formulas": formulas,
        "style": style,
        "script": script,
        "data": data,
    }
    first, *rest = _part("report.html").split("{{")
    parts = [first]
    for each in rest:  # from left to right, once: what is put in is not looked at again
        name, _, after = each.partition("}}")
        parts += [filled[name], after]
    return "".join(parts).encode()


def plain_page(title: str, body: str) -> bytes:
    """A page without pictures that move; the body is HTML."""
    return _part("page.html").format(title=_text(title), body=body).encode()


def _text(words: str) -> str:
    """Text in HTML; what is not printable is shown."""
    return html.escape(visible_lines(words).replace("\n", " "))


def _items(sentences: Sequence[str]) -> str:
    """The items of a list."""
    return "".join(f"<li>{_text(each)}</li>" for each in sentences)


def _rows(facts: Mapping[str, Sequence[str]]) -> str:
    """The rows of a table of what is known, by name; no table where there is none."""
    rows = (
        f"<tr><th>{_text(name)}</th><td>{'<br>'.join(map(_text, lines))}</td></tr>" for name, lines in facts.items()
    )
    return f'<table class="facts">{"".join(rows)}</table>' if facts else ""


def check_place(path: Any) -> Path:
    """The file that a report may be written to; `ModelError` where its folder is not there or cannot be written to, or
    something else has the name."""
    return own_place(path, "report", ModelError, MARK)


def write(place: Path, content: bytes) -> None:
    """Put a page in its place as a whole; `ModelError` where that fails."""
    put(place, content, "report", ModelError)


def _part(name: str) -> str:
    return (files("graphreg.reporting") / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
