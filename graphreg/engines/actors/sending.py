"""What a host is sent: the parts of its nodes, as bytes, and the code of what it could not import."""

from __future__ import annotations

import dataclasses
import io
import reprlib
import warnings
from collections.abc import Sequence
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from ...errors import MethodError, MethodWarning
from ...messages import users_line
from .parts import NodePart
from .threads import RunSettings

CODE = (ModuleType, FunctionType, BuiltinFunctionType, type)  # what is no data
OWN = __name__.partition(".")[0]
WRITERS = (dataclasses.__file__, reprlib.__file__)  # of methods


class _Pickler(cloudpickle.Pickler):
    """Notes what is sent as code, since it cannot be imported elsewhere, and the data to which this code refers."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.code: dict[str, None] = {}
        self.data: dict[str, None] = {}

    def reducer_override(self, obj: Any) -> Any:
        reduced: Any = super().reducer_override(obj)
        if reduced is not NotImplemented and isinstance(obj, (type, FunctionType)) and _of_the_user(obj):
            self.code[f"{obj.__module__}.{obj.__qualname__}"] = None
            if isinstance(obj, FunctionType):
                state = reduced[2][1]
                known = dict(state["__globals__"])
                for name, cell in zip(obj.__code__.co_freevars, state["__closure__"] or (), strict=True):
                    with suppress(ValueError):  # nothing is in it yet
                        known[name] = cell.cell_contents
                self.data.update({name: None for name, value in known.items() if not isinstance(value, CODE)})
        return reduced


def _of_the_user(code: type | FunctionType) -> bool:
    """Whether it is neither of this package nor of Python, which writes methods of dataclasses."""
    generated = "__create_fn__" in code.__qualname__
    if isinstance(code, FunctionType):
        generated |= code.__code__.co_filename in WRITERS
    return not generated and code.__module__.partition(".")[0] not in (OWN, "builtins")


def bundles(groups: Sequence[Sequence[NodePart]], settings: RunSettings) -> list[bytes]:
    """What each process is sent. A warning names what is sent as code, and the data that go with it."""
    out: list[bytes] = []
    code: dict[str, None] = {}
    data: dict[str, None] = {}
    for parts in groups:
        file = io.BytesIO()
        pickler = _Pickler(file)
        try:
            pickler.dump((list(parts), settings))
        except Exception as error:
            raise MethodError(
                f"the model or the method cannot be sent to another process ({error}); leave out what is of this "
                "process alone (locks, files, generators), or take Actors(processes=False)"
            ) from error
        out.append(file.getvalue())
        code |= pickler.code
        data |= pickler.data
    _warn(code, data)
    return out


def _warn(code: dict[str, None], data: dict[str, None]) -> None:
    names = [name for name in code if name.rpartition(".")[0] not in code]  # a class, without its methods
    if names:
        also = f", and with it, to every process, the values of {', '.join(sorted(data))}" if data else ""
        warnings.warn(
            f"other processes cannot import {', '.join(names)}: the code itself is sent to them{also}; define it at "
            "the top level of a module, so that its name alone is sent",
            MethodWarning,
            stacklevel=users_line(),
        )
