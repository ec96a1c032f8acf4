"""``python -m benchmarks.failures``: kill, stop and interrupt runs of actors at random, and see what is left of them.

Every run is a process of its own, whose actors are in other processes. At a random moment, while these are started
included, the coordinator or one of the others gets a signal. The run must then end with an answer or with an error
that names nodes, within its timeout and five seconds, and leave neither processes nor files; a coordinator that is
stopped is let go on after more than the timeout. Exit code 1 where anything else happens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from tqdm import tqdm

import graphreg as gr
from graphreg.errors import ActorError

from .processes import descendants, left_of
from .worker import THREADS

SIGNALS = ("KILL", "STOP", "TERM", "INT")
VICTIMS = ("coordinator", "host")
TIMEOUT, MORE = 2.0, 5.0  # seconds
SECONDS = 10.0  # of a run to which nothing happens
MOMENTS = 6.0  # seconds within which the signal comes
DEAD = ("KILL", "TERM")


@dataclass(frozen=True)
class Trial:
    """The outcome of one run."""

    victim: str
    signal: str
    end: str  # a status, "ActorError", "dead", or what should not be
    said: str
    seconds: float  # since the signal, or since a stopped coordinator went on
    processes: int  # left
    files: int

    @property
    def ok(self) -> bool:
        if self.victim == "coordinator" and self.signal in DEAD:
            ended = self.end == "dead"
        elif self.victim == "coordinator" and self.signal == "INT":
            ended = self.end == "interrupted"
        else:
            ended = self.end == "budget" or (self.end == "ActorError" and "node" in self.said)
        unharmed = self.end == "budget" and self.signal in ("INT", "STOP")
        allowed = TIMEOUT + MORE + (SECONDS if unharmed else 0.0)
        return ended and not self.processes and not self.files and self.seconds <= allowed


def main() -> int:
    """The study, or with ``--child`` one run of it, to which something will happen."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failures", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each signal and victim")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, which mostly wait")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what runs in the background ignore it
        print(json.dumps(_solve()), flush=True)
        return 0
    cases = [(victim, name, seed) for victim in VICTIMS for name in SIGNALS for seed in range(args.runs)]
    with ThreadPoolExecutor(args.jobs) as pool:
        trials = list(tqdm(pool.map(lambda case: _trial(*case), cases), total=len(cases), disable=None))
    table = pd.DataFrame([{**vars(trial), "ok": trial.ok} for trial in trials])
    print(_summary(table).to_string())
    for trial in trials:
        if not trial.ok:
            print("NOT AS PROMISED:", trial)
    return int(not table["ok"].all())


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    groups = table.groupby(["victim", "signal"], sort=False)
    ends = groups["end"].agg(lambda each: ", ".join(f"{n} {end}" for end, n in each.value_counts().items()))
    sums = groups[["processes", "files"]].sum().rename(columns=lambda name: f"{name} left")
    slowest = groups["seconds"].max().round(1).rename("slowest (s)")
    kept = groups["ok"].agg(lambda each: f"{each.sum()} of {len(each)}").rename("as promised")
    return pd.concat([kept, ends.rename("ends"), slowest, sums], axis=1)


# ---- one run ---------------------------------------------------------------------------------------------------------
def _solve() -> dict[str, str]:
    """The end of a run."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_dict({f"node {k}": (rng.standard_normal((8, 3)), rng.standard_normal(8)) for k in range(5)})
    graph = nx.cycle_graph([f"node {k}" for k in range(5)])
    problem = gr.Problem(gr.SquaredLoss(data) + 0.2 * gr.TotalVariation(graph, gr.L2()))
    engine = gr.Actors(processes=3, timeout=TIMEOUT)
    try:
        print("ready", flush=True)
        found = problem.solve(gr.PrimalDual(balance=1.0), gap=0, seconds=SECONDS, engine=engine)
        return {"end": found.status, "said": found.message}
    except ActorError as error:
        return {"end": "ActorError", "said": str(error)}


def _trial(victim: str, name: str, seed: int) -> Trial:
    rng = np.random.default_rng([VICTIMS.index(victim), SIGNALS.index(name), seed])
    with tempfile.TemporaryDirectory() as folder:
        there = {**os.environ, **THREADS, "TMPDIR": folder}
        command = [sys.executable, "-m", "benchmarks.failures", "--child"]
        with subprocess.Popen(command, env=there, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.0, MOMENTS))
            family = _strike(child, victim, name, rng)
            began = time.monotonic()
            try:
                said, noise = child.communicate(timeout=SECONDS + TIMEOUT + 2 * MORE)
            except subprocess.TimeoutExpired:
                child.kill()
                said, noise = "", "hangs"
            left = left_of(family, began + TIMEOUT + MORE)
            seconds = time.monotonic() - began
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        files = len(list(Path(folder).iterdir()))
    dead = child.returncode in (-signal.SIGKILL, -signal.SIGTERM) and noise != "hangs"
    lines = noise.strip().splitlines() or [""]
    ended = json.loads(said) if said else {"end": "dead" if dead else lines[-1], "said": ""}
    return Trial(victim, name, seconds=seconds, processes=len(left), files=files, **ended)


def _strike(child: subprocess.Popen[str], victim: str, name: str, rng: np.random.Generator) -> list[int]:
    """Send the signal; all processes of the run. The first of the others is the one that starts the rest."""
    others = list(descendants(child.pid))
    while victim == "host" and not others:
        time.sleep(0.02)
        others = list(descendants(child.pid))
    target = child.pid if victim == "coordinator" else int(rng.choice(others[1:] or others))
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, getattr(signal, f"SIG{name}"))
    if name == "STOP" and victim == "coordinator":
        time.sleep(TIMEOUT + 2.0)
        os.kill(target, signal.SIGCONT)
    return list({*others, *descendants(child.pid)})


if __name__ == "__main__":
    sys.exit(main())
