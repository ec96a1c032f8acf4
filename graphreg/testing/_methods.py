"""The laws of iterative methods, as one list: `LAWS`. Each is a function of a method and a `Trial`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..certificate import common, relative
from ..checks import instance
from ..errors import MethodError
from ..form import Form
from ..lowering.conic import Compiler
from ..methods._base import AbstractIteration
from ..methods.exact import Exact
from ..methods.task import Budget
from ..solution import Solution
from ..solving import solve
from ._report import Failure, Report, name_of, try_laws
from ._rounds import after, bits, disturbed, moved, reached, site_of, strays
from ._small import Case, small_problems

AT = (0, 1, 9, 12)  # rounds after which states are looked at; methods that adapt do so at round 10
EXACT = 1e-8  # the relative gap of the optima that answers are held to
ITERATION = instance(AbstractIteration, "a method that iterates, such as gr.PrimalDual()")


@dataclass(frozen=True)
class Trial:
    """The problems on which a method is tried, and what is asked of it there."""

    cases: tuple[Case, ...]
    seed: int
    accuracy: float | None
    rounds: int

    @cached_property
    def optima(self) -> dict[str, Solution]:
        budget = Budget(EXACT)
        return {case.name: solve(case.form, Exact(), budget, Compiler(case.form)) for case in self.cases}


def _failure(sentence: str, where: str = "", by: float = np.inf) -> Failure:
    return Failure("", sentence, where, by)


def _fitting(method: AbstractIteration, trial: Trial) -> list[Case]:
    return [case for case in trial.cases if not method.missing(case.form)]


def missing_gives_sentences(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """missing(form) is a tuple of sentences, the same each time; the method applies to one of the problems at least."""
    for case in trial.cases:
        found: Any = method.missing(case.form)
        if not isinstance(found, tuple) or not all(isinstance(each, str) and " " in each for each in found):
            return [_failure(f"missing must be a tuple of sentences, got {found!r}", case.name)]
        if method.missing(case.form) != found:
            return [_failure("missing says something else when it is asked again", case.name)]
    if _fitting(method, trial):
        return []
    lacks = "; ".join(f"{case.name}: {', '.join(method.missing(case.form))}" for case in trial.cases)
    return [_failure(f"it applies to none of the problems, so nothing else is tried; give some. Missing: {lacks}")]


def state_is_a_record(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """The state is a frozen dataclass with the site, and with ``round``, which counts the steps."""
    for case in _fitting(method, trial):
        site, _ = site_of(case.form, trial.seed)
        state = method.init(site, None)
        if not _is_frozen(state):
            return [_failure(f"the state must be a frozen dataclass, got {type(state).__name__}", case.name)]
        names = {f.name for f in fields(state)}
        if not {"site", "round"} <= names or state.site is not site:
            return [_failure(f"the state must have the fields site and round, and has {sorted(names)}", case.name)]
        for k in range(3):
            if state.round != k:
                return [_failure(f"round is {state.round} after {k} steps", case.name)]
            state = method.step(state)
    return []


def _is_frozen(state: Any) -> bool:
    kind: Any = type(state)
    return is_dataclass(state) and bool(kind.__dataclass_params__.frozen)


def step_is_repeatable(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """A step from the same state gives the same bits, and changes nothing in that state; neither does point."""
    for case in _fitting(method, trial):
        for k in AT:
            site, _ = site_of(case.form, trial.seed)
            state = after(method, site, k)
            before = bits(state)
            point = bits(method.point(state))
            one, two = bits(method.step(state)), bits(method.step(state))
            if bits(state) != before:
                return [_failure(f"a step changes its argument, at round {k}", case.name)]
            if one != two:
                return [_failure(f"the same step twice gives different states, at round {k}", case.name)]
            if bits(method.point(state)) != point:
                return [_failure(f"point gives something else when it is asked again, at round {k}", case.name)]
    return []


def resume_equals_run(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """The state can be kept in a checkpoint; from it, on a fresh site and by a fresh copy of the method, the run goes
    on with the same bits: nothing is kept elsewhere."""
    fresh = copy.deepcopy(method)
    for case in _fitting(method, trial):
        for k in AT:
            site, _ = site_of(case.form, trial.seed)
            runner = copy.deepcopy(fresh)
            state = after(runner, site, k)
            other, _ = site_of(case.form, trial.seed)
            again, resumed = copy.deepcopy(fresh), moved(state, other)
            for _ in range(3):
                state, resumed = runner.step(state), again.step(resumed)
            if bits(state) != bits(resumed):
                return [_failure(f"a run that goes on from round {k} has other bits than one that was not", case.name)]
    return []


def same_seed_same_run(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """Two runs of one seed have the same bits."""
    for case in _fitting(method, trial):
        one, two = (bits(after(method, site_of(case.form, trial.seed)[0], AT[-1])) for _ in range(2))
        if one != two:
            return [_failure("two runs of the same seed differ; draw from site.streams", case.name)]
    return []


def ledger_is_what_was_sent(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """The ledger holds the messages and bytes that the engine was asked for, and no others."""
    for case in _fitting(method, trial):
        site, engine = site_of(case.form, trial.seed)
        after(method, site, AT[-1])
        for purpose, said in engine.ledger.messages.items():
            sent, size = engine.messages[purpose], engine.bytes[purpose]
            if (said, engine.ledger.bytes[purpose]) != (sent, size):
                booked = f"{said} messages of {engine.ledger.bytes[purpose]} bytes are booked"
                return [_failure(f"{booked} for {purpose}, {sent} of {size} were sent", case.name)]
    return []


def a_step_reaches_neighbours_only(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """Other numbers, or other data, at one node: after a step nothing differs but at that node and where its messages
    went. Steps that sum over all nodes are left out: sums reach everywhere; and methods that are not decentralised."""
    if method.central:
        return []
    rng = np.random.default_rng(trial.seed)
    for case in _fitting(method, trial):
        n = case.form.n
        for k in range(6):
            site, _ = site_of(case.form, trial.seed)
            state, node = after(method, site, k), (3 * k) % n
            plain, summed, _ = _stepped(method, state, case.form, trial.seed, node)
            changes = {
                "other numbers": (disturbed(state, n, node, rng), case.form),
                "other data": (state, case.elsewhere(node)),
            }
            for what, (other, form) in changes.items():
                new, sums, known = _stepped(method, other, form, trial.seed, node)
                found = [] if summed or sums else strays(case.form, plain, new, known)
                if found:
                    at = f"{case.name}, round {k}, node {node}, which reaches {sorted(known)}"
                    return [_failure(f"{what} at one node change {'; '.join(found)} within a step", at)]
    return []


def _stepped(method: AbstractIteration, state: Any, form: Form, seed: int, node: int) -> tuple[Any, bool, set[int]]:
    """The state after a step on a fresh site, whether there were sums, and the nodes that may know of one node."""
    site, engine = site_of(form, seed)
    new = method.step(moved(state, site))
    return new, engine.reductions > 0, reached(engine, node)


def point_has_the_right_shapes(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """point gives finite parameters (n, d), and flows and prices in the shapes of the form, or None; gathered gives
    numbers and arrays of n rows by name."""
    for case in _fitting(method, trial):
        site, _ = site_of(case.form, trial.seed)
        state = after(method, site, 2)
        w, flows, prices = method.point(state)
        nothing = case.form.nothing()
        if not isinstance(w, np.ndarray) or w.shape != case.form.shape or not np.isfinite(w).all():
            return [_failure(f"the parameters must be finite, of shape {case.form.shape}", case.name)]
        for what, found, like in (("flows", flows, nothing.flows), ("prices", prices, nothing.prices)):
            if found is not None and [np.shape(each) for each in found] != [each.shape for each in like]:
                return [_failure(f"the {what} must be None or of shapes {[each.shape for each in like]}", case.name)]
        for name, value in method.gathered(state).items():
            if not isinstance(name, str) or not _gathered(value, case.form.n):
                return [_failure(f"gathered {name!r} must be a number or an array of {case.form.n} rows", case.name)]
    return []


def _gathered(value: Any, n: int) -> bool:
    return np.isscalar(value) or (isinstance(value, np.ndarray) and (value.ndim == 0 or len(value) == n))


def optimum_is_reached(method: AbstractIteration, trial: Trial) -> list[Failure]:
    """Within the rounds the objective comes as near to the certified optimum as was asked; it is never below it."""
    found: list[Failure] = []
    for case in _fitting(method, trial):
        optimum = trial.optima[case.name].certificate
        budget = Budget(trial.accuracy or 0.0, rounds=trial.rounds, seed=trial.seed)
        run = solve(case.form, method, budget, Compiler(case.form)).certificate
        above = relative(run.primal - optimum.dual, run.primal, optimum.dual, common(case.form).floor)
        if not above >= -EXACT or (run.valid and run.dual > optimum.primal):
            found.append(_failure("its bounds contradict those of the exact optimum", case.name, -above))
        elif trial.accuracy is not None and not above <= trial.accuracy + EXACT:
            sentence = f"after {trial.rounds} rounds it is further than {trial.accuracy:g} above the optimum"
            found.append(_failure(sentence, case.name, float(above)))
    return found


LAWS = (
    missing_gives_sentences,
    state_is_a_record,
    step_is_repeatable,
    resume_equals_run,
    same_seed_same_run,
    ledger_is_what_was_sent,
    a_step_reaches_neighbours_only,
    point_has_the_right_shapes,
    optimum_is_reached,
)


def check_method(
    method: AbstractIteration,
    problems: Sequence[Any] | None = None,
    *,
    accuracy: float | None = 1e-3,
    rounds: int = 2000,
    seed: int = 0,
) -> Report:
    """Whether an iterative method obeys every law of methods, on small problems of each kind that it applies to.

    Parameters
    ----------
    method : AbstractIteration
    problems : sequence of Problem, optional
        Instead of graphreg's own: chains, rings, trees and consensus, with smooth losses and with kinks.
    accuracy : float, optional
        How near to the optimum, relatively, the objective must come. None for a method that leads elsewhere (one that
        keeps a bias, a baseline that solves another problem): then only that its bounds hold.
    rounds : int
        In so many rounds.
    seed : int
        Of the small problems, and of the method's random numbers.

    Returns
    -------
    Report
        True where every law holds; printed, one line per law, and for each failure on which problem it happened.

    Examples
    --------
    >>> gr.testing.check_method(gr.PrimalDual(), rounds=20, accuracy=None).ok
    True
    """
    ITERATION(method, "the method of check_method", MethodError)
    cases = small_problems(seed) if problems is None else tuple(_case(k, each) for k, each in enumerate(problems))
    trial = Trial(cases, seed, accuracy, rounds)
    failures = try_laws(LAWS, method, trial)
    return Report(method.label, tuple(map(name_of, LAWS)), tuple(failures))


def _case(k: int, problem: Any) -> Case:
    form = getattr(problem, "form", None)
    if not isinstance(form, Form):
        raise MethodError(f"problems must be Problems, got {problem!r}")
    return Case(f"problem {k}", form.frozen())
