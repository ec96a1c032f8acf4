"""The result of a cross-validation: scores by fold and point, and the point that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..base.clock import stages
from ..base.display import Html, Shown, sentence, title
from ..base.escaping import visible
from ..base.messages import few
from ..base.shortcuts import shortcut
from ..base.tables import LabelledTable, Table, as_html, assumed_html, assumed_lines
from ..certificate import at_infinity
from ..errors import ModelError
from ..form import Form
from ..methods import AbstractMethod
from ..problem import Problem
from ..running import Solution, in_other_units
from ..terms import Array, name_of
from .fold_runs import FoldRun, errors_with_place, training
from .folds import Fold, Folds, nodes_of
from .grid import Grid
from .scoring import HeldOut, Mean, Scorer, held_out
from .warm import refit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RULES = ("min", "1se", "paired")
PAIRED = "'paired' is the strongest, unless the best beats it by more than one standard error of their difference by "


def scores_of(form: Form, fold: Fold, run: FoldRun, scorer: Scorer, grid: Grid) -> Array:
    """The score of a fold at each point; nan where its solve was not certified. What a scoring of the user's raises is
    passed on with the place."""
    out = np.full(len(run.statuses), np.nan)
    for k, status in enumerate(run.statuses):
        if status == "certified":
            with errors_with_place(grid, fold, k):
                out[k] = scorer.score(held_out(form, fold.test[fold.scored], run.links[k][fold.scored]), fold.name)
    return out


@dataclass(frozen=True)
class CrossValidation(Shown):
    """The held-out scores of a grid of strengths, with standard errors.

    Attributes
    ----------
    problem : Problem
    grid : Grid
        The Parameters and their values at each point.
    folds : Folds
    scorer : Scorer
    rule : str
        "min", "1se" or "paired", by which ``chosen`` is chosen.
    gap : float
        The relative gap that was asked of every solve.
    runs : dict
        What each finished fold gave, by its number.
    ended : str
        What cut it short, "interrupted", "out of time" or "a process died"; empty where nothing did.
    solution : Solution, optional
        Of all data at the chosen point, with its own certificate; None without a refit.
    """

    problem: Problem = field(repr=False)
    grid: Grid
    folds: Folds
    scorer: Scorer
    rule: str
    gap: float
    runs: dict[int, FoldRun] = field(repr=False)
    solution: Solution | None = None
    ended: str = ""

    def _missing(self) -> str:
        return f"only {len(self.runs)} of {len(self.folds)} folds are finished ({self.ended or 'incomplete'})"

    @property
    def complete(self) -> bool:
        """True where all folds are finished."""
        return len(self.runs) == len(self.folds)

    # ---- the numbers ---------------------------------------------------------------------------------------------
    @cached_property
    def certified(self) -> Array:
        """True of solves that were certified, (finished folds, points)."""
        return np.array([[status == "certified" for status in run.statuses] for run in self.runs.values()])

    @cached_property
    def usable(self) -> Array:
        """The points at which every finished fold was certified; the others are never chosen."""
        return self.certified.all(axis=0) & np.isfinite(self.mean)

    @cached_property
    def _scores(self) -> Array:
        """(finished folds, points); nan where the solve was not certified."""
        form, each = self.problem.form, self.folds.each
        return np.array(
            [scores_of(form, each[number], run, self.scorer, self.grid) for number, run in self.runs.items()]
        )

    @cached_property
    def share(self) -> Array:
        """p_k, the share of each finished fold in the sample weight that was scored."""
        weights = np.concatenate([block.loss.data.weights for block in self.problem.form.samples])
        folds = [self.folds.each[number] for number in self.runs]
        sums = np.array([weights[fold.test[fold.scored]].sum() for fold in folds])
        return sums / sums.sum()

    @cached_property
    def mean(self) -> Array:
        """The score of each point, ``sum_k p_k s_k``; nan where a fold was not certified."""
        return self.share @ self._scores

    @cached_property
    def standard_error(self) -> Array:
        """``sqrt(sum_k p_k (s_k - score)^2 / (K - 1))``, by point; nan for a single fold."""
        with np.errstate(invalid="ignore"):
            squares = self.share @ (self._scores - self.mean) ** 2
        return np.sqrt(squares / (len(self.runs) - 1)) if len(self.runs) > 1 else np.full(squares.shape, np.nan)

    def behind(self, k: int, other: CrossValidation | None = None) -> tuple[float, float]:
        """How much worse the k-th point is than the best one, and the standard error of this.

        With d_u the mean difference of the two scores on the held-out rows of unit u, and p_u its share of the weight:

            d = sum_u p_u d_u,      standard error = sqrt( U / (U - 1) sum_u p_u^2 (d_u - d)^2 ),

        in which what makes a row hard for both cancels. The U units are what was dealt to the folds at random: samples,
        or nodes; or the folds, where they were given, and of a score that is no mean over rows ("auc", a function). Of
        many samples it varies less than that of five folds. It is the naive standard error of Bates, Hastie and
        Tibshirani (2021, *Cross-validation: what does it estimate and how well does it do it?*), for a difference: as
        they show, it is somewhat too small, since the training data of the folds overlap.

        Parameters
        ----------
        k : int
        other : CrossValidation, optional
            The k-th point is one of this, of the same nodes and folds.
        """
        best, found = self.index("min"), self if other is None else other
        if not found.usable[k]:
            return np.nan, np.nan
        (weight, sums), (others, their_sums) = self._by_unit(best), found._by_unit(k)
        both = (weight > 0.0) & (others > 0.0)  # of another graph some rows may be scored by one alone
        share = weight[both] / weight[both].sum()
        differences = their_sums[both] / others[both] - sums[both] / weight[both]
        worse = share @ differences
        away = share * (differences - worse)
        noise = np.sqrt(away @ away * len(away) / (len(away) - 1))
        return float(-worse if self.scorer.greater_is_better else worse), float(noise)

    @property
    def _unit(self) -> str:
        return self.folds.dealt if isinstance(self.scorer.of, Mean) else "fold"

    def _by_unit(self, k: int) -> tuple[Array, Array]:
        """The weight of the held-out rows of each unit, and the weighted sum of their scores at a point."""
        if self._unit == "fold" or not isinstance(self.scorer.of, Mean):
            return self.share, self.share * self._scores[:, k]
        form, node = self.problem.form, nodes_of(self.problem.form)
        rows, parts = list[Array](), list[HeldOut]()
        for number, run in self.runs.items():
            fold = self.folds.each[number]
            rows.append(fold.test[fold.scored])
            parts += held_out(form, rows[-1], run.links[k][fold.scored])
        weight = np.concatenate([part.weights for part in parts])
        unit = np.concatenate(rows) if self._unit == "sample" else node[np.concatenate(rows)]
        sums = np.bincount(unit, weight * self.scorer.of.values(parts), len(node))
        return np.bincount(unit, weight, len(node)), sums

    def index(self, rule: str) -> int:
        """The number of the point that a rule chooses, "min", "1se" or "paired".

        Raises
        ------
        ModelError
            Where folds are missing, or no point was certified in every fold; with what the solves said.
        """
        if not self.complete:
            raise ModelError(f"nothing is chosen: {self._missing()}; the same call with checkpoint= goes on from there")
        if not self.usable.any():
            said = Counter(status for run in self.runs.values() for status in run.statuses)
            raise ModelError(
                f"no point of the grid has a score: at each some fold was not certified to {self.gap:g} "
                f"({', '.join(f'{count} {status}' for status, count in said.items())}), or has an infinite score"
                f"{self._falls()}; add a small ridge, on the intercept too, as 1e-3 * gr.SquaredL2()(gr.w), ask for a "
                "larger gap, or use another method"
            )
        cost = np.where(self.usable, -self.mean if self.scorer.greater_is_better else self.mean, np.inf)
        best = int(np.argmin(cost))
        if rule == "min":
            return best
        if not np.isfinite(self.standard_error[best]):
            raise ModelError(
                f"the rule {rule!r} needs a standard error, and that takes two finished folds; finish more"
            )
        strength = np.array(self.grid.regularisation(self.problem.form))
        if rule == "paired":
            end = int(np.argmax(np.where(self.usable, strength, -np.inf)))
            worse, noise = self.behind(end)
            unknown = self.gap * abs(float(self.mean[best]))  # of two that are one model rounding would choose
            return end if worse <= max(noise, unknown) else best
        within = np.flatnonzero(cost <= cost[best] + self.standard_error[best])
        return int(within[np.lexsort((cost[within], -strength[within]))[0]])

    def _falls(self) -> str:
        """At which nodes the losses fall for ever without the rows of a fold, and what to do about it."""
        form = self.problem.form
        for number in (number for number, run in self.runs.items() if "unattained" in run.statuses):
            fold = self.folds.each[number]
            rest = training(self.problem.model, form, fold.train).form
            found = at_infinity(rest)
            if found is not None and len(found.running):
                nodes = few([visible(repr(rest.labels[i])) for i in found.running], 5)
                return (
                    f"; without the rows of the fold {fold.name!r} the losses fall for ever at {nodes} (all targets "
                    "left are of one class, say, or 0): hold out less, give more edges, or leave these rows out"
                )
        return ""

    @property
    def indifferent(self) -> str:
        """The reason for which the 1-SE rule says nothing here, as a sentence: where even the strongest of the grid is
        within one standard error of the best, it is taken whatever the data say. Empty where it does say something."""
        if not (self.complete and self.usable.sum() > 1 and len(self.runs) > 1):
            return ""
        best, k = self.index("min"), self.index("1se")
        strength = np.array(self.grid.regularisation(self.problem.form))
        if k == best or strength[k] < strength[self.usable].max():
            return ""
        return (
            "'1se' takes the strongest regularisation of the grid, whose score is within one standard error "
            f"({self.standard_error[best]:.2g}) of the best: the folds are too noisy to tell it from weaker ones (as "
            "with one sample or count per node), or the grid ends too early; take 'min', or more data, or a longer grid"
        )

    # ---- what is chosen ------------------------------------------------------------------------------------------
    @property
    def best(self) -> dict[str, float]:
        """The point with the best score, by the names of the Parameters."""
        return self.grid.named(self.index("min"))

    @property
    def one_se(self) -> dict[str, float]:
        """The strongest regularisation whose score is within one standard error (of the best point) of the best."""
        return self.grid.named(self.index("1se"))

    @property
    def chosen(self) -> dict[str, float]:
        """The point that ``rule`` takes: ``best``, ``one_se``, or by "paired" ``best`` or the strongest."""
        return self.grid.named(self.index(self.rule))

    def assign(self) -> None:
        """Give the Parameters of the problem the chosen values."""
        self.grid.assign(self.index(self.rule))

    def refitted(self, method: AbstractMethod, seed: int, progress: bool | None) -> CrossValidation:
        """The cross-validation with the solution of all data at the chosen point."""
        with self.grid.at(self.index(self.rule)), stages("cross-validation", progress, "the solve on all data"):
            return replace(self, solution=refit(self.problem, method, self.gap, seed))

    # ---- tables --------------------------------------------------------------------------------------------------
    @cached_property
    def points(self) -> pd.Index:
        """The values of the Parameters, one entry per point."""
        if len(self.grid.parameters) == 1:
            return pd.Index([point[0] for point in self.grid.points], name=self.grid.names[0])
        return pd.MultiIndex.from_tuples(self.grid.points, names=self.grid.names)

    @property
    def scores(self) -> pd.DataFrame:
        """The score of each finished fold (rows) at each point (columns); nan where the solve was not certified."""
        names = pd.Index([self.folds.each[k].name for k in self.runs], name="fold", tupleize_cols=False)
        return LabelledTable(self._scores, index=names, columns=self.points)

    def table(self) -> Table:
        """One row per point: score, its standard error, the number of samples that were held out and scored, the worst
        status and the largest relative gap of the folds, the mean number of clusters, and what was chosen."""
        runs = list(self.runs.values())
        scored = sum(int(self.folds.each[number].scored.sum()) for number in self.runs)
        frame = pd.DataFrame(
            {
                "score": self.mean,
                "standard_error": self.standard_error,
                "held_out": scored,
                "status": [self._status(k) for k in range(len(self.mean))],
                "relative_gap": np.max([run.gaps for run in runs], axis=0),
                "clusters": np.mean([run.clusters for run in runs], axis=0),
                "choice": self.choices,
            },
            index=self.points,
        )
        if not self.problem.form.clustered:  # of rows that are no edges
            frame = frame.drop(columns="clusters")
        return Table.of(frame, self._title(), self.assumed)

    def _status(self, k: int) -> str:
        bad = Counter(run.statuses[k] for run in self.runs.values() if run.statuses[k] != "certified")
        said = ", ".join(f"{status} in {count} of {len(self.runs)} folds" for status, count in bad.items())
        return said or "certified"

    @property
    def choices(self) -> list[str]:
        """What each point is, of "best", "1se", and "paired" where that is the rule; "excluded"; or nothing."""
        words: list[list[str]] = [[] if usable else ["excluded"] for usable in self.usable]
        if self.complete and self.usable.any():
            words[self.index("min")].append("best")
            with suppress(ModelError):  # there is no standard error, or no order of the points
                words[self.index("1se")].append("1se")
                if self.rule == "paired":
                    words[self.index("paired")].append("paired")
        return [", ".join(each) for each in words]

    def _title(self) -> str:
        done = (
            f"{len(self.folds)} folds"
            if self.complete
            else f"INCOMPLETE, {len(self.runs)} of {len(self.folds)} folds ({self.ended or 'cut short'})"
        )
        sign = "the larger the better" if self.scorer.greater_is_better else "the smaller the better"
        count = f"{len(self.grid.points)} point{'s' * (len(self.grid.points) > 1)}"
        return f"cross-validation: {done}, {count}, scoring {self.scorer.name} ({sign})"

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The held-out predictions at the chosen point: row (counted over all losses), node, fold, targets as given,
        weight, predictions (responses; one column per class or target where there are several) and whether the row was
        scored. A row that several folds hold out stands there several times; one that none does is missing."""
        k, form = self.index(self.rule), self.problem.form
        node = nodes_of(form)
        tables: list[pd.DataFrame] = []
        for number, run in self.runs.items():
            fold = self.folds.each[number]
            begin = 0
            labels = [form.labels[i] for i in node[fold.test]]
            for part in held_out(form, fold.test, run.links[k]):
                rows = slice(begin, begin := begin + len(part.rows))
                head = {"row": fold.test[rows], "node": pd.Series(labels[rows], dtype=object)}
                y, p = self._columns("y", part.y), self._columns("prediction", part.response())
                last = {"weight": part.weights, "scored": fold.scored[rows]}
                tables.append(pd.DataFrame({**head, "fold": [fold.name] * len(part.rows), **y, **p, **last}))
        return LabelledTable(pd.concat(tables, ignore_index=True).sort_values("row", kind="stable", ignore_index=True))

    def _columns(self, name: str, values: Array) -> dict[str, Array]:
        """One column, or one per class or target."""
        if values.ndim == 1:
            return {name: values}
        names = self.problem.form.space.coordinates[: values.shape[1]]
        what = [name_of(each) if isinstance(each, str) else each[1] for each in names]
        return {f"{name}[{each}]": column for each, column in zip(what, values.T, strict=True)}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The scores with their standard errors against the strength; see `plots.plot_cross_validation`."""
        return shortcut("CrossValidation.plot")(self, ax)

    # ---- in words ------------------------------------------------------------------------------------------------
    @property
    def assumed(self) -> tuple[str, ...]:
        """The sentences that the numbers rest on."""
        units = in_other_units(self.problem.form)
        others = "" if len(self.grid.parameters) == 1 else "; of several Parameters: with the largest geometric mean"
        out = [
            *self.folds.assumed,
            self.scorer.assumed,
            "the standard error takes the folds' scores for independent, though their training data overlap",
            f"'1se' is the strongest regularisation within one standard error of the best score{others}",
            *([PAIRED + self._unit] if self.rule == "paired" else []),
            *([self.indifferent] if self.rule == "1se" and self.indifferent else []),
            *([units] if units else []),
            f"every solve certified to a relative gap of {self.gap:g}; points where one was not have no score",
        ]
        if not self.complete:
            out.insert(0, f"{self._missing()}: nothing is chosen, the scores may change")
        return tuple(out)

    def __str__(self) -> str:
        lines = str(self.table()).splitlines()
        cut = len(assumed_lines(self.assumed))
        return "\n".join([*lines[:-cut], self._choice(), *lines[-cut:]])

    def _choice(self) -> str:
        if not self.complete:
            return f"chosen: nothing, as {self._missing()}"
        if not self.usable.any():
            return "chosen: nothing, as no point has a score in every fold"
        k = self.index(self.rule)
        point = ", ".join(f"{visible(name)} = {value:.6g}" for name, value in self.grid.named(k).items())
        fit = "no refit" if self.solution is None else f"refit on all data: {self.solution.status}"
        error = f" +- {self.standard_error[k]:.2g}" if np.isfinite(self.standard_error[k]) else ""
        return f"chosen by {self.rule!r}: {point} (score {self.mean[k]:.6g}{error}){self._beside(k)}; {fit}"

    def _beside(self, k: int) -> str:
        """A remark that the best score does not show: that other points have it, too, or that the grid ends there."""
        if self.rule != "min" or self.usable.sum() < 2:
            return ""
        same = int(np.isclose(self.mean[self.usable], self.mean[k], rtol=1e-6, atol=0.0).sum()) - 1
        if same:
            return f", the first of {same + 1} points with this score"
        value, values = self.grid.points[k][0], [point[0] for point in self.grid.points]
        if len(self.grid.parameters) > 1 or min(values) < value < max(values):
            return ""
        return f", at the {'lower' if value == min(values) else 'upper'} end of the grid: the best may lie beyond"

    def __repr__(self) -> str:
        what = f"{len(self.runs)} of {len(self.folds)} folds x {len(self.grid.points)} points"
        return f"<CrossValidation: {what}; {self._choice()}>"

    def _html(self) -> Iterable[Html]:
        yield title(self._title())
        yield as_html(self.table())
        yield sentence(self._choice())
        yield assumed_html(self.assumed)
