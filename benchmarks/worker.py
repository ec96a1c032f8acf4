"""One solver on one workload in a process of its own, under a memory cap and a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .memory import peak
from .objective import Objective

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
PATIENCE = 4.0
TWICE = 10.0  # CPU seconds below which a solver is run again, so that what it compiles or reads once is told apart
NO_MEMORY = ("MemoryError", "memory allocation", "allocation error", "bad_alloc")  # Python, Rust, SCS, C++
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Run:
    """One measurement. ``value`` is P of the answer, evaluated here; nan where there is none: ``status`` says why."""

    workload: str
    solver: str
    setting: float
    status: str
    value: float = np.nan
    build: float = np.nan  # CPU seconds
    solve: float = np.nan
    rounds: int = 0
    lower: float = -np.inf
    gap: float = np.inf
    checks: float = np.nan  # share of the time in certificates
    trace: tuple[tuple[float, float, float], ...] = ()
    megabytes: float = np.nan  # peak resident memory of the process
    before: float = np.nan  # the same before the workload was made: imports, and a tiny one of its kind
    first: float = np.nan  # as `solve`, of the first call in its process, which may have compiled kernels

    @property
    def answered(self) -> bool:
        return bool(np.isfinite(self.value))


@dataclass(frozen=True)
class Limits:
    """For each process: GiB of resident memory, and CPU seconds; `PATIENCE` times as many of wall time."""

    memory: float = 6.0
    seconds: float = 300.0


def measure(objective: Objective, solver: str, setting: float, limits: Limits, small: bool = False) -> Run:
    """Runs the solver on the workload that ``objective`` is; what it answers is judged by ``objective``."""
    workload = objective.name
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer"
        given = (workload, solver, repr(setting), str(out), "tiny" if small else "full")
        code, said = limited([sys.executable, "-m", "benchmarks.worker", *given], limits, Path(folder) / "said")
        if code != 0:
            return Run(workload, solver, setting, said if code is None else failure(code, said))
        values: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
        values["trace"] = tuple(tuple(each) for each in values["trace"])
        return Run(workload, solver, setting, value=objective.value(np.load(out.with_suffix(".npy"))), **values)


def limited(command: list[str], limits: Limits, said: Path) -> tuple[int | None, str]:
    """The exit code and stderr of a process; no code, and why, where it was stopped.

    Its CPU time and its memory are watched from here. A limit on time that the kernel keeps (RLIMIT_CPU) makes the
    clocks inside coarse; one on memory (RLIMIT_AS) counts what is reserved and never used, in SuperLU 15 times as much.
    """
    seconds = limits.seconds
    with said.open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, **THREADS}, cwd=ROOT, stdout=log, stderr=log)
        began = time.monotonic()
        try:
            while True:
                try:
                    return process.wait(0.1), said.read_text()
                except subprocess.TimeoutExpired:
                    if _cpu_seconds(process.pid) > seconds:
                        return None, f"more than {seconds:g} s"
                    if _resident(process.pid) > limits.memory * 2**30:
                        return None, "out of memory"
                    if time.monotonic() - began > PATIENCE * seconds:
                        return None, f"more than {PATIENCE * seconds:g} s of wall time"
        finally:
            process.kill()
            process.wait()


def _cpu_seconds(pid: int) -> float:
    """Of a running process; 0 where there is no /proc, so that wall time alone limits it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    """Bytes of memory of a running process; 0 where there is no /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0.0


def failure(code: int, stderr: str) -> str:
    """The reason for which a process gave no answer, in one line: from how it ended, and from the last thing that it
    said."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if code == -signal.SIGKILL or any(word in stderr for word in NO_MEMORY):
        return "out of memory"
    if code < 0:
        said = next((line for line in lines if not line.startswith(("Fatal", "Current"))), "")
        return f"crashed ({signal.Signals(-code).name}{': ' if said else ''}{said})"
    last = lines[-1] if lines else f"exit code {code}"
    if last.startswith(("ModuleNotFoundError", "ImportError")):
        return "not installed" if last.startswith("Module") else f"not usable: {last}"
    return last


def main() -> None:
    """``python -m benchmarks.worker WORKLOAD SOLVER SETTING OUT full|tiny``."""
    workload, solver, setting, out, size = sys.argv[1:]
    from graphreg.base.compiled import compiles

    from .datasets import find, tiny
    from .solvers import PREFIX, REFERENCE, SOLVERS

    chosen, asked = REFERENCE if solver == REFERENCE.name else SOLVERS[solver], float(setting)
    if solver.startswith(PREFIX):
        compiles()  # numba is imported here: a tiny workload does without it, a large one does not
    chosen.run(tiny(workload), chosen.ladder[0])  # once, so that imports are not timed
    before = peak()
    objective = tiny(workload) if size == "tiny" else find(workload)
    answer = chosen.run(objective, asked)
    first = answer.solve
    if first < TWICE and chosen is not REFERENCE:
        answer = chosen.run(objective, asked)
    np.save(f"{out}.npy", answer.w)
    values = {**asdict(answer), "first": first, "before": before, "megabytes": peak()}
    del values["w"]
    Path(f"{out}.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main()
