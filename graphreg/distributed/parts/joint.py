"""A run in which every part has built the problem of its own nodes, and nobody has the whole.

All parts do the same in the same order: rounds, looks, proofs. What decides (gaps, the clock) is put together from all
of them, so that all decide alike.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...base.clock import progress_bar
from ...certificate import SpotChecks, common_by_sums, relative
from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration
from ...network import LocalView
from ...running import Budget, Record, Schedule, Trace
from ...terms import Array
from .bounds import PartBounds
from .config import share_of_border, warn_of_border
from .engine import PartEngine
from .keeping import JointSnapshot, JointStore, LocalSolution, Sent
from .local import local_part
from .lower import JointBound
from .part import Part
from .wire import Wire, joint_wire


@dataclass
class JointRun:
    """A run on one part."""

    method: AbstractIteration
    budget: Budget
    view: LocalView
    engine: PartEngine
    bounds: PartBounds
    floor: float
    store: JointStore | None = None
    stored: JointSnapshot | None = None  # from which it goes on
    best: tuple[float, float] = (-np.inf, np.inf)
    trace: Trace = field(default_factory=Trace)
    began: float = field(default_factory=lambda: time.perf_counter())  # noqa: PLW0108 - the clock of the moment

    def run(self, v: Array) -> tuple[str, Array, int]:
        """The reason of its end, the parameters (n, d) of the best upper bound, and how many rounds there were."""
        budget, method, form = self.budget, self.method, self.view.form
        most = method.most_rounds if budget.rounds is None else budget.rounds
        schedule = Schedule(budget.gap, polishes=False, every=method.every)
        stored = self.stored
        if stored is None:
            start = (np.tile(v, (form.n, 1)), None) if method.centres() else None
            state, k, ended, w = method.init(self.view, start), 0, "", np.zeros(form.shape)
        else:
            state, k, w, schedule = stored.state, stored.round, stored.w, replace(stored.schedule, target=budget.gap)
            self.restore(stored)
            ended = "gap" if self.gap() <= budget.gap else ""
        kept = (k, self.elapsed())
        how = {"total": budget.rounds, "desc": method.name, "unit": " rounds", "delay": 1.0}
        shown = k
        with progress_bar(budget.progress if self.bounds.wire.me == 0 else False, initial=k, **how) as tick:
            while not ended:
                last = k >= most
                if not last:
                    state, done = method.steps(state, self._free(k, kept[0], min(schedule.next_round(), most)))
                    k += done
                    last = k >= most
                if last or schedule.screen_now(k):
                    ended, w = self._checked(state, k, schedule, w, last)
                    tick(k - shown, partial(self.trace.reached, budget.gap))
                    shown = k
                if self.store is not None and self._due(k, kept, bool(ended), shown == k):
                    sent = [(part, *each) for part, each in self.engine.crossed.items()]
                    crossed = np.array(sent, dtype=np.int64).reshape(-1, 3)
                    best, records = np.array(self.best), list(self.trace.records)
                    self.store.keep(JointSnapshot(state, schedule, records, best, w, crossed, k, self.elapsed()))
                    kept = k, self.elapsed()
        return ended, w, k

    def _free(self, k: int, kept: int, until: int) -> int:
        """The number of rounds that may follow round k before one is looked at or, after round ``kept``, kept."""
        asked = self.budget.checkpoint
        if asked is not None and asked.rounds is not None:
            until = min(until, kept + asked.rounds)
        return max(until - k, 1)

    def _due(self, k: int, kept: tuple[int, float], ended: bool, looked: bool) -> bool:
        """True where round k is to be kept; clocks are compared after looks alone, at which all parts wait."""
        asked = self.budget.checkpoint
        assert asked is not None
        many = asked.rounds is not None and k - kept[0] >= asked.rounds
        long = looked and asked.seconds is not None and self._latest() - kept[1] >= asked.seconds
        return ended or many or long

    def restore(self, stored: JointSnapshot) -> None:
        """Go on from there."""
        self.best = float(stored.best[0]), float(stored.best[1])
        self.trace.records[:] = stored.records
        self.engine.crossed = {part: (messages, numbers) for part, messages, numbers in stored.crossed.tolist()}
        self.began -= stored.seconds

    def _checked(self, state: object, k: int, schedule: Schedule, w: Array, last: bool) -> tuple[str, Array]:
        """The reason for which the run ends after round k, empty where it goes on; and the best parameters."""
        at, flows, prices = self.method.point(state)
        if flows is None:
            raise MethodError(f"{self.method.name} has no flows, from which a certificate by parts is made")
        at = self.engine.exchange(self.bounds.feasible(at), purpose="certificate")
        cheap = self.bounds.cheap_bound(at, flows, prices)
        gap = relative(cheap.gap, cheap.primal, cheap.primal, self.floor)
        self._note(Record(k, self.elapsed(), gap, False, cheap.primal))
        schedule.note_bound(k, gap)
        over = self.budget.seconds is not None and self._latest() > self.budget.seconds
        if schedule.worth_a_proof(k, gap) or last or over:
            w = self._proved(cheap, k, w)
            if self.gap() <= self.budget.gap:
                return "gap", w
            schedule.note_proof(k)
        return ("budget" if last or over else ""), w

    def _proved(self, cheap: JointBound, k: int, w: Array) -> Array:
        low, high = self.bounds.prove(cheap)
        w = cheap.w if high < self.best[1] else w
        self.best = max(low, self.best[0]), min(high, self.best[1])
        self._note(Record(k, self.elapsed(), self.gap(), True, self.best[1], self.best[0]))
        return w

    def gap(self) -> float:
        """The relative gap that is proved."""
        low, high = self.best
        return relative(high - low, high, low, self.floor) if np.isfinite(high - low) else np.inf

    def _note(self, record: Record) -> None:
        self.trace.records.append(record)
        if self.budget.callback is not None:
            self.budget.callback(record)

    def elapsed(self) -> float:
        """Seconds, those of the calls before included."""
        return time.perf_counter() - self.began

    def _latest(self) -> float:
        """The latest of the clocks of all parts."""
        return float(self.bounds.wire.largest(np.array([self.elapsed()]))[0])


def solve_jointly(
    form: Form, own: Collection[Hashable], method: AbstractIteration, budget: Budget, wire: Wire
) -> LocalSolution:
    """The answer at the own nodes of a part, with the bounds of the whole problem."""
    with joint_wire(wire) as meeting:
        part, owner = local_part(form, own, meeting)
    return solve_part(part, owner, method, budget, wire)


def solve_part(part: Part, owner: Array, method: AbstractIteration, budget: Budget, wire: Wire) -> LocalSolution:
    """The solution of a part that is known; ``owner`` says to which part each node of its form belongs."""
    asked = budget.checkpoint
    with joint_wire(wire) as meeting:
        engine = PartEngine(part, owner, wire)
        bounds = PartBounds(engine, owner)
        view = LocalView(part.form, engine, budget.seed or 0, part.whole)
        store = None if asked is None else JointStore(asked.file, part, method, view.seed, wire)
        stored = None if store is None else store.begun(view, meeting)
        share = float(meeting.largest(np.array([share_of_border(part)]))[0])
    if wire.me == 0:
        warn_of_border(share, part.whole.n)
    best = common_by_sums(part.form, engine.reduce)
    run = JointRun(method, budget, view, engine, bounds, best.floor, store, stored)
    with np.errstate(all="ignore"):  # points far out, and bounds that say so
        ended, w, rounds = run.run(best.w)
    mine = np.flatnonzero(part.whole.own)
    labels = tuple(part.form.labels[i] for i in mine.tolist())
    return LocalSolution(
        labels,
        tuple(part.form.space.names),
        w[mine],
        "certified" if ended == "gap" else "budget" if np.isfinite(run.gap()) else "no_certificate",
        *run.best,
        run.gap(),
        rounds,
        run.elapsed(),
        run.trace,
        Sent.of(engine, wire),
        wire.me,
        wire.count,
        part.whole.n,
        run.bounds.lower.why if not np.isfinite(run.best[0]) else "",
        SpotChecks(part.form).assumed,
    )
