"""A file of arrays and one JSON header: a zip of .npy files (an .npz), without pickles, replaced as a whole."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...terms import Array
from .packing import laid_out, layout

HEADER = "header.json"
DAMAGE = (OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def write(path: Path, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write the file beside its place, flush it to the disk, and only then put it there: what was there stays valid.

    ``arrays`` are stored row by row; how they lay in memory goes into the header.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    beside = path.with_name(f".{path.name}.writing")
    strides = {name: stored for name, a in arrays.items() if (stored := layout(a)) is not None}
    header = {**header, "arrays": list(arrays), "layouts": strides}
    try:
        with beside.open("wb") as file:
            _fill(file, header, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _settle(path.parent)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise CheckpointError(
            f"the checkpoint {str(path)!r} could not be written: {error.strerror or error}; make room for it or allow "
            "it, or name another place"
        ) from error


def _fill(file: Any, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(header, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def _settle(folder: Path) -> None:
    """The folder's entry on the disk too, where the system can do that."""
    with suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; every byte is checked against the sums that the zip keeps. `CheckpointError` on damage."""
    try:
        with zipfile.ZipFile(path) as archive:
            if HEADER not in archive.namelist():
                raise CheckpointError(f"{str(path)!r} is no checkpoint of graphreg; name another file for it")
            header = json.loads(archive.read(HEADER))
            layouts = header["layouts"]
            arrays: dict[str, Array] = {}
            for name in archive.namelist():
                if name != HEADER:
                    key = name.removesuffix(".npy")
                    array = np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                    arrays[key] = laid_out(array, layouts.get(key))
            if list(arrays) != header["arrays"]:  # damage to its directory can hide a whole member of a zip
                raise ValueError("arrays are missing")
        return header, arrays
    except CheckpointError:
        raise
    except (*DAMAGE, MemoryError) as error:
        raise CheckpointError(
            f"{str(path)!r} is a damaged checkpoint, or none at all ({error}); name another file, or remove "
            "this one if it is graphreg's own"
        ) from error
