"""How the program ends: exit codes, and errors of graphreg as one clean line."""

from __future__ import annotations

from typing import Any

import click

from ..errors import DataError, GraphError, GraphregError, SolveError

CERTIFIED, NOT_PROVED, USAGE, DATA, NOT_CERTIFIED, NO_ANSWER, LAW_BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
EXITS = {
    CERTIFIED: "certified (and wherever nothing is to be certified: done)",
    NOT_PROVED: "verify: the file is no proof",
    USAGE: "a mistake on the command line, in the model file, or in a file that cannot be read or written",
    DATA: "data that cannot be used",
    NOT_CERTIFIED: "an answer, but not certified to the gap asked for (budget, no_certificate)",
    NO_ANSWER: "no answer (failed, unattained, unbounded)",
    LAW_BROKEN: "check: a law does not hold",
    INTERRUPTED: "interrupted by Ctrl-C",
}
OF_STATUS = {
    "certified": CERTIFIED,
    "budget": NOT_CERTIFIED,
    "no_certificate": NOT_CERTIFIED,
    "interrupted": INTERRUPTED,
}


def of_status(status: str) -> int:
    """The exit code for the status of a solution."""
    return OF_STATUS.get(status, NO_ANSWER)


def of_error(error: GraphregError) -> int:
    """The exit code for an error."""
    if isinstance(error, (DataError, GraphError)):
        return DATA
    return NO_ANSWER if isinstance(error, SolveError) else USAGE


class Commands(click.Group):
    """A group of commands in which errors of graphreg are one line on stderr, and Ctrl-C is an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GraphregError as error:
            click.echo("Error: " + " ".join(str(error).split()), err=True)
            ctx.exit(of_error(error))
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


def table() -> str:
    """The exit codes for --help."""
    return "\n".join(f"  {code:<5d}{meaning}" for code, meaning in EXITS.items())
