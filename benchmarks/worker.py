"""One solver on one workload in a process of its own, under a memory cap and a time limit."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .workloads import Array

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
REFERENCE = "reference"


@dataclass(frozen=True)
class Run:
    """One measurement; ``w`` is None where there is none, and ``status`` says why."""

    workload: str
    solver: str
    status: str
    w: Array | None = None
    build: float = np.nan  # CPU seconds
    solve: float = np.nan
    rounds: int = 0
    lower: float = -np.inf
    gap: float = np.inf
    megabytes: float = np.nan  # peak resident memory of the process


def measure(workload: str, solver: str, memory: float, seconds: float) -> Run:
    """Runs ``solver`` on ``workload`` with at most ``memory`` GiB of address space and ``seconds`` of wall time."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer"
        command = [sys.executable, "-m", "benchmarks.worker", workload, solver, str(out), str(memory)]
        try:
            done = subprocess.run(
                command, env={**os.environ, **THREADS}, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return Run(workload, solver, f"more than {seconds:g} s")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return Run(workload, solver, "out of memory" if "emory" in done.stderr else last[:60])
        values: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
        return Run(workload, solver, w=np.load(out.with_suffix(".npy")), **values)


def main() -> None:
    """``python -m benchmarks.worker WORKLOAD SOLVER OUT GIB``."""
    workload, solver, out, memory = sys.argv[1:]
    cap = int(float(memory) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
    from .solvers import SOLVERS, reference, warm
    from .workloads import WORKLOADS

    problem = WORKLOADS[workload]()
    if solver == REFERENCE:
        answer = reference(problem)
    else:
        warm(solver)
        answer = SOLVERS[solver](problem)
    np.save(f"{out}.npy", answer.w)
    values = {
        "status": answer.status,
        "build": answer.build,
        "solve": answer.solve,
        "rounds": answer.rounds,
        "lower": answer.lower,
        "gap": answer.gap,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    Path(f"{out}.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main()
