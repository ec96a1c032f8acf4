"""Which edges to trust, and how sure the estimates are: edge tests, regions of each node, a region of a consensus.

(a) Sixteen clinics in two groups with coefficients of their own; the graph that is given has false edges. Every
    clinic's own fit tells which to trust (Heterogeneous Federated Learning on a Graph, Section 3.2). Fits on the graph
    as given and on the one that is selected are compared with the truth, at strengths that cross-validation chooses.
(b) The coefficients of single clinics, with intervals from their own data alone.
(c) All clinics share one model: one stochastic pass over the samples, messages between neighbours, and a confidence
    region with it (Statistical Inference for Decentralized Federated Learning). A linear hypothesis, and an ellipse.

The figures are written to edges.png and region.png in the current folder.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr
from graphreg.plots import plot_selection

rng = np.random.default_rng(2)
clinics = [f"clinic {k:02}" for k in range(16)]
FEATURES = ["age", "dose", "weight"]

# ---- (a) -------------------------------------------------------------------------------------------------------------
group = {clinic: int(k >= 8) for k, clinic in enumerate(clinics)}
truth = pd.DataFrame([[1.0, 0.0, 0.5] if group[c] == 0 else [0.0, 1.0, 0.5] for c in clinics], clinics, FEATURES)
graph = nx.Graph()
graph.add_nodes_from(clinics)
for k, a in enumerate(clinics):  # within the groups half of all pairs, between them every seventh
    graph.add_edges_from((a, b) for b in clinics[:k] if rng.random() < (0.5 if group[a] == group[b] else 0.15))
false = {frozenset(edge) for edge in graph.edges if group[edge[0]] != group[edge[1]]}
print(f"(a) {graph.number_of_edges()} edges, {len(false)} of them between clinics of different groups\n")

frame = pd.DataFrame({"clinic": np.repeat(clinics, 40)})
frame[FEATURES] = rng.normal(size=(len(frame), 3))
frame["outcome"] = (frame[FEATURES].to_numpy() * truth.loc[frame["clinic"]].to_numpy()).sum(axis=1)
frame["outcome"] += 0.8 * rng.normal(size=len(frame))
loss = gr.SquaredLoss(gr.NodeData.from_frame(frame, node="clinic", target="outcome", features=FEATURES))

tests = gr.inference.edge_tests(loss, graph)
print(tests[["tail", "head", "statistic", "p_value", "adjusted", "keep"]].sort_values("p_value").head(5).to_string())
selection = gr.inference.select_edges(loss, graph)
print(selection)
removed = {frozenset(edge) for edge in selection.removed}
print(f"\nof {len(false)} false edges {len(false & removed)} are removed, and of the true ones {len(removed - false)}")

error = {}
for name, each in {"graph as given": graph, "selected edges": selection.graph}.items():
    lam = gr.Parameter(0.1, name="lam")
    problem = gr.Problem(loss + lam * gr.TotalVariation(each, gr.L2()))
    fit = gr.cross_validate(problem, 10, seed=0).solution
    assert fit is not None
    error[name] = ((fit.table() - truth) ** 2).sum(axis=1).mean()
own = gr.inference.local_regions(gr.Problem(loss + gr.TotalVariation(graph, gr.L2())))
estimates = pd.DataFrame({clinic: region.estimate for clinic, region in own.items()}).T
error["own data alone"] = ((estimates - truth) ** 2).sum(axis=1).mean()
print("squared error per clinic:", ", ".join(f"{name} {value:.4f}" for name, value in error.items()))
assert error["selected edges"] < error["graph as given"]

# ---- (b) -------------------------------------------------------------------------------------------------------------
print("\n(b)", own["clinic 03"])
print(own["clinic 03"].test({"dose": 0}), "\n")
tables = {clinic: region.intervals(0.95) for clinic, region in own.items()}
hits = [((table["low"] <= truth.loc[c]) & (truth.loc[c] <= table["high"])).sum() for c, table in tables.items()]
print(f"{sum(hits)} of {truth.size} intervals of all clinics hold the truth\n")

# ---- (c) -------------------------------------------------------------------------------------------------------------
shared = np.array([0.8, -0.4, 0.4])
long = pd.DataFrame({"clinic": np.tile(clinics, 600)})
long[FEATURES] = rng.normal(size=(len(long), 3))
long["outcome"] = long[FEATURES].to_numpy() @ shared + rng.normal(size=len(long))
data = gr.NodeData.from_frame(long, node="clinic", target="outcome", features=FEATURES)
network = nx.relabel_nodes(nx.circulant_graph(len(clinics), [1, 2]), dict(enumerate(clinics)))
region = gr.inference.estimate(gr.Problem(gr.SquaredLoss(data) + gr.Consensus(network)), seed=0)
print("(c)", region, "\n")
test = region.test({"dose + weight": 0, "age - 2 * weight": 0})  # both are true
print(f"{', '.join(test.hypotheses)}: p-value {test.p_value:.3f}")
true, wrong = region.test({"age": 0.8}), region.test({"age": 0})
print(f"age = 0.8: p-value {true.p_value:.3f}; age = 0: chi-square {wrong.statistic:.0f} with 1 df")
ellipse = region.ellipse("age", "dose")  # the points of its boundary
middle = region.estimate[["age", "dose"]].round(3).tolist()
print(f"joint 95% region of age and dose: an ellipse, {len(ellipse)} points, around {middle}")

try:
    plot_selection(selection).figure.savefig("edges.png", dpi=150)
    region.plot("age", "dose").figure.savefig("region.png", dpi=150)
    print("figures: edges.png, region.png")
except gr.errors.ModelError as missing:  # matplotlib is not installed
    print(missing)
