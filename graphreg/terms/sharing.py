"""What copies of an object with other numbers in them have in common: found out by one of them, known to all."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar, cast, overload

T = TypeVar("T")
COMMON = "_common"


class shared(cached_property[T]):  # noqa: N801  (a decorator)
    """A cached property that follows from what an object has in common with its copies made by `alike`."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        name, key = str(self.attrname), self.key(instance)
        known = vars(instance).setdefault(COMMON, {})
        if name not in known or known[name][0] != key:
            known[name] = key, self.func(instance)
        vars(instance)[name] = known[name][1]
        return known[name][1]

    def key(self, instance: Any) -> Any:
        """What it follows from beside that: where this is another, it is found anew."""
        return None


def alike(old: T, **changes: Any) -> T:
    """``old`` with changed fields, from which none of its `shared` properties follow."""
    new: T = replace(cast(Any, old), **changes)
    vars(new)[COMMON] = vars(old).setdefault(COMMON, {})
    return new
