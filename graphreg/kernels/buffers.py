"""Arrays that are used again as soon as nobody holds them, so that rounds allocate nothing.

Whoever keeps an array of a state (an observer, a checkpoint, the state itself) keeps its numbers: what is handed out is
known to nobody else.
"""

from __future__ import annotations

import sys

import numpy as np

from ..terms import Array


def _holders(arrays: list[Array], k: int) -> int:
    return sys.getrefcount(arrays[k])


ALONE = _holders([np.empty(0)], 0)  # of an array that only its list holds; views of it hold it, too


class Buffers:
    """Flat arrays of floats."""

    def __init__(self) -> None:
        self._known: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """An array of this size that nobody holds, with any numbers in it."""
        known = self._known.setdefault(size, [])
        for k in range(len(known)):
            if _holders(known, k) == ALONE:
                return known[k]
        known.append(np.empty(size))
        return known[-1]

    def trim(self) -> None:
        """Give back what nobody holds, for what needs memory between two rounds."""
        for known in self._known.values():
            known[:] = [known[k] for k in range(len(known)) if _holders(known, k) != ALONE]
