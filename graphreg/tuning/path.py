"""Regularisation paths: one problem solved at many strengths, each from its neighbour, each with its certificate."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import checks
from ..base.clock import OutOfTimeError, cut_short, progress_bar, stages
from ..base.escaping import visible
from ..base.gate import allowing
from ..base.shortcuts import shortcut
from ..base.tables import ShownByTable, Table
from ..certificate import Clusters
from ..errors import ModelError
from ..methods import AbstractMethod
from ..problem import RAISES, Problem, check_solve, problem_of
from ..running import Budget, Checkpoint, Solution
from ..terms import Array, Parameter
from .grid import grid, parameter_of
from .stored import StoredPath
from .warm import Warm, halving, restored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# ---- events: what comes together and what splits as the strength grows -----------------------------------------------
COLUMNS = ("strength_from", "strength_to", "term", "tail", "head", "event", "before", "after", "certain")
EVENTS_ASSUMED = (
    "of the strengths that were solved: between two of them an edge may fuse and split again unseen",
    "certain: fused at one end and split at the other, both proved; before and after are the states at the two ends, "
    "and where one is undecided nothing is proved there: the event is that of the table's count of clusters",
)


def events(strengths: Array, found: Sequence[Clusters]) -> Table:
    """The events of edges as the strength grows: see `Path.events`."""
    edges = [clusters.edges for clusters in found]
    state = np.array([each["state"].to_numpy(dtype=object) for each in edges])  # (strengths, edges)
    certain, same = (np.array([each[of].to_numpy() for each in edges]) for of in ("certain", "difference"))
    decided = state != "undecided"
    together = np.isin(state, ("near", "fused")) | (~decided & (same == 0.0))
    k, e = np.nonzero(together[1:] != together[:-1])
    low = _last_decided(decided, together)[k, e]
    high = len(found) - 1 - _last_decided(decided[::-1], together[::-1])[len(found) - 2 - k, e]
    after = state[high, e]
    table = edges[0].iloc[e][["term", "tail", "head"]].reset_index(drop=True)
    table = table.assign(
        strength_from=strengths[low],
        strength_to=strengths[high],
        event=np.where(together[k + 1, e], "together", after),
        before=state[low, e],
        after=after,
        certain=certain[low, e] & certain[high, e],
    )
    table = table.sort_values("strength_to", kind="stable", ignore_index=True).reindex(columns=list(COLUMNS))
    return Table.of(table, "what comes together and what splits as the strength grows", EVENTS_ASSUMED)


def _last_decided(decided: Array, together: Array) -> Array:
    """Of each edge at each strength, the last strength up to it at which the edge was decided while it stayed as
    together or apart as here; where there is none, this strength."""
    out = np.empty(decided.shape, dtype=int)
    last = np.full(decided.shape[1], -1)
    for k in range(len(decided)):
        last[together[k] != together[k - 1]] = -1
        last[decided[k]] = k
        out[k] = np.where(last < 0, k, last)
    return out


# ---- paths -----------------------------------------------------------------------------------------------------------
ASSUMED = (
    "every row has a certificate of its own: the objective is at most relative_gap above the optimum at that strength "
    "(of the status certified: at most the gap asked for); nothing is certified between two strengths",
    "an edge is called near (its ends almost equal) or split from the certified flows with the gap as margin, else "
    "undecided; that it is fused takes a proof, which clusters(prove=True) of a solution looks for; edges of smooth "
    "penalties never fuse",
)


@dataclass(frozen=True, eq=False, repr=False)
class Path(ShownByTable):
    """The regularisation path of a problem: its solutions along a Parameter.

    Attributes
    ----------
    parameter : Parameter
        What varied; it has its own value again.
    solutions : mapping from strength to Solution
        In growing order of the strengths. All are kept, with coefficients (n, d), flows (m, d) and prices: about
        8 (n d + m d + M) bytes each.
    method : str
    gap : float
        The relative gap asked of each.
    left : tuple of float
        Strengths that were not reached, where the path was cut short.
    ended : str
        What cut it short, "interrupted" or "out of time"; empty where nothing did.
    assumed : tuple of str
    """

    parameter: Parameter
    solutions: Mapping[float, Solution]
    method: str
    gap: float
    left: tuple[float, ...] = ()
    ended: str = ""
    assumed: tuple[str, ...] = ASSUMED

    @property
    def strengths(self) -> Array:
        """The strengths in growing order, (k,)."""
        return np.array(list(self.solutions))

    @property
    def complete(self) -> bool:
        return not self.left

    @cached_property
    def coef(self) -> Array:
        """The parameters of the user's nodes at each strength, (k, n, d)."""
        return np.stack([solution.coef for solution in self])

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions.values())

    def solution_at(self, strength: float) -> Solution:
        """The solution at a strength of the path.

        Raises
        ------
        ModelError
            Where the path does not have the strength; it names the nearest.
        """
        nearest = min(self.solutions, key=lambda known: abs(known - strength), default=np.nan)
        if not abs(nearest - strength) <= 1e-9 * abs(nearest):
            raise ModelError(f"the path has no strength {strength:g}; the nearest is {nearest:.10g}")
        return self.solutions[nearest]

    def table(self) -> Table:
        """One row per strength: status, relative_gap, objective (the certified upper bound), loss (the sum over all
        samples), penalty (all terms on edges, with their strengths), the number of clusters, how many pairs of nodes
        are fused, near, split or undecided (``Clusters.counts``), rounds and seconds."""
        frame = pd.DataFrame([_row(strength, each) for strength, each in self.solutions.items()])
        alone = len(frame) and "clusters" not in frame  # of rows that are no edges
        return Table.of(frame, self._title(), self.assumed[:1] if alone else self.assumed)

    def events(self) -> Table:
        """The edges that come together and those that split, in the direction of growing strength.

        One row for every edge that `table` counts inside a cluster at one strength and not at the next: strength_from
        and strength_to (between which it happens), term, tail, head, event ("together", "split", or "undecided" where
        it is no longer known to be together), before and after (its states at the two) and certain (whether it is
        proved to be fused at the one, and split at the other). An event spans the strengths at which its edge is
        undecided; where nothing decided comes before or after them, ``before`` or ``after`` is "undecided".
        """
        return events(self.strengths, [solution.clusters() for solution in self])

    def plot(self, node: Hashable = None, feature: Any = None, ax: Axes | None = None) -> Axes:
        """Coefficients and the number of clusters against the strength; see `plots.plot_path`."""
        return shortcut("Path.plot")(self, node, feature, ax)

    def report(self, file: Any, *, positions: Any = None, outlines: Any = None) -> None:
        """Write the path as one page that opens offline, with a slider over the strengths on which clusters fuse and
        flows saturate; see `Solution.report` and docs/reports.md.

        Parameters
        ----------
        file : path
            Of the page (HTML). A report that is there is replaced, anything else is not.
        positions : mapping or DataFrame, optional
            A pair (x, y) per node label, y upwards.
        outlines : mapping, frame, dict or path, optional
            As for `Solution.report`.

        Raises
        ------
        ModelError
            As `Solution.report`.

        Examples
        --------
        >>> gr.path(problem, [0.1, 0.3]).report(folder / "path.html")
        """
        shortcut("Path.report")(self, file, positions, outlines)

    def _title(self) -> str:
        statuses = [solution.status for solution in self]
        met = statuses.count("certified")
        head = f"path of {self.parameter.name!r} by {self.method}: {met} of {len(statuses)} strengths certified to a"
        head += f" relative gap of {self.gap:.3g}"
        if self.left:
            head += f"; INCOMPLETE: {self.ended} with {len(self.left)} strengths left, from {min(self.left):.4g} to"
            head += f" {max(self.left):.4g}"
        return head

    def __repr__(self) -> str:
        return f"<Path of {self.parameter.name!r}: {len(self)} strengths{'' if self.complete else ', incomplete'}>"


def _row(strength: float, solution: Solution) -> dict[str, Any]:
    form, w, certificate = solution.form, solution.certificate.w, solution.certificate
    gap = certificate.relative_gap if certificate.valid else np.nan
    row = {"strength": strength, "status": solution.status, "relative_gap": gap, "objective": solution.objective}
    if solution.status != "infeasible":
        row["loss"] = float(sum(block.values(w).sum() for block in form.samples))
        row["penalty"] = float(sum(edge.values(w).sum() for edge in form.edges))
        if form.clustered:
            row |= {"clusters": (found := solution.clusters()).count, **found.counts}
    return row | {"rounds": solution.rounds, "seconds": solution.seconds}


@checks.named
def path(  # noqa: PLR0913
    problem: Problem,
    strengths: Any = 50,
    parameter: Parameter | str | None = None,
    method: AbstractMethod | None = None,
    *,
    gap: float = 1e-6,
    rounds: int | None = None,
    seconds: float | None = None,
    memory: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: Any = None,
    on_failure: str = "raise",
) -> Path:
    """The regularisation path of a problem: it is solved at many strengths, each from the answers at others; all are
    certified.

    What was set up for one strength serves the next: the layout of the graph, the factorised losses, the states of the
    methods, or the problem compiled to CVXPY. The path goes through the strengths by halves, the ends first and then
    always the middle of what lies between two that are known, and begins on the line between the answers at these;
    `InteriorPoint` between its iterates there.

    Parameters
    ----------
    problem : Problem
    strengths : int or sequence of float
        Values of the Parameter, in any order. A number k stands for k values, evenly spaced on a logarithmic scale from
        one at which all nodes agree down over three decades; squared penalties have no such strength. That one is a
        proved upper bound of `strength_max`: the value itself on trees, at most 5% above it as a rule where there are
        cycles.
    parameter : Parameter or its name, optional
        Which one varies, any of the model; by default its only one. It has its value again afterwards, whatever
        happens.
    method : AbstractMethod, optional
        By default `Auto`, which begins with Newton steps between two strengths at which these gave the answer; where
        ``rounds`` are given `PrimalDual`, `InteriorPoint` or `Exact`, the first of them that applies.
    gap : float
        The relative gap asked for at each strength, as in `Problem.solve`.
    rounds : int, optional
        Spent at each strength at most.
    seconds : float, optional
        A budget of time for all strengths together, and for finding them.
    memory : float, optional
        A bound of the bytes that may be taken, as in `Problem.solve`.
    seed : int
        Of methods that draw random numbers.
    progress : bool, optional
        Whether to show a progress bar; by default where stderr is a terminal.
    checkpoint : path or Checkpoint, optional
        A file that keeps finished points, written every 60 seconds by default (``rounds=`` of a Checkpoint counts
        points), at the end and at Ctrl-C. Where it exists the same call goes on from it, and ends with the same bits
        (with `Exact` to its solver's accuracy, which keeps a memory of its own).
    on_failure : {"raise", "return"}
        What to do at a strength whose status is unattained, infeasible or failed.

    Returns
    -------
    Path
        After Ctrl-C, and where the time is up, with the finished strengths; it says that it is incomplete, and why.
        Where the strengths are still being looked for there is nothing yet to give: then Ctrl-C raises
        KeyboardInterrupt.

    Raises
    ------
    ModelError
        For what is no problem, Parameter of the model or strength.
    MethodError, CheckpointError, SolveError
        As `Problem.solve`.
    BudgetError
        Where the time is up before the strengths are found.

    Examples
    --------
    >>> [one.status for one in gr.path(problem, [0.1, 0.3])]
    ['certified', 'certified']
    """
    problem_of(problem, "path")
    checks.seed(seed, "seed")
    parameter = parameter_of(problem, parameter)
    stored = Checkpoint.of(checkpoint)
    with restored([parameter]), allowing(memory, seconds):
        warm = Warm(problem, method, Budget(gap, rounds, progress=False, seed=seed))
        given = {"gap": gap, "rounds": rounds, "seconds": seconds, "progress": progress, "on_failure": on_failure}
        check_solve(warm.method, problem.form, **given)
        with stages("path", progress, "the strengths"):
            values, top = grid(problem, parameter, strengths)
        if top is not None:
            warm.top = float(values[-1]), top
            warm.known[float(values[-1])] = top, ""
        asked: dict[str, Any] = {"the strengths": values, "the gap": gap, "the rounds": rounds, "the seed": seed}
        asked["which"] = parameter.name
        store = None if stored is None else StoredPath(stored, problem, parameter, warm, asked)
        with nullcontext() if store is None else closing(store):
            found, ended = _solve(warm, parameter, values[::-1].tolist(), store, progress, on_failure)
    left = tuple(value for value in values.tolist() if value not in found)
    return Path(parameter, dict(sorted(found.items())), warm.method.label, gap, left, ended if left else "")


def _solve(
    warm: Warm, parameter: Parameter, values: list[float], stored: StoredPath | None, progress: Any, on_failure: str
) -> tuple[dict[float, Solution], str]:
    """The solutions by strength, and what cut the path short."""
    found = {} if stored is None else stored.load()
    try:
        bar = progress_bar(progress, total=len(values), initial=len(found), desc="path", unit=" strengths")
        with cut_short() as ended, bar as show:
            for value in (values[k] for k in halving(len(values)) if values[k] not in found):
                parameter.value = value
                solution = warm.solve(value)
                if solution.status == "interrupted" or warm.warm_start.interrupted:
                    raise KeyboardInterrupt  # also where it was certified: not with the bits of one that went on
                if solution.status in RAISES and on_failure == "raise":
                    message = f"at {visible(parameter.name)} = {value:.6g}: {solution.message}"
                    raise RAISES[solution.status](message, solution)
                found[value] = solution
                if warm.warm_start.cut:
                    raise OutOfTimeError
                if stored is not None:
                    stored.keep(value, solution)
                show(1, f"{parameter.name} {value:.3g}")
    finally:
        if stored is not None:
            stored.write()
    return found, "".join(ended)
