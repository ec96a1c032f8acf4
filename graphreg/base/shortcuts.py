"""Shortcuts: methods whose work a room further out does, such as ``solution.report()``.

The method asks for a function by the name of the shortcut, ``Class.method``, and never imports it; who has the function
registers it. The functions of the library are registered by the face of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import InternalError

_places: dict[str, str | Callable[..., Any]] = {}


def register(name: str, place: str | Callable[..., Any]) -> None:
    """Let a shortcut call a function: one that is given, or "package.module:function", imported at the first call.

    The last word counts: what was registered under the name before is replaced.
    """
    _places[name] = place


def shortcut(name: str) -> Callable[..., Any]:
    """The function that is registered for a shortcut."""
    try:
        place = _places[name]
    except KeyError:
        raise InternalError(
            f"no function is registered for the shortcut {name}; `import graphreg` registers those of the library, "
            f"graphreg.base.shortcuts.register({name!r}, function) another"
        ) from None
    if not isinstance(place, str):
        return place
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)
