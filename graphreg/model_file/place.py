"""Places in a model file, and errors that name them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import GraphregError, ModelFileError


@dataclass(frozen=True)
class Place:
    """A table or a key of a model file; printed as ``model.toml: [loss] scale``."""

    file: str
    path: str = ""

    def at(self, key: str) -> Place:
        """The key of this table."""
        return Place(self.file, f"{self.path} {key}".strip())

    def refuse(self, why: str, kind: type[GraphregError] = ModelFileError) -> NoReturn:
        """Raise an error that begins with this place."""
        raise self.error(kind, why)

    def error(self, kind: type[GraphregError], why: str) -> GraphregError:
        """An error that begins with this place."""
        out = kind(f"{self}{why}" if why.startswith(" ") else f"{self}: {why}")
        out.placed = True
        return out

    @contextmanager
    def named(self) -> Generator[None]:
        """Errors of graphreg that are raised inside say where they come from; those that do already are left alone."""
        try:
            yield
        except GraphregError as error:
            if error.placed:
                raise
            named = self.error(type(error), str(error))
            vars(named).update(vars(error))  # what is missing of a method, the solution of a solve
            raise named from None

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file


def text_of(error: BaseException) -> str:
    """An exception of another package on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def listed(value: Any) -> list[Any]:
    """One value, or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


Table = dict[str, Any]
