"""Fed-ADMM: full gradients, batches, and nodes that are away, of graph-fused M-estimation."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.methods.fed_admm._averages import SuffixMean, WholeMean
from graphreg.methods.fed_admm.fed_algorithm_2 import State
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.streams import Streams
from graphreg.network.view import LocalView

if TYPE_CHECKING:
    import pandas as pd

V, SAMPLES, FEATURES, CLUSTERS = 20, 50, 20, 5
MARKS = np.unique(np.logspace(2.5, 4.0, 13).astype(int))  # rounds, over 1.5 decades
LEAST = 1e-300
P = np.linspace(0.3, 1.0, V)  # how often each node is there

Array = np.ndarray[Any, np.dtype[Any]]


# ---- problems --------------------------------------------------------------------------------------------------------
def _graph() -> nx.Graph:
    """Circles within the clusters, and a few edges between them."""
    size = V // CLUSTERS
    graph = nx.disjoint_union_all([nx.cycle_graph(size)] * CLUSTERS)
    graph.add_edges_from((k * size, ((k + 1) % CLUSTERS) * size) for k in range(CLUSTERS))
    return graph


def _data(kind: str = "number", d: int = FEATURES, seed: int = 0) -> gr.NodeData:
    rng = np.random.default_rng(seed)
    theta = np.repeat(d**-0.25 * rng.standard_normal((CLUSTERS, d)), V // CLUSTERS, axis=0)
    node = np.repeat(range(V), SAMPLES)
    X = rng.standard_normal((len(node), d))
    x = (X * theta[node]).sum(axis=1)
    y = {
        "number": lambda: x + rng.standard_normal(len(x)),
        "class": lambda: (x + rng.logistic(size=len(x)) > 0).astype(int),
        "count": lambda: rng.poisson(np.exp(np.clip(0.5 * x, -3.0, 3.0))),
        "three": lambda: rng.integers(0, 3, len(x)),
    }[kind]()
    return gr.NodeData.from_arrays(X, y, node)


def _squared() -> gr.Problem:
    return gr.Problem(gr.SquaredLoss(_data()) + 0.1 * gr.TotalVariation(_graph(), gr.L2()))


def problem_classes() -> dict[str, gr.Problem]:
    graph, ridge = _graph(), 0.05 * gr.NodePenalty(gr.SquaredL2())
    groups: dict[Hashable, Any] = {name: list(range(4 * k, 4 * k + 4)) for k, name in enumerate("abcde")}
    clusters = gr.Hierarchy(groups, weights=(0.5, 0.2))
    return {
        "squared, L2": _squared(),
        "logistic, L1, ridge": gr.Problem(
            gr.LogisticLoss(_data("class", 5)) + 0.05 * gr.TotalVariation(graph, gr.L1()) + ridge
        ),
        "Huber, hierarchy, ridge": gr.Problem(gr.HuberLoss(_data(d=5), delta=0.8) + clusters + ridge),
        "Poisson, L2": gr.Problem(gr.PoissonLoss(_data("count", 3)) + 0.1 * gr.TotalVariation(graph, gr.L2())),
        "multinomial, HuberNorm, ridge": gr.Problem(
            gr.MultinomialLoss(_data("three", 3)) + 0.2 * gr.TotalVariation(graph, gr.HuberNorm(0.5)) + ridge
        ),
    }


def _together(t: int, labels: Sequence[int], uniform: Array, common: np.random.Generator) -> Array:
    """Every other round, by one coin for all, is a bad one: the nodes are there in the proportions P all the same."""
    p = P[list(labels)]
    calm = np.minimum(1.6 * p, 1.0)
    return uniform < (calm if common.random() < 0.5 else 2.0 * p - calm)


AWAY: dict[str, Any] = {
    "known": dict(enumerate(P.tolist())),
    "to be estimated": gr.Availability(dict(enumerate(P.tolist())), known=False),
    "correlated": _together,
}


# ---- errors ----------------------------------------------------------------------------------------------------------
def _view(problem: gr.Problem, seed: int) -> LocalView:
    return LocalView(problem.form, InProcess(Ledger(arcs_of(problem.form), problem.form.labels)), seed)


def _averages(problem: gr.Problem, method: gr.FedADMM, seeds: int) -> dict[str, Array]:
    """Mean squared errors, of ||.||_F^2 / V, after the rounds `MARKS`: of the last iterate and of both averages."""
    best = problem.solve(gap=1e-12).coef
    out = {name: np.zeros(len(MARKS)) for name in ("last", "printed", "suffix")}
    for seed in range(seeds):
        state = method.init(_view(problem, seed), None)
        printed, suffix = WholeMean(np.zeros_like(state.theta), 0), None
        for t in range(1, MARKS[-1] + 1):
            printed = printed.step(state.theta)
            state = method.step(state)
            suffix = SuffixMean.of(state.theta) if suffix is None else suffix.step(state.theta)
            if t in MARKS:
                k = int(np.searchsorted(MARKS, t))
                for name, w in (("last", state.theta), ("printed", printed.value()), ("suffix", suffix.value())):
                    out[name][k] += ((w - best) ** 2).sum() / V / seeds
    return out


def _slope(errors: Array, marks: Array = MARKS) -> float:
    return float(np.polyfit(np.log(marks), np.log(errors), 1)[0])


def _on_a_server(problem: gr.Problem, start: State, seed: int, p: Array) -> Iterator[Array]:
    """The parameters of Algorithm 2 as printed, round by round, for least squares and phi = l2: a server moves those of
    nodes that are away, and all edges in every round."""
    (edge,), data = problem.form.edges, _data()
    assert data.X is not None
    X, y = data.X.reshape(V, SAMPLES, -1), np.asarray(data.y).reshape(V, SAMPLES)
    i, j, c, rho = edge.tail, edge.head, edge.weight, start.scale.rho
    theta = np.zeros((V, X.shape[2]))
    beta, alpha = np.zeros((2, len(i), X.shape[2])), np.zeros((2, len(i), X.shape[2]))
    coins = Streams(seed, "availability", range(V))
    for t in count(1):
        there = coins.uniform(t, 1)[:, 0] < p
        slope = (there / p)[:, None] * np.einsum("vnd,vn->vd", X, np.einsum("vnd,vd->vn", X, theta) - y) / SAMPLES
        for k, end in enumerate((i, j)):
            np.add.at(slope, end, rho * (theta[end] - beta[k]) - alpha[k])
        theta = theta - start.scale.eta(t, start.L / p)[:, None] * slope
        a, b = theta[i] - alpha[0] / rho, theta[j] - alpha[1] / rho
        d = a - b
        d = d * np.maximum(0.0, 1.0 - (2.0 * c / rho) / np.maximum(np.linalg.norm(d, axis=1), LEAST))[:, None]
        beta = np.stack([(a + b + d) / 2, (a + b - d) / 2])
        alpha = alpha - rho * (np.stack([theta[i], theta[j]]) - beta)
        yield theta


# ---- studies ---------------------------------------------------------------------------------------------------------
def study_full_gradients() -> pd.DataFrame:
    """The certified relative gap of FedADMM() with full gradients, and its rounds beside those of the exact prox."""
    return _certified({"all there": None})


def study_nodes_that_freeze() -> pd.DataFrame:
    """The certified relative gap with nodes that are there in 0.3 to 1 of the rounds and freeze while they are away."""
    return _certified(AWAY)


def _certified(away: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for name, problem in problem_classes().items():
        admm = problem.solve(gr.ADMM(), gap=1e-8).rounds
        for how, availability in away.items():
            run = problem.solve(gr.FedADMM(availability=availability), gap=1e-8, seed=0, rounds=50_000)
            row = {"problem": name, "availability": how, "asked": 1e-8, "found": run.certificate.relative_gap}
            rows.append(
                {**row, "rounds": run.rounds, "messages": run.ledger.messages["method"], "rounds of ADMM": admm}
            )
    return pd.DataFrame(rows)


def study_batches_of_10() -> pd.DataFrame:
    """The slope of the mean squared error over the rounds, of the last iterate and of both averages: O(1/T)."""
    import pandas as pd

    errors = _averages(_squared(), gr.FedADMM(batch=10, average="last"), seeds=5)
    asked = {"last": -1.05, "printed": -1.18, "suffix": -1.00}
    rows = [
        {"average": name, "asked": asked[name], "found": _slope(e), "first": e[0], "end": e[-1]}
        for name, e in errors.items()
    ]
    return pd.DataFrame(rows)


def study_inverse_probability_weights() -> pd.DataFrame:
    """The slope of the mean squared error with while_away="ipw", beside that of log T / T, which the theory has."""
    import pandas as pd

    problem, theory = _squared(), _slope(np.log(MARKS) / MARKS)
    rows: list[dict[str, Any]] = []
    for how, availability in AWAY.items():
        method = gr.FedADMM(availability=availability, while_away="ipw", average="last")
        for name, e in _averages(problem, method, seeds=4).items():
            row = {"availability": how, "average": name, "asked": theory, "found": _slope(e)}
            rows.append({**row, "first": e[0], "end": e[-1]})
    return pd.DataFrame(rows)


def study_ipw_without_its_server() -> pd.DataFrame:
    """The mean squared error of the last iterate beside that of Algorithm 2 on its server, with the same coins, for
    nodes that are there in 0.3 to 1 of the rounds, and in a third of these: that neighbours do not know what becomes of
    the other edges of a node that is away shows as a bias of the size of the step, which goes away faster than the
    noise. Leaves of a star are no such nodes: there the two are the same (see tests/methods/test_fed_ipw.py)."""
    import pandas as pd

    problem, marks, seeds = _squared(), (300, 1000, 3000, 10_000), range(3)
    best = problem.solve(gap=1e-12).coef
    out: list[pd.DataFrame] = []
    for part in (1, 3):
        p = P / part
        method = gr.FedADMM(availability=dict(enumerate(p.tolist())), while_away="ipw", average="last")
        errors = np.zeros((len(marks), 2))
        for seed in seeds:
            state = method.init(_view(problem, seed), None)
            assert isinstance(state, State)
            for t, theta in zip(range(1, marks[-1] + 1), _on_a_server(problem, state, seed, p), strict=False):
                state = method.step(state)
                if t in marks:
                    errors[marks.index(t)] += [((w - best) ** 2).sum() / V / len(seeds) for w in (theta, state.theta)]
        there = f"{p.min():.1f} to {p.max():.2f}"
        out.append(pd.DataFrame({"there": there, "rounds": marks, "asked": errors[:, 0], "found": errors[:, 1]}))
    return pd.concat(out, ignore_index=True)
