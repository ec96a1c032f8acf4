"""Graph-fused M-estimation: few samples per node, neighbours share some coefficients.

    minimise   (1/V) sum_v (1/n_v) sum_r l(x_r'w_v; y_r)  +  lam sum_{(u,v)} phi(w_u - w_v),     phi = l1 or l2

(Heterogeneous Federated Learning on a Graph.) In graphreg's terms the loss has scale 1/(V n_v). With l1 single
coefficients fuse, with l2 whole nodes.
"""

from __future__ import annotations

import numpy as np

import graphreg as gr

rng = np.random.default_rng(1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def report(name: str, problem: gr.Problem) -> gr.Solution:
    """Solve on both routes; what each certifies."""
    exact, run = problem.solve(gr.Exact()), problem.solve(gr.PrimalDual())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    print(
        f"{name}: optimum in [{exact.certificate.dual:.8f}, {exact.certificate.primal:.8f}]; "
        f"PrimalDual {run.objective:.8f} after {run.rounds} rounds, relative gap {run.certificate.relative_gap:.1e}"
    )
    print("   ", exact.clusters())
    return exact


# ---- logistic regressions on a chain of three blocks -----------------------------------------------------------------
V, d, m = 24, 3, 60
graph = gr.Graph.chain(V)
block = np.repeat([0, 1, 2], V // 3)
truth = np.array([[1.5, -1.0, 0.5], [-1.5, -1.0, 0.5], [-1.5, 1.0, 0.5]])  # neighbours differ in one coefficient
samples = {}
for v in range(V):
    X = rng.standard_normal((m, d))
    samples[v] = (X, (rng.random(m) < sigmoid(X @ truth[block[v]])).astype(int))
data = gr.NodeData.from_dict(samples)
scale = dict.fromkeys(range(V), 1.0 / (V * m))  # 1/(V n_v): (1/V) times the mean loss of the node

ridge = 1e-4 * gr.NodePenalty(gr.SquaredL2())  # a node whose few labels separate has no minimiser without one
loss = gr.LogisticLoss(data, scale=scale)
alone = gr.Problem(loss + ridge).solve()  # no graph at all: every node on its own
for penalty in (gr.L1(), gr.L2()):
    problem = gr.Problem(loss + 0.004 * gr.TotalVariation(graph, penalty) + ridge)
    exact = report(f"logistic, {type(penalty).__name__}", problem)
    error, own = (np.abs(solution.coef - truth[block]).mean() for solution in (exact, alone))
    print(f"    mean error of the coefficients {error:.3f}, of a fit per node {own:.3f}")
    print(f"    {exact.clusters().members()}\n")

# ---- means on a grid: one number pair per node, given as a whole -----------------------------------------------------
side, m = 10, 5
grid = gr.Graph.grid(side, side)
truth = np.array([(1.0, 0.0) if column < side // 2 else (0.0, 1.0) for _, column in grid.labels])
rows = truth[:, None] + 0.4 * rng.standard_normal((len(truth), m, 2))
data = gr.NodeData.from_dict({label: (None, y) for label, y in zip(grid.labels, rows, strict=True)})
n, means = grid.n_nodes, rows.mean(axis=1)
loss = gr.MeanLoss(data, scale=1.0 / (n * m))  # one number, since every node has m rows
for penalty, strength in ((gr.L1(), 0.0025), (gr.L2(), 0.0035)):
    problem = gr.Problem(loss + strength * gr.TotalVariation(grid, penalty))
    exact = report(f"mean, {type(penalty).__name__}", problem)
    fitted, raw = np.abs(exact.coef - truth).mean(), np.abs(means - truth).mean()
    print(f"    mean error {fitted:.3f}, of the node means themselves {raw:.3f}\n")

# ---- sparsity as well: l1 on the nodes (edges to the ground) ---------------------------------------------------------
model = loss + 0.0025 * gr.TotalVariation(grid, gr.L1()) + 0.001 * gr.NodePenalty(gr.L1())
exact = report("mean, L1 on edges and on nodes", gr.Problem(model))
print(f"    {np.mean(np.abs(exact.coef) < 1e-6):.0%} of the coefficients are zero")
