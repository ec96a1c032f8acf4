"""The processes of an MPI job (the extra ``mpi``): found on first use, and refused where the launcher is another's."""

from __future__ import annotations

import atexit
import os
from functools import cache
from importlib import import_module
from typing import Any

from ...errors import MethodError
from .ending import end_with_errors, leave, meet

# what launchers tell a process of how many there are, and which one it is
COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
STEP = "SLURM_STEP_NUM_TASKS"  # of srun


@cache
def mpi() -> Any:
    """mpi4py's MPI; `MethodError` where it is not installed."""
    try:
        return import_module("mpi4py.MPI")
    except ImportError as error:
        raise _of_all(
            f"gr.MPI() needs mpi4py and an MPI library ({error}): pip install 'graphreg[mpi]', and where no MPI is "
            "installed 'graphreg[mpi-local]'"
        ) from error


@cache
def world() -> Any:
    """The communicator of all processes of the job, graphreg's own."""
    if mpi().COMM_WORLD.size == 1 and job_size() > 1:
        raise _of_all(
            f"{job_size()} processes were launched, and each finds itself alone: the launcher is not that of the "
            f"MPI library {mpi().Get_library_version().split(',')[0]!r}, with which mpi4py was built; take the "
            "mpiexec or srun that belongs to it"
        )
    end_all_with_errors()
    meet(mpi())
    return mpi().COMM_WORLD.Dup()


@cache
def end_all_with_errors() -> None:
    """What one rank of a job raises from now on ends all of them."""
    if job_size() > 1 and mpi().COMM_WORLD.size > 1:
        end_with_errors(mpi().COMM_WORLD.rank, mpi())


def job_size() -> int:
    """Of how many processes the launcher speaks; 1 without one."""
    return max(_numbers((*COUNTS, STEP)), default=1)


def launched_rank() -> int:
    """Which process of its job this one is by what the launcher says, as long as MPI says nothing; 0 without one."""
    return max(_numbers(RANKS), default=0)


def _numbers(names: tuple[str, ...]) -> list[int]:
    return [int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()]


def _of_all(text: str) -> MethodError:
    """An error that every process finds by itself, and the first alone says."""
    error = MethodError(text)
    error.shared = True
    end_with_errors(launched_rank())
    return error


if job_size() > 1:
    atexit.register(leave)
