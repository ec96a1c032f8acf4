"""Random numbers that depend on the seed, on whose they are and on the round alone.

Each node, each cluster's coin and the network's coin have a stream of their own, so that the same seed gives the same
run on any engine; and what is drawn for a round is a function of that round (Philox is a counter-based generator:
Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011), so that a step can be repeated and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.random import Generator, Philox, SeedSequence

from ..base.clock import alarm
from ..checks import is_whole
from ..errors import MethodError
from ..terms import Array

KINDS = ("samples", "availability", "start", "cluster coin", "network coin")  # what is drawn, a family of streams each
OWN = 1 << 16  # families of other names begin here
AHEAD = 256  # numbers per stream that are drawn at once


class Streams:
    """One stream per index, for one kind of draws.

    Parameters
    ----------
    seed : int
    kind : str
        A name for what is drawn. Another name is another family of streams; the methods of the library have `KINDS`,
        of which "samples" draws their batches.
    index : sequence of int
        Whose streams: nodes by their number in the whole problem, clusters by that of their node.
    """

    def __init__(self, seed: int, kind: str, index: Sequence[int] | Array) -> None:
        what = KINDS.index(kind) if kind in KINDS else OWN + crc32(kind.encode())  # on any machine the same
        states = [SeedSequence(seed, spawn_key=(what, int(i))).generate_state(2, np.uint64) for i in index]
        self._keys = np.array(states, dtype=np.uint64).reshape(-1, 2)
        self._ahead: tuple[tuple[int, int], Array] | None = None

    def uniform(self, at: int, size: int) -> Array:
        """``size`` numbers in [0, 1) per stream for round ``at``, (len(index), size)."""
        if not is_whole(size) or size < 1:
            raise MethodError(f"uniform(round, size) of streams takes one number of draws, got size={size!r}")
        rounds = max(1, AHEAD // size)
        chunk, offset = divmod(at, rounds)
        if self._ahead is None or self._ahead[0] != (chunk, size):
            with alarm():  # of many streams
                drawn = [self.generator(k, chunk, size).random((rounds, size)) for k in range(len(self._keys))]
            self._ahead = (chunk, size), np.array(drawn).reshape(-1, rounds, size)
        return self._ahead[1][:, offset]

    def generator(self, k: int, chunk: int, size: int = 0) -> Generator:
        """A generator at the start of a part of stream k, for draws of other kinds (permutations, normal numbers)."""
        return Generator(Philox(key=self._keys[k], counter=[0, 0, size, chunk]))
