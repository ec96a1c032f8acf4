"""``python -m benchmarks.interrupting``: press Ctrl-C at random moments in everything that takes time.

Every press strikes a process of its own. It must be heard within a second, by a status or by KeyboardInterrupt, and
the process must end within two, with nothing on stderr. The machine may have other work to do, so beside seconds on
the wall there are the seconds of CPU of the process; a press fails where both are too many. Exit code 1 where one does.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from tqdm import tqdm

import graphreg as gr

from .processes import descendants, left_of
from .worker import ROOT, THREADS

HEARD, ENDED = 1.0, 2.0  # seconds
LONGEST = 60.0  # seconds after which a process that hears nothing is killed
TINY = 1e-12  # a gap that is not met before the press
_pressed: list[int] = []  # signals of this process


# ---- problems --------------------------------------------------------------------------------------------------------
def _graph(n: int) -> nx.Graph:
    return nx.gnm_random_graph(n, 3 * n, seed=1)


def _drawn(n: int, d: int = 8, each: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n * each, d)), rng.normal(size=n * each), np.repeat(np.arange(n), each)


def _logistic(n: int) -> gr.Problem:
    X, y, node = _drawn(n)
    data = gr.NodeData.from_arrays(X, (y > 0).astype(int), node)
    return gr.Problem(gr.LogisticLoss(data) + 0.3 * gr.TotalVariation(_graph(n), gr.L2()))


def _squared(n: int, penalty: Any = None, d: int = 8) -> gr.Problem:
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(*_drawn(n, d)))
    return gr.Problem(loss + gr.Parameter(0.3, name="lam") * gr.TotalVariation(_graph(n), penalty or gr.L2()))


def _chain(n: int) -> gr.Problem:
    X, y, node = _drawn(n, 1, 1)
    loss = gr.HuberLoss(gr.NodeData.from_arrays(np.ones_like(X), y, node), delta=1.0)
    return gr.Problem(loss + 2.0 * gr.TotalVariation(nx.path_graph(n), gr.L1()))


@cache
def _answer(n: int = 400) -> gr.Solution:
    return _squared(n).solve(gap=1e-6)


# ---- places ----------------------------------------------------------------------------------------------------------
Action = Callable[[], Any]


def _solve(problem: gr.Problem, method: Any = None, **how: Any) -> Action:
    return lambda: problem.solve(method, **{"gap": TINY, **how})


def _again(action: Action) -> Action:
    """Short work, over and over, until Ctrl-C is pressed: an answer that has just met its gap is certified, and
    does not say that it was interrupted."""

    def work() -> Any:
        while not _cut(found := action()) and not _pressed:
            pass
        return found

    return work


def _with(problem: gr.Problem, call: Callable[[gr.Problem], Any]) -> Action:
    return lambda: call(problem)


def _written(name: str) -> Action:
    folder, answer = tempfile.mkdtemp(), _answer()
    what: Callable[[str], Any] = getattr(answer, name)
    return _again(lambda: what(f"{folder}/out"))


def _validated(jobs: int) -> Action:
    problem = _squared(400)
    return _again(lambda: gr.cross_validate(problem, {"lam": [0.1, 0.2, 0.4]}, folds=5, gap=1e-9, jobs=jobs))


def _program() -> Action:
    from graphreg.verify import main

    path = f"{tempfile.mkdtemp()}/proof"
    _answer(60).prove(path)
    return _again(lambda: main([path]))


PLACES: dict[str, Callable[[], Action]] = {
    "Auto, logistic, 1500 nodes": lambda: _again(_solve(_logistic(1500))),
    "Auto, squares, 3000 nodes": lambda: _again(_solve(_squared(3000))),
    "InteriorPoint, 1500 nodes": lambda: _solve(_logistic(1500), gr.InteriorPoint()),
    "InteriorPoint, 3000 nodes": lambda: _solve(_logistic(3000), gr.InteriorPoint()),
    "Exact, 3000 nodes": lambda: _solve(_logistic(3000), gr.Exact()),
    "Exact, dual, 800 nodes": lambda: _solve(_squared(800), gr.Exact(form="dual")),
    "Exact, scs": lambda: _solve(_squared(800), gr.Exact("scs")),
    "PrimalDual": lambda: _solve(_squared(3000), gr.PrimalDual(), gap=0),
    "ADMM": lambda: _solve(_squared(3000), gr.ADMM(), gap=0),
    "FedADMM, inexact": lambda: _solve(_logistic(1500), gr.FedADMM()),
    "LinearSystem": lambda: _again(_solve(_squared(2000, gr.SquaredL2()), gr.LinearSystem(), gap=1e-6)),
    "DynamicProgramming": lambda: _again(_solve(_chain(100_000), gr.DynamicProgramming(), gap=1e-6)),
    "Parts": lambda: _solve(_squared(3000), gr.PrimalDual(), gap=0, engine=gr.Parts(3)),
    "Actors in processes": lambda: _solve(_squared(60), gr.PrimalDual(), gap=0, engine=gr.Actors(processes=2)),
    "path": lambda: _with(_squared(2000), lambda problem: gr.path(problem, 50, gap=1e-9)),
    "cross_validate": lambda: _validated(1),
    "cross_validate, 2 processes": lambda: _validated(2),
    "strength_max": lambda: _again(_with(_logistic(1000), gr.strength_max)),
    "compare": lambda: _with(_squared(600), lambda problem: gr.compare(problem, gap=1e-9)),
    "audit": lambda: _again(_with(_squared(300), lambda problem: gr.audit(problem, gr.PrimalDual()))),
    "certify": lambda: _again(_with(_squared(1000), lambda problem: problem.certify(np.zeros((1000, 8))))),
    "prove": lambda: _written("prove"),
    "verify": _program,
    "report": lambda: _written("report"),
    "save": lambda: _written("save"),
    "clusters, proved": lambda: _again(lambda: _again_clusters(_answer())),
    "making a problem": lambda: _again(lambda: _squared(3000)),
}


def _again_clusters(answer: gr.Solution) -> Any:
    vars(answer).pop("_proved_clusters", None)  # else they are known
    return answer.clusters(prove=True)


# ---- a press ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Press:
    place: str
    after: float  # seconds into the work
    end: str  # "interrupted", "KeyboardInterrupt", or what should not be
    heard: float  # seconds since the press, until the call is over
    heard_cpu: float  # of the process, as all in seconds of CPU
    ended: float  # until the process is over
    ended_cpu: float
    left: int  # processes
    noise: str  # on stderr

    @property
    def ok(self) -> bool:
        heard = min(self.heard, self.heard_cpu) <= HEARD and min(self.ended, self.ended_cpu) <= ENDED
        return heard and self.end in ("interrupted", "KeyboardInterrupt") and not self.left and not self.noise


def _child(place: str) -> None:
    signal.signal(signal.SIGINT, _heard)  # shells have what runs in the background ignore it
    action = PLACES[place]()
    print("ready", flush=True)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            found = action()
        whole = bool(_pressed) and getattr(found, "status", "") == "certified"
        end = "interrupted" if _cut(found) or whole else str(getattr(found, "status", type(found).__name__))
    except KeyboardInterrupt:
        end = "KeyboardInterrupt"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        end = f"{type(error).__name__}: {error}"
    print(json.dumps({"end": end, "at": time.monotonic(), "cpu": time.process_time()}), flush=True)


def _heard(number: int, frame: FrameType | None) -> None:
    _pressed.append(number)
    signal.default_int_handler(number, frame)


def _cut(found: Any) -> bool:
    """True where a result says that it was interrupted."""
    said = [getattr(found, name, "") for name in ("status", "ended", "interrupted", "left_out")]
    return any(each is True or "nterrupted" in str(each) for each in said) or "nterrupted" in str(found)


def press(place: str, after: float) -> Press:
    """One press, so many seconds after the work of a place has begun."""
    command = [sys.executable, "-m", "benchmarks.interrupting", "--child", place]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as noise:
        there = {**os.environ, **THREADS, "TMPDIR": folder, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, env=there, cwd=ROOT, stdout=subprocess.PIPE, stderr=noise, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(after)
            family, cpu, at = list(descendants(child.pid)), cpu_of(child.pid), time.monotonic()
            child.send_signal(signal.SIGINT)
            line = _line(child)
            over, total = _over(child, at + LONGEST)
        left = left_of(family, over + ENDED)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        noise.seek(0)
        said = json.loads(line) if line else {"end": "hears nothing", "at": over, "cpu": total}
        clocks = (said["at"] - at, said["cpu"] - cpu, over - at, total - cpu)
        return Press(place, after, said["end"], *clocks, len(left), noise.read().strip())


def _line(child: subprocess.Popen[str]) -> str:
    """The next line of a process; empty where none comes in time."""
    from select import select

    assert child.stdout is not None
    ready, _, _ = select([child.stdout], [], [], LONGEST)
    return child.stdout.readline() if ready else ""


def _over(child: subprocess.Popen[str], until: float) -> tuple[float, float]:
    """The time at which a process ended, and the seconds of CPU that it took in all."""
    cpu = cpu_of(child.pid)
    while child.poll() is None:
        if time.monotonic() > until:
            child.kill()
        cpu = cpu_of(child.pid) or cpu
        time.sleep(0.005)
    return time.monotonic(), cpu


def cpu_of(pid: int) -> float:
    """Seconds of CPU of a process so far; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            found = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK")


def study(places: list[str], times: int, longest: float, seed: int) -> list[Press]:
    """So many presses in each place, at random moments."""
    rng = np.random.default_rng(seed)
    todo = [(place, float(rng.uniform(0.0, longest))) for place in places for _ in range(times)]
    return [press(place, after) for place, after in tqdm(todo, disable=None)]


def table(presses: list[Press]) -> pd.DataFrame:
    frame = pd.DataFrame([{**vars(each), "ok": each.ok} for each in presses])
    groups = frame.groupby("place", sort=False)
    worst = groups[["heard", "heard_cpu", "ended", "ended_cpu"]].max().round(2)
    kept = groups["ok"].agg(lambda each: f"{each.sum()} of {len(each)}").rename("as promised")
    return pd.concat([kept, worst.rename(columns=lambda name: f"{name} (s)".replace("_cpu", ", CPU"))], axis=1)


def main() -> int:
    """The study, or with ``--child`` what is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interrupting", description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="presses in each place")
    parser.add_argument("--longest", type=float, default=6.0, help="seconds within which Ctrl-C is pressed")
    parser.add_argument("--places", default="", help="those whose names have this in them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child(args.child)
        return 0
    presses = study([name for name in PLACES if args.places in name], args.times, args.longest, args.seed)
    print(table(presses).to_string())
    for each in presses:
        if not each.ok:
            print("NOT AS PROMISED:", each)
    return int(not all(each.ok for each in presses))


if __name__ == "__main__":
    sys.exit(main())
