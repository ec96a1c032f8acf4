"""The commands to begin with: files of an example, of a term of one's own, and a tour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import exits
from .program import FOLDER, force_option, main


@main.command(short_help="Write a small example: a model file and its tables.")
@click.argument("folder", type=FOLDER, required=False)
def example(folder: Path | None) -> None:
    """Write a complete small example into FOLDER: a model file and its two tables.

    Without FOLDER the model file alone is printed.
    """
    from . import example

    if folder is None:
        click.echo(example.MODEL, nl=False)
        return
    names = example.write(folder)
    exits.say(f"written to {folder}: {', '.join(names)}\nnow: graphreg solve {folder / names[-1]}")


@main.command(short_help="Write a penalty or a loss of your own to begin with.")
@click.argument("kind", type=click.Choice(["penalty", "loss"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write a penalty or a loss of your own to begin with: one file with the class NAME, which obeys every law.

    Change its methods, and run the file: it checks them, and solves a small problem by two routes.
    """
    from . import template

    path = template.write(kind, name, Path.cwd())
    exits.say(f"written: {path.name}\nnow: python {path.name}, or graphreg check {kind} {path.stem}:{name}")


@main.command(short_help="A tour of the example, from its model file to clusters.")
@click.option("--out", type=FOLDER, help="Write the results and pictures into this folder, which is made.")
@force_option
@click.pass_context
def demo(ctx: click.Context, out: Path | None, force: bool) -> None:
    """A tour of the example: the model file, the problem and its dual, both routes, their certificate, clusters."""
    from . import example, folder

    place = folder.Folder.prepare(out, force) if out is not None else None

    undrawn: dict[str, str] = {}

    def keep(model: Any, solution: Any) -> None:
        if place is not None:
            files, failed = place.write(model, solution, pictures=True)
            undrawn.update(failed)
            exits.say(f"\nwritten to {place.path}: {', '.join(files)}")

    for heading, text in example.tour(keep):
        exits.say(f"\n== {heading} ==\n\n{text.rstrip()}")
    exits.say_undrawn(undrawn)
    ctx.exit(exits.of_status("certified", undrawn))
