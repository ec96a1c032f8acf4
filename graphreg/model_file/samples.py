"""[data]: the table of samples that losses draw on, with derived columns, filtered rows and standardised features."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.escaping import visible
from ..base.messages import count, few, near
from ..errors import DataError
from ..fitting import UNFITTED, UsedRows, checked_rows
from ..inputs import NodeData, Standardised
from .schema import DataKeys, FileTable, Place, listed, text_of
from .tables import CSV, Folders, check_columns, label_list, lines_of, values_of

if TYPE_CHECKING:
    import pandas as pd


FUNCTIONS = ("log", "log1p", "exp", "sqrt", "abs")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.UAdd)
ALLOWED = f"+ - * / of columns and numbers, brackets and the functions {', '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class SampleTable:
    """The rows of one table, as a model file describes them.

    Attributes
    ----------
    name : str or None
        The ``name`` of the table in the model file.
    file : str
    frame : DataFrame
        The rows that are kept, with the derived columns.
    rows : int
        How many rows the file has.
    features : tuple of str
    standardised : Standardised or None
        What the standardised features were centred by and divided by.
    """

    name: str | None
    file: str
    frame: pd.DataFrame
    rows: int
    features: tuple[str, ...]
    standardised: Standardised | None
    keys: DataKeys = field(repr=False)
    place: Place = field(repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The nodes that have rows, by first appearance."""
        return tuple(dict.fromkeys(self.frame[self.keys.node]))

    def node_data(self, wanted: Mapping[str, Any] | None, place: Place) -> NodeData:
        """The samples of a loss: all rows, or those that its own filter keeps."""
        keys, frame = self.keys, keep(self.frame, wanted or {}, self.file, place.at("keep"))
        with self.place.named():
            return NodeData.from_frame(
                frame.reset_index(drop=True),
                node=keys.node,
                target=keys.target,
                features=list(self.features) or None,
                weights=keys.weights,
                offset=keys.offset,
                intercept=keys.intercept,
                categories=keys.categories,
                standardise=self.standardised or False,
            )

    def like(self, path: Path, known: Collection[Hashable]) -> pd.DataFrame:
        """The rows of another file at known nodes, as these are: with those derived columns that the predictors need.
        `DataError` with all that is wrong with the columns as they are given, or else with what is derived of them."""
        keys, place, categories = self.keys, Place("rows"), tuple(self.keys.categories or ())
        frame, _ = Folders(path.parent, path.parent, outside=True).read(path.name, place, [keys.node, *categories])
        for name in frame.columns.intersection([keys.node, *categories]):
            frame[name] = frame[name].mask(frame[name].str.strip() == "")
        lines = partial(lines_of, path) if path.name.endswith(CSV) else None

        def checked(numbers: Iterable[str]) -> pd.DataFrame:
            own = (c for c in numbers if c not in categories)
            used = UsedRows(self.frame, keys.node, None, None, tuple(own), categories, {}, "exact", ())
            return checked_rows(used, frame, known, lines=lines, remedy=UNFITTED)

        predictors = [*self.features, *categories, *([keys.offset] if keys.offset else [])]
        needed = set(predictors)
        wanted: dict[str, str] = {}
        for name, formula in reversed((keys.derive or {}).items()):
            if name in needed:
                wanted[name] = formula
                needed |= names_in(formula)
        frame = checked(c for c in self.frame.columns if c in needed and c not in wanted)
        frame = derive(frame, dict(reversed(wanted.items())), place.at("derive"))
        return checked(predictors)

    def by_node(self, column: str, place: Place) -> dict[str, Any]:
        """The value of a column at each node, where it must be the same in all rows."""
        values = values_of(self.frame, column, self.file, place)
        found: dict[str, Any] = {}
        for node, value in zip(self.frame[self.keys.node], values, strict=True):
            if found.setdefault(node, value) != value:
                place.refuse(
                    f"the column {column!r} of {self.file} has two values at the node {node!r}, "
                    f"{found[node]!r} and {value!r}; give each node one",
                    DataError,
                )
        return found

    def __str__(self) -> str:
        kept = f"{len(self.frame)} of {self.rows} rows" if len(self.frame) < self.rows else f"{self.rows} rows"
        text = f"{visible(self.file)}: {kept}, {len(self.labels)} nodes"
        if self.features:
            text += f", {count(len(self.features), 'feature')}" + (" and an intercept" if self.keys.intercept else "")
        if self.standardised is not None:
            number = len(self.standardised.center)
            every = "the features are" if number == len(self.features) else f"{number} features are"
            text += f"\n  {every} standardised: penalties see standard deviations, tables have the units of the columns"
        return text


def read_samples(section: FileTable, folders: Folders, label_columns: Sequence[str]) -> SampleTable:
    """The samples that [data] describes.

    ``label_columns`` are columns of labels beside the nodes (clusters), which are read as text.
    """
    keys, place = section.keys, section.place
    at = place.at("file")
    label_columns = [*label_columns, *(keys.categories or ())]
    frame, file = folders.read(keys.file, at, [keys.node, *label_columns])
    check_columns(frame, [keys.node], file, place.at("node"))
    _ = label_list(frame, keys.node, file, place.at("node"))
    rows = len(frame)
    if rows == 0:
        at.refuse(f"{file} has no rows", DataError)
    frame = derive(frame, keys.derive or {}, place.at("derive"))
    frame = keep(frame, keys.keep or {}, file, place.at("keep"))
    for key, names in _named(keys):
        check_columns(frame, names, file, place.at(key))
    for name in keys.categories or ():
        _ = label_list(frame, name, file, place.at("categories"))
    features = _features(keys, frame, file, place, label_columns)
    standard = None
    for key, what in (("standardise", "means and deviations"), ("categories", "levels")):
        if folders.sites is not None and getattr(keys, key):
            place.at(key).refuse(f"{what} need the samples of all sites; do it beforehand")
    if keys.standardise is not False:
        standard = _standardised(frame, features, keys, place.at("standardise"))
    return SampleTable(keys.name, file, frame, rows, features, standard, keys, place)


def _named(keys: DataKeys) -> Iterable[tuple[str, list[str]]]:
    """The keys that name columns, with the names."""
    for key in ("target", "features", "exclude", "categories", "weights", "offset", "standardise"):
        value = getattr(keys, key)
        if isinstance(value, list) or (isinstance(value, str) and key != "features"):
            yield key, listed(value)


def _features(
    keys: DataKeys, frame: pd.DataFrame, file: str, place: Place, label_columns: Sequence[str]
) -> tuple[str, ...]:
    if keys.exclude is not None and keys.features != "others":
        place.at("exclude").refuse('this goes with features = "others" only')
    if keys.features is None:
        return ()
    taken = {keys.node, keys.weights, keys.offset, *label_columns, *(keys.keep or ()), *(keys.exclude or ())}
    taken |= set(listed(keys.target))
    others = keys.features == "others"
    names = [str(name) for name in frame.columns if name not in taken] if others else list(keys.features)
    if text := [name for name in names if frame[name].dtype.kind not in "biuf"]:
        remedy = f"name them in categories, {'list them in exclude' if others else 'leave them out'}, or code them"
        if text[0] in label_columns:
            remedy = "columns of clusters are read as text; for a feature, repeat the column under another name"
        which = "is" if len(text) == 1 else "are"
        place.at("features").refuse(f"{few(map(repr, text), 6)} of {file} {which} not numeric; {remedy}", DataError)
    if not names:
        place.at("features").refuse("no column is left; leave the key out for a model without features")
    return tuple(names)


# ---- derived columns -------------------------------------------------------------------------------------------------
def derive(frame: pd.DataFrame, formulas: Mapping[str, str], place: Place) -> pd.DataFrame:
    """The frame with a column more for each formula, in order; later ones may use those before."""
    for name, formula in formulas.items():
        here = place.at(name)
        if name in frame.columns:
            here.refuse(f"there is a column {name!r} already; call the derived one otherwise")
        _check_formula(frame, formula, here)
        with np.errstate(all="ignore"):  # what is not finite is refused where the column is used
            try:
                value: Any = frame.eval(formula, engine="python")  # so that it does not depend on what is installed
            except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
                here.refuse(f"{formula!r} cannot be computed: {text_of(error)}")
        frame = frame.assign(**{name: value})
    return frame


def _check_formula(frame: pd.DataFrame, formula: str, place: Place) -> None:
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        place.refuse(f"{formula!r} is no formula; write {ALLOWED}")
    columns = [str(name) for name in frame.columns]
    called = [id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Name):
            if id(node) in called:
                continue
            if node.id not in columns:
                place.refuse(f"{formula!r} names {node.id!r}, which is no column; {near(node.id, columns)}")
            if frame[node.id].dtype.kind not in "biuf":
                place.refuse(f"{formula!r} names the column {node.id!r}, which is text; use columns of numbers")
        elif not _is_arithmetic(node):
            part = ast.get_source_segment(formula.strip(), node) or formula.strip()
            place.refuse(f"{formula!r} has {part!r}, which is not allowed; write {ALLOWED}")


def names_in(formula: str) -> set[str]:
    """The columns and functions that a formula names."""
    return {node.id for node in ast.walk(ast.parse(formula.strip(), mode="eval")) if isinstance(node, ast.Name)}


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        return known and len(node.args) == 1 + len(node.keywords)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return isinstance(node.op, OPERATORS)
    return isinstance(node, (*OPERATORS, ast.Load))


# ---- filters ---------------------------------------------------------------------------------------------------------
def keep(frame: pd.DataFrame, wanted: Mapping[str, Any], file: str, place: Place) -> pd.DataFrame:
    """The rows that have one of the wanted values in every named column."""
    for name, values in wanted.items():
        here = place.at(name)
        check_columns(frame, [name], file, place)
        allowed = listed(values)
        column = frame[name]
        number = column.dtype.kind in "biuf"
        for value in allowed:
            if not isinstance(value, (int, float) if number else str):
                kind = "numbers (or true and false)" if number else f'text; write "{value}"'
                here.refuse(f"{value!r} cannot be compared: the column {name!r} of {file} holds {kind}")
        frame = frame.loc[column.isin(allowed)]
        if not len(frame):
            here.refuse(f"no row of {file} is left with {name} = {values!r}", DataError)
    return frame


# ---- standardising ---------------------------------------------------------------------------------------------------
def _standardised(frame: pd.DataFrame, features: Sequence[str], keys: DataKeys, place: Place) -> Standardised:
    """What the features that the file names are centred by and divided by."""
    chosen = features if keys.standardise is True else tuple(listed(keys.standardise))
    for name in chosen:
        if name not in features:
            place.refuse(f"{name!r} is not among the features")
    if not chosen:
        place.refuse("there are no features to standardise")
    with place.named():
        return Standardised.of(frame[list(features)].to_numpy(float), features, chosen, keys.intercept)
