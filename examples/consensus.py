"""Consensus: nodes with data of their own agree on all coefficients, or on some of them.

    minimise   sum_i f_i(w_i)     subject to   w_i = w_j on every edge of the communication graph

A constraint and not a penalty: it takes no strength. With ``features=[...]`` those coefficients are shared and the
others vary by node (common slopes, own intercepts). The answer must be that of the pooled fit, computed here with
numpy from all data at one place.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

rng = np.random.default_rng(5)
graph = nx.random_regular_graph(4, 12, seed=2)  # who talks to whom
frame = pd.concat(
    pd.DataFrame({"site": site, "dose": rng.standard_normal(15), "age": rng.standard_normal(15)}) for site in graph
).reset_index(drop=True)
own = dict(zip(graph, rng.standard_normal(len(graph)), strict=True))  # a level of its own for every site
frame["response"] = (
    1.2 * frame["dose"] - 0.7 * frame["age"] + frame["site"].map(own) + 0.3 * rng.standard_normal(len(frame))
)
data = gr.NodeData.from_frame(frame, node="site", target="response", features=["dose", "age"], intercept=True)


def solve(name: str, model: gr.Model) -> gr.Solution:
    """Both routes, certified."""
    problem = gr.Problem(model)
    exact, run = problem.solve(gr.Exact()), problem.solve(gr.PrimalDual())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    print(
        f"{name}: exact {exact.objective:.9f}, PrimalDual {run.objective:.9f} "
        f"({run.rounds} rounds, {run.ledger.messages['method']:,} messages, "
        f"certified relative gap {run.certificate.relative_gap:.1e})"
    )
    return run


# ---- everything is shared --------------------------------------------------------------------------------------------
run = solve("all coefficients", gr.SquaredLoss(data, scale="sum") + gr.Consensus(graph))
X = np.column_stack([np.ones(len(frame)), frame[["dose", "age"]]])
pooled = np.linalg.lstsq(X, frame["response"].to_numpy(), rcond=None)[0]
print(
    f"  agreed {np.round(run.coef[0], 4)}, pooled least squares {np.round(pooled, 4)}; "
    f"nodes differ by {np.ptp(run.coef, axis=0).max():.1e}\n"
)

# ---- slopes are shared, intercepts are not ---------------------------------------------------------------------------
run = solve("slopes only", gr.SquaredLoss(data, scale="sum") + gr.Consensus(graph, features=["dose", "age"]))
dummies = pd.get_dummies(frame["site"]).to_numpy(float)
pooled = np.linalg.lstsq(np.column_stack([frame[["dose", "age"]], dummies]), frame["response"].to_numpy(), rcond=None)[
    0
]
table = run.table()
print(
    f"  agreed slopes {np.round(table[['dose', 'age']].iloc[0].to_numpy(), 4)}, "
    f"least squares with a dummy per site {np.round(pooled[:2], 4)}"
)
print(
    f"  intercepts from {table['intercept'].min():.2f} to {table['intercept'].max():.2f}; "
    f"mean error {np.mean([abs(table['intercept'][site] - own[site]) for site in graph]):.2f}\n"
)

# ---- shared slopes, intercepts that are drawn together along another graph -------------------------------------------
ring = nx.cycle_graph(len(graph))
model = (
    gr.SquaredLoss(data)
    + gr.Consensus(graph, features=["dose", "age"])
    + 0.2 * gr.TotalVariation(ring, gr.L1(), features=["intercept"])
)
run = solve("shared slopes + fused intercepts", model)
print(" ", run.clusters())
