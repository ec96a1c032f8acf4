"""The page: words, formulas, data and the script in one file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ..errors import ModelError
from ..escaping import page as visible_lines
from ..messages import shown
from ..running import replacing
from ..version import __version__

SCRIPTS = ("numbers.js", "graph.js", "edge.js", "bounds.js", "main.js")
MARK = b"<!-- a report of graphreg -->"


def page(title: str, subject: str, answer: str, assumed: Sequence[str], left_open: Sequence[str], formulas: str, data: str) -> bytes:  # noqa: E501, PLR0913, PLR0917
    """The whole page. ``answer`` and ``formulas`` are HTML, ``data`` is JSON; all else is text and escaped here."""
    style = _part("report.css")
    script = '(() => {\n"use strict";\n' + "".join(map(_part, SCRIPTS)) + "})();\n"
    filled = {
        "style hash": _hash(style),
        "script hash": _hash(script),
        "version": html.escape(__version__),
        "title": text(title),
        "subject": text(subject),
        "answer": answer,
        "assumed": items(assumed),
        "open": items(left_open),
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


def text(words: str) -> str:
    """Text in HTML; what is not printable is shown."""
    return html.escape(visible_lines(words).replace("\n", " "))


def items(sentences: Sequence[str]) -> str:
    """The items of a list."""
    return "".join(f"<li>{text(each)}</li>" for each in sentences)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Put a page in its place as a whole. A report that is there is replaced, and nothing else.

    Raises
    ------
    ModelError
        Where the file cannot be written, or something else has its name.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"a report is written to a file: give its path, such as 'out.html', got {shown(path)}")
    asked = Path(path)
    remedy = "name a file in a folder that you may write to"
    try:
        place = Path(os.path.realpath(asked))
        if place.exists() and not _is_report(place):
            raise ModelError(f"{str(asked)!r} is there, and no report of graphreg; name another file, or remove it")
        with replacing(place) as file:
            file.write(content)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(f"the report cannot be written to {str(asked)!r}: {why}; {remedy}") from None


def _is_report(place: Path) -> bool:
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return MARK in file.read(200)


def _part(name: str) -> str:
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
