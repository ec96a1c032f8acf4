"""The exact route: compiled to CVXPY, solved by a conic solver, certified by graphreg itself."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

import numpy as np

from ..base.breakdown import broken, cause
from ..base.clock import OutOfTimeError, alarm, at_least, check_deadline, left, progress_bar, uncounted
from ..base.gate import refuse
from ..certificate import Certificate, common
from ..checks import checked, one_of, text
from ..compiling import overflow, rows_apart, solvers
from ..form import Form
from ..oracles import check_size
from ..running import AbstractDirectMethod, Budget, Costs, Outcome, Task, floor_of
from .splitting.primal_dual import PrimalDual

LONG = 3.0  # predicted seconds of a solver, beside which a process of its own, some 1.5 s of imports, is little
WRITTEN = 5e8  # bytes a second, at most, that CVXPY writes and a solver goes through
GAP = 1e-7  # beyond it a second solve at tight tolerances is worth its time
REFINEMENT = 3000  # rounds, where no attempt of a conic solver has sufficed
End = tuple[str, str]  # why an attempt ended, and the cause of a failure; as in `Outcome`
UNPROVED = "no point was found that satisfies all constraints, nor a proof that there is none"


@dataclass(frozen=True)
class Exact(AbstractDirectMethod):
    """Compile to CVXPY, solve with a conic solver, certify.

    First at the solver's default tolerances; where the certificate falls short of ``min(gap, 1e-7)`` once more at
    1e-11; where it still falls short of ``gap`` in the user's units instead of the data's, and with shorter steps; at
    last some rounds of `PrimalDual` refine what the solver left, or begin anew where it only says that there is no
    point or no bound (the message says so). The best bounds of all attempts are kept.

    Parameters
    ----------
    solver : str
        Any installed CVXPY solver that takes the problem; "clarabel" by default, "scs" beside it.
    form : {"primal", "dual"}
        Which of the two problems is given to the solver.

    Examples
    --------
    >>> exact = problem.solve(gr.Exact())
    >>> exact.method, exact.status
    ('Exact(clarabel)', 'certified')
    """

    needs = "a form in CVXPY of every penalty, and a size that a conic solver can take"
    refusing = "a conic solver needs all data in one place", "a conic solver cannot be resumed"
    rows = True

    solver: str = checked(text("the name of a CVXPY solver"), "clarabel")
    form: str = checked(one_of("primal", "dual"), "primal")

    @property
    def label(self) -> str:
        return f"{self.name}({self.solver})" if self.form == "primal" else f"{self.name}({self.solver}, {self.form})"

    def missing(self, form: Form) -> tuple[str, ...]:
        return tuple(dict.fromkeys(said for edge in form.edges if (said := edge.penalty.unwritten())))

    def cost(self, costs: Costs) -> tuple[float, float]:
        return costs.exact, costs.written + costs.factors

    def run(self, task: Task) -> Outcome:
        uncounted(partial(import_module, "cvxpy"))
        attempts, certifier = _Attempts(self, task), task.certifier
        with task.compiler.alone():
            ended, why = attempts.carried_out()
        best = certifier.best()
        if not np.isfinite(best.primal) and not best.contradiction and ended in ("budget", "limit"):
            with suppress(OutOfTimeError), at_least():
                certifier.certify(np.zeros(task.form.shape), None, None, task.budget.gap)
            if ended == "limit":
                ended, why = attempts.without_point(np.isfinite(certifier.best().primal))
        said = dict.fromkeys([*map(str, attempts.outcomes), *attempts.refined])
        note = f"{self.solver} said: {', then '.join(said)}." if attempts.outcomes else ""
        by, seconds = f"{self.name}({self.solver})", attempts.elapsed()
        return Outcome(certifier.best(), certifier, ended, seconds=seconds, cause=why, by=by, note=note)


@dataclass
class _Attempts:
    """The attempts of one solve, what became of each, and what was done beyond them."""

    method: Exact
    task: Task
    outcomes: list[solvers.SolverOutcome] = field(default_factory=list[solvers.SolverOutcome])
    refined: list[str] = field(default_factory=list[str])
    began: float = field(default_factory=time.perf_counter)

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def carried_out(self) -> End:
        """The reason for which there is no better certificate."""
        try:
            return self._in_turn(), ""
        except OutOfTimeError:
            end = "budget", ""
        except KeyboardInterrupt:
            end = "interrupted", ""
            if self.task.budget.warm_start is not None:
                self.task.budget.warm_start.interrupted = True
        except Exception as error:
            if not broken(error, self.task.budget.callback):
                raise
            end = "failed", cause(error)
        self.task.compiler.forget()
        return end

    def _in_turn(self) -> str:
        task, method, gap = self.task, self.method, self.task.budget.gap
        certificate = self._of_start()
        if gap > 0.0 and certificate.holds(gap):
            return "limit"
        form, costs = task.form, Costs(task.form)
        refuse(costs.written / 8.0, f"what CVXPY and {method.solver} make of it", "about ")
        if (rest := left()) is not None and rest < costs.written / WRITTEN:  # CVXPY is deaf, and so is Python meanwhile
            raise OutOfTimeError
        with alarm():
            if form.beside or any(block.X is not None for block in form.at_nodes):
                check_size(form)
            long = costs.exact > LONG
        with progress_bar(task.budget.progress, desc=method.label, unit=" attempts") as tell:
            for attempt in solvers.attempts(method.solver, method.form):
                check_deadline()
                certificate = self._attempt(attempt, long) or certificate
                tell(1, f"gap {certificate.relative_gap:.1e}, target {gap:.0e}")
                enough = gap if len(self.outcomes) > 1 else min(gap, GAP)
                if certificate.holds(enough) or certificate.contradiction or task.certifier.recedes():
                    return "limit"
        self._beyond(certificate)
        return "limit"

    def _of_start(self) -> Certificate:
        """The certificate of the user's start, so that no answer is worse."""
        budget, certifier = self.task.budget, self.task.certifier
        if budget.start is None or budget.warm_start is not None:
            return certifier.best()
        with alarm():
            return certifier.certify(budget.start[0], budget.start[1], None, budget.gap)

    def _attempt(self, attempt: solvers.Attempt, apart: bool) -> Certificate | None:
        """The best certificate after one more solve, in a process ``apart`` or in this one; None where it gave no
        point."""
        (scaled, options), form, solver = attempt, self.task.form, self.method.solver
        compiled = self.task.compiler(self.method.form, scaled)
        outcome = compiled.solve(solver, {**options, **solvers.time_limit(solver, left())}, apart)
        found, broke = compiled.answer()
        self.outcomes.append(solvers.SolverOutcome(cause=broke) if broke else outcome)
        if found is None:
            return None
        w = np.where(form.free[:, None], 0.0, found[0])
        with at_least():
            return self.task.certifier.certify(w, found[1].flows, found[1].prices, self.task.budget.gap)

    def _beyond(self, certificate: Certificate) -> None:
        """Try what may help where no attempt sufficed: other points, where the solver denies that there is any (maybe
        there is one) or a bound (there always is), and rounds of the primal-dual method."""
        form, gap = self.task.form, self.task.budget.gap
        if not np.isfinite(certificate.primal) and any(outcome.denies for outcome in self.outcomes):
            for w in (np.tile(common(form).w, (form.n, 1)), np.zeros(form.shape)):
                certificate = self.task.certifier.certify(np.where(form.free[:, None], 0.0, w), None, None, gap)
        short = not certificate.holds(gap) and np.isfinite(certificate.primal)
        if short and (rounds := self._refine(certificate)):
            self.refined.append(f"refined by {rounds} rounds of PrimalDual")

    def _refine(self, certificate: Certificate) -> int:
        """Some rounds of the primal-dual method, from where the solver stopped short; how many."""
        method, gap, own = PrimalDual(), self.task.budget.gap, self.task.certifier.spot_checks
        misled = own and own.doubt(certificate.w, certificate.dual_point, everywhere=False)
        if method.missing(self.task.form) or gap == 0.0 or misled:
            return 0
        start = (certificate.w, certificate.dual_point.flows)
        budget = Budget(gap, REFINEMENT, left(), start, progress=self.task.budget.progress)
        rough = floor_of(certificate)  # the rounds go on all the same, as some do get there; they may take minutes
        with progress_bar(budget.progress if rough else False, desc=rough, bar_format="{desc}"):
            outcome = self.task.iterate(method, budget)
        if outcome.ended == "interrupted":
            raise KeyboardInterrupt
        return outcome.rounds

    def without_point(self, feasible: bool) -> End:
        """The reason for which no attempt has found a point: the constraints exclude each other, which is proved (a
        solver's word is no proof), the losses overflow where they hold, or the solver broke down."""
        try:
            if not feasible and (rows := rows_apart(self.task.form, self.method.solver, left())):
                return "infeasible", rows
        except OutOfTimeError:
            return "budget", ""
        except KeyboardInterrupt:
            return "interrupted", ""
        broke = next((outcome.cause for outcome in self.outcomes if outcome.cause), "")
        return "failed", broke if feasible else overflow(self.task.form) or broke or UNPROVED
