"""The memory that may be used, and what would take more."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

GIB = 2.0**30
USABLE = 0.8  # of the memory of the machine
LIMIT: float | None = None  # bytes to be used instead
CGROUP = Path("/sys/fs/cgroup/memory.max")


def usable_memory() -> float:
    """The number of bytes that may be taken: of the machine, of the group of processes, and by ``ulimit -v``; inf
    where the system does not tell."""
    if LIMIT is not None:
        return LIMIT
    try:
        found = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # no such call on Windows
        return np.inf
    with suppress(OSError, ValueError):  # no group, or one without a limit ("max")
        found = min(found, float(CGROUP.read_text(encoding="ascii")))
    with suppress(ImportError):  # on Windows
        from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

        own, _ = getrlimit(RLIMIT_AS)
        found = found if own == RLIM_INFINITY else min(found, float(own))
    return USABLE * found if found > 0.0 else np.inf


def too_much(numbers: float, what: str) -> str:
    """The reason for which so many numbers are too many, in words; empty where there is room for them."""
    size, limit = 8.0 * numbers, usable_memory()
    return "" if size <= limit else f"{what} would take {size / GIB:.3g} GiB, and {limit / GIB:.3g} GiB may be used"
