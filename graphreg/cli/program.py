"""The program, the group of all its commands, and what they share: the model file and options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from .. import __version__
from . import exits

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SECONDS = click.FloatRange(min=0, min_open=True)
EPILOG = f"""\b
A first round:
  graphreg demo                     a tour, from a model file to clusters
  graphreg example river            writes a model file and its tables
  graphreg new penalty SoftL1       writes a penalty of your own to begin with
  graphreg solve river/model.toml --out river/results

\b
Exit codes:
{exits.table()}

The keys of model files are in docs/command-line.md."""


def with_model(command: Callable[..., None]) -> Callable[..., None]:
    """A command that is given, read, the model file which is named on the command line."""

    @click.argument("model", type=FILE)
    @click.option("--data", type=FOLDER, help="Where the tables lie; by default beside the model file.")
    @click.option("--allow-code", is_flag=True, help="Run modules that the model file names; otherwise it is refused.")
    @click.option(
        "--allow-outside", is_flag=True, help="Let paths in the model file leave its folder: by .., '/' or links."
    )
    @wraps(command)
    def read_first(model: Path, data: Path | None, allow_code: bool, allow_outside: bool, **options: Any) -> None:
        from ..model_file import read_model

        command(read_model(model, data, allow_code=allow_code, allow_outside=allow_outside), **options)

    return read_first


method_option = click.option(
    "--method", metavar="METHOD", help="Instead of that in the model file: NAME or 'NAME(option=value, ...)'."
)
gap_option = click.option("--gap", type=click.FloatRange(min=0), help="The relative gap to be certified.")
quiet_option = click.option("--quiet", is_flag=True, help="Print nothing but errors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
force_option = click.option("--force", is_flag=True, help="Overwrite files that are no earlier result.")


@click.group(cls=exits.Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="graphreg %(version)s")
def main() -> None:
    """Certified convex learning on graphs: a model at every node, tied together along the edges.

    A model file (TOML) says where the samples and the edges are, which losses and penalties make up the objective,
    and how to minimise it. The answer carries a certificate: lower bound <= optimum <= objective.
    """
