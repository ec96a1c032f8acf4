"""A method written on the command line: its name, with options as in Python, ``FedADMM(batch=10)``; an algorithm."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..model_file import Place, imported, make

WRITTEN = re.compile(r"(?P<name>[\w.]+(:[\w.]+)?)\s*(?P<options>\(.*\))?", re.S)
PLACE, ALGORITHM = Place("--method"), Place("ALGORITHM")


def read(text: str, folders: Sequence[Path]) -> Any:
    """The method; no code is run but that of its class. The values of options are literals: numbers, text, lists."""
    found = WRITTEN.fullmatch(text.strip())
    if found is None:
        PLACE.refuse(f"{text!r} is not of the form NAME or NAME(option=value, ...)")
    return make("method", found["name"], _options(text, found["options"] or "()"), PLACE, folders, at=PLACE)


def read_algorithm(text: str, folders: Sequence[Path]) -> Any:
    """What is to be audited: a method, or the function that ``module:function`` names."""
    if ":" not in text or "(" in text:
        return read(text, folders)
    found = imported(text.strip(), ALGORITHM, folders, callable)
    return read(text, folders) if isinstance(found, type) else found


def _options(text: str, written: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"method{written}", mode="eval").body
    except (SyntaxError, ValueError):
        PLACE.refuse(f"the options in {text!r} cannot be read; write NAME(option=value, ...)")
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        PLACE.refuse(f"{text!r} is not of the form NAME or NAME(option=value, ...)")
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        PLACE.refuse(f"in {text!r} an option has no name; write NAME(option=value, ...)")
    return {str(keyword.arg): _value(text, keyword) for keyword in call.keywords}


def _value(text: str, keyword: ast.keyword) -> Any:
    try:
        value = ast.literal_eval(keyword.value)
        return list(value) if isinstance(value, tuple) else value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        PLACE.refuse(
            f"the option {keyword.arg!r} in {text!r} is {ast.unparse(keyword.value)}: it must be a number, text in "
            "quotes, True, False, None, or a list of these"
        )
