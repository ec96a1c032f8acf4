"""Results in a folder: what is not ours is not overwritten, and nothing is left half written."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import graphreg as gr

from .. import plots
from ..base import escaping
from ..base.files import replacing
from ..certificate import Clusters
from ..errors import ModelFileError
from ..model_file import ModelFile, text_of
from . import results

RESULT = "result.json"
TABLES = ("coefficients", "clusters", "edges", "rows", "flows", "latent", "standardised")
NAMES = (RESULT, *(f"{name}.csv" for name in TABLES), "graph.png", "trace.png")
DRAWABLE = 500  # nodes up to which a picture of the graph shows something
Answer = tuple[ModelFile, gr.Solution, Clusters | None]
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

    def write(
        self, model: ModelFile, solution: gr.Solution, clusters: Clusters | None, pictures: bool
    ) -> tuple[list[str], dict[str, str]]:
        """Write all files of an answer: their names, and why pictures are missing. The files of an earlier result that
        are not renewed go. Tables are there before a picture is begun."""
        tables = results.tables(model, solution, clusters)
        contents, answer = {name: escaping.table(each) for name, each in tables.items()}, (model, solution, clusters)
        names = [RESULT, *contents]
        self._put(answer, names, contents)
        for name in self.ours - contents.keys() - {RESULT}:
            (self.path / name).unlink(missing_ok=True)
        if not (pictures and results.has_point(solution) and find_spec("matplotlib") is not None):
            return names, {}
        drawn, undrawn = draw_all(_pictures(solution))
        try:
            self._put(answer, [*names, *drawn], drawn)
        except ModelFileError as error:
            return names, undrawn | dict.fromkeys(drawn, str(error))
        return [*names, *drawn], undrawn

    def _put(self, answer: Answer, names: Sequence[str], contents: Mapping[str, bytes]) -> None:
        """Write some files, and a result that lists these and those that are there already."""
        result = f"{escaping.json_text(results.document(*answer, names))}\n".encode()
        write_all(self.path, {**contents, RESULT: result})


def _ours(path: Path) -> frozenset[str]:
    """The files that an earlier result in the folder lists."""
    result = path / RESULT
    try:
        found = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else None
    except (OSError, ValueError, RecursionError):
        return frozenset()
    if not isinstance(found, dict) or found.get("written_by") != results.WRITER:
        return frozenset()
    listed = found.get("files")
    return frozenset(name for name in listed if name in NAMES) if isinstance(listed, list) else frozenset()


def make_folder(path: Path, option: str = "") -> None:
    """Create a folder, where it is not there, and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelFileError(f"{option}{path} cannot be made: {error.strerror}") from None


def write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files under names that nobody can know first, and rename them when all of them are whole."""
    try:
        with ExitStack() as files:
            for name, content in reversed(list(contents.items())):
                file = files.enter_context(replacing(folder / name))
                file.write(content)
                file.flush()
    except OSError as error:
        raise ModelFileError(f"{folder}: the results cannot be written: {error.strerror}") from None


def check_new(path: Path | None, force: bool, option: str) -> None:
    """Refuse a file that exists, or that has no folder; before anything is computed."""
    if path is None:
        return
    if path.exists() and not force:
        raise ModelFileError(f"{option}: {path} exists; name another file, or say --force to overwrite it")
    if not path.parent.is_dir():
        raise ModelFileError(f"{option}: there is no folder {path.parent}; make it first")


# ---- pictures --------------------------------------------------------------------------------------------------------
def draw_all(drawings: Mapping[str, Callable[[], bytes]]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The pictures by file name, and of those that failed the cause: none costs more than itself."""
    drawn: dict[str, bytes] = {}
    undrawn: dict[str, str] = {}
    for name, draw in drawings.items():
        try:
            drawn[name] = draw()
        except Exception as error:  # noqa: BLE001 - whatever matplotlib, its fonts or its settings raise
            undrawn[name] = text_of(error)
    return drawn, undrawn


def _pictures(solution: gr.Solution) -> dict[str, Callable[[], bytes]]:
    """The graph, where it can be drawn, and the trace."""
    drawings: dict[str, Callable[[], bytes]] = {}
    if solution.form.n <= DRAWABLE and solution.form.between:
        drawings["graph.png"] = partial(_draw, "plot_graph", solution, (9.0, 6.0))
    if solution.trace.certified():
        drawings["trace.png"] = partial(_draw, "plot_trace", solution, (8.0, 5.0))
    return drawings


def _draw(plot: str, solution: gr.Solution, size: tuple[float, float]) -> bytes:
    return png(lambda figure: getattr(plots, plot)(solution, ax=figure.subplots()), size)


def png(draw: Callable[[Any], Any], size: tuple[float, float] = (8.0, 5.0)) -> bytes:
    """The picture that ``draw`` makes of a matplotlib Figure."""
    from matplotlib.figure import Figure  # not pyplot: no window, and no state of the whole program

    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()
