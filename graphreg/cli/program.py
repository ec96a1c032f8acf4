"""The program, the group of all its commands, and what they share: the model file, the method and options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from .. import __version__
from . import exits

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}
FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


class Table(click.Path):
    """A table in a file, or from a pipe or "-", standard input: then kept in a file, as it is read more than once."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is None or not (str(value) == "-" or Path(value).is_fifo()):
            return super().convert(value, param, ctx)
        kept = Path(ctx.with_resource(TemporaryDirectory())) / "stdin.csv"
        with click.open_file(value, "rb") as pipe:
            kept.write_bytes(pipe.read())
        return kept


TABLE = Table(dir_okay=False, path_type=Path)
SECONDS = BYTES = click.FloatRange(min=0, min_open=True)
EPILOG = f"""\b
A first round:
  graphreg demo                     a tour, from a model file to clusters
  graphreg example river            writes a model file and its tables
  graphreg new penalty SoftL1       writes a penalty of your own to begin with
  graphreg solve river/model.toml --out river/results

\b
Exit codes:
{exits.table()}

The keys of model files are in docs/model-files.md."""


Command = Callable[..., int | None]  # the exit code, or nothing where all is done


def with_model(command: Command) -> Command:
    """A command that is given, read, the model file which is named on the command line."""

    @click.argument("model", type=FILE)
    @click.option("--data", type=FOLDER, help="Where the tables lie; by default beside the model file.")
    @click.option("--allow-code", is_flag=True, help="Run modules that the model file names; otherwise it is refused.")
    @click.option(
        "--allow-outside", is_flag=True, help="Let paths in the model file leave its folder: by .., '/' or links."
    )
    @wraps(command)
    def read_first(model: Path, data: Path | None, allow_code: bool, allow_outside: bool, **options: Any) -> int | None:
        exits.begin()
        from ..model_file import read_model

        return command(read_model(model, data, allow_code=allow_code, allow_outside=allow_outside), **options)

    return read_first


def choice(option: str, *known: str, **how: Any) -> Callable[[Command], Command]:
    """An option that is one of some words, by default the first."""
    return click.option(option, type=click.Choice(known), default=known[0], **how)


method_option = click.option(
    "--method", metavar="METHOD", help="Instead of that in the model file: NAME or 'NAME(option=value, ...)'."
)
gap_option = click.option("--gap", type=click.FloatRange(min=0), help="The relative gap to be certified.")
prove_option = click.option(
    "--prove", is_flag=True, help="Look for proofs of what is fused and what is split, within --seconds."
)
quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but errors.")
memory_option = click.option(
    "--memory", type=BYTES, help="At most so many bytes beside the problem itself: 4e9 for 4 GB."
)
jobs_option = click.option("--jobs", type=int, default=1, help="Processes; -1: as many as processors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
force_option = click.option("--force", is_flag=True, help="Overwrite files that are there already.")


def typed(said: str) -> str:
    """Remedies as they are typed here: --missing drop for missing="drop", and what is done to a column in the file."""
    said = re.sub(r'\b(missing|repeated|ids|loss|unseen)="(\w+)"', r"--\1 \2", said)
    said = re.sub(r" \(pd\.to_datetime.*?\) or days .*?\.dt\.days,", " or days, in the file,", said)
    said = re.sub(r", e\.g\. frame\[.*?\)\.astype\(float\)", " in the file", said)
    said = re.sub(r"\bgap=([\d.e-]+)", r"--gap \1", said).replace("clusters(prove=True)", "--prove")
    said = re.sub(r"leave (\w+)= out", r"leave --\1 out", said)
    said = re.sub(r"\bstrengths=\[([\d., ]+)\]", lambda found: f"--strengths {found[1].replace(' ', '')}", said)
    said = said.replace("covariance=", "gr.inference.local_regions in Python with covariance=")
    said = said.replace("smaller gap=", "smaller --gap").replace("edge_weight=", "--edge-weight")
    return said.replace("features=[...]", "--features A,B,...")


@click.group(cls=exits.Commands, epilog=EPILOG, context_settings=SETTINGS)
@click.version_option(__version__, message="graphreg %(version)s")
def main() -> None:
    """Certified convex learning on graphs: a model at every node, tied together along the edges.

    A model file (TOML) says where the samples and the edges are, which losses and penalties make up the objective,
    and how to minimise it. The answer carries a certificate: lower bound <= optimum <= objective.
    """


# ---- methods and terms that are written on the command line ----------------------------------------------------------
def chosen_method(text: str | None, model: Any) -> Any:
    """The method that an option names, that of the model file with its options; None where none is named."""
    if text is None or (model.method is not None and model.method.name == text):
        return None if text is None else model.method
    return made("method", text, "--method", [model.folders.model, Path.cwd()])


def algorithm_of(text: str, folders: Sequence[Path]) -> Any:
    """The algorithm that is to be audited: a method, or the function that ``module:function`` names."""
    from ..model_file import Place, imported

    if ":" not in text or "(" in text:
        return made("method", text, "ALGORITHM (MODULE:FUNCTION, or a method)", folders)
    found = imported(text.strip(), Place("ALGORITHM"), folders, callable)
    return made("method", text, "--method", folders) if isinstance(found, type) else found


def made(kind: str, text: str, what: str, folders: Sequence[Path], *first: Any) -> Any:
    """The method, penalty or loss that ``NAME(option=value, ...)`` describes, a loss ``first`` of data; no code is run
    but that of its class. Errors begin with ``what``."""
    from ..fitting import parts_of
    from ..model_file import Place, make

    name, options = parts_of(text, what)
    return make(kind, name, options, Place(what), folders, *first, at=Place(what))
