"""Seeds over several processes, each of which is killed where a seed takes too long; rows are kept as they come.

A run that was broken off goes on where it stopped, as long as no line of code has changed since.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CODE = (HERE, HERE.parent / "wild", HERE.parents[1] / "graphreg")
PATIENCE = 1.0  # seconds between two looks at the clock

Row = dict[str, Any]
Examine = Callable[[int], Any]  # from a seed to a dataclass


def code() -> str:
    """A name for the code that judges and is judged."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kept(path: Path, fresh: bool) -> dict[int, Row]:
    """The rows of a file, by seed, that the present code has written; an older file is put aside."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.endswith("}")]  # the last line may have been broken off
    if not fresh and rows and rows[0] == {"code": code()}:
        return {row["seed"]: row for row in rows[1:]}
    path.replace(path.with_suffix(".old.jsonl"))
    return {}


def run(examine: Examine, seeds: Iterable[int], path: Path, jobs: int, limit: float, fresh: bool) -> Iterator[Row]:
    """One row per seed, as they come; those that were kept come first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = kept(path, fresh)
    lines = [json.dumps(row) for row in ({"code": code()}, *done.values())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    wanted = list(seeds)
    yield from (done[seed] for seed in wanted if seed in done)
    with path.open("a", encoding="utf-8") as file:
        for row in _rows(examine, [seed for seed in wanted if seed not in done], jobs, limit):
            file.write(json.dumps(row) + "\n")
            file.flush()
            yield row


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    seed: int | None = None
    since: float = 0.0

    @staticmethod
    def start(examine: Examine) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(examine, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def take(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(examine: Examine, pipe: Connection) -> None:
    while True:
        pipe.send(asdict(examine(pipe.recv())))


def _rows(examine: Examine, seeds: list[int], jobs: int, limit: float) -> Iterator[Row]:
    left = iter(seeds)
    workers = [_Worker.start(examine) for _ in range(min(jobs, len(seeds)))]
    busy = [worker for worker in workers if _next(worker, left)]
    try:
        while busy:
            ready = set(wait([worker.pipe for worker in busy], timeout=PATIENCE))
            for k, worker in enumerate(busy):
                row = _row(worker, worker.pipe in ready, limit)
                if row is not None:
                    if row.get("lost"):
                        worker.end()
                        busy[k] = _Worker.start(examine)
                    yield row
                    if not _next(busy[k], left):
                        busy[k].end()
            busy = [worker for worker in busy if worker.seed is not None]
    finally:
        for worker in [*workers, *busy]:
            if worker.process.is_alive():
                worker.end()


def _next(worker: _Worker, left: Iterator[int]) -> bool:
    worker.seed = next(left, None)
    if worker.seed is not None:
        worker.take(worker.seed)
    return worker.seed is not None


def _row(worker: _Worker, ready: bool, limit: float) -> Row | None:
    """The row of a worker that has finished, died or taken too long; None where it goes on."""
    late = time.monotonic() - worker.since
    if ready:
        try:
            return worker.pipe.recv()
        except EOFError:
            return _lost(worker, "the process died", late)
    return _lost(worker, f"took longer than {limit:.0f} s, and was killed", late) if late > limit else None


def _lost(worker: _Worker, why: str, late: float) -> Row:
    return {"seed": worker.seed, "error": why, "seconds": late, "answers": [], "lost": True}
