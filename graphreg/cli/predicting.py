"""The command that predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..escaping import printed
from . import exits
from .commands import chosen_method
from .outputs import Outputs, with_outputs
from .program import FILE, gap_option, main, method_option, with_model


@main.command(short_help="Predictions for the rows of another table.")
@with_model
@click.argument("rows", type=FILE)
@click.option(
    "--kind",
    type=click.Choice(["response", "link", "class"]),
    default="response",
    show_default=True,
    help="What the loss makes of x'w + offset; that itself; or the class.",
)
@click.option("--like", "name", metavar="NAME", help="Which [[data]] the rows are like, where there are several.")
@method_option
@gap_option
@with_outputs()
@click.pass_context
def predict(
    ctx: click.Context,
    read: Any,
    to: Outputs,
    rows: Path,
    kind: str,
    name: str | None,
    method: str | None,
    gap: float | None,
) -> None:
    """Solve the problem in a model file, and predict the rows of the table ROWS, each from the parameters of its node.

    ROWS has the columns of the data; the target is not needed. Derived columns are computed and features standardised
    as those of the data were. The column prediction_status says whether the parameters are certified.
    """
    frame = read.rows_like(rows, name)
    options = {} if gap is None else {"gap": gap}
    solution = read.solve(chosen_method(method, read), progress=to.progress, on_failure="return", **options)
    warning = ""
    if solution.status != "certified":
        warning = f"the coefficients are not certified to the gap asked for: {solution.status}"
        exits.say(warning, err=True)
    predicted = solution.predict(frame, kind)
    frame = read.rows_like(rows, name, standardised=False)  # the table has the user's own numbers
    table = frame.assign(prediction=predicted) if predicted.ndim == 1 else frame.join(predicted.add_prefix("P "))
    document = {"status": solution.status, "rows": table.to_dict("records")}
    table = table.assign(prediction_status=solution.status)  # in every row: a table is read without what was printed
    to.deliver(table, table, document, text=printed(table, max_rows=20), warning=warning)
    ctx.exit(exits.of_status(solution.status))
