"""The course of a run: the points that an algorithm gave, as many as memory allows, and how the run ended."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import OutOfTimeError, alarm, left, within
from ..base.escaping import visible
from ..base.gate import carry_out
from ..certificate import common, lengths_of_losses
from ..errors import MethodError
from ..form import Form
from ..inputs import is_frame
from ..judging import given_point
from ..problem import Problem
from ..saving import of_problem
from ..terms import Array
from .algorithms import AbstractAlgorithm, Stream, doubt_of
from .instances import frozen_problem

NUMBERS = 20_000_000  # in all points that are kept
MOST, LEAST = 1024, 64  # points that are kept
FAR, FIRST = 1e12, 20  # units, and times the first points that are kept, beyond which a run has diverged
STILL, ROUNDING = 40, 1e-15  # rounds without a move beyond rounding after which a run has settled
LONGEST = 300  # letters of what an exception says
PRINTED = 200  # letters of what an algorithm prints that are kept
HANGS = 0.5  # seconds beyond the deadline after which a round is left alone


class PrintedText(io.TextIOBase):
    """The text that an algorithm prints: its beginning is kept."""

    def __init__(self) -> None:
        self.text, self.size = "", 0

    def write(self, text: str, /) -> int:
        self.text += text[: max(PRINTED - len(self.text), 0)]
        self.size += len(text)
        return len(text)


@dataclass
class Course:
    """The points of a run."""

    shape: tuple[int, int]
    unit: Array | float = 1.0  # (d,), in which each parameter is measured, see `unit_of`
    rounds: list[int] = field(default_factory=list)  # of the points that are kept
    points: list[Array] = field(default_factory=list)  # (n, d) each
    moves: list[float] = field(default_factory=list)  # ||w(k) - w(k-1)|| of every round but the first, in these units
    # the cosine of the angle between the last two moves, of every round but the first two: -1 where the run swings
    turns: list[float] = field(default_factory=list)
    total: int = 0
    ended: str = ""  # while it may go on; else settled, ended (it yielded no more), diverged, raised, time, interrupted
    why: str = ""  # in words, where that is no matter of course
    sent: tuple[int, int] | None = None
    sums: int = 0
    seconds: float = 0.0
    printed: PrintedText = field(default_factory=PrintedText)
    stride: int = 1
    last: Array = field(default_factory=lambda: np.zeros((0, 0)))
    move: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def finite(self) -> bool:
        return self.ended != "diverged" and self.total > 0

    def add(self, w: Array) -> None:
        """One more point."""
        self.total += 1
        if self.total > 1:
            move = (w - self.last) / self.unit
            size = float(np.linalg.norm(move))
            self.moves.append(size)
            if self.total > 2:
                both = size * float(np.linalg.norm(self.move))
                self.turns.append(float(np.sum(move * self.move)) / both if both > 0 else 0.0)
            self.move = move
        self.last = w
        if self.total % self.stride == 0:
            self.rounds.append(self.total)
            self.points.append(w)
            if len(self.points) > max(LEAST, min(MOST, NUMBERS // max(w.size, 1))):
                self.rounds, self.points = self.rounds[1::2], self.points[1::2]
                self.stride *= 2

    def still(self) -> bool:
        """True where the run has not moved for a while, but for rounding."""
        last = self.moves[-STILL:]
        return len(last) == STILL and max(last) <= ROUNDING * self.length(self.last)

    def near(self, share: float) -> list[Array]:
        """The points of the last fiftieth before a share of the rounds; the nearest one where none is kept there."""
        end = share * self.total
        chosen = [w for k, w in zip(self.rounds, self.points, strict=True) if 0.98 * end <= k <= end]
        return chosen or [self.points[int(np.argmin(np.abs(np.array(self.rounds) - end)))]]

    def at(self, share: float) -> Array:
        """The mean of the points near a share of the rounds, against noise."""
        return np.mean(self.near(share), axis=0)

    def move_since_half(self) -> float:
        """The way of the run since half of its rounds."""
        return self.length(self.at(1.0) - self.at(0.5))

    def length(self, w: Array) -> float:
        """The norm of parameters in units."""
        return float(np.linalg.norm(w / self.unit))

    def tail(self) -> Array:
        """The points of the last tenth that are kept, (k, n, d)."""
        return np.array([w for k, w in zip(self.rounds, self.points, strict=True) if k > 0.9 * self.total])


def unit_of(form: Form) -> Array:
    """The units in which parameters are measured, (d,): how far each moves the losses by about their size, so that
    neither the units of columns and targets nor an offset matter. Where a common model fits exactly, its own size."""
    with alarm():
        best, unit = common(form), lengths_of_losses(form)
    return np.where(best.exact & (np.abs(best.w) > ROUNDING * unit), np.abs(best.w), unit)


class CourseRunner:
    """Runs an algorithm round by round, whatever it does: what it raises or yields wrongly ends the course."""

    def __init__(self, algorithm: AbstractAlgorithm, problem: Problem, start: Array | None, seed: int) -> None:
        self.algorithm, self.problem = algorithm, problem
        self.course = Course((problem.form.space.n_observed, problem.form.d), unit_of(problem.form))
        with alarm():
            given = self._given = frozen_problem(problem)
            self._before = of_problem(problem.form)
        self._begin: Callable[[], Stream] = lambda: algorithm.run(given, start, seed)  # in no cycle with the stream
        self._stream: Stream | None = None
        self._early = 1.0  # the largest of the first points

    @property
    def changes_the_problem(self) -> bool:
        """True where the algorithm wrote into the problem that it was given."""
        with alarm():
            return of_problem(self._given.form) != self._before

    def until(self, rounds: int, deadline: float = np.inf, enough: Callable[[Array], bool] | None = None) -> Course:
        """The course after so many rounds in all, or to its end; ``enough`` is asked every hundredth round."""
        course, began = self.course, time.monotonic()
        try:
            # in a thread of its own: an algorithm that does not come back is left alone when the time is up
            rest = None if deadline == np.inf else deadline + HANGS - time.monotonic()
            with redirect_stdout(course.printed), np.errstate(all="ignore"), within(rest):
                carry_out(lambda: self._go(rounds, deadline, enough))
        except KeyboardInterrupt:
            course.ended, course.why = "interrupted", f"interrupted in round {course.total + 1}"
        except OutOfTimeError:
            course.ended, course.why = "time", f"the time was up in round {course.total + 1}, which had not ended"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is what the report has to say
            said = visible(f"{type(error).__name__}: {error}", LONGEST)
            course.ended, course.why = "raised", f"in round {course.total + 1} it raised {said}"
        if self._stream is not None:
            course.sent, course.sums = self._stream.sent(), self._stream.sums()
        course.seconds += time.monotonic() - began
        return course

    def _go(self, rounds: int, deadline: float, enough: Callable[[Array], bool] | None) -> None:
        course = self.course
        if self._stream is None:
            self._stream = self._begin()
        while course.total < rounds and not course.ended:
            given = next(self._stream.points, self)
            if given is self:
                course.ended = "ended"
                course.why = f"it yielded {course.total} points and no more{doubt_of(self.algorithm)}"
                break
            w = self._read(given)
            finite, size = bool(np.isfinite(w).all()), self._largest(w)
            if not finite or size > FAR * self._early:
                where = self.problem.form.labels[int(np.argmin(np.isfinite(w).all(axis=1)))]
                there = f"the node {where!r} has parameters that are {'NaN' if np.isnan(w).any() else 'infinite'}"
                what = "entries are beyond all scales" if finite else there
                course.ended, course.why = "diverged", f"in round {course.total + 1} {what}"
                break
            stride = course.stride
            course.add(w)
            if course.total <= FIRST:
                self._early = max(self._early, size)
            elif course.stride > stride:  # every other point is gone
                self._early = max([1.0, *map(self._largest, course.points[:FIRST])])
            if self.algorithm.count is None and (course.still() or (course.total % 100 == 0 and enough and enough(w))):
                course.ended = "settled"
            elif time.monotonic() > deadline:
                course.ended, course.why = "time", f"the time was up after {course.total} rounds"

    def _largest(self, w: Array) -> float:
        return float(np.abs(w / self.course.unit).max(initial=0.0))

    def _read(self, given: Any) -> Array:
        """The parameters of the user's nodes; a copy, as algorithms may go on writing into what they have yielded."""
        w = given[0] if isinstance(given, tuple) else given
        w = getattr(w, "coef", w)  # a Solution
        form = self.problem.form
        if is_frame(w) or isinstance(w, Mapping):
            w = given_point(w, "what it yielded", form).w
        w = checks.numbers(w, "what it yielded", f"an array of parameters, not {type(w).__name__}", MethodError)
        n, d = self.course.shape
        if w.shape == (n,) and d == 1:
            w = w[:, None]
        if w.shape not in ((n, d), form.shape):
            raise MethodError(f"it yielded parameters of shape {w.shape}; the problem has {n} nodes x {d} coordinates")
        return w[:n]


def run(
    algorithm: AbstractAlgorithm, problem: Problem, rounds: int, *, start: Array | None = None, seed: int = 0
) -> Course:
    """The course of a run of so many rounds. Ctrl-C and the end of the time are passed on: what a run that was cut
    short shows is no evidence."""
    rest = left()
    deadline = np.inf if rest is None else time.monotonic() + rest
    course = CourseRunner(algorithm, problem, start, seed).until(rounds, deadline)
    if course.ended == "interrupted":
        raise KeyboardInterrupt
    if course.ended == "time":
        raise OutOfTimeError
    return course
