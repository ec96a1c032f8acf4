"""The lock of a file: one run at a time.

The system holds it (flock) for as long as the process lives, so that there is nothing to be taken for alive when its
owner is dead, and of two that take it over at once one gets it. Its file says who the owner is.
"""

from __future__ import annotations

import os
import platform
import re
import time
from contextlib import suppress
from pathlib import Path

from ...errors import CheckpointError
from ...files import opened, sweep

try:
    import fcntl
except ImportError:  # a system without flock: random names still keep two writers apart
    fcntl = None

LOOKS = re.compile(rb"(\d+ \S*)?")  # a lock: process and machine, or nothing where it is new or the disk is full
MOST = 200  # bytes of it
PATIENCE = 0.2  # seconds that an owner has to say who it is
_held: set[int] = set()


class Lock:
    """The lock of a file, held until `release`.

    Raises
    ------
    CheckpointError
        Where another run holds it, which is named, or where something else has the name of the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path.with_name(f".{path.name}.lock"), str(path)
        self.owner, self.handle = os.getpid(), -1
        if fcntl is None:
            return
        try:
            while self.handle < 0:
                self._take()
        except OSError as error:
            if os.path.lexists(self.path) or not path.exists():  # else a run that is finished can be read all the same
                raise CheckpointError(
                    f"the checkpoint {self.name!r} could not be locked: {error.strerror or error}; allow files beside "
                    f"it, remove {self.path.name!r} if it is no lock, or name another place"
                ) from error
        else:
            sweep(path)

    def _take(self) -> None:
        handle = opened(self.path, os.O_RDWR | os.O_CREAT)
        try:
            found = os.fstat(handle)
            if found.st_nlink > 1 or not LOOKS.fullmatch(os.pread(handle, MOST, 0)):
                raise OSError(f"{self.path.name!r} is no lock")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # pyright: ignore[reportOptionalMemberAccess]
            except BlockingIOError:
                raise self._taken(handle) from None
            except OSError:  # a file system without locks: random names still keep two writers apart
                pass
            if not self._there(handle):  # its last owner has removed it meanwhile
                os.close(handle)
                return
            with suppress(OSError):  # on a full disk it says nothing, and holds
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{self.owner} {platform.node()}".encode()[:MOST], 0)
        except BaseException:
            os.close(handle)
            raise
        self.handle = handle
        _held.add(handle)

    def _there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.lstat())
        except FileNotFoundError:
            return False

    def _taken(self, handle: int) -> CheckpointError:
        until = time.monotonic() + PATIENCE
        while not (said := os.pread(handle, MOST, 0).decode(errors="replace").split()) and time.monotonic() < until:
            time.sleep(PATIENCE / 20)
        pid = said[0] if said and said[0].isdigit() else ""
        mine = pid == str(self.owner) and said[1:] == platform.node().split()
        where = f" on {said[1]!r}" if pid and len(said) > 1 else ""
        who = "another run of this process" if mine else f"the process {pid or 'of another run'}{where}"
        return CheckpointError(
            f"the checkpoint {self.name!r} is in use by {who}; wait until that has ended, or name another file"
        )

    def release(self) -> None:
        """Let go of it; the file is gone. In a process that was forked from the owner nothing happens."""
        if self.handle >= 0 and self.owner == os.getpid():
            sweep(Path(self.name))
            with suppress(OSError):
                self.path.unlink()
            _held.discard(self.handle)
            os.close(self.handle)
        self.handle = -1


def _forget() -> None:
    """A forked process does not keep the locks of the one that it came from."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
