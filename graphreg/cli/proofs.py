"""The commands on proofs: check one, and name the problem that one must be of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import exits
from .program import FILE, SECONDS, force_option, gap_option, main, quiet_option, with_model


@main.command(short_help="Check a proof, in exact arithmetic.")
@click.argument("proof", type=click.Path(path_type=Path))
@click.option("--model", metavar="HASH", help="The model that it must be a proof of; see `graphreg hash`.")
@click.option("--gap", type=click.FloatRange(min=0), help="The most that the bounds may be apart, relative to them.")
@click.option("--no-flint", is_flag=True, help="Compute with the standard library alone.")
@click.option("--seconds", type=SECONDS, default=3600.0, show_default=True, help="The most it may take.")
@click.pass_context
def verify(ctx: click.Context, proof: Path, no_flint: bool, **asked: Any) -> None:
    """Check a proof in exact arithmetic: a file that `solve --proof`, or Solution.prove in Python, has written.

    The checker is one file that imports nothing of graphreg and runs alone, on any machine with Python. Exit code 0
    says that the bounds are proved, and no further apart than --gap allows.
    """
    from ..verify import main as check

    options = [f"--{name}={value}" for name, value in asked.items() if value is not None]
    ctx.exit(check([*options, *(["--no-flint"] if no_flint else []), "--", str(proof)]))


@main.command(short_help="The answer's bounds, with their proof in a file.")
@with_model
@click.argument("file", type=FILE)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    type=click.Choice(["near", "fused", "split"]),
    help="What else is to be proved of every edge; repeatable.",
)
@gap_option
@click.option("--seconds", type=SECONDS, help="At most so many seconds for the answer.")
@force_option
@quiet_option
@click.pass_context
def prove(
    ctx: click.Context, read: Any, file: Path, claims: tuple[str, ...], force: bool, quiet: bool, **asked: Any
) -> None:
    """Solve the problem in a model file, and write a proof of the answer's bounds into FILE.

    `graphreg verify FILE` checks it; so does the file verify.py alone, on a machine without graphreg.
    """
    from . import folder

    folder.check_new(file, force, "FILE")
    given = {key: value for key, value in asked.items() if value is not None}
    solution = read.solve(progress=False if quiet else None, on_failure="return", **given)
    proved = solution.prove(file, claims, force=force)
    if not quiet:
        exits.say(proved)
    ctx.exit(exits.of_status(solution.status))


@main.command("hash", short_help="The hash by which proofs name a problem.")
@with_model
def hash_(read: Any) -> None:
    """Print the hash by which proofs name the problem in a model file."""
    from ..certificate.proof import model_hash

    exits.say(model_hash(read.problem.form))
