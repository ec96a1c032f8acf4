"""Quantiles by group and classes by node, on data that scikit-learn ships (`pip install ".[demo]"`).

    python examples/quantiles_and_classes.py

(a) Diabetes: how disease progression one year on spreads among patients of equal body mass index and blood pressure.
    Patients form ten groups by age; quantile regressions at .1, .5 and .9, neighbouring age groups pulled together.
(b) Wines: three cultivars of grape, told apart by colour and phenols. The wines form five nodes by alcohol content;
    multinomial logistic regressions, neighbouring nodes pulled together. On wines that were left out.

Every answer is certified to a relative gap of 1e-6, by the exact route and by a decentralised one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pandas as pd

import graphreg as gr

try:
    from sklearn.datasets import load_diabetes, load_wine
except ImportError:
    sys.exit('this example needs scikit-learn for its data: pip install scikit-learn, or ".[demo]" of graphreg')

QUANTILES = (0.1, 0.5, 0.9)


def standardised(frame: pd.DataFrame) -> pd.DataFrame:
    return (frame - frame.mean()) / frame.std()


def groups(values: pd.Series, count: int) -> pd.Series:
    """Groups of about equal size, in order."""
    return pd.qcut(values.rank(method="first"), count, labels=False)


def solve(name: str, model: gr.Model) -> gr.Solution:
    """Both routes, certified; the exact answer."""
    problem = gr.Problem(model)
    exact, run = problem.solve(gr.Exact()), problem.solve(gr.ADMM())
    for solution in (exact, run):
        assert solution.status == "certified", solution
    print(f"{name}: exact {exact.objective:.6f}, ADMM {run.objective:.6f} ({run.rounds} rounds)")
    return exact


# ---- (a) quantiles ---------------------------------------------------------------------------------------------------
def diabetes() -> None:
    raw = load_diabetes(as_frame=True, scaled=False).frame
    frame = standardised(raw[["bmi", "bp"]]).assign(progression=raw["target"], decade=groups(raw["age"], 10))
    data = gr.NodeData.from_frame(frame, node="decade", target="progression", features=["bmi", "bp"], intercept=True)
    ages = nx.path_graph(10)
    below, rows = {}, {}
    for tau in QUANTILES:
        model = gr.QuantileLoss(data, tau=tau) + 0.1 * gr.TotalVariation(ages, gr.L2())
        answer = solve(f"quantile {tau}", model)
        below[tau] = float(np.mean(frame["progression"] <= np.asarray(answer.predict(frame))))
        rows[tau] = answer.table()
    table = pd.concat(rows, axis=1)
    ages_of = raw["age"].groupby(frame["decade"]).median().astype(int).rename("median age")
    print("progression of an average patient, and what one deviation of body mass index and blood pressure adds:")
    print(pd.concat({"": ages_of.to_frame()} | rows, axis=1).loc[[0, 3, 6, 9]].round(0).astype(int).to_string())
    print("share of patients at or below:", ", ".join(f"{share:.2f} for {tau}" for tau, share in below.items()))
    width = table[0.9]["intercept"] - table[0.1]["intercept"]
    print(f"80% of average patients lie within a range of {width.min():.0f} to {width.max():.0f}, by age")


# ---- (b) classes -----------------------------------------------------------------------------------------------------
def wines(strengths: Sequence[float]) -> None:
    raw = load_wine(as_frame=True).frame
    features = ["color_intensity", "hue", "total_phenols"]
    cultivar = raw["target"].map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    frame = standardised(raw[features]).assign(cultivar=cultivar, strength=groups(raw["alcohol"], 5))
    train = np.random.default_rng(0).permutation(len(frame)) < 0.4 * len(frame)
    classes = sorted(set(cultivar))
    data = gr.NodeData.from_frame(frame[train], node="strength", target="cultivar", features=features, intercept=True)
    loss = gr.MultinomialLoss(data, classes=classes) + 1e-2 * gr.NodePenalty(gr.SquaredL2())
    for strength in strengths:
        answer = solve(f"strength {strength}", loss + strength * gr.TotalVariation(nx.path_graph(5), gr.L2()))
        found = np.asarray(answer.predict(frame[~train], kind="class"))
        accuracy = float(np.mean(found == frame["cultivar"][~train].to_numpy()))
        print(f"   right about {accuracy:.1%} of the {int((~train).sum())} wines that were left out")
    chances = answer.predict(frame[~train]).assign(cultivar=frame["cultivar"][~train].to_numpy())
    print("(what tells the cultivars apart depends little on alcohol: the more the nodes share, the better)")
    print("mean probability of each class, by the cultivar that it was, at the last strength:")
    print(chances.groupby("cultivar").mean().round(2).to_string())


if __name__ == "__main__":
    print("(a) quantiles of disease progression, by age")
    diabetes()
    print("\n(b) cultivars of wine, by alcohol content")
    wines((0.001, 0.03, 1.0))
