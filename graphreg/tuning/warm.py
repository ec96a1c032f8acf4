"""Solving at one strength after another, each from the answers at the last."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..base.clock import OutOfTimeError, check_deadline, left
from ..base.gate import GRACE
from ..certificate import Certificate
from ..form import Form
from ..methods import AbstractMethod, Costs, Exact, Interior, InteriorPoint, PrimalDual, Start
from ..network import LocalView
from ..oracles import filled_work, fits, work
from ..problem import RAISES, Problem
from ..running import Budget, Solution, WarmStart, around, solve, view_of
from ..terms import Parameter

MOST = 1e10  # multiplications, by a bound, for which `InteriorPoint` is taken without being asked for
CHEAP = 1e4  # multiplications of a factorisation for each parameter, up to which it is taken first
FEWER = 10  # times the rounds before `InteriorPoint` takes over, after each time that it did
STEPS = 0.05  # of the same: about as many rounds of `PrimalDual` take as long as a run of `InteriorPoint`


def usual_method(problem: Problem) -> AbstractMethod:
    """`InteriorPoint` where it applies, its factors are cheap and there is more than one parameter per node (with one,
    rounds of `PrimalDual` cost next to nothing, unless rows are no edges: these may be stiff), else `PrimalDual`, else
    `Exact`. Of `InteriorPoint` and `PrimalDual` the other is `standby`."""
    form = problem.form
    iterates = not PrimalDual().lacks(form)
    if _takes_newton_steps(form) and not (iterates and _multiplications(form) > CHEAP):
        return InteriorPoint()
    return PrimalDual() if iterates else Exact()


def standby(method: AbstractMethod, form: Form) -> tuple[tuple[AbstractMethod, ...], int | None]:
    """The methods that take over where the usual one does not reach the gap, one after the other, and after how many
    rounds at the latest; None: where it gives up by itself."""
    iterates = () if PrimalDual().lacks(form) else (PrimalDual(),)
    if isinstance(method, PrimalDual) and _takes_newton_steps(form):
        most = int(STEPS * max(_multiplications(form), CHEAP))
        return (InteriorPoint(), *iterates), min(most, PrimalDual.most_rounds)
    return iterates, None


def _falls_short(solution: Solution, most: int | None) -> bool:
    """True of a run, of so many rounds at most, that ended without the gap that was asked for, with time to spare."""
    return solution.status == "no_certificate" or (solution.status == "budget" and solution.rounds == most)


def _takes_newton_steps(form: Form) -> bool:
    if form.d == 1 and not form.unlike_edges:
        return False
    return not InteriorPoint().lacks(form) and work(form) <= MOST and fits(form)


def _multiplications(form: Form) -> float:
    """The multiplications of a factorisation, for each parameter."""
    return filled_work(form) / (form.n * form.d)


LARGE = 1000  # parameters from which on a path climbs: smaller problems take no time either way
ON_A_PATH = 10_000  # rounds that a path takes in all, for which it may be worth compiling them
SHARE = 0.5  # of the time of a run of `InteriorPoint` from nothing: what one from between two neighbours takes


def climbs(form: Form) -> bool:
    """True where a path whose usual method is `InteriorPoint` begins with rounds of `PrimalDual`, from the smallest
    strength up: these are quick there, and get slower with the strength."""
    return form.n * form.d >= LARGE and not form.unlike_edges and not PrimalDual().lacks(form)


NEAR = 3.2  # the ratio of two strengths between whose iterates `InteriorPoint` begins; further apart, anew is better


def halving(count: int) -> list[int]:
    """The numbers below ``count``: the ends first, then always the middle of what lies between two that are known."""
    order, gaps = [0, count - 1], [(0, count - 1)]
    while gaps:
        middles = [((a + b) // 2, a, b) for a, b in gaps if b - a > 1]
        order += [k for k, _, _ in middles]
        gaps = [gap for k, a, b in middles for gap in ((a, k), (k, b))]
    return list(dict.fromkeys(order))


def order_of(method: AbstractMethod, count: int) -> list[int]:
    """The order in which a method solves at so many strengths, numbered from the largest down: as they are, or for
    `InteriorPoint`, which begins between two answers, by halves."""
    return halving(count) if isinstance(method, InteriorPoint) else list(range(count))


@contextmanager
def restored(parameters: Iterable[Parameter]) -> Generator[None]:
    """The Parameters have their values again afterwards, whatever happens."""
    before = [(parameter, parameter.value) for parameter in parameters]
    try:
        yield
    finally:
        for parameter, value in before:
            parameter.value = value


QUIET = Budget(progress=False, seed=0)


class Warm:
    """Solves one problem at one set of values of its Parameters after another, each from the answers at the last.

    Carried from one to the next: parameters and flows (on the line through the last two answers, where strengths are
    told), the layout of the graph, the factorised proxes of the losses, the state of the method (its balance and what
    its proxes remember), or the problem compiled to CVXPY. Of `InteriorPoint` the layout of its systems, and an iterate
    of each strength: the average of two, weighted so that their strengths average to the new one, is inside all cones
    there, and conserved where the losses are squared ones.

    Parameters
    ----------
    problem : Problem
    method : AbstractMethod, optional
        See `usual_method`.
    gap, rounds, seed
        Of each solve; see `Problem.solve`.
    usual : bool
        Whether the method is the usual one: `standby` takes over where it does not reach the gap.
    upwards : bool
        Whether the strengths may be solved from the smallest up (see `climbs`).
    """

    def __init__(
        self,
        problem: Problem,
        method: AbstractMethod | None = None,
        budget: Budget = QUIET,
        usual: bool = False,
        upwards: bool = False,
    ) -> None:
        self.problem = problem
        self.method: AbstractMethod = usual_method(problem) if method is None else method
        own, rounds = usual or method is None, budget.rounds
        newton = own and rounds is None and isinstance(self.method, InteriorPoint)
        self.climbing = upwards and newton and climbs(problem.form)
        self.handed: float | None = None  # the strength from which on `InteriorPoint` is the method
        if self.climbing:
            self.method = PrimalDual()
        self.standby, most = standby(self.method, problem.form) if own else ((), None)
        self.most = most if rounds is None else None  # rounds after which the standby takes over
        if self.climbing:
            costs = Costs(problem.form, budget.gap, ON_A_PATH)
            self.most = max(costs.rounds_in(SHARE * costs.interior), 1)
        self.warm_start = WarmStart()
        self.budget = budget
        self.known: list[tuple[float | None, Certificate]] = []  # the last two answers, with their strengths
        self.top: tuple[float, Certificate] | None = None  # a strength at which all is known beforehand
        self.between: dict[float, Interior] = {}  # of `InteriorPoint`: from where runs at other strengths begin

    def solve(self, strength: float | None = None) -> Solution:
        """The solution at the values that the Parameters have now; no status raises. What the time cuts short is an
        answer where it is certified all the same; it has not the bits of one that was not, and nothing goes on from it.

        ``strength`` says where that is on a path, from which the next start follows.
        """
        check_deadline()
        form, before = self.problem.form.frozen(), replace(self.warm_start)
        start = self._enclosed(strength) if isinstance(self.method, InteriorPoint) else self._start(form, strength)
        known = None if self.top is None or strength != self.top[0] else self.top[1]
        rounds = self.budget.rounds if self.most is None else self.most
        budget = replace(self.budget, rounds=rounds, start=start, warm_start=self.warm_start, known=known)
        compiler = self.problem._compiler  # pyright: ignore[reportPrivateUsage]
        solution = solve(form, self.method, replace(budget, seconds=left()), compiler)
        short = _falls_short(solution, self.most)
        cut = self.warm_start.cut or (self.budget.rounds is None and solution.status == "budget" and not short)
        if cut:
            self.warm_start = replace(before, cut=True)
        if cut and solution.status != "certified":
            raise OutOfTimeError
        if short:
            solution = self._taken_over(form, solution, before)
        if solution.status == "interrupted":  # what is half done is not gone on from
            self.warm_start = before
        elif not self.warm_start.cut:
            self.learn(strength, solution)
            if isinstance(self.method, InteriorPoint) and strength is not None and self.warm_start.state is not None:
                self.between[strength] = self.warm_start.state.early
        return solution

    def _taken_over(self, form: Form, solution: Solution, before: WarmStart) -> Solution:
        """The solution of the first on standby that reaches the gap, each from where the one before it ended."""
        for method in self.standby:
            start, other = (solution.certificate.w, solution.certificate.dual_point.flows), WarmStart()
            budget = replace(self.budget, start=start, warm_start=other, seconds=left())
            solution = solve(form, method, budget, self.problem._compiler)  # pyright: ignore[reportPrivateUsage]
            self.warm_start.interrupted |= other.interrupted
            if other.cut:
                self.warm_start = replace(before, cut=True)
            if other.cut or solution.status != "no_certificate":
                if self.climbing and isinstance(method, InteriorPoint) and not other.cut:
                    self.warm_start = other  # it goes on from here
                break
        return solution

    def along(self, values: Sequence[float], known: Container[float]) -> Iterator[float]:
        """The strengths of a path that are still to be solved, one after the other; ``values`` are all of them in
        falling order, and ``known`` those with an answer, also of this moment.

        They are taken in the order of the method; while it is climbing from the smallest up, and when `InteriorPoint`
        has taken over, in its order from there on."""
        rest = list(values)
        while self.climbing and rest:
            if (value := rest.pop()) not in known:
                yield value
        left = [value for value in values if self.handed is None or value >= self.handed]
        for value in (*(left[k] for k in order_of(self.method, len(left))), *values):  # a file's are not always good
            if value not in known:
                yield value

    @property
    def label(self) -> str:
        """The method, and what it was before."""
        return self.method.label if self.handed is None else f"{PrimalDual().label}, then {self.method.label}"

    def learn(self, strength: float | None, solution: Solution) -> None:
        """Take an answer for the last one, where it is near an optimum."""
        if solution.certificate.valid and solution.status not in RAISES:
            self.begin(strength, solution.certificate)
        if self.climbing and solution.method == InteriorPoint().name:  # it took over, and goes on to the top
            self.climbing, self.handed, self.method = False, strength, InteriorPoint()
            (self.standby, self.most) = standby(self.method, self.problem.form)
        if self.most is not None and solution.method == InteriorPoint().name:  # it took over, and may well again
            self.most = max(self.most // FEWER, 1)

    def begin(self, strength: float | None, certificate: Certificate) -> None:
        """Take what is known at a strength for the last answer."""
        self.known = [*self.known[-1:], (strength, certificate)]

    def view(self) -> LocalView:
        """A local view at the values that the Parameters have now."""
        return view_of(around(self.problem.form.frozen(), self.method)[0], self.budget)

    def _enclosed(self, strength: float | None) -> None:
        """Let the next run begin between the iterates at the nearest strengths on either side, or anew."""
        below = max((known for known in self.between if strength is not None and known < strength), default=None)
        above = min((known for known in self.between if strength is not None and known > strength), default=None)
        if strength is None or below is None or above is None or above > NEAR * below:
            self.warm_start.state = None
            return
        early = self.between[below].blend(self.between[above], (strength - below) / (above - below))
        self.warm_start.state = replace(self.warm_start.state, early=early)

    def _start(self, form: Form, strength: float | None) -> Start | None:
        if not self.known:
            return None
        at, last = self.known[-1]
        w, flows = last.w, last.dual_point.flows
        before, further = self.known[0]
        if strength is not None and at is not None and before is not None and before != at:
            t = (strength - at) / (at - before)
            w = w + t * (w - further.w)
            flows = tuple(u + t * (u - v) for u, v in zip(flows, further.dual_point.flows, strict=True))
        return w, tuple(edge.clip(u) for edge, u in zip(form.edges, flows, strict=True))


def refit(problem: Problem, method: AbstractMethod, gap: float, seed: int, usual: bool) -> Solution:
    """The solution from nothing at the values that the Parameters have now, also where the time is nearly up; of the
    usual method's standby where it falls short."""

    def solved(by: AbstractMethod, rounds: int | None, start: Solution | None) -> Solution:
        seconds = None if (rest := left()) is None else max(rest, GRACE)
        more: dict[str, Any] = {"seconds": seconds, "seed": seed, "start": start, "progress": False}
        return problem.solve(by, gap=gap, rounds=rounds, on_failure="return", **more)

    standbys, most = standby(method, problem.form) if usual else ((), None)
    solution = solved(method, most, None)
    for other in standbys:
        if not _falls_short(solution, most):
            break
        solution = solved(other, None, solution)
    return solution
