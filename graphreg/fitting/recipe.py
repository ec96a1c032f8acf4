"""`fit`: one call from a table and a graph to an answer, over public verbs alone. ``print(fit.code())`` writes them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import graphreg as gr

from .. import checks
from ..base.clock import AGAIN, cut_short, stages
from ..base.csgraph import minimum_spanning_tree
from ..base.gate import allowing
from ..base.messages import few, near
from ..catalogue import named
from ..errors import DataError, GraphError, MethodError, ModelError, TermError
from ..inputs import plain_label
from .fit import Fit
from .matching import LONE, doubts, refuse_look_alikes, untied
from .reading import LEVELS, Asked, UsedRows, checked_rows, coded, graph_of, opened, read, unreached

STRENGTHS = 20  # of the grid, down over three decades
MOST = 1000  # strengths that are looked for by their number
ALONE = 1e-6  # times the strength at which all nodes agree: each node is alone, but for those without rows
BEYOND = 1.5  # times that strength: so far beyond that nodes agree to the last digit
RIDGE = 1e-3  # on slopes of standardised features: rows of a node may be fewer than columns
INFINITE = ("LogisticLoss", "MultinomialLoss", "PoissonLoss")  # whose best intercept may be
HUBER, MAD = 1.345, 0.6745  # delta in standard deviations (95% as efficient on normal errors); MAD of one of them
COUNTS = 10  # a target of whole numbers that begins below is one of counts
ENDLESS = "the losses fall for ever"  # in a fold; other errors of a cross-validation are of no loss
USUAL = {"by": "sample", "rule": "min", "seed": 0}  # of a cross-validation
SCORES = {"SquaredLoss": "mse", "LogisticLoss": "log_loss", "MultinomialLoss": "log_loss", "PoissonLoss": "deviance"}
WRITTEN = re.compile(r"(?P<name>[\w./\\]+(:[\w.:]+)?)\s*(?P<options>\(.*\))?", re.S)


@dataclass(frozen=True)
class Family:
    """A loss: how it is made of the data, its name, why it was taken, and its options."""

    make: Callable[[gr.NodeData], Any]
    name: str
    why: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.name}({given})" if given else self.name


@checks.named
def fit(  # noqa: PLR0913
    table: Any,
    graph: Any,
    *,
    target: Hashable,
    node: Hashable,
    features: Sequence[Hashable] | None = None,
    weights: Hashable | None = None,
    loss: Any = None,
    penalty: Any = None,
    strengths: Sequence[float] | int | None = None,
    missing: str = "error",
    ids: str = "exact",
    repeated: str = "error",
    edge_weight: Hashable | None = None,
    by: str = "sample",
    folds: Any = 5,
    rule: str = "paired",
    gap: float = 1e-6,
    seed: int = 0,
    seconds: float | None = None,
    memory: float | None = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> Fit:
    """Fit a model at every node of a graph to a table, and say how well it predicts.

    With b_i and w_i the intercept and the coefficients of node i, of centred numbers in standard deviations and
    of categories as 0 and 1,

        minimise    sum_r v_r l(b_i(r) + x_r'w_i(r); y_r)
                  + strength sum_e A_e ||(b_i, w_i) - (b_j, w_j)||_2  +  1e-3 sum_i 1/2 ||w_i||^2,

    r over the rows and e = (i, j) over the edges. The strength is chosen by cross-validation between two ends, "every
    node alone" and "one model for all"; tables and predictions are in the units of the table.

    Parameters
    ----------
    table : DataFrame of pandas or polars, Table of pyarrow, or path
        A row per sample. A file (CSV, TSV, Parquet) has its names in the first line.
    graph : Graph, path, or whatever `Graph.of` takes
        A file of edges has the labels of their ends in the first two columns, or is an adjacency with labels in its
        first line and column.
    target : column name
    node : column name
        The label of the node of each row. Nodes of the table that the graph lacks are fitted alone.
    features : list of column names, optional
        All other columns by default. Text becomes categories, a column of 0 and 1 for each value but the first; dates,
        and text that is a name of each row, are refused by name.
    weights : column name, optional
        Positive weights of the rows. Counts / exposures as the target, weighted by the exposures (persons, days), with
        ``loss="PoissonLoss"`` are the fit with the offset log(exposure); other offsets are for `NodeData`.
    loss : str, class or callable, optional
        A loss by its name, with options or without ("QuantileLoss(tau=0.9)"), or a function of `NodeData`. By default
        that of the target: logistic of two values, multinomial of text, Poisson of whole numbers that begin below 10,
        squared of other numbers. "HuberLoss" without its delta gets 1.345 median |y - m| / 0.6745, in units of the
        target: m is the median of y at the node of the row, and the outer median is over the rows where y is not m.
        That is too large where features explain much of y: then give "HuberLoss(delta=...)".
    penalty : Penalty, optional
        On the difference along an edge; `L2` by default, under which neighbours may become equal.
    strengths : sequence of float, or int, optional
        Those among which one is chosen; or how many, by default 20, down over three decades from where all nodes agree
        (of losses with kinks from a bound of it), and one that leaves every node alone. Only then are both ends among
        them, and their scores are known.
    missing : {"error", "drop", "mean"}
        What becomes of missing values (empty cells): an error with all of them; their rows are left out; or features
        get the mean of their column (the commonest value, of a category), and rows without target, node or weight are
        left out.
    ids : {"exact", "text", "strip"}
        Whether the nodes of table and graph are compared as they are, as text (101 is then "101"), or as text without
        the spaces at its ends. Those of files are text. Labels that differ by such spaces, or by upper and lower case
        only, are refused.
    repeated : {"error", "sum"}
        What becomes of an edge that stands several times.
    edge_weight : column name, optional
        Of a file or frame of edges the column of their weights, of a graph the attribute; by default "weight" where
        there is one.
    by : {"sample", "node"}
        Whether samples or whole nodes are held out; see `cross_validate`.
    folds : int, str, sequence or splitter
        As in `cross_validate`, of all rows of the table; a fold loses the rows that are left out for missing cells. The
        name of a column, as ``"year"``, holds out the rows of one value after the other, and the column is then no
        feature unless it is named as one. That still learns from later years: for each period from those before it
        alone give pairs of rows, ``[(train, test), ...]``.
    rule : {"paired", "min", "1se"}
        Which strength is taken: the best, unless it does not beat the strongest (one model for all) by more than one
        standard error of their difference on the same rows: then that one; the best; or the strongest within one
        standard error of the best. See `cross_validate`.
    gap, seed, seconds, memory, jobs, progress
        As in `cross_validate`.

    Returns
    -------
    Fit
        Printed: what was read, the held-out score beside both ends, the strength, the clusters, and what is certified.

    Raises
    ------
    DataError
        With everything that is wrong with the table and its labels, and what is wrong with the edges, by their lines.
    GraphError, TermError, ModelError
        For a graph, a loss, a penalty or strengths that cannot be used.

    Examples
    --------
    >>> found = gr.fit(frame, nx.path_graph(["a", "b", "c", "d"]), target="level", node="site", folds=3)
    >>> found.solution.status
    'certified'
    """
    with allowing(memory, seconds), cut_short("fit", lambda: False):
        with stages("fit", progress, "reading") as at:
            asked = Asked(node, target, features, weights, folds, missing, ids, repeated, edge_weight, loss)
            rows, whole, remarks, family, problem, kept = _modelled(table, graph, asked, loss, penalty)
            at("the strength at which all nodes agree")
            grid = _strengths(problem, strengths)
        chosen = {"scoring": SCORES.get(family.name, "loss"), "by": by, "rule": rule, "seed": seed}
        how: dict[str, Any] = chosen | {"gap": gap, "memory": memory, "jobs": jobs, "progress": progress}
        with _blaming(rows, whole, loss if family.name in INFINITE else None):
            found = _finished(problem, grid, kept, how)
            pooled = _pooled(rows, family, whole, kept, how, found)
            found.assign()
    spans = strengths is None or checks.is_whole(strengths)
    others = (*rows.remarks, *remarks), whole, pooled, _written(folds, chosen), spans
    return Fit(problem, found, rows, str(family), family.why, *others)


def _modelled(table: Any, graph: Any, asked: Asked, loss: Any, penalty: Any) -> Any:
    """The rows, the graph with all their nodes, what is said of both, the loss, the problem and the folds."""
    rows, whole, remarks = table if isinstance(table, Ready) else readied(table, graph, asked)
    with _blaming(rows, whole, loss):
        rows, family = _finite(*_family(rows, loss), whole, remarks)
        problem = _problem(rows, family, whole, gr.L2() if penalty is None else penalty)
    return rows, whole, remarks, family, problem, rows.folds(asked.folds)


class Ready(NamedTuple):
    """The rows that a fit uses, the graph with all their nodes, and what is said of it; `fit` takes it for a table."""

    rows: UsedRows
    graph: gr.Graph
    remarks: list[str]

    def check(self, rows: Any, unseen: str) -> None:
        """Refuse, before anything is fitted, rows that `Fit.predict` may refuse."""
        known = None if unseen == "pooled" else self.graph.index
        checked_rows(self.rows, rows, known, unreached(self.rows.frame[self.rows.node], self.graph))


def readied(table: Any, graph: Any, asked: Asked) -> Ready:
    """A table and its edges, read as they are asked for."""
    if asked.ids == "exact" and any(isinstance(each, (str, Path)) for each in (table, graph)):
        asked = replace(asked, ids="text")
    graph = list(graph) if isinstance(graph, Iterator) else graph  # it may be read twice
    wrong = list[ModelError]()  # of the table, of the edges and of the labels of both, so that all are said at once

    def kept(call: Callable[..., Any], *given: Any) -> Any:
        try:
            return call(*given)
        except (DataError, GraphError) as error:
            wrong.append(error)

    rows = kept(read, table, asked)
    made = kept(graph_of, graph, asked.ids, asked.repeated, asked.edge_weight)
    whole = made or kept(graph_of, graph, asked.ids, "sum", asked.edge_weight)  # so that labels are compared
    if whole:
        kept(lambda: _compare(rows.frame if rows else opened(table, asked.node, asked.ids)[0], asked.node, whole[0]))
    if wrong:
        said = list(dict.fromkeys(line for each in wrong for line in str(each).split("\n")))
        raise DataError("\n".join(said)) if len(said) > 1 else wrong[0]
    return Ready(rows, *_joined(rows, *made))


def _compare(frame: Any, node: Hashable, graph: gr.Graph) -> None:
    """`GraphError` where labels of rows are not meant as they are, or the graph ties none of them."""
    seen = dict.fromkeys(frame[node].dropna()) if node in frame else {}
    refuse_look_alikes(seen, graph.labels)
    if seen and not any(label in graph.index for label in seen):
        first = next(iter(seen))
        kinds = f"{type(first).__name__} ({first!r}) and {type(graph.labels[0]).__name__} ({graph.labels[0]!r})"
        remedy = near(str(first), list(map(str, graph.labels)))
        raise GraphError(f"no node of the table is in the graph: their labels are {kinds}; {remedy}")
    if not graph.n_edges:
        raise GraphError("the graph has no edges, so that nothing ties its nodes to each other; add edges")


def _finished(problem: gr.Problem, strengths: Sequence[float], folds: Any, how: dict[str, Any]) -> Any:
    """A cross-validation that Ctrl-C ends, as the folds that are finished by then choose nothing."""
    found = gr.cross_validate(problem, strengths, folds, **how)
    if found.ended == "interrupted":
        done = f"{len(found.runs)} of {len(found.folds)} folds were finished, and choose nothing"
        raise KeyboardInterrupt(
            f"fit: {done}; {AGAIN}; gr.cross_validate(..., checkpoint=) keeps those that are finished"
        )
    return found


def _written(folds: Any, chosen: dict[str, Any]) -> tuple[str, str]:
    """The folds as code, and the arguments that are not the usual ones."""
    others = [f", {name}={chosen[name]!r}" for name, usual in USUAL.items() if chosen[name] != usual]
    given = f"fit.rows.folds({repr(folds) if isinstance(folds, str) else 'folds'})"  # of the rows that are left
    return repr(folds) if checks.is_whole(folds) else given, "".join(others)


def _pooled(rows: UsedRows, family: Family, graph: gr.Graph, folds: Any, how: dict[str, Any], beside: Any) -> Any:
    """The scores of one model for all nodes, of the rows that are scored ``beside`` it, where the graph does not join
    them: else it is the upper end. None where the strength is not known at which it is reached."""
    if not graph.components().any():
        return None
    star = gr.Graph.from_edges([(graph.labels[0], label) for label in graph.labels[1:]])
    one = _problem(rows, family, star, gr.L2())
    try:
        strongest = _strengths(one)[-1:]
    except TermError:
        return None
    found = _finished(one, strongest, folds, how)
    each = [
        replace(mine, scored=mine.scored & np.isin(mine.test, theirs.test[theirs.scored]))
        for mine, theirs in zip(found.folds.each, beside.folds.each, strict=True)
    ]
    return replace(found, folds=replace(found.folds, each=tuple(each)))


def _problem(rows: UsedRows, family: Family, graph: gr.Graph, penalty: Any) -> gr.Problem:
    strength = gr.Parameter(1.0, name="strength")
    model = family.make(_data(rows)) + strength * gr.TotalVariation(graph, penalty)
    return gr.Problem(model + RIDGE * gr.NodePenalty(gr.SquaredL2()) if rows.numbers or rows.categories else model)


def _strengths(problem: gr.Problem, given: Any = None) -> list[float]:
    """Those that are given, or strengths down from where all nodes agree, and one that leaves every node alone."""
    if not (given is None or checks.is_whole(given)):
        if isinstance(given, str):  # of whose letters each would be one
            raise ModelError(f"strengths must be numbers, as in [0.1, 1.0], or how many, got the text {given!r}")
        return checks.sequence(given, "strengths", "numbers, as in [0.1, 1.0], or how many")
    count = checks.whole(1)(STRENGTHS if given is None else given, "strengths")
    if count > MOST:
        one = f"for the one strength {count} give [{count}.0], or {count}.0 on the command line"
        raise ModelError(f"strengths={count} asks for so many strengths, and {MOST:,} are the most; {one}")
    try:
        found = gr.strength_max(problem)
        if found.ended == "interrupted":
            raise KeyboardInterrupt
        most = BEYOND * found.upper or 1.0  # 0: nodes agree at any strength
    except (TermError, MethodError) as error:
        most = BEYOND * _at_most(problem.form)
        if not 0.0 < most < np.inf:
            raise TermError(f"say which strengths to try: strengths=[0.01, 0.1, 1.0] ({error})") from error
    digit = 10.0 ** (math.floor(math.log10(most)) - 2)
    top = float(f"{math.ceil(most / digit) * digit:.3g}")  # three digits, so that it can be said and typed
    return [float(f"{top * ALONE:.3g}"), *np.geomspace(1e-3 * top, top, count).tolist()]


def _at_most(form: Any) -> float:
    """A strength beyond that at which all nodes agree, of losses with kinks, whose prices lie in boxes: along a
    spanning tree the flow of an edge is the sum of a_r x_r on either side, so that half of sum_r |a_r| ||x_r|| bounds
    ||u_e||, and sqrt(k) max_j gauge(+-e_j) its gauge."""
    (edge,) = form.between
    total, k = 0.0, form.width(edge)
    for block in form.samples:
        ends = np.abs(block.loss.domain(block.y)).max(axis=0)
        length = 1.0 if block.X is None else np.linalg.norm(block.X, axis=1)
        total += float((block.scale * length * np.linalg.norm(ends.reshape(block.count, -1), axis=1)).sum())
    gauge = math.sqrt(k) * float(edge.penalty.domain.gauge(np.vstack([np.eye(k), -np.eye(k)])).max())
    weights = sp.csr_array((1.0 / edge.weight, (edge.tail, edge.head)), shape=(form.n, form.n))
    return 0.5 * total * gauge * float(minimum_spanning_tree(weights).data.max(initial=0.0)) * float(edge.strength)


def _data(rows: UsedRows) -> gr.NodeData:
    """The rows as data, features of numbers in standard deviations."""
    return gr.NodeData.from_frame(
        rows.frame,
        node=rows.node,
        target=rows.target,
        features=rows.numbers,
        weights=rows.weights,
        intercept=True,
        categories=rows.categories,
        standardise=bool(rows.numbers),
    )


def _joined(rows: UsedRows, graph: gr.Graph, said: Sequence[str]) -> tuple[gr.Graph, list[str]]:
    """The graph with the nodes of the table that it lacks; and what was said of it, with what is to be said of these,
    and of those without rows."""
    seen = dict.fromkeys(rows.frame[rows.node].tolist())
    lacking = [label for label in seen if label not in graph.index]
    remarks, known = [*said], [label for label in graph.labels if label in seen]
    if lacking:
        s = "s" * (len(lacking) > 1)
        which = few([repr(label) for label in lacking])
        remarks.append(f"{len(lacking):,} node{s} of the table not in the graph, {LONE}{which}")
        remarks += [f"no node {label!r} in the graph{hint}" for label, hint in doubts(lacking, (), known)]
    remarks += untied(seen, graph, lacking)
    return gr.Graph((*graph.labels, *lacking), graph.tail, graph.head, graph.weight) if lacking else graph, remarks


def _finite(rows: UsedRows, family: Family, graph: gr.Graph, remarks: Sequence[str]) -> tuple[UsedRows, Family]:
    """The rows and their loss; `DataError` where nodes that no edge joins to others have one class, or no counts: the
    best intercept is infinite there, at every strength."""
    if family.name not in INFINITE or not graph.components().any():
        return rows, family
    part = dict(zip(graph.labels, graph.components().tolist(), strict=True))
    number = [part[label] for label in rows.frame[rows.node].tolist()]
    each: Any = rows.frame.groupby(np.array(number))[rows.target]
    for _, y in each:
        value = plain_label(y.iloc[0])
        if y.nunique() == 1 and (family.name != "PoissonLoss" or value == 0):
            nodes = list(dict.fromkeys(map(repr, rows.frame.loc[y.index, rows.node])))
            hints = "".join(f"; {said}" for said in remarks if any(f" {node} in the graph;" in said for node in nodes))
            raise DataError(
                f"no edge joins {few(nodes, 4)} to other nodes with rows, and in all rows there ({len(y):,}) "
                f"{rows.target!r} is {rows.classes[int(value)] if rows.classes else value!r}: the best intercept is "
                f"infinite there; correct the label, give an edge, or leave these rows out{hints}"
            )
    return rows, family


@contextmanager
def _blaming(rows: UsedRows, graph: gr.Graph, asked: Any) -> Generator[None]:
    """Errors of data say which loss such a target usually has, where another was asked for, and that one takes it."""
    try:
        yield
    except ModelError as error:
        usual = None
        if asked is not None and (type(error) is DataError or ENDLESS in str(error)):
            with suppress(ModelError):  # of data that its loss does not take either, and of a target that none suits
                tried, family = _finite(coded(rows), _of_target(coded(rows)), graph, ())
                _problem(tried, family, graph, gr.L2())
                usual = family
        if usual is None or usual.name == getattr(asked, "__name__", asked):
            raise
        said = f"leave loss= out: {usual.name} is the loss of such a target, {usual.why}"
        raise type(error)(f"{error}; {said}") from None


def _family(rows: UsedRows, asked: Any) -> tuple[UsedRows, Family]:
    """The loss that was asked for, or that of the target, two texts coded as 0 and 1."""
    asked, options = parts_of(asked, "loss") if isinstance(asked, str) else (asked, {})
    asked = named("loss", asked)
    if asked is None:
        rows = coded(rows)
        return rows, _of_target(rows)
    if isinstance(asked, type):
        y: Any = rows.frame[rows.target]
        two = issubclass(asked, gr.AbstractTwoClasses)
        most = 2 if two else max(len(y) / 3, LEVELS) if asked.__name__ == "MultinomialLoss" else np.inf
        if (count := y.nunique()) > most:
            raise DataError(
                f"the target {rows.target!r} has {count:,} values in {len(y):,} rows, too many to be classes of "
                f"{asked.__name__}; name a column of {'two ' * two}classes"
            )
        why = "as asked for"
        if asked.__name__ == "HuberLoss" and "delta" not in options and y.dtype.kind in "iuf":
            options["delta"] = _delta(rows)
            why += f"; delta is {HUBER} robust standard deviations of {rows.target!r} within nodes"
        if asked.__name__ == "QuantileLoss":
            options = {"tau": gr.QuantileLoss.tau, **options}  # which is said
        return coded(rows) if two else rows, _of(asked.__name__, why, **options)
    return rows, Family(asked, "a loss of yours", "as asked for")


def _of_target(rows: UsedRows) -> Family:
    y: Any = rows.frame[rows.target]
    count, name = y.nunique(), f"{rows.target!r}"
    if count < 2:
        raise DataError(
            f"the target {name} is the same in all rows, {plain_label(y.iloc[0])!r}: there is nothing to be learnt"
        )
    if count == 2:
        return _of("LogisticLoss", f"since {name} has two values")
    if y.dtype.kind not in "biuf":
        if count > len(y) / 3:
            raise DataError(f"the target {name} holds text with {count:,} values; name one of numbers, or of classes")
        return _of("MultinomialLoss", f"since {name} has {count} classes")
    values = y.to_numpy(float)
    whole = (values == np.rint(values)).all() and 0 <= values.min() < COUNTS
    said = f'since {name} holds counts; loss="SquaredLoss" takes them for numbers'
    return _of("PoissonLoss", said) if whole else _of("SquaredLoss", f"since {name} holds numbers")


def _delta(rows: UsedRows) -> float:
    """Where Huber's loss turns: by the spread of the target within nodes, which no outlier moves far."""
    y: Any = rows.frame[rows.target]
    apart = (y - y.groupby(rows.frame[rows.node]).transform("median")).abs()
    if not (apart > 0).any():
        raise DataError(
            f"{rows.target!r} is the same in all rows of each node, so that its spread says no delta of HuberLoss; "
            "give it, as in HuberLoss(delta=1.0)"
        )
    return float(f"{HUBER / MAD * apart[apart > 0].median():.3g}")  # so that it can be said and typed


def _of(name: str, why: str, **options: Any) -> Family:
    return Family(lambda data: getattr(gr, name)(data, scale="sum", **options), name, why, options)


def parts_of(text: str, what: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of ``NAME(option=value, ...)``, whose values are literals: numbers, text, lists."""
    call, found = None, WRITTEN.fullmatch(text.strip())
    with suppress(SyntaxError, ValueError):
        call = ast.parse(f"method{found['options'] or '()'}", mode="eval").body if found else None
    if found is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ModelError(f"{what}: {text!r} is not of the form NAME or NAME(option=value, ...)")
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ModelError(f"{what}: in {text!r} an option has no name; write NAME(option=value, ...)")
    return found["name"], {str(keyword.arg): _value(text, keyword, what) for keyword in call.keywords}


def _value(text: str, keyword: ast.keyword, what: str) -> Any:
    try:
        value = ast.literal_eval(keyword.value)
        return list(value) if isinstance(value, tuple) else value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ModelError(
            f"{what}: the option {keyword.arg!r} in {text!r} is {ast.unparse(keyword.value)}: it must be a number, "
            "text in quotes, True, False, None, or a list of these"
        ) from None
