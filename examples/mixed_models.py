"""Mixed models: variances from the data, predictions with their errors, and the same model as a federated problem.

    python examples/mixed_models.py [FOLDER]

Without arguments on simulated pupils in schools in districts. With a FOLDER that holds hsb82.csv.gz also on High School
and Beyond: mathematics achievement of 7185 pupils in 160 schools by socio-economic status (Raudenbush and Bryk 2002),
the classic of multilevel models; schools in clusters by sector and by thirds of their mean status.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import graphreg as gr

FILE = "hsb82.csv.gz"


def folder() -> Path | None:
    if len(sys.argv) == 1:
        return None
    path = Path(sys.argv[1])
    if len(sys.argv) > 2 or not (path / FILE).is_file():
        sys.exit(f"usage: python examples/mixed_models.py [FOLDER]    (the folder that holds {FILE})")
    return path


# ---- simulated -------------------------------------------------------------------------------------------------------
def simulated() -> None:
    rng, n, d = np.random.default_rng(0), 60, 4
    names = [f"x{j}" for j in range(d)]
    district = np.arange(n) // 10
    truth = rng.normal(size=(6, d))[district] + 0.7 * rng.normal(size=(n, d))
    node = np.repeat(np.arange(n), rng.integers(2, 12, n))  # many have fewer samples than they would need
    X = rng.normal(size=(len(node), d))
    y = np.einsum("rj,rj->r", X, truth[node]) + rng.normal(size=len(node))
    data = gr.NodeData.from_arrays(X, y, node, features=names)
    clusters = {i: f"district {j}" for i, j in enumerate(district)}

    fit = gr.inference.hierarchical(data, clusters)
    print("Simulated: noise 1, schools 0.49, districts 1.\n")
    print(fit)

    print("\nThe same coefficients by an algorithm that never moves the data:")
    run = gr.Problem(fit.model).solve(gr.PrimalDual(), gap=1e-8)
    far = np.abs(run.table().loc[list(fit.labels[:n])].to_numpy() - fit.coef).max()
    print(f"{run.status} after {run.rounds} rounds; largest difference {far:.1e}")

    print("\nHow far each estimator is from the truth:")
    frame = pd.DataFrame(truth, columns=names)
    print(gr.inference.compare_estimators(data, clusters, truth=frame).table().to_string())
    at_truth = fit.intervals().query("level == 1").set_index(["label", "feature"])
    values = frame.rename_axis("label").stack().rename_axis(["label", "feature"]).reindex(at_truth.index)
    inside = values.between(at_truth["low"], at_truth["high"]).mean()
    print(f"\n95% intervals of the schools' coefficients that hold the truth: {inside:.1%}")

    print("\nAn unseen school is predicted from its district, with the uncertainty that this has:")
    new = gr.inference.hierarchical(data, {**clusters, "new": "district 3"})
    rows = new.intervals()
    print(rows[rows["label"].isin(["new", "district 3"])].to_string(index=False))


# ---- schools ---------------------------------------------------------------------------------------------------------
def schools(path: Path) -> None:
    frame = pd.read_csv(path / FILE)
    data = gr.NodeData.from_frame(frame, node="school", target="mAch", features=["cses"], intercept=True)
    print("\nHigh School and Beyond, random intercepts: lme4's mAch ~ cses + (1 | school)")
    print(gr.inference.hierarchical(data, random=["intercept"]))
    print("\nIntercepts and slopes with one variance")
    print(gr.inference.hierarchical(data))

    each = frame.drop_duplicates("school").set_index("school")
    thirds = pd.qcut(each["meanses"], 3, labels=["low", "middle", "high"]).astype(str)
    clusters = (each["sector"] + ", " + thirds).to_dict()
    print("\nSchools in clusters by sector and by thirds of their mean status")
    fit = gr.inference.hierarchical(data, clusters)
    print(fit)
    print("\nThe clusters:")
    print(pd.DataFrame(fit.latent, index=list(fit.features)).T.round(2).to_string())
    problem = gr.Problem(fit.model)
    run = problem.solve(gr.PrimalDual(), gap=1e-6)
    print(
        f"\nFederated, school by school: {run.status} after {run.rounds} rounds, {run.ledger.total_messages:,} messages"
    )


if __name__ == "__main__":
    data_folder = folder()
    simulated()
    if data_folder is not None:
        schools(data_folder)
