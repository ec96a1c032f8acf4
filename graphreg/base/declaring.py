"""Declaring is registering: a loss, a penalty or a method is known because its class exists.

`declared` imports the files that lie in the room of a base class (the package that holds it), and goes through the
classes that derive from the base. So a new term is one file in its room, or one class of the user's anywhere.

Who asks for one class by its name does not wait for all of them: `listed_class` knows where it lies from the list
of types that ``make listings`` writes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, TypeVar

T = TypeVar("T")

LIBRARY = __name__.partition(".")[0]
LISTING = Path(__file__).parents[1] / "catalogue.pyi"
LISTED = re.compile(r"^from (\.\S+) import (\w+) as \w+$", re.MULTILINE)


@cache
def _listing() -> dict[str, str]:
    """The module of each class of the library that is written down; a hint, without which all is found by a walk."""
    try:
        text = LISTING.read_text(encoding="utf-8")
    except OSError:  # some tools that pack programs leave lists of types behind
        return {}
    return {name: f"{LIBRARY}{module}" for module, name in LISTED.findall(text)}


def listed_class(name: str, room: str = LIBRARY) -> type[Any] | None:
    """The loss, penalty or method of this name, of the whole library or of a room, where it is written down."""
    module = _listing().get(name, "")
    if not module.startswith(f"{room}."):
        return None
    try:
        return getattr(import_module(module), name, None)
    except ModuleNotFoundError:  # the list is older than the files
        return None


@cache
def import_files(room: str) -> None:
    """Import every file of a package that is not private to it, in the order of their names."""
    for name in sorted(found.name for found in walk_packages(import_module(room).__path__, f"{room}.")):
        if not is_private(name):
            import_module(name)


def declared(base: type[T], *, users: bool = True, loaded: bool = False) -> dict[str, type[T]]:
    """The final classes that derive from ``base``, by name: those of the library, and then the user's; with ``loaded``
    only those whose files have been imported by now.

    Final is a class that leaves nothing abstract and derives from abstract classes alone (a class that derives from a
    final one is a variant of it, and is not listed). Of the library those count that lie in a public file of the room
    of the base; of the user's those that their module holds under their name, so that a class written inside a function
    does not count, nor one that was written again since.
    """
    room = room_of(base)
    if not loaded:
        import_files(room)
    found = sorted((each for each in set(_final(base)) if not each.__name__.startswith("_")), key=_place)
    ours = {each.__name__: each for each in found if each.__module__.startswith(f"{room}.") and _public(each)}
    theirs = {each.__name__: each for each in found if not in_library(each) and _held(each)}
    return {**ours, **{name: each for name, each in theirs.items() if name not in ours}} if users else ours


def room_of(base: type[Any]) -> str:
    """The package whose files declare the classes of a base: that of its own file, or the one that it names."""
    return vars(base).get("declared_in") or base.__module__.rpartition(".")[0]


def is_private(module: str) -> bool:
    """True where a part of a module's name begins with an underscore."""
    return any(part.startswith("_") for part in module.split("."))


def needs_no_options(each: type[Any]) -> bool:
    """True where an object of the class can be made without arguments."""
    given = inspect.signature(each).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given)


def _final(base: type[T]) -> Iterator[type[T]]:
    for each in base.__subclasses__():
        if inspect.isabstract(each):
            yield from _final(each)
        elif all(inspect.isabstract(other) for other in each.__mro__[1:] if issubclass(other, base)):
            yield each


def _place(each: type[Any]) -> tuple[str, str]:
    return each.__name__, each.__module__


def in_library(each: Any) -> bool:
    """True where a class or function was written here, and not outside the library."""
    return each.__module__.partition(".")[0] == LIBRARY


def _public(each: type[Any]) -> bool:
    names = getattr(sys.modules[each.__module__], "__all__", [each.__name__])  # a file may say what of it is public
    return each.__name__ in names and not is_private(each.__module__) and _held(each)


def _held(each: type[Any]) -> bool:
    return getattr(sys.modules.get(each.__module__), each.__name__, None) is each
