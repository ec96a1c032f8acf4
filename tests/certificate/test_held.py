"""What is said of rows holds on the whole optimal face, which linear and quadratic programmes of CVXPY go through."""

from __future__ import annotations

import warnings

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import graphreg as gr
from graphreg.certificate import held_rows
from graphreg.certificate.edges.fusion import fused, separate
from graphreg.certificate.edges.holding import held

w = gr.w
TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
FACE = 1e-8  # how far above the optimum a point of the face may be
SEEN = 2e-3  # a row that is so large on the face does not hold; data are small whole numbers


# ---- small problems whose data are whole numbers, so that ties are common --------------------------------------------
def drawn(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    y = rng.integers(-4, 5, (n, d)).astype(float)
    seen = np.flatnonzero(rng.random(n) < 0.85) if n > 3 else np.arange(n)
    seen = np.arange(n) if len(seen) < 2 else seen
    nodes = list(range(n))
    if d == 1 and rng.random() < 0.5:
        loss = gr.QuantileLoss(gr.NodeData.from_arrays(np.ones((len(seen), 1)), y[seen, 0], seen), tau=0.5, scale="sum")
    else:
        loss = gr.MeanLoss(gr.NodeData.from_arrays(None, y[seen], seen))
    graph = nx.gnp_random_graph(n, 0.6, seed=seed)
    arrows = nx.DiGraph([(i, j) for i, j in graph.edges])
    arrows.add_nodes_from(nodes)
    b = rng.integers(-1, 2, (len(arrows.edges), d)).astype(float)
    phi = [gr.L1(), gr.L2(), gr.LInf()][rng.integers(3)]
    lam = float(rng.choice([0.5, 1.0, 2.0]))
    terms = [
        lambda: lam * phi(w.along(nodes, 2)),
        lambda: lam * phi(w.along(nodes, min(3, n - 1))),
        lambda: lam * phi(w.across(graph)),
        lambda: lam * phi(w.across(graph, 2)),
        lambda: lam * phi(w.across(arrows) - b),
        lambda: lam * phi(w.at(nodes[:2]) - 1.0),
        lambda: gr.NonNegative()(w.across(arrows)),
        lambda: gr.Box(-1.0, 2.0)(w.at(nodes)),
        lambda: gr.Box(-1.0, 1.0)(w.along(nodes, 2)),
        lambda: gr.Ball(3.0)(w.at(nodes[:1])),
        lambda: lam * gr.HuberNorm(1.0)(w.along(nodes, 2)),
        lambda: lam * gr.SquaredL2()(w.across(arrows) - b),
        lambda: lam * gr.L1()(np.repeat(rng.integers(-1, 2, (2, n)), 2, axis=0).astype(float) @ w.at(nodes) - 1.0),
        lambda: lam * gr.L1()(w.along(nodes, 2).grouped(lambda key: key[0] % 2)) if n > 4 else lam * phi(w.at(nodes)),
    ]
    model = loss
    for k in rng.choice(len(terms), int(rng.integers(1, 4)), replace=False):
        if not (k in (2, 3, 4, 6, 11) and not graph.edges):
            model = model + terms[k]()
    return model if model is not loss else loss + terms[0]()


def written(form):
    """The objective and the constraints in CVXPY, and the variable."""
    v = cp.Variable(form.n * form.d)
    value, constraints = [], []
    for block in form.samples:
        X, y, s = block.A @ v, block.y.ravel(), np.repeat(block.scale, block.width)
        if type(block.loss).__name__ == "MeanLoss":
            value.append(0.5 * s @ cp.square(X - y))
        else:
            tau = block.loss.tau
            value.append(s @ cp.maximum(tau * (y - X), (tau - 1.0) * (y - X)))
    for edge in form.edges:
        Z, kind, c = rows_of(edge, form, v), type(edge.penalty).__name__, edge.weight
        match kind:
            case "L1":
                value.append(c @ cp.sum(cp.abs(Z), axis=1))
            case "L2":
                value.append(c @ cp.norm(Z, 2, axis=1))
            case "LInf":
                value.append(c @ cp.max(cp.abs(Z), axis=1))
            case "SquaredL2":
                value.append(0.5 * c @ cp.sum(cp.square(Z), axis=1))
            case "HuberNorm":
                value.append(0.5 * c @ cp.huber(cp.norm(Z, 2, axis=1), 1.0))
            case "Ball":
                constraints.append(cp.norm(Z, 2, axis=1) <= edge.penalty.radius)
            case "NonNegative":
                constraints.append(Z >= 0)
            case "Box":
                constraints += [edge.penalty.low <= Z, edge.penalty.high >= Z]
            case _:
                raise AssertionError(kind)
    return sum(value), constraints, v


def rows_of(edge, form, v):
    Z = cp.reshape(edge.map.flat(form.d) @ v, (edge.count, form.width(edge)), order="C")
    return Z if edge.center is None else Z - edge.center


class Face:
    """The optimal face of a problem, a hair wide."""

    def __init__(self, form):
        self.form = form
        self.value, self.constraints, self.v = written(form)
        self.best = self.solve(cp.Minimize(self.value), self.constraints)

    def solve(self, goal, constraints):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": what it says is compared with a wide margin
            try:
                return cp.Problem(goal, constraints).solve(solver=cp.CLARABEL, **TIGHT)
            except cp.SolverError:
                return None

    def reach(self, edge, e, j):
        """The least and the largest value of a number of a row on the face."""
        z = rows_of(edge, self.form, self.v)[e, j]
        near = [*self.constraints, self.value <= self.best + FACE * max(1.0, abs(self.best))]
        return [self.solve(goal(z), near) for goal in (cp.Minimize, cp.Maximize)]

    def at(self, edge, e, columns, value):
        """The optimum where numbers of a row have a value."""
        z = rows_of(edge, self.form, self.v)[e, columns]
        return self.solve(cp.Minimize(self.value), [*self.constraints, z == value])


def judge(form, found):
    """How many claims there are of each kind; every one against the face."""
    face, table = Face(form), found.table
    counts = {"held": 0, "not held": 0, "undecided": 0}
    parts = separate(form)
    begin = 0
    for edge, k, columns in zip(parts.form.edges, parts.owner, parts.columns, strict=True):
        if isinstance(edge.penalty, (gr.SquaredL2, gr.HuberNorm)):
            continue
        whole = form.edges[k]
        for e in range(edge.count):
            row = table.iloc[begin + e]
            counts[row["state"]] += 1
            assert row["term"] == whole.name
            if row["state"] == "held":
                for j in columns:
                    for reached in face.reach(whole, e, int(j)):
                        assert reached is None or abs(reached - row["at"]) <= SEEN, (row.to_dict(), reached)
            if row["state"] == "not held":
                phi = edge.penalty
                ends = {"Box": lambda: [phi.low, phi.high], "Ball": lambda: [-phi.radius, phi.radius]}
                ends = [float(x) for x in ends.get(type(phi).__name__, lambda: [0.0])() if np.isfinite(x)]
                for end in ends:
                    tied = face.at(whole, e, columns, end)
                    assert tied is None or tied > face.best, (row.to_dict(), tied, face.best)
        begin += edge.count
    assert begin == len(table)
    return counts


def test_claims_hold_on_the_optimal_face(whole):
    """On 30 problems; on 300 with ``make test ARGS=--whole``."""
    total = {"held": 0, "not held": 0, "undecided": 0}
    for seed in range(300 if whole else 30):
        problem = gr.Problem(drawn(seed))
        for gap in (1e-3, 1e-9):
            solution = problem.solve(gr.Exact(), gap=gap, on_failure="return")
            if solution.certificate.valid:
                counts = judge(solution.form, solution.held(prove=seed % 3 == 0))
        total = {state: total[state] + counts[state] for state in total}
    assert total["held"] + total["not held"] > total["undecided"]
