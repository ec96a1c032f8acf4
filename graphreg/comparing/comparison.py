"""The comparison of several methods and algorithms on one problem."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..auditing import AbstractAlgorithm, Course, CourseRunner, algorithm_of
from ..base.clock import progress_bar
from ..base.display import Html, Shown, Suggesting, sentence, title
from ..base.escaping import page, printed, visible
from ..base.gate import allowing
from ..base.messages import distinct, shown
from ..base.shortcuts import shortcut
from ..certificate import Certificate, common, feasible, relative
from ..errors import DataError, GraphregError, MethodError, SolverError
from ..form import Form
from ..inputs import NodeData, renewed
from ..judging import Judgement, given_point
from ..methods import AbstractIteration, AbstractMethod, Auto, Exact, ToleratesLostMessages, listed
from ..problem import ARGUMENTS, Problem, problem_of
from ..running import AbstractEngine, Observation, Observed, Observer, Record, Solution, Trace, grid_of, seen_at

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHORT = dict.fromkeys(("above", "relative_gap", "seconds", "own_gap"), "{:.3g}".format)
FORMATS: Any = {"objective": "{:.10g}".format, **SHORT}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """The answers of several methods to one problem, and their costs.

    Attributes
    ----------
    entries : dict
        By name, in order: the Solution of each method and algorithm that ran, a `NoRun` for the others.
    reference : str
        What ``above`` and the figures measure by: the exact optimum where a conic solver found it in time, else the
        best certified lower bound of all runs.
    dual : float
        Its value, a certified lower bound of the optimum; nan where there is none.
    seed : int
        Of all methods that draw random numbers.
    not_run : tuple of str
        Methods that were left out after Ctrl-C.
    sent : dict
        Of algorithms that are none of the library's, by name: the messages and bytes that they sent, None where nobody
        counts them.
    left_out : tuple of str
        Methods that apply, but would use up all of their budget: they run where they are named.
    measure : str
        What ``score=`` measures: accuracy, deviance, mse or loss of a frame, or the name of a function; "" without.
    always_there : tuple of str
        Methods that ran with all nodes there, as they could not be told of the ``availability=`` asked for.
    in_one_place : tuple of str
        Methods and algorithms that ran on whole arrays, as the ``engine=`` asked for cannot carry them out.
    liars : tuple of labels
        Nodes whose rows were left out of the score of a frame, as they lie.

    Examples
    --------
    >>> comparison = gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], seconds=5)
    >>> comparison.table()["status"].tolist()
    ['certified', 'certified']
    """

    entries: dict[str, Solution | NoRun]
    reference: str
    dual: float
    seed: int = 0
    not_run: tuple[str, ...] = field(default=())
    sent: dict[str, Sent] = field(default_factory=dict)
    left_out: tuple[str, ...] = field(default=())
    measure: str = ""
    always_there: tuple[str, ...] | None = None
    in_one_place: tuple[str, ...] = ()
    liars: tuple[Hashable, ...] = ()

    @property
    def solutions(self) -> dict[str, Solution]:
        """The solutions of the methods that ran, by name."""
        return {name: each for name, each in self.entries.items() if isinstance(each, Solution)}

    def table(self) -> pd.DataFrame:
        """One row per method.

        ``above`` is the objective minus `bound`, so at most that much above the optimum; ``relative_gap`` is what the
        method's own certificate says, or `Problem.certify` of the last point of an algorithm, which has none.
        ``messages`` and ``bytes`` are all that was sent, ``solving_messages`` and ``solving_bytes`` all but what the
        certificates cost: that of the method and of its adaptation, two lines of the ledger; they are missing where
        nobody counts them. Where a score was asked for, the column that `measure` names is that of the last round.
        Where an availability was, or nodes crashed, ``away`` is the share of all nodes and rounds in which a node was
        away. ``own_gap``, where there are baselines, is what these certified of the problem that they solve instead.

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

        from ..base.tables import LabelledTable

        rows = [self._row(name, each) for name, each in self.entries.items()]
        table = LabelledTable(rows, index=pd.Index(list(self.entries), dtype=object), columns=[*COLUMNS])
        if any(sent is None for sent in self.sent.values()):
            table = table.astype(dict.fromkeys(SENT, "Int64"))
        more: dict[str, dict[str, float]] = {}
        if self.measure:
            more[self.measure] = {name: float(each["score"][-1]) for name, each in self._observed.items()}
        away = {name: _away(each) for name, each in self.solutions.items() if each.ledger.rounds}
        if self.always_there is not None or any(away.values()):
            more["away"] = away
        table = table.assign(**{name: pd.Series(values, dtype=float) for name, values in more.items()})
        own = {name: each.own for name, each in self.solutions.items() if each.own is not None}
        return table.assign(own_gap=pd.Series({name: c.relative_gap for name, c in own.items()})) if own else table

    def _row(self, name: str, entry: Solution | NoRun) -> dict[str, Any]:
        if isinstance(entry, NoRun):
            numbers = np.nan, np.nan, np.nan, 0, 0, 0, 0, 0, np.nan
        else:
            certificate, ledger = entry.certificate, entry.ledger
            gap = certificate.relative_gap if certificate.valid else np.nan
            own = self.sent.get(name, ledger.sent()) or (None, None)
            sent = own * 2 if name in self.sent else (ledger.total_messages, ledger.total_bytes, *own)
            objective = entry.objective if np.isfinite(entry.objective) else np.nan  # inf: there is no point
            numbers = objective, objective - self.dual, gap, entry.rounds, *sent, entry.seconds
        return dict(zip(COLUMNS, (entry.status, *numbers), strict=True))

    @property
    def _observed(self) -> dict[str, Observed]:
        """The scores of the methods that have any."""
        return {name: each.observed for name, each in self.solutions.items() if each.observed}

    def scores(self) -> pd.DataFrame:
        """The learning curves: the score of each method after the rounds that were looked at, and what it had sent
        until then, without certificates. Nothing of it is certified.

        Returns
        -------
        pandas.DataFrame
            method, round, solving_messages, solving_bytes and the column that `measure` names; no rows without a score.

        Examples
        --------
        >>> gr.compare(problem, [gr.ADMM()], score=frame).scores().columns.tolist()
        ['method', 'round', 'solving_messages', 'solving_bytes', 'mse']
        """
        import pandas as pd

        columns = ["method", "round", *SENT[2:], self.measure or SCORED[0]]
        parts = [
            pd.DataFrame(dict(zip(columns, (name, o.rounds, o["messages"], o["bytes"], o["score"]), strict=True)))
            for name, o in self._observed.items()
        ]
        whole = dict.fromkeys(SENT[2:], "Int64")
        return pd.concat(parts, ignore_index=True).astype(whole) if parts else pd.DataFrame(columns=columns)

    def plot(self, x: str | None = None, ax: Axes | None = None, *, y: str | None = None) -> Axes:
        """The score against ``x``: "bytes" (default), "messages" or "rounds"; where none was asked for, or with
        ``y="gap"``, the gap against "rounds" (default), "messages", "bytes" or "seconds". See `plots.plot_comparison`.

        Raises
        ------
        ModelError
            For another ``x`` or ``y``.

        Examples
        --------
        >>> gr.compare(problem, [gr.ADMM()]).plot("messages").get_xscale()
        'log'
        """
        return shortcut("Comparison.plot")(self, x, ax, y)

    def figure(self, y: str | None = None) -> Figure:
        """The four plots of the gap, or the three of the score where one was asked for, side by side; the caption says
        what they measure by.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> len(gr.compare(problem, [gr.ADMM()]).figure().axes)
        4
        """
        return shortcut("Comparison.figure")(self, y=y)

    def __repr__(self) -> str:
        met = sum(each.status == "certified" for each in self.entries.values())
        return f"<Comparison of {len(self.entries)} methods, {met} certified; lower bound {self.dual:.8g}>"

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html

        yield title(f"Comparison of {len(self.entries)} methods")
        yield as_html(self.table(), formatters=FORMATS)
        yield from map(sentence, self._remarks())

    def _remarks(self) -> list[str]:
        lines = [
            f"{visible(name)}: {e.status}. {e.message}" for name, e in self.entries.items() if e.status != "certified"
        ]
        remarks = {
            "nobody counts the messages of {}": [name for name in self.solutions if self.sent.get(name, ()) is None],
            "interrupted before these began: {}": self.not_run,
            "left out, as it is seldom certified and uses up its seconds: {}; name it among the methods to run it": (
                self.left_out
            ),
            "could not be told who is away, and ran with all nodes there: {}; nodes that crash, engine=gr.Actors("
            "faults=gr.Faults(crash=..., down=1)) in place of availability=, are away for methods without sums over "
            "all nodes, such as PrimalDual(balance=1.0); docs/actors.md lists them": self.always_there,
            "not carried out by the engine, and ran in one place: {}": self.in_one_place,
            "scored without the rows at nodes that lie: {}": self.liars,
        }
        lines += [said.format(", ".join(map(visible, names))) for said, names in remarks.items() if names]
        if self.measure in MEASURES:
            answers = "an answer, which may be their mean or polished, has solution.score(rows, by='all')"
            lines.append(f"{self.measure} is that of the last iterates; {answers}")
        return [*lines, f"reference: {self.reference}"]

    def __str__(self) -> str:
        table = self.table()
        table[[*SENT]] = table[[*SENT]].astype(object).where(table[[*SENT]].notna(), "-")
        return page("\n".join([printed(table, formatters=FORMATS, na_rep="-"), *self._remarks()]))


LEAST = 1e-9  # the relative gap to which the optimum is known well enough, whatever is asked of the methods
MEASURES = ("accuracy", "deviance", "mse", "loss")
SCORED = ("score", "messages", "bytes")
SENT = ("messages", "bytes", "solving_messages", "solving_bytes")
COLUMNS = (*("status", "objective", "above", "relative_gap", "rounds"), *SENT, "seconds")


@checks.named
def compare(  # noqa: PLR0913
    problem: Problem,
    methods: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    gap: float = 1e-6,
    rounds: int | None = None,
    seconds: float = 60.0,
    memory: float | None = None,
    seed: int | None = None,
    progress: bool | None = None,
    score: Any = None,
    availability: Any = None,
    engine: AbstractEngine | None = None,
) -> Comparison:
    """Run methods on a problem, algorithms of your own among them, and set them side by side.

    The yardstick is the exact optimum: it is looked for first, by ``Exact()`` (or the first `Exact` among the methods),
    which is told to end after ``seconds`` as well. A conic solver looks at the clock between its iterations, so on a
    large problem it takes longer than that. Where it does not get there, the best certified lower bound of all runs
    takes its place, and the comparison says so.

    Ctrl-C ends the comparison with what there is. A method that does not apply, or that breaks down, has a row that
    says why.

    Parameters
    ----------
    problem : Problem
    methods : sequence of methods and algorithms, or mapping from names to them, optional
        By default all methods that apply, but those that are seldom certified and would use up their budget
        (`SubgradientDescent`): the comparison says which. In a sequence each is called by its name and the options that
        are not the default ones: ``PrimalDual(balance=1.0)``. An algorithm is what `audit` takes: a function
        ``algorithm(problem, start=None, seed=None)`` that yields the parameters after each round, a function
        ``step(state, node, messages)``, or an iterable of parameters. It ends where its objective is within ``gap`` of
        the optimum, if that is known, and its last point is judged by `Problem.certify`.
    gap : float
        The relative gap asked of each.
    rounds : int, optional
        The most rounds of each that has rounds; with ``gap=0`` all of them take as many. By default as many as the
        time allows, and at most 100,000.
    seconds : float
        The budget of each.
    memory : float, optional
        A bound of the bytes that each may take, as in `Problem.solve`.
    seed : int, optional
        Of the random numbers, the same for each; by default one is drawn, which ``comparison.seed`` tells.
    progress : bool, optional
        Whether to show on stderr which method is running; by default where that is a terminal.
    score : DataFrame, NodeData or function, optional
        Rows held out, with the columns that the data had: after the rounds at which an `Observer` looks, every method
        (an algorithm of your own from round 1 on) is scored on them, all rows together, by accuracy (of classes),
        deviance (of counts), mse, or else its loss. A function takes the `Observation` of such a round, with its
        ``coef``, ``predict`` and ``score``, and returns a number; where it raises KeyboardInterrupt in a run, all
        ends as by Ctrl-C. It is tried once before all runs, at w = 0. What is scored is the iterate, of methods without
        rounds the answer. Rows at nodes that lie (``engine=gr.Malicious(...)``) are left out; a function leaves them
        out itself.
    availability : number, mapping, sampler or Availability, optional
        Who is there in a round, the same for every method that has the option ``availability`` and was not given one:
        as the draws follow from the seed, a node that is away in a round of one method is away in that round of all.
        Others run with all nodes there, as does `FedADMM` where messages are lost; ``always_there`` names them.
    engine : AbstractEngine, optional
        Where methods that have rounds run, as in `Problem.solve`: ``gr.Actors(faults=gr.Faults(drop=0.1))`` loses
        messages of each. Methods without rounds, and algorithms of your own, run on whole arrays, where no message is
        lost and nobody lies; ``in_one_place`` names them. A method with rounds that it cannot carry out is refused.

    Returns
    -------
    Comparison
        ``print`` it; ``.table()``, ``.scores()``, ``.plot()``, and ``.solutions[name]``, the solution of a method.

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
    checks.nonnegative(gap, "gap")
    (checks.count | None)(rounds, "rounds")
    checks.seconds(seconds, "seconds")
    ARGUMENTS["engine"](engine, "engine")
    apply = [m for m in listed() if not (isinstance(m, Auto) or m.lacks(problem.form))]  # which is one of the others
    left_out = tuple(m.label for m in apply if m.seldom_certified) if methods is None else ()
    chosen = _named([m for m in apply if not m.seldom_certified] if methods is None else methods)
    _check_some_apply(problem, chosen)
    drawn = secrets.randbits(32) if seed is None else checks.seed(seed, "seed")
    liars = () if engine is None or score is None or callable(score) else tuple(engine.liars)
    measure, look = ("", None) if score is None else _measure_of(score, problem.form, liars)
    allowed = Allowed(gap, rounds, seconds, drawn, look, engine)
    chosen, always_there = (chosen, None) if availability is None else _with_availability(chosen, availability, engine)
    exact = next((name for name, method in chosen.items() if isinstance(method, Exact)), None)
    with allowing(memory):
        found, sent = _runs(problem, chosen, exact, allowed, progress)
    entries = {name: found[name] for name in chosen if name in found}
    reference, bound = _reference(exact, found, allowed.reached)
    if always_there is not None:
        always_there = tuple(name for name in always_there if name in found and found[name].status != "refused")
    not_run = tuple(name for name in chosen if name not in found)
    elsewhere = tuple(name for name, each in chosen.items() if engine is not None and not _on_engines(each))
    said = drawn, not_run, sent, left_out, measure, always_there, elsewhere, liars
    return Comparison(entries, reference, bound, *said)


Chosen = Mapping[str, AbstractMethod | AbstractAlgorithm]


def _runs(
    problem: Problem, chosen: Chosen, exact: str | None, allowed: Allowed, progress: bool | None
) -> tuple[dict[str | None, Solution | NoRun], dict[str, Sent]]:
    """What each gave, the reference first (None, where it is no row), and what algorithms sent; until Ctrl-C."""
    order = dict.fromkeys([exact, *chosen])
    found: dict[str | None, Solution | NoRun] = {}
    sent: dict[str, Sent] = {}
    bar = progress_bar(progress, total=len(order), desc="comparing", unit=" methods")
    with bar as show:
        for k, name in enumerate(order):
            show(int(k > 0), name or "reference")
            method = Exact() if name is None else chosen[name]
            if isinstance(method, AbstractMethod):
                own = allowed if name else replace(allowed, gap=allowed.reached, look=None)
                found[name] = of_method(problem, method, own)
            elif name is not None:
                best = _optimum(found[exact], allowed.reached)
                found[name], sent[name] = of_algorithm(problem, method, allowed, best)
            if found[name].status == "interrupted":  # whoever presses Ctrl-C means all of it
                break
    return found, sent


def _check_some_apply(problem: Problem, chosen: Chosen) -> None:
    lacks = {name: m.lacks(problem.form) for name, m in chosen.items() if isinstance(m, AbstractMethod)}
    if len(lacks) == len(chosen) and all(lacks.values()):
        said = "; ".join(f"{name}: {', '.join(missing)}" for name, missing in lacks.items())
        raise MethodError(f"none of the methods applies to the problem: {said}")


def _named(methods: Any) -> dict[str, AbstractMethod | AbstractAlgorithm]:
    """The methods and algorithms by name; what is neither is refused."""
    if isinstance(methods, (AbstractMethod, str)) or not isinstance(methods, (Mapping, Sequence)) or not methods:
        raise MethodError(f"methods must be a list of at least one method, or a dict of them by name, got {methods!r}")
    given: Any = methods.items() if isinstance(methods, Mapping) else [(None, method) for method in methods]
    out: dict[str, AbstractMethod | AbstractAlgorithm] = {}
    for name, each in given:
        method = each if isinstance(each, AbstractMethod) else algorithm_of(each)
        if name is not None and not (isinstance(name, str) and name):
            raise MethodError(f"the names of methods are text, got {name!r}")
        own = method.label if isinstance(method, AbstractMethod) else method.name
        out[distinct(own if name is None else name, out)] = method
    return out


Look = Callable[[Observation], float]


def _measure_of(score: Any, form: Form, liars: Sequence[Hashable]) -> tuple[str, Look]:
    """The name of a score, and how it is found; tried at 0, so that what is wrong with it is said at once."""
    at = seen_at(form, np.zeros(form.shape))
    look: Any = score
    if callable(score):
        name = str(getattr(score, "__name__", type(score).__name__)).replace("<lambda>", "score")
    else:
        try:
            known = at.score(score, by="all")
        except DataError as error:
            wanted = "a frame with the columns that the data had, NodeData or a function of an observation"
            raise DataError(f"score= takes {wanted}, got {type(score).__name__}: {error}") from None
        name = next(name for name in MEASURES if name in known)
        look = partial(_of_rows, _without(score, form, liars) if liars else score, name)
    if not checks.is_number(value := look(at)):
        raise MethodError(f"the score {name} must be a number, got {shown(value)}")
    return name, look


def _without(given: Any, form: Form, liars: Sequence[Hashable]) -> NodeData:
    """The rows at other nodes than these."""
    data = renewed(form.samples[0].loss.data, given)
    return data.take(np.array([label not in liars for label in data.labels])[data.node])


def _of_rows(rows: Any, name: str, at: Observation) -> float:
    return at.score(rows, by="all")[name].iloc[0]


def _with_availability(
    chosen: Mapping[str, Any], availability: Any, engine: AbstractEngine | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The methods, told who is there, and the names of those that cannot be told, where messages are lost or ever."""
    faults = getattr(engine, "faults", None)
    unable: Any = ToleratesLostMessages if faults is not None and faults.lossy else ()
    fit = {name: m for name, m in chosen.items() if is_dataclass(m) and not isinstance(m, unable)}
    able: dict[str, Any] = {name: m for name, m in fit.items() if hasattr(m, "availability")}
    informed = {name: replace(m, availability=availability) for name, m in able.items() if m.availability is None}
    return {**chosen, **informed}, tuple(name for name in chosen if name not in able)


def _on_engines(method: AbstractMethod | AbstractAlgorithm) -> bool:
    return isinstance(method, AbstractMethod) and "engine" not in method.refuses()


def _away(solution: Solution) -> float:
    """The share of all nodes and rounds in which a node was away."""
    away = solution.ledger.by_node()["away"].iloc[: solution.form.space.n_observed]
    return float(away.sum() / (solution.ledger.rounds * len(away)))


def _optimum(exact: Solution | NoRun, gap: float) -> Certificate | None:
    """The certificate of the optimum, where the exact route got there."""
    return exact.certificate if isinstance(exact, Solution) and exact.certificate.holds(gap) else None


def _reference(exact: str | None, found: Mapping[str | None, Solution | NoRun], gap: float) -> tuple[str, float]:
    """The yardstick of all, in words and as a lower bound of the optimum."""
    known = {name: each for name, each in found.items() if isinstance(each, Solution)}
    bounds = {name: each.certificate.dual for name, each in known.items() if each.certificate.valid}
    broken = [each.certificate.contradiction for each in known.values()]
    if not bounds or any(broken):  # what one method finds wrong with a term is wrong with the bounds of all
        return next((f"none, as {said}" for said in broken if said), "none, for want of a bound"), float("nan")
    best = max(bounds, key=lambda name: bounds[name])
    label = Exact().label if exact is None else exact
    if _optimum(found[exact], gap) is not None:
        low, high = bounds[best], min(each.objective for each in known.values())
        return f"the exact optimum, by {label} (certified to lie between {low:.10g} and {high:.10g})", bounds[best]
    why = f"{label} did not get to the optimum: {found[exact].status}"
    return f"the best certified lower bound {bounds[best]:.10g}, {best or label}'s ({why})", bounds[best]


ANY = 1e300  # a gap that every bound has
Sent = tuple[int, int] | None  # messages and bytes; None where nobody counts them


@dataclass(frozen=True)
class Allowed:
    """The budget of each."""

    gap: float
    rounds: int | None
    seconds: float
    seed: int
    look: Look | None = None  # at a round, for its score
    engine: AbstractEngine | None = None

    @property
    def reached(self) -> float:
        """The gap to which the optimum is to be known."""
        return max(self.gap, LEAST)

    @property
    def observe(self) -> dict[str, Callable[[Observation], Any]] | None:
        """The functions of an observation that make a learning curve."""
        return self.look and dict(zip(SCORED, (self.look, lambda at: at.messages, lambda at: at.bytes), strict=True))


@dataclass(frozen=True)
class NoRun(Suggesting):
    """The reason for which there is no solution: ``status`` is refused (the method does not apply), failed or
    interrupted."""

    status: str
    message: str


def of_method(problem: Problem, method: AbstractMethod, allowed: Allowed) -> Solution | NoRun:
    """The solution of one method, or why there is none."""
    if missing := method.lacks(problem.form):
        return NoRun("refused", "; ".join(missing))
    rounds = None if "rounds" in method.refuses() else allowed.rounds
    budget: dict[str, Any] = {"gap": allowed.gap, "rounds": rounds, "seconds": allowed.seconds, "seed": allowed.seed}
    budget["engine"] = allowed.engine if _on_engines(method) else None
    observe = None if "observe" in method.refuses() else allowed.observe
    try:
        found = problem.solve(method, progress=False, on_failure="return", observe=observe, **budget)
        return found if allowed.look is None or found.observed is not None else _scored(found, allowed.look)
    except KeyboardInterrupt:
        return NoRun("interrupted", "The run was interrupted before there was an answer.")
    except (MethodError, SolverError) as error:
        return NoRun("refused", str(error))
    except GraphregError:  # the budget, not the method
        raise
    except Exception as error:  # noqa: BLE001 - whatever a user's method raises is what its row has to say
        return NoRun("failed", f"{type(error).__name__}: {error}")


def _scored(solution: Solution, look: Look) -> Solution:
    """The solution with the score of its answer alone, where no rounds were looked at."""
    score = look(seen_at(solution.form, solution.certificate.w, solution.rounds))
    return replace(solution, observed=_curve([(solution.rounds, score, *solution.ledger.sent())]))


def _curve(rows: Sequence[tuple[float, ...]]) -> Observed:
    """Rounds, scores, messages and bytes as an observer keeps them."""
    rounds, *columns = np.array(rows, dtype=float).T
    return Observed(rounds.astype(np.int64), dict(zip(SCORED, columns, strict=True)), np.zeros(0))


def of_algorithm(
    problem: Problem, algorithm: AbstractAlgorithm, allowed: Allowed, known: Certificate | None
) -> tuple[Solution | NoRun, Sent]:
    """The last point of an algorithm without a dual, certified by `Problem.certify`, and what it sent.

    It ends where its objective is within the gap of the bound of ``known``, if that is given: the optimum's.
    """
    form, trace, rows = problem.form.frozen(), Trace(), list[tuple[float, ...]]()
    course = _followed(form, CourseRunner(algorithm, problem, None, allowed.seed), allowed, known, (trace, rows))
    if not course.total:
        return NoRun("interrupted" if course.ended == "interrupted" else "failed", _sentence(course.why)), course.sent
    try:
        found = _certified(problem, course, allowed, known)
    except KeyboardInterrupt:
        course.ended = "interrupted"
        found = problem.certify(course.last, gap=ANY)  # its own gradients say what can be said at once
    status, message = _status(found, course, allowed)
    done: dict[str, Any] = {"rounds": course.total, "seconds": course.seconds, "trace": trace, "seed": allowed.seed}
    done["observed"] = _curve(rows) if rows else None
    return Solution(form, found, status, message, algorithm.name, **done), course.sent


def _followed(
    form: Form,
    follower: CourseRunner,
    allowed: Allowed,
    known: Certificate | None,
    kept: tuple[Trace, list[tuple[float, ...]]],
) -> Course:
    """The course until it is near enough, or to the end of what is allowed. Now and then the objective is kept in the
    trace, and round, score, messages and bytes as a row, where there is a score."""
    trace, rows = kept
    most = AbstractIteration.most_rounds if allowed.rounds is None else allowed.rounds
    deadline, seen = time.monotonic() + allowed.seconds, 0
    for k in islice(grid_of(Observer()), 1, None):  # the rounds after which methods are scored, too
        course = follower.until(min(k, most), deadline)
        if course.total == seen:  # it gave no more points
            break
        seen, began = course.total, time.perf_counter()
        given = given_point(course.last, "w", form).w
        w = feasible(form, given)
        with np.errstate(over="ignore", invalid="ignore"):
            primal = form.primal(w)
        bound = float("nan") if known is None else known.dual
        away = relative(primal - bound, primal, bound, common(form).floor)
        messages, size = course.sent or (0, 0)
        if allowed.look is not None:
            score = allowed.look(seen_at(form, given, course.total))
            rows.append((course.total, score, *(course.sent or (np.nan, np.nan))))
        trace.records.append(Record(course.total, course.seconds, away, False, primal, bytes=size, messages=messages))
        trace.check_seconds += time.perf_counter() - began
        if course.ended or k >= most or away <= allowed.gap:
            break
    return follower.course


def _certified(problem: Problem, course: Course, allowed: Allowed, known: Certificate | None) -> Judgement:
    """The certificate of the last point. Where the optimum is known, its flows and prices bound it as well as any."""
    if known is None:
        return problem.certify(course.last, gap=allowed.gap, seconds=allowed.seconds)
    point = known.dual_point
    return problem.certify(course.last, point.flows, point.prices, gap=ANY)


def _status(found: Judgement, course: Course, allowed: Allowed) -> tuple[str, str]:
    """The status, decided by the certificate, and the sentence that goes with it."""
    by = found.moved
    moved = f" Its last point was moved by at most {by:.2g} to where every constraint holds." if by else ""
    why = " " + _sentence(course.why) if course.why and course.ended != "time" else ""
    if found.contradiction or not found.valid:
        return "no_certificate", f"Its last point has no certificate: {found.contradiction or found.note}.{why}"
    reached = f"after {course.total} rounds its last point is certified to a relative gap of {found.relative_gap:.2g}"
    if course.ended in ("diverged", "raised"):
        return "failed", f"{why.strip()} Before that, {reached}.{moved}"
    if found.holds(allowed.gap):
        return "certified", f"The point is within the gap asked for: {reached}.{moved}"
    if course.ended == "interrupted":
        return "interrupted", f"Interrupted: {reached}.{moved}"
    ended = {"settled": "It moves no more", "ended": "It ended"}.get(course.ended, "The budget was used up")
    return "budget", f"{ended}: {reached}.{moved}{why}"


def _sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}." if words else "It gave no point."
