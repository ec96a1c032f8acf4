"""A run of a method: around the best common model where that keeps digits, judged in the problem itself."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..certificate import Certifier, center, centred, feasible
from ..form import Form
from ..network import InProcess, Ledger, LocalView, arcs_of
from ..terms import Array
from .budget import Budget, Outcome
from .driver import drive
from .observed import Recorder
from .snapshot import Keeper

if TYPE_CHECKING:
    from .method import AbstractIteration, AbstractMethod


def around(form: Form, method: AbstractMethod) -> tuple[Form, Array | None]:
    """The form that a method runs on, and what its parameters are less than those of the problem (None: nothing)."""
    v = center(form)[0] if method.centres() else np.zeros(0)
    return (centred(form, v), v) if v.any() else (form, None)


def iterate(
    form: Form, method: AbstractIteration, certifier: Certifier, budget: Budget, keeper: Keeper | None
) -> Outcome:
    """A run of a method, judged by what its answer is worth in the problem itself."""
    there, v = around(form, method)
    judge = certifier
    if v is not None:
        judge = Certifier(there, certifier)
        if certifier.best_primal is not None and certifier.best_dual is not None:
            judge.admit(certifier.best_primal.w - v, certifier.best_dual.found.dual_point)
        if budget.start is not None:
            budget = replace(budget, start=(budget.start[0] - v, budget.start[1]))
    judge.gap = budget.gap
    view = view_of(there, budget)
    if v is not None and not method.central and budget.warm_start is None:
        numbers = form.d * (form.d + 3) // 2  # a gradient and a symmetric Hessian
        view.engine.ledger.sum("adaptation", numbers, center(form)[1])
    with on_engine(method, view, budget) as player, nullcontext() if keeper is None else keeper.going_on():
        recorder = _recorder(there, np.zeros(form.d) if v is None else v, budget)
        outcome = drive(player, view, judge, budget, keeper, recorder)
    if v is None:
        return outcome
    if budget.gap == 0.0:  # the iterate after exactly so many rounds is asked for, not the best one
        certifier.best_primal = None
    w = np.where(form.free[:, None], 0.0, outcome.certificate.w + v)
    w, point, certifier.gap = feasible(form, w), outcome.certificate.dual_point, budget.gap
    certifier.consider(w)
    certifier.beside(judge, v)
    if outcome.ended == "gap" and not certifier.best().holds(budget.gap):  # there it does, here rounding is another
        certifier.certify(w, point.flows, point.prices, budget.gap)
    return replace(outcome, certifier=certifier, certificate=certifier.best())


def _recorder(form: Form, v: Array, budget: Budget) -> Recorder | None:
    look = budget.observer
    return None if look is None else Recorder(look, look.function, form, v)  # pyright: ignore[reportArgumentType]


def view_of(form: Form, budget: Budget) -> LocalView:
    """The whole graph in one process."""
    before = None if budget.warm_start is None else budget.warm_start.view
    if before is not None:
        return before.beside(form, InProcess(Ledger(before.arcs, form.labels)))
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), budget.seed or 0)


def on_engine(method: AbstractIteration, view: LocalView, budget: Budget) -> AbstractContextManager[AbstractIteration]:
    """The method itself, or the actors that carry it out."""
    if budget.engine is None:
        return nullcontext(method)
    return budget.engine.hosting(method, view.form, view.engine.ledger.arcs, view.seed)
