"""Mishaps of a run beside a kill: a rival on its file, a full disk, a host of its actors that is killed.

``python -m benchmarks.resume_cases CHILD SEED FILE`` is one process of these. A rival and a full disk must cost no bit
of the answer; a killed host must be named, and leave nothing behind.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import graphreg as gr
from graphreg.datasets import random_problem
from graphreg.errors import ActorError, CheckpointError

from .processes import descendants, left_of
from .worker import THREADS

PATIENCE = 120.0
TIMEOUT = 5.0  # seconds that a coordinator waits for a host
ROUNDS = 400


@dataclass(frozen=True)
class Case:
    """The outcome of one; ``said`` in a few words, and whether it is as it must be."""

    seed: int
    said: str
    ok: bool


def digest(run: gr.Solution, message: bool = True) -> str:
    """Everything that a run reports, but for the seconds."""
    found, certificate = blake2b(), run.certificate
    for array in (run.coef, certificate.w, *certificate.dual_point.flows, *certificate.dual_point.prices):
        found.update(np.ascontiguousarray(array).tobytes())
    checks = [(r.round, r.certified, r.relative_gap, r.primal, r.dual) for r in run.trace.records]
    said = run.message if message else ""
    numbers = (certificate.primal, certificate.dual, certificate.charge, run.status, said, run.rounds)
    found.update(repr((numbers, checks, run.ledger)).encode())
    return found.hexdigest()


def _solve(seed: int, rounds: int = ROUNDS, **options: Any) -> gr.Solution:
    return random_problem(seed).problem.solve(
        gr.PrimalDual(), gap=0, rounds=rounds, on_failure="return", progress=False, **options
    )


def _seeds(runs: int) -> list[int]:
    """Problems that rounds can be run on."""
    seeds = (seed for seed in range(10**6) if not gr.PrimalDual().missing(random_problem(seed).problem.form))
    return [seed for _, seed in zip(range(runs), seeds, strict=False)]


def _child(what: str, seed: int, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.resume_cases", what, str(seed), str(path)]
    return subprocess.Popen(command, env={**os.environ, **THREADS}, stdout=subprocess.PIPE, text=True)


def _said(child: subprocess.Popen[str]) -> str:
    return child.communicate(timeout=PATIENCE)[0].strip()


# ---- two runs on one file --------------------------------------------------------------------------------------------
def rivals(seed: int) -> Case:
    """Two processes at once: one has the bits of a run of its own, the other is told who has the file."""
    whole = digest(_solve(seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        two = [_child("rival", seed, path) for _ in range(2)]
        said = sorted(_said(child).split(" ", 1) for child in two)
        left = os.listdir(folder)
    pids = {str(child.pid) for child in two}
    done = [rest for what, rest in said if what == "done"]
    told = [rest for what, rest in said if what == "told"]
    named = all(re.search(r"the process (\d+)", each) and re.search(r"\d+", each.split("process")[1]) for each in told)
    named = named and all(any(f"process {pid}" in each for pid in pids) for each in told)
    ok = bool(done) and all(each == whole for each in done) and len(done) + len(told) == 2 and named
    return Case(seed, f"{len(done)} ran, {len(told)} told who has the file", ok and left == ["run"])


def _rival(seed: int, path: Path) -> None:
    try:
        print("done", digest(_solve(seed, checkpoint=gr.Checkpoint(path, rounds=1))))
    except CheckpointError as error:
        print("told", error)


# ---- a full disk -----------------------------------------------------------------------------------------------------
def full_disk(seed: int) -> Case:
    """No file can grow from some round on, in every other run for a while only: bits are kept, and all is said."""
    whole = digest(_solve(seed), message=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        lines = _said(_child("disk", seed, path)).splitlines()
        found, warned, message = lines if len(lines) == 3 else ("", "", "".join(lines))
        left = os.listdir(folder)
        again = digest(_solve(seed, checkpoint=path), message=False)
    end = "last write succeeded" if seed % 2 else "could not be written: File too large"
    ok = found == whole == again and warned == "1" and end in message and left == ["run"]
    return Case(seed, f"{warned} warning, {'room again' if seed % 2 else 'full to the end'}", ok)


def _disk(seed: int, path: Path) -> None:
    """Full at the third check; every other run has room again at the sixth."""
    checks, before = [0], resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(record: gr.Record) -> None:
        del record
        checks[0] += 1
        if checks[0] == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        if checks[0] == 6 and seed % 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = _solve(seed, checkpoint=gr.Checkpoint(path, rounds=5), callback=fill)
    warned = sum("could not be written" in str(each.message) for each in caught)
    print(digest(run, message=False), warned, run.message.replace("\n", " "), sep="\n")


# ---- a killed host ---------------------------------------------------------------------------------------------------
def killed_host(seed: int) -> Case:
    """One host of process actors is killed at a random moment: it is named in time, nothing is left, and the same call
    gives the bits of an undisturbed one."""
    rng, moment, family = np.random.default_rng(seed), [0.0], []
    engine = gr.Actors(processes=2, timeout=TIMEOUT)
    at = int(rng.integers(1, 20))

    def kill(record: gr.Record) -> None:
        if record.round >= at * 10 and not moment[0]:
            family.extend(descendants(os.getpid()))  # the first is the one that starts the hosts
            os.kill(int(rng.choice(family[1:])), signal.SIGKILL)
            moment[0] = time.perf_counter()

    try:
        _solve(seed, engine=engine, callback=kill)
        said, named = "went on without a host", False
    except ActorError as error:
        said, named = str(error), "has ended" in str(error)
    waited = time.perf_counter() - moment[0]
    left = left_of(family, time.monotonic() + TIMEOUT)
    same = digest(_solve(seed, 100, engine=engine)) == digest(_solve(seed, 100, engine=engine))
    ok = named and waited < TIMEOUT + 5.0 and not left and same
    return Case(seed, f"after {waited:.1f} s: {said[:60]}", ok)


CASES: dict[str, tuple[str, Callable[[int], Case]]] = {
    "rivals": ("two processes on one file", rivals),
    "disk": ("a full disk", full_disk),
    "hosts": ("a host of actors that is killed", killed_host),
}


def study(name: str, runs: int) -> bool:
    """Some runs of a case, printed; whether all are as they must be."""
    title, case = CASES[name]
    found = [case(seed) for seed in _seeds(runs)]
    print(f"\n{title}: {sum(each.ok for each in found)} of {runs} as they must be\n")
    for each in found:
        print(f"{each.seed:6d}  {'yes' if each.ok else 'NO':>3}  {each.said}")
    return all(each.ok for each in found)


if __name__ == "__main__":
    {"rival": _rival, "disk": _disk}[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))
