"""A model whose data lie at several sites, on an MPI job: ``mpiexec -n 4 python -m graphreg.mpi model.toml``.

Every process reads the samples and the edges of its own sites, and no process has those of others: see
docs/clusters.md. In Python `solve` does the same for problems that are built by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Hashable, Sequence, Set
from pathlib import Path
from typing import Any

from . import checks
from .engines import LocalSolution, MPIWire, SavedParts, abort, solve_jointly, world
from .errors import GraphregError, MethodError, ModelFileError
from .methods import AbstractIteration, AbstractMethod, PrimalDual
from .model_file import ModelFile, read_model, sites_of
from .problem import Problem
from .running import Budget, Checkpoint

__all__ = ["LocalSolution", "SavedParts", "solve"]
OPTIONS = ("gap", "rounds", "seconds", "seed")  # of [solve] that such a run knows


def solve(  # noqa: PLR0913 - those of Problem.solve
    problem: Problem,
    own: Collection[Hashable],
    method: AbstractMethod | None = None,
    *,
    gap: float = 1e-6,
    rounds: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: Any = None,
) -> LocalSolution:
    """Solve a problem of which this process has its own nodes alone; every process of the job calls it.

    The answer is that of one machine, and so are its bounds, whose proofs are put together from what each process
    proves of its own nodes and edges. Iterates are the same bits for any number of processes.

    Parameters
    ----------
    problem : Problem
        Of the ``own`` nodes with their samples, and of all edges that touch one of these; the other ends of such edges
        are nodes of it without samples. An edge between two processes is in the problems of both.
    own : collection of labels
        The nodes of this process. Every node belongs to one process.
    method : AbstractIteration
        ``PrimalDual()`` by default; any that iterates and knows its flows.
    gap, rounds, seconds, seed, progress
        As for `Problem.solve`. Progress is shown by the first process.

    checkpoint : path or Checkpoint, optional
        A folder that all processes see, in which each keeps its part of the run, every 60 seconds by default. Where a
        run is there, it goes on: with the bits that it would have had.

    Returns
    -------
    LocalSolution

    Raises
    ------
    DataError
        Where processes have different terms or features, where a node belongs to two of them or to none, or where an
        edge between two is known to one alone.
    MethodError
        Where the method or the model is none that is known here; with the reason.
    """
    checks.nonnegative(gap, "gap")
    (checks.count | None)(rounds, "rounds")
    (checks.seconds | None)(seconds, "seconds")
    checks.seed(seed, "seed")
    chosen = PrimalDual() if method is None else method
    if not isinstance(chosen, AbstractIteration) or chosen.central:
        raise MethodError(f"{chosen.name} takes all data in one place; take gr.PrimalDual() or another that iterates")
    missing = chosen.missing(problem.form)
    if missing:
        raise MethodError(f"{chosen.name} does not apply: " + "; ".join(missing), missing)
    budget = Budget(gap, rounds, seconds, seed=seed, progress=progress, checkpoint=Checkpoint.of(checkpoint))
    mine = own if isinstance(own, (Set, range)) else frozenset(own)  # nodes are looked up there, one by one
    return solve_jointly(problem.form.frozen(), mine, chosen, budget, MPIWire(world()))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    asked = _parser().parse_args(arguments)
    comm = world()
    file, error = _read(asked, comm.rank, comm.size)
    errors = comm.allgather(None if error is None else str(error))
    first = next((rank for rank, text in enumerate(errors) if text is not None), None)
    if file is None or first is not None:  # nobody waits for anybody yet: all know, and one says
        if comm.rank == first:
            print(f"graphreg: rank {first} of {comm.size}: {errors[first]}", file=sys.stderr)
        return 1
    try:
        found = _solved(file, asked)
        if asked.out is not None:
            found.save(asked.out)
            comm.Barrier()
    except (GraphregError, OSError) as failed:
        abort(comm.rank, failed, traced=False)
    if found.why:
        print(f"graphreg: rank {comm.rank} has no lower bound: {found.why}", file=sys.stderr)
    if comm.rank == 0:
        print(found)
        if asked.out is not None:
            print(f"written: {asked.out}")
    return 0 if found.status == "certified" else 2


def _read(asked: argparse.Namespace, rank: int, size: int) -> tuple[ModelFile | None, Exception | None]:
    """The model with the tables of this process's sites, or what stands in the way."""
    try:
        sites = _sites(asked, rank, size)
        return read_model(asked.model, asked.data, sites=sites, allow_outside=asked.allow_outside), None
    except (GraphregError, OSError) as error:
        return None, error


def _solved(file: ModelFile, asked: argparse.Namespace) -> LocalSolution:
    unknown = [name for name in file.options if name not in OPTIONS]
    if unknown:
        raise ModelFileError(f"[solve] {unknown[0]}: a run on several sites does not know it; it knows {OPTIONS}")
    options: dict[str, Any] = {**file.options}
    for name in ("gap", "rounds", "seconds"):
        if getattr(asked, name) is not None:
            options[name] = getattr(asked, name)
    if asked.checkpoint is not None:
        seconds = 60.0 if asked.every is None else None
        options["checkpoint"] = Checkpoint(asked.checkpoint, rounds=asked.every, seconds=seconds)
    own = {label for table in file.samples for label in table.labels}
    return solve(file.problem, own, file.method, **options)


def _sites(asked: argparse.Namespace, rank: int, size: int) -> list[str]:
    """Those of this process: of all whose files it finds every so-manieth, or those that are named."""
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
    parser = argparse.ArgumentParser(prog="python -m graphreg.mpi", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model", type=Path, help="a model file with {site} in the paths of its tables")
    parser.add_argument("--data", type=Path, help="the folder of the tables, by default that of the model file")
    parser.add_argument("--out", type=Path, help="a folder for the results, one file per process")
    parser.add_argument("--gap", type=float)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--checkpoint", type=Path, help="a folder in which the run is kept, and from which it goes on")
    parser.add_argument("--every", type=int, help="rounds after which it is kept; by default every 60 seconds")
    parser.add_argument("--sites", nargs="+", help="the sites of this process")
    parser.add_argument("--here", action="store_true", help="this process has all sites whose files it finds")
    parser.add_argument("--allow-outside", action="store_true", help="paths may leave the folder of the model file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
