"""Files of tables: CSV (also gzipped) and Parquet, with the columns of labels read as text."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.messages import near, shown
from ..errors import DataError, GraphregError
from ..fitting import MISSING
from .schema import Place, text_of

if TYPE_CHECKING:
    import pandas as pd

SITE = "{site}"
CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")


@dataclass(frozen=True)
class Folders:
    """The files that a model file may touch: paths begin at ``data`` for tables, at ``model`` for all else, and stay
    below unless ``outside``; modules that it names are run where ``code``. A table whose path has ``{site}`` is one of
    each of the ``sites``, by default of all whose files are there."""

    model: Path
    data: Path
    outside: bool = False
    code: bool = False
    sites: tuple[str, ...] | None = None

    @property
    def modules(self) -> list[Path] | None:
        """The folders in which modules are looked for first; None where none may be run."""
        return [self.model, Path.cwd()] if self.code else None

    def below(self, base: Path, name: str, place: Place) -> Path:
        """The path that a name means, which must not leave the base unless that is allowed."""
        path = base / name
        try:
            stays = self.outside or path.resolve().is_relative_to(base.resolve())
            path.is_file()  # asked for the errors that it raises
        except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name that is too long, NUL
            place.refuse(f"{shown(name)} is no path: {text_of(error)}")
        if not stays:
            place.refuse(
                f"{shown(name)} leaves the folder {str(base)!r} (by .., as an absolute path, or through a link), which "
                "a model file may do only with --allow-outside (in Python: read_model(..., allow_outside=True))"
            )
        return path

    def table(self, name: str, place: Place) -> Path:
        """The path of a table, which must be there and of a known kind."""
        path = self.below(self.data, name, place)
        if not path.is_file():
            folder = path.parent
            if not folder.is_dir():
                place.refuse(f"there is no folder {folder} for {path.name!r}")
            there = sorted(each.name for each in folder.iterdir() if each.name.endswith((*CSV, *PARQUET)))
            place.refuse(f"there is no file {path.name!r} in {folder}; {near(path.name, there, 'its tables are')}")
        if not path.name.endswith((*CSV, *PARQUET)):
            place.refuse(f"{name!r} is no table; its name must end in {', '.join((*CSV, *PARQUET))}")
        return path

    def sites_of(self, name: str) -> list[str]:
        """The sites that have a file of this name, in order."""
        before, _, after = name.partition(SITE)
        if SITE in after:
            return self.sites_of(before + SITE + after.replace(SITE, "*"))
        pattern = re.compile(re.escape(before) + r"([^/]+)" + re.escape(after).replace(r"\*", "[^/]+"))
        paths = (path.relative_to(self.data).as_posix() for path in self.data.glob(f"{before}*{after}"))
        return sorted({found[1] for found in map(pattern.fullmatch, paths) if found})

    def read(self, name: str, place: Place, labels: Iterable[str] = (), leading: int = 0) -> tuple[pd.DataFrame, str]:
        """A table as a frame, and the name of its file; of all sites one below the other, rows that several have once.

        ``labels`` (and the first ``leading`` columns) are columns of labels: they are read as text, so that 01001 keeps
        its zero and a label NA is a label.
        """
        if SITE in name:
            return self._of_sites(name, place, tuple(labels), leading), name
        path = self.table(name, place)
        parquet = path.name.endswith(PARQUET)
        with place.named():
            try:
                return _parquet(path, place, labels, leading) if parquet else _csv(path, labels, leading), path.name
            except GraphregError:
                raise
            except UnicodeDecodeError:
                raise DataError(
                    f"{path.name} is not in UTF-8; save it again as UTF-8 (in spreadsheets: CSV UTF-8)"
                ) from None
            except (OSError, ValueError, EOFError) as error:  # of pandas: parsing, an empty file
                if not parquet and not path.stat().st_size:
                    raise DataError(f"{path.name} is empty; its first row names the columns") from None
                raise DataError(f"{path.name} cannot be read: {text_of(error)}") from None

    def _of_sites(self, name: str, place: Place, labels: tuple[str, ...], leading: int) -> pd.DataFrame:
        import pandas as pd

        sites = self.sites_of(name) if self.sites is None else self.sites
        if not sites:
            place.refuse(f"no file in {self.data} is called {name!r} with a site in the place of {SITE}")
        frames = [self.read(name.replace(SITE, each), place, labels, leading)[0] for each in sites]
        for name_of, frame in zip(sites, frames, strict=True):
            if list(frame.columns) != list(frames[0].columns):
                place.refuse(
                    f"the file of {name_of!r} has the columns {list(frame.columns)}, and that of {sites[0]!r} has "
                    f"{list(frames[0].columns)}; all sites need the same"
                )
        frame = pd.concat(frames, ignore_index=True)
        if not leading:  # samples, which may be alike
            return frame
        columns = list(frame.columns)
        times = pd.concat([each.groupby(columns, dropna=False).cumcount() for each in frames], ignore_index=True)
        between = frame.assign(**{" times": times}).duplicated()  # edges that several sites have
        return frame.loc[~between].reset_index(drop=True)


def _csv(path: Path, labels: Iterable[str], leading: int) -> pd.DataFrame:
    import pandas as pd

    header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    names = [str(name) for name in header.iloc[0]]
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise DataError(f"{path.name} has one column, {names[0]!r}; separate columns by commas")
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise DataError(f"{path.name} has two columns called {twice[0]!r}; rename one")
    text = {*labels, *names[:leading]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path,
                encoding="utf-8-sig",  # a byte order mark is not part of the first name
                dtype={name: str for name in names if name in text},
                keep_default_na=False,
                na_values={name: MISSING for name in names if name not in text},
                index_col=False,
                low_memory=False,
            )
        except pd.errors.ParserWarning:
            raise DataError(
                f"a row of {path.name} has more cells than the first row has names; write decimals with a "
                "point, and put texts with a comma between quotes"
            ) from None


def lines_of(path: Path) -> list[int]:
    """The line on which each row of a CSV file ends; blank lines, and the first one with the names, are no rows."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        return [rows.line_num for row in rows if len(row) > 1 or "".join(row).strip()][1:]


def _parquet(path: Path, place: Place, labels: Iterable[str], leading: int) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        place.refuse(f"reading {path.name} needs pyarrow, which is not installed: pip install graphreg[parquet]")
    frame.columns = frame.columns.map(str)
    for name in {*labels, *frame.columns[:leading]} & set(frame.columns):
        column = frame[name]
        if column.dtype.kind == "f":
            raise DataError(
                f"{path.name} holds the labels {name!r} as numbers with a decimal point (or with gaps); "
                "store them as text or as whole numbers"
            )
        frame[name] = column.map(str, na_action="ignore").astype(object)
    return frame


def read_table(path: str | Path, what: str, labels: Sequence[str]) -> pd.DataFrame:
    """A table that no model file names, with these columns of labels, all of which must be there and filled in."""
    path = Path(path)
    place = Place(what)
    frame, file = Folders(path.parent, path.parent, outside=True).read(path.name, place, labels)
    check_columns(frame, labels, file, place)
    for name in labels:
        _ = label_list(frame, name, file, place)
    return frame


def check_columns(frame: pd.DataFrame, names: Sequence[str], file: str, place: Place) -> None:
    """Every name must be a column of the frame."""
    for name in names:
        if name not in frame.columns:
            place.refuse(f"{file} has no column {name!r}; {near(name, list(map(str, frame.columns)), 'it has')}")


def label_list(frame: pd.DataFrame, name: str, file: str, place: Place) -> list[str]:
    """The labels of a column; a missing one is refused."""
    return _filled(frame, name, file, place, "label")


def values_of(frame: pd.DataFrame, name: str, file: str, place: Place) -> list[Any]:
    """The numbers or labels of a column, which must be there; a missing one is refused."""
    check_columns(frame, [name], file, place)
    return _filled(frame, name, file, place, "value")


def _filled(frame: pd.DataFrame, name: str, file: str, place: Place, what: str) -> list[Any]:
    column = frame[name]
    empty = column.isna() | (column.astype(str).str.strip() == "")
    if empty.any():
        row = int(empty.to_numpy().argmax())
        place.refuse(f"the column {name!r} of {file} has no {what} in row {row} (from 0); fill it in", DataError)
    return column.tolist()
