"""Methods on one problem, on equal terms: the same gap, budget and seed, and one bound to measure all of them by."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import checks
from .clock import progress_bar
from .errors import GraphregError, MethodError, SolverError
from .escaping import page, printed, visible
from .methods import METHOD, AbstractMethod, Exact, listed
from .problem import Problem, problem_of
from .running import Solution

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class NoRun:
    """Why a method has no solution: ``status`` is refused (it does not apply), failed or interrupted."""

    status: str
    message: str


@dataclass(frozen=True)
class Comparison:
    """What several methods reached on one problem, and at what cost.

    Attributes
    ----------
    entries : dict
        By name, in order: the Solution of each method that ran, a `NoRun` for the others.
    reference : str
        What ``above`` and the figures measure by: the exact optimum where a conic solver found it in time, else the
        best certified lower bound of all runs.
    bound : float
        Its value, a certified lower bound of the optimum; nan where there is none.
    seed : int
        Of all methods that draw random numbers.
    not_run : tuple of str
        Methods that were left out after Ctrl-C.
    """

    entries: dict[str, Solution | NoRun]
    reference: str
    bound: float
    seed: int = 0
    not_run: tuple[str, ...] = field(default=())

    @property
    def solutions(self) -> dict[str, Solution]:
        """Of the methods that ran, by name."""
        return {name: each for name, each in self.entries.items() if isinstance(each, Solution)}

    def table(self) -> pd.DataFrame:
        """One row per method.

        ``above`` is the objective minus `bound`, so at most that much above the optimum; ``relative_gap`` is what the
        method's own certificate says. ``messages`` and ``bytes`` are all that was sent, ``method_messages`` and
        ``method_bytes`` what was sent without certificates: by the method and its adaptation. ``own_gap``, where there
        are baselines, is what these certified of the problem that they solve instead.

        Returns
        -------
        pandas.DataFrame
            By the name of the method.

        Examples
        --------
        >>> gr.compare(problem, [gr.ADMM()]).table().index.tolist()
        ['ADMM']
        """
        import pandas as pd

        from .tables import LabelledTable

        table = LabelledTable.from_dict({name: self._row(each) for name, each in self.entries.items()}, orient="index")
        own = {name: each.own for name, each in self.solutions.items() if each.own is not None}
        return table.assign(own_gap=pd.Series({name: c.relative_gap for name, c in own.items()})) if own else table

    def _row(self, entry: Solution | NoRun) -> dict[str, Any]:
        if isinstance(entry, NoRun):
            numbers = np.nan, np.nan, np.nan, 0, 0, 0, 0, 0, np.nan
        else:
            certificate, ledger = entry.certificate, entry.ledger
            gap = certificate.relative_gap if certificate.valid else np.nan
            sent = ledger.total_messages, ledger.total_bytes, *ledger.sent()
            objective = entry.objective if np.isfinite(entry.objective) else np.nan  # inf: there is no point
            numbers = objective, objective - self.bound, gap, entry.rounds, *sent, entry.seconds
        return dict(zip(COLUMNS, (entry.status, *numbers), strict=True))

    def plot(self, x: str = "rounds", ax: Axes | None = None) -> Axes:
        """The gap against ``x``: "rounds", "messages", "bytes" or "seconds"; see `explain.plot_comparison`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ModelError
            For another ``x``.

        Examples
        --------
        >>> gr.compare(problem, [gr.ADMM()]).plot("messages").get_xscale()
        'log'
        """
        from .plots import plot_comparison

        return plot_comparison(self, x, ax)

    def figure(self) -> Figure:
        """The four plots side by side, with what they measure by as the caption.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> len(gr.compare(problem, [gr.ADMM()]).figure().axes)
        4
        """
        from .plots import comparison_figure

        return comparison_figure(self)

    def __str__(self) -> str:
        short = dict.fromkeys(("above", "relative_gap", "seconds", "own_gap"), "{:.3g}".format)
        formats: Any = {"objective": "{:.10g}".format, **short}
        lines = [printed(self.table(), formatters=formats, na_rep="-")]
        lines += [
            f"{visible(name)}: {e.status}. {e.message}" for name, e in self.entries.items() if e.status != "certified"
        ]
        if self.not_run:
            lines.append(f"interrupted before these began: {', '.join(map(visible, self.not_run))}")
        return page("\n".join([*lines, f"reference: {self.reference}"]))


COLUMNS = (
    *("status", "objective", "above", "relative_gap", "rounds"),
    *("messages", "bytes", "method_messages", "method_bytes", "seconds"),
)


@checks.named
def compare(
    problem: Problem,
    methods: Sequence[AbstractMethod] | Mapping[str, AbstractMethod] | None = None,
    *,
    gap: float = 1e-6,
    seconds: float = 60.0,
    seed: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run methods on a problem, and set them side by side.

    The yardstick is the exact optimum: it is looked for first, by ``Exact()`` (or the first `Exact` among the methods),
    which is told to end after ``seconds`` as well. A conic solver looks at the clock between its iterations, so on a
    large problem it takes longer than that. Where it does not get there, the best certified lower bound of all runs
    takes its place, and the comparison says so.

    Ctrl-C ends the comparison with what there is. A method that does not apply, or that breaks down, has a row that
    says why.

    Parameters
    ----------
    problem : Problem
    methods : sequence of AbstractMethod, or mapping from names to them, optional
        All that apply by default. In a sequence each is called by its name and the options that are not the default
        ones: ``PrimalDual(balance=1.0)``.
    gap : float
        The relative gap asked of each.
    seconds : float
        The budget of each.
    seed : int, optional
        Of the random numbers, the same for each; by default one is drawn, which ``comparison.seed`` tells.
    progress : bool, optional
        Whether to show on stderr which method is running; by default where that is a terminal.

    Returns
    -------
    Comparison
        ``print`` it; ``.table()``, ``.plot()``, and the solution of each method by its name.

    Raises
    ------
    ModelError, MethodError
        For what is no problem, method or number; and where none of the methods given applies.

    Examples
    --------
    >>> gr.compare(problem, [gr.Exact(), gr.ADMM()]).table()["status"].tolist()
    ['certified', 'certified']
    """
    problem_of(problem, "compare")
    chosen = _named([m for m in listed() if not m.missing(problem.form)] if methods is None else methods)
    if all(method.missing(problem.form) for method in chosen.values()):
        lacks = "; ".join(f"{name}: {', '.join(m.missing(problem.form))}" for name, m in chosen.items())
        raise MethodError(f"none of the methods applies to the problem: {lacks}")
    seed = secrets.randbits(32) if seed is None else seed
    exact = next((name for name, method in chosen.items() if isinstance(method, Exact)), None)
    order = dict.fromkeys([exact, *chosen])  # the reference first, which is no row unless it was asked for
    found: dict[str | None, Solution | NoRun] = {}
    with progress_bar(progress, total=len(order), desc="comparing", unit=" methods") as show:
        for k, name in enumerate(order):
            show(int(k > 0), name or "reference")
            method = Exact() if name is None else chosen[name]
            found[name] = _run(problem, method, {"gap": gap, "seconds": seconds, "seed": seed})
            if found[name].status == "interrupted":  # whoever presses Ctrl-C means all of it
                break
    entries = {name: found[name] for name in chosen if name in found}
    reference, bound = _reference(exact, found, gap)
    return Comparison(entries, reference, bound, seed, tuple(name for name in chosen if name not in found))


def _named(methods: Any) -> dict[str, AbstractMethod]:
    """The methods by name; what is none is refused."""
    if isinstance(methods, (AbstractMethod, str)) or not isinstance(methods, (Mapping, Sequence)) or not methods:
        raise MethodError(f"methods must be a list of at least one method, or a dict of them by name, got {methods!r}")
    given: Any = methods.items() if isinstance(methods, Mapping) else [(None, method) for method in methods]
    out: dict[str, AbstractMethod] = {}
    for name, method in given:
        METHOD(method, "each of methods", MethodError)
        if name is not None and not (isinstance(name, str) and name):
            raise MethodError(f"the names of methods are text, got {name!r}")
        out[distinct(method.label if name is None else name, out)] = method
    return out


def distinct(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number behind it where it is taken."""
    number, out = 1, name
    while out in taken:
        number += 1
        out = f"{name} ({number})"
    return out


def _run(problem: Problem, method: AbstractMethod, budget: dict[str, Any]) -> Solution | NoRun:
    """The solution of one method, or why there is none."""
    missing = method.missing(problem.form)
    if missing:
        return NoRun("refused", "; ".join(missing))
    try:
        return problem.solve(method, progress=False, on_failure="return", **budget)
    except KeyboardInterrupt:
        return NoRun("interrupted", "The run was interrupted before there was an answer.")
    except (MethodError, SolverError) as error:
        return NoRun("refused", str(error))
    except GraphregError:  # the budget, not the method
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's method raises is what its row has to say
        return NoRun("failed", f"{type(error).__name__}: {error}")


def _reference(exact: str | None, found: Mapping[str | None, Solution | NoRun], gap: float) -> tuple[str, float]:
    """What all are measured by, in words and as a lower bound of the optimum."""
    bounds = {
        name: each.certificate.dual
        for name, each in found.items()
        if isinstance(each, Solution) and each.certificate.valid
    }
    broken = [each.certificate.contradiction for each in found.values() if isinstance(each, Solution)]
    if not bounds or any(broken):  # what one method finds wrong with a term is wrong with the bounds of all
        return next((f"none, as {said}" for said in broken if said), "none, for want of a bound"), float("nan")
    best = max(bounds, key=lambda name: bounds[name])
    solved = found[exact]
    label = Exact().label if exact is None else exact
    if isinstance(solved, Solution) and solved.certificate.holds(gap):
        low, high = bounds[best], min(each.objective for each in found.values() if isinstance(each, Solution))
        return f"the exact optimum, by {label} (certified to lie between {low:.10g} and {high:.10g})", bounds[best]
    why = f"{label} did not get to the optimum: {solved.status}"
    return f"the best certified lower bound {bounds[best]:.10g}, {best or label}'s ({why})", bounds[best]
