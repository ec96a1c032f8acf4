"""The exact route: attempts of a conic solver, each certified, and rounds that refine what they leave."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from .breakdown import Watched, broken, cause
from .certificate import Certificate, Certifier, common
from .clock import OutOfTimeError
from .form import Form
from .iterating import iterate
from .lowering import conic
from .lowering.emptiness import excluded, overflow
from .methods import exact as exact_method
from .methods._driver import Budget
from .methods.exact import Exact
from .methods.primal_dual import PrimalDual
from .solution import Solution
from .statuses import End, judged

REFINEMENT = 3000  # rounds, where no attempt of a conic solver has sufficed
UNPROVED = "no point was found that satisfies all constraints, nor a proof that there is none"


def by_cones(form: Form, method: Exact, certifier: Certifier, budget: Budget, compiler: conic.Compiler) -> Solution:
    """The solution by a conic solver."""
    attempts = _Attempts(form, method, certifier, budget, compiler)
    certificate, end = attempts.carried_out()
    if not np.isfinite(certificate.primal) and end.why in ("budget", "limit"):
        certificate = certifier.certify(np.zeros(form.shape), None, None, budget.gap)
        if end.why == "limit":
            end = attempts.without_point(np.isfinite(certificate.primal))
    status, message = judged(certifier, certificate, end, budget.gap, 0)
    if attempts.outcomes:
        said = dict.fromkeys([*map(str, attempts.outcomes), *attempts.refined])
        message += f" {method.solver} said: {', then '.join(said)}."
    return Solution(form, certificate, status, message, f"{method.name}({method.solver})", 0, attempts.elapsed())


@dataclass
class _Attempts:
    """The attempts of one solve, what became of each, and what was done beyond them."""

    form: Form
    method: Exact
    certifier: Certifier
    budget: Budget
    compiler: conic.Compiler
    outcomes: list[conic.Outcome] = field(default_factory=list[conic.Outcome])
    refined: list[str] = field(default_factory=list[str])
    began: float = field(default_factory=time.perf_counter)

    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def left(self) -> float | None:
        return None if self.budget.seconds is None else self.budget.seconds - self.elapsed()

    def carried_out(self) -> tuple[Certificate, End]:
        """The best certificate, and why there is no better one."""
        try:
            return self._in_turn()
        except OutOfTimeError:
            why = End("budget")
        except KeyboardInterrupt:
            why = End("interrupted")
            if self.budget.carried is not None:
                self.budget.carried.interrupted = True
        except Exception as error:
            if not broken(error, Watched.of(self.budget.callback)):
                raise
            why = End("failed", cause(error))
        self.compiler.forget()
        return self.certifier.best(), why

    def _in_turn(self) -> tuple[Certificate, End]:
        form, method, gap = self.form, self.method, self.budget.gap
        certificate = self.certifier.best()
        for scaled, options in conic.attempts(method.solver, method.form):
            compiled = self.compiler(method.form, scaled)
            left = self.left()
            if left is not None and left <= 0.0:
                return certificate, End("budget")
            self.outcomes.append(compiled.solve(method.solver, {**options, **conic.time_limit(method.solver, left)}))
            found = compiled.point()
            if found is not None and np.isfinite(found[0]).all():
                w = np.where(form.free[:, None], 0.0, found[0])
                certificate = self.certifier.certify(w, found[1].flows, found[1].prices, gap)
            enough = gap if len(self.outcomes) > 1 else min(gap, exact_method.GAP)
            if certificate.holds(enough) or self.certifier.recedes():
                return certificate, End("limit")
        if not np.isfinite(certificate.primal) and self.misled():
            for w in (np.tile(common(form).w, (form.n, 1)), np.zeros(form.shape)):
                certificate = self.certifier.certify(np.where(form.free[:, None], 0.0, w), None, None, gap)
        if not certificate.holds(gap) and np.isfinite(certificate.primal):
            certificate, rounds = self._refined(certificate)
            self.refined.append(f"refined by {rounds} rounds of PrimalDual")
        return certificate, End("limit")

    def _refined(self, certificate: Certificate) -> tuple[Certificate, int]:
        """The best certificate after some rounds of the primal-dual method, from where the solver stopped short."""
        method, gap = PrimalDual(), self.budget.gap
        if method.missing(self.form) or gap == 0.0:
            return certificate, 0
        start = (certificate.w, certificate.point.flows)
        budget = Budget(gap, REFINEMENT, self.left(), start, progress=self.budget.progress)
        outcome = iterate(self.form, method, self.certifier, budget, None)
        if outcome.ended == "interrupted":
            raise KeyboardInterrupt
        return outcome.certificate, outcome.rounds

    def misled(self) -> bool:
        """Whether the solver has said that there is no point (maybe there is one), or no bound (there always is)."""
        return any(outcome.denies for outcome in self.outcomes)

    def without_point(self, feasible: bool) -> End:
        """Why no attempt has found a point: the constraints exclude each other, which is proved (a solver's word is no
        proof), the losses overflow where they hold, or the solver broke down."""
        try:
            if not feasible and excluded(self.form, self.method.solver, self.left()):
                return End("infeasible")
        except OutOfTimeError:
            return End("budget")
        except KeyboardInterrupt:
            return End("interrupted")
        broke = next((outcome.cause for outcome in self.outcomes if outcome.cause), "")
        return End("failed", broke if feasible else overflow(self.form) or broke or UNPROVED)
