"""``python -m benchmarks.row_methods``: models of rows by graphreg's methods beside hand-written CVXPY with Clarabel.

CPU seconds of one thread, medians of runs that take turns; the first turn is dropped. The gap of an answer is
(P(w) - best certified lower bound) / |P(w)|, whoever found w. Steps of `InteriorPoint` are told apart from what
surrounds them, which is mostly the certificate.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import scipy.sparse as sp

import graphreg as gr

GAP, SECONDS = 1e-6, 3.0
LARGE = 50_000  # numbers, beyond which rounds are not tried
Array = Any
HEADER = "| model | InteriorPoint | of which steps | gap | PrimalDual | Auto | CVXPY + Clarabel | its gap |"


@dataclass
class Case:
    """A model, and the objective and constraints of CVXPY's problem in a variable of n numbers."""

    name: str
    n: int
    model: Callable[[], Any]
    naive: Callable[[Any], tuple[Any, list[Any]]]
    rounds: bool = True


def means(y: Array) -> gr.MeanLoss:
    return gr.MeanLoss(gr.NodeData.from_arrays(None, y, range(len(y))))


def differences(T: int, order: int) -> Any:
    D: Any = sp.eye_array(T, format="csr")
    for m in range(T, T - order, -1):
        ones = np.ones(m - 1)
        first: Any = sp.diags_array([-ones, ones], offsets=np.arange(2), shape=(m - 1, m))  # pyright: ignore[reportArgumentType]  (scipy has no types)
        D = sp.csr_array(first @ D)
    return D


def trend(T: int, order: int, share: float) -> Case:
    """Trend filtering at a share of the strength from which on a polynomial is optimal."""
    t = np.linspace(0.0, 1.0, T)
    y = np.sin(6 * t) + 2 * np.abs(t - 0.4) + 0.2 * np.random.default_rng(1).standard_normal(T)
    u = y - np.polynomial.legendre.Legendre.fit(t, y, order)(t)
    for _ in range(order + 1):
        u = np.cumsum(u)
    lam, D = share * float(np.abs(u).max()), differences(T, order + 1)
    return Case(
        f"trend {order}, T = {T:,}, {share:g} of the largest strength",
        T,
        lambda: means(y) + lam * gr.L1()(gr.w.along(range(T), order + 1)),
        lambda x: (cp.sum_squares(x - y) / 2 + lam * cp.norm1(D @ x), []),
        T <= LARGE,
    )


def graph_trend(n: int, order: int) -> Case:
    graph = nx.convert_node_labels_to_integers(nx.random_geometric_graph(n, 0.06, seed=1))
    y = np.random.default_rng(0).standard_normal(n)
    D = -nx.incidence_matrix(graph, nodelist=range(n), oriented=True).T
    K = sp.csr_array(D.T @ D if order == 1 else D @ D.T @ D)
    return Case(
        f"graph trend {order}, {n:,} nodes, {graph.number_of_edges():,} edges",
        n,
        lambda: means(y) + 0.3 * gr.L1()(gr.w.across(graph, order + 1)),
        lambda x: (cp.sum_squares(x - y) / 2 + 0.3 * cp.norm1(K @ x), []),
    )


def lengths(image: Any) -> Any:
    """The differences down and to the right of each pixel, (2, m m), 0 at the last, which `cvxpy.tv` leaves out."""
    down = cp.vstack([cp.diff(image, axis=0), np.zeros((1, image.shape[1]))])
    right = cp.hstack([cp.diff(image, axis=1), np.zeros((image.shape[0], 1))])
    return cp.vstack([cp.vec(each, "C")[None, :] for each in (down, right)])


def isotropic(m: int) -> Case:
    pixels = nx.DiGraph()
    pixels.add_nodes_from(range(m * m))
    pixels.add_edges_from((p, p + m) for p in range(m * m - m))
    pixels.add_edges_from((p, p + 1) for p in range(m * m) if (p + 1) % m)
    i, j = np.mgrid[:m, :m] - m / 2
    y = ((i * i + j * j < m * m / 14) + 0.3 * np.random.default_rng(0).standard_normal((m, m))).ravel()
    return Case(
        f"isotropic TV, {m} x {m}",
        m * m,
        lambda: means(y) + 0.3 * gr.L2()(gr.w.across(pixels).grouped(lambda arrow: arrow[0])),
        lambda x: (
            cp.sum_squares(x - y) / 2 + 0.3 * cp.sum(cp.norm(lengths(cp.reshape(x, (m, m), "C")), 2, axis=0)),
            [],
        ),
    )


def isotonic(n: int, chain: bool) -> Case:
    rng = np.random.default_rng(0)
    arrows = nx.DiGraph((i, i + 1) for i in range(n - 1)) if chain else nx.DiGraph()
    arrows.add_nodes_from(range(n))
    drawn = [] if chain else [(i, int(j)) for i in range(n) for j in rng.choice(n, 6) if j > i]
    arrows.add_edges_from(drawn)
    y = np.arange(n) * (3.0 / n) + rng.standard_normal(n)
    A = np.array(arrows.edges)
    return Case(
        f"isotonic, {'a chain' if chain else 'a DAG'} of {n:,} nodes, {len(A):,} arrows",
        n,
        lambda: means(y) + gr.NonNegative()(gr.w.across(arrows)),
        lambda x: (cp.sum_squares(x - y) / 2, [x[A[:, 1]] >= x[A[:, 0]]]),
    )


def harmonic(m: int) -> Case:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(m, m))
    rim = [v for v in grid if grid.degree(v) < 4]
    values = np.random.default_rng(0).standard_normal(len(rim))
    D = nx.incidence_matrix(grid, nodelist=range(m * m), oriented=True).T
    first = gr.MeanLoss(gr.NodeData.from_arrays(None, values[:1], rim[:1]))
    return Case(
        f"boundary values, {m} x {m}",
        m * m,
        lambda: first + gr.SquaredL2()(gr.w.across(grid)) + gr.Zero()(gr.w.at(rim) - values),
        lambda x: (cp.sum_squares(D @ x) / 2 + cp.square(x[rim[0]] - values[0]) / 2, [x[rim] == values]),
    )


def maps(n: int, phi: Any) -> Case:
    """Edge maps of three numbers on a random graph of degree 4."""
    rng = np.random.default_rng(0)
    edges, y = list(nx.random_regular_graph(4, n, seed=1).edges), rng.standard_normal((n, 3))
    K = sp.lil_array((3 * len(edges), 3 * n))
    for e, (i, j) in enumerate(edges):
        K[3 * e : 3 * e + 3, 3 * i : 3 * i + 3] = np.eye(3)
        K[3 * e : 3 * e + 3, 3 * j : 3 * j + 3] = -np.linalg.qr(rng.standard_normal((3, 3)))[0]
    K = sp.csr_array(K)
    norm = 1 if isinstance(phi, gr.L1) else 2

    def naive(x: Any) -> tuple[Any, list[Any]]:
        sizes = cp.norm(cp.reshape(K @ x, (len(edges), 3), "C"), norm, axis=1)
        return cp.sum_squares(x - y.ravel()) / 2 + 0.2 * cp.sum(sizes), []

    return Case(f"edge maps, l{norm}, {n} nodes", 3 * n, lambda: means(y) + 0.2 * phi(gr.Rows(K, 3)), naive)


CASES: tuple[Callable[[], Case], ...] = (
    *(lambda T=T, q=q, s=s: trend(T, q, s) for T in (200, 1000, 5000) for q in (1, 2, 3) for s in (1e-3, 0.1)),
    lambda: trend(100_000, 1, 1e-3),
    lambda: trend(100_000, 2, 1e-3),
    lambda: graph_trend(1000, 1),
    lambda: graph_trend(1000, 2),
    lambda: isotropic(64),
    lambda: isotonic(1000, True),
    lambda: isotonic(1000, False),
    lambda: harmonic(64),
    lambda: maps(500, gr.L1()),
    lambda: maps(500, gr.L2()),
)


class Stepping:
    """The CPU seconds that steps of `InteriorPoint` take, beside those of a solve."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> Stepping:
        self.kept = gr.InteriorPoint.init, gr.InteriorPoint.step
        gr.InteriorPoint.init, gr.InteriorPoint.step = map(self._timed, self.kept)
        return self

    def __exit__(self, *_: object) -> None:
        gr.InteriorPoint.init, gr.InteriorPoint.step = self.kept

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            began = time.process_time()
            try:
                return function(*args)
            finally:
                self.seconds += time.process_time() - began

        return run


def measured(case: Case, turns: int) -> str:
    """A line of the table."""
    methods = {"InteriorPoint": gr.InteriorPoint(), "Auto": None} | (
        {"PrimalDual": gr.PrimalDual()} if case.rounds else {}
    )
    seconds: dict[str, list[float]] = {}
    found: dict[str, Any] = {}
    bounds, value = [-np.inf], None
    for _ in range(turns + 1):
        for name, method in methods.items():
            with Stepping() as tried:
                began = time.process_time()
                problem = gr.Problem(case.model())
                found[name] = problem.solve(
                    method,
                    gap=GAP,
                    seconds=SECONDS * (10 if name != "PrimalDual" else 1),
                    progress=False,
                    on_failure="return",
                )
                seconds.setdefault(name, []).append(time.process_time() - began)
            bounds.append(found[name].certificate.dual)
            if name == "InteriorPoint":
                seconds.setdefault("steps", []).append(tried.seconds)
        began = time.process_time()
        x = cp.Variable(case.n)
        objective, constraints = case.naive(x)
        with suppress(cp.SolverError):
            cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL")
        seconds.setdefault("CVXPY", []).append(time.process_time() - began)
        value = objective.value
    middle = {name: float(np.median(each[1:] or each)) for name, each in seconds.items()}
    theirs = "none" if value is None else f"{max((value - max(bounds)) / abs(value), 0.0):.0e}"
    newton = found["InteriorPoint"]

    def told(name: str) -> str:
        if name not in found:
            return ""
        missed = "" if found[name].status == "certified" else f", at {found[name].certificate.relative_gap:.0e}"
        return f"{middle[name]:.3g}{missed}"

    cells = [case.name, told("InteriorPoint"), f"{newton.rounds} steps, {middle['steps']:.2g}"]
    cells += [f"{newton.certificate.relative_gap:.0e}", told("PrimalDual"), told("Auto")]
    return f"| {' | '.join([*cells, format(middle['CVXPY'], '.3g'), theirs])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{HEADER}\n|{'---|' * HEADER.count(' | ')}---|")
    for make in CASES:
        case = make()
        if case.name.startswith(args.only):
            print(measured(case, args.turns), flush=True)


if __name__ == "__main__":
    main()
