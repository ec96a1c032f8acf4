"""``python -m benchmarks.choice``: how long ``solve()`` takes beside the best of all methods, on random problems.

Graphs of twelve kinds, losses, penalties and models of rows of all kinds, few and many samples, strengths over six
decades. `PrimalDual`, `InteriorPoint`, `Exact`, `DynamicProgramming` and `LinearSystem` solve each problem where they
apply, and so does ``solve()``, each in a process of its own: once where nothing is loaded or compiled yet, and again;
what takes little in three processes, of which the least counts. CPU seconds of one thread; nobody is given more than
three times those of ``solve()``. ``--constants`` fits those of ``graphreg.running.predicting`` to what was measured,
where rounds were not compiled; take other seeds to judge them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import least_squares
from scipy.spatial import Delaunay, KDTree

import graphreg as gr
from graphreg.running.predicting import Costs, looks_at
from graphreg.terms.losses import AbstractQuadraticLoss, AbstractSmoothLoss

Array = Any
FORK = multiprocessing.get_context("fork")
LOSSES: dict[str, Callable[..., Any]] = {
    "mean": gr.MeanLoss,
    "squared": gr.SquaredLoss,
    "logistic": gr.LogisticLoss,
    "poisson": gr.PoissonLoss,
    "huber": gr.HuberLoss,
    "quantile": partial(gr.QuantileLoss, tau=0.3),
    "hinge": gr.HingeLoss,
    "multinomial": gr.MultinomialLoss,
}
PENALTIES: dict[str, Callable[[], Any]] = {
    "l1": gr.L1,
    "l2": gr.L2,
    "linf": gr.LInf,
    "squares": gr.SquaredL2,
    "huber": partial(gr.HuberNorm, 0.1),
}
METHODS = ("Auto", "PrimalDual", "InteriorPoint", "Exact", "DynamicProgramming", "LinearSystem")
GAP = 1e-6
MOST, WORK = 2e4, 3e10  # numbers on edges up to which a conic solver is run, and work of a factor
ROWS = 1e4  # samples, at most
WALL = 10.0  # seconds by the clock for each of CPU time, where others work beside
QUICK = 0.3  # CPU seconds up to which a solve is timed twice, and in so many processes
TURNS = 3


# ---- problems --------------------------------------------------------------------------------------------------------
def _road(points: Array) -> Array:
    """The edges of a tree that spans the points, and a third of those to their two nearest."""
    pairs = Delaunay(points).simplices[:, [0, 1, 1, 2, 0, 2]].reshape(-1, 2)
    graph = nx.Graph()
    graph.add_weighted_edges_from((int(i), int(j), float(np.hypot(*(points[i] - points[j])))) for i, j in pairs)
    near: Array = KDTree(points).query(points, 3)[1]
    more = np.column_stack([np.repeat(np.arange(len(points)), 2), near[:, 1:].ravel()])[::3]
    return np.concatenate([np.array(nx.minimum_spanning_tree(graph).edges), more])


def _counties(n: int) -> Array:
    from .statistics.paths import map_of_counties

    graph = map_of_counties()[1]
    pairs = np.column_stack([graph.tail, graph.head])
    return pairs[(pairs < n).all(axis=1)]


def _grid(n: int) -> Array:
    side = int(np.sqrt(n))
    at: Array = np.arange(side * side).reshape(side, side)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])


def _ring(n: int, rng: np.random.Generator) -> Array:
    return np.concatenate([np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), rng.integers(0, n, (n // 5, 2))])


def _blocks(n: int, rng: np.random.Generator) -> Array:
    inside = min(12 / n, 1.0)
    return np.array(nx.gaussian_random_partition_graph(n, n / 4, 2, inside, 1 / n, seed=rng).edges)


GRAPHS: dict[str, Callable[[int, Any], Array]] = {
    "delaunay": lambda n, rng: Delaunay(rng.random((n, 2))).simplices[:, [0, 1, 1, 2, 0, 2]].reshape(-1, 2),
    "road": lambda n, rng: _road(rng.random((n, 2))),
    "counties": lambda n, rng: _counties(n),
    "small world": lambda n, rng: np.array(nx.watts_strogatz_graph(n, 6, 0.1, rng).edges),
    "hubs": lambda n, rng: np.array(nx.barabasi_albert_graph(n, 3, rng).edges),
    "blocks": _blocks,
    "grid": lambda n, rng: _grid(n),
    "complete": lambda n, rng: np.array(nx.complete_graph(min(n, 200)).edges),
    "star": lambda n, rng: np.column_stack([np.zeros(n - 1, int), np.arange(1, n)]),
    "bipartite": lambda n, rng: np.column_stack([rng.integers(0, n // 2, 3 * n), rng.integers(n // 2, n, 3 * n)]),
    "ring": _ring,
    "tree": lambda n, rng: np.column_stack([(rng.random(n - 1) * np.arange(1, n)).astype(int), np.arange(1, n)]),
}


def _samples(n: int, most: float, rng: np.random.Generator) -> Array:
    """The node of each sample: most nodes with some, few with very many, some with none."""
    counts = np.minimum(10 ** rng.normal(1.0, 0.5, n), 1000.0) * (rng.random(n) > 0.1 * (rng.random() < 0.5))
    counts = (counts * min(most / counts.sum(), 1.0)).astype(int)
    counts[0] = max(counts[0], 1)
    return np.repeat(np.arange(n), counts)


def _targets(loss: str, eta: Array, rng: np.random.Generator) -> Array:
    """Targets of predictors (m, k)."""
    one = eta[:, 0]
    if loss == "multinomial":
        return (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(0.5 * one, -3.0, 3.0))).astype(float)
    if loss in ("logistic", "hinge"):
        return np.where(rng.random(len(one)) < 1.0 / (1.0 + np.exp(-2.0 * one)), 1.0, -1.0)
    return one + 0.5 * rng.standard_t(2, len(one)) if loss in ("huber", "quantile") else one + rng.normal(size=len(one))


def drawn(seed: int, times: float = 1.0) -> tuple[str, Callable[[], gr.Problem]]:
    """The problem in words, and a function that makes it anew; so many times larger than the problems here."""
    rng = np.random.default_rng(seed)
    kind, loss, penalty = (str(rng.choice(list(each))) for each in (GRAPHS, LOSSES, PENALTIES))
    d, n = int(rng.choice([1, 2, 5, 30], p=[0.3, 0.3, 0.3, 0.1])), int(times * 10 ** rng.uniform(1.0, 3.45))
    n = max(min(n, int(times * 6000 / d)), 10)
    pairs = GRAPHS[kind](n, rng)
    n = int(pairs.max()) + 1
    edges = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    weight = 10 ** rng.uniform(-1, 1, len(edges)) if rng.random() < 0.4 else np.ones(len(edges))
    strength, lasso, of_rows = 0.1 * 10 ** rng.uniform(-3, 3), rng.random(), rng.random() < 0.1
    group = np.arange(n) * 4 // n
    if loss == "mean":
        X, node = None, np.repeat(np.arange(n), rng.integers(0, 3, n) + (np.arange(n) == 0))
        y = rng.standard_normal((4, d))[group[node]] + 0.5 * rng.standard_normal((len(node), d))
    else:
        node = _samples(n, times * ROWS, rng)
        X = rng.standard_normal((len(node), d)) * np.logspace(0, -rng.uniform(0, 2), d)
        y = _targets(loss, np.einsum("rd,rdk->rk", X, rng.standard_normal((4, d, 3))[group[node]]), rng)
    graph = gr.Graph(tuple(range(n)), edges[:, 0], edges[:, 1], weight)
    fit = LOSSES[loss](gr.NodeData.from_arrays(X, y, node))
    over = PENALTIES[penalty]()
    lam = gr.Parameter(strength, name="lam")
    model = fit + lam * (over(gr.w.across(graph, 2)) if of_rows else gr.TotalVariation(graph, over))
    model = model + 1e-2 * gr.NodePenalty(gr.SquaredL2()) if lasso < 0.4 else model
    model = model + 1e-2 * gr.NodePenalty(gr.L1()) if lasso > 0.9 else model
    also = " ridge" * (lasso < 0.4) + " lasso" * (lasso > 0.9) + " rows" * of_rows
    words = f"{kind:11} n {n:4} m {len(edges):5} d {d:2} {loss:11} x{len(node):<6} {penalty:7} {strength:8.3g}{also}"
    return f"{words} seed {seed}", lambda: gr.Problem(model)


def image(seed: int) -> tuple[str, Callable[[], gr.Problem]]:
    """The same of an image of discs and squares with noise, 64 to 300 pixels a side; total variation of either kind."""
    rng = np.random.default_rng(seed)
    side, isotropic, strength = int(10 ** rng.uniform(1.8, 2.48)), rng.random() < 0.5, 10 ** rng.uniform(-1.3, 0.3)
    v, h = np.mgrid[:side, :side] / side
    clean = h * rng.choice([0.0, 0.5])
    for _ in range(8):
        x, y, r, level = rng.random(4)
        away = np.hypot(h - x, v - y) if rng.random() < 0.5 else np.maximum(abs(h - x), abs(v - y))
        clean[away < 0.05 + 0.25 * r] = level
    noisy = clean + rng.choice([0.1, 0.3]) * rng.standard_normal(clean.shape)
    edges = _grid(side * side)
    graph = gr.Graph(tuple(range(side * side)), edges[:, 0], edges[:, 1], np.ones(len(edges)))
    fit = gr.MeanLoss(gr.NodeData.from_arrays(None, noisy.ravel(), np.arange(side * side)))
    along = gr.L2()(gr.w.across(graph).grouped(edges[:, 0])) if isotropic else gr.TotalVariation(graph, gr.L1())
    model, kind = fit + gr.Parameter(strength, name="lam") * along, "isotropic" if isotropic else "anisotropic"
    return f"image {side} x {side} {kind} {strength:.3g} seed {seed}", lambda: gr.Problem(model)


Draw = Callable[[int], tuple[str, Callable[[], gr.Problem]]]


# ---- measuring -------------------------------------------------------------------------------------------------------
def applies(method: Any, costs: Costs) -> bool:
    large = isinstance(method, gr.Exact) and costs.differences > MOST
    factors = isinstance(method, (gr.InteriorPoint, gr.LinearSystem)) and costs.multiplications > WORK
    return not (large or factors or method.lacks(costs.form))


def _applicable(draw: Draw, seed: int) -> list[str]:
    """The methods that take part."""
    costs = Costs(draw(seed)[1]().form)
    return [name for name in METHODS if name == "Auto" or applies(getattr(gr, name)(), costs)]


def _measured(draw: Draw, seed: int, name: str, most: float) -> dict[str, Any]:
    """CPU seconds of the first solve and of the quickest of those after it, infinite where the gap was not certified
    within so many."""
    method, make = getattr(gr, name)(), draw(seed)[1]
    took, found = list[float](), None
    while len(took) < 2 or (len(took) < 3 and took[-1] < QUICK):
        problem, began = make(), _cpu()
        found = problem.solve(method, gap=GAP, seconds=WALL * most, progress=False, on_failure="return")
        took.append(_cpu() - began)
        if not found.certificate.holds(GAP) or took[-1] > most:
            took[-1] = np.inf
            break
    first, again = took[0], min(took[1:], default=np.inf)
    costs = Costs(make().form)
    said = "" if found is None else f"{found.method}: {found.message}"
    rounds = 0 if found is None else found.rounds
    predicted = {"interior": costs.interior, "exact": costs.exact, "rounds": costs.run(rounds)}
    more = {"rounds": rounds, "said": said, "predicted": predicted, "features": features_of(costs, rounds)}
    return {"first": first, "again": again, **more}


def _cpu() -> float:
    """CPU seconds so far, of processes that are over, too: conic solvers run in such."""
    over = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + over.ru_utime + over.ru_stime


def _child(into: Any, work: Callable[[], Any], most: float, cold: bool) -> None:
    hard = int(3.0 * most + 5.0)
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        if cold:
            os.environ["NUMBA_CACHE_DIR"] = folder
        into.send(work())


def alone(work: Callable[[], Any], most: float, cold: bool) -> Any:
    """What work in a process of its own gives; None where it died."""
    out, into = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_child, args=(into, work, most, cold))
    child.start()
    into.close()
    try:
        return out.recv()
    except EOFError:
        return None
    finally:
        child.join()


def row(draw: Draw, seed: int, seconds: float, cold: bool) -> dict[str, Any]:
    """What each method takes: the least of several processes, in turn, where that is little."""
    found: dict[str, Any] = {}
    names = alone(partial(_applicable, draw, seed), seconds, cold)
    for turn in range(TURNS):
        for name in names:
            longest = 3.0 * max((t for t in times(found) if np.isfinite(t)), default=seconds)
            most = min(longest, seconds)
            if turn and not found[name]["first"] < QUICK:
                continue
            one = alone(partial(_measured, draw, seed, name, most), most, cold)
            one = one or {"first": np.inf, "again": np.inf, "rounds": 0, "said": "died"}
            least = {which: min(one[which], found.get(name, one)[which]) for which in ("first", "again")}
            found[name] = {**one, **least}
    return found


def times(found: dict[str, Any]) -> list[float]:
    """Those of ``solve()``, as far as they are known."""
    return [found["Auto"][which] for which in ("first", "again")] if "Auto" in found else []


# ---- fitting ---------------------------------------------------------------------------------------------------------
def fitted(features: list[list[float]], took: list[float]) -> Array:
    """The nonnegative factors of the features that add up to the times, in logarithms."""
    A, t = np.array(features), np.array(took)
    start = np.log(np.maximum(np.median(t) / A.shape[1] / np.maximum(A.mean(axis=0), 1e-300), 1e-30))
    found = least_squares(lambda z: np.log(A @ np.exp(np.clip(z, -70, 20))) - np.log(t), start, loss="soft_l1")
    return np.exp(found.x)


def features_of(costs: Costs, rounds: int) -> dict[str, list[Any]]:
    """The parts that the times of each method are sums of, see `Costs`; of so many rounds of `PrimalDual`."""
    (n, d), E, losses = costs.form.shape, costs.differences, costs.form.samples
    sizes = np.array([block.offset.size for block in losses])
    squares = np.array([isinstance(block.loss, AbstractQuadraticLoss) for block in losses])
    smooth = np.array([isinstance(block.loss, AbstractSmoothLoss) for block in losses])
    boxes = np.array([block.loss.bends(block.y.ravel()[:1]) is not None for block in losses])
    designs = np.array([block.X is not None for block in losses])
    numbers, kinks = n * d + E, sizes @ ~smooth
    looks, steps = looks_at(rounds), costs.steps
    each = costs.stacks, sizes @ (smooth & ~squares), kinks, kinks * d
    newton = 1, E, n, costs.multiplications, d * (sizes @ designs), sizes @ (boxes & ~squares)
    return {
        "PrimalDual": [
            *(1, numbers),
            *(looks * part for part in (1, numbers, *each)),
            *(rounds * part for part in (1, numbers, *each)),
        ],
        "InteriorPoint": [1, *(steps * part for part in newton)],
        "Exact": [1, E, costs.samples, costs.multiplications],
    }


# ---- telling ---------------------------------------------------------------------------------------------------------
def ratio(found: dict[str, Any], which: str) -> float:
    """The time of ``solve()`` over that of the best."""
    best = min(each[which] for each in found.values())
    return found["Auto"][which] / best if np.isfinite(best) else np.nan


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What ``solve()`` takes beside the best, of first solves and of those after them."""
    lines = list[str]()
    for which in ("first", "again"):
        r = np.array([ratio(each["found"], which) for each in rows])
        r = r[~np.isnan(r)]
        words = f"median {np.median(r):.2f}, 90% within {np.quantile(r, 0.9):.2f}, worst {r.max():.2f}"
        lines.append(f"solve() over the best of all methods, {which}, {len(r)} problems: {words}")
    missed = [each["seed"] for each in rows if not np.isfinite(each["found"]["Auto"]["again"])]
    alone = [each["seed"] for each in rows if np.isnan(ratio(each["found"], "again"))]
    return "\n".join([*lines, f"not certified by solve(): {missed or 'none'}; by nobody: {alone or 'none'}"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=1000, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=100, help="how many problems")
    parser.add_argument("--images", action="store_true", help="of images, in place of problems of all kinds")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each method on each problem, at most")
    parser.add_argument("--cold", action="store_true", help="without code on disk: first solves compile all they need")
    parser.add_argument("--keep", type=Path, help="a file of JSON that keeps what was measured")
    parser.add_argument("--constants", action="store_true", help="fit the constants of the predictions")
    args = parser.parse_args()
    rows, draw = list[dict[str, Any]](), image if args.images else drawn
    compileall.compile_dir(Path(gr.__file__).parent, quiet=1)  # as whoever installs a package does
    for seed in range(args.first, args.first + args.count):
        found = row(draw, seed, args.seconds, args.cold)
        rows.append({"seed": seed, "words": draw(seed)[0], "found": found})
        each = ", ".join(f"{name} {t['first']:.3g}/{t['again']:.3g}" for name, t in found.items())
        said = found["Auto"]["said"]
        ratios = " ".join(f"{ratio(found, which):5.2f}" for which in ("first", "again"))
        print(f"{ratios} {rows[-1]['words']}: {each}; {said}", flush=True)
        if args.keep:
            args.keep.write_text(json.dumps(rows, default=float))
    print(summary(rows))
    for name in ("PrimalDual", "InteriorPoint", "Exact") if args.constants else ():
        known = [each["found"][name] for each in rows if name in each["found"]]
        known = [found for found in known if np.isfinite(found["again"])]
        if known:
            values = fitted([found["features"][name] for found in known], [found["again"] for found in known])
            print(name, *(f"{value:.2g}" for value in values))


if __name__ == "__main__":
    main()
