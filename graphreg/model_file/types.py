"""Whether a value of a TOML file is of the type that an annotation asks for, and what that type is called.

pydantic and msgspec would do the first in a line. They speak of ``str | array`` or of one branch of a union after the
other, so that the second, and the names that were meant, would remain to be written beside them.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from ..messages import either

PLAIN = (str, int, float, bool, list, dict)  # what TOML has, but for dates and times, which no key takes
NAMES: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    Any: "a number, text, a list or a table",
}


def fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911 - one return per kind of annotation
    """Whether a TOML value is of the annotated type; a whole number will do where a number is asked for.

    None, which TOML does not have, can be written on the command line."""
    if value is None:
        return hint is Any or type(None) in get_args(hint)
    if type(value) not in PLAIN:
        return False
    if _is_union(hint):
        return any(fits(value, each) for each in get_args(hint))
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return value in inner
    if origin in (str, int, bool):
        return type(value) is origin
    if origin is float:
        return type(value) in (int, float)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list) and (not inner or all(fits(each, inner[0]) for each in value))
    if origin in (dict, Mapping):
        return isinstance(value, dict) and (not inner or all(fits(each, inner[1]) for each in value.values()))
    return hint is not type(None)  # any other type is the affair of whoever takes the value


def describe(hint: Any) -> str:
    """The type in words: 'a number', 'a list of text', 'true or false'."""
    if _is_union(hint):
        return either([describe(each) for each in get_args(hint) if each is not type(None)])
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return either([repr(each) for each in inner])
    if origin in (list, tuple, Sequence):
        return f"a list of {_plural(inner[0])}" if inner else "a list"
    if origin in (dict, Mapping):
        return f"a table of {_plural(inner[1])}" if inner and inner[1] is not Any else "a table"
    return NAMES.get(origin, NAMES[Any])


def _plural(hint: Any) -> str:
    words = {str: "text", int: "whole numbers", float: "numbers", bool: "true or false"}
    return words.get(hint, "entries" if hint is Any else describe(hint))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)
