"""The processes of a run, and those of them that are left."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator


def _processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of every process, but for the one that lists them."""
    with subprocess.Popen(["ps", "-eo", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True) as listing:
        rows = [line.split() for line in listing.communicate()[0].splitlines()]
    return {int(pid): (int(parent), state) for pid, parent, state in rows if int(pid) != listing.pid}


def descendants(parent: int) -> Iterator[int]:
    processes, found = _processes(), [parent]
    for above in found:
        below = [pid for pid, (mine, state) in processes.items() if mine == above and state[0] != "Z"]
        found += below
        yield from below


def left_of(family: list[int], until: float) -> list[int]:
    """Those that are still there, but for corpses that nobody has buried yet; waits for them to go."""
    while True:
        processes = _processes()
        left = [pid for pid in family if pid in processes and processes[pid][1][0] != "Z"]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)
