"""Whether what was read is what it is said to be: by the types and checks of its fields, and by the shapes of a state
before the first round."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from ...checks import check_fields, is_number, is_switch, is_whole
from ...errors import CheckpointError
from ...form import Form
from ...messages import shown
from ...network import LocalView

OWN = __name__.partition(".")[0]
PARTS = (tuple, list, dict)
TESTS = {bool: is_switch, int: is_whole, float: is_number}


class MisfitError(CheckpointError):
    """A part of a checkpoint that is not what stands at its place; the message names it, and not yet the file."""


def check_record(record: Any, where: str) -> None:
    """Refuse a dataclass of ours with a field that is not of its type, or not what its check says (see
    `graphreg.checks`)."""
    if type(record).__module__.partition(".")[0] != OWN:
        return
    hints = _hints(type(record))
    for each in fields(record):
        value, hint = getattr(record, each.name), hints.get(each.name, Any)
        if not fits(value, hint):
            wanted = getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint)
            raise MisfitError(f"{where}.{each.name} is a {type(value).__name__}, and not {wanted}")
    check_fields(record, MisfitError, where)


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields; none where they cannot be resolved, as in a user's class within a function."""
    try:
        return get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type as it is annotated; what is not known to be wrong fits."""
    origin, args = get_origin(hint), get_args(hint)
    kind = origin or hint
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in args)
    if kind in TESTS:
        return TESTS[kind](value)
    if hint is Any or not isinstance(kind, type):
        return True
    return isinstance(value, kind) and (kind not in PARTS or not args or _parts_fit(value, args))


def _parts_fit(value: Any, args: tuple[Any, ...]) -> bool:
    """Whether the parts of a tuple, list or dict are of theirs."""
    if isinstance(value, dict):
        return all(fits(key, args[0]) and fits(each, args[1]) for key, each in value.items())
    if isinstance(value, list) or args[1:] == (...,):
        return all(fits(each, args[0]) for each in value)
    return len(value) == len(args) and all(map(fits, value, args))


def check_entries(value: Any, wanted: Mapping[str, Any], where: str) -> None:
    """Refuse what is no mapping with these entries, of these types."""
    if not isinstance(value, Mapping) or value.keys() != wanted.keys():
        raise MisfitError(f"{where} does not have the entries {', '.join(wanted)}")
    for key, hint in wanted.items():
        if not fits(value[key], hint):
            raise MisfitError(f"{where}: {key!r} is {shown(value[key])}")


def check_state(state: Any, like: Any, form: Form, where: str) -> None:
    """Refuse a state that is not like this one before the first round."""
    sizes = {form.n, *(len(b.node) for b in form.samples), *(len(e.tail) for e in form.edges)}
    if type(state) is not type(like):
        raise MisfitError(f"{where} is a {type(state).__name__}, and not a {type(like).__name__}")
    check_alike(state, like, sizes, where)


def check_alike(value: Any, like: Any, sizes: Collection[int], where: str) -> None:
    """Refuse a state of which a part has another kind or shape than that before the first round.

    What is nothing there (None, no rows, an empty tuple) may have become anything; a tuple or an axis may have grown,
    unless this had one of the ``sizes`` of the problem.
    """
    if like is None or isinstance(like, LocalView) or (isinstance(like, np.ndarray) and not like.size):
        return
    if is_dataclass(like) and type(value) is type(like):
        for each in fields(like):
            check_alike(getattr(value, each.name), getattr(like, each.name), sizes, f"{where}.{each.name}")
    elif isinstance(like, np.ndarray):
        here = (value.dtype.kind, value.shape[1:]) if isinstance(value, np.ndarray) else ()
        grown = bool(here) and like.ndim > 0 and value.shape[:1] != like.shape[:1]
        if here != (like.dtype.kind, like.shape[1:]) or (grown and len(like) in sizes):
            got = f"{value.dtype} {value.shape}" if here else type(value).__name__
            raise MisfitError(f"{where} is {got}, and not {like.dtype} {like.shape}")
    elif isinstance(like, (tuple, list)) and len(like):
        if type(value) is not type(like) or len(value) < len(like):
            raise MisfitError(f"{where} is not of {len(like)} parts")
        for k, (one, two) in enumerate(zip(value, like, strict=False)):
            check_alike(one, two, sizes, f"{where}[{k}]")
    elif isinstance(like, Mapping) and (not isinstance(value, Mapping) or not set(like) <= set(value)):
        raise MisfitError(f"{where} does not have the entries {', '.join(map(repr, like))}")
