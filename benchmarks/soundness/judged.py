"""One problem, the answers of several methods, and what exact arithmetic says of them.

Nothing here has a tolerance. A lower bound is wrong where it exceeds P at any point that is known, an upper bound where
it is below P at the point that it was found at; both by `exact`.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphreg as gr
from benchmarks.wild import WildProblem, wild_problem
from graphreg.datasets import RandomProblem, random_problem
from graphreg.datasets.plain import PlainProblem
from graphreg.errors import GraphregError, InternalError
from graphreg.terms.losses import AbstractLoss

from .attained import attained
from .candidates import candidates, inwards
from .combined import FAMILIES, combined
from .exact import Bounds, ExactProblem, above, below, exact, excess
from .reals import approximately, rationals
from .refined import refined
from .stored import as_stored

MAKE: dict[str, Callable[[], Any]] = {
    "auto": gr.Auto,
    "exact": gr.Exact,
    "primal-dual": gr.PrimalDual,
    "admm": gr.ADMM,
    "interior-point": gr.InteriorPoint,
    "fed-admm": gr.FedADMM,
    "dynamic-programming": gr.DynamicProgramming,
    "subgradient": gr.SubgradientDescent,
    "parts-1": gr.PrimalDual,
    "parts-2": gr.PrimalDual,
    "parts-3": gr.ADMM,
    "parts-5": gr.PrimalDual,
    "updated": gr.Auto,
    "warm": gr.PrimalDual,
    "path": gr.Auto,
}
PARTS = {f"parts-{k}": k for k in (1, 2, 3, 5)}  # joint runs, each part with its own nodes
IN_ONE = ("auto", "exact", "dynamic-programming", "updated", "path")  # that have no rounds of their own
RARE = ("dynamic-programming",) * 3 + ("fed-admm",)  # that apply to few problems
DRAWN = "drawn"  # in place of methods: one of all that apply, by the seed
METHODS = ("auto", "exact", "primal-dual", "admm")
PATH = (4.0, 1.0, 2.0)  # strengths, of which 1 is judged
ROUNDS = 1000  # where none were drawn
SECONDS = 10.0  # that a method is given
REFUSALS = ("no_certificate", "budget", "unattained", "refused")  # honest where they are true
ROOM = 1e-6  # relative: of the gap that was asked for
QUADRATIC = ("squared", "huber", "mean")  # losses that are quadratic where residuals are small
SMALL, SMALLER = 1e-5, 1e-20  # of targets, and of their squares: losses that a fit may leave and still be called exact


@dataclass
class Answer:
    """The answer of one method, and what is wrong with it.

    Attributes
    ----------
    status : str
        The solution's, or "refused" (an error of graphreg, before any run), or "exception" (anything else, and what
        says that graphreg itself is wrong).
    wrong : list of str
        Bounds that exact arithmetic contradicts.
    misjudged : list of str
        Statuses that exact arithmetic contradicts, and gaps that are certified in too large a unit.
    """

    method: str
    status: str
    message: str = ""
    primal: float = np.nan
    dual: float = np.nan
    relative_gap: float = np.inf
    rounds: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    misjudged: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class Row:
    """One problem."""

    seed: int
    loss: str
    penalty: str
    structure: str
    traits: list[str]
    nodes: int
    edges: int
    d: int
    gap: float
    rounds: int | None
    attained: bool | None = None
    best: float = np.inf  # P at the best point that is known
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Found:
    """An answer with its certificate's point, in the order of the plain nodes; None where it has no bounds."""

    answer: Answer
    w: Any = None
    at: Bounds | None = None


def wild(seed: int, methods: tuple[str, ...] = METHODS, seconds: float = SECONDS) -> Row:
    """A wild problem, judged; every fourth one is of traits in combination."""
    return examine(combined(seed) if seed % 4 == 3 else wild_problem(seed), methods, seconds)


def standard(seed: int, methods: tuple[str, ...] = ("exact",), seconds: float = SECONDS, hard: bool = False) -> Row:
    """A problem of the published generator, judged in the same way but without the naive model, which takes longest."""
    gap = 1e-7 if methods == ("exact",) else 1e-6
    return examine(as_wild(random_problem(seed, hard), gap), methods, seconds, ask=False)


def as_wild(p: RandomProblem, gap: float = 1e-6) -> WildProblem:
    """A problem of the published generator, as the others are written."""
    return WildProblem(p.seed, p.loss, p.penalty, p.structure, p.traits, p.model, p.plain, gap, None, False)


def of_family(seed: int, name: str, methods: tuple[str, ...] = ("auto",), seconds: float = SECONDS) -> Row:
    """A problem of one of the ``FAMILIES``, judged by the points that exact arithmetic finds."""
    return examine(FAMILIES[name](seed), methods, seconds, ask=False)


def examine(drawn: WildProblem, methods: tuple[str, ...] = METHODS, seconds: float = SECONDS, ask: bool = True) -> Row:
    """The answers of some methods, each given some seconds, to a problem, judged; where ``ask``, with the help of a
    naive model. Exceptions are recorded, not raised."""
    began = time.process_time()
    plain = drawn.plain
    size = (len(plain.nodes), len(plain.edges), plain.d)
    traits = list(dict.fromkeys(drawn.traits))
    row = Row(drawn.seed, drawn.loss, drawn.penalty, drawn.structure, traits, *size, drawn.gap, drawn.rounds)
    try:
        _examine(drawn, methods, seconds, ask, row)
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.process_time() - began
    return row


def _examine(drawn: WildProblem, methods: tuple[str, ...], seconds: float, ask: bool, row: Row) -> None:
    try:
        form = drawn.problem.form
    except GraphregError as error:
        row.answers = [Answer(method, "refused", str(error)) for method in methods]
        return
    plain = as_stored(drawn.plain, form)
    problem = exact(plain)
    points = _points(drawn, plain, problem, ask)
    row.attained = True if drawn.optimum is not None else attained(problem)
    found = [_solved(drawn, problem, method, seconds) for method in chosen(drawn, methods)]
    for each in found:
        w = each.w if each.at is None or each.at.feasible else inwards(plain, problem, each.w)
        if w is not None:
            points[f"the answer of {each.answer.method}"] = w
    known = {name: problem.at(w) for name, w in points.items()}
    known |= _refined(plain, problem, points, known)
    row.best = min(approximately(at.upper) for at in known.values())
    for each in found:
        judge_bounds(each.answer, each.at, known)
        _judge_status(each.answer, drawn, row, known)
        row.answers.append(each.answer)


def _points(drawn: WildProblem, plain: PlainProblem, problem: ExactProblem, ask: bool) -> dict[str, Any]:
    """Points to judge by: the optimum itself, where it is known."""
    if drawn.optimum is not None:
        return {"the optimum": rationals(drawn.optimum), "zero": rationals(np.zeros(drawn.optimum.shape))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow, in floats that are suggestions
        return candidates(plain, problem, ask)


def known_points(
    drawn: WildProblem, plain: PlainProblem, problem: ExactProblem, also: dict[str, Any]
) -> dict[str, Bounds]:
    """P at all points that are found without being asked for by a method, and at others that are given."""
    points = _points(drawn, plain, problem, False)
    for name, w in also.items():
        if (inside := inwards(plain, problem, w)) is not None:
            points[name] = inside
    known = {name: problem.at(w) for name, w in points.items()}
    return known | _refined(plain, problem, points, known)


def chosen(drawn: WildProblem, methods: tuple[str, ...]) -> list[str]:
    """The methods; of all of them one that applies, by the seed, where it is to be `DRAWN`."""
    if methods != (DRAWN,):
        return list(methods)
    table, one = drawn.problem.methods(), len({part.family for part in drawn.plain.samples}) == 1
    order = np.random.default_rng([drawn.seed, 17]).permutation([*MAKE, *RARE]).tolist()
    fitting = (name for name in order if one or name != "updated")
    return [next(name for name in fitting if table.loc[MAKE[name].__name__, "applies"])]


def _refined(
    plain: PlainProblem, problem: ExactProblem, points: dict[str, Any], known: dict[str, Bounds]
) -> dict[str, Bounds]:
    """P at points near the best one; nothing where the optimum itself is known, in rational numbers."""
    if known.keys() & {"the rational optimum", "the optimum"}:
        return {}
    best = min(points, key=lambda name: approximately(known[name].upper))
    w = np.array([[approximately(v) for v in row] for row in rationals(points[best])])
    found = [inwards(plain, problem, near) for near in refined(problem, w)]
    return {f"the point that refines {best} ({k})": problem.at(w) for k, w in enumerate(found) if w is not None}


def _solved(drawn: WildProblem, problem: ExactProblem, method: str, seconds: float) -> Found:
    options: dict[str, Any] = {"seconds": seconds}
    if method in PARTS:
        options["engine"] = gr.Parts(min(PARTS[method], drawn.problem.form.space.n_observed))
    if method not in IN_ONE:
        options["rounds"] = drawn.rounds or ROUNDS
        if drawn.from_zero:
            options["start"] = np.zeros((drawn.problem.form.space.n_observed, problem.d))
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            solution = _asked(drawn, method, seconds, options)
            answer, w = (Answer(method, "budget"), None) if solution is None else _read(method, solution, problem)
        except Exception as error:  # noqa: BLE001  (whatever it is, it belongs into the table)
            answer, w = raised(method, error), None
    answer.seconds = time.perf_counter() - began
    answer.warnings = [f"{w.category.__name__}: {w.message}"[:300] for w in caught]
    return Found(answer, w, None if w is None else problem.at(w))


def _asked(drawn: WildProblem, method: str, seconds: float, options: dict[str, Any]) -> Any:
    """What a method answers; None where a path was cut short before."""
    common = {"gap": drawn.gap, "progress": False, "on_failure": "return"}
    asked = drawn.problem
    if method == "path":
        return gr.path(along(drawn), PATH, seconds=seconds, **common).solutions.get(1.0)
    if method == "updated":
        asked, options["start"] = updated(drawn, seconds)
    if method == "warm":
        options["start"] = asked.solve(gap=1e-2, seconds=seconds, progress=False, on_failure="return")
    return asked.solve(MAKE[method](), **common, **options)


def along(drawn: WildProblem) -> gr.Problem:
    """The problem with a Parameter before its losses, which are its own at 1."""
    t = gr.Parameter(1.0, name="t")
    return gr.Problem(sum((s * t if isinstance(term, AbstractLoss) else s) * term for s, term in drawn.model.terms))


def updated(drawn: WildProblem, seconds: float) -> tuple[gr.Problem, Any]:
    """The problem as an update of one with other targets, and the answer to that one: of one loss, samples by node."""
    y = np.concatenate([part.y for part in drawn.plain.samples])
    other = drawn.problem.update(-y if set(y.ravel()) <= {-1.0, 1.0} else y[::-1].copy())
    before = other.solve(gap=1e-3, seconds=seconds, progress=False, on_failure="return")
    return other.update(y), before


def raised(method: str, error: Exception) -> Answer:
    """An error of graphreg is a refusal, but where it says that graphreg is wrong; anything else is an exception."""
    if isinstance(error, GraphregError) and not isinstance(error, InternalError):
        return Answer(method, "refused", str(error))
    return Answer(method, "exception", "".join(traceback.format_exception(error, limit=-4)))


def _read(method: str, solution: Any, problem: ExactProblem) -> tuple[Answer, Any]:
    c = solution.certificate
    answer = Answer(method, solution.status, solution.message, rounds=solution.rounds)
    at = dict(zip(solution.labels, solution.coef, strict=True)) | solution.latent
    w = np.array([at[label] for label in problem.nodes], dtype=float)
    if c.valid:
        answer.primal, answer.dual, answer.relative_gap = c.primal, c.dual, c.relative_gap
    return answer, w if np.isfinite(w).all() else None


# ---- the judge -------------------------------------------------------------------------------------------------------
def judge_bounds(answer: Answer, at: Bounds | None, known: dict[str, Bounds]) -> None:
    """Note what exact arithmetic contradicts: ``at`` is P at the answer's point, ``known`` P at all points."""
    if np.isnan(answer.primal) and np.isnan(answer.dual):
        return  # it claims nothing
    if answer.dual > answer.primal:
        answer.wrong.append(f"crossed: the lower bound {answer.dual!r} is above the upper one, {answer.primal!r}")
    if at is None:
        answer.wrong.append("upper: bounds are given and the point is not finite")
    elif not at.feasible and answer.primal < np.inf:
        answer.wrong.append(f"upper: a constraint is violated, and the upper bound is {answer.primal!r}")
    elif not above(answer.primal, at):
        answer.wrong.append(f"upper: {answer.primal!r} is below P at its point, {approximately(at.lower)!r}")
    lies = {name: excess(answer.dual, p) for name, p in known.items() if not below(answer.dual, p)}
    if lies:
        name = max(lies, key=lambda name: lies[name])
        there = approximately(known[name].upper)
        answer.wrong.append(f"lower: {answer.dual!r} is above P at {name}, {there!r}, by {lies[name]:.3g}")


def _judge_status(answer: Answer, drawn: WildProblem, row: Row, known: dict[str, Bounds]) -> None:
    if answer.status == "unattained" and row.attained is True:
        answer.misjudged.append("status: called unattained, and exact arithmetic proves that it is attained")
    if answer.status == "certified" and row.attained is False:
        answer.misjudged.append("status: called certified, and exact arithmetic proves that no minimum is attained")
    if answer.status == "infeasible":
        answer.misjudged.append("status: called infeasible, and there are no constraints that exclude each other here")
    if answer.status != "certified":
        return
    if not answer.relative_gap <= drawn.gap:
        answer.misjudged.append(f"status: called certified at a relative gap of {answer.relative_gap:.3g}")
    far = answer.primal - row.best
    unit = yardstick(answer, known, drawn.plain)
    if far > drawn.gap * (1 + ROOM) * unit and not answer.wrong:
        answer.misjudged.append(f"unit: certified to {drawn.gap:.1e}, and P is {far:.3g} above a point where it is")


def yardstick(answer: Answer, known: dict[str, Bounds], plain: PlainProblem) -> float:
    """max(|P|, |Q|, 1e-3 P at a good common model), with a floor at what rounding leaves of an exact fit."""
    common = [approximately(p.upper) for name, p in known.items() if name in ("zero", "the common fit")]
    return max(abs(answer.primal), abs(answer.dual), 1e-3 * abs(min(common, default=0.0)), _floor(plain))


def _floor(plain: PlainProblem) -> float:
    total = 0.0
    for part in plain.samples:
        size = np.abs(part.y) if part.y.ndim == 1 else np.linalg.norm(part.y, axis=1)
        size = size + np.abs(part.offset)
        total += float(part.scale @ (SMALLER * size**2 if part.family in QUADRATIC else SMALL * (1.0 + size)))
    return total
