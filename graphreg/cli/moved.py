"""``graphreg papers``, which is not part of the package any more: it says where the papers are."""

from __future__ import annotations

import click

from ..errors import ModelFileError
from .program import main

WHERE = "the papers re-computed are the folder papers/ of the repository: in a checkout of it, python -m papers run"


@main.command(hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def papers(rest: tuple[str, ...]) -> None:
    raise ModelFileError(WHERE)
