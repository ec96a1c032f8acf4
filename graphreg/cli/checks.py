"""The commands that check: a proof in exact arithmetic, and the laws of a penalty or a loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

import graphreg as gr

from ..errors import DataError, ModelFileError
from . import exits
from .program import FILE, SECONDS, force_option, gap_option, made, main, quiet_option, with_model

NODES, EACH = 5, 12  # nodes and samples per node of the data on which a loss is checked


# ---- proofs
@main.command(short_help="Check a proof, in exact arithmetic.")
@click.argument("proof", type=click.Path(path_type=Path))
@click.option(
    "--model", metavar="MODEL|HASH", help="What it must be a proof of: a model file, or what `graphreg hash` says."
)
@click.option("--gap", type=click.FloatRange(min=0), help="The most that the bounds may be apart, of the larger.")
@click.option("--no-flint", is_flag=True, help="Compute with the standard library alone.")
@click.option("--seconds", type=SECONDS, default=3600.0, help="The most it may take.")
def verify(proof: Path, no_flint: bool, **asked: Any) -> int:
    """Check a proof in exact arithmetic: a file that `solve --proof`, or Solution.prove in Python, has written.

    The checker is one file that imports nothing of graphreg and runs alone, on any machine with Python. Exit code 0
    says that the bounds are proved, and no further apart than --gap allows.
    """
    from ..verify import HASH
    from ..verify import main as check

    if asked["model"] and not HASH.fullmatch(asked["model"]):
        from ..model_file import read_model

        if not Path(asked["model"]).exists() and not asked["model"].strip("0123456789abcdef"):
            raise click.UsageError(f"--model {asked['model']}: no file, and no hash, which has 64 of 0-9 and a-f")
        asked["model"] = read_model(Path(asked["model"]), None).problem.hash()
    options = [f"--{name}={value}" for name, value in asked.items() if value is not None]
    return check([*options, *(["--no-flint"] if no_flint else []), "--", str(proof)])


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
def prove(read: Any, file: Path, claims: tuple[str, ...], force: bool, quiet: bool, **asked: Any) -> int:
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
    return exits.of_status(solution.status)


@main.command("hash", short_help="The hash by which proofs name a problem.")
@with_model
def hash_(read: Any) -> None:
    """Print the hash by which proofs name the problem in a model file."""
    exits.say(read.problem.hash())


# ---- laws
class _Kinds(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            ways = " or ".join(f"graphreg check {kind} {cmd_name}" for kind in self.commands)
            raise ModelFileError(f"say which of the two {cmd_name} is: {ways}")
        return super().get_command(ctx, cmd_name)


@main.group(cls=_Kinds, short_help="Whether a penalty or a loss of your own obeys the laws.")
def check() -> None:
    """Whether a penalty or a loss obeys the laws that certificates rest on.

    NAME is one of graphreg's own, such as L2, or MODULE:CLASS, found in the current folder or on the Python path: of a
    class SoftL1 in mine.py, whose constructor takes a width, `graphreg check penalty 'mine:SoftL1(width=2.0)'`. The
    code of a module that is named here is run.
    """


seed_option = click.option("--seed", type=int, default=0, help="Of the random points.")
tolerance_option = click.option(
    "--tolerance", type=float, help="The relative accuracy asked of its methods; 1e-8, but where a solver runs in them."
)


@check.command("penalty")
@click.argument("name")
@click.option(
    "-k", "--coordinates", "sizes", type=click.IntRange(min=1), multiple=True, help="How many; by default 1 and 3."
)
@seed_option
@tolerance_option
def check_penalty(name: str, sizes: tuple[int, ...], seed: int, tolerance: float | None) -> int:
    """Check a penalty: NAME, or MODULE:CLASS."""
    penalty = made("penalty", name, "NAME", [Path.cwd()])
    return _say(gr.testing.check_penalty(penalty, k=sizes or (1, 3), seed=seed, tolerance=tolerance))


@check.command("loss")
@click.argument("name")
@seed_option
@tolerance_option
def check_loss(name: str, seed: int, tolerance: float | None) -> int:
    """Check a loss: NAME, or MODULE:CLASS. It is tried on random data of a kind that it takes."""
    return _say(gr.testing.check_loss(loss_of(name, seed), seed=seed, tolerance=tolerance))


def _say(report: Any) -> int:
    exits.say(str(report))
    return exits.CERTIFIED if report.ok else exits.LAW_BROKEN


def loss_of(name: str, seed: int) -> Any:
    """The loss of that name, on the first of several drawn data sets that it takes."""
    refused = ""
    for data in _data_sets(np.random.default_rng(seed)):
        try:
            return made("loss", name, "NAME", [Path.cwd()], data)
        except DataError as error:
            refused = str(error)
    raise DataError(f"{name} takes none of the data sets that are tried (numbers, counts, classes, amounts): {refused}")


def _data_sets(rng: np.random.Generator) -> list[gr.NodeData]:
    node = np.repeat([f"n{k}" for k in range(NODES)], EACH)
    X = rng.normal(size=(len(node), 2))
    classes = np.array(["a", "b", "c"], dtype=object)[np.arange(len(node)) % 3]
    targets: list[Any] = [
        classes,  # first: a loss of classes might take numbers for classes, too
        np.round(3.0 * rng.normal(size=len(node)), 2),
        rng.poisson(2.0, len(node)).astype(float),
        np.arange(len(node)) % 2,
        np.round(rng.gamma(2.0, size=len(node)), 2) + 0.01,
    ]
    drawn = [gr.NodeData.from_arrays(X, y, node, intercept=True) for y in targets]
    return [*drawn, gr.NodeData.from_arrays(None, rng.normal(size=(len(node), 2)), node)]
