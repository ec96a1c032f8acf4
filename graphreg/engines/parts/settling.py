"""Where parts set up a run together: what is refused at one of them is raised at all, and nobody waits for ever."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import numpy as np

from ...errors import GraphregError
from ...terms import Array
from .directory import everyone
from .wire import Wire


@contextmanager
def settled(wire: Wire) -> Generator[Wire]:
    """A wire for what parts do together. What graphreg refuses at one of them, or at several, is raised at all when the
    context ends, once: the error of the first of them, which names it."""
    meeting, error = MeetingWire(wire), None
    try:
        yield meeting
        meeting.meet()
        return
    except _RefusedElsewhereError:
        pass
    except GraphregError as own:
        error = own
        meeting.meet(refused=True)
    if wire.count == 1 and error is not None:
        raise error
    raise _first(wire, error) from error


class MeetingWire:
    """A wire on which every call begins with the question whether a part has refused."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.me, self.count = wire, wire.me, wire.count

    def meet(self, refused: bool = False) -> None:
        """Raises at all parts that have not refused themselves."""
        if self.wire.largest(np.array([float(refused)]))[0] and not refused:
            raise _RefusedElsewhereError

    def swap(self, out: Mapping[int, Array], into: Mapping[int, Array]) -> None:
        self.meet()
        self.wire.swap(out, into)

    def largest(self, values: Array) -> Array:
        self.meet()
        return self.wire.largest(values)

    def total(self, values: Array) -> Array:
        self.meet()
        return self.wire.total(values)


class _RefusedElsewhereError(Exception):
    """Another part has refused."""


def _first(wire: Wire, error: GraphregError | None) -> GraphregError:
    """The error of the first part that has one, as all of them raise it."""
    content = b"" if error is None else pickle.dumps((type(error), str(error)))
    sent = np.frombuffer(content.ljust(-(-len(content) // 8) * 8, b"\0"), dtype=np.int64)
    got = everyone(wire, dict.fromkeys(range(wire.count), sent))
    first = next(k for k in range(wire.count) if len(got[k]))
    kind, text = pickle.loads(got[first].tobytes())
    found: GraphregError = kind(f"rank {first} of {wire.count}: {text}")
    found.shared = True
    return found
