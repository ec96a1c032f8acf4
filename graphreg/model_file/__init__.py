"""Model files: a problem, its data and how to solve it, written in TOML. See docs/model-files.md for the keys."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.display import Suggesting
from ..base.escaping import visible
from ..base.messages import near, shown
from ..checks import switch
from ..errors import ModelFileError
from ..inputs import Graph
from ..methods import AbstractMethod
from ..problem import Problem
from ..running import Solution
from .families import imported as imported
from .families import make as make
from .families import make_inline
from .graphs import read_graph
from .samples import SampleTable, read_samples
from .schema import FileTable, Place, listed, read_tables
from .schema import text_of as text_of
from .tables import SITE, Folders
from .tables import read_table as read_table
from .terms import Sources, build_problem, build_terms

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelFile", "SampleTable", "read_model"]

Source = TypeVar("Source")
MEANT = {
    r"=\s*(True|False)\b": "write true and false in small letters",
    r"=\s*\d+,\d+\s*(#|$)": "write decimals with a point",
}  # lines that are no TOML, and what to write instead


@dataclass(frozen=True, repr=False)
class ModelFile(Suggesting):
    """A model file that was read.

    Attributes
    ----------
    path : Path
    content : dict
        The file as parsed.
    problem : Problem
    method : AbstractMethod or None
        That of [solve]; None where it names none.
    options : dict
        The other keys of [solve], as keywords of ``Problem.solve``.
    samples : tuple of Samples
        What was read for each [data].
    graphs : tuple of Graph
        One per [graph].

    Examples
    --------
    >>> file = gr.read_model("model.toml")
    >>> file.problem.solve().status
    'certified'
    """

    path: Path
    content: Mapping[str, Any]
    problem: Problem
    method: AbstractMethod | None
    options: Mapping[str, Any]
    samples: tuple[SampleTable, ...]
    graphs: tuple[Graph, ...]
    folders: Folders = field(repr=False)

    def solve(self, method: AbstractMethod | None = None, **options: Any) -> Solution:
        """Solve the problem as the file says; what is given here comes before that. See `Problem.solve`.

        Returns
        -------
        Solution

        Raises
        ------
        GraphregError
            What `Problem.solve` raises.

        Examples
        --------
        >>> gr.read_model(folder / "model.toml").solve(gap=1e-4).status
        'certified'
        """
        asked = {**self.options, **options}
        if method is not None or self.options.keys() & options.keys():
            return self.problem.solve(method or self.method, **asked)
        with Place(self.path.name, "[solve]").named():
            return self.problem.solve(self.method, **asked)

    @property
    def graphs_by_name(self) -> dict[str | None, Graph]:
        """The graphs by the ``name`` of their table."""
        names = [each.get("name") for each in listed(self.content.get("graph", []))]
        return dict(zip(names, self.graphs, strict=True))

    def rows_like(self, path: str | Path, name: str | None = None) -> pd.DataFrame:
        """The rows of another table as `Solution.predict` takes them: derived columns are computed. All rows are kept,
        and what is wrong with any is told at once, by the lines of the table.

        Parameters
        ----------
        path : path
            CSV or Parquet, with the columns of the data but for the target and the weights.
        name : str, optional
            The ``name`` of the [[data]] that the rows are like, where there are several.

        Returns
        -------
        DataFrame of pandas

        Raises
        ------
        ModelFileError, DataError
            Where the table is not there, or the name is none of them; and with all columns that lack, missing and
            infinite cells, text for numbers, and nodes and categories that the problem does not know.

        Examples
        --------
        >>> file = gr.read_model(folder / "model.toml")
        >>> len(file.solve().predict(file.rows_like(folder / "stations.csv")))
        80
        """
        known = {each.name: each for each in self.samples}
        if name is None and len(known) > 1:
            raise ModelFileError(f"there are several [[data]]; name one of them: {', '.join(map(repr, known))}")
        if name is not None and name not in known:
            raise ModelFileError(f"no [[data]] has the name {name!r}; {near(name, [str(each) for each in known])}")
        samples = next(iter(known.values())) if name is None else known[name]
        return samples.like(Path(path), self.problem.form.space.index)

    def __repr__(self) -> str:
        return f"<ModelFile {visible(self.path.name)!r}: {self.problem!r}>"

    def __str__(self) -> str:
        observed = {label for samples in self.samples for label in samples.labels}
        lines = [str(samples) for samples in self.samples]
        for graph in self.graphs:
            without = sum(label not in observed for label in graph.labels)
            lines.append(f"{graph!r}" + (f"; nodes without data: {without}" if without else ""))
        if self.graphs:
            joined = {graph.labels[i] for graph in self.graphs for i in (*graph.tail.tolist(), *graph.head.tolist())}
            alone = sorted(label for label in observed if label not in joined)
            if alone:
                lines.append(f"nodes with data and without edges: {len(alone)} ({_few(alone)})")
        drawn = observed.union(*(graph.labels for graph in self.graphs))
        rest = [str(label) for label in self.problem.form.observed if label not in drawn]
        if rest:
            lines.append(f"nodes that [rows] alone name: {len(rest)} ({_few(rest)})")
        return "\n".join(lines)


def _few(labels: Sequence[str]) -> str:
    return ", ".join(map(visible, labels[:8])) + (", ..." if len(labels) > 8 else "")


def read_model(
    path: str | Path,
    data: str | Path | None = None,
    *,
    sites: Sequence[str] | None = None,
    allow_code: bool = False,
    allow_outside: bool = False,
) -> ModelFile:
    """Read a model file and the tables that it names.

    Parameters
    ----------
    path : path
        A TOML file; docs/model-files.md lists its keys.
    data : path, optional
        The folder in which the tables lie; by default the folder of the model file.
    sites : sequence of str, optional
        Of which sites tables are read whose path has ``{site}``; by default of all whose files are there.
    allow_code : bool
        Whether modules that the file names (``module:Class``) are run. Without it such a file is refused.
    allow_outside : bool
        Whether paths in the file may leave its folder (tables: that of the data): by ``..``, as absolute paths, or
        through links.

    Returns
    -------
    ModelFile
        ``.problem``, ``.method`` and ``.options``; ``.solve()`` does what the file says.

    Raises
    ------
    ModelFileError
        For a file that is no TOML, unknown or missing keys, values of the wrong type, tables and columns that are not
        there, paths and code that are not allowed. The message names the file, the table and the key.
    DataError, GraphError
        For tables whose content cannot be used; and what `Problem` raises.

    Examples
    --------
    >>> file = gr.read_model(folder / "model.toml")
    >>> file.solve().status
    'certified'
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ModelFileError(f"a model is read from a file: path must be its name, got {shown(path)}")
    path = Path(path)
    switch(allow_code, "allow_code")
    switch(allow_outside, "allow_outside")
    content = _parse(path)
    chosen = None if sites is None else tuple(sites)
    folders = Folders(path.parent, path.parent if data is None else Path(data), allow_outside, allow_code, chosen)
    if not folders.data.is_dir():
        raise ModelFileError(f"there is no folder {folders.data} for the data")
    tables = read_tables(content, path.name)
    method, options = _how(tables["solve"], folders)
    clusters = [section.keys.clusters for section in tables["hierarchy"]]
    columns = [name for each in clusters if not isinstance(each, dict) for name in listed(each)]  # of labels
    samples = _by_name("data", tables, lambda section: read_samples(section, folders, columns))
    labels = list(dict.fromkeys(label for each in samples.values() for label in each.labels))
    graphs = _by_name("graph", tables, lambda section: read_graph(section, folders, labels))
    sources = Sources(samples, graphs, folders)
    terms = build_terms(tables, sources)
    for kind, by in (("data", "loss"), ("graph", "total variation, consensus or rows")):
        for section in tables[kind]:
            if (kind, section.keys.name) not in sources.used:
                section.place.refuse(f"this table is used by no {by}; take it out, or name it there")
    problem = build_problem(terms, Place(path.name))
    return ModelFile(path, content, problem, method, options, tuple(samples.values()), tuple(graphs.values()), folders)


def sites_of(path: Path, data: Path | None) -> list[str]:
    """The sites that have a table of samples, in order; `ModelFileError` where no path has ``{site}``."""
    names = [str(table.get("file", "")) for table in listed(_parse(path).get("data", []))]
    name = next((name for name in names if SITE in name), None)
    if name is None:
        raise ModelFileError(f"{path.name}, [data] file: no path has {SITE}, which stands for the name of a site")
    return Folders(path.parent, path.parent if data is None else data).sites_of(name)


def _parse(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {path}; `graphreg example` writes one to begin with") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise ModelFileError(f"{path.name} is not valid TOML: its lists or tables are nested too deeply") from None
    except ValueError as error:  # of the parser, of decoding, of an integer of thousands of digits
        raise ModelFileError(f"{path.name} is not valid TOML: {error}{_said_at(path, str(error))}") from None


def _said_at(path: Path, error: str) -> str:
    """The line that an error of the parser names, and what is often meant by it."""
    number = re.search(r"at line (\d+)", error)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if number is None or int(number[1]) > len(lines):
        return ""
    line = lines[int(number[1]) - 1].strip()
    for wrong, meant in MEANT.items():
        if re.search(wrong, line):
            return f": {shown(line)}; {meant}"
    return f": {shown(line)}"


def _by_name(
    kind: str, tables: Mapping[str, list[FileTable]], read: Callable[[FileTable], Source]
) -> dict[str | None, Source]:
    """The records that are read for the tables of a kind, by name; where there are several, each needs a name."""
    sections = tables[kind]
    names = [section.keys.name for section in sections]
    for k, section in enumerate(sections):
        if len(sections) > 1 and names[k] is None:
            section.place.refuse(f" needs the key 'name', because there are several tables [[{kind}]]")
        if names[k] is not None and names[k] in names[:k]:
            section.place.at("name").refuse(f"another table [[{kind}]] has the name {names[k]!r} already")
    return {name: read(section) for name, section in zip(names, sections, strict=True)}


def _how(sections: list[FileTable], folders: Folders) -> tuple[AbstractMethod | None, dict[str, Any]]:
    """The method and the keywords of [solve], where it is there."""
    if not sections:
        return None, {}
    keys, place, given = sections[0].keys, sections[0].place, sections[0].given
    method = None
    if keys.method is not None:
        method = make_inline("method", keys.method, place.at("method"), folders.modules)
    options = {key: getattr(keys, key) for key in given if key != "method"}
    if "checkpoint" in options:
        options["checkpoint"] = folders.below(folders.model, options["checkpoint"], place.at("checkpoint"))
    return method, options
