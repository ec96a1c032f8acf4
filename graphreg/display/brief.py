"""Records whose ``repr`` is short, however much they hold."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ..escaping import visible

LONG = 200  # characters of a field


def briefly(value: object) -> str:
    """The value as ``repr`` shows it, in one line; of an array its shape, of what is long the beginning and the end."""
    shape: Any = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        sizes: tuple[Any, ...] = shape
        return f"<{type(value).__name__} of the shape {sizes}>"
    return visible(repr(value), LONG)


class Brief:
    """A dataclass of which ``repr`` shows every field briefly; it is declared with ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        known: Any = fields(self) if is_dataclass(self) else ()
        each = [f"{field.name}={briefly(getattr(self, field.name))}" for field in known if field.repr]
        return f"{type(self).__qualname__}({', '.join(each)})"
