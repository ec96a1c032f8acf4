"""``graphreg report``: the answer to a model file, or a path of answers, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import exits
from .program import FILE, SECONDS, chosen_method, gap_option, main, quiet_option, with_model
from .strengths import Values, code_of, parameter_option


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
def report(  # noqa: PLR0913, PLR0917 - one argument per option
    read: Any,
    out: Path,
    strengths: Any,
    parameter: str | None,
    outlines: Path | None,
    positions: Path | None,
    compared: bool,
    method: str | None,
    gap: float | None,
    seconds: float | None,
    quiet: bool,
) -> int:
    """Write one page that opens offline: the model and its dual, the certificate in words, the graph with its clusters
    and flows, and both bounds, with sliders over the rounds, or over the strengths of a path.

    The rounds of an iterative method are observed for it, unless the model file keeps a checkpoint.
    """
    import graphreg as gr

    from ..reporting import check_place

    if strengths is not None and compared:
        raise click.UsageError("--compare is of one answer; leave --strengths or --compare out")
    check_place(out)
    chosen = chosen_method(method, read)
    given: dict[str, Any] = {k: v for k, v in (("gap", gap), ("seconds", seconds)) if v is not None}
    shown = False if quiet else None
    placed: dict[str, Any] = {"outlines": outlines, "positions": None if positions is None else _places(positions)}
    if strengths is not None:
        asked = {key: value for key, value in read.options.items() if key in ("gap", "rounds", "seconds")} | given
        way = chosen or (read.method if method is None else None)
        path = gr.path(read.problem, strengths, parameter, way, progress=shown, on_failure="return", **asked)
        path.report(out, **placed)
        certified = all(each.status == "certified" for each in path)
        code, said = code_of(path.complete, certified, path.ended, {}), str(path)
    else:
        observe = _observer(chosen or read.method, read.options)
        solution = read.solve(chosen, progress=shown, on_failure="return", observe=observe, **given)
        found = gr.compare(read.problem, seconds=seconds or 60.0, progress=shown) if compared else None
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
