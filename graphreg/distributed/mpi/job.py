"""An MPI job: whether this process belongs to one, how it ends where a process fails (said once, without a hang), and
what must be the same on every rank, compared before a run that would go wrong otherwise, later, in silence."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import numpy as np

from ...base.compiled import compiles
from ...errors import GraphregError, MethodError
from ...methods import AbstractMethod
from ...running import Budget
from ...saving import entry, of_method
from ...version import __version__

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
    """The number of processes that the launcher speaks of; 1 without one."""
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
    """Let from now on what all processes raise and a script does not catch is shown by the first of them alone; what
    one of them raises is given to ``end``, which ends all: the others would wait for ever."""
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


REMEDIES = {
    "versions": "install the same versions on every machine",
    "call": "call it with the same arguments on every rank",
    "model": "every rank must read the same model",
    "problem": "build the same problem on every rank, from the same files and the same seeds",
}
MOST = 3  # differences that a message lists
E = TypeVar("E", bound=Exception)
Facts = dict[str, Mapping[str, str]]  # by the keys of REMEDIES


def agreed(comm: Any, find: Callable[[], Facts]) -> None:
    """Raises, on every rank the same, where ``find`` raises on one of them or its facts differ between them.

    Digests are gathered, and only where these differ the facts themselves.
    """
    facts, error = dict[tuple[str, str], str](), None
    try:
        facts = {(group, name): value for group, each in find().items() for name, value in each.items()}
    except GraphregError as own:
        error = own
    mine = (
        None if error is None else (type(error), str(error)),
        blake2b(repr(sorted(facts.items())).encode(), digest_size=16).digest(),
    )
    if comm.size > 1:
        meet()
    every = comm.allgather(mine)
    first = next((rank for rank, (refused, _) in enumerate(every) if refused is not None), None)
    if first is not None:
        kind, text = every[first][0]
        raise shared(kind(f"rank {first} of {comm.size}: {text}" if comm.size > 1 else text)) from error
    if len({digest for _, digest in every}) > 1:
        raise shared(MethodError(_differences(comm.allgather(facts))))


def shared(error: E) -> E:
    """The error, marked as one that all ranks raise."""
    vars(error)["shared"] = True
    return error


def versions() -> dict[str, str]:
    """The versions of what rounds are computed with."""
    numba = "not installed" if find_spec("numba") is None else version("numba")
    return {
        "graphreg": __version__,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": np.__version__,
        "numba": numba if compiles() or numba == "not installed" else f"{numba}, which does not compile",
    }


def call(method: AbstractMethod, budget: Budget) -> dict[str, str]:
    """The method with its options, and the budget."""
    kept = budget.checkpoint
    asked = {
        "the start": budget.start,
        "the rounds between checkpoints": kept and kept.rounds,
        "the seconds between checkpoints": kept and kept.seconds,
        **{name: getattr(budget, name) for name in ("gap", "rounds", "seconds", "seed")},
    }
    options = {
        "the method" if key == "the class" else f"the option {key}": value for key, value in of_method(method).items()
    }
    return options | {name: entry(value) for name, value in asked.items()}


def _differences(every: list[dict[tuple[str, str], str]]) -> str:
    keys = list(dict.fromkeys(key for facts in every for key in facts))
    wrong = [key for key in keys if len({facts.get(key) for facts in every}) > 1]
    said = [_difference(name, [facts.get((group, name), "none") for facts in every]) for group, name in wrong[:MOST]]
    more = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
    remedies = dict.fromkeys(REMEDIES[group] for group, _ in wrong)
    return f"the processes of this job are not alike: {'; '.join([*said, *more, *remedies])}"


def _difference(name: str, values: list[str]) -> str:
    """A sentence that says which ranks have which value; of long ones, which differ."""
    ranks: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        ranks.setdefault(value, []).append(rank)
    if any(value.startswith("#") for value in ranks):
        return f"not the same {name.removeprefix('the ')} on {' and '.join(map(_of, ranks.values()))}"
    return f"{name} is {' and '.join(f'{value} on {_of(who)}' for value, who in ranks.items())}"


def _of(ranks: list[int]) -> str:
    listed = ", ".join(map(str, ranks[:MOST])) + (", ..." if len(ranks) > MOST else "")
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"
