"""Comparing methods on equal terms: rounds, messages, bytes and seconds until a gap is certified.

    minimise   sum_i (1/m_i) sum_r log(1 + exp(-y_r x_r'w_i))  +  lam sum_{i,j} ||w_i - w_j||  +  ridge

Sixty clinics in two regions predict the same outcome, with ten patients and four features each. Clinics that know each
other are neighbours. Which method gets to the optimum with the fewest messages, and how does a setting change that? All
methods are measured by one bound, the exact optimum of a conic solver, so that also those that cannot certify much
themselves are told apart.

The figure is written to compare_methods.png in the current folder.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

import graphreg as gr

rng = np.random.default_rng(5)
SIZES, d, m = (30, 30), 4, 10

graph = nx.Graph(nx.stochastic_block_model(SIZES, [[0.2, 0.02], [0.02, 0.2]], seed=1).edges)
truth = 1.5 * rng.standard_normal((2, d))
samples = {}
for i in sorted(graph):
    X = rng.standard_normal((m, d))
    chance = 1 / (1 + np.exp(-X @ truth[int(i >= SIZES[0])]))
    samples[i] = (X, (rng.random(m) < chance).astype(int))
data = gr.NodeData.from_dict(samples)
model = gr.LogisticLoss(data) + 0.03 * gr.TotalVariation(graph, gr.L2()) + 0.01 * gr.NodePenalty(gr.SquaredL2())
problem = gr.Problem(model)
print(f"{graph.number_of_nodes()} clinics, {graph.number_of_edges()} edges\n")
print(problem.methods(), "\n")

# Names are free. A polish is a central step: without it a method is what its paper says, and nothing else.
methods = {
    "exact": gr.Exact(),
    "primal-dual, as in the paper": gr.PrimalDual(balance=1, relaxation=1),
    "primal-dual, adaptive": gr.PrimalDual(polish=False),
    "primal-dual, 2 gradient steps": gr.PrimalDual(inexact=2),
    "ADMM, rho = 1": gr.ADMM(rho=1),
    "ADMM, adaptive": gr.ADMM(polish=False),
}
comparison = gr.compare(problem, methods, gap=1e-6, seconds=10, seed=0)
print(comparison)

table = comparison.table()
assert (table["status"] == "certified").all()
assert (table["above"] >= 0).all()
rounds = table["rounds"]
fewest = rounds[rounds > 0].idxmin()
print(f"\nfewest rounds: {fewest}, {rounds[fewest]}; as in the paper {rounds['primal-dual, as in the paper']}")

try:
    comparison.figure().savefig("compare_methods.png", dpi=150)
    print("figure: compare_methods.png")
except gr.errors.ModelError as error:  # matplotlib is not installed
    print(error)
