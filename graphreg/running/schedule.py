"""The rounds at which a run screens, repairs and polishes, and the end of what it will reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..checks import checked, count, inside, whole
from .trace import Record

EARLIEST, LATEST = 40, 400  # rounds before the first repair that a screen does not promise to succeed
WARM = 10  # the same from a start that was given: iterates near one optimum change less from round to round
# Screens over the target at which a repair will do, and at which it may: first repairs met it at up to 1000 times the
# target, and missed from 1700 times on.
WITHIN, MAYBE = 30.0, 1500.0
SURE = 3.0  # the same for gaps that are known: repairs met it at up to 6 times the target
FAR = 10.0  # the same from which on nothing is looked for: of 220 looks at up to 100 times the target 2 met it
DISTANT = 300.0  # times the target: gaps from which on no more than k/6 rounds go by between two looks
LEAST = 1e-17  # gaps below it, and negative ones, are rounding: no decay can be read off them


@dataclass
class Schedule:
    """A schedule of screens and repairs: a repair is due when the screen, or the decay of the last two gaps, lets
    expect the target.

    A repaired gap g is of higher order in the distance from the optimum than a screen s: from the last repair the
    next gap is expected at g (s / s_last)^power, the power learnt from the last two. The decay is taken as geometric
    in the rounds.
    """

    target: float
    polishes: bool
    every: int = checked(count, 10)  # rounds between two screens, at least
    earliest: int = checked(whole(0), EARLIEST)  # rounds before a repair that may succeed
    next_screen: int = checked(whole(0), 0)
    next_repair: int = checked(whole(0), LATEST)
    next_polish: int = checked(whole(0), 10)
    round: int = checked(whole(0), 0)  # of the last repair, with its gap and the screen of that moment
    gap: float = checked(inside("[0, inf]"), np.inf)
    screen: float = checked(inside("[0, inf]"), np.inf)
    power: float = checked(inside("[1, 2]"), 1.5)
    screened: tuple[int, float] = (0, np.inf)  # the round of the last screen, and what it said
    pace: float = checked(inside("[0, inf)"), 0.0)  # by which log screens fell per round, between the last two
    looked: tuple[int, float] = (0, np.inf)  # the round of the last look, and the gap that it saw
    next_proof: int = checked(whole(0), 0)  # of a gap that a look saw

    def with_learnt_gaps(self, last: Schedule) -> Schedule:
        """The schedule with what the last repair at a neighbouring strength taught: which screen goes with which
        gap."""
        if not 0.0 < last.gap < np.inf or not 0.0 < last.screen < np.inf:
            return self
        return replace(self, gap=last.gap, screen=last.screen, power=last.power)

    def screen_now(self, k: int) -> bool:
        """True where round k is screened: at least every k/2 rounds, at most every k/10, and between these half way to
        where the decay of the last two screens lets one expect a repair."""
        if k < self.next_round():
            return False
        self.next_screen = k + max(self.every, k // 10)
        return True

    def next_round(self) -> int:
        """The first that is screened."""
        return max(self.next_screen, self.every)

    def note_screen(self, k: int, screen: float) -> None:
        """Take note of a screen; negative ones are rounding."""
        screen = _size(screen)
        self.pace, self.screened = _pace(self.screened, k, screen), (k, screen)
        self._schedule_screen(k, screen, self._promising())

    def note_bound(self, k: int, gap: float) -> None:
        """Take note of a look; the next is half way to where the target is expected, and soon where that is near."""
        gap = _size(gap)
        self.pace, self.looked = _pace(self.looked, k, gap), (k, gap)
        self._schedule_screen(k, gap, self.target, k if gap > DISTANT * self.target else k // 6)

    def _schedule_screen(self, k: int, screen: float, wanted: float, most: int | None = None) -> None:
        """Set the next screen half way to where that wanted is expected, or ``most`` rounds later (k/2)."""
        if self.every > 1 and self.pace > 0.0 and 0.0 < wanted < screen:
            left = float(np.log(screen / wanted)) / self.pace
            most = k // 2 if most is None else most
            self.next_screen = k + int(np.clip(left / 2, max(self.every, k // 10), max(self.every, most)))

    def _promising(self) -> float:
        """The screen at which a repair is worth its cost."""
        if not np.isfinite(self.gap):
            return WITHIN * self.target
        return self.screen * (self.target / self.gap) ** (1.0 / self.power)

    def polish_now(self, k: int) -> bool:
        if not self.polishes or k < self.next_polish:
            return False
        self.next_polish = max(20, k + k // 2)
        return True

    def worth_a_repair(self, k: int, screen: float, known: bool = False) -> bool:
        """True where round k is worth a repair, by a screen, or by a gap that is ``known``."""
        if k >= self.next_repair:
            return True
        if known and not np.isfinite(self.gap):
            return screen <= SURE * self.target
        if not np.isfinite(self.gap):  # no repair yet: screens are 4 to 4000 times the gap
            return screen <= self._promising() or (k >= self.earliest and screen <= MAYBE * self.target)
        return screen <= self._promising()

    def note_repair(self, k: int, screen: float, gap: float) -> None:
        """Take note of a repair, its screen and its gap; P - Q may be negative where rounding decides."""
        screen, gap = _size(screen), max(_size(gap), LEAST)
        wait = 3.0 * k
        if 0.0 < self.target < gap < self.gap < np.inf:
            wait = (k - self.round) * np.log(gap / self.target) / np.log(self.gap / gap)
            if 0.0 < screen < self.screen:
                self.power = float(np.clip(np.log(self.gap / gap) / np.log(self.screen / screen), 1.0, 2.0))
        self.next_repair = k + int(np.clip(wait, 0.25 * k, 3.0 * k))
        self.round, self.gap, self.screen = k, gap, screen
        self._schedule_screen(k, screen, self._promising())  # by what the repair has taught

    def worth_a_proof(self, k: int, gap: float) -> bool:
        """True where a look at a gap is worth a proof."""
        return gap <= self.target and k >= self.next_proof

    def note_proof(self, k: int) -> None:
        """Take note of a proof that missed the target by what it costs: more rounds are to make room for that."""
        self.next_proof = k + max(self.every, k // 2)


def _pace(before: tuple[int, float], k: int, now: float) -> float:
    """The amount by which logarithms fell per round since; 0 where they did not."""
    at, last = before
    return float(np.log(last / now)) / (k - at) if 0.0 < now < last < np.inf and k > at else 0.0


def _size(x: float) -> float:
    """|x|; infinite where it is not a number."""
    return np.inf if np.isnan(x) else abs(float(x))


# ---- the end of what cannot reach its optimum -----------------------------------------------------------------------
STILL, FEWEST = 1e-12, 500  # relative changes that are rounding; rounds after which they are believed
DRAWN, BETTER = 10_000, 0.99  # the same where rounds are drawn: by less than 1 % better in three quarters of all rounds
ENOUGH = 4  # screens in these quarters, at least


def stalled(records: Sequence[Record], k: int, drawn: bool) -> bool:
    """True where the last three quarters of k rounds, as they were screened, changed nothing; or, where rounds are
    ``drawn`` at random and the point keeps moving, made nothing better."""
    screens = [(each.round, each.relative_gap, each.primal) for each in records if not each.certified]
    early = [gap for round_, gap, _ in screens if round_ <= k / 4]
    late = np.array([(gap, primal) for round_, gap, primal in screens if round_ > k / 4])
    if not early or len(late) < ENOUGH or not np.isfinite(late).all():
        return False
    if drawn:
        return k >= DRAWN and bool(late[:, 0].min() > BETTER * min(early))
    return k >= FEWEST and bool((np.ptp(late, axis=0) <= STILL * np.abs(late).max(axis=0)).all())
