"""A file of arrays and one JSON header: a zip of .npy files (an .npz), without pickles, replaced as a whole."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...errors import CheckpointError
from ...files import opened, replacing
from ...terms import Array
from .packing import extent, laid_out, layout, plain

HEADER = "header.json"
DAMAGE = (OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
ONE, ALL = 1 << 26, 1 << 28  # bytes that a member and the whole file may have, whatever the problem is


SPARE = 1 << 12  # bytes of a member beside its numbers


@dataclass(frozen=True)
class Limits:
    """How many bytes one member and the whole file may have."""

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
            f"the checkpoint {str(path)!r} would have {sum(sizes)} bytes, {max(sizes)} of them in one piece, more than "
            "the problem can need; keep less in the state of the method"
        )
    try:
        with replacing(path) as file:
            _fill(file, text, arrays)
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint {str(path)!r} could not be written: {error.strerror or error}; make room for it or allow "
            "it, or name another place"
        ) from error


def _fill(file: Any, header: str, arrays: dict[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), header)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


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
                    raise CheckpointError(f"{str(path)!r} is no checkpoint of graphreg; name another file")
                return _content(archive, size, limits)
    except CheckpointError:
        raise
    except (*DAMAGE, MemoryError) as error:
        raise CheckpointError(
            f"{str(path)!r} is a damaged checkpoint, or none at all ({error}); name another file, or remove "
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
