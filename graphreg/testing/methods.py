"""The laws of iterative methods, as one list: `LAWS`. Each is a function of a method and a `MethodProbe`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from typing import Any

import numpy as np

from ..base.clock import stages
from ..certificate import common, relative
from ..checks import count, instance
from ..compiling import Compiler
from ..errors import MethodError
from ..form import Form
from ..methods import AbstractIteration
from ..running import Budget, solve
from ..terms import Array
from .report import Failures, LawError, Report, check_numbers, demand, laws_of, try_laws
from .rounds import EXACT, Case, after, bits, disturbed, moved, reached, small_problems, strays, view_of

AT = (0, 1, 9, 12)  # rounds after which states are looked at; methods that adapt do so at round 10
ITERATION = instance(AbstractIteration, "a method that iterates, such as gr.PrimalDual()")


@dataclass(frozen=True)
class MethodProbe:
    """The problems on which a method is tried, and what is asked of it there."""

    cases: tuple[Case, ...]
    seed: int
    accuracy: float | None
    rounds: int


CaseLaw = Callable[[AbstractIteration, Case, MethodProbe], None]
Law = Callable[[AbstractIteration, MethodProbe], Failures]


def of_each_case(law: CaseLaw) -> Law:
    """A law of one problem as a law of all that the method applies to."""

    @wraps(law, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def of_all(method: AbstractIteration, probe: MethodProbe) -> Failures:
        for case in _fitting(method, probe):
            try:
                law(method, case, probe)
            except LawError as error:
                yield replace(error.failure, where=error.failure.where or case.name)

    return of_all


def _fitting(method: AbstractIteration, probe: MethodProbe) -> list[Case]:
    return [case for case in probe.cases if not method.missing(case.form)]


def missing_gives_sentences(method: AbstractIteration, probe: MethodProbe) -> Failures:
    """missing(form) is a tuple of sentences, the same each time; the method applies to one of the problems at least."""
    for case in probe.cases:
        found: Any = method.missing(case.form)
        right = isinstance(found, tuple) and all(isinstance(each, str) and " " in each for each in found)
        demand(right, f"missing must be a tuple of sentences, got {found!r}", case.name)
        demand(method.missing(case.form) == found, "missing says something else when it is asked again", case.name)
    lacks = "; ".join(f"{case.name}: {', '.join(method.missing(case.form))}" for case in probe.cases)
    nothing = f"it applies to none of the problems, so nothing else is tried; give some. Missing: {lacks}"
    demand(_fitting(method, probe), nothing)
    return []


@of_each_case
def state_is_a_record(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """The state is a frozen dataclass with the view, and with ``round``, which counts the steps."""
    view, _ = view_of(case.form, probe.seed)
    state = method.init(view, None)
    kind: Any = type(state)
    frozen = hasattr(kind, "__dataclass_params__") and kind.__dataclass_params__.frozen
    demand(frozen, f"the state must be a frozen dataclass, got {kind.__name__}")
    names = {f.name for f in fields(state)}
    right = {"view", "round"} <= names and state.view is view
    demand(right, f"the state must have the fields view and round, and has {sorted(names)}")
    for k in range(3):
        demand(state.round == k, f"round is {state.round} after {k} steps")
        state = method.step(state)


@of_each_case
def step_is_repeatable(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """A step from the same state gives the same bits, and changes nothing in that state; neither does point."""
    for k in AT:
        view, _ = view_of(case.form, probe.seed)
        state = after(method, view, k)
        before = bits(state)
        point = bits(method.point(state))
        one, two = bits(method.step(state)), bits(method.step(state))
        demand(bits(state) == before, f"a step changes its argument, at round {k}")
        demand(one == two, f"the same step twice gives different states, at round {k}")
        demand(bits(method.point(state)) == point, f"point gives something else when it is asked again, at round {k}")


@of_each_case
def resume_equals_run(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """The state can be kept in a checkpoint; from it, on a fresh view and by a fresh copy of the method, the run goes
    on with the same bits: nothing is kept elsewhere."""
    fresh = copy.deepcopy(method)
    for k in AT:
        view, _ = view_of(case.form, probe.seed)
        runner = copy.deepcopy(fresh)
        state = after(runner, view, k)
        other, _ = view_of(case.form, probe.seed)
        again, resumed = copy.deepcopy(fresh), moved(state, other)
        for _ in range(3):
            state, resumed = runner.step(state), again.step(resumed)
        right = bits(state) == bits(resumed)
        demand(right, f"a run that goes on from round {k} has other bits than one that was not")


@of_each_case
def same_seed_same_run(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """Two runs of one seed have the same bits."""
    one, two = (bits(after(method, view_of(case.form, probe.seed)[0], AT[-1])) for _ in range(2))
    demand(one == two, "two runs of the same seed differ; draw from view.streams")


@of_each_case
def ledger_is_what_was_sent(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """The ledger holds the messages and bytes that the engine was asked for, and no others."""
    view, engine = view_of(case.form, probe.seed)
    after(method, view, AT[-1])
    for purpose, said in engine.ledger.messages.items():
        sent, size = engine.messages[purpose], engine.bytes[purpose]
        recorded = f"{said} messages of {engine.ledger.bytes[purpose]} bytes are recorded"
        right = (said, engine.ledger.bytes[purpose]) == (sent, size)
        demand(right, f"{recorded} for {purpose}, {sent} of {size} were sent")


@of_each_case
def a_step_reaches_neighbours_only(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """Other numbers, or other data, at one node: after a step nothing differs but at that node and where its messages
    went. Steps that sum over all nodes are left out: sums reach everywhere; and methods that are not decentralised."""
    rng, n = np.random.default_rng(probe.seed), case.form.n
    for k in range(0 if method.central else 6):
        view, _ = view_of(case.form, probe.seed)
        state, node = after(method, view, k), (3 * k) % n
        step = partial(_stepped, method, state, probe.seed, node)
        plain, summed, _ = step(case.form)
        changes = {
            "other numbers": step(case.form, partial(disturbed, n=n, node=node, rng=rng)),
            "other data": step(case.elsewhere(node)),
        }
        for what, (new, sums, known) in changes.items():
            found = [] if summed or sums else strays(case.form, plain, new, known)
            at = f"{case.name}, round {k}, node {node}, which reaches {sorted(known)}"
            demand(not found, f"{what} at one node change {'; '.join(found)} within a step", at)


def _stepped(
    method: AbstractIteration, state: Any, seed: int, node: int, form: Form, *change: Callable[[Array], Array]
) -> tuple[Any, bool, set[int]]:
    """The state after a step on a fresh view, whether there were sums, and the nodes that may know of one node."""
    view, engine = view_of(form, seed)
    new = method.step(moved(state, view, *change))
    return new, engine.reductions > 0, reached(engine, node)


@of_each_case
def point_has_the_right_shapes(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """point gives finite parameters (n, d), and flows and prices in the shapes of the form, or None; gathered gives
    numbers and arrays of n rows by name."""
    view, _ = view_of(case.form, probe.seed)
    state = after(method, view, 2)
    w, flows, prices = method.point(state)
    nothing = case.form.nothing()
    right = isinstance(w, np.ndarray) and w.shape == case.form.shape and np.isfinite(w).all()
    demand(right, f"the parameters must be finite, of shape {case.form.shape}")
    for what, found, like in (("flows", flows, nothing.flows), ("prices", prices, nothing.prices)):
        right = found is None or [np.shape(each) for each in found] == [each.shape for each in like]
        demand(right, f"the {what} must be None or of shapes {[each.shape for each in like]}")
    for name, value in method.gathered(state).items():
        right = isinstance(name, str) and _gathered(value, case.form.n)
        demand(right, f"gathered {name!r} must be a number or an array of {case.form.n} rows")


def _gathered(value: Any, n: int) -> bool:
    return np.isscalar(value) or (isinstance(value, np.ndarray) and (value.ndim == 0 or len(value) == n))


@of_each_case
def optimum_is_reached(method: AbstractIteration, case: Case, probe: MethodProbe) -> None:
    """Within the rounds the objective comes as near to the certified optimum as was asked; it is never below it."""
    optimum = case.optimum.certificate
    budget = Budget(probe.accuracy or 0.0, rounds=probe.rounds, seed=probe.seed)
    run = solve(case.form, method, budget, Compiler(case.form)).certificate
    above = relative(run.primal - optimum.dual, run.primal, optimum.dual, common(case.form).floor)
    right = above >= -EXACT and not (run.valid and run.dual > optimum.primal)
    demand(right, "its bounds contradict those of the exact optimum", by=-above)
    near = probe.accuracy is None or above <= probe.accuracy + EXACT
    sentence = f"after {probe.rounds} rounds it is further than {probe.accuracy or 0.0:g} above the optimum"
    demand(near, sentence, by=float(above))


LAWS = laws_of(AbstractIteration, globals())


def check_method(
    method: AbstractIteration,
    problems: Sequence[Any] | None = None,
    *,
    accuracy: float | None = 1e-3,
    rounds: int = 2000,
    seed: int = 0,
) -> Report:
    """The report on an iterative method: whether it obeys every law of methods, on small problems of each kind.

    Parameters
    ----------
    method : AbstractIteration
    problems : sequence of Problem, optional
        Instead of graphreg's own: chains, rings, trees and consensus, with smooth losses and with kinks.
    accuracy : float, optional
        How near to the optimum, relatively, the objective must come. None for a method that leads elsewhere, as one
        that keeps a bias: then only that its bounds hold.
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
    count(rounds, "rounds")
    check_numbers(seed, 1.0 if accuracy is None else accuracy)
    cases = small_problems(seed) if problems is None else tuple(_case(k, each) for k, each in enumerate(problems))
    with stages("check_method") as at:
        tried = {name: law for name, law in LAWS.items() if accuracy is not None or law is not optimum_is_reached}
        failures = try_laws(tried, method, MethodProbe(cases, seed, accuracy, rounds), at, None)
    untried = {} if accuracy is not None else {"optimum is reached": "accuracy=None asks for bounds alone"}
    return Report(method.label, tuple(LAWS), tuple(failures), untried, page="docs/adding-a-method.md#check-it")


def _case(k: int, problem: Any) -> Case:
    form = getattr(problem, "form", None)
    if not isinstance(form, Form):
        raise MethodError(f"problems must be Problems, got {problem!r}")
    return Case(f"problem {k}", form.frozen())
