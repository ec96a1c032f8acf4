"""The commands on a model file. Everything heavy is imported when a command runs, so that --help is quick."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..base.clock import within
from ..base.escaping import printed
from . import exits
from .outputs import Outputs, with_outputs, with_predictions
from .program import (
    FILE,
    FOLDER,
    SECONDS,
    TABLE,
    algorithm_of,
    choice,
    chosen_method,
    force_option,
    gap_option,
    json_option,
    main,
    memory_option,
    method_option,
    prove_option,
    quiet_option,
    with_model,
)


@main.command(epilog="`graphreg example` prints a complete model file.", short_help="The answer, with its certificate.")
@with_model
@method_option
@gap_option
@prove_option
@click.option("--rounds", type=click.IntRange(min=1), help="At most so many rounds of an iterative method.")
@click.option("--seconds", type=SECONDS, help="At most so many seconds of an iterative method.")
@memory_option
@click.option("--seed", type=int, help="For methods that draw random numbers.")
@click.option(
    "--out",
    type=FOLDER,
    help="Write tables, result.json and pictures into this folder, which is made, or holds an earlier result.",
)
@force_option
@click.option("--proof", type=FILE, help="Write a proof of the answer's bounds into this file.")
@click.option(
    "--pictures/--no-pictures", default=True, show_default=False, help="Whether --out draws the graph and the trace."
)
@quiet_option
@json_option
def solve(read: Any, out: Path | None, proof: Path | None, force: bool, **asked: Any) -> int:
    """Solve the problem in a model file and certify the answer.

    Prints the problem, the answer with its certificate, the first coefficients and the clusters. The options come
    before what the model file says. Ctrl-C ends a run with the best point so far and its certificate; files are still
    written.
    """
    from . import folder, results

    quiet, as_json, pictures, prove = (asked.pop(name) for name in ("quiet", "as_json", "pictures", "prove"))
    chosen, said = chosen_method(asked.pop("method"), read), not (quiet or as_json)
    say: Callable[[object], None] = exits.say if said else lambda text: None
    place = folder.Folder.prepare(out, force) if out is not None else None
    folder.check_new(proof, force, "--proof")
    say(f"{read}\n\n{read.problem}\n")
    given = {key: value for key, value in asked.items() if value is not None}
    with within(given.get("seconds", read.options.get("seconds"))):
        solution = read.solve(chosen, progress=False if quiet else None, on_failure="return", **given)
        clusters = results.clusters_of(solution, prove)
    if said:
        say(results.answer(solution, clusters))
    if prove and clusters is None and (rows := solution.form.unlike_edges):
        exits.say(f"--prove: rows of {rows[0].name} make no clusters, and nothing was looked for", err=True)
    files: list[str] = []
    undrawn: dict[str, str] = {}
    try:
        if place is not None:
            files, undrawn = place.write(read, solution, clusters, pictures)
            say(f"\nwritten to {place.path}: {', '.join(files)}")
            if pictures and not quiet and folder.find_spec("matplotlib") is None:
                exits.say(folder.NO_PICTURES, err=True)
        if proof is not None:
            say(f"\n{solution.prove(proof, force=force)}")
    finally:  # the answer is told, whatever became of the files
        if as_json:
            exits.say_json(results.document(read, solution, clusters, files))
        exits.say_undrawn(undrawn)
    return exits.of_status(solution.status, undrawn)


@main.command(short_help="Every method that applies, side by side.")
@with_model
@click.option(
    "--method",
    "names",
    metavar="METHOD",
    multiple=True,
    help="Only this: NAME or 'NAME(option=value, ...)'; repeatable.",
)
@gap_option
@click.option("--seconds", type=SECONDS, default=60.0, help="The budget of each method.")
@click.option("--seed", type=click.IntRange(min=0), help="For methods that draw random numbers.")
@with_outputs("the gaps against rounds, messages, bytes and seconds")
def compare(read: Any, to: Outputs, names: tuple[str, ...], gap: float | None, **asked: Any) -> int:
    """Run every method that applies, or those named, and set the answers side by side.

    The exit code is that of the method with the best answer: 0 where at least one is certified.
    """
    import graphreg as gr

    methods: dict[str, Any] = {name: chosen_method(name, read) for name in names}
    asked["gap"] = read.options.get("gap", 1e-6) if gap is None else gap
    if asked["seed"] is None:
        asked["seed"] = read.options.get("seed")
    found = gr.compare(read.problem, methods or None, progress=to.progress, **asked)
    table = found.table().rename_axis("method")
    rows = {str(name): row.to_dict() for name, row in table.iterrows()}
    undrawn = to.deliver(
        found,
        table.reset_index(),
        {"methods": rows, "reference": found.reference},
        partial(_draw_comparison, found),
        f"{read}\n\n{found}\n(above: the objective minus the best lower bound of all)",
    )
    codes = [exits.of_status(entry.status) for entry in found.entries.values()]
    return exits.INTERRUPTED if exits.INTERRUPTED in codes else min(codes) or exits.of_status("certified", undrawn)


def _draw_comparison(found: Any, figure: Any) -> None:
    from ..plots import comparison_figure
    from ..plots.comparing import SIZE

    figure.set_size_inches(*SIZE)
    comparison_figure(found, figure)


@main.command(short_help="Where an algorithm of your own leads, and what is wrong.")
@with_model
@click.argument("algorithm")
@click.option("--rounds", type=click.IntRange(min=1), help="Of the main run; by default 3,000 to 12,000.")
@click.option("--seconds", type=SECONDS, default=60.0, help="The budget of the whole audit.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the algorithm and the referee.")
@click.option("--html", type=FILE, help="Write the report as a page to this file.")
@force_option
def audit(read: Any, algorithm: str, html: Path | None, force: bool, **options: Any) -> int:
    """Audit an algorithm on the problem in a model file: where it leads, whether its nodes hear of neighbours alone,
    and what it does instead.

    ALGORITHM is MODULE:FUNCTION, found beside the model file, in the current folder or on the Python path, or a method
    as in --method of solve. The code of a module that is named here is run.
    """
    import graphreg as gr

    from ..reporting import plain_page
    from . import folder

    folder.check_new(html, force, "--html")
    report = gr.audit(read.problem, algorithm_of(algorithm, [read.folders.model, Path.cwd()]), **options)
    exits.say(str(report))
    if html is not None:
        folder.write_all(html.parent, {html.name: plain_page("graphreg audit", report.__html__())})
    return exits.of_audit(report)


@main.command(short_help="Which methods apply, what each needs and sends.")
@with_model
def methods(read: Any) -> None:
    """Which methods apply to the problem in a model file, what the others lack, what each needs and sends."""
    exits.say(str(read.problem.methods()))


@main.command(short_help="Predictions for the rows of another table.")
@with_model
@click.argument("rows", type=TABLE)
@choice("--kind", "response", "link", "class", help="What the loss makes of x'w + offset; that itself; or the class.")
@click.option("--like", "name", metavar="NAME", help="Which [[data]] the rows are like, where there are several.")
@method_option
@gap_option
@with_outputs()
def predict(read: Any, to: Outputs, rows: Path, kind: str, name: str | None, **asked: Any) -> int:
    """Solve the problem in a model file, and predict the rows of the table ROWS, each from the parameters of its node.

    ROWS has the columns of the data; the target is not needed. Derived columns are computed and features standardised
    as those of the data were. The column prediction_status says whether the parameters are certified. With - as ROWS a
    CSV is read from standard input.
    """
    from numpy import zeros

    from ..running.summary import predicted

    frame, form = read.rows_like(rows, name), read.problem.form
    predicted(form, zeros(form.shape), frame, kind)  # what this refuses is refused before anything is solved
    chosen = chosen_method(asked.pop("method"), read)
    given = {key: value for key, value in asked.items() if value is not None}
    solution = read.solve(chosen, progress=to.progress, on_failure="return", **given)
    warning = ""
    if solution.status != "certified":
        warning = f"the coefficients are not certified to the gap asked for: {solution.status}"
        exits.say(warning, err=True)
    table = with_predictions(frame, solution.predict(frame, kind), solution.status)
    document = {"status": solution.status, "rows": table.drop(columns="prediction_status").to_dict("records")}
    to.deliver(table, table, document, text=printed(table, max_rows=20), warning=warning)
    return exits.of_status(solution.status)
