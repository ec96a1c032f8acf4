"""Section V and its proofs: well-connected clusters, Lemma 3, Theorem 2, and the critical value of lambda."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linprog

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import optimum
from ._instances import Array, Instance, flows

NODES = (5, 5)


def _margin(of: Instance, demand: Array) -> float:
    """By all subsets but the empty one: the largest over i_0 of the least cut(A) / demand(A)."""
    inside, cut = _cuts(of)
    ratio = cut[1:] / (inside[1:] @ demand)
    return max(float(ratio[~inside[1:, i0]].min()) for i0 in range(of.n))


def _cuts(of: Instance) -> tuple[Array, Array]:
    """All subsets of the nodes, the empty one first, and the weights of their boundaries."""
    inside = (np.arange(1 << of.n)[:, None] >> np.arange(of.n)) & 1 == 1
    return inside, (inside[:, of.tail] != inside[:, of.head]) @ of.A


def _holds(of: Instance, demand: Array) -> bool:
    return gr.theory.well_connected(of.graph(), demand).holds


def _as_printed(of: Instance, demand: Array) -> bool:
    """Definition 1 to the letter: (35) for every subset without i_0."""
    inside, cut = _cuts(of)
    met = inside @ demand < cut
    return any(bool(met[~inside[:, i0]].all()) for i0 in range(of.n))


@claim("gtv.def1-maxflow", "Definition 1, (35)", stated="every subset A")
def well_connected(at: Trial) -> Evidence:
    """A cluster is well-connected if for a node i_0 demand(A) < cut(A) for every subset A of the cluster without i_0;
    maximum flows decide it.

    Correction (misprint): Every subset but the empty one, for which (35) says 0 < 0, so that no cluster would be
    well-connected.
    """
    clusters, demands = [], []
    for k in range(12):
        rng = at.rng(k)
        n = 4 + k % 3
        graph = nx.gnp_random_graph(n, 0.6, seed=int(rng.integers(1 << 30)))
        nx.add_path(graph, range(n))
        clusters.append(Instance.drawn(rng, n=n, graph=graph))
        demands.append(rng.uniform(0.1, 1.0, n) * (1.0 + k % 4))
    found = [gr.theory.well_connected(of.graph(), d) for of, d in zip(clusters, demands, strict=True)]
    exact, margins = (
        [_margin(of, f(d)) for of, d in zip(clusters, demands, strict=True)] for f in (np.array, at.given)
    )
    wrong = sum(each.holds != (m > 1.0) for each, m in zip(found, margins, strict=True))
    near = [[_holds(of, f * m * d) for f in (0.999, 1.001)] for of, d, m in zip(clusters, demands, exact, strict=True)]
    letter = sum(_as_printed(of, 1e-3 * d) for of, d in zip(clusters, demands, strict=True))
    return Evidence.of(
        at_least("with demands near 0: well-connected ones of the 12, every subset A asked", letter, 1),
        corrected=[
            equal("the margins of 12 clusters, by flows and by all subsets", [e.margin for e in found], margins),
            at_most("clusters on which they disagree", wrong, 0),
            at_least("well-connected ones with demands a thousandth below the margin", sum(a for a, _ in near), 12),
            at_most("well-connected ones with demands a thousandth above it", sum(b for _, b in near), 0),
            at_least("well-connected ones among them", sum(each.holds for each in found), 2),
            at_most("well-connected ones", sum(each.holds for each in found), 10),
        ],
    )


@claim("gtv.lemma3", "Lemma 3, (58) to (63)", stated="satisfies (59)")
def lemma_3(at: Trial) -> Evidence:
    """Where (58) holds there is a flow with D'u = s and ||u_e|| < A_e: (63), the sum over i of s_i times the unit flows
    u_r along the paths that start at i in the decomposition (61) of a scalar flow.

    Correction (misprint): (63) is the sum over i of s_i / ||s_i|| times the sum of a_r u_r, as the scalar flow carries
    ||s_i||.
    """
    of = Instance.drawn(at.rng(0), n=7)
    s = at.rng(1).standard_normal((of.n, 3))
    s -= s.mean(axis=0)
    size = np.linalg.norm(s, axis=1)
    s *= 0.9 * gr.theory.well_connected(of.graph(), size).margin
    size = np.linalg.norm(s, axis=1)
    test = gr.theory.well_connected(of.graph(), size)
    units, starts, amounts = _paths(of, size, test.source)
    demands = np.array(at.given(s))
    printed = np.einsum("re,rj->ej", units, s[starts])
    right = np.einsum("r,re,rj->ej", amounts / np.linalg.norm(demands, axis=1)[starts], units, demands[starts])
    return Evidence.of(
        equal("D'u and s with (63)", of.incidence.T @ printed, s, 1e-6),
        corrected=[
            at_least("the margin of (58)", test.margin, 1.0),
            equal("D'u and s with s_i / ||s_i|| and a_r", of.incidence.T @ right, s, 1e-6),
            at_most("||u_e|| / A_e", np.linalg.norm(right, axis=1) / of.A, 1.0 - 1e-6),
        ],
    )


def _paths(of: Instance, size: Array, sink: Any) -> tuple[Array, Array, Array]:
    """(60), (61): a flow that carries size_i from each node to the sink, as paths: their unit flows, starts, a_r."""
    D, rest = of.incidence, np.arange(of.n) != sink
    least = linprog(
        np.ones(2 * len(of.A)),
        A_eq=np.hstack([D.T, -D.T])[rest],
        b_eq=size[rest],
        bounds=list(zip(np.zeros(2 * len(of.A)), 0.999 * np.tile(of.A, 2), strict=True)),
    )
    left = least.x[: len(of.A)] - least.x[len(of.A) :]
    units, starts, amounts = list[Array](), list[int](), list[float]()
    for i in np.flatnonzero(rest):
        wanted = float(size[i])
        while wanted > 1e-9:
            unit = np.zeros(len(of.A))
            node = int(i)
            while node != sink:
                out = D[:, node] * left  # what flows out of the node along each edge
                e = int(np.argmax(out))
                unit[e] = np.sign(left[e])
                node = int(of.head[e] if of.tail[e] == node else of.tail[e])
            amount = min(wanted, float(np.abs(left[unit != 0]).min()))
            left, wanted = left - amount * unit, wanted - amount
            units, starts, amounts = [*units, unit], [*starts, int(i)], [*amounts, amount]
    return np.array(units), np.array(starts), np.array(amounts)


# ---- Theorem 2 -------------------------------------------------------------------------------------------------------
def _two_clusters(rng: np.random.Generator, boundary: float, noise: float = 0.1) -> Instance:
    """Two complete graphs with an edge or two between them; parameters constant on either, up to the noise."""
    label = _labels()
    graph = nx.disjoint_union(*(nx.complete_graph(k) for k in NODES))
    graph.add_edges_from([(0, NODES[0]), (1, NODES[0] + 1)])
    of = Instance.drawn(rng, n=sum(NODES), m=4, graph=graph)
    w = 2.0 * rng.standard_normal((2, of.X.shape[2]))[label]
    y = np.einsum("imj,ij->im", of.X, w) + noise * rng.standard_normal(of.y.shape)
    between = label[of.tail] != label[of.head]
    return Instance(of.X, y, of.tail, of.head, np.where(between, boundary, of.A))


def _labels() -> Array:
    return np.repeat([0, 1], NODES)


def _guaranteed(of: Instance, phi: Any) -> tuple[gr.Problem, Any] | None:
    """The problem at a strength in the guaranteed interval, and what Theorem 2 says of it; None where there is none."""
    clusters = dict(enumerate(_labels().tolist()))
    interval = gr.theory.recovery(of.problem(phi, 1.0), clusters).interval
    if interval is None:
        return None
    problem = of.problem(phi, 1.01 * interval[0])
    return problem, gr.theory.recovery(problem, clusters)


def _instances(at: Trial, count: int) -> list[tuple[Instance, gr.Problem, Any, Any]]:
    """Guaranteed ones, the l2 and the l1 norm in turn."""
    out = list[tuple[Instance, gr.Problem, Any, Any]]()
    for k in range(count):
        phi = (gr.L2(), gr.L1())[k % 2]
        of = _two_clusters(at.rng(k), boundary=0.002 * (k + 1))
        found = _guaranteed(of, phi)
        if found is not None:
            out.append((of, *found, phi))
    return out


@claim(
    "gtv.thm2-fusion",
    "Theorem 2, first part",
    stated="w_i = w_j within a cluster",
    quick={"count": 6},
    full={"count": 100},
)
def fusion(at: Trial, count: int) -> Evidence:
    """Where every cluster is well-connected the solution is constant on each."""
    spread, constant, found, margins = [], [], [], []
    label = _labels()
    for of, problem, guarantee, phi in _instances(at, count):
        if isinstance(phi, gr.L2):
            margins.append(_least_margin(of, guarantee.interval[0]))
        solution = optimum(problem)
        means = np.array([solution.coef[label == c].mean(axis=0) for c in (0, 1)])
        spread.append(float(np.abs(solution.coef - means[label]).max()))
        found.append(solution.objective)
        tampered = replace(of, y=at.given(of.y))
        constant.append(_merged(tampered, phi, guarantee.strength).objective)
        assert guarantee.guaranteed
    return Evidence.of(
        at_least("guaranteed instances", len(spread), count // 2),
        equal("l2: the margin of (35) at the least lambda that is guaranteed, by all subsets", margins, 1.0, 1e-6),
        at_most("distance of the solution from its means over the clusters", spread, 1e-5),
        equal("the optimum, and that over parameters constant on each cluster", found, constant, 1e-7),
    )


def _least_margin(of: Instance, lam: float) -> float:
    """Of Definition 1 to the letter, the lesser of both clusters."""
    label, (outside, shift, delta) = _labels(), _parts_of_35(of)
    demand, margins = outside + shift + delta / lam, list[float]()
    for c, first in enumerate((0, NODES[0])):
        own, inner = label == c, (label[of.tail] == c) & (label[of.head] == c)
        part = Instance(of.X[own], of.y[own], of.tail[inner] - first, of.head[inner] - first, of.A[inner])
        margins.append(_margin(part, demand[own]))
    return min(margins)


def _parts_of_35(of: Instance) -> tuple[Array, Array, Array]:
    """The summands of (35) at each node, for l2: weights of edges to the other cluster, beta_i |dC| / alpha,
    delta_i."""
    label = _labels()
    between = label[of.tail] != label[of.head]
    outside = np.bincount(np.concatenate([of.tail[between], of.head[between]]), np.tile(of.A[between], 2), of.n)
    means = np.array([of.pooled(label == c) for c in (0, 1)])[label]
    beta = np.linalg.eigvalsh(of.hessians)[:, -1]
    alpha = np.array([np.linalg.eigvalsh(of.hessians[label == c].sum(axis=0))[0] for c in (0, 1)])[label]
    return outside, beta * of.A[between].sum() / alpha, np.linalg.norm(of.gradients(means), axis=1)


def _merged(of: Instance, phi: Any, lam: float) -> gr.Solution:
    """The solution of (42): one parameter vector for each cluster, an edge between them of weight |dC|."""
    between = _labels()[of.tail] != _labels()[of.head]
    n, m, d = of.X.shape
    data = gr.NodeData.from_arrays(of.X.reshape(n * m, d), of.y.ravel(), np.repeat(_labels(), m))
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=float(of.A[between].sum()))
    return optimum(gr.Problem(gr.SquaredLoss(data, scale=2.0 / m) + lam * gr.TotalVariation(graph, phi)))


@claim(
    "gtv.thm2-bound",
    "Theorem 2, (36)",
    stated="||w_i - wbar|| <= 2 |dC| lambda / alpha",
    quick={"count": 6},
    full={"count": 100},
)
def bound(at: Trial, count: int) -> Evidence:
    """Where every cluster is well-connected the solution lies within 2 |dC| lambda / alpha of the optimum of the
    cluster's summed losses."""
    label, ratio, computed, stated = _labels(), [], [], []
    for of, problem, guarantee, phi in _instances(at, count):
        w = optimum(problem).coef
        means = np.array([of.pooled(label == c) for c in (0, 1)])
        far = [float(phi.value(w[label == c] - means[c]).max()) for c in (0, 1)]
        ratio.append(max(f / b for f, b in zip(far, guarantee.bound, strict=True)))
        if isinstance(phi, gr.L2):
            lam = guarantee.strength
            between = label[of.tail] != label[of.head]
            least = [float(np.linalg.eigvalsh(of.hessians[label == c].sum(axis=0))[0]) for c in (0, 1)]
            computed += list(guarantee.bound)
            stated += [2.0 * at.given(of.A[between].sum()) * lam / alpha for alpha in least]
    return Evidence.of(
        equal("(36) for l2, gr.theory.recovery and to the letter", computed, stated),
        at_most("the distance as a share of (36), in each instance", ratio, 1.0),
        at_most("and as a share of |dC| lambda / alpha, half of (36)", 2.0 * np.array(ratio), 1.0, 1e-6),
        at_least("guaranteed instances", len(ratio), count // 2),
    )


@claim("gtv.thm2-proof", "(54) to (57), with (35)", stated="(35) can be used for (58)")
def proof(at: Trial) -> Evidence:
    """The vectors s_i of (57) are at most lambda d_i long, d_i the left side of (35) at i, by the bounds (55) and (56),
    so that Lemma 3 applies.

    Correction (constant): (55) has 2 beta_i lambda |dC| / alpha and (35) half of that. (35) suffices all the same: the
    cluster's part of the solution lies within |dC| lambda / alpha of wbar, half of (49), by (46) and strong convexity.
    """
    label, lam = _labels(), 1.0
    of = _two_clusters(at.rng(0), boundary=0.05)
    clusters = dict(enumerate(label.tolist()))
    table = gr.theory.recovery(of.problem(gr.L2(), lam), clusters).table
    outside, shift, delta = _parts_of_35(of)
    demand = at.given(outside) + shift + delta / lam
    in_55 = outside + 2.0 * shift + delta / lam
    s = _demands_of_57(of, lam)
    return Evidence.of(
        at_most("the bound by (55) and (56), over lambda d_i", in_55 / demand, 1.0),
        corrected=[
            equal("the largest d_i of each cluster", table["demand"], [demand[label == c].max() for c in (0, 1)]),
            at_most("||s_i|| of (57), over lambda d_i", np.linalg.norm(s, axis=1) / (lam * demand), 1.0),
        ],
    )


def _demands_of_57(of: Instance, lam: float) -> Array:
    """s_i of (57) at the solution of (42), with the flow (51) between the clusters."""
    label, found = _labels(), _merged(of, gr.L2(), lam)
    between = label[of.tail] != label[of.head]
    share = np.where(between, of.A, 0.0) / of.A[between].sum()
    return -of.incidence.T @ (share[:, None] * flows(found)) - of.gradients(found.coef[label])
