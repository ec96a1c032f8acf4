"""High School and Beyond as clients in known clusters: data, a split, and models that are fitted and judged on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphreg as gr

from ._instances import Array

FILE = "hsb82.csv.gz"
FEATURES = ["ses", "minority", "female"]
LARGEST = 100.0  # of a client's cross-entropy, section 6.2
RIDGE = 1e-3  # of local models: in many schools the classes are separable


@dataclass(frozen=True)
class Schools:
    """Pupils with the response mAch > median; schools in clusters by sector and thirds of their mean status.

    Attributes
    ----------
    train, test : DataFrame
        A fifth of every school's pupils is for the test.
    clusters : dict
        School to cluster.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    clusters: dict[Any, str]

    @staticmethod
    def split(path: Path, number: int) -> Schools:
        frame: Any = pd.read_csv(path)
        frame["high"] = (frame["mAch"] > frame["mAch"].median()).astype(int)
        frame["minority"], frame["female"] = (frame["minrty"] == "Yes") * 1.0, (frame["sx"] == "Female") * 1.0
        each = frame.drop_duplicates("school").set_index("school")
        thirds: Any = pd.qcut(each["meanses"], 3, labels=["low", "middle", "high"])
        order = pd.Series(np.random.default_rng(number).random(len(frame)), index=frame.index)
        rank = order.groupby(frame["school"]).rank(pct=True)
        return Schools(frame[rank > 0.2], frame[rank <= 0.2], (each["sector"] + ", " + thirds.astype(str)).to_dict())

    @property
    def loss(self) -> gr.LogisticLoss:
        data = gr.NodeData.from_frame(self.train, node="school", target="high", features=FEATURES, intercept=True)
        return gr.LogisticLoss(data, scale="sum")

    def model(self, gamma: Any, lam: Any) -> gr.Problem:
        """(2.3) with the same gamma at all schools, and the same lambda at all clusters."""
        return gr.Problem(self.loss + gr.Hierarchy(self.clusters, (gamma, lam)))

    def coefficients(self, gamma: float, lam: float) -> dict[str, pd.DataFrame]:
        """Of the three models of Tables 2 and 3, by school."""
        alone = gr.Problem(self.loss + RIDGE * gr.NodePenalty(gr.SquaredL2()))
        problem = self.model(gamma, lam)
        return {
            "personalised": problem.solve(gr.InteriorPoint(), gap=1e-6).table(),
            "local": alone.solve(gr.InteriorPoint(), gap=1e-6).table(),
            "single model": problem.solve(gr.Pooled(), on_failure="return").table(),
        }

    def judged(self, coefficients: pd.DataFrame) -> tuple[Array, Array]:
        """Cross-entropy and accuracy on the pupils of the test, by school."""
        X = np.column_stack([np.ones(len(self.test)), self.test[FEATURES].to_numpy(dtype=float)])
        link = (X * coefficients.loc[self.test["school"]].to_numpy()).sum(axis=1)
        sign = 2.0 * self.test["high"].to_numpy() - 1.0
        scores = pd.DataFrame({"entropy": np.logaddexp(0.0, -sign * link), "right": (sign * link > 0.0) * 1.0})
        means: Any = scores.groupby(self.test["school"].to_numpy()).mean()
        return np.minimum(means["entropy"].to_numpy(), LARGEST), means["right"].to_numpy()
