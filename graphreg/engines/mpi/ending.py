"""How an MPI job ends where a process fails: said once, with the rank, and without a hang."""

from __future__ import annotations

import sys
import time
import traceback
from types import TracebackType
from typing import Any, NoReturn

from ...errors import GraphregError, MethodError

FAILED = 32_007  # the tag of the messages by which ranks that fail tell the others
LEFT = 32_006  # the same of ranks that end
HERE = 32_005  # by which ranks meet
LATEST = 600.0  # seconds that ranks wait for one another
GLANCE = 0.005  # seconds between two looks
MOMENT = 0.5  # seconds in which ranks that fail are taken to fail together
LONGEST = 10.0  # seconds that a rank leaves the word to another one
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def abort(mpi: Any, error: BaseException) -> NoReturn:
    """Say what went wrong, once, and end all processes: the others would wait for this one for ever.

    Of ranks that fail at the same time the first one speaks.
    """
    comm = mpi.COMM_WORLD
    failed = _together(mpi)
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


def _together(mpi: Any) -> set[int]:
    """The ranks that fail in the same moment, this one among them: each tells all others."""
    comm, status = mpi.COMM_WORLD, mpi.Status()
    sent = [comm.isend(None, dest=rank, tag=FAILED) for rank in range(comm.size) if rank != comm.rank]
    found, end = {comm.rank}, time.monotonic() + (MOMENT if sent else 0.0)
    while time.monotonic() < end:
        if comm.iprobe(tag=FAILED, status=status):
            comm.recv(source=status.source, tag=FAILED)
            found.add(status.source)
        else:
            time.sleep(GLANCE)
    return found


def meet(mpi: Any) -> None:
    """Wait until every rank is here: each tells all others.

    Raises
    ------
    MethodError
        Where one has ended, or does not come; it names them.
    """
    comm, end = mpi.COMM_WORLD, time.monotonic() + LATEST
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
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    comm = mpi.COMM_WORLD
    vars(leave)["sent"] = [comm.isend(None, dest=rank, tag=LEFT) for rank in range(comm.size) if rank != comm.rank]


def end_with_errors(rank: int, mpi: Any = None) -> None:
    """From now on what all processes raise and a script does not catch is shown by the first of them alone; and what
    one of them raises ends all, where MPI is known: the others would wait for ever."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        of_all = getattr(error, "shared", False)
        if not of_all and mpi is not None:
            abort(mpi, error)
        if rank == 0 or not of_all:
            before(kind, error, trace)

    sys.excepthook = hook
