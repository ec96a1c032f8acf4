"""From records of arrays to JSON and plain arrays, and back, bit for bit; nothing is pickled and no code is run.

What can be packed: None, booleans, numbers, strings, numpy scalars and arrays, tuples, lists, dictionaries, dataclasses
of these, numpy Generators and SeedSequences, and the view (which is not packed, but put back where it stood). Arrays
come back with their types and their layout in memory, on which the last bits of a product depend; what was one object
is one object again. What was read is compared with the types and checks of its fields, and with the shapes of a state
before the first round.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Union, get_args, get_origin

import numpy as np

from ..base.messages import shown
from ..checks import check_fields, is_number, is_switch, is_whole, type_hints, whole
from ..errors import CheckpointError
from ..form import Form
from ..network import LocalView
from ..terms import Array

KINDS = "biufcmMSU"  # of the numbers in arrays, by numpy's letters
POOL = 1024  # words that a seed may mix, at most
PLAIN = (type(None), bool, int, str)
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
WANTED = "None, numbers, strings, arrays, tuples, lists, dicts, dataclasses of these, and numpy Generators"
OWN = __name__.partition(".")[0]
PARTS = (tuple, list, dict)
TESTS = {bool: is_switch, int: is_whole, float: is_number}


class MisfitError(CheckpointError):
    """A part of a checkpoint that is not what stands at its place; the message names it, and not yet the file."""


@dataclass(frozen=True)
class JsonTree:
    """A value as a tree for JSON, and the arrays and generators that the tree refers to by number."""

    tree: Any
    generators: list[Any]
    arrays: list[Array]

    @staticmethod
    def of(value: Any, where: str) -> JsonTree:
        """``where`` names the value in errors."""
        packer = _Packer([], [], {})
        return JsonTree(packer.pack(value, where), packer.generators, packer.arrays)

    def value(self, view: LocalView | None = None, where: str = "value") -> Any:
        """The way back; `ValueError` names what does not fit."""
        return _Unpacker(self, view).unpack(self.tree, where)


@dataclass
class _Packer:
    arrays: list[Array]
    generators: list[Any]
    known: dict[int, tuple[Any, int]]  # by id, with the object, which keeps the id its own

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
        if kind is np.ndarray and value.dtype.kind in KINDS:
            return {"array": self._number(value, self.arrays, value)}
        if isinstance(value, np.generic) and value.dtype.kind in KINDS:
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
        if id(value) not in self.known:
            shelf.append(entry)
            self.known[id(value)] = (value, len(shelf) - 1)
        return self.known[id(value)][1]


class _Unpacker:
    def __init__(self, packed: JsonTree, view: LocalView | None) -> None:
        self.arrays, self.view = packed.arrays, view
        self.generators = [self._generator(parts, f"generator {k}") for k, parts in enumerate(packed.generators)]

    def unpack(self, tree: Any, where: str) -> Any:
        """The value; what is wrong with the tree is named by its place."""
        if type(tree) in (*PLAIN, float):
            return tree
        try:
            ((kind, content),) = tree.items()
            return BACK[kind](self, content, where)
        except MisfitError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise MisfitError(f"{where} makes no sense ({type(error).__name__}: {error})") from error

    def _generator(self, parts: Any, where: str) -> np.random.Generator:
        name, state, seed = parts
        bits = getattr(np.random, BIT_GENERATORS[BIT_GENERATORS.index(name)])(self.unpack(seed, where))
        bits.state = self.unpack(state, where)
        return np.random.Generator(bits)

    def each(self, trees: list[Any], where: str) -> list[Any]:
        return [self.unpack(tree, f"{where}[{k}]") for k, tree in enumerate(trees)]

    def names(self, trees: dict[str, Any], where: str) -> dict[str, Any]:
        return {key: self.unpack(tree, f"{where}[{key!r}]") for key, tree in trees.items()}

    def seed(self, state: Any, where: str) -> np.random.SeedSequence:
        known = self.unpack(state, where)
        if not 0 <= whole(0)(known["pool_size"], "pool_size") <= POOL:
            raise ValueError(f"its pool_size is {known['pool_size']}")
        return np.random.SeedSequence(**known)

    def number(self, shelf: list[Any], number: Any) -> Any:
        return shelf[whole(0)(number, "its number")]

    def scalar(self, kind: str, content: str) -> Any:
        (value,) = np.frombuffer(bytes.fromhex(content), plain(np.dtype(kind)))
        return value

    def record(self, parts: Any, where: str) -> Any:
        """A dataclass with its fields as they were; its __init__ does not run again, but its types are checked."""
        name, trees = parts
        kind = _find(name)
        if kind is None or [f.name for f in fields(kind)] != list(trees):
            raise MisfitError(f"{where} is a {name} that this version of the code does not have")
        value = object.__new__(kind)
        for field, tree in trees.items():
            object.__setattr__(value, field, self.unpack(tree, f"{where}.{field}"))
        check_record(value, where)
        return value


BACK: dict[str, Callable[[_Unpacker, Any, str], Any]] = {
    "float": lambda _, text, where: float(text),
    "numpy": lambda self, parts, where: self.scalar(*parts),
    "array": lambda self, number, where: self.number(self.arrays, number),
    "generator": lambda self, number, where: self.number(self.generators, number),
    "site": lambda self, _, where: self.view,
    "seed": lambda self, state, where: self.seed(state, where),
    "tuple": lambda self, trees, where: tuple(self.each(trees, where)),
    "list": lambda self, trees, where: self.each(trees, where),
    "dict": lambda self, trees, where: self.names(trees, where),
    "record": lambda self, parts, where: self.record(parts, where),
}


def plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of numbers, dates or texts; `ValueError` for any other."""
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"{dtype} is no type of numbers")
    return dtype


# ---- the layout of an array in memory --------------------------------------------------------------------------------
def layout(array: Array) -> list[int] | None:
    """The strides; None where the array is laid out as a new one is."""
    return None if array.strides == np.empty(array.shape, array.dtype).strides else list(array.strides)


def extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """The bytes from the first to the last number of an array."""
    return sum((n - 1) * abs(step) for n, step in zip(shape, strides, strict=True)) + itemsize


def laid_out(array: Array, strides: list[int] | None, most: float = math.inf) -> Array:
    """The array in memory of its own with the given strides, and of ``most`` bytes."""
    if strides is None or array.size == 0:
        return array
    steps = tuple(whole(-sys.maxsize)(stride, "a stride") for stride in strides)
    size = extent(array.shape, steps, array.itemsize)
    if size > max(most, array.nbytes):
        raise ValueError(f"the strides {strides} of an array {array.shape} take {size} bytes")
    memory = np.zeros(size, dtype=np.uint8)
    first = -sum(min((n - 1) * step, 0) for n, step in zip(array.shape, steps, strict=True))
    out = np.ndarray(array.shape, array.dtype, memory.data, first, steps)
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


# ---- whether what was read is what it is said to be ------------------------------------------------------------------
def check_record(record: Any, where: str) -> None:
    """Refuse a dataclass of ours with a field that is not of its type, or not what its check says (see
    `graphreg.checks`)."""
    if type(record).__module__.partition(".")[0] != OWN:
        return
    hints = type_hints(type(record))
    for each in fields(record):
        value, hint = getattr(record, each.name), hints.get(each.name, Any)
        if not fits(value, hint):
            wanted = getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint)
            raise MisfitError(f"{where}.{each.name} is a {type(value).__name__}, and not {wanted}")
    check_fields(record, MisfitError, where)


def fits(value: Any, hint: Any) -> bool:
    """True where a value is of a type as it is annotated; what is not known to be wrong fits."""
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
    """True where the parts of a tuple, list or dict are of theirs."""
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
    sizes = {form.n, *(b.count for b in form.samples), *(e.count for e in form.edges)}
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
