"""The outputs of a command: text, and where it is asked for a table, a page, a picture or one JSON document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base import escaping
from . import exits
from .program import FILE, Command, force_option, json_option, quiet_option, typed

if TYPE_CHECKING:
    import pandas as pd

MOST = 1000  # rows of a table on a page; a file of --csv has all of them


@dataclass(frozen=True)
class Outputs:
    """The places where a command is to put what it finds."""

    csv: Path | None
    html: Path | None
    picture: Path | None
    force: bool
    quiet: bool
    as_json: bool

    @property
    def progress(self) -> bool | None:
        """The value of ``progress=``: a bar where stderr is a terminal, but with --quiet none."""
        return False if self.quiet else None

    def check(self) -> None:
        """Refuse files that exist, and a picture that nothing can draw; before anything is computed."""
        from . import folder

        for file, option in ((self.csv, "--csv"), (self.html, "--html"), (self.picture, "--picture")):
            folder.check_new(file, self.force, option)
        if self.picture is not None and folder.find_spec("matplotlib") is None:
            raise click.UsageError(folder.NO_PICTURES)

    def deliver(
        self,
        found: Any,
        table: pd.DataFrame,
        document: Mapping[str, Any],
        draw: Callable[[Any], Any] | None = None,
        text: str = "",
        warning: str = "",
    ) -> dict[str, str]:
        """Say what was found and write the files; why a picture could not be drawn, by its name.

        ``draw`` is given a matplotlib Figure; ``text`` is said in place of what ``found`` says, which may be
        several things in a tuple; ``warning`` stands at the head of the page.
        """
        import pandas as pd

        from ..reporting import plain_page
        from . import folder, results

        if self.as_json:
            exits.say_json(results.plain({"versions": results.versions(), **document}))
        elif not self.quiet:
            exits.say(text or str(found))
        if self.csv is not None:
            folder.write_all(self.csv.parent, {self.csv.name: escaping.table(table)})
        if self.html is not None:
            title = f"graphreg {click.get_current_context().info_name}"
            with pd.option_context("display.max_rows", MOST, "display.max_columns", None):
                head = f"<p><strong>{escape(warning)}</strong></p>\n" if warning else ""
                parts = [typed(each._repr_html_()) for each in (found if isinstance(found, tuple) else (found,))]
            folder.write_all(self.html.parent, {self.html.name: plain_page(title, head + "".join(parts))})
        undrawn: dict[str, str] = {}
        if self.picture is not None and draw is not None:
            drawn, undrawn = folder.draw_all({self.picture.name: lambda: folder.png(draw)})
            folder.write_all(self.picture.parent, drawn)
        exits.say_undrawn(undrawn)
        return undrawn


def with_predictions(rows: pd.DataFrame, predicted: Any, status: str) -> pd.DataFrame:
    """Rows with what was predicted, and the status in every one: a table is read without what was printed."""
    table = rows.assign(prediction=predicted) if predicted.ndim == 1 else rows.join(predicted.add_prefix("P "))
    return table.assign(prediction_status=status)


def with_outputs(picture: str = "") -> Callable[[Command], Command]:
    """A command with the options --csv, --html, --picture (where ``picture`` says what it shows), --force, --quiet and
    --json, which it is given as ``to``, an `Outputs`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(*args: Any, **options: Any) -> int | None:
            to = Outputs(**{each.name: options.pop(each.name, None) for each in fields(Outputs)})
            exits.begin()
            to.check()
            return command(*args, to=to, **options)

        wrapped = json_option(quiet_option(force_option(call)))
        if picture:
            wrapped = click.option("--picture", type=FILE, help=f"Draw {picture} in this PNG file.")(wrapped)
        wrapped = click.option("--html", type=FILE, help="Write what is found as a page to this file.")(wrapped)
        return click.option("--csv", type=FILE, help="Write the table to this file.")(wrapped)

    return decorate
