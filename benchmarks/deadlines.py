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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from tqdm import tqdm

import graphreg as gr
from graphreg.base.declaring import declared, needs_no_options
from graphreg.datasets import random_problem
from graphreg.errors import GraphregError
from graphreg.running import AbstractMethod

from .choice import GRAPHS, drawn
from .interrupting import cpu_of
from .memory import peak

ENOUGH, REFUSED = 3.0, 2.0  # seconds for what is too large, and of CPU until that is said
LATE = 0.5  # seconds of CPU beyond the deadline
SECONDS = (0.01, 0.1, 1.0)
TIMES = (1.0, 10.0, 30.0)  # times larger than the problems of `choice`
MEMORY = 6e9  # bytes
LONGEST = 40.0  # seconds of CPU after which a call that hears nothing is killed
TINY = 1e-12  # a gap that is not met
Array = Any
Maker = Callable[[], gr.Problem]
Call = Callable[[gr.Problem, float | None], Any]


# ---- problems --------------------------------------------------------------------------------------------------------
def _one_node(loss: Any, m: int, d: int) -> gr.Problem:
    """The lasso of a loss."""
    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((m, d)), np.sign(rng.standard_normal(m))
    fit = loss(gr.NodeData.from_arrays(X, signs, np.zeros(m, dtype=int)))
    return gr.Problem(fit + gr.Parameter(1e-2, name="lam") * gr.NodePenalty(gr.L1()))


def _on(edges: Array, d: int, penalty: Any, loss: Any = gr.SquaredLoss, each: int = 3, more: Any = None) -> gr.Problem:
    """So many samples of each node of a graph."""
    rng, n = np.random.default_rng(0), int(edges.max()) + 1
    node, graph = (
        np.repeat(np.arange(n), each),
        gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], np.ones(len(edges))),
    )
    X, signs = rng.standard_normal((len(node), d)), np.sign(rng.standard_normal(len(node)))
    data = gr.NodeData.from_arrays(X, signs, node)
    lam = gr.Parameter(0.1, name="lam")
    over = gr.Consensus(graph) if penalty is None else lam * gr.TotalVariation(graph, penalty)
    model = loss(data) + over
    return gr.Problem(model if more is None else model + more)


def _of_rows(n: int, m: int, penalty: Any) -> gr.Problem:
    """A norm of products with a dense matrix."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(np.ones((n, 1)), rng.standard_normal(n), np.arange(n))
    return gr.Problem(
        gr.SquaredLoss(data) + gr.Parameter(0.1, name="lam") * penalty(rng.standard_normal((m, n)) @ gr.w)
    )


def _pairs(n: int) -> Array:
    return np.column_stack(np.triu_indices(n, 1))


def _chain(n: int) -> Array:
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


HEAVY: dict[str, Maker] = {
    "one node 20,000 x 800, logistic": lambda: _one_node(gr.LogisticLoss, 20_000, 800),
    "one node 5,000 x 1,500, quantile": lambda: _one_node(partial(gr.QuantileLoss, tau=0.3), 5_000, 1_500),
    "3 nodes x 2,000": lambda: _on(_chain(3), 2_000, gr.L2(), each=50),
    "40 nodes x 300, hinge": lambda: _on(_pairs(40), 300, gr.L2(), gr.HingeLoss, each=50),
    "chain of 300,000": lambda: _on(_chain(300_000), 1, gr.L1(), gr.HuberLoss, each=1),
    "grid of 200 x 200 x 3, quantile": lambda: _on(
        GRAPHS["grid"](40_000, None), 3, gr.L1(), partial(gr.QuantileLoss, tau=0.3)
    ),
    "grid of 300 x 300 x 5, squares": lambda: _on(GRAPHS["grid"](90_000, None), 5, gr.SquaredL2()),
    "complete graph of 1,200": lambda: _on(_pairs(1_200), 2, gr.L2()),
    "consensus of 20,000": lambda: _on(_chain(20_000), 5, None, gr.LogisticLoss),
    "boxes on a grid": lambda: _on(GRAPHS["grid"](20_000, None), 3, gr.L1(), more=gr.NodePenalty(gr.Box(-0.5, 0.5))),
    "dense rows, 1,500 x 3,000": lambda: _of_rows(3_000, 1_500, gr.L1()),
    "quadratic form of 400": lambda: _on(_chain(30), 400, gr.Quadratic(np.eye(400) + 1.0), each=20),
}


def problems(seeds: Sequence[int]) -> Iterator[tuple[int, str, Maker]]:
    """Seed, words and maker: in turn a small one with terms of every kind, three that grow, and one of `HEAVY`."""
    for seed in seeds:
        kind, heavy = seed % 5, list(HEAVY)[seed // 5 % len(HEAVY)]
        if kind == 0:
            small = random_problem(seed)
            yield seed, small.description, lambda small=small: gr.Problem(small.model)
        elif kind == 4:
            yield seed, heavy, HEAVY[heavy]
        else:
            yield seed, *drawn(seed, TIMES[kind - 1])


def _dense_row(n: int) -> gr.Problem:
    """Neighbours that are alike, and a few sums over all nodes."""
    rng = np.random.default_rng(0)
    data = gr.NodeData.from_arrays(np.ones((n, 1)), rng.standard_normal(n), np.arange(n))
    lam = gr.Parameter(0.1, name="lam")
    return gr.Problem(gr.SquaredLoss(data) + lam * gr.L1()(sp.csr_array(rng.standard_normal((4, n))) @ gr.w))


def _classes(d: int, classes: int) -> gr.Problem:
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(3), 2 * classes)
    data = gr.NodeData.from_arrays(rng.standard_normal((len(node), d)), np.arange(len(node)) % classes, node)
    graph = gr.Graph((0, 1, 2), *_chain(3).T, np.ones(2))
    return gr.Problem(gr.MultinomialLoss(data) + gr.Parameter(0.1, name="lam") * gr.TotalVariation(graph, gr.L2()))


def _random(n: int, d: int, penalty: Any, loss: Any = gr.SquaredLoss, more: Any = None) -> gr.Problem:
    pairs = np.sort(np.random.default_rng(0).integers(0, n, (4 * n, 2)), axis=1)
    pairs = np.unique(np.concatenate([_chain(n), pairs[pairs[:, 0] != pairs[:, 1]]]), axis=0)
    return _on(pairs, d, penalty, loss, 2, more)


LARGE: dict[str, Maker] = {
    "3 nodes x 100,000": lambda: _on(_chain(3), 100_000, gr.L2(), each=20),
    "3 nodes x 40,000, squares": lambda: _on(_chain(3), 40_000, gr.SquaredL2(), each=20),
    "3 nodes x 40,000, logistic": lambda: _on(_chain(3), 40_000, gr.L1(), gr.LogisticLoss, each=20),
    "3 nodes x 40,000, hinge": lambda: _on(_chain(3), 40_000, gr.L2(), gr.HingeLoss, each=20),
    "one node 60 x 100,000": lambda: _one_node(gr.SquaredLoss, 60, 100_000),
    "one node 60 x 100,000, logistic": lambda: _one_node(gr.LogisticLoss, 60, 100_000),
    "one node 60 x 60,000, quantile": lambda: _one_node(partial(gr.QuantileLoss, tau=0.3), 60, 60_000),
    "consensus of 5 x 40,000": lambda: _on(_chain(5), 40_000, None, each=10),
    "300 nodes x 8,000": lambda: _on(_chain(300), 8_000, gr.L2(), each=1),
    "complete graph of 3,000 x 30": lambda: _on(_pairs(3_000), 30, gr.L2(), each=1),
    "grid of 700 x 700 x 8": lambda: _on(GRAPHS["grid"](490_000, None), 8, gr.L2(), each=1),
    "random graph of 40,000 x 10": lambda: _random(40_000, 10, gr.L2()),
    "random graph of 40,000 x 10, squares": lambda: _random(40_000, 10, gr.SquaredL2()),
    "random graph of 60,000 x 4, quantile": lambda: _random(60_000, 4, gr.L1(), partial(gr.QuantileLoss, tau=0.3)),
    "chain of 1,500,000": lambda: _on(_chain(1_500_000), 1, gr.L1(), each=1),
    "boxes on a random graph": lambda: _random(50_000, 5, gr.L2(), more=gr.NodePenalty(gr.Box(-0.5, 0.5))),
    "sums over 200,000 nodes": lambda: _dense_row(200_000),
    "sums over 60,000 nodes": lambda: _dense_row(60_000),
    "600 classes x 100": lambda: _classes(100, 600),
    "3 nodes x 30,000, Huber": lambda: _on(_chain(3), 30_000, gr.HuberNorm(0.1), each=20),
}


# ---- calls -----------------------------------------------------------------------------------------------------------
@cache
def _methods() -> dict[str, AbstractMethod]:
    every: dict[str, Any] = declared(AbstractMethod)
    return {name: each() for name, each in every.items() if needs_no_options(each)}


def _solve(method: Any, problem: gr.Problem, seconds: float | None) -> Any:
    return problem.solve(method, gap=TINY, seconds=seconds, on_failure="return", progress=False)


def _certify(problem: gr.Problem, seconds: float | None) -> Any:
    w = np.random.default_rng(0).standard_normal((len(problem.form.observed), problem.form.d))
    return problem.certify(w, seconds=seconds)


def _audit(problem: gr.Problem, seconds: float | None) -> Any:
    return gr.audit(problem, gr.PrimalDual(), seconds=60.0 if seconds is None else seconds)


CALLS: dict[str, Call] = {
    "certify": _certify,
    "path": lambda problem, seconds: gr.path(problem, [10.0, 1.0, 0.1], seconds=seconds, progress=False),
    "strength_max": lambda problem, seconds: gr.strength_max(problem, seconds=seconds),
    "cross_validate": lambda problem, seconds: gr.cross_validate(
        problem, [10.0, 1.0, 0.1], folds=3, seconds=seconds, progress=False
    ),
    "audit": _audit,
}


def calls(problem: gr.Problem) -> dict[str, Call]:
    """All that takes time, by name."""
    fit = {name: partial(_solve, each) for name, each in _methods().items() if not each.lacks(problem.form)}
    return {**fit, **CALLS}


def _ending(found: Any) -> str:
    said = next((str(getattr(found, name)) for name in ("status", "ended") if getattr(found, name, "")), "returned")
    return f"failed: {found.message}" if said == "failed" else said


def _cpu() -> float:
    """Seconds of this process, and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _child(call: Call, make: Maker, seconds: float | None, longest: float, into: int, stacks: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(longest) + 1, int(longest) + 2))
    problem = make()
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds + LATE, file=stacks)
    began, before, raw = time.perf_counter(), _cpu(), False
    try:
        os.write(into, b"\n")
        end = _ending(call(problem, seconds))
    except KeyboardInterrupt:
        end = "KeyboardInterrupt"
    except (GraphregError, MemoryError) as error:
        end = f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        end, raw = f"{type(error).__name__}: {error}", True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what comes now is too late
    said = {"end": end, "raw": raw, "cpu": _cpu(), "before": before, "wall": time.perf_counter() - began, "mb": peak()}
    os.write(into, json.dumps(said).encode())
    os._exit(0)


def run(call: Call, make: Maker, seconds: float | None, press: float | None = None) -> dict[str, Any]:
    """One call with a deadline, or with Ctrl-C after so many seconds; how late it is."""
    out, into = os.pipe()
    with tempfile.TemporaryFile("w+") as stacks:
        pid = os.fork()
        if pid == 0:
            _child(call, make, seconds, LONGEST + (seconds or press or 0.0), into, stacks)
        os.close(into)
        at = 0.0
        with os.fdopen(out, "rb", buffering=0) as pipe:
            pipe.read(1)
            if press is not None:
                time.sleep(press)
                at = cpu_of(pid)
                os.kill(pid, signal.SIGINT)
            line = pipe.read()
        _, _, used = os.wait4(pid, 0)
        stacks.seek(0)
        where = stacks.read()
    cpu = used.ru_utime + used.ru_stime
    died = {"end": "died, or was killed", "raw": True, "cpu": cpu, "before": 0.0, "wall": np.nan, "mb": np.nan}
    found = json.loads(line) if line else died
    late = found["cpu"] - (at if seconds is None else found["before"] + seconds)
    return {**found, "late": late, "where": where if late > LATE else ""}


def study(seeds: Sequence[int], wanted: str, pressed: bool, out: str) -> pd.DataFrame:
    """Every call of every problem with every deadline, or with a press after as long as it was drawn."""
    rows, rng = list[dict[str, Any]](), np.random.default_rng(seeds[0])
    for seed, words, make in tqdm(problems(seeds), total=len(seeds), disable=None):
        for name, call in calls(make()).items():
            if wanted not in name:
                continue
            for seconds in SECONDS:
                how = (None, float(rng.uniform(0.0, 2.0 * seconds))) if pressed else (seconds, None)
                found = run(call, make, *how)
                rows.append({"seed": seed, "call": name, "seconds": how[0] or how[1], **found, "words": words})
        if out:
            pd.DataFrame(rows).to_json(out, orient="records", lines=True)
    return pd.DataFrame(rows)


def refusals(wanted: str, out: str) -> pd.DataFrame:
    """What becomes of every call of the problems that are too large: refused in words, or in time."""
    rows = list[dict[str, Any]]()
    for words, make in tqdm(LARGE.items(), disable=None):
        if wanted in words:
            for name, call in calls(make()).items():
                found = run(call, make, ENOUGH)
                refused = " GB" in found["end"] and "allocate" not in found["end"]
                slow = refused and found["cpu"] - found["before"] > REFUSED
                raw = found["raw"] or slow or (not refused and "emory" in found["end"])
                rows.append({"seed": 0, "call": name, "seconds": ENOUGH, **found, "raw": raw, "words": words})
            pd.DataFrame(rows).to_json(out or os.devnull, orient="records", lines=True)
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
    parser.add_argument("--kinds", default="01234", help="of problems: small, three that grow, heavy ones")
    parser.add_argument("--press", action="store_true", help="Ctrl-C instead of a deadline")
    parser.add_argument(
        "--large", nargs="?", const="", help="problems too large for the memory, with this in their names"
    )
    parser.add_argument("--out", default="", help="a file for all that was measured, in lines of JSON")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what runs in the background ignore it
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    warm = random_problem(0).problem
    for call in calls(warm).values():  # imports are no part of any deadline
        with suppress(GraphregError):
            call(warm, 5.0)
    if args.large is None:
        every = range(args.first, args.first + args.count)
        found = study([seed for seed in every if str(seed % 5) in args.kinds], args.calls, args.press, args.out)
    else:
        found = refusals(args.large, args.out)
    print(table(found).to_string())
    bad = found[(found.late > LATE) | found.raw]
    for _, each in bad.iterrows():
        print(f"{each.call}, {each.seconds:.2g} s: {each.late:.2f} s late, {each.end}; {each.words}\n{each['where']}")
    return int(len(bad) > 0)


if __name__ == "__main__":
    sys.exit(main())
