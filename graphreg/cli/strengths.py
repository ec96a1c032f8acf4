"""Commands on strengths: a path, cross-validation, and the strength from which on all nodes agree; and a report of a
path, or of one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..base import escaping
from ..errors import ModelFileError
from . import exits
from .outputs import Outputs, with_outputs
from .program import FILE, SECONDS, choice, chosen_method, gap_option, jobs_option, main, quiet_option, with_model

method_option = click.option(
    "--method", metavar="METHOD", help="NAME or 'NAME(option=value, ...)'; by default the fastest that applies."
)
parameter_option = click.option(
    "--parameter", metavar="NAME", help="Which parameter of the model file varies; by default its only one."
)
seconds_option = click.option("--seconds", type=SECONDS, help="A budget of time for all of it.")
checkpoint_option = click.option(
    "--checkpoint", type=FILE, help="Keep what is finished in this file; where it is there, go on from it."
)


class Values(click.ParamType):
    """ "0.1,0.3,1" as numbers, or "20" as how many there are to be."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            if value.strip().isdecimal():
                return int(value)
            return [float(each) for each in value.split(",")]
        except ValueError:
            self.fail(f"{value!r} is neither numbers between commas, as 0.1,0.3,1, nor how many there are to be", param)


class NamedValues(Values):
    """Values, or "lam=0.1,0.3": those of one parameter."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, equals, values = value.rpartition("=")
        return (name.strip() if equals else None), super().convert(values, param, ctx)


def check_varies(read: Any) -> None:
    """Refuse a model file in which no strength has a name."""
    if any(strength.parameter is not None for strength, _ in read.problem.model.terms):
        return
    tables = [name for name in ("total_variation", "hierarchy", "node_penalty", "rows", "loss") if name in read.content]
    raise ModelFileError(
        f"{read.path.name}: no strength in it can vary; in the table of the term whose strength is to, [{tables[0]}] "
        'for instance, write parameter = "lam" beside strength = 0.3'
    )


def code_of(complete: bool, certified: bool, ended: str, undrawn: dict[str, str]) -> int:
    """The exit code of several solves."""
    if ended == "interrupted":
        return exits.INTERRUPTED
    return exits.of_status("certified" if complete and certified else "budget", undrawn)


@main.command(short_help="Answers at many strengths, each certified.")
@with_model
@click.option(
    "--strengths",
    type=Values(),
    default="50",
    help="Numbers between commas, or how many, evenly spaced on a logarithmic scale below strength-max.",
)
@parameter_option
@method_option
@gap_option
@seconds_option
@checkpoint_option
@click.option("--events", type=FILE, help="Write which edges fuse and split, and where, to this CSV file.")
@with_outputs("the coefficients along the path")
def path(read: Any, to: Outputs, method: str | None, gap: float | None, events: Path | None, **asked: Any) -> int:
    """Solve the problem in a model file at many strengths, each certified.

    Which strength varies is said in the model file: parameter = "lam" beside strength = 0.3.
    """
    import graphreg as gr

    from . import folder

    folder.check_new(events, to.force, "--events")
    check_varies(read)
    asked["gap"] = read.options.get("gap", 1e-6) if gap is None else gap
    how = chosen_method(method, read)
    found = gr.path(read.problem, method=how, progress=to.progress, on_failure="return", **asked)
    with exits.finishing():
        rows = {f"{strength:.10g}": solution.table().to_dict("index") for strength, solution in found.solutions.items()}
        document = {"parameter": found.parameter.name, "path": found.table().to_dict("records"), "coefficients": rows}
        if events is not None:
            folder.write_all(events.parent, {events.name: escaping.table(found.events())})
        undrawn = to.deliver(
            found, found.table(), {**document, "ended": found.ended}, lambda figure: found.plot(ax=figure.subplots())
        )
    certified = all(solution.status == "certified" for solution in found)
    return code_of(found.complete, certified, found.ended, undrawn)


@main.command(short_help="The strength that predicts best, by cross-validation.")
@with_model
@click.option(
    "--strengths",
    "given",
    type=NamedValues(),
    multiple=True,
    help="Numbers between commas, or how many (20); NAME=0.1,0.3 for each of several parameters.",
)
@click.option("--folds", type=click.IntRange(min=2), default=5)
@choice("--by", "sample", "node", help="Hold out samples of every node, or whole nodes.")
@choice("--scoring", "loss", "mse", "mae", "accuracy", "log_loss", "auc", "deviance", show_default=False)
@choice(
    "--rule",
    "min",
    "1se",
    "paired",
    help="The best score; the one-SE rule; or the best unless the strongest is as good.",
)
@method_option
@gap_option
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the folds.")
@seconds_option
@jobs_option
@checkpoint_option
@with_outputs("the scores")
def cv(
    read: Any,
    to: Outputs,
    given: tuple[tuple[str | None, Any], ...],
    method: str | None,
    gap: float | None,
    **asked: Any,
) -> int:
    """Choose the strengths of the problem in a model file by cross-validation, and solve it there.

    Which strengths are to be chosen is said in the model file: parameter = "lam" beside strength = 0.3.
    """
    import graphreg as gr

    check_varies(read)
    asked["gap"] = read.options.get("gap", 1e-6) if gap is None else gap
    how = chosen_method(method, read)
    found = gr.cross_validate(read.problem, _grid(given), method=how, progress=to.progress, **asked)
    with exits.finishing():
        table = found.table().reset_index()
        chosen = found.chosen if found.complete and found.usable.any() else None
        refit = found.solution
        document = {
            "points": table.to_dict("records"),
            "chosen": chosen,
            "rule": found.rule,
            "ended": found.ended,
            "coefficients": None if refit is None else refit.table().to_dict("index"),
        }
        undrawn = to.deliver(found, table, document, lambda figure: found.plot(ax=figure.subplots()))
    certified = chosen is not None and (refit is None or refit.status == "certified")
    return code_of(found.complete, certified, found.ended, undrawn)


def _grid(given: tuple[tuple[str | None, Any], ...]) -> Any:
    """The values of --strengths, as `cross_validate` takes them."""
    if not given:
        return None
    if len(given) == 1 and given[0][0] is None:
        return given[0][1]
    if any(name is None for name, _ in given):
        raise click.UsageError("--strengths was given more than once; write NAME=0.1,0.3 for each parameter")
    return dict(given)


@main.command("strength-max", short_help="The strength from which on all nodes agree.")
@with_model
@parameter_option
@seconds_option
@with_outputs()
def strength_max(read: Any, to: Outputs, **asked: Any) -> int:
    """The smallest strength from which on all nodes of a component agree: a larger one changes nothing.

    It has a certified lower and upper bound, and says which component binds.
    """
    import graphreg as gr

    found = gr.strength_max(read.problem, **asked)
    numbers = {"strength_max": found.value, "lower": found.lower, "upper": found.upper, "ended": found.ended}
    to.deliver(found, found.table(), numbers)
    return code_of(not found.ended, True, found.ended, {})


@main.command(short_help="One page with sliders that opens offline.")
@with_model
@click.option("--out", type=FILE, required=True, help="The page (HTML); a report that is there is replaced.")
@click.option("--strengths", type=Values(), help="A path: numbers between commas, or how many; see `graphreg path`.")
@parameter_option
@click.option("--outlines", type=FILE, help="GeoJSON or TopoJSON with a polygon per node: the graph becomes a map.")
@click.option("--positions", type=FILE, help="A table (CSV) of nodes with their x and y.")
@click.option("--compare", "compared", is_flag=True, help="Draw the bounds of all methods that apply.")
@click.option("--method", metavar="METHOD", help="Instead of that in the model file, as in solve.")
@gap_option
@click.option("--seconds", type=SECONDS, help="A budget of time for the solve, the path, or each method compared.")
@quiet_option
def report(read: Any, out: Path, strengths: Any, compared: bool, quiet: bool, **asked: Any) -> int:
    """Write one page that opens offline: the model and its dual, the certificate in words, the graph with its clusters
    and flows, and both bounds, with sliders over the rounds, or over the strengths of a path.

    The rounds of an iterative method are observed for it, unless the model file keeps a checkpoint.
    """
    import graphreg as gr

    from ..reporting import check_place

    if strengths is not None and compared:
        raise click.UsageError("--compare is of one answer; leave --strengths or --compare out")
    check_place(out)
    method, parameter, positions = (asked.pop(name) for name in ("method", "parameter", "positions"))
    chosen, shown = chosen_method(method, read), False if quiet else None
    placed = {"outlines": asked.pop("outlines"), "positions": None if positions is None else _places(positions)}
    given = {key: value for key, value in asked.items() if value is not None}
    if strengths is not None:
        given = {key: value for key, value in read.options.items() if key in ("gap", "rounds", "seconds")} | given
        path = gr.path(
            read.problem, strengths, parameter, chosen or read.method, progress=shown, on_failure="return", **given
        )
        path.report(out, **placed)
        certified = all(each.status == "certified" for each in path)
        code, said = code_of(path.complete, certified, path.ended, {}), str(path)
    else:
        observe = _observer(chosen or read.method, read.options)
        solution = read.solve(chosen, progress=shown, on_failure="return", observe=observe, **given)
        found = gr.compare(read.problem, seconds=given.get("seconds", 60.0), progress=shown) if compared else None
        solution.report(out, comparison=found, **placed)
        code, said = exits.of_status(solution.status), str(solution)
    if not quiet:
        exits.say(f"{said}\n\nwritten to {out}")
    return code


def _observer(method: Any, options: Any) -> Any:
    """The observations that a report needs of a run: parameters, and flows where the method holds any."""
    from ..errors import MethodError
    from ..methods import AbstractIteration

    if not isinstance(method, AbstractIteration) or "checkpoint" in options:
        return None

    def flows(at: Any) -> Any:
        try:
            return at.flows
        except MethodError:
            return 0.0

    return {"w": lambda at: at.w, "flows": flows}


def _places(file: Path) -> dict[str, tuple[float, float]]:
    """The positions in a table, whose first columns are the node, x and y; labels are text."""
    import pandas as pd

    from ..errors import ModelFileError

    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
        return {str(row[0]): (float(row[1]), float(row[2])) for row in table.itertuples(index=False)}
    except OSError as error:
        raise ModelFileError(f"--positions: {file} cannot be read: {error.strerror}") from None
    except (ValueError, IndexError) as error:
        raise ModelFileError(
            f"--positions: {file} must be a table whose first columns are the node, x and y ({error})"
        ) from None
