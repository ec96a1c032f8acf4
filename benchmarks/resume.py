"""``python -m benchmarks.resume``: kill runs at random, let them go on from their checkpoints, and compare bits.

Every run is a process of its own that is killed with SIGKILL at a random moment, is started again, and is killed again,
a few times over; what it ends with is compared, bit for bit, to a run that was left alone. Two processes on one file, a
full disk and a killed host of actors come first (`benchmarks.resume_cases`). Exit code 1 where a bit differs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.methods import METHODS, AbstractIteration
from graphreg.saving.archive import read

from .resume_cases import CASES, digest, study
from .worker import THREADS

ITERATIVE = {method.name: method for method in METHODS if isinstance(method, AbstractIteration)}
SECONDS = 1.0  # that a whole run takes, about
KILLS = 3
PATIENCE = 120.0


@dataclass(frozen=True)
class Trial:
    """The outcome of one run."""

    seed: int
    rounds: int
    kills: tuple[int, ...]  # the rounds at which the checkpoint stood after each
    same: bool


def main() -> int:
    """The study, or with ``--child`` one run of it, which is there to be killed."""
    args = _arguments()
    if args.child:
        _solve(args.child[0], int(args.child[1]), int(args.child[2]), Path(args.child[3]))
        return 0
    ok = min((study(name, args.runs) for name in args.cases), default=True)  # all of them, also where one failed
    for name in ITERATIVE if args.methods is None else args.methods:
        trials = _trials(name, args.runs)
        same = sum(trial.same for trial in trials)
        kills = sum(len(trial.kills) for trial in trials)
        print(f"\n{name}: {same} of {len(trials)} runs have the bits of an unbroken one, after {kills} kills\n")
        print("  seed  rounds  identical  checkpoint found at round, after each kill")
        for t in trials:
            print(f"{t.seed:6d}{t.rounds:8d}  {'yes' if t.same else 'NO':>9}  {', '.join(map(str, t.kills))}")
        ok = ok and same == len(trials)
    return 0 if ok else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each method")
    parser.add_argument("--methods", nargs="*", choices=tuple(ITERATIVE), help="all iterative ones by default")
    parser.add_argument("--cases", nargs="*", choices=tuple(CASES), default=tuple(CASES), help="all by default")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def _trials(name: str, runs: int) -> list[Trial]:
    """Runs on random problems to which the method applies."""
    trials: list[Trial] = []
    seed = 0
    with tqdm(total=runs, desc=name, disable=None) as bar:
        while len(trials) < runs:
            if not ITERATIVE[name].missing(random_problem(seed).problem.form):
                trials.append(_trial(name, seed))
                bar.update()
            seed += 1
    return trials


def _trial(name: str, seed: int) -> Trial:
    problem, method = random_problem(seed).problem, ITERATIVE[name]
    began = time.perf_counter()
    problem.solve(method, gap=0, rounds=200, on_failure="return")
    rounds = int(200 * SECONDS / (time.perf_counter() - began))
    budget = _budget(seed, rounds)
    whole = digest(problem.solve(method, **budget))
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        kills = [_kill(name, seed, rounds, path, SECONDS / KILLS * rng.uniform(0.2, 1.4)) for _ in range(KILLS)]
        again = digest(problem.solve(method, checkpoint=path, **budget))
    return Trial(seed, rounds, tuple(k for k in kills if k < rounds), again == whole)


def _kill(name: str, seed: int, rounds: int, path: Path, seconds: float) -> int:
    """Start the run or let it go on, kill it when so many seconds have passed; the round of what it leaves."""
    command = [sys.executable, "-m", "benchmarks.resume", "--child", name, str(seed), str(rounds), str(path)]
    child = subprocess.Popen(command, env={**os.environ, **THREADS}, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()  # imported, and about to begin
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=PATIENCE)
    if child.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"a run on the problem of seed {seed} ended by itself with exit code {child.returncode}")
    return int(read(path)[0]["values"][-1]["tree"]["record"][1]["round"]) if path.exists() else 0


def _solve(name: str, seed: int, rounds: int, path: Path) -> None:
    problem = random_problem(seed).problem
    print("ready", flush=True)
    kept = gr.Checkpoint(path, rounds=int(np.random.default_rng(seed).integers(1, 30)))
    problem.solve(ITERATIVE[name], checkpoint=kept, progress=False, **_budget(seed, rounds))


def _budget(seed: int, rounds: int) -> dict[str, Any]:
    """Every other run asks for a gap that is hardly ever met, and so is repaired more often."""
    return {"gap": 1e-13 if seed % 2 else 0, "rounds": rounds, "seed": seed, "on_failure": "return"}


if __name__ == "__main__":
    sys.exit(main())
