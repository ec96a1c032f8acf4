"""Section III: the dual problem, the conditions of optimality, and what the problem is a case of."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.optimize import minimize

import graphreg as gr

from .. import Evidence, Trial, at_least, at_most, claim, equal
from ..computing import optimum
from ._instances import Array, Instance, flows

LAM = 0.4


def _largest(of: Instance, curvature: Any = 0.0, **limits: Any) -> float:
    """The largest -f*(-D'u) - sum_e curvature_e/2 ||u_e||^2, f* the sum (21) of the L_i*, by sequential quadratic
    programming."""
    shape = len(of.A), of.X.shape[2]
    g, rate = of.gradients(np.zeros(of.X.shape[::2])), np.broadcast_to(curvature, len(of.A))[:, None]

    def value(x: Array) -> tuple[float, Array]:
        u = x.reshape(shape)
        s = -of.incidence.T @ u
        w = np.linalg.solve(of.hessians, (s - g)[..., None])[..., 0]  # the gradients of the L_i*
        total = of.conjugates(s).sum() + 0.5 * (rate * u**2).sum()
        return float(total), (rate * u - of.incidence @ w).ravel()

    found = minimize(
        value, np.zeros(shape).ravel(), jac=True, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}, **limits
    )
    return -float(found.fun)


@claim("gtv.duality", "(22), with (20) and (21)")
def strong_duality(at: Trial) -> Evidence:
    """Strong duality: min f(w) + g(Dw) = max -g*(u) - f*(-D'u), with g*(u) = sum_e lambda A_e phi*(u_e / (lambda A_e))
    and f*(w) = sum_i L_i*(w_i), for phi the l2 norm, the l1 norm and 1/2 ||.||^2."""
    of = Instance.drawn(at.rng())
    c, d = LAM * at.given(of.A), of.X.shape[2]
    box = [(-each, each) for each in np.repeat(c, d)]
    inside = {"type": "ineq", "fun": lambda x: c**2 - (x.reshape(len(c), d) ** 2).sum(axis=1)}
    duals = [_largest(of, constraints=[inside]), _largest(of, bounds=box), _largest(of, 1.0 / c)]
    primals = [optimum(of.problem(phi, LAM)).objective for phi in (gr.L2(), gr.L1(), gr.SquaredL2())]
    return Evidence.of(equal("the two optima, l2, l1, 1/2 ||.||^2", primals, duals, 1e-6))


@claim("gtv.optimality", "(23), (25)", stated="necessary and sufficient")
def optimality(at: Trial) -> Evidence:
    """w and u are optimal if and only if -D'u = grad L(w) and, for each edge, w_(e+) - w_(e-) lies in (lambda A_e)
    times the subdifferential of phi* at u_e / (lambda A_e).

    Correction (constant): The second line of (25) has no factor lambda A_e, as the subdifferential of lambda A phi*(u /
    (lambda A)) has none: for norms it makes no difference, for 1/2 ||.||^2 the print asks for u = w_(e+) - w_(e-).
    """
    of = Instance.drawn(at.rng())
    c = (LAM * of.A)[:, None]
    smooth, norm = of.problem(gr.SquaredL2(), LAM), of.problem(gr.L2(), LAM)
    found, other = optimum(smooth), optimum(norm)
    w, u = found.coef, flows(found)
    printed = gr.theory.printed.edge_residuals
    return Evidence.of(
        equal("(25), 1/2 ||.||^2: w_(e+) - w_(e-), and lambda A_e times u_e / (lambda A_e)", of.incidence @ w, u, 1e-6),
        at_most("(25), 1/2 ||.||^2: Fenchel-Young residuals", printed(smooth, w, [u])[0], 1e-6),
        corrected=[
            equal("(23): -D'u and grad L(w)", -of.incidence.T @ u, of.gradients(at.given(w)), 1e-6),
            equal("w_(e+) - w_(e-), and u_e / (lambda A_e)", of.incidence @ w, u / c, 1e-6),
            at_most("Fenchel-Young residuals without the factor", found.certificate.residuals[1][0], 1e-9),
            at_most("(25), l2: Fenchel-Young residuals", printed(norm, other.coef, [flows(other)])[0], 1e-6),
        ],
    )


@claim("gtv.optimality-norms", "(28)", stated="necessary and sufficient")
def optimality_for_norms(at: Trial) -> Evidence:
    """For a norm: -D'u = grad L(w), ||u_e||_* <= lambda A_e, and w_(e+) = w_(e-) wherever ||u_e||_* < lambda A_e."""
    of, checks = Instance.drawn(at.rng(), n=8), []
    for phi, dual in ((gr.L2(), 2), (gr.L1(), np.inf), (gr.LInf(), 1)):
        found = optimum(of.problem(phi, 2.0))
        u, z = flows(found), np.abs(of.incidence @ found.coef).max(axis=1)
        load = np.linalg.norm(u, dual, axis=1) / (2.0 * of.A)
        open_, name = load < 1.0 - 1e-4, type(phi).__name__
        checks += [
            equal(f"{name}: -D'u and grad L(w)", -of.incidence.T @ u, of.gradients(at.given(found.coef)), 1e-6),
            at_most(f"{name}: ||u_e||_* / (lambda A_e)", load, 1.0, 1e-12),
            at_least(f"{name}: edges below their capacity", int(open_.sum()), 1),
            at_least(f"{name}: edges at their capacity", int((~open_).sum()), 1),
            at_most(f"{name}: |w_(e+) - w_(e-)| below the capacity", np.where(open_, z, 0.0), 1e-6),
        ]
    return Evidence.of(*checks)


@claim("gtv.norm-dual", "(26), (27)")
def dual_of_norms(at: Trial) -> Evidence:
    """For phi a norm phi* is the indicator of the unit ball of the dual norm, and the dual problem has the constraints
    ||u_e||_* <= lambda A_e."""
    u, z = at.rng(0).standard_normal((50, 3)), at.rng(1).standard_normal((20000, 3))
    norms = {"l2": (gr.L2(), 2), "l1": (gr.L1(), np.inf), "l-infinity": (gr.LInf(), 1)}
    checks = []
    for name, (phi, dual) in norms.items():
        sizes = np.linalg.norm(at.given(u), dual, axis=1)
        inside = np.isfinite(phi.conjugate(u))
        reach = (u[:5] @ z.T / phi.value(z)).max(axis=1)  # sup of <u, z> / phi(z), from below
        checks += [
            equal(f"{name}: the gauge of the domain of phi*, and ||u||_*", phi.domain.gauge(u), sizes),
            at_most(f"{name}: points where phi* is finite and ||u||_* > 1, or not", (inside != (sizes <= 1)).sum(), 0),
            at_most(f"{name}: |phi*| where it is finite", np.abs(phi.conjugate(u[inside])), 0.0),
            at_most(f"{name}: <u, z> / phi(z) at 20000 z", reach, sizes[:5], 1e-12),
            at_least(f"{name}: its largest value there", reach / np.linalg.norm(u[:5], dual, axis=1), 0.97),
        ]
    return Evidence.of(*checks)


@claim("gtv.flow-scalar", "(30)", stated="reduces to it")
def scalar_flows(at: Trial) -> Evidence:
    """For d = 1 the dual (30) reduces to the minimum-cost flow problem: a linear cost of the flow through each arc,
    supplies at the nodes, capacities.

    Correction (substance): The costs L_i* are of what leaves a node, so that arcs to one further node bear them; they
    are linear where L_i is the absolute error, and convex for other losses: with squared errors it is a network flow of
    least convex cost.
    """
    of = Instance.drawn(at.rng(0), n=8, m=1, d=1)
    a, A = at.rng(1).integers(-20, 20, of.n), at.rng(2).integers(1, 6, len(of.A))
    of = of.with_weights(A.astype(float))
    table = gr.NodeData.from_arrays(np.ones((of.n, 1)), a.astype(float), np.arange(of.n))
    absolute = gr.QuantileLoss(table, tau=0.5, scale=6.0)  # 3 |w - a_i|
    found = optimum(gr.Problem(absolute + 1.0 * gr.TotalVariation(of.graph(), gr.L2())))
    cost = _least_cost(of, at.given(a.astype(float)), bound=3)
    v = np.linspace(-1.0, 1.0, 3)[:, None, None] * np.ones((1, of.n, 1))
    quadratic = [of.conjugates(each) for each in v]
    second = float(np.abs(quadratic[0] - 2.0 * quadratic[1] + quadratic[2]).max())
    convex = _largest(of, bounds=[(-c, c) for c in LAM * at.given(of.A)])
    return Evidence.of(
        at_most("squared errors: second differences of the cost of a node, 0 where it is linear", second, 1e-9),
        corrected=[
            equal("absolute errors: the optimum, and minus the least cost of a flow", found.objective, -cost, 1e-7),
            equal(
                "squared errors: the optimum, and minus the least convex cost of a flow",
                optimum(of.problem(gr.L2(), LAM)).objective,
                convex,
                1e-6,
            ),
        ],
    )


def _least_cost(of: Instance, a: Array, bound: int, unit: int = 1_000_000) -> float:
    """Of a circulation through the graph and arcs between its nodes and one more, by the network simplex method: what
    flows out of node i costs a_i, as L_i*(-s) = -a_i s for |s| <= bound has it."""
    arcs = nx.DiGraph()
    for i, j, weight in zip(of.tail.tolist(), of.head.tolist(), of.A.tolist(), strict=True):
        arcs.add_edge(i, j, capacity=int(weight), weight=0)
        arcs.add_edge(j, i, capacity=int(weight), weight=0)
    for i, each in enumerate(np.round(a * unit).astype(int).tolist()):
        arcs.add_edge("ground", i, capacity=bound, weight=-each)
        arcs.add_edge(i, "ground", capacity=bound, weight=each)
    return nx.min_cost_flow_cost(arcs) / unit


@claim("gtv.convex-clustering", "(29)")
def convex_clustering(at: Trial) -> Evidence:
    """With L_i(w) = ||w - a_i||^2 and phi a p-norm on the complete graph (16) is convex clustering."""
    rng, lam = at.rng(0), 0.15
    a = rng.standard_normal((7, 2)) + np.repeat([[0.0, 0.0], [4.0, 1.0]], [4, 3], axis=0)
    points = pd.DataFrame(a, columns=["x", "y"]).assign(node=range(7))
    data = gr.NodeData.from_frame(points, node="node", target=["x", "y"])
    checks, steps = [], 1e-2 * at.rng(1).standard_normal((300, *a.shape))
    i, j = np.triu_indices(len(a), 1)

    def clustering(w: Array, points: Array, p: Any) -> float:
        return float(((w - points) ** 2).sum() + lam * np.linalg.norm(w[i] - w[j], p, axis=1).sum())

    for p, phi in ((1, gr.L1()), (2, gr.L2()), (np.inf, gr.LInf())):
        found = optimum(gr.Problem(gr.MeanLoss(data, scale=2.0) + lam * gr.TotalVariation(nx.complete_graph(7), phi)))
        w, name = found.coef, f"p = {p}"
        rise = min(clustering(w + step, a, p) for step in steps) - clustering(w, a, p)
        checks += [
            equal(f"{name}: the optimum", found.objective, clustering(w, at.given(a), p), 1e-7),
            at_least(f"{name}: how much 300 points nearby are worse, at least", rise, 0.0),
        ]
    return Evidence.of(*checks)


@claim("gtv.locally-weighted", "(31)", stated="approximates")
def locally_weighted(at: Trial) -> Evidence:
    """Where the clusters are well-connected, the solution at a node of the cluster C approximates that of the locally
    weighted problem sum_i rho_i L_i(w), rho_i = 1 in C and 0 elsewhere, by Theorem 2 up to 2 |dC| lambda / alpha."""
    graph = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(4))
    apart = Instance.drawn(at.rng(), n=9, graph=graph)
    label = np.repeat([0, 1], [5, 4])
    alone = np.array([_weighted(apart, (label == c).astype(float)) for c in (0, 1)])[label]
    weighted = np.array([_weighted(apart, at.given((label == c).astype(float))) for c in (0, 1)])[label]
    tied = Instance(
        apart.X, apart.y, np.append(apart.tail, 0), np.append(apart.head, 8), np.append(10.0 * apart.A, 0.05)
    )
    free = optimum(apart.with_weights(10.0 * apart.A).problem(gr.L2(), 2.0))
    problem = tied.problem(gr.L2(), 2.0)
    guarantee, found = gr.theory.recovery(problem, dict(enumerate(label.tolist()))), optimum(problem)
    off = np.linalg.norm(found.coef - alone, axis=1)
    return Evidence.of(
        at_least("the partition is guaranteed by Theorem 2", int(guarantee.guaranteed), 1),
        equal("no edges between the clusters: the solution, and that of (31)", free.coef, weighted, 1e-6),
        at_most("with one: the distance between them", off, guarantee.bound.to_numpy()[label], 1e-9),
        table=[{"cluster": c, "distance": off[label == c].max(), "(36)": guarantee.bound[c]} for c in (0, 1)],
    )


def _weighted(of: Instance, rho: Array) -> Array:
    """argmin of sum_i rho_i L_i(w)."""
    g = of.gradients(np.zeros(of.X.shape[::2]))
    return -np.linalg.solve(np.einsum("i,ijk->jk", rho, of.hessians), rho @ g)
