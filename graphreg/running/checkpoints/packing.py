"""From records of arrays to JSON and plain arrays, and back, bit for bit; nothing is pickled and no code is run.

What can be packed: None, booleans, numbers, strings, numpy scalars and arrays, tuples, lists, dictionaries, dataclasses
of these, numpy Generators and SeedSequences, and the view (which is not packed, but put back where it stood). Arrays
come back with their types and their layout in memory, on which the last bits of a product depend; what was one object
is one object again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...network import LocalView
from ...terms import Array

PLAIN = (type(None), bool, int, str)
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
WANTED = "None, numbers, strings, arrays, tuples, lists, dicts, dataclasses of these, and numpy Generators"


@dataclass(frozen=True)
class Packed:
    """A value as a tree for JSON, and the arrays and generators that the tree refers to by number."""

    tree: Any
    generators: list[Any]
    arrays: list[Array]

    @staticmethod
    def of(value: Any, where: str) -> Packed:
        """``where`` names the value in errors."""
        packer = _Packer()
        tree = packer.pack(value, where)
        return Packed(tree, packer.generators, packer.arrays)

    def value(self, view: LocalView | None = None) -> Any:
        """The way back."""
        return _Unpacker(self, view).unpack(self.tree)


class _Packer:
    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.generators: list[Any] = []
        self._known: dict[int, tuple[Any, int]] = {}  # by id, with the object, which keeps the id its own

    def pack(self, value: Any, where: str) -> Any:  # noqa: PLR0911 - one return per kind
        """A tree; subclasses of what it can hold would come back as something else."""
        kind: type = type(value)
        if kind in PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in (tuple, list):
            return {kind.__name__: [self.pack(each, f"{where}[{k}]") for k, each in enumerate(value)]}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: self.pack(each, f"{where}[{key!r}]") for key, each in value.items()}}
        if kind is np.ndarray and not value.dtype.hasobject:
            return {"array": self._number(value, self.arrays, value)}
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return {"numpy": [value.dtype.str, value.tobytes().hex()]}
        return self._special(value, kind, where)

    def _special(self, value: Any, kind: type, where: str) -> Any:
        if isinstance(value, LocalView):
            return {"site": True}
        if kind is np.random.SeedSequence:
            return {"seed": self.pack(value.state, where)}
        if kind is np.random.Generator and type(value.bit_generator).__name__ in BIT_GENERATORS:
            bits = value.bit_generator
            parts = [type(bits).__name__, self.pack(bits.state, where), self.pack(bits.seed_seq, where)]
            return {"generator": self._number(value, self.generators, parts)}
        if is_dataclass(value) and _find(_name(kind)) is kind:
            each = {f.name: self.pack(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}
            return {"record": [_name(kind), each]}
        raise CheckpointError(
            f"{where} is a {_name(kind)}, which a checkpoint cannot hold; the state of a method consists of {WANTED}; "
            "classes must be importable"
        )

    def _number(self, value: Any, shelf: list[Any], entry: Any) -> int:
        """The place of an object on its shelf; the same for the same object."""
        if id(value) not in self._known:
            shelf.append(entry)
            self._known[id(value)] = (value, len(shelf) - 1)
        return self._known[id(value)][1]


class _Unpacker:
    def __init__(self, packed: Packed, view: LocalView | None) -> None:
        self.arrays, self.view = packed.arrays, view
        self.generators = [self._generator(*parts) for parts in packed.generators]

    def unpack(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        return BACK[kind](self, content)

    def _generator(self, name: str, state: Any, seed: Any) -> np.random.Generator:
        bits = getattr(np.random, BIT_GENERATORS[BIT_GENERATORS.index(name)])(self.unpack(seed))
        bits.state = self.unpack(state)
        return np.random.Generator(bits)

    def record(self, name: str, trees: dict[str, Any]) -> Any:
        """A dataclass with its fields as they were; its __init__ does not run again."""
        kind = _find(name)
        if kind is None or [f.name for f in fields(kind)] != list(trees):
            raise ValueError(f"it holds a {name} that this version of the code does not have")
        value = object.__new__(kind)
        for field, tree in trees.items():
            object.__setattr__(value, field, self.unpack(tree))
        return value


BACK: dict[str, Callable[[_Unpacker, Any], Any]] = {
    "float": lambda _, text: float(text),
    "numpy": lambda _, parts: np.frombuffer(bytes.fromhex(parts[1]), np.dtype(parts[0]))[0],
    "array": lambda self, number: self.arrays[number],
    "generator": lambda self, number: self.generators[number],
    "site": lambda self, _: self.view,
    "seed": lambda self, state: np.random.SeedSequence(**self.unpack(state)),
    "tuple": lambda self, each: tuple(map(self.unpack, each)),
    "list": lambda self, each: list(map(self.unpack, each)),
    "dict": lambda self, each: {key: self.unpack(one) for key, one in each.items()},
    "record": lambda self, parts: self.record(*parts),
}


# ---- the layout of an array in memory --------------------------------------------------------------------------------
def layout(array: Array) -> list[int] | None:
    """The strides; None where the array is laid out as a new one is."""
    return None if array.strides == np.empty(array.shape, array.dtype).strides else list(array.strides)


def laid_out(array: Array, strides: list[int] | None) -> Array:
    """The array in memory of its own with the given strides."""
    if strides is None or array.size == 0:
        return array
    reach = [(size - 1) * stride for size, stride in zip(array.shape, strides, strict=True)]
    first = -sum(step for step in reach if step < 0)
    memory = np.zeros(first + sum(step for step in reach if step > 0) + array.itemsize, dtype=np.uint8)
    out = np.ndarray(array.shape, array.dtype, memory.data, first, tuple(strides))
    out[...] = array
    return out


# ---- classes by name -------------------------------------------------------------------------------------------------
def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _find(name: str) -> Any:
    """The dataclass of that name among the modules that are loaded; None where there is none. Imports nothing."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and is_dataclass(found) else None
