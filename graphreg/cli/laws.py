"""The commands that check the laws of a penalty or a loss."""

from __future__ import annotations

from typing import Any

import click

from . import exits
from .program import main


@main.group(short_help="Whether a penalty or a loss of your own obeys the laws.")
def check() -> None:
    """Whether a penalty or a loss obeys the laws that certificates rest on.

    NAME is one of graphreg's own, such as L2, or MODULE:CLASS, found in the current folder or on the Python path.
    The code of a module that is named here is run.
    """


option_option = click.option(
    "-o", "--option", "given", multiple=True, metavar="NAME=VALUE", help="An option of the class; may be repeated."
)
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Of the random points.")
tolerance_option = click.option(
    "--tolerance", type=float, help="The relative accuracy asked of its methods; 1e-8, but where a solver runs in them."
)


@check.command("penalty")
@click.argument("name")
@option_option
@click.option(
    "-k", "--coordinates", "sizes", type=click.IntRange(min=1), multiple=True, help="How many; by default 1 and 3."
)
@seed_option
@tolerance_option
@click.pass_context
def check_penalty(
    ctx: click.Context, name: str, given: tuple[str, ...], sizes: tuple[int, ...], seed: int, tolerance: float | None
) -> None:
    """Check a penalty: NAME, or MODULE:CLASS."""
    import graphreg as gr

    from . import checks

    penalty = checks.penalty(name, checks.options(given))
    _say(ctx, gr.testing.check_penalty(penalty, k=sizes or (1, 3), seed=seed, tolerance=tolerance))


@check.command("loss")
@click.argument("name")
@option_option
@seed_option
@tolerance_option
@click.pass_context
def check_loss(ctx: click.Context, name: str, given: tuple[str, ...], seed: int, tolerance: float | None) -> None:
    """Check a loss: NAME, or MODULE:CLASS. It is tried on random data of a kind that it takes."""
    import graphreg as gr

    from . import checks

    loss = checks.loss(name, checks.options(given), seed)
    _say(ctx, gr.testing.check_loss(loss, seed=seed, tolerance=tolerance))


def _say(ctx: click.Context, report: Any) -> None:
    exits.say(str(report))
    ctx.exit(exits.CERTIFIED if report.ok else exits.LAW_BROKEN)
