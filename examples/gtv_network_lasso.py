"""GTV minimisation: the network lasso and its relatives on a graph with clusters.

    minimise   sum_i (1/m_i) sum_r 1/2 (x_r'w_i - y_r)^2  +  lam sum_{i,j} A_ij phi(w_i - w_j)

Forty nodes with eight samples each and six features: no node can be fitted alone. Two blocks of nodes have one true
regression each, and a quarter of the nodes has no data at all. The three penalties of Clustered Federated Learning via
Generalized Total Variation Minimization: the norm (network lasso), the squared norm (MOCHA), the l1 norm.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

rng = np.random.default_rng(7)
SIZES, d, m = (20, 20), 6, 8

# Two blocks, dense inside (probability 0.5), sparse between (0.02).
graph = nx.stochastic_block_model(SIZES, [[0.5, 0.02], [0.02, 0.5]], seed=3)
graph = nx.Graph(graph.edges)  # the plain graph
block = {i: int(i >= SIZES[0]) for i in sorted(graph)}
truth = rng.standard_normal((2, d))

samples = {}
for i in block:
    if i % 4 == 3:  # a node without data: its answer comes from its neighbours alone
        continue
    X = rng.standard_normal((m, d))
    samples[i] = (X, X @ truth[block[i]] + 0.3 * rng.standard_normal(m))
data = gr.NodeData.from_dict(samples)
print(f"{graph.number_of_nodes()} nodes, {graph.number_of_edges()} edges, {len(samples)} nodes with data\n")

for name, penalty, strength in (
    ("network lasso", gr.L2(), 0.06),
    ("l1", gr.L1(), 0.04),
    ("squared (MOCHA)", gr.SquaredL2(), 0.3),
):
    problem = gr.Problem(gr.SquaredLoss(data) + strength * gr.TotalVariation(graph, penalty))
    exact = problem.solve(gr.Exact())
    run = problem.solve(gr.PrimalDual())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    error = np.mean([(run.table().loc[i] - truth[block[i]]) ** 2 for i in block])
    without = np.mean([(run.table().loc[i] - truth[block[i]]) ** 2 for i in block if i not in samples])
    print(f"--- {name}, strength {strength}")
    print(
        f"exact {exact.objective:.8f}, PrimalDual {run.objective:.8f} after {run.rounds} rounds; "
        f"certified relative gaps {exact.certificate.relative_gap:.1e} and {run.certificate.relative_gap:.1e}"
    )
    print(f"mean squared error of the coefficients {error:.4f} (at nodes without data {without:.4f})")
    print(exact.clusters(), "\n")

# Algorithm 1 as the paper writes it has fixed steps and no over-relaxation; every constant can be set.
problem = gr.Problem(gr.SquaredLoss(data) + 0.06 * gr.TotalVariation(graph, gr.L2()))
paper = problem.solve(gr.PrimalDual(balance=1, relaxation=1))
print(
    f"Algorithm 1 with the paper's steps: {paper.status} after {paper.rounds} rounds; "
    f"with graphreg's defaults {problem.solve(gr.PrimalDual()).rounds}."
)
