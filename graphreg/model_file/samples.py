"""[data]: the table of samples that losses draw on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..escaping import visible
from ..inputs import NodeData
from .columns import Standardised, derive, keep, names_in, standardise
from .place import Place, listed
from .schema import DataKeys
from .tables import Folders, check_columns, label_list

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SampleTable:
    """The rows of one table, as a model file describes them.

    Attributes
    ----------
    name : str or None
        The ``name`` of the table in the model file.
    file : str
    frame : DataFrame
        The rows that are kept, with the derived columns, and standardised where that is asked for.
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
            )

    @property
    def label_columns(self) -> list[str]:
        """The columns of labels that every row needs."""
        return [self.keys.node]

    def prepared(self, frame: pd.DataFrame, file: str, standardised: bool = True) -> pd.DataFrame:
        """Other rows, as these are: with those derived columns that the predictors need, and standardised, if asked."""
        keys, place = self.keys, Place("rows")
        needed = {*self.features, *([keys.offset] if keys.offset else [])}
        wanted: dict[str, str] = {}
        for name, formula in reversed((keys.derive or {}).items()):
            if name in needed:
                wanted[name] = formula
                needed |= names_in(formula)
        frame = derive(frame, dict(reversed(wanted.items())), place.at("derive"))
        check_columns(frame, [*self.features, *([keys.offset] if keys.offset else [])], file, place)
        if self.standardised is None or not standardised:
            return frame
        center, scale = self.standardised.center, self.standardised.scale
        return frame.assign(**{name: (frame[name] - center[name]) / scale[name] for name in center})

    def by_node(self, column: str, place: Place) -> dict[str, str]:
        """The value of a column of labels at each node, where it must be the same in all rows."""
        check_columns(self.frame, [column], self.file, place)
        values = label_list(self.frame, column, self.file, place)
        found: dict[str, str] = {}
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
            text += f", {len(self.features)} features" + (" and an intercept" if self.keys.intercept else "")
        if self.standardised is not None:
            count = len(self.standardised.center)
            every = "the features are" if count == len(self.features) else f"{count} features are"
            text += f"\n  {every} standardised: coefficients are per standard deviation, at the mean of all rows"
        return text


def read_samples(keys: DataKeys, place: Place, folders: Folders, label_columns: Sequence[str]) -> SampleTable:
    """The samples that [data] describes.

    ``label_columns`` are columns of labels beside the nodes (clusters), which are read as text.
    """
    at = place.at("file")
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
    features = _features(keys, frame, file, place, label_columns)
    standard = None
    if keys.standardise is not False and folders.sites is not None:
        place.at("standardise").refuse("means and deviations need the samples of all sites; standardise beforehand")
    if keys.standardise is not False:
        frame, standard = _standardise(keys, frame, features, place)
    return SampleTable(keys.name, file, frame, rows, features, standard, keys, place)


def _named(keys: DataKeys) -> Iterable[tuple[str, list[str]]]:
    """The keys that name columns, with the names."""
    for key in ("target", "features", "exclude", "weights", "offset", "standardise"):
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
    text = [name for name in names if frame[name].dtype.kind not in "biuf"]
    if text:
        shown = ", ".join(map(repr, text[:6])) + (f" and {len(text) - 6} more" if len(text) > 6 else "")
        remedy = "list them in exclude" if others else "leave them out, or code them as numbers"
        if text[0] in label_columns:
            remedy = "columns of clusters are read as text; for a feature, repeat the column under another name"
        which = "is" if len(text) == 1 else "are"
        place.at("features").refuse(f"{shown} of {file} {which} not numeric; {remedy}", DataError)
    if not names:
        place.at("features").refuse("no column is left; leave the key out for a model without features")
    return tuple(names)


def _standardise(
    keys: DataKeys, frame: pd.DataFrame, features: tuple[str, ...], place: Place
) -> tuple[pd.DataFrame, Standardised]:
    here = place.at("standardise")
    names = list(features) if keys.standardise is True else list(keys.standardise or ())
    for name in names:
        if name not in features:
            here.refuse(f"{name!r} is not among the features")
    if not names:
        here.refuse("there are no features to standardise")
    return standardise(frame, names, here)
