"""The place of a file: what may lie there, how it is read, and how it is replaced as a whole.

A name in a folder that others can write to is not trusted: what is opened must be a regular file, and what is written
is a new file of a random name that then takes the place of the old one, with its mode. A link is followed once, to a
file that is there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CheckpointError, GraphregError
from .messages import shown

LONGEST = 200  # bytes of a name: those of the files beside it are longer
HEAD = 200  # bytes in which a file says what it is
UNFINISHED = ".writing"  # how the names end of files that are being written
CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))


def place_of(path: Any, what: str = "checkpoint", kind: type[GraphregError] = CheckpointError) -> Path:
    """The regular file, there or to be written, that a path means; ``what`` it is to hold.

    Raises
    ------
    GraphregError
        Of the ``kind``, for a name that no file can have, a folder, a device, a pipe, or a link to nothing; nothing has
        been opened.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise kind(f"the {what} is a file: give its path, got {shown(path)}")
    path = Path(os.fsdecode(path))
    name = f"the {what} {str(path)!r}"
    try:
        if "\0" in str(path) or len(os.fsencode(path.name)) > LONGEST:
            raise kind(f"{name} has a name that is too long or holds a NUL; name another file")
        real = Path(os.path.realpath(path))
        if path.is_symlink() and not real.exists():
            raise kind(f"{name} is a link to a file that does not exist; name the file itself")
        if real.is_dir():
            raise kind(f"{name} is a folder; name a file in it")
        if not real.parent.is_dir():
            raise kind(f"{name} is to lie in a folder that does not exist; create it")
        if real.exists() and not real.is_file():
            raise kind(f"{name} is a device, a pipe or a socket; name a file")
    except (OSError, UnicodeError) as error:
        raise kind(f"{name} cannot be looked at ({error}); name another file") from error
    return real


def own_place(path: Any, what: str, kind: type[GraphregError], mark: bytes) -> Path:
    """The place of a file of ours, where nothing lies yet, or another such file of ours: it has the ``mark`` within
    its first bytes."""
    place = place_of(path, what, kind)
    try:
        if place.exists():
            with os.fdopen(opened(place), "rb") as file:
                if mark not in file.read(HEAD):
                    said = f"is there, and no {what} of graphreg, or of another kind"
                    raise kind(f"{str(path)!r} {said}; name another file, or remove it")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "its folder is not writable")
    except OSError as error:
        raise unwritable(path, what, kind, error) from None
    return place


def put(place: Path, content: bytes, what: str, kind: type[GraphregError]) -> None:
    """Put a file in its place as a whole; an error of the ``kind`` where that fails."""
    try:
        with replacing(place) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(place, what, kind, error) from None


def unwritable(path: Any, what: str, kind: type[GraphregError], error: OSError) -> GraphregError:
    """The error where the system does not let a file be written."""
    why = error.strerror or error
    return kind(f"the {what} cannot be written to {str(path)!r}: {why}; name a file in a folder of yours, with room")


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A handle of a regular file that is no link; `OSError` for anything else."""
    handle = os.open(path, flags | CAREFULLY, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name!r} is no regular file")
    return handle


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file to be written that takes its place when it is whole and on the disk; until then what was there stays."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        found = path.lstat().st_mode
        mode = stat.S_IMODE(found) & 0o777 if stat.S_ISREG(found) else None
    except FileNotFoundError:
        mode = None
    try:
        with os.fdopen(opened(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode), "wb") as f:
            if mode is not None:
                with suppress(OSError, AttributeError):  # not every file system has modes
                    os.fchmod(f.fileno(), mode)
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """The folder's entry on the disk too, where the system can do that."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
