"""Results in a folder: what is not ours is not overwritten, and nothing is left half written."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import graphreg as gr

from ..errors import ModelFileError
from ..model_file import ModelFile
from . import results

RESULT = "result.json"
TABLES = ("coefficients", "clusters", "edges", "flows", "latent", "standardised")
NAMES = (RESULT, *(f"{name}.csv" for name in TABLES), "graph.png", "trace.png")
DRAWABLE = 500  # nodes up to which a picture of the graph shows something
NO_PICTURES = "no pictures: they need matplotlib, which is not installed: pip install graphreg[plot]"


@dataclass(frozen=True)
class Folder:
    """A folder that was found to be fit for results; ``ours`` are the files of an earlier result in it."""

    path: Path
    ours: frozenset[str]

    @staticmethod
    def prepare(path: Path, force: bool) -> Folder:
        """Create the folder, or find that nothing in it stands in the way; before anything is computed."""
        make_folder(path, "--out: ")
        if not os.access(path, os.W_OK | os.X_OK):
            raise ModelFileError(f"--out: {path} is not writable; name another folder")
        ours = _ours(path)
        foreign = [name for name in NAMES if (path / name).exists() and name not in ours]
        if foreign and not force:
            raise ModelFileError(
                f"--out: {path / foreign[0]} exists and is no earlier result of graphreg; name another folder, or "
                "say --force to overwrite it"
            )
        return Folder(path, ours)

    def write(self, model: ModelFile, solution: gr.Solution, pictures: bool) -> list[str]:
        """Write all files of an answer; their names. The files of an earlier result that are not renewed go."""
        contents: dict[str, bytes] = {
            name: table.to_csv(index=False).encode() for name, table in results.tables(model, solution).items()
        }
        if pictures and results.has_point(solution) and find_spec("matplotlib") is not None:
            contents |= _pictures(solution)
        names = [RESULT, *contents]
        contents[RESULT] = to_json(results.document(model, solution, names)).encode()
        write_all(self.path, contents)
        for name in self.ours - contents.keys():
            (self.path / name).unlink(missing_ok=True)
        return names


def _ours(path: Path) -> frozenset[str]:
    """The files that an earlier result in the folder lists."""
    try:
        found = json.loads((path / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return frozenset()
    if not isinstance(found, dict) or found.get("written_by") != results.WRITER:
        return frozenset()
    listed: Sequence[Any] = found.get("files") or ()
    return frozenset(name for name in listed if name in NAMES)


def make_folder(path: Path, option: str = "") -> None:
    """Create a folder, where it is not there, and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelFileError(f"{option}{path} cannot be made: {error.strerror}") from None


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files under other names first, and rename them when all of them are whole."""
    parts = {name: folder / f".{name}.{os.getpid()}.part" for name in contents}
    try:
        for name, content in contents.items():
            parts[name].write_bytes(content)
        for name, part in parts.items():
            part.replace(folder / name)
    except OSError as error:
        raise ModelFileError(f"{folder}: the results cannot be written: {error.strerror}") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def check_new(path: Path, force: bool, option: str) -> None:
    """Refuse a file that exists, or that has no folder; before anything is computed."""
    if path.exists() and not force:
        raise ModelFileError(f"{option}: {path} exists; name another file, or say --force to overwrite it")
    if not path.parent.is_dir():
        raise ModelFileError(f"{option}: there is no folder {path.parent}; make it first")


def to_json(content: Any) -> str:
    """Strict JSON, indented."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _pictures(solution: gr.Solution) -> dict[str, bytes]:
    """The graph, where it can be drawn, and the trace."""
    from ..plots import plot_graph, plot_trace

    drawn: dict[str, bytes] = {}
    if solution.form.n <= DRAWABLE and any(not edge.ground for edge in solution.form.edges):
        drawn["graph.png"] = _draw(plot_graph, solution, (9.0, 6.0))
    if solution.trace.certified():
        drawn["trace.png"] = _draw(plot_trace, solution, (8.0, 5.0))
    return drawn


def draw_comparison(comparison: gr.Comparison) -> bytes:
    """The figure of a comparison."""
    from ..plots import comparison_figure
    from ..plots.comparing import SIZE

    return _png(lambda figure: comparison_figure(comparison, figure), SIZE)


def _draw(plot: Any, solution: gr.Solution, size: tuple[float, float]) -> bytes:
    return _png(lambda figure: plot(solution, ax=figure.subplots()), size)


def _png(draw: Callable[[Any], Any], size: tuple[float, float]) -> bytes:
    from matplotlib.figure import Figure  # not pyplot: no window, and no state of the whole program

    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()
