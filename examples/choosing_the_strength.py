"""Choosing the strength: the largest that matters, what the noise asks for, the path, held-out data, guarantees.

    minimise   sum_i (1/m_i) sum_r (x_r'w_i - y_r)^2 / 2  +  lam sum_{i,j} A_ij ||w_i - w_j||

Eighteen weather stations, nine on the coast and nine in the hills, explain yield by rain and sun; in the two regions
these work in opposite directions. Neighbours within a region are joined by many edges, the regions by a few weak ones.
Which lam? Four answers, and for the one that is taken: are the clusters that it finds guaranteed?

The figures are written to strength_path.png and strength_validation.png in the current folder.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

rng = np.random.default_rng(4)
SAMPLES = 25
coast, hills = [f"coast {k}" for k in range(1, 10)], [f"hill {k}" for k in range(1, 10)]
regions = {"coast": coast, "hills": hills}

graph = nx.Graph()
for stations in (coast, hills):
    graph.add_weighted_edges_from((a, b, 1.0) for k, a in enumerate(stations) for b in stations[:k])
graph.add_weighted_edges_from((coast[k], hills[k], 0.1) for k in range(3))

frame = pd.DataFrame({"station": np.repeat(coast + hills, SAMPLES)})
frame["rain"], frame["sun"] = rng.normal(size=(2, len(frame)))
sign = np.where(frame["station"].isin(coast), 1.0, -1.0)
frame["yield"] = sign * frame["rain"] - 0.5 * sign * frame["sun"] + 0.7 * rng.normal(size=len(frame))

data = gr.NodeData.from_frame(frame, node="station", target="yield", features=["rain", "sun"], intercept=True)
lam = gr.Parameter(0.1, name="lam")
problem = gr.Problem(gr.SquaredLoss(data) + lam * gr.TotalVariation(graph, gr.L2()))

print("1. From which strength on do all stations agree? There is nothing to choose above it.\n")
most = gr.strength_max(problem)
print(most, "\n")

print("2. What does the noise ask for? It believes the graph, whose edges between the regions are false: too much.\n")
noise = gr.tuning.noise_strength(problem, seed=0)
print(noise, "\n")

print("3. What happens between? Every strength is solved from its neighbour and certified by itself.\n")
path = gr.path(problem, 12)
print(path, "\n")
events = path.events()
print(
    f"{(events['event'] == 'together').sum()} fusions, {(events['event'] == 'split').sum()} splits; the last fusions:"
)
print(events[["strength_from", "strength_to", "tail", "head", "event", "certain"]].tail(3).to_string(), "\n")

print("4. Which strength predicts best? The strongest within one standard error of the best is taken.\n")
validation = gr.cross_validate(problem, 12, folds=5, scoring="mse", rule="1se", seed=0)
print(validation, "\n")

print("5. Is what was found guaranteed? Theorem 2 speaks of the clusters before anything is solved.\n")
validation.assign()  # the Parameter gets the value that was chosen
clusters = problem.solve().clusters()
print(clusters)
found = gr.theory.recovery(problem, clusters)
print(found, "\n")
assert clusters.count == 2
assert sorted(map(sorted, clusters.members())) == [coast, hills]

# The condition is sufficient, not necessary: where it fails, ask from which strength on it holds.
if not found.guaranteed and found.interval is not None:
    lam.value = 1.05 * found.interval[0]
    guaranteed = gr.theory.recovery(problem, regions)
    assert guaranteed.guaranteed
    away = guaranteed.sharp
    print(f"guaranteed at lam = {lam.value:.3g}, where coefficients are shrunk by at most {away.max():.3g}")

try:
    path.plot(feature="rain").figure.savefig("strength_path.png", dpi=150)
    validation.plot().figure.savefig("strength_validation.png", dpi=150)
    print("figures: strength_path.png, strength_validation.png")
except gr.errors.ModelError as error:  # matplotlib is not installed
    print(error)
