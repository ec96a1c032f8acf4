"""63 ordinary models, as their users would write them: said, said by a trick, or refused in a sentence.

They are those of peers' documents, of threads and of users' first trials that earlier reviews of the library tried.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp

import graphreg as gr

from .settings import means

w, T, P = gr.w, 24, 4
DAYS = list(range(T))
PATH, ARROWS = nx.path_graph(T), nx.DiGraph(pairwise(DAYS))
NEAR = nx.random_geometric_graph(T, 0.35, seed=3)
TURN = np.array([[0.8, -0.6], [0.6, 0.8]])
RNG = np.random.default_rng(0)
Y, Y2 = RNG.normal(size=T), RNG.normal(size=(T, 2))
X, NODE, Z = RNG.normal(size=(5 * T, P)), np.arange(5 * T) % T, RNG.normal(size=5 * T)
CLASSES, COUNTS = np.where(Z + X[:, 0] > 0, 1.0, -1.0), np.floor(abs(Z) * 3)
NAMES = [f"x{j}" for j in range(P)]
GAP, SECONDS = 1e-6, 20.0


@dataclass
class Probe:
    """What was asked for, by whom, and how its user writes it; where that is refused, how it is said instead."""

    what: str
    asked: str
    write: Callable[[], Any]
    trick: str = ""
    instead: Callable[[], Any] | None = None


PROBES: list[Probe] = []


def probe(what: str, asked: str) -> Callable[[Callable[[], Any]], None]:
    def declared(write: Callable[[], Any]) -> None:
        PROBES.append(Probe(what, asked, write))

    return declared


def instead(trick: str) -> Callable[[Callable[[], Any]], None]:
    """How the last probe is said by a trick."""

    def declared(write: Callable[[], Any]) -> None:
        PROBES[-1].trick, PROBES[-1].instead = trick, write

    return declared


def data(**options: Any) -> Any:
    return gr.NodeData.from_arrays(X, Z, NODE, **options)


def one(y: Any = Z) -> Any:
    return gr.NodeData.from_arrays(X, y, ["all"] * len(X))


def study_probes() -> pd.DataFrame:
    """What is said and certified, said by a trick, or refused, with the sentence of the refusal."""
    rows = [(each.what, each.asked, *tried(each)) for each in PROBES]
    table = pd.DataFrame(rows, columns=["model", "asked by", "answer", "gap", "seconds", "how, or why not"])
    print(", ".join(f"{n} {answer}" for answer, n in table["answer"].value_counts().items()), flush=True)
    return table


def tried(each: Probe) -> tuple[str, float, float, str]:
    """The answer to a probe, the certified gap, CPU seconds, and the trick or the sentence."""
    answer, gap, seconds, why = _tried(each.write)
    if answer == "said" or each.instead is None:
        return answer, gap, seconds, why
    other, gap, seconds, _ = _tried(each.instead)
    return ("by a trick", gap, seconds, f"{each.trick}, for: {why}") if other == "said" else (answer, gap, seconds, why)


def _tried(write: Callable[[], Any]) -> tuple[str, float, float, str]:
    began = time.process_time()
    try:
        found = gr.Problem(write()).solve(gap=GAP, seconds=SECONDS, progress=False, on_failure="return")
    except gr.errors.GraphregError as error:
        return "refused", np.nan, time.process_time() - began, str(error)
    except (AttributeError, TypeError) as error:  # there is no such name, or no such argument
        return "refused", np.nan, time.process_time() - began, f"{type(error).__name__}: {error}"
    said = "said" if found.status == "certified" else found.status
    why = "" if said == "said" else found.message
    return said, found.certificate.relative_gap, time.process_time() - began, why


# ---- trends and differences ------------------------------------------------------------------------------------------
@probe("l1 trend filtering", "CVXPY, genlasso, statsmodels#5378")
def _() -> Any:
    return means(Y) + 2.0 * gr.L1()(w.along(DAYS, 2))


@probe("trend filtering at uneven times", "glmgen, wotan#38")
def _() -> Any:
    return means(Y) + 2.0 * gr.L1()(w.along(DAYS, 2, at=np.cumsum(1.0 + abs(Y))))


@probe("trend filtering with weights of the samples", "genlasso#6")
def _() -> Any:
    return gr.MeanLoss(gr.NodeData.from_arrays(None, Y, DAYS, weights=1.0 + abs(Y))) + 2.0 * gr.L1()(w.along(DAYS, 2))


@probe("trend filtering of counts", "glmgen#20, mushi#57")
def _() -> Any:
    counts = gr.NodeData.from_arrays(np.ones((5 * T, 1)), COUNTS, NODE)
    return gr.PoissonLoss(counts) + 0.5 * gr.L1()(w.along(DAYS, 2))


@probe("graph trend filtering", "Wang et al., glmgen#19")
def _() -> Any:
    return means(Y) + 0.3 * gr.L1()(w.across(NEAR, 2))


@probe("graph trend filtering with a design", "glmgen#19")
def _() -> Any:
    return gr.SquaredLoss(data()) + 0.3 * gr.L1()(w.across(NEAR, 2))


@probe("trends of some coefficients, steps of others", "time-varying coefficients")
def _() -> Any:
    trends = gr.L1()(w.at(features=["x0"]).along(DAYS, 2)) + 0.5 * gr.L1()(w.at(features=["x1"]).along(DAYS))
    return gr.SquaredLoss(data()) + trends


@probe("Hodrick and Prescott's filter", "statsmodels")
def _() -> Any:
    return means(Y) + 1600.0 * gr.SquaredL2()(w.along(DAYS, 2))


@probe("any matrix K of my own", "genlasso")
def _() -> Any:
    return means(Y) + gr.L1()(gr.Rows(sp.random_array((30, T), density=0.2, rng=0)))


@probe("quantile trend filtering", "quantreg rqss")
def _() -> Any:
    ones = gr.NodeData.from_arrays(np.ones((5 * T, 1)), Z, NODE)
    return gr.QuantileLoss(ones, tau=0.9, scale="sum") + gr.L1()(w.along(DAYS, 2))


# ---- arrows ----------------------------------------------------------------------------------------------------------
@probe("offsets on edges: synchronisation, ranking", "SnapVX, sheaves")
def _() -> Any:
    return means(Y[:1], [0]) + gr.L1()(w.across(ARROWS) - 1.0)


@probe("maps on edges, A w_i - B w_j", "SnapVX, sheaves")
def _() -> Any:
    return sum((gr.L2()(w.at(j) - w.at(i) @ TURN.T) for i, j in PATH.edges), start=means(Y2))


@probe("maps on edges that hold exactly, w_j = R w_i", "newcomers")
def _() -> Any:
    return sum((gr.Zero()(w.at(j) - w.at(i) @ TURN.T) for i, j in PATH.edges), start=means(Y2))


@instead("a narrow box")
def _() -> Any:
    return sum((gr.Box(-1e-6, 1e-6)(w.at(j) - w.at(i) @ TURN.T) for i, j in PATH.edges), start=means(Y2))


@probe("isotonic regression on a chain", "scikit-learn")
def _() -> Any:
    return means(Y) + gr.NonNegative()(w.along(DAYS))


@probe("isotonic regression on a DAG", "newcomers, papers")
def _() -> Any:
    return means(Y) + gr.NonNegative()(w.across(ARROWS))


@probe("falling costs, rising does not", "newcomers: nearly isotonic")
def _() -> Any:
    return means(Y) + gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.neg(z)))(w.across(ARROWS))


@probe("pinball of the differences", "newcomers: asymmetric total variation")
def _() -> Any:
    dear = gr.Penalty.from_cvxpy(lambda z: cp.sum(cp.maximum(0.8 * z, -0.2 * z)))
    return means(Y) + dear(w.across(ARROWS))


@probe("convex regression along a path", "CVXPY")
def _() -> Any:
    return means(Y) + gr.NonNegative()(w.along(DAYS, 2))


@probe("neighbours differ by at most 1 in each coordinate", "newcomers")
def _() -> Any:
    return means(Y2) + gr.TotalVariation(PATH, gr.Box(-1.0, 1.0))


@instead("along arrows, in any direction")
def _() -> Any:
    return means(Y2) + gr.Box(-1.0, 1.0)(w.across(ARROWS))


@probe("edges that repel: negative weights", "papers: signed graphs")
def _() -> Any:
    signed = nx.path_graph(T)
    nx.set_edge_attributes(signed, {e: (-1.0 if e[0] % 3 == 0 else 1.0) for e in signed.edges}, "weight")
    return means(Y) + gr.TotalVariation(signed, gr.SquaredL2())


@probe("edges that want opposite signs, |w_i + w_j|", "papers: signed graphs")
def _() -> Any:
    return means(Y) + gr.L1()(w.at(DAYS[1:]) + w.at(DAYS[:-1]))


@probe("edges of weight 0", "papers")
def _() -> Any:
    return means(Y) + gr.L1()(w.across(PATH).weighted({(i, j): float(i % 3) for i, j in PATH.edges}))


# ---- some nodes, some coordinates ------------------------------------------------------------------------------------
@probe("values that are given at some nodes", "PyGSP, networkx harmonic_function")
def _() -> Any:
    return means(Y[:1], [0]) + gr.SquaredL2()(w.across(PATH)) + gr.Zero()(w.at([0, T - 1]) - np.array([Y[0], 1.0]))


@probe("labels that spread from known ones", "scikit-learn LabelPropagation")
def _() -> Any:
    known = gr.Zero()(w.at([0, 9]) - np.array([[1.0, 0.0], [0.0, 1.0]]))
    return means(np.array([[1.0, 0.0]]), [0]) + known + gr.SquaredL2()(w.across(NEAR))


@probe("a penalty at some nodes", "ecosystem")
def _() -> Any:
    return means(Y) + gr.NodePenalty(gr.L1(), nodes=DAYS[:5])


@probe("a box by node", "ecosystem")
def _() -> Any:
    return means(Y) + gr.NonNegative()(w - (Y - 0.5)) + gr.NonNegative()((Y + 0.1) - w)


@probe("values in a picture that are missing", "CVXPY tv_inpainting")
def _() -> Any:
    grid = nx.grid_2d_graph(6, 4)
    seen = [pixel for pixel in grid if sum(pixel) % 2]
    return means(Y[:1], seen[:1]) + gr.L1()(w.across(grid)) + gr.Zero()(w.at(seen) - np.r_[Y[:1], Y[1 : len(seen)]])


@probe("no losses at all", "ecosystem: projections, Chebyshev centres")
def _() -> Any:
    return gr.SquaredL2()(w.at(DAYS) - Y[:, None]) + gr.L1()(w.across(PATH))


@instead("one of the squares as a loss")
def _() -> Any:
    return means(Y[:1], [0]) + gr.SquaredL2()(w.at(DAYS[1:]) - Y[1:, None]) + gr.L1()(w.across(PATH))


@probe("different features at different nodes", "SnapVX, papers")
def _() -> Any:
    few = gr.NodeData.from_dict({"a": (X[:10, :2], Z[:10]), "b": (X[10:20, :3], Z[10:20])})
    return gr.SquaredLoss(few) + gr.L2()(w.at("a") - w.at("b"))


@instead("one table, 0 where a node lacks a feature")
def _() -> Any:
    table = np.where((NODE % 2 == 1)[:, None] & (np.arange(P) == 3), 0.0, X)  # odd nodes lack the last feature
    both, ridge = w.at(features=NAMES[:3]).across(PATH), 0.01 * gr.SquaredL2()(w)
    return gr.SquaredLoss(gr.NodeData.from_arrays(table, Z, NODE)) + 0.3 * gr.L2()(both) + ridge


@probe("several variables at a node, tied across them", "SnapVX multivars")
def _() -> Any:
    ends = gr.NodeData.from_arrays([[1.0, 0.0]] * 2, [0.0, -3.0], [1, 2], features=["u", "v"])
    tie = 2.0 * gr.SquaredL2()((w.at(1) - w.at(2)) @ [[1.0], [2.0]])
    return gr.SquaredLoss(ends, scale=2.0) + gr.L1()(w.at([1, 2], ["v"]) + np.array([4.0, 6.0])) + tie


# ---- groups ----------------------------------------------------------------------------------------------------------
@probe("isotropic total variation", "scikit-image, ProxImaL, cp.tv")
def _() -> Any:
    grid = nx.grid_2d_graph(6, 4, create_using=nx.DiGraph)
    grid.remove_edges_from([(a, b) for a, b in grid.edges if b < a])
    return means(Y, [*grid]) + 0.3 * gr.L2()(w.across(grid).grouped(lambda arrow: arrow[0]))


@probe("hyperedges: the spread within a group", "papers: hypergraph total variation")
def _() -> Any:
    spread = gr.Penalty.from_cvxpy(lambda z: cp.max(z) - cp.min(z))
    return means(Y) + 0.5 * spread(w.grouped(lambda day: day // 6))


@probe("a cost of a whole cycle or cut", "newcomers")
def _() -> Any:
    cut = np.where(np.arange(T) < T // 2, 1.0, -1.0)
    return means(Y) + 0.5 * gr.L1()(cut[None, :] @ w.at(DAYS))


@probe("group lasso", "scikit-learn#9967, celer")
def _() -> Any:
    groups = [["x0", "x1"], ["x2", "x3"]]
    return gr.SquaredLoss(one()) + sum(0.1 * gr.L2()(w.at(features=group)) for group in groups)


@probe("overlapping groups, and sparse", "papers")
def _() -> Any:
    groups = [["x0", "x1", "x2"], ["x2", "x3"]]
    return gr.SquaredLoss(one()) + sum(0.1 * gr.L2()(w.at(features=group)) for group in groups) + 0.01 * gr.L1()(w)


@probe("a lasso with a weight by feature", "skglm WeightedL1")
def _() -> Any:
    return gr.SquaredLoss(one()) + 0.1 * gr.L1()(w @ np.diag([1.0, 2.0, 0.5, 3.0]))


@probe("the fused lasso over coefficients", "CVXPY, chop#42")
def _() -> Any:
    return gr.LogisticLoss(one(CLASSES)) + 0.1 * gr.L1()(w @ np.diff(np.eye(P), axis=0).T)


@probe("coefficients that rise", "papers: monotone")
def _() -> Any:
    return gr.SquaredLoss(one()) + gr.NonNegative()(w @ np.diff(np.eye(P), axis=0).T)


@probe("several targets with joint sparsity", "scikit-learn MultiTaskLasso")
def _() -> Any:
    targets = np.c_[Z, X[:, 0] + Z]
    each = [w.at(features=[f"{x}[y{t}]" for t in range(2)]) for x in NAMES]
    return gr.SquaredLoss(gr.NodeData.from_arrays(X, targets, ["all"] * len(X))) + 0.1 * sum(map(gr.L2(), each))


@instead("a node per target")
def _() -> Any:
    both = gr.NodeData.from_arrays(np.tile(X, (2, 1)), np.r_[Z, X[:, 0] + Z], np.repeat([0, 1], len(X)))
    groups = sum(gr.L2()(w.at(features=[x]).grouped(lambda _: 0)) for x in NAMES)
    return gr.SquaredLoss(both) + 0.1 * groups


@probe("convex biclustering", "ecosystem")
def _() -> Any:
    table = RNG.normal(size=(8, 3))
    both = gr.L2()(w.across(nx.complete_graph(8))) + gr.L2()(
        (w.at(range(8)) @ np.diff(np.eye(3), axis=0).T).grouped(lambda _: 0)
    )
    return means(table) + 0.1 * both


# ---- matrices --------------------------------------------------------------------------------------------------------
@probe("the nuclear norm of a matrix on every edge", "papers")
def _() -> Any:
    nuclear = gr.Penalty.from_cvxpy(lambda z: cp.normNuc(cp.reshape(z, (2, 2), order="C")))
    return gr.SquaredLoss(data()) + 0.3 * gr.TotalVariation(PATH, nuclear)


@probe("the trace norm over all nodes", "papers: low rank multi-task")
def _() -> Any:
    nuclear = gr.Penalty.from_cvxpy(lambda z: cp.normNuc(cp.reshape(z, (6, 2), order="C")))
    return means(Y2[:6]) + 0.3 * nuclear(w.at(range(6)).grouped(lambda _: 0))


@probe("sparse inverse covariances, log det", "CVXPY, SnapVX graphInference")
def _() -> Any:
    S = np.array([[1.0, 0.3], [0.3, 2.0]])
    square = functools.partial(cp.reshape, shape=(2, 2), order="C")
    phi = gr.Penalty.from_cvxpy(lambda s: cp.trace(S @ square(s)) - cp.log_det(square(s)))
    return means(np.zeros((1, 4)), scale=1e-3) + phi(w) + 0.1 * gr.L1()(w)


@instead("subtract the inverse of S, where it is smallest")
def _() -> Any:
    S, a = np.array([[1.0, 0.3], [0.3, 2.0]]), np.linalg.inv(np.array([[1.0, 0.3], [0.3, 2.0]]))
    square = functools.partial(cp.reshape, shape=(2, 2), order="C")
    least = 2.0 - np.log(np.linalg.det(a))
    phi = gr.Penalty.from_cvxpy(lambda s: cp.trace(S @ (square(s) + a)) - cp.log_det(square(s) + a) - least)
    return means(np.zeros((1, 4)), scale=1e-3) + phi(w - a.ravel()) + 0.1 * gr.L1()(w)


# ---- losses ----------------------------------------------------------------------------------------------------------
@probe("two losses at a node", "SnapVX, papers")
def _() -> Any:
    return gr.SquaredLoss(one()) + gr.HuberLoss(one(Z + X[:, 0]))


@probe("measurements over nodes: deblurring", "ProxImaL")
def _() -> Any:
    blur = sum(np.eye(T, k=k) for k in (-1, 0, 1)) / 3
    return gr.SquaredLoss(blur @ w.at(DAYS), Y) + 0.2 * gr.L1()(w.along(DAYS))


@probe("sums over nodes: disaggregation", "papers")
def _() -> Any:
    weeks = np.kron(np.eye(4), np.ones((1, 6)))
    return gr.SquaredLoss(weeks @ w.at(DAYS), Y[:4]) + 0.1 * gr.SquaredL2()(w.along(DAYS))


@probe("crossed effects", "lme4#501, Penicillin")
def _() -> Any:
    both = w.at([f"s{k % 5}" for k in DAYS]) + w.at([f"t{k % 3}" for k in DAYS])
    some = [f"s{k}" for k in range(5)], [f"t{k}" for k in range(3)]
    return gr.SquaredLoss(both, Y) + gr.SquaredL2()(w.at(some[0])) + 2.0 * gr.SquaredL2()(w.at(some[1]))


@probe("random slopes with a variance each", "lme4 (Days || Subject)")
def _() -> Any:
    each = 0.5 * gr.SquaredL2()(w.at(features=["x0"])) + 3.0 * gr.SquaredL2()(w.at(features=["x1"]))
    return gr.SquaredLoss(data()) + each


@probe("random slopes that are correlated", "lme4 (Days | Subject)")
def _() -> Any:
    return gr.SquaredLoss(data()) + gr.Quadratic([[2.0, 0.5], [0.5, 1.0]])(w.at(features=["x0", "x1"]))


@probe("two hierarchies that cross", "papers")
def _() -> Any:
    rows = gr.Hierarchy({i: f"r{i // 6}" for i in DAYS}, weights=(0.5, 0.1))
    return means(Y) + rows + gr.Hierarchy({i: f"c{i % 6}" for i in DAYS}, weights=(0.5, 0.1))


@probe("quantiles that are tied", "papers")
def _() -> Any:
    taus = (0.1, 0.5, 0.9)
    losses = [gr.QuantileLoss(gr.NodeData.from_arrays(X, Z, [tau] * len(X)), tau=tau) for tau in taus]
    return sum(losses) + 0.1 * gr.L2()(w.along(taus))


@probe("quantiles that do not cross", "papers")
def _() -> Any:
    taus, line = (0.1, 0.5, 0.9), np.c_[np.ones(len(X)), X[:, 0]]
    losses = [gr.QuantileLoss(gr.NodeData.from_arrays(line, Z, [tau] * len(X)), tau=tau) for tau in taus]
    return sum(losses) + sum(gr.NonNegative()((w.at(b) - w.at(a)) @ line.T) for a, b in pairwise(taus))


@probe("Gamma regression", "papers")
def _() -> Any:
    return gr.GammaLoss(gr.NodeData.from_arrays(X, 0.1 + abs(Z), NODE)) + 0.3 * gr.TotalVariation(PATH, gr.L2())


@probe("negative binomial regression", "ecosystem")
def _() -> Any:
    counts = gr.NodeData.from_arrays(X, COUNTS, NODE)
    loss = gr.Loss.from_cvxpy(
        lambda eta, y: cp.multiply(y + 2.0, cp.logistic(eta - np.log(2.0))) - cp.multiply(y, eta), counts
    )
    return loss + 0.3 * gr.TotalVariation(PATH, gr.L2())


@probe("Cox's partial likelihood, as a choice among those at risk", "ecosystem")
def _() -> Any:
    at_risk = [X[i : i + 9] for i in range(0, 80, 8)]  # who is still there, in the order of times
    chosen = sum(gr.MultinomialLoss(w @ those.T, [0], classes=range(9)) for those in at_risk)
    return chosen + means(np.zeros((1, P)), ["all"], scale=1e-6) + 0.1 * gr.L1()(w)


@probe("targets that are missing", "ecosystem")
def _() -> Any:
    return means(np.where(np.arange(T) % 5, Y, np.nan)) + 0.3 * gr.TotalVariation(PATH, gr.L1())


@instead("leave these rows of the table out: nodes need no data")
def _() -> Any:
    seen = np.flatnonzero(np.arange(T) % 5)
    return means(Y[seen], seen.tolist()) + 0.3 * gr.TotalVariation(PATH, gr.L1())


@probe("a sparse design", "ecosystem")
def _() -> Any:
    return gr.SquaredLoss(gr.NodeData.from_arrays(sp.csr_array(X), Z, NODE)) + 0.3 * gr.TotalVariation(PATH, gr.L2())


# ---- constraints and dynamics ----------------------------------------------------------------------------------------
@probe("a budget over all nodes, sum_i w_i <= b", "ecosystem")
def _() -> Any:
    return means(Y) + gr.NonNegative()(1.0 - np.ones((1, T)) @ w.at(DAYS))


@probe("a sum over all nodes that is given", "papers: global constraints")
def _() -> Any:
    return means(Y) + gr.Zero()(np.ones((1, T)) @ w.at(DAYS) - 1.0)


@instead("a narrow box")
def _() -> Any:
    return means(Y) + gr.Box(-1e-6, 1e-6)(np.ones((1, T)) @ w.at(DAYS) - 1.0)


@probe("probabilities at nodes: not negative, sum 1", "PyGSP classification_tikhonov_simplex")
def _() -> Any:
    return means(Y2) + gr.NonNegative()(w) + gr.Zero()(w @ np.ones((2, 1)) - 1.0) + gr.SquaredL2()(w.across(PATH))


@instead("the last is what the others leave")
def _() -> Any:
    B, e = np.array([[1.0, -1.0]]), np.array([[0.0, 1.0]])
    last = gr.SquaredL2()(w @ B[:, 1:] + 1.0 - Y2[:, 1:]) + gr.NonNegative()(w @ B + e)
    return means(Y2[:, 0]) + last + gr.SquaredL2()(w.across(PATH) @ B)


@probe("a robust Kalman smoother", "CVXPY robust_kalman")
def _() -> Any:
    A = np.array([[1.0, 0.5], [0.0, 0.95]])
    moves = sum((gr.SquaredL2()(w.at(t + 1) - w.at(t) @ A.T) for t in DAYS[:-1]), start=0)
    seen = gr.HuberLoss(gr.NodeData.from_arrays(np.tile([[1.0, 0.0]], (T, 1)), Y, DAYS), delta=0.5)
    return seen + moves


@probe("dynamics that hold exactly: control", "CVXPY")
def _() -> Any:
    A, b = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[0.1], [0.5]])
    laws = [gr.Zero()(w.at(t + 1, ["p", "v"]) - w.at(t, ["p", "v"]) @ A.T - w.at(t, ["u"]) @ b.T) for t in DAYS[:-1]]
    seen = gr.SquaredLoss(gr.NodeData.from_arrays(np.tile([[1.0, 0.0, 0.0]], (T, 1)), Y, DAYS, features=[*"pvu"]))
    return seen + 0.1 * gr.L1()(w.at(features=["u"])) + sum(laws)


@instead("the states are linear in what drives them")
def _() -> Any:
    reach = np.array([[0.1 + 0.5 * 0.5 * (t - r - 1) if r < t else 0.0 for r in DAYS] for t in DAYS])
    return means(Y[:1], [0], scale=1e-6) + gr.SquaredL2()(reach[1:] @ w.at(DAYS) - Y[1:]) + 0.1 * gr.L1()(w)


@probe("strata of a product of graphs, a strength for each", "strat_models")
def _() -> Any:
    sex, age = nx.path_graph(2), nx.path_graph(12)
    along_sex = nx.Graph(((0, a), (1, a)) for a in age)
    along_age = nx.Graph(((s, a), (s, a + 1)) for s in sex for a in range(11))
    fit = means(Y, [(s, a) for s in sex for a in age])
    return fit + 0.3 * gr.SquaredL2()(w.across(along_sex)) + 2.0 * gr.SquaredL2()(w.across(along_age))
