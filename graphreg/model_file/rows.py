"""[rows]: affine rows of the parameters along a path, across a graph or arrows, at nodes, or from a table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..base.messages import near
from ..errors import DataError
from ..terms import AbstractRows, Rows, w
from .schema import FileTable, Place, check, one_source
from .tables import CSV, PARQUET, Folders, check_columns, label_list, values_of

if TYPE_CHECKING:
    import pandas as pd

SOURCES = {"along": ("features", "order", "at"), "across": ("features", "order"), "at": ("features",), "file": ()}
COMMON = ("penalty", "strength", "parameter", "offset", "weights", "groups", "data")
ENTRIES = ("row", "node", "coefficient")  # the columns of a table of entries; "feature" and "part" may be left out
Pick = Callable[..., Any]  # the samples or the graph that a table names
Column = Callable[[str, str], Any]  # the values, row by row, of the column that a key names


def read_rows(section: FileTable, pick: Pick, folders: Folders) -> AbstractRows:
    """The rows that [rows] describes, with their offsets, groups and weights."""
    keys, source = section.keys, one_source(section, SOURCES, COMMON)
    if source == "file":
        rows, column = _entries(section, folders)
    elif source == "across" and keys.across.endswith((*CSV, *PARQUET)):
        rows, column = _arrows(section, folders)
    else:
        rows, column = READ[source](section, pick), _by_node(section, pick)
    given = {key: getattr(keys, key) for key in ("offset", "groups", "weights")}
    found = {key: column(value, key) if isinstance(value, str) else value for key, value in given.items()}
    if keys.offset is not None:
        rows = rows - found["offset"]
    if keys.groups is not None:
        rows = rows.grouped(found["groups"])
    return rows if keys.weights is None else rows.weighted(found["weights"])


def _by_node(section: FileTable, pick: Pick) -> Column:
    """The values of a column of the samples, by node."""

    def column(name: str, key: str) -> dict[str, Any]:
        place, nodes = section.place.at(key), section.keys.at
        values = pick("data", section).by_node(name, place)
        if section.keys.along is not None:
            place.refuse(f"{name!r} has a value per node, and a row along a path has several; give a list, one per row")
        return values if nodes in (None, "all") else {node: _at_node(values, node, name, place) for node in nodes}

    return column


def _at_node(values: dict[str, Any], node: str, name: str, place: Place) -> Any:
    if node not in values:
        place.refuse(
            f"the node {node!r} has no data, and so no {name!r}; {near(node, list(values), 'nodes with data are')}"
        )
    return values[node]


# ---- from nodes, graphs and paths ------------------------------------------------------------------------------------
def _at(section: FileTable, pick: Pick) -> AbstractRows:
    nodes = section.keys.at
    check(section.place.at("at"), nodes, str | list[str])
    if isinstance(nodes, str) and nodes != "all":
        section.place.at("at").refuse(f'this must be "all" or a list of labels; for one node write [{nodes!r}]')
    return w.at(None if nodes == "all" else nodes, section.keys.features)


def _across(section: FileTable, pick: Pick) -> AbstractRows:
    return w.at(features=section.keys.features).across(pick("graph", section, "across"), section.keys.order)


def _along(section: FileTable, pick: Pick) -> AbstractRows:
    keys, path, at = section.keys, section.keys.along, section.keys.at
    if isinstance(path, str):
        place = section.place.at("along")
        where = _numbers(path, pick("data", section), place)
        path = sorted(where, key=where.__getitem__)
        for one, other in pairwise(path):
            if where[one] == where[other]:
                place.refuse(f"{keys.along!r} is the same at {one!r} and {other!r}; list the nodes in their order")
    if isinstance(at, str):
        place = section.place.at("at")
        where = _numbers(at, pick("data", section), place)
        at = [_at_node(where, node, keys.at, place) for node in path]
    return w.at(features=keys.features).along(path, keys.order, at)


def _numbers(name: str, samples: Any, place: Place) -> dict[str, float]:
    """A column of numbers, or of dates in days, by node."""
    import pandas as pd

    by_node = samples.by_node(name, place)
    values = pd.Series(by_node)
    try:
        numbers: Any = pd.to_numeric(values)
    except (ValueError, TypeError):
        try:
            numbers = pd.to_datetime(values, format="ISO8601")
            numbers = (numbers - numbers.min()) / pd.Timedelta(days=1)
        except (ValueError, TypeError):
            place.refuse(
                f"the column {name!r} of {samples.file} holds neither numbers nor dates; list the nodes", DataError
            )
    return dict(zip(by_node, numbers.astype(float).tolist(), strict=True))


READ: dict[str, Callable[[FileTable, Pick], AbstractRows]] = {"at": _at, "across": _across, "along": _along}


# ---- from tables of their own ----------------------------------------------------------------------------------------
def _arrows(section: FileTable, folders: Folders) -> tuple[AbstractRows, Column]:
    """Arrows from the first column of a table to its second."""
    import networkx as nx

    keys, place = section.keys, section.place.at("across")
    frame, file = folders.read(keys.across, place, leading=2)
    if len(frame.columns) < 2:
        place.refuse(f"{file} has one column; a table of arrows has two columns of labels, from and to", DataError)
    first, second = (label_list(frame, str(name), file, place) for name in frame.columns[:2])
    arrows = list(zip(first, second, strict=True))
    _refuse_twice(frame, list(frame.columns[:2]), file, place)

    def column(name: str, key: str) -> dict[Any, Any]:
        return dict(zip(arrows, values_of(frame, name, file, section.place.at(key)), strict=True))

    return w.at(features=keys.features).across(nx.DiGraph(arrows), keys.order), column


def _entries(section: FileTable, folders: Folders) -> tuple[AbstractRows, Column]:
    """Rows by their entries, a coefficient for each row, node and feature, and part where rows have several numbers."""
    import pandas as pd

    place = section.place.at("file")
    frame, file = folders.read(section.keys.file, place, ("row", "node", "feature"))
    check_columns(frame, ENTRIES, file, place)
    named = [name for name in ("row", "part", "node", "feature") if name in frame]
    _refuse_twice(frame, named, file, place)
    code, labels = dict[str, Any](), dict[str, list[Any]]()
    for name in named:
        code[name], found = pd.factorize(pd.Series(values_of(frame, name, file, place)), sort=name == "part")
        labels[name] = found.tolist()
    rows, nodes, features, part = labels["row"], labels["node"], labels.get("feature"), code.get("part", 0)
    row, m, k = code["row"], len(rows), len(labels.get("part", "1"))
    line, entry = row * k + part, code["node"] * len(features or "1") + code.get("feature", 0)
    if frame["coefficient"].dtype.kind not in "iuf":
        place.refuse(f"the column 'coefficient' of {file} holds text; coefficients are numbers", DataError)
    entries = frame["coefficient"].to_numpy(), (line, entry)
    K = sp.csr_array(entries, shape=(m * k, len(nodes) * len(features or "1")))

    def column(name: str, key: str) -> Any:
        at = section.place.at(key)
        values = np.array(values_of(frame, name, file, at))
        where = (row, part) if key == "offset" else (row, 0)  # an offset for each part
        table = np.zeros((m, k), dtype=values.dtype)
        table[where] = values
        odd = np.flatnonzero(table[where] != values)
        if len(odd):
            what = f"two values in the row {rows[row[odd[0]]]!r}"
            at.refuse(f"the column {name!r} of {file} has {what}; repeat the same", DataError)
        return table if key == "offset" else table[:, 0].tolist()

    return Rows(K, k, nodes, features, rows), column


def _refuse_twice(frame: pd.DataFrame, names: list[str], file: str, place: Place) -> None:
    again = frame.loc[frame.duplicated(names), names]
    if len(again):
        place.refuse(f"{file} has {', '.join(map(repr, again.iloc[0]))} twice; give each once", DataError)
