"""The processes of an MPI job (the extra ``mpi``): found on first use, and refused where the launcher is another's."""

from __future__ import annotations

import os
import sys
import traceback
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from ...errors import MethodError

# what launchers tell a process of how many there are
COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
STEP = "SLURM_STEP_NUM_TASKS"  # of srun


@cache
def mpi() -> Any:
    """mpi4py's MPI; `MethodError` where it is not installed."""
    try:
        return import_module("mpi4py.MPI")
    except ImportError as error:
        raise MethodError(
            f"gr.MPI() needs mpi4py and an MPI library ({error}): pip install 'graphreg[mpi]', and where no MPI is "
            "installed 'graphreg[mpi-local]'"
        ) from error


@cache
def world() -> Any:
    """The communicator of all processes of the job, graphreg's own."""
    comm = mpi().COMM_WORLD.Dup()
    launched = [int(os.environ[name]) for name in (*COUNTS, STEP) if os.environ.get(name, "").isdigit()]
    if comm.size == 1 and max(launched, default=1) > 1:
        raise MethodError(
            f"{max(launched)} processes were launched, and each finds itself alone: the launcher is not that of the "
            f"MPI library {mpi().Get_library_version().split(',')[0]!r}, with which mpi4py was built; take the "
            "mpiexec or srun that belongs to it"
        )
    return comm


def abort(rank: int, error: BaseException, traced: bool = True) -> NoReturn:
    """Say what went wrong, once, and end all processes: the others would wait for this one for ever."""
    sys.stdout.flush()
    text = "".join(traceback.format_exception(error)) if traced else ""
    print(f"{text}graphreg: rank {rank} of {world().size} failed: {error}", file=sys.stderr, flush=True)
    mpi().COMM_WORLD.Abort(1)
    raise SystemExit(1)  # not reached
