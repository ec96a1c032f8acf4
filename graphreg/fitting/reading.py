"""Tables as people have them: read, complained of all at once, missing cells handled by a rule, categories found."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..base.display import Brief
from ..base.messages import did_you_mean, few, near, shown
from ..errors import DataError, GraphError, ModelError
from ..inputs import Graph, as_narwhals, is_frame, is_missing, names_of, parts_of, plain_label

if TYPE_CHECKING:
    import pandas as pd

    from ..terms import Array

NAMELESS = "Unnamed: 0"  # as pandas reads the numbers of rows that it writes before the columns
NUMBERS = "the first column has no name: it was taken for the numbers of rows, and left out"
MISSING = [
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "NaN",
    "nan",
    "null",
    "NULL",
    "None",
    "<NA>",
]  # cells of files, beside labels
WORDS = {"missing": ("error", "drop", "mean"), "ids": ("exact", "text", "strip"), "repeated": ("error", "sum")}
LEVELS = 30  # of a column of text: with more it is rather a name of each row
MOST = 12  # complaints that are listed; the others are counted
DATE = r"\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d{4}.*"  # as 2024-01-31 or 31.01.2024
SIGNS = "$€£¥%"  # that stand with numbers and make them text
UNFITTED = "at nodes without a model: give the graph the node with its edges (without rows it follows its neighbours)"
POOLED = f'{UNFITTED}, or say unseen="pooled", the one model for all nodes'
NUMERIC = 0.5  # share of the cells of a column of text that are numbers: then the others are mistakes


@dataclass(frozen=True)
class UsedRows(Brief):
    """The rows of a table that a fit can use, and what was done to get there.

    Attributes
    ----------
    frame : DataFrame
        Without gaps; its index counts the rows of the source.
    node, target, weights : str
        Names of columns; ``weights`` may be None.
    numbers, categories : tuple of str
        The features.
    fill : dict
        What a missing cell of a feature becomes, under the rule "mean".
    ids : str
        How nodes are compared: "exact", as "text", or as text without spaces at its ends, "strip".
    classes : tuple
        The two values of a target of text, of which the second is coded as 1; empty otherwise.
    remarks : tuple of str
        One sentence for each thing that was done.
    count : int
        The number of rows of the source.
    label : tuple
        What the rows of the source have in the column that says their folds; empty where none does.
    """

    frame: pd.DataFrame = field(repr=False)
    node: Hashable
    target: Hashable
    weights: Hashable | None
    numbers: tuple[Hashable, ...]
    categories: tuple[Hashable, ...]
    fill: dict[Hashable, Any]
    ids: str
    remarks: tuple[str, ...]
    classes: tuple[Any, ...] = ()
    count: int = 0
    label: tuple[Any, ...] = field(default=(), repr=False)

    def folds(self, given: Any) -> Any:
        """Folds of these rows, where ``given`` are the folds of all rows of the source: labels, pairs (train, test),
        or the name of a column; numbers of folds and splitters are of any rows."""
        given = self.label or given
        if checks.is_whole(given) or isinstance(given, str) or callable(getattr(given, "split", None)):
            return given
        given, place, kept = list(given), np.full(self.count, -1), self.frame.index.to_numpy()
        place[kept] = np.arange(len(kept))
        if all(isinstance(each, (tuple, list)) and len(each) == 2 for each in given):
            return [tuple(self._places(rows, place, k) for rows in pair) for k, pair in enumerate(given)]
        if len(given) != self.count:
            raise ModelError(f"there are {len(given):,} fold labels and {self.count:,} rows; give one label per row")
        return [given[k] for k in kept]

    def _places(self, rows: Any, place: Array, k: int) -> Any:
        """The places among these rows of those that a fold names, by position or mask."""
        found = place[checks.positions(rows, self.count, f"the rows of fold {k}")]
        left = found[found >= 0]
        if not left.size:
            raise ModelError(f"fold {k} names rows that were all left out, for missing cells; leave it out")
        return left

    def rows_like(self, frame: Any) -> tuple[pd.DataFrame, str]:
        """Other rows with these columns (the target is not needed) and with the index that they have, filled by the
        same rule; and how many cells that were, by column."""
        rows = opened(frame, self.node, self.ids)[0]
        for c in rows.columns.intersection(list(self.numbers)):
            values, wrong = _as_numbers(rows[c])
            rows[c] = rows[c] if wrong.size else values
        rows.index = frame.index if is_frame(frame) else rows.index
        return rows.fillna({c: value for c, value in self.fill.items() if c in rows}), _gaps(rows, self.fill)


@dataclass(frozen=True)
class Asked:
    """What is asked of a table and its edges: the columns, where all others are features if none are named, and the
    rules by which both are read; see `fit`."""

    node: Hashable
    target: Hashable
    features: Sequence[Hashable] | None
    weights: Hashable | None
    folds: Any  # a column where it is text, and then no feature unless it is named as one
    missing: str
    ids: str
    repeated: str
    edge_weight: Hashable | None
    loss: Any = None

    def __post_init__(self) -> None:
        for name, known in WORDS.items():
            checks.one_of(*known)(getattr(self, name), name)


def read(table: Any, named: Asked) -> UsedRows:
    """The usable rows of a file or a frame; `DataError` with all complaints at once where there are any."""
    node, target, weights, ids = named.node, named.target, named.weights, named.ids
    given, name, first = opened(table, node, "exact")
    frame = _with_text(given, node, ids)
    asked, chosen = _chosen(frame, name, named)
    remarks = _of_labels(given[node], frame[node], name)
    complaints, numbers, categories = list[str](), list[Hashable](), list[Hashable]()
    label = tuple(frame[named.folds]) if isinstance(named.folds, str) else ()
    remarks += [NUMBERS] * (NAMELESS in frame and NAMELESS not in chosen)
    remarks += [f"{named.folds!r} says the folds, and is no feature"] * (bool(label) and named.folds not in chosen)
    frame: Any = frame[[*asked, *chosen]].copy()
    gaps, wrong = frame.isna(), list[Hashable]()
    for c in chosen:
        said, kind = _kind(frame, c, first)
        complaints += said
        if kind == "constant":
            what = "is the same" if frame[c].notna().any() else "is missing"
            remarks.append(f"the feature {c!r} {what} in all rows, and was left out")
        else:
            (wrong if said else numbers if kind == "number" else categories).append(c)
    complaints += _of_target(frame, named, first)
    if copies := int(frame.duplicated().sum()) if numbers and not complaints else 0:
        remarks.append(f"{copies:,} of {len(frame):,} rows are copies of others, and were kept")
    within: Any = frame.groupby(node)[[*numbers, *categories]].nunique(dropna=False).max()
    if frame[node].nunique() < len(frame) and (same := within.index[within < 2].tolist()):
        what = "the same in all rows of each node, so that neighbours alone tell them from the intercept"
        remarks.append(f"{what}: {few(map(repr, same))}")
    used = UsedRows(
        frame, node, target, weights, tuple(numbers), tuple(categories), {}, ids, tuple(remarks), (), len(frame), label
    )
    gaps = gaps[[*asked, *numbers, *categories, *wrong]]
    complaints += _of_gaps(gaps, asked, first) if named.missing == "error" else []
    used = _without_gaps(replace(used, frame=frame[[*asked, *numbers, *categories]]), named.missing)
    if complaints:
        more = [f"... and {len(complaints) - MOST} more"] if len(complaints) > MOST else []
        raise DataError("\n  ".join([f"{name} cannot be used as it is:", *complaints[:MOST], *more]))
    if not len(used.frame):
        raise DataError(f"no row of {name} is left")
    return used if used.frame[target].dtype.kind in "biuf" else coded(used)


def _chosen(frame: Any, name: str, named: Asked) -> tuple[list[Hashable], list[Hashable]]:
    """The columns of nodes, targets and weights, and those of the features."""
    asked = [named.node, named.target, *([] if named.weights is None else [named.weights])]
    apart = [named.folds] if isinstance(named.folds, str) else []
    others = [c for c in frame.columns if c not in (*asked, *apart, NAMELESS)]
    chosen = others if named.features is None else list(names_of(named.features))
    if unknown := [c for c in (*asked, *chosen, *apart) if c not in frame.columns]:
        raise DataError(f"{name} has no column {unknown[0]!r}; {near(str(unknown[0]), list(map(str, frame.columns)))}")
    if twice := [c for names in (asked, chosen) for k, c in enumerate(names) if c in names[:k]]:
        raise DataError(f"the column {twice[0]!r} is named twice; node, target, weights and features are columns apart")
    if both := [c for c in chosen if c in asked]:
        raise DataError(f"the column {both[0]!r} is a feature and also node, target or weights; leave it out of one")
    return asked, chosen


def unreached(seen: Iterable[Hashable], graph: Graph) -> set[Hashable]:
    """The nodes of a graph that no edges join to one with rows; ``seen`` are those with rows."""
    part = dict(zip(graph.labels, graph.components().tolist(), strict=True))
    reached = {part.get(label) for label in seen}
    return {label for label, k in part.items() if k not in reached}


def checked_rows(
    table: UsedRows,
    given: Any,
    known: Collection[Hashable] | None,
    lost: Collection[Hashable] = (),
    lines: Callable[[], Sequence[int]] | None = None,
    remedy: str = POOLED,
) -> pd.DataFrame:
    """Rows of a frame or a file that are to be predicted, text of numbers as numbers; or a `DataError` with all that is
    wrong with them, each named by its line in a file, or by its label. ``known`` are the nodes, None where rows may be
    at any, and at ``lost`` ones nothing was fitted. ``lines`` are those of the rows of a frame that is of a file."""
    rows, complaints, unfitted = table.rows_like(given)[0], list[str](), False
    if isinstance(given, (str, Path)) and (begin := opened(given, None, "exact")[2]) is not None:
        lines = begin.tolist
    for c in (table.node, *table.numbers, *table.categories):
        if c not in rows.columns:
            complaints.append(f"there is no column {c!r}; {near(str(c), list(map(str, rows.columns)))}")
            continue
        cells, gaps = rows[c].tolist(), rows[c].isna().to_numpy()
        for what, mask in {"is missing": gaps, **_wrong(table, rows, c, known, lost)}.items():
            places = np.flatnonzero(mask if what == "is missing" else np.asarray(mask, dtype=bool) & ~gaps)
            if places.size:
                labels = rows.index if lines is None else lines()
                names = [repr(plain_label(labels[k])) for k in places.tolist()]
                where = f"{'row' if lines is None else 'line'}{'s' * (len(names) > 1)} {few(names, 4)}"
                there = list(dict.fromkeys(cells[k] for k in places))
                said = "" if what in ("is missing", "is infinite") else f": {few(map(repr, there), 4)}"
                hint = did_you_mean(there[0], known or ()) if what == "is no node" else ""
                complaints.append(f"{c!r} {what} in {where}{said}{hint}")
                unfitted = unfitted or (c == table.node and what != "is missing")
    if complaints:
        complaints += [remedy] if unfitted else []
        raise DataError("\n  ".join(["not all rows can be predicted; correct these or leave them out:", *complaints]))
    return rows


def _wrong(table: UsedRows, rows: Any, c: Hashable, known: Any, lost: Collection[Hashable]) -> dict[str, Any]:
    """What may be wrong with the cells of a column of rows that are to be predicted, as masks; numbers become such."""
    import pandas as pd

    cells = rows[c].tolist()
    if c == table.node:
        if known is None:
            return {}
        unknown, apart = [x not in known for x in cells], [x in lost for x in cells]
        return {"is no node": unknown, "is joined to no node with rows": apart}
    if c in table.categories:
        levels = set(table.frame[c].tolist())
        return {f"is none of the categories {few(sorted(map(repr, levels)))}": [x not in levels for x in cells]}
    values: Any = pd.to_numeric(rows[c], errors="coerce")
    rows[c] = values
    infinite = np.isinf(values.to_numpy(float, na_value=np.nan))
    return {"is no number": values.isna().to_numpy(), "is infinite": infinite}


def coded(table: UsedRows) -> UsedRows:
    """The table with a target of two values as 0 and 1; -1 and 1 stay."""
    y: Any = table.frame[table.target]
    if y.nunique() != 2 or set(y.unique()) in ({0, 1}, {-1, 1}):
        return table
    first, second = sorted(y.unique().tolist(), key=str)
    frame = table.frame.assign(**{str(table.target): (y == second).astype(int)})
    said = f"{table.target!r} is coded 1 for {second!r} and 0 for {first!r}"
    return replace(table, frame=frame, classes=(first, second), remarks=(*table.remarks, said))


def _of_gaps(gaps: Any, asked: Collection[Hashable], first: Array | None) -> list[str]:
    """What is to be said of missing cells, column by column."""
    both = dict.fromkeys(asked, ": both leave these rows out")
    return [
        f"{c!r} is missing in {_lines(np.flatnonzero(gaps[c].to_numpy()), first)}; "
        f'use missing="drop" or missing="mean"{both.get(c, "")}'
        for c in gaps.columns[gaps.any()]
    ]


def _without_gaps(table: UsedRows, rule: str) -> UsedRows:
    """The table without missing cells, by a rule."""
    frame, remarks, fill = table.frame, list(table.remarks), dict[Hashable, Any]()
    if rule == "mean":
        fill = {c: frame[c].mean() for c in table.numbers}
        fill |= {c: frame[c].mode().iloc[0] for c in table.categories}
        if said := _gaps(frame, fill):
            remarks.append(f"missing cells were filled with the mean, or the commonest category: {said}")
        frame = frame.fillna(fill)
    gaps = frame.isna()
    empty = gaps.any(axis=1).to_numpy()
    if empty.any():
        without = few([repr(c) for c in gaps.columns[gaps.any()]])
        remarks.append(f"left out: {int(empty.sum()):,} of {len(frame):,} rows, for missing cells of {without}")
        frame = frame[~empty]
    return replace(table, frame=frame, fill=fill, remarks=tuple(remarks))


def _gaps(frame: Any, fill: dict[Hashable, Any]) -> str:
    counts: Any = frame[frame.columns.intersection(list(fill))].isna().sum()
    return ", ".join(f"{count:,} of {c!r}" for c, count in counts[counts > 0].items())


def opened(table: Any, node: Hashable, ids: str) -> tuple[pd.DataFrame, str, Array | None]:
    """A frame of pandas, its name, and the line on which each row begins (None where it is no text). Nodes of a file
    are text; those of a frame where that is asked for."""
    import pandas as pd

    if isinstance(table, (str, Path)):
        path = Path(table)
        if not path.is_file():
            raise DataError(f"there is no file {shown(str(path))}")
        separator = "\t" if ".tsv" in path.suffixes else ","
        kinds: Any = str if node is None else {node: str}
        try:
            if path.suffix in (".parquet", ".pq"):
                frame = pd.read_parquet(path)
            else:
                how: Any = {"sep": separator, "encoding": "utf-8-sig"}
                names = list(pd.read_csv(path, nrows=0, **how).columns)
                labels = names[:2] if node is None else [node]  # in which NA is a label
                gaps: Any = {c: [""] if c in labels else MISSING for c in names}
                how |= {"dtype": kinds, "keep_default_na": False, "na_values": gaps, "skip_blank_lines": False}
                frame = pd.read_csv(path, **how)
        except (ValueError, ImportError) as error:
            raise DataError(f"{path.name} cannot be read: {error}; save it with commas, as UTF-8") from error
        first = None if path.suffix in (".parquet", ".pq") else _first_lines(frame)
        if len(frame.columns) == 1 and (other := re.search("[;\t]", str(frame.columns[0]))):
            raise DataError(f"{path.name} has {other[0]!r} between its cells: save it with commas, as UTF-8")
        return _with_text(frame, node, "text" if ids == "exact" else ids), path.name, first
    found = as_narwhals(table, "DataFrame")
    if found is None:
        raise DataError(
            f"a table is a frame of pandas, polars or pyarrow, or the path of a file, got {type(table).__name__}"
        )
    frame = table if is_frame(table) else found.to_pandas()
    return _with_text(frame.reset_index(drop=True), node, ids), "the table", None


def _first_lines(frame: Any) -> Array:
    """The line on which each row of a file of text begins, under its names; a quoted cell may have several lines."""
    text = [column for _, column in frame.items() if column.dtype.kind not in "biuf"]
    breaks = sum((c.astype(str).str.count("\n").fillna(0).to_numpy(int) for c in text), np.zeros(len(frame), dtype=int))
    names = "".join(map(str, frame.columns)).count("\n")
    return 2 + names + np.arange(len(frame)) + np.cumsum(breaks) - breaks


def _with_text(frame: pd.DataFrame, node: Hashable, ids: str) -> pd.DataFrame:
    """The frame with the labels of its nodes as text, unless they are taken as they are."""
    if ids == "exact" or node not in frame.columns:
        return frame
    return frame.assign(**{str(node): as_text(frame[node], ids == "strip")})


def _kind(frame: Any, name: Hashable, first: Array | None) -> tuple[list[str], str]:
    """What is wrong with a feature, and what it is: "number", "category" or "constant". Text that is nearly all
    numbers becomes numbers, its other cells are complained of."""
    import pandas as pd

    column: Any = frame[name]
    if pd.api.types.is_bool_dtype(column):
        column = frame[name] = column.astype(float)
    texts = column.dropna().astype(str)
    if pd.api.types.is_datetime64_any_dtype(column) or (len(texts) and texts.str.fullmatch(DATE).all()):
        return [
            f"{name!r} holds dates, which are no numbers: code them first, as months "
            f"(pd.to_datetime(frame[{name!r}]).dt.month, with dayfirst=True where days come before months) or days "
            "(... - start).dt.days, or leave the column "
            "out, with features=[...]"
        ], ""
    values, wrong = _as_numbers(column)
    if pd.api.types.is_numeric_dtype(column) or (
        not isinstance(column.dtype, pd.CategoricalDtype) and len(wrong) < NUMERIC * column.notna().sum()
    ):
        frame[name] = values
        infinite = np.flatnonzero(np.isinf(values))
        said = [f"{name!r} is infinite in {_lines(infinite, first)}"] if infinite.size else []
        if wrong.size:
            cells = ", ".join(repr(cell) for cell in dict.fromkeys(column.iloc[wrong[:3]]))
            said.append(f"{name!r} holds numbers, but {_lines(wrong, first)} {cells}: write numbers, or empty cells")
        return said, "constant" if values.nunique() < 2 else "number"
    if not isinstance(column.dtype, pd.CategoricalDtype) and (said := signed(column)):
        return [f"{name!r} holds {said}"], ""
    count = column.nunique()
    if count > max(LEVELS, len(frame) / 10) or count > max(2, len(frame) / 2):
        return [
            f"{name!r} holds text with {count:,} different values ({column.iloc[0]!r}, ...), which looks like a name "
            "of each row: leave the column out, with features=[...]"
        ], ""
    return _alike(column), "constant" if count < 2 else "category"


def _alike(column: Any) -> list[str]:
    """What is to be said of texts that are meant to be the same."""
    texts = sorted({str(x) for x in column.dropna()}, key=lambda x: (x.strip().casefold(), x))
    pairs = [f"{a!r} and {b!r}" for a, b in pairwise(texts) if a.strip().casefold() == b.strip().casefold()]
    said = f"{column.name!r} has categories that differ by spaces or by case only: {few(pairs, 3)}; write them alike"
    return [said] * bool(pairs)


def _of_target(frame: Any, named: Asked, first: Array | None) -> list[str]:
    """What is wrong with target and weights. Text of more values than classes have is numbers, where most are."""
    y = frame[named.target]
    text = y.dtype.kind not in "biufM"
    said = _alike(y) if text else []
    many = text and named.loss is None and y.nunique() > max(2, y.count() / 3)
    if y.dtype.kind == "f" or (many and (len(_as_numbers(y)[1]) < NUMERIC * len(y) or signed(y))):
        said += _kind(frame, named.target, first)[0]
    if named.weights is not None:
        said += _kind(frame, named.weights, first)[0]
        if (low := np.flatnonzero(_as_numbers(frame[named.weights])[0] <= 0)).size:
            said.append(f"{named.weights!r} is not positive in {_lines(low, first)}; mend that, or leave the rows out")
    return said


def _as_numbers(column: Any) -> tuple[Any, Array]:
    """The cells as numbers, NaN where none is; and which of them are something else."""
    import pandas as pd

    values: Any = pd.to_numeric(column, errors="coerce")
    wrong = np.flatnonzero((values.isna() & column.notna()).to_numpy())
    # Integers stay what they are, but those that pandas keeps with a mask take no mean in their gaps.
    plain = isinstance(values.dtype, np.dtype)
    return values if plain else pd.Series(values.to_numpy(float, na_value=np.nan), column.index), wrong


def signed(column: Any) -> str:
    """What is to be said of text that is numbers with signs, as '$282,600' or '93.4%', or with decimal commas, but for
    a few cells; empty where it is not."""
    import pandas as pd

    texts = column.dropna().astype(str)
    decimal = (texts.str.fullmatch(r"-?\d+,\d+") & ~texts.str.fullmatch(r"-?\d{1,3},\d{3}")).any()
    signs = rf"[{SIGNS}]|,(?=\d{{3}}\b)"  # no comma of decimals, as in 12,5
    plain: Any = texts.str.replace(*(",", ".") if decimal else (signs, ""), regex=not decimal)
    values: Any = pd.to_numeric(plain, errors="coerce")
    found = "".join(sign for sign in f"{SIGNS}," if texts.str.contains(sign, regex=False).any())
    odd = list(dict.fromkeys(texts[values.isna()]))
    if not found or values.isna().sum() >= NUMERIC * len(texts):
        return ""
    beside = f", beside {few(map(repr, odd), 3)}: make that a number or an empty cell, and" if odd else ":"
    what, do = ("decimal commas", "write points") if decimal else ("signs", "strip them")
    old, new = (",", ".") if decimal else (f"[{found}]", "")
    return (
        f"numbers with {what} ({texts.iloc[0]!r}, ...){beside} {do}, e.g. "
        f"frame[{column.name!r}].str.replace({old!r}, {new!r}, regex={not decimal}).astype(float)"
    )


def _lines(rows: Array, first: Array | None) -> str:
    """Where rows are: on which lines of a file they begin, or rows counted from 0."""
    places = (rows if first is None else first[rows]).tolist()
    what = "row" if first is None else "line"
    return f"{what}{'s' * (len(places) > 1)} {few(places, 4)}"


def as_text(labels: Iterable[Any], strip: bool) -> list[Any]:
    """Labels as text, 101.0 as "101", without spaces at their ends where that is asked for; those that are missing as
    they are."""
    plain = [plain_label(label) for label in labels]
    whole = [int(x) if isinstance(x, float) and x.is_integer() else x for x in plain]
    return [x if is_missing(x) else str(x).strip() if strip else str(x) for x in whole]


# ---- the graph -------------------------------------------------------------------------------------------------------
def graph_of(given: Any, ids: str, repeated: str, weight: Hashable | None) -> tuple[Graph, list[str]]:
    """The graph of a file of edges, or of whatever `Graph.of` takes; and what is to be said of it."""
    if isinstance(given, (str, Path)):
        return _of_file(Path(given), repeated, weight)
    graph = made = Graph.of(given, repeated, weight)
    listed = graph.n_edges if isinstance(given, Graph) or repeated == "error" else len(parts_of(given, weight)[1])
    if ids != "exact":
        labels = as_text(graph.labels, ids == "strip")
        pairs = [(labels[i], labels[j]) for i, j in zip(graph.tail.tolist(), graph.head.tolist(), strict=True)]
        made = Graph.from_edges(pairs, graph.weight, dict.fromkeys(labels), repeated)
    return made, [*_of_labels(graph.labels, made.labels, "the graph"), *_of_sums(listed, made)]


def _of_labels(given: Iterable[Any], taken: Iterable[Any], where: str) -> list[str]:
    """What is to be said of labels that were changed, so that those of the table and the graph can be compared."""
    changed = [x for x, y in dict(zip(given, taken, strict=False)).items() if isinstance(y, str) and x != y]
    spaces, others = ([repr(x) for x in changed if isinstance(x, str) is is_text] for is_text in (True, False))
    said = {"lost spaces at their ends": spaces, "were made text": others}
    return [f"{len(which):,} of the labels of {where} {what}: {few(which)}" for what, which in said.items() if which]


def _of_sums(listed: int, graph: Graph) -> list[str]:
    """What is to be said of edges that were listed several times."""
    more = listed - graph.n_edges
    return [f"{more:,} of {listed:,} edges repeat others, and their weights were summed"] * bool(more)


def _of_file(path: Path, repeated: str, weight: Hashable | None) -> tuple[Graph, list[str]]:
    import pandas as pd

    frame, _, place = opened(path, None, "exact")
    if len(frame) > 1 and (names := as_text(frame.columns[1:], True)) == as_text(frame.iloc[:, 0], True):
        cells = frame.iloc[:, 1:].apply(pd.to_numeric, errors="coerce")  # what is no number is refused there
        return Graph.of(cells.set_axis(names).set_axis(names, axis=1)), [f"{path.name} is read as an adjacency"]
    if not len(frame):
        raise DataError(f"{path.name} has no rows below its header: there is no edge; give each edge a row")
    return _of_edges(path, frame, place, repeated, weight)


def _of_edges(path: Path, frame: Any, place: Any, repeated: str, weight: Hashable | None) -> tuple[Graph, list[str]]:
    import pandas as pd

    ends = list(frame.columns[:2])
    if weight is None and "weight" in frame.columns[2:]:
        weight = "weight"
    if weight is not None and weight not in (others := frame.columns[2:].tolist()) and others:
        raise DataError(f"{path.name} has no column {weight!r} for edge_weight=; {near(str(weight), others)}")
    if len(ends) < 2 or (weight is not None and weight not in frame.columns[2:]):
        said = ", ".join(map(repr, frame.columns[:8]))
        raise DataError(
            f"{path.name} has the columns {said}; a file of edges has the labels of their ends in the first two, and "
            'perhaps their weights in one called "weight", or named by edge_weight='
        )
    values: Any = pd.Series(1.0, frame.index) if weight is None else pd.to_numeric(frame[weight], errors="coerce")
    bad = (frame[ends].isna().any(axis=1) | values.isna()).to_numpy()
    complaints = list[str]()
    if bad.any():
        remedy = "; a node without edges needs no line: leave it out" if frame[ends].isna().to_numpy().any() else ""
        lines = _lines(np.flatnonzero(bad), place)
        complaints.append(f"{path.name} has a missing end, or a weight that is no number, in {lines}{remedy}")
    given = [label for end in ends for label in frame[end][~bad]]
    taken = as_text(given, True)
    pairs = list(zip(taken[: len(taken) // 2], taken[len(taken) // 2 :], strict=True))
    if {str(end).strip() for end in ends} & {label for pair in pairs for label in pair}:
        raise DataError(
            f"the first line of {path.name}, {ends[0]!r}, {ends[1]!r}, names a node of the lines below it: begin with "
            "the names of the columns, from,to say, or its edge would be lost"
        )
    complaints += _of_pairs(path, pairs, values.to_numpy()[~bad], np.flatnonzero(~bad), place, repeated)
    if complaints:
        raise (DataError if bad.any() else GraphError)("\n".join(complaints))
    unused = ", ".join(repr(name) for name in frame.columns[2:] if name != weight)
    remarks = [f"{path.name}: {unused} not used; edge_weight= takes a column for weights"] if unused else []
    graph = Graph.from_edges(pairs, values.to_numpy(), repeated=repeated)
    return graph, [*remarks, *_of_labels(given, taken, path.name), *_of_sums(len(pairs), graph)]


def _of_pairs(path: Path, pairs: Any, weights: Array, rows: Array, place: Any, repeated: str) -> list[str]:
    """What is wrong with edges that can be read, and where."""
    import pandas as pd

    again = pd.Series([(min(pair), max(pair)) for pair in pairs], dtype=object).duplicated().to_numpy()
    wrong = {
        "joins nodes with themselves in {}; leave these edges out": np.array([a == b for a, b in pairs], dtype=bool),
        "has weights that are not positive and finite in {}": ~((weights > 0.0) & (weights < np.inf)),
        'has edges that stand several times, again in {}; use repeated="sum"': again & (repeated == "error"),
    }
    return [f"{path.name} {said.format(_lines(rows[bad], place))}" for said, bad in wrong.items() if bad.any()]
