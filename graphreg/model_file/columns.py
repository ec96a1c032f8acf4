"""What is done to the rows and columns of a table before they are samples: derived columns, filters, standardising."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError
from ..messages import near
from .place import Place, listed, text_of
from .tables import check_columns

if TYPE_CHECKING:
    import pandas as pd

FUNCTIONS = ("log", "log1p", "exp", "sqrt", "abs")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.UAdd)
ALLOWED = f"+ - * / of columns and numbers, brackets and the functions {', '.join(FUNCTIONS)}"


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
@dataclass(frozen=True)
class Standardised:
    """What a feature was centred by and divided by: its mean and standard deviation (with n - 1) over all rows."""

    center: Mapping[str, float]
    scale: Mapping[str, float]


def standardise(frame: pd.DataFrame, names: Sequence[str], place: Place) -> tuple[pd.DataFrame, Standardised]:
    """The frame with the named columns centred and scaled."""
    part: Any = frame[list(names)].astype(float)
    center: dict[str, float] = part.mean().to_dict()
    scale: dict[str, float] = part.std().to_dict()
    for name in names:
        if not scale[name] > 1e-12 * (abs(center[name]) + scale[name]):
            place.refuse(f"the feature {name!r} is constant and cannot be standardised; leave it out", DataError)
    standard = Standardised(center, scale)
    return frame.assign(**{name: (part[name] - center[name]) / scale[name] for name in names}), standard
