"""``graphreg fit table.csv edges.csv``: from two tables to an answer, without a model file."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..base import escaping
from ..base.clock import stages, within
from ..base.messages import did_you_mean, shown
from ..errors import DataError, GraphregError
from . import exits
from .outputs import Outputs, with_outputs, with_predictions
from .program import FILE, TABLE, choice, gap_option, jobs_option, made, main, memory_option, prove_option, typed
from .strengths import Values, seconds_option


@main.command(short_help="From a table and its edges to an answer, without a model file.")
@click.argument("table", type=TABLE)
@click.argument("edges", type=TABLE)
@click.option("--target", required=True, metavar="COLUMN", help="What is to be predicted.")
@click.option("--node", required=True, metavar="COLUMN", help="The label of the node of each row.")
@click.option("--features", metavar="A,B,...", help="By default all other columns; text becomes categories.")
@click.option("--weights", metavar="COLUMN", help="Weights of the rows.")
@click.option("--loss", metavar="NAME", help="SquaredLoss, 'HuberLoss(delta=2.5)', ...; by default that of the target.")
@click.option("--penalty", metavar="NAME", help="L2, L1, 'HuberNorm(delta=1.0)', ...; by default L2.")
@click.option("--strengths", type=Values(), help="Numbers between commas, or how many; by default 20 and a tiny one.")
@choice("--missing", "error", "drop", "mean", help="What becomes of missing cells.")
@choice("--ids", "exact", "strip", help="Labels as they stand, or without spaces at their ends.")
@choice("--repeated", "error", "sum", help="What becomes of edges that stand several times.")
@click.option("--edge-weight", metavar="COLUMN", help="The weights of EDGES; by default 'weight', where there is one.")
@choice("--by", "sample", "node", help="Hold out samples of every node, or whole nodes.")
@click.option("--folds", metavar="N|COLUMN", default="5", help="So many at random, or one for each value of a column.")
@choice(
    "--rule", "paired", "min", "1se", help="The best unless the strongest is as good; the best; or the one-SE rule."
)
@prove_option
@gap_option
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the folds.")
@seconds_option
@memory_option
@jobs_option
@click.option("--intervals", type=FILE, help="Write standard errors and 95% intervals of each node alone to this file.")
@click.option("--predict", type=(TABLE, FILE), metavar="ROWS FILE", help="Predict the rows of a table, into a file.")
@choice("--unseen", "error", "pooled", help="Rows of --predict at new nodes: refused, or by one model for all nodes.")
@click.option("--code", is_flag=True, help="Print the lines of Python that do the same, and nothing else.")
@with_outputs("the scores and the clusters")
def fit(
    table: Path, edges: Path, to: Outputs, features: str | None, gap: float | None, intervals: Path | None, **asked: Any
) -> int:
    """Fit a model at every node to the rows of TABLE, tied together along EDGES (the labels of their ends in the
    first two columns, or an adjacency), and say how well it predicts rows that were held out.

    Features are standardised inside; coefficients (--csv, with the cluster of each node) are in the units of the table.
    In place of a table, - reads a CSV from standard input.
    """
    import graphreg as gr

    from ..fitting import Asked, readied
    from . import folder, results

    code, unseen, prove, predict = (asked.pop(name) for name in ("code", "unseen", "prove", "predict"))
    rows, predictions = predict or (None, None)
    folder.check_new(intervals, to.force, "--intervals")
    folder.check_new(predictions, to.force, "--predict")
    if rows is not None and not rows.is_file():
        raise DataError(f"--predict: there is no file {shown(str(rows))}")
    asked["folds"] = int(asked["folds"]) if asked["folds"].isdecimal() else asked["folds"]
    asked["penalty"] = asked["penalty"] and made("penalty", asked["penalty"], "--penalty", [Path.cwd()])
    asked["features"] = None if features is None else [name.strip() for name in features.split(",")]
    with within(asked["seconds"]), said_as_options():
        with stages("fit", to.progress, "reading"):
            ready = readied(table, edges, Asked(**{each.name: asked[each.name] for each in fields(Asked)}))
        if rows is not None:
            ready.check(rows, unseen)
        found = replace(gr.fit(ready, edges, gap=gap or 1e-6, progress=to.progress, **asked), prove=prove)
        clusters = found.clusters_shown  # with its proofs, while the time runs
    with exits.finishing():
        coefficients = found.table().set_axis(results.coordinates(found.solution), axis=1)
        document: dict[str, Any] = {
            "strength": found.strength,
            "loss": found.loss,
            "remarks": list(found.remarks),
            "scores": found.scores.to_dict("index"),
            "status": found.solution.status,
            "certificate": results.bounds(found.solution),
            "coefficients": coefficients.to_dict("index"),
            "clusters": results.clusters(clusters),
        }
        if rows is not None and predictions is not None:
            written = escaping.table(_predicted(found, rows, unseen))
            folder.write_all(predictions.parent, {predictions.name: written})
        more = [] if intervals is None else _intervals(found, intervals, document)
        text = _code(found, table, edges, asked) if code else "\n\n".join(typed(str(each)) for each in (found, *more))
        cluster = [clusters.labels[node] for node in coefficients.index]
        coefficients.insert(len(coefficients.columns), "cluster", cluster, allow_duplicates=True)
        to.deliver((found, *more), coefficients.reset_index(), document, partial(_draw, found), text)
    return exits.of_status(found.solution.status) or (exits.CERTIFIED if more or intervals is None else exits.DATA)


def _code(found: Any, table: Path, edges: Path, asked: dict[str, Any]) -> str:
    """The lines of Python, which begin with the two files."""
    from ..fitting import READ, Asked

    how = {each.name: asked[each.name] for each in fields(Asked) if asked[each.name] is not None}
    given = "".join(f", {name}={value!r}" for name, value in {**how, "strengths": [1.0]}.items())
    read = f"fit = gr.fit({str(table)!r}, {str(edges)!r}{given})  # whose rows and graph are taken"
    return found.code().replace(READ, f"{read}\nframe, graph = fit.rows.frame, fit.graph")


def _draw(found: Any, figure: Any) -> None:
    figure.set_size_inches(12.0, 4.8)  # two panels
    found.plot(figure)


def _predicted(found: Any, rows: Path, unseen: str) -> Any:
    """The rows of a file with their predictions; at which nodes these are of one model for all is said."""
    with said_as_options():
        predicted = found.predict(rows, unseen=unseen)
    given, gaps = found.rows.rows_like(rows)
    if gaps:
        exits.say(f"missing cells of {shown(rows.name)} are filled as those of the table: {gaps}", err=True)
    for label in dict.fromkeys(given[found.rows.node].tolist()):
        if label not in found.graph.index:
            hint = did_you_mean(label, found.graph.index)
            exits.say(f"rows at {label!r} are predicted by one model for all nodes{hint}", err=True)
    return with_predictions(given, predicted, found.solution.status)


def _intervals(found: Any, file: Path, document: dict[str, Any]) -> list[Any]:
    """The intervals of each node alone, written to a file, and into the document; which coefficients have none, and
    why, is written, and which nodes is said."""
    import pandas as pd

    import graphreg as gr

    from . import folder

    try:
        regions = gr.inference.local_regions(found)
    except GraphregError as error:  # of no node: the answer is none the worse
        exits.say(f"no intervals: {typed(str(error))}", err=True)
        return []
    for why in regions.left_out.values():
        exits.say(f"no intervals: {typed(why)}", err=True)
    table, none = regions.table(), regions.reasons.items()
    rows = table.reset_index().to_dict("records")
    rows += [{"node": node, "coefficient": name, "reason": typed(why)} for (node, name), why in none]
    folder.write_all(file.parent, {file.name: escaping.table(pd.DataFrame(rows))})
    document["intervals"] = rows
    return [table]


@contextmanager
def said_as_options() -> Generator[None]:
    """Errors whose remedies are options."""
    try:
        yield
    except GraphregError as error:
        error.args = (typed(str(error)),)
        raise
