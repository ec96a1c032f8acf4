"""An object of every class that a user is given back, of a problem with as many nodes as are asked for."""

from __future__ import annotations

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg import inference, theory, tuning
from graphreg.cli.example import write

GAP = 1e-4


def frame_of(n, seed=0):
    """Sixteen samples at each node; the first half of the nodes has other coefficients than the second."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(n), 16)
    X = rng.normal(size=(16 * n, 3))
    level = X[:, 0] * np.where(node < n / 2, 1.0, -1.0) + 0.3 * rng.normal(size=16 * n)
    return pd.DataFrame(
        {"node": [f"station {k:03d}" for k in node], "rain": X[:, 0], "temp": X[:, 1], "wind": X[:, 2], "level": level}
    )


def read(frame):
    return gr.NodeData.from_frame(frame, node="node", target="level", features=["rain", "temp", "wind"])


def network(n):
    """A path of the nodes, with an edge to the next but one of every third."""
    names = [f"station {k:03d}" for k in range(n)]
    graph = nx.path_graph(names)
    graph.add_edges_from((names[k], names[k + 2]) for k in range(0, n - 2, 3))
    return graph


def of_cvxpy(n, folder):
    x = cp.Variable(n, name="x")
    certificate = gr.certify(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1.0]))
    return {"bounds of a problem of CVXPY": certificate, "their proof": certificate.prove(folder / "conic.json")}


def results(n, folder):
    """By name; a class may stand there several times."""
    data, graph, lam = read(frame_of(n)), network(n), gr.Parameter(0.1, name="lam")
    model = gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    problem = gr.Problem(model)
    solution = problem.solve(gr.PrimalDual(), gap=GAP, seed=0, observe="w")
    return {
        "problem": problem,
        "the dual": problem.dual(),
        "the conditions": problem.kkt(),
        "model": model,
        "total variation": gr.TotalVariation(graph, gr.L2()),
        "hierarchy": gr.Hierarchy({label: f"half {k % 2}" for k, label in enumerate(graph)}, weights=(1.0, 1.0)),
        "scales": gr.SquaredLoss(data, scale=dict.fromkeys(graph, 0.1)),
        "node weights": gr.NodePenalty(gr.SquaredL2(), weights=dict.fromkeys(graph, 0.1)),
        "graph": gr.Graph.of(graph),
        "data": data,
        "compiled": problem.compile(),
        "oracles": problem.oracles(),
        "methods": problem.methods(),
        "solution": solution,
        "baseline": problem.solve(gr.FedAvg(), rounds=20, seed=0),
        "coefficients": solution.table(),
        "certificate": solution.certificate,
        "conditions in numbers": solution.kkt(),
        "dual point": solution.certificate.dual_point,
        "parts of the edges": solution.certificate.per_edge(),
        "clusters": solution.clusters(),
        "held rows": solution.held(),
        "flows": solution.flows,
        "table of flows": solution.flows.table(),
        "ledger": solution.ledger,
        "trace": solution.trace,
        "record": solution.trace.records[-1],
        "observed": solution.observed,
        "summary": solution.summary(),
        "judgement": problem.certify(solution.coef, gap=1e-3),
        "proof": solved_small().prove(folder / "proof.json"),
        **of_several(problem, lam, solution),
        **of_theory(data, graph, lam),
        **of_inference(data, graph),
        "fit": (fit := gr.fit(frame_of(n), graph, target="level", node="node", strengths=[1.0], folds=2, gap=GAP)),
        "rows of a fit": fit.rows,
        **of_cvxpy(n, folder),
        "units": data.standardised or fit.problem.form.space.units,
        "model file": model_file(folder),
    }


def solved_small():
    return gr.Problem(gr.SquaredLoss(read(frame_of(3))) + 0.1 * gr.TotalVariation(network(3), gr.L2())).solve()


def model_file(folder):
    write(folder)
    return gr.read_model(folder / "model.toml")


def of_several(problem, lam, solution):
    """Of several solves."""
    data, graph = problem.model.terms[0][1].data, problem.model.terms[1][1].graph
    smooth = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.SquaredL2()))
    validated = gr.cross_validate(problem, [0.1, 1.0], 2, gap=1e-2, progress=False)
    compared = gr.compare(smooth, [gr.ADMM(), gr.PrimalDual(), gr.AsyncL2GD()], gap=1e-3, progress=False)
    judged = problem.certify(solution.coef, gap=1e-3)
    audited = gr.audit(problem, lambda problem, start=None, seed=None: iter([solution.coef] * 5), rounds=5)
    return {
        "comparison": compared,
        "no run": compared.entries["AsyncL2GD"],
        "path": gr.path(problem, [0.1, 1.0], lam, gap=1e-3, progress=False),
        "cross-validation": validated,
        "folds": validated.folds,
        "fold": validated.folds.each[0],
        "run of a fold": validated.runs[0],
        "grid": validated.grid,
        "step": judged.steps[0],
        "audit": audited,
        "finding": audited.findings[0],
        "check": gr.testing.check_penalty(gr.L1()),
        "failure": gr.testing.Failure("even", "phi(-z) is phi(z)", "z = 1", 0.5),
        "random problem": gr.datasets.random_problem(0),
    }


def of_theory(data, graph, lam):
    labels = list(graph)
    halves = {label: k >= len(labels) / 2 for k, label in enumerate(labels)}
    tied = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    summed = gr.Problem(gr.SquaredLoss(data, scale="sum") + lam * gr.TotalVariation(graph, gr.L2()))
    scales = dict.fromkeys(labels, 1.0 / (16 * len(labels)))
    fused = gr.Problem(gr.SquaredLoss(data, scale=scales) + 0.1 * gr.TotalVariation(graph, gr.L1()))
    largest = gr.strength_max(summed)
    return {
        "largest strength": largest,
        "better point": largest.better(0.5),
        "recovery": theory.recovery(tied, halves),
        "well-connected": theory.well_connected(graph, dict.fromkeys(labels, 0.01)),
        "constants": theory.constants(tied),
        "mixing": theory.mixing(graph),
        "connectivity": theory.algebraic_connectivity(graph),
        "fidelity": theory.graph_fidelity(graph, halves),
        "rate": theory.rate(graph, halves, 16, 3),
        "compatibility": theory.compatibility_factor(graph, list(graph.edges)[:3]),
        "error bound": theory.error_bound(fused, np.zeros((len(labels), 3))),
        "exponent": theory.sparseness_exponent(nx.cycle_graph, [10, 20, 40]),
        "largest network": theory.largest_network(1000),
        "strength of noise": tuning.noise_strength(summed, draws=20, seed=0, progress=False),
    }


def of_inference(data, graph):
    loss = gr.SquaredLoss(data)
    problem = gr.Problem(loss)
    regions = inference.local_regions(problem)
    first = next(iter(regions.values()))
    hierarchical = inference.hierarchical(loss)
    return {
        "regions": regions,
        "region": first,
        "test of a region": first.test(np.eye(3)),
        "edge tests": inference.edge_tests(loss, graph),
        "selected edges": inference.select_edges(loss, graph),
        "local fits": inference.local_fits(problem.form),
        "hierarchical": hierarchical,
        "components": hierarchical.components,
        "James-Stein": inference.james_stein(loss),
        "estimators": inference.compare_estimators(loss),
    }
