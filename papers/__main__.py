"""``python -m papers``: the claims of the papers, listed, computed and reported; from a checkout."""

from __future__ import annotations

import json
import textwrap
import time
from pathlib import Path
from typing import Any

import click

import papers
from graphreg.errors import GraphregError

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOUND = "papers/results.md"
WORTH_SAYING, BETWEEN = 60.0, 60.0  # seconds left, and seconds between two times that they are said
WIDTH = 100  # columns
DONE, USAGE, UNEXPECTED, UNDRAWN, INTERRUPTED = 0, 2, 6, 7, 130  # exit codes, those of ``graphreg`` where it has them

names_argument = click.argument("names", nargs=-1, metavar="[PAPER | ID]...")
claim_option = click.option("--claim", "claims", metavar="ID", multiple=True, help="This claim; may be repeated.")
out_option = click.option("--out", type=FOLDER, default=papers.OUT, show_default=True, help="The folder of results.")
data_option = click.option(
    "--data", type=FOLDER, help="The folder of real data; by default $GRAPHREG_DATA, or ../shared/data."
)


def _folded(text: str) -> str:
    """The lines in no more than 100 columns, with what does not fit indented below."""
    fold = textwrap.TextWrapper(WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join("\n".join(fold.wrap(line)) for line in text.splitlines())


class Commands(click.Group):
    """Commands whose errors are one line on stderr, and in which Ctrl-C is an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (GraphregError, OSError) as error:
            click.echo(f"Error: {papers.visible(error)}", err=True)
            ctx.exit(USAGE)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The papers that graphreg stands on, re-computed: each claim with what is stated, what is found, and a verdict.

    Verdicts: holds; holds with a correction; holds in part; does not hold; cannot be checked. They follow from the
    numbers.
    """


@main.command("list")
@names_argument
@claim_option
@out_option
@data_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array and nothing else.")
def list_(names: tuple[str, ...], claims: tuple[str, ...], out: Path, data: Path | None, as_json: bool) -> None:
    """List the claims, with what is kept of them in the folder of results. Nothing is computed."""
    found = papers.known(out, data, *names, *claims)
    if as_json:
        click.echo(json.dumps([each.to_json() for each in found], indent=1))
        return
    for each in found:
        head, *rest = papers.line(each).split("\n")
        click.echo(_folded("\n".join([head, f"    {each.source}: {each.statement}", *rest])))
    click.echo(papers.summary(found))
    if any(each.verdict is None for each in found):
        click.echo(f"`python -m papers run` computes what is not run; what a run found is in {FOUND}")


@main.command()
@names_argument
@claim_option
@click.option("--scale", type=click.Choice(["quick", "full"]), default="quick", show_default=True)
@out_option
@data_option
@click.option(
    "--processes", type=click.IntRange(min=1), default=1, show_default=True, help="For replications of experiments."
)
@click.pass_context
def run(ctx: click.Context, names: tuple[str, ...], claims: tuple[str, ...], out: Path, **options: Any) -> None:
    """Compute the claims of some papers, or of all, and judge them by their numbers.

    Results are kept in the folder --out by settings, seed and version of the code, and not computed again. After Ctrl-C
    the same command goes on where it was. The exit code is 6 where a verdict is not the expected one.
    """
    out.mkdir(parents=True, exist_ok=True)
    runner = papers.Runner(out=out, progress=None, **options)
    todo = papers.chosen(*names, *claims)
    found: list[Any] = []
    outlook, said = papers.Outlook(runner.scale, runner.processes), -BETWEEN
    new = {id: each for id, each in todo.items() if runner.kept(each).seconds is None}
    for number, declared in enumerate(todo.values(), 1):
        began, left = time.perf_counter(), outlook.left(new.values())
        if left > WORTH_SAYING and began - said >= BETWEEN:
            click.echo(f"about {papers.duration(left)} left", err=True)
            said = began
        try:
            found.append(runner.run(declared))
        except KeyboardInterrupt:
            click.echo(f"{papers.summary(found)}\nWhat is done is in {out}: the same command goes on there.", err=True)
            raise
        if new.pop(declared.id, None):
            outlook.tell(declared, time.perf_counter() - began)
        click.echo(_folded(f"[{number}/{len(todo)}] {papers.line(found[-1])}"))
    click.echo(papers.summary(found))
    ctx.exit(UNEXPECTED if any(each.unexplained for each in found) else DONE)


@main.command()
@names_argument
@claim_option
@out_option
@data_option
@click.option("--html", "page", type=FILE, help="Write the report as a page to this file.")
@click.option("--markdown", type=FILE, help="Write the report as Markdown to this file, figures beside it.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.pass_context
def report(
    ctx: click.Context,
    names: tuple[str, ...],
    claims: tuple[str, ...],
    out: Path,
    data: Path | None,
    page: Path | None,
    markdown: Path | None,
    force: bool,
) -> None:
    """The report of what is kept in the folder of results: tables by paper, and figures. Nothing is computed.

    Without --html and --markdown the Markdown is printed, without figures.
    """
    for option, file in (("--html", page), ("--markdown", markdown)):
        if file is not None and file.exists() and not force:
            raise click.UsageError(f"{option}: {file} exists; name another file, or say --force to overwrite it")
    found = papers.known(out, data, *names, *claims)
    if page is None and markdown is None:
        click.echo(papers.to_markdown(found, {}))
        return
    pictures, undrawn = papers.drawn(found)
    if page is not None:
        papers.put(page, papers.to_html(found, pictures).encode())
    if markdown is not None:
        names_of = {id: f"{markdown.stem}-{id}.png" for id in pictures}
        for id, content in pictures.items():
            papers.put(markdown.with_name(names_of[id]), content)
        papers.put(markdown, papers.to_markdown(found, names_of).encode())
    click.echo(papers.summary(found))
    for name, why in undrawn.items():
        click.echo(f"{name} could not be drawn: {papers.visible(why)}", err=True)
    ctx.exit(UNDRAWN if undrawn else DONE)


if __name__ == "__main__":
    main(prog_name="python -m papers")
