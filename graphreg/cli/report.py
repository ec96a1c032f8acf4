"""``graphreg report``: the answer to a model file, or a path of answers, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import exits
from .program import FILE, SECONDS, gap_option, main, quiet_option, with_model

if TYPE_CHECKING:
    import graphreg as gr


@main.command()
@with_model
@click.option("--out", type=FILE, required=True, help="The page (HTML); a report that is there is replaced.")
@click.option("--strengths", type=click.IntRange(min=2), help="A path of so many strengths of the total variation.")
@click.option("--outlines", type=FILE, help="GeoJSON or TopoJSON with a polygon per node: the graph becomes a map.")
@click.option("--positions", type=FILE, help="A table (CSV) of nodes with their x and y.")
@click.option("--compare", "compared", is_flag=True, help="Draw the bounds of all methods that apply.")
@click.option("--method", metavar="METHOD", help="Instead of that in the model file, as in solve.")
@gap_option
@click.option("--seconds", type=SECONDS, help="A budget of time for the solve, the path, or each method compared.")
@quiet_option
@click.pass_context
def report(  # noqa: PLR0913, PLR0917 - one argument per option
    ctx: click.Context,
    read: Any,
    out: Path,
    strengths: int | None,
    outlines: Path | None,
    positions: Path | None,
    compared: bool,
    method: str | None,
    gap: float | None,
    seconds: float | None,
    quiet: bool,
) -> None:
    """Write one page that opens offline: the model and its dual, the certificate in words, the graph with its clusters
    and flows, and both bounds, with sliders over the rounds, or over the strengths of a path.

    The rounds of an iterative method are observed for it, unless the model file keeps a checkpoint.
    """
    import graphreg as gr

    from ..reporting import check_place
    from .commands import method_of

    if strengths is not None and compared:
        raise click.UsageError("--compare is of one answer; leave --strengths or --compare out")
    check_place(out)
    chosen = method_of(method, read)
    given: dict[str, Any] = {k: v for k, v in (("gap", gap), ("seconds", seconds)) if v is not None}
    shown = False if quiet else None
    placed: dict[str, Any] = {"outlines": outlines, "positions": None if positions is None else _places(positions)}
    if strengths is not None:
        asked = {key: value for key, value in read.options.items() if key in ("gap", "rounds", "seconds")} | given
        way = chosen or (read.method if method is None else None)
        path = gr.path(_with_parameter(read.problem), strengths, method=way, progress=shown, **asked)
        path.report(out, **placed)
        code = _of_path(path)
        said = str(path)
    else:
        observe = _observer(chosen or read.method, read.options)
        solution = read.solve(chosen, progress=shown, on_failure="return", observe=observe, **given)
        found = gr.compare(read.problem, seconds=seconds or 60.0, progress=shown) if compared else None
        solution.report(out, comparison=found, **placed)
        code, said = exits.of_status(solution.status), str(solution)
    if not quiet:
        exits.say(f"{said}\n\nwritten to {out}")
    ctx.exit(code)


def _observer(method: Any, options: Any) -> Any:
    """What is kept of a run: parameters, and flows where the method holds any."""
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


def _with_parameter(problem: gr.Problem) -> gr.Problem:
    """The problem with a Parameter for the strength of its only total variation."""
    import graphreg as gr

    from ..terms import Strength

    terms = problem.model.terms
    varying = [
        k for k, (_, term) in enumerate(terms)
        if isinstance(term, gr.TotalVariation) and not isinstance(term.penalty, gr.AbstractConstraint)
    ]  # fmt: skip
    if len(varying) != 1:
        raise click.UsageError(
            f"--strengths varies the strength of one total variation, and the model has {len(varying) or 'none'}; "
            "write the path in Python: gr.path"
        )
    parameter = gr.Parameter(float(terms[varying[0]][0]), "lambda")
    varied = [(Strength.of(parameter) if k == varying[0] else s, term) for k, (s, term) in enumerate(terms)]
    return gr.Problem(gr.Model(tuple(varied)))


def _of_path(path: Any) -> int:
    if path.ended == "interrupted":
        return exits.INTERRUPTED
    return max((exits.of_status(each.status) for each in path), default=exits.NO_ANSWER)


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
