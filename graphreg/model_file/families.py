"""Losses, penalties and methods by name: the classes of graphreg, and classes of the user's own.

Nothing is listed here. A class of graphreg, or one of the user's that is imported already, has its name; any
class of the user's is named ``module:Class``. The options of a class are the arguments of its constructor.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import graphreg as gr

from ..base.declaring import declared
from ..base.messages import closest, near
from ..catalogue import BASES
from ..checks import type_hints
from .schema import Place, Table, check, text_of, unknown_key

DERIVED_FROM = {"loss": "Loss", "penalty": "Penalty", "method": "AbstractIteration"}  # by classes of the user's


def options(family: type[Any]) -> dict[str, inspect.Parameter]:
    """The arguments that a class is made with, by name; the data of a loss are not among them."""
    found = inspect.signature(family).parameters
    return {
        name: each
        for name, each in found.items()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and not (name == "data" and issubclass(family, BASES["loss"]))
    }


def make(
    kind: str, name: str, given: Table, place: Place, folders: Sequence[Path] | None, *first: Any, **known: Any
) -> Any:
    """The object of a family, made of ``first`` and the options given at ``place``.

    ``known`` are keys of the place that the family does not know, for the message about one that nobody knows.
    """
    family = find(kind, name, known.pop("at", place), folders)
    if not isinstance(family, type):
        if given:
            unknown_key(place, next(iter(given)), list(known))
        return family
    accepted = options(family)
    hints = type_hints(family) or type_hints(family.__init__)
    for key, value in given.items():
        if key not in accepted:
            unknown_key(place, key, [*known, *accepted])
        check(place.at(key), value, hints.get(key, Any))
    for key, parameter in accepted.items():
        if parameter.default is parameter.empty and key not in given:
            place.refuse(f" needs the key {key!r}, an option of {family.__name__}")
    with place.named():
        try:
            return family(*first, **given)
        except gr.errors.GraphregError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the constructor of a user's class raises
            place.refuse(f"{name} cannot be made: {text_of(error)}")


def make_inline(kind: str, value: str | Table, place: Place, folders: Sequence[Path] | None) -> Any:
    """A penalty or method that is written as its name, or as a table with the name as ``family``."""
    if isinstance(value, str):
        return make(kind, value, {}, place, folders, family=None)
    given = dict(value)
    if "family" not in given:
        stray = next((key for key in given if closest(key, ["family"])), None)
        if stray is not None:
            unknown_key(place, stray, ["family"])
        place.refuse(" needs the key 'family': the name of a " + kind)
    check(place.at("family"), given["family"], str)
    return make(kind, given.pop("family"), given, place, folders, at=place.at("family"), family=None)


# ---- by name ---------------------------------------------------------------------------------------------------------
def find(kind: str, name: str, place: Place, folders: Sequence[Path] | None) -> Any:
    """The class called ``name`` (or, from a module of the user's, an object of such a class)."""
    if ":" in name:
        if folders is None:
            place.refuse(
                f"{name!r} is code, which a model file runs only with --allow-code (in Python: read_model(..., "
                "allow_code=True)); read the module first"
            )
        return _own(kind, name, place, folders)
    known = declared(BASES[kind])
    if name not in known:
        stem, _, rest = name.removesuffix(".py").partition(".")
        file = any((folder / f"{stem}.py").is_file() for folder in folders or ())
        own = f"of {stem}.py write '{stem}:{rest or 'Class'}'" if file else "your own is 'module:Class'"
        place.refuse(f"there is no {kind} {name!r}; {near(name, list(known))} ({own})")
    return known[name]


def imported(name: str, place: Place, folders: Sequence[Path], fits: Callable[[Any], bool]) -> Any:
    """The object that ``module:name`` names; where there is none, those that ``fits`` might have been meant."""
    module, _, attribute = name.partition(":")
    module = module.removesuffix(".py")
    if Path(module).name != module:
        place.refuse(f"{module!r} is a path: write '{Path(module).name}:{attribute}', where that module is found")
    with _importable(folders):
        try:
            holder: Any = importlib.import_module(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's module raises
            if isinstance(error, ModuleNotFoundError) and error.name == module:
                where = ", ".join(map(str, folders))
                place.refuse(f"there is no module {module!r} in {where} or on the Python path")
            place.refuse(f"importing {module!r} failed: {text_of(error)}")
    if not hasattr(holder, attribute):
        mine = [each for each, value in vars(holder).items() if not each.startswith("_") and fits(value)]
        place.refuse(f"the module {module!r} has no {attribute!r}; {near(attribute, mine)}")
    return getattr(holder, attribute)


def _own(kind: str, name: str, place: Place, folders: Sequence[Path]) -> Any:
    found = imported(name, place, folders, lambda value: isinstance(value, (type, BASES[kind])))
    kinds = BASES[kind]
    if isinstance(found, type) and issubclass(found, kinds):
        if inspect.isabstract(found):
            lacking = ", ".join(sorted(found.__abstractmethods__))
            place.refuse(f"{name!r} is abstract; it lacks {lacking}")
    elif not isinstance(found, kinds) or kind == "loss":
        place.refuse(f"{name!r} is no {kind}: it must be a class that derives from graphreg.{DERIVED_FROM[kind]}")
    return found


@contextmanager
def _importable(folders: Sequence[Path]) -> Generator[None]:
    """Modules in these folders are found first while this lasts."""
    before = list(sys.path)
    sys.path[:0] = [str(folder) for folder in folders]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before
