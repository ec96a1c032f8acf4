"""A file of arrays and one JSON header: a zip of .npy files (an .npz), without pickles, replaced as a whole; and the
lock that keeps it to one run at a time."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import time
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..base.files import UNFINISHED, opened, replacing
from ..errors import CheckpointError
from ..terms import Array
from .packing import extent, laid_out, layout, plain

try:
    import fcntl
except ImportError:  # a system without flock: random names still keep two writers apart
    fcntl = None

HEADER = "header.json"
DAMAGE = (OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
ONE, ALL = 1 << 26, 1 << 28  # bytes that a member and the whole file may have, whatever the problem is
SPARE = 1 << 12  # bytes of a member beside its numbers


@dataclass(frozen=True)
class Limits:
    """The limits, in bytes, of one member and of the whole file."""

    member: float = np.inf
    file: float = np.inf


UNLIMITED = Limits()


def write(path: Path, header: dict[str, Any], arrays: dict[str, Array], limits: Limits = UNLIMITED) -> None:
    """Write the file beside its place, flush it to the disk, and only then put it there: what was there stays valid.

    ``arrays`` are stored row by row; how they lay in memory goes into the header. What could not be read again for its
    size is not written.
    """
    strides = {name: stored for name, a in arrays.items() if (stored := layout(a)) is not None}
    text = json.dumps({**header, "arrays": list(arrays), "layouts": strides}, allow_nan=False)
    sizes = [len(text), *(extent(a.shape, a.strides, a.itemsize) + a.nbytes + SPARE for a in arrays.values())]
    if max(sizes) > limits.member or sum(sizes) > limits.file:
        raise CheckpointError(
            f"the file {str(path)!r} would have {sum(sizes)} bytes, {max(sizes)} of them in one piece, more than "
            "the problem can need; keep less in the state of the method"
        )
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.writestr(zipfile.ZipInfo(HEADER), text)
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
    except OSError as error:
        raise CheckpointError(
            f"the file {str(path)!r} could not be written: {error.strerror or error}; make room for it or allow "
            "it, or name another place"
        ) from error


def read(path: Path, limits: Limits = UNLIMITED) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; every byte is checked against the sums that the zip keeps. `CheckpointError` on damage.

    Nothing is read before its size is known to be within the limits; nothing was compressed, so nothing is inflated.
    """
    try:
        with os.fdopen(opened(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limits.file:
                raise ValueError(f"it has {size} bytes, more than the problem can need")
            with zipfile.ZipFile(file) as archive:
                if HEADER not in archive.namelist():
                    raise CheckpointError(f"{str(path)!r} is no file of graphreg; name another file")
                return _content(archive, size, limits)
    except CheckpointError:
        raise
    except (*DAMAGE, MemoryError) as error:
        raise CheckpointError(
            f"{str(path)!r} is a damaged file of graphreg, or none ({error}); name another file, or remove "
            "this one if it is graphreg's own"
        ) from error


def header_of(path: Path) -> Any:
    """The header alone; None where there is none that could be one."""
    try:
        with os.fdopen(opened(path), "rb") as file, zipfile.ZipFile(file) as archive:
            member = archive.getinfo(HEADER)
            stored = member.compress_type == zipfile.ZIP_STORED and member.file_size <= ONE
            return json.loads(archive.read(HEADER), parse_constant=_no_number) if stored else None
    except (*DAMAGE, RecursionError, MemoryError):
        return None


def _content(archive: zipfile.ZipFile, size: int, limits: Limits) -> tuple[dict[str, Any], dict[str, Array]]:
    members = archive.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename!r} is compressed")
        if member.file_size > limits.member:
            raise ValueError(f"{member.filename!r} has {member.file_size} bytes, more than the problem can need")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its parts lie upon one another")
    header = json.loads(archive.read(HEADER), parse_constant=_no_number)
    names, layouts = header["arrays"], header["layouts"]
    # damage to its directory can hide a whole member of a zip
    if [member.filename for member in members] != [HEADER, *(f"{name}.npy" for name in names)]:
        raise ValueError("arrays are missing, or there are others")
    if len(set(names)) < len(names) or not isinstance(layouts, Mapping) or not set(layouts) <= set(names):
        raise ValueError("'arrays' or 'layouts' of its header make no sense")
    return header, {name: _array(archive.read(f"{name}.npy"), name, layouts.get(name), limits) for name in names}


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} in its header")


def _array(content: bytes, name: str, strides: Any, limits: Limits) -> Array:
    """An array of plain numbers that fills its member."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    held = len(content) - file.tell()
    if plain(dtype).itemsize * int(np.prod(shape, dtype=object)) != held:
        raise ValueError(f"the array {name} is not {held} bytes of numbers")
    file.seek(0)
    return laid_out(np.lib.format.read_array(file, allow_pickle=False), strides, min(limits.member, 1 << 48))


# ---- one run at a time -----------------------------------------------------------------------------------------------
# The system holds a lock (flock) for as long as the process lives, so that there is nothing to be taken for alive when
# its owner is dead, and of two that take it over at once one gets it. Its file says who the owner is.
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


def sweep(path: Path) -> None:
    """Remove what processes that were killed left beside a file. Only for whoever has its lock."""
    unfinished = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}{re.escape(UNFINISHED)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if unfinished.fullmatch(entry.name):
                with suppress(OSError):
                    os.unlink(entry.path)


def _forget() -> None:
    """A forked process does not keep the locks of the one that it came from."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
