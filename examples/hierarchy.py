"""Known clusters: personalisation between a node's own fit, its cluster and everybody.

    (2.3)  sum_i f_i(w_i) + gamma/2 sum_i ||w_i - w_cluster(i)||^2 + sum_j lam_j/2 ||w_j - w_root||^2
    (2.1)  sum_i f_i(w_i) + gamma/2 sum_i ( (1 - alpha_j) ||w_i - mean_j||^2 + alpha_j ||w_i - mean||^2 )

(Personalized Federated Learning with Multiple Known Clusters.) The same optimum for lam_j = alpha_j gamma n_j /
(1 - alpha_j): a tree of nodes, clusters and a root, whose inner nodes are latent. Then partial pooling in the sense of
multilevel models: group means are drawn to their cluster's mean, the more the fewer samples they have.
"""

from __future__ import annotations

import numpy as np

import graphreg as gr

rng = np.random.default_rng(3)
d, gamma, alpha = 4, 0.5, 0.3
clusters = {"north": [f"n{k}" for k in range(6)], "south": [f"s{k}" for k in range(4)]}
centre = {name: rng.standard_normal(d) for name in clusters}
samples = {}
for name, nodes in clusters.items():
    for node in nodes:
        own, X = centre[name] + 0.3 * rng.standard_normal(d), rng.standard_normal((12, d))
        samples[node] = (X, X @ own + 0.5 * rng.standard_normal(12))
data = gr.NodeData.from_dict(samples)


def solve(name: str, model: gr.Model) -> gr.Solution:
    """Both routes, certified."""
    exact, run = gr.Problem(model).solve(gr.Exact()), gr.Problem(model).solve(gr.PrimalDual())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    print(
        f"{name}: exact {exact.objective:.9f}, PrimalDual {run.objective:.9f} "
        f"({run.rounds} rounds, certified relative gap {run.certificate.relative_gap:.1e})"
    )
    return exact


# ---- the two forms ---------------------------------------------------------------------------------------------------
lam = {name: alpha * gamma * len(nodes) / (1 - alpha) for name, nodes in clusters.items()}
tree = solve(
    "(2.3) with lam = alpha gamma n_j / (1 - alpha)",
    gr.SquaredLoss(data) + gr.Hierarchy(clusters, weights=(gamma, lam)),
)
means = solve(
    "(2.1) with alpha and gamma", gr.SquaredLoss(data) + gr.Hierarchy.from_alpha(clusters, alpha=alpha, gamma=gamma)
)
w = {name: means.table().loc[nodes].to_numpy() for name, nodes in clusters.items()}
mean = np.vstack(list(w.values())).mean(axis=0)  # of all nodes; equal gamma, so that no weights are needed
local = sum(0.5 * np.mean((samples[i][1] - samples[i][0] @ means.table().loc[i]) ** 2) for i in samples)
spread = sum(
    gamma / 2 * ((1 - alpha) * ((v - v.mean(axis=0)) ** 2).sum() + alpha * ((v - mean) ** 2).sum()) for v in w.values()
)
print(
    f"largest difference of the coefficients {np.abs(tree.coef - means.coef).max():.1e}; "
    f"(2.1) written out with numpy has the value {local + spread:.9f}\n"
)

# ---- latent nodes ----------------------------------------------------------------------------------------------------
print("latent nodes (coefficients of the clusters and of the root):")
for label, value in tree.latent.items():
    truth = f"   truth {np.round(centre[label], 2)}" if label in centre else ""
    print(f"  {label:6s} {np.round(value, 2)}{truth}")

# ---- from separate fits to one fit -----------------------------------------------------------------------------------
print("\nhow far apart nodes end up, by gamma:")
for value in (0.01, 0.1, 1.0, 10.0, 100.0):
    model = gr.SquaredLoss(data) + gr.Hierarchy(clusters, weights=(value, 1.0))
    solution = gr.Problem(model).solve()
    spread = {k: np.std(solution.table().loc[nodes].to_numpy(), axis=0).mean() for k, nodes in clusters.items()}
    print(
        f"  gamma {value:6.2f}: spread within north {spread['north']:.3f}, south {spread['south']:.3f}; "
        f"{solution.status}, gap {solution.certificate.gap:.1e}"
    )

# ---- partial pooling of means: the multilevel model ------------------------------------------------------------------
# y_r ~ N(w_i, s^2), w_i ~ N(w_cluster, t^2): -log of the density gives sums with 1/s^2 and weights 1/t^2.
s, t = 1.0, 0.5
counts = {"a": 2, "b": 2, "c": 5, "d": 20, "e": 80}
rows = {node: (None, 1.0 + t * rng.standard_normal() + s * rng.standard_normal((m, 1))) for node, m in counts.items()}
groups = gr.NodeData.from_dict(rows)
model = gr.MeanLoss(groups, scale=1 / s**2) + gr.Hierarchy({"all": list(counts)}, weights=(1 / t**2, 1e-3))
pooled = solve("\npartial pooling", model)
middle = pooled.latent["all"][0]
for node, m in counts.items():
    mean, weight = rows[node][1].mean(), m / (m + s**2 / t**2)
    shrunk = weight * mean + (1 - weight) * middle  # the textbook's formula, at the fitted centre
    print(
        f"  {node}: {m:3d} samples, mean {mean:+.3f} -> {pooled.table().loc[node].item():+.3f} (formula {shrunk:+.3f})"
    )

# ---- deeper trees ----------------------------------------------------------------------------------------------------
nested = {"north": {"coast": ["n0", "n1", "n2"], "hills": ["n3", "n4", "n5"]}, "south": {"plain": clusters["south"]}}
deep = solve("\nthree levels", gr.SquaredLoss(data) + gr.Hierarchy(nested, weights=(1.0, 2.0, 1.0)))
print("latent nodes:", ", ".join(map(str, deep.latent)))
