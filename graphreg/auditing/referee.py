"""A referee for algorithms: runs one on the problem and on others of the same terms, and says what it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import OutOfTimeError, afresh, alarm, at_least, check_deadline, stages, within
from ..base.escaping import visible
from ..errors import GraphregError
from ..problem import Problem, problem_of
from .algorithms import AbstractAlgorithm, Iterates, algorithm_of
from .behaviour import Repeats, repeats
from .course import Course, CourseRunner, run
from .evidence import Evidence
from .instances import frozen_problem, in_even_units, in_finer_units, irregular, is_irregular
from .limits import Limit, Optimum, limit_of
from .naming import Examined, names
from .report import IN_THE_LIMIT, RIGHT, Audit

CLAIMS = ("limit", "local", "prompt", "repeatable", "steps")
ROUNDS, MORE = 3000, 12000  # where the user sets no number; the latter where the former leave it open
FINER, NEARER = 1024.0, 0.1  # how many times as large parameters are, and the share of a distance that is left then
SEEDS = 5
ARRIVED = 1e-8  # a distance at which a run need not go on
GRID = 200  # distances that are kept
TIME = "the time was up"


@checks.named
def audit(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int | None = None,
    seed: int = 0,
    seconds: float = 60.0,
    claims: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Audit:
    """Audit an algorithm: where it leads, whether its nodes hear only of their neighbours, and what it does instead.

    Points are judged against the certified optimum w*. Where an algorithm leads elsewhere, the report names what it
    has minimised: the model with one factor changed that its limit balances,
    ``sum_i grad f_i(w_i) + t (K'u)_i = 0`` with u the forces of the edges, or the modified problem whose optimum is
    nearest. Other problems of the same terms (targets, graph, order, losses and strengths changed) show what the one
    given hides. Of rows that are no edges (see `graphreg.w`) all whose ends are in one are neighbours; what takes edges
    or samples at nodes is skipped there, with the reason.

    Parameters
    ----------
    problem : Problem
    algorithm : callable, AbstractIteration or iterable
        A function ``algorithm(problem, start=None, seed=None)`` that yields the parameters (n, d) after each round, or
        (parameters, flows); a function ``step(state, node, messages) -> (state, messages)``, run node by node (see
        `Node`); an iteration such as ``gr.PrimalDual()``; or an iterable of parameters, of which the limit alone can be
        judged: a list is read to its end, a generator until it settles.
    rounds : int, optional
        Of the main run; by default 3,000, and up to 12,000 where these leave it open, and all points of a list.
    seed : int
        Of the algorithm and of the referee's instances.
    seconds : float
        A budget of time for everything; what was not tried is listed.
    claims : sequence of {"limit", "local", "prompt", "repeatable", "steps"}, optional
        What the algorithm is meant to be: right in the limit; local, no node knows of another before messages between
        neighbours can have come; prompt, no message is held back; repeatable, the same seed gives the same run;
        steps, these follow the problem, so that steeper data and a stronger coupling do no harm. All of them by default
        (but what looks like a server or like exchanges within a round is not held to be local). Only what is claimed
        can fail, and a run that raises or gives no points; of the rest what is found is a remark.
    progress : bool, optional
        Whether to show on stderr, after a second, what is being tried; by default where that is a terminal.

    Returns
    -------
    Audit
        ``print`` it; ``.ok``, ``.verdict``, ``.name``, ``.findings``, ``.table()``, ``.plot()``, ``.report(file)``, a
        page. After Ctrl-C what was found until then.

    Raises
    ------
    ModelError, MethodError
        For what is no problem, no algorithm, no number or no claim.

    Examples
    --------
    >>> gr.audit(problem, gr.PrimalDual()).verdict
    'right'
    """
    problem_of(problem, "audit")
    (checks.count | None)(rounds, "rounds")
    checks.seed(seed, "seed")
    checks.seconds(seconds, "seconds")
    (checks.switch | None)(progress, "progress")
    chosen = algorithm_of(algorithm)
    chosen.check(problem)
    claimed = None if claims is None else tuple(_claims(claims))
    referee = _Referee(problem, chosen, rounds, seed, seconds, claimed)
    with within(seconds), stages("audit", progress) as referee.at:
        referee.go()
        return referee.report(algorithm)


def _claims(given: Any) -> list[str]:
    """The claims that were given; anything else is refused."""
    wanted = f"a list of some of {', '.join(map(repr, CLAIMS))}"
    checks.Check(wanted, lambda value: not isinstance(value, str))(given, "claims")
    return [checks.one_of(*CLAIMS)(each, "each of claims") for each in checks.sequence(given, "claims", wanted)]


class _Referee:
    """One audit: the main run, then the evidence, then the verdict."""

    def __init__(
        self, problem: Problem, algorithm: AbstractAlgorithm, rounds: int | None, seed: int, seconds: float, claims: Any
    ) -> None:
        self.problem, self.algorithm, self.rounds, self.seed = frozen_problem(problem), algorithm, rounds, seed
        self.kind = algorithm.kind
        self.began = time.monotonic()
        self.deadline = self.began + seconds
        self.evidence = Evidence(claims, CLAIMS)
        self.course = Course((self.problem.form.space.n_observed, self.problem.form.d))
        self.optimum: Optimum | None = None
        self.limit: Limit | None = None
        self.repeats = Repeats(True, True)
        self.broken_off = False
        self.at: Callable[[str], None] = lambda stage: None

    def go(self) -> None:
        try:
            self.at("the optimum")
            self.optimum = Optimum.of(self.problem, max(0.5 * (self.deadline - time.monotonic()), 1e-3))
            self.at("the main run")
            self._main_run(self.optimum)
            if self.course.ended == "interrupted":
                raise KeyboardInterrupt
            self._evidence(self.optimum)
        except (KeyboardInterrupt, OutOfTimeError) as error:
            self.broken_off = isinstance(error, KeyboardInterrupt)
            with suppress(OutOfTimeError), afresh():
                if self.optimum is not None and self.limit is None:
                    self.limit = limit_of(self.course, self.optimum)
            if self.limit is not None and not any(each.evidence == "limit" for each in self.evidence.found):
                self.evidence.limit(self.limit)
            why = "interrupted by Ctrl-C: what stands here was found until then" if self.broken_off else TIME
            self.evidence.skip("the rest", why)

    # ---- the main run ------------------------------------------------------------------------------------------------
    def _main_run(self, optimum: Optimum) -> None:
        follower = CourseRunner(self.algorithm, self.problem, None, self.seed)
        self.course = follower.course
        half = self.began + 0.6 * (self.deadline - self.began)

        def arrived(w: Any) -> bool:  # asked every hundredth round
            self.at(f"the main run, round {self.course.total}")
            return optimum.distance(w) < ARRIVED

        count = self.algorithm.count
        follower.until(self.rounds or (ROUNDS if count is None else count + 1), half, arrived)
        with alarm():
            self.limit = limit_of(self.course, optimum)
        open_yet = self.rounds is None and not self.course.ended and self.limit.kind != "right"
        if open_yet and self.course.move_since_half() > 1e-9 * optimum.size:
            follower.until(MORE, half, arrived)
            with alarm():
                self.limit = limit_of(self.course, optimum)
        self._remarks(follower.changes_the_problem)

    def _remarks(self, changes: bool) -> None:
        course = self.course
        if course.ended == "raised":
            self.evidence.add("run", "fails", course.why)
        if course.ended in ("ended", "time"):
            self.evidence.add("run", "remark", course.why)
        count = self.algorithm.count
        if not self.algorithm.repeatable and course.ended in ("settled", "", "time") and course.total != count:
            points = "points were read" if count is None else f"of the {count} points were read"
            self.evidence.skip("run", f"what comes later: {course.total} {points}")
        if changes:
            self.evidence.add("run", "remark", "it writes into the problem; every run was given one of its own")
        if course.printed.size:
            text = visible(course.printed.text.strip())
            self.evidence.add("run", "remark", f"it prints {course.printed.size} letters: {text}")

    # ---- the evidence ------------------------------------------------------------------------------------------------
    def _evidence(self, optimum: Optimum) -> None:
        if not self.algorithm.repeatable:
            self._judged(optimum, self.course, self.limit, noisy=False)
            self.evidence.skip("the rest", POINTS)
            return
        if not self.course.total:
            if self.course.ended != "raised":
                what, outcome = ("the rest", "not tried") if self.course.ended == "time" else ("limit", "fails")
                self.evidence.add(what, outcome, f"it gave no points: {self.course.why}")
            return
        self._try("repetition", self._repeated)
        if not self.repeats.reads and (any(self.course.moves) or (self.limit and self.limit.kind == RIGHT)):
            self.algorithm = Iterates(self.course.points, self.algorithm.name)  # that cannot be run on other problems
            self._judged(optimum, self.course, self.limit, noisy=False)
            self.evidence.skip("the rest", UNREAD)
            return
        noisy = not (self.repeats.same_seed and self.repeats.other_seed)
        if noisy:
            self.limit = self._over_seeds(optimum)
            self.evidence.skip("order", "runs differ")
        if self.limit is not None and self.limit.kind in ("wrong", "never settles"):
            self._try("limit", self._in_even_units)
            self._try("digits", self._in_finer_units)
        if self.repeats.same_seed:
            self._try("locality", lambda: self._locality(noisy))
        else:
            said = "as runs with the same seed differ, nothing can be told from their differences"
            self.evidence.skip("locality", said)
        self._judged(optimum, self.course, self.limit, noisy)
        if not noisy:
            settled = self.limit is None or self.limit.kind != "never settles"
            own = self.algorithm, self.problem, self.course, self.seed
            self._try("order", lambda: self.evidence.order(*own, settled))
        if self.limit is not None and self.limit.kind in (RIGHT, IN_THE_LIMIT):
            self._try("steps", lambda: self.evidence.stress(self.algorithm, self.problem, self.seed))
            form = self.problem.form
            if not form.beside and all(block.X is not None for block in form.samples):
                self._try("steep data", lambda: self.evidence.steep_data(self.algorithm, self.problem, self.seed))
            if not is_irregular(self.problem) and not noisy:
                self._try("limit", self._on_irregular)

    def _repeated(self) -> None:
        self.repeats = repeats(self.algorithm, self.problem, self.seed)
        self.evidence.repetition(self.repeats)

    def _locality(self, noisy: bool) -> None:
        if any(each.evidence == "digits" for each in self.evidence.found):
            self.evidence.skip("locality", "what rounding takes from small changes cannot be told from what is late")
            return
        wrong = self.limit is not None and self.limit.kind == "wrong"
        self.evidence.at = self.at
        self.evidence.locality(self.algorithm, self.problem, self.seed, self.course.sums, noisy, wrong)

    def _over_seeds(self, optimum: Optimum) -> Limit:
        """The limit over several seeds, of a run that differs with them."""
        others: list[Course] = []
        with suppress(OutOfTimeError):
            for k in range(1, SEEDS):  # those that are done when the time is up count
                found = run(self.algorithm, self.problem, self.course.total, seed=self.seed + k)
                others.append(found)
        return limit_of(self.course, optimum, tuple(others))

    def _in_even_units(self) -> None:
        """A second run in even units: with uneven ones it may be so slow, or lose so many digits, that it seems
        wrong."""
        problem, seen = in_even_units(self.problem), self.limit
        if problem is None or seen is None:
            return
        there = limit_of(run(self.algorithm, problem, self.rounds or ROUNDS, seed=self.seed), Optimum.of(problem))
        if there.kind in (RIGHT, IN_THE_LIMIT):
            why = f"{seen.why}; with features in even units it gets there, so that it may be slow here, or rounded"
            self.limit = replace(seen, kind="undecided", why=why)

    def _in_finer_units(self) -> None:
        """A run where parameters are larger and all else is the same: there what has a size of its own is small."""
        problem, seen = in_finer_units(self.problem, FINER), self.limit
        if problem is None or seen is None or not self.course.finite:
            return
        there = limit_of(run(self.algorithm, problem, self.course.total, seed=self.seed), Optimum.of(problem))
        if there.distance < NEARER * seen.distance:
            ends = (
                f"{seen.distance:.1e} away here, and {there.distance:.1e} where the optimum is {FINER:g} times as large"
            )
            why = "a grid that numbers are rounded to, a threshold or an offset does not follow the data"
            self.evidence.add("digits", "name", f"few digits, or a fixed size: {why}; it ends {ends}")

    def _judged(self, optimum: Optimum, course: Course, limit: Limit | None, noisy: bool, where: str = "") -> None:
        """The limit, with its names where it is wrong."""
        assert limit is not None
        self.evidence.limit(limit, where)
        if limit.kind in ("wrong", "never settles"):
            found = names(Examined(self.algorithm, self.seed, optimum, course, limit), noisy, self.repeats.same_seed)
            self._try("names", lambda: self.evidence.found.extend(found))

    def _on_irregular(self) -> None:
        """The limit where degrees, weights and counts differ, which they do not on the problem given."""
        problem = irregular(self.problem, np.random.default_rng(self.seed))
        optimum = Optimum.of(problem)
        course = run(self.algorithm, problem, self.rounds or ROUNDS, seed=self.seed)
        limit = limit_of(course, optimum)
        self._judged(optimum, course, limit, False, "with irregular degrees, weights and counts: ")
        if limit.kind in ("wrong", "never settles"):
            self.limit = limit

    def _try(self, evidence: str, each: Callable[[], None]) -> None:
        """One piece of evidence, where there is time for it; an instance that cannot be made or run is listed."""
        try:
            check_deadline()
            self.at(evidence)
            each()
        except OutOfTimeError:
            self.evidence.skip(evidence, TIME)
        except GraphregError as error:
            self.evidence.skip(evidence, visible(f"{type(error).__name__}: {error}", 200))

    # ---- the verdict -------------------------------------------------------------------------------------------------
    def report(self, given: Any) -> Audit:
        course, optimum = self.course, self.optimum
        grid = np.unique(np.geomspace(1, max(len(course.points), 1), GRID).astype(int) - 1)[: len(course.points)]
        known = optimum is not None and len(course.points) > 0
        distances, certificate = list[tuple[int, float]](), None
        with suppress(OutOfTimeError), at_least():
            if known and optimum and not self.broken_off:
                certificate = optimum.judged(course.last)
            for k in grid if known else ():
                check_deadline()
                distances.append((course.rounds[k], optimum.distance(course.points[k]) if optimum else np.inf))
        return Audit(
            algorithm=self.algorithm.name,
            kind=self.kind,
            verdict=self.evidence.verdict(self.limit, course.ended),
            findings=self.evidence.ordered(),
            claims=self.evidence.claims,
            rounds=course.total,
            distances=np.array(distances).reshape(-1, 2),
            measure="broken off before the optimum was known" if optimum is None else optimum.rests_on,
            radius=np.inf if optimum is None else optimum.radius,
            certificate=certificate,
            sent=course.sent,
            seed=self.seed,
            interrupted=self.broken_off,
            seconds=time.monotonic() - self.began,
            problem=self.problem,
            given=given,
        )


UNREAD = (
    "it does not read from `problem`, so that nothing else can be told of it: take data, graph and strengths from the "
    "argument, and not from outside"
)
POINTS = "an iterable cannot be run again, or on other problems; give a function algorithm(problem, start, seed)"
