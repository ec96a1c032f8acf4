"""The page: words, formulas, data and the script in one file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..escaping import page as visible_lines
from ..messages import shown
from ..running import replacing
from ..version import __version__

SCRIPTS = ("numbers.js", "graph.js", "edge.js", "bounds.js", "main.js")
MARK = b"<!-- a report of graphreg -->"


@dataclass(frozen=True)
class Words:
    """What a page says in words, all of it plain text."""

    title: str
    subject: str
    answer: Sequence[str]
    assumed: Sequence[str]
    left_open: Sequence[str]


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


def _text(words: str) -> str:
    """Text in HTML; what is not printable is shown."""
    return html.escape(visible_lines(words).replace("\n", " "))


def _items(sentences: Sequence[str]) -> str:
    """The items of a list."""
    return "".join(f"<li>{_text(each)}</li>" for each in sentences)


def check_place(path: Any) -> Path:
    """The file that a report may be written to.

    Raises
    ------
    ModelError
        Where the folder is not there or cannot be written to, or something else has the name.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"a report is written to a file: give its path, such as 'out.html', got {shown(path)}")
    asked = Path(os.fsdecode(path))
    try:
        place = Path(os.path.realpath(asked))
        if place.exists() and not _is_report(place):
            raise ModelError(f"{str(asked)!r} is there, and no report of graphreg; name another file, or remove it")
        if not place.parent.is_dir():
            raise _unwritable(asked, f"there is no folder {str(place.parent)!r}")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise _unwritable(asked, "its folder is not writable")
    except (OSError, ValueError) as error:
        raise error if isinstance(error, ModelError) else _unwritable(asked, str(error)) from None
    return place


def write(place: Path, content: bytes) -> None:
    """Put a page in its place as a whole; `ModelError` where that fails."""
    try:
        with replacing(place) as file:
            file.write(content)
    except OSError as error:
        raise _unwritable(place, error.strerror or str(error)) from None


def _unwritable(path: Path, why: str) -> ModelError:
    return ModelError(f"the report cannot be written to {str(path)!r}: {why}; name a file in a folder of yours")


def _is_report(place: Path) -> bool:
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return MARK in file.read(200)


def _part(name: str) -> str:
    return (files("graphreg.reporting") / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
