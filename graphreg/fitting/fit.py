"""The result of `fit`: how well it predicts, beside what, and everything that goes on from there."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import graphreg as gr

from .. import checks
from ..base import tables
from ..base.display import Html, Shown, facts, inside, title
from ..base.escaping import visible
from ..base.messages import count, look_alike, other_types, retyped
from ..certificate import Clusters, relative_in_words
from ..errors import DataError, GraphregError, ModelError
from .matching import JOINED, LONE
from .reading import UsedRows, checked_rows, unreached

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..tuning import CrossValidation

WIDTH = 12  # of what stands before a line
THIS, ALL, EACH = "this fit", "one model for all", "every node alone"
UNKNOWN = "the strengths are your own; strengths=20, say, has both ends"
MOST = 60  # intervals in a report
READ = "# frame: the rows without gaps, fit.rows.frame; graph: with every node of the rows, fit.graph"
STAR = "graph = gr.Graph.from_edges([(graph.labels[0], label) for label in graph.labels[1:]])"
STARRED = "the edges counted here are those of a star that joins all nodes to one, not of the graph that was given"
ERRORS = "+- one standard error"
RESTS = (
    "the certificate bounds the optimum of this model at this strength; it says nothing of the units, of the choice of "
    "the strength, and of how well the model predicts: that is what the held-out score is for, which is a little too "
    "good where the strength was chosen by it"
)


CHOSEN = (
    "the strength was chosen by these scores, so that the first is a little too good: for a figure to publish, score "
    "rows that this fit was not given"
)


@dataclass(frozen=True)
class Fit(Shown):
    """A model at every node of a graph, fitted to a table by `fit`.

    Attributes
    ----------
    problem : Problem
        With the graph that was given, at the best strength. Where one model for all predicts better, the problem that
        was solved is ``pooled.problem``.
    validation : CrossValidation
        The scores of all strengths.
    pooled : CrossValidation, optional
        Of one model for all nodes, where the graph does not join them.
    rows : UsedRows
        The rows that were used.
    loss : str
        The name of the loss with its options, and ``why`` it was taken.
    said : tuple of str
        What was said of the table and the graph before anything was fitted; see ``remarks``.
    graph : Graph
        With all nodes of the table.
    how : (str, str)
        The folds of the cross-validation, and its arguments that are not the usual ones, as code.
    prove : bool
        Whether proofs are looked for, of the clusters that are printed and drawn.
    spans : bool
        True where the first strength leaves every node alone, and the last holds one model for all nodes that the graph
        joins: not where the strengths were given.

    Examples
    --------
    >>> fitted.strength
    0.1
    >>> fitted.scores["mse"].round(2).to_dict()
    {'this fit': 0.03}
    """

    problem: gr.Problem = field(repr=False)
    validation: CrossValidation = field(repr=False)
    rows: UsedRows = field(repr=False)
    loss: str
    why: str
    said: tuple[str, ...]
    graph: gr.Graph = field(repr=False)
    pooled: CrossValidation | None = field(default=None, repr=False)
    how: tuple[str, str] = field(default=("5", ""), repr=False)
    spans: bool = field(default=True, repr=False)
    prove: bool = field(default=False, repr=False)
    _holds = ("solution",)

    # ---- what was chosen -----------------------------------------------------------------------------------------
    @property
    def takes_all(self) -> bool:
        """True where one model for all nodes predicts best, or by the rule not worse by more than the noise, and the
        graph does not join them."""
        if self.pooled is None:
            return False
        found, (worse, noise) = self.validation, self.validation.behind(0, self.pooled)
        return worse < {"min": 0.0, "1se": found.standard_error[found.index("min")], "paired": noise}[found.rule]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to the table and the graph."""
        return tuple(each.replace(LONE, JOINED, 1) if self.takes_all else each for each in self.said)

    @property
    def solution(self) -> gr.Solution:
        """The answer on all rows at the chosen strength, with its certificate."""
        found = self.pooled if self.pooled is not None and self.takes_all else self.validation
        solution = found.solution
        if solution is None:
            raise DataError("there is no answer: no strength was certified in every fold; see print(fit.validation)")
        return solution

    @cached_property
    def clusters_shown(self) -> Clusters:
        """The clusters that are printed: with proofs, where ``prove`` asks for them."""
        return self.solution.clusters(self.prove)

    @property
    def strength(self) -> float:
        """The strength that was chosen; inf where one model for all predicts best."""
        return math.inf if self.takes_all else self.validation.chosen["strength"]

    @cached_property
    def scores(self) -> tables.Table:
        """The held-out score of this fit and of both ends, with standard errors; of an end that none of the strengths
        reaches there is none."""
        import pandas as pd

        found = self.validation
        ends = {
            THIS: (self.pooled, 0) if self.takes_all else (found, found.index(found.rule)),
            **({ALL: (found, self._end(max))} if self.spans else {}),
            **({} if self.pooled is None else {ALL: (self.pooled, 0)}),
            **({EACH: (found, self._end(min))} if self.spans else {}),
        }
        values = {name: (each.mean[k], each.standard_error[k]) for name, (each, k) in ends.items() if each is not None}
        frame = pd.DataFrame(values, index=[found.scorer.name, "standard_error"]).T
        better = "larger" if found.scorer.greater_is_better else "smaller"
        assumed = found.assumed if len(found.grid.points) == 1 else (*found.assumed, CHOSEN)
        return tables.Table.of(frame, f"held-out scores, the {better} the better", assumed)

    def _end(self, which: Any) -> int:
        points = [point[0] for point in self.validation.grid.points]
        return points.index(which(points))

    @cached_property
    def unreached(self) -> set[Hashable]:
        """The nodes that no edges join to one with rows, so that nothing is fitted there."""
        return set() if self.takes_all else unreached(self.rows.frame[self.rows.node], self.graph)

    # ---- what goes on from here ----------------------------------------------------------------------------------
    @checks.named
    def predict(self, table: Any, kind: str = "response", *, unseen: str = "error") -> pd.Series | pd.DataFrame:
        """Predictions for other rows: a frame or a file with the columns of the table; see `Solution.predict`. Of a
        target of two texts the response is the probability of the second, and ``kind="class"`` gives the text.

        Missing cells are filled as those of the table were, where the rule was ``missing="mean"``. With
        ``unseen="pooled"`` rows at nodes that the fit does not know, or to which nothing was fitted, are predicted by
        one model for all nodes (fitted when it is first asked for); with "error" they are refused.

        Returns
        -------
        Series of pandas, or a DataFrame with one column per class.

        Raises
        ------
        DataError
            With all rows at nodes that the fit does not know, or to which nothing was fitted, all missing and infinite
            cells, text for numbers and unknown categories, and columns that lack; and as for `Solution.predict`.

        Examples
        --------
        >>> fitted.predict(frame).shape
        (24,)
        """
        import pandas as pd

        checks.one_of("error", "pooled")(unseen, "unseen")
        known = None if unseen == "pooled" else self.graph.index
        frame: Any = checked_rows(self.rows, table, known, self.unreached)
        fitted = self.graph.index.keys() - self.unreached
        new = np.array([label not in fitted for label in frame[self.rows.node].tolist()], dtype=bool)
        for label, other in other_types(frame[self.rows.node][new].unique().tolist(), fitted).items():
            remedy = retyped(label, other, f"table[{self.rows.node!r}]")
            raise DataError(f"there is no node {label!r}{look_alike(label, fitted)}; {remedy}")
        found: Any = self.solution.predict(frame[~new], kind)
        if new.any():
            others = frame[new].copy()
            others[self.rows.node] = self.graph.labels[0]  # any node: all have the same model
            both = pd.concat([found, self._one.predict(others, kind)])
            found = both.iloc[np.argsort(np.argsort(new, kind="stable"), kind="stable")]
        return found.map(dict(enumerate(self.rows.classes))) if kind == "class" and self.rows.classes else found

    @cached_property
    def _one(self) -> gr.Solution:
        """The answer with one model for all nodes."""
        if self.pooled is not None and self.pooled.solution is not None:
            return self.pooled.solution
        if not self.spans:
            raise DataError('unseen="pooled": with your own strengths no model for all is known; leave strengths= out')
        with self.validation.grid.at(self._end(max)):
            return self.problem.solve(gap=self.validation.gap, progress=False)

    def table(self) -> pd.DataFrame:
        """The coefficients by node, in the units of the table; nan at nodes that no edges join to one with rows.

        Returns
        -------
        DataFrame of pandas

        Examples
        --------
        >>> list(fitted.table().columns)
        ['intercept', 'rain', 'temp']
        """
        found = self.solution.table()
        found.loc[[label in self.unreached for label in self.solution.labels]] = np.nan
        return found

    @checks.named
    def report(self, file: str | Path, *, positions: Any = None, outlines: Any = None) -> None:
        """Write the answer as a page that opens offline, with a map where it is said where nodes lie, see
        `Solution.report`; at its head stands what ``print`` says: the held-out scores, the strength, what the
        certificate covers; and the 95% intervals of each node's own estimate, 60 at most
        (`graphreg.inference.local_regions` has all), or why there are none.

        Examples
        --------
        >>> fitted.report(folder / "fit.html")
        """
        from ..reporting import report_solution

        facts = {"fit": [self._title], **self._facts, "intervals": self._intervals()}
        report_solution(self.solution, file, positions=positions, outlines=outlines, facts=facts)

    def _intervals(self) -> list[str]:
        """The intervals of each node's own estimate, in sentences, or why there are none."""
        try:
            regions = gr.inference.local_regions(self)
        except GraphregError as error:
            return [f"none: {error}"]
        table = regions.table()
        each = table[["estimate", "low", "high"]].head(MOST).itertuples()
        lines = [f"{label}, {name}: {x:.4g} [{low:.4g}, {high:.4g}]" for (label, name), x, low, high in each]
        more = [f"and {len(table) - MOST:,} more"] * (len(table) > MOST)
        head = [f"{table.attrs['title']}; not of the fit, which draws neighbours together"]
        return [*head, *filter(None, [table.verdict]), *lines, *more, *table.assumed]

    @checks.named
    def plot(self, figure: Figure | None = None) -> Figure:
        """The held-out score against the strength, and the graph with its clusters. Where one model for all is taken
        before all strengths of this graph, its score is a line across.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            Where to draw; a new one by default. ``fit.plot().savefig("fit.png")`` writes a file.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        ModelError
            Where ``figure`` is none, the name of a file, say.

        Examples
        --------
        >>> len(fitted.plot().axes)
        2
        """
        from ..plots.canvas import pyplot

        if not (figure is None or hasattr(figure, "subplots")):
            raise ModelError(f"figure must be a Figure of matplotlib, got {figure!r}; fit.plot().savefig writes a file")
        drawn: Any = pyplot().figure(figsize=(12.0, 4.8), layout="constrained") if figure is None else figure
        left, right = drawn.subplots(1, 2)
        found = self.validation
        if self.pooled is not None and self.takes_all:  # no strength of this graph is taken by its rule
            left.axhline(self.pooled.mean[0], color="tab:purple", label="taken: one model for all")
            found = replace(found, rule="min")
        found.plot(left)
        gr.plots.plot_graph(self.solution, ax=right, prove=self.prove and not self.clusters_shown.ended)
        return drawn

    def code(self) -> str:
        """The lines that do the same with public verbs, to go on from.

        Returns
        -------
        str

        Examples
        --------
        >>> fitted.code().splitlines()[:2]
        ['import numpy as np', 'import graphreg as gr']
        """
        rows, found = self.rows, self.pooled if self.pooled is not None and self.takes_all else self.validation
        name, with_options, options = self.loss.partition("(")
        given = f", {options}" if with_options else ")"
        loss = f'gr.{name}(data, scale="sum"{given}' if hasattr(gr, name) else "my_loss(data)"
        read = [
            f"node={rows.node!r}",
            f"target={rows.target!r}",
            f"features={list(rows.numbers)!r}",
            *([f"categories={list(rows.categories)!r}"] if rows.categories else []),
            *([f"weights={rows.weights!r}"] if rows.weights is not None else []),
            "intercept=True",
            *(["standardise=True"] if rows.numbers else []),
        ]
        strengths = [point[0] for point in found.grid.points]
        penalty = next(term.penalty for _, term in found.problem.model.terms if isinstance(term, gr.TotalVariation))
        ridge = " + 1e-3 * gr.NodePenalty(gr.SquaredL2())" if rows.numbers or rows.categories else ""
        return "\n".join(
            [
                "import numpy as np",
                "import graphreg as gr",
                "",
                *(f"# {remark}" for remark in self.remarks),
                READ,
                *(["# one model for all nodes predicts best: a star joins them", STAR] if self.takes_all else []),
                f"data = gr.NodeData.from_frame(frame, {', '.join(read)})",
                f'strength = gr.Parameter({float(found.chosen["strength"])!r}, name="strength")  # that of the fit',
                f"problem = gr.Problem({loss} + strength * gr.TotalVariation(graph, gr.{penalty!r}){ridge})",
                f"strengths = {_grid(strengths)}",
                f"found = gr.cross_validate(problem, strengths, {self.how[0]}, "
                f"scoring={self.validation.scorer.name!r}{self.how[1]})",
                "solution = found.solution  # certified, at found.chosen",
                f"solution.table(), solution.clusters({'prove=True' * self.prove}), solution.predict(frame)",
            ]
        )

    # ---- in words ------------------------------------------------------------------------------------------------
    def __str__(self) -> str:
        out = [self._title]
        for name, texts in self._facts.items():
            wrapped = [line for text in texts for line in textwrap.wrap(text, tables.WIDTH - WIDTH)]
            out += [f"  {name if k == 0 else '':{WIDTH}}{line}" for k, line in enumerate(wrapped)]
        return "\n".join(out)

    @property
    def _title(self) -> str:
        rows = self.rows
        features = count(len(rows.numbers) + len(rows.categories), "feature")
        return f"fit of {visible(str(rows.target))} on {features} at {len(self.graph.labels):,} nodes"

    @property
    def _facts(self) -> dict[str, list[str]]:
        scores, certificate = self.scores, self.solution.certificate
        graph = self.graph
        size = f"{len(self.rows.frame):,} rows; a graph of {graph.n_nodes:,} nodes and {graph.n_edges:,} edges"
        if (low := graph.weight.min()) < (high := graph.weight.max()):
            size += f", with weights from {low:.3g} to {high:.3g}"
        held = [f"{name:18} {score:.4g} +- {error:.2g}" for name, score, error in scores.itertuples()]
        held += [f"{end:18} not known: {UNKNOWN}" for end in (ALL, EACH) if end not in scores.index]
        held += self._compared()
        gap = f"to a relative gap of {relative_in_words(certificate, 2)}; {RESTS}"
        certified = self.solution.status == "certified"
        return {
            "read": [size, *self.remarks],
            "loss": [f"{self.loss}, {self.why}"],
            "strength": [self._choice()],
            "held out": [f"{scores.attrs['title'].replace('scores', self.validation.scorer.name)}, {ERRORS}", *held],
            "clusters": [str(self.clusters_shown), *([STARRED] if self.takes_all else [])],
            "certified": [gap if certified else f"NO: {self.solution.status}. {self.solution.message}"],
        }

    def _compared(self) -> list[str]:
        """Where the held-out scores are not of all rows, or not of what their names say."""
        folds = self.validation.folds
        lost = sum(int((~fold.scored).sum()) for fold in folds.each)
        said = f"{count(lost, 'row')} at nodes without neighbours to go by cannot be predicted, and are not scored"
        neighbours = f"{EACH}: a node that is held out has no rows, and its neighbours predict it, ever so weakly tied"
        return [said] * (lost > 0) + [neighbours] * (folds.dealt == "node" and self.spans)

    def _choice(self) -> str:
        found = self.validation
        points, k, best = [point[0] for point in found.grid.points], found.index(found.rule), found.index("min")
        worse, noise = found.behind(0, self.pooled) if self.takes_all else found.behind(k)
        beside = (
            f"; the best of them, {points[best]:.4g}, beats it by {worse:.2g} +- {noise:.2g}, no more than the noise"
        )
        near = beside if found.rule == "paired" and worse > 0.0 else ""
        within = "within one standard error of the best" if found.rule == "1se" else ""
        if self.takes_all:
            said = "is taken before" if near else f"is {within} of" if within else "predicts better than"
            return f"none: one model for all {said} {len(points)} strengths of this graph{near}"
        value, score, error = points[k], found.mean[best], found.standard_error[best]
        where = ""
        if self.spans and value == max(points):
            where = "; at the upper end: one model for all that the graph joins"
        elif self.spans and value == min(points):
            where = "; at the lower end: every node alone"
        elif len(points) > 1 and value in (min(points), max(points)):
            where = f"; at the {'lower' if value == min(points) else 'upper'} end of those that were given"
        alike = [p for p, each in zip(points, found.mean, strict=True) if abs(each - score) <= error]
        tied = f"; within one standard error: {min(alike):.3g} to {max(alike):.3g}" if len(alike) > 1 else ""
        which = "strongest" if near else f"strongest {within}" if within else "best"
        which = f"{which} of {len(points)} by {len(found.folds)} folds"
        return f"{value:.4g}, the {which}, rule {found.rule!r}{near}{where}{tied}"

    def __repr__(self) -> str:
        return f"<Fit of {self.rows.target!r}: {self.loss}, strength {self.strength:.4g}, {self.solution.status}>"

    def _html(self) -> Iterable[Html]:
        yield title(self._title)
        yield facts({name: "; ".join(texts) for name, texts in self._facts.items()})
        yield tables.as_html(self.scores)
        yield inside(self.solution)


def _grid(strengths: list[float]) -> str:
    """The strengths as they are written."""
    inner = strengths[1:]
    if len(inner) > 2 and np.allclose(np.diff(np.log(inner)), np.log(inner[1] / inner[0]), rtol=1e-6):
        return f"[{strengths[0]!r}, *np.geomspace({inner[0]!r}, {inner[-1]!r}, {len(inner)})]"
    return repr([float(s) for s in strengths])
