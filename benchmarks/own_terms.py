"""``python -m benchmarks.own_terms``: penalties and losses from a line of CVXPY, against the nearest built-in ones.

For each function: whether the check passes at its defaults, and the seconds that both routes take on a model of 60 and
of 600 nodes, with the ratio to the built-in penalty beside it, taken back to back.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr
import graphreg.testing  # pyright: ignore[reportUnusedImport]  (gr.testing)

D = 3
A = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]])
Q = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
P: Any = 1.5  # CVXPY takes it, and says that it takes integers
WEIGHTS = np.array([1.0, 0.5, 2.0])


@dataclass(frozen=True)
class Case:
    """A function of one row, and the built-in penalty that it is compared with."""

    name: str
    function: Callable[[Any], Any]
    beside: gr.Penalty
    between: bool = True  # whether it is even, and stands on the edges of the graph
    known: bool = True  # whether it is a norm, a sum or a scaling that may be recognised


PENALTIES = (
    Case("norm 1", lambda z: cp.norm(z, 1), gr.L1()),
    Case("norm 2", lambda z: cp.norm(z, 2), gr.L2()),
    Case("norm inf", lambda z: cp.norm(z, "inf"), gr.LInf()),
    Case("norm 3", lambda z: cp.norm(z, 3), gr.L2()),
    Case("norm 1.5", lambda z: cp.pnorm(z, P), gr.L2()),
    Case("huber", lambda z: cp.sum(cp.huber(2 * z, 1)) / 4, gr.HuberNorm()),
    Case("quadratic form", lambda z: cp.quad_form(z, Q) / 2, gr.Quadratic(Q)),
    Case("squares of Az", lambda z: cp.sum_squares(A @ z), gr.Quadratic(2 * A.T @ A)),
    Case("weighted norm 1", lambda z: cp.norm(cp.multiply(WEIGHTS, z), 1), gr.L1()),
    Case("weighted norm 2", lambda z: cp.norm(cp.multiply(WEIGHTS, z), 2), gr.L2()),
    Case("groups", lambda z: cp.norm(z[:2], 2) + 0.7 * cp.norm(z[2:], 2), gr.L2()),
    Case("elastic net", lambda z: cp.norm1(z) + cp.sum_squares(z) / 2, gr.L1()),
    Case("norm 1 + norm 2", lambda z: 0.5 * cp.norm1(z) + cp.norm(z, 2), gr.L2()),
    Case("norm 2 + square", lambda z: cp.norm(z, 2) + 0.2 * cp.sum_squares(z), gr.L2()),
    Case("norm 2 ^ 1.5", lambda z: cp.power(cp.norm(z, 2), 1.5), gr.HuberNorm()),
    Case("dead zone", lambda z: cp.pos(cp.norm(z, 2) - 0.05), gr.L2()),
    Case("sum |z|^1.5", lambda z: cp.sum(cp.power(cp.abs(z), 1.5)), gr.HuberNorm()),
    Case("log cosh", lambda z: cp.sum(cp.logistic(2 * z) - z) - z.size * np.log(2.0), gr.HuberNorm()),
    Case("log barrier", lambda z: -cp.sum(cp.log(1 - z / 9) + cp.log(1 + z / 9)), gr.SquaredL2()),
    Case("exponential", lambda z: cp.sum(cp.exp(z) - z - 1), gr.SquaredL2(), between=False),
    Case("positive parts", lambda z: cp.sum(cp.pos(z)), gr.L1(), between=False),
    Case("pinball", lambda z: cp.sum(cp.maximum(0.3 * z, -0.7 * z)), gr.L1(), between=False),
    Case("log-sum-exp", lambda z: cp.log_sum_exp(cp.hstack([z, -z])) - np.log(2.0 * z.size), gr.HuberNorm()),
    Case("sum of 2 largest", lambda z: cp.sum_largest(cp.abs(z), 2), gr.LInf()),
    Case("variation in a row", lambda z: cp.norm1(cp.diff(z)), gr.L1()),
    Case("norm inf + norm 2", lambda z: cp.norm_inf(z) + 0.5 * cp.norm(z, 2), gr.LInf()),
    Case("a maximum of norms", lambda z: cp.maximum(cp.norm1(z), 1.5 * cp.norm(z, 2)), gr.L2(), known=False),
    Case("square of norm 1", lambda z: cp.square(cp.norm1(z)), gr.SquaredL2(), known=False),
    Case("quad over lin", lambda z: cp.quad_over_lin(z, 9 - cp.norm_inf(z)), gr.SquaredL2(), known=False),
)


@dataclass
class Row:
    """The measurements of one case."""

    name: str
    known: bool
    check: str
    seconds: dict[str, float]  # by route and size
    ratio: dict[str, float]
    status: dict[str, str]


def problem(penalty: gr.Penalty, n: int, between: bool) -> gr.Problem:
    """n nodes of two kinds, on a graph of degree about 4."""
    rng = np.random.default_rng(0)
    graph = nx.random_regular_graph(4, n, seed=0)
    centre = np.where(np.arange(n)[:, None] % 2 == 0, 1.0, -1.0) * np.array([1.0, 0.0, 0.5])
    X = {i: rng.normal(size=(10, D)) for i in range(n)}
    data = gr.NodeData.from_dict({i: (X[i], X[i] @ centre[i] + 0.3 * rng.normal(size=10)) for i in range(n)})
    model = gr.SquaredLoss(data)
    if between:
        return gr.Problem(model + 0.1 * gr.TotalVariation(graph, penalty))
    return gr.Problem(model + 0.1 * gr.TotalVariation(graph, gr.L2()) + 0.1 * gr.NodePenalty(penalty))


def timed(penalty: gr.Penalty, n: int, between: bool, method: Any, seconds: float) -> tuple[float, str]:
    """Seconds of one solve from a model that was never solved, and its status."""
    model = problem(penalty, n, between)
    began = time.perf_counter()
    try:
        status = model.solve(method, seconds=seconds, on_failure="return", progress=False).status
    except Exception as error:  # noqa: BLE001 - as above
        status = type(error).__name__
    return time.perf_counter() - began, status


def checked(penalty: gr.Penalty) -> str:
    """The verdict of the check at its defaults."""
    try:
        report = gr.testing.check_penalty(penalty)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what a user would have seen
        return f"{type(error).__name__}: {error}"
    return "passes" if report.ok else ", ".join(sorted({failure.law for failure in report.failures}))


def measure(case: Case, sizes: list[int], seconds: float) -> Row:
    """Check and time one case beside its built-in penalty."""
    penalty = gr.Penalty.from_cvxpy(case.function, name=case.name)
    row = Row(case.name, case.known, checked(penalty), {}, {}, {})
    for n in sizes:
        for method in (gr.Exact(), gr.PrimalDual()):
            key = f"{type(method).__name__} {n}"
            taken, row.status[key] = timed(penalty, n, case.between, method, seconds)
            beside, _ = timed(case.beside, n, case.between, method, seconds)
            row.seconds[key], row.ratio[key] = taken, taken / beside
    return row


def main() -> None:
    """Measure, print a line as each case is done, and write all of them to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_terms", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each solve at most")
    parser.add_argument("--nodes", type=int, nargs="+", default=[60, 600])
    parser.add_argument("--only", nargs="+", help="names of cases")
    parser.add_argument("--out", type=Path, help="a JSON file")
    args = parser.parse_args()
    timed(gr.L2(), 12, True, gr.Exact(), 10.0)  # what is imported at first use
    timed(gr.L2(), 12, True, gr.PrimalDual(), 10.0)
    rows: list[Row] = []
    for case in PENALTIES:
        if args.only and case.name not in args.only:
            continue
        rows.append(row := measure(case, args.nodes, args.seconds))
        shown = (
            f"{key} {row.seconds[key]:7.2f} s x{row.ratio[key]:<6.1f}{'' if state == 'certified' else state}"
            for key, state in row.status.items()
        )
        print(
            f"{case.name:20s} {'known' if case.known else 'rest ':5s} | {' | '.join(shown)} | {row.check}", flush=True
        )
        if args.out:
            args.out.write_text(json.dumps([asdict(each) for each in rows], indent=1))


if __name__ == "__main__":
    main()
