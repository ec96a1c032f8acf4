"""The laws of methods hold for every method, and refuse broken ones, by the law that the bug offends."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from documents import module_of

import graphreg as gr
from graphreg.certificate import common
from graphreg.errors import MethodError
from graphreg.methods import METHODS, AbstractIteration
from graphreg.testing import check_method

OWN = module_of("adding-a-method")
GradientDescent, State = OWN.GradientDescent, OWN.State

# How near to the optimum a method comes on the small problems, where that is not 1e-3; None where it leads elsewhere.
ACCURACY: dict[str, float | None] = {
    "AsyncL2GD": 5e-2,  # its constant step keeps a bias
    "SubgradientDescent": 1e-2,  # its steps decrease, and it slows down with them
}

CONFIGURED = [
    gr.PrimalDual(restarts=True),
    gr.PrimalDual(inexact=2),
    GradientDescent(),
    *(
        pytest.param(method, marks=pytest.mark.whole, id=method.label)
        for method in (
            gr.PrimalDual(balance=1.0, relaxation=1.0),
            gr.PrimalDual(inexact=0.1),
            gr.ADMM(rho=1.0, relaxation=1.0),
            gr.ADMM(restarts=True),
            GradientDescent(damping=0.6),
        )
    ),
]


@pytest.mark.parametrize(
    "method",
    [*(method for method in METHODS if isinstance(method, AbstractIteration)), *CONFIGURED],
    ids=lambda method: method.label,
)
def test_every_method_obeys_the_laws(method):
    report = check_method(method, accuracy=ACCURACY.get(method.name, 1e-3))
    assert report.ok, report


# ---- broken methods --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Odd(State):
    extra: object = None


@dataclass
class Loose:
    view: object
    round: int
    w: np.ndarray
    M: np.ndarray


class InPlace(GradientDescent):
    def step(self, state):
        state.w[0] += 1e-3
        return super().step(state)


class Remembers(GradientDescent):
    """Momentum that is kept in the method."""

    def step(self, state):
        new = super().step(state)
        last = vars(self).get("last", state.w)
        object.__setattr__(self, "last", new.w)
        return replace(new, w=new.w + 0.3 * (new.w - last))


class RemembersOnTheView(GradientDescent):
    """The number of steps, counted once per round: repeating a step changes nothing, going on elsewhere does."""

    def step(self, state):
        seen = vars(state.view).setdefault("seen", set())
        seen.add(state.round)
        new = super().step(state)
        return replace(new, w=state.w + (new.w - state.w) / (1.0 + 0.01 * len(seen)))


class Draws(GradientDescent):
    def step(self, state):
        new = super().step(state)
        return replace(new, w=new.w + 1e-9 * np.random.default_rng().standard_normal(new.w.shape))


class DrawsAtFirst(GradientDescent):
    def init(self, view, start):
        state = super().init(view, start)
        return replace(state, w=np.random.default_rng().standard_normal(state.w.shape))


class AsksTheClock(GradientDescent):
    def step(self, state):
        new = super().step(state)
        return replace(new, w=new.w * (1.0 + 1e-12 * (time.perf_counter_ns() % 997)))


class KeepsAFunction(GradientDescent):
    def init(self, view, start):
        state = super().init(view, start)
        return Odd(state.view, 0, state.w, state.M, extra=lambda: 0)


class SendsNothing(GradientDescent):
    def step(self, state):
        quiet = replace(state.view, engine=Silent(state.view.engine))
        return replace(super().step(replace(state, view=quiet)), view=state.view)


@dataclass
class Silent:
    engine: object

    def exchange(self, values, along=None, *, parameters=True):
        return values


class SendsToSome(GradientDescent):
    """Books half of the messages that it makes use of."""

    def step(self, state):
        half = np.arange(len(state.view.arcs.source)) < state.view.arcs.pairs
        quiet = replace(state.view, engine=Silent(state.view.engine))
        state.view.engine.exchange(state.w, half)
        return replace(super().step(replace(state, view=quiet)), view=state.view)


class BooksItself(GradientDescent):
    def step(self, state):
        state.view.engine.ledger.exchange("method")
        return super().step(state)


class KnowsTheMean(GradientDescent):
    def step(self, state):
        new = super().step(state)
        return replace(new, w=new.w + 1e-3 * (state.w.mean(axis=0) - state.w))


class KnowsTheObjective(GradientDescent):
    """Its steps shrink with P(w), which is a sum over all data."""

    def step(self, state):
        new, size = super().step(state), state.view.form.primal(state.w)
        return replace(new, w=state.w + (new.w - state.w) / (1.0 + 1e-3 * size))


class KnowsTheData(GradientDescent):
    """Its steps shrink with P(0), in which no parameters are."""

    def step(self, state):
        new, size = super().step(state), common(state.view.form).size
        return replace(new, w=state.w + (new.w - state.w) / (1.0 + 1e-3 * size))


class TwoHops(GradientDescent):
    """Two steps for one exchange."""

    def step(self, state):
        new = super().step(state)
        quiet = replace(state.view, engine=Silent(state.view.engine))
        return replace(super().step(replace(new, view=quiet)), view=state.view, round=new.round)


class HalfThePull(GradientDescent):
    def step(self, state):
        w, new = state.w, super().step(state).w
        own = w - state.view.gradients.full(w) / (self.damping * state.M)[:, None]
        return replace(super().step(state), w=(new + own) / 2)


class TooLong(GradientDescent):
    def step(self, state):
        new = super().step(state)
        return replace(new, w=state.w + 8.0 * (new.w - state.w))


class SaysItInOneWord(GradientDescent):
    def missing(self, form):
        return ("smoothness",) if super().missing(form) else ()


class SaysAText(GradientDescent):
    def missing(self, form):
        return "; ".join(super().missing(form))


class NeverApplies(GradientDescent):
    def missing(self, form):
        return ("it needs a better problem",)


class ForgetsToCount(GradientDescent):
    def step(self, state):
        return replace(super().step(state), round=state.round)


class IsLoose(GradientDescent):
    def init(self, view, start):
        return Loose(**vars(super().init(view, start)))


class ForgetsLatentNodes(GradientDescent):
    def point(self, state):
        return state.w[: state.view.form.space.n_observed], None, None


class WrongFlows(GradientDescent):
    def point(self, state):
        return state.w, (state.w,), None


class GathersTooMuch(GradientDescent):
    def gathered(self, state):
        return {"mean": state.w.mean(axis=0)}


BROKEN = {
    InPlace: "step is repeatable",
    Remembers: "step is repeatable",
    RemembersOnTheView: "resume equals run",
    Draws: "step is repeatable",
    DrawsAtFirst: "same seed same run",
    AsksTheClock: "step is repeatable",
    KeepsAFunction: "resume equals run",
    SendsNothing: "a step reaches neighbours only",
    SendsToSome: "a step reaches neighbours only",
    BooksItself: "ledger is what was sent",
    KnowsTheMean: "a step reaches neighbours only",
    KnowsTheObjective: "a step reaches neighbours only",
    KnowsTheData: "a step reaches neighbours only",
    TwoHops: "a step reaches neighbours only",
    HalfThePull: "optimum is reached",
    TooLong: "optimum is reached",
    SaysItInOneWord: "missing gives sentences",
    SaysAText: "missing gives sentences",
    NeverApplies: "missing gives sentences",
    ForgetsToCount: "state is a record",
    IsLoose: "state is a record",
    ForgetsLatentNodes: "point has the right shapes",
    WrongFlows: "point has the right shapes",
    GathersTooMuch: "point has the right shapes",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_method_is_refused(broken):
    law = BROKEN[broken]
    report = check_method(broken(), rounds=400 if law == "optimum is reached" else 60)
    found = [failure for failure in report.failures if failure.law == law]
    assert law in report.laws
    assert found, f"{law!r} should refuse {broken.__name__}; what fails is {[f.law for f in report.failures]}"
    for failure in report.failures:  # none because the mutant itself is misspelt
        assert not failure.sentence.startswith(("NameError", "TypeError", "AttributeError")), failure.sentence


def test_the_report_names_the_problem():
    report = check_method(HalfThePull(), rounds=400)
    assert "FAIL  optimum is reached" in str(report)
    assert "known clusters" in str(report)
    assert not report
    with pytest.raises(AssertionError, match="HalfThePull"):
        report.raise_if_failed()


def test_a_bias_is_allowed_where_it_is_said():
    assert check_method(HalfThePull(), accuracy=None, rounds=50).ok


def test_other_problems_can_be_given():
    data = gr.NodeData.from_arrays(np.eye(4), np.arange(4.0), [0, 0, 1, 1])
    problem = gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(gr.Graph.chain(2), gr.SquaredL2()))
    assert check_method(GradientDescent(), [problem]).ok
    with pytest.raises(MethodError, match="problems must be Problems"):
        check_method(GradientDescent(), [data])


@pytest.mark.parametrize(("wrong", "said"), [(gr.PrimalDual, "write PrimalDual"), (gr.Exact(), "iterates"), (3, "3")])
def test_what_does_not_iterate_is_refused(wrong, said):
    with pytest.raises(MethodError, match=said):
        check_method(wrong)
