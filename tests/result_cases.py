"""An object of every class that a user is given back, of a problem with as many nodes as are asked for."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg import inference, theory, tuning

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


def results(n):
    """By name."""
    data, graph, lam = read(frame_of(n)), network(n), gr.Parameter(0.1, name="lam")
    model = gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
    problem = gr.Problem(model)
    solution = problem.solve(gr.PrimalDual(), gap=GAP, seed=0)
    averaged = problem.solve(gr.FedAvg(), rounds=20, seed=0)
    halves = {label: k >= n / 2 for k, label in enumerate(solution.labels)}
    smooth = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.SquaredL2()))
    between = gr.Problem(gr.SquaredLoss(data, scale="sum") + lam * gr.TotalVariation(graph, gr.L2()))
    names = list(solution.labels)
    regions = inference.local_regions(smooth)
    selected = inference.select_edges(gr.SquaredLoss(data), graph)
    checked = gr.testing.check_penalty(gr.L1())
    estimators = inference.james_stein(gr.SquaredLoss(data))
    bottom = gr.Graph.of(graph)
    return {
        "Problem": problem,
        "dual": problem.dual(),
        "kkt": problem.kkt(),
        "Model": model,
        "TotalVariation": gr.TotalVariation(graph, gr.L2()),
        "TotalVariation of a Graph": gr.TotalVariation(bottom, gr.L2()),
        "SquaredLoss": gr.SquaredLoss(data),
        "NodePenalty": gr.NodePenalty(gr.SquaredL2()),
        "Consensus": gr.Consensus(graph),
        "Hierarchy": gr.Hierarchy({label: f"half {int(k)}" for label, k in halves.items()}, weights=(1.0, 1.0)),
        "Parameter": lam,
        "Graph": bottom,
        "NodeData": data,
        "Form": problem.form,
        "DualPoint": solution.certificate.dual_point,
        "Compiled": problem.compile(),
        "Oracles": problem.oracles(),
        "Overview": problem.methods(),
        "Solution": solution,
        "Solution of a baseline": averaged,
        "table": solution.table(),
        "Certificate": solution.certificate,
        "per_node": solution.certificate.per_node(),
        "per_edge": solution.certificate.per_edge(),
        "Clusters": solution.clusters(),
        "members": solution.clusters().members(),
        "Flows": solution.flows,
        "flows.table": solution.flows.table(),
        "Ledger": solution.ledger,
        "Trace": solution.trace,
        "trace.table": solution.trace.table(),
        "Record": solution.trace.records[-1],
        "Summary": solution.summary(),
        "Comparison": gr.compare(smooth, [gr.ADMM(), gr.PrimalDual()], gap=1e-3, progress=False),
        "Path": gr.path(problem, [0.1, 1.0], lam, gap=1e-3, progress=False),
        "CrossValidation": gr.cross_validate(problem, [0.1, 1.0], 2, gap=1e-2, progress=False),
        "Judgement": problem.certify(solution.coef, gap=1e-3),
        "Audit": gr.audit(problem, lambda problem, start=None, seed=None: iter([solution.coef] * 5), rounds=5),
        "StrengthMax": gr.strength_max(between),
        "Recovery": theory.recovery(gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2())), halves),
        "WellConnected": theory.well_connected(bottom, dict.fromkeys(names, 0.01)),
        "Constants": theory.constants(smooth),
        "MixingRate": theory.mixing(graph),
        "AlgebraicConnectivity": theory.algebraic_connectivity(graph),
        "GraphFidelity": theory.graph_fidelity(graph, halves),
        "Rate": theory.rate(graph, halves, 16, 3),
        "CompatibilityFactor": theory.compatibility_factor(graph, list(graph.edges)[:3]),
        "NoiseStrength": tuning.noise_strength(between, draws=20, seed=0, progress=False),
        "LocalRegions": regions,
        "ConfidenceRegion": regions[names[0]],
        "WaldTest": regions[names[0]].test(np.eye(3)),
        "edge_tests": inference.edge_tests(gr.SquaredLoss(data), graph),
        "EdgeSelection": selected,
        "LocalFits": inference.local_fits(smooth.form),
        "JamesSteinEstimate": estimators,
        "Report": checked,
        "RandomProblem": gr.datasets.random_problem(0),
    }
