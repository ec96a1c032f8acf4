"""The keys of a model file: one record per table, its fields the keys, their annotations the types.

A key without a default must be there. The keys of losses, penalties and methods are not listed here: they are the
options of the classes themselves (see `families`).
"""

from __future__ import annotations

import types
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from ..base.messages import closest, either, near
from ..checks import type_hints
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


Record = TypeVar("Record")


@dataclass(frozen=True)
class DataKeys:
    """[data]: samples from a file, one per row."""

    file: str
    node: str
    target: str | list[str]
    name: str | None = None
    features: Literal["others"] | list[str] | None = None
    exclude: list[str] | None = None
    categories: list[str] | None = None
    weights: str | None = None
    offset: str | None = None
    intercept: bool = False
    standardise: bool | list[str] = False
    keep: dict[str, Any] | None = None
    derive: dict[str, str] | None = None


@dataclass(frozen=True)
class GraphKeys:
    """[graph]: one of ``edges``, ``adjacency`` and ``family``, with the keys that belong to it."""

    name: str | None = None
    nodes: Literal["all", "data"] = "all"
    edges: str | None = None
    tail: str | None = None
    head: str | None = None
    edge_weight: str | None = None
    adjacency: str | None = None
    family: str | None = None
    size: int | list[int] | None = None
    labels: Literal["data", "numbers"] | list[str] | None = None


@dataclass(frozen=True)
class LossKeys:
    """[loss]; the options of the family stand beside these keys."""

    family: str
    strength: float = 1.0
    parameter: str | None = None
    data: str | None = None
    keep: dict[str, Any] | None = None


@dataclass(frozen=True)
class TotalVariationKeys:
    """[total_variation]: strength x sum over edges of A_e phi(w_i - w_j)."""

    penalty: str | dict[str, Any]
    strength: float = 1.0
    parameter: str | None = None
    graph: str | None = None
    features: list[str] | None = None


@dataclass(frozen=True)
class ConsensusKeys:
    """[consensus]: w_i = w_j on every edge."""

    graph: str | None = None
    features: list[str] | None = None


@dataclass(frozen=True)
class NodePenaltyKeys:
    """[node_penalty]: strength x sum over nodes of weight_i phi(w_i - center)."""

    penalty: str | dict[str, Any]
    strength: float = 1.0
    parameter: str | None = None
    weights: dict[str, float] | None = None
    center: list[float] | dict[str, list[float]] | None = None
    features: list[str] | None = None
    nodes: list[str] | None = None


@dataclass(frozen=True)
class HierarchyKeys:
    """[hierarchy]: a tree of clusters, from columns of the data or written out."""

    clusters: str | list[str] | dict[str, Any]
    weights: list[float | dict[str, float]] | None = None
    alpha: float | dict[str, float] | None = None
    gamma: float | dict[str, float] | None = None
    penalty: str | dict[str, Any] | None = None
    strength: float = 1.0
    parameter: str | None = None
    data: str | None = None


@dataclass(frozen=True)
class RowsKeys:
    """[rows]: strength x sum over rows of c_r phi((K w)_r - b_r): one of ``along``, ``across``, ``at`` and ``file``."""

    penalty: str | dict[str, Any]
    strength: float = 1.0
    parameter: str | None = None
    along: str | list[str] | None = None
    across: str | None = None
    at: str | list[str] | list[float] | None = None
    file: str | None = None
    order: int = 1
    features: list[str] | None = None
    offset: float | str | list[float | list[float]] | dict[str, float | list[float]] | None = None
    weights: str | list[float] | dict[str, float] | None = None
    groups: str | list[str] | dict[str, str] | None = None
    data: str | None = None


@dataclass(frozen=True)
class SolveKeys:
    """[solve]: the method, and the keywords of ``Problem.solve``."""

    method: str | dict[str, Any] | None = None
    gap: float | None = None
    rounds: int | None = None
    seconds: float | None = None
    memory: float | None = None
    seed: int | None = None
    checkpoint: str | None = None


TABLES: dict[str, type[Any]] = {
    "data": DataKeys,
    "graph": GraphKeys,
    "loss": LossKeys,
    "total_variation": TotalVariationKeys,
    "consensus": ConsensusKeys,
    "node_penalty": NodePenaltyKeys,
    "hierarchy": HierarchyKeys,
    "rows": RowsKeys,
    "solve": SolveKeys,
}
REQUIRED, SINGLE = ("data", "loss"), ("solve",)


@dataclass(frozen=True)
class FileTable:
    """One table of the file: where it stands, its record, which keys are given, and those that no record has."""

    place: Place
    keys: Any
    given: tuple[str, ...]
    rest: Table


def read_tables(content: Table, file: str) -> dict[str, list[FileTable]]:
    """The tables of a parsed model file, by name; refused where a key is unknown, missing or of the wrong type."""
    whole = Place(file)
    for name in content:
        if name not in TABLES:
            homes = [table for table, kind in TABLES.items() if name in kind.__dataclass_fields__]
            hint = f"it is a key of [{homes[0]}]" if homes else near(name, list(TABLES), "the tables are")
            whole.refuse(f" has no table or key {name!r}; {hint}")
    for name in REQUIRED:
        if name not in content:
            whole.refuse(f"the table [{name}] is missing; every model has one")
    return {name: _sections(name, content[name], whole) if name in content else [] for name in TABLES}


def _sections(name: str, value: Any, whole: Place) -> list[FileTable]:
    several = isinstance(value, list) and name not in SINGLE
    tables: list[Any] = value if several else [value]
    out: list[FileTable] = []
    for k, table in enumerate(tables, 1):
        place = whole.at(f"[{name}]" if len(tables) == 1 else f"[[{name}]] (number {k})")
        if not isinstance(table, dict):
            place.refuse(f"this must be a table, written as [{name}], got {table!r}")
        keys, rest = _record(TABLES[name], table, place, open_ended=name == "loss")
        out.append(FileTable(place, keys, tuple(table), rest))
    if not out:
        whole.at(f"[[{name}]]").refuse("the list is empty; leave it out")
    return out


def _record(kind: type[Record], table: Table, place: Place, open_ended: bool) -> tuple[Record, Table]:
    """The record that a table holds, and the keys that it has beyond (none, but where these are options)."""
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]  (kinds are dataclasses)
    hints = type_hints(kind)
    rest = {key: value for key, value in table.items() if key not in known}
    if rest and not open_ended:
        unknown_key(place, next(iter(rest)), known)
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        if field.name in table:
            check(place.at(field.name), table[field.name], hints[field.name])
        elif field.default is MISSING:
            # where a key was misspelt, the misspelling is what there is to say
            stray = next((key for key in rest if closest(key, [field.name])), None)
            if stray is not None:
                unknown_key(place, stray, known)
            place.refuse(f" needs the key {field.name!r}: {describe(hints[field.name])}")
    return kind(**{key: table[key] for key in known if key in table}), rest


def one_source(section: FileTable, sources: Mapping[str, Sequence[str]], common: Sequence[str]) -> str:
    """Which of the sources is given: exactly one, and beside it the common keys and its own, which may be called like
    another source."""
    own = {key for source, keys in sources.items() if source in section.given for key in keys}
    found = [key for key in sources if key in section.given and key not in own]
    if len(found) != 1:
        section.place.refuse(f" needs exactly one of the keys {either(list(map(repr, sources)))}, got {len(found)}")
    for key in section.given:
        if key not in (found[0], *common, *sources[found[0]]):
            section.place.at(key).refuse(f"this does not go with {found[0]!r}; take it out")
    return found[0]


def unknown_key(place: Place, key: str, known: list[str]) -> None:
    """Refuse a key that a table does not have."""
    place.refuse(f" has no key {key!r}; {near(key, known, 'its keys are')}")


def check(place: Place, value: Any, hint: Any) -> None:
    """Refuse a value that is not of the annotated type."""
    if not fits(value, hint):
        place.refuse(f"this must be {describe(hint)}, got {value!r}")


# ---- types of values -------------------------------------------------------------------------------------------------
PLAIN = (str, int, float, bool, list, dict)  # what TOML has, but for dates and times, which no key takes
NAMES: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    Any: "a number, text, a list or a table",
}


def fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911 - one return per kind of annotation
    """True for a TOML value of the annotated type; a whole number will do where a number is asked for.

    None, which TOML does not have, can be written on the command line."""
    if value is None:
        return hint is Any or type(None) in get_args(hint)
    if type(value) not in PLAIN:
        return False
    if _is_union(hint):
        return any(fits(value, each) for each in get_args(hint))
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return value in inner
    if origin in (str, int, bool):
        return type(value) is origin
    if origin is float:
        return type(value) in (int, float)
    if origin in (list, tuple, Sequence):
        return isinstance(value, list) and (not inner or all(fits(each, inner[0]) for each in value))
    if origin in (dict, Mapping):
        return isinstance(value, dict) and (not inner or all(fits(each, inner[1]) for each in value.values()))
    return hint is not type(None)  # any other type is the affair of whoever takes the value


def describe(hint: Any) -> str:
    """The type in words: 'a number', 'a list of text', 'true or false'."""
    if _is_union(hint):
        return either([describe(each) for each in get_args(hint) if each is not type(None)])
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return either([repr(each) for each in inner])
    if origin in (list, tuple, Sequence):
        return f"a list of {_plural(inner[0])}" if inner else "a list"
    if origin in (dict, Mapping):
        return f"a table of {_plural(inner[1])}" if inner and inner[1] is not Any else "a table"
    return NAMES.get(origin, NAMES[Any])


def _plural(hint: Any) -> str:
    words = {str: "text", int: "whole numbers", float: "numbers", bool: "true or false"}
    return words.get(hint, "entries" if hint is Any else describe(hint))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)
