"""The commands. Everything heavy is imported when a command runs, so that --help is quick."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from .. import __version__, escaping
from . import exits
from .papers import papers

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SECONDS = click.FloatRange(min=0, min_open=True)
PAGE = (
    "<!doctype html>\n<html><head><meta charset='utf-8'><title>graphreg audit</title></head><body>\n{}</body></html>\n"
)
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


class _WithExample(click.Command):
    """A command whose help ends with a complete model file."""

    def get_help(self, ctx: click.Context) -> str:
        from .example import MODEL

        model = "\n".join(f"  {line}".rstrip() for line in MODEL.splitlines())
        return f"{super().get_help(ctx)}\n\nA complete model file (`graphreg example DIR` writes it):\n\n{model}"


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


@main.command(cls=_WithExample)
@with_model
@click.option(
    "--method", metavar="METHOD", help="Instead of that in the model file: NAME or 'NAME(option=value, ...)'."
)
@gap_option
@click.option("--rounds", type=click.IntRange(min=1), help="At most so many rounds of an iterative method.")
@click.option("--seconds", type=SECONDS, help="At most so many seconds of an iterative method.")
@click.option("--seed", type=int, help="For methods that draw random numbers.")
@click.option("--out", type=FOLDER, help="Write tables, result.json and pictures into this folder, which is made.")
@force_option
@click.option("--proof", type=FILE, help="Write a proof of the answer's bounds into this file.")
@click.option("--pictures/--no-pictures", default=True, help="Whether --out draws the graph and the trace.")
@quiet_option
@json_option
@click.pass_context
def solve(  # noqa: PLR0913, PLR0917 - one argument per option
    ctx: click.Context,
    read: Any,
    method: str | None,
    out: Path | None,
    force: bool,
    proof: Path | None,
    pictures: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Solve the problem in a model file and certify the answer.

    Prints the problem, the answer with its certificate, the first coefficients and the clusters. The options come
    before what the model file says. Ctrl-C ends a run with the best point so far and its certificate; files are still
    written.
    """
    from . import folder, results

    said = not (quiet or as_json)
    chosen = _method(method, read)
    place = folder.Folder.prepare(out, force) if out is not None else None
    if proof is not None:
        folder.check_new(proof, force, "--proof")
    if said:
        exits.say(f"{read}\n\n{read.problem}\n")
    given = {key: value for key, value in options.items() if value is not None}
    solution = read.solve(chosen, progress=False if quiet else None, on_failure="return", **given)
    if said:
        exits.say(results.answer(solution))
    files: list[str] = []
    undrawn: dict[str, str] = {}
    try:
        if place is not None:
            files, undrawn = place.write(read, solution, pictures)
            if said:
                exits.say(f"\nwritten to {place.path}: {', '.join(files)}")
            if pictures and not quiet and folder.find_spec("matplotlib") is None:
                exits.say(folder.NO_PICTURES, err=True)
        if proof is not None:
            proved = solution.prove(proof)
            if said:
                exits.say(f"\n{proved}")
    finally:  # the answer is told, whatever became of the files
        if as_json:
            exits.say_json(results.document(read, solution, files))
        exits.say_undrawn(undrawn)
    ctx.exit(exits.of_status(solution.status, undrawn))


@main.command()
@with_model
@click.option(
    "--method",
    "names",
    metavar="METHOD",
    multiple=True,
    help="Only this: NAME or 'NAME(option=value, ...)'; repeatable.",
)
@gap_option
@click.option("--seconds", type=SECONDS, default=60.0, show_default=True, help="The budget of each method.")
@click.option("--seed", type=click.IntRange(min=0), help="For methods that draw random numbers.")
@click.option("--csv", type=FILE, help="Write the table to this file.")
@click.option(
    "--picture", type=FILE, help="Draw the gaps against rounds, messages, bytes and seconds in this PNG file."
)
@force_option
@quiet_option
@json_option
@click.pass_context
def compare(  # noqa: PLR0913, PLR0917 - one argument per option
    ctx: click.Context,
    read: Any,
    names: tuple[str, ...],
    gap: float | None,
    seconds: float,
    seed: int | None,
    csv: Path | None,
    picture: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run every method that applies, or those named, and set the answers side by side.

    The exit code is that of the method with the best answer: 0 where at least one is certified.
    """
    import graphreg as gr

    from . import folder, results

    methods: dict[str, Any] = {name: _method(name, read) or read.method for name in names}
    for file, option in ((csv, "--csv"), (picture, "--picture")):
        if file is not None:
            folder.check_new(file, force, option)
    if picture is not None and folder.find_spec("matplotlib") is None:
        raise click.UsageError(folder.NO_PICTURES)
    target: float = read.options.get("gap", 1e-6) if gap is None else gap
    seed = read.options.get("seed") if seed is None else seed
    shown = False if quiet else None
    found = gr.compare(read.problem, methods or None, gap=target, seconds=seconds, seed=seed, progress=shown)
    table = found.table()
    if as_json:
        rows = results.plain({str(name): row.to_dict() for name, row in table.iterrows()})
        exits.say_json({"versions": results.versions(), "methods": rows, "reference": found.reference})
    elif not quiet:
        exits.say(f"{read}\n\n{found}\n(above: the objective minus the best lower bound of all)")
    if csv is not None:
        folder.write_all(csv.parent, {csv.name: escaping.table(table.rename_axis("method").reset_index())})
    undrawn: dict[str, str] = {}
    if picture is not None:
        drawn, undrawn = folder.draw_all({picture.name: lambda: folder.draw_comparison(found)})
        folder.write_all(picture.parent, drawn)
    exits.say_undrawn(undrawn)
    codes = [exits.of_status(entry.status) for entry in found.entries.values()]
    ctx.exit(exits.INTERRUPTED if exits.INTERRUPTED in codes else min(codes) or exits.of_status("certified", undrawn))


@main.command()
@with_model
@click.argument("algorithm")
@click.option("--rounds", type=click.IntRange(min=1), help="Of the main run; by default 3,000 to 12,000.")
@click.option("--seconds", type=SECONDS, default=60.0, show_default=True, help="The budget of the whole audit.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the algorithm and the referee."
)
@click.option("--html", type=FILE, help="Write the report as a page to this file.")
@force_option
@click.pass_context
def audit(ctx: click.Context, read: Any, algorithm: str, html: Path | None, force: bool, **options: Any) -> None:
    """Audit an algorithm on the problem in a model file: where it leads, whether its nodes hear of neighbours alone,
    and what it does instead.

    ALGORITHM is MODULE:FUNCTION, found beside the model file, in the current folder or on the Python path, or a method
    as in --method of solve. The code of a module that is named here is run.
    """
    import graphreg as gr

    from . import folder, methods

    if html is not None:
        folder.check_new(html, force, "--html")
    given = methods.read_algorithm(algorithm, [read.folders.model, Path.cwd()])
    report = gr.audit(read.problem, given, **options)
    exits.say(str(report))
    if html is not None:
        folder.write_all(html.parent, {html.name: PAGE.format(report.to_html()).encode()})
    ctx.exit(exits.of_audit(report))


@main.command()
@with_model
def methods(read: Any) -> None:
    """Which methods apply to the problem in a model file, what the others lack, what each needs and sends."""
    exits.say(str(read.problem.methods()))


main.add_command(papers)


# ---- proofs ----------------------------------------------------------------------------------------------------------
@main.command()
@click.argument("proof", type=FILE)
@click.option("--model", metavar="HASH", help="The model that it must be a proof of; see `graphreg hash`.")
@click.option("--no-flint", is_flag=True, help="Compute with the standard library alone.")
@click.option("--seconds", type=SECONDS, default=3600.0, show_default=True, help="The most it may take.")
@click.pass_context
def verify(ctx: click.Context, proof: Path, model: str | None, no_flint: bool, seconds: float) -> None:
    """Check a proof in exact arithmetic: a file that `solve --proof`, or Solution.prove in Python, has written.

    The checker is one file that imports nothing of graphreg and runs alone, on any machine with Python.
    """
    from ..verify import main as check

    options = ["--seconds", str(seconds), *(["--no-flint"] if no_flint else []), *(["--model", model] if model else [])]
    ctx.exit(check([str(proof), *options]))


@main.command("hash")
@with_model
def hash_(read: Any) -> None:
    """Print the hash by which proofs name the problem in a model file."""
    from ..certificate.proof import model_hash

    exits.say(model_hash(read.problem.form))


# ---- checks ----------------------------------------------------------------------------------------------------------
@main.group()
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


# ---- to begin with ---------------------------------------------------------------------------------------------------
@main.command()
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


@main.command()
@click.argument("kind", type=click.Choice(["penalty", "loss"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write a penalty or a loss of your own to begin with: one file with the class NAME, which obeys every law.

    Change its methods, and run the file: it checks them, and solves a small problem by two routes.
    """
    from . import template

    path = template.write(kind, name, Path.cwd())
    exits.say(f"written: {path.name}\nnow: python {path.name}, or graphreg check {kind} {path.stem}:{name}")


@main.command()
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


def _method(text: str | None, model: Any) -> Any:
    """The method that an option names; None where that is the model file's own, which has its options."""
    from . import methods

    if text is None or (model.method is not None and model.method.name == text):
        return None
    return methods.read(text, [model.folders.model, Path.cwd()])
