"""True and false claims about answers: the true ones are to be proved, the false ones refused by prover and checker."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.errors import ProofError
from graphreg.verify import NotProvedError, check, spell

KINDS = ("near", "fused", "split", "unattained")
APART, EQUAL, SLACK = 1e-2, 1e-7, 1e-2  # differences of the reference, and the slack as a share of the capacity


@dataclass(frozen=True)
class Case:
    """A claim that holds and one that does not, with the answers they are about; the false one as a file has it too."""

    true: tuple[gr.Solution, Any]
    false: tuple[gr.Solution, Any]
    forged: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case; ``named`` is whether the refusal names the edge."""

    proved: bool
    refused: bool
    named: bool
    forgery_refused: bool
    seconds: float


def case(kind: str, seed: int) -> Case:
    """A random case."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    while True:
        found = _of_problem(rng) if kind == "unattained" else _of_edge(kind, rng)
        if found is not None:
            return found


def outcome(case: Case, path: Path) -> Outcome:
    """Prove, check, and forge."""
    start = time.process_time()
    solution, claim = case.true
    kind = claim if isinstance(claim, str) else claim[0]
    try:
        proved = kind in solution.prove(path, [claim]).claims and kind in json.dumps(
            json.loads(path.read_text())["claims"]
        )
        check(path.read_bytes())
    except (ProofError, NotProvedError):
        proved = False
    seconds = time.process_time() - start
    solution, claim = case.false
    refusal = ""
    try:
        solution.prove(path, [claim])
    except ProofError as error:
        refusal = str(error)
    named = kind in refusal and (kind == "unattained" or " - ".join(repr(end) for end in sorted(claim[1:3])) in refusal)
    return Outcome(proved, bool(refusal), named, forgery_refused(solution, case.forged, path), seconds)


def forgery_refused(solution: gr.Solution, forged: dict[str, Any], path: Path) -> bool:
    """True where the checker refuses a false claim in a file that is a proof without it."""
    solution.prove(path)
    document = json.loads(path.read_text())
    check(json.dumps(document).encode())
    if forged["says"] == "split":
        forged = forged | {"dual": document["dual"]}
    document["claims"].append(forged)
    try:
        check(json.dumps(document).encode())
    except NotProvedError as error:
        return "claim 1" in str(error)
    return False


# ---- cases -----------------------------------------------------------------------------------------------------------
def _of_edge(kind: str, rng: np.random.Generator) -> Case | None:
    """An edge whose ends are equal and one whose ends differ, by an answer that is solved much further."""
    problem = gr.Problem(_model(kind, rng))
    reference = problem.solve(gap=1e-11, on_failure="return").certificate
    edges = problem.form.edges[0]
    z = np.asarray(np.abs(edges.difference(reference.w)).max(axis=1))
    slack = 1.0 - edges.penalty.domain.gauge(reference.dual_point.flows[0] / edges.weight[:, None])
    apart, equal = np.flatnonzero(z > APART), np.flatnonzero((z < EQUAL) & (slack > SLACK))
    if not len(apart) or not len(equal):
        return None
    solution = problem.solve(gap=1e-8, on_failure="return")
    a, b = int(rng.choice(apart)), int(rng.choice(equal))

    def ends(e: int) -> tuple[Any, Any]:
        return problem.form.labels[edges.tail[e]], problem.form.labels[edges.head[e]]

    true, false = (a, b) if kind == "split" else (b, a)
    half = float(z[a]) / 2
    rest = (half,) if kind == "near" else ()
    forged: dict[str, Any] = {"says": kind, "block": 0, "edge": false}
    if kind == "near":
        forged["distance"] = spell(half)
    return Case((solution, (kind, *ends(true), *rest)), (solution, (kind, *ends(false), *rest)), forged)


def _model(kind: str, rng: np.random.Generator) -> gr.Model:
    """Clusters along a path with some chords; for fused edges such that optima are rational."""
    n, d, m = int(rng.integers(6, 20)), int(rng.integers(1, 4)), 6
    graph = nx.path_graph(n)
    graph.add_edges_from((int(i), int(i) + 2) for i in rng.choice(n - 2, n // 4, replace=False))
    truth = np.repeat(rng.standard_normal((n // 3 + 1, d)) * 2.0, 3, axis=0)[:n]
    penalties = [gr.L1()] if kind == "fused" else [gr.L1(), gr.L2(), gr.LInf()]
    penalty = float(np.exp(rng.uniform(-2.0, 0.0))) * gr.TotalVariation(graph, penalties[rng.integers(len(penalties))])
    ridge = 0.05 * gr.NodePenalty(gr.SquaredL2())
    losses = ["mean", "squared"] if kind == "fused" else ["mean", "squared", "logistic", "huber"]
    loss = losses[rng.integers(len(losses))]
    if loss == "mean":
        data = gr.NodeData.from_arrays(None, truth + 0.2 * rng.standard_normal((n, d)), range(n))
        return gr.MeanLoss(data) + penalty
    X, node = rng.standard_normal((n * m, d)), np.repeat(np.arange(n), m)
    y = (X * truth[node]).sum(axis=1) + 0.2 * rng.standard_normal(n * m)
    if loss == "logistic":
        return gr.LogisticLoss(gr.NodeData.from_arrays(X, (y > 0).astype(int), node)) + 0.1 * penalty + ridge
    data = gr.NodeData.from_arrays(X, y, node)
    return (gr.SquaredLoss(data) if loss == "squared" else gr.HuberLoss(data, delta=1.0)) + penalty + ridge


def _of_problem(rng: np.random.Generator) -> Case:
    """Classes that a hyperplane separates, and the same with every sample in both classes."""
    n, d, m = int(rng.integers(2, 12)), int(rng.integers(1, 4)), 5
    X, node, v = rng.standard_normal((n * m, d)), np.repeat(np.arange(n), m), rng.standard_normal(d)
    penalty = 0.5 * gr.TotalVariation(nx.path_graph(n), [gr.L1(), gr.L2(), gr.SquaredL2()][rng.integers(3)])
    y = np.where(X @ v > 0, 1, 0)
    both = gr.NodeData.from_arrays(np.r_[X, X], np.r_[y, 1 - y], np.r_[node, node])
    apart = gr.Problem(gr.LogisticLoss(gr.NodeData.from_arrays(X, y, node)) + penalty).solve(on_failure="return")
    mixed = gr.Problem(gr.LogisticLoss(both) + penalty).solve(on_failure="return")
    direction = [[spell(float(x)) for x in v]] * n
    return Case((apart, "unattained"), (mixed, "unattained"), {"says": "unattained", "direction": direction})
