"""``python -m benchmarks.clusters``: parts and MPI jobs on this machine.

``speed``: seconds a round on one rank and on two, in turn; ``cost``: a round against nodes, edges, borders and ranks,
with the model that is fitted to them (see `costs`); ``large``: a problem that no process has as a whole, certified,
with the memory of each rank; ``memory``: the memory of each rank against the number of ranks, of one problem;
``kills``: ranks killed at random, and the bits of what goes on; ``bits``: iterates and messages of every method on
parts and ranks against those on whole arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import graphreg as gr

from . import bits, costs

Array = Any
BIND = ("--bind-to", "core")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def piece(asked: argparse.Namespace, rank: int, ranks: int) -> tuple[Any, range]:
    """A graph of which a rank makes its own piece alone: the problem of the piece, and its own nodes.

    A "band" ties node i to i + 1, i + s, i + s + 1, ... with s the root of the number of nodes, as on a mesh; in a
    "random" graph any node may be tied to any other, so that most are on some border.
    """
    nodes, degree = asked.nodes, asked.degree
    low, high = nodes * rank // ranks, nodes * (rank + 1) // ranks
    own, tail, head = range(low, high), *(_random if asked.graph == "random" else _band)(nodes, degree, low, high)
    labels = np.unique(np.concatenate([tail, head, np.arange(low, high)]))
    graph = gr.Graph(labels, np.searchsorted(labels, tail), np.searchsorted(labels, head), np.ones(len(tail)))
    rng = np.random.default_rng([0, low])  # of speed alone: other ranks, other data
    X = rng.standard_normal((asked.samples * len(own), asked.d))
    truth = np.sin(np.repeat(np.arange(low, high), asked.samples) * (6.0 / nodes))
    y = X.sum(axis=1) * truth + rng.standard_normal(len(X))
    data = gr.NodeData.from_arrays(X, y, np.repeat(np.arange(low, high), asked.samples))
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())), own


def _band(nodes: int, degree: int, low: int, high: int) -> tuple[Array, Array]:
    step = int(np.sqrt(nodes))
    offsets = [k // 2 * step + k % 2 for k in range(1, degree + 1)] if degree > 1 else [1]
    tails = [np.arange(max(low - off, 0), min(high, nodes - off)) for off in offsets]
    heads = [t + off for t, off in zip(tails, offsets, strict=True)]
    return np.concatenate(tails), np.concatenate(heads)


def _random(nodes: int, degree: int, low: int, high: int) -> tuple[Array, Array]:
    ends = np.random.default_rng(nodes).integers(0, nodes, (degree * nodes, 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    return ends[((ends >= low) & (ends < high)).any(axis=1)].T


def launch(ranks: int, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """This file on so many ranks."""
    beside = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    many = ranks > (os.cpu_count() or 1)
    how = ("--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1") if many else BIND
    command = [str(beside), "-n", str(ranks), *how, sys.executable, "-m", "benchmarks.clusters", *arguments]
    environment = {**os.environ, **ROOT, **THREADS}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, **options)


def heard(ranks: int, *arguments: str) -> dict[str, Any]:
    """The last words of the first rank."""
    process = launch(ranks, *arguments)
    text = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"a job of {ranks} ranks ended with {process.returncode}")
    return json.loads(text.strip().splitlines()[-1])


# ---- what ranks do ---------------------------------------------------------------------------------------------------
def rounds(asked: argparse.Namespace) -> None:
    """Seconds a round, the median of blocks of ten rounds on the slowest rank, after ten that are not counted."""
    from graphreg.distributed import MPIWire, world
    from graphreg.distributed.parts.engine import PartEngine
    from graphreg.distributed.parts.local import local_part
    from graphreg.network import LocalView

    comm = world()
    wire = MPIWire(comm)
    problem, own = piece(asked, comm.rank, comm.size)
    part, owner = local_part(problem.form.frozen(), own, wire)
    method = gr.PrimalDual(balance=1.0)
    state = method.init(LocalView(part.form, PartEngine(part, owner, wire), 0, part.whole), None)
    times = []
    for block in range(asked.blocks + 1):
        comm.Barrier()
        began = time.perf_counter()
        left = 10
        while left:
            state, done = method.steps(state, left)
            left -= done
        comm.Barrier()
        if block:
            times.append((time.perf_counter() - began) / 10)
    border = int((~part.whole.own).sum())
    edges = sum(len(edge.tail) for edge in part.form.edges)
    most = max(comm.allgather(border))
    if comm.rank == 0:
        print(json.dumps({"seconds": float(np.median(times)), "border": most, "edges": edges}))


def certified(asked: argparse.Namespace) -> None:
    """A run to a gap, with the memory of each rank."""
    from graphreg import mpi
    from graphreg.distributed import world

    comm = world()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    problem, own = piece(asked, comm.rank, comm.size)
    built = time.perf_counter() - began
    found = mpi.solve(problem, own, gap=asked.gap, checkpoint=asked.checkpoint and _kept(asked))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    each = comm.gather((before / 1024, peak / 1024, len(own), found.seconds))
    if comm.rank == 0:
        import hashlib

        digest = hashlib.blake2b(found.coef.tobytes()).hexdigest()[:16]
        said = {"status": found.status, "gap": found.relative_gap, "rounds": found.rounds, "build s": built}
        said |= {"solve s": found.seconds, "MB before and at most": [row[:2] for row in each], "digest": digest}
        said |= {"bounds": [found.dual, found.primal], "MB crossed": int(found.sent.bytes.sum()) / 2**20}
        print(json.dumps(said))


def _kept(asked: argparse.Namespace) -> gr.Checkpoint:
    return gr.Checkpoint(asked.checkpoint, rounds=asked.every, seconds=None)


# ---- studies ---------------------------------------------------------------------------------------------------------
def sized(asked: argparse.Namespace, **changes: Any) -> list[str]:
    values = {name: getattr(asked, name) for name in ("nodes", "degree", "d", "samples", "graph")} | changes
    return [text for name, value in values.items() for text in (f"--{name}", str(value))]


def speed(asked: argparse.Namespace) -> None:
    one, two = [], []
    for _ in range(asked.repeats):
        one.append(heard(1, "rounds", *sized(asked))["seconds"])
        two.append(heard(2, "rounds", *sized(asked))["seconds"])
    ratio = np.median(one) / np.median(two)
    print(f"{asked.nodes:,} nodes, {asked.degree * asked.nodes:,} edges, d = {asked.d}: {1e3 * np.median(one):.3g} ms "
          f"a round on one rank, {1e3 * np.median(two):.3g} on two: {ratio:.2f} times faster")  # fmt: skip


def large(asked: argparse.Namespace) -> None:
    print(json.dumps(heard(2, "certified", "--gap", str(asked.gap), *sized(asked)), indent=1))


def memory(asked: argparse.Namespace) -> None:
    """One problem on 1, 2, 4 ranks: what a rank has at most beyond what it has before it reads anything."""
    print("| ranks | nodes of a rank | MB of a rank at most | of which before any data | certified gap | rounds |")
    print("|---|---|---|---|---|---|")
    for ranks in asked.ranks or (1, 2, 4):
        found = heard(ranks, "certified", "--gap", str(asked.gap), *sized(asked))
        each = found["MB before and at most"]
        before, most = max(row[0] for row in each), max(row[1] for row in each)
        nodes = -(-asked.nodes // ranks)
        print(
            f"| {ranks} | {nodes:,} | {most:,.0f} | {before:,.0f} | {found['gap']:.1e} | {found['rounds']:,} |",
            flush=True,
        )


def same_bits(asked: argparse.Namespace) -> None:
    """Exits with 1 where a digest differs."""

    def job(ranks: int, file: Path) -> None:
        process = launch(ranks, "digests", "--file", str(file))
        if process.wait():
            raise SystemExit(f"a job of {ranks} ranks ended with {process.returncode}")

    if not bits.table(asked.problems, job):
        raise SystemExit(1)


def kills(asked: argparse.Namespace) -> None:
    """Kill -9 of a rank at random moments, and the same command again, until the run is through."""
    generator = random.Random(asked.seed)
    sizes = sized(asked, nodes=asked.nodes, degree=asked.degree, d=asked.d)
    alone = heard(2, "certified", "--gap", str(asked.gap), *sizes)
    killed = 0
    while killed < asked.kills:
        with tempfile.TemporaryDirectory() as folder:
            given = ("certified", "--gap", str(asked.gap), "--checkpoint", f"{folder}/run", "--every", "5", *sizes)
            while True:
                process = launch(2, *given, stderr=subprocess.DEVNULL)
                wait = generator.uniform(1.0, 1.3 * (3.0 + alone["solve s"] + alone["build s"]))
                try:
                    text = process.communicate(timeout=wait)[0]
                except subprocess.TimeoutExpired:
                    victims = _ranks_of(process.pid)
                    if victims and killed < asked.kills:
                        os.kill(generator.choice(victims), signal.SIGKILL)
                        killed += 1
                    text = process.communicate(timeout=120)[0]
                if process.returncode == 0:
                    break
        found = json.loads(text.strip().splitlines()[-1])
        alike = all(found[name] == alone[name] for name in ("digest", "rounds", "bounds"))
        print(f"{killed} kills so far; this run ended {'with the same bits' if alike else 'OTHERWISE'}", flush=True)
        if not alike:
            raise SystemExit(1)


def _ranks_of(launcher: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, above, args in rows if int(above) == launcher and "benchmarks.clusters" in args]


STUDIES = {"speed": speed, "cost": costs.cost, "large": large, "memory": memory, "kills": kills, "bits": same_bits}
OF_RANKS = {
    "rounds": rounds,
    "certified": certified,
    "digests": lambda asked: bits.on_ranks(asked.file),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters", description=__doc__)
    parser.add_argument("what", choices=(*STUDIES, *OF_RANKS))
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--degree", type=int, default=3, help="edges per node")
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--graph", choices=("band", "random"), default="band")
    parser.add_argument("--check", type=int, nargs="*", default=[8, 16], help="ranks by which a fitted model is judged")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+", help="by default 1 2, of memory 1 2 4")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--problems", type=int, default=20, help="of each method")
    parser.add_argument("--file", type=Path, help="where the digests of a job are written")
    asked = parser.parse_args()
    {**STUDIES, **OF_RANKS}[asked.what](asked)


if __name__ == "__main__":
    main()
