"""When a run screens, when it repairs, and when it polishes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EARLIEST, LATEST = 40, 400  # rounds before the first repair that a screen does not promise to succeed
WITHIN, MAYBE = 30.0, 2000.0  # screens over the target at which a repair will do, and at which it may


@dataclass
class Schedule:
    """When to screen and when to repair: when the screen, or the decay of the last two gaps, lets expect the target.

    A repaired gap g is of higher order in the distance from the optimum than a screen s: from the last repair the
    next gap is expected at g (s / s_last)^power, the power learnt from the last two. The decay is taken as geometric
    in the rounds.
    """

    target: float
    polishes: bool
    next_screen: int = 10
    next_repair: int = LATEST
    next_polish: int = 10
    round: int = 0  # of the last repair, with its gap and the screen of that moment
    gap: float = np.inf
    screen: float = np.inf
    power: float = 1.5

    def screen_now(self, k: int) -> bool:
        if k < self.next_screen:
            return False
        self.next_screen = k + max(10, k // 10)
        return True

    def polish_now(self, k: int) -> bool:
        if not self.polishes or k < self.next_polish:
            return False
        self.next_polish = max(20, k + k // 2)
        return True

    def repairs(self, k: int, screen: float) -> bool:
        if k >= self.next_repair:
            return True
        if not np.isfinite(self.gap):  # no repair yet: screens are 4 to 4000 times the gap
            return screen <= WITHIN * self.target or (k >= EARLIEST and screen <= MAYBE * self.target)
        return self.gap * (screen / max(self.screen, 1e-300)) ** self.power <= self.target

    def repaired(self, k: int, screen: float, gap: float) -> None:
        wait = 3.0 * k
        if 0.0 < self.target < gap < self.gap < np.inf:
            wait = (k - self.round) * np.log(gap / self.target) / np.log(self.gap / gap)
            if 0.0 < screen < self.screen:
                self.power = float(np.clip(np.log(self.gap / gap) / np.log(self.screen / screen), 1.0, 2.0))
        self.next_repair = k + int(np.clip(wait, 0.25 * k, 3.0 * k))
        self.round, self.gap, self.screen = k, gap, screen
