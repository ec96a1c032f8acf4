"""``python -m benchmarks.deadlines``: ``seconds=`` and Ctrl-C in random problems, by all methods that apply.

Random problems of all losses, penalties, rows and graphs, small ones up to those whose factors take many seconds. Each
is solved by every method that applies, and goes through the other verbs, with ``seconds=`` .01, .1 and 1, and with
Ctrl-C after as long; every time in a process of its own, in which all is imported. What is measured is the seconds of
CPU beyond the deadline, or the press, until the call is over; more than half a second is too many. Exit code 1 where
that happens, or where something is raised that is no error of the library's.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

import graphreg as gr
from graphreg.base.declaring import declared, needs_no_options
from graphreg.datasets import random_problem
from graphreg.errors import GraphregError
from graphreg.running import AbstractMethod

from .choice import drawn
from .interrupting import cpu_of

LATE = 0.5  # seconds of CPU beyond the deadline
SECONDS = (0.01, 0.1, 1.0)
TIMES = (1.0, 10.0, 30.0)  # times larger than the problems of `choice`
MEMORY = 6e9  # bytes
LONGEST = 40.0  # seconds of CPU after which a call that hears nothing is killed
TINY = 1e-12  # a gap that is not met
Call = Callable[[float | None], Any]


def problem_of(seed: int) -> tuple[str, gr.Problem]:
    """One in four is a small one with terms of every kind."""
    kind = seed % 4
    if kind == 0:
        small = random_problem(seed)
        return small.description, small.problem
    words, make = drawn(seed, TIMES[kind - 1])
    return words, make()


@cache
def _methods() -> dict[str, AbstractMethod]:
    every: dict[str, Any] = declared(AbstractMethod)
    return {name: each() for name, each in every.items() if needs_no_options(each)}


def _solve(problem: gr.Problem, method: Any, seconds: float | None) -> Any:
    return problem.solve(method, gap=TINY, seconds=seconds, on_failure="return", progress=False)


def calls(problem: gr.Problem) -> Iterator[tuple[str, Call]]:
    """All that takes time, by name."""
    for name, method in _methods().items():
        if not method.lacks(problem.form):
            yield name, partial(_solve, problem, method)
    w = np.random.default_rng(0).standard_normal((len(problem.form.observed), problem.form.d))
    yield "certify", lambda seconds: problem.certify(w, seconds=seconds)
    yield "path", lambda seconds: gr.path(problem, 10, seconds=seconds, progress=False, on_failure="return")
    yield "strength_max", lambda seconds: gr.strength_max(problem, seconds=seconds)
    validated = partial(gr.cross_validate, problem, folds=3, progress=False)
    yield "cross_validate", lambda seconds: validated(seconds=seconds)
    yield "audit", lambda seconds: gr.audit(problem, gr.PrimalDual(), seconds=60.0 if seconds is None else seconds)


def _ending(found: Any) -> str:
    return next((str(getattr(found, name)) for name in ("status", "ended") if getattr(found, name, "")), "returned")


def _child(call: Call, seconds: float | None, longest: float, into: int, stacks: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    resource.setrlimit(resource.RLIMIT_CPU, (int(longest) + 1, int(longest) + 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds + LATE, file=stacks)
    began, raw = time.perf_counter(), False
    try:
        end = _ending(call(seconds))
    except KeyboardInterrupt:
        end = "KeyboardInterrupt"
    except (GraphregError, MemoryError) as error:
        end = f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        end, raw = f"{type(error).__name__}: {error}", True
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    said = {"end": end, "raw": raw, "cpu": cpu, "wall": time.perf_counter() - began, "mb": used[0].ru_maxrss / 1024}
    os.write(into, json.dumps(said).encode())
    os._exit(0)


def run(call: Call, seconds: float | None, press: float | None = None) -> dict[str, Any]:
    """One call with a deadline, or with Ctrl-C after so many seconds; how late it is."""
    out, into = os.pipe()
    with tempfile.TemporaryFile("w+") as stacks:
        pid = os.fork()
        if pid == 0:
            _child(call, seconds, LONGEST + (seconds or press or 0.0), into, stacks)
        os.close(into)
        before, due = 0.0, seconds
        if press is not None:
            time.sleep(press)
            before, due = cpu_of(pid), 0.0
            os.kill(pid, signal.SIGINT)
        with os.fdopen(out) as pipe:
            line = pipe.read()
        _, _, used = os.wait4(pid, 0)
        stacks.seek(0)
        where = stacks.read()
    cpu = used.ru_utime + used.ru_stime
    died = {"end": "died, or was killed", "raw": True, "cpu": cpu, "wall": np.nan, "mb": np.nan}
    found = json.loads(line) if line else died
    late = found["cpu"] - before - (due or 0.0)
    return {**found, "late": late, "where": where if late > LATE else ""}


def study(seeds: range, wanted: str, pressed: bool, out: str) -> pd.DataFrame:
    """Every call of every problem with every deadline, or with a press after as long as it was drawn."""
    rows, rng = list[dict[str, Any]](), np.random.default_rng(seeds.start)
    for seed in tqdm(seeds, disable=None):
        words, problem = problem_of(seed)
        for name, call in calls(problem):
            if wanted not in name:
                continue
            for seconds in SECONDS:
                how = (None, float(rng.uniform(0.0, 2.0 * seconds))) if pressed else (seconds, None)
                found = run(call, *how)
                rows.append({"seed": seed, "call": name, "seconds": how[0] or how[1], **found, "words": words})
        if out:
            pd.DataFrame(rows).to_json(out, orient="records", lines=True)
    return pd.DataFrame(rows)


def table(found: pd.DataFrame) -> pd.DataFrame:
    groups = found.groupby("call", sort=False)
    late = groups["late"].agg(runs="size", too_late=lambda each: int((each > LATE).sum()), worst="max")
    return late.assign(raw=groups["raw"].sum(), most_MiB=groups["mb"].max()).round(2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deadlines", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--count", type=int, default=12, help="problems")
    parser.add_argument("--calls", default="", help="those whose names have this in them")
    parser.add_argument("--press", action="store_true", help="Ctrl-C instead of a deadline")
    parser.add_argument("--out", default="", help="a file for all that was measured, in lines of JSON")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    warm = random_problem(0).problem
    for _, call in calls(warm):  # imports are no part of any deadline
        try:
            call(5.0)
        except GraphregError:
            pass
    found = study(range(args.first, args.first + args.count), args.calls, args.press, args.out)
    print(table(found).to_string())
    bad = found[(found.late > LATE) | found.raw]
    for _, each in bad.iterrows():
        print(f"{each.call}, {each.seconds:.2g} s: {each.late:.2f} s late, {each.end}; {each.words}\n{each['where']}")
    return int(len(bad) > 0)


if __name__ == "__main__":
    sys.exit(main())
