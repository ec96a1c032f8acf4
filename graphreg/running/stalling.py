"""When a method that cannot reach its optimum has come as far as it will."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .trace import Record

STILL, FEWEST = 1e-12, 500  # relative changes that are rounding; rounds after which they are believed
DRAWN, BETTER = 10_000, 0.99  # the same where rounds are drawn: by less than 1 % better in three quarters of all rounds
ENOUGH = 4  # screens in these quarters, at least


def stalled(records: Sequence[Record], k: int, drawn: bool) -> bool:
    """Whether the last three quarters of k rounds, as they were screened, changed nothing; or, where rounds are
    ``drawn`` at random and the point keeps moving, made nothing better."""
    screens = [(each.round, each.relative_gap, each.primal) for each in records if not each.certified]
    early = [gap for round_, gap, _ in screens if round_ <= k / 4]
    late = np.array([(gap, primal) for round_, gap, primal in screens if round_ > k / 4])
    if not early or len(late) < ENOUGH or not np.isfinite(late).all():
        return False
    if drawn:
        return k >= DRAWN and bool(late[:, 0].min() > BETTER * min(early))
    return k >= FEWEST and bool((np.ptp(late, axis=0) <= STILL * np.abs(late).max(axis=0)).all())
