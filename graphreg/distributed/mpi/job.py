"""An MPI job: whether this process belongs to one, and how it ends where a process fails: said once, without a hang."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import TracebackType
from typing import Any, NoReturn

from ...errors import GraphregError, MethodError

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
    meet()
    return mpi().COMM_WORLD.Dup()


@cache
def end_all_with_errors() -> None:
    """End all ranks of a job, from now on, with what one of them raises."""
    if job_size() > 1 and mpi().COMM_WORLD.size > 1:
        end_with_errors(mpi().COMM_WORLD.rank, abort)


def job_size() -> int:
    """Of how many processes the launcher speaks; 1 without one."""
    return max(_numbers((*COUNTS, STEP)), default=1)


def launched_rank() -> int:
    """The number of this process in its job by what the launcher says, as long as MPI says nothing; 0 without one."""
    return max(_numbers(RANKS), default=0)


def _numbers(names: tuple[str, ...]) -> list[int]:
    return [int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()]


def _of_all(text: str) -> MethodError:
    """An error that every process finds by itself, and the first alone says."""
    error = MethodError(text)
    error.shared = True
    end_with_errors(launched_rank())
    return error


# ---- the end ---------------------------------------------------------------------------------------------------------
FAILED = 32_007  # the tag of the messages by which ranks that fail tell the others
LEFT = 32_006  # the same of ranks that end
HERE = 32_005  # by which ranks meet
LATEST = 600.0  # seconds that ranks wait for one another
GLANCE = 0.005  # seconds between two looks
MOMENT = 0.5  # seconds in which ranks that fail are taken to fail together
LONGEST = 10.0  # seconds that a rank leaves the word to another one
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def abort(error: BaseException) -> NoReturn:
    """Say what went wrong, once, and end all processes: the others would wait for this one for ever.

    Of ranks that fail at the same time the first one speaks.
    """
    comm = mpi().COMM_WORLD
    failed = _together(comm, mpi().Status())
    if comm.rank > min(failed):
        time.sleep(LONGEST)  # until that one ends all
    sys.stdout.flush()
    interrupted = isinstance(error, KeyboardInterrupt)
    if comm.rank == min(failed):
        traced = "" if isinstance(error, GraphregError) or interrupted else "".join(traceback.format_exception(error))
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        said = "was interrupted" if interrupted else f"failed: {error}"
        print(f"{traced}graphreg: rank {comm.rank} of {comm.size}{others} {said}", file=sys.stderr, flush=True)
    comm.Abort(INTERRUPTED if interrupted else 1)
    raise SystemExit(1)  # not reached


def _together(comm: Any, status: Any) -> set[int]:
    """The ranks that fail in the same moment, this one among them: each tells all others."""
    sent = [comm.isend(None, dest=rank, tag=FAILED) for rank in range(comm.size) if rank != comm.rank]
    found, end = {comm.rank}, time.monotonic() + (MOMENT if sent else 0.0)
    while time.monotonic() < end:
        if comm.iprobe(tag=FAILED, status=status):
            comm.recv(source=status.source, tag=FAILED)
            found.add(status.source)
        else:
            time.sleep(GLANCE)
    return found


def meet() -> None:
    """Wait until every rank is here: each tells all others.

    Raises
    ------
    MethodError
        Where one has ended, or does not come; it names them.
    """
    comm, end = mpi().COMM_WORLD, time.monotonic() + LATEST
    missing = [rank for rank in range(comm.size) if rank != comm.rank]
    for rank in missing:
        comm.isend(None, dest=rank, tag=HERE).Wait()
    while missing:
        here = [rank for rank in missing if comm.iprobe(source=rank, tag=HERE)]
        for rank in here:
            comm.recv(source=rank, tag=HERE)
        missing = [rank for rank in missing if rank not in here]
        ended = [] if here else [rank for rank in missing if comm.iprobe(source=rank, tag=LEFT)]
        if ended or (missing and time.monotonic() > end):
            who, waited = ", ".join(map(str, ended or missing)), f"did not come within {LATEST:g} seconds"
            said = f"rank {who} of {comm.size} {'has ended' if ended else waited}"
            raise MethodError(f"{said}; every rank must call this, with the same arguments and as often")
        time.sleep(GLANCE)


def leave() -> None:
    """Tell the other ranks that this one ends: they would wait for it for ever."""
    if "mpi4py.MPI" not in sys.modules or not mpi().Is_initialized() or mpi().Is_finalized():
        return
    comm = mpi().COMM_WORLD
    vars(leave)["sent"] = [comm.isend(None, dest=rank, tag=LEFT) for rank in range(comm.size) if rank != comm.rank]


def end_with_errors(rank: int, end: Callable[[BaseException], Any] | None = None) -> None:
    """From now on what all processes raise and a script does not catch is shown by the first of them alone; what one of
    them raises is given to ``end``, which ends all: the others would wait for ever."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        of_all = getattr(error, "shared", False)
        if not of_all and end is not None:
            end(error)
        if rank == 0 or not of_all:
            before(kind, error, trace)

    sys.excepthook = hook


if job_size() > 1:
    atexit.register(leave)
