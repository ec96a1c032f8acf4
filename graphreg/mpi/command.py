"""The command ``python -m graphreg.mpi``, as each process of a job carries it out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..engines import Facts, LocalSolution, abort, agreed, mpi, world, writable
from ..engines import launched_rank as rank_of_launcher
from ..errors import GraphregError, ModelFileError
from ..model_file import ModelFile, read_model, sites_of
from ..running import Checkpoint, entry
from .launching import ERROR, NOT_CERTIFIED, STATUSES, launched, launching
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
            abort(mpi(), error)
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
    unknown = [name for name in file.options if name not in OPTIONS]
    if unknown:
        raise ModelFileError(f"[solve] {unknown[0]}: a run on several sites does not know it; it knows {OPTIONS}")
    return file


def _solved(file: ModelFile, asked: argparse.Namespace) -> LocalSolution:
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
    parser.add_argument("--checkpoint", type=Path, help="a folder in which the run is kept, and from which it goes on")
    parser.add_argument("--every", type=int, help="rounds after which it is kept; by default every 60 seconds")
    parser.add_argument("--sites", nargs="+", help="the sites of this process")
    parser.add_argument("--here", action="store_true", help="this process has all sites whose files it finds")
    parser.add_argument("--allow-outside", action="store_true", help="paths may leave the folder of the model file")
    return parser
