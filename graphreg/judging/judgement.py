"""Answers from elsewhere, judged: a point, with the best lower bound that can be had with its help, and what stands
in a CVXPY problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.clock import OutOfTimeError, alarm, at_least, check_deadline, stages
from ..base.display import Html, Suggesting, sentence, table
from ..base.gate import refuse
from ..base.shortcuts import shortcut
from ..certificate import (
    Certificate,
    Certifier,
    Enclosed,
    Kinks,
    RoutingProblem,
    at_zero_levels,
    feasible,
    kinks,
    relative,
)
from ..certificate import common as best_common
from ..compiling import conic
from ..errors import FailedError, ModelError
from ..form import Form
from ..methods import AbstractMethod, Exact, PrimalDual
from ..running import Budget, Costs, Solution, contradicted, solve, tied_certificate
from ..terms import Array
from .given import Arrays, Given, beyond_capacity

if TYPE_CHECKING:
    import cvxpy as cp

    from ..certificate.proof import Proved

NEAR = (1e-2, 1e-3, 1e-4, 1e-6)  # of the root mean square of w: the kinks that may be those of the optimum
BETTER = 0.1  # of the gap: where a guess of the kinks closes less of it, another is no better
ROUNDS = 300  # of the primal-dual method, from the point and the flows found for it
SAME = 1e-9  # of relative gaps: the same but for rounding
CLOSER = 0.3  # of the gap asked for: that of the optimum, so that what is left of it is the point's own
UNKNOWN = (
    "what the flows given prove as they are is not known without prices=, an array for each loss, as {} need not be "
    "strictly convex; repaired, they go with the prices of the gradients at w: a large gap is not theirs alone"
)
REPAIRED = "given flows, moved until all balances"
Own = tuple[Arrays, Arrays | None]  # flows that were given, and prices, where they were
Bounds = Iterator[tuple[str, Callable[[], Certificate]]]


@dataclass(frozen=True)
class BoundStep(Suggesting):
    """The outcome of one way to a lower bound: its name, the bound, the relative gap to it and the seconds it took."""

    name: str
    dual: float
    relative_gap: float
    seconds: float


@dataclass(frozen=True, repr=False)
class Judgement(Certificate):
    """The certificate of a point that was given: ``dual <= optimum <= primal``, where ``primal`` is the objective at
    that very point, so that it is at most ``gap`` above the optimum.

    Attributes
    ----------
    moved : float
        The farthest that an entry had to be moved for all constraints to hold; 0 where they held.
    better : Certificate or None
        Of a point that was met on the way and is proved to lie lower.
    beyond : str
        Of flows that were given: how many lay beyond their capacities and were brought within, and which most. The
        bound is that of the flows as they were changed. Empty where none did.
    as_given : float or None
        The lower bound that flows prove which were given, as they are, with the prices given or the best for them; -inf
        where they lie beyond capacities, or do not balance those prices, by more than 1e-9 of their size: by less they
        are put right first, as rounding is. None without flows, and where the best prices are not known: some node is
        not strictly convex, or a term is of your own.
    steps : tuple of Step
        The lower bounds that were tried, in order; the last is not always the best.

    Examples
    --------
    >>> judged = problem.certify(np.zeros((4, 2)))
    >>> bool(judged.dual <= solution.objective < judged.primal), judged.moved
    (True, 0.0)
    """

    moved: float = 0.0
    better: Certificate | None = None
    steps: tuple[BoundStep, ...] = ()
    beyond: str = ""
    as_given: float | None = None
    turned: float | None = None  # and with all signs changed

    def prove(self, path: str | Path, claims: str | Sequence[Any] = (), *, force: bool = False) -> Proved:
        """Write a proof of both bounds, which anybody can check without graphreg; see `Solution.prove`.

        Parameters
        ----------
        path : path
            Of the file (JSON) to be written.
        claims : sequence of str and tuple
            What else is to be proved, as by `Solution.prove`.
        force : bool
            Replace a file that is no proof, too.

        Returns
        -------
        Proved

        Raises
        ------
        ProofError
            Where a term cannot be stated in a proof, no exact point is found near these, a claim on one edge is not
            proved, or the file cannot be written.

        Examples
        --------
        >>> proved = problem.certify(solution.coef).prove(folder / "judged.json")
        >>> bool(proved.lower <= proved.upper)
        True
        """
        from ..certificate.proof import prove

        return prove(self, path, claims, tied_certificate, force=force)

    def _remarks(self) -> list[str]:
        """Remarks on the point, in sentences."""
        better = None if self.better is None else f"{self.better.primal:.10g}: .better.w"
        held = np.isfinite(self.primal)
        return [
            *([f"moved by at most {self.moved:.2g} to where every constraint holds"] if held and self.moved else []),
            *([self.beyond] if self.beyond else []),
            *([self._of_flows(self.as_given)] if self.as_given is not None else []),
            *([f"a better point was met, of objective {better}"] if better else []),
        ]

    def _of_flows(self, bound: float) -> str:
        """What the flows that were given prove."""
        if self.beyond:
            return "the flows given prove nothing as they are"
        if not np.isfinite(bound):
            balance = "balance the prices" if self.form.samples else "add up to 0 at every node"
            said = f"the flows given prove nothing as they are: they do not {balance}"
            if self.turned is not None and np.isfinite(self.turned):
                said += (
                    f"; with all their signs changed they do, and prove {self.turned:.10g}: flows run from tail to head"
                )
            return said
        gap = replace(self, dual=bound).relative_gap
        said = f"the flows given (to 1e-9 of their size) prove by themselves that {bound:.10g} <= optimum"
        said += f" (relative gap to it {gap:.3g})"
        if self.turned is not None and gap - replace(self, dual=self.turned).relative_gap > SAME:
            said += f"; with all signs changed they would prove {self.turned:.10g}: a flow runs from tail to head"
        return said

    def _html(self) -> Iterable[Html]:
        yield from super()._html()
        yield from map(sentence, self._remarks())
        rows = [
            (step.name, f"{step.dual:.10g}", f"{step.relative_gap:.3g}", f"{step.seconds:.2g}") for step in self.steps
        ]
        yield table(("lower bound from", "dual", "relative gap", "seconds"), rows)

    def __str__(self) -> str:
        tried = [f"{e.name}: lower bound {e.dual:.10g}, {e.seconds:.2g} seconds" for e in self.steps]  # one gap is said
        return "\n  ".join([super().__str__(), *self._remarks(), *tried])


def judge(form: Form, point: Given, own: Own | None, gap: float, limits: AbstractContextManager[None]) -> Judgement:
    """The certificate of a point w, by as many of the steps as it takes: what is given or follows from the gradients at
    w, what balances them at the kinks near w, some rounds of the primal-dual method from w and the flows found so far,
    and the exact route. Of the user's ``own`` flows it says what they prove as they are."""
    with limits, stages("certify") as at:
        refuse(Costs(form).arrays / 8.0, "certify", "about ")
        w = feasible(form, point.w)
        judged, name = _Judged(form, w, gap), "gradients"
        try:
            for name, bound in judged.bounds(point, own):
                at(name)
                began = time.perf_counter()
                if judged.found:  # what a solve knew it has said
                    check_deadline()
                if judged.take(name, bound(), time.perf_counter() - began):
                    break
        except OutOfTimeError:
            judged.left_out = f"The time was up before the {name}."
        except KeyboardInterrupt:
            if not judged.found:
                raise
            judged.left_out = f"Interrupted at the {name}."
        found = judged.judgement(float(np.abs(w - point.w).max(initial=0.0)))
    return found if own is None else _with_own(found, form, own, judged.as_given)


def _with_own(judged: Judgement, form: Form, own: Own, bound: float | None) -> Judgement:
    """A judgement that says of flows what they prove as they are, which is this bound."""
    flows, prices = own
    if beyond := beyond_capacity(form, flows):
        return replace(judged, beyond=beyond, as_given=-np.inf)
    if bound is None and judged.contradiction:
        return judged
    if bound is None:
        flat = [block.loss.called() for block in form.samples if np.min(block.loss.least_curvature()) <= 0.0]
        said = UNKNOWN.format(" and ".join(dict.fromkeys(flat)) or "a node or a term of your own")
        return replace(judged, note="; ".join(filter(None, (judged.note, said))))
    back = tuple(-u for u in flows)
    signs = None if prices is None else tuple(-a for a in prices)
    signs = prices if bound == -np.inf else signs  # which flows the other way may balance
    known = not beyond_capacity(form, back)
    return replace(judged, as_given=bound, turned=Certifier(form).bound_as_given(back, signs) if known else None)


class _Judged:
    """The bounds that are known of one point."""

    def __init__(self, form: Form, w: Array, gap: float) -> None:
        self.form, self.w, self.gap = form, w, gap
        self.value, self.certifier = form.primal(w), Certifier(form)
        self.found: list[Certificate] = []
        self.steps: list[BoundStep] = []
        self.left_out = ""
        self.as_given: float | None = None  # what flows prove that were given, as they are

    def bounds(self, point: Given, own: Own | None) -> Bounds:
        """The steps, each with what it can make use of."""
        self.certifier.spot_checks.begin()
        yield "gradients" if point.flows is None else REPAIRED, lambda: self._given(point, own)
        routing, before = RoutingProblem(self.form, self.w), None
        size = float(np.sqrt(np.mean(np.square(self.w))))
        for near in NEAR:
            found, known = kinks(self.form, self.w, near * size), self.lowest.dual
            if found.any() and not found.same(before):
                yield f"kinks within {near:g}", partial(self._routed, routing, found)
                if before is not None and not self.lowest.dual - known > BETTER * (self.value - known):
                    break
            before = found
        if not PrimalDual().lacks(self.form):
            yield "primal-dual rounds", lambda: self._solved(PrimalDual(), ROUNDS)
        if not Exact().lacks(self.form):
            yield "exact route", lambda: self._solved(Exact(), None)

    def _given(self, point: Given, own: Own | None) -> Certificate:
        with at_least():  # without it there is no lower bound at all
            if own is not None and not beyond_capacity(self.form, own[0]):
                self.as_given = self.certifier.bound_as_given(*own)  # a repair has other prices, and may prove less
            return self.certifier.certify(self.w, point.flows, point.prices, self.gap)

    def _routed(self, routing: RoutingProblem, found: Kinks) -> Certificate:
        with alarm():
            point = routing(found)
            return self.certifier.certify(self.w, point.flows, point.prices, self.gap)

    def _solved(self, method: AbstractMethod, rounds: int | None) -> Certificate:
        lowest = self.lowest
        start = (self.w, lowest.dual_point.flows)
        budget = Budget(CLOSER * self.gap, rounds, start=start, known=lowest if lowest.valid else None, progress=False)
        found = solve(self.form, method, budget, conic.Compiler(self.form))
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return found.certificate

    @property
    def lowest(self) -> Certificate:
        """The certificate with the best lower bound."""
        return max(self.found, key=lambda each: each.dual)

    def take(self, name: str, certificate: Certificate, seconds: float) -> bool:
        """Note what a step gave; whether it is enough, or no other step may say more."""
        self.found.append(certificate)
        gap = self.value - certificate.dual
        floor = best_common(self.form).floor
        away = relative(gap, self.value, certificate.dual, floor) if np.isfinite(gap) else np.inf
        self.steps.append(BoundStep(name, certificate.dual, away, seconds))
        known = certificate.valid and certificate.holds(CLOSER * self.gap)  # the rest is the point's own
        return bool(certificate.contradiction) or away <= self.gap or known

    def judgement(self, moved: float) -> Judgement:
        certifier, late = self.certifier, dict[str, Any]()
        if certifier.best_primal is None or certifier.best_primal.w is not self.w:
            certifier.best_primal = None  # of w itself, whatever else was met
            try:
                with at_least():
                    certifier.propose_primal(self.w, self.gap)
            except OutOfTimeError:
                late = {"w": self.w, "note": "the time was up before the objective was bounded"}
        if self.found:
            lowest = self.lowest
            certifier.propose_bound(Enclosed(np.array([lowest.dual]), lowest.dual_point, lowest.spread))
        found = replace(certifier.best(), **late)
        broken = [each for each in (*self.found, found) if each.contradiction]
        if broken:  # a term of the user's own breaks a law: no bound of any step holds
            return self._judgement(replace(broken[0], w=self.w), moved, None)
        best = min(self.found, key=lambda each: each.primal, default=found)
        lies = found.primal - 2.0 * found.rounding  # P at w is not less
        better = best if best.valid and best.primal < lies else None
        found = replace(found, note="; ".join(filter(None, (found.note, self.left_out))))
        return self._judgement(found, moved, better)

    def _judgement(self, found: Certificate, moved: float, better: Certificate | None) -> Judgement:
        known = {field.name: getattr(found, field.name) for field in fields(found)}
        return Judgement(**known, moved=moved, better=better, steps=tuple(self.steps))


# ---- what somebody else made of the problem in CVXPY -----------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class Compiled(Suggesting):
    """A problem compiled to CVXPY.

    Attributes
    ----------
    cvxpy : cvxpy.Problem
        To be solved by whoever likes; ``read()`` then certifies what was found.
    w : cvxpy.Variable
        The (n, d) parameters, latent nodes last (None in the dual form).
    z : list
        One (m, k) variable per edge block: the differences in the primal form, the flows in the dual form.

    Examples
    --------
    >>> compiled = problem.compile()
    >>> value = compiled.cvxpy.solve()
    >>> compiled.read().certificate.relative_gap < 1e-3
    True
    """

    cvxpy: cp.Problem
    w: cp.Variable | None
    z: list[cp.Variable]
    conic: conic.ConicProblem

    def __reduce__(self) -> tuple[Any, ...]:
        raise ModelError("what is compiled can be neither copied nor sent; send the problem, and compile it there")

    def __repr__(self) -> str:
        return f"<Compiled: a problem of CVXPY, status {self.cvxpy.status}; .cvxpy.solve(...), then .read()>"

    def read(self) -> Solution:
        """The answer that stands in the CVXPY problem, certified by graphreg's own code.

        Returns
        -------
        Solution

        Raises
        ------
        FailedError
            Where the CVXPY problem has no values: it was not solved, or not successfully. And where a term of the
            user's is found to break a law that bounds rest on, which the message names.

        Examples
        --------
        >>> compiled = problem.compile()
        >>> _ = compiled.cvxpy.solve(solver="CLARABEL")
        >>> compiled.read().certificate.holds(1e-6)
        True
        """
        found = self.conic.read_back()
        if found is None:
            raise FailedError("the CVXPY problem holds no answer; call .cvxpy.solve(...) first")
        certifier = Certifier(self.conic.form.frozen())
        certifier.spot_checks.begin()
        certificate = at_zero_levels(certifier.certify(found[0], found[1].flows, found[1].prices, 1e-6), 1e-6)
        status = "certified" if certificate.holds(1e-6) else "no_certificate"
        message = f"Read from CVXPY, whose solver said {self.cvxpy.status!r}."
        if certificate.contradiction:
            status, message = "failed", contradicted(certificate)
        solution = Solution(certificate.form, certificate, status, message, "CVXPY")
        if status == "failed":
            raise FailedError(message, solution)
        return solution

    def certify(self, **options: Any) -> Any:
        """What `graphreg.certify` proves of the CVXPY problem: a second certificate, which takes nothing of graphreg's
        own but the arithmetic.

        Returns
        -------
        ConicCertificate

        Examples
        --------
        >>> problem.compile().certify().holds(1e-6)
        True
        """
        return shortcut("Compiled.certify")(self.cvxpy, **options)
