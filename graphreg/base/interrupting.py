"""Ctrl-C while the program ``graphreg`` is still importing: one line and exit code 130, as later on.

Importing this does it, before all else is imported. A script or a notebook that imports graphreg is left alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A hook for ``sys.excepthook``."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write("Interrupted.\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)  # else the interpreter ends itself by the signal


# "-m": the package is imported on the way to ``python -m graphreg``; later this is a path.
if Path(sys.argv[0] if sys.argv else "").stem in ("graphreg", "-m") and sys.excepthook is sys.__excepthook__:
    sys.excepthook = end_quietly
