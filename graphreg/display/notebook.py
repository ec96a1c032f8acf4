"""Whether there is a notebook, and a line of it that is written over."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class Line:
    """A file of which the last line is shown; a blank one leaves nothing in the page.

    What goes to stderr instead stays in notebooks that are stored, every state of it.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self.handle: Any = None
        self.shown = ""

    def write(self, text: str) -> int:
        line = text.strip()
        if line != self.shown:
            self.shown, content = line, {"text/plain": line}
            if self.handle is None:
                self.handle = import_module("IPython.display").display(content, raw=True, display_id=True)
            else:
                self.handle.update(content, raw=True)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""
