"""Section III: the dual problem, the conditions of optimality, and what the problem is a case of."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

from .. import Evidence, Trial, Verdict, at_least, at_most, claim, equal
from ._instances import Array, Instance, flows, solved

LAM = 0.4


def _dual(of: Instance, u: cp.Variable) -> cp.Expression:
    """-f*(-D'u), with (21): minus the sum of the L_i*."""
    zero = np.zeros(of.X.shape[::2])
    value, g = of.losses(zero).sum(), of.gradients(zero)
    roots = np.linalg.cholesky(np.linalg.inv(of.hessians))
    s = -of.incidence.T @ u - g
    return value - 0.5 * cp.sum([cp.sum_squares(roots[i].T @ s[i]) for i in range(of.n)])


def _largest(of: Instance, u: cp.Variable, part: cp.Expression, limits: list[cp.Constraint]) -> float:
    problem = cp.Problem(cp.Maximize(_dual(of, u) - part), limits)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(problem.value)


@claim(
    "gtv.duality",
    "(22), with (20) and (21)",
    "Strong duality: min f(w) + g(Dw) = max -g*(u) - f*(-D'u), with g*(u) = sum_e lambda A_e phi*(u_e / (lambda A_e)) "
    "and f*(w) = sum_i L_i*(w_i), for phi the l2 norm, the l1 norm and 1/2 ||.||^2.",
    stated="equal",
    expected=Verdict.HOLDS,
)
def strong_duality(at: Trial) -> Evidence:
    of = Instance.drawn(at.rng())
    c = LAM * at.given(of.A)
    u = cp.Variable((len(c), of.X.shape[2]))
    zero = cp.Constant(0.0)
    duals = [
        _largest(of, u, zero, [cp.norm(u, 2, axis=1) <= c]),
        _largest(of, u, zero, [cp.norm(u, "inf", axis=1) <= c]),
        _largest(of, u, cp.sum(0.5 * cp.multiply(1.0 / c, cp.sum(cp.square(u), axis=1))), []),
    ]
    primals = [solved(of.problem(phi, LAM)).objective for phi in (gr.L2(), gr.L1(), gr.SquaredL2())]
    return Evidence.of(equal("the two optima, l2, l1, 1/2 ||.||^2", primals, duals, 1e-7))


@claim(
    "gtv.optimality",
    "(23), (25)",
    "w and u are optimal if and only if -D'u = grad L(w) and, for each edge, w_(e+) - w_(e-) lies in "
    "(lambda A_e) times the subdifferential of phi* at u_e / (lambda A_e).",
    stated="necessary and sufficient",
    expected=Verdict.CORRECTED,
    correction="The second line of (25) has no factor lambda A_e, as the subdifferential of lambda A phi*(u / (lambda "
    "A)) has none: for norms it makes no difference, for 1/2 ||.||^2 the print asks for u = w_(e+) - w_(e-).",
)
def optimality(at: Trial) -> Evidence:
    of = Instance.drawn(at.rng())
    c = (LAM * of.A)[:, None]
    smooth, norm = of.problem(gr.SquaredL2(), LAM), of.problem(gr.L2(), LAM)
    found, other = solved(smooth), solved(norm)
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


@claim(
    "gtv.optimality-norms",
    "(28)",
    "For a norm: -D'u = grad L(w), ||u_e||_* <= lambda A_e, and w_(e+) = w_(e-) wherever ||u_e||_* < lambda A_e.",
    stated="necessary and sufficient",
    expected=Verdict.HOLDS,
)
def optimality_for_norms(at: Trial) -> Evidence:
    of, checks = Instance.drawn(at.rng(), n=8), []
    for phi, dual in ((gr.L2(), 2), (gr.L1(), np.inf), (gr.LInf(), 1)):
        found = solved(of.problem(phi, 2.0))
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


@claim(
    "gtv.norm-dual",
    "(26), (27)",
    "For phi a norm phi* is the indicator of the unit ball of the dual norm, and the dual problem has the constraints "
    "||u_e||_* <= lambda A_e.",
    stated="equal",
    expected=Verdict.HOLDS,
)
def dual_of_norms(at: Trial) -> Evidence:
    u, z = at.rng(0).standard_normal((50, 3)), at.rng(1).standard_normal((20000, 3))
    norms = {"l2": (gr.L2(), 2), "l1": (gr.L1(), np.inf), "l-infinity": (gr.LInf(), 1)}
    checks = []
    for name, (phi, dual) in norms.items():
        sizes = np.linalg.norm(at.given(u), dual, axis=1)
        inside = np.isfinite(phi.conjugate(u))
        reach = (u[:5] @ z.T / phi.value(z)).max(axis=1)  # sup of <u, z> / phi(z), from below
        checks += [
            equal(f"{name}: the gauge of the domain of phi*, and ||u||_*", phi.gauge(u), sizes),
            at_most(f"{name}: points where phi* is finite and ||u||_* > 1, or not", (inside != (sizes <= 1)).sum(), 0),
            at_most(f"{name}: |phi*| where it is finite", np.abs(phi.conjugate(u[inside])), 0.0),
            at_most(f"{name}: <u, z> / phi(z) at 20000 z", reach, sizes[:5], 1e-12),
            at_least(f"{name}: its largest value there", reach / np.linalg.norm(u[:5], dual, axis=1), 0.97),
        ]
    return Evidence.of(*checks)


@claim(
    "gtv.flow-scalar",
    "(30)",
    "For d = 1 the dual (30) reduces to the minimum-cost flow problem: a linear cost of the flow through each arc, "
    "supplies at the nodes, capacities.",
    stated="reduces to it",
    expected=Verdict.CORRECTED,
    correction="The costs L_i* are of what leaves a node, so that arcs to one further node bear them; they are "
    "linear where L_i is the absolute error, and convex for other losses: with squared errors it is a network flow "
    "of least convex cost.",
)
def scalar_flows(at: Trial) -> Evidence:
    of = Instance.drawn(at.rng(0), n=8, m=1, d=1)
    a, A = at.rng(1).integers(-20, 20, of.n), at.rng(2).integers(1, 6, len(of.A))
    of = of.with_weights(A.astype(float))
    table = gr.NodeData.from_arrays(np.ones((of.n, 1)), a.astype(float), np.arange(of.n))
    absolute = gr.QuantileLoss(table, tau=0.5, scale=6.0)  # 3 |w - a_i|
    found = solved(gr.Problem(absolute + 1.0 * gr.TotalVariation(of.graph(), gr.L2())))
    cost = _least_cost(of, at.given(a.astype(float)), bound=3)
    v = np.linspace(-1.0, 1.0, 3)[:, None, None] * np.ones((1, of.n, 1))
    quadratic = [of.conjugates(each) for each in v]
    second = float(np.abs(quadratic[0] - 2.0 * quadratic[1] + quadratic[2]).max())
    u = cp.Variable((len(A), 1))
    convex = _largest(of, u, cp.Constant(0.0), [cp.abs(u[:, 0]) <= LAM * at.given(of.A)])
    return Evidence.of(
        at_most("squared errors: second differences of the cost of a node, 0 where it is linear", second, 1e-9),
        corrected=[
            equal("absolute errors: the optimum, and minus the least cost of a flow", found.objective, -cost, 1e-7),
            equal(
                "squared errors: the optimum, and minus the least convex cost of a flow",
                solved(of.problem(gr.L2(), LAM)).objective,
                convex,
                1e-7,
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


@claim(
    "gtv.convex-clustering",
    "(29)",
    "With L_i(w) = ||w - a_i||^2 and phi a p-norm on the complete graph (16) is convex clustering.",
    stated="equal",
    expected=Verdict.HOLDS,
)
def convex_clustering(at: Trial) -> Evidence:
    rng, lam = at.rng(), 0.15
    a = rng.standard_normal((7, 2)) + np.repeat([[0.0, 0.0], [4.0, 1.0]], [4, 3], axis=0)
    points = pd.DataFrame(a, columns=["x", "y"]).assign(node=range(7))
    data = gr.NodeData.from_frame(points, node="node", target=["x", "y"])
    found, clustered = [], []
    for p, phi in ((1, gr.L1()), (2, gr.L2()), ("inf", gr.LInf())):
        model = gr.MeanLoss(data, scale=2.0) + lam * gr.TotalVariation(nx.complete_graph(7), phi)
        found.append(solved(gr.Problem(model)).objective)
        w = cp.Variable(a.shape)
        pairs = [cp.norm(w[i] - w[j], p) for i in range(7) for j in range(i)]
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w - at.given(a)) + lam * cp.sum(pairs)))
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
        clustered.append(float(problem.value))
    return Evidence.of(equal("the optimum, p = 1, 2, infinity", found, clustered, 1e-7))


@claim(
    "gtv.locally-weighted",
    "(31)",
    "Where the clusters are well-connected, the solution at a node of the cluster C approximates that of the locally "
    "weighted problem sum_i rho_i L_i(w), rho_i = 1 in C and 0 elsewhere, by Theorem 2 up to 2 |dC| lambda / alpha.",
    stated="approximates",
    expected=Verdict.HOLDS,
)
def locally_weighted(at: Trial) -> Evidence:
    graph = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(4))
    apart = Instance.drawn(at.rng(), n=9, graph=graph)
    label = np.repeat([0, 1], [5, 4])
    alone = np.array([_weighted(apart, (label == c).astype(float)) for c in (0, 1)])[label]
    weighted = np.array([_weighted(apart, at.given((label == c).astype(float))) for c in (0, 1)])[label]
    tied = Instance(
        apart.X, apart.y, np.append(apart.tail, 0), np.append(apart.head, 8), np.append(10.0 * apart.A, 0.05)
    )
    free = solved(apart.with_weights(10.0 * apart.A).problem(gr.L2(), 2.0))
    problem = tied.problem(gr.L2(), 2.0)
    guarantee, found = gr.theory.recovery(problem, dict(enumerate(label.tolist()))), solved(problem)
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
