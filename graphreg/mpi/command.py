"""``python -m graphreg.mpi model.toml`` on every rank; with ``--ranks`` and ``--retries`` it starts the job itself."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..distributed import INTERRUPTED, Facts, LocalSolution, abort, agreed, job_size, world, writable
from ..distributed import launched_rank as rank_of_launcher
from ..errors import GraphregError, MethodError, ModelFileError
from ..model_file import ModelFile, read_model, sites_of
from ..running import Checkpoint
from ..saving import entry
from .solving import solve

OPTIONS = ("gap", "rounds", "seconds", "seed")  # of [solve] that such a run knows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.ranks is not None or asked.retries is not None:
            return launched(sys.argv[1:] if arguments is None else arguments)
        return _on_rank(asked)
    except GraphregError as error:
        if not error.shared or rank_of_launcher() == 0:
            print(f"graphreg: {error}", file=sys.stderr)
        return ERROR


def _on_rank(asked: argparse.Namespace) -> int:
    comm = world()
    files = list[ModelFile]()

    def read() -> Facts:
        try:
            files.append(_read(asked, comm.rank, comm.size))
        except OSError as error:
            raise ModelFileError(f"{error.filename} cannot be read: {error.strerror}") from error
        if asked.out is not None:
            writable(asked.out, "results", ModelFileError)
        return {"model": {f"[{table}] of the model file": entry(value) for table, value in files[0].content.items()}}

    agreed(comm, read)
    found = _solved(files[0], asked)
    if asked.out is not None:
        try:
            found.save(asked.out)
        except GraphregError as error:
            abort(error)
        comm.Barrier()
    if found.why:
        print(f"graphreg: rank {comm.rank} has no lower bound: {found.why}", file=sys.stderr)
    if comm.rank == 0:
        print(found)
        if asked.out is not None:
            print(f"written: {asked.out}")
    return 0 if found.status == "certified" else NOT_CERTIFIED


def _read(asked: argparse.Namespace, rank: int, size: int) -> ModelFile:
    """The model with the tables of this process's sites."""
    file = read_model(asked.model, asked.data, sites=_sites(asked, rank, size), allow_outside=asked.allow_outside)
    if unknown := [name for name in file.options if name not in OPTIONS]:
        raise ModelFileError(f"[solve] {unknown[0]}: a run on several sites does not know it; it knows {OPTIONS}")
    return file


def _solved(file: ModelFile, asked: argparse.Namespace) -> LocalSolution:
    options: dict[str, Any] = {**file.options}
    for name in ("gap", "rounds", "seconds", "progress"):
        if getattr(asked, name) is not None:
            options[name] = getattr(asked, name)
    if asked.checkpoint is not None:
        seconds = 60.0 if asked.every is None else None
        options["checkpoint"] = Checkpoint(asked.checkpoint, rounds=asked.every, seconds=seconds)
    own = {label for table in file.samples for label in table.labels}
    return solve(file.problem, own, file.method, **options)


def _sites(asked: argparse.Namespace, rank: int, size: int) -> list[str]:
    """The sites of this process: of all whose files it finds every so-manieth, or those that are named."""
    if asked.sites:
        return list(asked.sites)
    every = sites_of(asked.model, asked.data)
    if asked.here:
        return every
    if len(every) < size:
        raise ModelFileError(
            f"there are files of {len(every)} sites for {size} processes; start as many processes at most, or say "
            "--here where every process finds the files of its own sites alone"
        )
    return every[rank::size]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphreg.mpi",
        description="A model whose data lie at several sites, on an MPI job: every process reads those of its own.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        parents=[launching()],
    )
    parser.add_argument("model", type=Path, help="a model file with {site} in the paths of its tables")
    parser.add_argument("--data", type=Path, help="the folder of the tables, by default that of the model file")
    parser.add_argument("--out", type=Path, help="a folder for the results, one file per process")
    parser.add_argument("--gap", type=float)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--progress", action="store_true", default=None, help="show the rounds; by default with "
                        "--ranks on a terminal, of which no process under mpiexec knows")  # fmt: skip
    parser.add_argument("--checkpoint", type=Path, help="a folder in which the run is kept, and from which it goes on")
    parser.add_argument("--every", type=int, help="rounds after which it is kept; by default every 60 seconds")
    parser.add_argument("--sites", nargs="+", help="the sites of this process")
    parser.add_argument("--here", action="store_true", help="this process has all sites whose files it finds")
    parser.add_argument("--allow-outside", action="store_true", help="paths may leave the folder of the model file")
    return parser


# ---- starting the job ------------------------------------------------------------------------------------------------
ERROR, NOT_CERTIFIED, DIED = 1, 4, 128
STATUSES = """exit statuses:
  0    certified
  1    an error, which is said once with the rank
  2    a mistake on the command line
  4    an answer, but not certified to the gap asked for
  130  interrupted by Ctrl-C
  above 128, otherwise: a rank died (128 + the number of its signal); with --retries the job is started again
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
PATIENCE = 10.0  # seconds that mpiexec has to end its ranks


def launching() -> argparse.ArgumentParser:
    """The options that a job is started with."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--ranks", type=int, help="start so many processes, with the mpiexec beside this Python, or "
                        "else that of PATH")  # fmt: skip
    parser.add_argument("--retries", type=int, help="start them again, at most so often, where a rank died; they go on "
                        "from the checkpoint")  # fmt: skip
    return parser


def launched(arguments: Sequence[str]) -> int:
    """The exit status of the command on the ranks that the arguments ask for."""
    asked, rest = launching().parse_known_args(arguments)
    _check(asked, rest)
    shown = ["--progress"] * (sys.stderr.isatty() and "--progress" not in rest)
    command = [*_launcher(asked.ranks), sys.executable, "-m", "graphreg.mpi", *rest, *shown]
    environment = {**dict.fromkeys(THREADS, "1"), **os.environ}
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        return _started(command, environment, asked.ranks, asked.retries or 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _started(command: list[str], environment: dict[str, str], ranks: int, retries: int) -> int:
    status = DIED
    for attempt in range(retries + 1):
        _say(f"starting {ranks} ranks" + (f", retry {attempt} of {retries}" if attempt else "") + f": {command[0]}")
        status = _status(command, environment)
        if status <= DIED or status == INTERRUPTED:
            return status
        ended = f"a rank died (exit status {status}, {_signal(status)})"
        if attempt < retries:
            _say(f"{ended}; the job is started again, and goes on from the checkpoint")
        else:
            _say(f"{ended}; " + (f"{retries} retries are used up" if retries else "--retries starts the job again"))
    return status


def _check(asked: argparse.Namespace, rest: Sequence[str]) -> None:
    """Refuses what makes no sense, with the reason."""
    if asked.ranks is None:
        raise MethodError("--retries starts a job again that this command has started; say how many --ranks it has")
    if asked.ranks < 1 or (asked.retries is not None and asked.retries < 0):
        raise MethodError("--ranks is a whole number of at least 1, and --retries one of at least 0")
    if asked.retries is not None and not any(each.split("=")[0] == "--checkpoint" for each in rest):
        raise MethodError("--retries goes on from a checkpoint, and would begin anew without one; name a --checkpoint")
    if job_size() > 1:
        raise MethodError("this process belongs to an MPI job already; leave --ranks and --retries out, or mpiexec")


def _launcher(ranks: int) -> list[str]:
    """mpiexec with its options."""
    beside = Path(sys.executable).parent
    found = shutil.which("mpiexec", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise MethodError("there is no mpiexec; install an MPI library, such as pip install 'graphreg[mpi-local]'")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    if not any(name in said for name in ("Open MPI", "OpenRTE", "prte")):
        return [found, "-n", str(ranks)]
    missing = [name for name in AS_ROOT if name not in os.environ]
    if os.geteuid() == 0 and missing:
        raise MethodError(
            f"Open MPI does not run as root unless {' and '.join(f'{name}=1' for name in missing)} say that it is "
            "meant, as in a container; set that, or run as another user"
        )
    many = ranks > len(os.sched_getaffinity(0))
    crowded = ("--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
    return [found, "-n", str(ranks), *(crowded if many else ())]


def _status(command: list[str], environment: dict[str, str]) -> int:
    """The exit status of one job. A Ctrl-C, and whatever else breaks this off, ends its processes: they have a group
    of their own, as mpiexec leaves its ranks behind where a Ctrl-C reaches it twice."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, process_group=0) as job:
        try:
            status = job.wait()
        except BaseException as error:
            _stop(job)
            if not isinstance(error, KeyboardInterrupt):
                raise
            _say("interrupted; all ranks have ended")
            return INTERRUPTED
    return status if status >= 0 else DIED - status


def _stop(job: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        job.send_signal(number)
        try:
            job.wait(PATIENCE)
            return
        except subprocess.TimeoutExpired:
            continue


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Told to end: so are the ranks."""
    raise SystemExit(DIED + number)


def _signal(status: int) -> str:
    number = status - DIED
    return signal.Signals(number).name if number in set(signal.Signals) else "no signal"


def _say(text: str) -> None:
    print(f"graphreg: {text}", file=sys.stderr, flush=True)
