"""The memory that a process holds, and has held at most."""

from __future__ import annotations

import resource
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak() -> float:
    """MiB. Of Linux its own word for it: what `getrusage` says there begins with what the process that started this one
    had used by then."""
    found = _said("VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if found is None else found


def held() -> float:
    """MiB at this moment; where the system does not say, what was held at most."""
    found = _said("VmRSS:")
    return peak() if found is None else found


def peak_from_now() -> None:
    """Let `peak` forget what was held before, where the system can."""
    if CLEAR.exists():
        CLEAR.write_text("5")


def _said(name: str) -> float | None:
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)
