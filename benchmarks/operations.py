"""Times of what is more, or less, than one solve: building, paths, cross-validation, the same tiny problem again.

Each runs in a process of its own; the first time, which may compile kernels, is told apart from the median of the rest.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphreg as gr

from .generators import chain_edges, grouped_edges, nearest_edges, random_edges
from .memory import peak
from .worker import Limits, limited

HEADER = ("what", "seconds", "first s", "GB", "asked", "met", "status")
GROUPS = 4


@dataclass(frozen=True)
class Operation:
    """``prepare`` makes arrays, or a problem, whose time does not count; ``run`` does. `prepare(True)` is tiny."""

    what: str
    prepare: Callable[[bool], Any]
    run: Callable[[Any], Any]
    asked: float  # CPU seconds


# ---- building --------------------------------------------------------------------------------------------------------
def _big(small: bool) -> tuple[Any, ...]:
    n, samples, d = (50 if small else 100_000), 20, 10
    rng = np.random.default_rng(0)
    edges = grouped_edges(n, 5 * n, 5, rng)
    X, y = rng.standard_normal((n * samples, d)), rng.standard_normal(n * samples)
    return n, edges, X, y, np.repeat(np.arange(n), samples)


def _build_regression(arrays: tuple[Any, ...]) -> gr.Problem:
    n, edges, X, y, node = arrays
    graph = gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    return _formed(gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)) + 0.1 * gr.TotalVariation(graph, gr.L2()))


def _signal(small: bool) -> tuple[Any, ...]:
    n = 50 if small else 1_000_000
    return n, chain_edges(n), np.random.default_rng(0).standard_normal((n, 1))


def _build_chain(arrays: tuple[Any, ...]) -> gr.Problem:
    n, edges, y = arrays
    graph = gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    return _formed(gr.MeanLoss(gr.NodeData.from_arrays(None, y, np.arange(n))) + gr.TotalVariation(graph, gr.L1()))


def _formed(model: gr.Model) -> gr.Problem:
    problem = gr.Problem(model)
    _ = problem.form  # what methods are given: arrays that the first solve would make otherwise
    return problem


# ---- many solves -----------------------------------------------------------------------------------------------------
def _map(small: bool) -> tuple[gr.Graph, np.ndarray[Any, Any], np.random.Generator]:
    """A map of 3111 regions, like the counties of the United States: points and five neighbours of each."""
    rng = np.random.default_rng(0)
    points = rng.random((30 if small else 3111, 2))
    edges = nearest_edges(points, 5)
    graph = gr.Graph(tuple(range(len(points))), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    region = 2 * (points[:, 0] > 0.5) + (points[:, 1] > 0.5)
    return graph, region, rng


def _map_regressions(small: bool) -> tuple[gr.Problem, int]:
    graph, region, rng = _map(small)
    X = np.column_stack([np.ones(len(region)), rng.standard_normal((len(region), 3))])
    y = np.einsum("ij,ij->i", X, rng.standard_normal((GROUPS, 4))[region]) + 0.5 * rng.standard_normal(len(region))
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, y, np.arange(len(region))))
    strength = gr.Parameter(1.0, name="lam")
    ridge = 1e-2 * gr.NodePenalty(gr.SquaredL2())
    return gr.Problem(loss + strength * gr.TotalVariation(graph, gr.L2()) + ridge), 5 if small else 50


def _map_means(small: bool) -> tuple[gr.Problem, int]:
    graph, region, rng = _map(small)
    y = rng.standard_normal(GROUPS)[region][:, None] + 0.5 * rng.standard_normal((len(region), 1))
    loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y, np.arange(len(region))))
    strength = gr.Parameter(1.0, name="lam")
    return gr.Problem(loss + strength * gr.TotalVariation(graph, gr.L1())), 5 if small else 50


def _path(given: tuple[gr.Problem, int]) -> Any:
    return gr.path(given[0], given[1], progress=False, on_failure="return")


def _dense(small: bool) -> gr.Problem:
    n, p = (12, 3) if small else (100, 20)
    rng = np.random.default_rng(0)
    edges = random_edges(n, 3 * n if small else 1450, rng)
    graph = gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    node, group = np.repeat(np.arange(n), 30), np.arange(n) * GROUPS // n
    X = rng.standard_normal((node.size, p))
    y = np.einsum("ij,ij->i", X, rng.standard_normal((GROUPS, p))[group[node]]) + 0.5 * rng.standard_normal(node.size)
    strength = gr.Parameter(1.0, name="lam")
    return gr.Problem(
        gr.SquaredLoss(gr.NodeData.from_arrays(X, y, node)) + strength * gr.TotalVariation(graph, gr.L2())
    )


def _cross_validate(problem: gr.Problem) -> Any:
    return gr.cross_validate(problem, np.geomspace(0.01, 3.0, 8), 5, seed=0, refit=False, progress=False)


def _ten(small: bool) -> tuple[gr.Problem, gr.Parameter]:
    del small
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(10), 10)
    X, edges = rng.standard_normal((node.size, 3)), chain_edges(10)
    graph = gr.Graph(tuple(range(10)), edges[:, 0], edges[:, 1], np.ones(9))
    strength = gr.Parameter(1.0, name="lam")
    loss = gr.SquaredLoss(gr.NodeData.from_arrays(X, rng.standard_normal(node.size), node))
    return gr.Problem(loss + strength * gr.TotalVariation(graph, gr.L2())), strength


def _again(given: tuple[gr.Problem, gr.Parameter]) -> Any:
    problem, strength = given
    strength.value = 0.1 + 0.9 * (float(strength.value) * 7.3 % 1.0)  # another one each time
    return problem.solve(progress=False)


OPERATIONS = {
    "build": Operation("Graph, NodeData and Problem: 10^5 nodes, 2 x 10^6 samples", _big, _build_regression, 0.5),
    "build-chain": Operation("the same: a chain of 10^6", _signal, _build_chain, 0.3),
    "path-regressions": Operation("path, 50 strengths, map of 3111, d = 4", _map_regressions, _path, 7.0),
    "path-means": Operation("path, 50 strengths, map of 3111, means", _map_means, _path, 3.0),
    "cross-validation": Operation("cross-validation 8 x 5, 100 nodes, p = 20", _dense, _cross_validate, 3.0),
    "again": Operation("10 nodes, again with another strength", _ten, _again, 0.002),
}
OFTEN = 0.1  # CPU seconds below which an operation is repeated until its clock can be trusted


def operations_rows(names: list[str], repeats: int, limits: Limits, small: bool = False) -> list[tuple[str, ...]]:
    """One row per operation."""
    return [_row(OPERATIONS[name], *_measured(name, repeats, limits, small)) for name in names]


def kept(path: Path, new: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows that are stored, with new ones in place of those of the same operations, in the order of `OPERATIONS`;
    they are stored from now on."""
    rows = {row[0]: tuple(row) for row in (json.loads(path.read_text()) if path.exists() else [])}
    rows |= {row[0]: row for row in new}
    order = [operation.what for operation in OPERATIONS.values()]
    found = sorted(rows.values(), key=lambda row: order.index(row[0]))
    path.write_text(json.dumps(found, indent=1))
    return found


def _row(operation: Operation, found: dict[str, Any] | None, status: str) -> tuple[str, ...]:
    asked = f"{operation.asked:g} s"
    if found is None:
        return operation.what, "", "", "", asked, "no", status
    seconds = float(np.median(found["seconds"]))
    met = f"{'yes' if seconds <= operation.asked else 'no'} ({seconds / operation.asked:.2g} of it)"
    return operation.what, f"{seconds:.3g}", f"{found['first']:.3g}", f"{found['GB']:.3g}", asked, met, status


def _measured(name: str, repeats: int, limits: Limits, small: bool) -> tuple[dict[str, Any] | None, str]:
    print(f"  {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        given = (name, str(repeats), "tiny" if small else "full", str(out))
        code, said = limited([sys.executable, "-m", "benchmarks.operations", *given], limits, Path(folder) / "said")
        return (json.loads(out.read_text()), "") if code == 0 else (None, said.strip().splitlines()[-1])


def main() -> None:
    """``python -m benchmarks.operations NAME REPEATS tiny|full OUT``."""
    name, repeats, size, out = sys.argv[1:]
    operation = OPERATIONS[name]
    operation.run(operation.prepare(True))  # once, so that imports are not timed
    given = operation.prepare(size == "tiny")
    first = _timed(operation, given)
    count = int(repeats) if first > OFTEN else 10 * int(repeats)
    found = {"first": first, "seconds": [_timed(operation, given) for _ in range(count)]}
    found["GB"] = peak() / 1024
    Path(out).write_text(json.dumps(found))


def _timed(operation: Operation, given: Any) -> float:
    began = time.process_time()
    operation.run(given)
    return time.process_time() - began


if __name__ == "__main__":
    main()
