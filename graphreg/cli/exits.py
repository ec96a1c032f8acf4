"""The end of the program: exit codes, and errors of graphreg as one clean line."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ..base import interrupting
from ..base.escaping import json_text, page
from ..errors import DataError, GraphError, GraphregError, ModelFileError, SolveError

if TYPE_CHECKING:
    from ..auditing import Audit

CERTIFIED, NOT_PROVED, USAGE, DATA, NOT_CERTIFIED, NO_ANSWER, LAW_BROKEN, UNDRAWN, BOXED, INTERRUPTED = (
    *range(9),
    interrupting.INTERRUPTED,
)
EXITS = {
    CERTIFIED: "certified (and wherever nothing is to be certified: done)",
    NOT_PROVED: "verify: what the file says is not proved",
    USAGE: "a mistake on the command line, in the model file, or in a file that cannot be read or written",
    DATA: "data that cannot be used; fit: certified, and all is written but for --intervals, which no node has",
    NOT_CERTIFIED: "an answer, but not certified to the gap asked for (budget, no_certificate); audit: undecided; "
    "verify: bounds further apart than --gap",
    NO_ANSWER: "no answer (failed, unattained, infeasible)",
    LAW_BROKEN: "check: a law does not hold; audit: the algorithm does not do what it should",
    UNDRAWN: "certified, and all is written but for a picture that could not be drawn",
    BOXED: "verify: proved, but only among points within a box, and not of the infimum",
    INTERRUPTED: "interrupted by Ctrl-C",
}
OF_STATUS = {
    "certified": CERTIFIED,
    "budget": NOT_CERTIFIED,
    "no_certificate": NOT_CERTIFIED,
    "interrupted": INTERRUPTED,
}


def of_status(status: str, undrawn: Collection[str] = ()) -> int:
    """The exit code for the status of a solution, and for pictures that are missing."""
    return OF_STATUS.get(status, NO_ANSWER) or (UNDRAWN if undrawn else CERTIFIED)


def of_audit(report: Audit) -> int:
    """The exit code for what an audit found."""
    if report.interrupted:
        return INTERRUPTED
    if report.ok:
        return CERTIFIED
    return NOT_CERTIFIED if report.verdict == "undecided" else LAW_BROKEN


def of_error(error: Exception) -> int:
    """The exit code for an error."""
    if isinstance(error, (DataError, GraphError)):
        return DATA
    return NO_ANSWER if isinstance(error, (SolveError, MemoryError)) else USAGE


@contextmanager
def finishing() -> Generator[None]:
    """A context in which Ctrl-C is held back once: what was found is still shown and written. Pressed again it ends."""
    if current_thread() is not main_thread():  # no signals there
        yield
        return
    pressed = list[bool]()
    before = signal.getsignal(signal.SIGINT)

    def hold_back(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)
        click.echo("Interrupted: what is done is being written; press Ctrl-C again to stop that.", err=True)

    signal.signal(signal.SIGINT, hold_back)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def begin() -> None:
    """Import what answers are made of, and say so on the terminal meanwhile, as it takes a second or more."""
    new = "graphreg.cli.folder" not in sys.modules and not click.get_current_context().params.get("quiet")
    shown = new and sys.stderr.isatty()
    click.echo("graphreg: starting ..." * shown, err=True, nl=False)
    import_module("graphreg.cli.folder")
    click.echo("\r" + 22 * " " + "\r" if shown else "", err=True, nl=False)


def say(text: object, err: bool = False) -> None:
    """Print, whatever the text names: nothing in it is obeyed by the terminal, or is too much for its encoding."""
    _echo(page(text), err=err)


def say_json(content: Any) -> None:
    """Print a JSON document, in UTF-8 whatever the terminal takes."""
    _echo(f"{json_text(content)}\n".encode(), nl=False)


def _echo(content: str | bytes, **how: Any) -> None:
    try:
        click.echo(content, **how)
    except OSError as error:
        if error.errno == errno.EPIPE or how.get("err"):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it goes there
        raise ModelFileError(f"standard output cannot be written to: {error.strerror}") from None


def say_undrawn(undrawn: Mapping[str, str]) -> None:
    """Name the pictures that could not be drawn, on stderr, with the cause."""
    for name, why in undrawn.items():
        say(f"{name} could not be drawn: {why}", err=True)


class Commands(click.Group):
    """A group of commands in which errors of graphreg are one line on stderr, and Ctrl-C is an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            with warnings.catch_warnings():  # each is one line, without the place in the code
                warnings.showwarning = lambda message, *_: say("Warning: " + " ".join(str(message).split()), err=True)
                ctx.exit(super().invoke(ctx) or CERTIFIED)
        except (GraphregError, MemoryError) as error:  # the latter of what --memory allows
            lines = (" ".join(line.split()) for line in (str(error) or "there is too little memory").splitlines())
            say("Error: " + "\n  ".join(lines), err=True)
            ctx.exit(of_error(error))
        except KeyboardInterrupt as error:
            say(f"Interrupted{': ' if error.args else ''}{error}.", err=True)
            ctx.exit(INTERRUPTED)
        except SystemExit as error:  # none of ours: its code would pass for what was found
            say(f"Error: code that was run wanted to end the program, by sys.exit({error.code!r})", err=True)
            ctx.exit(USAGE)


def table() -> str:
    """The exit codes for --help."""
    return "\n".join(f"  {code:<5d}{meaning}" for code, meaning in EXITS.items())
