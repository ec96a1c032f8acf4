"""``--ranks`` and ``--retries``: the command starts the job itself, and again where a rank dies."""

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
from typing import NoReturn

from ..engines import INTERRUPTED, job_size
from ..errors import MethodError

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
    command = [*_launcher(asked.ranks), sys.executable, "-m", "graphreg.mpi", *rest]
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
    """Of one job. A Ctrl-C, and whatever else breaks this off, ends its processes: they have a group of their own, as
    mpiexec leaves its ranks behind where a Ctrl-C reaches it twice."""
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
    del frame
    raise SystemExit(DIED + number)


def _signal(status: int) -> str:
    number = status - DIED
    return signal.Signals(number).name if number in set(signal.Signals) else "no signal"


def _say(text: str) -> None:
    print(f"graphreg: {text}", file=sys.stderr, flush=True)
