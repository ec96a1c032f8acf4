"""``python -m benchmarks.choice``: how long ``solve()`` takes beside the best of all methods, on random problems.

Each problem is solved by `PrimalDual`, `InteriorPoint`, `Exact`, `DynamicProgramming`, `LinearSystem` where they apply,
and by `Auto`, in CPU seconds of one thread. ``--constants`` fits those of ``graphreg.running.predicting`` to
what was measured instead; take other seeds to judge them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial import KDTree

import graphreg as gr
from graphreg.network import compiled_from
from graphreg.running.predicting import STEPS, Costs

Array = Any
KINDS = ("chain", "tree", "grid", "neighbours", "blocks", "small world")
LOSSES = {
    "mean": gr.MeanLoss,
    "squared": gr.SquaredLoss,
    "logistic": gr.LogisticLoss,
    "poisson": gr.PoissonLoss,
    "huber": gr.HuberLoss,
    "absolute": gr.QuantileLoss,
}
PENALTIES = {"l1": gr.L1, "l2": gr.L2, "squares": gr.SquaredL2}
OTHERS = (gr.PrimalDual(), gr.InteriorPoint(), gr.Exact(), gr.DynamicProgramming(), gr.LinearSystem())
GAP = 1e-6
MOST = 2e4  # numbers on edges up to which a conic solver is run


# ---- problems --------------------------------------------------------------------------------------------------------
def edges_of(kind: str, n: int, rng: np.random.Generator) -> tuple[int, Array]:
    """The number of nodes, and the edges (m, 2)."""
    if kind == "chain":
        return n, np.column_stack([np.arange(n - 1), np.arange(1, n)])
    if kind == "tree":
        return n, np.column_stack([(rng.random(n - 1) * np.arange(1, n)).astype(int), np.arange(1, n)])
    if kind == "grid":
        side = max(int(np.sqrt(n)), 2)
        at = np.arange(side * side).reshape(side, side)
        across = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
        return side * side, np.concatenate([across, np.column_stack([at[:-1].ravel(), at[1:].ravel()])])
    if kind == "neighbours":
        near = KDTree(points := rng.random((n, 2))).query(points, min(6, n))[1]
        pairs = np.column_stack([np.repeat(np.arange(n), near.shape[1] - 1), near[:, 1:].ravel()])
    elif kind == "blocks":
        size, a = max(n // 4, 2), rng.integers(0, n, 5 * n)
        inside = a // size * size + rng.integers(0, size, 5 * n)
        pairs = np.column_stack([a, np.where(rng.random(5 * n) < 0.9, np.minimum(inside, n - 1), a[::-1])])
    else:
        pairs = np.concatenate([np.column_stack([np.arange(n), (np.arange(n) + k) % n]) for k in (1, 2)])
        moved = rng.random(len(pairs)) < 0.1
        pairs[moved, 1] = rng.integers(0, n, moved.sum())
    return n, np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)


def drawn(seed: int) -> tuple[str, Callable[[], gr.Problem]]:
    """The problem in words, and a function that makes it anew."""
    rng = np.random.default_rng(seed)
    kind, loss = str(rng.choice(KINDS)), str(rng.choice(list(LOSSES), p=[0.2, 0.3, 0.2, 0.1, 0.1, 0.1]))
    penalty, d, samples = (
        str(rng.choice(list(PENALTIES), p=[0.45, 0.45, 0.1])),
        int(rng.choice([1, 2, 3, 5, 10, 20])),
        0,
    )
    n, edges = edges_of(kind, int(10 ** rng.uniform(0.8, 3.4)), rng)
    weight = 10 ** rng.uniform(-1, 1, len(edges)) if rng.random() < 0.4 else np.ones(len(edges))
    centers, strength, condition = rng.standard_normal((4, d)), 10 ** rng.uniform(-2.5, 1.5), 10 ** rng.uniform(0, 3)
    node, X, samples = np.arange(n), None, 0
    if loss == "mean":
        y = centers[node * 4 // n] + 0.5 * rng.standard_normal((n, d))
    else:
        samples = int(rng.choice([3, 20, 60]))
        node = np.repeat(node, samples)
        X = rng.standard_normal((len(node), d)) * np.logspace(0, -0.5 * np.log10(condition), d)
        eta = np.einsum("rd,rd->r", X, centers[node * 4 // n])
        y = eta + 0.5 * rng.standard_normal(len(node))
        if loss == "logistic":
            y = np.where(rng.random(len(node)) < 1.0 / (1.0 + np.exp(-2.0 * eta)), 1.0, -1.0)
        elif loss == "poisson":
            y = rng.poisson(np.exp(np.clip(0.5 * eta, -3.0, 3.0))).astype(float)
    graph = gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], weight)
    fit = LOSSES[loss](gr.NodeData.from_arrays(X, y, node))
    words = f"{kind:11} n {n:5} d {d:2} {loss:8} x{samples:<2} {penalty:7} strength {strength:8.3g} seed {seed}"
    return words, lambda: gr.Problem(fit + strength * gr.TotalVariation(graph, PENALTIES[penalty]()))


# ---- measuring -------------------------------------------------------------------------------------------------------
def measured(make: Callable[[], gr.Problem], method: Any, seconds: float) -> tuple[float, gr.Solution | None]:
    """CPU seconds, infinite where the gap was not certified within so many seconds."""
    problem, began = make(), time.process_time()
    found = problem.solve(method, gap=GAP, seconds=seconds, progress=False, on_failure="return")
    took = time.process_time() - began
    return (took if found.certificate.holds(GAP) else np.inf), found


def applies(method: Any, costs: Costs) -> bool:
    large = isinstance(method, gr.Exact) and costs.form.differences > MOST
    factors = isinstance(method, (gr.InteriorPoint, gr.LinearSystem)) and costs.multiplications > 3e10
    return not (large or factors or method.missing(costs.form))


def row(seed: int, seconds: float) -> tuple[str, dict[str, float], dict[str, int], gr.Solution | None, Costs]:
    words, make = drawn(seed)
    costs, took, rounds, auto = Costs(make().form), dict[str, float](), dict[str, int](), None
    for method in (*OTHERS, gr.Auto()):
        if applies(method, costs):
            took[method.name], found = measured(make, method, seconds)
            rounds[method.name] = 0 if found is None else found.rounds
            auto = found
    return words, took, rounds, auto, costs


# ---- fitting ---------------------------------------------------------------------------------------------------------
def fitted(features: list[list[float]], took: list[float]) -> Array:
    """The nonnegative factors of the features that add up to the times, in logarithms."""
    A, t = np.array(features), np.array(took)
    start = np.log(np.maximum(np.median(t) / A.shape[1] / np.maximum(A.mean(axis=0), 1e-300), 1e-30))
    found = least_squares(lambda z: np.log(A @ np.exp(np.clip(z, -70, 20))) - np.log(t), start, loss="soft_l1")
    return np.exp(found.x)


def features_of(costs: Costs, rounds: int) -> dict[str, list[float]]:
    """The parts that the times of each method are sums of, see `Costs`; of so many rounds of `PrimalDual`."""
    (n, d), E, N, losses = costs.form.shape, costs.form.differences, costs.samples, costs.form.samples
    smooth = any(not block.loss.called().startswith(("Mean", "Squared", "Quantile")) for block in losses)
    kinks = any(block.loss.called().startswith("Quantile") for block in losses)
    size, plain = n * d + E, min(rounds, compiled_from(costs.form))
    each = [rounds * part for part in (smooth, smooth * N * d, kinks * N * d)]
    return {
        "PrimalDual": [1, size, N * d, rounds, plain * size, (rounds - plain) * size, *each],
        "InteriorPoint": [STEPS * part for part in (1, E, N * d * d, costs.multiplications, smooth * N * d)],
        "Exact": [1, E, N, costs.multiplications],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=1000, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=100, help="how many problems")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each method on each problem")
    parser.add_argument("--constants", action="store_true", help="fit the constants of the predictions")
    args = parser.parse_args()
    ratios, known = list[float](), {name: ([], []) for name in ("PrimalDual", "InteriorPoint", "Exact")}
    for seed in range(args.first, args.first + args.count):
        words, took, rounds, found, costs = row(seed, args.seconds)
        best = min(took.values())
        if not np.isfinite(best):
            print(f"{words}: nobody reached the gap")
            continue
        ratios.append(took["Auto"] / best)
        each = ", ".join(f"{name} {t:.3g}" for name, t in took.items())
        print(f"{ratios[-1]:5.2f} {words}: {each}; {'' if found is None else found.method}", flush=True)
        for name, (features, times) in known.items():
            if np.isfinite(took.get(name, np.inf)):
                features.append(features_of(costs, rounds[name])[name])
                times.append(took[name])
    r = np.array(ratios)
    print(f"solve() over the best of all methods, {len(r)} problems: median {np.median(r):.2f}, ", end="")
    print(f"90% within {np.quantile(r, 0.9):.2f}, worst {r.max():.2f}")
    for name, (features, times) in known.items() if args.constants else ():
        print(name, *(f"{value:.2g}" for value in fitted(features, times)))


if __name__ == "__main__":
    main()
