"""``python -m benchmarks.mutants_of_rooms``: change lines of the core, drawn at random, and list what tests do not see.

Of each room some lines are drawn, and one change of each, as `benchmarks.mutants` makes them; a seed gives the same
changes as long as the room's files are the same. A change is tried by the tests of the room alone, those of its folder:
what is listed here others may see. Nothing is argued, and the exit code is 0 whatever is found.

The tests of a room run once with marks at its lines, the first of each file, then the second, and so on. So each change
is tried by the tests that come by, the quick ones first, until one fails, or until they have taken ``--seconds`` of a
processor. A single test that takes as long again does not end, which counts as seen. Tests that start other programs do
not try anything.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .mutants import Change, changes, take

ROOMS = ["inputs", "terms", "form", "oracles", "network", "certificate", "compiling", "running", "methods", "judging"]
FOLDERS = {"network": "engines"}  # of the tests, where they are called otherwise
SEED, LINES, SECONDS = 1, 10, 60.0
WAITED = 10  # times as long by the clock
MARK = "_come_by"


@dataclass(frozen=True)
class Place:
    """A change of a file."""

    path: Path
    tree: ast.Module
    change: Change

    def __str__(self) -> str:
        return f"{self.path}:{self.change.line.lineno} {self.change}"


def places(room: str, seed: int, lines: int) -> list[Place]:
    """Changes of so many lines of a room, which stand in functions: what is done when a file is loaded is not done
    again."""
    found = dict[tuple[Path, int], list[Place]]()
    for path in sorted(Path("graphreg", room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = set(_in_functions(tree))
        for change in changes(tree):
            if id(change.line) in inside:
                found.setdefault((path, change.line.lineno), []).append(Place(path, tree, change))
    drawn = random.Random(f"{seed} {room}")
    return [drawn.choice(found[key]) for key in drawn.sample(sorted(found), min(lines, len(found)))]


def _in_functions(tree: ast.Module) -> Iterator[int]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for each in (node for line in function.body for node in ast.walk(line)):
                if isinstance(each, ast.stmt) and not isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                    yield id(each)


def marked(tree: ast.Module, lines: dict[int, int]) -> ast.Module:
    """The tree with a call of the mark before some statements, by their ids, with their numbers."""
    memo = dict[int, Any]()
    out = copy.deepcopy(tree, memo)
    numbers = {id(memo[line]): number for line, number in lines.items()}
    for node in ast.walk(out):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, [each for line in block for each in (*_marks(numbers.get(id(line))), line)])
    return ast.fix_missing_locations(out)


def _marks(number: int | None) -> list[ast.stmt]:
    return [] if number is None else [ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [ast.Constant(number)], []))]


class Tries:
    """A plug-in of pytest: in place of a run of the tests one that notes what comes by where, and one for each
    change."""

    def __init__(self, drawn: Sequence[Place], seconds: float, first: float) -> None:
        self.drawn, self.seconds, self.first = drawn, seconds, first
        self.unseen: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        start = time.monotonic()
        passing: dict[str, list[Any]] = json.loads(_of_a_child(lambda: json.dumps(self._passing(session))) or "{}")
        for number, place in enumerate(self.drawn):
            tests = [session.items[k] for _, k in sorted(passing.get(str(number), []))]
            if _of_a_child(lambda place=place, tests=tests: self._sees_nothing(session, place, tests)) is not None:
                self.unseen.append(f"{place}{'' if tests else '   (no test comes by)'}")
                print("not seen: ", self.unseen[-1], flush=True)
        seen = len(self.drawn) - len(self.unseen)
        print(f"{seen} of {len(self.drawn)} are seen, in {time.monotonic() - start:.0f} s", flush=True)
        return True

    def _passing(self, session: pytest.Session) -> dict[int, list[tuple[float, int]]]:
        """By place the tests that come by, with the seconds that each takes."""
        here, passing = set[int](), dict[int, list[tuple[float, int]]]()
        for path in {place.path for place in self.drawn}:
            own = {k: place for k, place in enumerate(self.drawn) if place.path == path}
            tree = next(iter(own.values())).tree
            setattr(_module(path), MARK, here.add)
            take(marked(tree, {id(place.change.line): k for k, place in own.items()}), _module(path))
        for k in _by_turns(session.items):
            here.clear()
            began = time.process_time()
            if _fails(session, session.items[k]):  # as a few do where they are run in a copy of a process
                continue
            for number in here:
                passing.setdefault(number, []).append((time.process_time() - began, k))
            if time.process_time() > self.first:
                break
        return passing

    def _sees_nothing(self, session: pytest.Session, place: Place, tests: Sequence[Any]) -> str:
        signal.setitimer(signal.ITIMER_PROF, 2.0 * self.seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITED * self.seconds)
        take(place.change.made(place.tree), _module(place.path))
        for item in tests:
            if _fails(session, item):
                raise AssertionError(item.nodeid)
            if time.process_time() > self.seconds:
                break
        return "nothing"


def _by_turns(items: Sequence[Any]) -> list[int]:
    """The numbers of the tests: the first of each file, the second of each, and so on."""
    seen, turns = Counter[Path](), list[tuple[int, int]]()
    for k, item in enumerate(items):
        seen[item.path] += 1
        turns.append((seen[item.path], k))
    return [k for _, k in sorted(turns)]


def _module(path: Path) -> Any:
    return importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))


def _fails(session: pytest.Session, item: Any) -> bool:
    session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    failed, session.testsfailed = session.testsfailed, 0
    return bool(failed)


def _of_a_child(work: Callable[[], str]) -> str | None:
    """The text that some work returns in a process of its own, and quietly; None where it does not."""
    with tempfile.NamedTemporaryFile(
        "w+", encoding="utf-8"
    ) as file:  # not a pipe, which what tests start would hold open
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            try:
                file.write(work())
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        return file.read() or None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants_of_rooms", description=__doc__)
    parser.add_argument("rooms", nargs="*", default=ROOMS, help="of the core; all, if left out")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lines", type=int, default=LINES, help="of each room")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a processor, for each change")
    parser.add_argument(
        "--first", type=float, default=np.inf, help="of a processor, for the first run; all, if left out"
    )
    asked = parser.parse_args()
    counts = list[tuple[int, int]]()
    for room in asked.rooms:
        tries = Tries(places(room, asked.seed, asked.lines), asked.seconds, asked.first)
        print(f"{room}: {len(tries.drawn)} changes", flush=True)
        tests = f"tests/{FOLDERS.get(room, room)}"
        pytest.main([tests, "-q", "-s", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-n", "0"], [tries])
        counts.append((len(tries.drawn) - len(tries.unseen), len(tries.drawn)))
    print("{} of {} changes are seen".format(*map(sum, zip(*counts, strict=True))))


if __name__ == "__main__":
    main()
