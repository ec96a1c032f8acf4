"""The comparison of several methods and algorithms on one problem."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..auditing import AbstractAlgorithm, Course, CourseRunner, algorithm_of
from ..base.clock import progress_bar
from ..base.display import Html, Shown, Suggesting, sentence, title
from ..base.escaping import page, printed, visible
from ..base.gate import allowing
from ..base.shortcuts import shortcut
from ..certificate import Certificate, common, feasible, relative
from ..errors import GraphregError, MethodError, SolverError
from ..form import Form
from ..judging import Judgement, given_point
from ..methods import METHOD, AbstractIteration, AbstractMethod, Auto, Exact, listed
from ..problem import Problem, problem_of
from ..running import Record, Solution, Trace

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
    bound : float
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

    Examples
    --------
    >>> comparison = gr.compare(problem, [gr.PrimalDual(), gr.ADMM()], seconds=5)
    >>> comparison.table()["status"].tolist()
    ['certified', 'certified']
    """

    entries: dict[str, Solution | NoRun]
    reference: str
    bound: float
    seed: int = 0
    not_run: tuple[str, ...] = field(default=())
    sent: dict[str, Sent] = field(default_factory=dict)
    left_out: tuple[str, ...] = field(default=())

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
        nobody counts them. ``own_gap``, where there are baselines, is what these certified of the problem that they
        solve instead.

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

        table = LabelledTable.from_dict(
            {name: self._row(name, each) for name, each in self.entries.items()}, orient="index"
        )
        if any(sent is None for sent in self.sent.values()):
            table = table.astype(dict.fromkeys(SENT, "Int64"))
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
        return shortcut("Comparison.plot")(self, x, ax)

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
        return shortcut("Comparison.figure")(self)

    def __repr__(self) -> str:
        met = sum(each.status == "certified" for each in self.entries.values())
        return f"<Comparison of {len(self.entries)} methods, {met} certified; bound {self.bound:.8g}>"

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html

        yield title(f"Comparison of {len(self.entries)} methods")
        yield as_html(self.table(), formatters=FORMATS)
        yield from map(sentence, self._remarks())

    def _remarks(self) -> list[str]:
        lines = [
            f"{visible(name)}: {e.status}. {e.message}" for name, e in self.entries.items() if e.status != "certified"
        ]
        uncounted = [visible(name) for name in self.solutions if self.sent.get(name, ()) is None]
        if uncounted:
            lines.append(f"nobody counts the messages of {', '.join(uncounted)}")
        if self.not_run:
            lines.append(f"interrupted before these began: {', '.join(map(visible, self.not_run))}")
        if self.left_out:
            lines.append(
                f"left out, as it is seldom certified and uses up its seconds: {', '.join(self.left_out)}; name it "
                "among the methods to run it"
            )
        return [*lines, f"reference: {self.reference}"]

    def __str__(self) -> str:
        table = self.table()
        table[[*SENT]] = table[[*SENT]].astype(object).where(table[[*SENT]].notna(), "-")
        return page("\n".join([printed(table, formatters=FORMATS, na_rep="-"), *self._remarks()]))


LEAST = 1e-9  # the relative gap to which the optimum is known well enough, whatever is asked of the methods
SENT = ("messages", "bytes", "solving_messages", "solving_bytes")
COLUMNS = (*("status", "objective", "above", "relative_gap", "rounds"), *SENT, "seconds")


@checks.named
def compare(
    problem: Problem,
    methods: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    gap: float = 1e-6,
    rounds: int | None = None,
    seconds: float = 60.0,
    memory: float | None = None,
    seed: int | None = None,
    progress: bool | None = None,
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
    checks.nonnegative(gap, "gap")
    (checks.count | None)(rounds, "rounds")
    checks.seconds(seconds, "seconds")
    apply = [m for m in listed() if not (isinstance(m, Auto) or m.lacks(problem.form))]  # which is one of the others
    left_out = tuple(m.label for m in apply if m.seldom_certified) if methods is None else ()
    chosen = _named([m for m in apply if not m.seldom_certified] if methods is None else methods)
    _check_some_apply(problem, chosen)
    allowed = Allowed(gap, rounds, seconds, secrets.randbits(32) if seed is None else (checks.seed(seed, "seed")))
    reached = max(gap, LEAST)
    exact = next((name for name, method in chosen.items() if isinstance(method, Exact)), None)
    order = dict.fromkeys([exact, *chosen])  # the reference first, which is no row unless it was asked for
    found: dict[str | None, Solution | NoRun] = {}
    sent: dict[str, Sent] = {}
    bar = progress_bar(progress, total=len(order), desc="comparing", unit=" methods")
    with allowing(memory), bar as show:
        for k, name in enumerate(order):
            show(int(k > 0), name or "reference")
            method = Exact() if name is None else chosen[name]
            if isinstance(method, AbstractMethod):
                found[name] = of_method(problem, method, allowed if name else replace(allowed, gap=reached))
            elif name is not None:
                found[name], sent[name] = of_algorithm(problem, method, allowed, _optimum(found[exact], reached))
            if found[name].status == "interrupted":  # whoever presses Ctrl-C means all of it
                break
    entries = {name: found[name] for name in chosen if name in found}
    reference, bound = _reference(exact, found, reached)
    not_run = tuple(name for name in chosen if name not in found)
    return Comparison(entries, reference, bound, allowed.seed, not_run, sent, left_out)


def _check_some_apply(problem: Problem, chosen: Mapping[str, AbstractMethod | AbstractAlgorithm]) -> None:
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
        method = _method(each)
        if name is not None and not (isinstance(name, str) and name):
            raise MethodError(f"the names of methods are text, got {name!r}")
        own = method.label if isinstance(method, AbstractMethod) else method.name
        out[distinct(own if name is None else name, out)] = method
    return out


def _method(given: Any) -> AbstractMethod | AbstractAlgorithm:
    """A method as it is; else the algorithm that it is, if it is one."""
    if isinstance(given, AbstractMethod):
        return given
    function = callable(given) and not isinstance(given, type)
    if function or (isinstance(given, Iterable) and not isinstance(given, (str, bytes, type))):
        return algorithm_of(given)
    return METHOD(given, "each of methods", MethodError)


def distinct(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number behind it where it is taken."""
    number, out = 1, name
    while out in taken:
        number += 1
        out = f"{name} ({number})"
    return out


def _optimum(exact: Solution | NoRun, gap: float) -> Certificate | None:
    """The certificate of the optimum, where the exact route got there."""
    return exact.certificate if isinstance(exact, Solution) and exact.certificate.holds(gap) else None


def _reference(exact: str | None, found: Mapping[str | None, Solution | NoRun], gap: float) -> tuple[str, float]:
    """The yardstick of all, in words and as a lower bound of the optimum."""
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


FIRST, GROWTH = 10, 1.2  # the first round whose objective is looked at, and the ratio of one such round to the next
ANY = 1e300  # a gap that every bound has
Sent = tuple[int, int] | None  # messages and bytes; None where nobody counts them


@dataclass(frozen=True)
class Allowed:
    """The budget of each."""

    gap: float
    rounds: int | None
    seconds: float
    seed: int


@dataclass(frozen=True)
class NoRun(Suggesting):
    """The reason for which there is no solution: ``status`` is refused (the method does not apply), failed or
    interrupted."""

    status: str
    message: str


def of_method(problem: Problem, method: AbstractMethod, allowed: Allowed) -> Solution | NoRun:
    """The solution of one method, or why there is none."""
    missing = method.lacks(problem.form)
    if missing:
        return NoRun("refused", "; ".join(missing))
    rounds = None if "rounds" in method.refuses() else allowed.rounds
    budget: dict[str, Any] = {"gap": allowed.gap, "rounds": rounds, "seconds": allowed.seconds, "seed": allowed.seed}
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


def of_algorithm(
    problem: Problem, algorithm: AbstractAlgorithm, allowed: Allowed, known: Certificate | None
) -> tuple[Solution | NoRun, Sent]:
    """The last point of an algorithm without a dual, certified by `Problem.certify`, and what it sent.

    It ends where its objective is within the gap of the bound of ``known``, if that is given: the optimum's.
    """
    form, trace = problem.form.frozen(), Trace()
    course = _followed(form, CourseRunner(algorithm, problem, None, allowed.seed), allowed, known, trace)
    if not course.total:
        return NoRun("interrupted" if course.ended == "interrupted" else "failed", _sentence(course.why)), course.sent
    try:
        found = _certified(problem, course, allowed, known)
    except KeyboardInterrupt:
        course.ended = "interrupted"
        found = problem.certify(course.last, gap=ANY)  # its own gradients say what can be said at once
    status, message = _status(found, course, allowed)
    done: dict[str, Any] = {"rounds": course.total, "seconds": course.seconds, "trace": trace, "seed": allowed.seed}
    return Solution(form, found, status, message, algorithm.name, **done), course.sent


def _followed(form: Form, follower: CourseRunner, allowed: Allowed, known: Certificate | None, trace: Trace) -> Course:
    """The course until it is near enough, or to the end of what is allowed; the objective now and then in the trace."""
    most = AbstractIteration.most_rounds if allowed.rounds is None else allowed.rounds
    deadline, k = time.monotonic() + allowed.seconds, 0
    while True:
        k = min(max(k + FIRST, round(GROWTH * k)), most)
        course = follower.until(k, deadline)
        if not course.total:
            return course
        began = time.perf_counter()
        w = feasible(form, given_point(course.last, "w", form).w)
        with np.errstate(over="ignore", invalid="ignore"):
            primal = form.primal(w)
        bound = float("nan") if known is None else known.dual
        away = relative(primal - bound, primal, bound, common(form).floor)
        messages, size = course.sent or (0, 0)
        trace.records.append(Record(course.total, course.seconds, away, False, primal, bytes=size, messages=messages))
        trace.check_seconds += time.perf_counter() - began
        if course.ended or k == most or away <= allowed.gap:
            return course


def _certified(problem: Problem, course: Course, allowed: Allowed, known: Certificate | None) -> Judgement:
    """The certificate of the last point. Where the optimum is known, its flows and prices bound it as well as any."""
    if known is None:
        return problem.certify(course.last, gap=allowed.gap, seconds=allowed.seconds)
    point = known.dual_point
    return problem.certify(course.last, point.flows, point.prices, gap=ANY)


def _status(found: Judgement, course: Course, allowed: Allowed) -> tuple[str, str]:
    """The status, decided by the certificate, and the sentence that goes with it."""
    moved = f" Its last point was moved by at most {found.moved:.2g} to where every constraint holds." * bool(
        found.moved
    )
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
