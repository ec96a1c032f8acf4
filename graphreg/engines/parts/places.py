"""Folders of a run, which are tried before it begins: what is found at its end is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...errors import GraphregError


def writable(folder: Path, what: str, kind: type[GraphregError]) -> None:
    """Make a folder, and try to write to it; an error of a kind where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise kind(
            f"nothing can be written to the folder {folder} for the {what} ({error.strerror}); name another one"
        ) from error
